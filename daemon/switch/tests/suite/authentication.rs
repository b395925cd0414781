//! Jobs with a key: members can join and sum, and no other sender can change the job.

use crate::common::*;
use iswitch_protocol::auth::{Direction, NO_SESSION};
use iswitch_protocol::limits::{DATA_TAG_LEN_BYTES, MAX_TAGGED_SEGMENT_FLOATS, TRAILER_LEN_BYTES};
use iswitch_protocol::wire::control::{SegmentSetRepr, answer_challenge};
use iswitch_protocol::wire::{
    AckRepr, Action, Class, ControlBody, ControlPacket, ControlRepr, DataPacket, JoinRepr, NameRepr,
    ResumeRepr, Status,
};
use iswitch_protocol::{ElementType, ElementTypes, Key, Round};
use iswitch_switch::{Config, Counters, DropReason, Endpoint, Event, JobStatus, Keys, Switch};
use proptest::prelude::*;

const BOOT: u64 = 42;

fn key() -> Key {
    Key::new(b"the key of this job").unwrap()
}

fn other_key() -> Key {
    Key::new(b"the key of another job").unwrap()
}

/// A datagram and the host that it comes from or is sent to.
type Datagram = (u8, Class, Vec<u8>);

/// A switch with a key for the job, and all datagrams that it has received and sent.
struct World {
    harness: Harness,
    recorded: Vec<Datagram>,
}

impl World {
    fn new() -> Self {
        Self { harness: Harness::new(), recorded: Vec::new() }.restarted(BOOT, [1; 16])
    }

    /// Restarts the switch with another boot id and secret.
    fn restarted(mut self, boot: u64, secret: [u8; 16]) -> Self {
        let mut keys = Keys::new(secret);
        assert!(keys.insert(Some(JOB), key()));
        let config = Config { boot, lease_ms: LEASE_MS, memory_bytes: 1 << 20, ..Config::default() };
        self.harness.switch = Switch::with_keys(config, keys);
        self
    }

    /// Delivers a datagram, and returns the packets that the switch sends, with their recipients.
    fn deliver(&mut self, from: u8, class: Class, bytes: &[u8]) -> Vec<Datagram> {
        let now = self.harness.now();
        self.harness.switch.handle_datagrams(now, &endpoint(from), class, bytes, bytes.len());
        let mut sent = Vec::new();
        while let Some(transmit) = self.harness.switch.poll_transmit() {
            for recipient in transmit.recipients() {
                let to = recipient.peer.ip().octets()[3];
                let packets = transmit.payload.chunks(transmit.stride);
                sent.extend(packets.map(|bytes| (to, transmit.class, bytes.to_vec())));
            }
        }
        self.recorded.push((from, class, bytes.to_vec()));
        self.recorded.extend(sent.iter().cloned());
        sent
    }

    fn state(&self) -> Vec<JobStatus> {
        self.harness.switch.jobs().collect()
    }

    /// Advances the time a little, so that a renewal of a lease can be detected.
    fn wait(&mut self) {
        self.harness.now_ms += 1;
        let now = self.harness.now();
        self.harness.switch.handle_timeout(now);
    }

    fn counters(&self) -> Counters {
        *self.harness.counters()
    }
}

fn sign(key: &Key, context: u64, counter: u64, request: u32, body: ControlBody<'_>) -> Vec<u8> {
    let mut packet = control(JOB, request, body);
    packet.resize(packet.len() + TRAILER_LEN_BYTES, 0);
    key.sign(Direction::ToSwitch, context, counter, &mut packet);
    packet
}

fn parse(bytes: &[u8]) -> (ControlPacket<'_>, ControlRepr<'_>) {
    let packet = ControlPacket::new_checked(bytes).unwrap();
    (packet, ControlRepr::parse(&packet).unwrap())
}

fn ack(bytes: &[u8]) -> AckRepr<'_> {
    let ControlBody::Ack(ack) = parse(bytes).1.body else { panic!("expected an Ack, got {bytes:?}") };
    ack
}

/// Returns the counter of an authentic packet from the switch that was signed in this context, or `None` if the packet
/// is not authentic.
fn counter(bytes: &[u8], context: u64) -> Option<u64> {
    key().verify(Direction::ToMember, context, &parse(bytes).0)
}

