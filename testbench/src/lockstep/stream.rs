//! Random packets of a random job: those that a round needs, mixed with packets that must not change any sum.

use std::iter;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::ops::Range;

use hdl::accelerator::Build;
use hdl::accelerator::records::{MAX_FLOATS, MEMBERS};
use hdl::host::{HOST_PORT, JobSetup, MIN_FRAME_LEN_BYTES, Member, PACE_10G, contribution, member_frame};
use hdl::simulation::{Command, Frame};
use iswitch_protocol::limits::{DEFAULT_CONTROL_TOS, MAX_BITMAP_LEN_BYTES};
use iswitch_protocol::wire::control::{RangeRepr, SegmentSetRepr, Status};
use iswitch_protocol::wire::frame::HEADERS_LEN_BYTES;
use iswitch_protocol::wire::{Class, ControlBody, ControlRepr};
use iswitch_protocol::{Round, Seg, SegmentIndex, VectorLayout};
use rand::seq::SliceRandom as _;
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::oracle::Oracle;

/// Maximum number of packets in a job. The next constant is the maximum for a job with more segments than slots.
const JOB_PACKETS: usize = 400;
const LARGE_JOB_PACKETS: usize = 1_200;
/// Number of segments that are in flight at once. The next constant is the maximum distance of a stray packet from
/// these segments. The sum of the two constants is less than the number of slots, because a segment must be complete
/// before the next segment in the same slot begins.
const WINDOW_SEGMENTS: u32 = 60;
const STRAY_SEGMENTS: u32 = 60;
/// Maximum number of segments that a Help requests. With this limit, the accelerator can determine that none of them
/// is finished before it has been idle for long enough to count as drained.
pub(super) const HELP_SEGMENTS: u32 = 24;

/// Offset of the bitmap in a Help, in bytes: the header of a control packet and the range come first.
const BITMAP_AT: usize = 24;

/// Offsets of fields in a frame, in bytes.
const ETHERTYPE: usize = 12;
const VERSION: usize = 14;
const TOS: usize = 15;
const IP_LEN: usize = 16;
const FRAGMENT: usize = 20;
const PROTOCOL: usize = 23;
const TO_ADDRESS: usize = 30;
const TO_PORT: usize = 36;
const UDP_LEN: usize = 38;

/// Kind of a frame, which determines whether and how it must leave the accelerator.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A contribution, which the accelerator does not forward.
    Data,
    /// A control packet, which the accelerator forwards unchanged and also passes to the host.
    Control,
    /// Any other frame, which the accelerator forwards unchanged.
    Ordinary,
}

/// Frame that is sent.
pub(super) struct Sent {
    pub(super) frame: Frame,
    pub(super) kind: Kind,
    /// Number of bytes after which the frame ends, if it is shorter than `tuser` indicates.
    cut: Option<u16>,
    /// Whether the next frame is sent only once the accelerator has sent all its output.
    drains: bool,
}

impl Sent {
    fn new(frame: Frame, kind: Kind) -> Self {
        Self { frame, kind, cut: None, drains: false }
    }

    /// Returns the frame as the accelerator must forward it, or `None` for a contribution.
    pub(super) fn forwarded(&self) -> Option<Frame> {
        let mut frame = self.frame.clone();
        match self.kind {
            Kind::Data => return None,
            Kind::Control => frame.destination |= HOST_PORT,
            Kind::Ordinary => {}
        }
        Some(frame)
    }

    /// Returns the commands that send the frame.
    pub(super) fn commands(self) -> impl Iterator<Item = Command> {
        let send = match self.cut {
            Some(len) => Command::Cut(self.frame, len),
            None => Command::Send(self.frame),
        };
        iter::once(send).chain(self.drains.then_some(Command::Drain))
    }
}

/// Job, and the packets that its members send.
pub(super) struct Stream {
    random: ChaCha8Rng,
    setup: JobSetup,
    round: Round,
    /// Index of the first segment in flight.
    position: u32,
    /// Whether the job has more segments than slots, so that segments share slots.
    is_large: bool,
    /// Whether the accelerator may answer a late contribution before the next frame is sent.
    waits: bool,
    requests: u32,
    malformed: u64,
    /// Number of segments that the Helps request.
    requested: u64,
}

