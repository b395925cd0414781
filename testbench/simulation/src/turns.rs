//! Turns of simulated switches. In some scenarios, turns are short, so the work of one packet may be unfinished when
//! the next packet arrives. With long vectors, the same happens in a real switch.

use std::time::Duration;

use iswitch_protocol::limits::MAX_WORK_COST;

use crate::checker::mix;
use crate::swarm::Draw;

/// Salt that is combined with the seed to draw the turns, so that this choice does not change the other random numbers
/// of a scenario.
const SALT: u64 = 0x7475_726e_7475_726e;
/// Maximum cost of the work in a short turn, which suffices for a few segments.
const MAX_SHORT_WORK_COST: usize = 100;
/// Time that a short turn takes. Packets that arrive in that time are handled before the next turn.
const SHORT_TURN: Duration = Duration::from_micros(50);

/// Draws, for a seed, the maximum cost of the queued work in one turn. For half of the seeds, turns are short.
pub(crate) fn draw(seed: u64) -> u32 {
    let mut draw = Draw::new(mix(seed ^ SALT));
    if draw.chance(0.5) { draw.among(1..=MAX_SHORT_WORK_COST) as u32 } else { MAX_WORK_COST }
}

/// Returns the maximum cost of the work in one turn of a real switch.
pub(crate) fn long() -> u32 {
    MAX_WORK_COST
}

/// Returns the time that a turn takes, which is zero unless turns are short.
pub(crate) fn duration(work_per_turn: u32) -> Duration {
    if work_per_turn < MAX_WORK_COST { SHORT_TURN } else { Duration::ZERO }
}
