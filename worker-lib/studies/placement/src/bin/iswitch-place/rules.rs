//! Options for the cost of failures and for the queue.

use std::fmt;
use std::str::FromStr;

use super::DAY_S;
use clap::{Args, ValueEnum};
use iswitch_placement::Options;
use iswitch_placement::options::{AfterFailure, Checkpoint, Queueing};

/// Default of `--checkpoint-cost`, in seconds.
const CHECKPOINT_COST_S: f64 = 60.0;

/// Checkpoint setting of jobs, as named on the command line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Saving {
    /// No checkpoints.
    None,
    /// Checkpoints at a fixed interval, in seconds of work.
    Every(f64),
    /// Checkpoints at the interval that is optimal for the failure rates of a job's GPUs.
    YoungDaly,
}

impl FromStr for Saving {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "young-daly" => Ok(Self::YoungDaly),
            _ => match text.parse::<f64>() {
                Ok(seconds) if seconds.is_finite() && seconds > 0.0 => Ok(Self::Every(seconds)),
                _ => Err(format!(
                    "checkpoint is {text:?}, expected none, young-daly or a number of seconds above 0"
                )),
            },
        }
    }
}

impl fmt::Display for Saving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Every(seconds) => write!(f, "{seconds}"),
            Self::YoungDaly => f.write_str("young-daly"),
        }
    }
}

/// Options for the cost of a failure.
#[derive(Args, Clone, Debug)]
pub(super) struct CostArgs {
    /// Duration of a restart after a failure or a suspension, in seconds
    ///
    /// The job does no work during this time.
    #[arg(long, value_name = "SECONDS", default_value_t = Options::default().restart, allow_negative_numbers = true)]
    restart: f64,
    /// Additional restart time for each GPU of the job, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, allow_negative_numbers = true)]
    restart_per_gpu: f64,
    /// Checkpoint setting of jobs: none, seconds of work, or young-daly
    ///
    /// With none, a failure undoes all of a job's work. A number is the interval between checkpoints, in seconds of
    /// work. With young-daly, a job uses the interval that is optimal for the failure rates of its GPUs.
    ///
    /// The default is young-daly, or none if --failures is given without --rates.
    #[arg(long, value_name = "WHEN", allow_negative_numbers = true)]
    pub(super) checkpoint: Option<Saving>,
    /// Time that a job pauses for each checkpoint, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = CHECKPOINT_COST_S, allow_negative_numbers = true)]
    pub(super) checkpoint_cost: f64,
}

/// Options for the rules of a cluster.
#[derive(Args, Clone, Debug)]
pub(super) struct RulesArgs {
    #[command(flatten)]
    pub(super) cost: CostArgs,
    /// Time until a failed GPU is repaired, in seconds
    ///
    /// With --failures, the file specifies the end of each outage instead.
    #[arg(long, value_name = "SECONDS", default_value_t = Options::default().repair, allow_negative_numbers = true)]
    repair: f64,
    /// Jobs that must wait while too few GPUs are free for the first job
    ///
    /// The first job is the one at the head of the queue.
    #[arg(long, value_name = "RULE", default_value = "easy")]
    queueing: QueueingRule,
    /// Placement of a job after a failure
    #[arg(long, value_name = "RULE", default_value = "place-again")]
    after_failure: AfterFailureRule,
    /// Number of GPUs kept free as spares for jobs that a failure has stopped
    #[arg(long, value_name = "GPUS", default_value_t = 0)]
    spares: usize,
    /// Slowdown factor of a job on more nodes than it needs; 1 means no slowdown
    #[arg(long, value_name = "TIMES", default_value_t = 1.0, allow_negative_numbers = true)]
    spread_slowdown: f64,
    /// End of a simulation, in days after the last arrival
    ///
    /// Jobs that are not complete by then are counted as unfinished.
    #[arg(
        long, value_name = "DAYS", default_value_t = Options::default().horizon / DAY_S, allow_negative_numbers = true
    )]
    horizon: f64,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum QueueingRule {
    /// All jobs behind the first job
    Strict,
    /// None: any job that fits starts
    FirstFit,
    /// Jobs that would delay the first job (EASY backfilling)
    Easy,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum AfterFailureRule {
    /// The job returns to the queue and is placed again
    PlaceAgain,
    /// The job keeps its GPUs until the failed one is repaired
    WaitForRepair,
}

impl CostArgs {
    /// Returns the simulator's checkpoint option for a checkpoint setting.
    pub(super) fn checkpoint(&self, saving: Saving) -> Checkpoint {
        let cost = self.checkpoint_cost;
        match saving {
            Saving::None => Checkpoint::None,
            Saving::Every(interval) => Checkpoint::Periodic { interval, cost },
            Saving::YoungDaly => Checkpoint::YoungDaly { cost },
        }
    }

    /// Returns the default options, except for the failure costs and the checkpoint setting, which the command line
    /// determines.
    pub(super) fn options(&self) -> anyhow::Result<Options> {
        let checkpoint = self.checkpoint(self.checkpoint.unwrap_or(Saving::YoungDaly));
        let (restart, restart_per_gpu) = (self.restart, self.restart_per_gpu);
        let options = Options { restart, restart_per_gpu, checkpoint, ..Options::default() };
        options.check()?;
        Ok(options)
    }
}

impl RulesArgs {
    pub(super) fn options(&self) -> anyhow::Result<Options> {
        let options = Options {
            repair: self.repair,
            queueing: match self.queueing {
                QueueingRule::Strict => Queueing::Strict,
                QueueingRule::FirstFit => Queueing::FirstFit,
                QueueingRule::Easy => Queueing::Easy,
            },
            after_failure: match self.after_failure {
                AfterFailureRule::PlaceAgain => AfterFailure::PlaceAgain,
                AfterFailureRule::WaitForRepair => AfterFailure::WaitForRepair,
            },
            spares: self.spares,
            spread_slowdown: self.spread_slowdown,
            horizon: self.horizon * DAY_S,
            ..self.cost.options()?
        };
        options.check()?;
        Ok(options)
    }
}
