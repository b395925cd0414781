//! Answers to members and non-members: Acks, refusals and notices.

use iswitch_protocol::Round;
use iswitch_protocol::SegmentIndex;
use iswitch_protocol::limits::{DATA_TAG_LEN_BYTES, MAX_BITMAP_LEN_BYTES, datagram_truesize, recv_room};
use iswitch_protocol::wire::control::{
    ACK_LEN_BYTES, AbsentList, AbsentMember, JOIN_LEN_BYTES, RangeRepr, SegmentSetRepr,
};
use iswitch_protocol::wire::{
    AbsentRepr, AckRepr, Action, ControlBody, ControlPacket, ControlRepr, Exceeded, JoinRepr, Limit,
    NameRepr, ResumeRepr, Status,
};

use crate::endpoint::Endpoint;
use crate::ids::{JobIndex, MemberAt, MemberId};
use crate::job::{Job, Receipt, Start};
use crate::keys::Seal;
use crate::state::State;
use crate::uplink::Uplink;
use crate::waiting::Waiting;

/// Refusal of a request: the reason, and the expected value.
pub(crate) struct Refusal {
    pub(crate) status: Status,
    pub(crate) expected: u32,
    pub(crate) round: Round,
    /// Limit of the switch that a Join would exceed, if any.
    pub(crate) exceeded: Option<Exceeded>,
}

impl Refusal {
    /// Refuses a request for a round that is over or that cannot open yet. `round` is the round at which the member
    /// continues.
    pub(crate) fn stale_round(round: Round) -> Self {
        Self { round, ..Status::StaleRound.into() }
    }

    /// Refuses a new job for which the switch has no capacity. `room_kib` is the memory that the job may take, in KiB;
    /// 0 if memory is not the limit.
    pub(crate) fn no_capacity(limit: Limit, value: usize, room_kib: u32) -> Self {
        let exceeded = Some(Exceeded { limit, value: value as u64 });
        Self { exceeded, ..(Status::NoCapacity, room_kib).into() }
    }
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Self { status, expected: 0, round: Round::default(), exceeded: None }
    }
}

impl From<(Status, u32)> for Refusal {
    fn from((status, expected): (Status, u32)) -> Self {
        Self { expected, ..status.into() }
    }
}

/// Fields of a request that its Ack repeats, together with the authentication and the maximum length of the Ack.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    pub(crate) job: u32,
    pub(crate) id: u32,
    pub(crate) action: Action,
    pub(crate) seal: Seal,
    pub(crate) room: AnswerRoom,
}

/// Length limit of an answer (requirement C-11).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerRoom {
    /// No limit: the receiver is a member and has proved its return path.
    Any,
    /// At most this number of bytes, the length of the received packet without its trailer, because the sender has not
    /// proved its return path.
    Bytes(usize),
}

impl AnswerRoom {
    /// Returns the maximum length of the answer to a packet from a non-member, which is the length of that packet
    /// without its trailer.
    pub(crate) fn of(packet: &ControlPacket<'_>) -> Self {
        Self::Bytes(packet.content_len())
    }

    fn holds(self, len: usize) -> bool {
        match self {
            Self::Any => true,
            Self::Bytes(room) => len <= room,
        }
    }
}

/// Acknowledges a request that was granted.
pub(crate) fn grant(state: &mut State, to: &Endpoint, request: Request, at: MemberAt) {
    acknowledge(state, to, request, at, None);
}

/// Acknowledges a request. The Ack names the segments for which the switch lacks the member's contribution.
pub(crate) fn acknowledge(
    state: &mut State,
    to: &Endpoint,
    request: Request,
    at: MemberAt,
    missing: Option<SegmentSetRepr<'_>>,
) {
    let Some(job) = state.jobs.get(at.job) else { return };
    // Only the Ack of a Help carries the history: the round of a Confirm may be the number of a vector.
    let asked = missing.filter(|_| request.action == Action::Help);
    let history = asked.map_or(0, |asked| job.history_before(asked.range.round));
    let ack = AckRepr { missing, history, ..job_ack(state, at, job, request.action) };
    send_ack(state, to, request, ack, 0);
}

