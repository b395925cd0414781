//! Test harness: a switch, and the packets that its members send.

// Each test binary uses only a part of this module.
#![allow(dead_code)]

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use iswitch_protocol::wire::control::{RangeRepr, answer_challenge};
use iswitch_protocol::wire::{
    AckRepr, Class, ControlBody, ControlPacket, ControlRepr, DataPacket, JoinRepr, Status, emit_seg,
};
use iswitch_protocol::{ElementType, Round, Seg, SegmentIndex};
use iswitch_switch::{Config, Counters, DropReason, Endpoint, Event, Instant, PortId, Switch};

pub(crate) const JOB: u32 = 5;
pub(crate) const LEASE_MS: u32 = 1000;

/// A packet that the switch sent, and the host to which the switch sent it.
#[derive(Debug, PartialEq)]
pub(crate) enum Sent {
    Ack { to: u8, request: u32, status: Status, round: u32, expected: u32, missing: Vec<u32> },
    Halted { to: u8 },
    Absent { to: u8, request: u32, round: u32, count: u16, members: Vec<(Option<u16>, String)> },
    Result { to: u8, index: u32, round: u32, contributions: u16, floats: Vec<f32> },
}

pub(crate) struct Harness {
    pub(crate) switch: Switch,
    pub(crate) now_ms: u64,
    /// Element type of results.
    pub(crate) results: ElementType,
    /// Last challenge that the switch sent to each host.
    challenges: HashMap<u8, Vec<u8>>,
}

pub(crate) fn endpoint(host: u8) -> Endpoint {
    Endpoint {
        port: PortId(0),
        peer: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, host), 5000),
        local: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 254), 7711),
        peer_mac: [0; 6],
        local_mac: [0; 6],
    }
}

/// Returns a Join for a vector of five floats in segments of two: three segments, the last one with one float.
pub(crate) fn join(workers: u16) -> JoinRepr {
    JoinRepr { instance: 1, ..JoinRepr::worker(5, 2, workers) }
}

pub(crate) fn range(round: u32, first: u32, count: u32) -> RangeRepr {
    RangeRepr { round: Round::new(round), first, count }
}

pub(crate) fn data(index: u32, round: u32, floats: &[f32]) -> Vec<u8> {
    weighted(index, round, 1, floats)
}

pub(crate) fn weighted(index: u32, round: u32, contributions: u16, floats: &[f32]) -> Vec<u8> {
    let mut bytes = vec![0; 8 + 4 * floats.len()];
    let seg = Seg { index: SegmentIndex::new(index).unwrap(), round: Round::new(round), contributions };
    let room = emit_seg(&mut bytes, seg);
    for (word, x) in room.chunks_mut(4).zip(floats) {
        word.copy_from_slice(&x.to_le_bytes());
    }
    bytes
}

pub(crate) fn control(job: u32, request: u32, body: ControlBody<'_>) -> Vec<u8> {
    let repr = ControlRepr { job, request, body };
    let mut bytes = vec![0; repr.buffer_len()];
    repr.emit(&mut bytes);
    bytes
}

pub(crate) fn result(to: u8, index: u32, round: u32, contributions: u16, floats: &[f32]) -> Sent {
    Sent::Result { to, index, round, contributions, floats: floats.to_vec() }
}

impl Harness {
    pub(crate) fn new() -> Self {
        Self::with(Config { memory_bytes: 1 << 20, ..Config::default() })
    }

    pub(crate) fn with(config: Config) -> Self {
        let switch = Switch::new(Config { boot: 42, lease_ms: LEASE_MS, ..config });
        Self { switch, now_ms: 1, results: ElementType::F32, challenges: HashMap::new() }
    }

    /// Returns a switch with a job at round 0 whose members 1 to `workers` have joined.
    pub(crate) fn formed(workers: u8) -> Self {
        let mut harness = Self::new();
        for host in 1..=workers {
            let sent = harness.join(host, join(u16::from(workers)));
            assert!(matches!(sent, Sent::Ack { status: Status::Success, round: 0, .. }), "{sent:?}");
        }
        harness
    }

