//! Fuzz targets: files of jobs, clusters and failures, and requests to the agent. `docs/fuzzing.md` describes how to
//! run them.

use std::fs;
use std::panic::AssertUnwindSafe;
use std::path::Path;

use iswitch_placement::agent::Agent;
use iswitch_placement::policy::PolicySpec;
use iswitch_placement::reader::{
    SharedGpus, Throughputs, read_alibaba_nodes, read_alibaba_pods, read_cluster, read_gavel, read_jobs,
    read_outages, read_philly, read_pollux, read_rates, read_tiresias, read_titan,
};
use iswitch_placement::simulation::Scenario;
use iswitch_placement::{Cluster, Failures, Job, Options, StudyError};
use serde_json::Value;

fn check<T>(result: Result<T, StudyError>, path: &Path) -> Option<T> {
    if let Err(error) = &result {
        assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
    }
    result.ok()
}

/// Writes a file that begins with a line of column names, so that the reader does not refuse the whole file.
fn write(path: &Path, names: &str, bytes: &[u8]) {
    let text = [names.as_bytes(), b"\n", bytes].concat();
    fs::write(path, text).expect("the file must be writable");
}

fn check_jobs(jobs: Option<Vec<Job>>) {
    for job in jobs.into_iter().flatten() {
        assert!(
            job.gpus() > 0 && job.duration() > 0.0 && job.arrival() >= 0.0 && job.speed(job.gpus()) == 1.0
        );
    }
}

#[test]
fn placement_jobs() {
    let directory = tempfile::tempdir().expect("a temporary directory must be available");
    let path = directory.path().join("jobs");
    let throughputs = Throughputs::default();
    bolero::check!().with_iterations(300).for_each(|bytes: &[u8]| {
        write(&path, "arrival_s,gpus,duration_s", bytes);
        check_jobs(check(read_jobs(&path), &path));
        write(&path, "gpus,duration_s", bytes);
        check_jobs(check(read_philly(&path), &path).map(|pool| pool.jobs().to_vec()));
        write(&path, "num_gpu,submit_time,duration", bytes);
        check_jobs(check(read_tiresias(&path), &path));
        write(&path, "num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time", bytes);
        for shared in [SharedGpus::LeaveOut, SharedGpus::Whole] {
            check_jobs(check(read_alibaba_pods(&path, shared), &path).map(|jobs| jobs.jobs));
        }
        fs::write(&path, bytes).expect("the file must be writable");
        check(read_gavel(&path, &throughputs), &path);
        check(Throughputs::read(&path, "v100"), &path);
    });
}

#[test]
fn placement_workload() {
    let directory = tempfile::tempdir().expect("a temporary directory must be available");
    let path = directory.path().join("workload");
    fs::write(&path, "time,application,num_replicas,batch_size\n5,a,4,128\n")
        .expect("the file must be writable");
    let folder = directory.path().join("a");
    fs::create_dir(&folder).expect("the file must be writable");
    bolero::check!().with_iterations(300).for_each(|bytes: &[u8]| {
        write(&folder.join("scalability.csv"), "num_replicas,local_bsz,step_time,sync_time", bytes);
        write(&folder.join("placements.csv"), "placement,local_bsz,step_time,sync_time", bytes);
        fs::write(folder.join("validation-128.csv"), "iteration\n9\n").expect("the file must be writable");
        // The error must name a file in the directory, but not necessarily the workload.
        check_jobs(check(read_pollux(&path, directory.path()), directory.path()));
    });
}

#[test]
fn placement_cluster() {
    let directory = tempfile::tempdir().expect("a temporary directory must be available");
    let path = directory.path().join("cluster");
    let cluster = Cluster::uniform(2, 2).expect("the cluster must be valid");
    bolero::check!().with_iterations(300).for_each(|bytes: &[u8]| {
        write(&path, "gpus,cage", bytes);
        check(read_cluster(&path), &path);
        write(&path, "gpu,model", bytes);
        check(read_alibaba_nodes(&path), &path);
        write(&path, "gpu,per_year,age_years", bytes);
        check(read_rates(&path, &cluster), &path);
        write(&path, "gpu,begin_s,end_s", bytes);
        if let Some(outages) = check(read_outages(&path, &cluster), &path) {
            Failures::trace(&cluster, &outages).expect("the reader must return valid outages");
        }
        write(&path, "SN,location,insert,duration,event", bytes);
        check(read_titan(&path), &path);
    });
}

/// Number of GPUs in the agent's cluster.
const GPUS: usize = 6;

fn agent(policy: PolicySpec) -> Agent {
    let cluster = Cluster::uniform(3, 2).expect("the cluster must be valid");
    let failures = Failures::none(&cluster);
    let scenario = Scenario::new(cluster.clone(), Vec::new(), failures.clone(), Options::default());
    let placer = policy
        .build(&scenario.expect("the scenario must be valid"), 1)
        .expect("the policy must be buildable");
    Agent::new(policy.to_string(), placer, cluster, failures, Options::default())
        .expect("the agent must be valid")
}

#[test]
fn placement_request() {
    let mut agent = AssertUnwindSafe(agent(PolicySpec::Oracle));
    bolero::check!().with_iterations(1000).for_each(|bytes: &[u8]| {
        let answer = agent.answer(&String::from_utf8_lossy(bytes));
        assert!(!answer.contains('\n'));
        let answer: Value = serde_json::from_str(&answer).expect("the answer must be JSON");
        assert!(["gpus", "policy", "error"].iter().any(|key| answer.get(key).is_some()), "{answer}");
    });
}

/// State of the cluster and the job to place: for each GPU, its state, its rate and the time until it is free; then the
/// number of GPUs and the duration of the job.
type State = ([(u8, u32, Option<u32>); GPUS], u8, u32);

#[test]
fn placement_state() {
    let policies = [
        PolicySpec::Random,
        PolicySpec::FirstFit,
        PolicySpec::BestFit,
        PolicySpec::Reliable,
        PolicySpec::Match,
        PolicySpec::Oracle,
    ];
    let mut agents = AssertUnwindSafe(policies.map(agent));
    bolero::check!().with_iterations(300).with_type::<State>().for_each(|(gpus, wanted, duration)| {
        let state = |at: usize| ["free", "free", "busy", "failed"][usize::from(gpus[at].0 % 4)];
        let entry = |(at, (_, rate, left)): (usize, &(u8, u32, Option<u32>))| {
            serde_json::json!({ "state": state(at), "rate": f64::from(*rate) / 1e4, "left": left })
        };
        let entries: Vec<Value> = gpus.iter().enumerate().map(entry).collect();
        let wanted = 1 + usize::from(*wanted) % GPUS;
        let job = serde_json::json!({ "gpus": wanted, "duration": f64::from(*duration) + 1.0 });
        let request = serde_json::json!({ "gpus": entries, "job": job }).to_string();
        for agent in agents.iter_mut() {
            let answer: Value = serde_json::from_str(&agent.answer(&request)).expect("the answer must be JSON");
            let picks = answer["gpus"].as_array().unwrap_or_else(|| panic!("{answer} to {request}"));
            assert!(picks.is_empty() || picks.len() == wanted, "{answer} to {request}");
            for (number, pick) in picks.iter().enumerate() {
                let at = pick.as_u64().and_then(|pick| usize::try_from(pick).ok()).expect("a pick must be an id");
                assert!(state(at) == "free" && !picks[..number].contains(pick), "{answer} to {request}");
            }
        }
    });
}