/// Answers a Confirm of a vector. `receipt` is the state of the vector, and `missing` contains the segments that are
/// not staged.
pub(crate) fn confirm(
    state: &mut State,
    to: &Endpoint,
    request: Request,
    at: MemberAt,
    missing: SegmentSetRepr<'_>,
    receipt: Receipt,
) {
    let Some(job) = state.jobs.get(at.job) else { return };
    let ack = AckRepr { missing: Some(missing), ..job_ack(state, at, job, request.action) };
    let ack = match receipt {
        Receipt::Admitted(round) => AckRepr { round, expected: 1, ..ack },
        _ => ack,
    };
    send_ack(state, to, request, ack, 0);
}

/// Sends a challenge to the sender of a Join, which must repeat the Join with `nonce`. No recorded Join can contain
/// this nonce.
pub(crate) fn challenge(state: &mut State, to: &Endpoint, request: Request, nonce: u64, join: &JoinRepr) {
    let parts = parts_for(state, join.part);
    let ack = AckRepr { history: nonce, parts, ..bare_ack(state, Action::Join, Status::Challenge) };
    send_ack(state, to, request, ack, join_ack_padding(join));
}

/// Answers a granted Join or, if `member` is `None`, a query. The Ack is as long as the Join, so that both directions
/// of the path are proved.
pub(crate) fn grant_join(
    state: &mut State,
    to: &Endpoint,
    mut request: Request,
    at: Option<MemberAt>,
    join: &JoinRepr,
) {
    let ack = if let Some(at) = at {
        let Some(job) = state.jobs.get(at.job) else { return };
        request.seal = job.seal(at.member);
        let granted = || join_ack(state, at, job, join.resume.as_ref());
        presence_query(state, at, job).unwrap_or_else(granted)
    } else {
        let Some(at) = state.jobs.find(request.job) else { return };
        let Some(job) = state.jobs.get(at) else { return };
        let (round, peer) = (job.start_round(), job.members().peer_of(None));
        let nobody = MemberAt { job: at, member: MemberId::new(0) };
        // The history of a part counts its sums, so it shows the sender of a query how many vectors have been summed.
        let history = if join.part { job.history_before(round) } else { 0 };
        let parts = parts_for(state, join.part);
        AckRepr { round, peer, history, parts, ..job_ack(state, nobody, job, Action::Join) }
    };
    send_ack(state, to, request, ack, join_ack_padding(join));
}

/// Answers a Waiting: names the members for which the oldest open round of the job waits.
pub(crate) fn name_absent(state: &mut State, to: &Endpoint, request: Request, at: MemberAt) {
    let Some(job) = state.jobs.get(at.job) else { return };
    let waiting = Waiting::of(job, state.jobs.slots_of(job));
    let (round, absent) =
        waiting.map_or_else(Default::default, |waiting| (waiting.open.round, waiting.missing()));
    let mut list = AbsentList::EMPTY;
    for id in absent.iter() {
        let NameRepr { rank, host, .. } = job.members().names_of(Some(id));
        if !list.push(&AbsentMember { rank, host }) {
            break;
        }
    }
    let body = ControlBody::Absent(AbsentRepr { round, count: absent.len(), list: list.as_bytes() });
    let repr = ControlRepr { job: request.job, request: request.id, body };
    state.send_control(to, &repr, 0, request.seal);
}

/// Notifies the members of a job that it is complete, except the last member to join, which receives an Ack to its Join
/// instead.
pub(crate) fn announce_formed(state: &mut State, at: JobIndex, last: Option<MemberId>) {
    for_each_member(state, at, |state, job, member| {
        if Some(member.member) == last {
            return None;
        }
        let body = ControlBody::Ack(join_ack(state, member, job, None));
        let request = job.members().get(member.member)?.join_request;
        Some(ControlRepr { job: job.id(), request, body })
    });
}

/// Asks the members of a job, except for `last`, whether they still use this switch.
pub(crate) fn ask_presence(state: &mut State, at: JobIndex, last: MemberId) {
    for_each_member(state, at, |state, job, member| {
        let body = ControlBody::Ack(presence_query(state, member, job).filter(|_| member.member != last)?);
        let request = job.members().get(member.member)?.join_request;
        Some(ControlRepr { job: job.id(), request, body })
    });
}

