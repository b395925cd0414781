//! A standby switch in asynchronous simulations: the links to both switches that are cut, and the workers that move
//! from one switch to the other.

use std::time::Duration;

use iswitch::worker::asynchronous::AsyncProtocol;
use iswitch::worker::failover::{Itinerary, Visit};
use iswitch::worker::session::JoinProgress;
use iswitch_protocol::wire::{Class, ControlBody};
use iswitch_switch::Instant;
use serde::{Deserialize, Serialize};

use super::Scenario;
use super::upsets::Upset;
use crate::addresses::{switch_address, switch_at};
use crate::checker::mix;
use crate::swarm::Draw;

/// Index of the standby switch. The other switch has the index 0.
pub(super) const STANDBY: usize = 1;
/// Salt that is combined with the seed to draw what concerns the standby switch.
const SALT: u64 = 0x7374_616e_6462_7921;

/// The second switch of the workers.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Standby {
    /// Time for which a switch may be silent before a worker moves to the other one.
    pub silence: Duration,
    /// Times at which links carry no packets.
    pub cuts: Vec<Cut>,
}

/// A time at which the links between some of the workers and one switch carry no packets.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Cut {
    /// Begin of the cut, from the start of the job.
    pub at: Duration,
    /// Length of the cut.
    pub duration: Duration,
    /// Index of the switch, 0 or 1.
    pub switch: usize,
    /// Bit mask of the affected workers.
    pub workers: u64,
    /// Whether the direction towards the switch is affected.
    pub up: bool,
    /// Whether the direction towards the workers is affected.
    pub down: bool,
}

/// State of a worker that can move to the other switch. It corresponds to that of the driver of the real worker.
#[derive(Clone, Debug)]
pub(super) struct Roaming {
    itinerary: Itinerary,
    visit: Visit,
    pub(super) last_heard: Instant,
    /// Number of readmissions before the visit.
    rejoins_before_visit: u64,
    /// Number that determines the instances of the process.
    instance: u32,
}

impl Roaming {
    pub(super) fn new(standby: &Standby, instance: u32, now: Instant) -> Self {
        Self {
            itinerary: Itinerary::new(switch_address(0), &[switch_address(STANDBY)], standby.silence),
            visit: Visit::begin(now),
            last_heard: now,
            rejoins_before_visit: 0,
            instance,
        }
    }

    /// Returns the index of the switch that the worker uses.
    pub(super) fn switch(&self) -> usize {
        switch_at(self.itinerary.switch())
    }

    /// Moves to the other switch if the current one is silent or the job does not become complete there. Returns the
    /// Leave for the previous switch, if the worker leaves it.
    pub(super) fn move_if_in_vain(
        &mut self,
        protocol: &mut AsyncProtocol,
        now: Instant,
    ) -> Option<(Class, Vec<u8>)> {
        let (progress, rejoins) = (protocol.join_progress(), protocol.counters().rejoins);
        if progress == JoinProgress::Joined {
            self.itinerary.arrived();
        }
        let patience = self.itinerary.patience()?;
        if !self.visit.is_over(now, progress, self.last_heard, patience) {
            return None;
        }
        let mut farewell = None;
        if matches!(progress, JoinProgress::Waiting(_)) && self.rejoins_before_visit == rejoins {
            let mut bytes = Vec::new();
            let (class, _) = protocol.emit(0, ControlBody::Leave, &mut bytes);
            farewell = Some((class, bytes));
        }
        self.rejoins_before_visit = rejoins;
        self.itinerary.advance();
        self.instance = mix(u64::from(self.instance) << 1) as u32;
        protocol.move_to(now, self.instance);
        self.visit = Visit::begin(now);
        farewell
    }
}

impl Scenario {
    /// Draws a scenario in which the workers have a standby switch; `seed` determines it.
    pub fn draw_with_standby(seed: u64) -> Self {
        let mut draw = Draw::new(mix(seed ^ SALT));
        let drawn = Self::draw(seed);
        // A worker that waits for results asks the switch for them every quarter of a second.
        let silence = draw.time(300_000..=1_000_000);
        let duration = silence * draw.among(2..=8) as u32;
        let micros = duration.as_micros() as u64;
        let mut scenario = Self {
            duration,
            is_declared: true,
            lease_ms: draw.time(50_000..=2_000_000).as_millis() as u32,
            racks: Vec::new(),
            places: Vec::new(),
            work_per_turn: crate::turns::long(),
            ..drawn
        };
        for pace in &mut scenario.workers {
            pace.compute = pace.compute.max(duration / 200);
        }
        scenario.upsets.retain(|(_, upset)| !matches!(upset, Upset::RestartRack(_)));
        for (at, upset) in &mut scenario.upsets {
            *at = draw.moment(duration);
            if *upset == Upset::Restart && draw.chance(0.4) {
                *upset = Upset::RestartRack(STANDBY);
            }
        }
        scenario.upsets.sort_by_key(|(at, _)| *at);
        let cut = |draw: &mut Draw| {
            let workers = match draw.among(0..=2) {
                0 => 1 << draw.among(0..=scenario.workers.len() - 1),
                1 => draw.bits(),
                _ => u64::MAX,
            };
            let up = draw.chance(0.7);
            Cut {
                at: draw.moment(duration),
                duration: draw.time(1_000..=micros),
                switch: usize::from(draw.chance(0.4)),
                workers,
                up,
                down: !up || draw.chance(0.7),
            }
        };
        let cuts = (0..draw.among(1..=5)).map(|_| cut(&mut draw)).collect();
        Self { standby: Some(Standby { silence, cuts }), ..scenario }
    }
}
