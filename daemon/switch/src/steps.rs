//! Execution of queued work, one step at a time.

use core::ops::Range;

use iswitch_protocol::limits::{MAX_RANGE_SEGMENTS, MAX_WORK_COST, WORK_COST_PER_SEGMENT};
use iswitch_protocol::{Round, SegmentIndex};

use crate::ascent;
use crate::backlog::{Meter, Purpose, Step, Wanted, Work};
use crate::ids::{JobIndex, MemberAt};
use crate::job::{Addition, Aggregation, Rounds, Sum};
use crate::parent;
use crate::state::State;

/// Executes queued work until there is output to send. Returns false if no output was produced: either there is no
/// work, or the cost limit of this turn is reached and [`Switch::poll_timeout`](crate::Switch::poll_timeout) is due
/// immediately.
pub(crate) fn work(state: &mut State) -> bool {
    while let Some((job, step)) = state.backlog.next_step() {
        let mut meter = state.backlog.meter();
        let stopped_at = match &step {
            Step::Sweep(sweep) => match sweep.purpose {
                Purpose::Ask => ask_for_results(state, job, sweep.round, sweep.range(), &mut meter),
                Purpose::Close => close_segments(state, job, sweep.round, sweep.range(), false, &mut meter),
            },
            Step::Range(work) => work_on(state, work, &mut meter),
        };
        state.backlog.advance(job, &step, stopped_at, &meter);
        if state.outbox.has_output() {
            return true;
        }
    }
    false
}

/// Executes one step of a queue entry. Returns the segment at which it stopped, or `None` if the work is complete.
fn work_on(state: &mut State, work: &Work, meter: &mut Meter) -> Option<u32> {
    match *work {
        Work::Repeat { at, ref wanted, next, .. } => repeat_results(state, at, wanted, next, meter),
        Work::Resend { job, ref wanted, next, .. } => resend_partials(state, job, wanted, next, meter),
        Work::Close { job, round, next, end } => close_segments(state, job, round, next..end, true, meter),
        Work::Add { job, addition, next, end } => add_vector(state, job, &addition, next..end, meter),
        Work::Publish { job, aggregate, next, end } => publish(state, job, aggregate, next..end, meter),
        Work::Raise { job, ref wanted, next, .. } => raise_partial(state, job, wanted, next, meter),
    }
}

/// Sends a member the results that it requested. Returns the segment at which it stopped, or `None` if it is done.
fn repeat_results(
    state: &mut State,
    at: MemberAt,
    wanted: &Wanted,
    next: u32,
    meter: &mut Meter,
) -> Option<u32> {
    let to = state.jobs.member(at)?.endpoint;
    state.aim_answers(at.job, to);
    let (mut aggregation, outbox, counters) = state.parts(at.job)?;
    let batch = &mut outbox.answers.batch;
    let (len, push) = (Aggregation::result_len, Aggregation::push_result);
    let stopped_at = wanted.fill(&mut aggregation, batch, next, meter, len, push);
    counters.results_repeated += batch.datagrams();
    stopped_at
}

/// Sends the parent the partial sums that it is missing. Returns the segment at which it stopped, or `None` if it is
/// done.
fn resend_partials(
    state: &mut State,
    at: JobIndex,
    wanted: &Wanted,
    next: u32,
    meter: &mut Meter,
) -> Option<u32> {
    state.aim_partials(at);
    let (mut aggregation, outbox, _) = state.parts(at)?;
    let batch = &mut outbox.partials.batch;
    let (len, push) = (Aggregation::partial_len, Aggregation::push_partial);
    wanted.fill(&mut aggregation, batch, next, meter, len, push)
}

/// Closes the segments of a range that wait for no member or, with `force`, all segments that have contributions.
/// Returns the segment at which it stopped, or `None` if the range is complete or the round is over.
fn close_segments(
    state: &mut State,
    at: JobIndex,
    round: Round,
    range: Range<u32>,
    force: bool,
    meter: &mut Meter,
) -> Option<u32> {
    state.aim_results(at);
    state.aim_partials(at);
    let (mut aggregation, outbox, counters) = state.parts(at)?;
    aggregation.job().rounds().open_round(round)?;
    let goes_up = aggregation.job().goes_up(round);
    let batch = if goes_up { &mut outbox.partials.batch } else { &mut outbox.results.batch };
    let recipients = if goes_up { 1 } else { aggregation.job().result_copies() };
    let is_ordered = aggregation.is_ordered();
    let (mut next, mut closed) = (range.start, 0);
    for index in range.filter_map(SegmentIndex::new) {
        if !meter.has_left() || !batch.has_room(aggregation.outgoing_len(round, index)) {
            break;
        }
        meter.examine(1);
        if let Some(summed) = aggregation.close(round, index, force, batch) {
            let floats = aggregation.job().layout().float_count(index);
            if is_ordered {
                // In an ordered job, the contributions are added only when the segment closes, so their cost is charged
                // here.
                meter.add(floats * usize::from(summed));
            }
            meter.send(floats, recipients);
            closed += 1;
        }
        next = index.get() + 1;
    }
    *(if goes_up { &mut counters.partials } else { &mut counters.results }) += closed;
    Some(next)
}

