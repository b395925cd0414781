//! Names in simulated jobs: the workers and switches that state names, which must not change any sum.

use iswitch_protocol::Label;
use iswitch_protocol::wire::NameRepr;
use serde::{Deserialize, Serialize};

use crate::checker::mix;
use crate::swarm::Draw;

/// Workers that state their names, as a bit mask. Switches below the root state theirs if any worker does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Names(pub u64);

/// Salt that is combined with the seed to draw the names, so that this choice does not change the other random numbers
/// of a scenario.
const SALT: u64 = 0x6e61_6d65_7321_2121;

impl Names {
    /// All workers state their names.
    pub const ALL: Self = Self(u64::MAX);

    /// Draws the workers with names for a seed: none for half of the seeds.
    pub fn draw(seed: u64) -> Self {
        let mut draw = Draw::new(mix(seed ^ SALT));
        Self(if draw.chance(0.5) { 0 } else { draw.bits() })
    }

    /// Returns the names that a worker states.
    pub(crate) fn of_worker(self, worker: usize) -> NameRepr {
        if self.0 >> worker & 1 == 0 {
            return NameRepr::UNKNOWN;
        }
        // Some workers disagree about the name of the job.
        let job = if worker % 5 == 4 { "other" } else { "simulation" };
        NameRepr {
            job: job.parse().expect("the name must be short"),
            host: format!("host{worker}").parse().expect("the name must be short"),
            rank: Some(worker as u16),
            ..NameRepr::UNKNOWN
        }
    }

    /// Returns the host name that a switch states to its parent; empty if it states none.
    pub(crate) fn of_switch<const N: usize>(self, switch: usize) -> Label<N> {
        if self.0 == 0 { Label::EMPTY } else { Label::lossy(&format!("rack{switch}")) }
    }
}
