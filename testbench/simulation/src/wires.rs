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

/// Links that fail together.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ends {
    /// Links of workers, as a bit mask.
    Workers(u64),
    /// Link between this switch and its parent.
    Rack(usize),
}

impl Ends {
    fn has(self, member: Member) -> bool {
        match (self, member) {
            (Self::Workers(workers), Member::Worker(worker)) => workers >> worker & 1 == 1,
            (Self::Rack(rack), Member::Rack(other)) => rack == other,
            _ => false,
        }
    }
}

/// All links and the event queue.
#[derive(Debug)]
pub(super) struct Wires {
    /// Links of the workers, followed by those of the switches below the root.
    up: Vec<Link>,
    down: Vec<Link>,
    workers: usize,
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
        let is_faulty: Vec<_> =
            workers.chain(scenario.racks.iter().map(|_| scenario.faulty_uplinks)).collect();
        let link = |is_faulty| Link::new(if is_faulty { scenario.link } else { scenario.link.healed() });
        let links = |all: bool| is_faulty.iter().map(|is_faulty| link(all && *is_faulty)).collect();
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        // The first random stream was used to draw the scenario.
        random.set_stream(1);
        Self {
            up: links(scenario.faulty_up),
            down: links(scenario.faulty_down),
            workers: scenario.workers,
            queue: Queue::new(),
            packets: Packets::default(),
            random,
            counters: LinkCounters::default(),
            offload: scenario.offload,
        }
    }

    /// Puts datagrams on the links between `peers` and their switch.
    pub(super) fn send(
        &mut self,
        now: Instant,
        direction: Direction,
        peers: &[SocketAddrV4],
        class: Class,
        payload: &[u8],
        stride: usize,
    ) {
        let piece_len = if self.offload { payload.len() } else { stride };
        for piece in payload.chunks(piece_len.max(1)) {
            for peer in peers {
                self.send_piece(now, direction, (*peer, None), class, piece, stride);
            }
        }
    }

    /// Puts datagrams for a group on the links to the workers that are subscribed to that group.
    pub(super) fn send_to_group(
        &mut self,
        now: Instant,
        group: SocketAddrV4,
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
                self.send_piece(now, Direction::Down, (*peer, Some(group)), class, piece, stride);
            }
        }
    }

    fn send_piece(
        &mut self,
        now: Instant,
        direction: Direction,
        (peer, group): (SocketAddrV4, Option<SocketAddrV4>),
        class: Class,
        piece: &[u8],
        stride: usize,
    ) {
        let link_at = match member_at(peer) {
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
                Direction::Up => ScheduledEvent::AtSwitch { packet, peer, is_bad },
                Direction::Down => ScheduledEvent::AtMember { packet, peer, group, is_bad },
            };
            self.queue.push(arrival.at, what);
        }
    }

    /// Starts or ends a partition.
    pub(super) fn partition(&mut self, ends: Ends, up: bool, down: bool, change: fn(&mut Link)) {
        let workers = self.workers;
        let member = |at| if at < workers { Member::Worker(at) } else { Member::Rack(at - workers + 1) };
        for (links, is_cut) in [(&mut self.up, up), (&mut self.down, down)] {
            let cut = links.iter_mut().enumerate().filter(|(at, _)| is_cut && ends.has(member(*at)));
            cut.for_each(|(_, link)| change(link));
        }
    }

    /// Ends all faults; packets in flight are not affected.
    pub(super) fn heal(&mut self) {
        self.up.iter_mut().chain(&mut self.down).for_each(Link::heal);
    }
}
