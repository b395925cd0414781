//! Fabrics of training runs: what `iswitch coflow train` records, and what `evaluate` and `compare` do with it.

use std::path::Path;
use std::process::{Command, Output};

use iswitch_coflow::deepweave::agent::DeepWeave;
use iswitch_coflow::deepweave::training::Saved;
use iswitch_coflow::inputs::GBIT;
use iswitch_coflow::simulation::Rates;
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_iswitch-coflow");
/// Eight ports, four of which share a link that is half as fast as they are together.
const FABRIC: &str = "ports = 8\ngbit = 10\n[[port]]\nports = [7]\ngbit = 40\n\
                      [[rack]]\nports = [0, 1, 2, 3]\noversubscription = 2\n";
const SMALL: [&str; 13] = [
    "--iterations",
    "1",
    "--set",
    "agents=1",
    "--set",
    "own_jobs=3",
    "--set",
    "test_jobs=3",
    "--set",
    "test_workloads=1",
    "--set",
    "test_evaluations=2",
    "--quiet",
];

fn output(directory: &Path, args: &[&str]) -> Output {
    Command::new(PROGRAM).args(args).current_dir(directory).output().unwrap()
}

fn run(directory: &Path, args: &[&str]) -> String {
    let output = output(directory, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn error(directory: &Path, args: &[&str]) -> String {
    let output = output(directory, args);
    assert!(!output.status.success(), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn evaluate_uses_the_fabric_and_the_rates_of_the_training_run() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    std::fs::write(directory.join("fabric.toml"), FABRIC).unwrap();
    let train = ["train", "--fabric", "fabric.toml", "--rates", "blocking", "--out", "run"];
    run(directory, &[&train[..], &SMALL].concat());
    let saved = Saved::read(&directory.join("run")).unwrap();
    let fabric = DeepWeave::fabric_of_saved(&saved).unwrap().unwrap();
    assert_eq!((fabric.ports, fabric.rates, fabric.capacity), (8, Rates::Blocking, 10.0 * GBIT));
    assert_eq!((fabric.relative(7), fabric.resources()), (4.0, 18));

    let jobs = ["--jobs", "5", "--draws", "2", "--quiet"];
    let text = run(directory, &[&["evaluate", "run"], &jobs[..]].concat());
    assert!(text.contains("8 ports of 10 to 40 Gbit/s, 2 oversubscribed link(s); rates: blocking"), "{text}");
    let json = |args: &[&str]| -> Value {
        serde_json::from_str(&run(directory, &[args, &jobs[..], &["--json"]].concat())).unwrap()
    };
    let by_default = json(&["evaluate", "run"]);
    let stated = json(&["evaluate", "run", "--fabric", "fabric.toml", "--rates", "blocking"]);
    assert_eq!(by_default, stated);
    // Other options replace the fabric, the model of rates, or both.
    let backfilled = json(&["evaluate", "run", "--rates", "backfill"]);
    assert_ne!(backfilled["jct"], by_default["jct"]);
    let both = ["evaluate", "run", "--fabric", "fabric.toml", "--rates", "backfill"];
    assert_eq!(backfilled, json(&both));
    let text = run(directory, &[&["evaluate", "run", "--ports", "6", "--capacity", "2"], &jobs[..]].concat());
    assert!(text.contains("6 ports of 2 Gbit/s; rates: blocking"), "{text}");
}

#[test]
fn other_fabrics_are_refused_or_reported() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    std::fs::write(directory.join("fabric.toml"), FABRIC).unwrap();
    run(directory, &[&["train", "--fabric", "fabric.toml", "--out", "run"], &SMALL[..]].concat());
    let resume = ["train", "--resume", "--out", "run", "--iterations", "2", "--quiet"];
    let text = error(directory, &[&resume[..], &["--ports", "8", "--capacity", "10"]].concat());
    assert!(text.contains("it was trained on a fabric that differs from that of this run"), "{text}");
    run(directory, &[&resume[..], &["--fabric", "fabric.toml"]].concat());

    let compare = ["compare", "sebf", "run", "--jobs", "3", "--draws", "1", "--quiet"];
    let warned = |args: &[&str]| {
        let output = output(directory, &[&compare[..], args].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).contains("ports or racks whose rates differ")
    };
    assert!(warned(&[]) && !warned(&["--fabric", "fabric.toml"]));

    // The fabric has racks, so it does not fit jobs on another number of ports.
    let jobs =
        r#"{"ports": 3, "jobs": [{"arrival_s": 0, "coflows": [{"flows": [[0, 1, 1e9], [2, 1, 5e8]]}]}]}"#;
    std::fs::write(directory.join("jobs.json"), jobs).unwrap();
    let text = error(directory, &["evaluate", "run", "--job-file", "jobs.json"]);
    assert!(text.contains("ports of the training run's fabric is 8, expected 3, as in the jobs"), "{text}");
    run(directory, &["evaluate", "run", "--job-file", "jobs.json", "--capacity", "1"]);
    let text = error(directory, &["train", "--fabric", "fabric.toml", "--ports", "8"]);
    assert!(text.contains("cannot be used with"), "{text}");
}

#[test]
fn a_fabric_of_equal_ports_has_as_many_ports_as_the_jobs() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    run(directory, &[&["train", "--ports", "6", "--capacity", "5", "--out", "run"], &SMALL[..]].concat());
    let jobs =
        r#"{"ports": 3, "jobs": [{"arrival_s": 0, "coflows": [{"flows": [[0, 1, 1e9], [2, 1, 5e8]]}]}]}"#;
    std::fs::write(directory.join("jobs.json"), jobs).unwrap();
    let text = run(directory, &["evaluate", "run", "--job-file", "jobs.json", "--quiet"]);
    assert!(text.contains("3 ports of 5 Gbit/s; rates: backfill"), "{text}");
    let text = run(directory, &["evaluate", "run", "--jobs", "3", "--draws", "1", "--quiet"]);
    assert!(text.contains("6 ports of 5 Gbit/s"), "{text}");
}
