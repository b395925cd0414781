//! Who is sent first.

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

/// How the fabric is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Each coflow gets what those before it leave.
    InOrder,
    /// Coflows at a port have equal shares of it.
    Equal,
}

/// Decides about priorities whenever a coflow becomes ready or ends.
pub trait Policy {
    /// Puts the coflows that are ready and not yet sent in order, the most important first.
    fn prioritise(&mut self, state: &State<'_>, ready: &mut Vec<usize>) -> Sharing;

    /// Seconds from now at which it wants to decide again even if nothing happens until then, with these rates.
    fn look_again(&mut self, _state: &State<'_>, _rates: &[(usize, f64)]) -> Option<f64> {
        None
    }
}
