//! Tests of the changes that an operator can make with `iswitchctl` and with signals while jobs are running: changes of
//! settings, keys, jobs and members.

use std::fs;
use std::path::Path;

use iswitch_harness::cluster::{Daemon, Group, SOON, keygen, wait_for};
use iswitch_harness::netns::{Star, StarOptions};
use iswitch_harness::process::Signal;
use iswitch_harness::requirements::{networks_and, programs, together};
use iswitch_protocol::limits::DEFAULT_CONTROL_TOS;
use iswitch_protocol::wire::{ControlBody, ControlRepr, Limit, NameRepr, Status};
use iswitch_socket::{Options, UdpSocket};
use serde_json::{Value, json};

/// Runs `iswitchctl`, which must succeed, and returns its output.
fn obeyed(daemon: &Daemon, arguments: &str) -> String {
    let output = daemon.ctl(arguments);
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs `iswitchctl`, which must fail, and returns its error output.
fn refused(daemon: &Daemon, arguments: &str) -> String {
    let output = daemon.ctl(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments}: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

/// Returns the row of a setting from the output of `iswitchctl config`.
fn setting(daemon: &Daemon, name: &str) -> Value {
    let settings: Value = serde_json::from_str(&obeyed(daemon, "config --json")).unwrap();
    let mut settings = settings.as_array().unwrap().iter();
    settings.find(|row| row["setting"] == name).cloned().unwrap_or_else(|| panic!("no setting {name}"))
}

/// Starts a daemon whose configuration file has the given text. If this process is root, the daemon runs in its
/// sandbox, so that only its monitor can read the file again.
fn configured(directory: &Path, text: &str, arguments: &[&str]) -> Daemon {
    let path = directory.join("iswitchd.toml");
    fs::write(&path, text).unwrap();
    Daemon::on_loopback(&[&["--config", path.to_str().unwrap()], arguments].concat())
}

#[test]
fn a_reload_changes_settings_while_a_job_goes_on() {
    let test = "a_reload_changes_settings_while_a_job_goes_on";
    if !programs(test, &["setpriv"]) {
        return;
    }
    let _together = together();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("iswitchd.toml");
    let mut daemon = configured(directory.path(), "slow_ms = 60000\n", &["--lease-ms", "60000"]);
    let mut group = Group::here(2, daemon.address(), "--rounds 1000000");
    daemon.wait_for_results();
    let row = setting(&daemon, "slow_ms");
    assert_eq!((&row["value"], &row["from"]), (&60000.into(), &path.to_str().unwrap().into()));
    assert_eq!(setting(&daemon, "lease_ms")["from"], "command line");
    assert_eq!(setting(&daemon, "join_rate")["from"], "default");

    // If a file contains an error or a setting that cannot change at run time, the daemon rejects the file and names
    // the setting.
    fs::write(&path, "slow_ms = 5\n").unwrap();
    let error = refused(&daemon, "reload");
    assert!(error.contains("slow_ms is 5, expected 100 to 3600000"), "{error}");
    fs::write(&path, "slow_ms = 200\nmemory_mib = 5\n").unwrap();
    let error = refused(&daemon, "reload");
    assert!(
        error.contains("memory_mib (from 256 to 5) cannot change while the switch is running"),
        "{error}"
    );
    assert_eq!(setting(&daemon, "slow_ms")["value"], 60000, "the former configuration should stay");

    // The new limit is in force: the stopped worker is reported as slow.
    fs::write(&path, "slow_ms = 200\n").unwrap();
    assert_eq!(obeyed(&daemon, "reload"), "slow_ms: 60000 -> 200\n");
    group.signal(1, Signal::STOP);
    daemon.process.wait_for("has been waiting for member", SOON);
    group.signal(1, Signal::CONT);

    // SIGHUP also reloads the file, and the job is not interrupted.
    fs::write(&path, "slow_ms = 300\nlog_level = 'debug'\n").unwrap();
    daemon.process.signal(Signal::HUP);
    daemon.process.wait_for("setting=\"log_level\"", SOON);
    assert_eq!(setting(&daemon, "slow_ms")["value"], 300);
    daemon.wait_for_results();
    assert!(group.is_running());
    drop(group);
    daemon.stop();
}

#[test]
fn ports_are_added_and_removed_while_a_job_goes_on() {
    let test = "ports_are_added_and_removed_while_a_job_goes_on";
    if !networks_and(test, &["nft", "setpriv"]) {
        return;
    }
    let _together = together();
    let directory = tempfile::tempdir().unwrap();
    let (star, path) = (Star::new(StarOptions { workers: 3, ..StarOptions::default() }), directory.path());
    let path = path.join("iswitchd.toml");
    let configure = |ports: &[&str]| fs::write(&path, format!("port = {ports:?}\n")).unwrap();
    configure(&["s1", "s2"]);
    let mut daemon = Daemon::configured(&star, &path, &["--lease-ms", "2000"]);
    let mut group = Group::of(&star.workers[..2], daemon.address(), "--rounds 1000000000");
    daemon.wait_for_results();
    let tables = || star.switch.run(["nft", "list", "tables", "netdev"]);
    assert!(!tables().contains("iswitchd_s3"));

    // An interface that does not exist, and a port through AF_XDP, are refused, and nothing changes.
    configure(&["s1", "s2", "s3", "s9"]);
    let error = refused(&daemon, "reload");
    assert!(error.contains("interface \"s9\" does not exist"), "{error}");
    assert!(!tables().contains("iswitchd_s3"), "the rule of the other port should be removed again");
    configure(&["s1", "s2", "xdp:s3"]);
    let error = refused(&daemon, "reload");
    assert!(
        error.contains("port (from ") && error.contains("cannot change while the switch is running"),
        "{error}"
    );

    // Twice, so that the number of a closed port is used again.
    for job in [5, 6] {
        configure(&["s1", "s2", "s3"]);
        let changed = obeyed(&daemon, "reload");
        assert_eq!(changed, "port: [\"s1\",\"s2\"] -> [\"s1\",\"s2\",\"s3\"]\n");
        assert!(tables().contains("iswitchd_s3"));
        let mut third =
            Group::of(&star.workers[2..], daemon.address(), &format!("--job {job} --rounds 1000000000"));
        wait_for("three members", || daemon.jobs().as_array().map_or(0, Vec::len), |jobs| *jobs == 2);
        daemon.wait_for_results();

        // Its member would be cut off.
        configure(&["s1", "s2"]);
        let error = refused(&daemon, "reload");
        assert!(error.contains("port \"s3\" has 1 members, expected none"), "{error}");
        third.end();
        assert_eq!(third.results(SOON).len(), 1);
        wait_for("the end of the job", || daemon.jobs().as_array().map_or(0, Vec::len), |jobs| *jobs == 1);
        assert_eq!(obeyed(&daemon, "reload"), "port: [\"s1\",\"s2\",\"s3\"] -> [\"s1\",\"s2\"]\n");
        assert!(!tables().contains("iswitchd_s3"));
        let names: Vec<_> =
            daemon.status()["ports"].as_array().unwrap().iter().map(|port| port["name"].clone()).collect();
        assert_eq!(names, ["s1", "s2"]);
    }
    assert!(daemon.process.is_running() && group.is_running());
    group.end();
    assert!(group.results(SOON).iter().all(|result| result["rejoins"] == 0));
    daemon.stop();
    assert!(!tables().contains("iswitchd_"));
}

#[test]
fn a_key_is_rotated_without_interrupting_the_job_that_has_it() {
    let test = "a_key_is_rotated_without_interrupting_the_job_that_has_it";
    if !programs(test, &["setpriv"]) {
        return;
    }
    let _together = together();
    let directory = tempfile::tempdir().unwrap();
    let [old, new] = ["old.key", "new.key"].map(|name| keygen(directory.path(), name));
    let current = directory.path().join("job.key");
    fs::copy(&old, &current).unwrap();
    let daemon = Daemon::on_loopback(&["--key-file", current.to_str().unwrap()]);
    let with = |key: &Path, rounds: u32| format!("--rounds {rounds} --tag-data --key-file {}", key.display());
    let mut running = Group::here(2, daemon.address(), &with(&old, 1_000_000));
    daemon.wait_for_results();
    fs::copy(&new, &current).unwrap();
    assert!(obeyed(&daemon, "reload").starts_with("key_files: "));
    daemon.wait_for_results();
    assert!(running.is_running(), "the job should keep its key");
    drop(running);
    obeyed(&daemon, "job remove 0");
    // Another job has the new key. Workers with the old key are no longer admitted.
    let of_another_job = |key: &Path| format!("{} --job 2", with(key, 20));
    let results = Group::here(2, daemon.address(), &of_another_job(&new)).results(SOON);
    assert_eq!(results.len(), 2);
    let before = daemon.drops("not_authentic");
    let stranger = Group::here(2, daemon.address(), &of_another_job(&old));
    wait_for("drops", || daemon.drops("not_authentic"), |drops| *drops > before);
    drop(stranger);
    daemon.stop();
}

#[test]
fn jobs_are_halted_resumed_and_removed() {
    let test = "jobs_are_halted_resumed_and_removed";
    if !programs(test, &["setpriv"]) {
        return;
    }
    let _together = together();
    let daemon = Daemon::on_loopback(&["--lease-ms", "1000"]);
    let error = refused(&daemon, "job halt 0");
    assert!(error.contains("job is 0, expected the number of a job of this switch"), "{error}");
    let group = Group::here(3, daemon.address(), "--rounds 1000000");
    daemon.wait_for_results();
    let shown: Value = serde_json::from_str(&obeyed(&daemon, "job show 0 --json")).unwrap();
    assert_eq!(shown[0]["members"].as_array().map(Vec::len), Some(3));
    // All identifiers of a run have the same form.
    for boot in [&shown[0]["boot"], &daemon.status()["boot"]] {
        let is_hex =
            |digits: &str| digits.len() == 16 && digits.chars().all(|digit| digit.is_ascii_hexdigit());
        assert!(boot.as_str().is_some_and(is_hex), "{boot}");
    }
    assert!(refused(&daemon, "job show 7").contains("expected the number of a job of this switch: 0"));
    assert!(refused(&daemon, "job resume 0").contains("job 0 is not halted"));
    assert_eq!(
        obeyed(&daemon, "job reset 0 --yes"),
        "job 0 was reset; it will continue once its workers have rejoined\n"
    );
    daemon.wait_for_results();
    assert_eq!(obeyed(&daemon, "job remove 0"), "job 0 was removed\n");
    for worker in group.finish(SOON) {
        // Between two rounds, a worker learns of the removal when it rejoins.
        let names_cause = ["the job is halted", "the operator has removed the job"]
            .into_iter()
            .any(|cause| worker.stderr.contains(cause));
        assert!(!worker.status.success() && names_cause, "{}", worker.stderr);
    }
    let log = daemon.wait_for_log("operator command carried out command=remove 0");
    assert!(log.contains("client=\"pid "), "{log}");
    daemon.stop();
}

#[test]
fn events_are_logged_with_fields_for_programs_and_once_for_people() {
    let test = "events_are_logged_with_fields_for_programs_and_once_for_people";
    if !programs(test, &["setpriv"]) {
        return;
    }
    let _together = together();
    let run = |format: &str| {
        let daemon = Daemon::on_loopback(&["--log-format", format]);
        Group::here(2, daemon.address(), "--rounds 20").results(SOON);
        daemon.wait_for_log("job 0 ended");
        daemon.stop().stderr
    };
    let lines: Vec<Value> = run("json").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let joined: Vec<_> = lines.iter().filter(|line| line["event"] == "joined").collect();
    assert_eq!(joined.len(), 2, "{lines:#?}");
    for (line, member) in joined.iter().zip(0..) {
        assert_eq!(
            (&line["job"], &line["member"], &line["level"]),
            (&0.into(), &member.into(), &"INFO".into())
        );
        assert!(line["address"].as_str().is_some_and(|address| address.starts_with("127.0.0.1:")), "{line}");
        assert!(line["message"].as_str().is_some_and(|text| text.contains("joined from")), "{line}");
    }
    assert!(lines.iter().any(|line| line["event"] == "left" && line["reason"] == "leave"), "{lines:#?}");

    let text = run("text");
    let joined = text.lines().find(|line| line.contains("joined from")).expect("a worker has joined");
    assert!(joined.contains(" INFO member ") && !joined.contains('='), "{joined}");
    assert!(text.contains("port open port=\"127.0.0.1:"), "other lines should keep their fields: {text}");
}

fn reference() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operations.md");
    fs::read_to_string(path).unwrap()
}

/// Checks that a table of the reference documentation has exactly the expected rows. `head` is the first line of the
/// table.
fn check_reference<'a>(head: &str, expected: impl IntoIterator<Item = &'a str>) {
    let page = reference();
    let table = page.lines().skip_while(|line| *line != head).skip(2);
    let row = |line: &str| line.strip_prefix("| `")?.split_once('`').map(|(name, _)| name.to_owned());
    let mut listed: Vec<_> = table.map_while(row).collect();
    let mut expected: Vec<_> = expected.into_iter().collect();
    listed.sort();
    expected.sort_unstable();
    assert_eq!(listed, expected);
}

