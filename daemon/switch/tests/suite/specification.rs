//! Tests of the requirements of `SPEC.md` that no other module of this suite covers, in the order of the sections of
//! `SPEC.md`.

use std::net::{Ipv4Addr, SocketAddrV4};

use crate::common::*;
use iswitch_protocol::auth::{Direction, NO_SESSION};
use iswitch_protocol::limits::{TRAILER_LEN_BYTES, datagram_truesize, recv_room};
use iswitch_protocol::wire::control::SegmentSetRepr;
use iswitch_protocol::wire::{
    AckRepr, Action, Class, ControlBody, ControlPacket, ControlRepr, DataPacket, JoinRepr, Kind, Mode,
    ResumeRepr, Status,
};
use iswitch_protocol::{Key, Round, history};
use iswitch_switch::{Config, DropReason, Endpoint, Instant, Keys, PortId, Switch, Uplinks};

/// Returns an Ack that names no segments.
fn answer(to: u8, request: u32, status: Status, round: u32, expected: u32) -> Sent {
    Sent::Ack { to, request, status, round, expected, missing: Vec::new() }
}

fn help(round: u32, bitmap: &[u8]) -> ControlBody<'_> {
    ControlBody::Help(SegmentSetRepr { range: range(round, 0, 3), bitmap })
}

