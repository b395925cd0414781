//! Flows of a coflow that is being sent.

use std::sync::Arc;

use super::LEFT_MIN;
use super::fill::Filling;
use crate::workload::Coflow;

/// Flow that is not complete. Ports are indices of the coflow's ports.
#[derive(Clone, Copy, Debug)]
struct Open {
    from: u32,
    to: u32,
    /// Remaining seconds at the full rate of a port, divided by [`Sending::scale`].
    left: f64,
}

/// Flows from one ingress port, as a range of [`Table::flows`].
#[derive(Clone, Copy, Debug)]
struct Row {
    from: u32,
    begin: u32,
    end: u32,
}

/// Flows that are not complete.
#[derive(Clone, Debug)]
struct Table {
    flows: Vec<Open>,
    rows: Vec<Row>,
}

impl Table {
    /// Removes a flow. The last flow of its row takes its number.
    fn remove(&mut self, number: u32) {
        let row = &mut self.rows[self.flows[number as usize].from as usize];
        row.end -= 1;
        self.flows.swap(number as usize, row.end as usize);
    }
}

/// Coflow that is being sent. Each flow has a common rate, which is in proportion to its remaining bytes, and some
/// flows have a rate of their own in addition.
///
/// The common rate reduces the remaining bytes of all flows by the same factor. This factor is stored once, so an event
/// costs time only for the ports of the coflow and for the flows with a rate of their own, not for all flows.
#[derive(Clone, Debug)]
pub(crate) struct Sending {
    /// Ports where the coflow has flows. The numbers of egress ports follow those of ingress ports.
    ports: Vec<u32>,
    /// Remaining seconds at full rate at each port of `ports`.
    needs: Vec<f64>,
    /// Needs when they were last computed as a sum over flows, reduced by the common rate since.
    summed: Vec<f64>,
    /// Number of flows at each port of `ports` that are not complete.
    counts: Vec<u32>,
    /// Remaining seconds of all flows together at the full rate of one port.
    size: f64,
    /// Flows, which copies of this value share until a flow has a rate of its own.
    table: Arc<Table>,
    /// Number of flows that are not complete.
    open: usize,
    scale: f64,
    /// Fraction of the remaining bytes of each flow that the common rate sends per second.
    common: f64,
    /// Flows with a rate of their own, in ascending order, and that rate as a share of a port.
    own: Vec<(u32, f64)>,
}

/// Ratio of a need to an earlier sum below which rounding errors of the differences would matter.
const CANCELLED: f64 = 1e-7;
/// Relative tolerance of the time at which a flow ends; flows that differ by less end in one event.
const TOGETHER: f64 = 1e-9;

impl Sending {
    /// Creates the state of a coflow of which nothing has been sent. `capacity` is in bytes per second.
    pub(crate) fn new(coflow: &Coflow, capacity: f64) -> Self {
        let ingress = coflow.ports();
        let loads = coflow.loads();
        let mut local = vec![0_u32; 2 * ingress];
        loads.iter().enumerate().for_each(|(at, (port, _))| local[*port] = at as u32);
        let mut counts = vec![0; loads.len()];
        for flow in coflow.flows() {
            counts[local[flow.from] as usize] += 1;
            counts[local[ingress + flow.to] as usize] += 1;
        }
        let mut rows = Vec::new();
        let mut begin = 0;
        for (at, (port, _)) in loads.iter().enumerate().take_while(|(_, (port, _))| *port < ingress) {
            rows.push(Row { from: local[*port], begin, end: begin });
            begin += counts[at];
        }
        let mut flows = vec![Open { from: 0, to: 0, left: 0.0 }; coflow.flows().len()];
        for flow in coflow.flows() {
            let (from, to) = (local[flow.from], local[ingress + flow.to]);
            // Ingress ports are first among the ports of a coflow, so a row has the index of its port.
            let row = &mut rows[from as usize];
            flows[row.end as usize] = Open { from, to, left: flow.size / capacity };
            row.end += 1;
        }
        let needs: Vec<f64> = loads.iter().map(|(_, bytes)| bytes / capacity).collect();
        Self {
            ports: loads.iter().map(|(port, _)| *port as u32).collect(),
            summed: needs.clone(),
            needs,
            counts,
            size: coflow.size() / capacity,
            open: flows.len(),
            table: Arc::new(Table { flows, rows }),
            scale: 1.0,
            common: 0.0,
            own: Vec::new(),
        }
    }

