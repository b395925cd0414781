//! `iswitch coflow train` on the command line, and the commands that use its run directories.

use std::path::Path;

use iswitch_harness::requirements::programs;
use iswitch_harness::scratch;

use super::studies::{Agent, COFLOW, Files, text};

const SMALL: [&str; 16] = [
    "--ports",
    "6",
    "--set",
    "agents=4",
    "--set",
    "own_jobs=6",
    "--set",
    "evaluations=3",
    "--set",
    "test_workloads=4",
    "--set",
    "test_jobs=8",
    "--set",
    "test_interval=1",
    "--set",
    "test_evaluations=2",
];

#[test]
fn four_workers_and_one_process_write_the_same_curve() {
    COFLOW.check_curves(&[&SMALL[..], &["--iterations", "2"]].concat(), |out, _| {
        assert!(text(&out.join("gain.svg")).contains("job-sebf"));
    });
}

#[test]
fn a_stopped_training_resumes_where_it_stopped() {
    if !programs("a_stopped_training_resumes_where_it_stopped", &["setpriv"]) {
        return;
    }
    let begun = [&SMALL[..], &["--network", "paper", "--iterations", "100000"]].concat();
    COFLOW.check_resumption(&begun, &["--ports", "6"]);
}

#[test]
fn a_trained_policy_can_be_compared_with_others() {
    let directory = scratch::directory();
    let out = directory.path().join("mine");
    COFLOW.train(&out, &[&SMALL[..], &["--iterations", "1"]].concat());
    let out = out.to_str().unwrap();
    let searching = format!("{out}:5");
    // Without a search, the trained policy equals job-sebf, because it has learnt only where to search. Any fabric is
    // accepted.
    let policies = ["compare", "job-sebf", out, &searching, "lookahead:5"];
    let arguments = [&policies[..], &["--ports", "9", "--jobs", "15", "--draws", "4"]];
    let results = COFLOW.json(&arguments.concat());
    let jct = |at: usize| results["results"][at]["jct"]["mean"]["mean"].as_f64().unwrap();
    let name = |at: usize| results["results"][at]["policy"].as_str().unwrap();
    assert_eq!(["mine", "mine:5", "lookahead:5"], [name(1), name(2), name(3)]);
    assert_eq!(jct(0), jct(1), "{results}");
    assert!(jct(2) < jct(1) && jct(3) < jct(1), "{results}");
    let mut agent = Agent::serve(COFLOW, &[&searching, "--ports", "3"]);
    agent.ask(r#"{"coflow": {"id": "a", "flows": [[0, 2, 5e8]]}}"#);
    let answer = agent.ask(r#"{"coflow": {"id": "b", "flows": [[0, 1, 1.25e8]]}, "rates": true}"#);
    let order = answer["order"].as_array().unwrap();
    assert_eq!(order.iter().map(|rated| &rated["job"]).collect::<Vec<_>>(), ["b", "a"], "{answer}");
    agent.stop();
}

#[test]
fn errors_name_the_invalid_input() {
    let files = Files::new();
    let (trained, empty) = (files.path("trained"), files.path("empty"));
    let cyclic = files.write("cyclic", "3 3 0 1 1 2 2 0\n");
    COFLOW.train(Path::new(&trained), &[&SMALL[..], &["--iterations", "1"]].concat());
    std::fs::create_dir(&empty).unwrap();
    let searching = format!("{trained}:many");
    COFLOW.check_refusals([
        (vec!["train", "--set", "agents=0"], "agents is 0, expected 1 to 4096"),
        (vec!["train", "--set", "agent=4"], "--set agent: no such hyper-parameter"),
        (vec!["train", "--workers", "3", "--set", "agents=4"], "a multiple of the number of workers"),
        (vec!["train", "--network", "paper", "--set", "coflows_max=4"], "expected at most 4"),
        (vec!["train", "--dags", &cyclic], "wait for each other"),
        (vec!["train", "--resume", "--out", "/nowhere"], "nothing to resume"),
        (
            vec!["train", "--resume", "--ports", "7", "--out", &trained],
            "coflows or shapes that differ from those of this run",
        ),
        (vec!["train", "--out", &trained], "already holds a run"),
        (vec!["evaluate", &searching], "is \"many\", expected a whole number"),
        (
            vec!["evaluate", "lookahead:-1"],
            "number of evaluations of lookahead is \"-1\", expected a whole number",
        ),
        (vec!["evaluate", &empty], "a directory without model.safetensors"),
    ]);
}
