//! Packets from the parent: results, Acks and notices.
//!
//! When all members have contributed to a segment, their sum is sent to the parent as one contribution. The partial sum
//! is kept until the parent's result arrives, which is then sent to all members. The workers detect lost packets: if a
//! worker sends a Help for a result that the switch does not have, the switch requests the result from its parent.
//!
//! A job of this switch is complete once the parent states that it is complete. If the parent forgets this switch, the
//! switch forgets its own members. They rejoin with their histories, and the topmost switch decides where the job
//! continues.

use iswitch_protocol::auth::TagKey;
use iswitch_protocol::wire::control::SegmentSetRepr;
use iswitch_protocol::wire::{
    AckRepr, Action, Class, ControlBody, ControlPacket, ControlRepr, DataPacket, Status, WireError,
};

use crate::backlog::Work;
use crate::endpoint::Endpoint;
use crate::event::Event;
use crate::ids::{JobIndex, MemberAt};
use crate::job::Job;
use crate::reason::DropReason;
use crate::refused::Refused;
use crate::reply::{self, AnswerRoom, Refusal, Request};
use crate::state::State;
use crate::uplink::{Errand, JoinAnswer, ParentState, Uplink};
use crate::{ascent, lifecycle, parent};

/// Processes a super-frame that arrived on the port of an uplink.
pub(crate) fn handle_from_parent(
    state: &mut State,
    from: &Endpoint,
    at: JobIndex,
    class: Class,
    payload: &[u8],
    stride: usize,
) {
    let is_parent = |uplink: &Uplink| uplink.is_in_use() && from.peer == uplink.parent().peer;
    if !state.uplink(at).is_some_and(is_parent) || state.jobs.get(at).is_none() {
        return state.counters.count_drop(DropReason::UnknownMember);
    }
    match class {
        Class::Control => payload.chunks(stride).for_each(|bytes| handle_control(state, at, bytes)),
        Class::Data => {
            handle_results(state, at, payload, stride);
            state.record_rounds(at);
        }
    }
}

fn renew_parent_lease(state: &mut State, at: JobIndex) {
    let now = state.now;
    let Some(uplink) = state.uplink_mut(at) else { return };
    if uplink.hear(now) {
        let (job, parent) = uplink.job_and_parent();
        state.report(Event::ParentFound { job, parent });
    }
}

/// Verifies and removes the tag of a result, if its job requires tags. Returns `None` if the tag is wrong.
fn verify_result<'a>(state: &mut State, at: JobIndex, bytes: &'a [u8]) -> Option<&'a [u8]> {
    let key = state.jobs.get(at)?.result_key();
    let content = key.map_or(Some(bytes), |key| key.verify(bytes));
    match content {
        Some(_) => renew_parent_lease(state, at),
        None => state.counters.count_drop(DropReason::NotAuthentic),
    }
    content
}

fn handle_results(state: &mut State, at: JobIndex, payload: &[u8], stride: usize) {
    if !state.outbox.is_drained() {
        return state.counters.count_drop(DropReason::Busy);
    }
    state.aim_results(at);
    for bytes in payload.chunks(stride) {
        let Some(bytes) = verify_result(state, at, bytes) else { continue };
        let packet = match DataPacket::new_checked(bytes) {
            Ok(packet) => packet,
            Err(error) => {
                state.counters.count_drop(DropReason::Wire(error));
                continue;
            }
        };
        let Some((mut aggregation, outbox, counters, widener)) = state.intake(at) else { return };
        let element = aggregation.job().layout().elements().results();
        let (seg, floats) = (packet.seg(), widener.widen(element, packet.element_bytes()));
        if !aggregation.job().is_formed() || !aggregation.finish(seg, floats) {
            counters.count_drop(DropReason::Late);
            continue;
        }
        let results = &mut outbox.results.batch;
        if results.has_room(aggregation.result_len(seg.index)) {
            aggregation.push_result(seg.round, seg.index, results);
        }
        counters.results += 1;
    }
    if state.jobs.get(at).is_some_and(|job| job.deserted_round().is_some()) {
        // Segments of the following round can now be closed and sent.
        lifecycle::close_finished(state, at);
    }
}

fn handle_control(state: &mut State, at: JobIndex, bytes: &[u8]) {
    let parsed = ControlPacket::new_checked(bytes)
        .and_then(|packet| ControlRepr::parse(&packet).map(|repr| (packet, repr)));
    let (packet, repr) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return state.counters.count_drop(DropReason::Wire(error)),
    };
    if !is_authentic(state, at, &packet) {
        state.counters.count_drop(DropReason::NotAuthentic);
        return report_unproven_refusal(state, at, &repr);
    }
    renew_parent_lease(state, at);
    match repr.body {
        ControlBody::Ack(ack) if ack.action == Action::Join => {
            handle_join_answer(state, at, repr.request, &ack);
        }
        ControlBody::Ack(ack) => {
            let now = state.now;
            if let Some(uplink) = state.uplink_mut(at) {
                uplink.note_answer(now, repr.request);
            }
            handle_ack(state, at, repr.request, &ack);
        }
        ControlBody::Halt => lifecycle::halt_job(state, at),
        _ => state.counters.count_drop(DropReason::Wire(WireError::UnknownAction)),
    }
}

/// Returns whether a packet is authentic. If the job has no key, every packet counts as authentic.
fn is_authentic(state: &mut State, at: JobIndex, packet: &ControlPacket<'_>) -> bool {
    let key = state.jobs.get(at).and_then(|job| state.keys.of(job.id()));
    let uplink = state.uplinks.get_mut(at.get());
    key.zip(uplink).is_none_or(|(key, uplink)| uplink.accept(key, packet))
}

