//! Workloads: sources of jobs and failures from which the scenario of each draw is built, for comparisons and for
//! training.

use sha2::{Digest as _, Sha256};

use super::cluster::Level;
use super::domain::Domain;
use super::failure::YEAR;
use super::job::JobPool;
use super::node_trace::NodeTrace;
use super::options::Checkpoint;
use super::rates::{Knowledge, RatePool};
use super::simulation::Scenario;
use super::{Cluster, Failures, Job, Options};
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_learn::algorithms::trainer::first_bytes;
use iswitch_study::StudyError;

/// Number of the random stream that determines the jobs and GPUs of a draw.
const DRAW_STREAM: usize = 0;

/// Source of jobs.
#[derive(Clone, Debug)]
pub enum JobSource {
    /// The same jobs with the same arrivals in each draw.
    Trace(Vec<Job>),
    /// Jobs drawn from a pool; see [`JobPool::draw`].
    Drawn {
        /// Pool to draw from.
        pool: JobPool,
        /// Number of jobs in a draw.
        count: usize,
        /// Mean time between arrivals, in seconds; if it is 0, all jobs arrive at once.
        interarrival: f64,
    },
}

/// Source of failures.
#[derive(Clone, Debug)]
pub enum FailureSource {
    /// The same GPUs in each draw.
    Fixed {
        /// Failures of the GPUs.
        failures: Failures,
        /// Whether the failures occur at given times, which are the same in each draw.
        is_trace: bool,
        /// Whether placers know the failure rates.
        has_rates: bool,
    },
    /// GPUs drawn from a pool; see [`RatePool::draw`].
    Pool {
        /// Pool to draw from.
        pool: RatePool,
        /// Whether each GPU of the cluster is drawn only from the pool's GPUs in the same cage.
        same_cage: bool,
        /// What placers know about the failure rates.
        knowledge: Knowledge,
    },
    /// Recorded faults of nodes, from a random start in each draw; see [`NodeTrace::draw`].
    Nodes(NodeTrace),
}

/// Random failures of all nodes, racks or switches of a cluster, in addition to those of a [`FailureSource`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DomainFailures {
    /// Level of the failure domains.
    pub level: Level,
    /// Failure rate of each domain, in failures per year.
    pub per_year: f64,
    /// Length of each outage, in seconds.
    pub repair: f64,
}

impl DomainFailures {
    fn domains(self, cluster: &Cluster) -> impl Iterator<Item = Result<Domain, StudyError>> {
        let Self { level, per_year, repair } = self;
        let domain = move |gpus| Ok(Domain::poisson(gpus, per_year, repair)?.with_level(level));
        cluster.domains(level).into_iter().map(domain)
    }
}

impl JobSource {
    /// Returns the jobs of a draw, sorted by arrival.
    ///
    /// # Errors
    /// Fails if the mean time between arrivals is negative, or if a job would arrive after the latest permitted time;
    /// see [`JobPool::draw`].
    pub fn draw(&self, draw: u64) -> Result<Vec<Job>, StudyError> {
        match self {
            Self::Trace(jobs) => Ok(jobs.clone()),
            Self::Drawn { pool, count, interarrival } => {
                pool.draw(*count, *interarrival, &mut stream(draw, Purpose::Arrivals, DRAW_STREAM))
            }
        }
    }

    /// Returns a description of the jobs in words.
    pub fn describe(&self) -> String {
        match self {
            Self::Trace(jobs) => format!("{} jobs from a file", jobs.len()),
            Self::Drawn { pool, count, interarrival } => {
                let when = if *interarrival > 0.0 {
                    format!("arriving every {interarrival} s on average")
                } else {
                    "arriving at once".to_owned()
                };
                format!("{count} jobs drawn from a pool of {}, {when}", pool.jobs().len())
            }
        }
    }
}

