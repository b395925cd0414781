//! Parts of a vector: the number of parts that a switch announces, and the separation of jobs with parts from jobs with
//! whole vectors.

use std::net::{Ipv4Addr, SocketAddrV4};

use crate::common::{Harness, JOB, LEASE_MS, Sent, control, endpoint, join, join_from};
use iswitch_protocol::history::{Chain, turn};
use iswitch_protocol::wire::{
    AckRepr, Action, Class, ControlBody, ControlPacket, ControlRepr, JoinRepr, Mode, ResumeRepr, Status,
};
use iswitch_protocol::{Round, history};
use iswitch_switch::{Config, Endpoint, Instant, PortId, Switch, Uplinks};

const THREADS: u8 = 4;

fn switch() -> Harness {
    Harness::with(Config { memory_bytes: 1 << 20, parts: THREADS, ..Config::default() })
}

fn part(workers: u16) -> JoinRepr {
    JoinRepr { part: true, ..join(workers) }
}

/// Returns the fields of the last Ack among some packets.
fn ack(packets: &[Vec<u8>]) -> AckRepr<'static> {
    let mut acks = packets.iter().filter_map(|bytes| {
        let repr = ControlRepr::parse(&ControlPacket::new_checked(&bytes[..]).ok()?).ok()?;
        match repr.body {
            ControlBody::Ack(ack) => Some(AckRepr { missing: None, ..ack }),
            _ => None,
        }
    });
    acks.next_back().expect("the switch must answer")
}

/// Sends a Join, repeats it with the nonce of a challenge, and returns the last Ack.
fn answer(harness: &mut Harness, host: u8, join: JoinRepr) -> AckRepr<'static> {
    let (now, packet) = (harness.now(), control(JOB, 1, ControlBody::Join(join)));
    ack(&join_from(&mut harness.switch, now, &endpoint(host), &packet))
}

#[test]
fn only_a_sender_that_knows_parts_learns_their_number() {
    let mut harness = switch();
    let query = |part| JoinRepr { query: true, part, ..join(2) };
    let unknown = answer(&mut harness, 1, query(true));
    assert_eq!((unknown.status, unknown.parts), (Status::UnknownJob, THREADS));
    assert_eq!(answer(&mut harness, 1, query(false)).parts, 1);
    // The first answer to a Join is a challenge.
    let packet = control(JOB, 1, ControlBody::Join(part(2)));
    let now = harness.now();
    harness.switch.handle_datagrams(now, &endpoint(1), Class::Control, &packet, packet.len());
    let sent = harness.switch.poll_transmit().map(|transmit| transmit.payload.to_vec());
    let challenge = ack(&[sent.expect("expected a challenge")]);
    assert_eq!((challenge.status, challenge.parts), (Status::Challenge, THREADS));
    assert_eq!(answer(&mut harness, 1, part(2)).parts, THREADS);
    let refused = answer(&mut harness, 2, JoinRepr { workers: 3, ..part(2) });
    assert_eq!((refused.status, refused.parts), (Status::WorkersMismatch, THREADS));
    let whole = answer(&mut harness, 3, join(2));
    assert_eq!((whole.status, whole.parts), (Status::GradientLenMismatch, 1));
    // The notice that the job is complete repeats the Ack of the Join.
    let packet = control(JOB, 1, ControlBody::Join(part(2)));
    let mut switch = switch();
    answer(&mut switch, 1, part(2));
    let now = switch.now();
    join_from(&mut switch.switch, now, &endpoint(2), &packet);
    assert!(switch.switch.jobs().all(|job| job.formed && job.part));
}

#[test]
fn whole_vectors_and_parts_of_the_same_length_do_not_mix() {
    for (first, second) in [(part(2), join(2)), (join(2), part(2))] {
        let mut harness = switch();
        assert_eq!(answer(&mut harness, 1, first).status, Status::Success);
        let refused = answer(&mut harness, 2, second);
        assert_eq!((refused.status, refused.expected), (Status::GradientLenMismatch, 5));
        assert_eq!(answer(&mut harness, 2, first).status, Status::Success);
    }
}

#[test]
fn asynchronous_vectors_have_no_parts() {
    let mut harness = switch();
    let refused = answer(&mut harness, 1, JoinRepr { mode: Mode::Asynchronous, ..part(1) });
    assert_eq!((refused.status, refused.expected), (Status::ModeMismatch, Mode::Synchronous as u32));
    assert_eq!(harness.switch.jobs().count(), 0);
}

#[test]
fn the_history_of_a_part_counts_the_sums_through_restarts() {
    let mut harness = switch();
    assert_eq!(turn(answer(&mut harness, 1, part(0)).history), 0);
    harness.round(&[1], 0);
    harness.round(&[1], 1);
    // A query states where a newcomer would start.
    let query = answer(&mut harness, 9, JoinRepr { query: true, ..part(0) });
    assert_eq!((query.round, turn(query.history)), (Round::new(2), 2));
    let newcomer = answer(&mut harness, 2, part(0));
    assert_eq!((newcomer.round, newcomer.history), (query.round, query.history));

    let mut restarted = Harness::with(Config { boot: 7 << 40, memory_bytes: 1 << 20, ..Config::default() });
    let behind = newcomer.history;
    let latest = Chain::Part.after(behind, newcomer.boot, newcomer.round);
    let resume = |round: u32, history, previous| ResumeRepr {
        round: Round::new(round),
        members: 2,
        weight: 2,
        threshold: 0,
        history,
        previous,
        behind: 0,
        fresh: false,
    };
    // One member lacks the sum of round 2, which is replayed.
    answer(&mut restarted, 1, JoinRepr { resume: Some(resume(3, latest, behind)), ..part(0) });
    let awaits = answer(&mut restarted, 2, JoinRepr { resume: Some(resume(2, behind, 0)), ..part(0) });
    assert_eq!((awaits.history, turn(awaits.history)), (latest, 3));
    let fresh = answer(&mut restarted, 3, part(0));
    assert_eq!(turn(fresh.history), 3);
}

