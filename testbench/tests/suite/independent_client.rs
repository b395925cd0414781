//! Tests the daemon with a client that was written from the text of SPEC.md alone and shares no code with this project.
//! Needs Python, and root for the tests with jobs.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use iswitch_harness::cluster::{Daemon, PortKind, SOON, keygen};
use iswitch_harness::netns::{Star, StarOptions};
use iswitch_harness::process::{Process, command, run};
use iswitch_harness::requirements::{networks_and, programs, report, together};
use iswitch_harness::scratch;
use serde_json::Value;

const TIMEOUT: Duration = Duration::from_secs(120);
const WORKERS: u64 = 3;
const STEPS: u64 = 60;
const MODES: [&str; 2] = ["synchronous", "asynchronous"];

/// Switch on one of the two kinds of port, and workers that run the client.
struct Job {
    star: Star,
    kind: PortKind,
    daemon: Daemon,
    options: Vec<String>,
}

impl Job {
    fn new(kind: PortKind, key: Option<&Path>) -> Self {
        let star = Star::new(StarOptions::default());
        let key = key.map(|key| key.display().to_string());
        let options: Vec<_> = key.into_iter().flat_map(|key| ["--key-file".to_owned(), key]).collect();
        let daemon = start(&star, kind, &options);
        Self { star, kind, daemon, options }
    }

    /// Starts a client process that runs all workers of the job on the machine of the first worker.
    fn run(&self, arguments: &str) -> Process {
        let mut command = in_client(self.star.workers[0].command("python3"));
        let switch = self.daemon.address().to_string();
        command.args(["-m", "iswitch_client", "run", "--switch", &switch]).args(&self.options);
        command.args(["--workers", &WORKERS.to_string(), "--steps", &STEPS.to_string()]);
        Process::spawn("iswitch_client", command.args(arguments.split_whitespace()))
    }

    fn restart_switch(&mut self) {
        self.daemon.process.kill(SOON);
        self.daemon = start(&self.star, self.kind, &self.options);
    }
}

fn start(star: &Star, kind: PortKind, options: &[String]) -> Daemon {
    let options: Vec<_> = options.iter().map(String::as_str).collect();
    Daemon::in_star(star, kind, &options)
}

/// Makes a command find the Python package of the client, which is not installed.
fn in_client(mut command: Command) -> Command {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("client");
    command.env("PYTHONPATH", directory).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// Returns the report of workers that have checked all their sums.
fn result(what: &str, process: Process) -> Value {
    let text = process.wait_success(TIMEOUT);
    let last = text.lines().last().unwrap_or_default();
    report(&format!("a client from the text alone, {what}: {last}"));
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn number(result: &Value, name: &str) -> u64 {
    result[name].as_u64().unwrap_or_else(|| panic!("no {name} in {result}"))
}

#[test]
fn a_client_built_from_the_specification_encodes_the_golden_packets() {
    if !programs("a_client_built_from_the_specification_encodes_the_golden_packets", &["python3"]) {
        return;
    }
    let packets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/wire");
    let mut command = in_client(command("python3"));
    let text = run(command.args(["-m", "iswitch_client", "fixtures"]).arg(&packets));
    let checked = number(&serde_json::from_str(&text).unwrap(), "fixtures");
    assert_eq!(checked as usize, packets.read_dir().unwrap().count() / 2);
}

#[test]
fn a_client_built_from_the_specification_gets_exact_sums() {
    if !networks_and("a_client_built_from_the_specification_gets_exact_sums", &["python3"]) {
        return;
    }
    let _together = together();
    for kind in PortKind::ALL {
        let job = Job::new(kind, None);
        for mode in MODES {
            let what = format!("{mode}, {kind:?} ports");
            let result = result(&what, job.run(&format!("--mode {mode}")));
            assert!(number(&result, "checked") >= STEPS, "{result}");
            let result =
                self::result(&format!("{what}, 5 % loss"), job.run(&format!("--mode {mode} --loss 0.05")));
            assert!(number(&result, "checked") >= STEPS, "{result}");
            assert!(number(&result, "resent") > 0, "{result}");
        }
        job.daemon.stop();
    }
}

#[test]
fn a_client_built_from_the_specification_sums_elements_of_16_bits() {
    if !networks_and("a_client_built_from_the_specification_sums_elements_of_16_bits", &["python3"]) {
        return;
    }
    let _together = together();
    for kind in PortKind::ALL {
        let job = Job::new(kind, None);
        for elements in ["bf16", "f16", "f16 --results f32"] {
            for mode in MODES {
                let options = format!("--mode {mode} --elements {elements} --steps 20 --loss 0.02");
                let result = result(&format!("{options}, {kind:?} ports"), job.run(&options));
                // Workers leave an asynchronous job without waiting for their last two vectors.
                assert!(number(&result, "checked") >= 18, "{result}");
            }
        }
        job.daemon.stop();
    }
}

#[test]
fn a_client_built_from_the_specification_resumes_after_a_restart() {
    if !networks_and("a_client_built_from_the_specification_resumes_after_a_restart", &["python3"]) {
        return;
    }
    let _together = together();
    for options in [
        "--mode synchronous",
        "--mode asynchronous",
        "--mode synchronous --elements bf16",
        "--mode synchronous --elements f16 --results f32",
    ] {
        let mut job = Job::new(PortKind::Raw, None);
        let mut client = job.run(&format!("{options} --loss 0.02"));
        for step in [10, 30] {
            client.wait_for(&format!("step {step}\n"), TIMEOUT);
            job.restart_switch();
        }
        let result = result(&format!("{options}, 2 restarts of the switch"), client);
        assert!(number(&result, "rejoins") >= WORKERS, "{result}");
        job.daemon.stop();
    }
}

#[test]
fn a_client_built_from_the_specification_is_authenticated() {
    if !networks_and("a_client_built_from_the_specification_is_authenticated", &["python3"]) {
        return;
    }
    let _together = together();
    let directory = scratch::directory();
    let key = keygen(directory.path(), "job.key");
    let mut job = Job::new(PortKind::Raw, Some(&key));
    for mode in MODES {
        let result = result(&format!("{mode}, with a key"), job.run(&format!("--mode {mode} --loss 0.02")));
        assert!(number(&result, "challenges") >= WORKERS, "{result}");
    }
    // The client computes tags slowly, so these vectors are short.
    for options in ["--floats 800", "--floats 1600 --elements bf16"] {
        let mut client = job.run(&format!("--tagged {options} --loss 0.02"));
        client.wait_for("step 10\n", TIMEOUT);
        job.restart_switch();
        let what = format!("synchronous, {options}, with tags, a restart of the switch");
        let result = result(&what, client);
        assert_eq!(number(&result, "checked"), WORKERS * STEPS, "{result}");
    }
    job.daemon.stop();
}
