//! Delay and merge (Shafiee and Ghaderi, "Scheduling Coflows with Dependency Graph", IEEE/ACM Transactions on
//! Networking, 2021), the approximation algorithm for jobs that are general graphs of coflows.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::by_key::sort;
use super::primal_dual::{job_loads, jobs_of, primal_dual_order};
use super::{Policy, Sharing};
use crate::simulation::State;
use iswitch_learn::algorithms::streams::{Purpose, stream};

/// Policy that groups jobs by powers of two. Within a group, coflows are ordered by their start time in a merged
/// schedule, in which each job's own schedule is delayed by a random time.
///
/// For jobs with equal weights and with total completion time as the objective, the published algorithm works as
/// follows:
///
/// 1. It orders jobs by a primal-dual algorithm whose constraints are the load of each port and the critical path of
///    each job.
/// 2. For each job in this order, it adds the length of the job's critical path to the maximum port load of all jobs
///    up to and including this one. Jobs whose sums lie between the same two powers of two form a group. Groups are
///    served one after another.
/// 3. Within a group, each job gets its own schedule, in which its coflows are sent one after another in a topological
///    order, each for the time that it needs at its busiest port.
/// 4. Each job's schedule is delayed by a random time, so that few coflows collide at a port. The maximum delay is the
///    maximum port load of the group's jobs, divided by a constant. The schedules are then merged.
///
/// This implementation adapts the algorithm to a fluid fabric and to arrivals that are not known in advance, and never
/// leaves a port idle if it could send:
///
/// - Where coflows collide at a port in the merged schedule, the published algorithm stretches time by the factor by
///   which the port is oversubscribed. Here, the coflow that starts earlier in the merged schedule has priority, and
///   the other one gets the remaining bandwidth.
/// - Start times in the merged schedule determine only the order of coflows; no coflow waits until its start time.
///   Later groups therefore use capacity that an earlier group leaves idle. No approximation ratio is claimed.
/// - Whenever a job arrives, a new plan is computed from the remaining parts of all jobs that have arrived. All release
///   times in this plan are 0.
/// - Of the topological orders that step 3 allows, this implementation uses the one that sorts coflows by their longest
///   path to the end of the job. The variant of the algorithm for rooted trees, which delays paths of a job, is not
///   implemented.
///
/// The implementation is based on the published abstract and the structure of the algorithm. The text of the paper was
/// not available, so the constants (the base of the powers and the divisor of the maximum delay) may differ from those
/// of the paper.
///
/// Each simulated run needs a new instance of this type, which holds the plan of the run.
#[derive(Clone, Debug)]
pub struct ShafieeGhaderi {
    rng: ChaCha8Rng,
    /// For each coflow, its group and its start time within the group; `None` if the job of the coflow has not been
    /// planned.
    plan: Vec<Option<(f64, f64)>>,
}

/// Ratio of the maximum load of a port to the maximum delay of a schedule.
const DELAY_DIVISOR: f64 = 2.0;

impl ShafieeGhaderi {
    /// Creates the policy. `seed` determines the random delays.
    pub fn new(seed: u64) -> Self {
        Self { rng: stream(seed, Purpose::Actions, 0), plan: Vec::new() }
    }

    /// Plans `jobs`, which must have arrived and must not be complete.
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
            begin += stage.bottleneck_left;
        }
    }
}

impl Policy for ShafieeGhaderi {
    fn prioritise(&mut self, state: &State<'_>, ready: &mut Vec<usize>) -> Sharing {
        self.plan.resize(state.stages.len(), None);
        if ready.iter().any(|number| self.plan[*number].is_none()) {
            // Every job that has arrived and is not complete has a ready coflow, so this plans all of them.
            self.plan(state, &jobs_of(state, ready));
        }
        let key = |number: &usize| {
            let (group, begin) = self.plan[*number].unwrap_or((f64::INFINITY, 0.0));
            (group, begin, *number)
        };
        let mut keyed: Vec<_> = ready.iter().map(key).collect();
        sort(&mut keyed);
        *ready = keyed.into_iter().map(|(_, _, number)| number).collect();
        Sharing::Madd
    }
}

/// Divides the items of an order into groups by powers of two. The sum of an item is its path plus the maximum port
/// load of all items up to and including it. The first group holds the items whose sum is less than twice the smallest
/// sum; the second, less than four times; and so on. Empty groups are omitted.
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
    // Sums are not ascending: a job with a short path may follow one with a long path.
    let mut grouped = std::collections::BTreeMap::<i32, Vec<usize>>::new();
    for (sum, item) in sums {
        grouped.entry((sum / least).log2().floor() as i32).or_default().push(item);
    }
    grouped.into_values().collect()
}

/// Returns the greatest total load of any port.
fn greatest<'a>(loads: impl Iterator<Item = &'a Vec<(usize, f64)>>, ports: usize) -> f64 {
    let mut totals = vec![0.0; ports];
    loads.flatten().for_each(|(port, load)| totals[*port] += load);
    totals.into_iter().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_boundaries_are_powers_of_two() {
        // The sums are 1 + 1, 1 + 2, 1 + 4, 9 + 4 and 2 + 6.
        let loads = vec![vec![(0, 1.0)], vec![(0, 1.0)], vec![(0, 2.0)], vec![(1, 1.0)], vec![(0, 2.0)]];
        let paths = [1.0, 1.0, 1.0, 9.0, 2.0];
        assert_eq!(groups(&[0, 1, 2, 3, 4], &loads, &paths, 2), [vec![0, 1], vec![2], vec![3, 4]]);
        assert_eq!(greatest(loads.iter(), 2), 6.0);
        assert!(groups(&[], &[], &[], 2).is_empty());
    }
}
