//! Tests of those worker requirements of SPEC.md that no other test covers, in the order of its sections. A scripted
//! switch communicates with the state machines of both modes, on a virtual clock.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use iswitch::worker::asynchronous::AsyncProtocol;
use iswitch::worker::session::{Session, SessionConfig};
use iswitch::{JoinOptions, Worker};
use iswitch_protocol::limits::MAX_BITMAP_LEN_BYTES;
use iswitch_protocol::wire::control::{RangeRepr, SegmentSetRepr};
use iswitch_protocol::wire::{
    AckRepr, Action, Class, ControlBody, ControlPacket, ControlRepr, DataPacket, JoinRepr, Mode, NameRepr,
    Status, emit_seg,
};
use iswitch_protocol::{Instant, Round, Seg, SegmentIndex, VectorLayout};

const JOB: u32 = 3;
const ROUND: Round = Round::new(100);
const LEASE_MS: u32 = 400;
/// Number of segments of the vector; each holds one float.
const SEGMENTS: u32 = 300;
/// Number of segments that a member may have in flight.
const WINDOW: u16 = 200;
/// Retransmission timeouts that requirement F-2 permits.
const TIMEOUTS: std::ops::RangeInclusive<Duration> = Duration::from_millis(2)..=Duration::from_millis(250);

/// Packet from the member.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Sent {
    /// Contribution of a segment.
    Segment(u32),
    /// Help or Confirm that names these segments.
    Question {
        id: u32,
        segments: Vec<u32>,
    },
    Join {
        id: u32,
    },
    Other(Action),
}

/// Help without segments that requests no answer.
const HEARTBEAT: Sent = Sent::Question { id: 0, segments: Vec::new() };

/// State machine of a worker in either mode.
enum Protocol {
    Synchronous(Box<Session>),
    Asynchronous(Box<AsyncProtocol>),
}

/// A member and its clock.
struct Member {
    protocol: Protocol,
    now: Instant,
}

fn ack(action: Action, is_complete: bool) -> AckRepr<'static> {
    AckRepr {
        members: 2,
        threshold: 2,
        round: ROUND,
        window: WINDOW,
        formed: is_complete,
        boot: 77,
        lease_ms: LEASE_MS,
        history: 123,
        weight: 2,
        ..AckRepr::bare(action, Status::Success)
    }
}

fn emitted(request: u32, body: ControlBody<'_>) -> Vec<u8> {
    let repr = ControlRepr { job: JOB, request, body };
    let mut packet = vec![0; repr.buffer_len()];
    repr.emit(&mut packet);
    packet
}

fn parsed(class: Class, bytes: &[u8]) -> Sent {
    if class == Class::Data {
        return Sent::Segment(DataPacket::new_checked(bytes).unwrap().seg().index.get());
    }
    let repr = ControlRepr::parse(&ControlPacket::new_checked(bytes).unwrap()).unwrap();
    match repr.body {
        ControlBody::Join(_) => Sent::Join { id: repr.request },
        ControlBody::Help(set) | ControlBody::Confirm(set) => {
            Sent::Question { id: repr.request, segments: set.indices().collect() }
        }
        _ => Sent::Other(repr.action()),
    }
}

impl Member {
    fn new(mode: Mode) -> Self {
        let config = SessionConfig {
            job: JOB,
            layout: VectorLayout::new(SEGMENTS, 1).unwrap(),
            parts: 1,
            join: JoinRepr { mode, instance: 9, ..JoinRepr::worker(SEGMENTS, 1, 2) },
            recv_buffer_bytes: 1 << 24,
            heartbeats: mode == Mode::Asynchronous,
            name: NameRepr::UNKNOWN,
        };
        let now = Instant::from_nanos(1);
        let protocol = match mode {
            Mode::Synchronous => Protocol::Synchronous(Box::new(Session::new(config, now))),
            Mode::Asynchronous => Protocol::Asynchronous(Box::new(AsyncProtocol::new(config, now))),
        };
        Self { protocol, now }
    }

