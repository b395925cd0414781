//! Options for failures of GPUs.

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
/// Random stream of the synthetic GPU lives, which all draws share.
const SYNTHETIC_STREAM: usize = 1;
const SYNTHETIC_SEED: u64 = 1;

/// Options that describe how GPUs fail and what policies know about it.
#[derive(Args, Clone, Debug)]
pub(super) struct FailureArgs {
    /// File with the failure history of Titan's GPUs (gc_full.csv)
    ///
    /// In each draw, every GPU in the cluster is assigned the estimated failure rate of a randomly chosen GPU from the
    /// file. Without a file, the failure histories (lives) of GPUs are synthetic and resemble those of Titan's GPUs.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["failures", "rates"])]
    life: Option<PathBuf>,
    /// Batch of GPU lives to draw from
    #[arg(long, value_name = "BATCH", default_value = "old")]
    life_batch: LifeBatch,
    /// Draw each GPU's life from the lives of GPUs in the same cage
    ///
    /// Upper cages are hotter, and their GPUs fail more often.
    #[arg(long)]
    same_cage: bool,
    /// Number of the draw whose GPUs are used in all draws
    ///
    /// All draws then have the same cluster, as the patent's network requires.
    #[arg(long, value_name = "DRAW", conflicts_with_all = ["failures", "rates"])]
    gpus_of_draw: Option<u64>,
    /// Knowledge that policies have of failure rates
    #[arg(long, value_name = "WHAT", default_value = "rates")]
    knowledge: Knowledge,
    /// CSV file of outages: gpu,begin_s,end_s
    ///
    /// GPUs fail at these times in every draw. Policies know the failure rates in the --rates file; without that file,
    /// they know no rates.
    #[arg(long, value_name = "FILE")]
    failures: Option<PathBuf>,
    /// CSV file of failure rates and ages: gpu,per_year,age_years
    ///
    /// The file has one line for each GPU.
    #[arg(long, value_name = "FILE")]
    rates: Option<PathBuf>,
    /// Factor by which all failure rates are multiplied
    ///
    /// With --failures, the times between outages are divided by the factor.
    #[arg(long, value_name = "TIMES", default_value_t = 1.0, allow_negative_numbers = true)]
    pub(super) rate_factor: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LifeBatch {
    /// GPUs installed before 2016, which fail far more often
    Old,
    /// GPUs installed from 2016 on
    New,
    /// All GPUs
    All,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Knowledge {
    /// The failure rates
    Rates,
    /// The life from which each rate is estimated, and the failures observed so far
    Lives,
}

impl FailureArgs {
    /// Reads or generates the failures.
    ///
    /// # Errors
    /// Fails if a file cannot be read or does not fit the cluster.
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

/// Returns failures at known times. Policies believe that the failure rates are `rates`, which were estimated
/// beforehand.
fn believed(failures: Failures, rates: &Failures) -> anyhow::Result<Failures> {
    let belief = |gpu| Belief { events: rates.estimate(gpu, 0.0, 0) * YEAR, years: 1.0 };
    let beliefs = (0..rates.gpus()).map(belief).collect();
    Ok(failures.with_beliefs(beliefs)?.with_ages(rates.ages().to_vec())?)
}
