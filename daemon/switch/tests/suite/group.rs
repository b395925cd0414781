//! Group delivery: which members receive results through the group of a job, and how they confirm and lose the group.

use std::net::SocketAddrV4;

use iswitch_protocol::Key;
use iswitch_protocol::auth::{Conversation, Direction};
use iswitch_protocol::limits::{GROUP_BITS, GROUP_NETWORK, MAX_GROUP_MISSES, PROBE_INTERVAL_MS};
use iswitch_protocol::wire::control::{SegmentSetRepr, answer_challenge};
use iswitch_protocol::wire::{Action, Class, ControlBody, ControlPacket, ControlRepr, JoinRepr, Kind, Mode};
use iswitch_switch::{Config, Endpoint, Event, GroupPorts, Instant, Keys, PortId};

use crate::common::{Harness, JOB, control, data, endpoint, join, range};

/// A packet from the switch, and its destination.
struct Packet {
    to: Endpoint,
    class: Class,
    bytes: Vec<u8>,
}

/// A switch and the packets that it has sent since they were last taken.
struct World {
    harness: Harness,
    sent: Vec<Packet>,
}

fn able(workers: u16) -> JoinRepr {
    JoinRepr { groups: true, ..join(workers) }
}

impl World {
    fn new(config: Config) -> Self {
        Self {
            harness: Harness::with(Config { memory_bytes: 1 << 20, group_delivery: true, ..config }),
            sent: Vec::new(),
        }
    }

    /// Returns a switch whose job has `workers` members that can hear a group.
    fn formed(workers: u8) -> Self {
        let mut world = Self::new(Config::default());
        (1..=workers).for_each(|host| world.join(JOB, host, able(workers.into())));
        world
    }

    /// Returns a switch whose job has `workers` members that hear its group.
    fn heard(workers: u8) -> Self {
        let mut world = Self::formed(workers);
        (1..=workers).for_each(|host| world.hear(host));
        assert_eq!(world.hearing(), (1..=workers).collect::<Vec<_>>());
        world.take();
        world
    }

    fn join(&mut self, job: u32, host: u8, join: JoinRepr) {
        let packet = control(job, 1, ControlBody::Join(join));
        let now = self.harness.now();
        self.join_at(now, &endpoint(host), packet);
    }

    /// Sends a Join, and repeats it with the nonce of the challenge.
    fn join_at(&mut self, now: Instant, from: &Endpoint, mut join: Vec<u8>) {
        let before = self.sent.len();
        self.harness.switch.handle_datagrams(now, from, Class::Control, &join, join.len());
        self.drain();
        let is_challenged =
            self.sent[before..].iter().any(|packet| answer_challenge(&mut join, &packet.bytes));
        if is_challenged {
            self.sent.truncate(before);
            self.harness.switch.handle_datagrams(now, from, Class::Control, &join, join.len());
            self.drain();
        }
    }

    fn send(&mut self, host: u8, class: Class, bytes: &[u8]) {
        self.harness.switch.handle_datagrams(self.harness.now(), &endpoint(host), class, bytes, bytes.len());
        self.drain();
    }

    fn control(&mut self, host: u8, body: ControlBody<'_>) {
        self.send(host, Class::Control, &control(JOB, 0, body));
    }

    fn drain(&mut self) {
        self.turn();
        while self.harness.switch.poll_timeout().is_some_and(|due| due <= self.harness.now()) {
            self.harness.switch.handle_timeout(self.harness.now());
            self.turn();
        }
    }

    fn turn(&mut self) {
        while let Some(transmit) = self.harness.switch.poll_transmit() {
            for to in transmit.recipients() {
                let packets = transmit.payload.chunks(transmit.stride);
                let class = transmit.class;
                self.sent.extend(packets.map(|bytes| Packet { to: *to, class, bytes: bytes.to_vec() }));
            }
        }
    }