/// Searches a deserted round for the first result that only the parent can have, and requests this result and those
/// after it. Returns the segment at which the search stopped, or `None` if the search is finished.
fn ask_for_results(
    state: &mut State,
    at: JobIndex,
    round: Round,
    range: Range<u32>,
    meter: &mut Meter,
) -> Option<u32> {
    let aggregation = state.aggregation(at)?;
    if aggregation.job().deserted_round() != Some(round) {
        return None;
    }
    let segments = aggregation.job().layout().segment_count();
    let end = range.end.min(range.start.saturating_add(MAX_WORK_COST / WORK_COST_PER_SEGMENT));
    let is_awaited = |index: &SegmentIndex| aggregation.awaits_parent(round, *index);
    let first = (range.start..end).filter_map(SegmentIndex::new).find(is_awaited).map(SegmentIndex::get);
    meter.examine(first.unwrap_or(end) - range.start);
    let Some(first) = first else { return Some(end) };
    let count = MAX_RANGE_SEGMENTS.min(segments - first);
    meter.examine(count);
    parent::ask_for_range(state, at, round, first, count);
    None
}

/// Adds segments of a vector until the budget of the step is used up or the batch has no room for results. Returns the
/// segment at which it stopped, or `None` if the whole vector has been added.
fn add_vector(
    state: &mut State,
    at: JobIndex,
    addition: &Addition,
    range: Range<u32>,
    meter: &mut Meter,
) -> Option<u32> {
    state.aim_results(at);
    let (mut aggregation, outbox, counters) = state.parts(at)?;
    let batch = &mut outbox.results.batch;
    // The job may have been reset or replaced since the work was queued.
    let rounds = aggregation.job().rounds();
    let aggregate = match addition.sum {
        Sum::Aggregate(aggregate) => aggregate,
        Sum::Partial(_) => rounds.numbers().base(),
    };
    let is_over = aggregate.is_before(rounds.numbers().base());
    if is_over || !matches!(rounds, Rounds::Asynchronous(_)) {
        return None;
    }
    let copies = aggregation.job().result_copies();
    let mut stopped_at = None;
    for index in range.filter_map(SegmentIndex::new) {
        if !meter.has_left() || addition.is_last && !batch.has_room(aggregation.result_len(index)) {
            stopped_at = Some(index.get());
            break;
        }
        let floats = aggregation.job().layout().float_count(index);
        aggregation.add_staged(addition, index);
        meter.examine(1);
        meter.add(floats);
        if addition.is_last {
            aggregation.push_result(aggregate, index, batch);
            meter.send(floats, copies);
        }
    }
    aggregation.note_unadded(addition.member, stopped_at);
    counters.results += batch.datagrams();
    if stopped_at.is_none() && matches!(addition.sum, Sum::Partial(_)) {
        ascent::note_added(state, at);
    }
    stopped_at
}

/// Sends segments of a partial sum to the parent. A separate last step sends the Confirm of these segments, because a
/// control packet would precede the data packets that are produced in the same step. Returns the segment at which it
/// stopped, or `None` if the range is complete.
fn raise_partial(
    state: &mut State,
    at: JobIndex,
    wanted: &Wanted,
    next: u32,
    meter: &mut Meter,
) -> Option<u32> {
    let range = wanted.range();
    if next >= range.first + range.count {
        ascent::confirm_batch(state, at, range);
        return None;
    }
    state.aim_partials(at);
    let (mut aggregation, outbox, counters) = state.parts(at)?;
    let batch = &mut outbox.partials.batch;
    let (len, push) = (Aggregation::partial_len, Aggregation::push_rising);
    let stopped_at = wanted.fill(&mut aggregation, batch, next, meter, len, push);
    counters.partials += batch.datagrams();
    Some(stopped_at.unwrap_or(range.first + range.count))
}

/// Sends the results of an aggregate that was finished early, before enough vectors had been admitted. Returns the
/// segment at which it stopped, or `None` if the range is complete.
fn publish(
    state: &mut State,
    at: JobIndex,
    aggregate: Round,
    range: Range<u32>,
    meter: &mut Meter,
) -> Option<u32> {
    state.aim_results(at);
    let (mut aggregation, outbox, counters) = state.parts(at)?;
    let batch = &mut outbox.results.batch;
    if !matches!(aggregation.job().rounds(), Rounds::Asynchronous(_)) {
        return None;
    }
    let copies = aggregation.job().result_copies();
    let mut stopped_at = None;
    for index in range.filter_map(SegmentIndex::new) {
        if !meter.has_left() || !batch.has_room(aggregation.result_len(index)) {
            stopped_at = Some(index.get());
            break;
        }
        if !aggregation.push_result(aggregate, index, batch) {
            break;
        }
        meter.send(aggregation.job().layout().float_count(index), copies);
    }
    counters.results += batch.datagrams();
    stopped_at
}
