//! What repairs a job: results sent again, segments closed for members that are gone, leases.

use core::time::Duration;

use iswitch_protocol::limits::{MAX_BITMAP_LEN_BYTES, MAX_CLOSED_AT_ONCE, MAX_WORK_AT_ONCE};
use iswitch_protocol::wire::control::{RangeRepr, SegmentSetRepr};
use iswitch_protocol::wire::{JoinRepr, Mode};
use iswitch_protocol::{Instant, Round, SegmentIndex};

use super::Switch;
use super::aggregator::Aggregation;
use super::asynchronous::Addition;
use super::event::{Departure, Event};
use super::job::Job;
use super::membership::MemberAt;
use super::output::{Batch, Endpoint};
use super::reason::DropReason;

/// A range of segments to go through when there is room to send: a range may be longer than a super-frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Send a member the results that it asked for.
    Repeat { at: MemberAt, wanted: Wanted, next: u32, end: u32 },
    /// Send the parent the partial sums that it misses.
    Resend { job: usize, wanted: Wanted, next: u32, end: u32 },
    /// Close the segments that wait for nobody any more, or all of them if forced.
    Close { job: usize, round: Round, next: u32, end: u32, force: bool },
    /// Add a vector of an asynchronous job to its aggregate.
    Add { job: usize, addition: Addition, next: u32, end: u32 },
    /// Send all members the results of an aggregate.
    Publish { job: usize, aggregate: Round, next: u32, end: u32 },
}

/// The segments of a Help, kept until they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    range: RangeRepr,
    bitmap: [u8; MAX_BITMAP_LEN_BYTES],
}

impl Work {
    pub(super) fn repeat(at: MemberAt, wanted: SegmentSetRepr<'_>) -> Self {
        let range = wanted.range;
        Self::Repeat { at, wanted: Wanted::of(wanted), next: range.first, end: range.first + range.count }
    }

    pub(super) fn resend(job: usize, wanted: SegmentSetRepr<'_>) -> Self {
        let range = wanted.range;
        Self::Resend { job, wanted: Wanted::of(wanted), next: range.first, end: range.first + range.count }
    }
}

impl Wanted {
    fn of(wanted: SegmentSetRepr<'_>) -> Self {
        let mut bitmap = [0; MAX_BITMAP_LEN_BYTES];
        bitmap[..wanted.bitmap.len()].copy_from_slice(wanted.bitmap);
        Self { range: wanted.range, bitmap }
    }

    /// One more than the last segment asked for.
    fn end(&self) -> u32 {
        self.range.first + self.range.count
    }

    /// Lets `push` put those from `next` on into a batch, and returns where it stopped for want of room.
    fn fill<'a>(
        &self,
        aggregation: &mut Aggregation<'a>,
        batch: &mut Batch,
        next: u32,
        push: impl Fn(&mut Aggregation<'a>, Round, SegmentIndex, &mut Batch) -> bool,
    ) -> u32 {
        let set = SegmentSetRepr { range: self.range, bitmap: &self.bitmap };
        let segments = aggregation.job.layout.segment_count();
        let indices = set.indices().filter(|index| *index >= next && *index < segments);
        for index in indices.filter_map(SegmentIndex::new) {
            if !batch.has_room(aggregation.job.layout.packet_len(index)) {
                return index.get();
            }
            push(aggregation, self.range.round, index, batch);
        }
        self.end()
    }
}

/// A driver that is alive calls at least this many times in a lease, and in the time after which a member is
/// slow, so a longer silence is its own.
const TICKS_PER_LIMIT: u32 = 4;
/// No limit is so short that less sleep would count: that spares a busy switch to look.
const MIN_SLEEP: Duration = Duration::from_millis(1);

impl Switch {
    pub(super) fn queue_work(&mut self, work: Work) {
        if self.work.iter().any(|queued| *queued == work) {
            return;
        }
        if self.work.push(work).is_err() {
            self.counters.count_drop(DropReason::Busy);
        }
    }

    /// Fills an empty batch from the queue. Returns false if nothing was found: the queue is empty, or this call has
    /// done its share of the work, and [`Switch::poll_timeout`] is due at once.
    pub(super) fn do_work(&mut self) -> bool {
        // Bounds the work of one call, whatever the length of the vectors.
        for _ in 0..MAX_WORK_AT_ONCE {
            let Some(work) = self.work.front_mut().copied() else { return false };
            let (next, found) = match work {
                Work::Repeat { at, wanted, next, .. } => self.repeat_results(at, &wanted, next),
                Work::Resend { job, wanted, next, .. } => self.resend_partials(job, &wanted, next),
                Work::Close { job, round, next, end, force } => {
                    self.close_segments(job, round, next..end, force)
                }
                Work::Add { job, addition, next, end } => self.add_vector(job, &addition, next, end),
                Work::Publish { job, aggregate, next, end } => self.publish(job, aggregate, next, end),
            };
            let is_finished = match self.work.front_mut() {
                Some(
                    Work::Repeat { next: at, end, .. }
                    | Work::Resend { next: at, end, .. }
                    | Work::Close { next: at, end, .. }
                    | Work::Add { next: at, end, .. }
                    | Work::Publish { next: at, end, .. },
                ) => {
                    *at = next;
                    next >= *end
                }
                None => true,
            };
            if is_finished {
                self.work.pop();
            } else if !found && matches!(work, Work::Close { .. }) {
                // Other jobs do not wait for a long vector.
                self.work.rotate();
            }
            if found {
                return true;
            }
        }
        false
    }

