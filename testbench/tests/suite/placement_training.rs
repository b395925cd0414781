//! `iswitch place train` on the command line, and what uses its run directories.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use iswitch_harness::binaries;
use iswitch_harness::process::{Process, Signal, command, run};
use iswitch_harness::requirements::programs;
use iswitch_harness::scratch;
use serde_json::Value;

const TIMEOUT: Duration = Duration::from_secs(60);
/// A cluster and a training of the least size that says anything.
const CLUSTER: [&str; 6] = ["--gpus", "8", "--gpus-per-node", "4", "--batch", "12"];
const SETTINGS: [&str; 4] = ["environments=4", "courses=2", "test_draws=4", "test_interval=1"];

fn place(arguments: &[&str]) -> Command {
    let mut command = Command::new(binaries::iswitch());
    command.arg("place").args(arguments);
    command
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn small() -> Vec<&'static str> {
    let settings = SETTINGS.iter().flat_map(|setting| ["--set", *setting]);
    CLUSTER.into_iter().chain(settings).collect()
}

fn train(out: &Path, more: &[&str]) -> Value {
    let mut command = place(&["train", "--quiet", "--json", "--out"]);
    let printed = run(command.arg(out).args(more));
    serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
}

#[test]
fn four_workers_and_one_process_write_the_same_curve() {
    let directory = scratch::directory();
    for network in ["shared", "patent"] {
        let train = |name: &str, more: &[&str]| {
            let out = directory.path().join(format!("{network}-{name}"));
            let own = ["--network", network, "--iterations", "2"];
            let result = train(&out, &[&small()[..], &own, more].concat());
            assert_eq!(result["replicas_identical"], true, "{result}");
            assert!(text(&out.join("gain.svg")).contains(result["reference"].as_str().unwrap()));
            (text(&out.join("progress.csv")), result)
        };
        let (one, result) = train("one", &[]);
        assert_eq!((&result["workers"], &result["aggregator"]), (&1.into(), &"loopback".into()));
        for aggregator in ["switch", "ps", "ring"] {
            let (four, result) = train(aggregator, &["--workers", "4", "--aggregator", aggregator]);
            assert_eq!(result["workers"], 4);
            assert_eq!(four, one, "{network}, {aggregator}");
        }
    }
    let out = directory.path().join("shared-one");
    let eval = Command::new(binaries::iswitch()).arg("eval").arg(out).output().unwrap();
    assert!(String::from_utf8_lossy(&eval.stderr).contains("`iswitch place evaluate` runs"), "{eval:?}");
}

