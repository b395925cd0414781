//! Data packets from members: contributions to rounds of synchronous jobs, and vectors of asynchronous jobs.

use iswitch_protocol::auth::TagKey;
use iswitch_protocol::wire::{DataPacket, Kind, Status};
use iswitch_protocol::{Round, Seg, SegmentIndex};

use crate::accumulate::NonFinite;
use crate::backlog::Work;
use crate::batch::{Batch, SumBatches};
use crate::endpoint::Endpoint;
use crate::flight::Incident;
use crate::ids::{JobIndex, MemberAt};
use crate::job::{Addition, Aggregates, Aggregation, Job, Member, Rounds, Sum, Verdict};
use crate::limiter::StrangerPacket;
use crate::reason::{Counters, DropReason};
use crate::reply::{self, Refusal};
use crate::state::State;

/// Processes a super-frame of data packets of `stride` bytes each, of which the last may be shorter.
pub(crate) fn handle_data(state: &mut State, from: &Endpoint, payload: &[u8], stride: usize) {
    let datagrams = payload.len().div_ceil(stride) as u64;
    state.counters.data_received += datagrams;
    let Some(at) = state.jobs.find_member(from) else {
        return handle_stranger(state, from, payload.len(), datagrams);
    };
    let is_tagged = state.jobs.get(at.job).is_some_and(Job::is_tagged);
    if !is_tagged {
        state.hear_from(at);
    }
    if !state.outbox.is_drained() {
        // The driver has not drained earlier output yet, and a batch must not mix packets for different destinations.
        return state.counters.count_drops(DropReason::Busy, datagrams);
    }
    if !is_confirmed(state, at, payload) {
        // The sender repeats the contributions when the Ack of a Help or a Confirm names them as missing.
        return state.counters.count_drops(DropReason::EarlyRound, datagrams);
    }
    if state.jobs.get(at.job).is_some_and(|job| job.rounds().is_on_card()) {
        // The contribution passed through the card before the card took over the job. The card lacks it, and will name
        // it as missing.
        return state.counters.count_drops(DropReason::EarlyRound, datagrams);
    }
    state.aim_results(at.job);
    state.aim_answers(at.job, *from);
    state.aim_partials(at.job);
    let before = state.counters.contributions;
    let refused = match state.jobs.get(at.job).map(Job::rounds) {
        Some(Rounds::Synchronous(_)) => sum_contributions(state, at, payload, stride),
        Some(Rounds::Asynchronous(_)) => stage_contributions(state, at, payload, stride),
        None => return,
    };
    let accepted = state.counters.contributions - before;
    note_accepted(state, at, from, accepted, last_round(payload, stride));
    state.record_rounds(at.job);
    // Send one answer per super-frame: it names the reason and the first refused segment.
    if let Some((status, reason, bytes)) = refused.first {
        explain(state, from, at, (status, reason), bytes);
    }
    if let Some((reason, times)) = refused.latest {
        let dropped = Incident::Dropped { member: at.member.to_wire(), reason };
        state.journal.log_mut(at.job).record_times(state.now, times, dropped);
    }
}

/// Drops data packets from a non-member, and informs the sender if the rate limit permits.
fn handle_stranger(state: &mut State, from: &Endpoint, len_bytes: usize, datagrams: u64) {
    if state.is_stray(from) {
        return state.counters.count_drops(DropReason::OtherPort, datagrams);
    }
    if !state.limiter.admit(state.now, *from.peer.ip(), StrangerPacket::Data) {
        return state.counters.count_drops(DropReason::RateLimited, datagrams);
    }
    state.counters.count_drops(DropReason::UnknownMember, datagrams);
    reply::refuse_stranger(state, from, len_bytes);
}

/// Returns whether the job of a member may sum vectors (M-14). The contribution itself may show that the member knows
/// that the job is complete.
#[inline]
fn is_confirmed(state: &mut State, at: MemberAt, payload: &[u8]) -> bool {
    let Some(job) = state.jobs.get_mut(at.job) else { return true };
    if job.members().is_confirmed() {
        return true;
    }
    if let Some(bytes) = payload.first_chunk() {
        job.confirm_by_contribution(at.member, Seg::from_bytes(*bytes).round);
    }
    job.members().is_confirmed()
}

