//! Decisions for all jobs of a cluster at one moment: which jobs to suspend, and which to start or resume on which
//! GPUs.

use serde::{Deserialize, Serialize};

use super::Job;
use super::agent::{Agent, Given, Use};
use super::failure::FailureDraw;
use super::simulation::{Event, Scenario, Simulation, checkpoints};
use super::state::{Phase, Run, State};
use iswitch_learn::algorithms::streams::Purpose;
use iswitch_study::StudyError;
use iswitch_study::error::{above_zero, at_least_zero};

/// Minimum estimate of a job's duration if the request does not specify one, in seconds: one day. The estimate is the
/// larger of this value and twice the sum of the job's completed work and the time since its current start.
const DURATION_S: f64 = 86_400.0;

/// Job in a request. Times are in seconds.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct JobState {
    /// Name of the job, unique within a request.
    pub id: String,
    /// Number of GPUs that the job needs.
    pub gpus: usize,
    /// Total work of the job; estimated if absent.
    pub duration: Option<f64>,
    /// Work that the job has completed and saved.
    #[serde(default)]
    pub done: f64,
    /// GPUs on which the job runs; empty if it waits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<usize>,
    /// Time since the job started on the GPUs in `on`.
    #[serde(default)]
    pub running_for: f64,
    /// Number of starts, including the current one.
    #[serde(default)]
    pub starts: u32,
    /// Time until the job completes if no GPU fails. Only for a job that runs; estimated from the other fields if
    /// absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<f64>,
}

/// Start of a job, or its resumption after a suspension or failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Start {
    /// Name of the job.
    pub job: String,
    /// GPUs of the job.
    pub gpus: Vec<usize>,
}

/// Decisions in the order in which they must be carried out: all suspensions, then all starts. A job may appear in both
/// lists: it is suspended, which saves its work, and then restarted at once.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Decisions {
    /// Names of the jobs to suspend.
    pub suspend: Vec<String>,
    /// Jobs to start.
    pub start: Vec<Start>,
    /// Number of seconds, at least 1, after which the policy must be consulted again even if nothing happens before
    /// then; absent if it decides only after events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub look_again_s: Option<f64>,
}

impl JobState {
    fn check(&self, at: usize, most: usize) -> Result<Job, StudyError> {
        let name = |field: &str| format!("jobs[{at}].{field}");
        if !(1..=most).contains(&self.gpus) {
            let expected = format!("1 to {most}, the number of GPUs in the cluster");
            return Err(StudyError::field(name("gpus"), self.gpus, expected));
        }
        let done = at_least_zero(name("done"), self.done, "seconds")?;
        let running = at_least_zero(name("running_for"), self.running_for, "seconds")?;
        let duration = match self.duration {
            Some(duration) => above_zero(name("duration"), duration, "seconds")?,
            None => DURATION_S.max(2.0 * (done + running)),
        };
        match self.left {
            Some(left) if self.on.is_empty() => {
                return Err(StudyError::field(name("left"), left, "no value, because the job does not run"));
            }
            Some(left) => at_least_zero(name("left"), left, "seconds")?,
            None => 0.0,
        };
        if !self.on.is_empty() && self.on.len() != self.gpus {
            return Err(StudyError::field(name("on"), self.on.len(), format!("{} GPUs or none", self.gpus)));
        }
        // The remaining work of a job that has exceeded its duration is unknown; at least a minute is assumed.
        Job::new(0.0, self.gpus, duration.max(done + running + 60.0))
    }
}

impl Agent {
    /// Returns all decisions of the policy for the jobs of a cluster.
    pub(super) fn decide(&mut self, given: &[Given], jobs: &[JobState]) -> Result<Decisions, StudyError> {
        let most = self.cluster.gpus();
        let checked = jobs.iter().enumerate().map(|(at, job)| job.check(at, most));
        let checked = checked.collect::<Result<Vec<_>, _>>()?;
        check_owners(given, jobs)?;
        let failures = self.failures_of(given)?;
        let scenario = Scenario::new(self.cluster.clone(), checked, failures, self.options)?;
        let mut decisions = Decisions::default();
        let mut record = |state: &State<'_>, event: Event| match event {
            Event::Suspend(job) => decisions.suspend.push(jobs[job].id.clone()),
            Event::Start(job) => {
                decisions.start.push(Start { job: jobs[job].id.clone(), gpus: state.gpus_of(job).to_vec() });
            }
            _ => {}
        };
        let draw = FailureDraw::new(scenario.failures(), 0, Purpose::Failures, 0);
        let simulation = Simulation::new(&scenario, draw, Some(&mut record));
        let look_again_s = simulation.decide(|state| prepare(state, given, jobs), self.placer.as_mut())?;
        Ok(Decisions { look_again_s, ..decisions })
    }
}

/// Checks that job names are distinct, that no GPU runs two jobs, and that every GPU reported as busy runs one of the
/// jobs.
fn check_owners(given: &[Given], jobs: &[JobState]) -> Result<(), StudyError> {
    let mut names: Vec<&str> = jobs.iter().map(|job| job.id.as_str()).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(StudyError::field("id of a job", pair[0], "a different name for each job"));
    }
    let mut owned = vec![false; given.len()];
    for (at, job) in jobs.iter().enumerate() {
        for gpu in &job.on {
            let is_usable = given.get(*gpu).is_some_and(|it| matches!(it.used, Use::Busy | Use::Draining));
            if !is_usable || std::mem::replace(&mut owned[*gpu], true) {
                let expected = "the index of a busy or draining GPU that belongs to no other job";
                return Err(StudyError::field(format!("jobs[{at}].on"), gpu, expected));
            }
        }
    }
    match given.iter().zip(&owned).position(|(it, owned)| it.used == Use::Busy && !owned) {
        Some(gpu) => {
            Err(StudyError::field(format!("gpus[{gpu}].state"), "busy", "busy only if a job runs on it"))
        }
        None => Ok(()),
    }
}

/// Sets up the state of a cluster at time 0 from the GPUs and jobs of a request.
fn prepare(state: &mut State<'_>, given: &[Given], jobs: &[JobState]) {
    for (gpu, it) in given.iter().enumerate() {
        match it.used {
            Use::Failed => state.gpus[gpu].failed_until = Some(it.left),
            // A draining GPU does not become free when its job releases it.
            Use::Draining => state.gpus[gpu].failed_until = Some(f64::INFINITY),
            Use::Free | Use::Busy => {}
        }
    }
    for (at, job) in jobs.iter().enumerate() {
        state.progress[at].left = state.job(at).duration() - job.done;
        state.progress[at].runs = job.starts.max(u32::from(!job.on.is_empty()));
        if job.on.is_empty() {
            state.progress[at].phase = Phase::Waiting;
            state.queue.push(at);
            continue;
        }
        job.on.iter().for_each(|gpu| state.gpus[*gpu].owner = Some(at));
        state.active.push(at);
        let (interval, cost) = state.options().checkpoint.interval(state.rate_of(&job.on));
        let speed = state.speed(at, &job.on);
        let overhead = if state.progress[at].runs > 1 { state.restart(at) } else { 0.0 };
        let work = state.progress[at].left / speed;
        let begin = -job.running_for;
        let estimate = (begin + overhead + work + checkpoints(work, interval) * cost).max(0.0);
        let end = job.left.unwrap_or(estimate);
        let gpus = job.on.clone();
        state.progress[at].phase = Phase::Running(Run { gpus, begin, overhead, speed, interval, cost, end });
    }
    state.free = state.free_gpus().count();
}