    /// Returns the number of the first vector of the member that has this instance in an asynchronous job.
    pub(crate) fn first_vector(&self, job: u32, instance: u32) -> u32 {
        let epoch = self.switch.epoch_of(job).expect("the job should exist");
        Round::first_vector(instance, epoch).get()
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::from_nanos(self.now_ms * 1_000_000)
    }

    pub(crate) fn send(&mut self, host: u8, class: Class, bytes: &[u8]) -> Vec<Sent> {
        self.send_frame(host, class, bytes, bytes.len())
    }

    pub(crate) fn send_frame(&mut self, host: u8, class: Class, bytes: &[u8], stride: usize) -> Vec<Sent> {
        let sent = self.deliver(host, class, bytes, stride);
        // Repeat a Join with the nonce of the challenge, as a worker does.
        match self.answer_challenge(host, bytes) {
            Some(proven) => self.deliver(host, class, &proven, stride),
            None => sent,
        }
    }

    /// Delivers packets from a host without answering the challenge that follows, if any.
    pub(crate) fn deliver(&mut self, host: u8, class: Class, bytes: &[u8], stride: usize) -> Vec<Sent> {
        self.switch.handle_datagrams(self.now(), &endpoint(host), class, bytes, stride);
        self.drain()
    }

    /// Returns the Join `bytes` of a host with the nonce of the last challenge that the switch sent to this host since
    /// the host last answered one. Returns `None` if there was no challenge.
    pub(crate) fn answer_challenge(&mut self, host: u8, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut proven = bytes.to_vec();
        let challenge = self.challenges.remove(&host)?;
        answer_challenge(&mut proven, &challenge).then_some(proven)
    }

    /// Sends a control packet and, if the switch sends a challenge, repeats it with the nonce of the challenge. The
    /// switch gets one turn after each packet.
    pub(crate) fn send_in_turns(&mut self, host: u8, bytes: &[u8]) -> Vec<Sent> {
        let mut packet = bytes.to_vec();
        let mut sent = Vec::new();
        loop {
            self.switch.handle_datagrams(self.now(), &endpoint(host), Class::Control, &packet, packet.len());
            sent.extend(self.turn());
            match self.answer_challenge(host, &packet) {
                Some(proven) => packet = proven,
                None => return sent,
            }
        }
    }

    pub(crate) fn join(&mut self, host: u8, join: JoinRepr) -> Sent {
        let mut sent = self.control(host, 1, ControlBody::Join(join));
        // Ignore the notices to the other members that the job is complete.
        sent.retain(|sent| !matches!(sent, Sent::Ack { to, .. } if *to != host));
        assert_eq!(sent.len(), 1, "{sent:?}");
        sent.remove(0)
    }

    pub(crate) fn control(&mut self, host: u8, request: u32, body: ControlBody<'_>) -> Vec<Sent> {
        self.send(host, Class::Control, &control(JOB, request, body))
    }

    pub(crate) fn data(&mut self, host: u8, index: u32, round: u32, floats: &[f32]) -> Vec<Sent> {
        self.send(host, Class::Data, &data(index, round, floats))
    }

    /// Makes each of `hosts` contribute its own number to all segments of a round.
    pub(crate) fn round(&mut self, hosts: &[u8], round: u32) {
        for host in hosts {
            let x = f32::from(*host);
            self.data(*host, 0, round, &[x, x]);
            self.data(*host, 1, round, &[x, x]);
            self.data(*host, 2, round, &[x]);
        }
    }

    /// Advances the time in steps from deadline to deadline, as a driver does. Returns the packets that the switch
    /// sends.
    pub(crate) fn sleep(&mut self, ms: u64) -> Vec<Sent> {
        let mut sent = Vec::new();
        let end = self.now_ms + ms;
        while self.now_ms < end {
            let tick = self.switch.poll_timeout().map_or(u64::MAX, |at| at.as_nanos().div_ceil(1_000_000));
            self.now_ms = tick.clamp(self.now_ms + 1, end);
            self.switch.handle_timeout(self.now());
            sent.extend(self.drain());
        }
        sent
    }

