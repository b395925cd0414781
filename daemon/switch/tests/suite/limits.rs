//! Limits of the switch: refusals name them (requirement C-12), and the status shows their current usage.

use std::net::SocketAddrV4;

use crate::common::*;
use iswitch_protocol::Key;
use iswitch_protocol::limits::MAX_JOBS;
use iswitch_protocol::wire::control::answer_challenge;
use iswitch_protocol::wire::{
    Class, ControlBody, ControlPacket, ControlRepr, Exceeded, JoinRepr, Limit, Status,
};
use iswitch_switch::{Config, Event, Keys, LimitStatus, Order, SECRET_LEN_BYTES, Switch};

/// Sends a Join from an address, repeats it with the nonce of the challenge, and returns the status and the limit in
/// the last Ack.
fn enter(harness: &mut Harness, job: u32, host: u8, port: u16, join: JoinRepr) -> (Status, Option<Exceeded>) {
    let mut packet = control(job, 1, ControlBody::Join(join));
    let mut from = endpoint(host);
    from.peer = SocketAddrV4::new(*from.peer.ip(), port);
    let mut ask = |packet: &[u8]| {
        let now = harness.now();
        harness.switch.handle_datagrams(now, &from, Class::Control, packet, packet.len());
        let mut answer = Vec::new();
        while let Some(transmit) = harness.switch.poll_transmit() {
            answer = transmit.payload.to_vec();
        }
        answer
    };
    let mut answer = ask(&packet);
    if answer_challenge(&mut packet, &answer) {
        answer = ask(&packet);
    }
    let repr = ControlRepr::parse(&ControlPacket::new_checked(&answer).unwrap()).unwrap();
    let ControlBody::Ack(ack) = repr.body else { panic!("{repr:?}") };
    (ack.status, ack.exceeded())
}

fn full(limit: Limit, value: u64) -> (Status, Option<Exceeded>) {
    let status = if limit == Limit::Members { Status::JobFull } else { Status::NoCapacity };
    (status, Some(Exceeded { limit, value }))
}

const ADMITTED: (Status, Option<Exceeded>) = (Status::Success, None);

fn with(config: Config) -> Harness {
    Harness::with(Config { memory_bytes: 1 << 20, ..config })
}

/// Creates a switch with a key for job 1.
fn with_key(config: Config) -> Harness {
    let mut harness = with(config);
    let mut keys = Keys::new([1; SECRET_LEN_BYTES]);
    keys.insert(Some(1), Key::new(&[7; 32]).unwrap());
    let config = Config { memory_bytes: 1 << 20, max_jobs_per_source: MAX_JOBS, ..Config::default() };
    harness.switch = Switch::with_keys(config, keys);
    harness
}

#[test]
fn each_refusal_for_capacity_names_its_limit() {
    let mut switch = with(Config::default());
    for job in 0..MAX_JOBS as u32 {
        assert_eq!(enter(&mut switch, job, 1 + job as u8 / 8, 1 + job as u16, join(1)), ADMITTED);
    }
    assert_eq!(enter(&mut switch, 100, 100, 9, join(1)), full(Limit::Jobs, MAX_JOBS as u64));

    let mut switch = with(Config { max_jobs_per_source: 2, ..Config::default() });
    for job in 1..3 {
        assert_eq!(enter(&mut switch, job, 1, job as u16, join(2)), ADMITTED);
    }
    assert_eq!(enter(&mut switch, 3, 1, 3, join(2)), full(Limit::JobsPerSource, 2));

    let mut switch = with(Config { job_memory_bytes: 1 << 16, ..Config::default() });
    let floats = |gradient_len| JoinRepr { segment_floats: 366, gradient_len, ..join(1) };
    assert_eq!(enter(&mut switch, 1, 1, 1, floats(8193)), full(Limit::JobMemory, 1 << 16));
    let mut switch = with(Config::default());
    assert_eq!(enter(&mut switch, 1, 1, 1, floats(1 << 18)), full(Limit::Memory, 1 << 20));
    assert_eq!(enter(&mut switch, 1, 1, 1, JoinRepr::worker(4096, 1, 1)), full(Limit::Slots, 4096));

    let mut switch = with_key(Config::default());
    let half = 1 << 19;
    assert_eq!(enter(&mut switch, 2, 1, 1, floats(half as u32 / 4)), full(Limit::KeylessMemory, half));
    for job in 0..MAX_JOBS as u32 / 2 {
        assert_eq!(enter(&mut switch, 2 + job, 1, 2 + job as u16, join(1)), ADMITTED);
    }
    assert_eq!(enter(&mut switch, 100, 1, 100, join(1)), full(Limit::KeylessJobs, MAX_JOBS as u64 / 2));

    let mut switch = with(Config::default());
    assert_eq!(enter(&mut switch, 1, 1, 1, join(1)), ADMITTED);
    assert_eq!(enter(&mut switch, 1, 2, 1, join(1)), full(Limit::Members, 1));
    let now = switch.now();
    switch.switch.obey(now, Order::Drain).unwrap();
    assert_eq!(enter(&mut switch, 2, 2, 2, join(1)), full(Limit::Draining, 0));
}

