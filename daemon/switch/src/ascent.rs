//! Partial sums of asynchronous jobs while they are transferred to the parent (requirements V-11 and V-12).
//!
//! To its parent, this switch is a member like a worker: it sends a vector and a Confirm of that vector, and learns
//! which aggregate contains the vector. It passes this information on to the members whose vectors are in the partial
//! sum.

use iswitch_protocol::Round;
use iswitch_protocol::limits::MAX_BITMAP_LEN_BYTES;
use iswitch_protocol::wire::control::{RangeRepr, SegmentSetRepr};
use iswitch_protocol::wire::{AckRepr, Action, ControlBody, ControlRepr};

use crate::backlog::Work;
use crate::ids::{JobIndex, MemberAt};
use crate::job::{Aggregates, Asked, Job, Receipt};
use crate::parent;
use crate::reply::{self, AnswerRoom, Request};
use crate::state::State;
use crate::uplink::Uplink;

/// Records that a vector was added to the next partial sum, which may be complete now.
pub(crate) fn note_added(state: &mut State, at: JobIndex) {
    if let Some(aggregates) = state.jobs.get_mut(at).and_then(Job::aggregates_mut) {
        aggregates.note_added_to_partial();
    }
    advance(state, at);
}

/// Begins the transfer of the next partial sum if the parent has received the previous one, and queues as many segments
/// as the window admits.
pub(crate) fn advance(state: &mut State, at: JobIndex) {
    let now = state.now;
    let Some(job) = state.jobs.get_mut(at) else { return };
    let Some(uplink) = state.uplinks.get_mut(at.get()).filter(|uplink| uplink.is_member()) else { return };
    if uplink.transfer().is_none()
        && let Some(number) = job.aggregates_mut().and_then(Aggregates::raise_partial)
    {
        uplink.begin_transfer(number, job.layout().segment_count(), now);
    }
    let window = uplink.window();
    let batch = uplink.transfer_mut().and_then(|transfer| transfer.next_batch(window));
    if let Some((range, bitmap)) = batch {
        state.queue_work(Work::raise(at, SegmentSetRepr::of(range, &bitmap)));
    }
}

/// Sends a Confirm for a batch of segments that has just been sent, and queues the next batch.
pub(crate) fn confirm_batch(state: &mut State, at: JobIndex, range: RangeRepr) {
    let Some(transfer) = state.uplink_mut(at).and_then(Uplink::transfer_mut) else { return };
    // The parent may have admitted the partial sum in the meantime, in response to an earlier Confirm.
    if transfer.number() == range.round {
        transfer.end_batch();
        confirm(state, at, range);
    }
    advance(state, at);
}

/// Sends a Confirm to the parent if the transfer of a partial sum has timed out.
pub(crate) fn tend(state: &mut State, at: JobIndex) {
    let now = state.now;
    let Some(uplink) = state.uplink_mut(at) else { return };
    let wait = uplink.wait();
    let Some(transfer) = uplink.transfer_mut() else { return };
    if transfer.expire(now, wait) {
        let range = transfer.open_range();
        confirm(state, at, range);
    }
}

/// Sends a Confirm for those segments of a range that the parent has not confirmed yet.
fn confirm(state: &mut State, at: JobIndex, range: RangeRepr) {
    let now = state.now;
    let Some(job) = state.jobs.get(at).map(Job::id) else { return };
    let Some(uplink) = state.uplink_mut(at) else { return };
    let Some(bitmap) = uplink.transfer().map(|transfer| transfer.unconfirmed(range)) else { return };
    let request = uplink.take_timed_request(now);
    let body = ControlBody::Confirm(SegmentSetRepr::of(range, &bitmap));
    parent::send(state, at, &ControlRepr { job, request, body }, 0);
}

/// Handles the answer from the parent to a Confirm.
pub(crate) fn handle_confirmed(state: &mut State, at: JobIndex, ack: &AckRepr<'_>) {
    let now = state.now;
    let Some(uplink) = state.uplink_mut(at) else { return };
    let wait = uplink.wait();
    let Some(transfer) = uplink.transfer_mut() else { return };
    let Some(missing) = ack.missing.filter(|missing| missing.range.round == transfer.number()) else {
        return;
    };
    if ack.expected == 1 {
        uplink.end_transfer();
        land(state, at, ack.round);
    } else {
        transfer.note_answer(missing, now, wait);
    }
    advance(state, at);
}

/// Handles the admission of the partial sum to an aggregate: sends the number of the aggregate, as the answer to their
/// pending Confirms, to the members whose vectors are in the partial sum.
fn land(state: &mut State, at: JobIndex, aggregate: Round) {
    let Some(aggregates) = state.jobs.get_mut(at).and_then(Job::aggregates_mut) else { return };
    for member in aggregates.land(aggregate).iter() {
        let Some(job) = state.jobs.get_mut(at) else { return };
        let asked = job.aggregates_mut().and_then(|aggregates| aggregates.take_asked(member));
        let Some(Asked { request: id, range }) = asked else { continue };
        let Some(to) = job.members().get(member).map(|member| member.endpoint) else { continue };
        let (job, seal) = (job.id(), job.seal(member));
        let request = Request { job, id, action: Action::Confirm, seal, room: AnswerRoom::Any };
        let none = [0; MAX_BITMAP_LEN_BYTES];
        let missing = SegmentSetRepr::of(range, &none);
        let member = MemberAt { job: at, member };
        reply::confirm(state, &to, request, member, missing, Receipt::Admitted(aggregate));
    }
}
