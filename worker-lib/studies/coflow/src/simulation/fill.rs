//! Progressive filling: max-min fair rates of flows that share ports (Bertsekas and Gallager, "Data Networks", section
//! 6.5.2), with weights.
//!
//! The result is a level for each port. The rate of a flow is its weight multiplied by the lower of its two ports'
//! levels, so rates need not be stored for each flow.

// These functions must be inlined into functions that are compiled for a SIMD level; otherwise, the compiler targets
// the baseline CPU.
#![expect(clippy::inline_always)]

use pulp::Simd;

use super::fill_grid::OfGrid;
use super::grid::{Grid, Line, Values};
use super::table::{Flows, Table};

/// Relative difference up to which two levels count as equal.
pub(super) const EQUAL: f64 = 1e-12;
/// A sum of weights is recomputed once it falls below this fraction of its original value, because the rounding errors
/// of repeated subtraction would then matter.
pub(super) const CANCELLED: f64 = 1e-4;
/// Number of rounds after which bottlenecks are found by comparing the two ports of each flow instead of the two sides
/// of the fabric. If the flows of a coflow connect most of its ports, more rounds are rarely needed.
pub(super) const ROUNDS_OF_SIDES: usize = 12;

/// Weight of a flow as a function of its remaining time in seconds. The weight of a complete flow is 0.
pub(super) trait Weight: Copy {
    /// Whether all flows that are not complete have the same weight.
    const IS_EQUAL: bool;

    fn of(left: f64) -> f64;

    /// Does the same as [`Self::of`] for several flows.
    fn lanes<S: Simd>(simd: S, left: S::f64s) -> S::f64s;
}

/// All flows have the same weight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Same;

/// The weight of a flow is its remaining time in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Remaining;

impl Weight for Same {
    const IS_EQUAL: bool = true;

    #[inline(always)]
    fn of(left: f64) -> f64 {
        if left > 0.0 { 1.0 } else { 0.0 }
    }

    #[inline(always)]
    fn lanes<S: Simd>(simd: S, left: S::f64s) -> S::f64s {
        let [zero, one] = [0.0, 1.0].map(|value| simd.splat_f64s(value));
        simd.select_f64s(simd.less_than_f64s(zero, left), one, zero)
    }
}

impl Weight for Remaining {
    const IS_EQUAL: bool = false;

    #[inline(always)]
    fn of(left: f64) -> f64 {
        left
    }

    #[inline(always)]
    fn lanes<S: Simd>(_: S, left: S::f64s) -> S::f64s {
        left
    }
}

/// Coflow whose flows get rates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member<'a, P> {
    pub(super) table: &'a Table,
    /// Number of incomplete flows at each port of the table.
    pub(super) counts: &'a [u32],
    pub(super) ports: P,
}

/// Mapping from the ports of a table to the port numbers used in a filling.
pub(super) trait Ports: Copy {
    fn number(self, local: usize) -> usize;
}

/// Identity mapping: ports have the same numbers in the filling as in the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Local;

impl Ports for Local {
    fn number(self, local: usize) -> usize {
        local
    }
}

impl Ports for &[u32] {
    fn number(self, local: usize) -> usize {
        self[local] as usize
    }
}

impl<P: Ports> Member<'_, P> {
    pub(super) fn port(self, local: usize) -> usize {
        self.ports.number(local)
    }

    fn count(self) -> usize {
        self.table.ingress() + self.table.egress()
    }

    /// Calls `visit` for each flow at port `local`, with the other port of the flow, numbered as in `table`, and the
    /// weight of the flow.
    fn for_each_at<W: Weight>(self, local: usize, mut visit: impl FnMut(usize, f64)) {
        self.table.for_each_at(local, |other, left| visit(other, W::of(left)));
    }
}

/// State of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The level of the port has not been determined.
    Open,
    /// The port has become a bottleneck in the current round.
    New,
    /// The port is a bottleneck from an earlier round, or has no capacity.
    Fixed,
}

