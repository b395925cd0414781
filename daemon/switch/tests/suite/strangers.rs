//! Limits on the effects that non-members can have on the switch and its members, mainly through forged Joins.

use std::net::{Ipv4Addr, SocketAddrV4};

use crate::common::{Harness, JOB, LEASE_MS, Sent, control, data, endpoint, join, join_from, range, result};
use iswitch_protocol::Key;
use iswitch_protocol::auth::{Direction, NO_SESSION};
use iswitch_protocol::limits::{
    KEYLESS_SHARE, MAX_JOBS, MAX_MEMBERS, MIN_REPEATS, REPEATS_PER_RESULT, STRANGER_BURST_S,
    TRAILER_LEN_BYTES,
};
use iswitch_protocol::wire::control::{SegmentSetRepr, answer_challenge};
use iswitch_protocol::wire::{Class, ControlBody, ControlPacket, ControlRepr, JoinRepr, Status};
use iswitch_switch::{Config, DropReason, Endpoint, Keys, StrangerLimits, Switch};

const SLOW: StrangerLimits = StrangerLimits { source_rate: 10, total_rate: 100, key: [3; 16] };
const SOURCE_BURST: u64 = 10 * STRANGER_BURST_S;

fn limited(strangers: StrangerLimits) -> Harness {
    Harness::with(Config { memory_bytes: 1 << 20, strangers, ..Config::default() })
}

fn from(address: u32, port: u16) -> Endpoint {
    Endpoint { peer: SocketAddrV4::new(Ipv4Addr::from(address), port), ..endpoint(0) }
}

/// Sends a packet from any address and returns the number of packets in the answer.
fn send(harness: &mut Harness, from: &Endpoint, class: Class, bytes: &[u8]) -> usize {
    harness.switch.handle_datagrams(harness.now(), from, class, bytes, bytes.len());
    let mut answers = 0;
    while let Some(transmit) = harness.switch.poll_transmit() {
        answers += transmit.recipients().filter(|to| to.peer == from.peer).count();
    }
    answers
}

/// Sends a Join for job 1000 + `number` from a distinct address, and returns the number of packets in the answer.
fn forged_join(harness: &mut Harness, number: u32) -> usize {
    let bytes = control(1000 + number, 1, ControlBody::Join(join(2)));
    send(harness, &from(0x0b00_0000 + number, 999), Class::Control, &bytes)
}

fn jobs(harness: &Harness) -> Vec<u32> {
    harness.switch.jobs().map(|job| job.job).collect()
}

#[test]
fn a_non_member_above_its_rate_causes_neither_answer_nor_event() {
    let mut switch = limited(SLOW);
    let query = control(JOB, 1, ControlBody::Join(JoinRepr { query: true, ..join(2) }));
    let answers: usize = (0..1000).map(|_| send(&mut switch, &from(1, 1), Class::Control, &query)).sum();
    assert_eq!(answers as u64, SOURCE_BURST);
    assert_eq!(switch.counters().drops(DropReason::RateLimited), 1000 - SOURCE_BURST);
    assert!(switch.events().is_empty(), "queries and dropped packets should cause no event");
    // Invalid packets are also limited.
    assert_eq!(send(&mut switch, &from(1, 1), Class::Control, &[99; 12]), 0);
    assert_eq!(send(&mut switch, &from(1, 1), Class::Data, &data(0, 0, &[1.0, 1.0])), 0);
    assert_eq!(switch.counters().drops(DropReason::UnknownMember), 0);
    // Each address has a separate bucket, which fills with time.
    assert_eq!(send(&mut switch, &from(2, 1), Class::Control, &query), 1);
    switch.now_ms += 100;
    assert_eq!(send(&mut switch, &from(1, 1), Class::Control, &query), 1);
    assert_eq!(send(&mut switch, &from(1, 1), Class::Control, &query), 0);
}

