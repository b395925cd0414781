//! Random packets of a random job: those that a round needs, and among them all that should change nothing.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::ops::Range;

use hdl::accelerator::Build;
use hdl::accelerator::records::{MAX_FLOATS, MEMBERS};
use hdl::host::{JobSetup, MIN_FRAME_LEN_BYTES, Member, contribution, member_frame};
use hdl::simulation::Frame;
use iswitch_protocol::wire::frame::HEADERS_LEN_BYTES;
use iswitch_protocol::wire::{Class, ControlBody};
use iswitch_protocol::{Round, Seg, SegmentIndex, VectorLayout};
use rand::seq::SliceRandom as _;
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::oracle::Oracle;

/// Packets of a job at most; of one that has to go around the slots more.
const JOB_PACKETS: usize = 400;
const LARGE_JOB_PACKETS: usize = 1_200;
/// Segments that are under way at once, and how far a packet that nobody needs may be from them: together less than the
/// slots, because a segment has to be finished before the next one with its slot begins.
const WINDOW_SEGMENTS: u32 = 60;
const STRAY_SEGMENTS: u32 = 60;

/// Where the fields lie in a frame, in bytes.
const ETHERTYPE: usize = 12;
const VERSION: usize = 14;
const TOS: usize = 15;
const IP_LEN: usize = 16;
const FRAGMENT: usize = 20;
const PROTOCOL: usize = 23;
const TO_PORT: usize = 36;
const UDP_LEN: usize = 38;

/// A frame, and whether it is the accelerator's alone.
pub(super) struct Sent {
    pub(super) frame: Frame,
    pub(super) is_data: bool,
}

/// A job and what its members send.
pub(super) struct Stream {
    random: ChaCha8Rng,
    setup: JobSetup,
    round: Round,
    /// First of the segments under way.
    position: u32,
    /// Whether segments share slots.
    is_large: bool,
    requests: u32,
    malformed: u64,
}

impl Stream {
    pub(super) fn new(build: Build, seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        // Short segments meet themselves in the adders, and their results need padding.
        let longest = if random.random_range(0..3) == 0 { 12 } else { MAX_FLOATS };
        let segment_floats = random.random_range(1..=longest);
        // One job in eight fills the buffer; one has more segments than slots.
        let kind = random.random_range(0..8);
        let slots = build.slots();
        let segments = match kind {
            0 => random.random_range(1..=slots),
            1 => random.random_range(slots + 1..=2 * slots + 40),
            _ => random.random_range(1..=12),
        };
        let last = u32::from(random.random_range(1..=segment_floats));
        let gradient_len = (segments - 1) * u32::from(segment_floats) + last;
        let layout = VectorLayout::new(gradient_len, segment_floats).expect("the sizes are in range");
        let workers = random.random_range(2..=if kind == 1 { 3 } else { MEMBERS });
        // Rounds wrap in some jobs.
        let base = match random.random_range(0..4) {
            0 => Round::new(u32::MAX).minus(random.random_range(0..4)),
            _ => Round::new(random.random()),
        };
        let members = (0..workers).map(|number| Member {
            address: SocketAddrV4::new(
                Ipv4Addr::new(10, 0, 0, 10 + number as u8),
                random.random_range(1024..=65535),
            ),
            is_switch: false,
        });
        let members = members.collect();
        let setup = JobSetup { id: 5, layout, base, threshold: workers as u8, members };
        Self { random, setup, round: base, position: 0, is_large: kind == 1, requests: 1, malformed: 0 }
    }

    pub(super) fn setup(&self) -> &JobSetup {
        &self.setup
    }

    /// Packets of the job at most.
    pub(super) fn most_packets(&self) -> usize {
        if self.is_large { LARGE_JOB_PACKETS } else { JOB_PACKETS }
    }

    /// Frames of [`Self::malform`] so far.
    pub(super) fn malformed(&self) -> u64 {
        self.malformed
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.random.random_range(0..end)
    }

    /// A full frame, and after how many of its beats the board is reset.
    pub(super) fn half_a_frame(&mut self) -> (Frame, u8) {
        let round = self.round;
        let payload = self.contribution(0, round, usize::from(MAX_FLOATS), 1);
        (self.frame(0, Class::Data, &payload), self.random.random_range(1..48))
    }