/// Returns the Challenge with which the switch asks a member whether it still uses this switch, if the member has not
/// answered yet.
fn presence_query(state: &State, at: MemberAt, job: &Job) -> Option<AckRepr<'static>> {
    let member = job.members().get(at.member).filter(|member| member.is_asked())?;
    let (status, history) = (Status::Challenge, state.nonces.of(&member.endpoint));
    let parts = parts_for(state, job.is_part());
    Some(AckRepr { status, parts, history, ..job_ack(state, at, job, Action::Join) })
}

/// Sends a notice to all members of a job.
pub(crate) fn notify_members(state: &mut State, at: JobIndex, body: ControlBody<'static>) {
    for_each_member(state, at, |_, job, _| Some(ControlRepr { job: job.id(), request: 0, body }));
}

/// Sends each member of a job the packet that `packet` returns for it, if any.
fn for_each_member(
    state: &mut State,
    at: JobIndex,
    packet: impl Fn(&State, &Job, MemberAt) -> Option<ControlRepr<'static>>,
) {
    let Some(job) = state.jobs.get(at) else { return };
    for id in job.members().present().iter() {
        let Some(job) = state.jobs.get(at) else { return };
        let Some(to) = job.members().get(id).map(|member| member.endpoint) else { continue };
        let seal = job.seal(id);
        if let Some(packet) = packet(state, job, MemberAt { job: at, member: id }) {
            state.send_control(&to, &packet, 0, seal);
        }
    }
}

/// Refuses a request.
pub(crate) fn refuse(state: &mut State, to: &Endpoint, request: Request, refusal: &Refusal) {
    refuse_with(state, to, request, refusal, 0, 1);
}

/// Refuses a Join. The Ack is as long as the Join.
pub(crate) fn refuse_join(
    state: &mut State,
    to: &Endpoint,
    request: Request,
    refusal: &Refusal,
    join: &JoinRepr,
) {
    let (padding_len, parts) = (join_ack_padding(join), parts_for(state, join.part));
    refuse_with(state, to, request, refusal, padding_len, parts);
}

/// Refuses a packet of which only the header was read. `refusal` is a status and the expected value. The answer to a
/// Join is not padded (C-4).
pub(crate) fn refuse_packet(
    state: &mut State,
    to: &Endpoint,
    packet: &ControlPacket<'_>,
    refusal: (Status, u32),
    seal: Seal,
) {
    let action = Action::from_code(packet.action_code()).unwrap_or(Action::Ack);
    let room = AnswerRoom::of(packet);
    let request = Request { job: packet.job(), id: packet.request(), action, seal, room };
    refuse(state, to, request, &refusal.into());
}

/// Informs a member why its data packets were dropped.
pub(crate) fn refuse_data(state: &mut State, to: &Endpoint, at: MemberAt, refusal: &Refusal) {
    let Some(job) = state.jobs.get(at.job) else { return };
    let (seal, room) = (job.seal(at.member), AnswerRoom::Any);
    let request = Request { job: job.id(), id: 0, action: Action::Ack, seal, room };
    refuse(state, to, request, refusal);
}

/// Informs the sender of `len_bytes` of data packets that it is not a member.
pub(crate) fn refuse_stranger(state: &mut State, to: &Endpoint, len_bytes: usize) {
    let room = AnswerRoom::Bytes(len_bytes);
    let request = Request { job: 0, id: 0, action: Action::Ack, seal: Seal::Bare, room };
    refuse(state, to, request, &Status::UnknownMember.into());
}

fn refuse_with(
    state: &mut State,
    to: &Endpoint,
    request: Request,
    refusal: &Refusal,
    padding_len: u16,
    parts: u8,
) {
    let Refusal { status, expected, round, exceeded } = *refusal;
    let job = state.jobs.find(request.job).and_then(|at| state.jobs.get(at));
    // A member that learns at which round to continue also needs the history before that round. This does not apply to
    // a Confirm, in which the round is the number of a vector.
    let continuing = job.filter(|_| status == Status::StaleRound && request.action != Action::Confirm);
    let history = continuing.map_or(exceeded.map_or(0, Exceeded::to_wire), |job| job.history_before(round));
    let boot = job.map_or(state.config.boot, Job::epoch);
    // The rounds of a job are not final before it is complete.
    let formed = job.is_some_and(Job::is_formed);
    let ack =
        AckRepr { expected, round, history, boot, formed, parts, ..bare_ack(state, request.action, status) };
    send_ack(state, to, request, ack, padding_len);
}