#[test]
fn the_reference_lists_each_event() {
    check_reference("| event | level | meaning |", iswitch_switch::Event::names().iter().copied());
}

#[test]
fn the_reference_lists_each_refusal_and_each_limit() {
    let is_refusal = |status: &Status| !matches!(status, Status::Success | Status::Challenge);
    let refusals = Status::ALL.into_iter().filter(is_refusal);
    check_reference("| reason | meaning and remedy |", refusals.map(Status::name));
    check_reference("| limit | meaning | default | raised by |", Limit::ALL.map(Limit::name));
    let page = reference();
    for limit in Limit::ALL {
        let option = limit.option().map_or("-".to_owned(), |option| format!("`{option}`"));
        let row = page.lines().find(|line| line.starts_with(&format!("| `{}` |", limit.name()))).unwrap();
        assert!(row.ends_with(&format!("| {option} |")), "{row}");
    }
}

#[test]
fn a_refused_worker_learns_the_limit_and_its_option() {
    let test = "a_refused_worker_learns_the_limit_and_its_option";
    if !programs(test, &["setpriv"]) {
        return;
    }
    let _together = together();
    let daemon = Daemon::on_loopback(&["--max-jobs-per-source", "1", "--log-format", "json"]);
    let group = Group::here(2, daemon.address(), "--rounds 1000000");
    daemon.wait_for_results();
    let limit = "an address may have 1 jobs (iswitchd --max-jobs-per-source)";
    let refused = Group::here(1, daemon.address(), "--rounds 1 --job 7").finish(SOON);
    assert!(!refused[0].status.success() && refused[0].stderr.contains(limit), "{refused:?}");
    let log = daemon.wait_for_log(limit);
    let line = log.lines().find(|line| line.contains(limit)).unwrap();
    let line: Value = serde_json::from_str(line).unwrap();
    assert_eq!(
        (line["limit"].as_str(), line["value"].as_u64()),
        (Some("jobs_per_source"), Some(1)),
        "{line}"
    );

    let status = daemon.status();
    let row =
        status["limits"].as_array().unwrap().iter().find(|row| row["limit"] == "jobs_per_source").unwrap();
    assert_eq!((row["used"].as_u64(), row["value"].as_u64()), (Some(1), Some(1)), "{row}");
    assert_eq!(row["option"], "--max-jobs-per-source");
    let text = daemon.status_text();
    let row = text.lines().find(|line| line.contains("jobs_per_source")).unwrap();
    assert!(row.contains("--max-jobs-per-source"), "{text}");
    drop(group);
    daemon.stop();
}