    /// Returns the remaining seconds at full rate at each port where the coflow has flows.
    pub(crate) fn needs(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        self.ports.iter().map(|port| *port as usize).zip(self.needs.iter().copied())
    }

    /// Returns the remaining seconds at the busiest port.
    pub(crate) fn length(&self) -> f64 {
        self.needs.iter().copied().fold(0.0, f64::max)
    }

    /// Returns the remaining seconds of all flows together at the full rate of one port.
    pub(crate) fn size(&self) -> f64 {
        self.size
    }

    /// Returns whether all flows are complete.
    pub(crate) fn is_sent(&self) -> bool {
        self.open == 0
    }

    /// Removes all rates.
    pub(super) fn stop(&mut self) {
        self.common = 0.0;
        self.own.clear();
    }

    /// Sets the common rate, as the fraction of the remaining bytes of each flow per second.
    pub(super) fn send(&mut self, common: f64) {
        self.common = common;
    }

    /// Gives each flow a rate of its own in addition to the common rate, if both of its ports have at least `least`
    /// free: the flow gets 0 for the moment, and is added to `filling`. `free` returns the free part of a port by its
    /// index in [`Self::ports`], and `port` the number of that port for `filling`. The weight of a flow is its
    /// remaining time, or 1 if `is_equal`.
    pub(super) fn add_to(
        &mut self,
        filling: &mut Filling,
        (free, least): (impl Fn(u32) -> f64, f64),
        port: impl Fn(&[u32], u32) -> u32,
        is_equal: bool,
    ) {
        let Table { flows, rows } = &*self.table;
        for row in rows.iter().filter(|row| row.begin < row.end && free(row.from) >= least) {
            let flows = flows[row.begin as usize..row.end as usize].iter();
            for (flow, Open { from, to, left }) in (row.begin..).zip(flows) {
                if free(*to) >= least {
                    let weight = if is_equal { 1.0 } else { *left };
                    filling.add(port(&self.ports, *from), port(&self.ports, *to), weight);
                    self.own.push((flow, 0.0));
                }
            }
        }
    }

