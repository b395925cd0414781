//! Placement: the agent makes all decisions for a scheduler that the tests simulate.
use iswitch_placement::agent::Agent;
use iswitch_placement::options::Queueing;
use iswitch_placement::policy::PolicySpec;
use iswitch_placement::simulation::Scenario;
use iswitch_placement::{Cluster, Failures, Options};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

const GPUS: usize = 24;
const STEP_S: f64 = 600.0;

/// Job of the scheduler.
struct Job {
    gpus: usize,
    duration: f64,
    done: f64,
    on: Vec<usize>,
    running_for: f64,
    starts: u32,
}

/// Scheduler that carries out the agent's decisions and panics if one is invalid.
struct Scheduler {
    jobs: Vec<Job>,
    /// For each GPU, the number of steps until it is repaired; 0 if it works.
    repair: Vec<u32>,
    draining: Vec<bool>,
    rng: ChaCha8Rng,
    failures: usize,
    suspensions: usize,
    complete: usize,
}

fn agent(policy: PolicySpec) -> Agent {
    let cluster = Cluster::uniform(GPUS / 4, 4).unwrap();
    let rates = (0..GPUS).map(|gpu| 50.0 * (1 + gpu % 5) as f64).collect();
    let failures = Failures::poisson(rates).unwrap();
    let options = Options { queueing: Queueing::Easy, ..Options::default() };
    let scenario = Scenario::new(cluster.clone(), Vec::new(), failures.clone(), options).unwrap();
    let placer = policy.build(&scenario, 1).unwrap();
    Agent::new(policy.to_string(), placer, cluster, failures, options).unwrap()
}

impl Scheduler {
    fn new() -> Self {
        let (repair, draining) = (vec![0; GPUS], vec![false; GPUS]);
        let rng = ChaCha8Rng::seed_from_u64(1);
        Self { jobs: Vec::new(), repair, draining, rng, failures: 0, suspensions: 0, complete: 0 }
    }

    fn is_busy(&self, gpu: usize) -> bool {
        self.jobs.iter().any(|job| job.on.contains(&gpu))
    }

    fn request(&self) -> String {
        let state = |gpu: usize| match () {
            () if self.repair[gpu] > 0 => "failed",
            () if self.draining[gpu] => "draining",
            () if self.is_busy(gpu) => "busy",
            () => "free",
        };
        let gpus: Vec<Value> = (0..GPUS).map(|gpu| json!({ "state": state(gpu) })).collect();
        let job = |(id, job): (usize, &Job)| {
            // Every third job has no known duration.
            let duration = if id % 3 == 0 { Value::Null } else { json!(job.duration) };
            json!({ "id": id.to_string(), "gpus": job.gpus, "duration": duration, "done": job.done, "on": job.on,
                "running_for": job.running_for, "starts": job.starts })
        };
        let jobs: Vec<Value> = self.jobs.iter().enumerate().map(job).collect();
        json!({ "gpus": gpus, "jobs": jobs }).to_string()
    }

    /// Carries out an answer; panics if a decision is invalid.
    fn apply(&mut self, answer: &str) {
        let answer: Value = serde_json::from_str(answer).unwrap();
        assert_eq!(answer.get("error"), None, "{answer}");
        let index = |id: &Value| id.as_str().unwrap().parse::<usize>().unwrap();
        for id in answer["suspend"].as_array().unwrap() {
            let job = &mut self.jobs[index(id)];
            assert!(!job.on.is_empty(), "job {id} must run to be suspended");
            let overhead = if job.starts > 1 { 600.0 } else { 0.0 };
            job.done += (job.running_for - overhead).max(0.0);
            (job.on, job.running_for) = (Vec::new(), 0.0);
            self.suspensions += 1;
        }
        for start in answer["start"].as_array().unwrap() {
            let at = index(&start["job"]);
            let gpus = start["gpus"].as_array().unwrap();
            let gpus: Vec<usize> = gpus.iter().map(|gpu| gpu.as_u64().unwrap() as usize).collect();
            assert!(self.jobs[at].on.is_empty(), "job {at} must wait to be started");
            assert_eq!(gpus.len(), self.jobs[at].gpus);
            for (number, gpu) in gpus.iter().enumerate() {
                let is_free = self.repair[*gpu] == 0 && !self.draining[*gpu] && !self.is_busy(*gpu);
                assert!(is_free && !gpus[..number].contains(gpu), "GPU {gpu} must be free");
            }
            self.jobs[at].on = gpus;
            self.jobs[at].starts += 1;
        }
    }

