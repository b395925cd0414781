//! The links between switches and their members, and the packets in flight on them.

use std::net::SocketAddrV4;

use iswitch_protocol::Instant;
use iswitch_protocol::limits::{IPV4_HEADER_LEN_BYTES, UDP_HEADER_LEN_BYTES};
use iswitch_protocol::wire::Class;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::ScheduledEvent;
use super::addresses::{Member, member_at};
use super::network::{Damage, Link, LinkCounters};
use super::packets::{Packet, Packets};
use super::queue::Queue;
use super::swarm::Scenario;

const HEADER_LEN_BYTES: usize = IPV4_HEADER_LEN_BYTES + UDP_HEADER_LEN_BYTES;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// Towards the switch.
    Up,
    /// Towards a member.
    Down,
}

/// The ends of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LinkEnds {
    /// Address of the member at the lower end.
    pub(super) peer: SocketAddrV4,
    /// Index of the switch at the upper end.
    pub(super) switch: usize,
}

/// Links that fail together.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ends {
    /// Links of workers to the root or to the switches below it, as a bit mask.
    Workers(u64),
    /// Links of workers to the standby switch, as a bit mask.
    Standby(u64),
    /// Link between this switch and its parent.
    Rack(usize),
}

impl Ends {
    /// Returns whether a link is among these. `is_standby` indicates whether it leads to the standby switch.
    fn has(self, member: Member, is_standby: bool) -> bool {
        match (self, member) {
            (Self::Workers(workers), Member::Worker(worker)) => !is_standby && workers >> worker & 1 == 1,
            (Self::Standby(workers), Member::Worker(worker)) => is_standby && workers >> worker & 1 == 1,
            (Self::Rack(rack), Member::Rack(other)) => rack == other,
            _ => false,
        }
    }
}

/// All links and the event queue.
#[derive(Debug)]
pub(super) struct Wires {
    /// Links of the workers, followed by those of the switches below the root or by those of the workers to the standby
    /// switch.
    up: Vec<Link>,
    down: Vec<Link>,
    workers: usize,
    has_standby: bool,
    pub(super) queue: Queue<ScheduledEvent>,
    pub(super) packets: Packets,
    random: ChaCha8Rng,
    pub(super) counters: LinkCounters,
    /// Whether a super-frame is lost, delayed or corrupted as a unit.
    offload: bool,
}

impl Wires {
    pub(super) fn new(scenario: &Scenario, seed: u64) -> Self {
        let workers = (0..scenario.workers).map(|worker| scenario.faulty_workers >> worker & 1 == 1);
        let to_standby = workers.clone().filter(|_| scenario.standby.is_some());
        let racks = scenario.racks.iter().map(|_| scenario.faulty_uplinks);
        let is_faulty: Vec<_> = workers.chain(racks).chain(to_standby).collect();
        let link = |is_faulty| Link::new(if is_faulty { scenario.link } else { scenario.link.healed() });
        let links = |all: bool| is_faulty.iter().map(|is_faulty| link(all && *is_faulty)).collect();
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        // The first random stream was used to draw the scenario.
        random.set_stream(1);
        Self {
            up: links(scenario.faulty_up),
            down: links(scenario.faulty_down),
            workers: scenario.workers,
            has_standby: scenario.standby.is_some(),
            queue: Queue::new(),
            packets: Packets::default(),
            random,
            counters: LinkCounters::default(),
            offload: scenario.offload,
        }
    }

    /// Puts datagrams on the links between `peers` and the switch at index `switch`.
    pub(super) fn send(
        &mut self,
        now: Instant,
        direction: Direction,
        (peers, switch): (&[SocketAddrV4], usize),
        class: Class,
        payload: &[u8],
        stride: usize,
    ) {
        let piece_len = if self.offload { payload.len() } else { stride };
        for piece in payload.chunks(piece_len.max(1)) {
            for peer in peers {
                let link = LinkEnds { peer: *peer, switch };
                self.send_piece(now, direction, (link, None), class, piece, stride);
            }
        }
    }

    /// Puts datagrams for a group on the links to the workers that are subscribed to that group.
    pub(super) fn send_to_group(
        &mut self,
        now: Instant,
        (group, switch): (SocketAddrV4, usize),
        (subscribers, loss): (&[SocketAddrV4], f64),
        class: Class,
        payload: &[u8],
        stride: usize,
    ) {
        let piece_len = if self.offload { payload.len() } else { stride };
        for piece in payload.chunks(piece_len.max(1)) {
            for peer in subscribers {
                if loss > 0.0 && self.random.random_bool(loss) {
                    self.counters.lost += 1;
                    continue;
                }
                let link = LinkEnds { peer: *peer, switch };
                self.send_piece(now, Direction::Down, (link, Some(group)), class, piece, stride);
            }
        }
    }

    fn send_piece(
        &mut self,
        now: Instant,
        direction: Direction,
        (link, group): (LinkEnds, Option<SocketAddrV4>),
        class: Class,
        piece: &[u8],
        stride: usize,
    ) {
        let link_at = match member_at(link.peer) {
            Member::Worker(worker) if self.has_standby => worker + self.workers * link.switch,
            Member::Worker(worker) => worker,
            Member::Rack(rack) => self.workers + rack - 1,
        };
        let links = if direction == Direction::Up { &mut self.up } else { &mut self.down };
        let datagrams = piece.len().div_ceil(stride.max(1));
        let len = piece.len() + datagrams * HEADER_LEN_BYTES;
        let arrivals = links[link_at].carry(now, len, &mut self.random, &mut self.counters);
        for arrival in arrivals.into_iter().flatten() {
            let packet = self.packets.add(class, piece, stride);
            if arrival.damage == Damage::Missed {
                let Packet { bytes, .. } = self.packets.get_mut(packet);
                let at = self.random.random_range(0..bytes.len());
                bytes[at] ^= 1 << self.random.random_range(0..8);
            }
            let is_bad = arrival.damage == Damage::Found;
            let what = match direction {
                Direction::Up => ScheduledEvent::AtSwitch { packet, link, is_bad },
                Direction::Down => ScheduledEvent::AtMember { packet, link, group, is_bad },
            };
            self.queue.push(arrival.at, what);
        }
    }

    /// Starts or ends a partition.
    pub(super) fn partition(&mut self, ends: Ends, up: bool, down: bool, change: fn(&mut Link)) {
        let (workers, has_standby) = (self.workers, self.has_standby);
        let is_in = |at: usize| match at.checked_sub(workers) {
            None => ends.has(Member::Worker(at), false),
            Some(worker) if has_standby => ends.has(Member::Worker(worker), true),
            Some(rack) => ends.has(Member::Rack(rack + 1), false),
        };
        for (links, is_cut) in [(&mut self.up, up), (&mut self.down, down)] {
            let cut = links.iter_mut().enumerate().filter(|(at, _)| is_cut && is_in(*at));
            cut.for_each(|(_, link)| change(link));
        }
    }

    /// Ends all faults; packets in flight are not affected.
    pub(super) fn heal(&mut self) {
        self.up.iter_mut().chain(&mut self.down).for_each(Link::heal);
    }
}