#[test]
fn a_training_that_is_stopped_goes_on_where_it_was() {
    if !programs("a_training_that_is_stopped_goes_on_where_it_was", &["setpriv"]) {
        return;
    }
    let directory = scratch::directory();
    let out = directory.path().join("run");
    let mut begun = command(binaries::iswitch());
    begun.args(["place", "train", "--network", "patent", "--iterations", "100000", "--out"]).arg(&out);
    let process = Process::spawn("train", begun.args(small()));
    let begin = Instant::now();
    while !out.join("model.safetensors").exists() {
        assert!(begin.elapsed() < TIMEOUT, "no checkpoint after {TIMEOUT:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    let finished = process.stop(Signal::TERM, TIMEOUT);
    assert!(finished.status.success(), "{finished:?}");
    let done = text(&out.join("progress.csv")).lines().count() - 1;
    let iterations = (done + 1).to_string();
    let result = train(&out, &[&CLUSTER[..], &["--resume", "--iterations", &iterations]].concat());
    assert_eq!(result["iterations"], done + 1, "{result}");
    assert_eq!(text(&out.join("progress.csv")).lines().count(), done + 3);
}

#[test]
fn a_trained_policy_is_one_among_others() {
    let directory = scratch::directory();
    let out = directory.path().join("mine");
    // A rate at which nothing is learnt: it is the rule that it begins with.
    let own = ["--iterations", "1", "--set", "learning_rate=1e-12"];
    train(&out, &[&small()[..], &own].concat());
    let policy = out.to_str().unwrap();
    let arguments =
        ["compare", "longest-reliable", "saving", policy, "--rate-factor", "1000", "--json", "-q"];
    let printed = run(&mut place(&arguments));
    let results: Value = serde_json::from_str(&printed).unwrap();
    let makespan = |at: usize| results["results"][at]["makespan"]["mean"].as_f64().unwrap();
    assert_eq!(results["results"][2]["policy"], "mine");
    // On another cluster than it was trained on.
    assert!((makespan(1) / makespan(2) - 1.0).abs() < 0.05, "{results}");
    assert!(makespan(0) > 2.0 * makespan(1), "{results}");
    assert_eq!(served_choice(policy, directory.path()), [2, 3]);
}

/// Which GPUs a served policy gives a job of two, where the first two fail often.
fn served_choice(policy: &str, directory: &Path) -> Vec<u64> {
    let socket = directory.join("place.sock");
    let mut serve = command(binaries::iswitch());
    serve.args(["place", "serve", policy, "--gpus", "4", "--gpus-per-node", "4", "--socket"]).arg(&socket);
    let process = Process::spawn("serve", &mut serve);
    let begin = Instant::now();
    let mut stream = loop {
        match UnixStream::connect(&socket) {
            Ok(stream) => break stream,
            Err(error) => assert!(begin.elapsed() < TIMEOUT, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let gpu = |rate: f64| format!(r#"{{"state": "free", "rate": {rate}}}"#);
    let gpus: Vec<_> = [90.0, 80.0, 0.1, 0.2].map(gpu).to_vec();
    let job = r#"{"gpus": 2, "duration": 86400}"#;
    writeln!(stream, r#"{{"gpus": [{}], "job": {job}}}"#, gpus.join(",")).unwrap();
    let mut answer = String::new();
    BufReader::new(&stream).read_line(&mut answer).unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let mut picked: Vec<u64> = answer["gpus"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer}"))
        .iter()
        .map(|gpu| gpu.as_u64().unwrap())
        .collect();
    picked.sort_unstable();
    let finished = process.stop(Signal::TERM, TIMEOUT);
    assert!(finished.status.success(), "{finished:?}");
    picked
}

#[test]
fn bad_input_is_named() {
    let directory = scratch::directory();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (trained, patent, empty) = (path("trained"), path("patent"), path("empty"));
    train(Path::new(&trained), &[&small()[..], &["--iterations", "1"]].concat());
    let own = ["--network", "patent", "--iterations", "1"];
    train(Path::new(&patent), &[&small()[..], &own].concat());
    std::fs::create_dir(&empty).unwrap();
    let socket = path("socket");
    for (arguments, expected) in [
        (vec!["train", "--set", "courses=0"], "courses is 0, expected 1 to 4096"),
        (vec!["train", "--set", "course=4"], "--set course: no such hyper-parameter"),
        (vec!["train", "--workers", "3", "--set", "environments=4"], "expected a multiple of the 3 workers"),
        (vec!["train", "--checkpoint", "young-daly"], "expected none or a number of seconds for a training"),
        (vec!["train", "--resume", "--out", "/nowhere"], "nothing to resume"),
        (vec!["train", "--resume", "--gpus", "9", "--out", &trained], "other jobs, GPUs or rules"),
        (vec!["train", "--resume", "--gpus", "9", "--out", &patent], "GPUs of the cluster is 9, expected 8"),
        (vec!["train", "--out", &trained], "already holds a run"),
        (vec!["evaluate", &patent, "--gpus", "9"], "GPUs of the cluster is 9, expected 8"),
        (vec!["serve", &patent, "--gpus", "9", "--socket", &socket], "GPUs of the cluster is 9, expected 8"),
        (vec!["evaluate", &empty], "which holds no model.safetensors"),
    ] {
        let output = place(&arguments).current_dir(directory.path()).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{arguments:?}");
        assert!(printed.contains(expected), "{arguments:?}: {printed}");
        assert!(!printed.contains("panicked"), "{printed}");
    }
}