impl FailureSource {
    /// Returns the failures of a draw.
    ///
    /// # Errors
    /// Fails if the pool has no GPU for a cage of the cluster, or if the number of nodes with recorded faults exceeds
    /// the number of nodes in the cluster.
    pub fn draw(&self, cluster: &Cluster, draw: u64) -> Result<Failures, StudyError> {
        match self {
            Self::Fixed { failures, .. } => Ok(failures.clone()),
            Self::Pool { pool, same_cage, knowledge } => {
                let mut rng = stream(draw, Purpose::Rates, DRAW_STREAM);
                pool.draw(cluster, *same_cage, *knowledge, &mut rng)
            }
            Self::Nodes(trace) => {
                let mut rng = stream(draw, Purpose::Rates, DRAW_STREAM);
                Failures::none(cluster).with_domains(trace.draw(cluster, &mut rng)?)
            }
        }
    }

    /// Returns a failure source that uses the GPUs of draw number `draw` in all draws.
    ///
    /// # Errors
    /// Returns the errors of [`Self::draw`].
    pub fn fixed(&self, cluster: &Cluster, draw: u64) -> Result<Self, StudyError> {
        match self {
            Self::Fixed { .. } => Ok(self.clone()),
            Self::Pool { .. } | Self::Nodes(_) => {
                Ok(Self::Fixed { failures: self.draw(cluster, draw)?, is_trace: false, has_rates: true })
            }
        }
    }

    /// Returns whether placers know the failure rates.
    pub fn has_rates(&self) -> bool {
        matches!(self, Self::Pool { .. } | Self::Nodes(_) | Self::Fixed { has_rates: true, .. })
    }

    /// Returns whether the failures occur at given times, which are the same in each draw.
    pub fn is_trace(&self) -> bool {
        matches!(self, Self::Fixed { is_trace: true, .. })
    }

    /// Returns a description of the failures in words.
    pub fn describe(&self) -> String {
        match self {
            Self::Fixed { is_trace: true, .. } => "failures from a file".to_owned(),
            Self::Fixed { failures, .. } => {
                let gpus = failures.gpus();
                let sum: f64 = (0..gpus).map(|gpu| failures.estimate(gpu, 0.0, 0) * YEAR).sum();
                format!("{:.3} failures per GPU-year", sum / gpus as f64)
            }
            Self::Nodes(trace) => {
                let (outages, nodes) = (trace.outages(), trace.nodes());
                format!(
                    "{outages} recorded outages of {nodes} nodes in {:.0} days",
                    trace.length() / 86_400.0
                )
            }
            Self::Pool { pool, .. } => {
                let (count, sum) = pool.rates().fold((0, 0.0), |(count, sum), rate| (count + 1, sum + rate));
                format!(
                    "{:.3} failures per GPU-year, from {count} GPU life histories",
                    sum / f64::from(count)
                )
            }
        }
    }
}

/// Cluster, jobs, failures and options from which the scenarios of all draws are built.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Nodes and GPUs.
    pub cluster: Cluster,
    /// Source of the jobs.
    pub jobs: JobSource,
    /// Source of the failures, before they are scaled by a rate factor.
    pub failures: FailureSource,
    /// Random failures of nodes, racks and switches.
    pub domains: Vec<DomainFailures>,
    /// Options of the simulation.
    pub options: Options,
}

impl Workload {
    /// Returns the scenario of a draw. A draw has the same jobs and GPUs for all rate factors and checkpoint settings.
    ///
    /// # Errors
    /// Fails if the rate factor is out of range, or if the jobs, the failures and the cluster do not match; see
    /// [`Scenario::new`].
    pub fn scenario(
        &self,
        draw: u64,
        rate_factor: f64,
        checkpoint: Checkpoint,
    ) -> Result<Scenario, StudyError> {
        let domains = self.domains.iter().flat_map(|it| it.domains(&self.cluster));
        let domains = domains.collect::<Result<Vec<_>, _>>()?;
        let failures = self.failures.draw(&self.cluster, draw)?.with_domains(domains)?.scaled(rate_factor)?;
        let options = Options { checkpoint, ..self.options };
        Scenario::new(self.cluster.clone(), self.jobs.draw(draw)?, failures, options)
    }

    /// Returns a digest that is equal for equal workloads.
    pub fn digest(&self) -> u64 {
        // The debug format contains all fields exactly: it prints floats so that they can be read back bit for bit.
        first_bytes(Sha256::new().chain_update(format!("{self:?}")))
    }
}
