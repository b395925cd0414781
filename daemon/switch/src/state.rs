//! State of a switch: its components, and the operations on them that the modules of the layers above share.
//!
//! Each component maintains its own invariants. The modules of the layers above contain functions that operate on the
//! whole state.

use core::time::Duration;

use alloc::vec::Vec;

use iswitch_protocol::Instant;
use iswitch_protocol::limits::MAX_JOBS;
use iswitch_protocol::wire::{ControlRepr, NameRepr};

use crate::accumulate::Widener;
use crate::backlog::{Backlog, Work};
use crate::bans::Bans;
use crate::card_orders::CardOrders;
use crate::config::Config;
use crate::endpoint::{Endpoint, PortId};
use crate::event::Event;
use crate::group_address::{GroupAddresses, GroupPorts};
use crate::ids::{JobIndex, MemberAt, MemberId};
use crate::job::{Aggregation, Job};
use crate::jobs::Jobs;
use crate::journal::Journal;
use crate::keys::{Keys, Nonces, Seal};
use crate::limiter::Limiter;
use crate::output::Outbox;
use crate::reason::{Counters, DropReason};
use crate::uplink::Uplink;

/// Minimum number of calls that a running driver makes within a lease, and also within the time after which a member
/// counts as slow. If the interval between two calls is longer than this allows, the driver itself was asleep.
const TICKS_PER_LIMIT: u32 = 4;
/// Minimum length of a pause of the driver that is taken into account. Shorter pauses do not matter for any limit, so a
/// busy switch does not have to check them.
const MIN_SLEEP: Duration = Duration::from_millis(1);

/// The components of a switch.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) config: Config,
    pub(crate) keys: Keys,
    pub(crate) nonces: Nonces,
    pub(crate) group_addresses: GroupAddresses,
    pub(crate) group_ports: GroupPorts,
    pub(crate) limiter: Limiter,
    pub(crate) bans: Bans,
    /// Whether the switch is draining, that is, creates no further jobs.
    pub(crate) is_draining: bool,
    pub(crate) now: Instant,
    /// Instant at which leases and rounds are checked next.
    pub(crate) deadline: Option<Instant>,
    pub(crate) jobs: Jobs,
    /// Uplinks, one for each possible job; empty if the switch has no parent.
    pub(crate) uplinks: Vec<Uplink>,
    pub(crate) outbox: Outbox,
    pub(crate) widener: Widener,
    pub(crate) backlog: Backlog,
    pub(crate) journal: Journal,
    pub(crate) card_orders: CardOrders,
    pub(crate) counters: Counters,
}

impl State {
    /// Creates the state and allocates all the memory that the switch ever uses.
    pub(crate) fn new(config: Config, keys: Keys) -> Self {
        let ports = config.uplinks.map_or(0, |uplinks| uplinks.ports.min(MAX_JOBS as u8));
        let uplink =
            |at| config.uplinks.map(|uplinks| Uplink::new(&uplinks, at, config.boot, config.lease()));
        let nonces = Nonces::new(&keys);
        Self {
            group_addresses: GroupAddresses::new(nonces.of_groups(config.boot)),
            group_ports: GroupPorts::ALL,
            nonces,
            keys,
            limiter: Limiter::new(&config.strangers),
            bans: Bans::default(),
            is_draining: false,
            now: Instant::default(),
            deadline: None,
            jobs: Jobs::new(&config),
            uplinks: (0..ports).filter_map(uplink).collect(),
            outbox: Outbox::new(),
            widener: Widener::new(),
            backlog: Backlog::new(config.work_per_turn),
            journal: Journal::new(),
            card_orders: CardOrders::new(),
            counters: Counters::default(),
            config,
        }
    }

    /// Advances the clock to the driver's current time; backward steps are ignored. If the driver was asleep for a
    /// large part of a lease, the switch could not have heard from its members during that time, so their leases, and
    /// the timeouts of waiting rounds and uplinks, are extended by the length of the pause.
    pub(crate) fn advance(&mut self, now: Instant) {
        // The driver has sent all earlier output by now.
        self.keys.forget_released();
        let slept = now.since(self.now);
        if slept > self.config.lease() / 2 {
            for (_, member) in self.jobs.iter_mut().flat_map(|job| job.members_mut().iter_mut()) {
                member.last_heard = member.last_heard.plus(slept);
            }
        }
        if slept > MIN_SLEEP {
            self.uplinks.iter_mut().for_each(|uplink| uplink.oversleep(slept));
        }
        if slept > self.config.slow_after() / 2 {
            self.jobs.iter_mut().for_each(|job| job.postpone_rounds(slept));
        }
        self.now = self.now.max(now);
    }

    /// Ensures that the switch wakes up in time to check leases and rounds.
    pub(crate) fn expect_tick(&mut self) {
        let limit = self.config.lease().min(self.config.slow_after());
        let tick = self.now.plus(limit / TICKS_PER_LIMIT);
        self.deadline = Some(self.deadline.map_or(tick, |deadline| deadline.min(tick)));
    }

    /// Ensures that the switch wakes up at an instant.
    pub(crate) fn expect_by(&mut self, at: Instant) {
        self.deadline = Some(self.deadline.map_or(at, |deadline| deadline.min(at)));
    }