    fn sleep(&mut self, ms: u64) {
        let end = self.harness.now_ms + ms;
        while self.harness.now_ms < end {
            let tick =
                self.harness.switch.poll_timeout().map_or(u64::MAX, |at| at.as_nanos().div_ceil(1_000_000));
            self.harness.now_ms = tick.clamp(self.harness.now_ms + 1, end);
            self.harness.switch.handle_timeout(self.harness.now());
            self.drain();
        }
    }

    /// Advances the time while the first `members` members send heartbeats.
    fn live(&mut self, ms: u64, members: u8) {
        for _ in 0..ms / 200 {
            (1..=members).for_each(|host| self.control(host, ControlBody::HEARTBEAT));
            self.sleep(200);
        }
    }

    fn take(&mut self) -> Vec<Packet> {
        std::mem::take(&mut self.sent)
    }

    /// Returns the nonce of the last Probe among the packets sent since they were last taken.
    fn probe(&self) -> Option<u64> {
        self.sent.iter().rev().find_map(|packet| match body(packet)? {
            ControlBody::Probe { nonce } => Some(nonce),
            _ => None,
        })
    }

    /// Makes a member request a Probe and confirm it.
    fn hear(&mut self, host: u8) {
        self.control(host, ControlBody::Heard { nonce: 0 });
        self.sleep(20);
        let nonce = self.probe().expect("the switch should send a Probe");
        self.control(host, ControlBody::Heard { nonce });
    }

    /// Returns the hosts that receive results through the group.
    fn hearing(&self) -> Vec<u8> {
        let job = self.harness.switch.job_status(JOB).expect("the job should exist");
        let members = job.members.iter().filter(|member| member.hears_group);
        members.map(|member| member.address.ip().octets()[3]).collect()
    }

    fn group(&self) -> SocketAddrV4 {
        self.harness.switch.job_status(JOB).and_then(|job| job.group).expect("the job should have a group")
    }

    /// Runs a round and returns the recipients of its first result: the numbers of the hosts, and 0 for the group.
    fn round(&mut self, hosts: &[u8], round: u32) -> Vec<u8> {
        self.take();
        for host in hosts {
            for (index, floats) in [&[1.0, 1.0][..], &[1.0, 1.0], &[1.0]].into_iter().enumerate() {
                self.send(*host, Class::Data, &data(index as u32, round, floats));
            }
        }
        recipients_of(&self.sent, 0)
    }
}

fn body(packet: &Packet) -> Option<ControlBody<'_>> {
    if packet.class == Class::Data {
        return None;
    }
    let view = ControlPacket::new_checked(&packet.bytes).ok()?;
    Some(ControlRepr::parse(&view).unwrap().body)
}

/// Returns the recipients of the result with this index: the numbers of the hosts, and 0 for a group.
fn recipients_of(sent: &[Packet], index: u8) -> Vec<u8> {
    let results = sent.iter().filter(|packet| packet.class == Class::Data && packet.bytes[0] == index);
    let mut to: Vec<_> = results
        .map(|packet| if packet.to.peer.ip().is_multicast() { 0 } else { packet.to.peer.ip().octets()[3] })
        .collect();
    to.sort_unstable();
    to
}

fn offers(sent: &[Packet]) -> Vec<(u8, SocketAddrV4)> {
    let of = |packet: &Packet| match body(packet)? {
        ControlBody::Group(group) => Some((packet.to.peer.ip().octets()[3], group)),
        _ => None,
    };
    sent.iter().filter_map(of).collect()
}

#[test]
fn members_that_confirm_a_probe_share_one_copy() {
    let mut world = World::formed(3);
    let offered = offers(&world.take());
    let group = world.group();
    assert_eq!(offered, [1, 2, 3].map(|host| (host, group)));
    assert_eq!(group.ip().to_bits() >> GROUP_BITS, GROUP_NETWORK >> GROUP_BITS);
    assert_eq!(world.round(&[1, 2, 3], 0), [1, 2, 3], "an offer alone changes nothing");
    world.hear(1);
    assert_eq!(world.round(&[1, 2, 3], 1), [1, 2, 3], "a copy for a single member saves nothing");
    world.hear(3);
    assert_eq!(world.round(&[1, 2, 3], 2), [0, 2]);
    world.hear(2);
    let before = *world.harness.counters();
    assert_eq!(world.round(&[1, 2, 3], 3), [0]);
    let after = world.harness.counters();
    assert_eq!((after.data_sent - before.data_sent, after.group_sent - before.group_sent), (3, 3));
    let result = world.sent.iter().find(|packet| packet.class == Class::Data).unwrap();
    assert_eq!((result.to.peer, result.to.local), (group, endpoint(1).local));
    let [_, b, c, d] = group.ip().octets();
    assert_eq!(result.to.peer_mac, [1, 0, 0x5e, b & 0x7f, c, d]);
    let heard = |event: &Event| matches!(event, Event::GroupHeard { .. });
    assert_eq!(world.harness.events().iter().filter(|event| heard(event)).count(), 3);
}

