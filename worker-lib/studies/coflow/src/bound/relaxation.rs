//! Linear relaxation of the scheduling problem, which gives a lower bound on the total completion time.
//!
//! Each item is a job. The relaxation has a variable for the completion time of each item as a whole, and one for the
//! completion time of the item at each port that it uses. An item completes no earlier than at each of its ports, and
//! no earlier than its release time plus its isolated time. The completion times at a port satisfy the inequalities of
//! a single machine with release times (Goemans, "A Supermodular Relaxation for Scheduling with Release Dates", 1996),
//! which every schedule satisfies.
//!
//! The relaxation is solved through its Lagrangian dual. The weight of each item, which is 1, is divided among its
//! ports and its isolated time. For any such division, the sum over ports of the weighted completion times on single
//! machines is a lower bound. The relaxation for a single machine is solved exactly by always serving the available
//! item with the highest ratio of weight to processing time. Mirror ascent shifts weight to the ports at which an item
//! completes late. The bound is that of the best division found; the optimum of the relaxation may be slightly higher.

use std::collections::BinaryHeap;

use super::Seconds;

/// Number of steps of the mirror ascent.
const STEPS: u32 = 40;
/// Size of the first step, as the change in the natural logarithm of a weight per unit of the relative difference
/// between completion times.
const STEP: f64 = 4.0;

/// Item to be scheduled: a job with the time that it needs on each port.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// Time from which the item may be served, in seconds.
    pub(super) release: f64,
    /// Minimum time from the release to the completion, in seconds.
    pub(super) isolated: f64,
    /// Ports that the item uses, and the number of seconds that it needs at each of them.
    pub(super) needs: Vec<(usize, f64)>,
}

/// Returns a lower bound on the sum of the times from release to completion of all items, in seconds. Items must be
/// sorted by release.
pub(super) fn total_time(items: &[Item], ports: usize) -> f64 {
    let mut machines = vec![Vec::new(); ports];
    for (item, Item { needs, .. }) in items.iter().enumerate() {
        needs.iter().enumerate().for_each(|(at, (port, need))| machines[*port].push((item, at, *need)));
    }
    // The last element of each list stands for the isolated time.
    let equal = |item: &Item| vec![1.0 / (item.needs.len() + 1) as f64; item.needs.len() + 1];
    let mut weights: Vec<Vec<f64>> = items.iter().map(equal).collect();
    let mut times: Vec<Vec<f64>> = weights.clone();
    let mut best = 0.0_f64;
    for step in 0..STEPS {
        for (item, times) in items.iter().zip(&mut times) {
            times.fill(item.release + item.isolated);
        }
        machines.iter().for_each(|machine| serve(machine, items, &weights, &mut times));
        let all = weights.iter().zip(&times).zip(items);
        let of = |weights: &[f64], times: &[f64], release: f64| -> f64 {
            weights.iter().zip(times).map(|(weight, time)| weight * (time - release)).sum()
        };
        best = best.max(all.map(|((weights, times), item)| of(weights, times, item.release)).sum());
        let size = STEP / f64::from(step + 1).sqrt();
        for ((weights, times), item) in weights.iter_mut().zip(&times).zip(items) {
            ascend(weights, times, item.release, size);
        }
    }
    best
}

/// Multiplies each weight by a factor that grows with the corresponding completion time in `times`, and normalises the
/// sum of the weights to 1.
fn ascend(weights: &mut [f64], times: &[f64], release: f64, size: f64) {
    let last = times.iter().copied().fold(0.0, f64::max);
    let span = last - release;
    for (weight, time) in weights.iter_mut().zip(times) {
        *weight *= (size * (time - last) / span).exp();
    }
    let sum: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= sum);
}

/// Solves the relaxation for one machine. The completion time of an item on the machine is the mean time at which the
/// item is served plus half of the time that it needs. Each entry of `machine` consists of the index of an item, the
/// index of this machine among that item's ports, and the time that the item needs.
fn serve(machine: &[(usize, usize, f64)], items: &[Item], weights: &[Vec<f64>], times: &mut [Vec<f64>]) {
    // Ratio of weight to need, and index in `machine`, of each available item.
    let mut waiting: BinaryHeap<(Seconds, usize)> = BinaryHeap::new();
    let mut left: Vec<f64> = machine.iter().map(|(_, _, need)| *need).collect();
    let mut moments = vec![0.0; machine.len()];
    let (mut next, mut time) = (0, 0.0_f64);
    loop {
        while let Some((item, at, need)) =
            machine.get(next).filter(|(item, _, _)| items[*item].release <= time)
        {
            waiting.push((Seconds(weights[*item][*at] / need), next));
            next += 1;
        }
        let until = machine.get(next).map_or(f64::INFINITY, |(item, _, _)| items[*item].release);
        let Some((ratio, served)) = waiting.pop() else {
            if until.is_infinite() {
                break;
            }
            time = until;
            continue;
        };
        let end = until.min(time + left[served]);
        moments[served] += (end - time) * (end + time) / 2.0;
        left[served] -= end - time;
        if end < until || left[served] <= 0.0 {
            left[served] = 0.0;
        } else {
            waiting.push((ratio, served));
        }
        time = end;
    }
    for ((item, at, need), moment) in machine.iter().zip(moments) {
        times[*item][*at] = moment / need + need / 2.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(release: f64, needs: &[(usize, f64)]) -> Item {
        let isolated = needs.iter().map(|(_, need)| *need).fold(0.0, f64::max);
        Item { release, isolated, needs: needs.to_vec() }
    }

    #[test]
    fn one_port_gives_the_shortest_first_order() {
        // The order 1, 2, 4 ends at 1, 3 and 7.
        let items = [4.0, 1.0, 2.0].map(|need| item(0.0, &[(0, need)]));
        let bound = total_time(&items, 1);
        assert!(bound <= 11.0 + 1e-9 && bound > 10.8, "{bound}");
    }

    #[test]
    fn items_at_different_ports_do_not_delay_each_other() {
        let items = [item(0.0, &[(0, 2.0), (2, 2.0)]), item(1.0, &[(1, 3.0), (3, 3.0)])];
        let bound = total_time(&items, 4);
        assert!((bound - 5.0).abs() < 1e-9, "{bound}");
    }

    #[test]
    fn the_bound_combines_ports() {
        // Pairs of items share ports 0 and 1. One port alone gives 1 + 2 for its own pair, and the isolated times give
        // 1 + 1 for the other pair: 5 in total. Both ports together give 6.
        let items = [0, 0, 1, 1].map(|port| item(0.0, &[(port, 1.0)]));
        let bound = total_time(&items, 2);
        assert!(bound <= 6.0 + 1e-9 && bound > 5.9, "{bound}");
    }
}
