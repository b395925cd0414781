//! The promise that EASY makes to the first job that does not fit.

use crate::state::{Phase, State};

/// When a job will have enough GPUs if nothing else fails, and how many will be free beside them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reservation {
    /// In seconds.
    time: f64,
    /// GPUs that the job does not need then.
    spare: usize,
}

impl Reservation {
    /// For a job that needs so many.
    pub(super) fn new(state: &State<'_>, gpus: usize) -> Self {
        let mut releases: Vec<(f64, usize)> = state
            .active
            .iter()
            .map(|job| (state.time + seconds_left(state, *job), state.gpus_of(*job).len()))
            .collect();
        let repairs = state.gpus.iter().filter(|gpu| gpu.owner.is_none());
        releases.extend(repairs.filter_map(|gpu| gpu.failed_until).map(|time| (time, 1)));
        releases.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut free = state.free;
        for (time, released) in releases {
            free += released;
            if free >= gpus {
                return Self { time, spare: free - gpus };
            }
        }
        Self { time: f64::INFINITY, spare: 0 }
    }

    /// Whether a job may start on so many GPUs now.
    pub(super) fn admit(self, state: &State<'_>, job: usize, gpus: usize) -> bool {
        let ends_before = state.time + state.seconds_left(job, gpus) <= self.time;
        ends_before || gpus <= self.spare
    }

    /// A job has started on so many GPUs: if it keeps them for longer, they are no longer to spare.
    pub(super) fn take(&mut self, state: &State<'_>, job: usize, gpus: usize) {
        if state.time + seconds_left(state, job) > self.time {
            self.spare = self.spare.saturating_sub(gpus);
        }
    }
}

/// Until a job lets go of its GPUs; one that waits for repairs goes on after the last of them.
fn seconds_left(state: &State<'_>, job: usize) -> f64 {
    match &state.progress[job].phase {
        Phase::Stopped(gpus) => {
            let repaired = gpus.iter().filter_map(|gpu| state.gpus[*gpu].failed_until);
            let wait = repaired.fold(state.time, f64::max) - state.time;
            wait + state.seconds_left(job, gpus.len())
        }
        _ => state.seconds_left(job, 0),
    }
}
