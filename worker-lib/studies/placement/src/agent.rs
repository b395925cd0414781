//! Placement as a service. Each request from a scheduler is one line of JSON. It asks either on which GPUs to run a
//! job, or which jobs of the cluster to suspend and which to start.
//!
//! | request | answer |
//! |---|---|
//! | `{"gpus": [{"state": "free"}, ...], "job": {"gpus": 2, "duration": 60}, "id": 7}` | `{"gpus": [4, 5], "id": 7}` |
//! | `{"gpus": [...], "jobs": [...]}` | `{"suspend": ["a"], "start": [{"job": "b", "gpus": [1, 2]}]}`; see [`JobState`] and [`Decisions`] |
//! | `{"describe": true}` or `{"describe": GREETING}` | `{"policy": "reliable", "gpus": 64, "nodes": 8}` |
//! | anything else | `{"error": "..."}` |
//!
//! In a request, `gpus` has one entry for each GPU in the cluster:
//!
//! | field | content |
//! |---|---|
//! | `state` | `free`, `busy`, `failed`, or `draining` if it works but gets no further jobs |
//! | `id` | 0 to the number of GPUs minus 1; by default the index in the list |
//! | `rate` | expected failures per year, including those of its node, rack and switch; by default the agent's own value |
//! | `node_rate`, `rack_rate`, `switch_rate` | part of `rate` that is due to failures of the whole node, rack or switch; 0 by default, equal for all GPUs of the node, rack or switch |
//! | `age` | age in years; by default the agent's own value |
//! | `node` | node of the GPU according to the scheduler; the request fails if the agent's cluster differs |
//! | `left` | seconds until the GPU is free or repaired; unknown by default |
//!
//! An empty list of GPUs in an answer means that the job should not start now, either because too few GPUs are free
//! or because the policy waits for other GPUs. The greeting is the one that an [external
//! policy](super::policy::external) receives, so the agent can serve as the program of such a policy. The `id` of a
//! request is optional and is returned unchanged. Between requests, the agent keeps no state except the policy's
//! random generator: once the scheduler has assigned GPUs to a job, its next request must report them as busy.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::decide::{Decisions, JobState};
use super::failure::{RATE_MAX, YEAR};
use super::policy::Placer;
use super::policy::external::STUDY;
use super::shared_rates::{self, SharedRates};
use super::simulation::Scenario;
use super::state::{Gpu, Phase, Run, State};
use super::{Cluster, Failures, Job, Options};
use iswitch_study::StudyError;
use iswitch_study::error::{above_zero, at_least_zero};
use iswitch_study::external::Describe;

/// Maximum length of the entry for one GPU in a request, in bytes.
const ENTRY_LEN_BYTES: usize = 320;
/// Maximum length of a request without its GPU entries, in bytes: enough for several thousand jobs.
const REST_LEN_BYTES: usize = 1 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    gpus: Option<Vec<GpuEntry>>,
    job: Option<JobEntry>,
    jobs: Option<Vec<JobState>>,
    #[serde(default)]
    describe: Describe,
    id: Option<Json>,
}

/// Entry for one GPU in a request. Its number types are wider than the valid ranges, so that the error for an
/// out-of-range value can name the field.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GpuEntry {
    state: String,
    id: Option<i64>,
    rate: Option<f64>,
    node_rate: Option<f64>,
    rack_rate: Option<f64>,
    switch_rate: Option<f64>,
    age: Option<f64>,
    node: Option<i64>,
    left: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JobEntry {
    gpus: i64,
    duration: f64,
}

#[derive(Serialize)]
struct Description<'a> {
    policy: &'a str,
    gpus: usize,
    nodes: usize,
}

#[derive(Serialize)]
struct Answer {
    gpus: Vec<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Json>,
}

#[derive(Serialize)]
struct Decided {
    #[serde(flatten)]
    decisions: Decisions,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Json>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Free,
    Busy,
    Failed,
    /// The GPU works, but must not get any further jobs.
    Draining,
}

/// State of a GPU as reported in a request, with the agent's own values for omitted fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given {
    pub(super) used: Use,
    /// Failure rate, in failures per year.
    pub(super) rate: f64,
    /// Part of the failure rate that is due to the GPU's node, rack and switch.
    pub(super) shared: SharedRates,
    /// Age in years.
    pub(super) age: f64,
    /// Time until the GPU becomes free or is repaired, in seconds; infinite if unknown.
    pub(super) left: f64,
}