/// Calls `read` with each Ack that the switch sends next, and returns the results.
fn acks<T>(switch: &mut Switch, read: impl Fn(&AckRepr<'_>) -> T) -> Vec<T> {
    let mut acks = Vec::new();
    while let Some(transmit) = switch.poll_transmit() {
        let packet = ControlPacket::new_checked(transmit.payload).unwrap();
        if let Ok(ControlRepr { body: ControlBody::Ack(ack), .. }) = ControlRepr::parse(&packet) {
            acks.push(read(&ack));
        }
    }
    acks
}

/// Sends a control packet and returns the result of `read` for the Ack, which must be the only one.
fn ack_to<T>(harness: &mut Harness, host: u8, packet: &[u8], read: impl Fn(&AckRepr<'_>) -> T) -> T {
    let now = harness.now();
    harness.switch.handle_datagrams(now, &endpoint(host), Class::Control, packet, packet.len());
    let mut acks = acks(&mut harness.switch, read);
    assert_eq!(acks.len(), 1);
    acks.remove(0)
}

/// Section 3, C-9.
#[test]
fn an_invalid_super_frame_is_refused_only_once() {
    let mut switch = Harness::formed(2);
    let bad = [data(0, 0, &[f32::NAN, 1.0]), data(1, 0, &[f32::NAN, 1.0]), data(2, 0, &[f32::NAN])].concat();
    let sent = switch.send_frame(1, Class::Data, &bad, 16);
    assert_eq!(sent, [answer(1, 0, Status::NonFinite, 0, 0)]);
    assert_eq!(switch.counters().drops(DropReason::NonFinite), 3);
}

/// Section 3, C-9.
#[test]
fn members_may_be_four_rounds_ahead_if_one_of_them_is_a_switch() {
    let mut switch = Harness::new();
    switch.join(1, JoinRepr { kind: Kind::Switch, ..join(2) });
    switch.join(2, join(2));
    switch.data(2, 0, 0, &[1.0, 1.0]);
    for round in 1..4 {
        assert_eq!(switch.data(1, 0, round, &[1.0, 1.0]), [], "round {round}");
    }
    assert_eq!(switch.data(1, 0, 4, &[1.0, 1.0]), [answer(1, 0, Status::StaleRound, 0, 0)]);
    assert_eq!(switch.data(2, 0, 4, &[1.0, 1.0]), [answer(2, 0, Status::StaleRound, 0, 0)]);
}

/// Section 4, M-4, and section 6, F-1.
#[test]
fn the_ack_of_a_join_carries_everything_that_a_member_needs() {
    const BUFFER_BYTES: usize = 1 << 20;
    let config = Config { memory_bytes: 1 << 20, recv_buffer_bytes: BUFFER_BYTES, ..Config::default() };
    for workers in [2, 5] {
        let mut switch = Harness::with(config);
        let wide = JoinRepr { gradient_len: 3660, segment_floats: 366, ..join(workers) };
        for host in 1..=workers as u8 {
            switch.join(host, wide);
        }
        let epoch = switch.switch.epoch_of(JOB).unwrap();
        let repeated = control(JOB, 1, ControlBody::Join(wide));
        let mut in_flight = 0;
        for host in 1..=workers as u8 {
            in_flight += ack_to(&mut switch, host, &repeated, |ack| {
                assert_eq!((ack.status, ack.formed, ack.round.get()), (Status::Success, true, 0));
                assert_eq!((ack.member, ack.members, ack.threshold), (u16::from(host) - 1, workers, workers));
                assert_eq!((ack.boot, ack.lease_ms, ack.weight), (epoch, LEASE_MS, workers));
                usize::from(ack.window)
            });
        }
        let datagram_bytes = datagram_truesize(8 + 4 * 366);
        let room = recv_room(BUFFER_BYTES) / datagram_bytes;
        assert!((room - usize::from(workers)..=room).contains(&in_flight), "{in_flight} of {room}");
    }
}

/// Makes host 1 send a packet every quarter of a lease, for two leases. Returns whether the host is still a member
/// afterwards.
fn stays(mut switch: Harness, class: Class, packet: &[u8]) -> bool {
    for _ in 0..8 {
        switch.sleep(u64::from(LEASE_MS) / 4);
        switch.send(1, class, packet);
    }
    switch.switch.jobs().next().is_some_and(|job| !job.members.is_empty())
}

/// Section 4, M-6.
#[test]
fn any_valid_packet_renews_a_lease() {
    let joined = || {
        let mut switch = Harness::new();
        switch.join(1, join(2));
        switch
    };
    for body in [
        ControlBody::HEARTBEAT,
        ControlBody::Join(join(2)),
        ControlBody::SetH { threshold: 0 },
        ControlBody::FBcast(range(0, 0, 1)),
        ControlBody::RESET,
        help(0, &[0b111]),
    ] {
        assert!(stays(joined(), Class::Control, &control(JOB, 1, body)), "{body:?}");
    }
    assert!(stays(joined(), Class::Data, &data(0, 0, &[1.0, 1.0])), "a contribution should renew the lease");
    let mut other_version = control(JOB, 1, ControlBody::HEARTBEAT);
    other_version[1] = 9;
    assert!(!stays(joined(), Class::Control, &other_version), "an invalid packet should not renew the lease");
}

/// Section 4, M-6.
#[test]
fn a_suspended_switch_extends_leases_by_the_suspension() {
    let mut switch = Harness::new();
    switch.join(1, join(2));
    switch.now_ms += u64::from(LEASE_MS) * 6 / 10;
    switch.switch.handle_timeout(switch.now());
    switch.sleep(u64::from(LEASE_MS) * 9 / 10);
    assert_eq!(switch.counters().expelled, 0);
    switch.sleep(u64::from(LEASE_MS) / 2);
    assert_eq!(switch.counters().expelled, 1);
}

/// Section 4, M-7.
#[test]
fn acks_name_the_epoch_to_members_and_the_boot_id_to_others() {
    const BOOT: u64 = 42;
    let mut switch = Harness::formed(1);
    let epoch = switch.switch.epoch_of(JOB).unwrap();
    assert_ne!(epoch, BOOT);
    let leave = |job| control(job, 1, ControlBody::Leave);
    let boot = |ack: &AckRepr<'_>| ack.boot;
    assert_eq!(ack_to(&mut switch, 1, &control(JOB, 1, help(0, &[0b111])), boot), epoch);
    assert_eq!(ack_to(&mut switch, 9, &leave(JOB + 1), boot), BOOT);
    ack_to(&mut switch, 1, &leave(JOB), boot);
    switch.join(1, join(1));
    assert_ne!(switch.switch.epoch_of(JOB), Some(epoch), "another incarnation should have another epoch");
}

/// Section 4, M-11, and section 8, A-6.
#[test]
fn a_query_names_the_oldest_member_and_needs_no_nonce() {
    let mut switch = Harness::formed(2);
    let query = control(JOB, 1, ControlBody::Join(JoinRepr { query: true, ..join(2) }));
    let peer = |ack: &AckRepr<'_>| (ack.status, ack.peer);
    assert_eq!(ack_to(&mut switch, 9, &query, peer), (Status::Success, Some(endpoint(1).peer)));
    let repeated = control(JOB, 1, ControlBody::Join(join(2)));
    assert_eq!(ack_to(&mut switch, 2, &repeated, peer), (Status::Success, Some(endpoint(1).peer)));
    switch.control(1, 2, ControlBody::Leave);
    // The new member gets the id of the member that has left.
    switch.now_ms += 1;
    switch.join(3, join(2));
    assert_eq!(ack_to(&mut switch, 9, &query, peer), (Status::Success, Some(endpoint(2).peer)));
}

/// Section 5, R-4.
#[test]
fn a_member_at_inconsistent_rounds_must_rejoin() {
    let mut switch = Harness::formed(2);
    switch.round(&[2], 0);
    switch.data(1, 0, 0, &[1.0, 1.0]);
    // Segment 0 of round 0 is finished; the other segments wait for member 1.
    let is_granted = |sent: &[Sent]| matches!(sent, [Sent::Ack { status: Status::Success, .. }]);
    assert!(is_granted(&switch.control(1, 9, help(1, &[0b001]))));
    for bitmap in [0b010, 0b100, 0b111] {
        let sent = switch.control(1, 9, help(1, &[bitmap]));
        assert_eq!(sent, [answer(1, 9, Status::UnknownMember, 0, 0)], "{bitmap:03b}");
    }
    assert!(is_granted(&switch.control(2, 9, help(1, &[0b111]))));
    // The member has the history before round 1, so round 0 no longer waits for it.
    switch.data(2, 0, 1, &[2.0, 2.0]);
    let epoch = switch.switch.epoch_of(JOB).unwrap();
    let begin = history::begin(epoch, JOB, Round::new(0));
    let resume = ResumeRepr {
        round: Round::new(1),
        members: 2,
        weight: 2,
        threshold: 0,
        history: history::after(begin, epoch, Round::new(0)),
        previous: 0,
        behind: 0,
        fresh: false,
    };
    let sent = switch.control(1, 1, ControlBody::Join(JoinRepr { resume: Some(resume), ..join(2) }));
    assert!(sent.contains(&answer(1, 1, Status::Success, 1, 0)), "{sent:?}");
    assert!(sent.contains(&result(2, 1, 0, 1, &[2.0, 2.0])), "{sent:?}");
    assert!(sent.contains(&result(2, 2, 0, 1, &[2.0])), "{sent:?}");
}

/// Address of the parent.
const PARENT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 99), 7711);
const UPLINK: PortId = PortId(1);