#[test]
fn a_sender_that_answers_a_challenge_is_not_delayed_by_non_members() {
    let mut switch = limited(SLOW);
    let mut join = control(JOB, 1, ControlBody::Join(join(1)));
    switch.switch.handle_datagrams(switch.now(), &endpoint(1), Class::Control, &join, join.len());
    let challenge =
        switch.switch.poll_transmit().expect("the switch should send a challenge").payload.to_vec();
    assert!(answer_challenge(&mut join, &challenge));
    // Non-members send from many addresses, including that of the host.
    for address in 0..10_000 {
        forged_join(&mut switch, address);
        send(&mut switch, &Endpoint { peer: endpoint(1).peer, ..endpoint(9) }, Class::Control, &[99; 12]);
    }
    assert_eq!(forged_join(&mut switch, 20_000), 0, "the total rate of non-members should be exhausted");
    assert_eq!(send(&mut switch, &endpoint(1), Class::Control, &join), 1);
    assert_eq!(jobs(&switch), [JOB]);
}

/// Sends a Join to a switch whose rate limiter has few tokens left, and returns the Join with the nonce of the
/// challenge in it.
fn challenged(harness: &mut Harness, from: &Endpoint, join: JoinRepr) -> Vec<u8> {
    let mut bytes = control(JOB, 1, ControlBody::Join(join));
    harness.switch.handle_datagrams(harness.now(), from, Class::Control, &bytes, bytes.len());
    let challenge =
        harness.switch.poll_transmit().expect("the switch should send a challenge").payload.to_vec();
    assert!(answer_challenge(&mut bytes, &challenge));
    bytes
}

/// Position of the flags in a Join, in bytes.
const JOIN_FLAGS: usize = 30;
const JOIN_MODE: usize = 20;

#[test]
fn a_challenge_admits_only_one_packet() {
    type Change = fn(&mut Vec<u8>);
    let changes: [(&str, Change); 5] = [
        ("refused for a field", |join| join[18..20].fill(0xff)),
        ("malformed", |join| join[JOIN_MODE] = 2),
        ("of another version", |join| join[1] = 9),
        ("not authentic", |join| {
            join[2] = 1;
            join.resize(join.len() + TRAILER_LEN_BYTES, 0);
        }),
        ("a query", |join| join[JOIN_FLAGS] = 1),
    ];
    for (what, change) in changes {
        let mut switch = limited(SLOW);
        let mut join = challenged(&mut switch, &from(1, 1), join(2));
        change(&mut join);
        // Other senders exhaust the total rate.
        for number in 0..10_000 {
            forged_join(&mut switch, number);
        }
        switch.events();
        let answers: usize = (0..1000).map(|_| send(&mut switch, &from(1, 1), Class::Control, &join)).sum();
        let most = usize::from(what != "a query");
        assert_eq!(answers, most, "{what}");
        assert!(switch.events().len() <= most, "{what}");
    }
}

#[test]
fn members_are_not_rate_limited() {
    let mut switch = limited(StrangerLimits { source_rate: 1, total_rate: 1, ..SLOW });
    switch.join(1, join(1));
    for round in 0..1000 {
        switch.data(1, 0, round, &[7.0, 7.0]);
        switch.data(1, 1, round, &[7.0, 7.0]);
        assert_eq!(switch.data(1, 2, round, &[7.0]), [result(1, 2, round, 1, &[7.0])]);
    }
    let repeated: usize = (0..1000).map(|_| switch.control(1, 1, ControlBody::Join(join(1))).len()).sum();
    assert_eq!((repeated, switch.counters().drops(DropReason::RateLimited)), (1000, 0));
}

#[test]
fn sixty_four_workers_behind_one_address_join_at_once() {
    let mut switch = Harness::with(Config { memory_bytes: 1 << 20, ..Config::default() });
    let bytes = control(JOB, 1, ControlBody::Join(join(MAX_MEMBERS as u16)));
    // All answers are lost; the workers repeat their Joins at the intervals of the worker library.
    for wait_ms in [0, 20, 40, 80, 160, 320, 500, 500, 500, 500] {
        switch.now_ms += wait_ms;
        for port in 1..=MAX_MEMBERS as u16 {
            assert_eq!(send(&mut switch, &from(1, port), Class::Control, &bytes), 1);
        }
    }
    // Other workers, for which the job has no room yet, repeat their Joins at the same intervals.
    let late = control(JOB, 1, ControlBody::Join(JoinRepr { instance: 9, ..join(3) }));
    for wait_ms in [0, 20, 40, 80, 160, 320, 500, 500, 500, 500] {
        switch.now_ms += wait_ms;
        for port in 101..101 + MAX_MEMBERS as u16 {
            assert_eq!(send(&mut switch, &from(1, port), Class::Control, &late), 1);
        }
    }
    assert_eq!(switch.counters().drops(DropReason::RateLimited), 0);
}

