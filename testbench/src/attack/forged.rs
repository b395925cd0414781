//! Packets with forged senders.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use iswitch_protocol::limits::{DEFAULT_PORT, FLOAT_LEN_BYTES, MAX_RANGE_SEGMENTS, SEG_LEN_BYTES};
use iswitch_protocol::wire::control::{DigestRepr, SegmentSetRepr};
use iswitch_protocol::wire::{
    AckRepr, Action, Class, ControlBody, ControlRepr, JoinRepr, ResumeRepr, Status, emit_seg,
};
use iswitch_protocol::{Round, Seg, SegmentIndex};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::testbed::{Host, JOB, Testbed, WORKERS, undisturbed};
use super::wire::{beside, is_answer, recorded};
use super::{Effort, Verdict};
use crate::neighbour::member::{ALL, first};
use crate::storm::{SENDER_MAC, Storm, frame};
use iswitch_harness::cluster::{Daemon, PortKind};

/// UDP source port of the forged packets.
const PORT: u16 = 5000;
/// Number of packets of each kind. It exceeds the number of answers that a switch sends to a non-member.
const REPEATS: usize = 50;
/// Pause between packets. Without a pause, the switch would limit its answers to non-members, and an answer that is too
/// long could go unnoticed.
const PAUSE: Duration = Duration::from_millis(2);
/// Time after which the test assumes that no further answer arrives.
const QUIET: Duration = Duration::from_millis(100);
const FULL_SEGMENT_FLOATS: usize = 366;
/// Numbers of floats in the forged data packets.
const DATA_FLOATS: [usize; 3] = [1, 27, FULL_SEGMENT_FLOATS];
const CONTROL_KINDS: usize = 15;
const KINDS: usize = CONTROL_KINDS + DATA_FLOATS.len();
/// Maximum length of a payload of random bytes, in bytes.
const MAX_RANDOM_LEN: usize = 1472;

/// Packet without its source and destination addresses.
struct Packet {
    what: String,
    class: Class,
    payload: Vec<u8>,
}

impl Packet {
    fn from(&self, mac: [u8; 6], sender: SocketAddrV4) -> Vec<u8> {
        frame(mac, sender, self.class, &self.payload)
    }
}

fn control(job: u32, request: u32, body: ControlBody<'_>) -> Packet {
    let repr = ControlRepr { job, request, body };
    let mut payload = vec![0; repr.buffer_len()];
    repr.emit(&mut payload);
    Packet { what: format!("{:?} of job {job}", repr.action()), class: Class::Control, payload }
}

fn data(round: Round, index: u32, floats: usize) -> Packet {
    let mut payload = vec![0; SEG_LEN_BYTES + FLOAT_LEN_BYTES * floats];
    let index = SegmentIndex::new(index).expect("the index must fit into 24 bits");
    emit_seg(&mut payload, Seg { index, round, contributions: 1 });
    Packet { what: format!("{floats} floats"), class: Class::Data, payload }
}

fn join() -> JoinRepr {
    JoinRepr { instance: 9, ..JoinRepr::worker(10_119, FULL_SEGMENT_FLOATS as u16, 2) }
}

fn ack() -> AckRepr<'static> {
    AckRepr { boot: 1, ..AckRepr::bare(Action::Help, Status::UnknownMember) }
}

/// Returns one body of each kind of control packet.
fn bodies(round: Round) -> [ControlBody<'static>; CONTROL_KINDS] {
    let range = first(round, MAX_RANGE_SEGMENTS);
    let set = SegmentSetRepr::of(range, &ALL);
    let few = SegmentSetRepr::of(first(round, 28), &ALL);
    let resume = ResumeRepr {
        round,
        members: 2,
        weight: 2,
        threshold: 0,
        history: 7,
        previous: 0,
        behind: 0,
        fresh: false,
    };
    [
        ControlBody::Join(join()),
        ControlBody::Join(JoinRepr { query: true, ..join() }),
        ControlBody::Join(JoinRepr { padding_len: 1396, ..join() }),
        ControlBody::Join(JoinRepr { resume: Some(resume), ..join() }),
        ControlBody::Leave,
        ControlBody::RESET,
        ControlBody::SetH { threshold: 1 },
        ControlBody::FBcast(range),
        ControlBody::Help(set),
        ControlBody::Help(few),
        ControlBody::HEARTBEAT,
        ControlBody::Halt,
        ControlBody::Ack(ack()),
        ControlBody::Confirm(set),
        ControlBody::Digest(DigestRepr { round, digest: 1 }),
    ]
}

/// Returns a packet of the kind `number`, which must be less than [`KINDS`]. The first [`CONTROL_KINDS`] kinds are
/// control packets.
fn of_kind(number: usize, job: u32, round: Round) -> Packet {
    match number.checked_sub(CONTROL_KINDS) {
        None => control(job, 1, bodies(round)[number]),
        Some(number) => data(round, 0, DATA_FLOATS[number]),
    }
}

