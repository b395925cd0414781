//! Tests of the daemon over UDP on the loopback interface. They need no privileges.

use std::time::Duration;

use iswitch_harness::cluster::{Daemon, Group, SOON, times, total};
use iswitch_harness::process::Signal;
use iswitch_harness::requirements::{alone, programs, report, together};

#[test]
fn four_processes_aggregate_through_the_daemon() {
    let test = "four_processes_aggregate_through_the_daemon";
    if !programs(test, &["setpriv"]) {
        return;
    }
    let _together = together();
    let daemon = Daemon::on_loopback(&[]);
    for (floats, rounds, offload) in [(10_119, 200, ""), (200_000, 20, ""), (10_119, 50, "--no-offload")] {
        let arguments = format!("--floats {floats} --rounds {rounds} {offload}");
        let results = Group::here(4, daemon.address(), &arguments).results(SOON);
        assert_eq!(total(&results, "rounds"), 4 * rounds);
        report(&format!("udp: 4 workers, {floats} floats {offload}: {}", times(&results)));
    }
    assert_eq!(daemon.drops("unknown_member"), 0);
    daemon.stop();
}

/// Tests datagrams of various lengths, because the kernel charges more than a datagram's payload to the receive buffer,
/// by an amount that depends on the length.
#[test]
fn packets_in_flight_to_a_stopped_daemon_fit_its_receive_buffer() {
    if !programs("packets_in_flight_to_a_stopped_daemon_fit_its_receive_buffer", &["setpriv"]) {
        return;
    }
    let _alone = alone();
    for segment_floats in [15, 100, 366, 1000, 2241] {
        let mut daemon = Daemon::on_loopback(&["--recv-buffer-bytes", "500000", "--lease-ms", "60000"]);
        let floats = 1000 * segment_floats;
        let arguments =
            format!("--floats {floats} --segment-floats {segment_floats} --rounds 1000000 --no-offload");
        let mut group = Group::here(2, daemon.address(), &arguments);
        for _ in 0..4 {
            daemon.wait_for_results();
            daemon.process.signal(Signal::STOP);
            std::thread::sleep(Duration::from_millis(150));
            daemon.process.signal(Signal::CONT);
        }
        daemon.wait_for_results();
        group.end();
        let results = group.results(SOON);
        assert_eq!(total(&results, "retransmitted"), 0, "{segment_floats} floats in a segment");
        daemon.stop();
    }
}

#[test]
fn sums_in_ordered_mode_are_exact() {
    if !programs("sums_in_ordered_mode_are_exact", &["setpriv"]) {
        return;
    }
    let _together = together();
    let daemon = Daemon::on_loopback(&["--ordered"]);
    let results = Group::here(4, daemon.address(), "--floats 10119 --rounds 200").results(SOON);
    assert_eq!(total(&results, "rounds"), 4 * 200);
    report(&format!("udp: 4 workers, 10119 floats --ordered: {}", times(&results)));
    daemon.stop();
}

#[test]
fn a_stopped_worker_is_reported_by_the_daemon() {
    if !programs("a_stopped_worker_is_reported_by_the_daemon", &["setpriv"]) {
        return;
    }
    let _together = together();
    let mut daemon = Daemon::on_loopback(&["--slow-ms", "200", "--lease-ms", "60000"]);
    let mut group = Group::here(3, daemon.address(), "--rounds 1000000");
    daemon.wait_for_results();
    group.signal(1, Signal::STOP);
    daemon.process.wait_for("has been waiting for member", SOON);
    let status = daemon.status();
    let waiting = status["waiting"].as_array().expect("a list");
    assert_eq!(waiting.len(), 1, "{status}");
    assert!(waiting[0]["missing_segments"].as_u64() > Some(0), "{status}");
    group.signal(1, Signal::CONT);
    daemon.process.wait_for("no longer wait for member", SOON);
    drop(group);
    daemon.stop();
}