/// A member that follows the specification.
#[derive(Clone)]
struct Client {
    host: u8,
    instance: u32,
    counter: u64,
    session: u64,
    tagged: bool,
}

impl Client {
    fn new(host: u8, tagged: bool) -> Self {
        Self { host, instance: u32::from(host), counter: 1000 * u64::from(host), session: 0, tagged }
    }

    fn join(&self, workers: u16) -> JoinRepr {
        JoinRepr { instance: self.instance, nonce: self.session, tagged: self.tagged, ..join(workers) }
    }

    fn send(&mut self, world: &mut World, body: ControlBody<'_>) -> Vec<Datagram> {
        self.counter += 1;
        let context = if matches!(body, ControlBody::Join(_)) { NO_SESSION } else { self.session };
        let packet = sign(&key(), context, self.counter, 7, body);
        world.deliver(self.host, Class::Control, &packet)
    }

    /// Makes this member join a job of `workers` workers, and returns the Ack.
    fn enter(&mut self, world: &mut World, workers: u16) -> Vec<u8> {
        let sent = self.send(world, ControlBody::Join(self.join(workers)));
        let (_, _, challenge) = &sent[0];
        assert_eq!((ack(challenge).action, ack(challenge).status), (Action::Join, Status::Challenge));
        assert_eq!(
            counter(challenge, NO_SESSION),
            Some(self.counter),
            "the challenge should answer this Join"
        );
        self.session = ack(challenge).history;
        let sent = self.send(world, ControlBody::Join(self.join(workers)));
        let (_, _, answer) = sent.into_iter().find(|(to, ..)| *to == self.host).unwrap();
        assert!(counter(&answer, self.session).is_some(), "the Ack should be part of the session");
        answer
    }

    /// Contributes to all segments of a round.
    fn contribute(&self, world: &mut World, round: u32) -> Vec<Datagram> {
        let x = f32::from(self.host);
        let mut sent = Vec::new();
        for (index, floats) in [(0, &[x, x][..]), (1, &[x, x]), (2, &[x])] {
            let mut packet = data(index, round, floats);
            if self.tagged {
                packet.extend([0; DATA_TAG_LEN_BYTES]);
                key().contribution_key(self.session).sign(&mut packet);
            }
            sent.extend(world.deliver(self.host, Class::Data, &packet));
        }
        sent
    }
}

/// Makes both members join a job of two members, and returns its first round.
fn enter_all(world: &mut World, clients: &mut [Client; 2]) -> u32 {
    let answers = clients.each_mut().map(|client| client.enter(world, 2));
    ack(&answers[1]).round.get()
}

/// Returns a job that has the members 1 and 2.
fn formed(tagged: bool) -> (World, [Client; 2]) {
    let mut world = World::new();
    let mut clients = [Client::new(1, tagged), Client::new(2, tagged)];
    for client in &mut clients {
        assert_eq!(ack(&client.enter(&mut world, 2)).status, Status::Success);
    }
    (world, clients)
}

/// Makes both members sum a round, and checks the sum and its tags. The switch may also send other packets.
fn check_round(world: &mut World, clients: &[Client; 2], round: u32) {
    let epoch = world.state().iter().find(|job| job.job == JOB).expect("the job should exist").boot;
    clients[0].contribute(world, round);
    let results = clients[1].contribute(world, round);
    let results = results.iter().filter(|(_, class, _)| *class == Class::Data);
    let mut seen = 0;
    for (_, _, bytes) in results {
        let content = if clients[0].tagged {
            key().result_key(epoch, JOB).verify(bytes).expect("the result should be tagged")
        } else {
            bytes
        };
        let packet = DataPacket::new_checked(content).unwrap();
        assert_eq!((packet.seg().round.get(), packet.seg().contributions), (round, 2));
        assert!(packet.floats().all(|sum| sum.to_bits() == 3.0f32.to_bits()));
        seen += 1;
    }
    assert_eq!(seen, 6, "both members should get three segments");
}

