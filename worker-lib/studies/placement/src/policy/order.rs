//! Orders in which jobs wait in the queue.

use crate::state::State;

/// Order of the jobs in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumIter)]
#[strum(serialize_all = "kebab-case")]
pub enum Order {
    /// Order of arrival: first in, first out. A stopped job keeps its original position.
    Arrival,
    /// Most requested GPU-seconds first (longest processing time, LPT); completed work is not subtracted.
    LongestFirst,
}

impl Order {
    /// Sorts a queue that is in order of arrival into this order.
    pub(crate) fn sort(self, state: &State<'_>, queue: &mut [usize]) {
        match self {
            Self::Arrival => {}
            Self::LongestFirst => {
                queue.sort_by(|a, b| state.job(*b).gpu_seconds().total_cmp(&state.job(*a).gpu_seconds()));
            }
        }
    }
}