#[test]
fn a_draining_daemon_stops_with_its_last_job() {
    let test = "a_draining_daemon_stops_with_its_last_job";
    if !programs(test, &["setpriv"]) {
        return;
    }
    let _together = together();
    let mut daemon = Daemon::on_loopback(&[]);
    let worker = |rank| Group::part(2, rank..rank + 1, daemon.address(), "--rounds 1000000");
    let [group, expelled] = [0, 1].map(worker);
    daemon.wait_for_results();
    let members = || daemon.jobs()[0]["members"].as_array().cloned().unwrap_or_default();
    let members = wait_for("the workers state their ranks", members, |members| {
        members.len() == 2 && members.iter().all(|member| member["rank"].is_u64())
    });
    let member = &members.iter().find(|member| member["rank"] == 1).expect("a member has rank 1")["id"];
    let error = refused(&daemon, "member expel 0 60000");
    assert!(error.contains("member is 60000, expected the id of a member of job 0"), "{error}");
    assert_eq!(
        obeyed(&daemon, "drain"),
        "the switch accepts no further jobs, and will stop when its last job has ended\n"
    );
    daemon.wait_for_results();
    obeyed(&daemon, &format!("member expel 0 {member}"));
    daemon.process.wait_for("expelled by the operator", SOON);
    for worker in expelled.finish(SOON) {
        assert!(worker.stderr.contains("(expelled by the operator)"), "{}", worker.stderr);
    }
    drop(group);
    // The killed workers leave the job when their lease expires.
    daemon.process.wait_for("no job is left", SOON);
    daemon.stop();
}