#[test]
fn authenticated_members_aggregate_with_and_without_tags() {
    for tagged in [false, true] {
        let (mut world, clients) = formed(tagged);
        (0..3).for_each(|round| check_round(&mut world, &clients, round));
        let state = world.state();
        assert!(state[0].authenticated && state[0].tagged == tagged && state[0].formed);
        assert_eq!(world.counters().dropped(), 0);
    }
}

#[test]
fn the_completion_notice_is_authenticated_within_the_session() {
    let mut world = World::new();
    let (mut first, mut second) = (Client::new(1, false), Client::new(2, false));
    let waiting = counter(&first.enter(&mut world, 2), first.session).unwrap();
    second.enter(&mut world, 2);
    let notices: Vec<_> = world
        .recorded
        .iter()
        .filter(|(to, _, bytes)| {
            *to == 1 && counter(bytes, first.session).is_some_and(|counter| counter > waiting)
        })
        .collect();
    assert_eq!(notices.len(), 1);
    assert!(ack(&notices[0].2).formed);
}

#[test]
fn senders_without_the_key_get_refusals_no_longer_than_their_packets() {
    let (mut world, _) = formed(false);
    let bare = control(JOB, 3, ControlBody::Join(join(2)));
    let forged = sign(&other_key(), NO_SESSION, 1 << 60, 3, ControlBody::Join(join(2)));
    for packet in [&bare, &forged] {
        for host in [1, 9] {
            let (state, before) = (world.state(), world.counters());
            let sent = world.deliver(host, Class::Control, packet);
            assert_eq!(sent.len(), 1);
            let refusal = ack(&sent[0].2);
            assert_eq!((refusal.status, refusal.expected), (Status::NotAuthentic, 1));
            assert!(!parse(&sent[0].2).0.is_authenticated() && sent[0].2.len() <= packet.len());
            assert_eq!(world.harness.only_drop_since(&before), Some(DropReason::NotAuthentic));
            assert_eq!(world.state(), state);
        }
    }
    let is_refusal = |event: &Event| matches!(event, Event::JoinRefused { status: Status::NotAuthentic, .. });
    assert_eq!(world.harness.events().iter().filter(|event| is_refusal(event)).count(), 4);
    for (body, len) in [(ControlBody::Leave, 12), (ControlBody::FBcast(range(0, 0, 3)), 24)] {
        let packet = control(JOB, 3, body);
        assert_eq!(world.deliver(1, Class::Control, &packet).len(), 1);
        assert_eq!(world.deliver(1, Class::Control, &packet[..len]), [], "the answer would be too long");
    }
    for body in [ControlBody::Halt, ControlBody::SetH { threshold: 1 }] {
        assert_eq!(
            world.deliver(1, Class::Control, &control(JOB, 3, body)),
            [],
            "the answer would be too long"
        );
    }
    assert_eq!(world.counters().drops(DropReason::NotAuthentic), 10);
}

#[test]
fn a_signed_join_of_a_job_without_a_key_is_refused() {
    let mut world = World::new();
    let mut keyless = Harness::new();
    let packet = sign(&key(), NO_SESSION, 1, 3, ControlBody::Join(join(1)));
    let expected = Sent::Ack {
        to: 1,
        request: 3,
        status: Status::NotAuthentic,
        round: 0,
        expected: 0,
        missing: Vec::new(),
    };
    assert_eq!(keyless.send(1, Class::Control, &packet), [expected]);
    // The key of one job is not valid for another.
    let mut foreign = control(JOB + 1, 3, ControlBody::Join(join(1)));
    let challenge = world.deliver(1, Class::Control, &foreign);
    assert!(answer_challenge(&mut foreign, &challenge[0].2));
    world.deliver(1, Class::Control, &foreign);
    assert_eq!(world.state()[0].job, JOB + 1, "a job without a key should need none");
    assert!(!world.state()[0].authenticated);
}

#[test]
fn tags_must_be_declared_and_require_a_key() {
    let (mut world, _) = formed(true);
    let mut late = Client::new(3, false);
    let refusal = late.enter_refused(&mut world);
    assert_eq!((ack(&refusal).status, ack(&refusal).expected), (Status::TagMismatch, 1));
    let mut keyless = Harness::new();
    let tagged = JoinRepr { tagged: true, ..join(1) };
    let sent = keyless.control(1, 3, ControlBody::Join(tagged));
    assert!(matches!(sent[0], Sent::Ack { status: Status::TagMismatch, expected: 0, .. }), "{sent:?}");
}

