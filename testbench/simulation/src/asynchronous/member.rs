//! A worker's machine: the real protocol and the state of its training loop.

use std::collections::VecDeque;
use std::time::Duration;

use iswitch::pipeline::Staleness;
use iswitch::worker::Path;
use iswitch::worker::asynchronous::AsyncProtocol;
use iswitch::worker::auth::Authenticator;
use iswitch::worker::session::SessionConfig;
use iswitch_protocol::wire::{Class, JoinRepr, Mode};
use iswitch_protocol::{Round, VectorLayout};
use iswitch_switch::Instant;

use super::report::WorkerReport;
use super::{Pace, Scenario};
use crate::checker::mix;
use crate::elements::Elements;
use crate::roaming::Roaming;
use crate::{JOB, job_key};

pub(super) const FIRST_UDP_PORT: u16 = 5000;
pub(super) const SEGMENT_FLOATS: u16 = 4;
/// Receive buffer of a worker, in bytes.
const RECV_BUFFER_BYTES: usize = 4 << 20;

/// A gradient that is being computed or waits to be committed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gradient {
    /// Sequence number of the gradient among those of its worker.
    pub(super) number: u64,
    pub(super) done_at: Instant,
    /// Number of aggregates applied to the weights from which the gradient is computed.
    pub(super) made_at: u64,
}

/// A scheduled start of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Return {
    pub(super) at: Instant,
    pub(super) new_port: bool,
}

pub(super) struct SimulatedWorker {
    pub(super) pace: Pace,
    pub(super) udp_port: u16,
    /// Whether the process is running. If not, the fields below describe the last process.
    pub(super) is_running: bool,
    /// Scheduled start of the next process.
    pub(super) returns: Option<Return>,
    /// Number of gradients computed by all processes of this worker; no number is reused.
    pub(super) computed: u64,
    pub(super) protocol: AsyncProtocol,
    pub(super) staleness: Staleness,
    pub(super) model: Vec<f32>,
    /// Number of aggregates that the process has applied.
    pub(super) updates: u64,
    /// Number of aggregates applied since the faults ended, over all processes.
    pub(super) updates_since_heal: u64,
    /// Epoch of the job as known to the worker.
    pub(super) epoch: u64,
    /// Next aggregate to apply.
    pub(super) next: Option<Round>,
    /// Aggregate whose preceding state the worker must still fetch from a peer. The worker has missed earlier
    /// aggregates, and no peer has reached that state yet.
    pub(super) awaits_state: Option<Round>,
    /// Whether the worker fetched a later state than it required. That state already contains some of the sums that the
    /// worker has yet to receive, so it skips them.
    pub(super) is_ahead: bool,
    /// Whether the worker continued with its own state because no peer had the state that it lacked, and has applied no
    /// sum since.
    pub(super) is_orphan: bool,
    /// Whether the worker has lacked a state, so that its model is no longer the initial one.
    pub(super) has_lacked_state: bool,
    pub(super) gradient: Option<Gradient>,
    /// Number of the vector in flight.
    pub(super) committed: Option<u64>,
    pub(super) sequence: u64,
    pub(super) missed: u64,
    /// Index of the switch that the worker uses.
    pub(super) switch: usize,
    /// State of a worker that can move to another switch.
    pub(super) roaming: Option<Roaming>,
    /// Packets that arrived while the worker was stalled.
    pub(super) inbox: VecDeque<(Path, Class, Vec<u8>)>,
}

/// Upper bound of the elements of a 16-bit vector. With this bound, the sum of twelve vectors fits in eight bits and is
/// therefore exact.
const SHORT_BOUND: u64 = 20;
/// Upper bound of the elements of a 16-bit vector in a tree, whose aggregates may contain more gradients than H. With
/// this bound, the sum of 19 vectors is exact.
const SHORT_BOUND_IN_TREE: u64 = 13;

/// Returns a worker's vector of integers, whose sums are exact.
pub(super) fn vector(scenario: &Scenario, worker: usize, number: u64) -> Vec<f32> {
    let worker = worker as u64;
    let short_bound = if scenario.racks.is_empty() { SHORT_BOUND } else { SHORT_BOUND_IN_TREE };
    let element = |index: u64| match scenario.elements {
        Elements::F32 => (worker * 31 + number * 17 + index * 7) % 4096,
        _ => mix(worker << 48 ^ number << 24 ^ index) % short_bound,
    };
    (0..u64::from(scenario.gradient_len)).map(|index| element(index) as f32).collect()
}

