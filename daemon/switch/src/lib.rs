//! The switch core: bytes and a clock in; bytes, events and a deadline out.
//!
//! It does no I/O, reads no clock and allocates nothing after [`Switch::new`]. The daemon's UDP and raw
//! ports, the simulator and the comparison with the RTL all drive this one type.
//!
//! # Contract
//! After each `handle_*` call [`Switch::poll_transmit`] until `None`, then [`Switch::poll_event`] until
//! `None`, then sleep until input arrives or the instant of [`Switch::poll_timeout`], and then call
//! [`Switch::handle_timeout`]. Spurious calls do nothing.
//!
//! Between two `handle_*` calls the switch does a bounded part of the work that it has queued (see the module `work`).
//! If work is left, [`Switch::poll_timeout`] is due at once, so that the driver receives packets in between.

#![no_std]

extern crate alloc;

pub mod accumulate;
mod aggregator;
mod arena;
mod asynchronous;
mod authentication;
mod budget;
mod control;
mod digest;
mod event;
mod flight;
mod formation;
mod hierarchy;
mod job;
mod limiter;
mod membership;
mod order;
mod origin;
mod output;
mod questions;
mod quota;
mod reason;
mod recovery;
mod ring;
mod status;
mod waiting;
mod work;

use alloc::vec::Vec;
use core::time::Duration;

pub use iswitch_protocol::Instant;
use iswitch_protocol::auth::TagKey;
use iswitch_protocol::limits::{MAX_JOBS, SEG_LEN_BYTES};
use iswitch_protocol::wire::{Class, DataPacket, Kind, Mode, Status, WireError};
use iswitch_protocol::{Round, SegmentIndex};

pub use accumulate::NonFinite;
use aggregator::{Aggregation, Generations, Slot, Verdict};
use arena::Arena;
use authentication::Nonces;
pub use authentication::{Keys, SECRET_LEN_BYTES};
use event::EventQueue;
pub use event::{Departure, Event};
use flight::FlightRecorder;
pub use flight::{FlightRecord, Incident};
use hierarchy::Uplink;
pub use hierarchy::Uplinks;
use job::Job;
pub use limiter::StrangerLimits;
use limiter::{Asks, Limiter};
use membership::{Directory, MemberAt};
use origin::Origins;
use output::Outbox;
pub use output::{Endpoint, PortId, Transmit};
pub use reason::{Counters, DropReason};
pub use status::{AwaitedStatus, JobStatus, MemberStatus, WaitingStatus};
use work::Backlog;

/// What the driver decides.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Identifies this run of the switch; drawn at random for each run. The epochs of its jobs are derived from it,
    /// and its upper 24 bits are the first round.
    pub boot: u64,
    /// Silence after which a member is expelled, in milliseconds.
    pub lease_ms: u32,
    /// How long a round may wait for a member, while others are done, before that is reported, in milliseconds.
    pub slow_ms: u32,
    /// Memory for the sums of all jobs, in bytes. A job takes twice its vector, and if sums are ordered once
    /// more for each member that it may have; an asynchronous one at least eight times, and once more for each.
    pub memory_bytes: usize,
    /// Most of that memory that one job may take, in bytes.
    pub job_memory_bytes: usize,
    /// Jobs of one IPv4 address at the same time: those that it began and that still wait for workers, and those
    /// without members from elsewhere. Jobs with a key and jobs without one are counted apart.
    pub max_jobs_per_source: usize,
    /// What senders that are no members may ask.
    pub strangers: StrangerLimits,
    /// Receive buffer that the port really has, in bytes: what bounds the window.
    pub recv_buffer_bytes: usize,
    /// What to do with NaN and infinities.
    pub non_finite: NonFinite,
    /// The way to the parent, if this switch has one.
    pub uplinks: Option<Uplinks>,
    /// Whether to add contributions in the order of the members' ranks, so that the same contributions give the
    /// same bits in whatever order they arrive.
    pub ordered: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            boot: 0,
            lease_ms: 10_000,
            slow_ms: 1000,
            memory_bytes: 256 << 20,
            job_memory_bytes: usize::MAX,
            max_jobs_per_source: MAX_JOBS / 2,
            strangers: StrangerLimits::default(),
            recv_buffer_bytes: 212_992,
            non_finite: NonFinite::default(),
            uplinks: None,
            ordered: false,
        }
    }
}

/// Bytes of sums for which there is one slot. Jobs with much smaller segments run out of slots first.
const BYTES_PER_SLOT: usize = 256;

