//! Reservation that EASY backfilling makes for the first job that does not fit.

use crate::state::{Phase, State};

/// Time at which enough GPUs will be free for a job if no further failure occurs, and the number of GPUs that will be
/// free at that time beyond those that the job needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reservation {
    /// Time in seconds; infinite if no such time is known.
    time: f64,
    /// Number of GPUs that will be free at that time and that the job does not need.
    spare: usize,
}

impl Reservation {
    /// Creates a reservation for a job that needs `gpus` GPUs.
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

    /// Returns whether another job may start on `gpus` GPUs now without delaying the reservation.
    pub(super) fn admit(self, state: &State<'_>, job: usize, gpus: usize) -> bool {
        let ends_before = state.time + state.seconds_left(job, gpus) <= self.time;
        ends_before || gpus <= self.spare
    }

    /// Records that a job has started on `gpus` GPUs: if the job is expected to keep them beyond the reserved time,
    /// they no longer count as spare.
    pub(super) fn take(&mut self, state: &State<'_>, job: usize, gpus: usize) {
        if state.time + seconds_left(state, job) > self.time {
            self.spare = self.spare.saturating_sub(gpus);
        }
    }
}

/// Returns the seconds until a job releases its GPUs; a job that waits for repairs resumes after the last repair.
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
