//! Hosts: the packets that they send, and the state that they derive from the answers.

use iswitch_protocol::auth::{Conversation, Direction, TagKey};
use iswitch_protocol::limits::{DATA_TAG_LEN_BYTES, MAX_BITMAP_LEN_BYTES, MAX_SUPERFRAME_LEN_BYTES};
use iswitch_protocol::wire::control::{RangeRepr, SegmentSetRepr};
use iswitch_protocol::wire::{
    AckRepr, Action, Class, ControlBody, ControlPacket, ControlRepr, DigestRepr, JoinRepr, Kind, Mode,
    NameRepr, ResumeRepr, Status,
};
use iswitch_protocol::{ElementType, ElementTypes, Label, Round, Seg, SegmentIndex};
use iswitch_switch::{Endpoint, PortId};

use crate::marked::{self, Topic};
use crate::operation::{
    Change, Contribution, Floats, Joining, Oddity, Request, Resuming, RoundOffset, Segments, Weight,
};
use crate::world::{Place, Sent, World, data_packet, emit_control, host_endpoint, sign};

const ASYNCHRONOUS_JOB: u32 = 3;
/// Id of a request that a host repeats; other requests have ids from 1 on.
const REPEATED_REQUEST: u32 = 77;

/// State of a host.
#[derive(Debug)]
pub(crate) struct HostState {
    instance: u32,
    /// Job that the host last asked to join.
    job: u32,
    next_request: u32,
    conversation: Conversation,
    /// Key with which the host tags data, if its job requires tags.
    tag_key: Option<TagKey>,
    /// Number of the next asynchronous vector.
    number: Round,
    /// Epoch of the job that has admitted this instance.
    epoch: u64,
    /// Aggregation history that the switch last sent to the host.
    history: u64,
    is_challenged: bool,
}

impl HostState {
    pub(crate) fn new(host: u8) -> Self {
        let instance = 1 + u32::from(host);
        Self {
            instance,
            job: 1,
            next_request: 1,
            conversation: Conversation::new(1 + (u64::from(host) << 32)),
            tag_key: None,
            number: Round::default(),
            epoch: 0,
            history: 0,
            is_challenged: false,
        }
    }

    fn take_request(&mut self) -> u32 {
        self.next_request += 1;
        self.next_request
    }
}

/// Returns the round at an offset from another round.
pub(crate) fn offset(round: Round, offset: RoundOffset) -> Round {
    let distance = u32::from(offset.0.unsigned_abs());
    if offset.0 < 0 { round.minus(distance) } else { round.plus(distance) }
}

pub(crate) fn range(round: Round, segments: Segments) -> RangeRepr {
    RangeRepr { round, first: u32::from(segments.first), count: u32::from(segments.count) }
}

pub(crate) fn bitmap(segments: Segments) -> [u8; MAX_BITMAP_LEN_BYTES] {
    [segments.bits; MAX_BITMAP_LEN_BYTES]
}

impl World {
    pub(crate) fn join(&mut self, host: u8, joining: &Joining) {
        let state = &mut self.hosts[usize::from(host)];
        if joining.is_restarted {
            state.instance = state.instance.wrapping_add(100);
            state.epoch = 0;
        }
        state.job = u32::from(joining.job);
        // A challenged worker repeats its Join.
        for _ in 0..2 {
            self.hosts[usize::from(host)].is_challenged = false;
            let join = self.declaration(host, joining);
            self.send_control(host, ControlBody::Join(join));
            if !self.hosts[usize::from(host)].is_challenged {
                return;
            }
        }
    }

    fn declaration(&self, host: u8, joining: &Joining) -> JoinRepr {
        let state = &self.hosts[usize::from(host)];
        let is_asynchronous = state.job == ASYNCHRONOUS_JOB;
        // In each layout, a segment is shorter than the others or is the only one.
        let (len, segment_floats) = [(13, 4), (5, 2), (7, 7)][state.job as usize % 3];
        let join = JoinRepr {
            mode: if is_asynchronous { Mode::Asynchronous } else { Mode::Synchronous },
            instance: state.instance,
            rank: u16::from(joining.rank),
            nonce: state.conversation.session(),
            tagged: self.key_of(state.job).is_some() && state.job.is_multiple_of(2),
            resume: joining.resumes.map(|resuming| self.resume(host, resuming)),
            ..JoinRepr::worker(len, segment_floats, u16::from(joining.workers))
        };
        match joining.oddity {
            Oddity::No => join,
            Oddity::Asks => JoinRepr { query: true, ..join },
            Oddity::Switch { weight, height } => {
                JoinRepr { kind: Kind::Switch, weight: u16::from(weight), height: height % 10, ..join }
            }
            Oddity::Weight { weight } => JoinRepr { weight: u16::from(weight), ..join },
            Oddity::Length { floats, segment_floats } => {
                JoinRepr { gradient_len: u32::from(floats), segment_floats, ..join }
            }
            Oddity::Padded { len } => JoinRepr { padding_len: len % 3000, ..join },
            Oddity::OtherMode => {
                let mode = if is_asynchronous { Mode::Synchronous } else { Mode::Asynchronous };
                JoinRepr { mode, ..join }
            }
            Oddity::OtherElements { contributions, results } => {
                let elements = ElementTypes::from_codes(contributions, results);
                JoinRepr { elements: elements.unwrap_or_default(), ..join }
            }
            Oddity::OtherTag => JoinRepr { tagged: !join.tagged, ..join },
            Oddity::ManyWorkers { workers } => JoinRepr { workers, ..join },
        }
    }

