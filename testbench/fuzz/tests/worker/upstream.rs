//! A switch that authenticates its packets with the right key but sends arbitrary packets to the worker under test.

use std::collections::HashMap;

use iswitch_protocol::auth::{Direction, NO_SESSION};
use iswitch_protocol::limits::{
    DATA_TAG_LEN_BYTES, MAX_BITMAP_LEN_BYTES, MAX_SUPERFRAME_DATAGRAMS, MAX_SUPERFRAME_LEN_BYTES,
    TRAILER_LEN_BYTES,
};
use iswitch_protocol::wire::control::{RangeRepr, SegmentSetRepr};
use iswitch_protocol::wire::{
    AckRepr, Action, Class, ControlBody, ControlPacket, ControlRepr, DataPacket, JoinRepr, Mode, NameRepr,
    Standing, Status, emit_seg,
};
use iswitch_protocol::{Key, Round, Seg, SegmentIndex, VectorLayout};

use crate::turn::{self, Acknowledged, Joined, Keyed, Missing, RoundOffset, Scenario, Turn};

pub(crate) const JOB: u32 = 1;

/// Layouts of vectors with one segment, with several, with more than one super-frame, and with more than one Help
/// range.
const LAYOUTS: [(u32, u16); 4] = [(3, 4), (13, 4), (300, 3), (2100, 1)];

pub(crate) struct Datagrams {
    pub(crate) class: Class,
    pub(crate) bytes: Vec<u8>,
    pub(crate) stride: usize,
}

pub(crate) struct Upstream {
    pub(crate) layout: VectorLayout,
    key: Option<Key>,
    pub(crate) is_tagged: bool,
    join_request: u32,
    /// Ids of the requests received so far.
    requests: Vec<u32>,
    /// Range of the last Help or Confirm.
    asked: RangeRepr,
    /// Counter of the worker's last packet.
    counter: u64,
    session: u64,
    own_counter: u64,
    boot: u64,
    said: Vec<(Class, Vec<u8>, usize)>,
    /// Results that were sent for each round and segment.
    results: HashMap<(u32, u32), Vec<Vec<u32>>>,
}

pub(crate) fn layout(scenario: &Scenario) -> VectorLayout {
    let (len, floats) = LAYOUTS[usize::from(scenario.layout)];
    VectorLayout::new(len, floats).expect("the layout must be valid")
}

pub(crate) fn key(scenario: &Scenario) -> Option<Key> {
    let key = Key::new(b"the key of this job").expect("the key must be long enough");
    (scenario.keyed != Keyed::No).then_some(key)
}

pub(crate) fn join(scenario: &Scenario, mode: Mode) -> JoinRepr {
    let layout = layout(scenario);
    JoinRepr {
        mode,
        instance: scenario.instance,
        tagged: scenario.keyed == Keyed::ControlAndData,
        ..JoinRepr::worker(layout.gradient_len(), layout.segment_floats(), 2)
    }
}

/// Returns the names that the worker declares, which depend on its instance.
pub(crate) fn name(scenario: &Scenario) -> NameRepr {
    let rank = (scenario.instance & 1 == 1).then_some(scenario.instance as u16 & 0xff);
    let host = if scenario.instance & 2 == 2 { "gpu07" } else { "" };
    NameRepr { rank, host: host.parse().expect("the name is short"), ..NameRepr::UNKNOWN }
}

fn near(round: Round, offset: RoundOffset) -> Round {
    let distance = u32::from(offset.0.unsigned_abs());
    if offset.0 < 0 { round.minus(distance) } else { round.plus(distance) }
}

fn round_of(at: Round, round: turn::Round) -> Round {
    match round {
        turn::Round::Near(offset) => near(at, offset),
        turn::Round::Far(round) => Round::new(round),
    }
}

