//! Aalo (Chowdhury and Stoica, 2015), which does not know the sizes of coflows: as a coflow sends more bytes, it moves
//! to queues of lower priority. Capacity that the flows of higher-priority queues cannot use is given to those of
//! lower-priority queues.

use super::by_key::sort;
use super::{Policy, Sharing};
use crate::simulation::{Stage, State};

/// Discretised coflow-aware least-attained service (D-CLAS): the number of bytes that a coflow has sent determines its
/// queue, and each queue is served first in, first out. Higher-priority queues have strict priority over lower-priority
/// ones, as in D-CLAS with all weight on the highest queue.
#[derive(Clone, Debug)]
pub struct Aalo {
    /// Limit of the first queue: the amount of data after which a coflow leaves the queue, in seconds at the full rate
    /// of a port.
    first: f64,
    /// Ratio of each queue's limit to that of the preceding queue.
    factor: f64,
}

/// Number of queues; the last one has no limit.
const QUEUES: i32 = 10;

impl Aalo {
    /// Creates the policy with the paper's limits: 10 MB for the first queue, and ten times the preceding queue's limit
    /// for each further queue. `capacity` is the capacity of a port, in bytes per second.
    pub fn new(capacity: f64) -> Self {
        Self { first: 10e6 / capacity, factor: 10.0 }
    }

    fn sent(stage: &Stage) -> f64 {
        stage.size * (1.0 - stage.left)
    }

    /// Returns the queue of a coflow whose bytes sent so far take `sent` seconds at full rate.
    fn queue(&self, sent: f64) -> i32 {
        (0..QUEUES - 1).find(|queue| sent < self.limit(*queue)).unwrap_or(QUEUES - 1)
    }

    fn limit(&self, queue: i32) -> f64 {
        self.first * self.factor.powi(queue)
    }
}

impl Policy for Aalo {
    fn prioritise(&mut self, state: &State<'_>, ready: &mut Vec<usize>) -> Sharing {
        let key = |number: &usize| {
            let stage = &state.stages[*number];
            (f64::from(self.queue(Self::sent(stage))), stage.ready.unwrap_or(state.time), *number)
        };
        let mut keyed: Vec<_> = ready.iter().map(key).collect();
        sort(&mut keyed);
        *ready = keyed.into_iter().map(|(_, _, number)| number).collect();
        Sharing::GreedyPerFlow
    }

    fn look_again(&mut self, state: &State<'_>, rates: &[(usize, f64)]) -> Option<f64> {
        let to_limit = |(number, rate): &(usize, f64)| {
            let stage = &state.stages[*number];
            let sent = Self::sent(stage);
            let queue = self.queue(sent);
            // The margin ensures that the coflow leaves its queue despite rounding. It is relative to the limit or, if
            // the coflow is so large that such a margin would be lost to rounding, to the size of the coflow.
            let beyond = (1e-9 * self.limit(queue)).max(4.0 * f64::EPSILON * stage.size);
            (queue < QUEUES - 1).then(|| (self.limit(queue) + beyond - sent) / (rate * stage.size))
        };
        rates.iter().filter_map(to_limit).min_by(f64::total_cmp)
    }
}
