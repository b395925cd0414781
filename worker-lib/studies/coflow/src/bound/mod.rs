//! Lower bounds on the mean job completion time under any policy.
//!
//! A job needs at least the time that the coflows on its critical path take, one after another, at the full rate of
//! their busiest ports. It also needs at least the time that all its coflows together take at the job's busiest port.
//! Links of racks count as ports. Furthermore, each port can be regarded as a single machine that serves all jobs; on
//! such a machine, preemptive shortest-remaining-processing-time-first minimises the mean flow time (Schrage, 1968).
//! The last bound is that of a linear relaxation, which considers all ports and the isolated times of all jobs
//! together. All bounds, and therefore the greatest of them, hold for every policy. In general, none of them is tight.

mod relaxation;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::simulation::Fabric;
use super::workload::Job;
use relaxation::Item;

/// Lower bounds on the mean job completion time, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Bound derived from the isolated times of the jobs: the time that each job would take with the fabric to
    /// itself.
    pub isolated: f64,
    /// Bound derived from the load of the busiest port. It assumes that all other ports have unlimited capacity.
    pub port: f64,
    /// Bound derived from the linear relaxation.
    pub relaxation: f64,
}

impl Bound {
    /// Computes the bounds of jobs, which must be sorted by arrival.
    pub fn of(jobs: &[Job], fabric: &Fabric) -> Self {
        let count = jobs.len().max(1) as f64;
        let loads: Vec<_> = jobs.iter().map(|job| port_loads(job, fabric)).collect();
        let items: Vec<_> = jobs.iter().zip(&loads).map(|(job, loads)| item(job, fabric, loads)).collect();
        let isolated = items.iter().map(|item| item.isolated).sum::<f64>() / count;
        let at = |port: usize| {
            let needs = jobs.iter().zip(&loads).map(|(job, loads)| (job.arrival, loads[port]));
            shortest_first(&needs.collect::<Vec<_>>()) / count
        };
        let port = (0..fabric.resources()).map(at).fold(0.0, f64::max);
        let relaxation = relaxation::total_time(&items, fabric.resources()) / count;
        Self { isolated, port, relaxation }
    }

    /// Returns the greatest of the bounds.
    pub fn greatest(self) -> f64 {
        self.isolated.max(self.port).max(self.relaxation)
    }
}

fn item(job: &Job, fabric: &Fabric, loads: &[f64]) -> Item {
    let needs = loads.iter().copied().enumerate().filter(|(_, need)| *need > 0.0);
    Item { release: job.arrival, isolated: alone(job, fabric), needs: needs.collect() }
}

/// Returns the isolated time of a job: the minimum number of seconds that it needs if it has the fabric to itself. This
/// is the time of its critical path or, if longer, the time that it needs at its busiest port.
pub fn alone(job: &Job, fabric: &Fabric) -> f64 {
    let longest = fabric.paths(job).into_iter().fold(0.0, f64::max);
    port_loads(job, fabric).into_iter().fold(longest, f64::max)
}

/// Returns the number of seconds that a job needs at each resource of a fabric.
fn port_loads(job: &Job, fabric: &Fabric) -> Vec<f64> {
    let mut loads = vec![0.0; fabric.resources()];
    for (port, seconds) in job.coflows().iter().flat_map(|coflow| fabric.times(coflow)) {
        loads[port] += seconds;
    }
    loads
}

/// Time in seconds, with a total order, so that it can be used in a heap.
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

/// Returns the sum of the flow times of tasks on a single machine under preemptive
/// shortest-remaining-processing-time-first. Each task is given as its arrival and its processing time; the tasks must
/// be sorted by arrival.
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