impl SimulatedWorker {
    /// Creates the first process of a worker.
    pub(super) fn new(scenario: &Scenario, seed: u64, worker: usize, now: Instant) -> Self {
        let instance = first_instance(seed, worker);
        let protocol = protocol(scenario, session(scenario, worker, instance), now);
        Self {
            switch: scenario.place_of(worker),
            roaming: scenario.standby.as_ref().map(|standby| Roaming::new(standby.silence, instance, now)),
            pace: scenario.workers[worker],
            udp_port: FIRST_UDP_PORT,
            is_running: true,
            returns: None,
            computed: 0,
            protocol,
            staleness: Staleness::new(scenario.staleness_bound),
            model: initial_model(scenario),
            updates: 0,
            updates_since_heal: 0,
            epoch: 0,
            next: None,
            awaits_state: None,
            is_ahead: false,
            is_orphan: false,
            has_lacked_state: false,
            gradient: None,
            committed: None,
            sequence: 0,
            missed: 0,
            inbox: VecDeque::new(),
        }
    }

    /// Starts another process, which keeps no state of the previous one. `life` is its number among the processes of
    /// all workers.
    pub(super) fn start(
        &mut self,
        scenario: &Scenario,
        (seed, life): (u64, u64),
        worker: usize,
        now: Instant,
    ) {
        let instance = mix(seed ^ life << 40) as u32;
        *self = Self {
            pace: self.pace,
            udp_port: self.udp_port,
            computed: self.computed,
            updates_since_heal: self.updates_since_heal,
            protocol: protocol(scenario, session(scenario, worker, instance), now),
            roaming: scenario.standby.as_ref().map(|standby| Roaming::new(standby.silence, instance, now)),
            ..Self::new(scenario, seed, worker, now)
        };
    }

    /// Returns the report of the last process.
    pub(super) fn report(&self) -> WorkerReport {
        let (staleness, counters) = (self.staleness.clone(), self.protocol.counters());
        WorkerReport { staleness, counters, missed: self.missed }
    }

    /// Returns the time at which the worker resumes, or `None` if it is not stalled now.
    pub(super) fn stopped_until(&self, begin: Instant, now: Instant) -> Option<Instant> {
        let stall = self.pace.stall?;
        let periods = now.since(begin).as_nanos() / stall.as_nanos();
        (periods % 2 == 1).then(|| begin.plus(stall * (periods as u32 + 1)))
    }

    /// Returns the next time at which the worker acts without receiving a packet.
    pub(super) fn deadline(&self, begin: Instant, now: Instant) -> Option<Instant> {
        if !self.is_running {
            return self.returns.map(|returns| returns.at);
        }
        let gradient = self.gradient.map(|gradient| gradient.done_at);
        // A finished gradient waits until the protocol is ready, and the protocol waits for packets.
        let gradient = gradient.filter(|done_at| *done_at > now || self.protocol.is_ready());
        let waiting = (!self.inbox.is_empty()).then_some(now);
        let earliest = self.protocol.poll_timeout().into_iter().chain(gradient).chain(waiting).min()?;
        Some(self.stopped_until(begin, now.max(earliest)).unwrap_or(earliest))
    }
}

/// Returns the initial model of all learners.
pub(super) fn initial_model(scenario: &Scenario) -> Vec<f32> {
    vec![0.0; scenario.gradient_len as usize]
}

/// Returns the time after the end of a process at which none of its packets can be in flight, so that another process
/// may use its port.
pub(super) fn quiet_time(scenario: &Scenario) -> Duration {
    scenario.faults.delay + scenario.faults.jitter + Duration::from_nanos(1)
}

fn first_instance(seed: u64, worker: usize) -> u32 {
    (seed as u32).wrapping_mul(0x9E37_79B9).wrapping_add(worker as u32)
}

fn protocol(scenario: &Scenario, config: SessionConfig, begin: Instant) -> AsyncProtocol {
    // The counter starts at a pseudo-random number.
    let first_counter = u64::from(config.join.instance) << 24;
    let protocol = AsyncProtocol::new(config, begin);
    if scenario.is_keyed { protocol.with_key(Authenticator::new(job_key(), first_counter)) } else { protocol }
}

fn session(scenario: &Scenario, worker: usize, instance: u32) -> SessionConfig {
    let elements = scenario.elements.types();
    let layout = VectorLayout::with_elements(scenario.gradient_len, SEGMENT_FLOATS, elements)
        .expect("the layout must be valid");
    let workers = if scenario.is_declared { scenario.workers.len() as u16 } else { 0 };
    let join = JoinRepr {
        mode: Mode::Asynchronous,
        instance,
        rank: worker as u16,
        elements,
        groups: scenario.groups.can_hear(worker),
        roams: scenario.standby.is_some(),
        ..JoinRepr::worker(layout.gradient_len(), layout.segment_floats(), workers)
    };
    SessionConfig {
        job: JOB,
        parts: 1,
        layout,
        join,
        recv_buffer_bytes: RECV_BUFFER_BYTES,
        heartbeats: true,
        name: scenario.names.of_worker(worker),
    }
}