impl Stream {
    pub(super) fn new(build: Build, seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        // In jobs with short segments, packets of the same segment follow each other closely in the adders, and results
        // need padding.
        let longest = if random.random_range(0..3) == 0 { 12 } else { MAX_FLOATS };
        let segment_floats = random.random_range(1..=longest);
        // One job in eight has up to as many segments as there are slots; another one in eight has more segments than
        // slots.
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
        // In some jobs, round numbers wrap around.
        let base = match random.random_range(0..4) {
            0 => Round::new(u32::MAX).minus(random.random_range(0..4)),
            _ => Round::new(random.random()),
        };
        let pace = [0, PACE_10G][random.random_range(0..2)];
        let members = (0..workers).map(|number| Member {
            address: SocketAddrV4::new(
                Ipv4Addr::new(10, 0, 0, 10 + number as u8),
                random.random_range(1024..=65535),
            ),
            is_switch: false,
            port: port(number),
        });
        let members = members.collect();
        let (is_large, waits) = (kind == 1, kind != 1 && random.random());
        let (threshold, forwards_strangers) = (workers as u8, random.random());
        let setup = JobSetup { id: 5, layout, base, threshold, members, pace, forwards_strangers };
        Self {
            random,
            setup,
            round: base,
            position: 0,
            is_large,
            waits,
            requests: 1,
            malformed: 0,
            requested: 0,
        }
    }

    /// Returns the port of the member at this address, as a bit of `tuser`, or 0 if there is none.
    pub(super) fn port_of(&self, address: SocketAddrV4) -> u8 {
        self.setup.members.iter().find(|member| member.address == address).map_or(0, |member| member.port)
    }

    pub(super) fn setup(&self) -> &JobSetup {
        &self.setup
    }

    /// Returns the maximum number of packets of the job.
    pub(super) fn most_packets(&self) -> usize {
        if self.is_large { LARGE_JOB_PACKETS } else { JOB_PACKETS }
    }

    /// Returns whether the accelerator repeats exactly the results that the core repeats. Otherwise, a slot may be
    /// reused while a request is waiting, and the core keeps results longer than the accelerator if the vector has
    /// more segments than slots.
    pub(super) fn repeats_exactly(&self) -> bool {
        self.waits
    }

    /// Returns whether segments share slots.
    pub(super) fn is_large(&self) -> bool {
        self.is_large
    }

    /// Returns the number of frames from [`Self::malform`] so far.
    pub(super) fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Returns the number of results that the Helps request so far.
    pub(super) fn requested(&self) -> u64 {
        self.requested
    }

