//! How a worker chooses among its switches, with the same logic as the driver of the real worker.

use std::time::Duration;

use iswitch::worker::failover::{Itinerary, Visit};
use iswitch::worker::session::JoinProgress;
use iswitch_protocol::Instant;

use crate::addresses::{switch_address, switch_at};
use crate::checker::mix;

/// Index of the standby switch. The other switch has the index 0.
pub(crate) const STANDBY: usize = 1;

/// State of a worker that can move to another switch.
#[derive(Clone, Debug)]
pub(crate) struct Roaming {
    itinerary: Itinerary,
    visit: Visit,
    last_heard: Instant,
    /// Number that determines the instances of the process.
    instance: u32,
}

/// Move of a worker to the next switch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    /// Whether the worker sends a Leave to the previous switch.
    pub(crate) leaves: bool,
    /// Instance number with which the worker joins at the next switch.
    pub(crate) instance: u32,
}

impl Roaming {
    /// Begins at the first switch. `silence` is the time for which a switch may be silent.
    pub(crate) fn new(silence: Duration, instance: u32, now: Instant) -> Self {
        Self {
            itinerary: Itinerary::new(switch_address(0), &[switch_address(STANDBY)], silence),
            visit: Visit::begin(now, 0),
            last_heard: now,
            instance,
        }
    }

    /// Returns the index of the switch that the worker uses.
    pub(crate) fn switch(&self) -> usize {
        switch_at(self.itinerary.switch())
    }

    /// Records that a packet from the switch has arrived, or that the worker begins to expect one.
    pub(crate) fn hear(&mut self, now: Instant) {
        self.last_heard = now;
    }

    /// Records that the worker is a member of a complete job.
    pub(crate) fn arrived(&mut self) {
        self.itinerary.arrived();
    }

    /// Moves to the other switch if the current one is silent or the job does not become complete there. `rejoins` is
    /// the number of readmissions so far.
    pub(crate) fn move_if_in_vain(
        &mut self,
        now: Instant,
        progress: JoinProgress,
        rejoins: u64,
    ) -> Option<Move> {
        let patience = self.itinerary.patience()?;
        if !self.visit.is_over(now, progress, self.last_heard, patience) {
            return None;
        }
        let leaves = self.visit.ends_with_leave(progress, rejoins);
        self.itinerary.advance();
        self.instance = mix(u64::from(self.instance) << 1) as u32;
        self.visit = Visit::begin(now, rejoins);
        Some(Move { leaves, instance: self.instance })
    }
}
