//! Aalo (Chowdhury and Stoica, 2015): coflows whose sizes nobody knows go to lower queues the more they have sent.

use super::by_key::sort;
use super::{Policy, Sharing};
use crate::simulation::{Stage, State};

/// Discretised coflow-aware least-attained service: queues by what has been sent, each first in, first out. Higher
/// queues come strictly before lower ones, which is D-CLAS with all weight on the highest.
#[derive(Clone, Debug)]
pub struct Aalo {
    /// What a coflow may send in the first queue, in seconds of full rate.
    first: f64,
    /// Each queue's limit over the one before.
    factor: f64,
}

/// Queues beyond this one are one.
const QUEUES: i32 = 10;

impl Aalo {
    /// With the paper's limits: 10 MB, ten times more in each queue; `capacity` is a port's, bytes a second.
    pub fn new(capacity: f64) -> Self {
        Self { first: 10e6 / capacity, factor: 10.0 }
    }

    fn sent(stage: &Stage) -> f64 {
        stage.size * (1.0 - stage.left)
    }

    /// The queue of what has sent so much.
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
        Sharing::InOrder
    }

    fn look_again(&mut self, state: &State<'_>, rates: &[(usize, f64)]) -> Option<f64> {
        let to_limit = |(number, rate): &(usize, f64)| {
            let stage = &state.stages[*number];
            let sent = Self::sent(stage);
            let queue = self.queue(sent);
            // A little beyond it, or rounding would leave the coflow in the queue that it should leave: of the limit,
            // or where the coflow is so large that this is nothing, of what is left of it.
            let beyond = (1e-9 * self.limit(queue)).max(4.0 * f64::EPSILON * stage.size);
            (queue < QUEUES - 1).then(|| (self.limit(queue) + beyond - sent) / (rate * stage.size))
        };
        rates.iter().filter_map(to_limit).min_by(f64::total_cmp)
    }
}
