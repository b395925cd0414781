//! Flows of a coflow whose ingress and egress ports are nearly all connected, stored as a matrix.
//!
//! Each line of the matrix contains the flows of an egress port. The loops of this module visit whole lines with the
//! vector instructions of the CPU. Most closed ports of a coflow are egress ports, whose lines are not visited at
//! all. Sums along a line are accumulated in eight lanes on every CPU, so results do not depend on the CPU's vector
//! length.

// These functions must be inlined into functions that are compiled for a SIMD level; otherwise, the compiler targets
// the baseline CPU.
#![expect(clippy::inline_always)]

use std::marker::PhantomData;

use pulp::bytemuck::cast_slice;
use pulp::{Arch, Simd, WithSimd};

use super::fill::Weight;

/// Number of lanes in which sums are accumulated. The length of a line is a multiple of it.
const LANES: usize = 8;

/// Minimum number of flows of a matrix. A list is just as fast for fewer flows.
const FLOWS_MIN: usize = 32;

/// Matrix of the remaining times of flows, in seconds before the scale of the coflow is applied. A flow that is
/// complete or does not exist has the value 0.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    /// Lines of the egress ports, one after another; each line is padded with zeros.
    left: Vec<f64>,
    /// Length of a line.
    width: usize,
}

/// Egress port whose line is visited (0 is the first egress port), and the value of this port.
pub(super) type Line = (usize, f64);

/// Value of each ingress port of a grid, padded to the length of a line.
#[derive(Clone, Debug, Default)]
pub(super) struct Values(Vec<f64>);

impl Values {
    /// Replaces the values. The padding has the value 0.
    pub(super) fn set(&mut self, values: impl Iterator<Item = f64>) {
        self.0.clear();
        self.0.extend(values);
        self.0.resize(self.0.len().next_multiple_of(LANES), 0.0);
    }

    /// Returns the values, followed by the padding.
    pub(super) fn all(&self) -> &[f64] {
        &self.0
    }

    /// Returns the same as [`Self::all`]; the values can be modified.
    pub(super) fn all_mut(&mut self) -> &mut [f64] {
        &mut self.0
    }
}

/// Flow that ends within an interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    /// Ingress port.
    pub(super) from: usize,
    /// Egress port, where 0 is the first one.
    pub(super) line: usize,
    /// Remaining time before the interval, in seconds before the scale is applied.
    pub(super) left: f64,
}

/// Individual rates that do not depend on the sizes of flows, and the interval in which they are used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Common rate of the coflow, as a fraction of its remaining bytes per second.
    pub(super) common: f64,
    /// Scale of the coflow before the interval.
    pub(super) scale: f64,
    /// Duration of the interval divided by the scale of the coflow at its end, in seconds.
    pub(super) step: f64,
    /// Flows that would end within this duration count as complete, in seconds.
    pub(super) within: f64,
}

impl Grid {
    /// Creates the matrix of flows, each of which is given as its ingress port, its egress port, where the first egress
    /// port has the number `ingress`, and its remaining time. Returns `None` if the flows are few, if most of the
    /// matrix would be empty or if two flows have the same ports.
    pub(super) fn of((ingress, egress): (usize, usize), flows: &[(u32, u32, f64)]) -> Option<Self> {
        let width = ingress.next_multiple_of(LANES);
        if flows.len() < FLOWS_MIN || 2 * flows.len() < width * egress {
            return None;
        }
        let mut left = vec![0.0; width * egress];
        for (from, to, seconds) in flows {
            let flow = &mut left[(*to as usize - ingress) * width + *from as usize];
            if std::mem::replace(flow, *seconds) != 0.0 {
                return None;
            }
        }
        Some(Self { left, width })
    }

    /// Returns the number of flows for which the matrix has space.
    pub(super) fn slots(&self) -> usize {
        self.left.len()
    }

    /// Returns the remaining times of the flows at an egress port, followed by the padding.
    pub(super) fn line(&self, line: usize) -> &[f64] {
        &self.left[line * self.width..(line + 1) * self.width]
    }

