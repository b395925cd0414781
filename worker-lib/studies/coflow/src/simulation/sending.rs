//! Flows of a coflow that is being sent.

use std::sync::Arc;

use super::LEFT_MIN;
use super::fabric::Fabric;
use super::fill::{Filling, Member, Remaining};
use super::grid::{Ended, Line, Pace, Values};
use super::table::{Flows, Table, lowest};
use crate::workload::{Coflow, Flow};

/// Coflow that is being sent. All its flows are sent at the common rate, which is a fraction of their remaining bytes
/// per second. In addition, a flow may have an individual rate, which is added to the common one.
///
/// The common rate reduces the remaining bytes of all flows by the same factor. The factor is stored only once, so the
/// cost of an event depends on the number of ports and of flows with an individual rate, but not on the total number of
/// flows. Individual rates are stored as one level for each port.
///
/// Links between racks that the coflow uses count as further ports. Times are those at the fabric's capacity, and rates
/// are multiples of it, even at a port with a higher capacity.
#[derive(Clone, Debug)]
pub(crate) struct Sending {
    /// Ports at which the coflow has flows: ingress ports, egress ports, then links.
    ports: Arc<[u32]>,
    /// Capacity of each of `ports`, as a multiple of the fabric's capacity.
    relative: Arc<[f64]>,
    /// Remaining time at each of `ports`, in seconds.
    needs: Vec<f64>,
    /// Values of `needs` when they were last computed as sums over flows, minus what has been sent at the common rate
    /// since then.
    summed: Vec<f64>,
    /// Number of incomplete flows at each of `ports`.
    counts: Vec<u32>,
    /// Remaining time of all flows together, in seconds.
    size: f64,
    /// Flows. Clones of this value share the table until one of them changes an individual flow.
    table: Arc<Table>,
    scale: f64,
    /// Fraction of the remaining bytes of each flow that the common rate sends per second.
    common: f64,
    /// Individual rates of the flows; `None` if no flow has one.
    own: Option<Own>,
    /// Unused buffers, kept for the next individual rates.
    spare: Option<Own>,
    buffers: Buffers,
}

/// Buffers for the individual rates of flows.
#[derive(Clone, Debug, Default)]
struct Buffers {
    /// Egress ports whose flows are visited, and the value of each of them.
    lines: Vec<Line>,
    /// Values of ingress ports.
    values: Values,
    of_lines: Vec<f64>,
    of_ports: Values,
    before: Vec<f64>,
    ended: Vec<Ended>,
}

/// Individual rates of flows. Each list has one entry for each port of the coflow.
#[derive(Clone, Debug, Default)]
struct Own {
    /// Whether the flows at a busy port have equal rates; otherwise, their rates are in proportion to their remaining
    /// bytes.
    is_equal: bool,
    /// Level of each port. The level of a flow is the lower of the levels of its two ports, or 0 if the flow has no
    /// individual rate. If `is_equal`, the rate of a flow is its level; otherwise, it is its level multiplied by its
    /// remaining time.
    levels: Vec<f64>,
    /// Total individual rate of the flows at each port.
    used: Vec<f64>,
    /// For each port, the fraction of its remaining bytes that a flow with the level of this port sends at its
    /// individual rate until the next event. Not used if `is_equal`.
    parts: Vec<f64>,
    /// For each port, the total individual rate of the flows whose level is that of the port.
    pinned: Vec<f64>,
    /// Total individual rate of all flows.
    rate: f64,
}

/// A need is recomputed once it falls below this fraction of the sum from which it was reduced, because the rounding
/// errors of subtraction would then matter.
const CANCELLED: f64 = 1e-7;
/// Flows whose end times differ by at most this relative amount end in the same event.
const TOGETHER: f64 = 1e-9;