/// Reports an unauthenticated refusal to the operator. The refusal has no other effect.
fn report_unproven_refusal(state: &mut State, at: JobIndex, repr: &ControlRepr<'_>) {
    let (Some(uplink), ControlBody::Ack(ack)) = (state.uplink(at), repr.body) else { return };
    if uplink.is_refused_unproven(repr.request, ack.status) {
        let event = refused_by_parent(uplink, Refused::in_ack(&ack));
        state.report(event);
    }
}

fn refused_by_parent(uplink: &Uplink, refused: Refused) -> Event {
    let (job, parent) = uplink.job_and_parent();
    let Refused { status, expected, exceeded } = refused;
    Event::ParentRefused { job, parent, status, expected, exceeded }
}

fn handle_join_answer(state: &mut State, at: JobIndex, request: u32, ack: &AckRepr<'_>) {
    let now = state.now;
    let tag_key = partials_key(state, at);
    let is_part = state.jobs.get(at).is_some_and(Job::is_part);
    adopt_threshold_of_join(state, at, request, ack);
    let Some(uplink) = state.uplink_mut(at) else { return };
    match uplink.answer_join(now, request, ack, is_part, tag_key) {
        JoinAnswer::Nothing => {}
        JoinAnswer::Challenged => parent::join(state, at),
        JoinAnswer::Forgotten => lifecycle::forget_members(state, at),
        JoinAnswer::Refused(refused) => {
            let event = refused_by_parent(uplink, refused);
            state.report(event);
        }
        JoinAnswer::Granted(granted) => {
            if state.jobs.get(at).is_some_and(|job| !job.is_formed()) {
                lifecycle::form_job(state, at, None, Some(granted));
            }
        }
    }
}

/// Adopts the threshold H in the Ack of a Join, if the Ack describes a complete job.
fn adopt_threshold_of_join(state: &mut State, at: JobIndex, request: u32, ack: &AckRepr<'_>) {
    let is_answer = state.uplink(at).is_some_and(|uplink| uplink.join_request() == request);
    if is_answer
        && (ack.status, ack.formed) == (Status::Success, true)
        && let Some(job) = state.jobs.get_mut(at)
    {
        job.adopt_threshold(ack.threshold, ack.pinned);
    }
}

/// Returns the key for the tags of partial sums in the current session, if the job's data is tagged.
fn partials_key(state: &State, at: JobIndex) -> Option<TagKey> {
    let job = state.jobs.get(at).filter(|job| job.is_tagged())?;
    let session = state.uplink(at)?.session();
    state.keys.of(job.id()).map(|key| key.contribution_key(session))
}

fn handle_ack(state: &mut State, at: JobIndex, request: u32, ack: &AckRepr<'_>) {
    let Some(job) = state.jobs.get(at) else { return };
    let is_passed_on = job.passes_on();
    let earliest = Some(job.earliest_unfinished()).filter(|_| !is_passed_on);
    let (taken_up, is_halted) = (job.taken_up(), job.is_halted());
    let Some(uplink) = state.uplink_mut(at) else { return };
    match uplink.answer_request(ack, earliest, taken_up, is_halted) {
        ParentState::Forgotten => lifecycle::forget_members(state, at),
        ParentState::Halted => lifecycle::halt_job(state, at),
        ParentState::Granted | ParentState::Refused if is_passed_on => {
            handle_asynchronous_ack(state, at, request, ack);
        }
        ParentState::Granted => {
            if let Some(missing) = ack.missing {
                resend(state, at, missing);
            }
        }
        ParentState::Nothing | ParentState::Refused => {}
    }
}

/// Handles an Ack from the parent for an asynchronous job.
fn handle_asynchronous_ack(state: &mut State, at: JobIndex, request: u32, ack: &AckRepr<'_>) {
    let is_granted = ack.status == Status::Success;
    if is_granted && let Some(job) = state.jobs.get_mut(at) {
        job.adopt_threshold(ack.threshold, ack.pinned);
    }
    if let Some(errand) = state.uplink_mut(at).and_then(|uplink| uplink.take_errand(request)) {
        return answer_errand(state, at, &errand, ack);
    }
    match ack.action {
        Action::Confirm if is_granted => ascent::handle_confirmed(state, at, ack),
        Action::Confirm => {
            // The parent no longer expects the partial sum, so it is not known whether the vectors in it were admitted.
            // The members report these vectors as lost when they rejoin.
            let transfer = state.uplink(at).and_then(Uplink::transfer);
            if transfer.is_some_and(|transfer| transfer.may_concern(request)) {
                lifecycle::forget_members(state, at);
            }
        }
        Action::Help if ack.status == Status::StaleRound && ack.formed => {
            if let Some(job) = state.jobs.get_mut(at) {
                job.give_up_aggregates(ack.round, ack.history);
            }
        }
        _ => {}
    }
}

/// Forwards the answer from the parent to the member that sent the request.
fn answer_errand(state: &mut State, at: JobIndex, errand: &Errand, ack: &AckRepr<'_>) {
    let Errand { member, request: id, action, .. } = *errand;
    let Some(job) = state.jobs.get(at) else { return };
    let Some(to) = job.members().get(member).map(|member| member.endpoint) else { return };
    let (job, seal) = (job.id(), job.seal(member));
    let request = Request { job, id, action, seal, room: AnswerRoom::Any };
    let member = MemberAt { job: at, member };
    if ack.status == Status::Success {
        return reply::grant(state, &to, request, member);
    }
    let refusal = Refusal { round: ack.round, ..(ack.status, ack.expected).into() };
    reply::refuse(state, &to, request, &refusal);
}

/// Queues the partial sums that the parent is missing.
fn resend(state: &mut State, at: JobIndex, missing: SegmentSetRepr<'_>) {
    if missing.indices().next().is_some() {
        state.queue_work(Work::resend(at, missing));
    }
}
