//! Reading nodes and jobs of Slurm and Kubernetes, and advice for them.

use std::path::{Path, PathBuf};

use iswitch_placement::agent::Agent;
use iswitch_placement::manager::kubernetes::{GPU_RESOURCE, read_kubernetes};
use iswitch_placement::manager::slurm::read_slurm;
use iswitch_placement::manager::xid::{HARDWARE_FAILURES, read_xids};
use iswitch_placement::manager::{Advice, Availability, Managed};
use iswitch_placement::options::{Checkpoint, Queueing};
use iswitch_placement::policy::PolicySpec;
use iswitch_placement::simulation::Scenario;
use iswitch_placement::{Failures, Options};
use iswitch_study::StudyError;
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Returns the path of a file with the output of a real manager.
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures/managers").join(name)
}

/// Returns the decisions of a policy. `rates` contains one failure rate for each node, in failures per GPU and year.
fn advise(managed: &Managed, policy: PolicySpec, rates: &[f64]) -> Result<Advice, StudyError> {
    let (cluster, failures) = (managed.cluster()?, managed.failures(rates)?);
    // Without checkpoints, `saving` suspends jobs to save their work.
    let options = Options { queueing: Queueing::Easy, checkpoint: Checkpoint::None, ..Options::default() };
    let scenario = Scenario::new(cluster.clone(), Vec::new(), Failures::none(&cluster), options)?;
    let placer = policy.build(&scenario, 1)?;
    managed.advise(&mut Agent::new(policy.to_string(), placer, cluster, failures, options)?)
}

/// Formats each start as `job on node:gpus node:gpus`.
fn starts(advice: &Advice) -> Vec<String> {
    let start = advice.start.iter().map(|start| {
        let nodes = start.nodes.iter().map(|on| format!(" {}:{:?}", on.node, on.gpus));
        format!("{}{}", start.job, nodes.collect::<String>())
    });
    start.collect()
}

#[test]
fn the_output_of_real_slurm_versions_is_read() {
    for version in ["22.05", "24.11"] {
        let file = |name: &str| fixture(&format!("slurm-{version}-{name}.json"));
        let managed = read_slurm(&file("nodes"), &file("jobs"), None, 1_795_755_430.0).unwrap();
        let nodes = managed.nodes.iter().map(|it| (it.name.as_str(), it.gpus, it.in_use, it.availability));
        let expected = [
            ("gpu1", 4, Some(3), Availability::Up),
            ("gpu2", 4, Some(2), Availability::Up),
            ("gpu3", 4, Some(0), Availability::Draining),
        ];
        assert_eq!(nodes.collect::<Vec<_>>(), expected, "{version}");
        let jobs = managed.jobs.iter().map(|job| {
            let on = job.on.iter().map(|held| (held.node, held.gpus.clone())).collect::<Vec<_>>();
            (job.id.as_str(), job.gpus, job.limit, on, job.starts)
        });
        let waiting = |id, gpus, limit| (id, gpus, limit, Vec::new(), 0);
        let expected = [
            ("1", 3, Some(7200.0), vec![(0, vec![0, 1, 2])], 1),
            ("2", 2, Some(86_400.0), vec![(1, vec![0, 1])], 1),
            waiting("3", 8, Some(18_000.0)),
            waiting("4", 12, None),
            waiting("6_1", 1, Some(3600.0)),
            waiting("6_2", 1, Some(3600.0)),
            waiting("6_3", 1, Some(3600.0)),
        ];
        assert_eq!(jobs.collect::<Vec<_>>(), expected, "{version}");
        assert!(managed.jobs[0].running_for >= 8.0 && managed.jobs[0].running_for < 10.0, "{version}");
        assert_eq!(managed.left_out.iter().map(|(count, _)| count).sum::<usize>(), 2, "{version}");
        // GPU 3 of gpu1 and GPUs 2 and 3 of gpu2 are free; gpu3 is draining.
        let advice = advise(&managed, PolicySpec::FirstFit, &[0.0; 3]).unwrap();
        assert_eq!(starts(&advice), ["6_1 gpu1:[3]", "6_2 gpu2:[2]", "6_3 gpu2:[3]"], "{version}");
    }
}

