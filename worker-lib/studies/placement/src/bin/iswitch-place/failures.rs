//! How GPUs fail.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_placement::failure::{Belief, YEAR};
use iswitch_placement::generate::synthetic_lives;
use iswitch_placement::rates::{self, Batch, RatePool, Shrinkage};
use iswitch_placement::reader::{read_outages, read_rates, read_titan};
use iswitch_placement::workload::FailureSource;
use iswitch_placement::{Cluster, Failures};

const SYNTHETIC_GPUS: usize = 20_000;
/// Stream of what all draws have in common.
const SYNTHETIC_STREAM: usize = 1;
const SYNTHETIC_SEED: u64 = 1;

/// How GPUs fail, and what is known of that.
#[derive(Args, Clone, Debug)]
pub(super) struct FailureArgs {
    /// Lives of Titan's GPUs (gc_full.csv): each GPU gets the failure rate that one of them is estimated to have, drawn
    /// anew in each draw [default: synthetic lives of the same kind].
    #[arg(long, value_name = "FILE", conflicts_with_all = ["failures", "rates"])]
    life: Option<PathBuf>,
    /// Lives that count.
    #[arg(long, value_name = "BATCH", default_value = "old")]
    life_batch: LifeBatch,
    /// Draw each GPU's life from those of its own cage: upper cages are hotter and fail more often.
    #[arg(long)]
    same_cage: bool,
    /// The GPUs of this draw in all draws: one cluster, as the patent's network is trained for.
    #[arg(long, value_name = "DRAW", conflicts_with_all = ["failures", "rates"])]
    gpus_of_draw: Option<u64>,
    /// What policies know: the rates by which GPUs fail, or only the lives from which rates are estimated, and what
    /// they see.
    #[arg(long, value_name = "WHAT", default_value = "rates")]
    knowledge: Knowledge,
    /// Failures at known times: gpu,begin_s,end_s. Policies know nothing of them but what --rates says.
    #[arg(long, value_name = "FILE")]
    failures: Option<PathBuf>,
    /// Failure rates and ages: gpu,per_year,age_years, a line for each GPU.
    #[arg(long, value_name = "FILE")]
    rates: Option<PathBuf>,
    /// Let GPUs fail so many times as often.
    #[arg(long, value_name = "TIMES", default_value_t = 1.0, allow_negative_numbers = true)]
    pub(super) rate_factor: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LifeBatch {
    /// Of GPUs that came before 2016, which fail far more often.
    Old,
    /// Of those that came later.
    New,
    /// All.
    All,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Knowledge {
    /// The rates.
    Rates,
    /// The lives.
    Lives,
}

impl FailureArgs {
    /// Reads or makes them.
    pub(super) fn load(&self, cluster: &Cluster) -> anyhow::Result<FailureSource> {
        let rates = self.rates.as_ref().map(|path| read_rates(path, cluster)).transpose()?;
        if let Some(path) = &self.failures {
            let failures = Failures::trace(cluster, &read_outages(path, cluster)?)?;
            let has_rates = rates.is_some();
            let failures = match rates {
                Some(rates) => believed(failures, &rates)?,
                None => failures,
            };
            return Ok(FailureSource::Fixed { failures, is_trace: true, has_rates });
        }
        if let Some(failures) = rates {
            return Ok(FailureSource::Fixed { failures, is_trace: false, has_rates: true });
        }
        let mut lives = if let Some(path) = &self.life {
            read_titan(path)?
        } else {
            let mut rng = stream(SYNTHETIC_SEED, Purpose::Rates, SYNTHETIC_STREAM);
            synthetic_lives(SYNTHETIC_GPUS, &mut rng)
        };
        lives.retain(|life| match self.life_batch {
            LifeBatch::Old => life.batch == Batch::Old,
            LifeBatch::New => life.batch == Batch::New,
            LifeBatch::All => true,
        });
        let knowledge = match self.knowledge {
            Knowledge::Rates => rates::Knowledge::Rates,
            Knowledge::Lives => rates::Knowledge::Lives,
        };
        let pool = RatePool::new(&lives, Shrinkage::default())?;
        let pool = FailureSource::Pool { pool, same_cage: self.same_cage, knowledge };
        match self.gpus_of_draw {
            Some(draw) => Ok(pool.fixed(cluster, draw)?),
            None => Ok(pool),
        }
    }
}

/// Known times, of which policies know rates that were estimated before.
fn believed(failures: Failures, rates: &Failures) -> anyhow::Result<Failures> {
    let belief = |gpu| Belief { events: rates.estimate(gpu, 0.0, 0) * YEAR, years: 1.0 };
    let beliefs = (0..rates.gpus()).map(belief).collect();
    Ok(failures.with_beliefs(beliefs)?.with_ages(rates.ages().to_vec())?)
}