    /// Returns the remaining time of a flow.
    pub(super) fn at(&self, from: usize, line: usize) -> f64 {
        self.left[line * self.width + from]
    }

    /// Completes a flow.
    #[cfg(test)]
    pub(super) fn clear(&mut self, line: usize, from: usize) {
        self.left[line * self.width + from] = 0.0;
    }

    /// Adds the weights of the flows of `lines`, multiplied by the `masks` of their ingress ports, to `of_ports`, and
    /// sets `of_lines` to the sum of each line.
    pub(super) fn weigh<W: Weight>(
        &self,
        lines: &[Line],
        masks: &Values,
        (of_lines, of_ports): (&mut Vec<f64>, &mut Values),
    ) {
        of_lines.clear();
        let (masks, of_ports) = (&*masks.0, &mut *of_ports.0);
        Arch::new().dispatch(Weigh::<W> {
            grid: self,
            lines,
            masks,
            of_lines,
            of_ports,
            weight: PhantomData,
        });
    }

    /// Subtracts the rates of the flows of `lines` from `free` and their weights from `weights`, at the ingress ports
    /// whose value in `masks` is 1. The value of each line is its level.
    pub(super) fn fix_lines<W: Weight>(
        &self,
        lines: &[Line],
        masks: &Values,
        (free, weights): (&mut Values, &mut Values),
    ) {
        let (masks, free, weights) = (&*masks.0, &mut *free.0, &mut *weights.0);
        Arch::new().dispatch(FixLines::<W> { grid: self, lines, masks, free, weights, weight: PhantomData });
    }

    /// Sets `sums` to the rate and the weight of the flows from certain ingress ports to the egress port of each of
    /// `lines`. At these ingress ports, `levels` has their levels and `masks` has 1; elsewhere, both are 0.
    pub(super) fn fix_ports<W: Weight>(
        &self,
        lines: &[Line],
        (levels, masks): (&Values, &Values),
        sums: &mut Vec<(f64, f64)>,
    ) {
        sums.clear();
        let (levels, masks) = (&*levels.0, &*masks.0);
        Arch::new().dispatch(FixPorts::<W> { grid: self, lines, levels, masks, sums, weight: PhantomData });
    }

    /// For each of `lines`, sets `of_lines` to the lowest level of the ingress ports with which its egress port
    /// shares a flow. Lowers each value of `of_ports` to the lowest value of the `lines` in which the ingress port
    /// has a flow. `levels` are the levels of the ingress ports.
    pub(super) fn lowest(
        &self,
        lines: &[Line],
        levels: &Values,
        (of_lines, of_ports): (&mut Vec<f64>, &mut Values),
    ) {
        of_lines.clear();
        let (levels, of_ports) = (&*levels.0, &mut *of_ports.0);
        Arch::new().dispatch(Lowest { grid: self, lines, levels, of_lines, of_ports });
    }

    /// Reduces each flow of `lines` by a part: the lower of the values of its two ports.
    pub(super) fn send_parts(&mut self, lines: &[Line], parts: &Values) {
        Arch::new().dispatch(SendParts { grid: self, lines, parts: &parts.0 });
    }

    /// Sends the flows of `lines` at individual rates: the lower of the levels of their two ports. Appends the flows
    /// that end to `ended`. Overwrites `before`.
    pub(super) fn send_levels(
        &mut self,
        lines: &[Line],
        levels: &Values,
        pace: Pace,
        (before, ended): (&mut Vec<f64>, &mut Vec<Ended>),
    ) {
        Arch::new().dispatch(SendLevels { grid: self, lines, levels: &levels.0, pace, before, ended });
    }

    /// Adds the individual rates of the flows of `lines`, each of which is the lower of the levels of its two ports, to
    /// `of_ports`, and sets `of_lines` to the sum of each line.
    pub(super) fn add_levels(
        &self,
        lines: &[Line],
        levels: &Values,
        (of_lines, of_ports): (&mut Vec<f64>, &mut Values),
    ) {
        of_lines.clear();
        let (levels, of_ports) = (&*levels.0, &mut *of_ports.0);
        Arch::new().dispatch(AddLevels { grid: self, lines, levels, of_lines, of_ports });
    }

