//! The interface of the switch to its driver.

use alloc::vec::Vec;

use iswitch_protocol::Instant;
use iswitch_protocol::Round;
use iswitch_protocol::wire::control::{RangeRepr, SegmentSetRepr};
use iswitch_protocol::wire::{Class, WireError};

use crate::capacity::{self, LimitStatus};
use crate::card::{self, CardJob};
use crate::config::Config;
use crate::control::handle_control;
use crate::data::handle_data;
use crate::endpoint::{Endpoint, PortId};
use crate::event::{Event, Report};
use crate::flight::FlightRecord;
use crate::group_address::GroupPorts;
use crate::ids::{JobIndex, MemberId};
use crate::job::{Job, Member};
use crate::keys::Keys;
use crate::operator::{self, Order, OrderError};
use crate::output::{Lent, Transmit};
use crate::reason::{Counters, DropReason};
use crate::state::State;
use crate::status::JobStatus;
use crate::uplink::Uplink;
use crate::upstream::handle_from_parent;
use crate::{steps, timers};

/// Switch that aggregates the gradients of several jobs. See the [crate documentation](crate) for the calling contract.
#[derive(Debug)]
pub struct Switch {
    state: State,
}

impl Switch {
    /// Creates a switch without members, whose jobs need no key. Allocates all the memory that the switch ever uses.
    pub fn new(config: Config) -> Self {
        Self::with_keys(config, Keys::default())
    }

    /// Creates a switch without members. A job that has a key in `keys` accepts only packets that are authenticated
    /// with this key.
    pub fn with_keys(config: Config, keys: Keys) -> Self {
        Self { state: State::new(config, keys) }
    }

    /// Returns the number of members whose packets arrive through a port.
    #[must_use]
    pub fn members_on(&self, port: PortId) -> usize {
        let is_there = |(_, member): &(MemberId, &Member)| member.endpoint.port == port;
        let of_job = |job: &Job| job.members().iter().filter(is_there).count();
        self.state.jobs.iter().map(|(_, job)| of_job(job)).sum()
    }

    /// Sets the ports through which the switch sends to groups; initially, each port sends to the groups of its own
    /// members. The change does not apply to members that have already joined.
    pub fn set_group_ports(&mut self, ports: &GroupPorts) {
        self.state.group_ports = *ports;
    }

    /// Processes a datagram, or a super-frame of datagrams of `stride` bytes each, of which the last may be shorter.
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
        // An empty payload is one datagram, but chunks() yields none for it.
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

    /// Counts a frame whose ToS marks it as an iSwitch packet, but which is invalid for the reason `error`.
    pub fn handle_invalid(&mut self, now: Instant, error: WireError) {
        self.state.advance(now);
        self.state.counters.count_drop(DropReason::Wire(error));
    }

    /// Returns the job that the card sums or will sum, if there is one. Use the card methods only if [`Config::card`]
    /// is set.
    #[must_use]
    pub fn card_job(&self) -> Option<CardJob> {
        card::job(&self.state)
    }

    /// Hands the job over to the card, and returns the first round that the card sums. Returns `None` if the card has
    /// the job already, or if the core first has to complete the job or a replayed round.
    pub fn move_to_card(&mut self) -> Option<Round> {
        card::take_over(&mut self.state)
    }

    /// Takes the job back from the card. The core finishes the open rounds: its Acks name the contributions that it
    /// lacks as missing, and their senders repeat them.
    pub fn take_from_card(&mut self) {
        card::take_back(&mut self.state);
    }

    /// Processes sums that the card has sent to the host. The arguments are those of [`Self::handle_datagrams`].
    pub fn handle_card_sums(&mut self, now: Instant, payload: &[u8], stride: usize) {
        self.state.advance(now);
        card::handle_sums(&mut self.state, payload, stride.max(1));
    }

    /// Records that `next` is the next round that the card will open, so that members that join now start no earlier.
    pub fn note_card_round(&mut self, next: Round) {
        card::note_opened(&mut self.state, next);
    }

    /// Records for which segments of a range the card lacks a contribution from the sender of a Help. Call this before
    /// that Help is processed.
    pub fn note_card_missing(&mut self, from: &Endpoint, missing: SegmentSetRepr<'_>) {
        self.state.card_orders.note_missing(from, missing);
    }