impl Upstream {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        Self {
            layout: layout(scenario),
            key: key(scenario),
            is_tagged: scenario.keyed == Keyed::ControlAndData,
            join_request: 0,
            requests: Vec::new(),
            asked: RangeRepr { round: Round::new(0), first: 0, count: 0 },
            counter: 0,
            session: NO_SESSION,
            own_counter: 0,
            boot: 1,
            said: Vec::new(),
            results: HashMap::new(),
        }
    }

    /// Checks packets from the worker, and records the values that an answer needs.
    pub(crate) fn hear(&mut self, class: Class, bytes: &[u8], stride: usize, vector: Option<&[f32]>) {
        assert!(!bytes.is_empty() && stride > 0 && bytes.len() <= MAX_SUPERFRAME_LEN_BYTES);
        if class == Class::Data {
            assert!(bytes.len().div_ceil(stride) <= MAX_SUPERFRAME_DATAGRAMS);
            return bytes.chunks(stride).for_each(|packet| self.check_contribution(packet, vector));
        }
        let packet = ControlPacket::new_checked(bytes).expect("the worker must send a valid packet");
        let repr = ControlRepr::parse(&packet).expect("the worker must send a valid packet");
        assert_eq!(packet.is_authenticated(), self.key.is_some());
        assert_eq!(repr.job, JOB);
        self.counter = packet.counter().unwrap_or(0);
        match repr.body {
            ControlBody::Join(_) => self.join_request = repr.request,
            ControlBody::Help(set) | ControlBody::Confirm(set) if set.range.count > 0 => {
                assert!(set.range.first + set.range.count <= self.layout.segment_count());
                self.asked = set.range;
                self.requests.push(repr.request);
            }
            _ => self.requests.push(repr.request),
        }
    }

    /// Checks that a contribution equals the vector of the worker's caller, if `vector` is given.
    fn check_contribution(&self, packet: &[u8], vector: Option<&[f32]>) {
        let tag_len = if self.is_tagged { DATA_TAG_LEN_BYTES } else { 0 };
        let content = &packet[..packet.len() - tag_len];
        let packet = DataPacket::new_checked(content).expect("the worker must send a valid packet");
        let range = self.layout.range(packet.seg().index);
        assert_eq!(packet.element_bytes().len(), 4 * range.len());
        if let Some(vector) = vector {
            assert!(packet.floats().map(f32::to_bits).eq(vector[range].iter().map(|x| x.to_bits())));
        }
    }

    /// Returns the datagrams that a turn of the switch sends. `at` is the round of the worker.
    pub(crate) fn say(&mut self, turn: &Turn, at: Round) -> Option<Datagrams> {
        let datagrams = match turn {
            Turn::Join(joined) => self.answer_join(joined, at)?,
            Turn::Challenge(nonce) => {
                let nonce = u64::from(*nonce);
                let ack = AckRepr { status: Status::Challenge, history: nonce, ..self.ack(Action::Join, at) };
                let challenge = self.echo(self.join_request, ControlBody::Ack(ack));
                self.session = nonce;
                challenge
            }
            Turn::Ack(acknowledged) => self.acknowledge(acknowledged, at)?,
            Turn::Results { round, first, count, variant } => {
                self.results(near(at, *round), u32::from(*first), u32::from(*count), *variant)?
            }
            Turn::WrongLength { round, index, floats } => {
                let index = SegmentIndex::new(u32::from(*index))?;
                let seg = Seg { index, round: near(at, *round), contributions: 1 };
                let floats = vec![1.0; usize::from(*floats)];
                if floats.len() == self.layout.range(index).len() {
                    return None;
                }
                one(Class::Data, self.packet(seg, &floats))
            }
            Turn::Halt => self.seal(0, ControlBody::Halt),
            Turn::Bytes(is_control, bytes, stride) => {
                let class = if *is_control { Class::Control } else { Class::Data };
                self.note_bytes(class, bytes, usize::from(*stride));
                return Some(Datagrams { class, bytes: bytes.clone(), stride: usize::from(*stride) });
            }
            Turn::Again { age, at, flip } => return self.again(*age, *at, *flip),
            Turn::Begin | Turn::Take | Turn::Order(_) | Turn::Sleep { .. } => return None,
        };
        self.said.push((datagrams.class, datagrams.bytes.clone(), datagrams.stride));
        Some(datagrams)
    }

    fn answer_join(&mut self, joined: &Joined, at: Round) -> Option<Datagrams> {
        let status = joined.refusal.map_or(Some(Status::Success), |status| Status::from_code(status.0))?;
        if status == Status::Success && joined.formed {
            self.boot = u64::from(joined.boot);
        }
        let ack = AckRepr {
            status,
            formed: joined.formed,
            standing: Standing::from_code(joined.standing)?,
            round: round_of(at, joined.round),
            history: u64::from(joined.history),
            boot: u64::from(joined.boot),
            window: joined.window,
            lease_ms: u32::from(joined.lease_ms),
            ..self.ack(Action::Join, at)
        };
        Some(self.seal(self.join_request, ControlBody::Ack(ack)))
    }

    fn acknowledge(&mut self, acknowledged: &Acknowledged, at: Round) -> Option<Datagrams> {
        let Acknowledged { formed, pinned, orphaned, .. } = *acknowledged;
        let (action, status) =
            (Action::from_code(acknowledged.action)?, Status::from_code(acknowledged.status)?);
        let round = round_of(at, acknowledged.round);
        let carries_missing = status == Status::Success && matches!(action, Action::Help | Action::Confirm);
        let mut bits = [0; MAX_BITMAP_LEN_BYTES];
        let mut set = |range: RangeRepr, byte: u8| {
            bits = [byte; MAX_BITMAP_LEN_BYTES];
            range
        };
        let range = match acknowledged.missing {
            Missing::Nothing => set(RangeRepr { round, first: 0, count: 0 }, 0),
            Missing::Some { first, count, bits } => {
                set(RangeRepr { round, first: u32::from(first), count: u32::from(count) }, bits)
            }
            Missing::AsAsked { bits } => set(self.asked, bits),
            Missing::Beyond { first, count } => {
                set(RangeRepr { round, first, count: u32::from(count) }, 0xff)
            }
        };
        let boot = if acknowledged.other_boot { self.boot + 1 } else { self.boot };
        let (history, expected) = (u64::from(acknowledged.history), u32::from(acknowledged.expected));
        let missing = carries_missing.then(|| SegmentSetRepr::of(range, &bits));
        let ack = AckRepr {
            status,
            formed,
            pinned,
            orphaned,
            round,
            boot,
            history,
            expected,
            missing,
            ..self.ack(action, at)
        };
        let age = self.requests.len().checked_sub(1 + usize::from(acknowledged.request_age));
        let request = age.map_or(0, |age| self.requests[age]);
        Some(self.seal(request, ControlBody::Ack(ack)))
    }

    fn results(&mut self, round: Round, first: u32, count: u32, variant: u8) -> Option<Datagrams> {
        let end = first.saturating_add(count).min(self.layout.segment_count());
        let mut packets = Vec::new();
        for index in (first..end).filter_map(SegmentIndex::new) {
            let seg = Seg { index, round, contributions: u16::from(variant % 8) + 1 };
            let first = f32::from(variant) + index.get() as f32 * 256.0;
            let floats: Vec<f32> =
                (0..self.layout.range(index).len()).map(|lane| first + lane as f32 / 8.0).collect();
            packets.push(self.packet(seg, &floats));
            self.note_result(seg, &floats);
        }
        let stride = packets.first()?.len();
        Some(Datagrams { class: Class::Data, bytes: packets.concat(), stride })
    }

    fn note_result(&mut self, seg: Seg, floats: &[f32]) {
        let bits = floats.iter().map(|x| x.to_bits()).chain([u32::from(seg.contributions)]).collect();
        self.results.entry((seg.round.get(), seg.index.get())).or_default().push(bits);
    }

    /// Records the results among arbitrary bytes, which may happen to be valid data packets.
    fn note_bytes(&mut self, class: Class, bytes: &[u8], stride: usize) {
        if class == Class::Control || self.is_tagged {
            return;
        }
        for bytes in bytes.chunks(stride.max(1)) {
            if let Ok(packet) = DataPacket::new_checked(bytes) {
                self.note_result(packet.seg(), &packet.floats().collect::<Vec<_>>());
            }
        }
    }

    /// Checks that each segment of a sum, together with its number of contributions, equals a result that the switch
    /// sent.
    pub(crate) fn check_sum(&self, round: Round, sum: &[f32], contributions: impl Fn(u32) -> Option<u16>) {
        for index in (0..self.layout.segment_count()).filter_map(SegmentIndex::new) {
            let sent = self.results.get(&(round.get(), index.get())).map_or(&[][..], Vec::as_slice);
            let own: Vec<u32> = sum[self.layout.range(index)].iter().map(|x| x.to_bits()).collect();
            let counted = contributions(index.get()).map(u32::from);
            let is_sent = sent.iter().any(|result| {
                let (count, floats) = result.split_last().expect("the last word must be the count");
                floats == own && counted.is_none_or(|counted| counted == *count)
            });
            assert!(is_sent, "round {round}, segment {index:?}: {own:?} was never sent, but {sent:?}");
        }
    }

    fn again(&mut self, age: u8, at: u8, flip: u8) -> Option<Datagrams> {
        let place = self.said.len().checked_sub(1 + usize::from(age))?;
        let (class, mut bytes, stride) = self.said[place].clone();
        let len = bytes.len();
        bytes[usize::from(at) % len] ^= flip;
        self.note_bytes(class, &bytes, stride);
        Some(Datagrams { class, bytes, stride })
    }

    fn ack(&self, action: Action, round: Round) -> AckRepr<'static> {
        AckRepr {
            members: 2,
            threshold: 2,
            round,
            window: 16,
            formed: true,
            boot: self.boot,
            lease_ms: 1000,
            weight: 2,
            ..AckRepr::bare(action, Status::Success)
        }
    }

    fn packet(&self, seg: Seg, floats: &[f32]) -> Vec<u8> {
        let mut bytes = vec![0; 8 + 4 * floats.len()];
        for (word, x) in emit_seg(&mut bytes, seg).as_chunks_mut().0.iter_mut().zip(floats) {
            *word = x.to_le_bytes();
        }
        if let Some(key) = self.key.as_ref().filter(|_| self.is_tagged) {
            bytes.resize(bytes.len() + DATA_TAG_LEN_BYTES, 0);
            key.result_key(self.boot, JOB).sign(&mut bytes);
        }
        bytes
    }

    fn seal(&mut self, request: u32, body: ControlBody<'_>) -> Datagrams {
        if self.session == NO_SESSION {
            return self.echo(request, body);
        }
        self.own_counter += 1;
        one(Class::Control, self.signed(request, body, (self.session, self.own_counter)))
    }

    fn echo(&self, request: u32, body: ControlBody<'_>) -> Datagrams {
        one(Class::Control, self.signed(request, body, (NO_SESSION, self.counter)))
    }

    fn signed(&self, request: u32, body: ControlBody<'_>, (context, counter): (u64, u64)) -> Vec<u8> {
        let repr = ControlRepr { job: JOB, request, body };
        let mut bytes = vec![0; repr.buffer_len()];
        repr.emit(&mut bytes);
        if let Some(key) = &self.key {
            bytes.resize(bytes.len() + TRAILER_LEN_BYTES, 0);
            key.sign(Direction::ToMember, context, counter, &mut bytes);
        }
        bytes
    }
}

fn one(class: Class, bytes: Vec<u8>) -> Datagrams {
    let stride = bytes.len();
    Datagrams { class, bytes, stride }
}
