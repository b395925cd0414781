//! What the shared network sees of a job and of a GPU: numbers of the size of 1, whatever the size of the cluster.

use crate::policy::saving::interval;
use crate::state::{Phase, State};

/// Numbers that describe a job.
const JOB: usize = 10;
/// Of a job among those that wait.
pub const ORDER_FEATURES: usize = JOB + 2;
/// Of a free GPU and the job that it may be for.
pub const PICK_FEATURES: usize = JOB + 8;
/// Of a job that runs and its GPUs.
pub const SAVE_FEATURES: usize = JOB + 5;

/// Seconds of a day: durations are about that long.
const DAY: f64 = 86_400.0;
/// Logarithms are divided by this: their deviation is then about 1.
const SCALE: f64 = 2.0;
/// Years are divided by this.
const AGE: f64 = 5.0;
/// Features beyond this are cut.
const MOST: f64 = 6.0;

/// What is the same for all jobs and GPUs of a moment.
#[derive(Clone, Debug)]
pub struct View {
    /// Failures a second of a GPU, mean over the cluster.
    mean_rate: f64,
    /// Of all GPUs.
    free_share: f64,
    /// GPUs that the queue asks for, over those that there are.
    demand: f64,
    /// Free GPUs of each node.
    free_of_node: Vec<usize>,
}

impl View {
    /// Of a moment.
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

    /// Of each job of a queue, `[jobs, ORDER_FEATURES]`.
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

    /// Of GPUs for a job, `[gpus, PICK_FEATURES]`.
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

    /// Of a job that runs, `[SAVE_FEATURES]`.
    pub fn of_run(&self, state: &State<'_>, job: usize) -> Vec<f32> {
        let gpus = state.gpus_of(job);
        let rate: f64 = gpus.iter().map(|gpu| state.rate(*gpu)).sum();
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
                logarithm(state.options().restart / left),
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

fn push(rows: &mut Vec<f32>, values: &[f64]) {
    // No GPU fails, or nothing is left: what is divided by 0 says nothing.
    let cut = |value: &f64| if value.is_nan() { 0.0 } else { value.clamp(-MOST, MOST) as f32 };
    rows.extend(values.iter().map(cut));
}
