//! Policies that schedule coflows.

mod aalo;
mod by_key;
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

/// Rule by which coflows share the fabric. Under [`Rates::Blocking`](crate::simulation::Rates), the first three are the
/// same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumIter)]
#[strum(serialize_all = "kebab-case")]
pub enum Sharing {
    /// Each coflow, in order, gets the lowest rates at which all its flows end together, as early as the preceding
    /// coflows allow (MADD). Then the flows get the capacity that is left at both of their ports, again in order
    /// (backfilling). This is the allocation of Varys (Chowdhury, Zhong, Stoica 2014, section 5.3).
    Madd,
    /// The flows of each coflow, in order, get all the capacity that the preceding coflows leave free. Flows of a
    /// coflow share a busy port in proportion to their remaining bytes. This is an order-preserving greedy allocation,
    /// as Sincronia requires (Agarwal et al. 2018).
    Greedy,
    /// Same as [`Self::Greedy`], but flows of a coflow have max-min fair rates, which do not depend on their bytes
    /// (Aalo; Chowdhury, Stoica 2015, section 4.2).
    GreedyPerFlow,
    /// All flows have max-min fair rates, regardless of their coflow. Under `Blocking`, all coflows at a port get equal
    /// shares of it, and the rate of a coflow is its share of its most congested port.
    Equal,
}

/// Policy that orders coflows whenever a coflow becomes ready or ends.
pub trait Policy: Send {
    /// Sorts the coflows that are ready and not fully sent, highest priority first.
    fn prioritise(&mut self, state: &State<'_>, ready: &mut Vec<usize>) -> Sharing;

    /// Returns the number of seconds after which the policy must be consulted again if the coflows continue at these
    /// rates, even if no coflow becomes ready or ends earlier. Returns `None` if this is not necessary.
    fn look_again(&mut self, _state: &State<'_>, _rates: &[(usize, f64)]) -> Option<f64> {
        None
    }
}