/// Agent that answers requests from one scheduler.
pub struct Agent {
    name: String,
    pub(super) placer: Box<dyn Placer>,
    pub(super) cluster: Cluster,
    failures: Failures,
    pub(super) options: Options,
}

impl Agent {
    /// Creates an agent that uses the policy `placer`, which is called `name` in answers. `failures` supplies the rates
    /// and ages that a request omits, and `options` the costs of restarts and checkpoints.
    ///
    /// # Errors
    /// Fails if `failures` and the cluster have different numbers of GPUs, or if an option is out of range.
    pub fn new(
        name: String,
        placer: Box<dyn Placer>,
        cluster: Cluster,
        failures: Failures,
        options: Options,
    ) -> Result<Self, StudyError> {
        Scenario::new(cluster.clone(), Vec::new(), failures.clone(), options)?;
        Ok(Self { name, placer, cluster, failures, options })
    }

    /// Returns the maximum length in bytes of a request for a cluster with `gpus` GPUs.
    pub fn request_len_max_bytes(gpus: usize) -> usize {
        gpus * ENTRY_LEN_BYTES + REST_LEN_BYTES
    }

    /// Returns the state of a GPU for which a request specifies only how it is used. The failure rate and the age are
    /// the agent's own values; the time until the GPU becomes free is unknown.
    pub(super) fn known(&self, gpu: usize, used: Use) -> Given {
        let rate = self.failures.estimate(gpu, 0.0, 0) * YEAR;
        let shared = SharedRates::default();
        Given { used, rate, shared, age: self.failures.ages()[gpu], left: f64::INFINITY }
    }

    /// Answers a request. Neither the request nor the answer includes the line ending.
    pub fn answer(&mut self, line: &str) -> String {
        let answer = self.try_answer(line);
        answer.unwrap_or_else(|error| serde_json::json!({ "error": error.to_string() }).to_string())
    }

    fn try_answer(&mut self, line: &str) -> Result<String, StudyError> {
        let expected = "an object with gpus and job, or {\"describe\": true}";
        let request: Request =
            serde_json::from_str(line).map_err(|error| StudyError::field("request", error, expected))?;
        if let Some(jobs) = request.jobs {
            if request.job.is_some() {
                return Err(StudyError::field("job", "present", "no job in addition to jobs"));
            }
            let gpus =
                request.gpus.ok_or_else(|| StudyError::field("gpus", "missing", "one entry for each GPU"))?;
            let decisions = self.decide(&self.check_gpus(&gpus)?, &jobs)?;
            let answer = Decided { decisions, id: request.id };
            return Ok(serde_json::to_string(&answer).expect("numbers and names must be serializable"));
        }
        match (request.gpus, request.job) {
            (Some(gpus), Some(job)) => {
                let given = self.check_gpus(&gpus)?;
                let job = self.check_job(&job)?;
                let gpus = self.place(&given, job)?;
                let answer = Answer { gpus, id: request.id };
                Ok(serde_json::to_string(&answer).expect("numbers must be serializable"))
            }
            (None, None) if request.describe.is_asked() => {
                let (gpus, nodes) = (self.cluster.gpus(), self.cluster.nodes().len());
                request.describe.check(STUDY, &[("gpus", gpus), ("nodes", nodes)])?;
                let description = Description { policy: &self.name, gpus, nodes };
                Ok(serde_json::to_string(&description).expect("a name and numbers must be serializable"))
            }
            (None, None) => Err(StudyError::field("request", line.trim(), expected)),
            (None, Some(_)) => Err(StudyError::field("gpus", "missing", "one entry for each GPU")),
            (Some(_), None) => Err(StudyError::field("job", "missing", "{\"gpus\": n, \"duration\": s}")),
        }
    }

    fn check_job(&self, job: &JobEntry) -> Result<Job, StudyError> {
        let most = self.cluster.gpus();
        let gpus = usize::try_from(job.gpus).ok().filter(|gpus| (1..=most).contains(gpus));
        let gpus = gpus.ok_or_else(|| {
            let expected = format!("1 to {most}, the number of GPUs in the cluster");
            StudyError::field("job.gpus", job.gpus, expected)
        })?;
        Job::new(0.0, gpus, above_zero("job.duration", job.duration, "seconds")?)
    }