    /// Creates a member of a complete job that has begun to contribute a vector.
    fn contributing(mode: Mode) -> Self {
        let mut member = Self::new(mode);
        let id = member.join_id();
        member.receive(id, ControlBody::Ack(ack(Action::Join, true)));
        match &mut member.protocol {
            Protocol::Synchronous(session) => session.begin_round(member.now),
            Protocol::Asynchronous(protocol) => protocol.submit(member.now, &[1.0; SEGMENTS as usize]),
        }
        member
    }

    /// Returns all packets that the member has to send at the current time.
    fn send(&mut self) -> Vec<Sent> {
        let (mut sent, mut buffer) = (Vec::new(), Vec::new());
        loop {
            let transmit = match &mut self.protocol {
                Protocol::Synchronous(session) => {
                    session.poll_transmit(self.now, &[1.0; SEGMENTS as usize], &mut buffer)
                }
                Protocol::Asynchronous(protocol) => protocol.poll_transmit(self.now, &mut buffer),
            };
            let Some((class, stride)) = transmit else { return sent };
            sent.extend(buffer.chunks(stride).map(|bytes| parsed(class, bytes)));
        }
    }

    /// Returns the id of the first Join.
    fn join_id(&mut self) -> u32 {
        match self.send()[..] {
            [Sent::Join { id }] => id,
            ref sent => panic!("expected one Join, but the member sent {sent:?}"),
        }
    }

    /// Advances the clock to the next deadline; returns the time by which the clock has advanced.
    fn wait(&mut self) -> Duration {
        let deadline = match &self.protocol {
            Protocol::Synchronous(session) => session.poll_timeout(),
            Protocol::Asynchronous(protocol) => protocol.poll_timeout(),
        };
        let passed = deadline.expect("the member must have a deadline").since(self.now);
        self.now = self.now.plus(passed);
        match &mut self.protocol {
            Protocol::Synchronous(session) => session.handle_timeout(self.now),
            Protocol::Asynchronous(protocol) => protocol.handle_timeout(self.now),
        }
        passed
    }

    fn handle(&mut self, class: Class, packet: &[u8]) {
        match &mut self.protocol {
            Protocol::Synchronous(session) => {
                session.handle_datagrams(self.now, class, packet, packet.len());
            }
            Protocol::Asynchronous(protocol) => {
                protocol.handle_datagrams(self.now, class, packet, packet.len());
            }
        }
    }

    fn receive(&mut self, request: u32, body: ControlBody<'_>) {
        self.handle(Class::Control, &emitted(request, body));
    }

    /// Delivers the Ack of a Help or Confirm, which names those of its segments that the switch lacks (`missing`).
    fn receive_answer(&mut self, action: Action, question: &Sent, missing: &[u32]) {
        let Sent::Question { id, segments } = question else { panic!("{question:?} is not a question") };
        let round = match &self.protocol {
            Protocol::Synchronous(_) => ROUND,
            // The first vector: the low bits of instance + epoch (requirement V-2).
            Protocol::Asynchronous(_) => Round::new(9 + 77),
        };
        let first = segments[0];
        let range = RangeRepr { round, first, count: segments.last().unwrap() + 1 - first };
        let mut bitmap = [0; MAX_BITMAP_LEN_BYTES];
        missing.iter().map(|index| index - first).for_each(|bit| bitmap[bit as usize / 8] |= 1 << (bit % 8));
        let missing = Some(SegmentSetRepr::of(range, &bitmap));
        self.receive(*id, ControlBody::Ack(AckRepr { missing, ..ack(action, true) }));
    }

    /// Delivers the results of segments, in this order.
    fn receive_results(&mut self, indices: impl IntoIterator<Item = u32>) {
        for index in indices {
            let mut packet = [0; 12];
            let index = SegmentIndex::new(index).unwrap();
            emit_seg(&mut packet, Seg { index, round: ROUND, contributions: 2 });
            self.handle(Class::Data, &packet);
        }
    }

    /// Advances the clock until the member sends a question, and returns the question. Checks that the elapsed time is
    /// within [`TIMEOUTS`] and that the member sends nothing else.
    fn question_after_silence(&mut self) -> Sent {
        let passed = self.wait();
        assert!(TIMEOUTS.contains(&passed), "the member asked after {passed:?}");
        match &self.send()[..] {
            [question @ Sent::Question { .. }] => question.clone(),
            sent => panic!("expected one question, but the member sent {sent:?}"),
        }
    }

