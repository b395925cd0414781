//! What failures cost, and who may go first.

use std::fmt;
use std::str::FromStr;

use super::DAY_S;
use clap::{Args, ValueEnum};
use iswitch_placement::Options;
use iswitch_placement::options::{AfterFailure, Checkpoint, Queueing};

const CHECKPOINT_COST_S: f64 = 60.0;

/// When jobs save their state, as the command line names it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Saving {
    /// Never.
    None,
    /// After each so many seconds of work.
    Every(f64),
    /// When it is best for the rates of a job's GPUs.
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
                    "checkpoint is {text}, expected none, young-daly or a number of seconds above 0"
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

/// What a failure costs a job.
#[derive(Args, Clone, Debug)]
pub(super) struct CostArgs {
    /// Seconds that a job takes to start again, after a failure or a suspension, before it works.
    #[arg(long, value_name = "SECONDS", default_value_t = Options::default().restart, allow_negative_numbers = true)]
    restart: f64,
    /// When jobs save their state: none (a failure undoes all work), after so many SECONDS of work, or young-daly, the
    /// interval that is best for the failure rates of a job's GPUs.
    #[arg(long, value_name = "WHEN", default_value = "none", allow_negative_numbers = true)]
    pub(super) checkpoint: Saving,
    /// Seconds for which a job's work stands still while it saves its state.
    #[arg(long, value_name = "SECONDS", default_value_t = CHECKPOINT_COST_S, allow_negative_numbers = true)]
    pub(super) checkpoint_cost: f64,
}

/// The rules of a cluster.
#[derive(Args, Clone, Debug)]
pub(super) struct RulesArgs {
    #[command(flatten)]
    pub(super) cost: CostArgs,
    /// Seconds until a failed GPU is repaired; with --failures the file says so.
    #[arg(long, value_name = "SECONDS", default_value_t = Options::default().repair, allow_negative_numbers = true)]
    repair: f64,
    /// What waits while a job finds no GPUs.
    #[arg(long, value_name = "RULE", default_value = "easy")]
    queueing: QueueingRule,
    /// Where a job goes on after a failure.
    #[arg(long, value_name = "RULE", default_value = "place-again")]
    after_failure: AfterFailureRule,
    /// How many times as long a job takes on more nodes than it needs to be on.
    #[arg(long, value_name = "TIMES", default_value_t = 1.0, allow_negative_numbers = true)]
    spread_slowdown: f64,
    /// Days after the last arrival at which a run ends, whatever still runs.
    #[arg(
        long, value_name = "DAYS", default_value_t = Options::default().horizon / DAY_S, allow_negative_numbers = true
    )]
    horizon: f64,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum QueueingRule {
    /// All jobs after it.
    Strict,
    /// None: any job that fits starts.
    FirstFit,
    /// Jobs that would delay it: EASY backfilling.
    Easy,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum AfterFailureRule {
    /// It is placed again, with the others that wait.
    PlaceAgain,
    /// On the same GPUs, which it keeps until the failed one is repaired.
    WaitForRepair,
}

impl CostArgs {
    /// When jobs save their state under one of several rules.
    pub(super) fn checkpoint(&self, saving: Saving) -> Checkpoint {
        let cost = self.checkpoint_cost;
        match saving {
            Saving::None => Checkpoint::None,
            Saving::Every(interval) => Checkpoint::Periodic { interval, cost },
            Saving::YoungDaly => Checkpoint::YoungDaly { cost },
        }
    }

    /// Rules that are as usual but for what a failure costs.
    pub(super) fn options(&self) -> anyhow::Result<Options> {
        let checkpoint = self.checkpoint(self.checkpoint);
        let options = Options { restart: self.restart, checkpoint, ..Options::default() };
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
            spread_slowdown: self.spread_slowdown,
            horizon: self.horizon * DAY_S,
            ..self.cost.options()?
        };
        options.check()?;
        Ok(options)
    }
}