/// Sums the contributions of a member of a synchronous job.
fn sum_contributions<'a>(state: &mut State, at: MemberAt, payload: &'a [u8], stride: usize) -> Refused<'a> {
    let mut refused = Refused::default();
    let non_finite = state.config.non_finite;
    let Some((mut aggregation, outbox, counters, widener)) = state.intake(at.job) else { return refused };
    // Look up the member once for the whole super-frame.
    let Some(member) = aggregation.job().members().get(at.member) else { return refused };
    let key = member.session.data_key();
    let non_finite = treatment_of(member, non_finite);
    let answers = &mut outbox.answers.batch;
    let mut batches = SumBatches { results: &mut outbox.results.batch, partials: &mut outbox.partials.batch };
    for bytes in payload.chunks(stride) {
        let outcome = authentic(key.as_ref(), bytes).and_then(|packet| {
            let (seg, elements) = (packet.seg(), packet.element_bytes());
            let floats = widener.widen(aggregation.job().element_type(at.member, seg.round), elements);
            let verdict = aggregation.contribute(at.member, seg, floats, non_finite, &mut batches);
            count_contribution(&mut aggregation, answers, counters, seg, verdict)
        });
        if let Err(reason) = outcome {
            refused.note(counters, reason, bytes);
            if reason == DropReason::EarlyRound && aggregation.job().is_unnamed(bytes) {
                refused.first.get_or_insert((Status::StaleRound, reason, bytes));
            }
        }
    }
    refused
}

/// Returns how non-finite contributions of a member are treated. Those of a switch are always summed, because a partial
/// sum of finite contributions may overflow to infinity (D-6).
fn treatment_of(member: &Member, non_finite: NonFinite) -> NonFinite {
    if member.kind == Kind::Switch { NonFinite::Sum } else { non_finite }
}

/// Counts a contribution. If the sum of its segment has already been delivered, answers the contribution with the
/// result.
fn count_contribution(
    aggregation: &mut Aggregation<'_>,
    answers: &mut Batch,
    counters: &mut Counters,
    seg: Seg,
    verdict: Verdict,
) -> Result<(), DropReason> {
    match verdict {
        Verdict::Summed => counters.contributions += 1,
        Verdict::Completed => {
            counters.contributions += 1;
            counters.results += 1;
        }
        Verdict::CompletedPartial => {
            counters.contributions += 1;
            counters.partials += 1;
        }
        Verdict::Finished => {
            if answers.has_room(aggregation.result_len(seg.index)) {
                aggregation.push_result(seg.round, seg.index, answers);
                counters.results_repeated += 1;
            }
            return Err(DropReason::Late);
        }
        Verdict::Dropped(reason) => return Err(reason),
    }
    Ok(())
}

/// Stages the contributions of a member of an asynchronous job.
fn stage_contributions<'a>(state: &mut State, at: MemberAt, payload: &'a [u8], stride: usize) -> Refused<'a> {
    let mut refused = Refused::default();
    let Some(member) = state.jobs.member(at) else { return refused };
    let (key, non_finite) = (member.session.data_key(), treatment_of(member, state.config.non_finite));
    for bytes in payload.chunks(stride) {
        let outcome = authentic(key.as_ref(), bytes);
        if let Err(reason) = outcome.and_then(|packet| stage_contribution(state, at, &packet, non_finite)) {
            refused.note(&mut state.counters, reason, bytes);
        }
    }
    refused
}

/// Stages one segment of a vector, and queues the addition of the vector if it is complete.
fn stage_contribution(
    state: &mut State,
    at: MemberAt,
    packet: &DataPacket<'_>,
    non_finite: NonFinite,
) -> Result<(), DropReason> {
    let (mut aggregation, _, _, widener) = state.intake(at.job).ok_or(DropReason::UnknownMember)?;
    let element = aggregation.job().element_type(at.member, packet.seg().round);
    let (seg, floats) = (packet.seg(), widener.widen(element, packet.element_bytes()));
    let whole = aggregation.stage(at.member, seg, floats, non_finite)?;
    let end = aggregation.job().layout().segment_count();
    state.counters.contributions += 1;
    if let Some(addition) = whole {
        record_aggregate(state, at.job, &addition);
        state.queue_work(Work::Add { job: at.job, addition, next: 0, end });
    }
    Ok(())
}

