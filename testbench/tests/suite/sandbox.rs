//! Tests of the privileges that a running daemon has dropped, of the functions that it can still perform, and of the
//! cleanup after the daemon is killed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use iswitch_harness::binaries;
use iswitch_harness::cluster::{Daemon, Group, SOON};
use iswitch_harness::netns::{Star, StarOptions};
use iswitch_harness::process::{Process, Signal, command};
use iswitch_harness::requirements::{is_root, networks_and, together};
use iswitch_harness::scratch;
use iswitch_harness::wait;

/// Returns the value of a field for each thread of a process, from `/proc/<pid>/task/*/status`.
fn of_threads(process: u32, field: &str) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).expect("a live process");
    let value = |task: fs::DirEntry| {
        let status = fs::read_to_string(task.path().join("status")).expect("a live thread");
        let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("no {field} in {status}")).split_whitespace().next().map(str::to_owned)
    };
    tasks.flatten().filter_map(value).collect()
}

/// Returns the process id of the first child process of a daemon, which is the daemon's monitor.
fn monitor_of(daemon: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{daemon}/task/{daemon}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

fn has_process(id: u32) -> bool {
    Path::new("/proc").join(id.to_string()).exists()
}

#[test]
fn no_thread_keeps_a_privilege() {
    if !networks_and("no_thread_keeps_a_privilege", &[]) {
        return;
    }
    let star = Star::new(StarOptions { workers: 1, ..StarOptions::default() });
    // In the namespace of an ordinary user there is no other user to which the daemon could switch.
    let (user, ids): (&[&str], &[_]) =
        if is_root() { (&["--user", "nobody"], &[("Uid", "65534"), ("Gid", "65534")]) } else { (&[], &[]) };
    let own_ids = of_threads(std::process::id(), "Uid");
    let daemon = Daemon::on_ports(&star, &[user, &["--threads", "2"]].concat());
    let id = daemon.process.id();
    assert_eq!(of_threads(id, "Name").len(), 6, "packets (2), log, control socket, signals, flight recorder");
    let privileges = [
        ("CapInh", "0000000000000000"),
        ("CapPrm", "0000000000000000"),
        ("CapEff", "0000000000000000"),
        ("CapBnd", "0000000000000000"),
        ("CapAmb", "0000000000000000"),
        ("NoNewPrivs", "1"),
        ("Seccomp", "2"),
    ];
    for (field, expected) in ids.iter().chain(&privileges) {
        let values = of_threads(id, field);
        assert!(values.iter().all(|value| value == expected), "{field}: {values:?}");
    }
    let log = daemon.wait_for_log("system calls filtered");
    assert!(log.contains("Landlock"), "{log}");
    daemon.stop();

    let daemon = Daemon::on_ports(&star, &["--no-sandbox"]);
    let id = daemon.process.id();
    assert!(of_threads(id, "Uid").iter().all(|uid| *uid == own_ids[0]) && monitor_of(id).is_none());
    daemon.stop();
    assert_eq!(star.tables(), 0);
}

#[test]
fn the_monitor_cleans_up_after_a_killed_daemon() {
    if !networks_and("the_monitor_cleans_up_after_a_killed_daemon", &[]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions { workers: 2, ..StarOptions::default() });
    let mut daemon = Daemon::on_ports(&star, &[]);
    let monitor = monitor_of(daemon.process.id()).expect("a monitor");
    assert_eq!((star.tables(), daemon.control_socket().exists()), (2, true));
    daemon.process.signal(Signal::KILL);
    wait::until("the monitor to clean up", SOON, || star.tables() == 0 && !daemon.control_socket().exists());
    wait::until("the end of the monitor", SOON, || !has_process(monitor));

    // The second daemon may start before the monitor of the first one acts. The monitor must not remove anything that
    // the second daemon owns.
    let first = Daemon::on_ports(&star, &[]);
    let monitor = monitor_of(first.process.id()).expect("a monitor");
    first.process.stop(Signal::KILL, SOON);
    let second = Daemon::on_ports(&star, &[]);
    wait::until("the end of the monitor", SOON, || !has_process(monitor));
    assert_eq!(star.tables(), 2);
    Group::in_star(&star, second.address(), "--rounds 5").results(SOON);
    second.stop();
    assert_eq!(star.tables(), 0);
}

#[test]
fn a_new_interface_is_served_without_privileges() {
    if !networks_and("a_new_interface_is_served_without_privileges", &[]) {
        return;
    }
    let _together = together();
    let options = StarOptions { workers: 2, ..StarOptions::default() };
    let star = Star::new(options);
    let mut daemon = Daemon::on_ports(&star, &[]);
    Group::in_star(&star, daemon.address(), "--rounds 5").results(SOON);
    star.replug(0, options);
    daemon.process.wait_for("serving the recreated interface", SOON);
    wait::until("the rule to be installed again", SOON, || star.tables() == 2);
    let results = Group::in_star(&star, daemon.address(), "--rounds 5").results(SOON);
    assert_eq!(results.len(), 2);
    let finished = daemon.stop();
    assert!(!finished.stderr.contains("cannot"), "{}", finished.stderr);
    assert_eq!(star.tables(), 0);
}

#[test]
fn two_capabilities_granted_as_by_systemd_suffice() {
    if !networks_and("two_capabilities_granted_as_by_systemd_suffice", &[]) {
        return;
    }
    let star = Star::new(StarOptions { workers: 1, ..StarOptions::default() });
    // A directory in which another user may run the program and create a socket.
    let directory = scratch::directory();
    allow(directory.path(), 0o777);
    let program = directory.path().join("iswitchd");
    fs::copy(binaries::iswitchd(), &program).expect("room for the program");
    let mut iswitchd = star.switch.command("setpriv");
    if is_root() {
        iswitchd.args("--reuid 65534 --regid 65534 --clear-groups".split(' '));
    }
    iswitchd.arg("--no-new-privs");
    iswitchd.args("--inh-caps -all,+net_raw,+net_admin --ambient-caps -all,+net_raw,+net_admin".split(' '));
    iswitchd.args("--bounding-set -all,+net_raw,+net_admin --pdeathsig KILL".split(' ')).arg(program);
    iswitchd.args(["--port", &Star::port(0), "--control-socket"]).arg(directory.path().join("control"));
    let mut daemon = Process::spawn("iswitchd", &mut iswitchd);
    daemon.wait_for(" ready: ", SOON);
    assert_eq!(star.tables(), 1);
    for field in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        let values = of_threads(daemon.id(), field);
        assert!(values.iter().all(|value| value == "0000000000000000"), "{field}: {values:?}");
    }
    daemon.signal(Signal::TERM);
    daemon.wait_success(SOON);
    assert_eq!((star.tables(), directory.path().join("control").exists()), (0, false));
}

fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its own file");
}

#[test]
fn the_service_manager_is_notified() {
    let directory = scratch::directory();
    let path = directory.path().join("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    // A daemon that is started as root switches to another user, who must be able to write to the socket.
    allow(&path, 0o666);
    allow(directory.path(), 0o755);
    socket.set_read_timeout(Some(SOON)).expect("a timeout");
    let next = || {
        let mut buffer = [0; 100];
        let len = socket.recv(&mut buffer).expect("a notice");
        String::from_utf8_lossy(&buffer[..len]).trim().to_owned()
    };
    let mut iswitchd = command(binaries::iswitchd());
    iswitchd.args(["--udp", "127.0.0.1:0", "--control-socket"]).arg(directory.path().join("control"));
    iswitchd.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "10000000");
    let mut daemon = Process::spawn("iswitchd", &mut iswitchd);
    assert_eq!(next(), "READY=1");
    assert_eq!(next(), "WATCHDOG=1");
    assert_eq!(next(), "WATCHDOG=1");
    daemon.signal(Signal::TERM);
    assert_eq!(
        std::iter::repeat_with(next).find(|notice| notice != "WATCHDOG=1").as_deref(),
        Some("STOPPING=1")
    );
    daemon.wait_success(SOON);
}
