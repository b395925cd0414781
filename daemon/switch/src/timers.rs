//! Timers: leases expire, overdue jobs are completed, slow members are reported, and Joins and heartbeats are sent to
//! parents.

use iswitch_protocol::Round;
use iswitch_protocol::wire::{ControlBody, ControlRepr};

use crate::ascent;
use crate::backlog::Purpose;
use crate::delivery;
use crate::event::{Departure, Event};
use crate::ids::{JobIndex, MemberAt};
use crate::job::{Group, Job};
use crate::lifecycle::{close_finished, forget_members, form_job, remove_member};
use crate::parent;
use crate::state::State;
use crate::uplink::Due;
use crate::waiting::Waiting;

/// Handles all timers that are due.
pub(crate) fn handle_timeout(state: &mut State) {
    if state.deadline.is_some_and(|deadline| deadline <= state.now) {
        expire_leases(state);
        form_overdue_jobs(state);
        state.jobs.indexes().for_each(|at| state.record_rounds(at));
        watch_rounds(state);
        tend_groups(state);
    }
    tend_uplinks(state);
}

/// Expels the members whose lease has expired.
fn expire_leases(state: &mut State) {
    state.deadline = None;
    let (now, lease) = (state.now, state.config.lease());
    for job in state.jobs.indexes() {
        while let Some(member) = state.jobs.silent_member(job, now, lease) {
            state.counters.expelled += 1;
            remove_member(state, MemberAt { job, member }, Departure::Silent);
        }
    }
    if state.jobs.iter().next().is_some() {
        state.expect_tick();
    }
}

/// Completes each resumed job whose missing members have not rejoined within a lease.
fn form_overdue_jobs(state: &mut State) {
    for at in state.jobs.indexes() {
        let Some(job) = state.jobs.get(at).filter(|job| parent::is_overdue(state, job)) else { continue };
        if job.has_parent() {
            parent::declare_overdue(state, at);
        } else if job.may_continue_without_the_rest() {
            form_job(state, at, None, None);
        }
    }
}

/// Reports the members for which a round has waited too long, and the previously reported members for which rounds no
/// longer wait.
fn watch_rounds(state: &mut State) {
    let (now, limit) = (state.now, state.config.slow_after());
    for (job, slots) in state.jobs.iter_with_slots() {
        let overdue = Waiting::overdue(job, slots, now, limit);
        // Computed only if needed and only once for all members, because the computation scans the whole vector.
        let mut missing = None;
        let (number_of_job, newest) = (job.id(), job.rounds().numbers().newest());
        for id in job.members().present().iter() {
            let Some(member) = job.members_mut().get_mut(id) else { continue };
            let (number, address) = (id.to_wire(), member.endpoint.peer);
            let is_past = |round: Round| newest.is_some_and(|it| round.next().is_before(it));
            let event = match (member.held_up, overdue.as_ref().filter(|waiting| waiting.is_for(id))) {
                (held_up, Some(waiting)) => {
                    member.held_up = Some(waiting.open.round);
                    held_up.is_none().then(|| Event::Slow {
                        job: number_of_job,
                        member: number,
                        address,
                        round: waiting.open.round,
                        waited_ms: waiting.waited_ms(now),
                        missing_segments: missing.get_or_insert_with(|| waiting.missing_segments())[id.get()],
                        segments: waiting.segments(),
                    })
                }
                // A later round has been opened, so the round is finished and no longer waits for the member.
                (Some(round), None) if is_past(round) => {
                    member.held_up = None;
                    Some(Event::Recovered { job: number_of_job, member: number, address })
                }
                _ => None,
            };
            if let Some(event) = event {
                state.journal.report(now, event, job.members().names_of(Some(id)));
            }
        }
    }
}

/// Offers groups and sends Probes.
fn tend_groups(state: &mut State) {
    for at in state.jobs.indexes() {
        delivery::tend(state, at);
        if let Some(asked_at) = state.jobs.get(at).and_then(Job::group).and_then(Group::asked_at) {
            state.expect_by(asked_at);
        }
    }
}

/// Sends Joins and heartbeats to the parents.
fn tend_uplinks(state: &mut State) {
    let now = state.now;
    for at in JobIndex::first(state.uplinks.len()) {
        match state.uplink_mut(at).and_then(|uplink| uplink.take_due(now)) {
            None => {}
            Some(Due::Join) => {
                parent::watch(state, at);
                reconsider_parent(state, at);
                parent::join(state, at);
            }
            Some(Due::Heartbeat) => send_heartbeat(state, at),
        }
        ascent::tend(state, at);
    }
}

/// Changes to another parent if the current one has been silent for longer than a lease, or if the parent has not
/// completed a resumed job within a lease. In both cases, the other members of the job may have chosen another parent.
fn reconsider_parent(state: &mut State, at: JobIndex) {
    let (now, lease) = (state.now, state.config.lease());
    let is_resumed = state.jobs.get(at).is_some_and(Job::is_resumed);
    let is_doubtful = state.uplink(at).is_some_and(|uplink| uplink.is_doubtful(is_resumed, now, lease));
    if has_choice(state) && is_doubtful {
        parent::change(state, at);
    }
}

fn has_choice(state: &State) -> bool {
    state.config.uplinks.is_some_and(|uplinks| uplinks.has_choice())
}

/// Renews this switch's lease at the parent, and checks whether the parent answers.
fn send_heartbeat(state: &mut State, at: JobIndex) {
    let now = state.now;
    let Some(job) = state.jobs.get(at).map(Job::id) else { return };
    parent::watch(state, at);
    let Some(uplink) = state.uplink_mut(at) else { return };
    let is_gone = uplink.is_gone(now);
    let request = uplink.take_request();
    if is_gone && has_choice(state) {
        parent::change(state, at);
        return forget_members(state, at);
    }
    parent::send(state, at, &ControlRepr { job, request, body: ControlBody::HEARTBEAT }, 0);
    parent::state_name(state, at);
    if state.jobs.get(at).is_some_and(Job::passes_on) {
        // H of an asynchronous job depends on the weight, and an update of the weight may have been lost or reordered.
        parent::declare_weight(state, at);
    }
    tend_deserted_round(state, at);
}

/// Finishes a round without participants: no member would request its missing results, so this switch requests them
/// from the parent.
fn tend_deserted_round(state: &mut State, at: JobIndex) {
    if !state.jobs.get(at).is_some_and(Job::waits_for_no_member) {
        return;
    }
    close_finished(state, at);
    let Some(job) = state.jobs.get(at) else { return };
    let segments = job.layout().segment_count();
    if let Some(round) = job.deserted_round() {
        state.backlog.sweep(at, Purpose::Ask, round, segments);
    }
}