    /// For the flows of `lines`, whose individual rates are the lower of the levels of their two ports, appends to
    /// `ends` the time in seconds until a flow ends, and its rate, if that time is less than `horizon`. Returns the
    /// time until the last of the flows ends.
    pub(super) fn ends(
        &self,
        lines: &[Line],
        levels: &Values,
        (pace, horizon): (Pace, f64),
        ends: &mut Vec<(f64, f64)>,
    ) -> f64 {
        Arch::new().dispatch(FindEnds { grid: self, lines, levels: &levels.0, pace, horizon, ends })
    }
}

/// Returns values as vectors; their number must be a multiple of [`LANES`].
#[inline(always)]
pub(super) fn vectors<S: Simd>(values: &[f64]) -> &[S::f64s] {
    S::as_simd_f64s(values).0
}

/// Returns the same as [`vectors`]; the values can be modified.
#[inline(always)]
pub(super) fn vectors_mut<S: Simd>(values: &mut [f64]) -> &mut [S::f64s] {
    S::as_mut_simd_f64s(values).0
}

/// Returns the lower of two values.
#[inline(always)]
fn lower(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// Number of vectors that hold [`LANES`] values.
#[inline(always)]
const fn per_lanes<S: Simd>() -> usize {
    LANES / S::F64_LANES
}

/// Vectors that hold [`LANES`] values; the remaining ones are not used.
type Sums<S> = [<S as Simd>::f64s; LANES];

/// Returns the sum of the lanes.
#[inline(always)]
fn total<S: Simd>(sums: &Sums<S>) -> f64 {
    let lanes: &[f64] = cast_slice(&sums[..per_lanes::<S>()]);
    let [a, b, c, d, e, f, g, h] = *lanes else { unreachable!("there are {LANES} lanes") };
    ((a + e) + (b + f)) + ((c + g) + (d + h))
}

struct Weigh<'a, W> {
    grid: &'a Grid,
    lines: &'a [Line],
    masks: &'a [f64],
    of_lines: &'a mut Vec<f64>,
    of_ports: &'a mut [f64],
    weight: PhantomData<W>,
}

impl<W: Weight> WithSimd for Weigh<'_, W> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let per = per_lanes::<S>();
        for (line, _) in self.lines {
            let mut sums: Sums<S> = [simd.splat_f64s(0.0); LANES];
            let left = vectors::<S>(self.grid.line(*line)).chunks_exact(per);
            let masks = vectors::<S>(self.masks).chunks_exact(per);
            let of_ports = vectors_mut::<S>(self.of_ports).chunks_exact_mut(per);
            for ((left, masks), of_ports) in left.zip(masks).zip(of_ports) {
                for at in 0..per {
                    let weight = simd.mul_f64s(W::lanes(simd, left[at]), masks[at]);
                    sums[at] = simd.add_f64s(sums[at], weight);
                    of_ports[at] = simd.add_f64s(of_ports[at], weight);
                }
            }
            self.of_lines.push(total::<S>(&sums));
        }
    }
}

struct FixLines<'a, W> {
    grid: &'a Grid,
    lines: &'a [Line],
    masks: &'a [f64],
    free: &'a mut [f64],
    weights: &'a mut [f64],
    weight: PhantomData<W>,
}

impl<W: Weight> WithSimd for FixLines<'_, W> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for (line, level) in self.lines {
            let level = simd.splat_f64s(*level);
            let left = vectors::<S>(self.grid.line(*line)).iter().zip(vectors::<S>(self.masks));
            let free = vectors_mut::<S>(self.free).iter_mut();
            let sums = free.zip(vectors_mut::<S>(self.weights));
            for ((left, mask), (free, sum)) in left.zip(sums) {
                let weight = simd.mul_f64s(W::lanes(simd, *left), *mask);
                *free = simd.sub_f64s(*free, simd.mul_f64s(level, weight));
                *sum = simd.sub_f64s(*sum, weight);
            }
        }
    }
}

