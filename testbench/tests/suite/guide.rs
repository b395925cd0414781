//! Runs every command of the user guide (`docs/guide`) as it is printed there.
//!
//! The first word after `sh` of a command block states where the block runs. With `here` or `root`, it runs on this
//! machine; with `switch` or `worker`, on the switch or on each worker of a rack in network namespaces, where the
//! guide's `ethN` is the interface of that machine. With `host`, it changes settings that the namespaces share. A
//! second word may state how the block runs: with `runs`, the commands run until the end of the chapter; with
//! `together`, each line is a separate process.
//!
//! "This machine" is a network namespace of the chapter, with its own `/run`, because chapters use the same ports of
//! the loopback interface and the same control socket, and run at the same time.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use iswitch_harness::binaries;
use iswitch_harness::cluster::SOON;
use iswitch_harness::netns::{Namespace, Star, StarOptions, WORKER_INTERFACE};
use iswitch_harness::process::{self, Process};
use iswitch_harness::requirements::{alone, networks_and, report, root_and, together};
use iswitch_harness::scratch;
use serde_json::Value;
use tempfile::TempDir;

use crate::documentation::fenced_blocks;

/// Timeout of a training run on a busy machine.
const PATIENCE: Duration = SOON.saturating_mul(9);

/// Shell commands that hide the `/run` of the machine behind the directory `$CHAPTER_RUN`, in a mount namespace of
/// the shell.
const OWN_RUN: &str = "mount --bind \"$CHAPTER_RUN\" /run";

/// Command block of a chapter.
#[derive(Debug)]
struct Block {
    place: String,
    mode: Option<String>,
    lines: Vec<String>,
}

fn guide() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide")
}

fn blocks(chapter: &str) -> Vec<Block> {
    let text =
        std::fs::read_to_string(guide().join(chapter)).unwrap_or_else(|error| panic!("{chapter}: {error}"));
    let mut blocks = Vec::new();
    for (info, lines) in fenced_blocks(&text) {
        let mut words = info.split_whitespace().map(str::to_owned);
        if words.next().as_deref() != Some("sh") {
            continue;
        }
        let place =
            words.next().unwrap_or_else(|| panic!("{chapter}: a command block must state where it runs"));
        let lines = lines.into_iter().map(str::to_owned).collect();
        blocks.push(Block { place, mode: words.next(), lines });
    }
    assert!(!blocks.is_empty(), "{chapter} has no commands");
    blocks
}

/// Environment of a chapter's commands, and the processes that are still running.
struct Chapter {
    directory: TempDir,
    here: Namespace,
    star: Option<Star>,
    running: Vec<Process>,
}

impl Chapter {
    fn run(name: &str) {
        let blocks = blocks(name);
        let has = |words: &str| blocks.iter().flat_map(|block| &block.lines).any(|line| line.contains(words));
        let mut programs = vec!["bash", "curl", "ethtool", "mount", "nft", "taskset"];
        programs.extend(has("verilator").then_some("verilator"));
        let changes_host = blocks.iter().any(|block| block.place == "host");
        let may_run = if changes_host {
            root_and(name, "it changes settings of the whole machine", &programs)
        } else {
            networks_and(name, &programs)
        };
        if !may_run {
            return;
        }
        let needs_rack = blocks.iter().any(|block| block.place == "switch");
        let is_sensitive = changes_host || needs_rack;
        let _alone = is_sensitive.then(alone);
        let _together = (!is_sensitive).then(together);
        let star = needs_rack.then(|| Star::new(StarOptions::default()));
        if let Some(star) = star.as_ref().filter(|_| has("add br0")) {
            star.switch.ip("link del br0\n");
        }
        let directory = scratch::directory();
        std::fs::create_dir(directory.path().join("run")).expect("the chapter's /run must be created");
        let here = Namespace::new("guide");
        let mut chapter = Self { directory, here, star, running: Vec::new() };
        for block in &blocks {
            report(&format!("{name}: {}", block.lines.join("; ")));
            chapter.block(block);
        }
    }

    fn block(&mut self, block: &Block) {
        let text = block.lines.join("\n");
        match (block.place.as_str(), block.mode.as_deref()) {
            ("here", Some("runs")) => self.keep(self.spawn(&format!("exec {text}"), Some(&self.here), 0)),
            ("switch", Some("runs")) => {
                self.keep(self.spawn(&format!("exec {text}"), Some(&self.rack().switch), 0));
            }
            ("here", Some("together")) => self.together(&block.lines),
            ("here" | "root", None) => finish([self.spawn(&text, Some(&self.here), 0)]),
            ("switch", None) => finish([self.spawn(&text, Some(&self.rack().switch), 0)]),
            ("worker", None) => {
                let workers = self.rack().workers.iter().enumerate();
                let all: Vec<_> =
                    workers.map(|(rank, worker)| self.spawn(&text, Some(worker), rank)).collect();
                finish(all);
            }
            ("host", None) => self.set_back(&text),
            other => panic!("unknown place {other:?} of a command block"),
        }
    }