/// Bytes that a switch takes at its start for so much [memory for sums](Config::memory_bytes): these and their slots.
pub const fn start_len_bytes(memory_bytes: usize) -> usize {
    memory_bytes + memory_bytes / BYTES_PER_SLOT * size_of::<Slot>()
}

/// The switch.
#[derive(Debug)]
pub struct Switch {
    config: Config,
    keys: Keys,
    nonces: Nonces,
    now: Instant,
    deadline: Option<Instant>,
    jobs: Vec<Option<Job>>,
    /// One for each job that there may be; none without a parent.
    uplinks: Vec<Uplink>,
    directory: Directory,
    limiter: Limiter,
    slots: Arena<Slot>,
    generations: Generations,
    sums: Arena<f32>,
    outbox: Outbox,
    /// What the last [`Self::poll_transmit`] lent out.
    lent: Lent,
    backlog: Backlog,
    events: EventQueue,
    flight: FlightRecorder,
    counters: Counters,
    origins: Origins,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lent {
    Nothing,
    Control,
    Results,
    Answers,
    Partials,
}

impl Switch {
    /// A switch without members, whose jobs need no key. Takes all the memory that it will ever have.
    pub fn new(config: Config) -> Self {
        Self::with_keys(config, Keys::default())
    }

    /// A switch without members that lets nobody change a job without the job's key, if that has one.
    pub fn with_keys(config: Config, keys: Keys) -> Self {
        let mut jobs = Vec::with_capacity(MAX_JOBS);
        jobs.resize_with(MAX_JOBS, || None);
        let ports = config.uplinks.map_or(0, |uplinks| uplinks.ports.min(MAX_JOBS as u8));
        let lease = Duration::from_millis(u64::from(config.lease_ms));
        let uplink = |at| config.uplinks.map(|uplinks| Uplink::new(&uplinks, at, config.boot, lease));
        Self {
            config,
            nonces: Nonces::new(&keys),
            keys,
            now: Instant::default(),
            deadline: None,
            jobs,
            uplinks: (0..ports).filter_map(uplink).collect(),
            directory: Directory::new(),
            limiter: Limiter::new(&config.strangers),
            slots: Arena::new(config.memory_bytes / BYTES_PER_SLOT, Slot::EMPTY),
            generations: Generations::default(),
            sums: Arena::new(config.memory_bytes / size_of::<f32>(), 0.0),
            outbox: Outbox::new(),
            lent: Lent::Nothing,
            backlog: Backlog::new(),
            events: EventQueue::new(),
            flight: FlightRecorder::new(),
            counters: Counters::default(),
            origins: Origins::new(config.boot),
        }
    }

    /// Takes in a datagram, or a super-frame of datagrams of `stride` bytes of which the last may be shorter.
    pub fn handle_datagrams(
        &mut self,
        now: Instant,
        from: &Endpoint,
        class: Class,
        payload: &[u8],
        stride: usize,
    ) {
        self.advance(now);
        // An empty payload is one datagram, though chunks() finds none in it.
        let stride = stride.max(1);
        if let Some(job_at) = self.uplink_at(from) {
            return self.handle_from_parent(from, job_at, class, payload, stride);
        }
        match class {
            Class::Control if payload.is_empty() => self.handle_control(from, payload),
            Class::Control => payload.chunks(stride).for_each(|bytes| self.handle_control(from, bytes)),
            Class::Data if payload.is_empty() => self.handle_invalid(now, WireError::Truncated),
            Class::Data => self.handle_data(from, payload, stride),
        }
    }

    /// Counts a frame whose ToS says that it is ours, but that cannot be used.
    pub fn handle_invalid(&mut self, now: Instant, error: WireError) {
        self.advance(now);
        self.counters.count_drop(DropReason::Wire(error));
    }

