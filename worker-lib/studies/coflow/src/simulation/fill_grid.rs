//! Progressive filling for a single coflow whose flows are a matrix. Does the same as [`Filling::fill`], but visits
//! only the ports whose bottleneck has not been found.

// These functions must be inlined into functions that are compiled for a SIMD level; otherwise, the compiler targets
// the baseline CPU.
#![expect(clippy::inline_always)]

use pulp::{Arch, Simd, WithSimd};

use super::fill::{CANCELLED, EQUAL, FEW, Filling, Local, Member, ROUNDS_OF_SIDES, Weight};
use super::grid::{Grid, Line, Values, vectors, vectors_mut};

/// Egress port whose bottleneck has not been found. The fields are those of [`Filling`].
#[derive(Clone, Copy, Debug)]
struct Open {
    line: usize,
    free: f64,
    weight: f64,
    summed: f64,
    level: f64,
    lowest: f64,
}

/// State of the filling, which also serves as its buffers. The fields of type [`Values`] have a value for each ingress
/// port.
#[derive(Clone, Debug, Default)]
pub(super) struct OfGrid {
    /// 1 for an open port, otherwise 0.
    masks: Values,
    free: Values,
    weights: Values,
    summed: Values,
    /// Levels; infinite for a port without a flow to an open egress port.
    levels: Values,
    lowest: Values,
    open: Vec<Open>,
    lines: Vec<Line>,
    /// Ingress ports that have become bottlenecks, and their levels.
    new: Vec<(usize, f64)>,
    /// Levels of the ports in `new`, and 1; both are 0 for other ports.
    new_levels: Values,
    new_masks: Values,
    sums: Vec<f64>,
    pairs: Vec<(f64, f64)>,
}

impl Filling {
    /// Does the same as [`Self::fill`] for a single coflow.
    pub(super) fn fill_grid<W: Weight>(
        &mut self,
        (member, grid): (Member<'_, Local>, &Grid),
        (free, least): (&mut [f64], f64),
    ) -> bool {
        let ingress = member.table.ingress();
        let Self { of_grid, levels, pinned, .. } = self;
        for buffer in [&mut *levels, &mut *pinned] {
            buffer.clear();
            buffer.resize(free.len(), 0.0);
        }
        of_grid.start::<W>(member, grid, (free, least));
        let mut highest: f64 = 0.0;
        for round in 0.. {
            let (of_ports, of_lines) = of_grid.set_levels();
            if of_ports == f64::INFINITY || of_lines == f64::INFINITY {
                break;
            }
            let is_of_flows = round >= ROUNDS_OF_SIDES;
            if is_of_flows {
                of_grid.lowest_of_flows(grid, ingress);
            }
            let bounds = (!is_of_flows).then_some((of_lines, of_ports));
            highest = highest.max(of_grid.find_bottlenecks(bounds, ingress, (levels, pinned, free)));
            of_grid.fix::<W>(grid, ingress);
            let has_open = !of_grid.open.is_empty() && of_grid.masks.all().contains(&1.0);
            if !W::IS_EQUAL && has_open {
                of_grid.sum_cancelled::<W>(grid, ingress);
            }
        }
        for (from, level) in levels[..ingress].iter_mut().enumerate() {
            if of_grid.masks.all()[from] > 0.0 {
                (*level, free[from]) = (highest, of_grid.free.all()[from]);
            }
        }
        for open in &of_grid.open {
            (levels[ingress + open.line], free[ingress + open.line]) = (highest, open.free);
        }
        highest > 0.0
    }
}

impl OfGrid {
    /// Resets the state, and sums the weights of the flows at the ports with a free capacity of at least `least`.
    fn start<W: Weight>(
        &mut self,
        Member { table, counts, .. }: Member<'_, Local>,
        grid: &Grid,
        (free, least): (&[f64], f64),
    ) {
        let (ingress, egress) = (table.ingress(), table.egress());
        let is_open = |port: usize| free[port] >= least && counts[port] > 0;
        self.masks.set((0..ingress).map(|from| f64::from(u8::from(is_open(from)))));
        self.free.set(free[..ingress].iter().copied());
        self.levels.set(std::iter::repeat_n(f64::INFINITY, ingress));
        self.weights.set(std::iter::repeat_n(0.0, ingress));
        self.lines.clear();
        self.lines.extend((0..egress).filter(|line| is_open(ingress + line)).map(|line| (line, 0.0)));
        grid.weigh::<W>(&self.lines, &self.masks, (&mut self.sums, &mut self.weights));
        self.summed.set(self.weights.all().iter().copied());
        let open = |((line, _), sum): (&Line, &f64)| {
            let (free, lowest) = (free[ingress + line], f64::INFINITY);
            Open { line: *line, free, weight: *sum, summed: *sum, level: f64::INFINITY, lowest }
        };
        self.open.clear();
        self.open.extend(self.lines.iter().zip(&self.sums).map(open));
    }

