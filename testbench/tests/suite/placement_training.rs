//! Tests of `iswitch place train` on the command line, and of the commands that use its run directories.

use std::path::Path;

use iswitch_harness::requirements::programs;
use iswitch_harness::scratch;

use super::studies::{Agent, Files, PLACE, text};

/// Options of the smallest cluster and the shortest training that give a meaningful result.
const CLUSTER: [&str; 6] = ["--gpus", "8", "--gpus-per-node", "4", "--batch", "12"];
const SETTINGS: [&str; 4] = ["environments=4", "courses=2", "test_draws=4", "test_interval=1"];

fn small() -> Vec<&'static str> {
    let settings = SETTINGS.iter().flat_map(|setting| ["--set", *setting]);
    CLUSTER.into_iter().chain(settings).collect()
}

#[test]
fn four_workers_and_one_process_write_the_same_curve() {
    for network in ["shared", "patent"] {
        let own = ["--network", network, "--iterations", "2"];
        PLACE.check_curves(&[&small()[..], &own].concat(), |out, result| {
            assert!(text(&out.join("gain.svg")).contains(result["reference"].as_str().unwrap()));
        });
    }
}

#[test]
fn a_stopped_training_resumes_where_it_stopped() {
    if !programs("a_stopped_training_resumes_where_it_stopped", &["setpriv"]) {
        return;
    }
    let begun = [&small()[..], &["--network", "patent", "--iterations", "100000"]].concat();
    PLACE.check_resumption(&begun, &CLUSTER);
}

#[test]
fn a_trained_policy_can_be_compared_with_others() {
    let directory = scratch::directory();
    let out = directory.path().join("mine");
    // With this learning rate nothing is learnt, so the policy remains the rule that it begins with.
    let own = ["--iterations", "1", "--set", "learning_rate=1e-12"];
    PLACE.train(&out, &[&small()[..], &own].concat());
    let policy = out.to_str().unwrap();
    let harsh = ["--rate-factor", "1000", "--checkpoint", "none"];
    let results = PLACE.json(&[&["compare", "longest-reliable", "saving", policy], &harsh[..]].concat());
    let makespan = |at: usize| results["results"][at]["makespan"]["mean"].as_f64().unwrap();
    assert_eq!(results["results"][2]["policy"], "mine");
    // The policy is evaluated on a cluster other than that of its training.
    assert!((makespan(1) / makespan(2) - 1.0).abs() < 0.05, "{results}");
    assert!(makespan(0) > 2.0 * makespan(1), "{results}");
    assert_eq!(served_choice(policy), [2, 3]);
}

/// Returns the GPUs that a served policy assigns to a job that needs two GPUs, in a cluster whose first two GPUs fail
/// often.
fn served_choice(policy: &str) -> Vec<u64> {
    let mut agent = Agent::serve(PLACE, &[policy, "--gpus", "4", "--gpus-per-node", "4"]);
    let gpu = |rate: f64| format!(r#"{{"state": "free", "rate": {rate}}}"#);
    let gpus: Vec<_> = [90.0, 80.0, 0.1, 0.2].map(gpu).to_vec();
    let job = r#"{"gpus": 2, "duration": 86400}"#;
    let answer = agent.ask(&format!(r#"{{"gpus": [{}], "job": {job}}}"#, gpus.join(",")));
    let mut picked: Vec<u64> = answer["gpus"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer}"))
        .iter()
        .map(|gpu| gpu.as_u64().unwrap())
        .collect();
    picked.sort_unstable();
    agent.stop();
    picked
}

#[test]
fn errors_name_the_invalid_input() {
    let files = Files::new();
    let [trained, patent, empty, socket] =
        ["trained", "patent", "empty", "socket"].map(|name| files.path(name));
    PLACE.train(Path::new(&trained), &[&small()[..], &["--iterations", "1"]].concat());
    let own = ["--network", "patent", "--iterations", "1"];
    PLACE.train(Path::new(&patent), &[&small()[..], &own].concat());
    std::fs::create_dir(&empty).unwrap();
    PLACE.check_refusals([
        (vec!["train", "--set", "courses=0"], "courses is 0, expected 1 to 4096"),
        (vec!["train", "--set", "course=4"], "--set course: no such hyper-parameter"),
        (vec!["train", "--workers", "3", "--set", "environments=4"], "a multiple of the number of workers"),
        (vec!["train", "--resume", "--out", "/nowhere"], "nothing to resume"),
        (
            vec!["train", "--resume", "--gpus", "9", "--out", &trained],
            "jobs, GPUs or rules that differ from those of this run",
        ),
        (
            vec!["train", "--resume", "--gpus", "9", "--out", &patent],
            "number of GPUs in the cluster is 9, expected 8",
        ),
        (vec!["train", "--out", &trained], "already holds a run"),
        (vec!["evaluate", &patent, "--gpus", "9"], "number of GPUs in the cluster is 9, expected 8"),
        (
            vec!["serve", &patent, "--gpus", "9", "--socket", &socket],
            "number of GPUs in the cluster is 9, expected 8",
        ),
        (vec!["evaluate", &empty], "a directory without model.safetensors"),
    ]);
}