#[test]
fn names_of_a_job_and_its_workers_reach_the_operator_and_hostile_names_do_not() {
    if !programs("names_of_a_job_and_its_workers_reach_the_operator_and_hostile_names_do_not", &[]) {
        return;
    }
    let _together = together();
    let mut daemon = Daemon::on_loopback(&["--slow-ms", "200"]);
    let mut group = Group::here(2, daemon.address(), "--rounds 1000000 --job-name ppo-hopper");
    daemon.wait_for_results();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_owned();
    let names = || -> Vec<Value> {
        let jobs: Value = serde_json::from_str(&obeyed(&daemon, "jobs --json")).unwrap();
        let members = jobs[0]["members"].as_array().unwrap().clone();
        members.iter().map(|member| json!([jobs[0]["name"], member["rank"], member["host"]])).collect()
    };
    let is_complete =
        |names: &Vec<Value>| [0, 1].iter().all(|rank| names.contains(&json!(["ppo-hopper", rank, host])));
    wait_for("the names of both workers", names, is_complete);

    // A name with an escape sequence is refused and counted, and does not reach the log.
    let name = NameRepr { job: "hostile".parse().unwrap(), ..NameRepr::UNKNOWN };
    let repr = ControlRepr { job: 0, request: 1, body: ControlBody::Name(name) };
    let mut packet = vec![0; repr.buffer_len()];
    repr.emit(&mut packet);
    packet[20] = b'\x1b';
    let socket = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &Options::default()).unwrap();
    socket.connect(daemon.address()).unwrap();
    socket.send(DEFAULT_CONTROL_TOS, None, None, &packet, packet.len()).unwrap();
    wait_for("the refusal of the hostile name", || daemon.drops("bad_value"), |drops| *drops == 1);

    // The log names the worker that a round waits for.
    group.signal(1, Signal::STOP);
    daemon.process.wait_for("of job 0 (ppo-hopper) has been waiting for member", SOON);
    daemon.process.wait_for("(rank 1 on ", SOON);
    group.signal(1, Signal::CONT);
    drop(group);
    let log = daemon.stop().stderr;
    assert!(!log.contains('\x1b') && !log.contains("hostile"), "{log}");
}
