//! Upsets in the middle of a job: restarts of the switch, Resets, and workers that are killed; and where the members
//! stand that join afterwards.

use std::time::Duration;

use iswitch::worker::protocol::Membership;
use iswitch::worker::session::JoinProgress;
use iswitch_protocol::wire::{ControlBody, Standing, Status};
use iswitch_protocol::{Instant, Round, history};
use iswitch_switch::{Config, Switch};
use serde::{Deserialize, Serialize};

use super::learner::Undecided;
use super::member::{FIRST_UDP_PORT, Return, quiet_time};
use super::{JOB, Scenario, Simulation};
use crate::checker::{Rule, Violation, mix, violated};
use crate::keys;

/// Memory of the switch for sums.
const MEMORY_BYTES: usize = 2 << 20;
/// How long a training loop waits before it tries again to join a job that has refused it.
const JOIN_PATIENCE: Duration = Duration::from_millis(20);

/// What happens in the middle of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Upset {
    /// The switch crashes and starts again at once.
    Restart,
    /// A worker resets the job.
    Reset(usize),
    /// A worker process is killed.
    Crash {
        /// The worker.
        worker: usize,
        /// After how long another takes its place; `None` if none does.
        return_after: Option<Duration>,
        /// Whether that sends from another UDP port.
        new_port: bool,
    },
}

/// A time since the start of the job, and what happens then.
pub type PlannedUpset = (Duration, Upset);

/// A switch as the run of that number has it.
pub(super) fn switch(seed: u64, run: u64, scenario: &Scenario) -> Switch {
    let boot = if run == 0 { seed + 1 } else { mix(seed ^ run << 48) };
    let config =
        Config { boot, lease_ms: scenario.lease_ms, memory_bytes: MEMORY_BYTES, ..Config::default() };
    Switch::with_keys(config, keys(boot, scenario.is_keyed))
}

/// Whether nothing had been summed in the job before the member's first aggregate.
pub(super) fn begins_job(membership: &Membership) -> bool {
    membership.history == history::begin(membership.boot, JOB, membership.start)
}

