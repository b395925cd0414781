//! External coflow policies: programs that answer each decision with one line of JSON.
//!
//! The first line is the greeting of the run, `{"describe": {"version": 1, "study": "coflow", "policy": "mine", "seed":
//! 1, "ports": 2, ...}}`, and is answered with `{}`. Its further fields are:
//!
//! | field | content |
//! |---|---|
//! | `ports` | number of ingress ports, and of egress ports |
//! | `capacity_bytes_per_s` | capacity of the slowest resource |
//! | `ingress_bytes_per_s`, `egress_bytes_per_s` | capacity of each port, by port |
//! | `links_bytes_per_s` | capacity of each link of a rack that can limit flows; often empty |
//! | `rack_of` | rack of each port, or null |
//! | `uplink_of`, `downlink_of` | index of the link that a flow from or to the port uses if it leaves the rack, or null |
//! | `rates` | `backfill` or `blocking`, as in `--rates` |
//! | `sharings` | values of `sharing` that an answer may have: those of [`Sharing`] |
//!
//! Each further request describes the coflows that are ready and not fully sent, in the order in which they became
//! ready, and the jobs of these coflows:
//!
//! | field of a request | content |
//! |---|---|
//! | `time_s` | current time |
//! | `coflows[].id` | number that identifies the coflow in this run |
//! | `coflows[].job`, `coflows[].coflow` | number of the job, and index of the coflow within the job |
//! | `coflows[].ready_s` | time at which the coflow became ready |
//! | `coflows[].bytes_sent` | bytes that the coflow has sent |
//! | `coflows[].bottleneck_s` | remaining time at the resource at which the coflow needs the longest |
//! | `coflows[].path_s` | minimum time from the start of the coflow to the end of its job |
//! | `coflows[].flows` | `[source, destination, bytes left]` for each incomplete flow, by port |
//! | `jobs[].job`, `jobs[].arrival_s` | number of the job, and its arrival |
//! | `jobs[].deadline_s` | deadline, measured from the arrival; null if there is none |
//! | `jobs[].coflows_left` | number of coflows of the job that are not complete |
//! | `jobs[].path_s` | remaining critical path: the time that the job needs even if no port is busy |
//! | `jobs[].need_s` | `path_s` or, if longer, the time that the job still needs at its busiest resource |
//!
//! The answer is `{"order": [id, ...], "sharing": "madd"}`. `order` contains each coflow of the request once, highest
//! priority first. With `look_again_s`, the program is asked again after this number of seconds if no coflow becomes
//! ready or ends before then.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use strum::IntoEnumIterator as _;

use super::{Policy, Sharing, job_need};
use crate::simulation::{Fabric, State};
use crate::workload::Job;
use iswitch_study::error::at_least;
use iswitch_study::external::{External, Program};
use iswitch_study::{StudyError, names};

/// Name of the study in greetings.
pub const STUDY: &str = "coflow";
/// Minimum of `look_again_s`, in seconds. It ensures that simulated time advances.
pub const LOOK_AGAIN_MIN_S: f64 = 1e-3;

/// Maximum length of the id of a coflow in an answer, in bytes, including a comma and some spaces.
const ID_LEN_BYTES: usize = 24;
const REST_LEN_BYTES: usize = 4096;
const FORM: &str = r#"{"order": [id, ...], "sharing": "madd"}"#;

#[derive(Serialize)]
struct Setting {
    ports: usize,
    capacity_bytes_per_s: f64,
    ingress_bytes_per_s: Vec<f64>,
    egress_bytes_per_s: Vec<f64>,
    links_bytes_per_s: Vec<f64>,
    rack_of: Vec<Option<usize>>,
    uplink_of: Vec<Option<usize>>,
    downlink_of: Vec<Option<usize>>,
    rates: String,
    sharings: Vec<String>,
}

#[derive(Serialize)]
struct Request {
    time_s: f64,
    coflows: Vec<CoflowEntry>,
    jobs: Vec<JobEntry>,
}

#[derive(Serialize)]
struct CoflowEntry {
    id: usize,
    job: usize,
    coflow: usize,
    ready_s: Option<f64>,
    bytes_sent: f64,
    bottleneck_s: f64,
    path_s: f64,
    flows: Vec<(usize, usize, f64)>,
}

#[derive(Serialize)]
struct JobEntry {
    job: usize,
    arrival_s: f64,
    deadline_s: Option<f64>,
    coflows_left: usize,
    path_s: f64,
    need_s: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    order: Vec<i64>,
    sharing: String,
    look_again_s: Option<f64>,
}

/// Policy whose program orders the coflows.
#[derive(Debug)]
pub struct ExternalPolicy {
    program: Program,
    look_again: Option<f64>,
    failure: Option<StudyError>,
    /// Buffer for the remaining time of a job at each resource.
    loads: Vec<f64>,
}

