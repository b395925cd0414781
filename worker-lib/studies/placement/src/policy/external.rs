//! External placement policies: programs that answer each event with one line of JSON.
//!
//! The first line is the greeting of the run, `{"describe": {"version": 1, "study": "placement", "policy": "mine",
//! "seed": 1, "gpus": 64, ...}}`, and is answered with `{}`. Its further fields are:
//!
//! | field | content |
//! |---|---|
//! | `gpus`, `nodes` | number of GPUs, and of nodes |
//! | `node_of`, `rack_of`, `switch_of` | node, rack and switch of each GPU, by GPU |
//! | `restart_s`, `restart_per_gpu_s` | duration of a restart, and what each GPU of the job adds to it |
//! | `checkpoint_interval_s` | work between two checkpoints; null without checkpoints or with Young/Daly's intervals |
//! | `checkpoint_cost_s` | time to write a checkpoint; null without checkpoints |
//! | `repair_s` | time to repair a GPU |
//! | `spares` | number of GPUs that only jobs stopped by a failure may use |
//! | `spread_slowdown` | factor by which a job takes longer on more nodes than it needs |
//!
//! All further requests, `{"gpus": [...], "jobs": [...]}`, and their answers, `{"suspend": ["3"], "start": [{"job":
//! "7", "gpus": [4, 5]}]}`, have the form that [`agent`](crate::agent) describes. A request follows each event after
//! which a job waits or runs. It contains all fields of each GPU, with the estimates of failure rates that the policies
//! of this crate use, and all fields of each job that waits or runs, in order of arrival. A GPU that works but is held
//! by a job that waits for the repair of another GPU is `draining`; such a job is not listed. The program alone decides
//! which jobs start: the queueing rule (`--queueing`) does not apply. If an answer contains `look_again_s`, which is at
//! least 1, the program is asked again after this number of seconds if no event occurs before then.

use serde::{Deserialize, Serialize};

use super::Placer;
use crate::cluster::Level;
use crate::decide::JobState;
use crate::failure::YEAR;
use crate::options::Checkpoint;
use crate::shared_rates::SharedRates;
use crate::simulation::Scenario;
use crate::state::{Phase, Run, State};
use iswitch_study::StudyError;
use iswitch_study::error::at_least;
use iswitch_study::external::{External, Program};

/// Name of the study in greetings.
pub const STUDY: &str = "placement";
/// Minimum of `look_again_s`, in seconds.
pub const LOOK_AGAIN_MIN_S: f64 = 1.0;

/// Maximum length of an answer for each GPU, in bytes: the GPU's id, and the ids of a job to suspend and one to start.
const GPU_LEN_BYTES: usize = 128;
const REST_LEN_BYTES: usize = 4096;
const FORM: &str = r#"{"suspend": [job, ...], "start": [{"job": job, "gpus": [gpu, ...]}, ...]}"#;

#[derive(Serialize)]
struct Setting {
    gpus: usize,
    nodes: usize,
    node_of: Vec<usize>,
    rack_of: Vec<usize>,
    switch_of: Vec<usize>,
    restart_s: f64,
    restart_per_gpu_s: f64,
    checkpoint_interval_s: Option<f64>,
    checkpoint_cost_s: Option<f64>,
    repair_s: f64,
    spares: usize,
    spread_slowdown: f64,
}

#[derive(Serialize)]
struct Request {
    gpus: Vec<GpuEntry>,
    jobs: Vec<JobState>,
}

#[derive(Serialize)]
struct GpuEntry {
    state: &'static str,
    rate: f64,
    #[serde(flatten)]
    shared: SharedRates,
    age: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    suspend: Vec<String>,
    start: Vec<StartEntry>,
    look_again_s: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StartEntry {
    job: String,
    gpus: Vec<i64>,
}

/// Placer whose program makes all decisions.
#[derive(Debug)]
pub struct ExternalPlacer {
    program: Program,
    /// Jobs to start at this event, and their GPUs.
    starts: Vec<(usize, Vec<usize>)>,
    look_again: Option<f64>,
    failure: Option<StudyError>,
}

impl ExternalPlacer {
    /// Starts the program of a policy for one run of a scenario. `seed` is the seed of the run.
    ///
    /// # Errors
    /// Fails if the program does not start or does not accept the greeting.
    pub fn start(external: &External, scenario: &Scenario, seed: u64) -> Result<Self, StudyError> {
        let answer_len = scenario.cluster().gpus() * GPU_LEN_BYTES + REST_LEN_BYTES;
        let program = external.start(STUDY, seed, &Setting::of(scenario), answer_len)?;
        Ok(Self { program, starts: Vec::new(), look_again: None, failure: None })
    }