    /// Returns a random number below `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.random.random_range(0..end)
    }

    /// Returns a full frame, and the number of bus beats of that frame after which the board is reset.
    pub(super) fn half_a_frame(&mut self) -> (Frame, u8) {
        let round = self.round;
        let payload = self.contribution(0, round, usize::from(MAX_FLOATS), 1);
        (self.frame(0, Class::Data, &payload), self.random.random_range(1..48))
    }

    /// Returns the given number of frames, and passes each of them to the core as well.
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

    /// Sends all contributions to the given segments in the current round, mixed with packets that the round does not
    /// need.
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
            // The core receives a contribution only if the contribution is also sent to the accelerator.
            if sent.len() < count {
                let contributed = self.contribute(worker, index, self.round, oracle);
                sent.push(contributed);
            }
        }
    }

    fn contribute(&mut self, worker: usize, index: u32, round: Round, oracle: &mut Oracle) -> Sent {
        let index = SegmentIndex::new(index).expect("the index must be in the vector");
        let len = self.setup.layout.range(index).len();
        let weight = self.weight();
        let payload = self.contribution(index.get(), round, len, weight);
        self.data(worker, &payload, oracle)
    }

    /// Returns a weight of 0 or 1 for a contribution. Both weights stand for a single contribution.
    fn weight(&self) -> u16 {
        u16::from(self.requests % 2 == 1)
    }

    /// Returns a packet that a round does not need.
    fn disturb(&mut self, oracle: &mut Oracle) -> Sent {
        let workers = self.setup.members.len();
        let worker = self.below(workers);
        let segments = self.setup.layout.segment_count();
        let index = self.stray_index();
        let len =
            self.setup.layout.range(SegmentIndex::new(index).expect("the index must be in range")).len();
        let round = match self.below(4) {
            0 => self.round.minus(self.random.random_range(1..6)),
            1 if !self.is_large => self.round.plus(self.random.random_range(1..6)),
            _ => self.round,
        };
        match self.below(11) {
            0 => {
                self.requests += 1;
                let threshold = self.random.random_range(1..=self.setup.members.len() as u16);
                let from = self.setup.members[worker].address;
                let bytes = oracle.control(from, self.requests, ControlBody::SetH { threshold });
                Sent::new(self.frame(worker, Class::Control, &bytes), Kind::Control)
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
            8 => self.help(worker, index, round, oracle),
            _ => {
                let payload = self.contribution(index, round, len, 1);
                self.data(worker, &payload, oracle)
            }
        }
    }

    /// Returns a Help for some of the segments from `first` on. Some Helps must not be answered: those for another
    /// job, with a bitmap that ends too early, or with a range beyond the vector.
    fn help(&mut self, worker: usize, first: u32, round: Round, oracle: &mut Oracle) -> Sent {
        self.requests += 1;
        let segments = self.setup.layout.segment_count();
        let variant = self.below(8);
        let most = (segments - first).min(HELP_SEGMENTS);
        let count = if variant == 0 { segments - first + 1 } else { self.random.random_range(1..=most) };
        let mut bitmap = [0; MAX_BITMAP_LEN_BYTES];
        self.random.fill_bytes(&mut bitmap);
        let range = RangeRepr { round, first, count };
        let wanted = SegmentSetRepr { range, bitmap: &bitmap[..count.div_ceil(8) as usize] };
        let job = self.setup.id + u32::from(variant == 1);
        let repr = ControlRepr { job, request: self.requests, body: ControlBody::Help(wanted) };
        let mut bytes = vec![0; repr.buffer_len()];
        repr.emit(&mut bytes);
        if variant == 2 {
            // The packet ends before the last byte of its bitmap.
            bytes.truncate(BITMAP_AT + wanted.bitmap.len() - 1);
        }
        oracle.control_bytes(self.setup.members[worker].address, &bytes);
        let is_refused = oracle.take_status() == Some(Status::UnknownMember);
        if variant > 2 && is_refused {
            // The switch is still waiting for a contribution to the previous round. The accelerator leaves the
            // refusal to the host, and repeats what it has kept.
            return self.ordinary();
        }
        if variant > 2 {
            self.requested += wanted.indices().count() as u64;
        }
        Sent { drains: self.waits, ..Sent::new(self.frame(worker, Class::Control, &bytes), Kind::Control) }
    }

    /// Returns the index of a segment that the core and the accelerator treat alike.
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
        // The EtherType is never that of IPv4.
        bytes[12] = 0x86;
        let source = port(self.below(4));
        Sent::new(Frame { bytes, source, destination: 0 }, Kind::Ordinary)
    }

    /// Returns a contribution whose sender is not a member: it has either an address that no member has, or a member's
    /// address but another port. If the accelerator forwards such packets, this one is ordinary traffic, and the core
    /// does not receive it.
    fn stranger(&mut self, worker: usize, index: u32, round: Round, len: usize, oracle: &mut Oracle) -> Sent {
        let payload = self.contribution(index, round, len, 1);
        let mut from = self.setup.members[worker].address;
        if self.random.random() {
            from.set_ip(Ipv4Addr::new(10, 0, 9, 9));
        } else {
            from.set_port(from.port() ^ 1 << self.below(16));
        }
        let frame = Frame { bytes: member_frame(from, Class::Data, &payload), source: 1, destination: 0 };
        if self.setup.forwards_strangers {
            return Sent::new(frame, Kind::Ordinary);
        }
        oracle.data(from, &payload);
        Sent::new(frame, Kind::Data)
    }

    /// Returns a contribution that is a fragment, that ends too early, or whose lengths contradict each other.
    fn malform(&mut self, worker: usize, payload: &[u8]) -> Sent {
        let mut frame = self.frame(worker, Class::Data, payload);
        let len = HEADERS_LEN_BYTES + payload.len();
        let mut cut = None;
        match self.below(6) {
            0 => frame.bytes[FRAGMENT] |= 0x20,
            1 => frame.bytes[FRAGMENT + 1] |= 1 << self.below(8),
            2 => frame.bytes[IP_LEN + 1] ^= 4 << self.below(6),
            3 => frame.bytes[UDP_LEN + 1] ^= 4 << self.below(6),
            4 => cut = Some(self.random.random_range(HEADERS_LEN_BYTES as u16..frame.bytes.len() as u16)),
            // The frame is shorter than its IPv4 header indicates.
            _ if len > MIN_FRAME_LEN_BYTES => frame.bytes.truncate(len - 1),
            _ => frame.bytes[FRAGMENT] |= 0x20,
        }
        self.malformed += 1;
        Sent { frame, kind: Kind::Data, cut, drains: false }
    }

    /// Returns a packet that resembles a contribution but does not belong to the job, so the accelerator must forward
    /// it.
    fn foreign(&mut self, worker: usize, payload: &[u8]) -> Sent {
        let mut frame = self.frame(worker, Class::Data, payload);
        let (byte, bits) =
            [(ETHERTYPE, 8), (VERSION, 8), (TOS, 6), (PROTOCOL, 8), (TO_ADDRESS, 32), (TO_PORT, 8)]
                [self.below(6)];
        // The accelerator ignores the two lowest bits of the ToS byte.
        let lowest = if byte == TOS { 2 } else { 0 };
        let bit = lowest + self.below(bits);
        frame.bytes[byte + bit / 8] ^= 1 << (bit % 8);
        // One of the changed ToS values is that of control packets.
        let is_control = frame.bytes[TOS] & 0xfc == DEFAULT_CONTROL_TOS;
        Sent::new(frame, if is_control { Kind::Control } else { Kind::Ordinary })
    }

    fn data(&mut self, worker: usize, payload: &[u8], oracle: &mut Oracle) -> Sent {
        let before = oracle.repeats.len();
        oracle.data(self.setup.members[worker].address, payload);
        let drains = self.waits && oracle.repeats.len() > before;
        Sent { drains, ..Sent::new(self.frame(worker, Class::Data, payload), Kind::Data) }
    }

    fn frame(&mut self, worker: usize, class: Class, payload: &[u8]) -> Frame {
        let mut bytes = member_frame(self.setup.members[worker].address, class, payload);
        // The padding of a short frame may have any content.
        self.random.fill_bytes(&mut bytes[HEADERS_LEN_BYTES + payload.len()..]);
        Frame { bytes, source: port(worker), destination: 0 }
    }

    fn contribution(&mut self, index: u32, round: Round, len: usize, weight: u16) -> Vec<u8> {
        let index = SegmentIndex::new(index).expect("the index must fit into 24 bits");
        let floats: Vec<_> = (0..len).map(|_| self.float()).collect();
        let mut payload = contribution(Seg { index, round, contributions: 1 }, &floats);
        payload[6..8].copy_from_slice(&weight.to_le_bytes());
        payload
    }

    /// Returns the random bits of a float. On average, every second float has an ordinary magnitude.
    fn float(&mut self) -> u32 {
        let bits: u32 = self.random.random();
        if bits & 1 == 0 { bits } else { bits & 0x87ff_ffff | 0x3800_0000 }
    }
}

/// Returns the network port of a worker, as a bit of `tuser`.
fn port(worker: usize) -> u8 {
    1 << (2 * (worker % 4))
}
