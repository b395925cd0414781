//! Who decides over which link a packet goes.

mod colouring;
mod greedy;
mod heuristics;
mod maxweight;
mod spec;

pub use colouring::Colouring;
pub use greedy::{Greedy, Lane};
pub use heuristics::{Drill, JoinShortestQueue, PowerOfTwo, Random, Spray};
pub use maxweight::MaxWeight;
pub use spec::{Fill, PolicySpec};

use super::network::{Decision, Decisions, Queues, Routing};

/// Routes the packets of a network, slot by slot.
pub trait Policy {
    /// Gives links to the packets in `queues`, as they are after the arrivals of a slot. `routing` is idle before, and
    /// [`Routing::check`] holds after.
    fn route(&mut self, queues: &Queues, routing: &mut Routing);
}

/// Gives each packet the idle link that `choose` names by its position.
fn decide(
    decisions: &mut Decisions,
    queues: &Queues,
    routing: &mut Routing,
    mut choose: impl FnMut(Decision, &[u16]) -> usize,
) {
    decisions.restart();
    while let Some(decision) = decisions.next(queues) {
        let position = choose(decision, decisions.idle());
        routing.set(decision.over(decisions.take(position)));
    }
}
