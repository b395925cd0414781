//! Packets that no worker sends, over the real ports. Each packet is answered and counted under its reason, and the
//! sums of a job on the same switch do not change. Needs root.

use std::net::{SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

use iswitch_harness::cluster::{Daemon, Group, SOON, times};
use iswitch_harness::netns::{Star, StarOptions};
use iswitch_harness::requirements::{networks_and, report, together};
use iswitch_protocol::Round;
use iswitch_protocol::limits::{MAX_PAYLOAD_LEN_BYTES, PROTOCOL_VERSION, SEG_LEN_BYTES};
use iswitch_protocol::segment::{Seg, SegmentIndex};
use iswitch_protocol::wire::control::{RangeRepr, SegmentSetRepr, answer_challenge};
use iswitch_protocol::wire::{
    AckRepr, Action, Class, Classifier, ControlBody, ControlPacket, ControlRepr, JoinRepr, Status, emit_seg,
};

/// Job of the sender; the workers have job 0.
const JOB: u32 = 9;
const GRADIENT_LEN: u32 = 1000;
const SEGMENT_FLOATS: u16 = 366;
const LAST_SEGMENT_FLOATS: usize = 268;
/// MTU, in bytes. Both the longest valid packet and a packet that is too long fit in it.
const MTU_BYTES: u32 = 9100;

/// One invalid packet, and its expected handling.
struct Case {
    /// Name of the counter of packets that are dropped for this reason.
    reason: &'static str,
    /// Whether the sender is a member of [`JOB`].
    is_member: bool,
    class: Class,
    bytes: Vec<u8>,
    answer: Option<Status>,
}

#[test]
fn each_kind_of_bad_input_has_its_own_counter_and_answer() {
    if !networks_and("each_kind_of_bad_input_has_its_own_counter_and_answer", &[]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions { mtu_bytes: MTU_BYTES, ..StarOptions::default() });
    let mut daemon = Daemon::on_ports(&star, &[]);
    let mut group = Group::in_star(&star, daemon.address(), "--rounds 100000000");
    let results_before = daemon.wait_for_results();
    let switch = daemon.address();
    star.workers[0].enter(|| {
        let member = Sender::open(switch);
        let stranger = Sender::open(switch);
        let start = member.join();
        // This packet opens the round, so that a packet of the next round is merely early.
        member.send(Class::Data, &segment(2, start, 1, &[1.0; LAST_SEGMENT_FLOATS]));
        for case in data_cases(start).into_iter().chain(control_cases()) {
            let sender = if case.is_member { &member } else { &stranger };
            check(&daemon, sender, &case);
        }
    });
    assert!(daemon.process.is_running());
    assert!(daemon.results() > results_before, "the other job must continue");
    group.end();
    let results = group.results(SOON);
    report(&format!("beside bad input: {}", times(&results)));
    let finished = daemon.stop();
    assert!(!finished.stderr.contains("panic"), "{}", finished.stderr);
}

/// Returns contributions of the sender, which is a member, to a round that never completes because its second worker
/// never joins.
fn data_cases(round: Round) -> Vec<Case> {
    let case = |reason, bytes, answer| Case { reason, is_member: true, class: Class::Data, bytes, answer };
    let good = segment(0, round, 1, &[1.0; SEGMENT_FLOATS as usize]);
    let with = |value| {
        let mut floats = [1.0; SEGMENT_FLOATS as usize];
        floats[365] = value;
        segment(1, round, 1, &floats)
    };
    let of_round = |number: u32| segment(1, Round::new(number), 1, &[1.0; SEGMENT_FLOATS as usize]);
    let malformed = Some(Status::Malformed);
    vec![
        case("truncated", vec![0; 5], malformed),
        case("truncated", vec![0; SEG_LEN_BYTES], malformed),
        case("misaligned_payload", vec![0; 13], malformed),
        case("overlong", vec![0; MAX_PAYLOAD_LEN_BYTES + 4], malformed),
        case("fragment", vec![0; 20_000], None),
        case("seg_out_of_range", segment(3, round, 1, &[1.0; 366]), Some(Status::SegOutOfRange)),
        case("seg_out_of_range", segment(0xff_ffff, round, 1, &[1.0; 366]), Some(Status::SegOutOfRange)),
        case("length_mismatch", segment(0, round, 1, &[1.0; 365]), Some(Status::LengthMismatch)),
        case("length_mismatch", segment(2, round, 1, &[1.0; 366]), Some(Status::LengthMismatch)),
        case("bad_weight", segment(0, round, 2, &[1.0; 366]), Some(Status::BadWeight)),
        case("non_finite", with(f32::NAN), Some(Status::NonFinite)),
        case("non_finite", with(f32::INFINITY), Some(Status::NonFinite)),
        case("early_round", of_round(round.plus(1).get()), None),
        case("early_round", of_round(round.plus(2).get()), Some(Status::StaleRound)),
        case("stale_round", of_round(round.get().wrapping_sub(1)), Some(Status::StaleRound)),
        Case {
            reason: "unknown_member",
            is_member: false,
            class: Class::Data,
            bytes: good,
            answer: Some(Status::UnknownMember),
        },
    ]
}

fn control_cases() -> Vec<Case> {
    let case = |reason, bytes, answer| Case { reason, is_member: true, class: Class::Control, bytes, answer };
    let patched = |at: usize, value| {
        let mut bytes = request(JOB, ControlBody::Leave);
        bytes[at] = value;
        bytes
    };
    let ack = AckRepr {
        members: 1,
        threshold: 1,
        window: 1,
        formed: true,
        weight: 1,
        ..AckRepr::bare(Action::Join, Status::Success)
    };
    let beyond = RangeRepr { round: Round::default(), first: 3, count: 1 };
    let help = ControlBody::Help(SegmentSetRepr { range: beyond, bitmap: &[1] });
    let other = |gradient_len, segment_floats| {
        ControlBody::Join(JoinRepr { gradient_len, segment_floats, ..join(4) })
    };
    let stranger = |reason, bytes, answer| Case { is_member: false, ..case(reason, bytes, Some(answer)) };
    let malformed = Some(Status::Malformed);
    vec![
        case("truncated", vec![1; 3], None),
        case("wrong_version", patched(1, PROTOCOL_VERSION + 1), Some(Status::WrongVersion)),
        case("unknown_action", patched(0, 99), malformed),
        case("truncated", patched(2, 1)[..12].to_vec(), None),
        case("bad_value", patched(2, 2), malformed),
        case("foreign_job", request(0, ControlBody::Leave), Some(Status::ForeignJob)),
        case("foreign_job", request(0, ControlBody::Join(join(4))), Some(Status::ForeignJob)),
        case("unexpected_ack", request(JOB, ControlBody::Ack(ack)), None),
        case("request_refused", request(JOB, help), Some(Status::OutOfRange)),
        stranger("unknown_member", request(0, ControlBody::Leave), Status::UnknownMember),
        stranger("join_refused", request(0, other(10_118, 366)), Status::GradientLenMismatch),
        stranger("join_refused", request(0, other(10_119, 365)), Status::SegmentSizeMismatch),
    ]
}

/// Sends the packet of a case, and checks that only the drop counter of its reason and the counters that workers may
/// affect have changed.
fn check(daemon: &Daemon, sender: &Sender, case: &Case) {
    let before = daemon.counters()["drops"].clone();
    sender.send(case.class, &case.bytes);
    if let Some(status) = case.answer {
        sender.expect_answer(case, status);
    }
    let begin = Instant::now();
    loop {
        let after = daemon.counters()["drops"].clone();
        if moved(&before, &after, case.reason) {
            return;
        }
        assert!(begin.elapsed() < SOON, "{} is not counted: {after}", case.reason);
    }
}

fn moved(before: &serde_json::Value, after: &serde_json::Value, reason: &str) -> bool {
    let count = |counters: &serde_json::Value, name: &str| counters[name].as_u64().expect("a counter");
    for name in before.as_object().expect("counters by name").keys() {
        // On a busy machine, workers retransmit, which changes these counters.
        let is_common = ["duplicate", "late", "stale_round", "early_round"].contains(&name.as_str());
        let is_still = count(before, name) == count(after, name);
        assert!(name == reason || is_common || is_still, "{reason} was counted as {name}");
    }
    count(after, reason) > count(before, reason)
}

fn segment(index: u32, round: Round, contributions: u16, floats: &[f32]) -> Vec<u8> {
    let mut packet = vec![0; SEG_LEN_BYTES + size_of_val(floats)];
    let index = SegmentIndex::new(index).expect("the index must fit into 24 bits");
    let room = emit_seg(&mut packet, Seg { index, round, contributions });
    room.chunks_exact_mut(4).zip(floats).for_each(|(to, float)| to.copy_from_slice(&float.to_le_bytes()));
    packet
}

fn join(workers: u16) -> JoinRepr {
    JoinRepr { instance: 1, ..JoinRepr::worker(GRADIENT_LEN, SEGMENT_FLOATS, workers) }
}

fn request(job: u32, body: ControlBody<'_>) -> Vec<u8> {
    let repr = ControlRepr { job, request: 77, body };
    let mut packet = vec![0; repr.buffer_len()];
    repr.emit(&mut packet);
    packet
}

/// Socket that sends arbitrary packets.
struct Sender {
    socket: UdpSocket,
}

impl Sender {
    fn open(switch: SocketAddrV4) -> Self {
        let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
        socket.connect(switch).expect("a route to the switch");
        socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
        Self { socket }
    }

    /// Sends a packet. By default, the kernel fragments packets that exceed the MTU.
    fn send(&self, class: Class, bytes: &[u8]) {
        let tos = Classifier::default().tos_of(class);
        rustix::net::sockopt::set_ip_tos(&self.socket, tos).expect("any ToS may be set");
        self.socket.send(bytes).expect("the packet must be sent");
    }

    /// Joins as the first of two workers, and returns the round to start from.
    fn join(&self) -> Round {
        let mut packet = request(JOB, ControlBody::Join(join(2)));
        self.send(Class::Control, &packet);
        let mut buffer = [0; 256];
        let len = self.socket.recv(&mut buffer).expect("a challenge");
        assert!(answer_challenge(&mut packet, &buffer[..len]));
        self.send(Class::Control, &packet);
        let len = self.socket.recv(&mut buffer).expect("an answer");
        let ack = parse_ack(&buffer[..len]).expect("an Ack");
        assert_eq!(ack.status, Status::Success);
        ack.round
    }

    /// Receives the answer to a packet. The switch first answers a Join with a challenge; the sender then repeats the
    /// Join.
    fn expect_answer(&self, Case { reason, class, bytes, .. }: &Case, status: Status) {
        let mut buffer = [0; 256];
        let mut receive = || {
            let received = self.socket.recv(&mut buffer);
            let len = received.unwrap_or_else(|error| panic!("{reason}: no answer: {error}"));
            buffer[..len].to_vec()
        };
        let mut answer = receive();
        let mut proven = bytes.clone();
        if *class == Class::Control && answer_challenge(&mut proven, &answer) {
            self.send(*class, &proven);
            answer = receive();
        }
        let ack = parse_ack(&answer).unwrap_or_else(|| panic!("{reason}: the answer must be an Ack"));
        assert_eq!(ack.status, status, "{reason}");
    }
}

fn parse_ack(bytes: &[u8]) -> Option<AckRepr<'_>> {
    let packet = ControlPacket::new_checked(bytes).ok()?;
    match ControlRepr::parse(&packet).ok()?.body {
        ControlBody::Ack(ack) => Some(ack),
        _ => None,
    }
}