    /// Computes the level of each open port. Returns the lowest level of the ingress ports and that of the egress
    /// ports; a level is infinite if the side has no flows between open ports.
    fn set_levels(&mut self) -> (f64, f64) {
        let Self { free, weights, levels, .. } = self;
        let of_ports = SetLevels { free: free.all_mut(), weights: weights.all(), levels: levels.all_mut() };
        let of_ports = Arch::new().dispatch(of_ports);
        let mut of_lines = f64::INFINITY;
        for Open { free, weight, level, .. } in &mut self.open {
            // A level must be finite even if the weight is so small that the quotient overflows.
            *level = if *weight > 0.0 { (*free / *weight).min(f64::MAX) } else { f64::INFINITY };
            of_lines = of_lines.min(*level);
        }
        (of_ports, of_lines)
    }

    /// Sets, for each open port, the lowest level of the open ports with which it shares a flow.
    fn lowest_of_flows(&mut self, grid: &Grid, ingress: usize) {
        let Self { open, lines, levels, lowest, sums, .. } = self;
        lines.clear();
        lines.extend(open.iter().map(|open| (open.line, open.level)));
        lowest.set(std::iter::repeat_n(f64::INFINITY, ingress));
        grid.lowest(lines, levels, (sums, lowest));
        open.iter_mut().zip(&*sums).for_each(|(open, level)| open.lowest = *level);
    }

    /// Finds the ports that are bottlenecks, lists them in `new` and `lines`, and closes them. `bounds` are the highest
    /// levels of an ingress and of an egress port that is a bottleneck; without them, the bound of each port is its
    /// lowest level among the ports with which it shares a flow. Stores the levels, the rates and the remaining free
    /// capacity of the bottlenecks. Returns the highest level of a bottleneck.
    fn find_bottlenecks(
        &mut self,
        bounds: Option<(f64, f64)>,
        ingress: usize,
        (levels, pinned, free): (&mut [f64], &mut [f64], &mut [f64]),
    ) -> f64 {
        let mut highest: f64 = 0.0;
        let mut keep = |port: usize, level: f64, rate: f64| {
            (levels[port], pinned[port], free[port]) = (level, rate, 0.0);
            highest = highest.max(level);
        };
        self.new.clear();
        for (from, level) in self.levels.all()[..ingress].iter().enumerate() {
            let bound = bounds.map_or_else(|| self.lowest.all()[from], |(bound, _)| bound);
            if *level < f64::INFINITY && *level <= bound * (1.0 + EQUAL) {
                keep(from, *level, self.free.all()[from]);
                self.new.push((from, *level));
            }
        }
        for (from, _) in &self.new {
            for values in [&mut self.masks, &mut self.free, &mut self.weights, &mut self.summed] {
                values.all_mut()[*from] = 0.0;
            }
        }
        self.lines.clear();
        let lines = &mut self.lines;
        self.open.retain(|open| {
            let bound = bounds.map_or(open.lowest, |(_, bound)| bound);
            let is_bottleneck = open.level < f64::INFINITY && open.level <= bound * (1.0 + EQUAL);
            if is_bottleneck {
                keep(ingress + open.line, open.level, open.free);
                lines.push((open.line, open.level));
            }
            !is_bottleneck
        });
        highest
    }

