//! Help, Confirm and FBcast: requests for segments of a round or of a vector.

use iswitch_protocol::limits::MAX_BITMAP_LEN_BYTES;
use iswitch_protocol::wire::control::{RangeRepr, SegmentSetRepr};
use iswitch_protocol::wire::{ControlBody, Kind, Mode, Status};
use iswitch_protocol::{Round, SegmentIndex};

use crate::backlog::Work;
use crate::endpoint::Endpoint;
use crate::flight::Incident;
use crate::ids::MemberAt;
use crate::job::{Asked, Job, Receipt, Rounds};
use crate::reason::DropReason;
use crate::reply::{self, Refusal, Request, bitmap_of};
use crate::state::State;
use crate::{delivery, lifecycle, parent};

/// Handles an FBcast: closes segments, whose sums then consist of the contributions that have arrived so far.
pub(super) fn handle_fbcast(
    state: &mut State,
    from: &Endpoint,
    request: Request,
    at: MemberAt,
    range: RangeRepr,
) -> Result<(), Refusal> {
    let job = check_range(state, at, range)?;
    if job.passes_on() {
        parent::pass_on_for(state, at, request, ControlBody::FBcast(range));
        return Ok(());
    }
    if !job.members().is_confirmed() {
        // The job has no contributions yet.
        reply::grant(state, from, request, at);
        return Ok(());
    }
    if let Rounds::Asynchronous(aggregates) = job.rounds() {
        if aggregates.filling() != range.round {
            return Err(Refusal::stale_round(aggregates.filling()));
        }
        if aggregates.is_open() {
            lifecycle::close_aggregate(state, at.job);
        }
        reply::grant(state, from, request, at);
        return Ok(());
    }
    if range.round == job.rounds().numbers().next() {
        // The round has no contributions yet.
        reply::grant(state, from, request, at);
        return Ok(());
    }
    if job.rounds().open_round(range.round).is_none() {
        return Err(Refusal::stale_round(job.next_round_of(at.member)));
    }
    let end = range.first + range.count;
    if job.rounds().is_on_card() {
        if state.card_orders.close(range) {
            reply::grant(state, from, request, at);
        } else {
            state.counters.count_drop(DropReason::Busy);
        }
        return Ok(());
    }
    let closing = Work::Close { job: at.job, round: range.round, next: range.first, end };
    // Do not acknowledge a request for which the queue has no room, so that the sender repeats it.
    if state.queue_work(closing) {
        reply::grant(state, from, request, at);
    }
    Ok(())
}

/// Answers a Help: the Ack names the segments for which the switch lacks the member's contribution, and available
/// results follow as data packets.
pub(super) fn handle_help(
    state: &mut State,
    from: &Endpoint,
    request: Request,
    at: MemberAt,
    wanted: SegmentSetRepr<'_>,
) -> Result<(), Refusal> {
    let range = wanted.range;
    if check_range(state, at, range)?.is_halted() {
        return Err(Status::Halted.into());
    }
    if range.count > 0 {
        let job = state.jobs.get_mut(at.job).ok_or(Status::UnknownMember)?;
        job.reach_back(range.round);
        let outcome = check_round(job, at, range.round);
        delivery::note_help(state, at, wanted);
        outcome?;
        confirm(state, at);
    }
    let bits = missing_of(state, from, at, wanted)?;
    let missing = SegmentSetRepr { range, bitmap: &bits[..wanted.bitmap.len()] };
    reply::acknowledge(state, from, request, at, Some(missing));
    if range.count > 0 {
        let helped = Incident::Helped { member: at.member.to_wire(), round: range.round };
        state.journal.log_mut(at.job).record(state.now, helped);
        if has_results_of(state, at, range.round) {
            if may_repeat(state, at, wanted) {
                state.queue_work(Work::repeat(at, wanted));
            } else {
                state.counters.count_drop(DropReason::RateLimited);
            }
        }
        parent::ask(state, at.job, wanted);
    }
    Ok(())
}

/// Returns those of the segments requested by a Help for which the switch lacks the member's contribution.
fn missing_of(
    state: &mut State,
    from: &Endpoint,
    at: MemberAt,
    wanted: SegmentSetRepr<'_>,
) -> Result<[u8; MAX_BITMAP_LEN_BYTES], Refusal> {
    let range = wanted.range;
    if state.jobs.get(at.job).is_some_and(|job| job.rounds().is_on_card()) {
        return missing_on_card(state, from, at, wanted);
    }
    let aggregation = state.aggregation(at.job).ok_or(Status::UnknownMember)?;
    let is_missing = |round: Round, index: SegmentIndex| aggregation.is_missing(at.member, round, index);
    let indices = || wanted.indices().filter_map(SegmentIndex::new);
    let last = range.round.previous();
    if indices().any(|index| is_missing(last, index)) {
        // The member is at the wrong round, because it received only one of two different answers to its Join. It must
        // rejoin.
        return Err(Status::UnknownMember.into());
    }
    Ok(bitmap_of(range, indices().filter(|index| is_missing(range.round, *index))))
}