    /// Asks for the decisions after an event, and returns the jobs to suspend.
    fn ask(&mut self, state: &State<'_>) -> Result<Vec<usize>, StudyError> {
        let answer: Answer = self.program.ask(&Request::of(state), FORM)?;
        let checked = check(state, &answer);
        let (suspended, starts) = checked.map_err(|error| self.program.error(&error))?;
        (self.starts, self.look_again) = (starts, answer.look_again_s);
        Ok(suspended)
    }

    fn gpus_of(&self, job: usize) -> Option<&[usize]> {
        self.starts.iter().find(|(other, _)| *other == job).map(|(_, gpus)| gpus.as_slice())
    }
}

impl Placer for ExternalPlacer {
    fn suspend(&mut self, state: &State<'_>, jobs: &mut Vec<usize>) {
        self.starts.clear();
        match self.ask(state) {
            Ok(suspended) => jobs.extend(suspended),
            Err(error) => self.failure = Some(error),
        }
    }

    fn order(&mut self, _state: &State<'_>, queue: &mut [usize]) {
        // The jobs to start come first, in the order of the answer, so that no other job is considered before them.
        let rank = |job: &usize| self.starts.iter().position(|(other, _)| other == job);
        queue.sort_by_key(|job| rank(job).unwrap_or(usize::MAX));
    }

    fn size(&mut self, _state: &State<'_>, job: usize) -> usize {
        self.gpus_of(job).map_or(0, <[usize]>::len)
    }

    fn place(&mut self, _state: &State<'_>, job: usize, _size: usize, picks: &mut Vec<usize>) {
        picks.extend_from_slice(self.gpus_of(job).unwrap_or_default());
    }

    fn look_again(&mut self, _state: &State<'_>) -> Option<f64> {
        self.look_again
    }