#[test]
fn tagged_segments_leave_room_for_the_tag() {
    let half = ElementTypes::uniform(ElementType::Bf16);
    let cases = [
        (ElementTypes::F32, MAX_TAGGED_SEGMENT_FLOATS),
        (half, 2 * MAX_TAGGED_SEGMENT_FLOATS),
        (ElementTypes::with_wide_results(ElementType::Bf16), MAX_TAGGED_SEGMENT_FLOATS),
    ];
    for (elements, most) in cases {
        for (segment_floats, status) in [(most, Status::Success), (most + 1, Status::BadLayout)] {
            let mut world = World::new();
            let mut large = Client::new(3, true);
            let sent = large.send(&mut world, ControlBody::Join(large.join(1)));
            large.session = ack(&sent[0].2).history;
            let join = JoinRepr { gradient_len: 5000, segment_floats, elements, ..large.join(1) };
            let sent = large.send(&mut world, ControlBody::Join(join));
            assert_eq!(ack(&sent[0].2).status, status, "{segment_floats} elements of type {elements}");
        }
    }
}

impl Client {
    /// Makes this member join, checks that the refusal answers this Join, and returns it.
    fn enter_refused(&mut self, world: &mut World) -> Vec<u8> {
        let sent = self.send(world, ControlBody::Join(self.join(2)));
        self.session = ack(&sent[0].2).history;
        let sent = self.send(world, ControlBody::Join(self.join(2)));
        assert_eq!(counter(&sent[0].2, NO_SESSION), Some(self.counter));
        sent[0].2.clone()
    }
}

/// Section 14, N-4.
#[test]
fn a_name_without_the_key_has_no_effect() {
    let (mut world, mut clients) = formed(false);
    let name = |job: &str| NameRepr { job: job.parse().unwrap(), rank: Some(1), ..NameRepr::UNKNOWN };
    let shown = |world: &World| world.state()[0].name.clone();
    let session = clients[0].session;
    for packet in [
        control(JOB, 7, ControlBody::Name(name("forged"))),
        sign(&other_key(), session, 9000, 7, ControlBody::Name(name("forged"))),
        sign(&key(), session, 1, 7, ControlBody::Name(name("replayed"))),
    ] {
        world.deliver(1, Class::Control, &packet);
        assert_eq!(shown(&world), None);
    }
    let sent = clients[0].send(&mut world, ControlBody::Name(name("ppo")));
    assert_eq!((ack(&sent[0].2).action, ack(&sent[0].2).status), (Action::Name, Status::Success));
    assert!(counter(&sent[0].2, session).is_some(), "the Ack should be part of the session");
    assert_eq!(shown(&world), Some("ppo".to_owned()));
}

#[test]
fn a_restarted_process_needs_a_new_nonce_but_a_repeated_join_does_not() {
    let (mut world, mut clients) = formed(false);
    let sent = clients[0].send(&mut world, ControlBody::Join(clients[0].join(2)));
    assert_eq!(ack(&sent[0].2).status, Status::Success);
    assert!(counter(&sent[0].2, clients[0].session).is_some());
    // The counters of the restarted process begin lower, and it does not know the session.
    let old = clients[0].session;
    clients[0] = Client { instance: 99, counter: 0, session: 0, ..clients[0] };
    assert_eq!(ack(&clients[0].enter(&mut world, 2)).status, Status::Success);
    assert_ne!(clients[0].session, old);
    assert_eq!(world.state()[0].members.len(), 2);
    check_round(&mut world, &clients, 0);
}