    /// Returns the intervals between the Joins that the member sends during `period`.
    fn join_intervals(&mut self, period: Duration) -> Vec<Duration> {
        let (mut intervals, begin) = (Vec::new(), self.now);
        while self.now.since(begin) < period {
            intervals.push(self.wait());
            assert!(matches!(self.send()[..], [Sent::Join { .. }]));
        }
        intervals
    }
}

/// Returns the segments whose contributions the member sent, in the order in which they were sent.
fn indices(sent: &[Sent]) -> Vec<u32> {
    let index = |sent: &Sent| if let Sent::Segment(index) = sent { Some(*index) } else { None };
    sent.iter().filter_map(index).collect()
}

fn segments_of(question: &Sent) -> &[u32] {
    let Sent::Question { segments, .. } = question else { panic!("{question:?} is not a question") };
    segments
}

/// Section 4, M-12, for a worker. (For a child switch, this requirement is covered by the tests of the switch core.)
#[test]
fn a_worker_repeats_its_join_until_the_job_is_complete() {
    for mode in [Mode::Synchronous, Mode::Asynchronous] {
        let mut member = Member::new(mode);
        let id = member.join_id();
        let permitted = Duration::from_millis(20)..=Duration::from_millis(500);
        let unanswered = member.join_intervals(Duration::from_secs(5));
        assert!(unanswered.iter().all(|interval| permitted.contains(interval)), "{unanswered:?}");
        member.receive(id, ControlBody::Ack(ack(Action::Join, false)));
        let quarter = Duration::from_millis(u64::from(LEASE_MS) / 4);
        let waiting = member.join_intervals(Duration::from_secs(5));
        let permitted = Duration::from_millis(20)..=quarter;
        assert!(waiting.iter().all(|interval| permitted.contains(interval)), "{waiting:?}");
        member.receive(id, ControlBody::Ack(ack(Action::Join, true)));
        // Over a socket, the driver of a synchronous worker sends the heartbeats.
        let heartbeats = if mode == Mode::Asynchronous { vec![HEARTBEAT] } else { Vec::new() };
        assert_eq!(member.send(), heartbeats);
    }
}

/// Section 4, M-12, over a real socket: apart from its Name, the first packet from a worker that does not contribute
/// yet is a heartbeat.
#[test]
fn a_worker_sends_a_heartbeat_once_the_job_is_complete() {
    let switch = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    // This timeout is much shorter than a quarter of the lease, so a regular heartbeat would not arrive in time.
    switch.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let SocketAddr::V4(address) = switch.local_addr().unwrap() else { unreachable!("bound to IPv4") };
    // The packets from the scripted switch have no ToS.
    let options = JoinOptions { control_tos: 0, ..JoinOptions::new(address, 2, SEGMENTS) };
    let joining = thread::spawn(|| Worker::join(options).unwrap());
    let receive = || {
        let mut buffer = [0; 2048];
        let (len, from) = switch.recv_from(&mut buffer).expect("the worker must send a packet at once");
        (parsed(Class::Control, &buffer[..len]), from)
    };
    let (Sent::Join { id }, worker) = receive() else { panic!("expected a Join") };
    let admission = AckRepr { lease_ms: 600_000, ..ack(Action::Join, true) };
    switch.send_to(&emitted(id, ControlBody::Ack(admission)), worker).unwrap();
    let is_other = |sent: &Sent| !matches!(sent, Sent::Join { .. } | Sent::Other(Action::Name));
    let first = std::iter::repeat_with(|| receive().0).find(is_other);
    assert_eq!(first, Some(HEARTBEAT));
    joining.join().unwrap();
}

/// Section 6, F-2: silence alone causes no retransmission; the Ack of a Help causes retransmission of only the segments
/// that it names.
#[test]
fn only_segments_that_a_help_reports_missing_are_retransmitted() {
    let mut member = Member::contributing(Mode::Synchronous);
    assert_eq!(indices(&member.send()), (0..u32::from(WINDOW)).collect::<Vec<_>>());
    let questions: Vec<_> = (0..12).map(|_| member.question_after_silence()).collect();
    member.receive_answer(Action::Help, questions.last().unwrap(), &[3, 7, 8]);
    assert_eq!(indices(&member.send()), [3, 7, 8]);
    // The segments are in flight once more; another silence causes no retransmission either.
    let question = member.question_after_silence();
    member.receive_answer(Action::Help, &question, &[]);
    assert!(indices(&member.send()).is_empty());
}

