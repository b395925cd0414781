//! Coflow scheduling as a service. A scheduler reports its jobs and their progress as lines of JSON, and asks for the
//! order of the coflows and the rates of their flows.
//!
//! | request | effect |
//! |---|---|
//! | `{"job": {"id": "a", "coflows": [...]}}` | registers a job; its coflows have the same form as in a job file |
//! | `{"coflow": {"id": "b", "flows": [[0, 1, 1e9]]}}` | registers a job of a single coflow |
//! | `{"progress": [{"job": "a", "coflow": 0, "bytes_left": [5e8]}]}` | reports the remaining bytes of flows |
//! | `{"finished": [{"job": "a", "coflow": 0, "flows": [1]}]}` | reports that a coflow or some of its flows ended |
//! | `{"remove": "a"}` | removes a job that will not be completed |
//! | `{"rates": true}` | asks for the order and the rates |
//! | `{"describe": true}` | asks for a description of the service |
//!
//! A request may contain the time, `time_s`, in seconds; by default, it is the time of the previous request. Each of
//! the first five requests can also ask for the rates by including `"rates": true`. The answer to an invalid request
//! is `{"error": "..."}`; such a request has no effect. The `id` of a request is optional and is returned unchanged.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::policy::Policy;
use super::simulation::{Fabric, Live, Schedule, Stage};
use super::trace::CoflowEntry;
use super::workload::{Job, SIZES};
use iswitch_study::StudyError;

/// Maximum number of incomplete coflows.
pub const COFLOWS_MAX: usize = 65_536;
/// Maximum total number of flows of all incomplete jobs.
pub const FLOWS_MAX: usize = 1 << 20;
/// Maximum length of a request, in bytes: enough for a coflow of 100,000 flows.
pub const REQUEST_LEN_MAX_BYTES: usize = 3 << 20;
/// Maximum length of the id of a job, in bytes.
pub const ID_LEN_MAX_BYTES: usize = 128;
/// Maximum time, in seconds. At much greater times, rounding errors would exceed a millisecond.
const TIME_MAX_S: f64 = 1e12;

/// Function that creates a fresh instance of the policy for the given jobs. It fails if the policy does not support
/// these jobs.
pub type MakePolicy = Box<dyn Fn(&[Job]) -> Result<Box<dyn Policy>, StudyError>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    id: Option<Json>,
    time_s: Option<f64>,
    job: Option<JobEntry>,
    coflow: Option<SingleEntry>,
    progress: Option<Vec<ProgressEntry>>,
    finished: Option<Vec<FinishedEntry>>,
    remove: Option<String>,
    #[serde(default)]
    rates: bool,
    #[serde(default)]
    describe: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JobEntry {
    id: String,
    coflows: Vec<CoflowEntry>,
}

/// Job of a single coflow.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SingleEntry {
    id: String,
    flows: Vec<(usize, usize, f64)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgressEntry {
    job: String,
    coflow: Option<usize>,
    bytes_left: Vec<f64>,
}

/// Coflow that has ended, or flows of a coflow that have ended.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FinishedEntry {
    job: String,
    coflow: Option<usize>,
    flows: Option<Vec<usize>>,
}

/// Change that a request asks for.
enum Change {
    Register(String, Vec<CoflowEntry>),
    Progress(Vec<ProgressEntry>),
    Finished(Vec<FinishedEntry>),
    Remove(String),
    Nothing,
}

/// Name of a coflow in an answer: the id of its job, and its index within the job.
#[derive(Serialize)]
struct Name<'a> {
    job: &'a str,
    coflow: usize,
}

#[derive(Serialize)]
struct Rated<'a> {
    #[serde(flatten)]
    name: Name<'a>,
    /// Rate of each flow, in bits per second.
    rates_bps: Vec<f64>,
}

#[derive(Serialize)]
struct Answer<'a> {
    time_s: f64,
    /// Number of incomplete coflows.
    incomplete: usize,
    /// Coflows that have become ready because of the request.
    ready: Vec<Name<'a>>,
    /// Coflows that are ready and not fully sent, highest priority first.
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<Vec<Rated<'a>>>,
    /// Number of seconds after which the scheduler must ask for the rates again; absent if no coflow is ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    valid_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Json>,
}