    fn failure(&mut self) -> Option<StudyError> {
        self.failure.take()
    }
}

impl Setting {
    fn of(scenario: &Scenario) -> Self {
        let (cluster, options) = (scenario.cluster(), scenario.options());
        let (interval, cost) = match options.checkpoint {
            Checkpoint::None => (None, None),
            Checkpoint::Periodic { interval, cost } => (Some(interval), Some(cost)),
            Checkpoint::YoungDaly { cost } => (None, Some(cost)),
        };
        let gpus = cluster.gpus();
        let domains = |level| (0..gpus).map(|gpu| cluster.domain_of(level, gpu)).collect();
        Self {
            gpus,
            nodes: cluster.nodes().len(),
            node_of: domains(Level::Node),
            rack_of: domains(Level::Rack),
            switch_of: domains(Level::Switch),
            restart_s: options.restart,
            restart_per_gpu_s: options.restart_per_gpu,
            checkpoint_interval_s: interval,
            checkpoint_cost_s: cost,
            repair_s: options.repair,
            spares: options.spares,
            spread_slowdown: options.spread_slowdown,
        }
    }
}

impl Request {
    fn of(state: &State<'_>) -> Self {
        let gpus = state.gpus.iter().enumerate().map(|(id, gpu)| {
            let (name, left) = match (gpu.failed_until, gpu.owner) {
                (Some(until), _) => ("failed", Some(until - state.time)),
                (None, None) => ("free", None),
                (None, Some(job)) if state.is_running(job) => ("busy", Some(state.seconds_left(job, 0))),
                (None, Some(_)) => ("draining", None),
            };
            let left = left.filter(|left| left.is_finite()).map(|left| left.max(0.0));
            let at = |level| Some(state.rate_at(level, id) * YEAR).filter(|rate| *rate > 0.0);
            let shared = SharedRates::of(at);
            GpuEntry { state: name, rate: state.rate(id) * YEAR, shared, age: state.age(id), left }
        });
        let running = state.active.iter().filter(|job| state.is_running(**job));
        let mut jobs: Vec<usize> = running.chain(&state.queue).copied().collect();
        // Jobs are numbered in order of arrival.
        jobs.sort_unstable();
        Self { gpus: gpus.collect(), jobs: jobs.into_iter().map(|job| job_state(state, job)).collect() }
    }
}

fn job_state(state: &State<'_>, number: usize) -> JobState {
    let (job, progress) = (state.job(number), &state.progress[number]);
    let (on, running_for, left) = match &progress.phase {
        Phase::Running(Run { gpus, begin, .. }) => {
            (gpus.clone(), state.time - begin, Some(state.seconds_left(number, 0)))
        }
        _ => (Vec::new(), 0.0, None),
    };
    JobState {
        id: number.to_string(),
        gpus: job.gpus(),
        duration: Some(job.duration()),
        done: job.duration() - progress.left,
        on,
        running_for,
        starts: progress.runs,
        left: left.map(|left| left.max(0.0)),
    }
}

/// Jobs to suspend, and jobs to start with their GPUs.
type Checked = (Vec<usize>, Vec<(usize, Vec<usize>)>);

/// Checks an answer, and that its suspensions and then its starts can be carried out in this state.
fn check(state: &State<'_>, answer: &Answer) -> Result<Checked, StudyError> {
    if let Some(seconds) = answer.look_again_s {
        at_least("look_again_s", seconds, LOOK_AGAIN_MIN_S, "seconds")?;
    }
    let mut free: Vec<bool> = state.unavailable().map(|is_taken| !is_taken).collect();
    let mut waiting = state.queue.clone();
    let mut suspended = Vec::new();
    for (at, id) in answer.suspend.iter().enumerate() {
        let running = state.active.iter().find(|job| job.to_string() == *id && state.is_running(**job));
        let running = running.filter(|job| !suspended.contains(*job));
        let expected = "the id of a running job, listed only once";
        let job = *running.ok_or_else(|| StudyError::field(format!("suspend[{at}]"), id, expected))?;
        state.gpus_of(job).iter().for_each(|gpu| free[*gpu] = true);
        suspended.push(job);
        waiting.push(job);
    }
    let mut starts = Vec::new();
    let mut left = free.iter().filter(|is_free| **is_free).count();
    for (at, StartEntry { job: id, gpus }) in answer.start.iter().enumerate() {
        let found = waiting.iter().position(|job| job.to_string() == *id);
        let expected = "the id of a waiting or suspended job, listed only once";
        let found = found.ok_or_else(|| StudyError::field(format!("start[{at}].job"), id, expected))?;
        let job = waiting.swap_remove(found);
        let wanted = state.job(job).gpus();
        if gpus.len() != wanted {
            let expected = format!("{wanted}, the number of GPUs of job {job}");
            return Err(StudyError::field(format!("length of start[{at}].gpus"), gpus.len(), expected));
        }
        let picks = take(&mut free, gpus, at)?;
        let spares = if state.progress[job].failures == 0 { state.options().spares } else { 0 };
        left -= picks.len();
        if left < spares {
            let expected = format!("at least {spares}, the spares, because no failure has stopped job {job}");
            return Err(StudyError::field(format!("number of free GPUs after start[{at}]"), left, expected));
        }
        starts.push((job, picks));
    }
    Ok((suspended, starts))
}

/// Removes the GPUs of the start with index `at` from the free GPUs.
fn take(free: &mut [bool], gpus: &[i64], at: usize) -> Result<Vec<usize>, StudyError> {
    let mut picks = Vec::with_capacity(gpus.len());
    for (number, id) in gpus.iter().enumerate() {
        let known = usize::try_from(*id).ok().filter(|gpu| *gpu < free.len());
        let Some(gpu) = known.filter(|gpu| std::mem::take(&mut free[*gpu])) else {
            let expected = format!("a free GPU from 0 to {}, listed only once", free.len() - 1);
            return Err(StudyError::field(format!("start[{at}].gpus[{number}]"), id, expected));
        };
        picks.push(gpu);
    }
    Ok(picks)
}
