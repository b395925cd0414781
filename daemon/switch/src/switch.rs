//! The switch as its driver sees it.

use alloc::vec::Vec;

use iswitch_protocol::Instant;
use iswitch_protocol::wire::{Class, WireError};

use crate::config::Config;
use crate::control::handle_control;
use crate::data::handle_data;
use crate::endpoint::Endpoint;
use crate::event::Event;
use crate::flight::FlightRecord;
use crate::ids::JobIndex;
use crate::job::Job;
use crate::keys::Keys;
use crate::output::{Lent, Transmit};
use crate::reason::{Counters, DropReason};
use crate::state::State;
use crate::status::JobStatus;
use crate::uplink::Uplink;
use crate::upstream::handle_from_parent;
use crate::{steps, timers};

/// The switch.
#[derive(Debug)]
pub struct Switch {
    state: State,
}

impl Switch {
    /// A switch without members, whose jobs need no key. Takes all the memory that it will ever have.
    pub fn new(config: Config) -> Self {
        Self::with_keys(config, Keys::default())
    }

    /// A switch without members, on which a job that has a key accepts only packets that prove it.
    pub fn with_keys(config: Config, keys: Keys) -> Self {
        Self { state: State::new(config, keys) }
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
        let state = &mut self.state;
        state.advance(now);
        // An empty payload is one datagram, though chunks() finds none in it.
        let stride = stride.max(1);
        if let Some(at) = state.uplink_of_port(from) {
            return handle_from_parent(state, from, at, class, payload, stride);
        }
        match class {
            Class::Control if payload.is_empty() => handle_control(state, from, payload),
            Class::Control => payload.chunks(stride).for_each(|bytes| handle_control(state, from, bytes)),
            Class::Data if payload.is_empty() => self.handle_invalid(now, WireError::Truncated),
            Class::Data => handle_data(state, from, payload, stride),
        }
    }

    /// Counts a frame whose ToS says that it is ours, but that cannot be used.
    pub fn handle_invalid(&mut self, now: Instant, error: WireError) {
        self.state.advance(now);
        self.state.counters.count_drop(DropReason::Wire(error));
    }

    /// Lets time pass: expels the members whose lease has expired, completes jobs that wait in vain, reports the
    /// members that rounds wait for.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.state.advance(now);
        timers::handle_timeout(&mut self.state);
    }

    /// The next datagrams to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit<'_>> {
        let state = &mut self.state;
        state.outbox.reclaim();
        let lent = match state.outbox.lend(&state.keys) {
            // All output precedes the queued work that makes more of it.
            Lent::Nothing if steps::work(state) => state.outbox.lend(&state.keys),
            lent => lent,
        };
        let State { outbox, counters, jobs, uplinks, .. } = state;
        match lent {
            Lent::Nothing => None,
            Lent::Control => {
                counters.control_sent += 1;
                Some(outbox.control())
            }
            Lent::Answers => {
                let job = jobs.get(outbox.answers.job())?;
                outbox.answers.batch.sign(job.result_key());
                counters.data_sent += outbox.answers.batch.datagrams();
                Some(outbox.answers())
            }
            Lent::Partials => {
                let uplink = uplinks.get(outbox.partials.job().get())?;
                outbox.partials.batch.sign(uplink.partials_key());
                counters.data_sent += outbox.partials.batch.datagrams();
                Some(outbox.partials())
            }
            Lent::Results => {
                let job = jobs.get(outbox.results.job())?;
                outbox.results.batch.sign(job.result_key());
                let recipients = u64::from(job.members().count());
                counters.data_sent += outbox.results.batch.datagrams() * recipients;
                Some(outbox.results(job.members()))
            }
        }
    }

    /// When [`Self::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let state = &self.state;
        // Work that is left is done as soon as it is its turn.
        let work = (!state.backlog.is_empty()).then_some(state.now);
        let uplinks = state.uplinks.iter().filter_map(Uplink::deadline);
        state.deadline.into_iter().chain(uplinks).chain(work).min()
    }

    /// The next event to log.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.state.journal.next_event()
    }

    /// The counters since the start.
    pub fn counters(&self) -> &Counters {
        &self.state.counters
    }

    /// The present jobs. Allocates: for an operator's question, not for the packet path.
    pub fn jobs(&self) -> impl Iterator<Item = JobStatus> + '_ {
        self.state.jobs.iter().map(|(at, job)| self.status_of(at, job))
    }

    /// The epoch of a job: it identifies this incarnation, and that of the topmost switch once the job is complete.
    pub fn epoch_of(&self, job: u32) -> Option<u64> {
        let jobs = &self.state.jobs;
        jobs.find(job).and_then(|at| jobs.get(at)).map(Job::epoch)
    }

    /// The job of that number; none if there is none. Allocates: for an operator's question.
    pub fn job_status(&self, id: u32) -> Option<JobStatus> {
        let at = self.state.jobs.find(id)?;
        Some(self.status_of(at, self.state.jobs.get(at)?))
    }

    fn status_of(&self, at: JobIndex, job: &Job) -> JobStatus {
        let State { jobs, now, .. } = &self.state;
        JobStatus::of(job, jobs.slots_of(job), self.state.uplink(at), *now)
    }

    /// The latest records of each present or past job, the oldest first. Allocates: for an operator's question.
    pub fn flight_records(&self) -> impl Iterator<Item = (u32, Vec<FlightRecord>)> + '_ {
        self.state.journal.flight().jobs()
    }

    /// The same of one job; none if it is not known any more. Allocates.
    pub fn flight_records_of(&self, job: u32) -> Option<Vec<FlightRecord>> {
        self.state.journal.flight().job(job)
    }
}