#[test]
fn replayed_results_are_rejected_after_round_numbers_wrap() {
    let (mut world, mut clients) = formed(true);
    let epoch = |world: &World| world.state()[0].boot;
    let first = epoch(&world);
    clients[0].contribute(&mut world, 0);
    let recorded = clients[1].contribute(&mut world, 0);
    let recorded = &recorded.iter().find(|(_, class, _)| *class == Class::Data).expect("expected a result").2;
    assert!(key().result_key(first, JOB).verify(recorded).is_some());
    // Ended jobs and the claims of resuming members advance the round numbers until they wrap to the same round.
    for claim in [0x7f_0000, 0xfe_0000, 0xff_ffff_u32] {
        world.harness.sleep(u64::from(2 * LEASE_MS));
        assert!(world.state().is_empty());
        let resume = ResumeRepr {
            round: Round::new(claim),
            members: 2,
            weight: 2,
            threshold: 0,
            history: 7,
            previous: 0,
            behind: 0,
            fresh: false,
        };
        clients = [Client::new(1, true), Client::new(2, true)];
        for client in &mut clients {
            let join = |client: &Client| JoinRepr { resume: Some(resume), ..client.join(2) };
            let sent = client.send(&mut world, ControlBody::Join(join(client)));
            client.session = ack(&sent[0].2).history;
            let sent = client.send(&mut world, ControlBody::Join(join(client)));
            assert_eq!(ack(&sent[0].2).status, Status::Success);
        }
        assert_ne!(epoch(&world), first);
        assert!(
            key().result_key(epoch(&world), JOB).verify(recorded).is_none(),
            "the result key should have changed"
        );
    }
}

#[test]
fn the_notice_to_a_forgotten_member_echoes_its_counter() {
    let (mut world, mut clients) = formed(false);
    world.harness.sleep(u64::from(2 * LEASE_MS));
    assert!(world.state().is_empty());
    let sent = clients[0].send(&mut world, ControlBody::Leave);
    assert_eq!(ack(&sent[0].2).status, Status::UnknownMember);
    assert_eq!(counter(&sent[0].2, NO_SESSION), Some(clients[0].counter));
}

#[test]
fn packets_with_old_counters_are_dropped() {
    let (mut world, mut clients) = formed(false);
    let set =
        |counter, threshold| sign(&key(), clients[0].session, counter, 3, ControlBody::SetH { threshold });
    let (older, newer) = (set(5000, 1), set(5001, 2));
    assert_eq!(world.deliver(1, Class::Control, &newer).len(), 1);
    let before = world.counters();
    assert_eq!(world.deliver(1, Class::Control, &older), [], "a delayed older packet should be dropped");
    assert_eq!(world.deliver(1, Class::Control, &newer), [], "a repeated packet should be dropped");
    assert_eq!(world.counters().drops(DropReason::Replayed), before.drops(DropReason::Replayed) + 2);
    assert_eq!(world.state()[0].threshold, 2);
    clients[0].counter = 5001;
    assert_eq!(clients[0].send(&mut world, ControlBody::Halt).len(), 3, "expected two notices and the Ack");
}

/// Sends the first segment of round 0, and returns the MAC addresses to which the switch sends its next packet.
fn macs_of_next(world: &mut World, from: &Endpoint, bytes: &[u8]) -> Vec<[u8; 6]> {
    let now = world.harness.now();
    world.harness.switch.handle_datagrams(now, from, Class::Data, bytes, bytes.len());
    let transmit = world.harness.switch.poll_transmit();
    let macs = transmit.map_or(Vec::new(), |transmit| transmit.recipients().map(|to| to.peer_mac).collect());
    while world.harness.switch.poll_transmit().is_some() {}
    macs
}

#[test]
fn forged_data_do_not_redirect_the_results_of_a_member_with_a_key() {
    let forger = Endpoint { peer_mac: [2, 0, 0, 0, 0, 9], ..endpoint(1) };
    let first = data(0, 0, &[1.0, 1.0]);
    for tagged in [false, true] {
        let (mut world, clients) = formed(tagged);
        let genuine = |client: &Client| {
            let mut packet = first.clone();
            if tagged {
                packet.extend([0; DATA_TAG_LEN_BYTES]);
                key().contribution_key(client.session).sign(&mut packet);
            }
            packet
        };
        if tagged {
            macs_of_next(&mut world, &endpoint(1), &genuine(&clients[0]));
        }
        macs_of_next(&mut world, &forger, &first);
        assert_eq!(
            world.counters().contributions,
            1,
            "without tags, the forged contribution should be summed"
        );
        let macs = macs_of_next(&mut world, &endpoint(2), &genuine(&clients[1]));
        assert_eq!(macs, [endpoint(1).peer_mac, endpoint(2).peer_mac], "tagged: {tagged}");
    }
}

