//! Every command of the user guide (`docs/guide`), run as it stands there.
//!
//! A block of commands says behind `sh` where it is run: `here`; on the `switch` or on each `worker` of a rack in
//! network namespaces, where `ethN` is what that machine calls its card; `host` sets what namespaces have in common.
//! `runs`: goes on until the end of the chapter; `together`: each line is a process of its own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use iswitch_harness::binaries;
use iswitch_harness::cluster::SOON;
use iswitch_harness::netns::{Namespace, Star, StarOptions, WORKER_INTERFACE};
use iswitch_harness::process::{self, Process};
use iswitch_harness::requirements::{alone, networks_and, report, root_and};
use iswitch_harness::scratch;
use serde_json::Value;
use tempfile::TempDir;

/// A training on a busy machine.
const PATIENCE: Duration = SOON.saturating_mul(9);

/// Commands of one place of a chapter.
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
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```sh") else { continue };
        let mut words = info.split_whitespace().map(str::to_owned);
        let place =
            words.next().unwrap_or_else(|| panic!("{chapter}: a block that does not say where it is run"));
        let lines = lines.by_ref().take_while(|line| *line != "```").map(str::to_owned).collect();
        blocks.push(Block { place, mode: words.next(), lines });
    }
    assert!(!blocks.is_empty(), "{chapter} has no commands");
    blocks
}

/// Where a chapter's commands are run, and what they have left running.
struct Chapter {
    directory: TempDir,
    star: Option<Star>,
    running: Vec<Process>,
}

impl Chapter {
    fn run(name: &str) {
        let blocks = blocks(name);
        let has = |words: &str| blocks.iter().flat_map(|block| &block.lines).any(|line| line.contains(words));
        let mut programs = vec!["bash", "curl", "ethtool", "nft", "taskset"];
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
        let _alone = alone();
        let needs_rack = blocks.iter().any(|block| block.place == "switch");
        let star = needs_rack.then(|| Star::new(StarOptions::default()));
        if let Some(star) = star.as_ref().filter(|_| has("add br0")) {
            star.switch.ip("link del br0\n");
        }
        let mut chapter = Self { directory: scratch::directory(), star, running: Vec::new() };
        for block in &blocks {
            report(&format!("{name}: {}", block.lines.join("; ")));
            chapter.block(block);
        }
    }

    fn block(&mut self, block: &Block) {
        let text = block.lines.join("\n");
        match (block.place.as_str(), block.mode.as_deref()) {
            ("here", Some("runs")) => self.keep(self.spawn(&format!("exec {text}"), None, 0)),
            ("switch", Some("runs")) => {
                self.keep(self.spawn(&format!("exec {text}"), Some(&self.rack().switch), 0));
            }
            ("here", Some("together")) => self.together(&block.lines),
            ("here" | "root", None) => finish([self.spawn(&text, None, 0)]),
            ("switch", None) => finish([self.spawn(&text, Some(&self.rack().switch), 0)]),
            ("worker", None) => {
                let workers = self.rack().workers.iter().enumerate();
                let all: Vec<_> =
                    workers.map(|(rank, worker)| self.spawn(&text, Some(worker), rank)).collect();
                finish(all);
            }
            ("host", None) => self.set_back(&text),
            other => panic!("nobody knows how to run {other:?}"),
        }
    }

    fn rack(&self) -> &Star {
        self.star.as_ref().expect("a chapter with a switch has a rack")
    }

    /// Begins commands in a shell.
    fn spawn(&self, text: &str, namespace: Option<&Namespace>, rank: usize) -> Process {
        // All programs are built by now: what this would do for the reader.
        let text = text.replace("cargo build --release", "true");
        // What cards are called there.
        let text = text.replace("eth0", WORKER_INTERFACE);
        let text =
            (1..=4).fold(text, |text, port| text.replace(&format!("eth{port}"), &Star::port(port - 1)));
        let mut command =
            namespace.map_or_else(|| process::command("bash"), |namespace| namespace.command("bash"));
        let programs = binaries::iswitch().parent().expect("a directory").display();
        let path = format!("{programs}:{}", std::env::var("PATH").unwrap_or_default());
        command.args(["-ec", &format!("RANK={rank}; exec 2>&1; {text}")]).env("PATH", path);
        // Not exported, as a launcher's would be: the command says it.
        command.current_dir(self.directory.path()).env_remove("RANK").env_remove("WORLD_SIZE");
        // Where daemons of ordinary users have their control sockets.
        command.env("XDG_RUNTIME_DIR", self.directory.path());
        Process::spawn(&text, &mut command)
    }

    fn keep(&mut self, mut process: Process) {
        process.wait_for(" ready: ", SOON);
        self.running.push(process);
    }

    fn together(&self, lines: &[String]) {
        let all: Vec<_> = lines.iter().map(|line| self.spawn(line, None, 0)).collect();
        finish(all);
    }

    /// Runs what changes settings of the whole machine, and changes them back.
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

/// Waits for the end of all; results have to be good ones.
fn finish(processes: impl IntoIterator<Item = Process>) {
    for process in processes {
        let printed = process.wait_success(PATIENCE);
        let results = printed.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        for result in results.filter(|result| result.get("replicas_identical").is_some()) {
            assert_eq!(result["replicas_identical"], true, "{result}");
        }
    }
}

#[test]
fn the_summary_names_every_chapter() {
    let summary = std::fs::read_to_string(guide().join("SUMMARY.md")).expect("a summary");
    let chapters = std::fs::read_dir(guide()).expect("the guide").flatten().map(|entry| entry.file_name());
    for chapter in chapters.filter(|name| name != "SUMMARY.md") {
        let name = chapter.to_string_lossy();
        assert!(summary.contains(&format!("]({name})")), "SUMMARY.md lacks {name}");
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
