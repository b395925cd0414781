//! Input features of the shared network for jobs and GPUs. They are scaled to a magnitude of about 1, regardless of the
//! size of the cluster.

use crate::policy::saving::interval;
use crate::state::{Phase, State};

/// Number of features that describe a job.
const JOB: usize = 10;
/// Number of features of a waiting job.
pub const ORDER_FEATURES: usize = JOB + 2;
/// Number of features of a free GPU together with the job that may get it.
pub const PICK_FEATURES: usize = JOB + 8;
/// Number of features of a running job together with its GPUs.
pub const SAVE_FEATURES: usize = JOB + 5;

/// Names of the features of a free GPU together with the job that may get it. Logarithms are natural and divided by 2;
/// features are clamped to the range from -[`MOST`] to [`MOST`].
pub const PICK_NAMES: [&str; PICK_FEATURES] = [
    // The job: logarithms of its remaining work and of its duration in days, and of its number of GPUs; its share of
    // the cluster; the share of its work that remains; logarithm of 1 + its failures; 1 if it has run before; logarithm
    // of 1 + the failures expected during its remaining work on GPUs with the mean failure rate.
    "left",
    "duration",
    "gpus",
    "gpus_share",
    "left_share",
    "job_failures",
    "has_run",
    "expected_failures",
    // The cluster: GPUs that waiting jobs ask for, as a share of the cluster and divided by 2; share of free GPUs.
    "demand",
    "free",
    // The GPU: logarithm of the ratio of its failure rate to the mean; logarithm of 1 + the failures of this GPU
    // expected during the job's remaining work; the GPU's age in years, divided by 5; its cage, divided by 2.
    "rate",
    "expected_failures_here",
    "age",
    "cage",
    // The GPU's node: share of its GPUs that are free; 1 if the job fits on these free GPUs.
    "node_free",
    "node_fits",
    // The GPU again: logarithm of 1 + its failures; logarithm of the days since its last repair.
    "failures",
    "up_since",
];

/// Length of a day, in seconds. Durations are divided by it.
const DAY: f64 = 86_400.0;
/// Divisor that scales logarithms to a standard deviation of about 1.
const SCALE: f64 = 2.0;
/// Divisor that scales ages in years.
const AGE: f64 = 5.0;
/// Maximum absolute value of a feature; larger values are clamped.
pub const MOST: f64 = 6.0;

/// Features of a state that all of its jobs and GPUs share.
#[derive(Clone, Debug)]
pub struct View {
    /// Mean failure rate of the GPUs, in failures per second.
    mean_rate: f64,
    /// Share of the GPUs that are free.
    free_share: f64,
    /// Number of GPUs that the waiting jobs ask for, divided by the number in the cluster.
    demand: f64,
    /// Number of free GPUs of each node.
    free_of_node: Vec<usize>,
}

impl View {
    /// Computes the shared features of a state.
    pub fn of(state: &State<'_>) -> Self {
        let gpus = state.gpus.len();
        let asked: usize = state.queue.iter().map(|job| state.job(*job).gpus()).sum();
        let mut free_of_node = vec![0; state.cluster().nodes().len()];
        state.free_gpus().for_each(|gpu| free_of_node[state.cluster().node_of(gpu)] += 1);
        Self {
            mean_rate: (0..gpus).map(|gpu| state.rate(gpu)).sum::<f64>() / gpus as f64,
            free_share: state.free as f64 / gpus as f64,
            demand: asked as f64 / gpus as f64,
            free_of_node,
        }
    }

    fn job(&self, state: &State<'_>, job: usize) -> [f64; JOB] {
        let (it, progress) = (state.job(job), &state.progress[job]);
        let gpus = it.gpus() as f64;
        [
            logarithm(progress.left / DAY),
            logarithm(it.duration() / DAY),
            logarithm(gpus),
            gpus / state.gpus.len() as f64,
            progress.left / it.duration(),
            f64::from(progress.failures).ln_1p() / SCALE,
            f64::from(u8::from(progress.runs > 0)),
            (self.mean_rate * gpus * progress.left).ln_1p() / SCALE,
            self.demand / SCALE,
            self.free_share,
        ]
    }