impl Sending {
    /// Creates the state of a coflow before any of its bytes are sent.
    pub(crate) fn new(coflow: &Coflow, fabric: &Fabric) -> Self {
        let loads = fabric.loads(coflow);
        let table = Table::new(coflow, fabric, &loads);
        let mut counts = vec![0; loads.len()];
        table.for_each(|from, to, left| {
            let count = u32::from(left > 0.0);
            counts[from] += count;
            counts[to] += count;
            let links = table.links().into_iter().flat_map(|links| links.between(from, to));
            links.for_each(|link| counts[link] += count);
        });
        let needs: Vec<f64> = loads.iter().map(|(_, bytes)| bytes / fabric.capacity).collect();
        Self {
            ports: loads.iter().map(|(port, _)| *port as u32).collect(),
            relative: loads.iter().map(|(port, _)| fabric.relative(*port)).collect(),
            summed: needs.clone(),
            needs,
            counts,
            size: coflow.size() / fabric.capacity,
            table: Arc::new(table),
            scale: 1.0,
            common: 0.0,
            own: None,
            spare: None,
            buffers: Buffers::default(),
        }
    }

    /// Returns the ports at which the coflow has flows, and the remaining time at each of them, in seconds at the
    /// fabric's capacity.
    pub(super) fn needs(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        self.ports.iter().map(|port| *port as usize).zip(self.needs.iter().copied())
    }

    /// Returns the ports at which the coflow has flows, and the remaining time at each of them, in seconds at the full
    /// rate of the port.
    pub(crate) fn times(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        self.needs().zip(&*self.relative).map(|((port, need), relative)| (port, need / relative))
    }

    /// Returns the remaining time at the busiest port, in seconds at its full rate.
    pub(crate) fn length(&self) -> f64 {
        self.times().map(|(_, time)| time).fold(0.0, f64::max)
    }

    /// Returns the remaining time of all flows together, in seconds at the fabric's capacity.
    pub(crate) fn size(&self) -> f64 {
        self.size
    }

    /// Returns whether all flows are complete.
    pub(crate) fn is_sent(&self) -> bool {
        self.table.open() == 0 || self.size == 0.0
    }

    /// Removes all rates.
    pub(super) fn stop(&mut self) {
        self.common = 0.0;
        if self.own.is_some() {
            self.spare = self.own.take();
        }
    }

    /// Sets the common rate: the fraction of each flow's remaining bytes that is sent per second.
    pub(super) fn send(&mut self, common: f64) {
        self.common = common;
    }