#[test]
fn histories_of_whole_vectors_are_unchanged() {
    let mut harness = switch();
    let whole = answer(&mut harness, 1, join(1));
    assert_eq!(whole.history, history::begin(whole.boot, JOB, whole.round));
    let query = answer(&mut harness, 9, JoinRepr { query: true, ..join(1) });
    assert_eq!(query.history, 0);
    assert!(matches!(harness.join(2, part(1)), Sent::Ack { status: Status::GradientLenMismatch, .. }));
}

fn parent() -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 9, 0, 254), 7711)
}

/// A child switch whose parent is simulated by the test.
struct Child {
    switch: Switch,
    now_ms: u64,
}

impl Child {
    fn new() -> Self {
        let uplinks = Uplinks::new(&[parent()], PortId(1), 2);
        let config =
            Config { boot: 42, lease_ms: LEASE_MS, memory_bytes: 1 << 20, uplinks, ..Config::default() };
        Self { switch: Switch::new(Config { parts: THREADS, ..config }), now_ms: 1 }
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.now_ms * 1_000_000)
    }

    fn join(&mut self, host: u8, join: JoinRepr) -> AckRepr<'static> {
        let packet = control(JOB, 1, ControlBody::Join(join));
        let now = self.now();
        ack(&join_from(&mut self.switch, now, &endpoint(host), &packet))
    }

    /// Advances the time, and returns the request id of the Join to the parent.
    fn join_of_child(&mut self) -> u32 {
        for _ in 0..1000 {
            self.now_ms += 1;
            let now = self.now();
            self.switch.handle_timeout(now);
            while let Some(transmit) = self.switch.poll_transmit() {
                let to_parent = transmit.recipients().any(|to| to.peer == parent());
                if let Some(packet) = ControlPacket::new_checked(transmit.payload).ok().filter(|_| to_parent)
                    && let Ok(ControlRepr { request, body: ControlBody::Join(join), .. }) =
                        ControlRepr::parse(&packet)
                {
                    assert!(join.part);
                    return request;
                }
            }
        }
        panic!("the child did not join its parent");
    }

    fn answer_of_parent(&mut self, request: u32, ack: AckRepr<'_>) {
        let packet = control(JOB, request, ControlBody::Ack(ack));
        let unspecified = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
        let from = Endpoint {
            port: PortId(1),
            peer: parent(),
            local: unspecified,
            peer_mac: [0; 6],
            local_mac: [0; 6],
        };
        self.switch.handle_datagrams(self.now(), &from, Class::Control, &packet, packet.len());
        while self.switch.poll_transmit().is_some() {}
    }
}

fn granted(parts: u8) -> AckRepr<'static> {
    AckRepr {
        members: 1,
        window: 10,
        boot: 77,
        lease_ms: 400,
        history: 5,
        weight: 2,
        parts,
        ..AckRepr::bare(Action::Join, Status::Success)
    }
}

#[test]
fn a_child_switch_announces_no_more_parts_than_its_parent() {
    let mut child = Child::new();
    assert_eq!(child.join(1, part(2)).parts, THREADS);
    assert_eq!(child.join(2, part(2)).parts, THREADS);
    let request = child.join_of_child();
    child.answer_of_parent(request, granted(2));
    // The members learn the number of parts from the answers to the Joins that they repeat.
    assert_eq!(child.join(1, part(2)).parts, 2);
    assert_eq!(child.join(3, JoinRepr { query: true, ..part(2) }).parts, 2);
    child.answer_of_parent(request, granted(8));
    assert_eq!(child.join(1, part(2)).parts, THREADS);
}

#[test]
fn a_child_switch_passes_on_the_length_of_the_part_that_its_parent_expects() {
    let mut child = Child::new();
    child.join(1, part(2));
    child.join(2, part(2));
    let request = child.join_of_child();
    let mismatch =
        AckRepr { status: Status::GradientLenMismatch, expected: 3, parts: THREADS, ..granted(THREADS) };
    child.answer_of_parent(request, mismatch);
    for host in 1..=3 {
        let refused = child.join(host, part(2));
        assert_eq!((refused.status, refused.expected), (Status::GradientLenMismatch, 3));
    }
    assert_eq!(child.switch.jobs().count(), 0);
    let other = JoinRepr { gradient_len: 3, ..part(2) };
    assert_eq!(child.join(1, other).status, Status::Success);
    // After a while, the job of the parent may have ended, so the switch asks the parent again.
    let mut later = Child::new();
    later.join(1, part(1));
    let request = later.join_of_child();
    later.answer_of_parent(request, mismatch);
    assert_eq!(later.join(1, part(1)).status, Status::GradientLenMismatch);
    later.now_ms += 2000;
    assert_eq!(later.join(1, part(1)).status, Status::Success);
}
