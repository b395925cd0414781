//! Lower bounds on the mean job completion time under any policy.
//!
//! A job needs at least the time of its critical path, on which every coflow is sent at the full rate of its busiest
//! port. Furthermore, each port is a machine that serves all jobs; on a single machine, preemptive
//! shortest-remaining-processing-time-first gives the minimum mean flow time (Schrage, 1968). Both bounds, and
//! therefore the greater of the two, hold for every policy. Neither is tight.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::simulation::Fabric;
use super::workload::{Coflow, Job};

/// Lower bounds on the mean job completion time, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Bound from the critical paths of the jobs, as if each job had the fabric to itself.
    pub isolated: f64,
    /// Bound from the busiest port, as if all other ports had unlimited capacity.
    pub port: f64,
}

impl Bound {
    /// Computes the bounds of jobs, which must be sorted by arrival.
    pub fn of(jobs: &[Job], fabric: Fabric) -> Self {
        let count = jobs.len().max(1) as f64;
        let longest = |job: &Job| job.paths().into_iter().fold(0.0, f64::max) / fabric.capacity;
        let isolated = jobs.iter().map(longest).sum::<f64>() / count;
        let loads: Vec<_> = jobs.iter().map(|job| port_loads(job, fabric)).collect();
        let at = |port: usize| {
            let needs = jobs.iter().zip(&loads).map(|(job, loads)| (job.arrival, loads[port]));
            shortest_first(&needs.collect::<Vec<_>>()) / count
        };
        Self { isolated, port: (0..2 * fabric.ports).map(at).fold(0.0, f64::max) }
    }

    /// Returns the greater of the two bounds.
    pub fn greater(self) -> f64 {
        self.isolated.max(self.port)
    }
}

/// Returns the isolated time of a job: the minimum number of seconds that it needs if it has the fabric to itself. It
/// is the time of its critical path, or of its busiest port if that takes longer.
pub fn alone(job: &Job, fabric: Fabric) -> f64 {
    let longest = job.paths().into_iter().fold(0.0, f64::max) / fabric.capacity;
    port_loads(job, fabric).into_iter().fold(longest, f64::max)
}

/// Returns the number of seconds that a job needs at each port.
fn port_loads(job: &Job, fabric: Fabric) -> Vec<f64> {
    let mut loads = vec![0.0; 2 * fabric.ports];
    for (port, bytes) in job.coflows().iter().flat_map(Coflow::loads) {
        loads[*port] += bytes / fabric.capacity;
    }
    loads
}

/// Time in seconds, with a total order.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Seconds(f64);

impl Eq for Seconds {}

impl PartialOrd for Seconds {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Seconds {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Returns the sum of the flow times of tasks on one machine under preemptive shortest-remaining-time-first. A task is
/// an arrival and a processing time; tasks must be sorted by arrival.
fn shortest_first(tasks: &[(f64, f64)]) -> f64 {
    let mut waiting: BinaryHeap<Reverse<(Seconds, Seconds)>> = BinaryHeap::new();
    let (mut next, mut time, mut sum) = (0, 0.0_f64, 0.0);
    loop {
        while let Some((arrival, need)) = tasks.get(next).filter(|(arrival, _)| *arrival <= time) {
            waiting.push(Reverse((Seconds(*need), Seconds(*arrival))));
            next += 1;
        }
        let until = tasks.get(next).map_or(f64::INFINITY, |(arrival, _)| *arrival);
        match waiting.pop() {
            None if until.is_infinite() => return sum,
            None => time = until,
            Some(Reverse((Seconds(need), Seconds(arrival)))) if time + need <= until => {
                time += need;
                sum += time - arrival;
            }
            Some(Reverse((Seconds(need), arrival))) => {
                waiting.push(Reverse((Seconds(need - (until - time)), arrival)));
                time = until;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortest_first_is_preemptive() {
        assert_eq!(shortest_first(&[(0.0, 4.0), (0.0, 1.0), (0.0, 2.0)]), 1.0 + 3.0 + 7.0);
        // At time 1, the second task has less remaining time than the first.
        assert_eq!(shortest_first(&[(0.0, 4.0), (1.0, 1.0)]), 5.0 + 1.0);
        assert_eq!(shortest_first(&[(3.0, 1.0), (10.0, 2.0)]), 3.0);
        assert_eq!(shortest_first(&[]), 0.0);
    }
}