#[test]
fn forged_and_replayed_packets_do_not_renew_a_lease() {
    let (mut world, clients) = formed(true);
    check_round(&mut world, &clients, 0);
    let recorded = world.recorded.clone();
    for _ in 0..20 {
        world.harness.sleep(u64::from(LEASE_MS / 10));
        for (from, class, bytes) in &recorded {
            world.deliver(*from, *class, bytes);
        }
    }
    assert_eq!(world.state(), []);
    assert_eq!(world.counters().expelled, 2);
}

/// Attack that uses recorded packets.
#[derive(Clone, Debug)]
enum Attack {
    /// Replays a recorded packet from any address.
    Replay { which: prop::sample::Index, from: u8 },
    /// Sends a recorded packet with changed bits, possibly truncated.
    Change {
        which: prop::sample::Index,
        from: u8,
        at: prop::sample::Index,
        bits: u8,
        len: prop::sample::Index,
    },
    /// Sends arbitrary bytes.
    Invent { from: u8, is_data: bool, bytes: Vec<u8> },
    /// Sends a request without a trailer, or signed with another key.
    Forge { from: u8, which: u8, counter: u64, is_signed: bool },
}

fn attack() -> impl Strategy<Value = Attack> {
    use prop::sample::Index;
    let address = 1..4u8;
    prop_oneof![
        (any::<Index>(), address.clone()).prop_map(|(which, from)| Attack::Replay { which, from }),
        (any::<Index>(), address.clone(), any::<Index>(), 1..=u8::MAX, any::<Index>())
            .prop_map(|(which, from, at, bits, len)| Attack::Change { which, from, at, bits, len }),
        (address.clone(), any::<bool>(), prop::collection::vec(any::<u8>(), 0..150))
            .prop_map(|(from, is_data, bytes)| Attack::Invent { from, is_data, bytes }),
        (address, 0..7u8, any::<u64>(), any::<bool>())
            .prop_map(|(from, which, counter, is_signed)| Attack::Forge { from, which, counter, is_signed }),
    ]
}

fn forged_body(which: u8) -> ControlBody<'static> {
    match which {
        0 => ControlBody::Join(join(2)),
        1 => ControlBody::Leave,
        2 => ControlBody::RESET,
        3 => ControlBody::SetH { threshold: 1 },
        4 => ControlBody::FBcast(range(0, 0, 3)),
        5 => ControlBody::Help(SegmentSetRepr { range: range(0, 0, 0), bitmap: &[] }),
        _ => ControlBody::Halt,
    }
}

impl Attack {
    fn datagram(&self, recorded: &[Datagram]) -> Datagram {
        match self {
            Self::Replay { which, from } => {
                let (_, class, bytes) = which.get(recorded);
                (*from, *class, bytes.clone())
            }
            Self::Change { which, from, at, bits, len } => {
                let (_, class, bytes) = which.get(recorded);
                let mut bytes = bytes.clone();
                let position = at.index(bytes.len());
                bytes[position] ^= bits;
                // Most packets are not truncated.
                let len = len.index(4 * bytes.len()).max(position + 1).min(bytes.len());
                bytes.truncate(len);
                (*from, *class, bytes)
            }
            Self::Invent { from, is_data, bytes } => {
                (*from, if *is_data { Class::Data } else { Class::Control }, bytes.clone())
            }
            Self::Forge { from, which, counter, is_signed } => {
                let body = forged_body(*which);
                let packet = if *is_signed {
                    sign(&other_key(), NO_SESSION, *counter, 3, body)
                } else {
                    control(JOB, 3, body)
                };
                (*from, Class::Control, packet)
            }
        }
    }
}