/// Agent that answers requests from one scheduler. It holds the scheduler's incomplete jobs.
pub struct Agent {
    name: String,
    make: MakePolicy,
    policy: Box<dyn Policy>,
    live: Live,
    /// Index of each incomplete job, by its id.
    jobs: BTreeMap<String, usize>,
    /// Id of each job, including completed jobs that have not been forgotten yet.
    ids: Vec<String>,
}

impl Agent {
    /// Creates an agent without jobs. Its policy, which `make` creates, is called `name` in answers.
    ///
    /// # Errors
    /// Fails if the policy cannot be created.
    pub fn new(name: String, make: MakePolicy, fabric: Fabric) -> Result<Self, StudyError> {
        let policy = make(&[])?;
        Ok(Self { name, make, policy, live: Live::new(fabric), jobs: BTreeMap::new(), ids: Vec::new() })
    }

    /// Answers a request. Neither the request nor the answer includes the line ending.
    pub fn answer(&mut self, line: &str) -> String {
        let answer = self.try_answer(line);
        answer.unwrap_or_else(|error| json!({ "error": error.to_string() }).to_string())
    }

    fn try_answer(&mut self, line: &str) -> Result<String, StudyError> {
        let expected = "an object with job, coflow, progress, finished, remove, rates or describe";
        let request: Request =
            serde_json::from_str(line).map_err(|error| StudyError::field("request", error, expected))?;
        let (id, is_asked, is_described) = (request.id.clone(), request.rates, request.describe);
        let time = self.check_time(request.time_s)?;
        let Some(change) = request.change()? else {
            if is_described {
                return Ok(self.describe(id));
            }
            return Err(StudyError::field("request", line.trim(), expected));
        };
        let ready = self.apply(change, time)?;
        let schedule = is_asked.then(|| self.live.schedule(self.policy.as_mut()));
        let (order, valid_s) = schedule.map_or((None, None), |Schedule { coflows, valid_s }| {
            let rated = |(coflow, rates_bps)| Rated { name: self.name_of(coflow), rates_bps };
            (Some(coflows.into_iter().map(rated).collect()), Some(valid_s).filter(|valid| valid.is_finite()))
        });
        let ready = ready.into_iter().map(|coflow| self.name_of(coflow)).collect();
        let (time_s, incomplete) = (self.live.time(), self.live.incomplete());
        let answer = Answer { time_s, incomplete, ready, order, valid_s, id };
        Ok(serde_json::to_string(&answer).expect("names and finite numbers must be serializable"))
    }

    fn check_time(&self, time_s: Option<f64>) -> Result<f64, StudyError> {
        let now = self.live.time();
        let time = time_s.unwrap_or(now);
        if (now..=TIME_MAX_S).contains(&time) {
            return Ok(time);
        }
        let expected = format!(
            "a number of seconds between {now}, the time of the previous request, and {TIME_MAX_S:e}"
        );
        Err(StudyError::field("time_s", time, expected))
    }

    fn describe(&self, id: Option<Json>) -> String {
        let Fabric { ports, rates, .. } = self.live.fabric();
        let mut description = json!({
            "policy": self.name, "ports": ports, "rates": rates.to_string(), "incomplete": self.live.incomplete(),
            "coflows_max": COFLOWS_MAX, "flows_max": FLOWS_MAX,
        });
        if let Some(id) = id {
            description["id"] = id;
        }
        description.to_string()
    }

