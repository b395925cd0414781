//! Tests of jobs with a key, with daemons and workers in separate processes.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use iswitch_harness::cluster::{Daemon, Group, SOON, keygen, times, total};
use iswitch_harness::requirements::{programs, report, together};
use iswitch_harness::scratch;
use iswitch_protocol::limits::DEFAULT_CONTROL_TOS;
use iswitch_protocol::wire::{ControlBody, ControlRepr};
use rustix::net::sockopt::set_ip_tos;

/// First UDP port that each of two switches uses towards its parent.
const UPLINK_PORTS: [&str; 2] = ["27721", "27731"];
const PAUSE: Duration = Duration::from_micros(200);

/// Sends requests for job 0 without a key until `stop` is set.
fn disturb(switch: SocketAddrV4, stop: &AtomicBool) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.connect(switch).unwrap();
    set_ip_tos(&socket, DEFAULT_CONTROL_TOS).unwrap();
    let bodies = [ControlBody::Halt, ControlBody::Leave, ControlBody::RESET];
    for request in 1.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let body = bodies[request as usize % bodies.len()];
        let repr = ControlRepr { job: 0, request, body };
        let mut packet = vec![0; repr.buffer_len()];
        repr.emit(&mut packet);
        socket.send(&packet).unwrap();
        thread::sleep(PAUSE);
    }
}

#[test]
fn workers_with_the_key_aggregate_and_others_are_reported() {
    let test = "workers_with_the_key_aggregate_and_others_are_reported";
    if !programs(test, &["setpriv"]) {
        return;
    }
    let _together = together();
    let directory = scratch::directory();
    let (key, other) = (keygen(directory.path(), "job.key"), keygen(directory.path(), "other.key"));
    let with = |key: &Path| format!("--floats 10119 --rounds 100 --key-file {}", key.display());
    let daemon = Daemon::on_loopback(&["--key-file", key.to_str().unwrap(), "--log-level", "trace"]);
    let (address, stop) = (daemon.address(), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| disturb(address, &stop));
        for tag_data in ["", " --tag-data"] {
            let results = Group::here(4, address, &(with(&key) + tag_data)).results(SOON);
            assert_eq!(total(&results, "rounds"), 400);
            report(&format!("udp: 4 workers with a key{tag_data}: {}", times(&results)));
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(daemon.drops("not_authentic") > 0);
    let before = daemon.counters()["traffic"]["contributions"].clone();
    let wrong = Group::here(1, address, &with(&other)).finish(SOON).remove(0);
    assert!(wrong.stderr.contains("the switch says that the job has a different key"), "{}", wrong.stderr);
    let none = Group::here(1, address, "").finish(SOON).remove(0);
    assert!(none.stderr.contains("job 0 has a key, but this worker has none"), "{}", none.stderr);
    assert_eq!(daemon.counters()["traffic"]["contributions"], before);
    let log = daemon.stop().stderr;
    assert!(log.contains("refused: not authentic"), "{log}");
    let digits = std::fs::read_to_string(&key).unwrap();
    assert!(!log.contains(digits.trim()), "the log must not contain the key");
}

#[test]
fn switches_with_a_shared_key_aggregate_together() {
    let test = "switches_with_a_shared_key_aggregate_together";
    if !programs(test, &["setpriv"]) {
        return;
    }
    let _together = together();
    let directory = scratch::directory();
    let key = keygen(directory.path(), "job.key").display().to_string();
    let root = Daemon::on_loopback(&["--key-file", &key]);
    let parent = root.address().to_string();
    let racks = UPLINK_PORTS
        .map(|port| Daemon::on_loopback(&["--key-file", &key, "--parent", &parent, "--uplink-port", port]));
    for tag_data in ["", "--tag-data"] {
        let arguments = format!("--floats 20000 --rounds 100 --key-file {key} {tag_data}");
        let groups = [0, 1]
            .map(|rack: usize| Group::part(4, 2 * rack..2 * rack + 2, racks[rack].address(), &arguments));
        for group in groups {
            assert_eq!(total(&group.results(SOON), "rounds"), 200);
        }
    }
    for daemon in racks.into_iter().chain([root]) {
        assert_eq!(daemon.drops("not_authentic"), 0);
        daemon.stop();
    }
}
