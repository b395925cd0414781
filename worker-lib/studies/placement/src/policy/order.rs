//! Orders of the queue.

use crate::state::State;

/// What decides who is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Arrival: first in, first out. A job that was stopped keeps its place.
    Arrival,
    /// GPU-seconds that it asks for, the most first (LPT); what is done of it does not count.
    LongestFirst,
}

impl Order {
    /// Puts a queue that is in the order of arrival in this one.
    pub(super) fn sort(self, state: &State<'_>, queue: &mut [usize]) {
        match self {
            Self::Arrival => {}
            Self::LongestFirst => {
                queue.sort_by(|a, b| state.job(*b).gpu_seconds().total_cmp(&state.job(*a).gpu_seconds()));
            }
        }
    }
}
