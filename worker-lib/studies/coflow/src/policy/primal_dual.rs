//! Ordering by bottleneck-select-scale-iterate (BSSI; Sincronia, Agarwal et al., 2018), a primal-dual 4-approximation
//! for the total weighted completion time. The coflow with the highest ratio of load at the busiest port to weight is
//! placed last. The weights of the other coflows are then reduced in proportion to their load at that port, and the
//! procedure is repeated for them.

use super::by_key::sort;
use super::{Policy, Sharing};
use crate::simulation::State;

/// Returns the indices of `items` in the order in which they are to be sent. Each item is a list of the ports at which
/// it has a load, in ascending order, with the load at each of them.
pub fn bssi_order(items: &[Vec<(usize, f64)>], ports: usize) -> Vec<usize> {
    primal_dual_order(items, ports, |_| 0.0)
}

/// Generalises [`bssi_order`] to items that also have a minimum time (`least`), which does not depend on their load at
/// the ports. If the longest minimum time exceeds the total load of the busiest port, the item with this minimum time
/// is placed last, and the weights of the other items are not reduced.
pub(super) fn primal_dual_order(
    items: &[Vec<(usize, f64)>],
    ports: usize,
    least: impl Fn(usize) -> f64,
) -> Vec<usize> {
    let mut weights = vec![1.0; items.len()];
    let mut totals = vec![0.0; ports];
    items.iter().flatten().for_each(|(port, need)| totals[*port] += need);
    let need_at = |item: usize, port: usize| {
        let found = items[item].binary_search_by_key(&port, |(port, _)| *port);
        found.map_or(0.0, |at| items[item][at].1)
    };
    let mut left: Vec<usize> = (0..items.len()).collect();
    let mut order = vec![0; items.len()];
    for place in (0..items.len()).rev() {
        let busiest = (0..ports).max_by(|a, b| totals[*a].total_cmp(&totals[*b])).unwrap_or(0);
        let slowest = left.iter().copied().max_by(|a, b| least(*a).total_cmp(&least(*b)));
        if let Some(last) = slowest.filter(|item| least(*item) > totals[busiest]) {
            left.retain(|item| *item != last);
            items[last].iter().for_each(|(port, need)| totals[*port] -= need);
            order[place] = last;
            continue;
        }
        let users = left.iter().filter(|item| need_at(**item, busiest) > 0.0);
        let cheapest = users.map(|item| (weights[*item] / need_at(*item, busiest), *item));
        let (price, last) =
            cheapest.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_else(|| (0.0, left[left.len() - 1]));
        left.retain(|item| *item != last);
        left.iter().for_each(|item| weights[*item] -= price * need_at(*item, busiest));
        items[last].iter().for_each(|(port, need)| totals[*port] -= need);
        order[place] = last;
    }
    order
}

/// Policy that orders coflows by [`bssi_order`].
#[derive(Clone, Copy, Debug)]
pub struct Bssi;

impl Policy for Bssi {
    fn prioritise(&mut self, state: &State<'_>, ready: &mut Vec<usize>) -> Sharing {
        let left = |number: &usize| state.needs(*number).filter(|(_, need)| *need > 0.0).collect();
        let items: Vec<_> = ready.iter().map(left).collect();
        *ready = bssi_order(&items, state.ports).into_iter().map(|item| ready[item]).collect();
        Sharing::Greedy
    }
}

/// Policy that orders jobs by [`bssi_order`] of their remaining loads. Within a job, the coflow with the longest path
/// to the end of the job is sent first.
#[derive(Clone, Copy, Debug)]
pub struct JobBssi;

impl Policy for JobBssi {
    fn prioritise(&mut self, state: &State<'_>, ready: &mut Vec<usize>) -> Sharing {
        let jobs = jobs_of(state, ready);
        let items: Vec<_> = jobs.iter().map(|job| job_loads(state, *job)).collect();
        let mut rank = vec![0.0; state.jobs.len()];
        let order = bssi_order(&items, state.ports);
        order.into_iter().enumerate().for_each(|(place, item)| rank[jobs[item]] = place as f64);
        let key = |number: &usize| (rank[state.stages[*number].job], -state.stages[*number].path, *number);
        let mut keyed: Vec<_> = ready.iter().map(key).collect();
        sort(&mut keyed);
        *ready = keyed.into_iter().map(|(_, _, number)| number).collect();
        Sharing::Madd
    }
}

/// Returns the jobs to which the given coflows belong, without duplicates.
pub(super) fn jobs_of(state: &State<'_>, coflows: &[usize]) -> Vec<usize> {
    let mut jobs: Vec<usize> = coflows.iter().map(|number| state.stages[*number].job).collect();
    jobs.sort_unstable();
    jobs.dedup();
    jobs
}

/// Returns the number of seconds that a job still needs at each port where it has remaining bytes.
pub(super) fn job_loads(state: &State<'_>, job: usize) -> Vec<(usize, f64)> {
    let mut loads = vec![0.0; state.ports];
    state.add_job_loads(job, &mut loads);
    loads.into_iter().enumerate().filter(|(_, need)| *need > 0.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_one_port_the_smallest_item_goes_first() {
        let items: Vec<_> = [5.0, 1.0, 3.0].iter().map(|need| vec![(0, *need)]).collect();
        assert_eq!(bssi_order(&items, 2), [1, 2, 0]);
    }

    #[test]
    fn an_item_that_blocks_two_ports_goes_last() {
        // Two small items use different ports, and one item of the same size uses both ports.
        let items = vec![vec![(0, 1.0), (1, 1.0)], vec![(0, 1.0)], vec![(1, 1.0)]];
        assert_eq!(bssi_order(&items, 2)[2], 0);
    }

    #[test]
    fn an_item_longer_than_the_busiest_port_goes_last() {
        let items: Vec<_> = [1.0, 2.0].iter().map(|need| vec![(0, *need)]).collect();
        let order = |least: [f64; 2]| primal_dual_order(&items, 2, |item| least[item]);
        assert_eq!(order([1.0, 2.0]), [0, 1]);
        assert_eq!(order([2.9, 2.0]), [0, 1], "both need 3 at the port");
        assert_eq!(order([3.1, 2.0]), [1, 0]);
    }
}
