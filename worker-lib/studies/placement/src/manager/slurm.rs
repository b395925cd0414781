//! Nodes and jobs of Slurm, as `scontrol show nodes --json` (or `sinfo --json` before Slurm 23.02) and `squeue --json`
//! print them. Tested with the output of Slurm 22.05 (`openapi/v0.0.38`) and 24.11 (`data_parser/v0.0.42`).

mod gres;

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;

use self::gres::{Held as HeldGres, held, total};
use super::{Availability, Held, Managed, ManagedJob, ManagedNode, hostlist, parse};
use iswitch_study::StudyError;

/// States and flags of a node that runs no jobs.
const DOWN: [&str; 10] = [
    "DOWN",
    "ERROR",
    "FAIL",
    "FUTURE",
    "INVALID_REG",
    "NOT_RESPONDING",
    "POWERED_DOWN",
    "POWERING_DOWN",
    "REBOOT_ISSUED",
    "UNKNOWN",
];
/// States and flags of a node that gets no further jobs.
const DRAINING: [&str; 6] = ["DRAIN", "DRAINED", "DRAINING", "MAINTENANCE", "REBOOT_REQUESTED", "RESERVED"];
/// States of a job that holds its GPUs. A suspended job keeps its GPUs.
const RUNNING: [&str; 7] =
    ["RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "RESIZING", "SIGNALING", "STAGE_OUT"];
/// Reasons that prevent the start of a waiting job, other than its position in the queue.
const BLOCKED: [&str; 5] = ["BeginTime", "Dependency", "DependencyNeverSatisfied", "JobHeldUser", "Licenses"];
/// Maximum total number of jobs if the list contains job arrays. Each task of an array counts as one job.
const TASKS_MAX: usize = 100_000;

#[derive(Deserialize)]
struct NodesFile {
    nodes: Option<Vec<ListedNode>>,
}

#[derive(Deserialize)]
struct ListedNode {
    name: String,
    state: Words,
    /// Before Slurm 23.02, a node's flags are separate from its state.
    #[serde(default)]
    state_flags: Vec<String>,
    #[serde(default)]
    gres: String,
    gres_used: Option<String>,
}

#[derive(Deserialize)]
struct JobsFile {
    jobs: Option<Vec<ListedJob>>,
    /// Time of the listing, in seconds since the Unix epoch. Slurm 22.05 does not report it.
    last_update: Option<Amount>,
}

#[derive(Deserialize)]
struct ListedJob {
    job_id: u64,
    job_state: Words,
    state_reason: Option<String>,
    nodes: Option<String>,
    #[serde(default)]
    gres_detail: Vec<String>,
    tres_req_str: Option<String>,
    tres_per_job: Option<String>,
    tres_per_node: Option<String>,
    tres_per_task: Option<String>,
    node_count: Option<Amount>,
    tasks: Option<Amount>,
    /// Time limit of the job, in minutes.
    time_limit: Option<Amount>,
    /// Time at which the job started, in seconds since the Unix epoch.
    start_time: Option<Amount>,
    #[serde(default)]
    restart_cnt: u32,
    array_job_id: Option<Amount>,
    array_task_id: Option<Amount>,
    array_task_string: Option<String>,
}

/// Words that older versions of Slurm print as one string and newer versions as a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum Words {
    One(String),
    Many(Vec<String>),
}

/// Number that newer versions of Slurm print as an object.
#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Amount {
    Plain(f64),
    Object { set: bool, infinite: bool, number: f64 },
}

impl Words {
    fn has(&self, some: &[&str]) -> bool {
        match self {
            Self::One(word) => any_of(std::slice::from_ref(word), some),
            Self::Many(words) => any_of(words, some),
        }
    }
}

/// Returns whether one of the words is contained in `some`, ignoring case.
fn any_of(words: &[String], some: &[&str]) -> bool {
    words.iter().any(|word| some.iter().any(|it| it.eq_ignore_ascii_case(word)))
}

impl Amount {
    /// Returns the number, or `None` if it is unset or infinite.
    fn number(self) -> Option<f64> {
        match self {
            Self::Plain(number) => Some(number),
            Self::Object { set, infinite, number } => (set && !infinite).then_some(number),
        }
    }
}

