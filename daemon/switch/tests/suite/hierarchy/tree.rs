//! A tree of switches connected by links without delay: one root, two racks, two workers per rack.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddrV4};

use crate::common::{control, data, is_challenge, join, range};
use iswitch_protocol::Round;
use iswitch_protocol::wire::control::{SegmentSetRepr, answer_challenge};
use iswitch_protocol::wire::{
    AckRepr, Action, Class, ControlBody, ControlPacket, ControlRepr, DataPacket, JoinRepr, ResumeRepr,
    Standing, Status,
};
use iswitch_switch::{Config, Endpoint, Event, Instant, PortId, Switch, Uplinks};

pub(super) const JOB: u32 = crate::common::JOB;
pub(super) const ROOT: usize = 0;
pub(super) const RACKS: [usize; 2] = [1, 2];
pub(super) const LEASE_MS: u32 = 1000;
/// Epoch of the first job of the root.
pub(super) const EPOCH: u64 = 0x2ab8_4167_bfe2_1364;

/// Packet that a worker received: a result, an Ack or a notice.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Got {
    Result {
        index: u32,
        round: u32,
        contributions: u16,
        first: f32,
    },
    Ack {
        action: Action,
        status: Status,
        formed: bool,
        standing: Standing,
        round: u32,
        history: u64,
        orphaned: bool,
        expected: u32,
        threshold: u16,
    },
    Notice,
}

pub(super) struct Packet {
    pub(super) from: SocketAddrV4,
    pub(super) to: SocketAddrV4,
    pub(super) class: Class,
    pub(super) payload: Vec<u8>,
    pub(super) stride: usize,
}

/// A tree of switches connected by links without delay.
pub(super) struct Tree {
    pub(super) switches: Vec<Switch>,
    pub(super) now_ms: u64,
    pub(super) wire: VecDeque<Packet>,
    /// Packets that have arrived at workers since the last call of `take`.
    pub(super) got: Vec<(SocketAddrV4, Got)>,
    /// Last Join of each worker, which the worker repeats if the switch sends it a challenge.
    pub(super) joins: BTreeMap<SocketAddrV4, Vec<u8>>,
    /// Hosts that are cut off: all datagrams from and to these addresses are lost.
    pub(super) cut: Vec<Ipv4Addr>,
}

/// Returns the address at which members reach a switch.
pub(super) fn service(at: usize) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, at as u8, 254), 7711)
}

/// Returns the address from which the switch of a rack sends to the root.
pub(super) fn uplink(rack: usize) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, rack as u8), 7721)
}

pub(super) fn worker(rack: usize, place: u8) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, rack as u8, place), 5000)
}

pub(super) fn config(at: usize, boot: u64) -> Config {
    let uplinks = Uplinks::new(&[service(ROOT)], PortId(1), 4);
    Config {
        boot,
        lease_ms: LEASE_MS,
        memory_bytes: 1 << 20,
        uplinks: if at == ROOT { None } else { uplinks },
        ..Config::default()
    }
}

impl Tree {
    pub(super) fn new() -> Self {
        let switches = (0..3).map(|at| Switch::new(config(at, 100 + at as u64))).collect();
        Self {
            switches,
            now_ms: 1,
            wire: VecDeque::new(),
            got: Vec::new(),
            joins: BTreeMap::new(),
            cut: Vec::new(),
        }
    }

    /// Returns a tree in which all four workers have joined.
    pub(super) fn formed() -> Self {
        let mut tree = Self::new();
        for rack in RACKS {
            for place in 1..=2 {
                tree.join(rack, place, None);
            }
        }
        tree.run();
        tree
    }

    pub(super) fn now(&self) -> Instant {
        Instant::from_nanos(self.now_ms * 1_000_000)
    }

    pub(super) fn join(&mut self, rack: usize, place: u8, resume: impl Into<Option<ResumeRepr>>) {
        let join = JoinRepr { resume: resume.into(), ..join(4) };
        self.send_join(rack, place, join);
    }

    pub(super) fn send_join(&mut self, rack: usize, place: u8, join: JoinRepr) {
        let packet = control(JOB, 1, ControlBody::Join(join));
        self.joins.insert(worker(rack, place), packet.clone());
        self.send(rack, place, Class::Control, &packet);
    }

    pub(super) fn send(&mut self, rack: usize, place: u8, class: Class, payload: &[u8]) {
        let packet = Packet {
            from: worker(rack, place),
            to: service(rack),
            class,
            payload: payload.to_vec(),
            stride: payload.len(),
        };
        self.wire.push_back(packet);
        self.run();
    }

    /// Delivers packets until none is in flight.
    pub(super) fn run(&mut self) {
        for at in 0..self.switches.len() {
            self.drain(at);
        }
        while let Some(packet) = self.wire.pop_front() {
            if self.cut.contains(packet.from.ip()) || self.cut.contains(packet.to.ip()) {
                continue;
            }
            let by_uplink = RACKS.into_iter().find(|rack| uplink(*rack) == packet.to);
            let by_service = (0..3).find(|at| service(*at) == packet.to);
            let Some(at) = by_uplink.or(by_service) else {
                if is_challenge(packet.class, &packet.payload) {
                    let mut join = self.joins[&packet.to].clone();
                    assert!(answer_challenge(&mut join, &packet.payload));
                    let (from, to, stride) = (packet.to, packet.from, join.len());
                    self.wire.push_back(Packet { from, to, class: Class::Control, payload: join, stride });
                    continue;
                }
                let got = packet
                    .payload
                    .chunks(packet.stride)
                    .map(|bytes| (packet.to, describe(packet.class, bytes)));
                self.got.extend(got);
                continue;
            };
            let port = PortId(u8::from(by_uplink.is_some()));
            let from =
                Endpoint { port, peer: packet.from, local: packet.to, peer_mac: [0; 6], local_mac: [0; 6] };
            let now = self.now();
            self.switches[at].handle_datagrams(now, &from, packet.class, &packet.payload, packet.stride);
            self.drain(at);
        }
    }