    /// Advances by one step: jobs work and complete, GPUs fail, are repaired and drain, and jobs arrive.
    fn step(&mut self) {
        for job in self.jobs.iter_mut().filter(|job| !job.on.is_empty()) {
            job.running_for += STEP_S;
        }
        let before = self.jobs.len();
        self.jobs.retain(|job| job.on.is_empty() || job.done + job.running_for < job.duration);
        self.complete += before - self.jobs.len();
        for gpu in 0..GPUS {
            self.repair[gpu] = self.repair[gpu].saturating_sub(1);
            if self.repair[gpu] == 0 && self.rng.random_bool(0.004) {
                self.failures += 1;
                self.repair[gpu] = self.rng.random_range(1..12);
                if let Some(job) = self.jobs.iter_mut().find(|job| job.on.contains(&gpu)) {
                    (job.on, job.running_for) = (Vec::new(), 0.0);
                }
            }
            if self.rng.random_bool(0.002) {
                self.draining[gpu] = !self.draining[gpu] && gpu % 2 == 0;
            }
        }
        while self.jobs.len() < 14 {
            let duration = self.rng.random_range(3600.0..100_000.0);
            let gpus = self.rng.random_range(1..=6);
            self.jobs.push(Job { gpus, duration, done: 0.0, on: Vec::new(), running_for: 0.0, starts: 0 });
        }
    }
}

#[test]
fn every_decision_is_valid_through_a_thousand_failures() {
    for policy in [PolicySpec::Saving, PolicySpec::LongestReliable, PolicySpec::Random, PolicySpec::Oracle] {
        let (mut agent, mut scheduler) = (agent(policy), Scheduler::new());
        while scheduler.failures < 1000 {
            scheduler.step();
            let answer = agent.answer(&scheduler.request());
            scheduler.apply(&answer);
        }
        assert!(scheduler.complete > 100, "{policy}: {}", scheduler.complete);
        assert_eq!(
            scheduler.suspensions > 50,
            policy == PolicySpec::Saving,
            "{policy}: {}",
            scheduler.suspensions
        );
    }
}

#[test]
fn invalid_states_of_jobs_are_reported_by_field() {
    let mut agent = agent(PolicySpec::Saving);
    let mut text = |jobs: Value, busy: &[usize]| {
        let state = |gpu| if busy.contains(&gpu) { "busy" } else { "free" };
        let gpus: Vec<Value> = (0..GPUS).map(|gpu| json!({ "state": state(gpu) })).collect();
        agent.answer(&json!({ "gpus": gpus, "jobs": jobs }).to_string())
    };
    let error = |text: &str| json!({ "error": text }).to_string();
    let wrong = text(json!([{ "id": "a", "gpus": 0 }]), &[]);
    assert_eq!(wrong, error("jobs[0].gpus is 0, expected 1 to 24, the number of GPUs in the cluster"));
    let wrong = text(json!([{ "id": "a", "gpus": 1, "duration": -1.0 }]), &[]);
    assert_eq!(wrong, error("jobs[0].duration is -1, expected a number of seconds above 0"));
    let wrong = text(json!([{ "id": "a", "gpus": 2, "on": [3] }]), &[3]);
    assert_eq!(wrong, error("jobs[0].on is 1, expected 2 GPUs or none"));
    let wrong = text(json!([{ "id": "a", "gpus": 1, "on": [3] }]), &[]);
    assert_eq!(
        wrong,
        error("jobs[0].on is 3, expected the index of a busy or draining GPU that belongs to no other job")
    );
    let wrong = text(json!([]), &[5]);
    assert_eq!(wrong, error("gpus[5].state is busy, expected busy only if a job runs on it"));
    let wrong = text(json!([{ "id": "a", "gpus": 1 }, { "id": "a", "gpus": 1 }]), &[]);
    assert_eq!(wrong, error("id of a job is a, expected a different name for each job"));
    let answer: Value = serde_json::from_str(&text(json!([{ "id": "a", "gpus": 1 }]), &[])).unwrap();
    assert_eq!(answer["suspend"], json!([]));
    assert_eq!(answer["start"], json!([{ "job": "a", "gpus": [0] }]));
}

