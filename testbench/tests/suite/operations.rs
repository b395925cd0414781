//! Tests of the tools with which an operator observes a running switch: the flight recorder, captures for Wireshark,
//! and `top` in a terminal.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use iswitch_harness::binaries;
use iswitch_harness::cluster::{Daemon, Group, SOON};
use iswitch_harness::netns::{Star, StarOptions};
use iswitch_harness::process::{Process, Signal, command, run};
use iswitch_harness::requirements::{networks_and, programs, together};
use serde_json::Value;

/// Returns the dumps in a file. Each dump consists of its first line and the lines that follow.
fn dumps(path: &Path) -> Vec<(Value, Vec<Value>)> {
    let text = fs::read_to_string(path).expect("the daemon must create the file");
    let mut dumps: Vec<(Value, Vec<Value>)> = Vec::new();
    // The daemon may still be writing the last line.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    for line in whole.lines() {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        if value["dump"].is_string() {
            dumps.push((value, Vec::new()));
        } else {
            dumps.last_mut().expect("a dump begins with its cause").1.push(value);
        }
    }
    dumps
}

fn has(records: &[Value], what: &str) -> bool {
    records.iter().any(|record| record["what"] == what)
}

#[test]
fn the_flight_recorder_shows_the_events_that_led_to_a_stall() {
    let test = "the_flight_recorder_shows_the_events_that_led_to_a_stall";
    if !programs(test, &["setpriv"]) {
        return;
    }
    let _together = together();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flight.jsonl");
    let file = path.to_str().unwrap();
    let arguments = ["--flight-recorder", file, "--slow-ms", "200", "--lease-ms", "60000"];
    let mut daemon = Daemon::on_loopback(&arguments);
    let mut group = Group::here(3, daemon.address(), "--rounds 1000000");
    daemon.wait_for_results();
    group.signal(1, Signal::STOP);
    daemon.process.wait_for("flight recorder dumped", SOON);
    let (head, records) = dumps(&path).remove(0);
    assert_eq!((&head["dump"], &head["records"]), (&"slow".into(), &records.len().into()));
    let awaited = &head["status"]["waiting"]["members"];
    assert_eq!(awaited.as_array().map(Vec::len), Some(1), "{head}");
    for what in ["job_created", "joined", "job_formed", "round_opened", "round_finished", "slow"] {
        assert!(has(&records, what), "no {what} in {records:#?}");
    }
    // The latest opened round is the one that waits for the stopped member.
    let slow = records.iter().find(|record| record["what"] == "slow").expect("checked above");
    assert_eq!(slow["member"], awaited[0]["member"]);
    let opened = records.iter().rev().find(|record| record["what"] == "round_opened").expect("checked above");
    assert_eq!(opened["round"], head["status"]["round"]);
    assert!(records.is_sorted_by_key(|record| record["at_ms"].as_f64().expect("a time")));
    // A request, by a signal or through the control socket, dumps all records again.
    group.signal(1, Signal::CONT);
    daemon.wait_for_results();
    daemon.process.signal(Signal::USR1);
    daemon.process.wait_for("cause=\"signal\"", SOON);
    let (_, records) = dumps(&path).pop().expect("a second dump");
    assert!(has(&records, "joined") && has(&records, "slow"), "{records:#?}");
    let asked =
        run(command(binaries::iswitchctl()).args(["flight", "--socket"]).arg(daemon.control_socket()));
    assert!(asked.lines().next().is_some_and(|line| line.contains("\"dump\":\"request\"")), "{asked}");
    assert!(asked.contains("\"what\":\"job_formed\""), "{asked}");
    drop(group);
    daemon.stop();
}

#[test]
fn a_daemon_without_a_flight_recorder_file_survives_sigusr1() {
    let test = "a_daemon_without_a_flight_recorder_file_survives_sigusr1";
    if !programs(test, &["setpriv"]) {
        return;
    }
    let _together = together();
    let mut daemon = Daemon::on_loopback(&[]);
    daemon.process.signal(Signal::USR1);
    daemon.process.wait_for("no job has been created yet", SOON);
    let group = Group::here(2, daemon.address(), "--rounds 20");
    group.results(SOON);
    daemon.process.signal(Signal::USR1);
    daemon.process.wait_for("\"what\":\"job_ended\"", SOON);
    daemon.stop();
}

fn dissector() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/wireshark/iswitch.lua")
}

