//! Tests of `iswitch lab`, started by root and by an ordinary user: the sums over its network, its exit status and its
//! shutdown.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Instant;

use iswitch_harness::binaries;
use iswitch_harness::cluster::SOON;
use iswitch_harness::copies::Copies;
use iswitch_harness::process::{Process, Signal, command, command_of_nobody};
use iswitch_harness::requirements::{has_nobody_namespaces, isolation_and, together};
use iswitch_harness::wait;
use serde_json::Value;

const PROGRAMS: [&str; 4] = ["iswitch", "iswitch-lab", "iswitchd", "all_reduce"];
/// Command of one worker that checks its sums and takes its rank from the lab.
const SUM: &str =
    "exec all_reduce --json --switch $ISWITCH_SWITCH --workers $WORLD_SIZE --rank $RANK --rounds 20";

/// Copies of the programs in a directory where other users may run them.
struct Programs(Copies);

impl Programs {
    fn copy() -> Self {
        Self(Copies::of(&PROGRAMS.map(|name| (name, binaries::path(name)))))
    }

    /// Returns a command of `iswitch lab` for each user who may start it: the current user and, if that is root, an
    /// ordinary user.
    fn labs(&self, arguments: &[&str]) -> Vec<Command> {
        let program = self.0.path("iswitch");
        let mut labs = vec![command(&program)];
        if has_nobody_namespaces() {
            labs.push(command_of_nobody(&program));
        }
        for lab in &mut labs {
            // Ranks that a launcher of the tests has set would be taken for those of the lab.
            lab.env_remove("RANK").env_remove("WORLD_SIZE").current_dir(self.0.directory());
            lab.arg("lab").args(arguments);
        }
        labs
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn succeeds(lab: &mut Command) -> String {
    let Output { status, stdout, stderr } = lab.output().expect("the program was built");
    assert!(status.success(), "{lab:?}: {status}\n{}{}", text(&stdout), text(&stderr));
    text(&stdout)
}

/// Returns the JSON that each rank has printed.
fn results(output: &str, workers: usize) -> Vec<Value> {
    let of = |rank: usize| {
        let prefix = format!("[{rank}] ");
        let line = output.lines().find_map(|line| line.strip_prefix(&prefix));
        let line = line.unwrap_or_else(|| panic!("nothing from rank {rank} in {output}"));
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
    };
    (0..workers).map(of).collect()
}

#[test]
fn workers_aggregate_over_raw_ports_and_udp() {
    if !isolation_and("workers_aggregate_over_raw_ports_and_udp", &["nft", "ping", "tc"]) {
        return;
    }
    let _together = together();
    let programs = Programs::copy();
    for options in [&[][..], &["--udp"], &["--rate", "1gbit", "--iswitchd-arg=--ordered"]] {
        let arguments = [&["--workers", "2", "--json"], options, &["--", "sh", "-c", SUM]].concat();
        for mut lab in programs.labs(&arguments) {
            let output = succeeds(&mut lab);
            let layout: Value =
                serde_json::from_str(output.lines().next().expect("a line")).expect("JSON first");
            let kind = if options.contains(&"--udp") { "udp" } else { "raw" };
            assert_eq!(layout["switch"]["kind"], kind);
            assert_eq!(layout["workers"][1]["address"], "10.9.0.2");
            for result in results(&output, 2) {
                assert_eq!(
                    (&result["rounds"], &result["partial_rounds"]),
                    (&20.into(), &0.into()),
                    "{result}"
                );
            }
        }
    }
}

#[test]
fn a_training_finds_its_rank_and_the_switch() {
    if !isolation_and("a_training_finds_its_rank_and_the_switch", &["nft", "ping"]) {
        return;
    }
    let _together = together();
    let programs = Programs::copy();
    let training = "exec iswitch train ppo --steps 8192 --seed 1 --quiet --json --out run-$(id -u)-$RANK";
    for mut lab in programs.labs(&["--workers", "2", "sh", "-c", training]) {
        // The other rank compares its weights with the first and prints nothing.
        let result = &results(&succeeds(&mut lab), 1)[0];
        assert_eq!(
            (&result["workers"], &result["replicas_identical"]),
            (&2.into(), &true.into()),
            "{result}"
        );
    }
}

#[test]
fn the_first_failure_ends_all_workers_and_sets_the_exit_status() {
    if !isolation_and("the_first_failure_ends_all_workers_and_sets_the_exit_status", &["nft", "ping"]) {
        return;
    }
    let programs = Programs::copy();
    let script = "[ $RANK = 1 ] && exit 7; trap 'exit 3' TERM; sleep 600 & wait";
    for mut lab in programs.labs(&["--workers", "3", "--", "sh", "-c", script]) {
        let begin = Instant::now();
        let Output { status, stderr, .. } = lab.output().expect("the program was built");
        assert_eq!(status.code(), Some(7), "{}", text(&stderr));
        assert!(text(&stderr).contains("worker 1 ended with status 7"), "{}", text(&stderr));
        assert!(begin.elapsed() < 2 * SOON, "the other workers must be ended soon");
    }
}

/// Returns the command lines of those processes of this machine whose command line contains a word.
fn processes_with(word: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let command_lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    command_lines.map(|line| text(&line)).filter(|line| line.contains(word)).collect()
}

#[test]
fn an_interrupted_or_killed_lab_leaves_nothing_behind() {
    if !isolation_and("an_interrupted_or_killed_lab_leaves_nothing_behind", &["nft", "ping"]) {
        return;
    }
    let programs = Programs::copy();
    // No other process of this machine sleeps for this time.
    let word = format!("61{}.5", std::process::id());
    let script = format!("setsid sleep {word} & exec sleep {word}");
    for (signal, code) in [(Signal::INT, Some(130)), (Signal::TERM, Some(143)), (Signal::KILL, None)] {
        for mut lab in programs.labs(&["--workers", "2", "--json", "--", "sh", "-c", &script]) {
            let mut process = Process::spawn("iswitch lab", &mut lab);
            process.wait_for("\"workers\"", 2 * SOON);
            wait::until("four sleeps", SOON, || {
                processes_with(&word).iter().filter(|line| line.starts_with("sleep")).count() >= 4
            });
            let layout: Value =
                serde_json::from_str(process.stdout().lines().next().expect("a line")).expect("JSON");
            let ids = [&layout["switch"]["pid"], &layout["workers"][0]["pid"], &layout["workers"][1]["pid"]];
            let is_alive = |id: &Value| Path::new("/proc").join(id.to_string()).exists();
            assert!(ids.into_iter().all(is_alive), "{layout}");
            let finished = process.stop(signal, SOON);
            assert_eq!(finished.status.code(), code, "{}", finished.stderr);
            wait::until("the end of all sleeps", SOON, || processes_with(&word).is_empty());
            wait::until("the end of switch and workers", SOON, || !ids.into_iter().any(is_alive));
        }
    }
}

#[test]
fn missing_requirements_are_reported_by_name() {
    if !isolation_and("missing_requirements_are_reported_by_name", &["nft", "ping", "tc"]) {
        return;
    }
    let programs = Programs::copy();
    let refused = |lab: &mut Command| {
        let Output { status, stderr, .. } = lab.output().expect("the program was built");
        assert_eq!(status.code(), Some(1), "{}", text(&stderr));
        text(&stderr)
    };
    for mut lab in programs.labs(&["--", "no-such-program"]) {
        assert_eq!(refused(&mut lab), "iswitch-lab: the command no-such-program does not exist\n");
    }
    for mut lab in programs.labs(&["--workers", "2", "--iswitchd-arg", "--no-such-option", "--", "true"]) {
        let error = refused(&mut lab);
        assert!(error.contains("[switch] error: unexpected argument '--no-such-option'"), "{error}");
        assert!(error.contains("iswitch-lab: iswitchd has ended; see its error message above"), "{error}");
    }
    // This script simulates a kernel that forbids namespaces.
    let unshare = programs.0.path("unshare");
    fs::write(&unshare, "#!/bin/sh\necho 'unshare: unshare failed: Operation not permitted' >&2; exit 1\n")
        .unwrap();
    fs::set_permissions(&unshare, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", programs.0.directory().display(), std::env::var("PATH").unwrap_or_default());
    for mut lab in programs.labs(&["--", "true"]) {
        let error = refused(lab.env("PATH", &path));
        assert!(
            error.contains("this user is not permitted to create namespaces (unshare: unshare failed: Op"),
            "{error}"
        );
    }
}

#[test]
fn a_kernel_without_delay_support_is_reported() {
    if !isolation_and("a_kernel_without_delay_support_is_reported", &["nft", "ping", "tc"]) {
        return;
    }
    let programs = Programs::copy();
    let script = "ping -c 3 10.9.0.254 | grep rtt";
    for mut lab in programs.labs(&["--workers", "1", "--delay", "5ms", "--", "sh", "-c", script]) {
        let Output { status, stdout, stderr } = lab.output().expect("the program was built");
        let (stdout, stderr) = (text(&stdout), text(&stderr));
        if status.success() {
            // Minimum round-trip time of three packets, from a line such as rtt min/avg/max/mdev = 10.1/10.2/10.3/0.1
            // ms.
            let least =
                stdout.split(" = ").nth(1).and_then(|times| times.split('/').next()?.parse::<f64>().ok());
            assert!(least.is_some_and(|ms| ms >= 10.0), "{stdout}");
        } else {
            assert!(stderr.contains("lacks netem (CONFIG_NET_SCH_NETEM, module sch_netem)"), "{stderr}");
        }
    }
}
