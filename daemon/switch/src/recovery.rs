//! What repairs a job: results sent again, segments closed for members that are gone, leases.

use core::ops::Range;
use core::time::Duration;

use iswitch_protocol::wire::{JoinRepr, Mode};
use iswitch_protocol::{Instant, Round, SegmentIndex};

use super::Switch;
use super::aggregator::Aggregation;
use super::event::{Departure, Event};
use super::job::Job;
use super::membership::MemberAt;
use super::output::Endpoint;
use super::work::{Meter, Purpose, Wanted};

/// A driver that is alive calls at least this many times in a lease, and in the time after which a member is
/// slow, so a longer silence is its own.
const TICKS_PER_LIMIT: u32 = 4;
/// No limit is so short that less sleep would count: that spares a busy switch to look.
const MIN_SLEEP: Duration = Duration::from_millis(1);

impl Switch {
    pub(super) fn repeat_results(
        &mut self,
        at: MemberAt,
        wanted: &Wanted,
        next: u32,
        meter: &mut Meter,
    ) -> Option<u32> {
        let to = self.job(at.job)?.member(at.member)?.endpoint;
        self.aim_answers(at.job, to);
        let (mut aggregation, outbox) = self.aggregation_and_outbox(at.job)?;
        let push = match aggregation.job.mode {
            Mode::Synchronous => Aggregation::push_result,
            Mode::Asynchronous => Aggregation::push_finished,
        };
        let stopped_at = wanted.fill(&mut aggregation, &mut outbox.answers, next, meter, push);
        self.counters.results_repeated += self.outbox.answers_len();
        stopped_at
    }

    pub(super) fn resend_partials(
        &mut self,
        job_at: usize,
        wanted: &Wanted,
        next: u32,
        meter: &mut Meter,
    ) -> Option<u32> {
        self.send_partials_of(job_at);
        let (mut aggregation, outbox) = self.aggregation_and_outbox(job_at)?;
        wanted.fill(&mut aggregation, &mut outbox.partials, next, meter, Aggregation::push_partial)
    }

    /// Closes the segments of a range that wait for nobody any more, or all that have contributions if forced. Returns
    /// where it stopped; none if the round is over.
    pub(super) fn close_segments(
        &mut self,
        job: usize,
        round: Round,
        range: Range<u32>,
        force: bool,
        meter: &mut Meter,
    ) -> Option<u32> {
        self.aim_results(job);
        self.send_partials_of(job);
        let (mut aggregation, outbox) = self.aggregation_and_outbox(job)?;
        aggregation.job.open_round(round)?;
        let goes_up = aggregation.job.goes_up(round);
        let batch = if goes_up { &mut outbox.partials } else { &mut outbox.results };
        let recipients = if goes_up { 1 } else { aggregation.job.member_count() };
        let is_ordered = aggregation.job.order.is_some();
        let (mut next, mut closed) = (range.start, 0);
        for index in range.filter_map(SegmentIndex::new) {
            if !meter.has_left() || !batch.has_room(aggregation.job.layout.packet_len(index)) {
                break;
            }
            meter.examine(1);
            if let Some(summed) = aggregation.close(round, index, force, batch) {
                let floats = aggregation.job.layout.float_count(index);
                if is_ordered {
                    // The contributions are added only now.
                    meter.add(floats * summed as usize);
                }
                meter.send(floats, recipients);
                closed += 1;
            }
            next = index.get() + 1;
        }
        *(if goes_up { &mut self.counters.partials } else { &mut self.counters.results }) += closed;
        Some(next)
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
        for round in [newest.previous(), newest] {
            if job.open_round(round).is_some() {
                self.backlog.sweep(job_at, Purpose::Close, round, job.layout.segment_count());
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
        self.backlog.clear(job_at);
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
