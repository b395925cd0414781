//! Life cycle of a job: members join and leave; the job is completed, halted, dismissed, and ended.

use iswitch_protocol::wire::{ControlBody, Status};

use crate::backlog::{Purpose, Work};
use crate::event::{Departure, Event};
use crate::ids::{JobIndex, MemberAt, MemberId};
use crate::job::{Granted, Job, Presence, Rounds};
use crate::parent;
use crate::reply::{self, Refusal};
use crate::state::State;

/// Completes the job if all members that it waits for have joined. If the switch has a parent, announces the members to
/// the parent instead. Call this when members have joined or represent more workers.
pub(crate) fn gather(state: &mut State, at: JobIndex, last: Option<MemberId>) {
    let Some(job) = state.jobs.get(at) else { return };
    if job.has_parent() {
        parent::declare(state, at);
    } else if !job.is_formed() && job.is_gathered() && job.is_attended() {
        form_job(state, at, last, None);
    }
}

/// If all members that the job waits for have joined, asks each member of a job that roams whether it still uses this
/// switch (M-14). Member `last` is asked in the answer to its Join.
pub(crate) fn call_roll(state: &mut State, at: JobIndex, last: MemberId) {
    let State { jobs, nonces, .. } = state;
    let Some(job) = jobs.get_mut(at).filter(|job| job.roams() && !job.is_formed() && job.is_gathered())
    else {
        return;
    };
    for (_, member) in job.members_mut().iter_mut() {
        // A nonce that the member received earlier does not show where the member is now.
        nonces.renew(&member.endpoint);
        member.presence = Presence::Asked;
    }
    reply::ask_presence(state, at, last);
}

/// Completes a job. `last` is the member whose Join completed it, if any; this member receives an Ack to its Join
/// instead of a notice.
pub(crate) fn form_job(state: &mut State, at: JobIndex, last: Option<MemberId>, granted: Option<Granted>) {
    let Some(job) = state.jobs.form(at, granted, state.now) else { return };
    let (id, members) = (job.id(), job.members().count());
    if let (Some(granted), Some(key)) = (granted, state.keys.of(id).filter(|_| job.is_tagged())) {
        // The members derive the key for results from the epoch of the topmost switch.
        job.set_result_key(key.result_key(granted.epoch, id));
    }
    if job.is_resumed() {
        let round = job.rounds().numbers().base();
        state.report(Event::JobResumed { job: id, members, round });
    } else if job.workers() > 1 {
        state.report(Event::JobFormed { job: id, members });
    }
    reply::announce_formed(state, at, last);
    // The contributions of the other workers may have arrived before the last worker joined.
    close_finished(state, at);
    // The next timer offers the group, because the last member's session is opened only after its Join has been
    // handled.
    state.expect_by(state.now);
}

/// Suspends a job and notifies its members.
pub(crate) fn halt_job(state: &mut State, at: JobIndex) {
    let Some(job) = state.jobs.get_mut(at) else { return };
    let id = job.id();
    if job.halt() {
        state.report(Event::Halted { job: id });
    }
    reply::notify_members(state, at, ControlBody::Halt);
}

/// Clears a job. Its members rejoin, and the histories in their Joins show which sums they have.
pub(crate) fn reset_job(state: &mut State, at: JobIndex) {
    let Some(id) = state.jobs.get(at).map(Job::id) else { return };
    state.report(Event::Reset { job: id });
    dismiss_members(state, at);
}