#[test]
fn only_the_nonce_of_a_recent_probe_confirms_the_group() {
    let mut world = World::formed(2);
    world.control(1, ControlBody::Heard { nonce: 7 });
    world.hear(2);
    let first = world.probe().unwrap();
    for _ in 0..2 {
        world.sleep(20);
        world.control(2, ControlBody::Heard { nonce: 0 });
    }
    assert_ne!(world.probe(), Some(first));
    world.control(1, ControlBody::Heard { nonce: first });
    assert_eq!(world.hearing(), [2], "two Probes later, the nonce should no longer be valid");
    world.control(9, ControlBody::Heard { nonce: world.probe().unwrap() });
    assert_eq!(world.hearing(), [2], "a non-member should not count");
}

#[test]
fn a_probe_is_as_long_as_a_result_and_probes_are_rate_limited() {
    let mut world = World::new(Config::default());
    let join = JoinRepr { gradient_len: 366, segment_floats: 366, ..able(2) };
    (1..=2).for_each(|host| world.join(JOB, host, join));
    world.take();
    for _ in 0..100 {
        world.control(1, ControlBody::Heard { nonce: 0 });
    }
    world.sleep(9);
    let is_probe = |packet: &&Packet| matches!(body(packet), Some(ControlBody::Probe { .. }));
    assert_eq!(world.sent.iter().filter(is_probe).count(), 1);
    world.sleep(5);
    let probes: Vec<_> = world.sent.iter().filter(is_probe).collect();
    assert_eq!(probes.len(), 2, "requests within the pause should be answered after it");
    assert!(probes.iter().all(|probe| probe.bytes.len() == 1472 && probe.to.peer == world.group()));
    assert!(
        world.sent.iter().all(|packet| packet.to.peer.ip().is_multicast()),
        "a Heard has no other answer"
    );
}

#[test]
fn only_members_that_declare_it_on_a_capable_port_get_an_offer() {
    let mut world = World::new(Config::default());
    world.harness.switch.set_group_ports(&GroupPorts::ALL.with(PortId(0), None));
    (1..=2).for_each(|host| world.join(JOB, host, able(2)));
    world.sleep(900);
    assert_eq!(offers(&world.take()), []);
    let mut world = World::new(Config::default());
    world.join(JOB, 1, able(3));
    world.join(JOB, 2, join(3));
    let switch = JoinRepr { kind: Kind::Switch, height: 1, ..join(3) };
    world.join(JOB, 3, switch);
    assert_eq!(offers(&world.take()), [], "a single member that can hear needs no group");
    let refused = world.harness.send(4, Class::Control, &{
        let mut packet = control(JOB, 1, ControlBody::Join(switch));
        packet[30] |= 0x40;
        packet
    });
    assert!(format!("{refused:?}").contains("Malformed"), "a switch cannot declare it: {refused:?}");
}