/// Returns the endpoint of the parent: its address and the port of the switch that leads to it.
fn parent() -> Endpoint {
    Endpoint { port: UPLINK, peer: PARENT, ..endpoint(1) }
}

/// A child switch whose parent is simulated by the test.
struct Rack {
    switch: Switch,
    now_ms: u64,
}

impl Rack {
    fn new() -> Self {
        let uplinks = Uplinks::new(&[PARENT], UPLINK, 1);
        let config = Config { lease_ms: 10_000, memory_bytes: 1 << 20, uplinks, ..Config::default() };
        let mut rack = Self { switch: Switch::new(config), now_ms: 1 };
        rack.join(1);
        rack
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.now_ms * 1_000_000)
    }

    fn join(&mut self, host: u8) {
        let (now, packet) = (self.now(), control(JOB, 1, ControlBody::Join(join(9))));
        join_from(&mut self.switch, now, &endpoint(host), &packet);
    }

    /// Delivers a packet and returns what the parent receives: the round and the contribution count of each partial
    /// sum, and the number of requests.
    fn sends_up(&mut self, from: &Endpoint, class: Class, packet: &[u8]) -> (Vec<(u32, u16)>, usize) {
        self.switch.handle_datagrams(self.now(), from, class, packet, packet.len());
        let (mut partials, mut requests) = (Vec::new(), 0);
        while let Some(transmit) = self.switch.poll_transmit() {
            match transmit.class {
                _ if transmit.recipients().any(|to| to.peer != PARENT) => {}
                Class::Control => requests += 1,
                Class::Data => {
                    let seg = DataPacket::new_checked(transmit.payload).unwrap().seg();
                    partials.push((seg.round.get(), seg.contributions));
                }
            }
        }
        (partials, requests)
    }

    /// Returns the action and the id of each request that the switch sends to the parent now.
    fn requests(&mut self) -> Vec<(Action, u32)> {
        self.switch.handle_timeout(self.now());
        let mut requests = Vec::new();
        while let Some(transmit) = self.switch.poll_transmit() {
            if transmit.recipients().all(|to| to.peer == PARENT) {
                let packet = ControlPacket::new_checked(transmit.payload).unwrap();
                let repr = ControlRepr::parse(&packet).unwrap();
                requests.push((repr.action(), repr.request));
            }
        }
        requests
    }

    /// Advances the time while a worker sends heartbeats. Returns the times at which the parent receives a Join, in
    /// milliseconds.
    fn joins_in(&mut self, ms: u64) -> Vec<u64> {
        let mut joins = Vec::new();
        for _ in 0..ms {
            self.now_ms += 1;
            if self.requests().iter().any(|(action, _)| *action == Action::Join) {
                joins.push(self.now_ms);
            }
            let (now, heartbeat) = (self.now(), control(JOB, 0, ControlBody::HEARTBEAT));
            self.switch.handle_datagrams(now, &endpoint(1), Class::Control, &heartbeat, heartbeat.len());
        }
        joins
    }

    fn answer(&mut self, request: u32, ack: AckRepr<'_>) {
        let packet = control(JOB, request, ControlBody::Ack(ack));
        self.switch.handle_datagrams(self.now(), &parent(), Class::Control, &packet, packet.len());
    }
}