/// Removes a member. The job continues without the member, or ends if the member was the last one.
pub(crate) fn remove_member(state: &mut State, at: MemberAt, why: Departure) {
    let ends = state.jobs.get(at.job).is_some_and(|job| job.ends_without(at.member, why));
    let Some(member) = state.jobs.remove_member(at) else { return };
    let Some(job) = state.jobs.get(at.job) else { return };
    let (id, members, is_formed) = (job.id(), job.members().count(), job.is_formed());
    let has_lost_suppliers = job.has_lost_suppliers();
    let address = member.endpoint.peer;
    state.report(Event::Left { job: id, member: at.member.to_wire(), address, why });
    if ends {
        return interrupt_job(state, at.job);
    }
    // A restarted process keeps the job of its predecessor.
    if members == 0 && why != Departure::Restarted {
        return end_job(state, at.job, why);
    }
    if why == Departure::Forgotten {
        // The other members are removed next, and the job ends with the last of them.
        return;
    }
    if has_lost_suppliers {
        return forget_members(state, at.job);
    }
    if members > 0 && !is_formed {
        // The job may have waited for members that only the departed member knew of.
        gather(state, at.job, None);
    } else {
        parent::declare_weight(state, at.job);
    }
    close_finished(state, at.job);
}

/// Ends the incarnation of a job that roams, because its members change (M-14). The members rejoin, and the job
/// continues when all of its workers have.
pub(crate) fn interrupt_job(state: &mut State, at: JobIndex) {
    let Some(job) = state.jobs.get(at).map(Job::id) else { return };
    state.report(Event::JobInterrupted { job });
    dismiss_members(state, at);
}

/// Dismisses the members after the parent has forgotten this switch, so that all members rejoin.
pub(crate) fn forget_members(state: &mut State, at: JobIndex) {
    let Some(job) = state.jobs.get(at).map(Job::id) else { return };
    state.report(Event::JobForgotten { job });
    dismiss_members(state, at);
}

/// Removes all members of a job and informs them, so that they rejoin.
pub(crate) fn dismiss_members(state: &mut State, job_at: JobIndex) {
    let Some(members) = state.jobs.get(job_at).map(|job| job.members().present()) else { return };
    for member in members.iter() {
        let at = MemberAt { job: job_at, member };
        if let Some(endpoint) = state.jobs.member(at).map(|member| member.endpoint) {
            reply::refuse_data(state, &endpoint, at, &Refusal::from(Status::UnknownMember));
            remove_member(state, at, Departure::Forgotten);
        }
    }
    // The job may already have no members, if its last member was a process that is being replaced.
    if state.jobs.get(job_at).is_some_and(|job| job.members().count() == 0) {
        end_job(state, job_at, Departure::Forgotten);
    }
}

fn end_job(state: &mut State, at: JobIndex, why: Departure) {
    let Some(job) = state.jobs.get(at).map(Job::id) else { return };
    // Report this before the job is removed, because the report contains the name of the job.
    state.report(Event::JobEnded { job });
    state.jobs.remove(at);
    state.backlog.clear(at);
    parent::release(state, at, job, why == Departure::Forgotten);
    state.keys.release(job);
}

/// Schedules the closing of segments in open rounds that have become complete although no further contribution has
/// arrived, for example because a member has left.
pub(crate) fn close_finished(state: &mut State, at: JobIndex) {
    let now = state.now;
    let Some(job) = state.jobs.get_mut(at) else { return };
    if let Rounds::Asynchronous(_) = job.rounds() {
        if job.is_filled_without_the_departed() {
            close_aggregate(state, at);
        }
        return;
    }
    if let Some(vacant) = job.vacant_round() {
        job.open(job.prospective_round(vacant, now));
    }
    let segments = job.layout().segment_count();
    for open in job.rounds().open_rounds() {
        state.backlog.sweep(at, Purpose::Close, open.round, segments);
    }
}

/// Finishes the aggregate that is being filled, which then consists of the vectors admitted so far, and queues its
/// results.
pub(crate) fn close_aggregate(state: &mut State, at: JobIndex) {
    let Some(job) = state.jobs.get_mut(at) else { return };
    let end = job.layout().segment_count();
    if let Some(aggregate) = job.finish_aggregate() {
        state.queue_work(Work::Publish { job: at, aggregate, next: 0, end });
    }
}