#[test]
fn a_storm_of_forged_joins_does_not_affect_members() {
    let mut switch = Harness::formed(3);
    switch.events();
    let mut random = 1_u64;
    for round in 0..2000 {
        for (host, others_wait) in [(1, true), (2, true), (3, false)] {
            for _ in 0..20 {
                // Knuth's MMIX generator produces arbitrary addresses, ports, jobs and sizes, including the job of the
                // members.
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let sender = from((random >> 32) as u32, (random >> 16) as u16);
                let (job, workers) = ((random >> 40) as u32 % 100, (random >> 50) as u16 % 5);
                let gradient_len = (random >> 20) as u32 % 100_000 + 1;
                let forged = JoinRepr { gradient_len, segment_floats: 100, ..join(workers) };
                let body = ControlBody::Join(if job == JOB { join(3) } else { forged });
                send(&mut switch, &sender, Class::Control, &control(job, 1, body));
            }
            let x = f32::from(host);
            switch.data(host, 0, round, &[x, x]);
            switch.data(host, 1, round, &[x, x]);
            let sent = switch.data(host, 2, round, &[x]);
            let expected = [1, 2, 3].map(|to| result(to, 2, round, 3, &[6.0]));
            assert_eq!(sent, if others_wait { Vec::new() } else { Vec::from(expected) });
            switch.events();
        }
        // Advances the time like a driver. The members send packets in each of these milliseconds.
        switch.sleep(1);
    }
    let status = switch.switch.jobs().find(|job| job.job == JOB).unwrap();
    assert_eq!(status.members.len(), 3);
    assert_eq!(jobs(&switch), [JOB]);
    assert!(switch.counters().drops(DropReason::RateLimited) > 90_000);
}

#[test]
fn forged_joins_create_no_job() {
    let mut switch = Harness::new();
    for number in 0..1000 {
        switch.now_ms += 20;
        assert_eq!(forged_join(&mut switch, number), 1, "the switch should send only a challenge");
    }
    assert!(jobs(&switch).is_empty());
}

/// Returns the number of payload bytes that the switch sends in answer to a packet from an unproven address.
fn answer_bytes(harness: &mut Harness, from: &Endpoint, class: Class, bytes: &[u8]) -> usize {
    harness.switch.handle_datagrams(harness.now(), from, class, bytes, bytes.len());
    let mut sent = 0;
    while let Some(transmit) = harness.switch.poll_transmit() {
        sent += transmit.payload.len() * transmit.recipients().count();
    }
    sent
}

#[test]
fn an_unproven_address_receives_no_more_bytes_than_it_sends() {
    let mut switch = Harness::formed(2);
    let wanted = SegmentSetRepr { range: range(0, 0, 3), bitmap: &[7] };
    let bodies = [
        ControlBody::Join(join(2)),
        ControlBody::Join(JoinRepr { query: true, ..join(2) }),
        ControlBody::Join(JoinRepr { query: true, ..join(3) }),
        ControlBody::Join(JoinRepr { padding_len: 1400, ..join(3) }),
        ControlBody::Leave,
        ControlBody::Halt,
        ControlBody::RESET,
        ControlBody::SetH { threshold: 1 },
        ControlBody::FBcast(range(0, 0, 3)),
        ControlBody::Help(wanted),
        ControlBody::Confirm(wanted),
        ControlBody::HEARTBEAT,
    ];
    let mut answered = 0;
    for job in [JOB, JOB + 1] {
        for body in bodies {
            let packet = control(job, 1, body);
            // Senders may omit the padding or truncate the packet.
            for len in 0..=packet.len() {
                switch.now_ms += 20;
                let stranger = from(0x0c00_0000 + len as u32, 999);
                let sent = answer_bytes(&mut switch, &stranger, Class::Control, &packet[..len]);
                assert!(sent <= len, "{body:?}: {sent} bytes for {len}");
                answered += usize::from(sent > 0);
            }
        }
    }
    for floats in 1..40 {
        switch.now_ms += 20;
        let packet = data(0, 0, &vec![1.0; floats]);
        let sent = answer_bytes(&mut switch, &from(0x0d00_0000, 999), Class::Data, &packet);
        assert!(sent <= packet.len(), "{sent} bytes for {}", packet.len());
        answered += usize::from(sent > 0);
    }
    assert!(answered > 100, "expected more than 100 answers, got {answered}");
    assert_eq!(jobs(&switch), [JOB]);
}