/// Cluster that a test simulates and writes in the format of Slurm 24.11.
struct Slurm {
    rng: ChaCha8Rng,
    jobs: Vec<Job>,
    /// For each node, the number of steps until it is repaired; 0 for a node that works.
    repair: Vec<u32>,
    next_id: u64,
    time: u64,
    failures: u32,
    suspensions: u32,
    complete: u32,
}

struct Job {
    id: u64,
    gpus: usize,
    /// Remaining work, in steps.
    left: u32,
    /// Nodes on which the job runs, each with the indices of the job's GPUs; empty if the job waits.
    on: Vec<(usize, Vec<usize>)>,
    start: u64,
    restarts: u32,
}

const NODES: usize = 6;
const GPUS_PER_NODE: usize = 4;
const STEP_S: u64 = 600;

impl Slurm {
    fn new(seed: u64) -> Self {
        let rng = ChaCha8Rng::seed_from_u64(seed);
        let repair = vec![0; NODES];
        Self { rng, jobs: Vec::new(), repair, next_id: 1, time: 0, failures: 0, suspensions: 0, complete: 0 }
    }

    fn is_busy(&self, node: usize, gpu: usize) -> bool {
        self.jobs.iter().flat_map(|job| &job.on).any(|(on, gpus)| *on == node && gpus.contains(&gpu))
    }

    /// Advances by one step: jobs work and complete, nodes fail and are repaired, and jobs arrive.
    fn step(&mut self) {
        self.time += STEP_S;
        for job in self.jobs.iter_mut().filter(|job| !job.on.is_empty()) {
            job.left -= 1;
        }
        let before = self.jobs.len();
        self.jobs.retain(|job| job.left > 0);
        self.complete += (before - self.jobs.len()) as u32;
        for node in 0..NODES {
            self.repair[node] = self.repair[node].saturating_sub(1);
            if self.repair[node] == 0 && self.rng.random_bool(0.02) {
                self.failures += 1;
                self.repair[node] = self.rng.random_range(1..12);
                for job in self.jobs.iter_mut().filter(|job| job.on.iter().any(|(on, _)| *on == node)) {
                    job.on.clear();
                    job.restarts += 1;
                }
            }
        }
        while self.jobs.len() < 14 {
            let (gpus, left) = (self.rng.random_range(1..=6), self.rng.random_range(6..160));
            self.jobs.push(Job { id: self.next_id, gpus, left, on: Vec::new(), start: 0, restarts: 0 });
            self.next_id += 1;
        }
    }

    /// Writes the files that `scontrol show nodes --json` and `squeue --json` would print.
    fn write(&self, directory: &Path) -> (PathBuf, PathBuf) {
        let number = |number: u64| json!({ "set": true, "infinite": false, "number": number });
        let node = |node: usize| {
            let used = (0..GPUS_PER_NODE).filter(|gpu| self.is_busy(node, *gpu)).count();
            let state =
                if self.repair[node] > 0 { json!(["DOWN", "NOT_RESPONDING"]) } else { json!(["MIXED"]) };
            json!({ "name": format!("n{node}"), "state": state, "gres": format!("gpu:a100:{GPUS_PER_NODE}(S:0)"),
                "gres_used": format!("gpu:a100:{used}(IDX:N/A)") })
        };
        let job = |job: &Job| {
            let names: Vec<_> = job.on.iter().map(|(node, _)| format!("n{node}")).collect();
            let details = job.on.iter().map(|(_, gpus)| {
                let indices: Vec<_> = gpus.iter().map(usize::to_string).collect();
                format!("gpu:a100:{}(IDX:{})", gpus.len(), indices.join(","))
            });
            let state = if job.on.is_empty() { "PENDING" } else { "RUNNING" };
            json!({ "job_id": job.id, "job_state": [state], "state_reason": "Resources", "nodes": names.join(","),
                "gres_detail": details.collect::<Vec<_>>(), "tres_per_job": format!("gres/gpu:{}", job.gpus),
                "time_limit": number(1 + u64::from(job.left) * STEP_S / 60), "start_time": number(job.start),
                "restart_cnt": job.restarts })
        };
        let (nodes, jobs) = (directory.join("nodes.json"), directory.join("jobs.json"));
        let all: Vec<Value> = (0..NODES).map(node).collect();
        std::fs::write(&nodes, json!({ "nodes": all }).to_string()).unwrap();
        let all: Vec<Value> = self.jobs.iter().map(job).collect();
        let content = json!({ "jobs": all, "last_update": number(self.time) });
        std::fs::write(&jobs, content.to_string()).unwrap();
        (nodes, jobs)
    }

