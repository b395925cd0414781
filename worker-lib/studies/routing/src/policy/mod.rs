//! Routing policies, which assign packets to links.

mod colouring;
pub mod external;
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
use iswitch_study::StudyError;

/// Policy that routes the packets of a network, slot by slot.
pub trait Policy: Send {
    /// Assigns links to the packets in `queues`, which are the queues after the arrivals of a slot. All links of
    /// `routing` must be idle before the call, and the result must pass [`Routing::check`].
    fn route(&mut self, queues: &Queues, routing: &mut Routing);

    /// Returns the error that prevented the latest call of [`Self::route`] from routing the packets; the run then
    /// fails with this error. Returns `None` for a policy that never fails.
    fn failure(&mut self) -> Option<StudyError> {
        None
    }
}

/// Calls `choose` for each packet that needs a link, and assigns the idle link at the returned position to it.
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