/// Returns an Ack that describes the state of a job to a member.
pub(crate) fn job_ack(state: &State, at: MemberAt, job: &Job, action: Action) -> AckRepr<'static> {
    let (weight, orphaned) = match state.uplink(at.job) {
        Some(uplink) => (u32::from(uplink.weight()), uplink.is_lost()),
        None => (job.members().weight(), false),
    };
    AckRepr {
        member: at.member.to_wire(),
        members: job.members().count(),
        threshold: job.threshold(),
        round: job.rounds().numbers().current(),
        window: window(state, at.job, job),
        formed: job.is_formed(),
        pinned: job.pinned_threshold().is_some(),
        orphaned,
        boot: job.epoch(),
        weight: weight.min(u32::from(u16::MAX)) as u16,
        ..bare_ack(state, action, Status::Success)
    }
}

fn join_ack(state: &State, at: MemberAt, job: &Job, resume: Option<&ResumeRepr>) -> AckRepr<'static> {
    let Start { standing, round, history } = job.standing_of_member(at.member, resume);
    let peer = job.members().peer_of(Some(at.member));
    let parts = parts_for(state, job.is_part());
    AckRepr { standing, round, history, peer, parts, ..job_ack(state, at, job, Action::Join) }
}

fn bare_ack(state: &State, action: Action, status: Status) -> AckRepr<'static> {
    let (boot, lease_ms) = (state.config.boot, state.config.lease_ms);
    AckRepr { boot, lease_ms, ..AckRepr::bare(action, status) }
}

/// Sends an Ack. For a request with id zero, only a refusal is sent; a success is not acknowledged.
pub(crate) fn send_ack(
    state: &mut State,
    to: &Endpoint,
    request: Request,
    ack: AckRepr<'_>,
    padding_len: u16,
) {
    if request.id == 0 && ack.status == Status::Success {
        return;
    }
    let repr = ControlRepr { job: request.job, request: request.id, body: ControlBody::Ack(ack) };
    if request.room.holds(repr.buffer_len() + usize::from(padding_len)) {
        state.send_control(to, &repr, padding_len, request.seal);
    }
}

/// Returns the window: the number of segments that each member may have in flight. It is small enough that the segments
/// of all members fit in the receive buffer.
fn window(state: &State, at: JobIndex, job: &Job) -> u16 {
    let tag_len = if job.is_tagged() { DATA_TAG_LEN_BYTES } else { 0 };
    let contribution_len = job.layout().full_packet_len(job.layout().elements().contributions());
    let datagram = datagram_truesize(contribution_len + tag_len);
    let members = usize::from(job.members().count().max(job.workers()).max(1));
    let own = recv_room(state.config.recv_buffer_bytes) / (datagram * members);
    let own = own.clamp(1, usize::from(u16::MAX)) as u16;
    let card = state.config.card.filter(|_| job.is_for_card());
    let own = card.map_or(own, |card| own.min(card.window.max(1)));
    // Segments in flight from members are also in flight to the parent.
    let uplink = state.uplink(at).filter(|_| job.is_formed());
    uplink.map_or(own, |uplink| own.min(uplink.window().max(1)))
}

/// Returns the number of parts that the Ack of a Join announces. The number is announced only to a sender that supports
/// parts, because other senders refuse an Ack with unknown flags (T-2). If the switch has a parent, the number is at
/// most that of the parent.
fn parts_for(state: &State, is_part: bool) -> u8 {
    if !is_part {
        return 1;
    }
    let above = state.uplinks.iter().filter_map(Uplink::parts);
    above.fold(state.config.parts, u8::min)
}

/// Returns the padding that makes the Ack of a Join as long as the Join.
fn join_ack_padding(join: &JoinRepr) -> u16 {
    (JOIN_LEN_BYTES as u16).saturating_add(join.padding_len).saturating_sub(ACK_LEN_BYTES as u16)
}

/// Returns a bitmap of the given segments of a range.
pub(crate) fn bitmap_of(
    range: RangeRepr,
    indices: impl Iterator<Item = SegmentIndex>,
) -> [u8; MAX_BITMAP_LEN_BYTES] {
    let mut bitmap = [0; MAX_BITMAP_LEN_BYTES];
    for index in indices {
        let bit = index.get() - range.first;
        bitmap[bit as usize / 8] |= 1 << (bit % 8);
    }
    bitmap
}
