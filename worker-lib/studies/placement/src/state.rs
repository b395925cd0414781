//! What a placer sees.

use super::failure::Failures;
use super::simulation::{Scenario, unsaved};
use super::{Cluster, Job, Options};

/// A GPU at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gpu {
    /// The job that has it; it may be failed at the same time, if its job waits for the repair.
    pub owner: Option<usize>,
    /// When it will be repaired, if it is failed. In seconds.
    pub failed_until: Option<f64>,
    /// Failures since the begin.
    pub failures: u32,
    /// When the last of them ended, in seconds; 0 before the first.
    pub up_since: f64,
}

impl Gpu {
    /// Whether a job can be placed on it.
    pub fn is_free(&self) -> bool {
        self.owner.is_none() && self.failed_until.is_none()
    }
}

/// A time in which a job has its GPUs, from a start to a failure, a suspension or its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Its GPUs, in the order in which they were picked.
    pub gpus: Vec<usize>,
    /// In seconds.
    pub begin: f64,
    /// Seconds after the begin at which work begins.
    pub overhead: f64,
    /// Work a second.
    pub speed: f64,
    /// Seconds of work between two checkpoints; may be infinite.
    pub interval: f64,
    /// Seconds that a checkpoint takes.
    pub cost: f64,
    /// When the job is complete if nothing fails, in seconds.
    pub end: f64,
}

/// What a job does.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// It has not arrived. Placers must not look at it.
    Ahead,
    /// It is in the queue.
    Waiting,
    /// It has its GPUs.
    Running(Run),
    /// It has its GPUs, and waits until they are all repaired.
    Stopped(Vec<usize>),
    /// It is done.
    Complete,
}

/// A job at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// What it does.
    pub phase: Phase,
    /// Seconds of work that were left of it at the begin of its present run, or are if it does not run; on as many GPUs
    /// as it asks for.
    pub left: f64,
    /// GPU-seconds that it has had, its present run not included.
    pub service: f64,
    /// Times that it was started.
    pub runs: u32,
    /// Failures that have stopped it.
    pub failures: u32,
    /// When it first started, in seconds.
    pub started: Option<f64>,
    /// When it was complete, in seconds.
    pub completed: Option<f64>,
}

/// A cluster, its jobs and its queue at a moment. All that a placer may use, hand-written or learned; what is to come
/// (failures, jobs that are [`Phase::Ahead`]) is not in it, or not to be looked at.
#[derive(Clone, Debug)]
pub struct State<'a> {
    /// Seconds since the begin.
    pub time: f64,
    /// By id.
    pub gpus: Vec<Gpu>,
    /// By job.
    pub progress: Vec<Progress>,
    /// Jobs that have arrived and have no GPUs, in the order in which they are looked at.
    pub queue: Vec<usize>,
    /// Jobs that have their GPUs, running or stopped, in no order.
    pub active: Vec<usize>,
    /// GPUs for which [`Gpu::is_free`].
    pub free: usize,
    scenario: &'a Scenario,
}

impl<'a> State<'a> {
    pub(super) fn new(scenario: &'a Scenario) -> Self {
        let gpu = Gpu { owner: None, failed_until: None, failures: 0, up_since: 0.0 };
        let progress = |job: &Job| Progress {
            phase: Phase::Ahead,
            left: job.duration(),
            service: 0.0,
            runs: 0,
            failures: 0,
            started: None,
            completed: None,
        };
        let gpus = scenario.cluster().gpus();
        Self {
            time: 0.0,
            gpus: vec![gpu; gpus],
            progress: scenario.jobs().iter().map(progress).collect(),
            queue: Vec::new(),
            active: Vec::new(),
            free: gpus,
            scenario,
        }
    }

    /// Nodes, and which GPU is where.
    pub fn cluster(&self) -> &'a Cluster {
        self.scenario.cluster()
    }

    /// A job that has arrived.
    pub fn job(&self, job: usize) -> &'a Job {
        &self.scenario.jobs()[job]
    }

    /// The rules.
    pub fn options(&self) -> &'a Options {
        self.scenario.options()
    }

    fn failures(&self) -> &'a Failures {
        self.scenario.failures()
    }

    /// Ids of the free GPUs, ascending.
    pub fn free_gpus(&self) -> impl Iterator<Item = usize> {
        self.gpus.iter().enumerate().filter(|(_, gpu)| gpu.is_free()).map(|(id, _)| id)
    }

    /// Estimated failures a second of a GPU, by all that has been seen so far.
    pub fn rate(&self, gpu: usize) -> f64 {
        self.failures().estimate(gpu, self.time, self.gpus[gpu].failures)
    }

    /// Years since a GPU was new.
    pub fn age(&self, gpu: usize) -> f64 {
        self.failures().ages()[gpu] + self.time / super::failure::YEAR
    }

    /// For each GPU whether it can not be picked: the patent's vector S.
    pub fn unavailable(&self) -> impl Iterator<Item = bool> {
        self.gpus.iter().map(|gpu| !gpu.is_free())
    }

    /// GPUs that a job has; none if it is in the queue.
    pub fn gpus_of(&self, job: usize) -> &[usize] {
        match &self.progress[job].phase {
            Phase::Running(Run { gpus, .. }) | Phase::Stopped(gpus) => gpus,
            _ => &[],
        }
    }

    /// Whether a job has its GPUs and is not stopped.
    pub fn is_running(&self, job: usize) -> bool {
        matches!(self.progress[job].phase, Phase::Running(_))
    }

    /// GPU-seconds that a job has had until now: its attained service.
    pub fn service(&self, job: usize) -> f64 {
        let progress = &self.progress[job];
        let running = match &progress.phase {
            Phase::Running(run) => (self.time - run.begin) * run.gpus.len() as f64,
            _ => 0.0,
        };
        progress.service + running
    }

    /// Seconds from now until a job is complete if nothing fails; on `gpus` GPUs, if it is in the queue, without what
    /// checkpoints take.
    pub fn seconds_left(&self, job: usize, gpus: usize) -> f64 {
        let progress = &self.progress[job];
        match &progress.phase {
            Phase::Running(run) => run.end - self.time,
            _ => self.overhead(job) + progress.left / self.job(job).speed(gpus),
        }
    }

    /// Seconds of work that a job would lose if one of its GPUs failed now; 0 if it does not run.
    pub fn unsaved(&self, job: usize) -> f64 {
        let progress = &self.progress[job];
        match &progress.phase {
            Phase::Running(run) => unsaved(run, progress.left / run.speed, self.time - run.begin),
            _ => 0.0,
        }
    }

    /// Seconds until a job works if it is started now.
    pub fn overhead(&self, job: usize) -> f64 {
        if self.progress[job].runs == 0 { 0.0 } else { self.options().restart }
    }

    /// How fast a job would be on these GPUs, where 1 is as fast as it is on what it asks for.
    pub fn speed(&self, job: usize, gpus: &[usize]) -> f64 {
        let speed = self.job(job).speed(gpus.len());
        let slowdown = self.options().spread_slowdown;
        if slowdown == 1.0 || nodes_of(self.cluster(), gpus) == self.cluster().nodes_needed(gpus.len()) {
            speed
        } else {
            speed / slowdown
        }
    }
}

/// Nodes that hold one of these GPUs.
fn nodes_of(cluster: &Cluster, gpus: &[usize]) -> usize {
    let mut nodes: Vec<_> = gpus.iter().map(|gpu| cluster.node_of(*gpu)).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes.len()
}
