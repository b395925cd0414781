//! Upsets during a job (restarts of the switch, Resets and killed workers), and the state of members that join
//! afterwards.

use std::time::Duration;

use iswitch::worker::protocol::Membership;
use iswitch::worker::session::JoinProgress;
use iswitch_protocol::wire::{ControlBody, Standing, Status};
use iswitch_protocol::{Instant, Round, history};
use iswitch_switch::{Config, Switch, Uplinks};
use serde::{Deserialize, Serialize};

use super::learner::Undecided;
use super::member::{FIRST_UDP_PORT, Return, quiet_time};
use super::{JOB, Scenario, Simulation, UPLINK};
use crate::addresses::{switch_address, worker_address};
use crate::checker::{Rule, Violation, mix, violated};
use crate::keys;
use crate::roaming::{Move, STANDBY};

/// Memory of the switch for sums, in bytes.
const MEMORY_BYTES: usize = 2 << 20;
/// Time that a training loop waits before it retries a refused Join.
const JOIN_PATIENCE: Duration = Duration::from_millis(20);

/// A disturbance of a running job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Upset {
    /// The switch, or the root of the tree, crashes and starts again at once.
    Restart,
    /// A switch below the root, or the standby switch, crashes and starts again at once.
    RestartRack(usize),
    /// A worker resets the job.
    Reset(usize),
    /// A worker process is killed.
    Crash {
        /// The worker.
        worker: usize,
        /// Delay until a new process replaces the killed one; `None` if no process replaces it.
        return_after: Option<Duration>,
        /// Whether the new process sends from a different UDP port than the killed one.
        new_port: bool,
    },
}

/// A planned upset, and the time since the start of the job at which it occurs.
pub type PlannedUpset = (Duration, Upset);

/// Creates the process for run number `run` of the switch with index `at`; the root has index 0.
pub(super) fn switch(seed: u64, run: u64, at: usize, scenario: &Scenario) -> Switch {
    let boot = match (at, run) {
        (0, 0) => seed + 1,
        (0, _) => mix(seed ^ run << 48),
        _ => mix(seed ^ run << 48 ^ (at as u64) << 32),
    };
    let parent =
        at.checked_sub(1).and_then(|rack| scenario.racks.get(rack)).map(|parent| switch_address(*parent));
    let config = Config {
        boot,
        lease_ms: scenario.lease_ms,
        memory_bytes: MEMORY_BYTES,
        uplinks: parent
            .and_then(|parent| Uplinks::new(&[parent], UPLINK, 1))
            .map(|uplinks| uplinks.with_host(scenario.names.of_switch(at))),
        group_delivery: true,
        work_per_turn: scenario.work_per_turn,
        ..Config::default()
    };
    Switch::with_keys(config, keys(boot, scenario.is_keyed))
}

/// Returns whether the member's first aggregate is the first aggregate of the job.
pub(super) fn begins_job(membership: &Membership) -> bool {
    membership.history == history::begin(membership.boot, JOB, membership.start)
}