    /// Returns the flows as a member of a filling. `ports` maps the indices of [`Self::ports`] to the port numbers of
    /// the filling.
    pub(super) fn member<P>(&self, ports: P) -> Member<'_, P> {
        Member { table: &self.table, counts: &self.counts, ports }
    }

    /// Returns whether the coflow has bytes left at both an ingress and an egress port whose free rates in `free`
    /// (`[resources]`) are at least `least`. If it does not, no flow can get an individual rate.
    pub(super) fn has_free(&self, free: &[f64], least: f64) -> bool {
        let (ingress, both) = (self.table.ingress(), self.table.ingress() + self.table.egress());
        let mut sides = [0..ingress, ingress..both].into_iter();
        sides.all(|mut side| {
            side.any(|local| self.needs[local] > 0.0 && free[self.ports[local] as usize] >= least)
        })
    }

    /// Gives flows individual rates in addition to the common rate. The rates are the result of `filling`, which must
    /// cover only this coflow. `before` and `after` are the free rates of the coflow's ports before and after the
    /// filling. If `is_equal`, rates do not depend on the remaining bytes of flows.
    pub(super) fn set_own(&mut self, filling: &Filling, (before, after): (&[f64], &[f64]), is_equal: bool) {
        let mut own = self.spare.take().unwrap_or_default();
        own.is_equal = is_equal;
        own.levels.clear();
        own.levels.extend_from_slice(filling.levels());
        own.pinned.clear();
        own.pinned.extend_from_slice(filling.pinned());
        own.used.clear();
        own.used.extend(before.iter().zip(after).map(|(before, after)| before - after));
        own.rate = own.used[..self.table.ingress()].iter().sum();
        self.own = Some(own);
    }

    /// Gives all flows individual rates. The rates are the result of `filling`, which must cover all ports of the
    /// fabric and give all flows equal weights.
    pub(super) fn set_own_of_all(&mut self, filling: &Filling) {
        let mut own = self.spare.take().unwrap_or_default();
        own.is_equal = true;
        own.levels.clear();
        own.levels.extend(self.ports.iter().map(|port| filling.levels()[*port as usize]));
        own.pinned.clear();
        own.used.clear();
        own.used.resize(self.ports.len(), 0.0);
        own.rate = 0.0;
        let links = self.table.links().map(|links| &**links);
        let ingress = self.table.ingress();
        match self.table.flows() {
            Flows::Grid(grid) => {
                let Buffers { lines, values, of_lines, of_ports, .. } = &mut self.buffers;
                set_lines(lines, &own.levels[ingress..]);
                values.set(own.levels[..ingress].iter().copied());
                of_ports.set(std::iter::repeat_n(0.0, ingress));
                grid.add_levels(lines, values, (of_lines, of_ports));
                lines.iter().zip(&*of_lines).for_each(|((line, _), sum)| own.used[ingress + line] = *sum);
                own.used[..ingress].copy_from_slice(&of_ports.all()[..ingress]);
                own.rate = of_lines.iter().sum();
            }
            Flows::List(list) => {
                for from in 0..ingress {
                    let (to, left) = list.row(from);
                    let mut sum = 0.0;
                    for (to, left) in to.iter().zip(left) {
                        let to = *to as usize;
                        let rate = lowest(links, &own.levels, from, to);
                        let rate = if *left > 0.0 { rate } else { 0.0 };
                        sum += rate;
                        own.used[to] += rate;
                        let of_flow = links.iter().flat_map(|links| links.between(from, to));
                        of_flow.for_each(|link| own.used[link] += rate);
                    }
                    own.used[from] = sum;
                    own.rate += sum;
                }
            }
        }
        self.own = Some(own);
    }

    /// Returns the ports at which the coflow has flows, in ascending order.
    pub(super) fn ports(&self) -> &[u32] {
        &self.ports
    }

    /// Returns the incomplete flows: for each flow the resources that are its ingress and its egress port, and its
    /// remaining time in seconds at the fabric's capacity.
    pub(super) fn flows_left(&self) -> Vec<(usize, usize, f64)> {
        let mut flows = Vec::new();
        self.table.for_each(|from, to, left| {
            if left > 0.0 {
                flows.push((self.ports[from] as usize, self.ports[to] as usize, left * self.scale));
            }
        });
        flows
    }

    /// Returns the key by which the table sorts a flow. Flows with equal keys have the order of the coflow.
    pub(crate) fn key(&self, flow: &Flow) -> (usize, usize) {
        let is_list = matches!(self.table.flows(), Flows::List(_));
        (flow.from, if is_list { 0 } else { flow.to })
    }

    /// Returns the rate of each incomplete flow, in the order of the table, as a multiple of the fabric's capacity.
    pub(crate) fn flow_rates(&self) -> Vec<f64> {
        let links = self.table.links().map(|links| &**links);
        let mut rates = Vec::new();
        self.table.for_each(|from, to, left| {
            if left == 0.0 {
                return;
            }
            let own = self.own.as_ref().map_or(0.0, |own| {
                let level = lowest(links, &own.levels, from, to);
                if own.is_equal { level } else { level * left }
            });
            rates.push(left * self.scale * self.common + own);
        });
        rates
    }

    /// Returns the total rate of all flows, as a multiple of the fabric's capacity.
    pub(super) fn rate(&self) -> f64 {
        self.size * self.common + self.own.as_ref().map_or(0.0, |own| own.rate)
    }

    /// Adds the coflow's rate at each port, as a share of the port, to `shares` (`[ports]`).
    pub(super) fn add_shares(&self, shares: &mut [f64]) {
        for (port, time) in self.times() {
            shares[port] += time * self.common;
        }
        if let Some(own) = &self.own {
            let used = own.used.iter().zip(&*self.relative).map(|(used, relative)| used / relative);
            self.ports.iter().zip(used).for_each(|(port, used)| shares[*port as usize] += used);
        }
    }

    /// Returns the number of seconds until all flows are complete at their current rates. Also appends an entry to
    /// `ends` for the flows that end within `horizon` seconds because of their individual rates: the number of seconds
    /// until the end, and the rate. An entry may cover several flows that end at the same time.
    pub(super) fn ends(&mut self, horizon: f64, ends: &mut Vec<(f64, f64)>) -> f64 {
        let rest = if self.common > 0.0 { 1.0 / self.common } else { f64::INFINITY };
        let pace = self.pace(0.0);
        let Some(own) = &self.own else { return rest };
        let is_without = |(level, count): (&f64, &u32)| *level == 0.0 && *count > 0;
        let mut last = if own.levels.iter().zip(&self.counts).any(is_without) { rest } else { 0.0 };
        if own.is_equal {
            last = last.max(ends_of_flows(&self.table, own, &mut self.buffers, (pace, horizon), ends));
        } else {
            for (level, pinned) in own.levels.iter().zip(&own.pinned).filter(|(_, pinned)| **pinned > 0.0) {
                let end = 1.0 / (self.common + level / self.scale);
                if end < horizon {
                    ends.push((end, pinned + pinned / level * self.scale * self.common));
                }
                last = last.max(end);
            }
        }
        last
    }

    /// Sends flows at their current rates for `seconds` seconds.
    pub(crate) fn advance(&mut self, seconds: f64) {
        let keep = 1.0 - self.common * seconds;
        if self.common > 0.0 && keep < LEFT_MIN {
            return self.finish();
        }
        let before = self.scale;
        if self.common > 0.0 {
            self.scale *= keep;
            self.size *= keep;
            self.needs.iter_mut().for_each(|need| *need *= keep);
            self.summed.iter_mut().for_each(|need| *need *= keep);
        }
        let Some(mut own) = self.own.take() else { return };
        let mut is_cancelled = false;
        for ((need, summed), used) in self.needs.iter_mut().zip(&self.summed).zip(&own.used) {
            let sent = used * seconds;
            *need -= sent;
            is_cancelled |= *need < CANCELLED * summed.max(sent);
        }
        self.size -= own.rate * seconds;
        let completed = if own.is_equal {
            self.send_equally(&own, before, seconds)
        } else {
            self.send_in_proportion(&mut own, before, seconds)
        };
        self.spare = Some(own);
        Arc::make_mut(&mut self.table).complete(completed);
        if self.table.open() == 0 {
            self.finish();
        } else if is_cancelled || self.size <= 0.0 {
            self.sum_needs();
        }
    }

    /// Returns the values on which the ends of flows with equal rates depend, at the start of an interval.
    fn pace(&self, seconds: f64) -> Pace {
        let within = seconds * (1.0 + TOGETHER);
        Pace { common: self.common, scale: self.scale, step: seconds / self.scale, within }
    }

    /// Sends flows at individual rates that do not depend on their sizes, for `seconds` seconds. Returns the number of
    /// flows that end. `before` is the scale at the start of this period, and `self.scale` the scale at its end.
    fn send_equally(&mut self, own: &Own, before: f64, seconds: f64) -> usize {
        let pace = Pace { scale: before, ..self.pace(seconds) };
        let ingress = self.table.ingress();
        let links = self.table.links().cloned();
        let rate = |from, to| lowest(links.as_deref(), &own.levels, from, to);
        let planned = |_, from, to| rate(from, to) * seconds;
        if let Flows::Grid(grid) = Arc::make_mut(&mut self.table).flows_mut() {
            let Buffers { lines, values, before, ended, .. } = &mut self.buffers;
            set_lines(lines, &own.levels[ingress..]);
            values.set(own.levels[..ingress].iter().copied());
            ended.clear();
            grid.send_levels(lines, values, pace, (before, ended));
            return self.end(planned);
        }
        let Pace { common, step, within, .. } = pace;
        let is_over = |left: f64, level: f64| left * before <= (left * before * common + level) * within;
        let after = |left: f64, level: f64| if is_over(left, level) { 0.0 } else { left - level * step };
        self.send_list(&own.levels, after);
        self.end(planned)
    }

    /// Does the same as [`Self::send_equally`] for rates in proportion to the remaining bytes of flows. All flows with
    /// the same level end together.
    fn send_in_proportion(&mut self, own: &mut Own, before: f64, seconds: f64) -> usize {
        let (common, step, within) = (self.common, seconds / self.scale, seconds * (1.0 + TOGETHER));
        let part = |level: &f64| if 1.0 <= (common + level / before) * within { 1.0 } else { level * step };
        own.parts.clear();
        own.parts.extend(own.levels.iter().map(part));
        let Own { parts, levels, .. } = &*own;
        let ingress = self.table.ingress();
        let links = self.table.links().cloned();
        let level = |from, to| lowest(links.as_deref(), levels, from, to);
        let planned = |left: f64, from: usize, to: usize| left * level(from, to) * seconds;
        if let Flows::Grid(grid) = Arc::make_mut(&mut self.table).flows_mut() {
            let Buffers { lines, values, ended, .. } = &mut self.buffers;
            ended.clear();
            // A flow ends if the part is 1 at both of its ports.
            let ending = |range: std::ops::Range<usize>| range.filter(|port| parts[*port] == 1.0);
            for line in ending(ingress..parts.len()).map(|to| to - ingress) {
                let flows = ending(0..ingress).map(|from| Ended { from, line, left: grid.at(from, line) });
                ended.extend(flows.filter(|flow| flow.left > 0.0));
            }
            set_lines(lines, &parts[ingress..]);
            values.set(parts[..ingress].iter().copied());
            grid.send_parts(lines, values);
            return self.end(planned);
        }
        self.send_list(parts, |left, part| left - left * part);
        self.end(planned)
    }

    /// Sends the flows of a list at their individual rates, and lists those that end in the buffer `ended`. `values`
    /// holds one value for each port. `after` takes the remaining time of a flow and the lowest of the values of its
    /// ports and links, and returns the new remaining time.
    fn send_list(&mut self, values: &[f64], after: impl Fn(f64, f64) -> f64) {
        let Self { table, buffers: Buffers { ended, .. }, .. } = self;
        ended.clear();
        let table = Arc::make_mut(table);
        let (ingress, links) = (table.ingress(), table.links().cloned());
        let Flows::List(list) = table.flows_mut() else { return };
        for (from, value) in values.iter().enumerate().take(ingress).filter(|(_, it)| **it > 0.0) {
            let (to, left) = list.row_mut(from);
            for (to, left) in to.iter().zip(left) {
                let to = *to as usize;
                let value = match &links {
                    None => value.min(values[to]),
                    Some(links) => lowest(Some(links), values, from, to),
                };
                let before = std::mem::replace(left, after(*left, value));
                if *left <= 0.0 && before > 0.0 {
                    ended.push(Ended { from, line: to - ingress, left: before });
                }
            }
        }
    }

    /// Corrects the sums for the flows in the buffer `ended`. These flows ended within the interval, so they have
    /// sent less than they would have sent at their rates in the whole interval. `planned` takes the previous
    /// remaining time of such a flow and its ports, and returns the number of seconds by which the needs of the ports
    /// have already been reduced for this flow. Returns the number of these flows.
    fn end(&mut self, planned: impl Fn(f64, usize, usize) -> f64) -> usize {
        let Self { needs, summed, counts, size, table, scale, .. } = self;
        let (ingress, links) = (table.ingress(), table.links());
        for Ended { from, line, left } in &self.buffers.ended {
            let to = ingress + line;
            let more = planned(*left, *from, to) - left * *scale;
            *size += more;
            let of_flow = links.into_iter().flat_map(|links| links.between(*from, to));
            for port in [*from, to].into_iter().chain(of_flow) {
                needs[port] += more;
                counts[port] -= 1;
                if counts[port] == 0 {
                    (needs[port], summed[port]) = (0.0, 0.0);
                }
            }
        }
        self.buffers.ended.len()
    }

    /// Recomputes all needs as sums over flows, to remove the rounding errors of repeated subtraction.
    fn sum_needs(&mut self) {
        self.needs.fill(0.0);
        self.size = 0.0;
        let Self { needs, size, table, scale, .. } = self;
        if let Flows::Grid(grid) = table.flows() {
            let Buffers { lines, values, of_lines, of_ports, .. } = &mut self.buffers;
            let ingress = table.ingress();
            lines.clear();
            lines.extend(
                (0..table.egress()).filter(|line| self.counts[ingress + line] > 0).map(|line| (line, 0.0)),
            );
            values.set(std::iter::repeat_n(1.0, ingress));
            of_ports.set(std::iter::repeat_n(0.0, ingress));
            grid.weigh::<Remaining>(lines, values, (of_lines, of_ports));
            lines.iter().zip(&*of_lines).for_each(|((line, _), sum)| needs[ingress + line] = sum * *scale);
            needs[..ingress].iter_mut().zip(of_ports.all()).for_each(|(need, sum)| *need = sum * *scale);
            *size = needs[..ingress].iter().sum();
            self.summed.copy_from_slice(&self.needs);
            return;
        }
        table.for_each(|from, to, left| {
            let left = left * *scale;
            needs[from] += left;
            needs[to] += left;
            *size += left;
            let links = table.links().into_iter().flat_map(|links| links.between(from, to));
            links.for_each(|link| needs[link] += left);
        });
        self.summed.copy_from_slice(&self.needs);
    }

    fn finish(&mut self) {
        self.size = 0.0;
        self.needs.fill(0.0);
        self.stop();
    }
}

