//! What no policy can fall below: mean job completion times.
//!
//! A job needs at least its longest way (every coflow at the full rate of its busiest port). And each port is a machine
//! that serves all jobs: on one machine shortest remaining processing time first, with preemption, has the least mean
//! flow time (Schrage, 1968). The greater of the two holds for every policy; near is neither.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::simulation::Fabric;
use super::workload::{Coflow, Job};

/// Least mean job completion times, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Of jobs that have the fabric to themselves.
    pub isolated: f64,
    /// Of the worst port, with nothing before or after it.
    pub port: f64,
}

impl Bound {
    /// Of jobs sorted by arrival.
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

    /// What holds of both.
    pub fn greater(self) -> f64 {
        self.isolated.max(self.port)
    }
}

/// Seconds that a job needs at least with the fabric to itself: those of its longest way, or of its busiest port.
pub fn alone(job: &Job, fabric: Fabric) -> f64 {
    let longest = job.paths().into_iter().fold(0.0, f64::max) / fabric.capacity;
    port_loads(job, fabric).into_iter().fold(longest, f64::max)
}

/// Seconds that a job needs at each port.
fn port_loads(job: &Job, fabric: Fabric) -> Vec<f64> {
    let mut loads = vec![0.0; 2 * fabric.ports];
    for (port, bytes) in job.coflows().iter().flat_map(Coflow::loads) {
        loads[*port] += bytes / fabric.capacity;
    }
    loads
}

/// A time that can be put in order.
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

/// Sum of the flow times of tasks on one machine, by shortest remaining time first. Tasks are arrivals, ascending, and
/// processing times.
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
        // At 1 the second has less left than the first.
        assert_eq!(shortest_first(&[(0.0, 4.0), (1.0, 1.0)]), 5.0 + 1.0);
        assert_eq!(shortest_first(&[(3.0, 1.0), (10.0, 2.0)]), 3.0);
        assert_eq!(shortest_first(&[]), 0.0);
    }
}