    /// Fixes the rates of the flows at the new bottlenecks.
    fn fix<W: Weight>(&mut self, grid: &Grid, ingress: usize) {
        let Self { masks, free, weights, open, lines, new, new_levels, new_masks, pairs, .. } = self;
        grid.fix_lines::<W>(lines, masks, (free, weights));
        if new.is_empty() {
            return;
        }
        if new.len() * FEW <= ingress {
            for Open { line, free, weight: sum, .. } in &mut *open {
                for (from, level) in &*new {
                    let weight = W::of(grid.at(*from, *line));
                    *free -= level * weight;
                    *sum -= weight;
                }
            }
        } else {
            lines.clear();
            lines.extend(open.iter().map(|open| (open.line, 0.0)));
            for values in [&mut *new_levels, &mut *new_masks] {
                values.set(std::iter::repeat_n(0.0, ingress));
            }
            for (from, level) in &*new {
                (new_levels.all_mut()[*from], new_masks.all_mut()[*from]) = (*level, 1.0);
            }
            grid.fix_ports::<W>(lines, (new_levels, new_masks), pairs);
            for (Open { free, weight: sum, .. }, (rate, weight)) in open.iter_mut().zip(&*pairs) {
                *free -= rate;
                *sum -= weight;
            }
        }
        open.iter_mut().for_each(|open| open.free = open.free.max(0.0));
    }

    /// Recomputes each sum of weights of which only a small fraction is left, to remove the rounding errors of
    /// subtraction.
    fn sum_cancelled<W: Weight>(&mut self, grid: &Grid, ingress: usize) {
        let Self { masks, weights, summed, lowest, open, lines, new, sums, .. } = self;
        let is_cancelled = |open: &Open| open.weight < CANCELLED * open.summed;
        let of_ports = Arch::new().dispatch(HasCancelled { weights: weights.all(), summed: summed.all() });
        if !of_ports && !open.iter().any(is_cancelled) {
            return;
        }
        new.clear();
        if of_ports {
            let both = weights.all().iter().zip(summed.all()).enumerate();
            let cancelled = both.filter(|(_, (weight, summed))| **weight < CANCELLED * **summed);
            new.extend(cancelled.map(|(from, _)| (from, 0.0)));
        }
        let is_by_line = new.len() * FEW > ingress;
        let is_visited = |open: &&mut Open| is_by_line || is_cancelled(open);
        lines.clear();
        lines.extend(open.iter_mut().filter(is_visited).map(|open| (open.line, 0.0)));
        lowest.set(std::iter::repeat_n(0.0, ingress));
        grid.weigh::<W>(lines, masks, (sums, lowest));
        for (open, sum) in open.iter_mut().filter(is_visited).zip(&*sums) {
            if is_cancelled(open) {
                (open.weight, open.summed) = (*sum, *sum);
            }
        }
        for (from, _) in &*new {
            let of_line = |open: &Open| W::of(grid.at(*from, open.line));
            let sum = if is_by_line { lowest.all()[*from] } else { open.iter().map(of_line).sum() };
            (weights.all_mut()[*from], summed.all_mut()[*from]) = (sum, sum);
        }
    }
}

/// Computation of the levels of ingress ports. Returns the lowest of them.
struct SetLevels<'a> {
    free: &'a mut [f64],
    weights: &'a [f64],
    levels: &'a mut [f64],
}

impl WithSimd for SetLevels<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let [zero, most, infinity] = [0.0, f64::MAX, f64::INFINITY].map(|value| simd.splat_f64s(value));
        let mut lowest = infinity;
        let ports = vectors_mut::<S>(self.free).iter_mut().zip(vectors::<S>(self.weights));
        for ((free, weight), level) in ports.zip(vectors_mut::<S>(self.levels)) {
            *free = simd.max_f64s(*free, zero);
            let of_port = simd.min_f64s(simd.div_f64s(*free, *weight), most);
            *level = simd.select_f64s(simd.less_than_f64s(zero, *weight), of_port, infinity);
            lowest = simd.min_f64s(lowest, *level);
        }
        simd.reduce_min_f64s(lowest)
    }
}

/// Check whether a sum of weights must be recomputed.
struct HasCancelled<'a> {
    weights: &'a [f64],
    summed: &'a [f64],
}

impl WithSimd for HasCancelled<'_> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> bool {
        let (zero, one, part) = (simd.splat_f64s(0.0), simd.splat_f64s(1.0), simd.splat_f64s(CANCELLED));
        let mut found = zero;
        for (weight, summed) in vectors::<S>(self.weights).iter().zip(vectors::<S>(self.summed)) {
            let is_cancelled = simd.less_than_f64s(*weight, simd.mul_f64s(part, *summed));
            found = simd.max_f64s(found, simd.select_f64s(is_cancelled, one, zero));
        }
        simd.reduce_max_f64s(found) > 0.0
    }
}