#[test]
fn a_departed_member_does_not_learn_the_next_group() {
    let mut world = World::heard(3);
    let first = world.group();
    // The member leaves in the middle of a round; the round is closed without it.
    for host in [1, 2] {
        world.send(host, Class::Data, &data(0, 0, &[1.0, 1.0]));
    }
    world.take();
    world.control(3, ControlBody::Leave);
    world.sleep(1);
    assert_eq!(recipients_of(&world.sent, 0), [1, 2]);
    world.live(600, 2);
    let offered = offers(&world.take());
    let second = world.group();
    assert_ne!(first.ip(), second.ip());
    assert!(offered.contains(&(1, second)) && offered.contains(&(2, second)), "{offered:?}");
    assert!(offered.iter().all(|(host, group)| *host != 3 && *group == second), "{offered:?}");
    (1..=2).for_each(|host| world.hear(host));
    assert_eq!(world.round(&[1, 2], 1), [0]);
}

#[test]
fn a_member_that_needs_help_in_several_rounds_receives_results_by_unicast() {
    let mut world = World::heard(3);
    let help = |round| ControlBody::Help(SegmentSetRepr { range: range(round, 0, 3), bitmap: &[7] });
    let mut round = 0;
    for miss in 1..=MAX_GROUP_MISSES {
        assert_eq!(world.round(&[1, 2, 3], round), [0], "miss {miss}");
        world.take();
        world.control(2, help(round));
        world.sleep(1);
        assert_eq!(recipients_of(&world.sent, 0), [2], "repairs should be unicast");
        if miss < MAX_GROUP_MISSES {
            assert_eq!(world.round(&[1, 2, 3], round + 1), [0, 2], "the next round should not need a Help");
            round += 2;
        }
    }
    assert_eq!(world.hearing(), [1, 3]);
    let lost = |event: &Event| matches!(event, Event::GroupLost { member: 1, .. });
    assert_eq!(world.harness.events().iter().filter(|event| lost(event)).count(), 1);
    assert_eq!(world.round(&[1, 2, 3], round + 1), [0, 2]);
    // A late confirmation has no effect until the group is offered again.
    world.control(2, ControlBody::Heard { nonce: 0 });
    assert_eq!(world.hearing(), [1, 3]);
    world.live(1000, 3);
    assert!(offers(&world.sent).iter().any(|(host, _)| *host == 2));
    world.hear(2);
    assert_eq!(world.hearing(), [1, 2, 3]);
    assert_eq!(world.round(&[1, 2, 3], round + 2), [0]);
}

#[test]
fn a_help_for_results_that_are_not_complete_or_for_one_segment_is_no_miss() {
    let mut world = World::heard(2);
    for round in 0..=u32::from(MAX_GROUP_MISSES) {
        world.send(1, Class::Data, &data(0, round, &[1.0, 1.0]));
        let wanted = SegmentSetRepr { range: range(round, 0, 3), bitmap: &[7] };
        world.control(1, ControlBody::Help(wanted));
        assert_eq!(world.round(&[1, 2], round), [0]);
        let wanted = SegmentSetRepr { range: range(round, 1, 1), bitmap: &[1] };
        world.control(1, ControlBody::Help(wanted));
    }
    assert_eq!(world.hearing(), [1, 2]);
}

#[test]
fn a_member_that_contributes_without_confirming_receives_results_by_unicast() {
    let mut world = World::heard(3);
    let mut round = 0;
    for _ in 0..4 {
        world.live(PROBE_INTERVAL_MS, 3);
        let nonce = world.probe().expect("the switch should send periodic Probes");
        [1, 2].into_iter().for_each(|host| world.control(host, ControlBody::Heard { nonce }));
        for _ in 0..2 {
            world.round(&[1, 2, 3], round);
            round += 1;
        }
    }
    assert_eq!(world.hearing(), [1, 2]);
    // A member that is computing does not read its sockets, but keeps the group.
    let mut world = World::heard(3);
    world.live(4 * PROBE_INTERVAL_MS, 3);
    assert_eq!(world.hearing(), [1, 2, 3]);
}

#[test]
fn a_member_that_joins_again_is_offered_the_group_again() {
    let mut world = World::heard(3);
    world.join(JOB, 2, able(3));
    assert_eq!(world.hearing(), [1, 3], "the process may have left the group");
    world.live(400, 3);
    assert!(offers(&world.sent).contains(&(2, world.group())));
}