/// Sets `lines` to the egress ports with a value above 0, and to their values.
fn set_lines(lines: &mut Vec<Line>, values: &[f64]) {
    lines.clear();
    lines.extend(values.iter().copied().enumerate().filter(|(_, value)| *value > 0.0));
}

/// Does the same as [`Sending::ends`] for the flows that have individual rates, if these do not depend on their sizes.
fn ends_of_flows(
    table: &Table,
    own: &Own,
    Buffers { lines, values, .. }: &mut Buffers,
    (pace, horizon): (Pace, f64),
    ends: &mut Vec<(f64, f64)>,
) -> f64 {
    let ingress = table.ingress();
    let list = match table.flows() {
        Flows::Grid(grid) => {
            set_lines(lines, &own.levels[ingress..]);
            values.set(own.levels[..ingress].iter().copied());
            return grid.ends(lines, values, (pace, horizon), ends);
        }
        Flows::List(list) => list,
    };
    let links = table.links().map(|links| &**links);
    let mut last: f64 = 0.0;
    for from in (0..ingress).filter(|from| own.levels[*from] > 0.0) {
        let (to, left) = list.row(from);
        for (to, left) in to.iter().zip(left) {
            let rate = lowest(links, &own.levels, from, *to as usize);
            if *left == 0.0 || rate == 0.0 {
                continue;
            }
            let left = left * pace.scale;
            let rate = left * pace.common + rate;
            let end = left / rate;
            if end < horizon {
                ends.push((end, rate));
            }
            last = last.max(end);
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::super::fill::{Local, Same, Weight};
    use super::*;
    use proptest::prelude::*;

    /// Returns a coflow with flows from port 0 to ports 0 and 1, of 2 and 6 s.
    fn sending() -> Sending {
        let flow = |to, size| Flow { from: 0, to, size };
        let coflow = Coflow::new(2, vec![flow(0, 20.0), flow(1, 60.0)]).unwrap();
        Sending::new(&coflow, &Fabric::new(2, 10.0))
    }

    fn needs(sending: &Sending) -> Vec<(usize, f64)> {
        sending.needs().collect()
    }

    /// Gives the flows to ports 0 and 1 individual rates that use all of the free rates (`rates`) of these ports.
    fn send_own(sending: &mut Sending, rates: [f64; 2]) {
        let before = [1.0, rates[0], rates[1]];
        let mut after = before;
        let mut filling = Filling::default();
        let member = std::iter::once(sending.member(Local));
        filling.fill::<Remaining, _>(&member, (&mut after, 1e-9), 1);
        sending.set_own(&filling, (&before, &after), false);
    }

    #[test]
    fn the_common_rate_reduces_all_needs_by_one_factor() {
        let mut sending = sending();
        assert_eq!(needs(&sending), [(0, 8.0), (2, 2.0), (3, 6.0)]);
        sending.send(1.0 / 8.0);
        assert_eq!(sending.ends(100.0, &mut Vec::new()), 8.0);
        sending.advance(4.0);
        assert_eq!((needs(&sending), sending.size()), (vec![(0, 4.0), (2, 1.0), (3, 3.0)], 4.0));
        sending.stop();
        sending.send(1.0 / 4.0);
        sending.advance(4.0);
        assert!(sending.is_sent() && sending.length() == 0.0);
    }

    #[test]
    fn own_rates_end_flows_one_by_one() {
        let mut sending = sending();
        send_own(&mut sending, [0.5, 0.25]);
        let mut ends = Vec::new();
        // The flows end after 4 s and 24 s.
        assert_eq!(sending.ends(100.0, &mut ends), 24.0);
        assert_eq!(ends, [(4.0, 0.5), (24.0, 0.25)]);
        let mut shares = [0.0; 4];
        sending.add_shares(&mut shares);
        assert_eq!(shares, [0.75, 0.0, 0.5, 0.25]);
        sending.advance(4.0);
        assert_eq!((needs(&sending), sending.is_sent()), (vec![(0, 5.0), (2, 0.0), (3, 5.0)], false));
        send_own(&mut sending, [0.0, 1.0]);
        sending.advance(5.0);
        assert!(sending.is_sent());
    }

    #[test]
    fn both_rates_add_up() {
        let mut sending = sending();
        sending.send(1.0 / 16.0);
        send_own(&mut sending, [0.375, 0.125]);
        // The first flow has a rate of 2/16 + 0.375 and ends after 4 s; the second one has a rate of 6/16 + 0.125.
        assert_eq!(sending.rate(), 1.0);
        assert_eq!(sending.ends(100.0, &mut Vec::new()), 12.0);
        let copy = sending.clone();
        sending.advance(4.0);
        assert_eq!((needs(&sending), sending.size()), (vec![(0, 4.0), (2, 0.0), (3, 4.0)], 4.0));
        assert_eq!(needs(&copy), [(0, 8.0), (2, 2.0), (3, 6.0)]);
    }

    fn near(got: f64, want: f64) -> bool {
        (got - want).abs() <= 1e-9 * want.abs().max(1.0)
    }

    /// Gives flows individual rates that use the free rates `free` of the coflow's ports, of which those below 0.1
    /// count as busy. Returns the free rates that remain.
    fn backfill<W: Weight>(sending: &mut Sending, free: &[f64], is_alone: bool) -> Vec<f64> {
        let mut after = free.to_vec();
        let mut filling = Filling::default();
        if is_alone {
            filling.fill_one::<W>(sending.member(Local), (&mut after, 0.1));
            sending.set_own(&filling, (free, &after), W::IS_EQUAL);
        } else {
            // Ports have the same numbers in the filling as in the coflow.
            let members = std::iter::once(sending.member(Local));
            filling.fill::<W, _>(&members, (&mut after, 0.1), sending.table.ingress());
            let used = sending.ports.clone();
            sending.ports = (0..used.len() as u32).collect();
            sending.set_own_of_all(&filling);
            sending.ports = used;
        }
        after
    }

    /// Sends the same flows as a matrix and as a list, and checks that both have the same rates and bytes left.
    fn check<W: Weight>(flows: &[Flow], free: &[f64], steps: &[f64], is_alone: bool) {
        let coflow = Coflow::new(20, flows.to_vec()).unwrap();
        let mut grid = Sending::new(&coflow, &Fabric::new(20, 1.0));
        let mut list = Sending { table: Arc::new(grid.table.to_list()), ..grid.clone() };
        assert!(matches!(grid.table.flows(), Flows::Grid(_)));
        for step in steps {
            if grid.is_sent() || list.is_sent() {
                break;
            }
            let free: Vec<f64> = grid.ports.iter().map(|port| free[*port as usize]).collect();
            let lengths = [&mut grid, &mut list].map(|sending| {
                sending.stop();
                if is_alone {
                    sending.send(0.3 / sending.length());
                }
                let after = backfill::<W>(sending, &free, is_alone);
                let mut ends = Vec::new();
                let last = sending.ends(sending.length() * step, &mut ends);
                ends.sort_by(|a, b| a.0.total_cmp(&b.0));
                (last, after, ends.first().copied())
            });
            let [(last, after, first), (want_last, want_after, want_first)] = lengths;
            assert!(
                after.iter().zip(&want_after).all(|(got, want)| near(*got, *want)),
                "{after:?}, {want_after:?}"
            );
            assert!(last == want_last || near(last, want_last), "{last}, expected {want_last}");
            let first = first.map(|(end, _)| end).into_iter().zip(want_first.map(|(end, _)| end));
            first.for_each(|(got, want)| assert!(near(got, want), "{got}, expected {want}"));
            for (got, want) in grid.flow_rates().into_iter().zip(list.flow_rates()) {
                assert!(near(got, want), "{got}, expected {want}");
            }
            let seconds = grid.length() * step;
            [&mut grid, &mut list].into_iter().for_each(|sending| sending.advance(seconds));
            let (got, want) = (grid.flows_left(), list.flows_left());
            let mut rest = want.iter().filter(|(_, _, left)| *left > 1e-6);
            for (from, to, left) in got.iter().filter(|(_, _, left)| *left > 1e-6) {
                let (other_from, other_to, other) = rest.next().unwrap();
                assert_eq!((from, to), (other_from, other_to));
                assert!(near(*left, *other), "{left}, expected {other}");
            }
            assert!((grid.size() - list.size()).abs() < 1e-6, "{}, expected {}", grid.size(), list.size());
            for ((_, got), (_, want)) in grid.needs().zip(list.needs()) {
                assert!((got - want).abs() < 1e-6, "{got}, expected {want}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_matrix_and_a_list_of_the_same_flows_are_sent_alike(
            (ingress, egress) in (6..20_usize, 2..12_usize),
            sizes in prop::collection::vec(0.5..20.0_f64, 20 * 12),
            is_missing in prop::collection::vec(prop::bool::weighted(0.1), 20 * 12),
            free in prop::collection::vec(0.0..1.0_f64, 40),
            steps in prop::collection::vec(0.05..0.6_f64, 1..6),
        ) {
            let pairs = (0..ingress).flat_map(|from| (0..egress).map(move |to| (from, to)));
            let all = pairs.zip(sizes.iter().zip(&is_missing)).filter(|(_, (_, is_missing))| !**is_missing);
            let flows: Vec<_> = all.map(|((from, to), (size, _))| Flow { from, to, size: *size }).collect();
            prop_assume!(flows.len() >= 32 && flows.len() * 2 >= ingress.next_multiple_of(8) * egress);
            check::<Remaining>(&flows, &free, &steps, true);
            check::<Same>(&flows, &free, &steps, true);
            check::<Same>(&flows, &free, &steps, false);
        }
    }
}
