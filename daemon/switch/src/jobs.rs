//! Jobs of the switch: their table, the addresses of their members, and the memory for slots and sums.

use core::time::Duration;

use alloc::vec::Vec;

use iswitch_protocol::Instant;
use iswitch_protocol::limits::{KEYLESS_SHARE, MAX_JOBS};
use iswitch_protocol::wire::JoinRepr;

use crate::arena::Arena;
use crate::config::{BYTES_PER_SLOT, Config};
use crate::directory::Directory;
use crate::endpoint::Endpoint;
use crate::ids::{JobIndex, MemberAt, MemberId};
use crate::job::{Aggregation, Generations, Granted, Job, Member, Memory, Slot};
use crate::origin::{Origins, Position};

/// Number of items that a job needs in each arena.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Footprint {
    pub(crate) slots: usize,
    pub(crate) sums: usize,
}

/// Part of the memory that a job may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    All,
    /// The upper part. Jobs without a key may use only this part, so they cannot fragment the lower part.
    Keyless,
}

impl Share {
    /// Returns the index of the first item of an arena that a job with this share may use.
    fn first_of<T: Copy>(self, arena: &Arena<T>) -> usize {
        if self == Self::Keyless { arena.len() - arena.len() / KEYLESS_SHARE } else { 0 }
    }
}

/// All jobs of the switch. The directory lists the members of these jobs and no other addresses.
#[derive(Debug)]
pub(crate) struct Jobs {
    table: Vec<Option<Job>>,
    directory: Directory,
    slots: Arena<Slot>,
    sums: Arena<f32>,
    generations: Generations,
    origins: Origins,
}

impl Jobs {
    pub(crate) fn new(config: &Config) -> Self {
        let mut table = Vec::with_capacity(MAX_JOBS);
        table.resize_with(MAX_JOBS, || None);
        Self {
            table,
            directory: Directory::new(),
            slots: Arena::new(config.memory_bytes / BYTES_PER_SLOT, Slot::EMPTY),
            sums: Arena::new(config.memory_bytes / size_of::<f32>(), 0.0),
            generations: Generations::default(),
            origins: Origins::new(config.boot),
        }
    }

    pub(crate) fn get(&self, at: JobIndex) -> Option<&Job> {
        self.table[at.get()].as_ref()
    }

    pub(crate) fn get_mut(&mut self, at: JobIndex) -> Option<&mut Job> {
        self.table[at.get()].as_mut()
    }

    /// Returns the index of job `id`, or `None` if there is no such job.
    pub(crate) fn find(&self, id: u32) -> Option<JobIndex> {
        let position = self.table.iter().position(|job| job.as_ref().is_some_and(|job| job.id() == id));
        position.map(JobIndex::new)
    }

