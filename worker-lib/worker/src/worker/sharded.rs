//! Aggregation of one vector over several switches, each of which sums a part of it.
//!
//! Several `iswitchd` processes on several machines share the load without knowing about each other: every worker sends
//! the first part of its vector to the first switch, the second part to the second, and so on. Within one machine, the
//! threads of one `iswitchd` do the same for every [`Worker`].

use std::net::SocketAddrV4;

use iswitch_protocol::ElementTypes;
use iswitch_protocol::limits::MAX_PARTS;

use super::join::{JoinError, JoinOptions};
use super::udp::Worker;
use crate::aggregate::{AggregateError, AggregatorStats, GradientAggregator, Round};

/// A worker of one job at several switches.
///
/// The worker behaves like a [`Worker`] whose switch has as many threads as there are switches: a round is finished
/// when each switch has summed its part, and after an error, all parts continue with the same vector.
///
/// ```no_run
/// use iswitch::{GradientAggregator, JoinOptions, ShardedWorker};
///
/// let switches = ["10.9.0.254:7711".parse()?, "10.9.0.253:7711".parse()?];
/// let options = JoinOptions::new(switches[0], 4, 1_687_206);
/// let mut worker = ShardedWorker::join(&options, &switches)?;
/// let round = worker.all_reduce(&mut vec![0.0; 1_687_206])?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ShardedWorker {
    worker: Worker,
}

impl ShardedWorker {
    /// Joins the job at each of the switches, as [`Worker::join`] does at one. All workers must name the switches in
    /// the same order. If there are more switches than segments, the remaining switches are not used. The options
    /// `switch`, `standbys` and `shares_state` are ignored.
    ///
    /// # Errors
    /// Returns the errors of [`Worker::join`], [`JoinError::NoSwitch`] if `switches` is empty, and
    /// [`JoinError::TooManySwitches`] if there are more than 16 switches.
    pub fn join(options: &JoinOptions, switches: &[SocketAddrV4]) -> Result<Self, JoinError> {
        let options = JoinOptions { shares_state: false, standbys: Vec::new(), ..options.clone() };
        match switches.len() {
            0 => Err(JoinError::NoSwitch),
            count if count > MAX_PARTS => Err(JoinError::TooManySwitches { count }),
            _ => Ok(Self { worker: Worker::join_at(&options, switches)? }),
        }
    }

    /// Leaves the job at each switch.
    pub fn leave(self) -> Result<(), AggregateError> {
        self.worker.leave()
    }
}

impl GradientAggregator for ShardedWorker {
    fn name(&self) -> &'static str {
        "switches"
    }

    fn gradient_len(&self) -> usize {
        self.worker.gradient_len()
    }

    fn element_types(&self) -> ElementTypes {
        self.worker.element_types()
    }

    fn reduce(&mut self, contribution: &[f32]) -> Result<(Round, &[f32]), AggregateError> {
        self.worker.reduce(contribution)
    }

    fn all_reduce(&mut self, vector: &mut [f32]) -> Result<Round, AggregateError> {
        self.worker.all_reduce(vector)
    }

    fn all_reduce_mean(&mut self, vector: &mut [f32]) -> Result<Round, AggregateError> {
        self.worker.all_reduce_mean(vector)
    }

    fn stats(&self) -> AggregatorStats {
        self.worker.stats()
    }
}
