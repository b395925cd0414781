//! Delay and merge (Shafiee and Ghaderi, "Scheduling Coflows with Dependency Graph", IEEE/ACM Transactions on
//! Networking, 2021), the approximation algorithm for jobs that are general graphs of coflows.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::by_key::sort;
use super::primal_dual::{job_loads, jobs_of, primal_dual_order};
use super::{Policy, Sharing};
use crate::simulation::State;
use iswitch_learn::algorithms::streams::{Purpose, stream};

/// Jobs in groups whose sizes grow by factors of two; in a group all coflows by when they begin in schedules that are
/// delayed at random and merged.
///
/// Theirs, of jobs with equal weights, for the total completion time:
///
/// 1. Jobs are put in an order by a primal-dual algorithm whose constraints are the load of each port and each job's
///    longest way.
/// 2. Going through this order, each job's longest way and the greatest load of a port by all jobs so far are added.
///    Jobs whose sums lie between the same powers of two form a group. Groups come one after the other.
/// 3. Within a group each job has a schedule for itself: its coflows one after the other, in an order in which nothing
///    comes before what it waits for, each for as long as its busiest port needs.
/// 4. Each job's schedule is delayed by a random time, at most the greatest load of a port by the group's jobs over a
///    constant, so that not many coflows want a port at a time; then all are merged.
///
/// Adapted to a fluid fabric, to arrivals that nobody knows beforehand, and to never leaving a port idle that could
/// send:
///
/// - Where coflows want a port at a time in the merged schedule, they stretch time by the factor by which it is
///   overbooked. Here the one that begins earlier goes first, and the other gets what it leaves.
/// - Times of the merged schedule are places in an order, not times before which nothing is sent. So what a group
///   leaves idle the next ones use, and no approximation ratio is claimed.
/// - All is planned again whenever a job arrives, with what is left of the others; release times are then 0.
/// - Of the orders that step 3 allows it is the one by the longest way to the job's end. The algorithm for rooted
///   trees, which delays paths of a job, is not here.
///
/// Built from the published abstract and the structure of the algorithm; the text of the paper was not at hand, so the
/// constants (powers of two, the divisor of the longest delay) are not its own.
///
/// A value is for one run.
#[derive(Clone, Debug)]
pub struct ShafieeGhaderi {
    rng: ChaCha8Rng,
    /// Group and begin within it of each coflow of a job that has been planned.
    plan: Vec<Option<(f64, f64)>>,
}

/// The greatest load over this is the longest delay.
const DELAY_DIVISOR: f64 = 2.0;

impl ShafieeGhaderi {
    /// With delays from this seed.
    pub fn new(seed: u64) -> Self {
        Self { rng: stream(seed, Purpose::Actions, 0), plan: Vec::new() }
    }

    /// Plans jobs, all of which have arrived and are not complete.
    fn plan(&mut self, state: &State<'_>, jobs: &[usize]) {
        let loads: Vec<_> = jobs.iter().map(|job| job_loads(state, *job)).collect();
        let paths: Vec<_> = jobs.iter().map(|job| state.path_left(*job)).collect();
        let order = primal_dual_order(&loads, state.ports, |item| paths[item]);
        for (group, items) in groups(&order, &loads, &paths, state.ports).into_iter().enumerate() {
            let longest = greatest(items.iter().map(|item| &loads[*item]), state.ports) / DELAY_DIVISOR;
            for item in items {
                let delay = longest * self.rng.random::<f64>();
                self.plan_job(state, jobs[item], group as f64, delay);
            }
        }
    }

    fn plan_job(&mut self, state: &State<'_>, job: usize, group: f64, delay: f64) {
        let first = state.first[job];
        let mut coflows: Vec<usize> = (first..first + state.of_job(job).len()).collect();
        coflows.sort_by(|a, b| state.stages[*b].path.total_cmp(&state.stages[*a].path));
        let mut begin = delay;
        for number in coflows {
            let stage = &state.stages[number];
            self.plan[number] = Some((group, begin));
            begin += stage.bottleneck * stage.left;
        }
    }
}

impl Policy for ShafieeGhaderi {
    fn prioritise(&mut self, state: &State<'_>, ready: &mut Vec<usize>) -> Sharing {
        self.plan.resize(state.stages.len(), None);
        if ready.iter().any(|number| self.plan[*number].is_none()) {
            // Each job that is not complete has something to send now.
            self.plan(state, &jobs_of(state, ready));
        }
        let key = |number: &usize| {
            let (group, begin) = self.plan[*number].unwrap_or((f64::INFINITY, 0.0));
            (group, begin, *number)
        };
        let mut keyed: Vec<_> = ready.iter().map(key).collect();
        sort(&mut keyed);
        *ready = keyed.into_iter().map(|(_, _, number)| number).collect();
        Sharing::InOrder
    }
}

/// Items of the order in groups: the sum of an item's path and of the greatest load by all items up to it is less than
/// twice the least sum of all items in the first group, four times in the second, and so on. None is empty.
fn groups(order: &[usize], loads: &[Vec<(usize, f64)>], paths: &[f64], ports: usize) -> Vec<Vec<usize>> {
    let mut totals = vec![0.0; ports];
    let mut busiest: f64 = 0.0;
    let sums: Vec<(f64, usize)> = order
        .iter()
        .map(|item| {
            for (port, load) in &loads[*item] {
                totals[*port] += load;
                busiest = busiest.max(totals[*port]);
            }
            (paths[*item] + busiest, *item)
        })
        .collect();
    let least = sums.iter().map(|(sum, _)| *sum).fold(f64::INFINITY, f64::min);
    // Not in order: a job with a short way may stand behind one with a long way.
    let mut grouped = std::collections::BTreeMap::<i32, Vec<usize>>::new();
    for (sum, item) in sums {
        grouped.entry((sum / least).log2().floor() as i32).or_default().push(item);
    }
    grouped.into_values().collect()
}

/// The greatest load of a port by all of these.
fn greatest<'a>(loads: impl Iterator<Item = &'a Vec<(usize, f64)>>, ports: usize) -> f64 {
    let mut totals = vec![0.0; ports];
    loads.flatten().for_each(|(port, load)| totals[*port] += load);
    totals.into_iter().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_between_powers_of_two() {
        // Sums: 1 + 1, 1 + 2, 1 + 4, 9 + 4, 2 + 6.
        let loads = vec![vec![(0, 1.0)], vec![(0, 1.0)], vec![(0, 2.0)], vec![(1, 1.0)], vec![(0, 2.0)]];
        let paths = [1.0, 1.0, 1.0, 9.0, 2.0];
        assert_eq!(groups(&[0, 1, 2, 3, 4], &loads, &paths, 2), [vec![0, 1], vec![2], vec![3, 4]]);
        assert_eq!(greatest(loads.iter(), 2), 6.0);
        assert!(groups(&[], &[], &[], 2).is_empty());
    }
}