#[test]
fn the_log_states_the_limit_its_value_and_its_option() {
    let mut switch = with(Config { max_jobs_per_source: 1, job_memory_bytes: 1 << 16, ..Config::default() });
    enter(&mut switch, 1, 1, 1, join(2));
    enter(&mut switch, 2, 1, 2, join(2));
    enter(&mut switch, 2, 2, 2, JoinRepr { segment_floats: 366, gradient_len: 8193, ..join(2) });
    enter(&mut switch, 1, 2, 2, join(3));
    let refusals = switch.events().into_iter().filter(|event| matches!(event, Event::JoinRefused { .. }));
    let texts: Vec<_> = refusals.map(|event| event.to_string()).collect();
    let expected = [
        "to job 2 refused: no capacity: an address may have 1 jobs (iswitchd --max-jobs-per-source)",
        "to job 2 refused: no capacity: a job may take 64 KiB of memory for sums (iswitchd --job-memory-mib); 64 KiB \
         are available to the job",
        "to job 1 refused: number of workers (expected 2)",
    ];
    assert_eq!(texts.len(), expected.len(), "{texts:?}");
    for (text, expected) in texts.iter().zip(expected) {
        assert!(text.ends_with(expected), "{text}");
    }
}

#[test]
fn the_status_shows_the_use_of_each_limit() {
    let row = |switch: &Harness, limit: Limit| -> (u64, u64) {
        let rows = switch.switch.limits();
        let row: &LimitStatus = rows.iter().find(|row| row.limit == limit.name()).unwrap();
        assert_eq!(row.option, limit.option());
        (row.used, row.value)
    };
    let mut switch = with(Config { max_jobs_per_source: 3, job_memory_bytes: 1 << 16, ..Config::default() });
    // A synchronous job takes two vectors and two slots for each segment.
    let long = JoinRepr { segment_floats: 4, gradient_len: 512, ..join(2) };
    enter(&mut switch, 1, 1, 1, join(2));
    enter(&mut switch, 2, 1, 2, long);
    enter(&mut switch, 2, 2, 2, long);
    let bytes = |floats: u64| 2 * 4 * floats;
    let short = u64::from(join(2).gradient_len);
    assert_eq!(row(&switch, Limit::Jobs), (2, MAX_JOBS as u64));
    assert_eq!(row(&switch, Limit::JobsPerSource), (1, 3), "the members of job 2 have different addresses");
    assert_eq!(row(&switch, Limit::Members), (2, 64));
    assert_eq!(row(&switch, Limit::Memory), (bytes(512 + short), 1 << 20));
    assert_eq!(row(&switch, Limit::JobMemory), (bytes(512), 1 << 16));
    let segments = 128 + short.div_ceil(join(2).segment_floats.into());
    assert_eq!(row(&switch, Limit::Slots), (2 * segments, 4096));
    assert_eq!(switch.switch.limits().len(), 6, "without keys, no limit depends on keys");
    assert_eq!(row(&with_key(Config::default()), Limit::KeylessJobs), (0, MAX_JOBS as u64 / 2));
    assert_eq!(row(&with_key(Config::default()), Limit::KeylessMemory), (0, 1 << 19));
}
