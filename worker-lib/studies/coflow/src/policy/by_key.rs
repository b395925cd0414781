//! Policies that sort by one number, and after it by another.

use std::cmp::Ordering;

use super::{Policy, Sharing};
use crate::simulation::{Stage, State};

/// What decides; the least comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Equal shares for all: nothing does.
    Fair,
    /// When the coflow became ready: first in, first out.
    Fifo,
    /// When its job arrived; within the job the longest way to its end.
    FifoJob,
    /// What is left of all its flows together: the least coflow first.
    Size,
    /// What is left at its busiest port: the smallest effective bottleneck first (Varys).
    Bottleneck,
    /// What its job still needs on its longest way: shortest remaining processing time by critical path.
    JobPath,
    /// The same, or what its job still needs at its busiest port, if that is more.
    JobBottleneck,
}

/// Sorts by a [`Key`].
#[derive(Clone, Debug)]
pub struct ByKey {
    key: Key,
    needs: Needs,
}

impl ByKey {
    /// By this one.
    pub fn new(key: Key) -> Self {
        Self { key, needs: Needs::default() }
    }

    fn of(&mut self, state: &State<'_>, stage: &Stage) -> f64 {
        match self.key {
            Key::Fair => 0.0,
            Key::Fifo => stage.ready.unwrap_or(state.time),
            Key::FifoJob => state.jobs[stage.job].arrival,
            Key::Size => stage.size * stage.left,
            Key::Bottleneck => stage.bottleneck * stage.left,
            Key::JobPath => state.path_left(stage.job),
            Key::JobBottleneck => self.needs.of(state, stage.job),
        }
    }
}

/// Seconds that a job needs at least from now on, with the fabric to itself; `loads` become those of ports.
pub(crate) fn job_need(state: &State<'_>, job: usize, loads: &mut Vec<f64>) -> f64 {
    loads.clear();
    loads.resize(state.ports, 0.0);
    state.add_job_loads(job, loads);
    loads.iter().copied().fold(state.path_left(job), f64::max)
}

/// [`job_need`], computed once for coflows of a job that are asked for one after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needs {
    last: Option<(usize, f64)>,
    loads: Vec<f64>,
}

impl Needs {
    /// Time goes on: what was computed is no longer true.
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
                // Within a job what has most after it; all its coflows have the same first key.
                (self.of(state, stage), if is_of_jobs { -stage.path } else { 0.0 }, *number)
            })
            .collect();
        sort(&mut keyed);
        ready.clear();
        ready.extend(keyed.into_iter().map(|(_, _, number)| number));
        Sharing::InOrder
    }
}

/// By the first number, the second, the coflow.
pub(crate) fn sort(keyed: &mut [(f64, f64, usize)]) {
    keyed.sort_by(|a, b| {
        let first: Ordering = a.0.total_cmp(&b.0);
        first.then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2))
    });
}