/// Section 6, F-2.
#[test]
fn a_gap_counts_as_a_loss_once_a_result_more_than_64_segments_higher_has_arrived() {
    let mut member = Member::contributing(Mode::Synchronous);
    member.send();
    // The result of segment 5 is missing. The results of segments that are at most 64 higher do not prove a loss,
    // because they may have overtaken it.
    member.receive_results((0..=5 + 64).filter(|index| *index != 5));
    let is_question = |sent: &Sent| matches!(sent, Sent::Question { .. });
    let sent = member.send();
    assert!(!sent.iter().any(is_question), "{sent:?}");
    member.receive_results([5 + 65]);
    let sent = member.send();
    let questions: Vec<_> = sent.iter().filter(|sent| is_question(sent)).map(segments_of).collect();
    assert_eq!(questions, [[5]]);
}

/// Section 6, F-2: the two cases in which a question about one segment leads to a question about all segments.
#[test]
fn the_first_silence_causes_a_help_for_one_segment_and_then_for_all() {
    let in_flight: Vec<_> = (1..=u32::from(WINDOW)).collect();
    let after_a_result = || {
        let mut member = Member::contributing(Mode::Synchronous);
        member.send();
        member.receive_results([0]);
        assert_eq!(member.send(), [Sent::Segment(WINDOW.into())]);
        let question = member.question_after_silence();
        assert_eq!(segments_of(&question).len(), 1);
        (member, question)
    };

    let (mut member, _) = after_a_result();
    assert_eq!(segments_of(&member.question_after_silence()), in_flight, "after a second silence");

    let (mut member, question) = after_a_result();
    member.receive_answer(Action::Help, &question, &[]);
    let sent = member.send();
    let [all] = &sent[..] else { panic!("expected a question at once, but the member sent {sent:?}") };
    assert_eq!(segments_of(all), in_flight, "after the answer, without a result");

    let (mut member, question) = after_a_result();
    member.receive_results([1]);
    member.send();
    member.receive_answer(Action::Help, &question, &[]);
    assert_eq!(member.send(), [], "the results are still on their way");
}

/// Section 6, F-4, for results in any order.
#[test]
fn synchronous_segments_are_sent_in_ascending_order() {
    let mut member = Member::contributing(Mode::Synchronous);
    let (mut sent, mut in_flight): (Vec<u32>, BTreeSet<u32>) = Default::default();
    while sent.len() < SEGMENTS as usize {
        let fresh = indices(&member.send());
        assert!(!fresh.is_empty(), "the member stopped after {} segments", sent.len());
        sent.extend(&fresh);
        in_flight.extend(fresh);
        // The latest segment in flight and the one in the middle are the first to receive their results.
        let middle = *in_flight.iter().nth(in_flight.len() / 2).unwrap();
        let results: BTreeSet<_> = [*in_flight.last().unwrap(), middle].into();
        in_flight.retain(|index| !results.contains(index));
        member.receive_results(results.into_iter().rev());
    }
    assert_eq!(sent, (0..SEGMENTS).collect::<Vec<_>>());
}

/// Section 6, F-4.
#[test]
fn asynchronous_segments_are_sent_in_ascending_order() {
    let mut member = Member::contributing(Mode::Asynchronous);
    let mut sent = Vec::new();
    while sent.len() < SEGMENTS as usize {
        let packets = member.send();
        let fresh = indices(&packets);
        assert!(!fresh.is_empty(), "the member stopped after {} segments", sent.len());
        sent.extend(fresh);
        let questions =
            packets.iter().filter(|packet| matches!(packet, Sent::Question { id, .. } if *id != 0));
        // The last Confirm is answered first.
        for question in questions.rev() {
            member.receive_answer(Action::Confirm, question, &[]);
        }
    }
    assert_eq!(sent, (0..SEGMENTS).collect::<Vec<_>>());
}