/// Records in the flight recorder that a vector begins or finishes an aggregate.
fn record_aggregate(state: &mut State, at: JobIndex, addition: &Addition) {
    let Some(job) = state.jobs.get_mut(at) else { return };
    let Some(threshold) = job.rounds().asynchronous().map(Aggregates::threshold) else {
        return;
    };
    // If the switch has a parent, the aggregates are those of the topmost switch.
    let Sum::Aggregate(round) = addition.sum else { return };
    let participants = job.members().present().bits();
    let times = job.round_times_mut();
    let log = state.journal.log_mut(at);
    if addition.is_first {
        times.open(state.now);
        log.record(state.now, Incident::RoundOpened { round, participants, threshold });
    }
    if addition.is_last {
        times.close(state.now);
        log.record(state.now, Incident::RoundFinished { round });
    }
}

/// Records `segments` contributions of a member that were accepted together; the last of them was for `round`. If the
/// data of the job is tagged, only accepted contributions renew the lease, because an attacker may replay recorded
/// contributions.
fn note_accepted(state: &mut State, at: MemberAt, from: &Endpoint, segments: u64, round: Option<Round>) {
    let now = state.now;
    let Some(job) = state.jobs.get_mut(at.job).filter(|_| segments > 0) else { return };
    let (has_key, is_tagged) = (job.has_key(), job.is_tagged());
    let Some(member) = job.members_mut().get_mut(at.member) else { return };
    member.note_progress(segments, round, now);
    if is_tagged {
        member.last_heard = now;
    }
    // In a job with a key, an untagged contribution does not authenticate its source address.
    if !has_key || is_tagged {
        state.jobs.follow(at, from);
    }
}

/// Informs a member why its data packet was dropped, and which value was expected.
fn explain(
    state: &mut State,
    from: &Endpoint,
    at: MemberAt,
    (status, reason): (Status, DropReason),
    bytes: &[u8],
) {
    let Some(job) = state.jobs.get(at.job) else { return };
    let seg = DataPacket::new_checked(bytes).ok().map(|packet| packet.seg());
    let index = seg.map_or(SegmentIndex::default(), |seg| seg.index);
    let current = job.next_round_of(at.member);
    let (round, expected) = match reason {
        DropReason::SegOutOfRange => (current, job.layout().segment_count()),
        DropReason::LengthMismatch => {
            let element = job.element_type(at.member, seg.map_or(current, |seg| seg.round));
            (current, job.layout().packet_len(index, element) as u32)
        }
        DropReason::BadWeight => (current, 1),
        DropReason::NonFinite => (seg.map_or(current, |seg| seg.round), index.get()),
        _ => (current, 0),
    };
    reply::refuse_data(state, from, at, &Refusal { status, expected, round, exceeded: None });
}

/// Dropped datagrams of a super-frame.
#[derive(Default)]
struct Refused<'a> {
    /// Status, drop reason and content of the first datagram whose refusal is reported to the sender.
    first: Option<(Status, DropReason, &'a [u8])>,
    /// Reason for the latest drop, and the number of consecutive drops for that reason.
    latest: Option<(DropReason, u32)>,
}

impl<'a> Refused<'a> {
    #[cold]
    fn note(&mut self, counters: &mut Counters, reason: DropReason, bytes: &'a [u8]) {
        counters.count_drop(reason);
        if self.first.is_none() {
            self.first = reason.status().map(|status| (status, reason, bytes));
        }
        let before = self.latest.filter(|(last, _)| *last == reason).map_or(0, |(_, times)| times);
        self.latest = Some((reason, before + 1));
    }
}

/// Verifies and removes the tag of a contribution, if its job requires tags, and returns the packet.
fn authentic<'a>(key: Option<&TagKey>, bytes: &'a [u8]) -> Result<DataPacket<'a>, DropReason> {
    let content = match key {
        None => bytes,
        Some(key) => key.verify(bytes).ok_or(DropReason::NotAuthentic)?,
    };
    DataPacket::new_checked(content).map_err(DropReason::Wire)
}

/// Returns the round of the last datagram or, in an asynchronous job, the number of the vector to which it belongs.
/// Returns `None` if there is no datagram, or if the last one is not a data packet.
fn last_round(payload: &[u8], stride: usize) -> Option<Round> {
    DataPacket::new_checked(payload.chunks(stride).next_back()?).ok().map(|packet| packet.seg().round)
}