/// Computation of max-min fair rates, with its buffers. Each list has one entry for each port.
#[derive(Clone, Debug, Default)]
pub(super) struct Filling {
    pub(super) phases: Vec<Phase>,
    /// 1 for an open port, otherwise 0. Multiplying by this mask avoids a branch that is hard to predict.
    masks: Vec<f64>,
    /// Sum of the weights of those flows at the port whose bottleneck has not been found.
    pub(super) weights: Vec<f64>,
    /// Value of `weights` when it was last computed as a sum, before subtractions.
    summed: Vec<f64>,
    /// Rate per unit of weight: for an open port, the rate at which the port would be fully used; for a bottleneck, its
    /// final rate.
    pub(super) levels: Vec<f64>,
    /// For each port, the lowest level of the open ports with which it shares a flow, or a lower bound on it.
    pub(super) lowest: Vec<f64>,
    /// Total rate of the flows for which the port is the bottleneck.
    pub(super) pinned: Vec<f64>,
    /// For each port, the recomputed sum of weights, or `None` if it need not be recomputed.
    renewed: Vec<Option<f64>>,
    of_member: OfMember,
    pub(super) of_grid: OfGrid,
}

/// Buffers for a coflow whose flows are a matrix, if several coflows are filled together.
#[derive(Clone, Debug, Default)]
struct OfMember {
    masks: Values,
    free: Values,
    weights: Values,
    levels: Values,
    /// Egress ports whose flows are visited, and their levels.
    lines: Vec<Line>,
    /// Ingress ports that have become bottlenecks, and their levels.
    new: Vec<(usize, f64)>,
    sums: Vec<f64>,
    pairs: Vec<(f64, f64)>,
}

/// If the number of ingress ports is at least this multiple of the number of new bottlenecks among them, the flows of
/// these bottlenecks are visited one by one instead of by lines.
pub(super) const FEW: usize = 8;

impl Filling {
    /// Returns the level of each port after [`Self::fill`]. The level is 0 at ports without capacity. At other ports
    /// that are not bottlenecks, it is at least the level of any bottleneck.
    pub(super) fn levels(&self) -> &[f64] {
        &self.levels
    }

    /// Returns, for each port, the total rate of the flows for which it is the bottleneck, as a multiple of the
    /// fabric's capacity.
    pub(super) fn pinned(&self) -> &[f64] {
        &self.pinned
    }