#[test]
fn retransmissions_of_results_are_rate_limited() {
    let mut switch = Harness::formed(2);
    switch.round(&[1, 2], 0);
    let wanted = SegmentSetRepr { range: range(0, 0, 3), bitmap: &[7] };
    let ask = |switch: &mut Harness, times: u64| -> u64 {
        let repeated = |sent: &Sent| matches!(sent, Sent::Result { .. });
        let sent = (0..times).flat_map(|_| switch.control(1, 9, ControlBody::Help(wanted)));
        sent.filter(repeated).count() as u64
    };
    let most = ask(&mut switch, 1000);
    assert_eq!(most, MIN_REPEATS / 3 * 3);
    assert_eq!(switch.counters().drops(DropReason::RateLimited), 1000 - MIN_REPEATS / 3);
    // Another round adds to the budget, and so does time.
    switch.round(&[1, 2], 1);
    let earned = ask(&mut switch, 1000);
    assert!((3 * REPEATS_PER_RESULT - 3..=3 * REPEATS_PER_RESULT + 3).contains(&earned), "{earned}");
    switch.now_ms += u64::from(LEASE_MS) / 2;
    let earned = ask(&mut switch, 1000);
    assert!((MIN_REPEATS / 2 - 3..=MIN_REPEATS / 2 + 3).contains(&earned), "{earned}");
}

#[test]
fn an_ack_is_never_answered() {
    let mut switch = Harness::formed(1);
    switch.control(2, 7, ControlBody::Leave);
    switch.switch.handle_datagrams(
        switch.now(),
        &endpoint(2),
        Class::Control,
        &control(JOB, 7, ControlBody::Leave),
        60,
    );
    let refusal = switch.switch.poll_transmit().expect("a non-member should be refused").payload.to_vec();
    let mut other_version = refusal.clone();
    other_version[1] = 9;
    for host in [1, 9] {
        for ack in [&refusal, &other_version] {
            assert_eq!(switch.send(host, Class::Control, ack), [], "host {host}");
            assert_eq!(switch.send(host, Class::Control, &ack[..20]), [], "host {host}, truncated");
        }
    }
}

/// Sends a request signed with the key of the job from host 1. Returns the status and the nonce in the answer.
fn signed(
    harness: &mut Harness,
    key: &Key,
    (context, counter): (u64, u64),
    body: ControlBody<'_>,
) -> (Status, u64) {
    let mut bytes = control(JOB, 1, body);
    bytes.resize(bytes.len() + TRAILER_LEN_BYTES, 0);
    key.sign(Direction::ToSwitch, context, counter, &mut bytes);
    harness.switch.handle_datagrams(harness.now(), &endpoint(1), Class::Control, &bytes, bytes.len());
    let answer = harness.switch.poll_transmit().expect("the switch should answer");
    status_of(answer.payload)
}

/// Returns the status of an Ack and the history or nonce in it.
fn status_of(answer: &[u8]) -> (Status, u64) {
    let packet = ControlPacket::new_checked(answer).unwrap();
    match ControlRepr::parse(&packet).unwrap().body {
        ControlBody::Ack(ack) => (ack.status, ack.history),
        other => panic!("{other:?}"),
    }
}

