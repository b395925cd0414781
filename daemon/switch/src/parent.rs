//! Packets to the parent of this switch: Joins, heartbeats, and requests for results.

use iswitch_protocol::limits::MAX_BITMAP_LEN_BYTES;
use iswitch_protocol::wire::control::{RangeRepr, SegmentSetRepr};
use iswitch_protocol::wire::{ControlBody, ControlRepr, JoinRepr, Kind, NameRepr};
use iswitch_protocol::{ElementType, Round, SegmentIndex};

use crate::event::Event;
use crate::ids::{JobIndex, MemberAt};
use crate::job::Job;
use crate::reply::{Request, bitmap_of};
use crate::state::State;
use crate::uplink::Uplink;

/// Asks the parent to admit this switch once all members that the job waits for have joined or the job is overdue. If
/// the uplink is already in use, sends an updated Join instead. Call this when members have joined or left.
pub(crate) fn declare(state: &mut State, at: JobIndex) {
    let now = state.now;
    let Some(job) = state.jobs.get(at) else { return };
    let is_ready = job.is_gathered() || is_overdue(state, job);
    let (id, is_resumed) = (job.id(), job.is_resumed());
    let uplinks = state.config.uplinks;
    let (Some(uplink), Some(uplinks)) = (state.uplink_mut(at), uplinks) else { return };
    if !uplink.is_in_use() {
        if !is_ready {
            return;
        }
        uplink.begin(&uplinks, id, is_resumed, now);
    }
    uplink.hasten(now);
    join(state, at);
}

/// Asks the parent to admit this switch although some of the former members have not rejoined in time.
pub(crate) fn declare_overdue(state: &mut State, at: JobIndex) {
    if !state.uplink(at).is_some_and(Uplink::is_in_use) {
        declare(state, at);
    }
}

/// Reports to the parent how many workers this switch represents.
pub(crate) fn declare_weight(state: &mut State, at: JobIndex) {
    if state.uplink(at).is_some_and(Uplink::is_in_use) {
        join(state, at);
    }
}

/// Returns whether a job has waited for longer than a lease for its former members to rejoin.
pub(crate) fn is_overdue(state: &State, job: &Job) -> bool {
    !job.is_formed() && state.now.since(job.created()) > state.config.lease()
}

/// Sends the Join of a job.
pub(crate) fn join(state: &mut State, at: JobIndex) {
    let (Some(job), Some(uplink)) = (state.jobs.get(at), state.uplink(at)) else { return };
    let is_member = uplink.is_member();
    let join = JoinRepr {
        gradient_len: job.layout().gradient_len(),
        segment_floats: job.layout().segment_floats(),
        workers: job.workers(),
        elements: job.layout().elements(),
        mode: job.rounds().mode(),
        kind: Kind::Switch,
        weight: job.members().weight().min(u32::from(u16::MAX)) as u16,
        instance: uplink.instance(),
        rank: 0,
        height: job.height(),
        query: false,
        part: job.is_part(),
        tagged: job.is_tagged(),
        roams: job.members().roam() || state.config.uplinks.is_some_and(|uplinks| uplinks.has_choice()),
        nonce: uplink.session(),
        updates: is_member,
        // A child switch receives results by unicast.
        groups: false,
        // The resume states of the members are no longer valid once this switch is a member.
        resume: job.resume_of_all(uplink.members()).filter(|_| !is_member),
        padding_len: 0,
    };
    let packet = ControlRepr { job: job.id(), request: uplink.join_request(), body: ControlBody::Join(join) };
    // The longest data packets to the parent are those of partial sums.
    let packet_len = job.layout().full_packet_len(ElementType::F32);
    let padding_len = JoinRepr::padding_to(packet_len, job.is_tagged(), job.has_key());
    send(state, at, &packet, padding_len);
}

/// Sends a control packet of a job to its parent.
pub(crate) fn send(state: &mut State, at: JobIndex, packet: &ControlRepr<'_>, padding_len: u16) {
    let Some(uplink) = state.uplinks.get_mut(at.get()) else { return };
    let seal = uplink.seal(&state.keys, packet.job, packet.action());
    let to = uplink.parent();
    state.send_control(&to, packet, padding_len, seal);
}

/// States the names of the job and of this switch to the parent, until the parent answers (requirement N-5).
pub(crate) fn state_name(state: &mut State, at: JobIndex) {
    let (Some(job), Some(uplinks)) = (state.jobs.get(at), state.config.uplinks) else { return };
    let (job, name) = (job.id(), NameRepr { host: uplinks.host, ..job.members().names_of(None) });
    let Some(uplink) = state.uplink_mut(at).filter(|uplink| uplink.is_member()) else { return };
    if let Some(request) = uplink.take_name(&name) {
        send(state, at, &ControlRepr { job, request, body: ControlBody::Name(name) }, 0);
    }
}