    /// Lets time pass: expels the members whose lease ran out, completes jobs that wait in vain, reports the
    /// members that rounds wait for.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        if self.deadline.is_some_and(|deadline| deadline <= self.now) {
            self.expire_leases();
            self.form_overdue_jobs();
            (0..self.jobs.len()).for_each(|at| self.record_rounds(at));
            self.watch_rounds();
        }
        self.tend_uplinks();
    }

    /// The next datagrams to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit<'_>> {
        match self.lent {
            Lent::Results => self.outbox.results.clear(),
            Lent::Answers => self.outbox.answers.clear(),
            Lent::Partials => self.outbox.partials.clear(),
            Lent::Nothing | Lent::Control => {}
        }
        self.lent = match self.next_to_lend() {
            // Results before answers, and both before the queued work that refills them.
            Lent::Nothing if self.do_work() => self.next_to_lend(),
            lent => lent,
        };
        match self.lent {
            Lent::Nothing => None,
            Lent::Control => {
                self.counters.control_sent += 1;
                Some(self.outbox.control())
            }
            Lent::Answers => {
                let job = self.jobs[self.outbox.answers_job()].as_ref()?;
                self.outbox.answers.sign(job.tag_key.as_ref());
                self.counters.data_sent += self.outbox.answers_len();
                Some(self.outbox.answers())
            }
            Lent::Partials => {
                let uplink = self.uplinks.get(self.outbox.partials_job())?;
                self.outbox.partials.sign(uplink.tag_key.as_ref());
                self.counters.data_sent += self.outbox.partials_len();
                Some(self.outbox.partials())
            }
            Lent::Results => {
                let job = self.jobs[self.outbox.results_job()].as_ref()?;
                self.outbox.results.sign(job.tag_key.as_ref());
                self.counters.data_sent += self.outbox.results_len() * u64::from(job.member_count());
                Some(self.outbox.results(job))
            }
        }
    }

    fn next_to_lend(&mut self) -> Lent {
        if self.outbox.next_control(&self.keys) {
            return Lent::Control;
        }
        if !self.outbox.partials.is_empty() {
            return Lent::Partials;
        }
        if !self.outbox.results.is_empty() {
            return Lent::Results;
        }
        if !self.outbox.answers.is_empty() {
            return Lent::Answers;
        }
        Lent::Nothing
    }

    /// When [`Self::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        // Work that is left is done as soon as it is its turn.
        let work = (!self.backlog.is_empty()).then_some(self.now);
        self.deadline.into_iter().chain(self.uplink_deadline()).chain(work).min()
    }

    /// The next thing to log.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// What was counted since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The jobs as they are. Allocates: for an operator's question, not for the packet path.
    pub fn jobs(&self) -> impl Iterator<Item = JobStatus> + '_ {
        let jobs = self.jobs.iter().enumerate().filter_map(|(at, job)| Some((at, job.as_ref()?)));
        jobs.map(|(at, job)| {
            JobStatus::of(job, self.slots.region(&job.slots), self.uplinks.get(at), self.now)
        })
    }

    /// The epoch of a job: it identifies this incarnation, and that of the topmost switch once the job is complete.
    pub fn epoch_of(&self, job: u32) -> Option<u64> {
        self.find_job(job).and_then(|at| self.job(at)).map(Job::boot)
    }

    /// The job of that number as it is; none if there is none. Allocates: for an operator's question.
    pub fn job_status(&self, id: u32) -> Option<JobStatus> {
        let at = self.find_job(id)?;
        let job = self.job(at)?;
        Some(JobStatus::of(job, self.slots.region(&job.slots), self.uplinks.get(at), self.now))
    }

    /// What happened last in each job that is or was, the oldest first. Allocates: for an operator's question.
    pub fn flight_records(&self) -> impl Iterator<Item = (u32, Vec<FlightRecord>)> + '_ {
        self.flight.jobs()
    }

    /// The same of one job; none if it is not known any more. Allocates.
    pub fn flight_records_of(&self, job: u32) -> Option<Vec<FlightRecord>> {
        self.flight.job(job)
    }

    fn handle_data(&mut self, from: &Endpoint, payload: &[u8], stride: usize) {
        let datagrams = payload.len().div_ceil(stride) as u64;
        self.counters.data_received += datagrams;
        let Some(at) = self.directory.find(from) else {
            if self.is_stray(from) {
                return (0..datagrams).for_each(|_| self.counters.count_drop(DropReason::OtherPort));
            }
            if !self.limiter.admit(self.now, *from.peer.ip(), Asks::Data) {
                return (0..datagrams).for_each(|_| self.counters.count_drop(DropReason::RateLimited));
            }
            (0..datagrams).for_each(|_| self.counters.count_drop(DropReason::UnknownMember));
            return self.refuse_stranger(from, payload.len());
        };
        let is_tagged = self.job(at.job).is_some_and(|job| job.tag_key.is_some());
        if !is_tagged {
            self.hear_from(at);
        }
        if !self.outbox.is_drained() {
            // The driver has not drained what other members are owed: nothing may be mixed into that.
            return (0..datagrams).for_each(|_| self.counters.count_drop(DropReason::Busy));
        }
        self.aim_results(at.job);
        self.aim_answers(at.job, *from);
        self.send_partials_of(at.job);
        let before = self.counters.contributions;
        let refused = match self.job(at.job).map(|job| job.mode) {
            Some(Mode::Asynchronous) => self.stage_contributions(at, payload, stride),
            _ => self.sum_contributions(at, payload, stride),
        };
        if self.counters.contributions > before {
            self.follow_data(at, from);
        }
        self.record_rounds(at.job);
        // One answer to a super-frame is enough: the member learns the reason and the first segment.
        if let Some((status, reason, bytes)) = refused.first {
            self.explain(from, at, (status, reason), bytes);
        }
        if let Some((reason, times)) = refused.latest {
            let dropped = Incident::Dropped { member: at.member as u16, reason };
            self.flight.log_mut(at.job).record_times(self.now, times, dropped);
        }
    }

    /// Sums the contributions of a member of a synchronous job.
    fn sum_contributions<'a>(&mut self, at: MemberAt, payload: &'a [u8], stride: usize) -> Refused<'a> {
        let mut refused = Refused::default();
        let non_finite = self.config.non_finite;
        let Some((mut aggregation, outbox, counters)) = self.parts(at.job) else { return refused };
        // Looked up once for the whole super-frame.
        let is_tagged = aggregation.job.tag_key.is_some();
        let Some(member) = aggregation.job.member(at.member) else { return refused };
        let key = member.tag_key;
        // A partial sum of finite contributions may be infinite (D-6).
        let non_finite = if member.kind == Kind::Switch { NonFinite::Sum } else { non_finite };
        let before = counters.contributions;
        for bytes in payload.chunks(stride) {
            let outcome = authentic(key.as_ref(), bytes).and_then(|packet| {
                sum_contribution(&mut aggregation, outbox, counters, at.member, &packet, non_finite)
            });
            if let Err(reason) = outcome {
                refused.note(counters, reason, bytes);
                if reason == DropReason::EarlyRound && aggregation.job.is_unnamed(bytes) {
                    refused.first.get_or_insert((Status::StaleRound, reason, bytes));
                }
            }
        }
        let summed = counters.contributions - before;
        aggregation.job.note_progress(at.member, summed, last_round(payload, stride), aggregation.now);
        if is_tagged && summed > 0 {
            // One that is not summed may have been recorded.
            aggregation.job.hear_from(at.member, aggregation.now);
        }
        refused
    }

    /// Sets the contributions of a member of an asynchronous job aside.
    fn stage_contributions<'a>(&mut self, at: MemberAt, payload: &'a [u8], stride: usize) -> Refused<'a> {
        let mut refused = Refused::default();
        let Some(job) = self.job(at.job) else { return refused };
        let Some(key) = job.member(at.member).map(|member| member.tag_key) else { return refused };
        let is_tagged = job.tag_key.is_some();
        let before = self.counters.contributions;
        for bytes in payload.chunks(stride) {
            let outcome = authentic(key.as_ref(), bytes);
            if let Err(reason) = outcome.and_then(|packet| self.stage_contribution(at, &packet)) {
                refused.note(&mut self.counters, reason, bytes);
            }
        }
        let (staged, now) = (self.counters.contributions - before, self.now);
        if let Some(job) = self.jobs[at.job].as_mut() {
            job.note_progress(at.member, staged, last_round(payload, stride), now);
        }
        if is_tagged && staged > 0 {
            self.hear_from(at);
        }
        refused
    }

    /// Tells a member why its data packet was dropped, and what was expected.
    fn explain(
        &mut self,
        from: &Endpoint,
        at: MemberAt,
        (status, reason): (Status, DropReason),
        bytes: &[u8],
    ) {
        let Some(job) = self.job(at.job) else { return };
        let seg = DataPacket::new_checked(bytes).ok().map(|packet| packet.seg());
        let index = seg.map_or(SegmentIndex::default(), |seg| seg.index);
        let current = job.next_round_of(at.member);
        let (round, expected) = match reason {
            DropReason::SegOutOfRange => (current, job.layout.segment_count()),
            DropReason::LengthMismatch => (current, job.layout.packet_len(index) as u32),
            DropReason::BadWeight => (current, 1),
            DropReason::NonFinite => (seg.map_or(current, |seg| seg.round), index.get()),
            _ => (current, 0),
        };
        self.refuse_data(from, at, status, round, expected);
    }

    /// Results go to this job until they are sent.
    fn aim_results(&mut self, job_at: usize) {
        let is_tagged = self.job(job_at).is_some_and(|job| job.tag_key.is_some());
        self.outbox.aim_results(job_at, is_tagged);
    }

    /// Answers go to this member of a job until they are sent.
    fn aim_answers(&mut self, job_at: usize, to: Endpoint) {
        let is_tagged = self.job(job_at).is_some_and(|job| job.tag_key.is_some());
        self.outbox.aim_answers(job_at, to, is_tagged);
    }

    /// Partial sums that are made from now on are those of a job.
    fn send_partials_of(&mut self, job_at: usize) {
        if let Some(uplink) = self.uplinks.get(job_at) {
            self.outbox.aim_partials(job_at, uplink.parent(), uplink.tag_key.is_some());
        }
    }

    fn job(&self, at: usize) -> Option<&Job> {
        self.jobs[at].as_ref()
    }

    fn find_job(&self, id: u32) -> Option<usize> {
        self.jobs.iter().position(|job| job.as_ref().is_some_and(|job| job.id == id))
    }

    fn aggregation(&mut self, job_at: usize) -> Option<Aggregation<'_>> {
        self.aggregation_and_outbox(job_at).map(|(aggregation, _)| aggregation)
    }

    fn aggregation_and_outbox(&mut self, job_at: usize) -> Option<(Aggregation<'_>, &mut Outbox)> {
        self.parts(job_at).map(|(aggregation, outbox, _)| (aggregation, outbox))
    }

    fn parts(&mut self, job_at: usize) -> Option<(Aggregation<'_>, &mut Outbox, &mut Counters)> {
        let job = self.jobs[job_at].as_mut()?;
        let slots = self.slots.region_mut(&job.slots);
        let sums = self.sums.region_mut(&job.sums);
        let generations = &mut self.generations;
        let aggregation = Aggregation { job, slots, sums, now: self.now, generations };
        Some((aggregation, &mut self.outbox, &mut self.counters))
    }

    /// Tells the flight recorder what has become of the rounds of a job.
    fn record_rounds(&mut self, job_at: usize) {
        let Some(job) = self.jobs[job_at].as_mut() else { return };
        let (log, now) = (self.flight.log_mut(job_at), self.now);
        job.tell_rounds(|incident| log.record(now, incident));
    }

    fn report(&mut self, event: Event) {
        self.events.push(event);
        self.flight.record_event(self.now, event);
    }
}