    pub(super) fn drain(&mut self, at: usize) {
        while let Some(transmit) = self.switches[at].poll_transmit() {
            for to in transmit.recipients() {
                let from = if to.port == PortId(0) { service(at) } else { uplink(at) };
                self.wire.push_back(Packet {
                    from,
                    to: to.peer,
                    class: transmit.class,
                    payload: transmit.payload.to_vec(),
                    stride: transmit.stride,
                });
            }
        }
    }

    pub(super) fn sleep(&mut self, ms: u64) {
        for _ in 0..ms {
            self.now_ms += 1;
            let now = self.now();
            self.switches.iter_mut().for_each(|switch| switch.handle_timeout(now));
            self.run();
        }
    }

    /// Advances the time while the workers send heartbeats.
    pub(super) fn live(&mut self, ms: u64) {
        for _ in 0..ms.div_ceil(100) {
            self.sleep(100);
            for rack in RACKS {
                for place in 1..=2 {
                    self.help(rack, place, 0, 0);
                }
            }
        }
    }

    pub(super) fn contribute(&mut self, rack: usize, place: u8, round: u32) {
        let x = f32::from(place) + 10.0 * rack as f32;
        self.send(rack, place, Class::Data, &data(0, round, &[x, x]));
    }

    pub(super) fn help(&mut self, rack: usize, place: u8, round: u32, count: u32) {
        let bitmap = [0xff; 8];
        let set =
            SegmentSetRepr { range: range(round, 0, count), bitmap: &bitmap[..count.div_ceil(8) as usize] };
        self.send(
            rack,
            place,
            Class::Control,
            &control(JOB, u32::from(count > 0) * 9, ControlBody::Help(set)),
        );
    }

    pub(super) fn take(&mut self) -> Vec<(SocketAddrV4, Got)> {
        std::mem::take(&mut self.got)
    }

    /// Returns the packet that all four workers received, which must be the same for all.
    pub(super) fn result_for_all(&mut self) -> Got {
        let mut results: Vec<_> =
            self.take().into_iter().filter(|(_, got)| matches!(got, Got::Result { .. })).collect();
        results.sort_by_key(|(to, _)| *to);
        results.dedup();
        let receivers: Vec<_> = results.iter().map(|(to, _)| *to).collect();
        assert_eq!(receivers, [worker(1, 1), worker(1, 2), worker(2, 1), worker(2, 2)], "{results:?}");
        assert!(results.iter().all(|(_, got)| *got == results[0].1), "{results:?}");
        results.swap_remove(0).1
    }

    pub(super) fn events(&mut self, at: usize) -> Vec<Event> {
        std::iter::from_fn(|| self.switches[at].poll_event()).collect()
    }

    pub(super) fn restart(&mut self, at: usize, boot: u64) {
        self.switches[at] = Switch::new(config(at, boot));
    }

    /// Returns the standing and the round in the Ack that each worker got when the job was complete.
    pub(super) fn standings(&mut self) -> Vec<(SocketAddrV4, Standing, u32)> {
        let mut reported: Vec<_> = self
            .take()
            .into_iter()
            .filter_map(|(to, got)| match got {
                Got::Ack { action: Action::Join, formed: true, standing, round, .. } => {
                    Some((to, standing, round))
                }
                _ => None,
            })
            .collect();
        reported.sort_by_key(|(to, ..)| *to);
        reported.dedup();
        reported
    }
}

pub(super) fn describe(class: Class, bytes: &[u8]) -> Got {
    if class == Class::Data {
        let packet = DataPacket::new_checked(bytes).unwrap();
        let seg = packet.seg();
        let first = packet.floats().next().unwrap();
        return Got::Result {
            index: seg.index.get(),
            round: seg.round.get(),
            contributions: seg.contributions,
            first,
        };
    }
    match ControlRepr::parse(&ControlPacket::new_checked(bytes).unwrap()).unwrap().body {
        ControlBody::Ack(ack) => {
            let AckRepr { action, status, formed, standing, history, orphaned, expected, threshold, .. } =
                ack;
            let round = ack.round.get();
            Got::Ack { action, status, formed, standing, round, history, orphaned, expected, threshold }
        }
        _ => Got::Notice,
    }
}

/// Sum of the contributions of all four workers.
pub(super) const ALL: f32 = 11.0 + 12.0 + 21.0 + 22.0;

pub(super) fn sum_of_all(round: u32) -> Got {
    Got::Result { index: 0, round, contributions: 4, first: ALL }
}

pub(super) fn resume(round: u32, history: u64, previous: u64) -> ResumeRepr {
    let round = Round::new(round);
    ResumeRepr { round, members: 2, weight: 4, threshold: 0, history, previous, behind: 0, fresh: false }
}
