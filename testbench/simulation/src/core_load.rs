//! Load on the switch core alone: the members' packets are prepared in advance, and no packet is sent over a network.
//!
//! Members send super-frames in turn, as they do when their windows are equally full. The sum of a segment therefore
//! stays in the CPU cache until the last member's contribution has been added to it.

use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::str::FromStr;

use iswitch_protocol::limits::{
    DEFAULT_SEGMENT_FLOATS, FLOAT_LEN_BYTES, MAX_MEMBERS, MAX_SUPERFRAME_LEN_BYTES, SEG_LEN_BYTES,
    async_generations, superframe_datagrams,
};
use iswitch_protocol::wire::control::answer_challenge;
use iswitch_protocol::wire::{Class, ControlBody, ControlRepr, JoinRepr, Mode, emit_seg};
use iswitch_protocol::{Round, Seg, SegmentIndex};
use iswitch_switch::{Config, Endpoint, Instant, NonFinite, PortId, Switch, Uplinks, accumulate};
use strum::IntoEnumIterator as _;

const JOB: u32 = 1;
/// Number of floats in a full segment.
pub const SEGMENT_FLOATS: usize = DEFAULT_SEGMENT_FLOATS as usize;
/// Number of members of the load whose instructions are counted.
pub const INSTRUCTION_MEMBERS: usize = 4;
/// Number of segments of the load whose instructions are counted: one super-frame per member.
pub const INSTRUCTION_SEGMENTS: usize = 44;
/// Memory of a slot, in bytes; the switch charges it to the memory for sums.
const SLOT_BYTES: usize = 256;

/// Mode in which the core processes the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum LoadMode {
    /// Sums contributions on arrival.
    Synchronous,
    /// Stores contributions and sums them in rank order.
    Ordered,
    /// Sets vectors aside until they are complete.
    Asynchronous,
    /// Computes partial sums for a parent and processes the parent's results.
    Partial,
}

impl LoadMode {
    /// Returns the name as printed in tables.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl FromStr for LoadMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || Self::iter().map(Self::name).collect::<Vec<_>>().join(", ");
        let found = Self::iter().find(|mode| mode.name() == text);
        found.ok_or_else(|| format!("mode is {text:?}, expected one of {}", expected()))
    }
}

/// Mode and size of a job on the switch core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Mode in which the core processes the packets.
    pub mode: LoadMode,
    /// Number of members that contribute to each segment, 1 to [`MAX_MEMBERS`].
    pub members: usize,
    /// Number of segments in the vector.
    pub segments: usize,
    /// Number of floats in each segment, 1 to [`SEGMENT_FLOATS`].
    pub floats: usize,
}

impl Shape {
    /// Creates a shape with full segments.
    pub const fn new(mode: LoadMode, members: usize, segments: usize) -> Self {
        Self { mode, members, segments, floats: SEGMENT_FLOATS }
    }

    /// Returns the number of packets that the members send in a round.
    pub const fn contributions(&self) -> usize {
        self.members * self.segments
    }

    /// Returns the size of a packet's floats in bytes.
    pub const fn payload_bytes(&self) -> usize {
        self.floats * FLOAT_LEN_BYTES
    }

    /// Returns the size of a packet in bytes.
    pub const fn packet_bytes(&self) -> usize {
        SEG_LEN_BYTES + self.payload_bytes()
    }

    /// Returns the number of packets in a full super-frame.
    pub const fn frame_packets(&self) -> usize {
        superframe_datagrams(self.packet_bytes())
    }

    const fn vector_floats(&self) -> usize {
        self.segments * self.floats
    }

    fn memory_bytes(&self) -> usize {
        let vectors = match self.mode {
            LoadMode::Synchronous | LoadMode::Partial => 2,
            LoadMode::Ordered => 2 + self.members,
            LoadMode::Asynchronous => async_generations(self.vector_floats() as u32) + self.members,
        };
        // A synchronous job has two slots per segment, an asynchronous one as many as it has members.
        let slots = self.segments * self.members.max(2);
        vectors * self.vector_floats() * FLOAT_LEN_BYTES + slots * SLOT_BYTES
    }

