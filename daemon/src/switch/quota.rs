//! Quotas of jobs and hosts.
//!
//! Only a sender with a proven return path creates a job, so forged Joins take no resources. The jobs of one
//! address that wait for their workers are limited. If the switch holds keys, jobs without a key share half of its
//! places and of its memory, so that they never lock out jobs with a key (M-13).

use core::net::Ipv4Addr;
use core::ops::Range;

use iswitch_protocol::VectorLayout;
use iswitch_protocol::limits::{KEYLESS_SHARE, MAX_TAGGED_SEGMENT_FLOATS};
use iswitch_protocol::wire::{JoinRepr, Mode, Status};

use super::Switch;
use super::control::Refusal;
use super::event::Event;
use super::job::Job;
use super::order::MemberOrder;

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
        let at = self.free_place(id).filter(|_| self.may_take_place(id)).ok_or(Status::NoCapacity)?;
        if self.waiting_jobs_of(founder) >= self.config.max_jobs_per_source {
            return Err(Status::NoCapacity.into());
        }
        let footprint = Footprint::of(join, &layout, self.config.ordered);
        let footprint = footprint.filter(|footprint| footprint.sums <= self.share_left(id));
        let regions = footprint.and_then(|footprint| self.take_memory(&footprint));
        let (slots, sums) = regions.ok_or((Status::NoCapacity, self.room_kib(id)))?;
        let start = (self.origins.take_epoch(), self.origins.next());
        let mut job =
            Job::new(id, join, layout, start, (founder, self.now), (slots, sums, self.generations.next()));
        let key = self.keys.of(id);
        job.has_key = key.is_some();
        job.tag_key = key.filter(|_| join.tagged).map(|key| key.result_key(start.0, id));
        job.has_parent = !self.uplinks.is_empty();
        let is_ordered = self.config.ordered && join.mode == Mode::Synchronous;
        job.order = is_ordered.then(MemberOrder::new);
        self.jobs[at] = Some(job);
        self.flight.begin(at, id);
        let JoinRepr { gradient_len, workers, .. } = *join;
        self.report(Event::JobCreated { job: id, gradient_len, workers });
        Ok(at)
    }

    /// Whether a job without a key would leave those with one their share of the places.
    fn may_take_place(&self, id: u32) -> bool {
        let places = if self.uplinks.is_empty() { self.jobs.len() } else { self.uplinks.len() };
        self.keys.of(id).is_some() || !self.keys.any() || self.keyless_jobs().count() < places / KEYLESS_SHARE
    }

    /// Memory that jobs with that key, or without one, may still take together, in floats.
    fn share_left(&self, id: u32) -> usize {
        if self.keys.of(id).is_some() || !self.keys.any() {
            return usize::MAX;
        }
        let share = self.config.memory_bytes / KEYLESS_SHARE / size_of::<f32>();
        share.saturating_sub(self.keyless_jobs().map(|job| job.sums.len()).sum())
    }

    fn keyless_jobs(&self) -> impl Iterator<Item = &Job> {
        self.jobs.iter().flatten().filter(|job| !job.has_key)
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
    fn room_kib(&self, id: u32) -> u32 {
        let free_bytes = self.sums.largest_gap().min(self.share_left(id)) * size_of::<f32>();
        (free_bytes.min(self.config.job_memory_bytes) / 1024) as u32
    }

    /// Jobs from an address that are not yet under way.
    fn waiting_jobs_of(&self, founder: Ipv4Addr) -> usize {
        let of_founder = self.jobs.iter().flatten().filter(|job| job.founder == founder);
        of_founder.filter(|job| !job.formed).count()
    }
}