    /// Checks the entries of a request and returns them in order of GPU ids.
    fn check_gpus(&self, entries: &[GpuEntry]) -> Result<Vec<Given>, StudyError> {
        let gpus = self.cluster.gpus();
        if entries.len() != gpus {
            let expected = format!("{gpus}, one for each GPU");
            return Err(StudyError::field("number of gpus", entries.len(), expected));
        }
        let mut by_id: Vec<Option<Given>> = vec![None; gpus];
        for (at, entry) in entries.iter().enumerate() {
            let name = |field: &str| format!("gpus[{at}].{field}");
            let id = entry.id.map_or(Some(at), |id| usize::try_from(id).ok()).filter(|id| *id < gpus);
            let id = id.ok_or_else(|| {
                let expected = format!("0 to {}", gpus - 1);
                StudyError::field(name("id"), entry.id.unwrap_or_default(), expected)
            })?;
            let node = self.cluster.node_of(id);
            if let Some(other) = entry.node.filter(|other| usize::try_from(*other) != Ok(node)) {
                let expected = format!("{node}, the node of GPU {id}");
                return Err(StudyError::field(name("node"), other, expected));
            }
            if by_id[id].replace(self.given(id, entry, name)?).is_some() {
                return Err(StudyError::field(name("id"), id, "a different id for each GPU"));
            }
        }
        Ok(by_id.into_iter().flatten().collect())
    }

    fn given(&self, id: usize, entry: &GpuEntry, name: impl Fn(&str) -> String) -> Result<Given, StudyError> {
        let used = match entry.state.as_str() {
            "free" => Use::Free,
            "busy" => Use::Busy,
            "failed" => Use::Failed,
            "draining" => Use::Draining,
            other => return Err(StudyError::field(name("state"), other, "free, busy, failed or draining")),
        };
        let known = self.known(id, used);
        let rate = entry.rate.unwrap_or(known.rate);
        if !(0.0..=RATE_MAX).contains(&rate) {
            let expected = format!("0 to {RATE_MAX} failures a year");
            return Err(StudyError::field(name("rate"), rate, expected));
        }
        let GpuEntry { node_rate, rack_rate, switch_rate, .. } = *entry;
        let shared = SharedRates { node: node_rate, rack: rack_rate, switch: switch_rate };
        shared.check(rate, &name)?;
        let age = at_least_zero(name("age"), entry.age.unwrap_or(known.age), "years")?;
        let left = match entry.left {
            Some(left) => at_least_zero(name("left"), left, "seconds")?,
            None => known.left,
        };
        Ok(Given { used, rate, shared, age, left })
    }

    /// Returns the GPUs on which to start a job, or an empty list if the job should wait.
    fn place(&mut self, given: &[Given], job: Job) -> Result<Vec<usize>, StudyError> {
        let scenario = self.scenario(given, job)?;
        let mut state = State::new(&scenario);
        occupy(&mut state, given);
        if job.gpus() > state.free {
            return Ok(Vec::new());
        }
        let mut queue = vec![ASKED];
        self.placer.order(&state, &mut queue);
        if self.placer.size(&state, ASKED) != job.gpus() {
            return Ok(Vec::new());
        }
        let mut picks = Vec::with_capacity(job.gpus());
        self.placer.place(&state, ASKED, job.gpus(), &mut picks);
        let mut distinct = picks.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let is_free = |gpu: &usize| state.gpus.get(*gpu).is_some_and(Gpu::is_free);
        let is_fine = distinct.len() == picks.len() && distinct.iter().all(is_free);
        if !is_fine || !(picks.is_empty() || picks.len() == job.gpus()) {
            let expected = format!("{} GPUs that are free", job.gpus());
            let value = format!("{picks:?}");
            return Err(StudyError::field(format!("choice of {}", self.name), value, expected));
        }
        Ok(picks)
    }

    /// Returns a scenario for a request. It contains the requested job, one job for each busy GPU that becomes free at
    /// a known time, and one job that occupies all other busy GPUs.
    fn scenario(&self, given: &[Given], job: Job) -> Result<Scenario, StudyError> {
        let mut jobs = vec![job];
        let mut kept = 0;
        for gpu in given.iter().filter(|gpu| gpu.used == Use::Busy) {
            if gpu.left.is_finite() {
                jobs.push(Job::new(0.0, 1, gpu.left.max(f64::MIN_POSITIVE))?);
            } else {
                kept += 1;
            }
        }
        if kept > 0 {
            jobs.push(Job::new(0.0, kept, f64::MAX)?);
        }
        Scenario::new(self.cluster.clone(), jobs, self.failures_of(given)?, self.options)
    }