    /// So many frames, each of which the core has taken in.
    pub(super) fn frames(&mut self, count: usize, oracle: &mut Oracle) -> Vec<Sent> {
        let mut sent = Vec::with_capacity(count);
        while sent.len() < count {
            let segments = self.setup.layout.segment_count();
            let window = if self.is_large { WINDOW_SEGMENTS } else { segments };
            for position in (0..segments).step_by(window as usize) {
                self.position = position;
                self.send_window(position..segments.min(position + window), count, &mut sent, oracle);
            }
            self.round = self.round.next();
        }
        sent
    }

    /// All contributions to these segments in the present round, and some packets among them.
    fn send_window(&mut self, segments: Range<u32>, count: usize, sent: &mut Vec<Sent>, oracle: &mut Oracle) {
        let workers = self.setup.members.len();
        let mut pairs: Vec<_> = segments.flat_map(|index| (0..workers).map(move |w| (w, index))).collect();
        if self.random.random() {
            pairs.shuffle(&mut self.random);
        }
        for (worker, index) in pairs {
            if sent.len() < count && self.random.random_range(0..6) == 0 {
                let disturbance = self.disturb(oracle);
                sent.push(disturbance);
            }
            // The core takes in what is sent, and nothing else.
            if sent.len() < count {
                let contributed = self.contribute(worker, index, self.round, oracle);
                sent.push(contributed);
            }
        }
    }

    fn contribute(&mut self, worker: usize, index: u32, round: Round, oracle: &mut Oracle) -> Sent {
        let index = SegmentIndex::new(index).expect("the vector has it");
        let len = self.setup.layout.range(index).len();
        let weight = self.weight();
        let payload = self.contribution(index.get(), round, len, weight);
        self.data(worker, &payload, oracle)
    }

    /// One, which zero stands for as well.
    fn weight(&self) -> u16 {
        u16::from(self.requests % 2 == 1)
    }

    /// A packet that a round does not need.
    fn disturb(&mut self, oracle: &mut Oracle) -> Sent {
        let workers = self.setup.members.len();
        let worker = self.below(workers);
        let segments = self.setup.layout.segment_count();
        let index = self.stray_index();
        let len = self.setup.layout.range(SegmentIndex::new(index).expect("in range")).len();
        let round = match self.below(4) {
            0 => self.round.minus(self.random.random_range(1..6)),
            1 if !self.is_large => self.round.plus(self.random.random_range(1..6)),
            _ => self.round,
        };
        match self.below(10) {
            0 => {
                self.requests += 1;
                let threshold = self.random.random_range(1..=self.setup.members.len() as u16);
                let from = self.setup.members[worker].address;
                let bytes = oracle.control(from, self.requests, ControlBody::SetH { threshold });
                Sent { frame: self.frame(worker, Class::Control, &bytes), is_data: false }
            }
            1 => self.ordinary(),
            2 => {
                let payload = self.contribution(index + segments, round, len, 1);
                self.data(worker, &payload, oracle)
            }
            3 => {
                let payload = self.contribution(index, round, len % usize::from(MAX_FLOATS) + 1, 1);
                self.data(worker, &payload, oracle)
            }
            4 => {
                let weight = self.random.random_range(2..=u16::MAX);
                let payload = self.contribution(index, round, len, weight);
                self.data(worker, &payload, oracle)
            }
            5 => self.stranger(worker, index, round, len, oracle),
            6 => {
                let payload = self.contribution(index, round, len, 1);
                self.malform(worker, &payload)
            }
            7 => {
                let payload = self.contribution(index, round, len, 1);
                self.foreign(worker, &payload)
            }
            _ => {
                let payload = self.contribution(index, round, len, 1);
                self.data(worker, &payload, oracle)
            }
        }
    }

    /// Of any segment that both sides agree about.
    fn stray_index(&mut self) -> u32 {
        let segments = self.setup.layout.segment_count();
        let (first, end) = if self.is_large {
            let end = self.position + WINDOW_SEGMENTS + STRAY_SEGMENTS;
            (self.position.saturating_sub(STRAY_SEGMENTS), end)
        } else {
            (0, segments)
        };
        self.random.random_range(first..segments.min(end))
    }

