//! Workers with a key join, sum and rejoin, and ignore packets from senders without the key.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::thread;
use std::time::Duration;

use iswitch::worker::auth::Authenticator;
use iswitch::worker::protocol::Finished;
use iswitch::worker::session::{JoinProgress, Session, SessionConfig};
use iswitch::{GradientAggregator, JoinError, JoinOptions, Key, Worker};
use iswitch_protocol::auth::{Direction, NO_SESSION};
use iswitch_protocol::limits::{DEFAULT_TAGGED_SEGMENT_FLOATS, TRAILER_LEN_BYTES};
use iswitch_protocol::wire::{
    AckRepr, Action, Class, ControlBody, ControlRepr, JoinRepr, NameRepr, Status, emit_seg,
};
use iswitch_protocol::{Instant, Round, Seg, SegmentIndex, VectorLayout};
use iswitch_runtime::embedded::{EmbeddedOptions, EmbeddedSwitch, random_secret};
use iswitch_switch::{Config, Endpoint, Keys, PortId, Switch};

use crate::switches::own_address;

const JOB: u32 = 3;
const LEN: u32 = 10;
const SEGMENT_FLOATS: u16 = 4;
const BOOT: u64 = 77;
const SUM: f32 = 5.0;

fn key(byte: u8) -> Key {
    Key::new(&[byte; 32]).unwrap()
}

fn keys() -> Keys {
    let mut keys = Keys::new(random_secret().unwrap());
    keys.insert(Some(JOB), key(1));
    keys
}

/// Switch and one worker, connected by a simulated link without faults.
struct Pair {
    switch: Switch,
    worker: Session,
    now: Instant,
    to_worker: Vec<(Class, Vec<u8>)>,
}

fn switch(boot: u64) -> Switch {
    Switch::with_keys(Config { boot, memory_bytes: 1 << 20, ..Config::default() }, keys())
}

impl Pair {
    fn new() -> Self {
        let layout = VectorLayout::new(LEN, SEGMENT_FLOATS).unwrap();
        let join = JoinRepr { instance: 9, tagged: true, ..JoinRepr::worker(LEN, SEGMENT_FLOATS, 1) };
        let now = Instant::from_nanos(1);
        let config = SessionConfig {
            job: JOB,
            layout,
            parts: 1,
            join,
            recv_buffer_bytes: 1 << 20,
            heartbeats: true,
            name: NameRepr::UNKNOWN,
        };
        let worker = Session::new(config, now).with_key(Authenticator::new(key(1), 1_000));
        let mut pair = Self { switch: switch(BOOT), worker, now, to_worker: Vec::new() };
        pair.run();
        assert_eq!(pair.worker.join_progress(), JoinProgress::Joined);
        pair
    }

    /// Delivers packets in both directions until neither side has packets left to send.
    fn run(&mut self) {
        let peer = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 5000);
        let from = Endpoint { port: PortId(0), peer, local: peer, peer_mac: [0; 6], local_mac: [0; 6] };
        let (contribution, mut buffer) = ([SUM; LEN as usize], Vec::new());
        while let Some((class, stride)) = self.worker.poll_transmit(self.now, &contribution, &mut buffer) {
            self.switch.handle_datagrams(self.now, &from, class, &buffer, stride);
            while let Some(transmit) = self.switch.poll_transmit() {
                let packets = transmit.payload.chunks(transmit.stride);
                self.to_worker.extend(packets.map(|bytes| (transmit.class, bytes.to_vec())));
                self.worker.handle_datagrams(self.now, transmit.class, transmit.payload, transmit.stride);
            }
        }
    }

    /// Advances the clock so that the worker requests its missing results.
    fn let_time_pass(&mut self) {
        self.now = self.worker.poll_timeout().unwrap_or(self.now).max(self.now);
        self.worker.handle_timeout(self.now);
        self.run();
    }

    fn sum_a_round(&mut self) -> Finished {
        self.worker.begin_round(self.now);
        self.run();
        let finished = self.worker.take_outcome().unwrap().unwrap();
        assert!(self.worker.sum().iter().all(|x| x.to_bits() == SUM.to_bits()));
        finished
    }
}

fn forged_ack(status: Status, action: Action, boot: u64) -> ControlBody<'static> {
    ControlBody::Ack(AckRepr {
        members: 1,
        threshold: 1,
        round: Round::new(5_000),
        window: 1,
        formed: true,
        boot,
        lease_ms: 1,
        history: 123,
        weight: 1,
        ..AckRepr::bare(action, status)
    })
}

