//! What makes all workers join again: a switch that crashes and starts anew, and Resets. What they then have in common.

use std::time::Duration;

use iswitch_protocol::wire::{ControlBody, Standing};
use iswitch_protocol::{Round, history};
use iswitch_switch::Switch;
use serde::{Deserialize, Serialize};

use super::{JOB, Simulation, config};
use crate::checker::{Rule, Violation, mix, violated};
use crate::keys;

/// What happens in the middle of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Upset {
    /// The switch crashes and starts again at once.
    Restart,
    /// A worker resets the job.
    Reset(usize),
}

/// A time since the start of the job, and what happens then.
pub type PlannedUpset = (Duration, Upset);

/// A switch as the run of that number has it.
pub(super) fn switch(seed: u64, run: u64, is_keyed: bool) -> Switch {
    let boot = if run == 0 { seed + 1 } else { mix(seed ^ run << 48) };
    Switch::with_keys(config(boot), keys(boot, is_keyed))
}

impl Simulation<'_> {
    /// When the next upset is due.
    pub(super) fn upset_deadline(&self) -> Option<iswitch_protocol::Instant> {
        self.scenario.upsets.get(self.upsets).map(|(at, _)| self.begin.plus(*at))
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
                    self.switch = switch(self.seed, self.upsets as u64, self.scenario.is_keyed);
                }
                Upset::Reset(worker) => {
                    self.workers[worker].protocol.order(self.now, ControlBody::RESET);
                    self.flush_worker(worker);
                }
            }
        }
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
        let begins = membership.history == history::begin(membership.boot, JOB, membership.start);
        acting.next = None;
        if membership.standing != Standing::Resumed && !(is_first && begins) {
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