/// Returns those of the requested segments for which the core has no result and the card lacks the sender's
/// contribution.
fn missing_on_card(
    state: &mut State,
    from: &Endpoint,
    at: MemberAt,
    wanted: SegmentSetRepr<'_>,
) -> Result<[u8; MAX_BITMAP_LEN_BYTES], Refusal> {
    let State { jobs, card_orders, now, .. } = state;
    let aggregation = jobs.aggregation(at.job, *now).ok_or(Status::UnknownMember)?;
    let range = wanted.range;
    let is_missing = |index: &SegmentIndex| {
        !aggregation.has_result(range.round, *index) && card_orders.is_missing(from, range.round, index.get())
    };
    Ok(bitmap_of(range, wanted.indices().filter_map(SegmentIndex::new).filter(is_missing)))
}

/// Returns whether results of a round may be repeated. Results of an unfinished aggregate must not be queued: a vector
/// that finishes the aggregate in the meantime would be queued behind these results, which would therefore lack the
/// vector. All members receive the results anyway once the aggregate is complete.
fn has_results_of(state: &State, at: MemberAt, round: Round) -> bool {
    let Some(job) = state.jobs.get(at.job) else { return false };
    let Rounds::Asynchronous(aggregates) = job.rounds() else { return true };
    job.passes_on() || aggregates.is_finished(round)
}

/// Charges the requested results to the member's repeat budget. Returns false if the budget is insufficient.
fn may_repeat(state: &mut State, at: MemberAt, wanted: SegmentSetRepr<'_>) -> bool {
    let (now, lease) = (state.now, state.config.lease());
    let Some(job) = state.jobs.get_mut(at.job) else { return false };
    let income = job.income(now, lease);
    let segments = wanted.indices().count() as u64;
    job.members_mut().get_mut(at.member).is_some_and(|member| member.repeats.take(segments, &income))
}

/// Answers a Confirm (requirement V-5).
pub(super) fn handle_confirm(
    state: &mut State,
    from: &Endpoint,
    request: Request,
    at: MemberAt,
    asked: SegmentSetRepr<'_>,
) -> Result<(), Refusal> {
    let range = asked.range;
    let job = check_range(state, at, range)?;
    let Rounds::Asynchronous(aggregates) = job.rounds() else {
        return Err((Status::ModeMismatch, Mode::Synchronous as u32).into());
    };
    if job.is_halted() {
        return Err(Status::Halted.into());
    }
    let receipt = aggregates.receipt(at.member, range.round);
    if let Receipt::Unknown(round) = receipt {
        return Err(Refusal::stale_round(round));
    }
    confirm(state, at);
    if !state.jobs.get(at.job).is_some_and(|job| job.members().is_confirmed()) {
        // An answer would make the sender repeat its contributions at once, and the switch would drop them again.
        // Without an answer, the sender asks again after its timeout.
        return Ok(());
    }
    let aggregation = state.aggregation(at.job).ok_or(Status::UnknownMember)?;
    let is_missing = |index: &SegmentIndex| {
        receipt == Receipt::Expected && aggregation.is_unstaged(at.member, range.round, *index)
    };
    let missing = asked.indices().filter_map(SegmentIndex::new).filter(is_missing);
    let bitmap = bitmap_of(range, missing);
    let missing = SegmentSetRepr { range, bitmap: &bitmap[..asked.bitmap.len()] };
    reply::confirm(state, from, request, at, missing, receipt);
    if receipt == Receipt::Pending
        && let Some(aggregates) = state.jobs.get_mut(at.job).and_then(Job::aggregates_mut)
    {
        aggregates.note_asked(at.member, Asked { request: request.id, range });
    }
    Ok(())
}

/// Records that a member has named a round or a vector of this incarnation of its job, and therefore knows that the job
/// is complete.
fn confirm(state: &mut State, at: MemberAt) {
    if let Some(job) = state.jobs.get_mut(at.job) {
        job.members_mut().confirm(at.member);
    }
}

/// Refuses a range that extends beyond the vector.
fn check_range(state: &State, at: MemberAt, range: RangeRepr) -> Result<&Job, Refusal> {
    let job = state.jobs.get(at.job).ok_or(Status::UnknownMember)?;
    let segments = job.layout().segment_count();
    match range.first.checked_add(range.count) {
        Some(end) if end <= segments => Ok(job),
        _ => Err((Status::OutOfRange, segments).into()),
    }
}

/// Refuses a request for a round whose results are no longer kept, or in which the member does not take part.
fn check_round(job: &Job, at: MemberAt, round: Round) -> Result<(), Refusal> {
    if let Rounds::Asynchronous(aggregates) = job.rounds() {
        let oldest = aggregates.oldest_kept();
        return if round.is_before(oldest) { Err(Refusal::stale_round(oldest)) } else { Ok(()) };
    }
    let (member, numbers) = (job.members().get(at.member), job.rounds().numbers());
    // This applies only to workers: a switch may have members that lack the sum before the round at which it continues.
    let begins_later = member.is_some_and(|it| it.kind == Kind::Worker && round.is_before(it.start.round));
    if round.next().is_before(numbers.current()) || round.is_before(numbers.base()) || begins_later {
        return Err(Refusal::stale_round(job.next_round_of(at.member)));
    }
    Ok(())
}