/// The first datagram of a super-frame whose sender is told that it was dropped, and why.
#[derive(Default)]
struct Refused<'a> {
    first: Option<(Status, DropReason, &'a [u8])>,
    /// Why the last ones were dropped, and how many for that reason, one after the other.
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

/// A contribution, without the tag that its job may ask for.
fn authentic<'a>(key: Option<&TagKey>, bytes: &'a [u8]) -> Result<DataPacket<'a>, DropReason> {
    let content = match key {
        None => bytes,
        Some(key) => key.verify(bytes).ok_or(DropReason::NotAuthentic)?,
    };
    DataPacket::new_checked(content).map_err(DropReason::Wire)
}

/// Round of the last datagram, or in an asynchronous job the number of its vector.
fn last_round(payload: &[u8], stride: usize) -> Option<Round> {
    DataPacket::new_checked(payload.chunks(stride).next_back()?).ok().map(|packet| packet.seg().round)
}

/// Sums one contribution of a member.
fn sum_contribution(
    aggregation: &mut Aggregation<'_>,
    outbox: &mut Outbox,
    counters: &mut Counters,
    member: usize,
    packet: &DataPacket<'_>,
    non_finite: NonFinite,
) -> Result<(), DropReason> {
    let seg = packet.seg();
    let goes_up = aggregation.job.goes_up(seg.round);
    let batch = if goes_up { &mut outbox.partials } else { &mut outbox.results };
    match aggregation.contribute(member, seg, packet, non_finite, batch) {
        Verdict::Summed => counters.contributions += 1,
        Verdict::Completed => {
            counters.contributions += 1;
            *(if goes_up { &mut counters.partials } else { &mut counters.results }) += 1;
        }
        Verdict::Finished => {
            if outbox.answers.has_room(SEG_LEN_BYTES + packet.float_bytes().len()) {
                aggregation.push_result(seg.round, seg.index, &mut outbox.answers);
                counters.results_repeated += 1;
            }
            return Err(DropReason::Late);
        }
        Verdict::Dropped(reason) => return Err(reason),
    }
    Ok(())
}