/// Returns the Ack from the parent to a Join.
fn parent_ack(formed: bool) -> AckRepr<'static> {
    AckRepr {
        members: 2,
        threshold: 2,
        window: 10,
        formed,
        boot: 77,
        lease_ms: 400,
        history: 5,
        weight: 9,
        ..AckRepr::bare(Action::Join, Status::Success)
    }
}

/// Returns the shortest and the longest interval between consecutive times.
fn intervals(moments: &[u64]) -> (u64, u64) {
    let intervals = || moments.windows(2).map(|pair| pair[1] - pair[0]);
    (intervals().min().expect("two or more times"), intervals().max().expect("two or more times"))
}

/// Section 4, M-12, for a switch. The tests of the worker library cover the worker.
#[test]
fn a_child_switch_repeats_its_join_until_the_job_is_complete() {
    let mut rack = Rack::new();
    let unanswered = rack.joins_in(5000);
    assert!(unanswered.len() >= 10, "{unanswered:?}");
    let (shortest, longest) = intervals(&unanswered);
    assert!(shortest >= 20 && longest <= 500, "{unanswered:?}");
    let request = rack.join_request();
    rack.answer(request, parent_ack(false));
    rack.joins_in(500);
    let waiting = rack.joins_in(4000);
    let (shortest, longest) = intervals(&waiting);
    assert!(shortest >= 20 && longest <= 400 / 4, "{waiting:?}");
    rack.answer(request, parent_ack(true));
    let is_heartbeat = |(action, _): &(Action, u32)| *action == Action::Help;
    assert!(rack.requests().iter().any(is_heartbeat), "the switch should send a heartbeat at once");
}

impl Rack {
    /// Returns the id of the Join that the switch repeats.
    fn join_request(&mut self) -> u32 {
        for _ in 0..1000 {
            self.now_ms += 1;
            let join = self.requests().into_iter().find(|(action, _)| *action == Action::Join);
            if let Some((_, request)) = join {
                return request;
            }
        }
        panic!("expected the switch to repeat its Join");
    }
}

/// Section 7, H-4.
#[test]
fn acks_of_a_rack_name_the_epoch_and_the_weight_of_the_whole_job() {
    let mut rack = Rack::new();
    let request = rack.join_request();
    rack.answer(request, parent_ack(true));
    let reported = acks(&mut rack.switch, |ack| (ack.status, ack.formed, ack.boot, ack.weight, ack.members));
    assert_eq!(reported, [(Status::Success, true, 77, 9, 1)]);
}