    fn join(&self, member: usize) -> JoinRepr {
        let asynchronous = self.mode == LoadMode::Asynchronous;
        JoinRepr {
            mode: if asynchronous { Mode::Asynchronous } else { Mode::Synchronous },
            instance: 1,
            rank: member as u16,
            ..JoinRepr::worker(self.vector_floats() as u32, self.floats as u16, self.members as u16)
        }
    }
}

/// A switch with a job, and the packets that its members send.
#[derive(Debug)]
pub struct Load {
    shape: Shape,
    switch: Switch,
    now: Instant,
    members: Vec<Endpoint>,
    /// Endpoint from which the parent's results arrive.
    parent: Endpoint,
    /// Super-frames of one vector; all members send the same ones.
    frames: Vec<Vec<u8>>,
    round: Round,
    /// Partial sums that the switch has sent to its parent. They are handed back to the switch as results of the
    /// parent.
    partials: Vec<u8>,
}

fn member_endpoint(member: usize) -> Endpoint {
    endpoint(PortId(0), SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, member as u8 + 1), 5000))
}

fn endpoint(port: PortId, peer: SocketAddrV4) -> Endpoint {
    let local = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 254), 7711);
    Endpoint { port, peer, local, peer_mac: [0; 6], local_mac: [0; 6] }
}

/// Returns the super-frames of a vector of small numbers, with zero bytes in place of the segment headers.
fn frames(shape: Shape) -> Vec<Vec<u8>> {
    let float = |at: usize| (at * 37 % 1_009) as f32 / 1_009.0 - 0.5;
    let frame = |first: usize| {
        let packets = shape.frame_packets().min(shape.segments - first);
        let mut bytes = Vec::with_capacity(packets * shape.packet_bytes());
        for index in first..first + packets {
            bytes.extend_from_slice(&[0; SEG_LEN_BYTES]);
            bytes.extend((0..shape.floats).flat_map(|at| float(index + at).to_le_bytes()));
        }
        bytes
    };
    (0..shape.segments).step_by(shape.frame_packets()).map(frame).collect()
}

impl Load {
    /// Creates a switch whose job is complete.
    ///
    /// # Panics
    /// Panics if the switch refuses the job.
    pub fn new(shape: Shape) -> Self {
        assert!((1..=MAX_MEMBERS).contains(&shape.members) && shape.segments > 0);
        assert!((1..=SEGMENT_FLOATS).contains(&shape.floats));
        let parent = SocketAddrV4::new(Ipv4Addr::new(10, 0, 1, 1), 7711);
        let uplinks = Uplinks::new(&[parent], PortId(1), 1).filter(|_| shape.mode == LoadMode::Partial);
        let config = Config {
            memory_bytes: shape.memory_bytes(),
            ordered: shape.mode == LoadMode::Ordered,
            uplinks,
            ..Config::default()
        };
        let mut load = Self {
            shape,
            switch: Switch::new(config),
            now: Instant::from_nanos(1),
            members: (0..shape.members).map(member_endpoint).collect(),
            parent: endpoint(PortId(1), parent),
            frames: frames(shape),
            round: Round::default(),
            partials: Vec::with_capacity(MAX_SUPERFRAME_LEN_BYTES),
        };
        load.form();
        load
    }

    fn form(&mut self) {
        for (member, from) in self.members.iter().enumerate() {
            let mut bytes = join_packet(self.shape.join(member));
            self.switch.handle_datagrams(self.now, from, Class::Control, &bytes, bytes.len());
            let mut is_challenged = false;
            // With a parent, the last member's Join makes the switch send packets to that parent.
            while let Some(transmit) = self.switch.poll_transmit() {
                is_challenged |= answer_challenge(&mut bytes, transmit.payload);
            }
            assert!(is_challenged, "the switch must challenge a new member");
            self.switch.handle_datagrams(self.now, from, Class::Control, &bytes, bytes.len());
        }
        if self.shape.mode == LoadMode::Partial {
            self.join_parent();
        }
        while self.switch.poll_transmit().is_some() {}
        while self.switch.poll_event().is_some() {}
        let members = self.switch.jobs().next().map_or(0, |job| job.members.len());
        assert_eq!(members, self.shape.members, "all members must have joined");
        if self.shape.mode == LoadMode::Asynchronous {
            let epoch = self.switch.epoch_of(JOB).expect("the complete job must have an epoch");
            self.round = Round::first_vector(self.shape.join(0).instance, epoch);
        }
    }