/// Returns one packet of each kind.
fn kinds(job: u32, round: Round) -> impl Iterator<Item = Packet> {
    (0..KINDS).map(move |number| of_kind(number, job, round))
}

/// Sends frames from the attacker's port of the switch.
fn send(testbed: &Testbed, frames: &[Vec<u8>], pause: Duration) {
    testbed.attacker().enter(|| {
        let mut sender = Storm::open(1).expect("the attacker's interface must open");
        for frame in frames {
            sender.send_frame(frame).expect("the frame must be sent");
            std::thread::sleep(pause);
        }
    });
}

/// Sends packets with the source address of `victim`, and returns the amplification factor: the bytes of the answers
/// that reach the victim, divided by the bytes of the packets.
fn amplification(testbed: &Testbed, victim: &Host<'_>, packet: &Packet) -> f64 {
    let frames = vec![packet.from(victim.mac, SocketAddrV4::new(victim.address, PORT)); REPEATS];
    let sent: usize = frames.iter().map(Vec::len).sum();
    // A raw port sends its answer to the port from which the packet came. If the cable at that port leads to several
    // hosts, the victim may be one of them. Answers on both cables therefore count.
    let (((), at_attacker), at_victim) = recorded(victim.namespace, || {
        recorded(testbed.attacker(), || {
            send(testbed, &frames, PAUSE);
            std::thread::sleep(QUIET);
        })
    });
    let answers = at_attacker.iter().chain(&at_victim).filter(|frame| is_answer(frame));
    answers.map(Vec::len).sum::<usize>() as f64 / sent as f64
}

pub(super) fn reflection(effort: &Effort) -> Verdict {
    let testbed = Testbed::new();
    let victim = testbed.bystander();
    let mut worst = (0.0, String::new());
    for (kind, with_key) in [(PortKind::Raw, false), (PortKind::Raw, true), (PortKind::Udp, false)] {
        let (daemon, arguments) = if with_key {
            (testbed.daemon_on(kind, &testbed.key_arguments()), testbed.keyed())
        } else {
            (testbed.daemon_on(kind, &[]), String::new())
        };
        // The workers keep a job running, so that the packets can request its results.
        let workers = testbed.workers(&daemon, &arguments);
        let round = daemon.jobs()[0]["round"].as_u64().unwrap_or_default();
        let mut random = ChaCha8Rng::seed_from_u64(effort.seed);
        let known = [JOB, JOB + 1].into_iter().flat_map(|job| kinds(job, Round::new(round as u32)));
        for packet in known.chain((0..effort.packets / 100).map(|_| random_packet(&mut random))) {
            let ratio = amplification(&testbed, &victim, &packet);
            if ratio > 1.0 {
                let what = packet.what;
                let key = if with_key { "with a" } else { "without a" };
                return Err(format!(
                    "{what}, {kind:?} ports, {key} key: amplification x{ratio:.2}, expected at most x1"
                ));
            }
            if ratio > worst.0 {
                worst = (ratio, packet.what);
            }
        }
        undisturbed(workers, effort)?;
        daemon.stop();
    }
    if worst.0 == 0.0 {
        return Err("no packet was answered, so nothing was measured".to_owned());
    }
    Ok(format!("amplification of at most x{:.2}, for {}", worst.0, worst.1))
}

/// Returns the number of control packets that the switch has sent so far.
fn answers(daemon: &Daemon) -> u64 {
    daemon.traffic("control_sent")
}

/// Sends frames to a switch without members, and checks that the switch answers none of them.
fn expect_silence(testbed: &Testbed, frames: &[Vec<u8>]) -> Verdict {
    let daemon = testbed.daemon(&[]);
    let begin = answers(&daemon);
    send(testbed, frames, PAUSE);
    std::thread::sleep(QUIET);
    let answered = answers(&daemon) - begin;
    // Makes sure that the switch is not silent for another reason: panics if it does not answer a valid Join.
    let host = SocketAddrV4::new(testbed.bystander().address, PORT);
    send(testbed, &[control(1, 1, ControlBody::Join(join())).from(SENDER_MAC, host)], PAUSE);
    daemon.wait_for_more("control_sent", begin + answered);
    daemon.stop();
    match answered {
        0 => Ok(format!("{} packets", frames.len())),
        _ => Err(format!("the switch sent {answered} answers to {} packets, expected none", frames.len())),
    }
}