/// Returns the packets that a sender without the key can forge: packets of any session that are unsigned or signed with
/// a different key.
fn forgeries() -> Vec<(Class, Vec<u8>)> {
    let mut bodies = vec![ControlBody::Halt];
    for action in [Action::Join, Action::Help, Action::Ack, Action::Leave] {
        let statuses = [Status::UnknownMember, Status::StaleRound, Status::Halted, Status::NonFinite];
        bodies.extend(statuses.map(|status| forged_ack(status, action, BOOT)));
        bodies.push(forged_ack(Status::Success, action, BOOT + 1));
        bodies.push(forged_ack(Status::Challenge, action, BOOT));
    }
    let mut forgeries = Vec::new();
    for body in bodies {
        for request in 0..4 {
            let repr = ControlRepr { job: JOB, request, body };
            let mut packet = vec![0; repr.buffer_len()];
            repr.emit(&mut packet);
            forgeries.push((Class::Control, packet.clone()));
            packet.resize(packet.len() + TRAILER_LEN_BYTES, 0);
            for counter in [1_000, 1_001, u64::MAX] {
                key(2).sign(Direction::ToMember, NO_SESSION, counter, &mut packet);
                forgeries.push((Class::Control, packet.clone()));
            }
        }
    }
    for index in 0..3 {
        let index = SegmentIndex::new(index).unwrap();
        let mut packet = vec![0; 8 + 4 * if index.get() == 2 { 2 } else { 4 }];
        emit_seg(&mut packet, Seg { index, round: Round::new(1), contributions: 1 });
        forgeries.push((Class::Data, packet.clone()));
        packet.extend([0; 8]);
        key(2).result_key(BOOT, JOB).sign(&mut packet);
        forgeries.push((Class::Data, packet));
    }
    forgeries
}

#[test]
fn forged_and_replayed_packets_are_ignored() {
    let mut pair = Pair::new();
    let first = pair.sum_a_round();
    pair.let_time_pass();
    let recorded = pair.to_worker.clone();
    assert!(recorded.len() >= 5, "expected a challenge, a grant and three results");
    // The attack happens in the middle of a round, which has begun without any packet having been sent.
    pair.worker.begin_round(pair.now);
    let ignored = pair.worker.counters().ignored;
    let attacks = [forgeries(), recorded].concat();
    for (class, bytes) in &attacks {
        pair.worker.handle_datagrams(pair.now, *class, bytes, bytes.len());
    }
    assert_eq!(pair.worker.counters().ignored - ignored, attacks.len() as u64);
    assert_eq!(pair.worker.take_outcome(), None);
    pair.run();
    let finished = pair.worker.take_outcome().unwrap().unwrap();
    assert_eq!((finished.round, pair.worker.rejoins()), (first.round.next(), 0));
    assert!(pair.worker.sum().iter().all(|x| x.to_bits() == SUM.to_bits()));
}

#[test]
fn forged_packets_do_not_prevent_a_worker_from_rejoining() {
    let mut pair = Pair::new();
    let recorded = pair.to_worker.clone();
    // The switch restarts; the worker learns of it from an answer to its Help and begins to rejoin.
    pair.switch = switch(BOOT + 1);
    pair.worker.begin_round(pair.now);
    while pair.worker.join_progress() == JoinProgress::Joined && pair.worker.rejoins() == 0 {
        for (class, bytes) in [forgeries(), recorded.clone()].concat() {
            pair.worker.handle_datagrams(pair.now, class, &bytes, bytes.len());
        }
        pair.let_time_pass();
    }
    let finished = loop {
        for (class, bytes) in [forgeries(), recorded.clone()].concat() {
            pair.worker.handle_datagrams(pair.now, class, &bytes, bytes.len());
        }
        match pair.worker.take_outcome() {
            Some(outcome) => break outcome.unwrap(),
            None => pair.let_time_pass(),
        }
    };
    assert_eq!(pair.worker.rejoins(), 1);
    assert_eq!(Some(pair.worker.membership().unwrap().boot), pair.switch.epoch_of(JOB));
    assert_eq!(finished.fewest, 1);
}

fn start(keys: Keys) -> EmbeddedSwitch {
    let address = own_address();
    EmbeddedSwitch::start_with_keys(address, &EmbeddedOptions::default(), keys).unwrap()
}