#[test]
fn each_job_has_its_own_group() {
    let mut world = World::heard(2);
    for host in [11, 12] {
        world.join(JOB + 1, host, able(2));
    }
    let other = offers(&world.take());
    assert_eq!(other.iter().map(|(host, _)| *host).collect::<Vec<_>>(), [11, 12]);
    assert_ne!(other[0].1.ip(), world.group().ip());
    let nonce = 0;
    world.send(11, Class::Control, &control(JOB + 1, 0, ControlBody::Heard { nonce }));
    let nonce = world.probe().unwrap();
    world.control(1, ControlBody::Heard { nonce });
    world.send(11, Class::Control, &control(JOB + 1, 0, ControlBody::Heard { nonce }));
    let jobs: Vec<_> = world.harness.switch.jobs().collect();
    let hearing = |at: usize| jobs[at].members.iter().filter(|member| member.hears_group).count();
    assert_eq!([hearing(0), hearing(1)], [2, 1]);
}

#[test]
fn each_port_gets_one_copy() {
    let mut world = World::new(Config::default());
    let at = |host: u8| Endpoint { port: PortId(host / 10), ..endpoint(host) };
    let hosts = [1, 2, 11, 12, 21];
    for host in hosts {
        let packet = control(JOB, 1, ControlBody::Join(able(5)));
        let now = world.harness.now();
        world.join_at(now, &at(host), packet);
    }
    let send = |world: &mut World, host: u8, class, bytes: &[u8]| {
        world.harness.switch.handle_datagrams(world.harness.now(), &at(host), class, bytes, bytes.len());
        world.drain();
    };
    let offered: Vec<_> = offers(&world.take()).into_iter().map(|(host, _)| host).collect();
    assert_eq!(offered, [1, 2, 11, 12], "the only member on a port gets unicast");
    for host in [1, 2, 11, 12] {
        world.take();
        send(&mut world, host, Class::Control, &control(JOB, 0, ControlBody::Heard { nonce: 0 }));
        world.sleep(20);
        let nonce_of = |packet: &Packet| match body(packet)? {
            ControlBody::Probe { nonce } => Some(nonce),
            _ => None,
        };
        let nonces: Vec<u64> = world.sent.iter().filter_map(nonce_of).collect();
        assert_eq!(nonces.len(), 2, "each port should send its own Probe");
        let own = usize::from(host / 10);
        send(
            &mut world,
            host,
            Class::Control,
            &control(JOB, 0, ControlBody::Heard { nonce: nonces[1 - own] }),
        );
        assert!(!world.hearing().contains(&host), "the nonce of another port should prove nothing");
        send(&mut world, host, Class::Control, &control(JOB, 0, ControlBody::Heard { nonce: nonces[own] }));
    }
    assert_eq!(world.hearing(), [1, 2, 11, 12]);
    world.take();
    for host in hosts {
        send(&mut world, host, Class::Data, &data(0, 0, &[1.0, 1.0]));
    }
    let copies = world.sent.iter().filter(|packet| packet.class == Class::Data);
    let copies: Vec<_> = copies.map(|packet| (packet.to.port, packet.to.peer.ip().is_multicast())).collect();
    assert_eq!(copies, [(PortId(0), true), (PortId(1), true), (PortId(2), false)]);
}

#[test]
fn aggregates_are_sent_to_the_group() {
    let mut world = World::new(Config::default());
    let join = JoinRepr { mode: Mode::Asynchronous, ..able(2) };
    (1..=2).for_each(|host| world.join(JOB, host, join));
    (1..=2).for_each(|host| world.hear(host));
    let first = world.harness.first_vector(JOB, join.instance);
    assert_eq!(world.round(&[1, 2], first), [0]);
}

