//! State of the cluster that a placer sees.

use super::cluster::Level;
use super::failure::Failures;
use super::simulation::{Scenario, unsaved};
use super::{Cluster, Job, Options};

/// State of a GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gpu {
    /// Job that holds the GPU. A failed GPU also has an owner if a job waits for its repair.
    pub owner: Option<usize>,
    /// Time at which the GPU will be repaired, in seconds; `None` if it works.
    pub failed_until: Option<f64>,
    /// Number of failures since the start of the simulation, including failures of domains that contain the GPU.
    pub failures: u32,
    /// Time at which the GPU last became usable, in seconds; 0 before the first failure if no earlier repair is known.
    pub up_since: f64,
    /// Number of failed components that include the GPU: the GPU itself and its failure domains.
    pub down: u32,
}

impl Gpu {
    /// Returns whether a job can be placed on the GPU.
    pub fn is_free(&self) -> bool {
        self.owner.is_none() && self.failed_until.is_none()
    }
}

/// Run of a job: the time during which the job holds its GPUs, from a start to a failure, a suspension or its
/// completion.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// GPUs of the job, in the order in which they were picked.
    pub gpus: Vec<usize>,
    /// Start of the run, in seconds.
    pub begin: f64,
    /// Time from the start of the run to the start of work, in seconds.
    pub overhead: f64,
    /// Speed of the job, relative to its speed on the number of GPUs that it asks for.
    pub speed: f64,
    /// Work between two checkpoints, in seconds; may be infinite.
    pub interval: f64,
    /// Time to write a checkpoint, in seconds.
    pub cost: f64,
    /// Time at which the job completes if no failure occurs, in seconds.
    pub end: f64,
}

/// Phase of a job.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// The job has not arrived. Placers must not use any information about it.
    Ahead,
    /// The job is in the queue.
    Waiting,
    /// The job runs on its GPUs.
    Running(Run),
    /// The job keeps its GPUs and waits until they are all repaired.
    Stopped(Vec<usize>),
    /// The job is complete.
    Complete,
}

/// Progress of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Current phase.
    pub phase: Phase,
    /// Remaining work at the start of the current run, or now if the job is not running. The work is measured in
    /// seconds on the number of GPUs that the job asks for.
    pub left: f64,
    /// GPU-seconds that the job has used, excluding its current run.
    pub service: f64,
    /// Number of starts.
    pub runs: u32,
    /// Number of failures that have stopped the job.
    pub failures: u32,
    /// Time of the first start, in seconds.
    pub started: Option<f64>,
    /// Time of completion, in seconds.
    pub completed: Option<f64>,
}

/// State of a cluster, its jobs and its queue: everything that a hand-written or learned placer may use. It contains no
/// future failures. It does contain jobs that have not arrived ([`Phase::Ahead`]), but placers must not use them.
#[derive(Clone, Debug)]
pub struct State<'a> {
    /// Time since the start of the simulation, in seconds.
    pub time: f64,
    /// State of each GPU, by id.
    pub gpus: Vec<Gpu>,
    /// Progress of each job, by the number of the job.
    pub progress: Vec<Progress>,
    /// Jobs that have arrived and hold no GPUs, in the order in which the simulation considers them.
    pub queue: Vec<usize>,
    /// Jobs that hold GPUs, running or stopped, in no particular order.
    pub active: Vec<usize>,
    /// Number of free GPUs; see [`Gpu::is_free`].
    pub free: usize,
    /// Number of failures of each component since the start of the simulation; see [`Failures::components`].
    pub seen: Vec<u32>,
    scenario: &'a Scenario,
}