    /// Sets the own rates of the flows that [`Self::add_to`] added, in the same order, as shares of a port.
    pub(super) fn set_own<'a>(&mut self, rates: &mut impl Iterator<Item = &'a f64>) {
        self.own.iter_mut().zip(rates).for_each(|(own, rate)| own.1 = *rate);
    }

    /// Returns the ports where the coflow has flows, in ascending order.
    pub(super) fn ports(&self) -> &[u32] {
        &self.ports
    }

    /// Returns the rate of all flows together, as a multiple of the capacity of a port.
    pub(super) fn rate(&self) -> f64 {
        self.size * self.common + self.own.iter().map(|(_, rate)| rate).sum::<f64>()
    }

    /// Adds the rate at each port to `shares` (`[ports]`), as a share of the port.
    pub(super) fn add_shares(&self, shares: &mut [f64]) {
        for (port, need) in self.needs() {
            shares[port] += need * self.common;
        }
        for (flow, rate) in &self.own {
            let Open { from, to, .. } = self.table.flows[*flow as usize];
            shares[self.ports[from as usize] as usize] += rate;
            shares[self.ports[to as usize] as usize] += rate;
        }
    }

    /// Returns the number of seconds until all flows are complete at their present rates. Appends, for each flow that
    /// ends before `horizon` seconds because of a rate of its own, the seconds until its end and its rate.
    pub(super) fn ends(&self, horizon: f64, ends: &mut Vec<(f64, f64)>) -> f64 {
        let rest = if self.own.len() == self.open {
            0.0
        } else if self.common > 0.0 {
            1.0 / self.common
        } else {
            f64::INFINITY
        };
        let mut last = rest;
        for (flow, rate) in &self.own {
            let left = self.table.flows[*flow as usize].left * self.scale;
            let rate = left * self.common + rate;
            let end = left / rate;
            if end < horizon {
                ends.push((end, rate));
            }
            last = last.max(end);
        }
        last
    }

    /// Sends for a number of seconds.
    pub(crate) fn advance(&mut self, seconds: f64) {
        let keep = 1.0 - self.common * seconds;
        if self.common > 0.0 && keep < LEFT_MIN {
            return self.finish();
        }
        let scale = self.scale;
        if self.common > 0.0 {
            self.scale *= keep;
            self.size *= keep;
            self.needs.iter_mut().for_each(|need| *need *= keep);
            self.summed.iter_mut().for_each(|need| *need *= keep);
        }
        if self.own.is_empty() {
            return;
        }
        let own = std::mem::take(&mut self.own);
        let table = Arc::make_mut(&mut self.table);
        let mut is_cancelled = false;
        // Single flows may send too little to change the size of a large coflow.
        let mut sent = 0.0;
        // In descending order, a flow that takes the number of a removed one has been advanced already.
        for (number, rate) in own.iter().rev() {
            let Open { from, to, left } = table.flows[*number as usize];
            let before = left * scale;
            let is_over = before <= (before * self.common + rate) * seconds * (1.0 + TOGETHER);
            let more = if is_over { before * keep } else { rate * seconds };
            sent += more;
            for port in [from as usize, to as usize] {
                self.needs[port] -= more;
                is_cancelled |= self.needs[port] < CANCELLED * self.summed[port];
            }
            if is_over {
                table.remove(*number);
                self.open -= 1;
                for port in [from as usize, to as usize] {
                    self.counts[port] -= 1;
                    if self.counts[port] == 0 {
                        (self.needs[port], self.summed[port]) = (0.0, 0.0);
                    }
                }
            } else {
                table.flows[*number as usize].left -= more / self.scale;
            }
        }
        self.size = (self.size - sent).max(0.0);
        self.own = own;
        self.own.clear();
        if self.open == 0 {
            self.finish();
        } else if is_cancelled {
            self.sum_needs();
        }
    }

    /// Computes all needs as sums over flows, without the rounding errors of repeated subtraction.
    fn sum_needs(&mut self) {
        self.needs.fill(0.0);
        self.size = 0.0;
        for row in &self.table.rows {
            for Open { from, to, left } in &self.table.flows[row.begin as usize..row.end as usize] {
                let left = left * self.scale;
                self.needs[*from as usize] += left;
                self.needs[*to as usize] += left;
                self.size += left;
            }
        }
        self.summed.copy_from_slice(&self.needs);
    }

    fn finish(&mut self) {
        self.open = 0;
        self.size = 0.0;
        self.needs.fill(0.0);
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Flow;

    /// Returns a coflow with flows from port 0 to ports 0 and 1, of 2 and 6 s.
    fn sending() -> Sending {
        let flow = |to, size| Flow { from: 0, to, size };
        Sending::new(&Coflow::new(2, vec![flow(0, 20.0), flow(1, 60.0)]).unwrap(), 10.0)
    }

    fn needs(sending: &Sending) -> Vec<(usize, f64)> {
        sending.needs().collect()
    }

    /// Gives all flows rates of their own, in the order of ports.
    fn send_own(sending: &mut Sending, rates: &[f64]) {
        let mut filling = Filling::default();
        sending.add_to(&mut filling, (|_| 1.0, 0.0), |_, port| port, true);
        sending.set_own(&mut rates.iter());
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
        send_own(&mut sending, &[0.5, 0.25]);
        let mut ends = Vec::new();
        // The flows end after 4 s and 24 s.
        assert_eq!(sending.ends(100.0, &mut ends), 24.0);
        assert_eq!(ends, [(4.0, 0.5), (24.0, 0.25)]);
        let mut shares = [0.0; 4];
        sending.add_shares(&mut shares);
        assert_eq!(shares, [0.75, 0.0, 0.5, 0.25]);
        sending.advance(4.0);
        assert_eq!((needs(&sending), sending.is_sent()), (vec![(0, 5.0), (2, 0.0), (3, 5.0)], false));
        send_own(&mut sending, &[1.0]);
        sending.advance(5.0);
        assert!(sending.is_sent());
    }

    #[test]
    fn both_rates_add_up() {
        let mut sending = sending();
        sending.send(1.0 / 16.0);
        send_own(&mut sending, &[0.375, 0.125]);
        // The first flow has 2/16 + 0.375 and ends after 4 s; the second has 6/16 + 0.125.
        assert_eq!(sending.rate(), 1.0);
        assert_eq!(sending.ends(100.0, &mut Vec::new()), 12.0);
        let copy = sending.clone();
        sending.advance(4.0);
        assert_eq!((needs(&sending), sending.size()), (vec![(0, 4.0), (2, 0.0), (3, 4.0)], 4.0));
        assert_eq!(needs(&copy), [(0, 8.0), (2, 2.0), (3, 6.0)]);
    }
}