#[test]
fn tshark_reads_packets_captured_on_the_ports_of_a_daemon() {
    let test = "tshark_reads_packets_captured_on_the_ports_of_a_daemon";
    if !networks_and(test, &["tshark"]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions { workers: 2, ..StarOptions::default() });
    let daemon = Daemon::on_ports(&star, &[]);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("round.pcapng");
    let mut capture = star.switch.command(binaries::iswitchctl());
    capture.args(["capture", "--interface", "s1", "--interface", "s2", "--write"]).arg(&file);
    let mut capture = Process::spawn("iswitchctl capture", &mut capture);
    capture.wait_for("capturing on s1, s2", SOON);
    let results = Group::in_star(&star, daemon.address(), "--rounds 20").results(SOON);
    assert_eq!(results.len(), 2);
    // The capture must not contain these packets, because their ToS is not that of the protocol.
    star.workers[0].run(["ping", "-q", "-c", "3", "-i", "0.01", "10.9.0.254"]);
    let finished = capture.stop(Signal::INT, SOON);
    assert!(
        finished.status.success() && finished.stderr.contains(" 0 dropped by the kernel"),
        "{}",
        finished.stderr
    );
    let fields = ["frame.interface_name", "iswitch.action", "iswitch.seg.round", "ip.dst", "_ws.malformed"];
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&file).arg("-X").arg(format!("lua_script:{}", dissector().display()));
    tshark.args(["-T", "fields", "-E", "separator=;"]).args(fields.iter().flat_map(|field| ["-e", field]));
    let table = run(&mut tshark);
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split(';').collect()).collect();
    assert!(rows.iter().all(|row| row.len() == fields.len() && row[4].is_empty()), "{table}");
    for interface in ["s1", "s2"] {
        let there: Vec<_> = rows.iter().filter(|row| row[0] == interface).collect();
        let is_join = |row: &&&Vec<&str>| row[1].split(',').any(|action| action == "1");
        assert!(there.iter().any(|row| is_join(&row)), "no Join on {interface} in\n{table}");
        for (from_worker, what) in [(true, "contribution"), (false, "result")] {
            let is_data = |row: &&&Vec<&str>| !row[2].is_empty() && (row[3] == "10.9.0.254") == from_worker;
            let data = there.iter().filter(|row| is_data(row)).count();
            assert!(data >= 20, "{data} with a {what} on {interface} in\n{table}");
        }
    }
    assert!(rows.iter().all(|row| !row[1].is_empty() || !row[2].is_empty()), "{table}");
    daemon.stop();
}

#[test]
fn a_capture_ends_after_the_requested_number_of_packets() {
    let test = "a_capture_ends_after_the_requested_number_of_packets";
    if !networks_and(test, &["tshark"]) {
        return;
    }
    let _together = together();
    let daemon = Daemon::on_loopback(&[]);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("three.pcapng");
    let port = daemon.address().port().to_string();
    let mut capture = command(binaries::iswitchctl());
    capture.args(["capture", "--interface", "lo", "--count", "3", "--udp-port", &port, "--write"]).arg(&file);
    let mut capture = Process::spawn("iswitchctl capture", &mut capture);
    capture.wait_for("capturing on lo", SOON);
    Group::here(2, daemon.address(), "--rounds 20").results(SOON);
    let finished = capture.wait(SOON);
    assert!(finished.stderr.contains("3 packets captured"), "{}", finished.stderr);
    let frames = run(Command::new("tshark").arg("-r").arg(&file));
    assert_eq!(frames.lines().count(), 3, "{frames}");
    daemon.stop();
}

/// Returns the words of a terminal's output, without the codes that move the cursor or change colours.
fn words(screens: &str) -> String {
    let mut parts = screens.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    let texts =
        parts.map(|part| part.split_once(|end: char| end.is_ascii_alphabetic()).map_or("", |(_, text)| text));
    let text = texts.fold(first, |all, text| all + " " + text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn top_follows_a_job_in_a_terminal() {
    let test = "top_follows_a_job_in_a_terminal";
    if !programs(test, &["script", "setpriv", "stty"]) {
        return;
    }
    let _together = together();
    let daemon = Daemon::on_loopback(&[]);
    let group = Group::here(2, daemon.address(), "--rounds 1000000");
    daemon.wait_for_results();
    let top = format!(
        "stty rows 24 cols 80; {} top --interval 0.1 --socket {}",
        binaries::iswitchctl().display(),
        daemon.control_socket().display()
    );
    // `script` creates the pseudo-terminal; q is typed after a few screens.
    let mut shell = command("sh");
    shell.args([
        "-c",
        "(sleep 2; printf jsq; sleep 5) | TERM=xterm script -qec \"$1\" /dev/null",
        "sh",
        &top,
    ]);
    let screens = Process::spawn("top", &mut shell).wait_success(SOON);
    let words = words(&screens);
    for text in ["iswitchd up", "members of job 0, by lag", "rounds/s", "127.0.0.1:", "q quit"] {
        assert!(words.contains(text), "{text:?} is not in {words}");
    }
    // Without a terminal or a daemon, `top` reports that.
    let without = |socket: &Path| {
        let output = command(binaries::iswitchctl()).args(["top", "--socket"]).arg(socket).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(
        without(Path::new("/nonexistent")).contains("no daemon is listening on /nonexistent; start iswitchd")
    );
    drop(group);
    daemon.stop();
}