/// Joins with the key of the job. Returns the status of the answer, and the session if the Join is granted.
fn enter_with_key(harness: &mut Harness, key: &Key, counter: u64, join: JoinRepr) -> (Status, u64) {
    let body = ControlBody::Join(join);
    let (status, nonce) = signed(harness, key, (NO_SESSION, counter), body);
    assert_eq!(status, Status::Challenge);
    let body = ControlBody::Join(JoinRepr { nonce, ..join });
    (signed(harness, key, (NO_SESSION, counter + 1), body).0, nonce)
}

/// Returns a switch with a key for the job and 1 MiB of memory for sums.
fn with_key(max_jobs_per_source: usize) -> (Harness, Key) {
    let key = Key::new(b"the key of this job").unwrap();
    let mut keys = Keys::new([1; 16]);
    assert!(keys.insert(Some(JOB), key.clone()));
    let config = Config { memory_bytes: 1 << 20, max_jobs_per_source, ..Config::default() };
    let mut harness = Harness::new();
    harness.switch = Switch::with_keys(config, keys);
    (harness, key)
}

#[test]
fn keyless_jobs_leave_capacity_for_keyed_jobs() {
    let (mut switch, key) = with_key(MAX_JOBS);
    // One non-member with a proven address uses up the capacity for jobs without a key.
    let mut taken = 0;
    for job in 1000..1000 + MAX_JOBS as u32 {
        let packet = control(job, 1, ControlBody::Join(join(1)));
        let now = switch.now();
        join_from(&mut switch.switch, now, &from(1, job as u16), &packet);
        taken = jobs(&switch).len();
    }
    assert_eq!(taken, MAX_JOBS / KEYLESS_SHARE);
    assert_eq!(enter_with_key(&mut switch, &key, 1, join(2)).0, Status::Success);
    assert!(jobs(&switch).contains(&JOB));
}

/// Joins job `number`, which has no key, from a distinct address, and returns the status of the answer.
fn enter(harness: &mut Harness, number: u32, join: JoinRepr) -> Status {
    let (now, packet) = (harness.now(), control(number, 1, ControlBody::Join(join)));
    let sent = join_from(&mut harness.switch, now, &from(number, 1), &packet);
    status_of(sent.last().expect("the switch should answer")).0
}

fn leave(harness: &mut Harness, number: u32) {
    send(harness, &from(number, 1), Class::Control, &control(number, 2, ControlBody::Leave));
}

#[test]
fn keyless_jobs_with_short_segments_leave_slots_for_keyed_jobs() {
    let (mut switch, key) = with_key(MAX_JOBS);
    // A job needs two slots per float here; the switch has one slot per 256 bytes of sums.
    let of_floats = |gradient_len| JoinRepr::worker(gradient_len, 1, 1);
    let half = (1 << 20) / 256 / 2 / KEYLESS_SHARE as u32;
    assert_eq!(enter(&mut switch, 1000, of_floats(2 * half)), Status::NoCapacity);
    assert_eq!(enter(&mut switch, 1000, of_floats(half)), Status::Success);
    assert_eq!(enter(&mut switch, 1001, of_floats(1)), Status::NoCapacity);
    assert_eq!(enter_with_key(&mut switch, &key, 1, of_floats(half)).0, Status::Success);
}

#[test]
fn keyless_jobs_do_not_fragment_the_memory_of_keyed_jobs() {
    let (mut switch, key) = with_key(MAX_JOBS);
    // A job takes twice the size of its vector.
    let of_kib = |kib: u32| JoinRepr::worker(kib * 1024 / 8, 366, 1);
    let (status, session) = enter_with_key(&mut switch, &key, 1, of_kib(400));
    assert_eq!(status, Status::Success);
    for (job, kib) in [(1000, 1), (1001, 300), (1002, 1)] {
        assert_eq!(enter(&mut switch, job, of_kib(kib)), Status::Success);
    }
    leave(&mut switch, 1001);
    assert_eq!(signed(&mut switch, &key, (session, 3), ControlBody::Leave).0, Status::Success);
    assert_eq!(jobs(&switch), [1000, 1002]);
    assert_eq!(enter_with_key(&mut switch, &key, 4, of_kib(512)).0, Status::Success);
}

