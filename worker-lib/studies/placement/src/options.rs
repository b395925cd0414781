//! What failures cost, and who may go first.

use super::failure::YEAR;
use iswitch_study::StudyError;
use iswitch_study::error::{above_zero, at_least_zero, check_range};

const HOUR: f64 = 3600.0;
const DAY: f64 = 24.0 * HOUR;
/// Longest horizon, in seconds: 100 years.
pub const HORIZON_MAX_S: f64 = 100.0 * YEAR;

/// When jobs save their state. Times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Checkpoint {
    /// Never: a failure loses all work since the job's first start.
    None,
    /// After each `interval` of work, which then stands still for `cost`.
    Periodic {
        /// Work between two checkpoints.
        interval: f64,
        /// What writing one takes.
        cost: f64,
    },
    /// The same with the interval that is best to first order: sqrt(2 cost / rate), where `rate` is the sum of the
    /// estimated failure rates of the GPUs that the job runs on (Young, CACM 17(9), 1974; Daly, FGCS 22(3), 2006).
    YoungDaly {
        /// What writing one takes; above 0.
        cost: f64,
    },
}

impl Checkpoint {
    /// `(interval, cost)` of a job on GPUs with such a sum of failure rates (1/s). The interval may be infinite.
    pub fn interval(self, rate: f64) -> (f64, f64) {
        match self {
            Self::None => (f64::INFINITY, 0.0),
            Self::Periodic { interval, cost } => (interval, cost),
            Self::YoungDaly { cost } => ((2.0 * cost / rate).sqrt(), cost),
        }
    }
}

/// What waits while a job of the queue finds no GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queueing {
    /// All after it: the head of the line blocks.
    Strict,
    /// Nothing: any job that fits starts. A large one may wait for ever.
    FirstFit,
    /// EASY (Lifka 1995; Mu'alem and Feitelson 2001): the first job that does not fit is promised the earliest time
    /// at which enough GPUs will be free if nothing else fails; others start only if they do not delay it.
    Easy,
}

/// Where a job goes on after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterFailure {
    /// In the queue: it lets go of its GPUs and is placed again.
    PlaceAgain,
    /// On the same GPUs, which it keeps until the failed one is repaired.
    WaitForRepair,
}

/// The rules of a simulation. Times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// What a job takes to start at every time but its first: it is loaded before it works. A failure in this time
    /// stops it again.
    pub restart: f64,
    /// What a GPU takes to be repaired; not of failures that are read from a file, which say when they end.
    pub repair: f64,
    /// When jobs save their state.
    pub checkpoint: Checkpoint,
    /// What waits while a job finds no GPUs.
    pub queueing: Queueing,
    /// Where a job goes on after a failure.
    pub after_failure: AfterFailure,
    /// How many times as long a job takes on more nodes than it needs to be on; 1 for no difference.
    pub spread_slowdown: f64,
    /// How long after the last arrival the simulation ends, whatever still runs: with frequent failures and no
    /// checkpoints some jobs would not end in a lifetime.
    pub horizon: f64,
}

impl Default for Options {
    /// Ten minutes to restart, an hour to repair, no checkpoints, strict order, 400 days.
    fn default() -> Self {
        Self {
            restart: HOUR / 6.0,
            repair: HOUR,
            checkpoint: Checkpoint::None,
            queueing: Queueing::Strict,
            after_failure: AfterFailure::PlaceAgain,
            spread_slowdown: 1.0,
            horizon: 400.0 * DAY,
        }
    }
}

impl Options {
    /// Refuses what cannot be.
    ///
    /// # Errors
    /// The first option that is out of range.
    pub fn check(&self) -> Result<(), StudyError> {
        at_least_zero("restart", self.restart, "seconds")?;
        at_least_zero("repair", self.repair, "seconds")?;
        above_zero("horizon", self.horizon, "seconds")?;
        check_range("horizon", self.horizon, 0.0..=HORIZON_MAX_S, "seconds")?;
        match self.checkpoint {
            Checkpoint::None => {}
            Checkpoint::Periodic { interval, cost } => {
                above_zero("checkpoint interval", interval, "seconds")?;
                at_least_zero("checkpoint cost", cost, "seconds")?;
            }
            Checkpoint::YoungDaly { cost } => {
                above_zero("checkpoint cost", cost, "seconds")?;
            }
        }
        if !(self.spread_slowdown >= 1.0 && self.spread_slowdown.is_finite()) {
            return Err(StudyError::field("spread slowdown", self.spread_slowdown, "a number of at least 1"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_named() {
        let text = |change: fn(&mut Options)| {
            let mut options = Options::default();
            change(&mut options);
            options.check().map_or_else(|error| error.to_string(), |()| "fine".to_owned())
        };
        assert_eq!(text(|_| {}), "fine");
        assert_eq!(
            text(|options| options.restart = -1.0),
            "restart is -1, expected a number of seconds of at least 0"
        );
        assert_eq!(
            text(|options| options.checkpoint = Checkpoint::Periodic { interval: 0.0, cost: 1.0 }),
            "checkpoint interval is 0, expected a number of seconds above 0"
        );
        assert_eq!(
            text(|options| options.checkpoint = Checkpoint::YoungDaly { cost: 0.0 }),
            "checkpoint cost is 0, expected a number of seconds above 0"
        );
        assert_eq!(
            text(|options| options.horizon = 1e10),
            "horizon is 10000000000, expected 0 to 3155760000 seconds"
        );
        assert_eq!(
            text(|options| options.spread_slowdown = 0.5),
            "spread slowdown is 0.5, expected a number of at least 1"
        );
    }

    #[test]
    fn the_best_interval_is_that_of_young() {
        // A failure every 5,000 s, 100 s to write: 1,000 s.
        assert_eq!(Checkpoint::YoungDaly { cost: 100.0 }.interval(1.0 / 5000.0), (1000.0, 100.0));
        assert_eq!(Checkpoint::YoungDaly { cost: 100.0 }.interval(0.0).0, f64::INFINITY);
    }
}