    /// Returns the next range of segments that the card has to finish with the contributions received so far, or `None`
    /// if there is no such range.
    pub fn poll_card_closing(&mut self) -> Option<RangeRepr> {
        self.state.card_orders.next_closing()
    }

    /// Handles the timers that have expired: expels members whose lease has expired, completes overdue jobs, reports
    /// the members that rounds wait for, and sends Joins and heartbeats to parents.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.state.advance(now);
        timers::handle_timeout(&mut self.state);
    }

    /// Carries out an order of the operator. Afterwards, the driver must poll as it does after a `handle_*` call.
    ///
    /// # Errors
    /// Fails, and changes nothing, if the job or member does not exist, or if the order does not apply to the job.
    pub fn obey(&mut self, now: Instant, order: Order) -> Result<(), OrderError> {
        self.state.advance(now);
        operator::obey(&mut self.state, order)
    }

    /// Returns the next datagrams to send, or `None` if none are pending.
    pub fn poll_transmit(&mut self) -> Option<Transmit<'_>> {
        let state = &mut self.state;
        state.outbox.reclaim();
        let lent = match state.outbox.lend(&state.keys) {
            // Drain the pending output before executing queued work, which produces more output.
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
                let datagrams = outbox.results.batch.datagrams();
                counters.data_sent += datagrams * u64::from(job.result_copies());
                counters.group_sent += datagrams * u64::from(job.group_copies());
                Some(outbox.results(job))
            }
        }
    }

    /// Returns the instant at which [`Self::handle_timeout`] is due, or `None` if no timer is armed.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let state = &self.state;
        // Remaining work is due immediately.
        let work = (!state.backlog.is_empty()).then_some(state.now);
        let uplinks = state.uplinks.iter().filter_map(Uplink::deadline);
        state.deadline.into_iter().chain(uplinks).chain(work).min()
    }

    /// Returns the next event to log, or `None` if there is none.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.poll_report().map(|report| report.event)
    }

    /// Works like [`Self::poll_event`], and also returns the names of the job and of the member that the event
    /// concerns.
    pub fn poll_report(&mut self) -> Option<Report> {
        self.state.journal.next_event()
    }

    /// Returns the counters, which cover the time since the switch started.
    pub fn counters(&self) -> &Counters {
        &self.state.counters
    }

    /// Returns the status of all current jobs. Allocates memory: intended for operator queries, not for the packet
    /// path.
    pub fn jobs(&self) -> impl Iterator<Item = JobStatus> + '_ {
        self.state.jobs.iter().map(|(at, job)| self.status_of(at, job))
    }

    /// Returns the limits of the switch and the current usage. Allocates memory: intended for operator queries.
    pub fn limits(&self) -> Vec<LimitStatus> {
        capacity::limits(&self.state)
    }

    /// Returns the epoch of a job, which identifies this incarnation of the job, or `None` if there is no such job.
    /// Once the job is complete, this is the epoch of the topmost switch's incarnation.
    pub fn epoch_of(&self, job: u32) -> Option<u64> {
        let jobs = &self.state.jobs;
        jobs.find(job).and_then(|at| jobs.get(at)).map(Job::epoch)
    }

    /// Returns the status of job `id`, or `None` if no such job exists. Allocates memory: intended for operator
    /// queries.
    pub fn job_status(&self, id: u32) -> Option<JobStatus> {
        let at = self.state.jobs.find(id)?;
        Some(self.status_of(at, self.state.jobs.get(at)?))
    }

    fn status_of(&self, at: JobIndex, job: &Job) -> JobStatus {
        let State { jobs, now, .. } = &self.state;
        JobStatus::of(job, jobs.slots_of(job), self.state.uplink(at), *now)
    }

    /// Returns the latest flight records of each current or past job, oldest first. Allocates memory: intended for
    /// operator queries, not for the packet path.
    pub fn flight_records(&self) -> impl Iterator<Item = (u32, Vec<FlightRecord>)> + '_ {
        self.state.journal.flight().jobs()
    }

    /// Returns the latest flight records of one job, oldest first, or `None` if its records are no longer kept.
    /// Allocates memory.
    pub fn flight_records_of(&self, job: u32) -> Option<Vec<FlightRecord>> {
        self.state.journal.flight().job(job)
    }
}