#[test]
fn a_refusal_for_lack_of_slots_reports_the_length_that_fits() {
    let mut switch = Harness::new();
    // 4,096 slots hold two rounds of 2,048 floats.
    let refused = switch.join(1, JoinRepr::worker(4096, 1, 1));
    let Sent::Ack { status, expected, .. } = refused else { panic!("{refused:?}") };
    assert_eq!((status, expected), (Status::NoCapacity, 2 * 2048 * 4 / 1024));
}

#[test]
fn a_job_cannot_exceed_its_memory_quota() {
    let job_memory_bytes = 1 << 16;
    let mut switch = Harness::with(Config { memory_bytes: 1 << 20, job_memory_bytes, ..Config::default() });
    let floats = |gradient_len| JoinRepr { gradient_len, segment_floats: 366, ..join(1) };
    let refused = Sent::Ack {
        to: 1,
        request: 1,
        status: Status::NoCapacity,
        round: 0,
        expected: 64,
        missing: Vec::new(),
    };
    assert_eq!(switch.join(1, floats(8193)), refused, "a job should take twice 4 bytes per float");
    assert!(matches!(switch.join(1, floats(8192)), Sent::Ack { status: Status::Success, .. }));
}

#[test]
fn the_number_of_jobs_per_source_is_limited() {
    let config = Config { memory_bytes: 1 << 20, max_jobs_per_source: 2, ..Config::default() };
    let mut switch = Harness::with(config);
    let ask = |switch: &mut Harness, job: u32, (address, port): (u32, u16), workers: u16| {
        let (now, packet) = (switch.now(), control(job, 1, ControlBody::Join(join(workers))));
        let sent = join_from(&mut switch.switch, now, &from(address, port), &packet);
        status_of(sent.last().expect("the switch should answer")).0
    };
    assert_eq!(ask(&mut switch, 1, (1, 1), 2), Status::Success);
    assert_eq!(ask(&mut switch, 2, (1, 2), 2), Status::Success);
    assert_eq!(ask(&mut switch, 3, (1, 3), 2), Status::NoCapacity);
    // A complete job counts towards the quota of its source until another source has a member in the job.
    assert_eq!(ask(&mut switch, 1, (1, 4), 2), Status::Success);
    assert_eq!(ask(&mut switch, 3, (1, 3), 2), Status::NoCapacity);
    assert_eq!(ask(&mut switch, 2, (2, 1), 2), Status::Success);
    assert_eq!(ask(&mut switch, 3, (1, 3), 2), Status::Success);
    assert_eq!(ask(&mut switch, 4, (1, 5), 0), Status::NoCapacity);
    // Another source has a separate quota.
    assert_eq!(ask(&mut switch, 4, (2, 2), 2), Status::Success);
    assert_eq!(jobs(&switch), [1, 2, 3, 4]);
    // A job that has ended no longer counts.
    send(&mut switch, &from(1, 3), Class::Control, &control(3, 2, ControlBody::Leave));
    assert_eq!(ask(&mut switch, 5, (1, 5), 1), Status::Success);
}

#[test]
fn one_source_cannot_take_more_than_half_of_the_jobs() {
    let mut switch = Harness::new();
    for job in 1..=MAX_JOBS as u32 {
        let (now, packet) = (switch.now(), control(job, 1, ControlBody::Join(join(1))));
        join_from(&mut switch.switch, now, &from(1, job as u16), &packet);
    }
    assert_eq!(jobs(&switch).len(), Config::default().max_jobs_per_source);
    assert!(jobs(&switch).len() <= MAX_JOBS / 2);
    assert_eq!(enter(&mut switch, 1000, join(1)), Status::Success);
}

#[test]
fn keyless_and_keyed_jobs_of_one_address_are_counted_separately() {
    let (mut switch, key) = with_key(1);
    let (now, packet) = (switch.now(), control(1000, 1, ControlBody::Join(join(2))));
    let neighbour = Endpoint { peer: SocketAddrV4::new(*endpoint(1).peer.ip(), 9), ..endpoint(1) };
    join_from(&mut switch.switch, now, &neighbour, &packet);
    assert_eq!(jobs(&switch), [1000]);
    assert_eq!(enter_with_key(&mut switch, &key, 1, join(2)).0, Status::Success);
}