    /// Returns the packets that the switch sends until it has no work left, without receiving packets in the meantime.
    pub(crate) fn drain(&mut self) -> Vec<Sent> {
        let mut sent = self.turn();
        while self.switch.poll_timeout().is_some_and(|due| due <= self.now()) {
            self.switch.handle_timeout(self.now());
            sent.extend(self.turn());
        }
        sent
    }

    /// Returns the packets that the switch sends in one turn. Queued work may remain.
    pub(crate) fn turn(&mut self) -> Vec<Sent> {
        let mut sent = Vec::new();
        while let Some(transmit) = self.switch.poll_transmit() {
            for recipient in transmit.recipients() {
                let to = recipient.peer.ip().octets()[3];
                for bytes in transmit.payload.chunks(transmit.stride) {
                    if is_challenge(transmit.class, bytes) {
                        self.challenges.insert(to, bytes.to_vec());
                    }
                    sent.push(describe(to, transmit.class, bytes, self.results));
                }
            }
        }
        sent
    }

    pub(crate) fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.switch.poll_event()).collect()
    }

    pub(crate) fn counters(&self) -> &Counters {
        self.switch.counters()
    }

    /// Returns the reason for the only drop since `before`.
    pub(crate) fn only_drop_since(&self, before: &Counters) -> Option<DropReason> {
        assert!(self.counters().dropped() <= before.dropped() + 1);
        DropReason::all().find(|reason| self.counters().drops(*reason) > before.drops(*reason))
    }
}

/// Returns whether a packet from the switch is a challenge.
pub(crate) fn is_challenge(class: Class, bytes: &[u8]) -> bool {
    let packet = ControlPacket::new_checked(bytes).ok().filter(|_| class == Class::Control);
    let repr = packet.and_then(|packet| ControlRepr::parse(&packet).map(|repr| repr.body).ok());
    matches!(repr, Some(ControlBody::Ack(AckRepr { status: Status::Challenge, .. })))
}

/// Sends a Join from any address, and repeats it with the nonce of the challenge. Returns the packets that the switch
/// sends in answer to the repeated Join.
pub(crate) fn join_from(switch: &mut Switch, now: Instant, from: &Endpoint, join: &[u8]) -> Vec<Vec<u8>> {
    let mut join = join.to_vec();
    loop {
        switch.handle_datagrams(now, from, Class::Control, &join, join.len());
        let mut sent = Vec::new();
        while let Some(transmit) = switch.poll_transmit() {
            if transmit.recipients().any(|to| to.peer == from.peer) {
                sent.push(transmit.payload.to_vec());
            }
        }
        let is_challenged = sent.iter().any(|answer| answer_challenge(&mut join, answer));
        if !is_challenged {
            return sent;
        }
    }
}

fn describe(to: u8, class: Class, bytes: &[u8], element: ElementType) -> Sent {
    if class == Class::Data {
        let packet = DataPacket::new_checked(bytes).unwrap();
        let Seg { index, round, contributions } = packet.seg();
        let mut floats = vec![0.0; packet.element_bytes().len() / element.len_bytes()];
        iswitch_element::widen(element, packet.element_bytes(), &mut floats);
        return Sent::Result { to, index: index.get(), round: round.get(), contributions, floats };
    }
    let repr = ControlRepr::parse(&ControlPacket::new_checked(bytes).unwrap()).unwrap();
    match repr.body {
        ControlBody::Ack(AckRepr { status, round, expected, missing, boot, .. }) => {
            assert_ne!(boot, 0);
            let missing = missing.map_or(Vec::new(), |missing| missing.indices().collect());
            Sent::Ack { to, request: repr.request, status, round: round.get(), expected, missing }
        }
        ControlBody::Halt => Sent::Halted { to },
        ControlBody::Absent(absent) => {
            let (round, count) = (absent.round, absent.count);
            let members =
                absent.members().map(|member| (member.rank, member.host.as_str().to_owned())).collect();
            Sent::Absent { to, request: repr.request, round: round.get(), count, members }
        }
        other => panic!("unexpected control packet from the switch: {other:?}"),
    }
}
