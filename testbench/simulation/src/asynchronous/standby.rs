//! Scenarios of asynchronous simulations with a standby switch: periods during which links to either switch are cut.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Scenario;
use super::upsets::Upset;
use crate::checker::mix;
use crate::roaming::STANDBY;
use crate::swarm::Draw;

/// Salt that is combined with the seed to draw the settings of the standby switch.
const SALT: u64 = 0x7374_616e_6462_7921;

/// The second switch of the workers.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Standby {
    /// Time for which a switch may be silent before a worker moves to the other one.
    pub silence: Duration,
    /// Periods during which links carry no packets.
    pub cuts: Vec<Cut>,
}

/// A period during which the links between some of the workers and one switch carry no packets.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Cut {
    /// Start of the cut, measured from the start of the job.
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

impl Scenario {
    /// Draws a random scenario, derived from `seed`, in which the workers have a standby switch.
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
