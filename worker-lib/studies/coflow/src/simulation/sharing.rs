//! Rates of all coflows that are being sent.

use super::fill::{Filling, Local, Remaining, Same, Weight};
use super::sending::Sending;
use super::{Fabric, Rates, SHARE_MIN};
use crate::policy::Sharing;

/// Maximum fraction of the total rate that may remain unused because flows have ended, before rates are recomputed.
/// Without this tolerance, a coflow of thousands of flows would cause thousands of events.
pub(super) const UNUSED_MAX: f64 = 0.01;

/// Allocation of rates, and its buffers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Allocation {
    /// Free rate of each resource, as a multiple of the fabric's capacity.
    free: Vec<f64>,
    /// Free rate of each port of one coflow, before and after the flows of the coflow get individual rates.
    before: Vec<f64>,
    after: Vec<f64>,
    filling: Filling,
    /// For each flow that ends before its coflow does, the number of seconds until its end, and its rate.
    ends: Vec<(f64, f64)>,
    /// Total rate, as a multiple of the fabric's capacity.
    total: f64,
}

impl Allocation {
    /// Sets the rates of coflows. `order` lists the indices of the coflows, highest priority first.
    pub(crate) fn share(
        &mut self,
        sendings: &mut [Option<Box<Sending>>],
        order: &[usize],
        fabric: &Fabric,
        sharing: Sharing,
    ) {
        for number in order {
            of(sendings, *number).stop();
        }
        fabric.fill_free(&mut self.free);
        match (fabric.rates, sharing) {
            (Rates::Blocking, Sharing::Equal) => self.send_equally(sendings, order, fabric),
            (Rates::Blocking, _) => self.send_whole(sendings, order),
            (Rates::Backfill, Sharing::Madd) => {
                self.send_whole(sendings, order);
                self.backfill::<Remaining>(sendings, order);
            }
            (Rates::Backfill, Sharing::Greedy) => self.backfill::<Remaining>(sendings, order),
            (Rates::Backfill, Sharing::GreedyPerFlow) => self.backfill::<Same>(sendings, order),
            (Rates::Backfill, Sharing::Equal) => self.fill_all(sendings, order, fabric.ports),
        }
        self.total = order.iter().map(|number| of(sendings, *number).rate()).sum();
    }

    /// Gives each coflow in turn the highest common rate that is possible with the capacity that the preceding coflows
    /// leave (MADD).
    fn send_whole(&mut self, sendings: &mut [Option<Box<Sending>>], order: &[usize]) {
        for number in order {
            let sending = of(sendings, *number);
            let needed = sending.needs().filter(|(_, need)| *need > 0.0);
            let seconds = needed.map(|(port, need)| need / self.free[port]).fold(0.0, f64::max);
            if sending.length() / seconds < SHARE_MIN {
                continue;
            }
            sending.send(1.0 / seconds);
            for (port, need) in sending.needs() {
                self.free[port] = (self.free[port] - need / seconds).max(0.0);
            }
        }
    }

    /// Gives each coflow the highest common rate at which it uses no more than an equal share of each of its ports.
    fn send_equally(&mut self, sendings: &mut [Option<Box<Sending>>], order: &[usize], fabric: &Fabric) {
        self.free.fill(0.0);
        for number in order {
            let ports = of(sendings, *number).needs().filter(|(_, need)| *need > 0.0);
            ports.for_each(|(port, _)| self.free[port] += 1.0);
        }
        for number in order {
            let sending = of(sendings, *number);
            let at = |(port, need): (usize, f64)| need * self.free[port] / fabric.relative(port);
            let seconds = sending.needs().map(at).fold(0.0, f64::max);
            sending.send(1.0 / seconds);
        }
    }

    /// Gives the flows of each coflow in turn all the capacity that is still free at both of their ports.
    fn backfill<W: Weight>(&mut self, sendings: &mut [Option<Box<Sending>>], order: &[usize]) {
        for number in order {
            let sending = of(sendings, *number);
            let ports = sending.ports();
            if !sending.has_free(&self.free, SHARE_MIN) {
                continue;
            }
            self.before.clear();
            self.before.extend(ports.iter().map(|port| self.free[*port as usize]));
            self.after.clone_from(&self.before);
            if self.filling.fill_one::<W>(sending.member(Local), (&mut self.after, SHARE_MIN)) {
                for (port, free) in ports.iter().zip(&self.after) {
                    self.free[*port as usize] = *free;
                }
                sending.set_own(&self.filling, (&self.before, &self.after), W::IS_EQUAL);
            }
        }
    }

    /// Gives all flows their max-min fair rates, regardless of the coflows to which they belong.
    fn fill_all(&mut self, sendings: &mut [Option<Box<Sending>>], order: &[usize], ingress: usize) {
        let members = order.iter().filter_map(|number| sendings[*number].as_ref());
        let members = members.map(|it| it.member(it.ports()));
        self.filling.fill::<Same, _>(&members, (&mut self.free, 0.0), ingress);
        order.iter().for_each(|number| of(sendings, *number).set_own_of_all(&self.filling));
    }

    /// Returns the number of seconds, at most `horizon`, until a coflow is fully sent or until flows that account for
    /// more than [`UNUSED_MAX`] of the total rate have ended.
    pub(crate) fn next_end(
        &mut self,
        sendings: &mut [Option<Box<Sending>>],
        order: &[usize],
        horizon: f64,
    ) -> f64 {
        self.ends.clear();
        let mut next = horizon;
        for number in order {
            let sending = of(sendings, *number);
            next = next.min(sending.ends(next, &mut self.ends));
        }
        next.min(exceeds(&mut self.ends, UNUSED_MAX * self.total))
    }
}

fn of(sendings: &mut [Option<Box<Sending>>], number: usize) -> &mut Sending {
    sendings[number].as_mut().expect("a coflow in the order is being sent")
}

/// Returns the earliest time in `ends` by which the flows that have ended account for a total rate of more than
/// `limit`.
fn exceeds(mut ends: &mut [(f64, f64)], mut limit: f64) -> f64 {
    let mut last = f64::INFINITY;
    while !ends.is_empty() {
        let middle = ends.len() / 2;
        ends.select_nth_unstable_by(middle, |a, b| a.0.total_cmp(&b.0));
        let (before, after) = ends.split_at_mut(middle + 1);
        let ended: f64 = before.iter().map(|(_, rate)| rate).sum();
        if ended > limit {
            last = before[middle].0;
            ends = &mut before[..middle];
        } else {
            limit -= ended;
            ends = after;
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_that_exceeds_the_limit_is_found() {
        let ends = [(5.0, 1.0), (1.0, 2.0), (3.0, 4.0), (2.0, 0.5)];
        for (limit, want) in
            [(0.0, 1.0), (2.0, 2.0), (2.4, 2.0), (2.5, 3.0), (7.0, 5.0), (7.5, f64::INFINITY)]
        {
            assert_eq!(exceeds(&mut ends.clone(), limit), want, "{limit}");
        }
    }
}