impl<'a> State<'a> {
    pub(super) fn new(scenario: &'a Scenario) -> Self {
        let failures = scenario.failures();
        let gpu = |gpu: usize| {
            let up_since = failures.last_repair(gpu);
            Gpu { owner: None, failed_until: None, failures: 0, up_since, down: 0 }
        };
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
            gpus: (0..gpus).map(gpu).collect(),
            progress: scenario.jobs().iter().map(progress).collect(),
            queue: Vec::new(),
            active: Vec::new(),
            free: gpus,
            seen: vec![0; failures.components()],
            scenario,
        }
    }

    /// Returns the cluster.
    pub fn cluster(&self) -> &'a Cluster {
        self.scenario.cluster()
    }

    /// Returns a job, which must have arrived.
    pub fn job(&self, job: usize) -> &'a Job {
        &self.scenario.jobs()[job]
    }

    /// Returns the options of the simulation.
    pub fn options(&self) -> &'a Options {
        self.scenario.options()
    }

    /// Returns the failures of the GPUs, together with what placers know about them.
    pub fn failures(&self) -> &'a Failures {
        self.scenario.failures()
    }

    /// Returns the ids of the free GPUs in ascending order.
    pub fn free_gpus(&self) -> impl Iterator<Item = usize> {
        self.gpus.iter().enumerate().filter(|(_, gpu)| gpu.is_free()).map(|(id, _)| id)
    }

    /// Returns the estimated failure rate of a GPU, in failures per second, given all failures observed so far. It
    /// includes the rates of the failure domains that contain the GPU.
    pub fn rate(&self, gpu: usize) -> f64 {
        let failures = self.failures();
        let domains =
            failures.domains_of(gpu).iter().map(|domain| self.component_rate(failures.gpus() + domain));
        self.component_rate(gpu) + domains.sum::<f64>()
    }

    /// Returns the estimated failure rate of the node, the rack or the switch that contains a GPU, in failures per
    /// second, given all failures observed so far; 0 if domains of this level do not fail on their own.
    pub fn rate_at(&self, level: Level, gpu: usize) -> f64 {
        let failures = self.failures();
        let domains = failures.domains_of(gpu).iter();
        let of_level = domains.filter(|domain| failures.domains()[**domain].level() == Some(level));
        of_level.map(|domain| self.component_rate(failures.gpus() + domain)).sum()
    }

    /// Returns the estimated rate at which at least one of these GPUs fails, in failures per second. A failure domain
    /// that contains several of these GPUs counts once.
    pub fn rate_of(&self, gpus: &[usize]) -> f64 {
        let failures = self.failures();
        let own: f64 = gpus.iter().map(|gpu| self.component_rate(*gpu)).sum();
        if failures.domains().is_empty() {
            return own;
        }
        let mut domains: Vec<usize> =
            gpus.iter().flat_map(|gpu| failures.domains_of(*gpu)).copied().collect();
        domains.sort_unstable();
        domains.dedup();
        own + domains.iter().map(|domain| self.component_rate(failures.gpus() + domain)).sum::<f64>()
    }

    fn component_rate(&self, component: usize) -> f64 {
        self.failures().estimate(component, self.time, self.seen[component])
    }

    /// Returns the age of a GPU, in years.
    pub fn age(&self, gpu: usize) -> f64 {
        self.failures().ages()[gpu] + self.time / super::failure::YEAR
    }

    /// Returns, for each GPU, whether it cannot be picked: the patent's vector S.
    pub fn unavailable(&self) -> impl Iterator<Item = bool> {
        self.gpus.iter().map(|gpu| !gpu.is_free())
    }

    /// Returns the GPUs that a job holds; empty unless the job is running or stopped.
    pub fn gpus_of(&self, job: usize) -> &[usize] {
        match &self.progress[job].phase {
            Phase::Running(Run { gpus, .. }) | Phase::Stopped(gpus) => gpus,
            _ => &[],
        }
    }

    /// Returns whether a job holds its GPUs and is not stopped.
    pub fn is_running(&self, job: usize) -> bool {
        matches!(self.progress[job].phase, Phase::Running(_))
    }

    /// Returns the GPU-seconds that a job has used until now: its attained service.
    pub fn service(&self, job: usize) -> f64 {
        let progress = &self.progress[job];
        let running = match &progress.phase {
            Phase::Running(run) => (self.time - run.begin) * run.gpus.len() as f64,
            _ => 0.0,
        };
        progress.service + running
    }

    /// Returns the seconds from now until a job completes if no failure occurs. For a job in the queue, the result
    /// assumes that it starts now on `gpus` GPUs and excludes the time for checkpoints.
    pub fn seconds_left(&self, job: usize, gpus: usize) -> f64 {
        let progress = &self.progress[job];
        match &progress.phase {
            Phase::Running(run) => run.end - self.time,
            _ => self.overhead(job) + progress.left / self.job(job).speed(gpus),
        }
    }

    /// Returns the work, in seconds, that a job would lose if one of its GPUs failed now; 0 if the job is not running.
    pub fn unsaved(&self, job: usize) -> f64 {
        let progress = &self.progress[job];
        match &progress.phase {
            Phase::Running(run) => unsaved(run, progress.left / run.speed, self.time - run.begin),
            _ => 0.0,
        }
    }

    /// Returns the seconds that a job would spend on a restart before it begins to work, if it were started now.
    pub fn overhead(&self, job: usize) -> f64 {
        if self.progress[job].runs == 0 { 0.0 } else { self.restart(job) }
    }

    /// Returns the restart time of a job, in seconds.
    pub fn restart(&self, job: usize) -> f64 {
        self.options().restart_of(self.job(job).gpus())
    }

    /// Returns the speed of a job on `gpus`. A speed of 1 is the job's speed on the number of GPUs that it asks for if
    /// it does not use more nodes than it needs.
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

/// Returns the number of nodes that hold at least one of these GPUs.
fn nodes_of(cluster: &Cluster, gpus: &[usize]) -> usize {
    let mut nodes: Vec<_> = gpus.iter().map(|gpu| cluster.node_of(*gpu)).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes.len()
}