    /// Returns the indexes of all possible jobs.
    pub(crate) fn indexes(&self) -> impl Iterator<Item = JobIndex> + use<> {
        JobIndex::first(self.table.len())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (JobIndex, &Job)> {
        let jobs = self.table.iter().enumerate();
        jobs.filter_map(|(at, job)| Some((JobIndex::new(at), job.as_ref()?)))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Job> {
        self.table.iter_mut().flatten()
    }

    /// Returns an iterator over the jobs, each with its slots.
    pub(crate) fn iter_with_slots(&mut self) -> impl Iterator<Item = (&mut Job, &[Slot])> {
        let slots = &self.slots;
        self.table.iter_mut().flatten().map(|job| {
            let slots = slots.region(&job.memory().slots);
            (job, slots)
        })
    }

    pub(crate) fn slots_of(&self, job: &Job) -> &[Slot] {
        self.slots.region(&job.memory().slots)
    }

    /// Returns a job with its slots and sums, or `None` if there is no job at this index.
    #[inline]
    pub(crate) fn aggregation(&mut self, at: JobIndex, now: Instant) -> Option<Aggregation<'_>> {
        let job = self.table[at.get()].as_mut()?;
        let slots = self.slots.region_mut(&job.memory().slots);
        let sums = self.sums.region_mut(&job.memory().sums);
        Some(Aggregation::new(job, slots, sums, &mut self.generations, now))
    }

    pub(crate) fn member(&self, at: MemberAt) -> Option<&Member> {
        self.get(at.job)?.members().get(at.member)
    }

    pub(crate) fn member_mut(&mut self, at: MemberAt) -> Option<&mut Member> {
        self.get_mut(at.job)?.members_mut().get_mut(at.member)
    }

    /// Returns the member with this source address, or `None` if there is no such member.
    pub(crate) fn find_member(&self, from: &Endpoint) -> Option<MemberAt> {
        self.directory.find(from)
    }

    /// Records that a packet from a member has arrived, which renews its lease.
    pub(crate) fn hear_from(&mut self, at: MemberAt, now: Instant) {
        if let Some(job) = self.get_mut(at.job) {
            job.hear_from(at.member, now);
        }
    }

    /// Directs a member's results to the addresses from which its latest packet came, because the member's MAC address
    /// changes after a fail-over or a migration. The caller must have found the member by the source of the packet, and
    /// verified the packet as the job requires.
    pub(crate) fn follow(&mut self, at: MemberAt, from: &Endpoint) {
        if let Some(member) = self.member_mut(at) {
            member.endpoint = *from;
        }
    }

    /// Returns whether a member belongs to the job `id` and is the process with the instance `instance`.
    pub(crate) fn is_process(&self, at: MemberAt, id: u32, instance: u32) -> bool {
        let job = self.get(at.job).filter(|job| job.id() == id);
        job.and_then(|job| job.members().get(at.member)).is_some_and(|own| own.instance == instance)
    }

    /// Returns the membership that the sender of a Join already has on another port of the switch, if any.
    pub(crate) fn same_elsewhere(&self, from: &Endpoint, id: u32, join: &JoinRepr) -> Option<MemberAt> {
        self.directory.elsewhere(from).find(|at| self.is_process(*at, id, join.instance))
    }

    /// Returns whether the sender of a packet is a member that is active on another port of the switch. This is the
    /// case if a second cable or a loop delivers each packet twice.
    pub(crate) fn is_stray(&self, from: &Endpoint, now: Instant, lease: Duration) -> bool {
        self.directory.elsewhere(from).any(|at| self.is_heard(at, now, lease))
    }

    /// Returns whether a packet from a member has arrived within the last half of a lease. Heartbeats arrive every
    /// quarter of a lease.
    pub(crate) fn is_heard(&self, at: MemberAt, now: Instant, lease: Duration) -> bool {
        self.member(at).is_some_and(|member| now.since(member.last_heard) <= lease / 2)
    }

    /// Admits a member to a job.
    pub(crate) fn admit(&mut self, at: MemberAt, member: Member) {
        if let Some(job) = self.table[at.job.get()].as_mut() {
            job.admit(at.member, member);
            self.directory.insert(&member.endpoint, at);
        }
    }

    /// Removes a member from its job and returns it, or returns `None` if there is no such member.
    pub(crate) fn remove_member(&mut self, at: MemberAt) -> Option<Member> {
        let member = self.table[at.job.get()].as_mut()?.remove(at.member)?;
        self.directory.remove(&member.endpoint);
        Some(member)
    }

    /// Returns the id of a member of a job that has been silent for longer than the lease, if any.
    pub(crate) fn silent_member(&self, at: JobIndex, now: Instant, lease: Duration) -> Option<MemberId> {
        let mut members = self.get(at)?.members().iter();
        members.find(|(_, member)| now.since(member.last_heard) > lease).map(|(id, _)| id)
    }

    /// Allocates memory for a job, or returns `None` if there is not enough.
    pub(crate) fn take_memory(&mut self, footprint: &Footprint, share: Share) -> Option<Memory> {
        let slots = self.slots.take(footprint.slots, share.first_of(&self.slots))?;
        let Some(sums) = self.sums.take(footprint.sums, share.first_of(&self.sums)) else {
            self.slots.give_back(&slots);
            return None;
        };
        Some(Memory { slots, sums, generation: self.generations.next() })
    }

    /// Returns the sizes of the largest regions of slots and of sums that a job with this share could get. The two
    /// sizes are determined independently of each other.
    pub(crate) fn largest_gaps(&self, share: Share) -> Footprint {
        Footprint {
            slots: self.slots.largest_gap(share.first_of(&self.slots)),
            sums: self.sums.largest_gap(share.first_of(&self.sums)),
        }
    }

    /// Returns the sizes of the part of the memory that a job with this share may use.
    pub(crate) fn capacity(&self, share: Share) -> Footprint {
        Footprint {
            slots: self.slots.len() - share.first_of(&self.slots),
            sums: self.sums.len() - share.first_of(&self.sums),
        }
    }

    /// Returns the epoch and the first round of a new incarnation of a job.
    pub(crate) fn take_origin(&mut self) -> (u64, Position) {
        (self.origins.take_epoch(), self.origins.next())
    }

    /// Adds a job at a free index.
    pub(crate) fn insert(&mut self, at: JobIndex, job: Job) {
        debug_assert!(self.table[at.get()].is_none());
        self.table[at.get()] = Some(job);
    }

    /// Completes a job and returns it, or returns `None` if there is no job at this index.
    pub(crate) fn form(&mut self, at: JobIndex, granted: Option<Granted>, now: Instant) -> Option<&mut Job> {
        let job = self.table[at.get()].as_mut()?;
        job.form(self.generations.next(), granted, now);
        Some(job)
    }

    /// Removes and returns a job without members, or returns `None` if there is no job at this index. The next job
    /// begins at a round that no packet of this job can name.
    pub(crate) fn remove(&mut self, at: JobIndex) -> Option<Job> {
        let job = self.table[at.get()].take()?;
        self.origins.end_before(job.position_after());
        self.slots.give_back(&job.memory().slots);
        self.sums.give_back(&job.memory().sums);
        Some(job)
    }
}