impl Simulation<'_> {
    /// Returns the time of the next upset.
    pub(super) fn upset_deadline(&self) -> Option<Instant> {
        self.scenario.upsets.get(self.upsets).map(|(at, _)| self.begin.plus(*at))
    }

    /// Returns whether an event has occurred after which the switch may remove a live member.
    pub(super) fn is_disturbed(&self) -> bool {
        self.upsets > 0 || self.departures.expelled > 0 || self.scenario.standby.is_some()
    }

    /// Triggers all upsets that are due.
    pub(super) fn upset(&mut self) {
        while let Some((at, upset)) = self.scenario.upsets.get(self.upsets).copied()
            && self.begin.plus(at) <= self.now
        {
            self.upsets += 1;
            self.note(|| format!("{upset:?}"));
            match upset {
                Upset::Restart => self.restart(0),
                Upset::RestartRack(rack) => {
                    self.departures.rack_restarts += 1;
                    self.restart(rack);
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

    fn restart(&mut self, at: usize) {
        self.switches[at] = switch(self.seed, self.upsets as u64, at, self.scenario);
        self.censuses[at].restart();
    }

    /// Ends the process of a worker. Packets that it has sent stay in flight.
    fn end_process(&mut self, worker: usize, return_after: Option<Duration>, new_port: bool) {
        let (now, quiet) = (self.now, quiet_time(self.scenario));
        let acting = &mut self.workers[worker];
        acting.is_running = false;
        acting.inbox.clear();
        // A process that reuses the port starts when no packet sent from it can be in flight, as in TCP (RFC 9293
        // section 3.4.3).
        let delay = |after: Duration| if new_port { after } else { after.max(quiet) };
        acting.returns = return_after.map(|after| Return { at: now.plus(delay(after)), new_port });
        if let Some(number) = acting.committed.take() {
            self.undecided.push(Undecided { worker, number, epoch: acting.epoch });
        }
        self.ended.push(acting.report());
    }

    /// Starts the process that replaces one that has ended.
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
        self.note(|| format!("{worker} restarts at port {udp_port}"));
        self.flush_worker(worker);
    }

    /// Starts stopped workers at once: all of them if `all` is set, otherwise those whose start is scheduled for later.
    pub(super) fn start_stopped(&mut self, all: bool) {
        let now = self.now;
        for acting in self.workers.iter_mut().filter(|acting| !acting.is_running) {
            let is_soon = |returns: &Return| returns.at <= now.plus(JOIN_PATIENCE);
            let new_port = acting.returns.is_some_and(|returns| returns.new_port);
            if all || acting.returns.is_some_and(|returns| !is_soon(&returns)) {
                acting.returns = Some(Return { at: now.plus(JOIN_PATIENCE), new_port });
            }
        }
    }

    /// Returns whether the Join of a worker was refused because members that have ended keep their slots until their
    /// lease expires. If so, the worker's process ends, and a new process tries again.
    pub(super) fn is_turned_away(&mut self, worker: usize) -> Result<bool, Violation> {
        let JoinProgress::Refused(status, expected) = self.workers[worker].protocol.join_progress() else {
            return Ok(false);
        };
        if status != Status::JobFull || !self.is_disturbed() {
            let detail = format!(
                "the Join of worker {worker} was refused with status {} and expected value {expected}",
                status.name()
            );
            return violated(Rule::Refusal, detail);
        }
        self.note(|| format!("the Join of {worker} is refused because the job is full"));
        self.departures.turned_away += 1;
        self.note_submission(worker)?;
        self.end_process(worker, Some(JOIN_PATIENCE), false);
        Ok(true)
    }

    /// Checks whether a worker has entered another incarnation of the job. All workers that resume in that incarnation
    /// must have the same model.
    pub(super) fn note_admission(&mut self, worker: usize) -> Result<(), Violation> {
        let acting = &mut self.workers[worker];
        let Some(membership) = acting.protocol.membership().copied() else { return Ok(()) };
        if std::mem::replace(&mut acting.epoch, membership.boot) == membership.boot {
            return Ok(());
        }
        let has_initial_state =
            acting.updates == 0 && acting.awaits_state.is_none() && !acting.has_lacked_state;
        let is_first = has_initial_state && acting.next.is_none();
        acting.next = None;
        acting.is_ahead = false;
        if membership.standing != Standing::Resumed && !(has_initial_state && begins_job(&membership)) {
            if is_first {
                acting.awaits_state = Some(membership.start);
            }
            // Unless this is the first admission, the protocol reports the missed sums.
            return Ok(());
        }
        if acting.awaits_state.is_some() || acting.is_orphan {
            // The protocol must name the aggregate whose state the worker needs now; otherwise the worker never obtains
            // that state.
            return Ok(());
        }
        acting.next = Some(membership.start);
        let place = (membership.boot, membership.start.get());
        let model = self.resumed_models.entry(place).or_insert_with(|| acting.model.clone());
        if *model != acting.model {
            let detail = format!(
                "worker {worker} resumed at aggregate {} with a model that differs from that of another worker",
                membership.start
            );
            return violated(Rule::Agreement, detail);
        }
        Ok(())
    }

    /// Returns the model that workers of the current incarnation had before an aggregate.
    pub(super) fn model_before(&self, epoch: u64, next: Round) -> Option<Vec<f32>> {
        let applied = self.aggregates.get(&(epoch, next.previous().get()));
        let applied = applied.filter(|known| known.sum.is_some()).map(|known| &known.model);
        applied.or_else(|| self.resumed_models.get(&(epoch, next.get()))).cloned()
    }

    /// Moves a worker to the other switch if necessary.
    pub(super) fn roam(&mut self, worker: usize) -> Result<(), Violation> {
        let now = self.now;
        let acting = &mut self.workers[worker];
        let Some(roaming) = &mut acting.roaming else { return Ok(()) };
        let protocol = &mut acting.protocol;
        let (progress, rejoins) = (protocol.join_progress(), protocol.counters().rejoins);
        if progress == JoinProgress::Joined {
            roaming.arrived();
        }
        let Some(Move { leaves, instance }) = roaming.move_if_in_vain(now, progress, rejoins) else {
            return Ok(());
        };
        let farewell = leaves.then(|| {
            let mut bytes = Vec::new();
            let (class, _) = protocol.emit(0, ControlBody::Leave, &mut bytes);
            (class, bytes)
        });
        protocol.move_to(now, instance);
        let to = roaming.switch();
        let from = std::mem::replace(&mut acting.switch, to);
        let address = worker_address(worker, acting.udp_port);
        if let Some((class, bytes)) = farewell {
            self.send((address, from), (true, None), class, &bytes);
        }
        self.departures.moves += 1;
        self.note(|| format!("{worker} moves from switch {from} to switch {to}"));
        self.note_submission(worker)
    }

    /// Returns whether the link between a worker and a switch carries no packets at present.
    pub(super) fn is_cut(&self, worker: usize, switch: usize, goes_up: bool) -> bool {
        let elapsed = self.now.since(self.begin);
        let Some(standby) = self.scenario.standby.as_ref().filter(|_| !self.is_healed) else { return false };
        standby.cuts.iter().any(|cut| {
            let is_now = cut.at <= elapsed && elapsed < cut.at + cut.duration;
            let is_affected = if goes_up { cut.up } else { cut.down };
            is_now && is_affected && cut.switch == switch && cut.workers >> worker & 1 == 1
        })
    }

    /// Checks that two incarnations of the job never sum at the same time: after a worker has applied a sum of one
    /// incarnation, no worker applies a sum of an earlier one.
    pub(super) fn check_incarnation(&mut self, epoch: u64) -> Result<(), Violation> {
        if self.scenario.standby.is_none() || self.incarnations.last() == Some(&epoch) {
            return Ok(());
        }
        if self.incarnations.contains(&epoch) {
            let detail =
                format!("a sum from epoch {epoch:x} was applied after sums from {:x?}", self.incarnations);
            return violated(Rule::Agreement, detail);
        }
        self.incarnations.push(epoch);
        Ok(())
    }

    /// Returns whether all live workers are the members of one switch.
    pub(super) fn are_together(&self) -> bool {
        (0..=STANDBY).any(|at| {
            let here = self.workers.iter().enumerate().filter(|(_, worker)| worker.is_running);
            let mut here: Vec<_> =
                here.map(|(index, worker)| (worker.switch, worker_address(index, worker.udp_port))).collect();
            here.sort();
            here.iter().all(|(switch, _)| *switch == at)
                && here.iter().map(|(_, address)| address).eq(self.censuses[at].addresses())
        })
    }
}