#[test]
fn rates_of_nodes_are_parts_of_the_rates_of_their_gpus() {
    let mut agent = agent(PolicySpec::Reliable);
    let mut text = |entry: &dyn Fn(usize) -> Value| {
        let gpus: Vec<Value> = (0..GPUS).map(entry).collect();
        agent.answer(&json!({ "gpus": gpus, "job": { "gpus": 2, "duration": 60 } }).to_string())
    };
    let error = |text: &str| json!({ "error": text }).to_string();
    // GPUs 4 to 7 are on node 1, which fails rarely; the other GPUs are more reliable on their own.
    let reliable = |gpu: usize| {
        let node = if gpu / 4 == 1 { 1.0 } else { 30.0 };
        json!({ "state": "free", "rate": node + 5.0 + gpu as f64, "node_rate": node })
    };
    assert_eq!(text(&reliable), json!({ "gpus": [4, 5] }).to_string());
    let low = |gpu: usize| {
        json!({ "state": "free", "rate": if gpu == 9 { 1.0 } else { 7.0 }, "rack_rate": 2.0,
        "switch_rate": 3.0 })
    };
    let expected =
        "gpus[9].rate is 1, expected at least 5, the sum of its node_rate, rack_rate and switch_rate";
    assert_eq!(text(&low), error(expected));
    let negative = |_: usize| json!({ "state": "free", "rate": 7.0, "switch_rate": -1.0 });
    assert!(text(&negative).contains("gpus[0].switch_rate is -1, expected 0 to "), "{}", text(&negative));
    let other =
        |gpu: usize| json!({ "state": "free", "rate": 7.0, "node_rate": if gpu == 6 { 2.0 } else { 1.0 } });
    assert_eq!(text(&other), error("node_rate of GPU 6 is 2, expected 1, as for GPU 4 of the same node"));
}

#[test]
fn the_agent_states_when_it_wants_to_decide_again() {
    // GPU 0 fails 50 times in a year, so Young's interval for restarts of ten minutes is sqrt(2 * 600 s * year / 50).
    let young = (2.0 * 600.0 * 365.25 * 86_400.0 / 50.0_f64).sqrt();
    let look_again = |policy: PolicySpec, running_for: f64, starts: u32| {
        let gpus: Vec<Value> =
            (0..GPUS).map(|gpu| json!({ "state": if gpu == 0 { "busy" } else { "free" } })).collect();
        let job = json!({ "id": "a", "gpus": 1, "duration": 1e6, "on": [0], "running_for": running_for,
            "starts": starts });
        let answer = agent(policy).answer(&json!({ "gpus": gpus, "jobs": [job] }).to_string());
        let answer: Value = serde_json::from_str(&answer).unwrap();
        (answer["suspend"].as_array().unwrap().len(), answer["look_again_s"].as_f64())
    };
    let near = |found: Option<f64>, want: f64| found.is_some_and(|found| (found - want).abs() < 1e-6 * want);
    let (suspended, seconds) = look_again(PolicySpec::Saving, 1000.0, 1);
    assert!(suspended == 0 && near(seconds, young - 1000.0), "{seconds:?}");
    // A run that is not the first begins with a restart.
    let (suspended, seconds) = look_again(PolicySpec::Saving, 200.0, 2);
    assert!(suspended == 0 && near(seconds, 400.0 + young), "{seconds:?}");
    // Half a second before the suspension is due, the agent still asks for a second.
    assert_eq!(look_again(PolicySpec::Saving, young - 0.5, 1), (0, Some(1.0)));
    // Once it is due, the job is suspended and starts again, with a restart.
    let (suspended, seconds) = look_again(PolicySpec::Saving, young, 1);
    assert!(suspended == 1 && near(seconds, 600.0 + young), "{seconds:?}");
    assert_eq!(look_again(PolicySpec::LongestReliable, 1000.0, 1), (0, None));
}