/// Forwards a request that concerns the whole job to the parent. The parent's notice then causes this switch to execute
/// the request as well.
pub(crate) fn pass_on(state: &mut State, at: JobIndex, body: ControlBody<'_>) {
    let Some(job) = state.jobs.get(at).map(Job::id) else { return };
    let Some(uplink) = state.uplink_mut(at).filter(|uplink| uplink.is_member()) else { return };
    let request = uplink.take_request();
    send(state, at, &ControlRepr { job, request, body }, 0);
}

/// Passes a request from a member on to the parent, towards the topmost switch, and later forwards the answer to the
/// member.
pub(crate) fn pass_on_for(state: &mut State, at: MemberAt, request: Request, body: ControlBody<'_>) {
    let Some(job) = state.jobs.get(at.job).map(Job::id) else { return };
    let Some(uplink) = state.uplink_mut(at.job).filter(|uplink| uplink.is_member()) else { return };
    let upward = uplink.pass_on(at.member, request.id, request.action);
    send(state, at.job, &ControlRepr { job, request: upward, body }, 0);
}

/// Asks the parent for results that a member requested and that only the parent can have.
pub(crate) fn ask(state: &mut State, at: JobIndex, wanted: SegmentSetRepr<'_>) {
    let last = wanted.range.round.previous();
    if state.jobs.get(at).is_some_and(|job| job.is_taken_up(last)) {
        // Also ask for the preceding round: some members may have received its result from an earlier run of this
        // switch and will not ask for it again.
        let range = RangeRepr { round: last, ..wanted.range };
        ask_in_round(state, at, SegmentSetRepr { range, ..wanted });
    }
    ask_in_round(state, at, wanted);
}

fn ask_in_round(state: &mut State, at: JobIndex, wanted: SegmentSetRepr<'_>) {
    let (now, range) = (state.now, wanted.range);
    if !state.uplink(at).is_some_and(Uplink::is_member) {
        return;
    }
    let Some(aggregation) = state.aggregation(at) else { return };
    let job = aggregation.job().id();
    let is_awaited = |index: &SegmentIndex| aggregation.awaits_parent(range.round, *index);
    let mut bits = bitmap_of(range, wanted.indices().filter_map(SegmentIndex::new).filter(is_awaited));
    let Some(uplink) = state.uplink_mut(at) else { return };
    uplink.retain_new(now, range, &mut bits);
    let Some(request) = uplink.ask(now, range, bits) else { return };
    let body = ControlBody::Help(SegmentSetRepr::of(range, &bits));
    send(state, at, &ControlRepr { job, request, body }, 0);
}

/// Asks the parent for those results of a range of segments of a round that only the parent can have.
pub(crate) fn ask_for_range(state: &mut State, at: JobIndex, round: Round, first: u32, count: u32) {
    let range = RangeRepr { round, first, count };
    ask(state, at, SegmentSetRepr::of(range, &[u8::MAX; MAX_BITMAP_LEN_BYTES]));
}

/// Checks whether the parent has stopped answering. If so, reports the parent as lost; from then on, every Ack to a
/// member carries the `orphaned` flag.
pub(crate) fn watch(state: &mut State, at: JobIndex) {
    let now = state.now;
    let Some(uplink) = state.uplink_mut(at) else { return };
    if uplink.check_lost(now) {
        let (job, parent) = uplink.job_and_parent();
        state.report(Event::ParentLost { job, parent });
    }
}

/// Changes to the next of the candidate parents.
pub(crate) fn change(state: &mut State, at: JobIndex) {
    let (now, uplinks) = (state.now, state.config.uplinks);
    let (Some(uplink), Some(uplinks)) = (state.uplink_mut(at), uplinks) else { return };
    uplink.choose_next(&uplinks, now);
    let (job, parent) = uplink.job_and_parent();
    state.report(Event::ParentChosen { job, parent });
}

/// Ends the membership at the parent because the job `id` has ended. Informs the parent, unless `comes_back` indicates
/// that the same members are about to rejoin.
pub(crate) fn release(state: &mut State, at: JobIndex, id: u32, comes_back: bool) {
    let Some(uplink) = state.uplink_mut(at) else { return };
    if uplink.release(comes_back) {
        send(state, at, &ControlRepr { job: id, request: 0, body: ControlBody::Leave }, 0);
    }
}