struct FixPorts<'a, W> {
    grid: &'a Grid,
    lines: &'a [Line],
    levels: &'a [f64],
    masks: &'a [f64],
    sums: &'a mut Vec<(f64, f64)>,
    weight: PhantomData<W>,
}

impl<W: Weight> WithSimd for FixPorts<'_, W> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let per = per_lanes::<S>();
        for (line, _) in self.lines {
            let mut rates: Sums<S> = [simd.splat_f64s(0.0); LANES];
            let mut weights = rates;
            let left = vectors::<S>(self.grid.line(*line)).chunks_exact(per);
            let levels = vectors::<S>(self.levels).chunks_exact(per);
            let masks = vectors::<S>(self.masks).chunks_exact(per);
            for ((left, levels), masks) in left.zip(levels).zip(masks) {
                for at in 0..per {
                    let weight = W::lanes(simd, left[at]);
                    rates[at] = simd.add_f64s(rates[at], simd.mul_f64s(weight, levels[at]));
                    weights[at] = simd.add_f64s(weights[at], simd.mul_f64s(weight, masks[at]));
                }
            }
            self.sums.push((total::<S>(&rates), total::<S>(&weights)));
        }
    }
}

struct Lowest<'a> {
    grid: &'a Grid,
    lines: &'a [Line],
    levels: &'a [f64],
    of_lines: &'a mut Vec<f64>,
    of_ports: &'a mut [f64],
}

impl WithSimd for Lowest<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (zero, infinity) = (simd.splat_f64s(0.0), simd.splat_f64s(f64::INFINITY));
        for (line, level) in self.lines {
            let level = simd.splat_f64s(*level);
            let mut lowest = infinity;
            let left = vectors::<S>(self.grid.line(*line)).iter().zip(vectors::<S>(self.levels));
            for ((left, levels), of_port) in left.zip(vectors_mut::<S>(self.of_ports)) {
                let is_open = simd.less_than_f64s(zero, *left);
                lowest = simd.min_f64s(lowest, simd.select_f64s(is_open, *levels, infinity));
                *of_port = simd.min_f64s(*of_port, simd.select_f64s(is_open, level, infinity));
            }
            self.of_lines.push(simd.reduce_min_f64s(lowest));
        }
    }
}

struct SendParts<'a> {
    grid: &'a mut Grid,
    lines: &'a [Line],
    parts: &'a [f64],
}

impl WithSimd for SendParts<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Grid { left, width } = self.grid;
        for (line, part) in self.lines {
            let part = simd.splat_f64s(*part);
            let left = vectors_mut::<S>(&mut left[line * *width..(line + 1) * *width]);
            for (left, parts) in left.iter_mut().zip(vectors::<S>(self.parts)) {
                *left = simd.sub_f64s(*left, simd.mul_f64s(*left, simd.min_f64s(part, *parts)));
            }
        }
    }
}

struct SendLevels<'a> {
    grid: &'a mut Grid,
    lines: &'a [Line],
    levels: &'a [f64],
    pace: Pace,
    before: &'a mut Vec<f64>,
    ended: &'a mut Vec<Ended>,
}