/// Reads the files that list the nodes and the jobs. `now` is the time at which the files were written, in seconds
/// since the Unix epoch; it is used only if Slurm's output does not contain the time. If `gpu_type` is given, GPUs of
/// other types, and the jobs that ask for them, are left out.
///
/// # Errors
/// Fails if a file cannot be read, an entry is invalid, a job holds more GPUs on a node than the node has, or the nodes
/// have several types of GPUs and `gpu_type` is `None`. The error names the file, the entry and the field.
pub fn read_slurm(
    nodes: &Path,
    jobs: &Path,
    gpu_type: Option<&str>,
    now: f64,
) -> Result<Managed, StudyError> {
    let mut managed = read_nodes(nodes, gpu_type)?.check().map_err(|error| StudyError::file(nodes, error))?;
    let file: JobsFile = parse(jobs)?;
    let list = file
        .jobs
        .ok_or_else(|| StudyError::file(jobs, "jobs is missing, expected the output of squeue --json"))?;
    let now = file.last_update.and_then(Amount::number).unwrap_or(now);
    let listing = Listing { by_name: managed.by_name(), gpu_type, now };
    for (at, job) in list.iter().enumerate() {
        add_job(&mut managed, job, &listing)
            .map_err(|reason| StudyError::file(jobs, format!("jobs[{at}].{reason}")))?;
    }
    Ok(managed)
}

fn read_nodes(path: &Path, gpu_type: Option<&str>) -> Result<Managed, StudyError> {
    let file: NodesFile = parse(path)?;
    let list = file.nodes.ok_or_else(|| {
        let expected = "the output of scontrol show nodes --json, or of sinfo --json before Slurm 23.02";
        StudyError::file(path, format!("nodes is missing, expected {expected}"))
    })?;
    let mut managed = Managed::default();
    let mut types: Vec<String> = Vec::new();
    for (at, node) in list.iter().enumerate() {
        let fail = |reason| StudyError::file(path, format!("nodes[{at}].{reason}"));
        types.extend(gres::types(&node.gres));
        let gpus = total(&node.gres, gpu_type).map_err(|reason| fail(format!("gres {reason}")))?;
        if gpus == 0 {
            continue;
        }
        let in_use = node.gres_used.as_deref().map(|text| total(text, gpu_type)).transpose();
        let in_use = in_use.map_err(|reason| fail(format!("gres_used {reason}")))?;
        let is = |some: &[&str]| node.state.has(some) || any_of(&node.state_flags, some);
        let availability = match () {
            () if is(&DOWN) => Availability::Down,
            () if is(&DRAINING) => Availability::Draining,
            () => Availability::Up,
        };
        managed.nodes.push(ManagedNode { name: node.name.clone(), gpus, in_use, availability });
    }
    types.sort_unstable();
    types.dedup();
    if gpu_type.is_none() && types.len() > 1 {
        let reason = format!(
            "the nodes have GPUs of several types ({}), expected one type; choose one with --gpu-type",
            types.join(", ")
        );
        return Err(StudyError::file(path, reason));
    }
    Ok(managed)
}

/// Context that is shared by all entries of the job list.
struct Listing<'a> {
    /// Index of each node by its name.
    by_name: HashMap<String, usize>,
    gpu_type: Option<&'a str>,
    /// Time of the listing, in seconds since the Unix epoch.
    now: f64,
}

/// Adds a running or waiting job. A job array that waits is added as one job per task.
fn add_job(managed: &mut Managed, job: &ListedJob, listing: &Listing<'_>) -> Result<(), String> {
    if job.job_state.has(&RUNNING) {
        return add_running(managed, job, listing);
    }
    if !job.job_state.has(&["PENDING"]) {
        return Ok(());
    }
    let gpus = job.requested(listing.gpu_type)?;
    if gpus == 0 {
        managed.leave_out("requests no GPUs, or GPUs of another type");
        return Ok(());
    }
    if job.state_reason.as_deref().is_some_and(|reason| BLOCKED.contains(&reason)) {
        managed.leave_out("is held by its user, or waits for its start time, another job or a licence");
        return Ok(());
    }
    let starts = job.restart_cnt;
    let waiting = |id| ManagedJob { id, gpus, limit: job.limit(), on: Vec::new(), running_for: 0.0, starts };
    let tasks = job.array_task_string.as_deref().unwrap_or_default();
    if tasks.is_empty() {
        managed.jobs.push(waiting(job.id()));
        return Ok(());
    }
    let tasks = hostlist::numbers(tasks).map_err(|reason| format!("array_task_string: {reason}"))?;
    if managed.jobs.len() + tasks.len() > TASKS_MAX {
        return Err(format!(
            "array_task_string has {} tasks after {} jobs, expected at most {TASKS_MAX} jobs in total",
            tasks.len(),
            managed.jobs.len()
        ));
    }
    managed.jobs.extend(tasks.iter().map(|task| waiting(format!("{}_{task}", job.job_id))));
    Ok(())
}