    fn name_of(&self, coflow: usize) -> Name<'_> {
        let Stage { job, index, .. } = self.live.stage(coflow);
        Name { job: &self.ids[*job], coflow: *index }
    }

    /// Checks a change and carries it out. Returns the coflows that become ready.
    fn apply(&mut self, change: Change, time: f64) -> Result<Vec<usize>, StudyError> {
        match change {
            Change::Register(id, coflows) => {
                let job = self.check_job(&id, coflows)?;
                self.live.set_time(time);
                let number = self.live.register(job)?;
                self.jobs.insert(id.clone(), number);
                self.ids.push(id);
                Ok(self.coflows_of(number).filter(|coflow| self.is_ready(*coflow)).collect())
            }
            Change::Progress(entries) => {
                let reports = self.check_progress(&entries)?;
                self.live.set_time(time);
                Ok(self.report(reports))
            }
            Change::Finished(entries) => {
                let reports = self.check_finished(&entries)?;
                self.live.set_time(time);
                Ok(self.report(reports))
            }
            Change::Remove(id) => {
                let job = self.find_job("remove", &id)?;
                self.live.set_time(time);
                self.live.remove(job);
                self.jobs.remove(&id);
                Ok(Vec::new())
            }
            Change::Nothing => {
                self.live.set_time(time);
                Ok(Vec::new())
            }
        }
    }

    fn coflows_of(&self, job: usize) -> impl Iterator<Item = usize> + use<> {
        let first = self.live.coflow(job, 0);
        first..first + self.live.job(job).coflows().len()
    }

    fn is_ready(&self, coflow: usize) -> bool {
        self.live.stage(coflow).ready.is_some()
    }

    /// Checks a job that is to be registered. If the job would otherwise exceed the limits, forgets all complete jobs.
    fn check_job(&mut self, id: &str, entries: Vec<CoflowEntry>) -> Result<Job, StudyError> {
        if !(1..=ID_LEN_MAX_BYTES).contains(&id.len()) {
            let expected = format!("1 to {ID_LEN_MAX_BYTES} bytes");
            return Err(StudyError::field("length of the job's id", id.len(), expected));
        }
        if self.jobs.contains_key(id) {
            return Err(StudyError::field("id of the job", id, "an id that no incomplete job has"));
        }
        let added =
            [entries.len(), entries.iter().map(CoflowEntry::flow_count).fold(0, usize::saturating_add)];
        self.make_room(added)?;
        let ports = self.live.fabric().ports;
        let (mut coflows, mut dependencies) = (Vec::new(), Vec::new());
        for (at, entry) in entries.into_iter().enumerate() {
            let in_coflow = |reason| StudyError::Own(format!("coflows[{at}] of job {id}: {reason}").into());
            let (coflow, of_coflow) = entry.coflow(ports).map_err(in_coflow)?;
            coflows.push(coflow);
            dependencies.push(of_coflow);
        }
        let job = Job::new(0.0, coflows, dependencies)?;
        (self.make)(std::slice::from_ref(&job))?;
        Ok(job)
    }

    /// Checks that `added` further coflows and flows do not exceed the limits. Complete jobs are forgotten only if
    /// the limits are reached, because forgetting them forces a policy that keeps a plan to compute it again.
    fn make_room(&mut self, added: [usize; 2]) -> Result<(), StudyError> {
        let limits = [("incomplete coflows", COFLOWS_MAX), ("flows of incomplete jobs", FLOWS_MAX)];
        let exceeded = |live: &Live| {
            let (coflows, flows) = live.size();
            let sums =
                [coflows, flows].into_iter().zip(added).map(|(held, added)| held.saturating_add(added));
            sums.zip(limits).find(|(sum, (_, most))| sum > most)
        };
        if exceeded(&self.live).is_some() {
            let job_of = self.live.forget();
            let ids = std::mem::take(&mut self.ids).into_iter().zip(&job_of);
            self.ids = ids.filter_map(|(id, job)| job.map(|_| id)).collect();
            self.jobs.values_mut().for_each(|job| *job = job_of[*job].unwrap_or(*job));
            self.policy = (self.make)(&[])?;
        }
        match exceeded(&self.live) {
            None => Ok(()),
            Some((sum, (what, most))) => Err(StudyError::field(
                format!("number of {what} with this job"),
                sum,
                format!("at most {most}"),
            )),
        }
    }

    fn find_job(&self, field: &str, id: &str) -> Result<usize, StudyError> {
        let found = self.jobs.get(id).copied();
        found.ok_or_else(|| StudyError::field(field, id, "the id of an incomplete job"))
    }

    /// Returns a ready and incomplete coflow of a job. `coflow` may be absent if the job has a single coflow.
    fn find_coflow(&self, field: &str, id: &str, coflow: Option<usize>) -> Result<usize, StudyError> {
        let job = self.find_job(&format!("{field}.job"), id)?;
        let count = self.live.job(job).coflows().len();
        let field = format!("{field}.coflow");
        let index = match coflow {
            Some(index) if index < count => index,
            None if count == 1 => 0,
            _ => {
                let value = coflow.map_or("missing".to_owned(), |index| index.to_string());
                return Err(StudyError::field(field, value, format!("0 to {} for job {id}", count - 1)));
            }
        };
        let number = self.live.coflow(job, index);
        let Stage { ready, complete, .. } = self.live.stage(number);
        let problem = match (ready, complete) {
            (Some(_), None) => return Ok(number),
            (_, Some(_)) => "is complete",
            (None, None) => "waits for other coflows",
        };
        let expected = format!("a coflow that is ready and incomplete; coflow {index} of job {id} {problem}");
        Err(StudyError::field(field, index, expected))
    }

    fn check_progress(&self, entries: &[ProgressEntry]) -> Result<Vec<(usize, Vec<f64>)>, StudyError> {
        let mut reports = Vec::new();
        for (at, entry) in entries.iter().enumerate() {
            let coflow = self.find_coflow(&format!("progress[{at}]"), &entry.job, entry.coflow)?;
            let field = format!("progress[{at}].bytes_left");
            let Stage { job, index, .. } = self.live.stage(coflow);
            let flows = self.live.job(*job).coflows()[*index].flows();
            if entry.bytes_left.len() != flows.len() {
                let expected = format!("{}, one for each flow of the coflow", flows.len());
                return Err(StudyError::field(
                    format!("length of {field}"),
                    entry.bytes_left.len(),
                    expected,
                ));
            }
            for (number, (left, flow)) in entry.bytes_left.iter().zip(flows).enumerate() {
                if *left != 0.0 && !(*SIZES.start()..=flow.size).contains(left) {
                    let expected = format!("0, or 1e-6 to {} bytes, the size of the flow", flow.size);
                    return Err(StudyError::field(format!("{field}[{number}]"), left, expected));
                }
            }
            reports.push((coflow, entry.bytes_left.clone()));
        }
        Ok(reports)
    }

    fn check_finished(&self, entries: &[FinishedEntry]) -> Result<Vec<(usize, Vec<f64>)>, StudyError> {
        let mut reports: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for (at, entry) in entries.iter().enumerate() {
            let field = format!("finished[{at}]");
            let coflow = self.find_coflow(&field, &entry.job, entry.coflow)?;
            let left = reports.entry(coflow).or_insert_with(|| self.live.left(coflow).to_vec());
            let Some(flows) = &entry.flows else {
                left.fill(0.0);
                continue;
            };
            for flow in flows {
                let count = left.len();
                let Some(left) = left.get_mut(*flow) else {
                    return Err(StudyError::field(
                        format!("{field}.flows"),
                        flow,
                        format!("0 to {}", count - 1),
                    ));
                };
                *left = 0.0;
            }
        }
        Ok(reports.into_iter().collect())
    }

    /// Applies reports that have been checked. Returns the coflows that become ready.
    fn report(&mut self, reports: Vec<(usize, Vec<f64>)>) -> Vec<usize> {
        let mut jobs: Vec<usize> = reports.iter().map(|(coflow, _)| self.live.stage(*coflow).job).collect();
        jobs.sort_unstable();
        jobs.dedup();
        let coflows = jobs.iter().flat_map(|job| self.coflows_of(*job));
        let waiting: Vec<usize> = coflows.filter(|coflow| !self.is_ready(*coflow)).collect();
        self.live.report(reports);
        for job in jobs.into_iter().filter(|job| self.live.incomplete_of(*job) == 0) {
            self.jobs.remove(&self.ids[job]);
        }
        waiting.into_iter().filter(|coflow| self.is_ready(*coflow)).collect()
    }
}

impl Request {
    /// Returns the change that the request asks for; `None` if it asks only for a description or for nothing at all.
    fn change(self) -> Result<Option<Change>, StudyError> {
        let single = |SingleEntry { id, flows }| Change::Register(id, vec![CoflowEntry::of_flows(flows)]);
        let changes = [
            ("job", self.job.map(|JobEntry { id, coflows }| Change::Register(id, coflows))),
            ("coflow", self.coflow.map(single)),
            ("progress", self.progress.map(Change::Progress)),
            ("finished", self.finished.map(Change::Finished)),
            ("remove", self.remove.map(Change::Remove)),
        ];
        let mut given = changes.into_iter().filter_map(|(name, change)| Some((name, change?)));
        let first = given.next();
        if let (Some((first, _)), Some((second, _))) = (&first, given.next()) {
            return Err(StudyError::field(
                second,
                "present",
                format!("no other change in addition to {first}"),
            ));
        }
        if self.describe && (first.is_some() || self.rates) {
            return Err(StudyError::field("describe", true, "no other request in addition"));
        }
        Ok(first.map(|(_, change)| change).or(self.rates.then_some(Change::Nothing)))
    }
}
