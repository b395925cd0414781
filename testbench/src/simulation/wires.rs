//! The cables between the switch and the workers, and what is under way on them.

use std::net::SocketAddrV4;

use iswitch_protocol::Instant;
use iswitch_protocol::limits::{IPV4_HEADER_LEN_BYTES, UDP_HEADER_LEN_BYTES};
use iswitch_protocol::wire::Class;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::network::{Damage, Link, LinkCounters};
use super::packets::{Packet, Packets};
use super::queue::Queue;
use super::swarm::Scenario;
use super::{Happening, worker_at};

const HEADER_LEN_BYTES: usize = IPV4_HEADER_LEN_BYTES + UDP_HEADER_LEN_BYTES;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// Towards the switch.
    Up,
    /// Towards a worker.
    Down,
}

/// All links, and the queue of what is to happen.
#[derive(Debug)]
pub(super) struct Wires {
    up: Vec<Link>,
    down: Vec<Link>,
    pub(super) queue: Queue<Happening>,
    pub(super) packets: Packets,
    random: ChaCha8Rng,
    pub(super) counters: LinkCounters,
    /// Whether a super-frame has one fate.
    offload: bool,
}

impl Wires {
    pub(super) fn new(scenario: &Scenario, seed: u64) -> Self {
        let link = |worker: usize, is_faulty: bool| {
            let is_faulty = is_faulty && scenario.faulty_workers >> worker & 1 == 1;
            Link::new(if is_faulty { scenario.link } else { scenario.link.healed() })
        };
        let links = |is_faulty| (0..scenario.workers).map(|worker| link(worker, is_faulty)).collect();
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        // The scenario was drawn from the first stream.
        random.set_stream(1);
        Self {
            up: links(scenario.faulty_up),
            down: links(scenario.faulty_down),
            queue: Queue::new(),
            packets: Packets::default(),
            random,
            counters: LinkCounters::default(),
            offload: scenario.offload,
        }
    }

    /// Puts datagrams on the wire between the switch and each of `peers`.
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
                self.send_piece(now, direction, *peer, class, piece, stride);
            }
        }
    }

    fn send_piece(
        &mut self,
        now: Instant,
        direction: Direction,
        peer: SocketAddrV4,
        class: Class,
        piece: &[u8],
        stride: usize,
    ) {
        let links = if direction == Direction::Up { &mut self.up } else { &mut self.down };
        let datagrams = piece.len().div_ceil(stride.max(1));
        let len = piece.len() + datagrams * HEADER_LEN_BYTES;
        let arrivals = links[worker_at(peer)].carry(now, len, &mut self.random, &mut self.counters);
        for arrival in arrivals.into_iter().flatten() {
            let packet = self.packets.add(class, piece, stride);
            if arrival.damage == Damage::Missed {
                let Packet { bytes, .. } = self.packets.get_mut(packet);
                let at = self.random.random_range(0..bytes.len());
                bytes[at] ^= 1 << self.random.random_range(0..8);
            }
            let is_bad = arrival.damage == Damage::Found;
            let what = match direction {
                Direction::Up => Happening::AtSwitch { packet, peer, is_bad },
                Direction::Down => Happening::AtWorker { packet, peer, is_bad },
            };
            self.queue.push(arrival.at, what);
        }
    }

    /// Begins or ends a partition of some workers.
    pub(super) fn partition(&mut self, workers: u64, up: bool, down: bool, change: fn(&mut Link)) {
        let selected = |links: &mut Vec<Link>| {
            links
                .iter_mut()
                .enumerate()
                .filter(|(worker, _)| workers >> worker & 1 == 1)
                .for_each(|(_, link)| change(link));
        };
        if up {
            selected(&mut self.up);
        }
        if down {
            selected(&mut self.down);
        }
    }

    /// Ends all faults; what is under way stays so.
    pub(super) fn heal(&mut self) {
        self.up.iter_mut().chain(&mut self.down).for_each(Link::heal);
    }
}
