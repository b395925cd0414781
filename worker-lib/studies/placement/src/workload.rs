//! Which jobs on which GPUs: scenarios of any draw, for comparisons and for trainings.

use sha2::{Digest as _, Sha256};

use super::failure::YEAR;
use super::job::JobPool;
use super::options::Checkpoint;
use super::rates::{Knowledge, RatePool};
use super::simulation::Scenario;
use super::{Cluster, Failures, Job, Options};
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_learn::algorithms::trainer::first_bytes;
use iswitch_study::StudyError;

/// The stream of a draw.
const DRAW_STREAM: usize = 0;

/// Where jobs come from.
#[derive(Clone, Debug)]
pub enum JobSource {
    /// These, at their times, in each draw.
    Trace(Vec<Job>),
    /// So many of a pool, at mean distances of `interarrival` seconds; see [`JobPool::draw`].
    Drawn {
        /// All that there may be.
        pool: JobPool,
        /// Jobs of a draw.
        count: usize,
        /// In seconds; 0: all at once.
        interarrival: f64,
    },
}

/// Where failures come from.
#[derive(Clone, Debug)]
pub enum FailureSource {
    /// The same GPUs in each draw.
    Fixed {
        /// How they fail.
        failures: Failures,
        /// When they fail is known, and the same in each draw.
        is_trace: bool,
        /// Whether placers have rates.
        has_rates: bool,
    },
    /// GPUs are drawn; see [`RatePool::draw`].
    Pool {
        /// All that there may be.
        pool: RatePool,
        /// Whether each is one of its own cage.
        same_cage: bool,
        /// What placers know.
        knowledge: Knowledge,
    },
}

impl JobSource {
    /// The jobs of a draw, by arrival.
    ///
    /// # Errors
    /// If the distance of arrivals is negative.
    pub fn draw(&self, draw: u64) -> Result<Vec<Job>, StudyError> {
        match self {
            Self::Trace(jobs) => Ok(jobs.clone()),
            Self::Drawn { pool, count, interarrival } => {
                pool.draw(*count, *interarrival, &mut stream(draw, Purpose::Arrivals, DRAW_STREAM))
            }
        }
    }

    /// In words.
    pub fn describe(&self) -> String {
        match self {
            Self::Trace(jobs) => format!("{} jobs of a file", jobs.len()),
            Self::Drawn { pool, count, interarrival } => {
                let when = if *interarrival > 0.0 {
                    format!("every {interarrival} s")
                } else {
                    "at once".to_owned()
                };
                format!("{count} jobs out of {}, {when}", pool.jobs().len())
            }
        }
    }
}

impl FailureSource {
    /// Those of a draw.
    ///
    /// # Errors
    /// If no GPU is known of a cage that the cluster has.
    pub fn draw(&self, cluster: &Cluster, draw: u64) -> Result<Failures, StudyError> {
        match self {
            Self::Fixed { failures, .. } => Ok(failures.clone()),
            Self::Pool { pool, same_cage, knowledge } => {
                let mut rng = stream(draw, Purpose::Rates, DRAW_STREAM);
                pool.draw(cluster, *same_cage, *knowledge, &mut rng)
            }
        }
    }

    /// The GPUs of a draw in all draws.
    ///
    /// # Errors
    /// As [`Self::draw`].
    pub fn fixed(&self, cluster: &Cluster, draw: u64) -> Result<Self, StudyError> {
        match self {
            Self::Fixed { .. } => Ok(self.clone()),
            Self::Pool { .. } => {
                Ok(Self::Fixed { failures: self.draw(cluster, draw)?, is_trace: false, has_rates: true })
            }
        }
    }

    /// Whether placers have rates to estimate anything by.
    pub fn has_rates(&self) -> bool {
        matches!(self, Self::Pool { .. } | Self::Fixed { has_rates: true, .. })
    }

    /// Whether they are the same in each draw.
    pub fn is_trace(&self) -> bool {
        matches!(self, Self::Fixed { is_trace: true, .. })
    }

    /// In words.
    pub fn describe(&self) -> String {
        match self {
            Self::Fixed { is_trace: true, .. } => "failures of a file".to_owned(),
            Self::Fixed { failures, .. } => {
                let gpus = failures.gpus();
                let sum: f64 = (0..gpus).map(|gpu| failures.estimate(gpu, 0.0, 0) * YEAR).sum();
                format!("{:.3} failures a GPU and year", sum / gpus as f64)
            }
            Self::Pool { pool, .. } => {
                let (count, sum) = pool.rates().fold((0, 0.0), |(count, sum), rate| (count + 1, sum + rate));
                format!("{:.3} failures a GPU and year, from {count} lives", sum / f64::from(count))
            }
        }
    }
}

/// Scenarios of any draw.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Nodes and GPUs.
    pub cluster: Cluster,
    /// Which jobs arrive when.
    pub jobs: JobSource,
    /// How GPUs fail, before any factor.
    pub failures: FailureSource,
    /// The rules.
    pub options: Options,
}

impl Workload {
    /// The scenario of a draw. With all factors and checkpoints a draw has the same jobs and GPUs.
    ///
    /// # Errors
    /// If jobs, failures and cluster do not fit each other; see [`Scenario::new`].
    pub fn scenario(
        &self,
        draw: u64,
        rate_factor: f64,
        checkpoint: Checkpoint,
    ) -> Result<Scenario, StudyError> {
        let failures = self.failures.draw(&self.cluster, draw)?.scaled(rate_factor)?;
        let options = Options { checkpoint, ..self.options };
        Scenario::new(self.cluster.clone(), self.jobs.draw(draw)?, failures, options)
    }

    /// Equal for workloads that are equal.
    pub fn digest(&self) -> u64 {
        // All fields, to the last bit: floats are written so that they can be read back.
        first_bytes(Sha256::new().chain_update(format!("{self:?}")))
    }
}
