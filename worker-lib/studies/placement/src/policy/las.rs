//! Tiresias: least attained service first (Gu et al., NSDI 2019, section 3.2).

use super::{Placer, consolidate};
use crate::state::State;

/// Discretised two-dimensional least attained service. Jobs are divided into queues by the GPU-seconds that they have
/// used. A job in a lower queue has priority over jobs in higher queues, which are suspended if it needs their GPUs;
/// within a queue, jobs run in order of arrival. Each job gets GPUs on as few nodes as possible. The policy does not
/// need to know the durations of jobs. The paper's promotion of starving jobs is not implemented.
#[derive(Clone, Debug)]
pub struct Las {
    thresholds: Vec<f64>,
    /// For each job, whether it should have GPUs now.
    chosen: Vec<bool>,
}

/// GPU-seconds at which a job moves to the next queue, as in the Tiresias simulator.
pub const LAS_THRESHOLDS: [f64; 3] = [3250.0, 7200.0, 18_000.0];

impl Las {
    /// Creates a placer with the given queue thresholds, which are in GPU-seconds and must be in ascending order.
    pub fn new(thresholds: Vec<f64>) -> Self {
        Self { thresholds, chosen: Vec::new() }
    }

    fn level(&self, state: &State<'_>, job: usize) -> usize {
        let service = state.service(job);
        // When the placer decides again at a threshold, a rounding error may leave the job just below it.
        self.thresholds.iter().filter(|threshold| service * (1.0 + 1e-9) >= **threshold).count()
    }

    /// Returns `(queue, job)` for all running and waiting jobs, in order of priority.
    fn ranked(&self, state: &State<'_>) -> Vec<(usize, usize)> {
        let runs = |job: &usize| state.is_running(*job);
        let jobs = state.queue.iter().copied().chain(state.active.iter().copied().filter(runs));
        let mut ranked: Vec<_> = jobs.map(|job| (self.level(state, job), job)).collect();
        ranked.sort_unstable();
        ranked
    }
}

impl Default for Las {
    fn default() -> Self {
        Self::new(LAS_THRESHOLDS.to_vec())
    }
}

impl Placer for Las {
    fn suspend(&mut self, state: &State<'_>, jobs: &mut Vec<usize>) {
        self.chosen.clear();
        self.chosen.resize(state.progress.len(), false);
        let mut left = state.free
            + state
                .active
                .iter()
                .filter(|job| state.is_running(**job))
                .map(|job| state.gpus_of(*job).len())
                .sum::<usize>();
        for (_, job) in self.ranked(state) {
            let size = state.job(job).gpus();
            if size <= left {
                left -= size;
                self.chosen[job] = true;
            }
        }
        jobs.extend(state.active.iter().filter(|job| state.is_running(**job) && !self.chosen[**job]));
    }

    fn order(&mut self, state: &State<'_>, queue: &mut [usize]) {
        queue.sort_by_key(|job| (!self.chosen[*job], self.level(state, *job)));
    }

    fn size(&mut self, state: &State<'_>, job: usize) -> usize {
        if self.chosen[job] { state.job(job).gpus() } else { 0 }
    }

    fn place(&mut self, state: &State<'_>, _job: usize, size: usize, picks: &mut Vec<usize>) {
        consolidate(state, size, picks);
    }

    /// Returns the time, in seconds, until a running job next moves to a higher queue, or `None` if no job waits or no
    /// running job can move.
    fn look_again(&mut self, state: &State<'_>) -> Option<f64> {
        if state.queue.is_empty() {
            return None;
        }
        let running = state.active.iter().copied().filter(|job| state.is_running(*job));
        let next = running.filter_map(|job| {
            let threshold = self.thresholds.get(self.level(state, job))?;
            Some((threshold - state.service(job)) / state.gpus_of(job).len() as f64)
        });
        next.min_by(f64::total_cmp)
    }
}