impl Simulation<'_> {
    /// When the next upset is due.
    pub(super) fn upset_deadline(&self) -> Option<Instant> {
        self.scenario.upsets.get(self.upsets).map(|(at, _)| self.begin.plus(*at))
    }

    /// Whether anything has happened for which the switch may let a living member go.
    pub(super) fn is_disturbed(&self) -> bool {
        self.upsets > 0 || self.departures.expelled > 0
    }

    /// Lets all upsets happen that are due.
    pub(super) fn upset(&mut self) {
        while let Some((at, upset)) = self.scenario.upsets.get(self.upsets).copied()
            && self.begin.plus(at) <= self.now
        {
            self.upsets += 1;
            self.note(|| format!("{upset:?}"));
            match upset {
                Upset::Restart => {
                    self.switch = switch(self.seed, self.upsets as u64, self.scenario);
                    self.census.restart();
                }
                Upset::Reset(worker) if self.workers[worker].is_running => {
                    self.workers[worker].protocol.order(self.now, ControlBody::RESET);
                    self.flush_worker(worker);
                }
                Upset::Crash { worker, return_after, new_port } if self.workers[worker].is_running => {
                    self.departures.crashes += 1;
                    self.end_process(worker, return_after, new_port);
                }
                Upset::Reset(_) | Upset::Crash { .. } => {}
            }
        }
    }

    /// Ends the process of a worker. What it has sent is still on the wire.
    fn end_process(&mut self, worker: usize, return_after: Option<Duration>, new_port: bool) {
        let (now, quiet) = (self.now, quiet_time(self.scenario));
        let acting = &mut self.workers[worker];
        acting.is_running = false;
        acting.inbox.clear();
        // As with TCP (RFC 9293 section 3.4.3).
        let delay = |after: Duration| if new_port { after } else { after.max(quiet) };
        acting.returns = return_after.map(|after| Return { at: now.plus(delay(after)), new_port });
        if let Some(number) = acting.committed.take() {
            self.undecided.push(Undecided { worker, number, epoch: acting.epoch });
        }
        self.ended.push(acting.report());
    }

    /// Starts the process that takes the place of one that has ended.
    pub(super) fn start_process(&mut self, worker: usize) {
        let (now, seed, life) = (self.now, self.seed, self.lives);
        let acting = &mut self.workers[worker];
        let Some(returns) = acting.returns.take() else { return };
        self.lives += 1;
        self.departures.returns += 1;
        acting.start(self.scenario, (seed, life), worker, now);
        if returns.new_port {
            acting.udp_port = FIRST_UDP_PORT + life as u16;
        }
        let udp_port = acting.udp_port;
        self.note(|| format!("{worker} starts anew at port {udp_port}"));
        self.flush_worker(worker);
    }

    /// Starts workers at once: all that do not run if `all`, otherwise those that come back later.
    pub(super) fn start_gone(&mut self, all: bool) {
        let now = self.now;
        for acting in self.workers.iter_mut().filter(|acting| !acting.is_running) {
            let is_soon = |returns: &Return| returns.at <= now.plus(JOIN_PATIENCE);
            let new_port = acting.returns.is_some_and(|returns| returns.new_port);
            if all || acting.returns.is_some_and(|returns| !is_soon(&returns)) {
                acting.returns = Some(Return { at: now.plus(JOIN_PATIENCE), new_port });
            }
        }
    }

    /// Whether the job had no place for a worker, because members that are gone keep theirs for a lease. The process
    /// of the worker ends, and another one tries again.
    pub(super) fn is_turned_away(&mut self, worker: usize) -> Result<bool, Violation> {
        let JoinProgress::Refused(status, expected) = self.workers[worker].protocol.join_progress() else {
            return Ok(false);
        };
        if status != Status::JobFull || !self.is_disturbed() {
            let detail = format!("worker {worker} may not join: {}, expected {expected}", status.name());
            return violated(Rule::Refusal, detail);
        }
        self.note(|| format!("{worker} finds no place in the job"));
        self.departures.turned_away += 1;
        self.note_submission(worker)?;
        self.end_process(worker, Some(JOIN_PATIENCE), false);
        Ok(true)
    }

    /// Whether a worker is in another incarnation of the job than before. Those who are Resumed there have the same
    /// model.
    pub(super) fn note_admission(&mut self, worker: usize) -> Result<(), Violation> {
        let acting = &mut self.workers[worker];
        let Some(membership) = acting.protocol.membership().copied() else { return Ok(()) };
        if std::mem::replace(&mut acting.epoch, membership.boot) == membership.boot {
            return Ok(());
        }
        let is_first = acting.next.is_none() && acting.updates == 0 && acting.awaits_state.is_none();
        acting.next = None;
        acting.is_ahead = false;
        if membership.standing != Standing::Resumed && !(is_first && begins_job(&membership)) {
            if is_first {
                acting.awaits_state = Some(membership.start);
            }
            // Otherwise the protocol reports that it has missed sums.
            return Ok(());
        }
        if acting.awaits_state.is_some() {
            // It is told where it needs the state now, or never has it.
            return Ok(());
        }
        acting.next = Some(membership.start);
        let place = (membership.boot, membership.start.get());
        let model = self.resumed_models.entry(place).or_insert_with(|| acting.model.clone());
        if *model != acting.model {
            let detail = format!("worker {worker} is Resumed at {} with another model", membership.start);
            return violated(Rule::Agreement, detail);
        }
        Ok(())
    }

    /// The model before an aggregate, as a worker of the present incarnation had it.
    pub(super) fn model_before(&self, epoch: u64, next: Round) -> Option<Vec<f32>> {
        let applied = self.aggregates.get(&(epoch, next.previous().get()));
        let applied = applied.filter(|known| known.sum.is_some()).map(|known| &known.model);
        applied.or_else(|| self.resumed_models.get(&(epoch, next.get()))).cloned()
    }
}