    fn repeat_results(&mut self, at: MemberAt, wanted: &Wanted, next: u32) -> (u32, bool) {
        let Some(member) = self.job(at.job).and_then(|job| job.member(at.member)) else {
            return (wanted.end(), false);
        };
        let to = member.endpoint;
        self.aim_answers(at.job, to);
        let Some((mut aggregation, outbox)) = self.aggregation_and_outbox(at.job) else {
            return (wanted.end(), false);
        };
        let push = match aggregation.job.mode {
            Mode::Synchronous => Aggregation::push_result,
            Mode::Asynchronous => Aggregation::push_finished,
        };
        let stopped_at = wanted.fill(&mut aggregation, &mut outbox.answers, next, push);
        self.counters.results_repeated += self.outbox.answers_len();
        (stopped_at, !self.outbox.answers.is_empty())
    }

    fn resend_partials(&mut self, job_at: usize, wanted: &Wanted, next: u32) -> (u32, bool) {
        self.send_partials_of(job_at);
        let Some((mut aggregation, outbox)) = self.aggregation_and_outbox(job_at) else {
            return (wanted.end(), false);
        };
        let batch = &mut outbox.partials;
        let stopped_at = wanted.fill(&mut aggregation, batch, next, Aggregation::push_partial);
        (stopped_at, !self.outbox.partials.is_empty())
    }

    fn close_segments(
        &mut self,
        job: usize,
        round: Round,
        range: core::ops::Range<u32>,
        force: bool,
    ) -> (u32, bool) {
        let end = range.end;
        self.aim_results(job);
        self.send_partials_of(job);
        let Some((mut aggregation, outbox)) = self.aggregation_and_outbox(job) else { return (end, false) };
        let end = end.min(aggregation.job.layout.segment_count());
        let goes_up = aggregation.job.goes_up(round);
        let batch = if goes_up { &mut outbox.partials } else { &mut outbox.results };
        let mut next = range.start;
        let mut closed = 0;
        let at_once = end.min(range.start.saturating_add(MAX_CLOSED_AT_ONCE));
        for index in (range.start..at_once).filter_map(SegmentIndex::new) {
            if !batch.has_room(aggregation.job.layout.packet_len(index)) {
                break;
            }
            closed += u64::from(aggregation.close(round, index, force, batch));
            next = index.get() + 1;
        }
        let next = if next >= end { range.end } else { next };
        *(if goes_up { &mut self.counters.partials } else { &mut self.counters.results }) += closed;
        (next, closed > 0)
    }

    /// Looks through the open rounds of a job for segments that became complete without a contribution.
    pub(super) fn close_finished(&mut self, job_at: usize) {
        let now = self.now;
        let Some(job) = self.jobs[job_at].as_mut() else { return };
        if job.mode == Mode::Asynchronous {
            return self.close_filled_aggregate(job_at);
        }
        if let Some(vacant) = job.vacant_round() {
            job.open(job.prospective_round(vacant), now);
        }
        let Some(newest) = job.newest() else { return };
        let end = job.layout.segment_count();
        for round in [newest.previous(), newest] {
            if self.job(job_at).is_some_and(|job| job.open_round(round).is_some()) {
                self.queue_work(Work::Close { job: job_at, round, next: 0, end, force: false });
            }
        }
    }

    /// Removes a member; the job goes on without it, or ends with it.
    pub(super) fn remove_member(&mut self, at: MemberAt, why: Departure) {
        let Some(job) = self.jobs[at.job].as_mut() else { return };
        let Some(member) = job.remove(at.member) else { return };
        let (id, members) = (job.id, job.member_count());
        self.directory.remove(&member.endpoint);
        self.report(Event::Left { job: id, member: at.member as u16, address: member.endpoint.peer, why });
        // A process that takes the place of its predecessor keeps the job.
        if members == 0 && why != Departure::Restarted {
            return self.end_job(at.job, why);
        }
        if why == Departure::Forgotten {
            // The others follow, and with the last of them the job ends.
            return;
        }
        if self.job(at.job).is_some_and(Job::has_lost_suppliers) {
            return self.forget_members(at.job);
        }
        if members > 0 && self.job(at.job).is_some_and(|job| !job.formed) {
            // It may have waited for those that the departed member had known.
            self.gather(at.job, None);
        } else {
            self.declare_weight(at.job);
        }
        self.close_finished(at.job);
    }