    fn ordinary(&mut self) -> Sent {
        let mut bytes = vec![0; self.random.random_range(60..=1514)];
        self.random.fill_bytes(&mut bytes);
        // Never an IPv4 packet.
        bytes[12] = 0x86;
        let source = 1 << (2 * self.below(4));
        Sent { frame: Frame { bytes, source, destination: 0 }, is_data: false }
    }

    /// From another address, or from another port of a member's address.
    fn stranger(&mut self, worker: usize, index: u32, round: Round, len: usize, oracle: &mut Oracle) -> Sent {
        let payload = self.contribution(index, round, len, 1);
        let mut from = self.setup.members[worker].address;
        if self.random.random() {
            from.set_ip(Ipv4Addr::new(10, 0, 9, 9));
        } else {
            from.set_port(from.port() ^ 1 << self.below(16));
        }
        oracle.data(from, &payload);
        let frame = Frame { bytes: member_frame(from, Class::Data, &payload), source: 1, destination: 0 };
        Sent { frame, is_data: true }
    }

    /// A contribution that is a fragment, or whose lengths contradict each other.
    fn malform(&mut self, worker: usize, payload: &[u8]) -> Sent {
        let mut frame = self.frame(worker, Class::Data, payload);
        let len = HEADERS_LEN_BYTES + payload.len();
        match self.below(5) {
            0 => frame.bytes[FRAGMENT] |= 0x20,
            1 => frame.bytes[FRAGMENT + 1] |= 1 << self.below(8),
            2 => frame.bytes[IP_LEN + 1] ^= 4 << self.below(6),
            3 => frame.bytes[UDP_LEN + 1] ^= 4 << self.below(6),
            // Shorter than the IPv4 header says.
            _ if len > MIN_FRAME_LEN_BYTES => frame.bytes.truncate(len - 1),
            _ => frame.bytes[FRAGMENT] |= 0x20,
        }
        self.malformed += 1;
        Sent { frame, is_data: true }
    }

    /// What looks like a contribution, but is not the job's: it goes past.
    fn foreign(&mut self, worker: usize, payload: &[u8]) -> Sent {
        let mut frame = self.frame(worker, Class::Data, payload);
        let (byte, bits) =
            [(ETHERTYPE, 8), (VERSION, 8), (TOS, 6), (PROTOCOL, 8), (TO_PORT, 8)][self.below(5)];
        // The lowest bits of the ToS byte are not looked at.
        let lowest = if byte == TOS { 2 } else { 0 };
        frame.bytes[byte] ^= 1 << (lowest + self.below(bits));
        Sent { frame, is_data: false }
    }

    fn data(&mut self, worker: usize, payload: &[u8], oracle: &mut Oracle) -> Sent {
        oracle.data(self.setup.members[worker].address, payload);
        Sent { frame: self.frame(worker, Class::Data, payload), is_data: true }
    }

    fn frame(&mut self, worker: usize, class: Class, payload: &[u8]) -> Frame {
        let mut bytes = member_frame(self.setup.members[worker].address, class, payload);
        // What fills a short frame up may be anything.
        self.random.fill_bytes(&mut bytes[HEADERS_LEN_BYTES + payload.len()..]);
        Frame { bytes, source: 1 << (2 * (worker % 4)), destination: 0 }
    }

    fn contribution(&mut self, index: u32, round: Round, len: usize, weight: u16) -> Vec<u8> {
        let index = SegmentIndex::new(index).expect("24 bits");
        let floats: Vec<_> = (0..len).map(|_| self.float()).collect();
        let mut payload = contribution(Seg { index, round, contributions: 1 }, &floats);
        payload[6..8].copy_from_slice(&weight.to_le_bytes());
        payload
    }

    /// Any float; every other one of ordinary size.
    fn float(&mut self) -> u32 {
        let bits: u32 = self.random.random();
        if bits & 1 == 0 { bits } else { bits & 0x87ff_ffff | 0x3800_0000 }
    }
}
