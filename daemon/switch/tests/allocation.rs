//! Test that the core allocates nothing after its creation: neither on the packet path nor when it handles membership,
//! recovery or forged Joins.

mod common;

use std::alloc::System;
use std::net::{Ipv4Addr, SocketAddrV4};

use common::{Harness, JOB, LEASE_MS, control, data, endpoint, join, range};
use iswitch_protocol::auth::Direction;
use iswitch_protocol::limits::{DATA_TAG_LEN_BYTES, TRAILER_LEN_BYTES};
use iswitch_protocol::wire::control::{SegmentSetRepr, answer_challenge};
use iswitch_protocol::wire::{
    Class, ControlBody, ControlPacket, ControlRepr, DigestRepr, JoinRepr, Mode, emit_seg,
};
use iswitch_protocol::{Key, Round, Seg, SegmentIndex};
use iswitch_switch::{Config, Endpoint, Keys, Switch};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Returns the packets of a whole job: Joins, rounds with losses and repeats, bad packets, a Halt, a Reset and Leaves.
fn life() -> Vec<(u8, Class, Vec<u8>)> {
    let mut packets = Vec::new();
    for host in 1..=4 {
        let join = JoinRepr { groups: true, ..join(4) };
        packets.push((host, Class::Control, control(JOB, 1, ControlBody::Join(join))));
    }
    for host in 1..=4 {
        packets.push((host, Class::Control, control(JOB, 0, ControlBody::Heard { nonce: 0 })));
    }
    for round in 0..3 {
        for host in [1, 2, 3, 4, 2, 9] {
            for (index, floats) in
                [(0, &[1.0, 2.0][..]), (1, &[3.0, f32::NAN]), (1, &[3.0, 4.0]), (2, &[5.0])]
            {
                packets.push((host, Class::Data, data(index, round, floats)));
            }
            let help = ControlBody::Help(SegmentSetRepr { range: range(round, 0, 3), bitmap: &[7] });
            packets.push((host, Class::Control, control(JOB, 2, help)));
        }
        let fbcast = ControlBody::FBcast(range(round, 0, 3));
        packets.push((1, Class::Control, control(JOB, 3, fbcast)));
    }
    packets.push((1, Class::Data, vec![0; 3]));
    packets.push((1, Class::Control, vec![0; 3]));
    packets.push((1, Class::Control, control(JOB, 4, ControlBody::SetH { threshold: 2 })));
    packets.push((1, Class::Control, control(JOB, 5, ControlBody::Halt)));
    let reset = ControlBody::RESET;
    packets.push((1, Class::Control, control(JOB, 6, reset)));
    for host in 1..=4 {
        packets.push((host, Class::Control, control(JOB, 7, ControlBody::Leave)));
    }
    packets.extend(asynchronous_life());
    packets
}

/// Returns the packets of a whole asynchronous job.
fn asynchronous_life() -> Vec<(u8, Class, Vec<u8>)> {
    let mut packets = Vec::new();
    for host in 1..=4 {
        let join = JoinRepr { mode: Mode::Asynchronous, ..join(4) };
        packets.push((host, Class::Control, control(JOB, 1, ControlBody::Join(join))));
    }
    for vector in 1..10 {
        for host in [1, 2, 3, 4, 2, 9] {
            for (index, floats) in [(0, &[1.0, 2.0][..]), (2, &[5.0]), (1, &[3.0, 4.0])] {
                packets.push((host, Class::Data, data(index, vector, floats)));
            }
            let set = SegmentSetRepr { range: range(vector, 0, 3), bitmap: &[7] };
            packets.push((host, Class::Control, control(JOB, 2, ControlBody::Confirm(set))));
            let set = SegmentSetRepr { range: range(vector - 1, 0, 3), bitmap: &[7] };
            packets.push((host, Class::Control, control(JOB, 3, ControlBody::Help(set))));
            let digest = DigestRepr { round: Round::new(vector), digest: u64::from(host) };
            packets.push((host, Class::Control, control(JOB, 4, ControlBody::Digest(digest))));
        }
    }
    for host in 1..=4 {
        packets.push((host, Class::Control, control(JOB, 7, ControlBody::Leave)));
    }
    packets
}

fn keyed_harness() -> (Harness, Key) {
    let mut keys = Keys::new([1; 16]);
    let key = Key::new(&[2; 32]).unwrap();
    keys.insert(None, key.clone());
    let mut harness = Harness::new();
    harness.switch = Switch::with_keys(Config { memory_bytes: 1 << 20, ..Config::default() }, keys);
    (harness, key)
}

/// Sends a signed control packet and checks that the switch does not allocate memory. Returns the number of packets
/// that the switch sent, and the history in the last Ack.
fn send_signed(
    harness: &mut Harness,
    key: &Key,
    host: u8,
    (context, counter): (u64, u64),
    body: ControlBody<'_>,
) -> (usize, u64) {
    let mut buffer = [0; 256];
    let len = ControlRepr { job: JOB, request: 1, body }.emit(&mut buffer) + TRAILER_LEN_BYTES;
    key.sign(Direction::ToSwitch, context, counter, &mut buffer[..len]);
    harness.switch.handle_datagrams(harness.now(), &endpoint(host), Class::Control, &buffer[..len], len);
    let (mut sent, mut history) = (0, 0);
    while let Some(transmit) = harness.switch.poll_transmit() {
        sent += 1;
        let packet = ControlPacket::new_checked(transmit.payload);
        if transmit.class == Class::Control
            && let Ok(ControlRepr { body: ControlBody::Ack(ack), .. }) = ControlRepr::parse(&packet.unwrap())
        {
            history = ack.history;
        }
    }
    while harness.switch.poll_event().is_some() {}
    (sent, history)
}