fn options(address: SocketAddrV4, workers: u16) -> JoinOptions {
    JoinOptions {
        job: JOB,
        workers_timeout: Some(Duration::from_secs(30)),
        connect_timeout: Duration::from_millis(300),
        ..JoinOptions::new(address, workers, 10_000)
    }
}

#[test]
fn workers_with_the_key_aggregate_over_udp() {
    for tag_data in [false, true] {
        let switch = start(keys());
        let workers: Vec<_> = (0..3u8)
            .map(|rank| {
                let options = JoinOptions {
                    connect_timeout: Duration::from_secs(10),
                    ..options(switch.address(), 3).with_key(key(1), tag_data)
                };
                assert!(!tag_data || options.segment_floats == DEFAULT_TAGGED_SEGMENT_FLOATS);
                thread::spawn(move || {
                    let mut worker = Worker::join(options).unwrap();
                    for round in 0..50u8 {
                        let mut vector = vec![f32::from(rank) + f32::from(round); 10_000];
                        assert_eq!(worker.all_reduce(&mut vector).unwrap().contributors, 3);
                        let sum = 3.0 + 3.0 * f32::from(round);
                        assert!(vector.iter().all(|x| x.to_bits() == sum.to_bits()));
                    }
                    worker
                })
            })
            .collect();
        let mut workers: Vec<_> = workers.into_iter().map(|worker| worker.join().unwrap()).collect();
        workers[0].set_threshold(2).unwrap();
        let snapshot = switch.snapshot().unwrap();
        assert!(snapshot.jobs[0].authenticated && snapshot.jobs[0].tagged == tag_data);
        assert_eq!(snapshot.jobs[0].threshold, 2);
        assert_eq!(snapshot.drops.get("not_authentic"), 0);
        workers.into_iter().for_each(|worker| worker.leave().unwrap());
        assert_eq!(switch.snapshot().unwrap().jobs.len(), 0);
    }
}

#[test]
fn the_error_reports_a_mismatched_key() {
    let (keyed, open) = (start(keys()), start(Keys::default()));
    let error = |options: JoinOptions| Worker::join(options).unwrap_err();
    let wrong = error(options(keyed.address(), 1).with_key(key(2), false));
    assert!(matches!(wrong, JoinError::KeyRefused { job: JOB, has_key: true, .. }), "{wrong}");
    assert!(wrong.to_string().ends_with("the switch says that the job has a different key"), "{wrong}");
    let late = Worker::join_with_state(options(keyed.address(), 1).with_key(key(2), false)).unwrap_err();
    assert_eq!(late.to_string().split("within").count(), 2);
    assert!(matches!(late, JoinError::KeyRefused { has_key: true, .. }), "{late}");
    let needless = error(options(open.address(), 1).with_key(key(1), false));
    assert!(matches!(needless, JoinError::KeyRefused { has_key: false, .. }), "{needless}");
    let missing = error(options(keyed.address(), 1));
    assert!(matches!(missing, JoinError::Refused { status: Status::NotAuthentic, .. }));
    let expected = "the switch refused the Join: job 3 has a key, but this worker has none";
    assert_eq!(missing.to_string(), expected);
    let tags = error(JoinOptions { tag_data: true, ..options(keyed.address(), 1) });
    assert!(matches!(tags, JoinError::TagsWithoutKey));
    // A path whose MTU is too small, or the lack of a switch, must not be reported as a wrong key.
    drop(open);
    assert_eq!(keyed.snapshot().unwrap().jobs.len(), 0);
    assert!(keyed.snapshot().unwrap().drops.get("not_authentic") > 1);
}

#[test]
fn a_worker_with_the_key_can_query_the_job() {
    let switch = start(keys());
    let alone = options(switch.address(), 1).with_key(key(1), false);
    let (_worker, state) = Worker::join_with_state(alone).unwrap();
    assert_eq!(state, None, "no job should exist yet");
}

#[test]
fn data_tags_of_all_workers_must_agree() {
    let switch = start(keys());
    let _first = Worker::join(options(switch.address(), 1).with_key(key(1), true)).unwrap();
    let mut untagged = options(switch.address(), 1).with_key(key(1), false);
    untagged.segment_floats = DEFAULT_TAGGED_SEGMENT_FLOATS;
    let error = Worker::join(untagged).unwrap_err();
    assert_eq!(error.to_string(), "the switch refused the Join: tags of data packets: false, expected true");
}