    /// Carries out advice; panics if a decision is invalid.
    fn apply(&mut self, advice: &Advice) {
        let at = |jobs: &[Job], id: &str| jobs.iter().position(|job| job.id.to_string() == id).unwrap();
        for id in &advice.suspend {
            let at = at(&self.jobs, id);
            assert!(!self.jobs[at].on.is_empty(), "job {id} must run to be suspended");
            self.jobs[at].on.clear();
            self.jobs[at].restarts += 1;
            self.suspensions += 1;
        }
        for start in &advice.start {
            let at = at(&self.jobs, &start.job);
            assert!(self.jobs[at].on.is_empty(), "job {} must wait to be started", start.job);
            for on in &start.nodes {
                let node: usize = on.node.strip_prefix('n').unwrap().parse().unwrap();
                assert_eq!(self.repair[node], 0, "node {node} must work");
                for gpu in &on.gpus {
                    assert!(
                        *gpu < GPUS_PER_NODE && !self.is_busy(node, *gpu),
                        "GPU {gpu} of {node} must be free"
                    );
                }
                self.jobs[at].on.push((node, on.gpus.clone()));
            }
            let gpus: usize = self.jobs[at].on.iter().map(|(_, gpus)| gpus.len()).sum();
            assert_eq!(gpus, self.jobs[at].gpus);
            self.jobs[at].start = self.time;
        }
    }
}

#[test]
fn advice_for_slurm_is_valid_through_a_thousand_failures() {
    let directory = TempDir::new().unwrap();
    let rates: Vec<f64> = (0..NODES).map(|node| 50.0 + 400.0 * node as f64).collect();
    for policy in [PolicySpec::Saving, PolicySpec::LongestReliable] {
        let mut slurm = Slurm::new(8_470_213);
        while slurm.failures < 1000 {
            slurm.step();
            let (nodes, jobs) = slurm.write(directory.path());
            let managed = read_slurm(&nodes, &jobs, None, 0.0).unwrap();
            let advice = advise(&managed, policy, &rates).unwrap();
            slurm.apply(&advice);
        }
        assert!(slurm.complete > 100, "{policy}: {}", slurm.complete);
        assert_eq!(slurm.suspensions > 50, policy == PolicySpec::Saving, "{policy}: {}", slurm.suspensions);
    }
}

/// Returns the error that is reported when Slurm's files have these contents, without the name of their directory.
fn slurm_error(nodes: &Value, jobs: &Value, gpu_type: Option<&str>) -> String {
    let directory = TempDir::new().unwrap();
    let write = |name: &str, content: &Value| {
        let path = directory.path().join(name);
        std::fs::write(&path, content.to_string()).unwrap();
        path
    };
    let (nodes, jobs) = (write("nodes", nodes), write("jobs", jobs));
    let managed = read_slurm(&nodes, &jobs, gpu_type, 0.0);
    let error =
        match managed.map(|managed| advise(&managed, PolicySpec::Pack, &vec![0.0; managed.nodes.len()])) {
            Err(error) | Ok(Err(error)) => error,
            Ok(Ok(advice)) => panic!("there is no error: {advice:?}"),
        };
    error.to_string().replace(&format!("{}/", directory.path().display()), "")
}