/// Makes two members with a key join, sum a tagged segment, request its result and leave. Returns the number of packets
/// that the switch sent.
fn keyed_life(harness: &mut Harness, key: &Key) -> usize {
    let mut sessions = [0; 2];
    let mut total = 0;
    for (host, session) in (1..).zip(&mut sessions) {
        let unproven = JoinRepr { tagged: true, ..join(2) };
        let (sent, nonce) = send_signed(harness, key, host, (0, 1), ControlBody::Join(unproven));
        *session = nonce;
        let proven = ControlBody::Join(JoinRepr { nonce, ..unproven });
        total += sent + send_signed(harness, key, host, (0, 2), proven).0;
    }
    let floats = [1.0f32, 2.0].map(f32::to_le_bytes);
    for index in 0..3 {
        for (host, session) in (1..).zip(sessions) {
            let count = if index == 2 { 1 } else { 2 };
            let mut packet = [0; 24];
            let packet = &mut packet[..8 + 4 * count + DATA_TAG_LEN_BYTES];
            let index = SegmentIndex::new(index).unwrap();
            let room = emit_seg(packet, Seg { index, round: Round::default(), contributions: 1 });
            room.as_chunks_mut().0.iter_mut().zip(floats).take(count).for_each(|(to, x)| *to = x);
            key.contribution_key(session).sign(packet);
            harness.switch.handle_datagrams(
                harness.now(),
                &endpoint(host),
                Class::Data,
                packet,
                packet.len(),
            );
            while let Some(transmit) = harness.switch.poll_transmit() {
                total += transmit.recipients().count();
            }
        }
    }
    let help = ControlBody::Help(SegmentSetRepr { range: range(0, 0, 3), bitmap: &[7] });
    total += send_signed(harness, key, 1, (sessions[0], 3), help).0;
    total += send_signed(harness, key, 1, (sessions[0] ^ 1, 4), ControlBody::Leave).0;
    for (host, session) in (1..).zip(sessions) {
        total += send_signed(harness, key, host, (session, 5), ControlBody::Leave).0;
    }
    total
}

/// Returns Joins to many jobs, each from a different address, with vectors of various sizes.
fn forged_joins() -> Vec<(Endpoint, Vec<u8>)> {
    let forged = |number: u32| {
        let address = Ipv4Addr::from(number.wrapping_mul(0x9e37_79b1));
        let join = JoinRepr { gradient_len: 1 + number % 50_000, ..join((number % 3) as u16) };
        let from = Endpoint { peer: SocketAddrV4::new(address, number as u16), ..endpoint(0) };
        (from, control(number, 1, ControlBody::Join(join)))
    };
    (1000..11_000).map(forged).collect()
}

/// Number of runs of the test. The test harness's own thread also allocates from time to time, whereas an allocation by
/// the core would occur in every run.
const ATTEMPTS: usize = 5;

#[test]
fn nothing_is_allocated_after_start() {
    let packets = life();
    for ordered in [false, true] {
        let config = Config { memory_bytes: 1 << 20, ordered, ..Config::default() };
        let least = (0..ATTEMPTS).map(|_| live(&packets, Harness::with(config))).min();
        assert_eq!(least, Some(0));
    }
}

/// Delivers a packet. If it is a Join, delivers it again with the nonce of the challenge. Returns the number of packets
/// sent.
fn deliver(harness: &mut Harness, from: &Endpoint, class: Class, bytes: &[u8]) -> usize {
    let now = harness.now();
    let mut join = [0; 256];
    let len = bytes.len().min(join.len());
    join[..len].copy_from_slice(&bytes[..len]);
    let mut is_challenged = false;
    harness.switch.handle_datagrams(now, from, class, bytes, bytes.len());
    let mut sent = 0;
    while let Some(transmit) = harness.switch.poll_transmit() {
        sent += transmit.recipients().count();
        is_challenged |= class == Class::Control && answer_challenge(&mut join[..len], transmit.payload);
    }
    if is_challenged {
        harness.switch.handle_datagrams(now, from, class, &join[..len], len);
        while let Some(transmit) = harness.switch.poll_transmit() {
            sent += transmit.recipients().count();
        }
    }
    sent
}

/// Delivers the packets to a switch, and returns the number of allocations and reallocations that this causes.
fn live(packets: &[(u8, Class, Vec<u8>)], mut harness: Harness) -> usize {
    let mut sent = 0;
    let (mut keyed, key) = keyed_harness();
    let forged_joins = forged_joins();
    let region = Region::new(ALLOCATOR);
    for (from, bytes) in &forged_joins {
        harness.now_ms += 5;
        deliver(&mut harness, from, Class::Control, bytes);
        while harness.switch.poll_event().is_some() {}
        harness.switch.handle_timeout(harness.now());
    }
    for _ in 0..3 {
        for (host, class, bytes) in packets {
            harness.now_ms += 1;
            let now = harness.now();
            sent += deliver(&mut harness, &endpoint(*host), *class, bytes);
            while harness.switch.poll_event().is_some() {}
            harness.switch.handle_timeout(now);
        }
    }
    let keyed_sent = keyed_life(&mut keyed, &key);
    let change = region.change();
    assert!(sent > 300, "expected more than 300 packets, got {sent}");
    harness.sleep(2 * u64::from(LEASE_MS));
    assert_eq!(harness.switch.jobs().count(), 0);
    // Two challenges, two grants and a notice; three results for two members; the Ack of a Help and a result; a
    // refusal; two Leaves.
    assert_eq!(keyed_sent, 5 + 6 + 2 + 1 + 2);
    assert_eq!((keyed.counters().dropped(), keyed.switch.jobs().count()), (1, 0), "one packet is forged");
    change.allocations + change.reallocations
}