    fn resume(&self, host: u8, resuming: Resuming) -> ResumeRepr {
        let state = &self.hosts[usize::from(host)];
        let round = self.place_of(&host_endpoint(host).peer).map_or(Round::new(1000), |place| place.round);
        let history = if resuming.as_reported { state.history } else { u64::from(resuming.history) };
        ResumeRepr {
            round: offset(round, resuming.round),
            members: u16::from(resuming.members),
            weight: u16::from(resuming.weight),
            threshold: u16::from(resuming.threshold),
            history: history.max(1),
            previous: u64::from(resuming.previous),
            behind: u64::from(resuming.behind),
            fresh: resuming.fresh,
        }
    }

    pub(crate) fn ask(&mut self, host: u8, request: &Request) {
        let place = self.place_of(&host_endpoint(host).peer);
        let round = place.map_or(Round::new(0), |place| place.round);
        let number = self.hosts[usize::from(host)].number;
        match *request {
            Request::Leave => self.send_control(host, ControlBody::Leave),
            Request::Heartbeat => self.send_control(host, ControlBody::HEARTBEAT),
            Request::Help(at, segments) => {
                let bits = bitmap(segments);
                let wanted = SegmentSetRepr::of(range(offset(round, at), segments), &bits);
                self.send_control(host, ControlBody::Help(wanted));
            }
            Request::Confirm(at, segments) => {
                let bits = bitmap(segments);
                let asked = SegmentSetRepr::of(range(offset(number, at), segments), &bits);
                self.send_control(host, ControlBody::Confirm(asked));
            }
            Request::ForceBroadcast(at, segments) => {
                self.send_control(host, ControlBody::FBcast(range(offset(round, at), segments)));
            }
            Request::SetThreshold(threshold) => {
                self.send_control(host, ControlBody::SetH { threshold: u16::from(threshold) });
            }
            Request::Reset { repeated } => {
                let id = repeated.then_some(REPEATED_REQUEST);
                self.send_request(host, id, ControlBody::RESET);
            }
            Request::Halt => self.send_control(host, ControlBody::Halt),
            Request::Digest(at, digest) => {
                let reported = DigestRepr { round: offset(round, at), digest: u64::from(digest) };
                self.send_control(host, ControlBody::Digest(reported));
            }
            Request::Name { job, host: machine, rank } => {
                let text = |number: u8| "x".repeat(number.into());
                let name = NameRepr {
                    job: Label::lossy(&text(job)),
                    owner: Label::lossy(&text(job / 2)),
                    host: Label::lossy(&text(machine)),
                    rank: Some(rank),
                };
                self.send_control(host, ControlBody::Name(name));
            }
            Request::Waiting => self.send_control(host, ControlBody::Waiting),
            Request::Acknowledge => self.send_control(host, ControlBody::Ack(acknowledgement(round))),
        }
    }

    fn send_control(&mut self, host: u8, body: ControlBody<'_>) {
        self.send_request(host, None, body);
    }

    fn send_request(&mut self, host: u8, id: Option<u32>, body: ControlBody<'_>) {
        let state = &mut self.hosts[usize::from(host)];
        let id = id.unwrap_or_else(|| state.take_request());
        let job = state.job;
        let bytes = emit_control(job, id, body);
        let action = ControlRepr { job, request: id, body }.action();
        let trailer = state.conversation.next(action);
        let bytes = match self.key_of(job) {
            Some(key) => sign(bytes, key, Direction::ToSwitch, trailer),
            None => bytes,
        };
        let stride = bytes.len();
        self.send(Sent { host, class: Class::Control, bytes, stride, marked_for: None });
    }

    pub(crate) fn contribute(&mut self, host: u8, contribution: &Contribution) {
        let Some(place) = self.place_of(&host_endpoint(host).peer) else { return };
        let Some(index) = SegmentIndex::new(u32::from(contribution.index)) else { return };
        let contributions = match contribution.weight {
            Weight::One => 1,
            Weight::Few(weight) => u16::from(weight),
            // u16::MAX itself means no contribution; a switch sends it with zeros.
            Weight::Most => u16::MAX - 1,
        };
        let round = self.round_from(host, &place, contribution.round);
        let seg = Seg { index, round, contributions };
        let count = place.layout.range(index).len();
        let topic = Topic::of(place.job, place.is_asynchronous, seg);
        let marked = |count| marked::floats(host, topic, contributions, count);
        let floats = match contribution.floats {
            Floats::Marked => marked(count),
            Floats::Bits(bits) => vec![f32::from_bits(bits); count],
            Floats::WrongCount { more } => marked(if more { count + 1 } else { count.saturating_sub(1) }),
        };
        let is_marked = matches!(contribution.floats, Floats::Marked);
        let bytes = self.tag(host, &place, data_packet(seg, &floats));
        let (stride, marked_for) = (bytes.len(), is_marked.then_some(place.job));
        self.send(Sent { host, class: Class::Data, bytes, stride, marked_for });
    }