#[test]
fn invalid_files_of_slurm_are_refused_by_field() {
    let node = |name: &str, gres: &str| json!({ "name": name, "state": "idle", "gres": gres });
    let nodes = json!({ "nodes": [node("a", "gpu:4"), node("b", "gpu:4")] });
    let job = |fields: Value| {
        let mut job =
            json!({ "job_id": 1, "job_state": "RUNNING", "nodes": "a", "gres_detail": ["gpu:2(IDX:0-1)"] });
        job.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        json!({ "jobs": [job] })
    };
    let error = |fields: Value| slurm_error(&nodes, &job(fields), None);
    assert_eq!(
        error(json!({ "nodes": "c" })),
        "jobs: jobs[0].nodes contains c, expected only nodes with GPUs in the node file"
    );
    assert_eq!(
        error(json!({ "gres_detail": ["gpu:5(IDX:0-4)"] })),
        "jobs: jobs[0].gres_detail needs 5 GPUs of a, expected at most 4"
    );
    assert_eq!(error(json!({ "nodes": "[a" })), "jobs: jobs[0].nodes: \"[a\" has unpaired brackets");
    assert_eq!(
        error(json!({ "nodes": "a,b" })),
        "jobs: jobs[0].gres_detail has 1 entries, expected 2, one for each node"
    );
    let text = error(json!({ "restart_cnt": -1 }));
    assert!(text.starts_with("jobs: jobs[0].restart_cnt: invalid value"), "{text}");
    let two = json!({ "jobs": [job(json!({}))["jobs"][0], job(json!({ "job_id": 2 }))["jobs"][0]] });
    assert_eq!(
        slurm_error(&nodes, &two, None),
        "GPUs of job 2 on a is 2, expected GPUs that no other job holds"
    );
    let waiting = job(json!({ "job_state": "PENDING", "tres_per_job": "gres/gpu:9" }));
    let text = slurm_error(&nodes, &waiting, None);
    assert!(text.contains("is 9, expected 1 to 8"), "{text}");
    let nodes = json!({ "nodes": [node("a", "gpu:a100:4"), node("b", "gpu:v100:4")] });
    let none = json!({ "jobs": [] });
    assert_eq!(
        slurm_error(&nodes, &none, None),
        "nodes: the nodes have GPUs of several types (a100, v100), expected one type; choose one with --gpu-type"
    );
    assert_eq!(
        slurm_error(&nodes, &none, Some("h100")),
        "nodes: GPUs of all nodes is 0, expected 1 to 1048576"
    );
    let text = slurm_error(&json!({ "sinfo": [] }), &none, None);
    assert!(
        text.starts_with("nodes: nodes is missing, expected the output of scontrol show nodes"),
        "{text}"
    );
}