    /// Returns the features of each job of a queue, `[jobs, ORDER_FEATURES]`.
    pub fn of_queue(&self, state: &State<'_>, queue: &[usize]) -> Vec<f32> {
        let whole = |job: &usize| state.job(*job).gpu_seconds().ln();
        let left = |job: &usize| (state.progress[*job].left * state.job(*job).gpus() as f64).max(1.0).ln();
        let mean = |of: &dyn Fn(&usize) -> f64| queue.iter().map(of).sum::<f64>() / queue.len() as f64;
        let (mean_whole, mean_left) = (mean(&whole), mean(&left));
        let mut rows = Vec::with_capacity(queue.len() * ORDER_FEATURES);
        for job in queue {
            push(&mut rows, &self.job(state, *job));
            push(&mut rows, &[(whole(job) - mean_whole) / SCALE, (left(job) - mean_left) / SCALE]);
        }
        rows
    }

    /// Returns the features of GPUs for a job, `[gpus, PICK_FEATURES]`.
    pub fn of_gpus(&self, state: &State<'_>, job: usize, size: usize, gpus: &[usize]) -> Vec<f32> {
        let own = self.job(state, job);
        let left = state.progress[job].left;
        let mut rows = Vec::with_capacity(gpus.len() * PICK_FEATURES);
        for gpu in gpus {
            let rate = state.rate(*gpu);
            let node = state.cluster().node_of(*gpu);
            let (free, all) = (self.free_of_node[node], state.cluster().nodes()[node].gpus.len());
            push(&mut rows, &own);
            push(
                &mut rows,
                &[
                    logarithm(rate / self.mean_rate),
                    (rate * left).ln_1p() / SCALE,
                    state.age(*gpu) / AGE,
                    state.cluster().cage_of(*gpu) as f64 / SCALE,
                    free as f64 / all as f64,
                    f64::from(u8::from(free >= size)),
                    f64::from(state.gpus[*gpu].failures).ln_1p() / SCALE,
                    logarithm((state.time - state.gpus[*gpu].up_since) / DAY),
                ],
            );
        }
        rows
    }

    /// Returns the features of a running job, `[SAVE_FEATURES]`.
    pub fn of_run(&self, state: &State<'_>, job: usize) -> Vec<f32> {
        let gpus = state.gpus_of(job);
        let rate = state.rate_of(gpus);
        let left = state.progress[job].left;
        let checkpoints = match &state.progress[job].phase {
            Phase::Running(run) => logarithm(run.interval / interval(state, job)),
            _ => MOST,
        };
        let mut row = Vec::with_capacity(SAVE_FEATURES);
        push(&mut row, &self.job(state, job));
        push(
            &mut row,
            &[
                (rate * left).ln_1p() / SCALE,
                logarithm(state.restart(job) / left),
                logarithm(rate / (gpus.len() as f64 * self.mean_rate)),
                checkpoints,
                f64::from(u8::from(state.queue.is_empty())),
            ],
        );
        row
    }
}

fn logarithm(ratio: f64) -> f64 {
    ratio.ln() / SCALE
}

/// Returns the feature for an expected number of failures: the logarithm of 1 + this number, scaled and clamped.
pub(crate) fn scaled_count(failures: f64) -> f32 {
    (failures.ln_1p() / SCALE).min(MOST) as f32
}

fn push(rows: &mut Vec<f32>, values: &[f64]) {
    // If no GPU fails or no work is left, a division by 0 gives NaN, which is replaced by 0.
    let cut = |value: &f64| if value.is_nan() { 0.0 } else { value.clamp(-MOST, MOST) as f32 };
    rows.extend(values.iter().map(cut));
}