    pub(crate) fn send_vector(&mut self, host: u8, at: RoundOffset, is_backwards: bool) {
        let Some(place) = self.place_of(&host_endpoint(host).peer) else { return };
        let tag_len = if place.is_tagged { DATA_TAG_LEN_BYTES } else { 0 };
        let stride = place.layout.full_packet_len(ElementType::F32) + tag_len;
        let segments = place.layout.segment_count().min((MAX_SUPERFRAME_LEN_BYTES / stride) as u32);
        let round = self.round_from(host, &place, at);
        let mut packets = Vec::new();
        for index in (0..segments).filter_map(SegmentIndex::new) {
            let seg = Seg { index, round, contributions: 1 };
            let topic = Topic::of(place.job, place.is_asynchronous, seg);
            let floats = marked::floats(host, topic, 1, place.layout.range(index).len());
            packets.push(self.tag(host, &place, data_packet(seg, &floats)));
        }
        if is_backwards {
            // The last segment may be shorter and then cannot precede others in the same super-frame.
            packets.pop_if(|last| last.len() < stride);
            packets.reverse();
        }
        let before = self.switch.counters().contributions;
        let sent =
            Sent { host, class: Class::Data, bytes: packets.concat(), stride, marked_for: Some(place.job) };
        self.send(sent);
        if place.is_asynchronous && self.switch.counters().contributions == before + u64::from(segments) {
            let state = &mut self.hosts[usize::from(host)];
            state.number = state.number.next();
        }
    }

    fn round_from(&self, host: u8, place: &Place, at: RoundOffset) -> Round {
        let from = if place.is_asynchronous { self.hosts[usize::from(host)].number } else { place.round };
        offset(from, at)
    }

    fn tag(&self, host: u8, place: &Place, mut bytes: Vec<u8>) -> Vec<u8> {
        if place.is_tagged {
            bytes.resize(bytes.len() + DATA_TAG_LEN_BYTES, 0);
            if let Some(key) = &self.hosts[usize::from(host)].tag_key {
                key.sign(&mut bytes);
            }
        }
        bytes
    }

    pub(crate) fn send_again(&mut self, age: u8, change: &Change) {
        let Some(at) = self.sent.len().checked_sub(1 + usize::from(age)) else { return };
        let mut sent = self.sent[at].clone();
        let mut from = host_endpoint(sent.host);
        let len = sent.bytes.len();
        match *change {
            Change::Nothing => {}
            Change::Damage { at, flip } => {
                if let Some(byte) = sent.bytes.get_mut(usize::from(at) % len.max(1)) {
                    *byte ^= flip;
                    sent.marked_for = sent.marked_for.filter(|_| flip == 0);
                }
            }
            Change::Cut { by } => sent.bytes.truncate(len.saturating_sub(usize::from(by))),
            Change::Lengthen { by } => {
                // The added zeros are further packets of a super-frame.
                sent.bytes.resize(len + usize::from(by), 0);
                sent.marked_for = None;
            }
            Change::Forge(host) => {
                from = host_endpoint(host.0);
                sent.marked_for = sent.marked_for.filter(|_| sent.host == host.0);
            }
            Change::Misdirect { port } => {
                let is_join =
                    sent.class == Class::Control && sent.bytes.first() == Some(&(Action::Join as u8));
                from.port = if is_join { from.port } else { PortId(port) };
            }
        }
        self.deliver(&from, &sent);
    }

    /// Delivers a control packet from the switch to a host.
    pub(crate) fn host_hears(&mut self, to: &Endpoint, packet: &ControlPacket<'_>, repr: &ControlRepr<'_>) {
        let host = to.peer.ip().octets()[3];
        let key = self.key_of(repr.job).cloned();
        let Some(state) = self.hosts.get_mut(usize::from(host)) else { return };
        if let Some(key) = &key
            && !state.conversation.accept(key, packet)
        {
            return;
        }
        let ControlBody::Ack(ack) = repr.body else { return };
        match (ack.action, ack.status) {
            (Action::Join, Status::Challenge) => {
                state.conversation.open_session(ack.history);
                state.is_challenged = true;
            }
            (Action::Join, Status::Success) => {
                let session = state.conversation.session();
                state.tag_key = key.map(|key| key.contribution_key(session));
                state.history = ack.history;
                if state.epoch != ack.boot {
                    state.epoch = ack.boot;
                    state.number = Round::first_vector(state.instance, ack.boot);
                }
            }
            _ => {}
        }
    }
}

/// Returns an Ack, which no member has a reason to send.
fn acknowledgement(round: Round) -> AckRepr<'static> {
    AckRepr { round, formed: true, ..AckRepr::bare(Action::Join, Status::Success) }
}