#[test]
fn a_member_of_an_asynchronous_job_that_falls_behind_receives_results_by_unicast() {
    let mut world = World::new(Config::default());
    let join = JoinRepr { mode: Mode::Asynchronous, ..able(2) };
    (1..=2).for_each(|host| world.join(JOB, host, join));
    (1..=2).for_each(|host| world.hear(host));
    let (first, begin) = (world.harness.first_vector(JOB, join.instance), 0);
    let aggregate =
        |world: &World| world.harness.switch.job_status(JOB).and_then(|job| job.round).unwrap_or(begin);
    for vector in 0..40 {
        world.round(&[1, 2], first + vector);
        if vector == 20 {
            // The member asks for one of many aggregates that it lacks.
            let wanted = SegmentSetRepr { range: range(aggregate(&world) - 5, 0, 3), bitmap: &[7] };
            world.control(2, ControlBody::Help(wanted));
        }
    }
    assert_eq!(world.hearing(), [1]);
}

#[test]
fn messages_of_the_switch_are_refused_from_a_member() {
    let mut world = World::formed(2);
    for body in [ControlBody::Group(world.group()), ControlBody::Probe { nonce: 1 }] {
        let mut packet = control(JOB, 3, body);
        packet.resize(60, 0);
        let sent = world.harness.send(1, Class::Control, &packet);
        assert!(format!("{sent:?}").contains("Malformed"), "{sent:?}");
    }
}

#[test]
fn probes_of_a_job_with_a_key_are_authentic_and_so_are_confirmations() {
    let key = Key::new(&[2; 32]).unwrap();
    let mut keys = Keys::new([1; 16]);
    keys.insert(None, key.clone());
    let mut world = World::new(Config::default());
    let config =
        Config { memory_bytes: 1 << 20, boot: 42, lease_ms: 1000, group_delivery: true, ..Config::default() };
    world.harness.switch = iswitch_switch::Switch::with_keys(config, keys);
    let mut members = [Conversation::new(1), Conversation::new(1)];
    let send = |world: &mut World, members: &mut [Conversation; 2], host: u8, body: ControlBody<'_>| {
        let member = &mut members[usize::from(host) - 1];
        let mut packet = control(JOB, 0, body);
        if let ControlBody::Join(_) = body {
            packet[8] = 1;
        }
        packet.resize(packet.len() + 24, 0);
        let action = ControlPacket::new_checked(&packet).unwrap().action_code();
        let (context, counter) = member.next(Action::from_code(action).unwrap());
        key.sign(Direction::ToSwitch, context, counter, &mut packet);
        world.send(host, Class::Control, &packet);
    };
    for host in [1, 2] {
        send(&mut world, &mut members, host, ControlBody::Join(able(2)));
        let challenge = world.take().pop().unwrap();
        let Some(ControlBody::Ack(ack)) = body(&challenge) else { panic!("expected a challenge") };
        members[usize::from(host) - 1].open_session(ack.history);
        let nonce = ack.history;
        send(&mut world, &mut members, host, ControlBody::Join(JoinRepr { nonce, ..able(2) }));
    }
    let offered = world.take();
    for packet in offered.iter().filter(|packet| matches!(body(packet), Some(ControlBody::Group(_)))) {
        let at = usize::from(packet.to.peer.ip().octets()[3]) - 1;
        let view = ControlPacket::new_checked(&packet.bytes).unwrap();
        assert!(key.verify(Direction::ToMember, members[at].session(), &view).is_some());
    }
    send(&mut world, &mut members, 1, ControlBody::Heard { nonce: 0 });
    let probe =
        world.sent.iter().find(|packet| matches!(body(packet), Some(ControlBody::Probe { .. }))).unwrap();
    let view = ControlPacket::new_checked(&probe.bytes).unwrap();
    let epoch = world.harness.switch.epoch_of(JOB).unwrap();
    assert!(!members[0].accept(&key, &view), "a Probe belongs to no session");
    assert!(!members[0].accept_from_group(&key, epoch + 1, &view));
    assert!(members[0].accept_from_group(&key, epoch, &view));
    assert!(!members[0].accept_from_group(&key, epoch, &view), "a recorded Probe should be refused");
    let nonce = world.probe().unwrap();
    world.control(1, ControlBody::Heard { nonce });
    assert_eq!(world.hearing(), [0; 0], "a confirmation without a trailer should have no effect");
    send(&mut world, &mut members, 1, ControlBody::Heard { nonce });
    assert_eq!(world.hearing(), [1]);
}
