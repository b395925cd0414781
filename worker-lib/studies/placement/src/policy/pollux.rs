//! Policy similar to Pollux (Qiao et al., OSDI 2021): the GPUs are reallocated when jobs arrive or complete.

use super::{Placer, consolidate};
use crate::state::{Phase, Run, State};

/// Minimum time, in seconds, for which a job keeps its GPUs, so that a reallocation is worth the restart.
const KEEP: f64 = 3600.0;

/// Placer that divides the GPUs among the jobs with a variable number of GPUs so that the harmonic mean of their
/// speed-ups is maximal. This is Pollux's fitness function with p = -1, where a speed-up is relative to an equal share
/// of the cluster. Pollux searches with a genetic algorithm and also adapts batch sizes and learning rates. This policy
/// considers only the throughput at the job's given batch size ([`Scaling`](crate::job::Scaling)). For this objective,
/// it is optimal to assign the GPUs one at a time, each to the job that gains most. Each job gets GPUs on as few nodes
/// as possible. Jobs with a fixed number of GPUs start in order of arrival, if they fit.
#[derive(Clone, Debug, Default)]
pub struct Pollux {
    /// Number of GPUs assigned to each job.
    share: Vec<usize>,
}

/// Job that competes for GPUs in a reallocation.
struct Claim {
    job: usize,
    most: usize,
    /// Speed of the job on an equal share of the cluster's GPUs.
    fair: f64,
}

impl Pollux {
    /// Divides the GPUs among the jobs, except for jobs that must keep their current GPUs.
    fn divide(&mut self, state: &State<'_>) {
        self.share.clear();
        self.share.resize(state.progress.len(), 0);
        let mut left = state.free;
        let mut jobs = state.queue.clone();
        for job in &state.active {
            let Phase::Running(run) = &state.progress[*job].phase else { continue };
            if may_change(state, *job, run) {
                left += run.gpus.len();
                jobs.push(*job);
            } else {
                self.share[*job] = run.gpus.len();
            }
        }
        jobs.sort_unstable();
        let equal = (state.gpus.len() / (state.queue.len() + state.active.len()).max(1)).max(1);
        let mut claims = Vec::new();
        for job in jobs {
            let wanted = state.job(job);
            let (least, most) =
                wanted.scaling().map_or((wanted.gpus(), wanted.gpus()), |it| (it.least, it.most));
            if least <= left {
                left -= least;
                self.share[job] = least;
                claims.push(Claim { job, most, fair: wanted.speed(equal.clamp(least, most)) });
            }
        }
        self.give(state, &claims, left);
    }

    /// Assigns `left` GPUs one by one, each to the job whose inverse speed-up it lowers most.
    fn give(&mut self, state: &State<'_>, claims: &[Claim], left: usize) {
        for _ in 0..left {
            let gain = |claim: &Claim| {
                let has = self.share[claim.job];
                let speed = |gpus| state.job(claim.job).speed(gpus);
                claim.fair / speed(has) - claim.fair / speed(has + 1)
            };
            let open = claims.iter().filter(|claim| self.share[claim.job] < claim.most);
            let best = open.map(|claim| (gain(claim), claim.job)).max_by(|a, b| a.0.total_cmp(&b.0));
            match best.filter(|(gain, _)| *gain > 0.0) {
                Some((_, job)) => self.share[job] += 1,
                None => return,
            }
        }
    }
}

fn may_change(state: &State<'_>, job: usize, run: &Run) -> bool {
    state.job(job).scaling().is_some() && state.time >= run.begin + KEEP
}

impl Placer for Pollux {
    fn suspend(&mut self, state: &State<'_>, jobs: &mut Vec<usize>) {
        self.divide(state);
        for job in &state.active {
            let Phase::Running(run) = &state.progress[*job].phase else { continue };
            let (has, share) = (run.gpus.len(), self.share[*job]);
            // A restart is worth it only if other jobs wait for the GPUs that this one gives up, or if its number of
            // GPUs at least doubles.
            if (share < has && !state.queue.is_empty()) || share >= 2 * has {
                jobs.push(*job);
            } else {
                self.share[*job] = has;
            }
        }
    }

    fn size(&mut self, state: &State<'_>, job: usize) -> usize {
        let (wanted, share) = (state.job(job), self.share[job].min(state.free));
        if wanted.can_have(share) { share } else { 0 }
    }

    fn place(&mut self, state: &State<'_>, _job: usize, size: usize, picks: &mut Vec<usize>) {
        consolidate(state, size, picks);
    }

    /// Returns the time, in seconds, until the next moment at which a running job may change its number of GPUs, or
    /// `None` if there is no such moment.
    fn look_again(&mut self, state: &State<'_>) -> Option<f64> {
        let waits = state.active.iter().filter_map(|job| match &state.progress[*job].phase {
            Phase::Running(run) if state.job(*job).scaling().is_some() => Some(run.begin + KEEP - state.time),
            _ => None,
        });
        waits.filter(|wait| *wait > 0.0).min_by(f64::total_cmp)
    }
}
