//! Turns of simulated switches. In some scenarios they are short, so that the work of a packet is not finished when the
//! next packet arrives, as with long vectors in operation.

use std::time::Duration;

use iswitch_protocol::limits::MAX_WORK_COST;

use crate::checker::mix;
use crate::swarm::Draw;

/// Separates this draw from the others of a scenario, which thus stay the same.
const SALT: u64 = 0x7475_726e_7475_726e;
/// Maximum cost of a short turn. It is enough for a few segments.
const MAX_SHORT_WORK_COST: usize = 100;
/// Time that a short turn takes; packets that arrive meanwhile precede the next turn.
const SHORT_TURN: Duration = Duration::from_micros(50);

/// Returns the cost of the queued work of one turn for a seed: a short turn for half of the seeds.
pub(crate) fn draw(seed: u64) -> u32 {
    let mut draw = Draw::new(mix(seed ^ SALT));
    if draw.chance(0.5) { draw.among(1..=MAX_SHORT_WORK_COST) as u32 } else { MAX_WORK_COST }
}

/// Returns the cost of a turn of a switch in operation.
pub(crate) fn long() -> u32 {
    MAX_WORK_COST
}

/// Returns the time that a turn takes: none, unless turns are short.
pub(crate) fn duration(work_per_turn: u32) -> Duration {
    if work_per_turn < MAX_WORK_COST { SHORT_TURN } else { Duration::ZERO }
}