pub(super) fn group_senders(_effort: &Effort) -> Verdict {
    let testbed = Testbed::new();
    let host = testbed.bystander().address;
    let senders = [
        ([0xff; 6], host, PORT),
        ([1, 0, 0x5e, 0, 0, 1], host, PORT),
        (SENDER_MAC, Ipv4Addr::BROADCAST, PORT),
        (SENDER_MAC, Ipv4Addr::new(239, 1, 2, 3), PORT),
        (SENDER_MAC, Ipv4Addr::UNSPECIFIED, PORT),
        (SENDER_MAC, Ipv4Addr::LOCALHOST, PORT),
        (SENDER_MAC, host, 0),
    ];
    let frames = senders.into_iter().flat_map(|(mac, address, port)| {
        let sender = SocketAddrV4::new(address, port);
        kinds(JOB, Round::default()).map(move |packet| packet.from(mac, sender))
    });
    let frames: Vec<_> = frames.collect();
    expect_silence(&testbed, &frames)
}

pub(super) fn acks(effort: &Effort) -> Verdict {
    let testbed = Testbed::new();
    let mut random = ChaCha8Rng::seed_from_u64(effort.seed);
    let frames = (0..effort.packets / 5).map(|_| {
        // The Ack appears to come from an ordinary host or from the port of another switch.
        let port = if random.random_bool(0.5) { PORT } else { DEFAULT_PORT };
        let sender = SocketAddrV4::new(testbed.bystander().address, port);
        let job = if random.random_bool(0.5) { JOB } else { random.next_u32() };
        control(job, random.next_u32(), ControlBody::Ack(ack())).from(SENDER_MAC, sender)
    });
    let frames: Vec<_> = frames.collect();
    expect_silence(&testbed, &frames)
}

/// Returns the addresses of the members of the only job, as reported by `iswitchctl jobs`.
fn members(daemon: &Daemon) -> Vec<SocketAddrV4> {
    let jobs = daemon.jobs();
    let members = jobs[0]["members"].as_array().cloned().unwrap_or_default();
    members.iter().filter_map(|member| member["address"].as_str()?.parse().ok()).collect()
}

/// Lets workers with the key aggregate while the attacker sends the packets that `forge` returns, each with the
/// addresses of a random member.
fn against_members(
    testbed: &Testbed,
    effort: &Effort,
    options: &str,
    forge: impl Fn(&mut ChaCha8Rng) -> Packet + Sync,
) -> Verdict {
    let daemon = testbed.daemon_with_key();
    let workers = testbed.workers(&daemon, &format!("{} {options}", testbed.keyed()));
    let members = members(&daemon);
    if members.len() != WORKERS {
        return Err(format!("the job has {} members, expected {WORKERS}", members.len()));
    }
    let hosts: Vec<_> = (0..WORKERS).map(|worker| testbed.host(worker)).collect();
    let attack = |is_over: &AtomicBool| {
        testbed.attacker().enter(|| {
            let mut sender = Storm::open(1).expect("the interface must open");
            let mut random = ChaCha8Rng::seed_from_u64(effort.seed);
            let mut sent = 0_u64;
            while !is_over.load(Ordering::Relaxed) {
                let member = members[random.random_range(0..WORKERS)];
                let host = hosts
                    .iter()
                    .find(|host| host.address == *member.ip())
                    .expect("a member must be a worker");
                let frame = forge(&mut random).from(host.mac, member);
                sender.send_frame(&frame).expect("the frame must be sent");
                sent += 1;
            }
            sent
        })
    };
    let (rounds, sent) = beside(attack, || undisturbed(workers, effort));
    daemon.stop();
    Ok(format!("{sent} packets during {} rounds", rounds?))
}

pub(super) fn orders(effort: &Effort) -> Verdict {
    let testbed = Testbed::new();
    against_members(&testbed, effort, "", |random| {
        let round = Round::new(random.next_u32() & 0xff_ffff);
        // Only control packets are forged: without tags, data is protected by port and address alone.
        of_kind(random.random_range(0..CONTROL_KINDS), JOB, round)
    })
}

pub(super) fn random_bytes(effort: &Effort) -> Verdict {
    let testbed = Testbed::new();
    against_members(&testbed, effort, "--tag-data", random_packet)
}

/// Returns random bytes, or a packet with flipped bits, or a truncated packet.
fn random_packet(random: &mut ChaCha8Rng) -> Packet {
    let class = if random.random_bool(0.5) { Class::Control } else { Class::Data };
    let mut payload = vec![0; random.random_range(0..=MAX_RANDOM_LEN)];
    if random.random_bool(0.3) {
        random.fill_bytes(&mut payload);
        return Packet { what: format!("{} random bytes", payload.len()), class, payload };
    }
    let round = Round::new(random.next_u32() & 0xff_ffff);
    let Packet { what, class, mut payload } = of_kind(random.random_range(0..KINDS), JOB, round);
    for _ in 0..random.random_range(0..8) {
        let bit = random.random_range(0..payload.len() * 8);
        payload[bit / 8] ^= 1 << (bit % 8);
    }
    if random.random_bool(0.3) {
        payload.truncate(random.random_range(0..=payload.len()));
    }
    Packet { what: format!("{what}, damaged, of {} bytes", payload.len()), class, payload }
}