#[test]
fn pods_of_a_group_are_one_job() {
    let directory = TempDir::new().unwrap();
    let write = |name: &str, items: &Value| {
        let path = directory.path().join(name);
        std::fs::write(&path, json!({ "items": items }).to_string()).unwrap();
        path
    };
    let node = |name: &str, unschedulable: bool, ready: &str| {
        json!({ "metadata": { "name": name }, "spec": { "unschedulable": unschedulable }, "status": {
            "capacity": { "cpu": "64", GPU_RESOURCE: "4" }, "conditions": [{ "type": "Ready", "status": ready }] } })
    };
    let nodes = json!([
        node("a", false, "True"),
        node("b", false, "True"),
        node("c", true, "True"),
        node("d", false, "Unknown")
    ]);
    let pod = |name: &str, group: &str, node: Option<&str>, gpus: &str, phase: &str| {
        json!({ "metadata": { "name": name, "namespace": "ml", "labels": { "job-name": group } },
            "spec": { "nodeName": node, "containers": [{ "resources": { "limits": { GPU_RESOURCE: gpus } } }] },
            "status": { "phase": phase, "startTime": node.map(|_| "2026-11-27T04:57:02Z") } })
    };
    let pods = json!([
        pod("x-0", "x", Some("a"), "3", "Running"),
        pod("y-0", "y", None, "2", "Pending"),
        pod("y-1", "y", None, "2", "Pending"),
        pod("z-0", "z", Some("b"), "4", "Succeeded"),
        pod("w-0", "w", Some("c"), "1", "Running"),
    ]);
    let (nodes, pods) = (write("nodes", &nodes), write("pods", &pods));
    let managed = read_kubernetes(&nodes, &pods, GPU_RESOURCE, 1_795_755_482.0).unwrap();
    let availability: Vec<_> = managed.nodes.iter().map(|node| node.availability).collect();
    let expected = [Availability::Up, Availability::Up, Availability::Draining, Availability::Down];
    assert_eq!(availability, expected);
    let jobs = managed.jobs.iter().map(|job| (job.id.as_str(), job.gpus, job.on.len(), job.running_for));
    assert_eq!(jobs.collect::<Vec<_>>(), [("ml/w", 1, 1, 60.0), ("ml/x", 3, 1, 60.0), ("ml/y", 4, 0, 0.0)]);
    let advice = advise(&managed, PolicySpec::Pack, &[0.0; 4]).unwrap();
    assert_eq!(starts(&advice), ["ml/y b:[0, 1, 2, 3]"]);
}

#[test]
fn rates_are_estimated_from_the_xids_of_the_hardware() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("kernel.log");
    let read = |text: &str| {
        std::fs::write(&path, text).unwrap();
        read_xids(&path, &HARDWARE_FAILURES)
    };
    let line = |time: &str, host: &str, device: &str, code: u32| {
        format!(
            "{time} {host} kernel: NVRM: Xid (PCI:{device}): {code}, pid='<unknown>', name=<unknown>, text\n"
        )
    };
    let text = [
        line("2026-11-20T03:12:44+0000", "gpu1", "0000:3b:00", 79),
        // A second line about the same GPU on the same day belongs to the same failure.
        line("2026-11-20T03:12:45+0000", "gpu1", "0000:3b:00", 79),
        line("2026-11-20T09:00:00+0000", "gpu1", "0000:5e:00", 48),
        line("2026-11-21T03:12:44+0000", "gpu1", "0000:3b:00", 79),
        // An error caused by a program, and a line from another driver.
        line("2026-11-21T04:00:00+0000", "gpu2", "0000:3b:00", 31),
        "2026-11-21T04:00:00+0000 gpu2 kernel: eth0: link up\n".to_owned(),
    ];
    let counts = read(&text.concat()).unwrap();
    assert_eq!((counts.by_node["gpu1"], counts.by_node.len(), counts.others), (3, 1, 1));
    let file = |name: &str| fixture(&format!("slurm-24.11-{name}.json"));
    let managed = read_slurm(&file("nodes"), &file("jobs"), None, 0.0).unwrap();
    // 3 failures in 12 GPU-years: the prior counts as half a failure in 2 GPU-years.
    let rates = counts.rates(&managed, 365.25).unwrap();
    assert_eq!(rates, [3.5 / 6.0, 0.5 / 6.0, 0.5 / 6.0]);
    let error = read(&line("yesterday", "gpu1", "0000:3b:00", 79)).unwrap_err().to_string();
    assert!(error.contains("kernel.log, line 1: the line is \"yesterday gpu1"), "{error}");
    let stranger = read(&line("2026-11-20T03:12:44+0000", "gpu9", "0000:3b:00", 79)).unwrap();
    let error = stranger.rates(&managed, 30.0).unwrap_err().to_string();
    assert_eq!(error, "host of an Xid is gpu9, expected the name of a node with GPUs");
}
