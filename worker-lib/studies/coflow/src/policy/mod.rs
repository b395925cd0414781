//! Policies that schedule coflows.

mod aalo;
mod by_key;
pub mod external;
mod primal_dual;
mod shafiee_ghaderi;
mod spec;

pub use aalo::Aalo;
pub use by_key::{ByKey, Key};
pub(super) use by_key::{Needs, job_need, sort};
pub use primal_dual::{Bssi, JobBssi, bssi_order};
pub use shafiee_ghaderi::ShafieeGhaderi;
pub use spec::PolicySpec;

use super::simulation::State;
use iswitch_study::StudyError;

/// Rule by which coflows share the fabric. Under [`Rates::Blocking`](crate::simulation::Rates), the first three rules
/// have the same effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumIter)]
#[strum(serialize_all = "kebab-case")]
pub enum Sharing {
    /// For each coflow in turn, computes the earliest time at which it can end, given the capacity that the preceding
    /// coflows leave, and gives its flows the lowest rates at which all of them end at that time (MADD). Then gives the
    /// flows, in the same order, the capacity that is left at both of their ports (backfilling). This is the allocation
    /// of Varys (Chowdhury, Zhong, Stoica 2014, section 5.3).
    Madd,
    /// Gives the flows of each coflow in turn all the capacity that the preceding coflows leave free. Flows of the same
    /// coflow share a busy port in proportion to their remaining bytes. This is an order-preserving greedy allocation,
    /// as Sincronia requires (Agarwal et al. 2018).
    Greedy,
    /// Same as [`Self::Greedy`], except that the flows of a coflow have max-min fair rates, which do not depend on
    /// their remaining bytes (Aalo; Chowdhury, Stoica 2015, section 4.2).
    GreedyPerFlow,
    /// Gives all flows max-min fair rates, regardless of the coflows to which they belong. Under `Blocking`, each
    /// coflow gets an equal share of each of its ports, and its rate is its share of its most congested port.
    Equal,
}

/// Policy that orders coflows whenever a coflow becomes ready or ends.
pub trait Policy: Send {
    /// Sorts `ready`, the coflows that are ready and not fully sent, highest priority first. Returns the rule by which
    /// they share the fabric.
    fn prioritise(&mut self, state: &State<'_>, ready: &mut Vec<usize>) -> Sharing;

    /// Returns the number of seconds after which the policy must be consulted again even if no coflow has become ready
    /// or ended by then; `rates` are the current rates of the coflows. Returns `None` if the policy need not be
    /// consulted before such an event.
    fn look_again(&mut self, _state: &State<'_>, _rates: &[(usize, f64)]) -> Option<f64> {
        None
    }

    /// Returns the error that prevented the latest call of [`Self::prioritise`] from ordering the coflows; the run
    /// then fails with this error. Returns `None` for a policy that never fails.
    fn failure(&mut self) -> Option<StudyError> {
        None
    }
}