    /// Passes the switch's Join to a real parent switch, and the parent's answers back to the switch.
    fn join_parent(&mut self) {
        let mut root =
            Switch::new(Config { memory_bytes: 3 * self.shape.memory_bytes(), ..Config::default() });
        let child = endpoint(PortId(0), SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 254), 7721));
        // The exchange consists of the Join, a challenge, the repeated Join and its Ack.
        for _ in 0..2 {
            while let Some(transmit) = self.switch.poll_transmit() {
                if transmit.recipients().any(|to| to.peer == self.parent.peer) {
                    let payload = transmit.payload;
                    root.handle_datagrams(self.now, &child, transmit.class, payload, payload.len());
                }
            }
            while let Some(transmit) = root.poll_transmit() {
                let payload = transmit.payload;
                self.switch.handle_datagrams(self.now, &self.parent, transmit.class, payload, payload.len());
            }
        }
    }

    /// Writes the number of the next round into all packets.
    pub fn prepare(&mut self) {
        let (round, stride) = (self.round, self.shape.packet_bytes());
        let packets = self.frames.iter_mut().flat_map(|frame| frame.chunks_mut(stride));
        for (index, packet) in (0..).filter_map(SegmentIndex::new).zip(packets) {
            emit_seg(packet, Seg { index, round, contributions: 1 });
        }
        self.round = round.next();
    }

    /// Lets all members contribute to all segments and drains the packets that the switch sends. Returns the number of
    /// packets sent to members; a packet counts once, regardless of its number of recipients.
    pub fn run(&mut self) -> usize {
        let mut results = 0;
        if self.shape.mode == LoadMode::Asynchronous {
            // A vector counts only once it is complete, so the members send theirs one after another.
            for member in 0..self.members.len() {
                for frame in 0..self.frames.len() {
                    results += self.send(member, frame);
                }
            }
        } else {
            for frame in 0..self.frames.len() {
                for member in 0..self.members.len() {
                    results += self.send(member, frame);
                }
            }
        }
        results
    }

    fn send(&mut self, member: usize, frame: usize) -> usize {
        let stride = self.shape.packet_bytes();
        let (from, frame) = (&self.members[member], &self.frames[frame]);
        self.switch.handle_datagrams(self.now, from, Class::Data, frame, stride);
        match self.shape.mode {
            LoadMode::Asynchronous => return self.drain_in_turns(),
            LoadMode::Synchronous | LoadMode::Ordered => return drain(&mut self.switch),
            LoadMode::Partial => {}
        }
        // With one child, the parent's results equal the child's partial sums.
        self.partials.clear();
        while let Some(transmit) = self.switch.poll_transmit() {
            self.partials.extend_from_slice(transmit.payload);
        }
        if self.partials.is_empty() {
            return 0;
        }
        self.switch.handle_datagrams(self.now, &self.parent, Class::Data, &self.partials, stride);
        drain(&mut self.switch)
    }

    /// Drains the switch repeatedly until it has no work left, because a switch adds a long vector in several turns.
    fn drain_in_turns(&mut self) -> usize {
        let mut results = drain(&mut self.switch);
        while self.switch.poll_timeout().is_some_and(|due| due <= self.now) {
            self.switch.handle_timeout(self.now);
            results += drain(&mut self.switch);
        }
        results
    }

    /// Checks that exactly the given number of rounds has run since the start, and that all their packets were summed
    /// and all their results computed.
    ///
    /// # Panics
    /// Panics if the counters do not match.
    pub fn check(&self, rounds: usize) {
        let counters = self.switch.counters();
        let contributions = (rounds * self.shape.contributions()) as u64;
        assert_eq!((counters.contributions, counters.dropped()), (contributions, 0), "{:?}", self.shape);
        assert_eq!(counters.results, (rounds * self.shape.segments) as u64, "{:?}", self.shape);
    }

    /// Returns the super-frames that each member sends.
    pub fn frames(&self) -> &[Vec<u8>] {
        &self.frames
    }
}

