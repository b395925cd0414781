//! What one job and one host may take of the switch, and which jobs give way to others.
//!
//! The first Join of a job takes a place and memory, and its source address may be forged. A worker repeats
//! its Join until the job is complete, and then sends a heartbeat at once; who forges addresses and jobs at
//! random hits none a second time. So a job is *unconfirmed* until something else is heard of it than its
//! first Join: from its member, or the Join of another. There are at most [`MAX_UNCONFIRMED_JOBS`] of these;
//! they keep their place for [`UNCONFIRMED_GRACE_MS`], and beyond that only while nobody else needs it.

use core::net::Ipv4Addr;
use core::ops::Range;
use core::time::Duration;

use iswitch_protocol::VectorLayout;
use iswitch_protocol::limits::{MAX_TAGGED_SEGMENT_FLOATS, MAX_UNCONFIRMED_JOBS, UNCONFIRMED_GRACE_MS};
use iswitch_protocol::wire::{JoinRepr, Mode, Status};

use super::Switch;
use super::aggregator::Slot;
use super::control::Refusal;
use super::event::{Departure, Event};
use super::job::Job;
use super::membership::MemberAt;
use super::order::MemberOrder;

const UNCONFIRMED_GRACE: Duration = Duration::from_millis(UNCONFIRMED_GRACE_MS);

/// What the switch keeps for a job.
struct Footprint {
    slots: usize,
    sums: usize,
}

impl Footprint {
    /// `None` if it is more than can be counted.
    fn of(join: &JoinRepr, layout: &VectorLayout, ordered: bool) -> Option<Self> {
        Some(Self { slots: Job::slots_len(join, layout), sums: Job::sums_len(join, layout, ordered)? })
    }

    fn memory_bytes(&self) -> usize {
        self.sums.saturating_mul(size_of::<f32>())
    }
}

impl Switch {
    /// Lets unconfirmed jobs give way to a new one. False if it has to wait for those that have just come: its
    /// sender will repeat the Join.
    pub(super) fn make_room(&mut self, id: u32, join: &JoinRepr) -> bool {
        let Ok(layout) = VectorLayout::new(join.gradient_len, join.segment_floats) else { return true };
        let most_bytes = self.config.job_memory_bytes.min(self.config.memory_bytes);
        let footprint = Footprint::of(join, &layout, self.config.ordered);
        let Some(footprint) = footprint.filter(|footprint| footprint.memory_bytes() <= most_bytes) else {
            // It is refused in any case.
            return true;
        };
        // Who has shown a key is where it says it is.
        let (is_proven, grace) = match self.keys.of(id) {
            Some(_) => (true, Duration::ZERO),
            None => (false, UNCONFIRMED_GRACE),
        };
        loop {
            let unconfirmed = self.jobs.iter().flatten().filter(|job| !job.confirmed).count();
            let is_crowded = !is_proven && unconfirmed >= MAX_UNCONFIRMED_JOBS;
            if !is_crowded && self.has_room(id, &footprint) {
                return true;
            }
            let Some(oldest) = self.oldest_unconfirmed() else { return true };
            let age = self.job(oldest).map_or(Duration::ZERO, |job| self.now.since(job.created));
            if age < grace {
                return false;
            }
            self.displace(oldest);
        }
    }

    /// Makes a job, if the switch has what it takes and the founder may have one more.
    pub(super) fn create_job(
        &mut self,
        id: u32,
        founder: Ipv4Addr,
        join: &JoinRepr,
    ) -> Result<usize, Refusal> {
        let layout =
            VectorLayout::new(join.gradient_len, join.segment_floats).map_err(|_| Status::BadLayout)?;
        if join.tagged && self.keys.of(id).is_none() {
            return Err((Status::TagMismatch, 0).into());
        }
        if join.tagged && join.segment_floats > MAX_TAGGED_SEGMENT_FLOATS {
            return Err(Status::BadLayout.into());
        }
        let at = self.free_place(id).ok_or(Status::NoCapacity)?;
        if self.waiting_jobs_of(founder) >= self.config.max_jobs_per_source {
            return Err(Status::NoCapacity.into());
        }
        let footprint = Footprint::of(join, &layout, self.config.ordered);
        let regions = footprint.and_then(|footprint| self.take_memory(&footprint));
        let regions = regions.ok_or((Status::NoCapacity, self.room_kib()))?;
        debug_assert!(self.slots.region_mut(&regions.0).iter().all(Slot::is_empty));
        let start = (self.config.boot, self.next_base);
        let mut job = Job::new(id, join, layout, start, (founder, self.now), regions);
        let key = self.keys.of(id);
        job.confirmed = key.is_some();
        job.has_key = key.is_some();
        job.tag_key = key.filter(|_| join.tagged).map(|key| key.result_key(self.config.boot, id));
        job.has_parent = !self.uplinks.is_empty();
        let is_ordered = self.config.ordered && join.mode == Mode::Synchronous;
        job.order = is_ordered.then(MemberOrder::new);
        self.jobs[at] = Some(job);
        self.flight.begin(at, id);
        let JoinRepr { gradient_len, workers, .. } = *join;
        self.report(Event::JobCreated { job: id, gradient_len, workers });
        Ok(at)
    }

    fn has_room(&self, id: u32, footprint: &Footprint) -> bool {
        self.free_place(id).is_some()
            && self.slots.largest_gap() >= footprint.slots
            && self.sums.largest_gap() >= footprint.sums
    }

    fn take_memory(&mut self, footprint: &Footprint) -> Option<(Range<usize>, Range<usize>)> {
        if footprint.memory_bytes() > self.config.job_memory_bytes {
            return None;
        }
        let slots = self.slots.take(footprint.slots)?;
        let sums = self.sums.take(footprint.sums);
        if sums.is_none() {
            self.slots.give_back(&slots);
        }
        Some((slots, sums?))
    }

    /// Memory that a new job may take, in KiB.
    fn room_kib(&self) -> u32 {
        let free_bytes = self.sums.largest_gap() * size_of::<f32>();
        (free_bytes.min(self.config.job_memory_bytes) / 1024) as u32
    }

    /// Jobs from an address that are not yet under way.
    fn waiting_jobs_of(&self, founder: Ipv4Addr) -> usize {
        let of_founder = self.jobs.iter().flatten().filter(|job| job.founder == founder);
        of_founder.filter(|job| !job.formed || !job.confirmed).count()
    }

    fn oldest_unconfirmed(&self) -> Option<usize> {
        let jobs = self.jobs.iter().enumerate().filter_map(|(at, job)| Some((at, job.as_ref()?)));
        jobs.filter(|(_, job)| !job.confirmed).min_by_key(|(_, job)| job.created).map(|(at, _)| at)
    }

    /// Ends a job with all its members.
    fn displace(&mut self, job: usize) {
        while let Some(member) = self.job(job).and_then(|job| job.members().next()).map(|(id, _)| id) {
            self.remove_member(MemberAt { job, member }, Departure::Unconfirmed);
        }
        self.end_job(job, Departure::Unconfirmed);
    }
}