    /// Returns the port through which packets to the groups of a port's members are sent, or `None` if these members
    /// cannot receive results through a group.
    pub(crate) fn group_port(&self, port: PortId) -> Option<PortId> {
        self.group_ports.of(port).filter(|_| self.config.group_delivery)
    }

    pub(crate) fn uplink(&self, at: JobIndex) -> Option<&Uplink> {
        self.uplinks.get(at.get())
    }

    pub(crate) fn uplink_mut(&mut self, at: JobIndex) -> Option<&mut Uplink> {
        self.uplinks.get_mut(at.get())
    }

    /// Returns the index of the uplink on whose port a packet arrived, or `None` if the port does not belong to an
    /// uplink.
    pub(crate) fn uplink_of_port(&self, from: &Endpoint) -> Option<JobIndex> {
        let first = self.config.uplinks.as_ref()?.first_port.0;
        let at = usize::from(from.port.0.checked_sub(first)?);
        (at < self.uplinks.len()).then(|| JobIndex::new(at))
    }

    /// Returns the maximum number of jobs. If the switch has a parent, it is the number of ports that lead to the
    /// parent.
    pub(crate) fn job_capacity(&self) -> usize {
        if self.uplinks.is_empty() { MAX_JOBS } else { self.uplinks.len() }
    }

    pub(crate) fn report(&mut self, event: Event) {
        let name = self.names_in(&event);
        self.journal.report(self.now, event, name);
    }

    /// Returns the names of the job and of the member that an event concerns.
    fn names_in(&self, event: &Event) -> NameRepr {
        let job = event.job().and_then(|id| self.jobs.get(self.jobs.find(id)?));
        job.map(|job| job.members().names_of(event.member().and_then(MemberId::from_wire)))
            .unwrap_or_default()
    }

    pub(crate) fn hear_from(&mut self, at: MemberAt) {
        self.jobs.hear_from(at, self.now);
    }

    pub(crate) fn is_stray(&self, from: &Endpoint) -> bool {
        self.jobs.is_stray(from, self.now, self.config.lease())
    }

    /// Returns a job with its slots and sums, together with the outbox for its results and the counters. Returns `None`
    /// if there is no job at this index.
    #[inline]
    pub(crate) fn parts(&mut self, at: JobIndex) -> Option<(Aggregation<'_>, &mut Outbox, &mut Counters)> {
        self.intake(at).map(|(aggregation, outbox, counters, _)| (aggregation, outbox, counters))
    }

    /// Works like [`Self::parts`], and also returns the buffer in which elements are widened.
    #[inline]
    pub(crate) fn intake(
        &mut self,
        at: JobIndex,
    ) -> Option<(Aggregation<'_>, &mut Outbox, &mut Counters, &mut Widener)> {
        let aggregation = self.jobs.aggregation(at, self.now)?;
        Some((aggregation, &mut self.outbox, &mut self.counters, &mut self.widener))
    }

    pub(crate) fn aggregation(&mut self, at: JobIndex) -> Option<Aggregation<'_>> {
        self.jobs.aggregation(at, self.now)
    }

    /// Makes the members of a job the recipients of the results that are queued next.
    pub(crate) fn aim_results(&mut self, at: JobIndex) {
        let is_tagged = self.jobs.get(at).is_some_and(Job::is_tagged);
        self.outbox.results.aim_at_members(at, is_tagged);
    }

    /// Makes a member of a job the recipient of the repeated results that are queued next.
    pub(crate) fn aim_answers(&mut self, at: JobIndex, to: Endpoint) {
        let is_tagged = self.jobs.get(at).is_some_and(Job::is_tagged);
        self.outbox.answers.aim(at, to, is_tagged);
    }

    /// Makes the parent of a job the recipient of the partial sums that are queued next.
    pub(crate) fn aim_partials(&mut self, at: JobIndex) {
        if let Some(uplink) = self.uplinks.get(at.get()) {
            self.outbox.partials.aim(at, uplink.parent(), uplink.partials_key().is_some());
        }
    }

    /// Queues a control packet. If the queue has no room, the packet is lost and the loss is counted; the sender of the
    /// request will repeat it.
    pub(crate) fn send_control(
        &mut self,
        to: &Endpoint,
        packet: &ControlRepr<'_>,
        padding_len: u16,
        seal: Seal,
    ) {
        if !self.outbox.push_control(*to, packet, padding_len, seal) {
            self.counters.count_drop(DropReason::Busy);
        }
    }

    /// Queues work of a job. If the job already has too many requests queued, counts a drop and returns false.
    pub(crate) fn queue_work(&mut self, work: Work) -> bool {
        let is_queued = self.backlog.push(work);
        // Only requests may be dropped. There is always room for additions, because a member cannot complete its next
        // vector while one is being added.
        debug_assert!(is_queued || work.is_request(), "no room for {work:?}");
        if !is_queued {
            self.counters.count_drop(DropReason::Busy);
        }
        is_queued
    }

    /// Records in the flight recorder which rounds of a job were opened and finished.
    pub(crate) fn record_rounds(&mut self, at: JobIndex) {
        let Some(job) = self.jobs.get_mut(at) else { return };
        let (log, now) = (self.journal.log_mut(at), self.now);
        job.record_rounds(now, |incident| log.record(now, incident));
    }
}