fn add_running(managed: &mut Managed, job: &ListedJob, listing: &Listing<'_>) -> Result<(), String> {
    let names = match job.nodes.as_deref() {
        None | Some("") => Vec::new(),
        Some(names) => hostlist::expand(names).map_err(|reason| format!("nodes: {reason}"))?,
    };
    let details = job.gres_detail.iter().map(|text| held(text, listing.gpu_type));
    let details = details.collect::<Result<Vec<_>, _>>().map_err(|reason| format!("gres_detail {reason}"))?;
    if details.iter().all(|it| it.count == 0) {
        managed.leave_out("runs without GPUs, or on GPUs of another type");
        return Ok(());
    }
    if details.len() != names.len() {
        let (details, names) = (details.len(), names.len());
        return Err(format!("gres_detail has {details} entries, expected {names}, one for each node"));
    }
    let on = place(managed, &listing.by_name, &names, details)?;
    managed.jobs.push(ManagedJob {
        id: job.id(),
        gpus: on.iter().map(|held| held.count).sum(),
        limit: job.limit(),
        on,
        running_for: job
            .start_time
            .and_then(Amount::number)
            .map_or(0.0, |start| (listing.now - start).max(0.0)),
        starts: job.restart_cnt.saturating_add(1),
    });
    Ok(())
}

/// Returns the GPUs that a running job holds on each of its nodes.
fn place(
    managed: &Managed,
    known: &HashMap<String, usize>,
    names: &[String],
    details: Vec<HeldGres>,
) -> Result<Vec<Held>, String> {
    let mut on = Vec::new();
    for (name, HeldGres { count, indices }) in names.iter().zip(details).filter(|(_, it)| it.count > 0) {
        let node = *known.get(name).ok_or_else(|| {
            format!("nodes contains {name}, expected only nodes with GPUs in the node file")
        })?;
        let most = managed.nodes[node].gpus;
        let last = indices.iter().max().map_or(count, |last| count.max(last + 1));
        if last > most {
            return Err(format!("gres_detail needs {last} GPUs of {name}, expected at most {most}"));
        }
        on.push(Held { node, count, gpus: indices });
    }
    Ok(on)
}

impl ListedJob {
    /// Returns the job's id in the form that Slurm's commands accept.
    fn id(&self) -> String {
        let number = |amount: Option<Amount>| amount.and_then(Amount::number);
        match (number(self.array_job_id), number(self.array_task_id)) {
            (Some(array), Some(task)) if array > 0.0 => format!("{array}_{task}"),
            _ => self.job_id.to_string(),
        }
    }

    /// Returns the time limit in seconds, or `None` if the job has no limit.
    fn limit(&self) -> Option<f64> {
        self.time_limit
            .and_then(Amount::number)
            .filter(|minutes| *minutes > 0.0)
            .map(|minutes| minutes * 60.0)
    }

    /// Returns the number of GPUs that a waiting job asks for.
    fn requested(&self, gpu_type: Option<&str>) -> Result<usize, String> {
        let count = |amount: Option<Amount>| amount.and_then(Amount::number).map_or(1, |it| it as usize);
        let sources = [
            ("tres_req_str", &self.tres_req_str, 1),
            ("tres_per_job", &self.tres_per_job, 1),
            ("tres_per_node", &self.tres_per_node, count(self.node_count)),
            ("tres_per_task", &self.tres_per_task, count(self.tasks)),
        ];
        for (field, text, times) in sources {
            let gpus = total(text.as_deref().unwrap_or_default(), gpu_type);
            let gpus = gpus.map_err(|reason| format!("{field} {reason}"))?;
            if gpus > 0 {
                return Ok(gpus.saturating_mul(times));
            }
        }
        Ok(0)
    }
}