/// Carries out attacks, and checks that they do not change the state of the jobs.
fn assault(world: &mut World, attacks: &[Attack]) {
    world.wait();
    let state = world.state();
    let recorded = world.recorded.clone();
    for attack in attacks {
        let (from, class, bytes) = attack.datagram(&recorded);
        world.deliver(from, class, &bytes);
        assert_eq!(world.state(), state, "{attack:?}");
    }
    world.recorded = recorded;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn no_attack_changes_a_job(attacks in prop::collection::vec(prop::collection::vec(attack(), 20), 8)) {
        let (mut world, mut clients) = formed(true);
        assault(&mut world, &attacks[0]);
        check_round(&mut world, &clients, 0);
        assault(&mut world, &attacks[1]);
        check_round(&mut world, &clients, 1);
        // Attack in the middle of a round.
        clients[0].contribute(&mut world, 2);
        assault(&mut world, &attacks[2]);
        check_round(&mut world, &clients, 2);
        clients[0].send(&mut world, ControlBody::SetH { threshold: 2 });
        clients[1].send(&mut world, ControlBody::Halt);
        assault(&mut world, &attacks[3]);
        clients[0].send(&mut world, ControlBody::RESET);
        assault(&mut world, &attacks[4]);
        let round = enter_all(&mut world, &mut clients);
        check_round(&mut world, &clients, round);
        // After a member has left, no recorded packet brings it back.
        clients[1].send(&mut world, ControlBody::Leave);
        assault(&mut world, &attacks[5]);
        clients[1].enter(&mut world, 2);
        assault(&mut world, &attacks[6]);
        check_round(&mut world, &clients, round + 1);
        // No packet of this run is accepted in the next run, which has a different boot id and different nonces.
        let mut world = world.restarted(BOOT + 1, [2; 16]);
        assault(&mut world, &attacks[7]);
        assert_eq!(world.state(), []);
    }
}

/// Replays every recorded packet of a whole job from every address after every later step.
#[test]
fn no_replayed_packet_changes_a_job() {
    let (mut world, mut clients) = formed(true);
    let everything = |world: &mut World| {
        for from in 1..4 {
            let attacks: Vec<_> = world.recorded.clone();
            world.wait();
            let state = world.state();
            let recorded = world.recorded.clone();
            for (_, class, bytes) in &attacks {
                world.deliver(from, *class, bytes);
                assert_eq!(world.state(), state);
            }
            world.recorded = recorded;
        }
    };
    everything(&mut world);
    check_round(&mut world, &clients, 0);
    everything(&mut world);
    clients[0].send(&mut world, ControlBody::RESET);
    everything(&mut world);
    let round = enter_all(&mut world, &mut clients);
    everything(&mut world);
    check_round(&mut world, &clients, round);
    for client in &mut clients {
        client.send(&mut world, ControlBody::Leave);
        everything(&mut world);
    }
    assert_eq!(world.state(), [], "a recorded Join should not create the job again");
    for client in &mut clients {
        client.enter(&mut world, 2);
        everything(&mut world);
    }
    check_round(&mut world, &clients, 4);
    let mut world = world.restarted(BOOT + 1, [2; 16]);
    everything(&mut world);
    assert_eq!(world.state(), []);
}

#[test]
fn a_running_job_keeps_its_key_until_it_ends() {
    for tagged in [false, true] {
        let (mut world, mut clients) = formed(tagged);
        let mut keys = Keys::new([9; 16]);
        assert!(keys.insert(Some(JOB), other_key()));
        let now = world.harness.now();
        world.harness.switch.obey(now, iswitch_switch::Order::SetKeys(keys)).unwrap();
        let round = round_of(&world);
        check_round(&mut world, &clients, round);
        // The answer to the last Leave needs the former key as well.
        for client in &mut clients {
            let sent = client.send(&mut world, ControlBody::Leave);
            let (_, _, answer) = sent.last().expect("the Leave should be acknowledged");
            assert!(counter(answer, client.session).is_some());
        }
        assert!(world.state().is_empty());
        let before = world.counters();
        clients[0].send(&mut world, ControlBody::Join(clients[0].join(2)));
        assert_eq!(
            world.harness.only_drop_since(&before),
            Some(DropReason::NotAuthentic),
            "a new job should have the new key"
        );
    }
}

/// Returns the round that the job sums next.
fn round_of(world: &World) -> u32 {
    let members = &world.state()[0].members;
    members.iter().map(|member| member.start_round).max().expect("the job should have members")
}