impl WithSimd for SendLevels<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Grid { left, width } = self.grid;
        let Pace { common, scale, step, within } = self.pace;
        let [common, scale, step, within] = [common, scale, step, within].map(|it| simd.splat_f64s(it));
        let (zero, one) = (simd.splat_f64s(0.0), simd.splat_f64s(1.0));
        for (line, level) in self.lines {
            let left = &mut left[line * *width..(line + 1) * *width];
            self.before.clear();
            self.before.extend_from_slice(left);
            let level = simd.splat_f64s(*level);
            let mut ended = zero;
            for (left, levels) in vectors_mut::<S>(left).iter_mut().zip(vectors::<S>(self.levels)) {
                let level = simd.min_f64s(level, *levels);
                let scaled = simd.mul_f64s(*left, scale);
                let sent = simd.mul_f64s(simd.add_f64s(simd.mul_f64s(scaled, common), level), within);
                let is_over = simd.less_than_or_equal_f64s(scaled, sent);
                let after = simd.sub_f64s(*left, simd.mul_f64s(level, step));
                let after = simd.select_f64s(is_over, zero, after);
                // 1 for a flow that ends, 0 for one that does not end or was complete.
                let was = simd.select_f64s(simd.less_than_f64s(zero, *left), one, zero);
                let is = simd.select_f64s(simd.less_than_f64s(zero, after), one, zero);
                ended = simd.add_f64s(ended, simd.sub_f64s(was, is));
                *left = after;
            }
            if simd.reduce_sum_f64s(ended) > 0.0 {
                let both = self.before.iter().zip(&*left).enumerate();
                let over = both.filter(|(_, (before, after))| **before > 0.0 && **after <= 0.0);
                self.ended.extend(over.map(|(from, (left, _))| Ended { from, line: *line, left: *left }));
            }
        }
    }
}

struct AddLevels<'a> {
    grid: &'a Grid,
    lines: &'a [Line],
    levels: &'a [f64],
    of_lines: &'a mut Vec<f64>,
    of_ports: &'a mut [f64],
}

impl WithSimd for AddLevels<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let per = per_lanes::<S>();
        let zero = simd.splat_f64s(0.0);
        for (line, level) in self.lines {
            let level = simd.splat_f64s(*level);
            let mut sums: Sums<S> = [zero; LANES];
            let left = vectors::<S>(self.grid.line(*line)).chunks_exact(per);
            let levels = vectors::<S>(self.levels).chunks_exact(per);
            let of_ports = vectors_mut::<S>(self.of_ports).chunks_exact_mut(per);
            for ((left, levels), of_ports) in left.zip(levels).zip(of_ports) {
                for at in 0..per {
                    let is_open = simd.less_than_f64s(zero, left[at]);
                    let rate = simd.select_f64s(is_open, simd.min_f64s(level, levels[at]), zero);
                    sums[at] = simd.add_f64s(sums[at], rate);
                    of_ports[at] = simd.add_f64s(of_ports[at], rate);
                }
            }
            self.of_lines.push(total::<S>(&sums));
        }
    }
}

struct FindEnds<'a> {
    grid: &'a Grid,
    lines: &'a [Line],
    levels: &'a [f64],
    pace: Pace,
    horizon: f64,
    ends: &'a mut Vec<(f64, f64)>,
}

impl WithSimd for FindEnds<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let Pace { common, scale, .. } = self.pace;
        let (zero, infinity) = (simd.splat_f64s(0.0), simd.splat_f64s(f64::INFINITY));
        let [commons, scales] = [common, scale].map(|it| simd.splat_f64s(it));
        let mut last = zero;
        for (line, level) in self.lines {
            let line = self.grid.line(*line);
            let levels = simd.splat_f64s(*level);
            let mut first = infinity;
            for (left, of_port) in vectors::<S>(line).iter().zip(vectors::<S>(self.levels)) {
                let left = simd.mul_f64s(*left, scales);
                let own = simd.min_f64s(levels, *of_port);
                let end = simd.div_f64s(left, simd.add_f64s(simd.mul_f64s(left, commons), own));
                // Only an incomplete flow with an individual rate has an end of its own.
                let has_end = simd.less_than_f64s(zero, simd.min_f64s(left, own));
                first = simd.min_f64s(first, simd.select_f64s(has_end, end, infinity));
                last = simd.max_f64s(last, simd.select_f64s(has_end, end, zero));
            }
            if simd.reduce_min_f64s(first) < self.horizon {
                for (left, of_port) in line.iter().zip(self.levels) {
                    let (left, own) = (left * scale, lower(*level, *of_port));
                    let rate = left * common + own;
                    if left > 0.0 && own > 0.0 && left / rate < self.horizon {
                        self.ends.push((left / rate, rate));
                    }
                }
            }
        }
        simd.reduce_max_f64s(last)
    }
}