impl ExternalPolicy {
    /// Starts the program of a policy for one run of these jobs. `seed` is the seed of the run.
    ///
    /// # Errors
    /// Fails if the program does not start or does not accept the greeting.
    pub fn start(external: &External, jobs: &[Job], fabric: &Fabric, seed: u64) -> Result<Self, StudyError> {
        let coflows: usize = jobs.iter().map(|job| job.coflows().len()).sum();
        let answer_len = coflows * ID_LEN_BYTES + REST_LEN_BYTES;
        let program = external.start(STUDY, seed, &Setting::of(fabric), answer_len)?;
        Ok(Self { program, look_again: None, failure: None, loads: Vec::new() })
    }

    fn ask(&mut self, state: &State<'_>, ready: &mut Vec<usize>) -> Result<Sharing, StudyError> {
        let request = self.request(state, ready);
        let answer: Answer = self.program.ask(&request, FORM)?;
        let checked = self.check(&answer, ready);
        checked.map_err(|error| self.program.error(&error))
    }

    fn request(&mut self, state: &State<'_>, ready: &[usize]) -> Request {
        let bytes = state.fabric.capacity;
        let entry = |id: &usize| {
            let stage = &state.stages[*id];
            CoflowEntry {
                id: *id,
                job: stage.job,
                coflow: stage.index,
                ready_s: stage.ready,
                bytes_sent: stage.size * (1.0 - stage.left) * bytes,
                bottleneck_s: stage.bottleneck_left,
                path_s: stage.path,
                flows: state.flows_left(*id),
            }
        };
        let coflows: Vec<_> = ready.iter().map(entry).collect();
        let numbers: BTreeSet<usize> = coflows.iter().map(|coflow| coflow.job).collect();
        let of_job = |job: usize| JobEntry {
            job,
            arrival_s: state.jobs[job].arrival,
            deadline_s: state.jobs[job].deadline,
            coflows_left: state.of_job(job).iter().filter(|stage| stage.complete.is_none()).count(),
            path_s: state.path_left(job),
            need_s: job_need(state, job, &mut self.loads),
        };
        Request { time_s: state.time, coflows, jobs: numbers.into_iter().map(of_job).collect() }
    }

    /// Checks an answer, and sorts `ready` in the order that it specifies.
    fn check(&mut self, answer: &Answer, ready: &mut Vec<usize>) -> Result<Sharing, StudyError> {
        let sharing = names::parse("sharing", &answer.sharing, Sharing::iter(), "")?;
        if let Some(seconds) = answer.look_again_s {
            at_least("look_again_s", seconds, LOOK_AGAIN_MIN_S, "seconds")?;
        }
        let mut open: BTreeMap<i64, usize> = ready.iter().map(|id| (*id as i64, *id)).collect();
        let mut order = Vec::with_capacity(ready.len());
        for (at, id) in answer.order.iter().enumerate() {
            let expected = "the id of a coflow in the request, listed only once";
            let found = open.remove(id);
            order.push(found.ok_or_else(|| StudyError::field(format!("order[{at}]"), id, expected))?);
        }
        if let Some(missing) = open.keys().next() {
            let expected = format!("{}, one entry for each coflow; coflow {missing} is missing", ready.len());
            return Err(StudyError::field("length of order", order.len(), expected));
        }
        *ready = order;
        self.look_again = answer.look_again_s;
        Ok(sharing)
    }
}

impl Policy for ExternalPolicy {
    fn prioritise(&mut self, state: &State<'_>, ready: &mut Vec<usize>) -> Sharing {
        self.ask(state, ready).unwrap_or_else(|error| {
            self.failure = Some(error);
            Sharing::Madd
        })
    }

    fn look_again(&mut self, _state: &State<'_>, _rates: &[(usize, f64)]) -> Option<f64> {
        self.look_again
    }

    fn failure(&mut self) -> Option<StudyError> {
        self.failure.take()
    }
}

impl Setting {
    fn of(fabric: &Fabric) -> Self {
        let ports = fabric.ports;
        let capacities = |resources: std::ops::Range<usize>| {
            resources.map(|resource| fabric.relative(resource) * fabric.capacity).collect()
        };
        let link = |resource: usize| fabric.link_of(resource).map(|link| link - 2 * ports);
        Self {
            ports,
            capacity_bytes_per_s: fabric.capacity,
            ingress_bytes_per_s: capacities(0..ports),
            egress_bytes_per_s: capacities(ports..2 * ports),
            links_bytes_per_s: capacities(2 * ports..fabric.resources()),
            rack_of: (0..ports).map(|port| fabric.rack_of(port)).collect(),
            uplink_of: (0..ports).map(link).collect(),
            downlink_of: (ports..2 * ports).map(link).collect(),
            rates: fabric.rates.to_string(),
            sharings: Sharing::iter().map(|sharing| sharing.to_string()).collect(),
        }
    }
}