    fn rack(&self) -> &Star {
        self.star.as_ref().expect("a chapter with a switch must have a rack")
    }

    /// Starts commands in a shell, in a namespace or in the one of the tests.
    fn spawn(&self, text: &str, namespace: Option<&Namespace>, rank: usize) -> Process {
        // All programs have been built already.
        let text = text.replace("cargo build --release", "true");
        // In the namespace, the interface has a different name than in the guide.
        let text = text.replace("eth0", WORKER_INTERFACE);
        let text =
            (1..=4).fold(text, |text, port| text.replace(&format!("eth{port}"), &Star::port(port - 1)));
        let mut command =
            namespace.map_or_else(|| process::command("bash"), |namespace| namespace.command("bash"));
        let prepare = namespace.map_or("true", |_| OWN_RUN);
        let programs = binaries::iswitch().parent().expect("a directory").display();
        let path = format!("{programs}:{}", std::env::var("PATH").unwrap_or_default());
        command.args(["-ec", &format!("{prepare}; RANK={rank}; exec 2>&1; {text}")]).env("PATH", path);
        command.env("CHAPTER_RUN", self.directory.path().join("run"));
        // The rank must come from the command itself, not from a launcher that runs the tests.
        command.current_dir(self.directory.path()).env_remove("RANK").env_remove("WORLD_SIZE");
        // Directory in which daemons of ordinary users create their control sockets.
        command.env("XDG_RUNTIME_DIR", self.directory.path());
        Process::spawn(&text, &mut command)
    }

    fn keep(&mut self, mut process: Process) {
        process.wait_for(" ready: ", SOON);
        self.running.push(process);
    }

    fn together(&self, lines: &[String]) {
        let all: Vec<_> = lines.iter().map(|line| self.spawn(line, Some(&self.here), 0)).collect();
        finish(all);
    }

    /// Runs commands that change settings of the whole machine, and restores the settings afterwards.
    fn set_back(&self, text: &str) {
        const PREFIX: &str = "sysctl -w ";
        for line in text.lines() {
            let (name, _) = line.strip_prefix(PREFIX).and_then(|it| it.split_once('=')).expect("a setting");
            let before = process::run(Command::new("sysctl").args(["-n", name]));
            finish([self.spawn(line, None, 0)]);
            process::run(Command::new("sysctl").args(["-w", &format!("{name}={}", before.trim())]));
        }
    }
}

/// Waits until all processes have exited, and checks their results.
fn finish(processes: impl IntoIterator<Item = Process>) {
    for process in processes {
        let printed = process.wait_success(PATIENCE);
        let results = printed.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        for result in results.filter(|result| result.get("replicas_identical").is_some()) {
            assert_eq!(result["replicas_identical"], true, "{result}");
            if let Some(final_return) = result["final_return"].as_f64() {
                let least = least_return(&result["env"]);
                assert!(
                    final_return > least,
                    "the run did not learn (a return of at most {least}): {result}"
                );
            }
        }
    }
}

/// Returns an upper bound on the mean return of an untrained policy. A random policy has a mean return of 22 on
/// CartPole and of -1,230 on Pendulum.
fn least_return(environment: &Value) -> f64 {
    match environment.as_str() {
        Some("CartPole-v1" | "CartPoleNoVel-v1") => 75.0,
        Some("Pendulum-v1") => -1000.0,
        _ => panic!("the return of a random policy on {environment} must be known"),
    }
}

#[test]
fn the_summary_lists_every_page() {
    let docs = guide().join("..");
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).expect("the summary must be readable");
    for directory in ["", "guide/", "results/"] {
        let entries = std::fs::read_dir(docs.join(directory)).expect("the directory must be readable");
        let names = entries.map(|entry| entry.expect("the entry must be readable").file_name());
        for name in names.filter_map(|name| name.into_string().ok()) {
            let is_page =
                Path::new(&name).extension().is_some_and(|kind| kind == "md") && name != "SUMMARY.md";
            assert!(
                !is_page || summary.contains(&format!("]({directory}{name})")),
                "the summary lacks {directory}{name}"
            );
        }
    }
}

#[test]
fn quick_start() {
    Chapter::run("quick-start.md");
}

#[test]
fn a_rack() {
    Chapter::run("rack.md");
}

#[test]
fn tuning() {
    Chapter::run("tuning.md");
}

#[test]
fn waiting() {
    Chapter::run("waiting.md");
}

#[test]
fn runs() {
    Chapter::run("runs.md");
}

#[test]
fn sweeps() {
    Chapter::run("sweeps.md");
}

#[test]
fn export() {
    Chapter::run("export.md");
}

#[test]
fn hierarchy() {
    Chapter::run("hierarchy.md");
}

#[test]
fn keys() {
    Chapter::run("keys.md");
}

#[test]
fn learners() {
    Chapter::run("learners.md");
}

#[test]
fn fpga() {
    Chapter::run("fpga.md");
}

#[test]
fn troubleshooting() {
    Chapter::run("troubleshooting.md");
}
