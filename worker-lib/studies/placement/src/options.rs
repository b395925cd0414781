//! Options of a simulation: the cost of failures and the rules of the queue.

use super::failure::YEAR;
use iswitch_study::StudyError;
use iswitch_study::error::{above_zero, at_least_zero, check_range};

const HOUR: f64 = 3600.0;
const DAY: f64 = 24.0 * HOUR;
/// Longest horizon, in seconds: 100 years.
pub const HORIZON_MAX_S: f64 = 100.0 * YEAR;

/// Checkpoint setting of a job. Times are in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Checkpoint {
    /// No checkpoints: a failure loses all work since the job's first start.
    None,
    /// A checkpoint after each `interval` of work; the job stops for the time `cost` while it is written.
    Periodic {
        /// Work between two checkpoints.
        interval: f64,
        /// Time to write a checkpoint.
        cost: f64,
    },
    /// Periodic checkpoints with the interval that is optimal to first order, sqrt(2 cost / rate). `rate` is the sum of
    /// the estimated failure rates of the GPUs on which the job runs (Young, CACM 17(9), 1974; Daly, FGCS 22(3), 2006).
    YoungDaly {
        /// Time to write a checkpoint; above 0.
        cost: f64,
    },
}

impl Checkpoint {
    /// Returns the checkpoint `(interval, cost)`, in seconds, of a job on GPUs whose failure rates add up to `rate`
    /// (1/s). The interval may be infinite.
    pub fn interval(self, rate: f64) -> (f64, f64) {
        match self {
            Self::None => (f64::INFINITY, 0.0),
            Self::Periodic { interval, cost } => (interval, cost),
            Self::YoungDaly { cost } => ((2.0 * cost / rate).sqrt(), cost),
        }
    }
}

/// Rule that decides which jobs wait while too few GPUs are free for a job in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumIter)]
#[strum(serialize_all = "kebab-case")]
pub enum Queueing {
    /// All jobs behind the job that does not fit wait (head-of-line blocking).
    Strict,
    /// Any job that fits starts, even if an earlier job does not fit. A job that needs many GPUs may wait forever.
    FirstFit,
    /// EASY backfilling (Lifka 1995; Mu'alem and Feitelson 2001): the first job that does not fit gets a reservation
    /// for the earliest time at which enough GPUs will be free if no failure occurs before then. Other jobs start only
    /// if they do not delay this reservation.
    Easy,
}

/// Placement of a job after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumIter)]
#[strum(serialize_all = "kebab-case")]
pub enum AfterFailure {
    /// The job releases its GPUs, returns to the queue and is placed again.
    PlaceAgain,
    /// The job keeps its GPUs and resumes on them when the failed one is repaired.
    WaitForRepair,
}

/// Options of a simulation. Times are in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Duration of a restart: the time before the job does any work, at each start of the job except its first. A
    /// failure during this time stops the job again.
    pub restart: f64,
    /// Additional time of a restart for each GPU of the job: larger jobs take longer to set up communication and to
    /// load their state.
    pub restart_per_gpu: f64,
    /// Number of spare GPUs, which are kept free. Only jobs that a failure has stopped may use them.
    pub spares: usize,
    /// Time to repair a GPU. It does not apply to failures at known times, whose ends are also known.
    pub repair: f64,
    /// Checkpoint setting of jobs.
    pub checkpoint: Checkpoint,
    /// Rule that decides which other jobs wait if a job in the queue needs more GPUs than are free.
    pub queueing: Queueing,
    /// What happens to a job after a failure of one of its GPUs.
    pub after_failure: AfterFailure,
    /// Factor by which a job takes longer if it runs on more nodes than it needs; 1 for no slowdown.
    pub spread_slowdown: f64,
    /// Time after the last arrival at which the simulation ends, even if jobs are still running. Without this limit, a
    /// simulation could practically never end: a long job without checkpoints on GPUs that fail often hardly ever
    /// completes.
    pub horizon: f64,
}

impl Default for Options {
    /// Returns options with a restart of ten minutes, a repair time of an hour, no checkpoints, a strict queue and a
    /// horizon of 400 days.
    fn default() -> Self {
        Self {
            restart: HOUR / 6.0,
            restart_per_gpu: 0.0,
            spares: 0,
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
    /// Returns the duration, in seconds, of a restart of a job with `gpus` GPUs.
    pub fn restart_of(&self, gpus: usize) -> f64 {
        self.restart + self.restart_per_gpu * gpus as f64
    }

    /// Checks that all options are in range.
    ///
    /// # Errors
    /// Fails if an option is out of range; the error names the first such option.
    pub fn check(&self) -> Result<(), StudyError> {
        at_least_zero("restart", self.restart, "seconds")?;
        at_least_zero("restart per GPU", self.restart_per_gpu, "seconds")?;
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
            return Err(StudyError::field("spread slowdown", self.spread_slowdown, "a number >= 1"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_settings_are_reported_by_name() {
        let text = |change: fn(&mut Options)| {
            let mut options = Options::default();
            change(&mut options);
            options.check().map_or_else(|error| error.to_string(), |()| "fine".to_owned())
        };
        assert_eq!(text(|_| {}), "fine");
        assert_eq!(
            text(|options| options.restart = -1.0),
            "restart is -1, expected a number of seconds >= 0"
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
            "spread slowdown is 0.5, expected a number >= 1"
        );
    }

    #[test]
    fn the_young_daly_interval_matches_its_formula() {
        // A failure every 5,000 s and 100 s to write a checkpoint give an interval of 1,000 s.
        assert_eq!(Checkpoint::YoungDaly { cost: 100.0 }.interval(1.0 / 5000.0), (1000.0, 100.0));
        assert_eq!(Checkpoint::YoungDaly { cost: 100.0 }.interval(0.0).0, f64::INFINITY);
    }
}
