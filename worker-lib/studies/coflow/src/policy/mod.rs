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

/// Rule by which coflows share the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Each coflow gets the bandwidth that the coflows before it leave free.
    InOrder,
    /// All coflows at a port get equal shares of it.
    Equal,
}

/// Policy that orders coflows whenever a coflow becomes ready or ends.
pub trait Policy {
    /// Sorts the coflows that are ready and not fully sent, highest priority first.
    fn prioritise(&mut self, state: &State<'_>, ready: &mut Vec<usize>) -> Sharing;

    /// Returns the number of seconds after which the policy must be asked again if the coflows continue at these rates,
    /// even if no coflow becomes ready or ends before. Returns `None` if this is not necessary.
    fn look_again(&mut self, _state: &State<'_>, _rates: &[(usize, f64)]) -> Option<f64> {
        None
    }
}
