//! Tests that rounds continue even if the reader of the daemon's output has stalled.

use std::io::{PipeReader, Read, Write, pipe};
use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use iswitch_harness::cluster::{Daemon, Group, SOON};
use iswitch_harness::requirements::{programs, together};
use iswitch_harness::wait;
use iswitch_protocol::Key;
use iswitch_protocol::auth::{Direction, NO_SESSION};
use iswitch_protocol::limits::{DEFAULT_CONTROL_TOS, MIN_KEY_LEN_BYTES, TRAILER_LEN_BYTES};
use iswitch_protocol::wire::{ControlBody, ControlRepr, JoinRepr};
use iswitch_socket::{Options, UdpSocket};

/// Job number of the refused Joins. The workers belong to job 0.
const JOB: u32 = 9;
/// Number of Joins in one burst. The daemon refuses all of them, but limits the number of refusals that it logs.
const JOINS_PER_TICK: u32 = 20;
const TICK: Duration = Duration::from_millis(100);
/// Number of bytes written to the pipe before the daemon starts, so that the pipe fills up soon.
const PREFILL_LEN_BYTES: usize = 48 << 10;

/// Sends signed Joins until `stop` is set. The daemon refuses each of them, and logs refusals.
fn provoke(switch: SocketAddrV4, stop: &AtomicBool) {
    let socket = UdpSocket::bind("127.0.0.1:0".parse().expect("an address"), &Options::default());
    let socket = socket.expect("a free port");
    // The job has no key, so the daemon refuses Joins that are signed with this one.
    let key = Key::new(&[1; MIN_KEY_LEN_BYTES]).expect("a key of this length");
    let packet = ControlRepr { job: JOB, request: 1, body: ControlBody::Join(JoinRepr::worker(4, 366, 1)) };
    let mut bytes = vec![0; packet.buffer_len() + TRAILER_LEN_BYTES];
    packet.emit(&mut bytes);
    key.sign(Direction::ToSwitch, NO_SESSION, 1, &mut bytes);
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..JOINS_PER_TICK {
            socket.send(DEFAULT_CONTROL_TOS, Some(switch), None, &bytes, bytes.len()).expect("a route");
        }
        sleep(TICK);
    }
}

/// Guard that sets a flag when it is dropped. The flag stops a thread, so that a failing test does not wait for the
/// thread forever.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn dropped_lines(daemon: &Daemon) -> u64 {
    daemon.counters()["log"]["dropped_lines"].as_u64().expect("a counter")
}

/// Returns everything that was written to the pipe, once all writers have closed it.
fn read_all(mut log: PipeReader) -> String {
    let mut text = String::new();
    log.read_to_string(&mut text).expect("a log in UTF-8");
    text
}

/// Starts a daemon whose log goes to a nearly full pipe, and returns the read end of the pipe.
fn daemon_with_a_full_log() -> (PipeReader, Daemon) {
    let (log, mut pipe) = pipe().expect("a pipe");
    pipe.write_all(&vec![b'\n'; PREFILL_LEN_BYTES]).expect("room in the pipe");
    (log, Daemon::logging_to(pipe, &[]))
}

#[test]
fn an_unread_log_stops_no_round() {
    let test = "an_unread_log_stops_no_round";
    if !programs(test, &["setpriv"]) {
        return;
    }
    let _together = together();
    let (log, daemon) = daemon_with_a_full_log();
    let group = Group::here(2, daemon.address(), "--rounds 100000000 --seconds 60");
    daemon.wait_for_results();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stops = Stops(&stop);
        scope.spawn(|| provoke(daemon.address(), &stop));
        wait::until("a line of the log to be dropped", SOON, || dropped_lines(&daemon) > 0);
        // Rounds continue while the pipe is full, and afterwards.
        let before = daemon.wait_for_results();
        daemon.wait_for_more("results", before);
    });
    let reader = std::thread::spawn(move || read_all(log));
    let dropped = dropped_lines(&daemon);
    drop(group);
    daemon.stop();
    let log = reader.join().expect("the reader ends");
    let lost = log.lines().filter(|line| line.contains("log lines dropped")).filter_map(|line| {
        let (_, count) = line.split_once("lines=")?;
        count.split_whitespace().next()?.parse::<u64>().ok()
    });
    assert!(lost.sum::<u64>() >= dropped, "the log must state how many lines it lacks");
}

#[test]
fn a_daemon_with_an_unread_log_terminates_on_request() {
    let test = "a_daemon_with_an_unread_log_terminates_on_request";
    if !programs(test, &["setpriv"]) {
        return;
    }
    let _together = together();
    let (log, daemon) = daemon_with_a_full_log();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stops = Stops(&stop);
        scope.spawn(|| provoke(daemon.address(), &stop));
        wait::until("a line of the log to be dropped", SOON, || dropped_lines(&daemon) > 0);
    });
    daemon.stop();
    drop(log);
}