    pub(super) fn end_job(&mut self, job_at: usize, why: Departure) {
        let Some(job) = self.jobs[job_at].take() else { return };
        // The next job's rounds lie beyond all that packets of this one can still name.
        self.origins.end_before(job.position_after());
        self.slots.give_back(&job.slots);
        self.sums.give_back(&job.sums);
        self.report(Event::JobEnded { job: job.id });
        self.release_uplink(job_at, job.id, why == Departure::Forgotten);
    }

    pub(super) fn hear_from(&mut self, at: MemberAt) {
        let now = self.now;
        if let Some(job) = self.jobs[at.job].as_mut() {
            job.hear_from(at.member, now);
        }
    }

    /// Sends results to the source of a member's latest packet: a fail-over or a migration changes its MAC address.
    /// The caller has verified the packet as the job requires.
    pub(super) fn follow(&mut self, at: MemberAt, from: &Endpoint) {
        if let Some(member) = self.jobs[at.job].as_mut().and_then(|job| job.member_mut(at.member)) {
            member.endpoint = *from;
        }
    }

    /// As [`Self::follow`], for accepted contributions. In a job with a key they prove nothing without a tag.
    pub(super) fn follow_data(&mut self, at: MemberAt, from: &Endpoint) {
        if self.job(at.job).is_some_and(|job| !job.has_key || job.tag_key.is_some()) {
            self.follow(at, from);
        }
    }

    /// Whether a packet belongs to a member that is alive on another port: a second cable or a loop delivers each
    /// of its packets twice.
    pub(super) fn is_stray(&self, from: &Endpoint) -> bool {
        self.directory.elsewhere(from).any(|at| self.is_heard(at))
    }

    /// As [`Self::is_stray`], for a Join, whose instance identifies the process.
    pub(super) fn is_double(&self, from: &Endpoint, id: u32, join: &JoinRepr) -> bool {
        self.same_elsewhere(from, id, join).is_some_and(|at| self.is_heard(at))
    }

    /// The membership of the same process on another port of the switch.
    pub(super) fn same_elsewhere(&self, from: &Endpoint, id: u32, join: &JoinRepr) -> Option<MemberAt> {
        self.directory.elsewhere(from).find(|at| self.is_process(*at, id, join.instance))
    }

    /// Whether a member was heard within the last half of its lease; heartbeats come in every quarter.
    fn is_heard(&self, at: MemberAt) -> bool {
        let member = self.job(at.job).and_then(|job| job.member(at.member));
        member.is_some_and(|member| self.now.since(member.last_heard) <= self.lease() / 2)
    }

    pub(super) fn lease(&self) -> Duration {
        Duration::from_millis(u64::from(self.config.lease_ms))
    }

    /// Sees to it that the switch wakes up while there are members.
    pub(super) fn expect_tick(&mut self) {
        let tick = self.now.plus(self.lease().min(self.patience()) / TICKS_PER_LIMIT);
        self.deadline = Some(self.deadline.map_or(tick, |deadline| deadline.min(tick)));
    }

    /// Takes over the driver's clock. A step back is ignored. If the driver slept through much of a lease,
    /// members could not be heard: their leases are extended by as much, and what rounds wait for and the patience
    /// with the parent likewise.
    pub(super) fn advance(&mut self, now: Instant) {
        let slept = now.since(self.now);
        if slept > self.lease() / 2 {
            for (_, member) in self.jobs.iter_mut().flatten().flat_map(Job::members_mut) {
                member.last_heard = member.last_heard.plus(slept);
            }
        }
        if slept > MIN_SLEEP {
            self.uplinks.iter_mut().for_each(|uplink| uplink.oversleep(slept));
        }
        if slept > self.patience() / 2 {
            self.jobs.iter_mut().flatten().for_each(|job| job.postpone_rounds(slept));
        }
        self.now = self.now.max(now);
    }

    /// Completes the jobs that have come back without some of their members: those had a lease to come as well.
    pub(super) fn form_overdue_jobs(&mut self) {
        for job_at in 0..self.jobs.len() {
            let Some(job) = self.job(job_at).filter(|job| self.is_overdue(job)) else { continue };
            if job.has_parent {
                self.declare_overdue_job(job_at);
            } else if job.may_go_on_without_the_rest() {
                self.form_job(job_at, None, None);
            }
        }
    }

    pub(super) fn is_overdue(&self, job: &Job) -> bool {
        !job.formed && self.now.since(job.created) > self.lease()
    }

    /// Expels the members whose lease ran out.
    pub(super) fn expire_leases(&mut self) {
        self.deadline = None;
        let (now, lease) = (self.now, self.lease());
        for job_at in 0..self.jobs.len() {
            while let Some(member) = self.silent_member(job_at, now, lease) {
                self.counters.expelled += 1;
                self.remove_member(MemberAt { job: job_at, member }, Departure::Silent);
            }
        }
        if self.jobs.iter().any(Option::is_some) {
            self.expect_tick();
        }
    }

    fn silent_member(&self, job_at: usize, now: Instant, lease: Duration) -> Option<usize> {
        let mut members = self.job(job_at)?.members();
        members.find(|(_, member)| now.since(member.last_heard) > lease).map(|(id, _)| id)
    }
}