fn join_packet(join: JoinRepr) -> Vec<u8> {
    let repr = ControlRepr { job: JOB, request: 1, body: ControlBody::Join(join) };
    let mut bytes = vec![0; repr.buffer_len()];
    repr.emit(&mut bytes);
    bytes
}

/// Removes the data packets that the switch sends and returns their number.
fn drain(switch: &mut Switch) -> usize {
    let mut packets = 0;
    while let Some(transmit) = switch.poll_transmit() {
        packets += black_box(transmit.payload).len() / transmit.stride;
    }
    packets
}

/// Functions that add payloads to a sum, without the rest of the core. `add` adds one payload to the sum. `add_into`
/// adds the last payload of a segment and writes the result into the outgoing packet.
#[derive(Clone, Copy, Debug)]
pub struct Adder {
    add: fn(&mut [f32], &[u8]),
    add_into: fn(&mut [f32], &[u8], &mut [u8]),
}

impl Adder {
    /// The loop `sum[i] += payload[i]`, compiled for the target CPU of the build.
    pub const PLAIN: Self = Self { add: plain_add, add_into: plain_add_into };
    /// The addition routines that the core selects for this CPU, without the NaN check that the core performs before
    /// each addition.
    pub const CORE: Self = Self {
        add: |sum, payload| assert!(accumulate::accumulate(sum, payload, NonFinite::Sum)),
        add_into: |sum, payload, packet| {
            assert!(accumulate::accumulate_into(sum, payload, packet, NonFinite::Sum));
        },
    };
}

#[inline(never)]
fn plain_add(sum: &mut [f32], payload: &[u8]) {
    for (sum, word) in sum.iter_mut().zip(payload.as_chunks().0) {
        *sum += f32::from_le_bytes(*word);
    }
}

#[inline(never)]
fn plain_add_into(sum: &mut [f32], payload: &[u8], packet: &mut [u8]) {
    let packet = packet.as_chunks_mut().0;
    for ((sum, word), out) in sum.iter_mut().zip(payload.as_chunks().0).zip(packet) {
        *sum += f32::from_le_bytes(*word);
        *out = sum.to_le_bytes();
    }
}

/// Reference that does nothing but add the same packets to sums of the same size, in the same order, and write the
/// results into packets.
#[derive(Debug)]
pub struct Reference {
    shape: Shape,
    /// Sums of the even and of the odd rounds.
    sums: [Vec<f32>; 2],
    parity: usize,
    out: Vec<u8>,
}

impl Reference {
    /// Creates the sums for the segments of a load.
    pub fn new(shape: Shape) -> Self {
        let sums = [(); 2].map(|()| vec![0.0; shape.vector_floats()]);
        Self { shape, sums, parity: 0, out: vec![0; MAX_SUPERFRAME_LEN_BYTES] }
    }

    /// Adds all contributions of a round.
    pub fn run(&mut self, frames: &[Vec<u8>], adder: Adder) {
        let Shape { members, floats, .. } = self.shape;
        let stride = self.shape.packet_bytes();
        let sums = self.sums[self.parity].chunks_mut(self.shape.frame_packets() * floats);
        for (frame, sums) in frames.iter().zip(sums) {
            for _ in 1..members {
                let packets = black_box(frame).chunks(stride);
                for (packet, sum) in packets.zip(sums.chunks_mut(floats)) {
                    (adder.add)(sum, &packet[SEG_LEN_BYTES..]);
                }
            }
            let packets = black_box(frame).chunks(stride).zip(self.out.chunks_mut(stride));
            for ((packet, out), sum) in packets.zip(sums.chunks_mut(floats)) {
                (adder.add_into)(sum, &packet[SEG_LEN_BYTES..], &mut out[SEG_LEN_BYTES..]);
            }
            black_box(&self.out);
        }
        self.parity ^= 1;
    }
}
