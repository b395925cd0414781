//! Compares the routing simulator with an ns-3 simulation of the same network under the same agent. The ns-3 simulation
//! consists of nodes, links and packets. Needs ns-3 (libns3-dev), nlohmann-json3-dev, make and g++.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use iswitch_harness::binaries;
use iswitch_harness::process::{Process, Signal, command, run};
use iswitch_harness::requirements::{ns3_and, report};
use iswitch_harness::scratch;
use serde_json::Value;
use tempfile::TempDir;

const TIMEOUT: Duration = Duration::from_secs(60);
const PROGRAMS: [&str; 3] = ["make", "g++", "setpriv"];

#[test]
fn the_same_arrivals_give_the_same_queues_in_every_slot() {
    if !ns3_and("the_same_arrivals_give_the_same_queues_in_every_slot", &PROGRAMS) {
        return;
    }
    let (directory, trained) = trained();
    for (stages, switches, policy) in [
        ("3", "16", trained.as_str()),
        ("3", "16", "rand"),
        ("3", "16", "jsq"),
        ("3", "16", "po2"),
        ("3", "16", "maxweight"),
        ("3", "16", "colouring"),
        ("2", "5", "drill:2:1"),
        ("4", "7", "spray"),
        ("3", "1", "jsq"),
    ] {
        let file = |name: &str| directory.path().join(name).display().to_string();
        let [rates, arrivals, ours, theirs] = ["rates", "arrivals", "ours", "theirs"].map(file);
        let network = ["--stages", stages, "--switches", switches];
        let mut evaluate = Command::new(binaries::iswitch());
        evaluate.args(["route", "evaluate", policy, "--draws", "1", "--load", "0.7"]).args(network);
        evaluate.args(["--write-rates", &rates, "--arrivals", &arrivals, "--trace", &ours]);
        run(&mut evaluate);
        let agent = Agent::start(directory.path(), policy, &network);
        let mut ns3 = agent.ns3();
        ns3.args(network).args(["--rates", &rates, "--arrivals", &arrivals, "--trace", &theirs]);
        run(&mut ns3);
        let [ours, theirs] = [ours, theirs].map(|path| std::fs::read_to_string(path).unwrap());
        assert_eq!(ours.lines().count(), 201, "{ours}");
        assert_eq!(ours, theirs, "{stages} stages of {switches} switches under {policy}");
        agent.stop();
    }
}

#[test]
fn different_arrivals_at_the_same_rates_give_the_same_means() {
    if !ns3_and("different_arrivals_at_the_same_rates_give_the_same_means", &PROGRAMS) {
        return;
    }
    let (directory, trained) = trained();
    let rates = directory.path().join("rates").display().to_string();
    let write = ["route", "evaluate", "rand", "--draws", "1", "--write-rates", &rates];
    run(Command::new(binaries::iswitch()).args(write));
    for policy in [trained.as_str(), "rand", "jsq", "po2"] {
        let evaluate = ["route", "evaluate", policy, "--rates", &rates, "--draws", "20", "--json"];
        let ours: Value =
            serde_json::from_str(&run(Command::new(binaries::iswitch()).args(evaluate))).unwrap();
        let agent = Agent::start(directory.path(), policy, &[]);
        let mut ns3 = agent.ns3();
        ns3.args(["--rates", &rates, "--repeat", "20", "--json"]);
        let theirs: Value = serde_json::from_str(&run(&mut ns3)).unwrap();
        agent.stop();
        for (name, ours_name, theirs_name) in
            [("queued", "queued", "queued"), ("delay", "tracked_delay", "delay")]
        {
            let number =
                |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{policy}, {name}: {value}"));
            let (mean, half) = (number(&ours[ours_name]["mean"]), number(&ours[ours_name]["ci95"]));
            let half_name = format!("{theirs_name}_ci95");
            let (other, other_half) = (number(&theirs[theirs_name]), number(&theirs[half_name.as_str()]));
            report(&format!(
                "{policy}, {name}: {mean:.3} +/- {half:.3}, ns-3 {other:.3} +/- {other_half:.3}"
            ));
            assert!((mean - other).abs() <= half + other_half, "{policy}, {name}");
        }
    }
}

#[test]
fn a_refusal_by_the_agent_is_reported() {
    if !ns3_and("a_refusal_by_the_agent_is_reported", &PROGRAMS) {
        return;
    }
    let directory = scratch::directory();
    // The agent serves a network of a different size, so it refuses the first request.
    let agent = Agent::start(directory.path(), "jsq", &["--switches", "4"]);
    let output = agent.ns3().args(["--switches", "5"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("length of queues[0] is 5, expected 4 switches"), "{text}");
    agent.stop();
}

/// Trains a policy for two iterations. Returns the temporary directory and the path of the run directory inside it.
fn trained() -> (TempDir, String) {
    let directory = scratch::directory();
    let out = directory.path().join("trained").display().to_string();
    let train = ["route", "train", "--iterations", "2", "--quiet", "--out", &out];
    run(Command::new(binaries::iswitch()).args(train));
    (directory, out)
}

/// Process of `iswitch route serve`, and the socket on which it answers queries.
struct Agent {
    process: Process,
    socket: PathBuf,
}

impl Agent {
    fn start(directory: &Path, policy: &str, network: &[&str]) -> Self {
        let socket = directory.join("agent.sock");
        let mut serve = command(binaries::iswitch());
        serve.args(["route", "serve", policy, "--socket"]).arg(&socket).args(network);
        let process = Process::spawn("agent", &mut serve);
        let begin = Instant::now();
        while !socket.exists() {
            assert!(begin.elapsed() < TIMEOUT, "no agent after {TIMEOUT:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
        Self { process, socket }
    }

    /// Returns a command that runs the ns-3 network, which queries this agent.
    fn ns3(&self) -> Command {
        let mut ns3 = Command::new(ns3_program());
        ns3.arg("--quiet").arg("--agent").arg(&self.socket);
        ns3
    }

    /// Stops the agent. Before the agent exits, it removes its socket.
    fn stop(self) {
        self.process.stop(Signal::TERM, TIMEOUT);
        assert!(!self.socket.exists(), "{}", self.socket.display());
    }
}

/// Returns the path of the ns-3 program. The program is built once, from a copy of its sources.
fn ns3_program() -> &'static Path {
    static BUILT: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, program) = BUILT.get_or_init(|| {
        let directory = scratch::directory();
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("ns3");
        for entry in
            std::fs::read_dir(sources).unwrap().map(Result::unwrap).filter(|it| it.file_name() != "routing")
        {
            std::fs::copy(entry.path(), directory.path().join(entry.file_name())).unwrap();
        }
        run(Command::new("make").arg("-C").arg(directory.path()).args(["CXXFLAGS=-O1 -Werror", "routing"]));
        let program = directory.path().join("routing");
        (directory, program)
    });
    program
}