/// Section 7, H-7.
#[test]
fn set_h_and_fbcast_affect_only_the_members_of_one_switch() {
    let mut rack = Rack::new();
    rack.join(2);
    let request = rack.join_request();
    rack.answer(request, parent_ack(true));
    while rack.switch.poll_transmit().is_some() {}
    let contribution = |round| data(0, round, &[1.0, 1.0]);
    let member = endpoint(1);
    assert_eq!(
        rack.sends_up(&member, Class::Data, &contribution(0)),
        (vec![], 0),
        "member 2 is still missing"
    );
    let fbcast = control(JOB, 5, ControlBody::FBcast(range(0, 0, 1)));
    assert_eq!(rack.sends_up(&member, Class::Control, &fbcast), (vec![(0, 1)], 0));
    assert_eq!(rack.sends_up(&parent(), Class::Data, &weighted(0, 0, 9, &[9.0, 9.0])), (vec![], 0));
    let set_h = control(JOB, 6, ControlBody::SetH { threshold: 1 });
    assert_eq!(rack.sends_up(&member, Class::Control, &set_h), (vec![], 0));
    assert_eq!(rack.sends_up(&member, Class::Data, &contribution(1)), (vec![(1, 1)], 0));
}

/// Section 8, A-1.
#[test]
fn a_join_with_a_trailer_gets_an_ack_of_the_same_length() {
    let key = Key::new(b"the key of this job").unwrap();
    let mut keys = Keys::new([1; 16]);
    assert!(keys.insert(Some(JOB), key.clone()));
    let config = Config { memory_bytes: 1 << 20, ..Config::default() };
    let mut switch = Switch::with_keys(config, keys);
    let mut nonce = 0;
    for (counter, status) in [(1, Status::Challenge), (2, Status::Success)] {
        let padding_len = JoinRepr::padding_to(1472, false, true);
        let mut packet = control(JOB, 1, ControlBody::Join(JoinRepr { nonce, padding_len, ..join(1) }));
        packet.resize(packet.len() + TRAILER_LEN_BYTES, 0);
        key.sign(Direction::ToSwitch, NO_SESSION, counter, &mut packet);
        assert_eq!(packet.len(), 1472);
        switch.handle_datagrams(Instant::from_nanos(1), &endpoint(1), Class::Control, &packet, packet.len());
        let answer = switch.poll_transmit().expect("the switch should answer").payload.to_vec();
        assert_eq!(answer.len(), packet.len());
        let packet = ControlPacket::new_checked(&answer).unwrap();
        let ControlBody::Ack(ack) = ControlRepr::parse(&packet).unwrap().body else {
            panic!("expected an Ack")
        };
        assert_eq!(ack.status, status);
        nonce = ack.history;
    }
}

/// Section 10, V-2 and V-5.
#[test]
fn vector_numbers_up_to_64_ahead_are_accepted() {
    let mut switch = Harness::new();
    switch.join(1, JoinRepr { mode: Mode::Asynchronous, ..join(1) });
    let first = switch.first_vector(JOB, join(1).instance);
    let mut confirm = |number| {
        let mut sent = switch.control(
            1,
            9,
            ControlBody::Confirm(SegmentSetRepr { range: range(number, 0, 3), bitmap: &[0b111] }),
        );
        assert_eq!(sent.len(), 1);
        sent.remove(0)
    };
    let nothing = Sent::Ack {
        to: 1,
        request: 9,
        status: Status::Success,
        round: 0,
        expected: 0,
        missing: vec![0, 1, 2],
    };
    assert_eq!(confirm(first + 64), nothing);
    assert_eq!(confirm(first + 65), answer(1, 9, Status::StaleRound, first, 0));
    switch.data(1, 0, first + 65, &[1.0, 1.0]);
    assert_eq!(switch.counters().contributions, 0, "a vector number too far ahead should be refused");
    for (index, floats) in [(0, &[1.0, 1.0][..]), (1, &[1.0, 1.0])] {
        assert_eq!(switch.data(1, index, first + 64, floats), []);
    }
    assert_eq!(switch.data(1, 2, first + 64, &[1.0]).len(), 3, "the vector should be complete");
}
