//! Quotas of jobs and hosts.
//!
//! Only a sender with a proven return path creates a job, so forged Joins take no resources. The jobs of one
//! address are limited: those that it began and that wait for workers, and those without members from elsewhere.
//! If the switch holds keys, jobs without a key share half of its places, of its slots and of its sums, so that they
//! never lock out jobs with a key (M-13). Their half is the upper one: the lower half stays in one piece, however jobs
//! without a key come and go.

use core::net::Ipv4Addr;
use core::ops::Range;

use iswitch_protocol::VectorLayout;
use iswitch_protocol::limits::{KEYLESS_SHARE, MAX_TAGGED_SEGMENT_FLOATS};
use iswitch_protocol::wire::{JoinRepr, Mode, Status};

use super::Switch;
use super::arena::Arena;
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

    /// Memory of a job with such segments that takes so many slots.
    fn memory_bytes_for(&self, slots: usize) -> usize {
        // Each slot stands for as much memory.
        let bytes = self.memory_bytes() as u128 * slots as u128 / self.slots.max(1) as u128;
        usize::try_from(bytes).unwrap_or(usize::MAX)
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
        if self.jobs_of(founder, id) >= self.config.max_jobs_per_source {
            return Err(Status::NoCapacity.into());
        }
        let footprint = Footprint::of(join, &layout, self.config.ordered);
        let regions = footprint.as_ref().and_then(|footprint| self.take_memory(id, footprint));
        let (slots, sums) =
            regions.ok_or_else(|| (Status::NoCapacity, self.room_kib(id, footprint.as_ref())))?;
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

    /// Whether a job has only the part of the places and of the memory that is not reserved for jobs with a key.
    fn has_share_only(&self, id: u32) -> bool {
        self.keys.any() && self.keys.of(id).is_none()
    }

    /// Whether a job without a key would leave those with one their share of the places.
    fn may_take_place(&self, id: u32) -> bool {
        let places = if self.uplinks.is_empty() { self.jobs.len() } else { self.uplinks.len() };
        let keyless_jobs = self.jobs.iter().flatten().filter(|job| !job.has_key).count();
        !self.has_share_only(id) || keyless_jobs < places / KEYLESS_SHARE
    }

    /// The first of the items of an arena that a job may take.
    fn first_of<T: Copy>(&self, id: u32, arena: &Arena<T>) -> usize {
        if self.has_share_only(id) { arena.len() - arena.len() / KEYLESS_SHARE } else { 0 }
    }

    fn take_memory(&mut self, id: u32, footprint: &Footprint) -> Option<(Range<usize>, Range<usize>)> {
        if footprint.memory_bytes() > self.config.job_memory_bytes {
            return None;
        }
        let (first_slot, first_sum) = (self.first_of(id, &self.slots), self.first_of(id, &self.sums));
        let slots = self.slots.take(footprint.slots, first_slot)?;
        let sums = self.sums.take(footprint.sums, first_sum);
        if sums.is_none() {
            self.slots.give_back(&slots);
        }
        Some((slots, sums?))
    }

    /// Memory that a new job may take, in KiB. One with short segments runs out of slots first.
    fn room_kib(&self, id: u32, footprint: Option<&Footprint>) -> u32 {
        let free_sums = self.sums.largest_gap(self.first_of(id, &self.sums));
        let free_slots = self.slots.largest_gap(self.first_of(id, &self.slots));
        let room = (free_sums * size_of::<f32>()).min(self.config.job_memory_bytes);
        let room = footprint.map_or(room, |footprint| room.min(footprint.memory_bytes_for(free_slots)));
        (room / 1024) as u32
    }

    /// Jobs of an address: those that it began and that still wait for workers, and those without members from
    /// elsewhere. Jobs with a key count apart from jobs without one, so that a neighbour on the same host locks out
    /// nobody.
    fn jobs_of(&self, source: Ipv4Addr, id: u32) -> usize {
        let has_key = self.keys.of(id).is_some();
        let is_alone = |job: &Job| job.endpoints().all(|member| *member.peer.ip() == source);
        let is_its_own = |job: &&Job| (!job.formed && job.founder == source) || is_alone(job);
        self.jobs.iter().flatten().filter(|job| job.has_key == has_key).filter(is_its_own).count()
    }
}
