//! `iswitch coflow train` on the command line, and what uses its run directories.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use iswitch_harness::binaries;
use iswitch_harness::process::{Process, Signal, command, run};
use iswitch_harness::requirements::programs;
use iswitch_harness::scratch;
use serde_json::Value;

const TIMEOUT: Duration = Duration::from_secs(60);
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

fn coflow(arguments: &[&str]) -> Command {
    let mut command = Command::new(binaries::iswitch());
    command.arg("coflow").args(arguments);
    command
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn train(out: &Path, more: &[&str]) -> Value {
    let mut command = coflow(&["train", "--quiet", "--json", "--out"]);
    let printed = run(command.arg(out).args(more));
    serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
}

#[test]
fn four_workers_and_one_process_write_the_same_curve() {
    let directory = scratch::directory();
    let train = |name: &str, more: &[&str]| {
        let out = directory.path().join(name);
        let result = train(&out, &[&SMALL[..], &["--iterations", "2"], more].concat());
        assert_eq!(result["replicas_identical"], true, "{result}");
        assert!(text(&out.join("gain.svg")).contains("job-sebf"));
        (text(&out.join("progress.csv")), result)
    };
    let (one, result) = train("one", &[]);
    assert_eq!((&result["workers"], &result["aggregator"]), (&1.into(), &"loopback".into()));
    let eval =
        Command::new(binaries::iswitch()).arg("eval").arg(directory.path().join("one")).output().unwrap();
    assert!(String::from_utf8_lossy(&eval.stderr).contains("`iswitch coflow evaluate` runs"), "{eval:?}");
    for aggregator in ["switch", "ps", "ring"] {
        let (four, result) = train(aggregator, &["--workers", "4", "--aggregator", aggregator]);
        assert_eq!(result["workers"], 4);
        assert_eq!(four, one, "{aggregator}");
    }
}

#[test]
fn a_training_that_is_stopped_goes_on_where_it_was() {
    if !programs("a_training_that_is_stopped_goes_on_where_it_was", &["setpriv"]) {
        return;
    }
    let directory = scratch::directory();
    let out = directory.path().join("run");
    let mut begun = command(binaries::iswitch());
    begun.args(["coflow", "train", "--network", "paper", "--iterations", "100000", "--out"]).arg(&out);
    let process = Process::spawn("train", begun.args(SMALL));
    let begin = Instant::now();
    while !out.join("model.safetensors").exists() {
        assert!(begin.elapsed() < TIMEOUT, "no checkpoint after {TIMEOUT:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    let finished = process.stop(Signal::TERM, TIMEOUT);
    assert!(finished.status.success(), "{finished:?}");
    let done = text(&out.join("progress.csv")).lines().count() - 1;
    let iterations = (done + 1).to_string();
    let result = train(&out, &["--resume", "--ports", "6", "--iterations", &iterations]);
    assert_eq!(result["iterations"], done + 1, "{result}");
    assert_eq!(text(&out.join("progress.csv")).lines().count(), done + 3);
}

#[test]
fn a_trained_policy_is_one_among_others() {
    let directory = scratch::directory();
    let out = directory.path().join("mine");
    train(&out, &[&SMALL[..], &["--iterations", "1"]].concat());
    let out = out.to_str().unwrap();
    let searching = format!("{out}:5");
    // Without a search what it learnt, where to look, makes no difference; and any fabric will do.
    let policies = ["compare", "job-sebf", out, &searching, "lookahead:5"];
    let arguments = [&policies[..], &["--ports", "9", "--jobs", "15", "--draws", "4", "--json", "--quiet"]];
    let printed = run(&mut coflow(&arguments.concat()));
    let results: Value = serde_json::from_str(&printed).unwrap();
    let jct = |at: usize| results["results"][at]["jct"]["mean"]["mean"].as_f64().unwrap();
    let name = |at: usize| results["results"][at]["policy"].as_str().unwrap();
    assert_eq!(["mine", "mine:5", "lookahead:5"], [name(1), name(2), name(3)]);
    assert_eq!(jct(0), jct(1), "{results}");
    assert!(jct(2) < jct(1) && jct(3) < jct(1), "{results}");
}

#[test]
fn bad_input_is_named() {
    let directory = scratch::directory();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (trained, cyclic, empty) = (path("trained"), path("cyclic"), path("empty"));
    train(Path::new(&trained), &[&SMALL[..], &["--iterations", "1"]].concat());
    std::fs::write(&cyclic, "3 3 0 1 1 2 2 0\n").unwrap();
    std::fs::create_dir(&empty).unwrap();
    let searching = format!("{trained}:many");
    for (arguments, expected) in [
        (vec!["train", "--set", "agents=0"], "agents is 0, expected 1 to 4096"),
        (vec!["train", "--set", "agent=4"], "--set agent: no such hyper-parameter"),
        (vec!["train", "--workers", "3", "--set", "agents=4"], "expected a multiple of the 3 workers"),
        (vec!["train", "--network", "paper", "--set", "coflows_max=4"], "expected at most 4"),
        (vec!["train", "--dags", &cyclic], "wait for each other"),
        (vec!["train", "--resume", "--out", "/nowhere"], "nothing to resume"),
        (vec!["train", "--resume", "--ports", "7", "--out", &trained], "other coflows or shapes"),
        (vec!["train", "--out", &trained], "already holds a run"),
        (vec!["evaluate", &searching], "is many, expected a number"),
        (vec!["evaluate", "lookahead:-1"], "evaluations of lookahead is -1, expected a number"),
        (vec!["evaluate", &empty], "which holds no model.safetensors"),
    ] {
        let output = coflow(&arguments).current_dir(directory.path()).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{arguments:?}");
        assert!(printed.contains(expected), "{arguments:?}: {printed}");
        assert!(!printed.contains("panicked"), "{printed}");
    }
}
