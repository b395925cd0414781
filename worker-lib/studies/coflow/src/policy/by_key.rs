//! Policies that sort coflows by a key.

use std::cmp::Ordering;

use super::{Policy, Sharing};
use crate::simulation::{Stage, State};

/// Key by which coflows are sorted; the coflow with the lowest key is sent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// No key: max-min fair rates of all flows.
    Fair,
    /// Time at which the coflow became ready: coflows are served first in, first out.
    Fifo,
    /// Arrival of the job: jobs are served first in, first out.
    FifoJob,
    /// Remaining bytes of all flows of the coflow: least coflow first.
    Size,
    /// Remaining bytes of the coflow at its busiest port: smallest effective bottleneck first (Varys).
    Bottleneck,
    /// Duration of the job's remaining critical path: shortest remaining processing time first.
    JobPath,
    /// Duration of the job's remaining critical path or, if longer, its remaining time at its busiest port.
    JobBottleneck,
}

/// Policy that sorts coflows by a [`Key`]. If the key depends only on the job, the coflows of a job are sorted by their
/// longest path to the end of the job, longest first.
#[derive(Clone, Debug)]
pub struct ByKey {
    key: Key,
    needs: Needs,
}

impl ByKey {
    /// Creates a policy that sorts coflows by this key.
    pub fn new(key: Key) -> Self {
        Self { key, needs: Needs::default() }
    }

    fn of(&mut self, state: &State<'_>, stage: &Stage) -> f64 {
        match self.key {
            Key::Fair => 0.0,
            Key::Fifo => stage.ready.unwrap_or(state.time),
            Key::FifoJob => state.jobs[stage.job].arrival,
            Key::Size => stage.size * stage.left,
            Key::Bottleneck => stage.bottleneck_left,
            Key::JobPath => state.path_left(stage.job),
            Key::JobBottleneck => self.needs.of(state, stage.job),
        }
    }
}

/// Returns the minimum number of seconds that a job still needs if it has the fabric to itself. Overwrites `loads` with
/// the number of seconds that the job still needs at each port.
pub(crate) fn job_need(state: &State<'_>, job: usize, loads: &mut Vec<f64>) -> f64 {
    loads.clear();
    loads.resize(state.ports, 0.0);
    state.add_job_loads(job, loads);
    loads.iter().copied().fold(state.path_left(job), f64::max)
}

/// Cache of the last result of [`job_need`], for consecutive calls with coflows of the same job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needs {
    last: Option<(usize, f64)>,
    loads: Vec<f64>,
}

impl Needs {
    /// Invalidates the cache. Must be called after time has advanced.
    pub(crate) fn forget(&mut self) {
        self.last = None;
    }

    pub(crate) fn of(&mut self, state: &State<'_>, job: usize) -> f64 {
        if let Some((of, need)) = self.last
            && of == job
        {
            return need;
        }
        let need = job_need(state, job, &mut self.loads);
        self.last = Some((job, need));
        need
    }
}

impl Policy for ByKey {
    fn prioritise(&mut self, state: &State<'_>, ready: &mut Vec<usize>) -> Sharing {
        if self.key == Key::Fair {
            return Sharing::Equal;
        }
        ready.sort_unstable();
        self.needs.forget();
        let is_of_jobs = matches!(self.key, Key::FifoJob | Key::JobPath | Key::JobBottleneck);
        let mut keyed: Vec<(f64, f64, usize)> = ready
            .iter()
            .map(|number| {
                let stage = &state.stages[*number];
                // All coflows of a job have the same first key, so the second one orders them by their longest path.
                (self.of(state, stage), if is_of_jobs { -stage.path } else { 0.0 }, *number)
            })
            .collect();
        sort(&mut keyed);
        ready.clear();
        ready.extend(keyed.into_iter().map(|(_, _, number)| number));
        Sharing::Madd
    }
}

/// Sorts by the first number, then by the second, then by the index of the coflow.
pub(crate) fn sort(keyed: &mut [(f64, f64, usize)]) {
    keyed.sort_by(|a, b| {
        let first: Ordering = a.0.total_cmp(&b.0);
        first.then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2))
    });
}