    /// Returns the failures for a request.
    pub(super) fn failures_of(&self, given: &[Given]) -> Result<Failures, StudyError> {
        let rates: Vec<_> = given.iter().map(|gpu| (gpu.rate, gpu.shared)).collect();
        let failures = shared_rates::failures(&self.cluster, &rates)?;
        failures.with_ages(given.iter().map(|gpu| gpu.age).collect())
    }
}

/// Index of the requested job in the scenario.
const ASKED: usize = 0;

/// Puts the requested job in the queue, assigns the busy GPUs to the jobs that [`Agent::scenario`] has created for
/// them, and makes failed and draining GPUs unavailable.
fn occupy(state: &mut State<'_>, given: &[Given]) {
    state.queue.push(ASKED);
    state.progress[ASKED].phase = Phase::Waiting;
    let mut next = ASKED + 1;
    let mut kept = Vec::new();
    for (gpu, Given { used, left, .. }) in given.iter().enumerate() {
        match used {
            Use::Free => continue,
            Use::Failed => state.gpus[gpu].failed_until = Some(*left),
            Use::Draining => state.gpus[gpu].failed_until = Some(f64::INFINITY),
            Use::Busy if left.is_finite() => {
                state.gpus[gpu].owner = Some(next);
                state.active.push(next);
                state.progress[next].runs = 1;
                state.progress[next].phase = Phase::Running(Run {
                    gpus: vec![gpu],
                    begin: 0.0,
                    overhead: 0.0,
                    speed: 1.0,
                    interval: f64::INFINITY,
                    cost: 0.0,
                    end: *left,
                });
                next += 1;
            }
            Use::Busy => kept.push(gpu),
        }
        state.free -= 1;
    }
    if !kept.is_empty() {
        kept.iter().for_each(|gpu| state.gpus[*gpu].owner = Some(next));
        state.active.push(next);
        state.progress[next].runs = 1;
        // A stopped job holds its GPUs for an unknown time.
        state.progress[next].phase = Phase::Stopped(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::super::policy::PolicySpec;
    use super::*;

    /// Returns an agent for two nodes with two GPUs each.
    fn agent(policy: PolicySpec) -> Agent {
        let cluster = Cluster::uniform(2, 2).unwrap();
        let failures = Failures::poisson(vec![4.0, 3.0, 2.0, 1.0]).unwrap();
        let scenario =
            Scenario::new(cluster.clone(), Vec::new(), failures.clone(), Options::default()).unwrap();
        let placer = policy.build(&scenario, 1).unwrap();
        Agent::new(policy.to_string(), placer, cluster, failures, Options::default()).unwrap()
    }

    const FREE: &str = r#"{"state": "free"}"#;
    const JOB: &str = r#"{"gpus": 2, "duration": 3600}"#;

    fn request(gpus: [&str; 4], job: &str) -> String {
        format!(r#"{{"gpus": [{}], "job": {job}}}"#, gpus.join(","))
    }

    #[test]
    fn a_job_gets_the_gpus_chosen_by_the_policy() {
        let line = r#"{"gpus": [{"state": "free"}, {"state": "busy"}, {"state": "free"}, {"state": "free"}],
            "job": {"gpus": 2, "duration": 3600}, "id": {"job": "a"}}"#;
        assert_eq!(agent(PolicySpec::FirstFit).answer(line), r#"{"gpus":[0,2],"id":{"job":"a"}}"#);
        assert_eq!(agent(PolicySpec::BestFit).answer(line), r#"{"gpus":[2,3],"id":{"job":"a"}}"#);
        assert_eq!(agent(PolicySpec::Reliable).answer(line), r#"{"gpus":[3,2],"id":{"job":"a"}}"#);
        let described = agent(PolicySpec::Reliable).answer(r#"{"describe": true}"#);
        assert_eq!(described, r#"{"policy":"reliable","gpus":4,"nodes":2}"#);
    }

    #[test]
    fn gpu_entries_may_have_any_order_and_individual_rates() {
        let gpus = [
            r#"{"id": 3, "state": "free", "rate": 9.5, "age": 2, "node": 1}"#,
            r#"{"id": 1, "state": "free", "rate": 0.5}"#,
            r#"{"id": 0, "state": "failed", "left": 60}"#,
            r#"{"id": 2, "state": "free"}"#,
        ];
        assert_eq!(agent(PolicySpec::Reliable).answer(&request(gpus, JOB)), r#"{"gpus":[1,2]}"#);
    }

    #[test]
    fn a_job_waits_if_gpus_are_too_few_or_better_ones_become_free_soon() {
        let busy = r#"{"state": "busy"}"#;
        let few = request([busy, busy, busy, FREE], JOB);
        assert_eq!(agent(PolicySpec::Reliable).answer(&few), r#"{"gpus":[]}"#);
        // The job takes a day; the free GPU fails every hour, and one that never fails becomes free in a second.
        let often = r#"{"state": "free", "rate": 8766}"#;
        let job = r#"{"gpus": 1, "duration": 86400}"#;
        let better = |left: &str| {
            let soon = format!(r#"{{"state": "busy", "rate": 0{left}}}"#);
            request([often, busy, busy, &soon], job)
        };
        assert_eq!(agent(PolicySpec::Oracle).answer(&better(r#", "left": 1"#)), r#"{"gpus":[]}"#);
        assert_eq!(agent(PolicySpec::Oracle).answer(&better("")), r#"{"gpus":[0]}"#);
    }

    #[test]
    fn a_bad_request_is_reported_and_the_next_one_is_answered() {
        let mut agent = agent(PolicySpec::FirstFit);
        let with = |entry: &str| request([FREE, FREE, FREE, entry], JOB);
        let all = [FREE; 4];
        for (line, error) in [
            (with(r#"{"state": "free", "id": 4}"#), "gpus[3].id is 4, expected 0 to 3"),
            (with(r#"{"state": "free", "id": -1}"#), "gpus[3].id is -1, expected 0 to 3"),
            (with(r#"{"state": "free", "id": 2}"#), "gpus[3].id is 2, expected a different id for each GPU"),
            (with(r#"{"state": "down"}"#), "gpus[3].state is down, expected free, busy, failed or draining"),
            (with(r#"{"state": "free", "node": 0}"#), "gpus[3].node is 0, expected 1, the node of GPU 3"),
            (
                with(r#"{"state": "free", "rate": -1}"#),
                "gpus[3].rate is -1, expected 0 to 1000000 failures a year",
            ),
            (with(r#"{"state": "free", "age": -2}"#), "gpus[3].age is -2, expected a number of years >= 0"),
            (
                with(r#"{"state": "busy", "left": -2}"#),
                "gpus[3].left is -2, expected a number of seconds >= 0",
            ),
            (
                request(all, r#"{"gpus": 5, "duration": 1}"#),
                "job.gpus is 5, expected 1 to 4, the number of GPUs in the cluster",
            ),
            (
                request(all, r#"{"gpus": -1, "duration": 1}"#),
                "job.gpus is -1, expected 1 to 4, the number of GPUs in the cluster",
            ),
            (
                request(all, r#"{"gpus": 1, "duration": -3600}"#),
                "job.duration is -3600, expected a number of seconds above 0",
            ),
            (
                format!(r#"{{"gpus": [{FREE}], "job": {JOB}}}"#),
                "number of gpus is 1, expected 4, one for each GPU",
            ),
            (format!(r#"{{"job": {JOB}}}"#), "gpus is missing, expected one entry for each GPU"),
            (r#"{"gpus": []}"#.to_owned(), r#"job is missing, expected {"gpus": n, "duration": s}"#),
            (
                "{}".to_owned(),
                r#"request is {}, expected an object with gpus and job, or {"describe": true}"#,
            ),
        ] {
            let answer: Json = serde_json::from_str(&agent.answer(&line)).unwrap();
            assert_eq!(answer["error"], error, "{line}");
        }
        for line in ["", "nonsense", r#"{"gpu": 3}"#, &with("7"), &with("{}")] {
            let answer: Json = serde_json::from_str(&agent.answer(line)).unwrap();
            assert!(answer["error"].as_str().unwrap().starts_with("request is "), "{answer}");
        }
        assert_eq!(agent.answer(&request(all, JOB)), r#"{"gpus":[0,1]}"#);
    }
}