    /// Computes the max-min fair rates of those flows whose two ports each have a free capacity of at least `least`,
    /// and subtracts the rates from `free`, the free capacities. Capacities and rates are multiples of the fabric's
    /// capacity. The first `ingress` ports are ingress ports. If a flow uses links between racks, `free` also contains
    /// the links, and each link that the flow uses must also have a free capacity of at least `least`. Returns whether
    /// any flow has a rate.
    ///
    /// If the level of a port is not above that of any port with which it shares a flow, the port is the bottleneck of
    /// all its flows and determines their rates. There is always such a port, and usually there are many, so few rounds
    /// are necessary, whereas the textbook algorithm has one round for each port. A flow is visited only when weights
    /// are summed and when one of its ports becomes a bottleneck.
    pub(super) fn fill<'a, W: Weight, P: Ports + 'a>(
        &mut self,
        members: &(impl Iterator<Item = Member<'a, P>> + Clone),
        (free, least): (&mut [f64], f64),
        ingress: usize,
    ) -> bool {
        if members.clone().any(|member| member.table.links().is_some()) {
            return self.fill_linked::<W, _>(members, (free, least));
        }
        self.weigh::<W, _>(members.clone(), free, least);
        let mut highest: f64 = 0.0;
        for round in 0.. {
            if !self.set_levels(free, ingress) {
                break;
            }
            let is_bottleneck = if round < ROUNDS_OF_SIDES {
                self.lowest_of_sides(ingress);
                &self.lowest
            } else {
                self.lowest_of_flows::<W, _>(members.clone());
                &self.lowest
            };
            for (port, lowest) in is_bottleneck.iter().enumerate() {
                if self.weights[port] > 0.0 && self.levels[port] <= lowest * (1.0 + EQUAL) {
                    self.phases[port] = Phase::New;
                    self.pinned[port] = free[port];
                    free[port] = 0.0;
                    highest = highest.max(self.levels[port]);
                }
            }
            self.fix::<W, _>(members.clone(), free, ingress);
        }
        for (level, phase) in self.levels.iter_mut().zip(&self.phases) {
            if *phase == Phase::Open {
                *level = highest;
            }
        }
        highest > 0.0
    }

    /// Does the same as [`Self::fill`] for a single coflow.
    pub(super) fn fill_one<W: Weight>(
        &mut self,
        member: Member<'_, Local>,
        (free, least): (&mut [f64], f64),
    ) -> bool {
        match member.table.flows() {
            Flows::Grid(grid) => self.fill_grid::<W>((member, grid), (free, least)),
            Flows::List(_) => {
                self.fill::<W, _>(&std::iter::once(member), (free, least), member.table.ingress())
            }
        }
    }

    /// Resets all buffers. Ports with a free capacity of at least `least` are open.
    pub(super) fn clear(&mut self, free: &[f64], least: f64) {
        for buffer in
            [&mut self.weights, &mut self.levels, &mut self.lowest, &mut self.summed, &mut self.pinned]
        {
            buffer.clear();
            buffer.resize(free.len(), 0.0);
        }
        self.phases.clear();
        self.phases.extend(free.iter().map(|free| if *free >= least { Phase::Open } else { Phase::Fixed }));
        self.masks.clear();
        self.masks.extend(free.iter().map(|free| f64::from(u8::from(*free >= least))));
    }

    fn weigh<'a, W: Weight, P: Ports + 'a>(
        &mut self,
        members: impl Iterator<Item = Member<'a, P>>,
        free: &[f64],
        least: f64,
    ) {
        self.clear(free, least);
        let are_all_open = !self.phases.contains(&Phase::Fixed);
        for member in members {
            if W::IS_EQUAL && are_all_open {
                let counts = member.counts.iter().enumerate();
                counts.for_each(|(local, count)| self.weights[member.port(local)] += f64::from(*count));
                continue;
            }
            if let Flows::Grid(grid) = member.table.flows() {
                self.weigh_grid::<W, _>(member, grid);
                continue;
            }
            let Self { phases, masks, weights, .. } = self;
            for from in 0..member.table.ingress() {
                let port = member.port(from);
                if phases[port] != Phase::Open {
                    continue;
                }
                let mut sum = 0.0;
                member.for_each_at::<W>(from, |to, weight| {
                    let to = member.port(to);
                    let weight = weight * masks[to];
                    sum += weight;
                    weights[to] += weight;
                });
                weights[port] += sum;
            }
        }
        self.summed.copy_from_slice(&self.weights);
    }

    /// Adds the weights of a coflow's flows to the sums of those of its ports that are open.
    fn weigh_grid<W: Weight, P: Ports>(&mut self, member: Member<'_, P>, grid: &Grid) {
        let Self { phases, masks, weights, of_member, .. } = self;
        let OfMember { masks: of_ports, weights: sums, lines, sums: of_lines, .. } = of_member;
        let ingress = member.table.ingress();
        set_lines(lines, member, |port| phases[port] == Phase::Open, |_| 0.0);
        of_ports.set((0..ingress).map(|from| masks[member.port(from)]));
        sums.set((0..ingress).map(|from| weights[member.port(from)]));
        grid.weigh::<W>(lines, of_ports, (of_lines, sums));
        lines.iter().zip(&*of_lines).for_each(|((line, _), sum)| weights[member.port(ingress + line)] += sum);
        for (from, sum) in (0..ingress).zip(sums.all()) {
            weights[member.port(from)] = *sum;
        }
    }

    /// Computes the level of each open port. Returns whether there can still be flows between open ports. There are
    /// none if all ports on one side are fixed; sums of weights above 0 are then rounding errors.
    fn set_levels(&mut self, free: &[f64], ingress: usize) -> bool {
        let mut has_flows = [false; 2];
        for (port, free) in free.iter().enumerate() {
            if self.phases[port] == Phase::Open {
                let weight = self.weights[port];
                has_flows[usize::from(port < ingress)] |= weight > 0.0;
                // A level must be finite even if the weight is so small that the quotient overflows.
                self.levels[port] = if weight > 0.0 { (free / weight).min(f64::MAX) } else { f64::INFINITY };
            }
        }
        has_flows == [true; 2]
    }

    /// Sets, for each port, the lowest level among all open ports on the other side of the fabric. This is a lower
    /// bound on the lowest level of the ports with which the port shares a flow.
    fn lowest_of_sides(&mut self, ingress: usize) {
        let least = |range: std::ops::Range<usize>| {
            range.filter(|port| self.weights[*port] > 0.0).map(|port| self.levels[port])
        };
        let all = self.levels.len();
        let of_ingress = least(0..ingress).fold(f64::INFINITY, f64::min);
        let of_egress = least(ingress..all).fold(f64::INFINITY, f64::min);
        self.lowest[..ingress].fill(of_egress);
        self.lowest[ingress..].fill(of_ingress);
    }

    /// Sets, for each port, the lowest level of the open ports with which it shares a flow.
    fn lowest_of_flows<'a, W: Weight, P: Ports + 'a>(
        &mut self,
        members: impl Iterator<Item = Member<'a, P>>,
    ) {
        self.lowest.fill(f64::INFINITY);
        for member in members {
            if let Flows::Grid(grid) = member.table.flows() {
                self.lowest_of_grid(member, grid);
                continue;
            }
            let Self { phases, levels, lowest, .. } = self;
            for from in 0..member.table.ingress() {
                let port = member.port(from);
                if phases[port] != Phase::Open {
                    continue;
                }
                member.for_each_at::<W>(from, |to, weight| {
                    let to = member.port(to);
                    if weight > 0.0 && phases[to] == Phase::Open {
                        lowest[port] = lowest[port].min(levels[to]);
                        lowest[to] = lowest[to].min(levels[port]);
                    }
                });
            }
        }
    }

    /// Does the same as [`Self::lowest_of_flows`] for one coflow.
    fn lowest_of_grid<P: Ports>(&mut self, member: Member<'_, P>, grid: &Grid) {
        let Self { phases, levels, lowest, of_member, .. } = self;
        let OfMember { levels: of_ports, free: found, lines, sums: of_lines, .. } = of_member;
        let ingress = member.table.ingress();
        let is_open = |port: usize| phases[port] == Phase::Open;
        of_ports.set((0..ingress).map(|from| {
            let port = member.port(from);
            if is_open(port) { levels[port] } else { f64::INFINITY }
        }));
        found.set((0..ingress).map(|from| lowest[member.port(from)]));
        set_lines(lines, member, is_open, |port| levels[port]);
        grid.lowest(lines, of_ports, (of_lines, found));
        for ((line, _), level) in lines.iter().zip(&*of_lines) {
            let port = member.port(ingress + line);
            lowest[port] = lowest[port].min(*level);
        }
        for (from, level) in (0..ingress).zip(found.all()) {
            lowest[member.port(from)] = *level;
        }
    }

    /// Fixes the rates of the flows at the new bottlenecks, and subtracts these rates from the free capacities of the
    /// open ports, and the weights of the flows from their sums of weights.
    fn fix<'a, W: Weight, P: Ports + 'a>(
        &mut self,
        members: impl Iterator<Item = Member<'a, P>> + Clone,
        free: &mut [f64],
        ingress: usize,
    ) {
        for (mask, phase) in self.masks.iter_mut().zip(&self.phases) {
            *mask = f64::from(u8::from(*phase == Phase::Open));
        }
        for member in members.clone() {
            if let Flows::Grid(grid) = member.table.flows() {
                self.fix_lines_of_grid::<W, _>(member, grid, free);
                self.fix_ports_of_grid::<W, _>(member, grid, free);
                continue;
            }
            let Self { phases, masks, weights, levels, .. } = self;
            for local in 0..member.count() {
                let port = member.port(local);
                if phases[port] != Phase::New {
                    continue;
                }
                let level = levels[port];
                member.for_each_at::<W>(local, |other, weight| {
                    let other = member.port(other);
                    let weight = weight * masks[other];
                    free[other] -= level * weight;
                    weights[other] -= weight;
                });
            }
        }
        free.iter_mut().for_each(|free| *free = free.max(0.0));
        for (phase, weight) in self.phases.iter_mut().zip(&mut self.weights) {
            if *phase == Phase::New {
                (*phase, *weight) = (Phase::Fixed, 0.0);
            }
        }
        // Sums of equal weights are exact, and sums are not used if all ports of one side are fixed; in these cases,
        // they need not be recomputed.
        let has_open = |phases: &[Phase]| phases.contains(&Phase::Open);
        let (of_ingress, of_egress) = self.phases.split_at(ingress);
        if !W::IS_EQUAL && has_open(of_ingress) && has_open(of_egress) {
            self.sum_cancelled::<W, _>(members);
        }
    }

    /// Fixes the rates of the flows at the new bottlenecks among the egress ports of a coflow.
    fn fix_lines_of_grid<W: Weight, P: Ports>(
        &mut self,
        member: Member<'_, P>,
        grid: &Grid,
        free: &mut [f64],
    ) {
        let Self { phases, masks, weights, levels, of_member, .. } = self;
        let OfMember { masks: of_ports, weights: sums, free: left, lines, .. } = of_member;
        set_lines(lines, member, |port| phases[port] == Phase::New, |port| levels[port]);
        if lines.is_empty() {
            return;
        }
        let ingress = member.table.ingress();
        of_ports.set((0..ingress).map(|from| masks[member.port(from)]));
        sums.set((0..ingress).map(|from| weights[member.port(from)]));
        left.set((0..ingress).map(|from| free[member.port(from)]));
        grid.fix_lines::<W>(lines, of_ports, (left, sums));
        for ((from, sum), left) in (0..ingress).zip(sums.all()).zip(left.all()) {
            let port = member.port(from);
            (weights[port], free[port]) = (*sum, *left);
        }
    }

    /// Fixes the rates of the flows at the new bottlenecks among the ingress ports of a coflow.
    fn fix_ports_of_grid<W: Weight, P: Ports>(
        &mut self,
        member: Member<'_, P>,
        grid: &Grid,
        free: &mut [f64],
    ) {
        let Self { phases, weights, levels, of_member, .. } = self;
        let OfMember { masks: of_ports, levels: of_new, lines, new, pairs, .. } = of_member;
        let ingress = member.table.ingress();
        let is_new = |from: usize| phases[member.port(from)] == Phase::New;
        new.clear();
        new.extend((0..ingress).filter(|from| is_new(*from)).map(|from| (from, levels[member.port(from)])));
        if new.is_empty() {
            return;
        }
        set_lines(lines, member, |port| phases[port] == Phase::Open, |_| 0.0);
        if new.len() * FEW <= ingress {
            for (line, _) in &*lines {
                let port = member.port(ingress + line);
                for (from, level) in &*new {
                    let weight = W::of(grid.at(*from, *line));
                    free[port] -= level * weight;
                    weights[port] -= weight;
                }
            }
            return;
        }
        of_ports.set((0..ingress).map(|from| f64::from(u8::from(is_new(from)))));
        of_new.set((0..ingress).map(|from| if is_new(from) { levels[member.port(from)] } else { 0.0 }));
        grid.fix_ports::<W>(lines, (of_new, of_ports), pairs);
        for ((line, _), (rate, weight)) in lines.iter().zip(&*pairs) {
            let port = member.port(ingress + line);
            free[port] -= rate;
            weights[port] -= weight;
        }
    }

    /// Recomputes each sum of weights of which only a small fraction is left, to remove the rounding errors of
    /// subtraction.
    fn sum_cancelled<'a, W: Weight, P: Ports + 'a>(&mut self, members: impl Iterator<Item = Member<'a, P>>) {
        let Self { phases, masks, weights, summed, renewed, of_member, .. } = self;
        renewed.clear();
        let is_cancelled = |(weight, summed): (&f64, &f64)| *weight < CANCELLED * summed;
        renewed.extend(weights.iter().zip(&*summed).map(|both| is_cancelled(both).then_some(0.0)));
        if renewed.iter().all(Option::is_none) {
            return;
        }
        for member in members {
            if let Flows::Grid(grid) = member.table.flows() {
                of_member.add_renewed::<W, _>(member, grid, (phases, masks), renewed);
                continue;
            }
            for local in 0..member.count() {
                let port = member.port(local);
                let Some(renewed) = renewed[port].as_mut().filter(|_| phases[port] == Phase::Open) else {
                    continue;
                };
                member
                    .for_each_at::<W>(local, |other, weight| *renewed += weight * masks[member.port(other)]);
            }
        }
        for (port, sum) in renewed.iter().enumerate() {
            if phases[port] == Phase::Fixed {
                summed[port] = 0.0;
            } else if let Some(sum) = sum {
                (weights[port], summed[port]) = (*sum, *sum);
            }
        }
    }
}

impl OfMember {
    /// Adds the weights of a coflow's flows between open ports to the sums in `renewed`, which has a sum for each port
    /// that needs one.
    fn add_renewed<W: Weight, P: Ports>(
        &mut self,
        member: Member<'_, P>,
        grid: &Grid,
        (phases, masks): (&[Phase], &[f64]),
        renewed: &mut [Option<f64>],
    ) {
        let Self { masks: of_ports, weights: sums, lines, new, sums: of_lines, .. } = self;
        let ingress = member.table.ingress();
        let is_open = |port: usize| phases[port] == Phase::Open;
        let is_renewed = |port: usize| is_open(port) && renewed[port].is_some();
        new.clear();
        new.extend((0..ingress).filter(|from| is_renewed(member.port(*from))).map(|from| (from, 0.0)));
        let is_by_line = new.len() * FEW > ingress;
        set_lines(lines, member, |port| if is_by_line { is_open(port) } else { is_renewed(port) }, |_| 0.0);
        of_ports.set((0..ingress).map(|from| masks[member.port(from)]));
        sums.set(std::iter::repeat_n(0.0, ingress));
        grid.weigh::<W>(lines, of_ports, (of_lines, sums));
        for ((line, _), sum) in lines.iter().zip(&*of_lines) {
            renewed[member.port(ingress + line)].iter_mut().for_each(|renewed| *renewed += sum);
        }
        for (from, _) in &*new {
            let sum = if is_by_line {
                sums.all()[*from]
            } else {
                let of_line = |line| W::of(grid.at(*from, line)) * masks[member.port(ingress + line)];
                (0..member.table.egress()).map(of_line).sum()
            };
            renewed[member.port(*from)].iter_mut().for_each(|renewed| *renewed += sum);
        }
    }
}

/// Sets `lines` to those egress ports of a coflow that have incomplete flows and for which `is_visited` returns true,
/// and to their `value`s. Both functions take the number of the port in the filling.
fn set_lines<P: Ports>(
    lines: &mut Vec<Line>,
    member: Member<'_, P>,
    is_visited: impl Fn(usize) -> bool,
    value: impl Fn(usize) -> f64,
) {
    let ingress = member.table.ingress();
    let of_line = |line: usize| member.port(ingress + line);
    let open = (0..member.table.egress()).filter(|line| member.counts[ingress + line] > 0);
    lines.clear();
    lines.extend(open.filter(|line| is_visited(of_line(*line))).map(|line| (line, value(of_line(line)))));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the rate of each flow, and the capacity of each port that remains free. The first half of the ports are
    /// ingress ports.
    fn fill(flows: &[(u32, u32, f64)], mut free: Vec<f64>) -> (Vec<f64>, Vec<f64>) {
        let ingress = free.len() / 2;
        let table = Table::of((ingress, ingress), flows.to_vec());
        let mut counts = vec![0; free.len()];
        flows
            .iter()
            .for_each(|(from, to, _)| [from, to].iter().for_each(|port| counts[**port as usize] += 1));
        let mut filling = Filling::default();
        let members = std::iter::once(Member { table: &table, counts: &counts, ports: Local });
        filling.fill::<Remaining, _>(&members, (&mut free, 0.0), ingress);
        let levels = filling.levels();
        let rate =
            |(from, to, weight): &(u32, u32, f64)| weight * levels[*from as usize].min(levels[*to as usize]);
        (flows.iter().map(rate).collect(), free)
    }

    #[test]
    fn a_flow_gets_what_slower_flows_leave() {
        // Ports 0 and 1 are ingress ports, 2 and 3 egress ports. Two flows share port 0, and the second shares port 3
        // with a third one. Port 0 gives 1/2 to each of its flows, so the third flow has the other half of port 3.
        let (rates, free) = fill(&[(0, 2, 1.0), (0, 3, 1.0), (1, 3, 1.0)], vec![1.0; 4]);
        assert_eq!((rates, free), (vec![0.5; 3], vec![0.0, 0.5, 0.5, 0.0]));
        // Three flows share port 0, with 1/3 each; 2/3 of port 3 remain for the flow from port 1.
        let flows = [(0, 2, 1.0), (0, 2, 1.0), (0, 3, 1.0), (1, 3, 1.0)];
        let (rates, _) = fill(&flows, vec![1.0; 4]);
        assert!((rates[3] - 2.0 / 3.0).abs() < 1e-15 && (rates[0] - 1.0 / 3.0).abs() < 1e-15, "{rates:?}");
    }

    #[test]
    fn rates_at_a_busy_port_are_in_the_ratio_of_weights() {
        assert_eq!(fill(&[(0, 2, 3.0), (0, 3, 1.0)], vec![1.0, 1.0, 1.0, 1.0]).0, [0.75, 0.25]);
        // Port 2 has 0.5, so the first flow leaves 0.5 to the other.
        assert_eq!(fill(&[(0, 2, 3.0), (0, 3, 1.0)], vec![1.0, 1.0, 0.5, 1.0]).0, [0.5, 0.5]);
    }

    #[test]
    fn small_weights_survive_the_subtraction_of_large_ones() {
        // The large flow has almost all of the weight at port 0, but port 2 limits it to 0.25; the small flow gets the
        // rest of port 0.
        let (rates, _) = fill(&[(0, 2, 1e18), (0, 3, 1e-6)], vec![1.0, 1.0, 0.25, 1.0]);
        assert_eq!(rates, [0.25, 0.75]);
    }

    /// Checks max-min fairness: each flow has a busy port at which no other flow has a higher ratio of rate to weight.
    fn check(flows: &[(u32, u32, f64)], capacities: Vec<f64>) {
        let (rates, free) = fill(flows, capacities);
        for (flow, rate) in flows.iter().zip(&rates) {
            let is_bottleneck = |port: u32| {
                let has = |other: &(u32, u32, f64)| other.0 == port || other.1 == port;
                let others = flows.iter().zip(&rates).filter(|(other, _)| has(other));
                let highest = others.map(|(other, rate)| rate / other.2).fold(0.0, f64::max);
                free[port as usize] < 1e-9 && highest <= rate / flow.2 * (1.0 + 1e-9)
            };
            assert!(is_bottleneck(flow.0) || is_bottleneck(flow.1), "{flows:?}: {rates:?}");
        }
    }

    proptest! {
        #[test]
        fn each_flow_has_a_bottleneck(
            flows in prop::collection::vec((0..5_u32, 5..10_u32, 0.1..10.0), 1..40),
            capacities in prop::collection::vec(0.01..1.0, 10),
        ) {
            check(&flows, capacities);
        }

        /// In a ring, each port has two flows, so many rounds are necessary.
        #[test]
        fn each_flow_of_a_ring_has_a_bottleneck(
            weights in prop::collection::vec(0.1..10.0, 80),
            capacities in prop::collection::vec(0.01..1.0, 80),
        ) {
            let flow = |(number, weight): (u32, f64)| (number / 2, 40 + number.div_ceil(2) % 40, weight);
            let flows: Vec<_> = (0..).zip(weights).map(flow).collect();
            check(&flows, capacities);
        }
    }
}
