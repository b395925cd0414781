//! Group delivery in simulated jobs: the workers that declare that they can receive from a group, and the workers that
//! a group does not reach.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::checker::mix;
use crate::swarm::Draw;

/// Reachability of workers through the groups of their switch, as bit masks of workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Groups {
    /// Workers that declare that they can receive results through a group.
    pub able: u64,
    /// Workers that no packet to a group ever reaches.
    pub deaf: u64,
    /// Workers that no packet to a group reaches from `fades_at` on.
    pub fading: u64,
    /// Time, from the start, after which groups no longer reach the workers in `fading`.
    pub fades_at: Duration,
    /// Probability that a single worker misses a group packet that reaches the other workers; it applies until the
    /// faults end.
    pub loss: f64,
}

/// Salt that is combined with the seed to draw the groups, so that this choice does not change the other random numbers
/// of a scenario.
const SALT: u64 = 0x6772_6f75_7073_2121;

impl Groups {
    /// All workers declare that they can receive from groups, and the groups reach all of them.
    pub const ALL: Self = Self { able: u64::MAX, deaf: 0, fading: 0, fades_at: Duration::ZERO, loss: 0.0 };

    /// Draws the groups for a seed: none for half of the seeds.
    pub fn draw(seed: u64, duration: Duration) -> Self {
        let mut draw = Draw::new(mix(seed ^ SALT));
        if draw.chance(0.5) {
            return Self::default();
        }
        let mask = |draw: &mut Draw, probability| if draw.chance(probability) { draw.bits() } else { 0 };
        Self {
            able: u64::MAX ^ mask(&mut draw, 0.3),
            deaf: mask(&mut draw, 0.3),
            fading: mask(&mut draw, 0.4),
            fades_at: draw.moment(duration),
            loss: if draw.chance(0.4) { draw.scale(1e-2, 0.5) } else { 0.0 },
        }
    }

    /// Returns whether a worker declares that it can receive from a group.
    pub(crate) fn can_hear(&self, worker: usize) -> bool {
        self.able >> worker & 1 == 1
    }

    /// Returns whether packets to a group reach a worker at the time `elapsed` after the start.
    pub(crate) fn reach(&self, worker: usize, elapsed: Duration) -> bool {
        let fading = if elapsed >= self.fades_at { self.fading } else { 0 };
        (self.deaf | fading) >> worker & 1 == 0
    }
}
