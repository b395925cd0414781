//! Jobs and failures of all draws, which are read from files or generated.

use std::path::{Path, PathBuf};

use super::failure::{Belief, YEAR};
use super::generate::{synthetic_jobs, synthetic_lives};
use super::job::JobPool;
use super::rates::{Batch, Knowledge, RatePool, Shrinkage};
use super::reader::{
    JobsFormat, SharedGpus, Throughputs, read_alibaba_pods, read_gavel, read_infinitehbd, read_jobs,
    read_outages, read_philly, read_pollux, read_rates, read_tiresias, read_titan,
};
use super::workload::{FailureSource, JobSource};
use super::{Cluster, Failures, Job};
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_study::StudyError;
use iswitch_study::error::at_least_zero;

/// Default number of GPUs in a cluster.
pub const GPUS: usize = 64;
/// Default number of GPUs in a node.
pub const GPUS_PER_NODE: usize = 8;
/// Default number of jobs in a batch, as in the patent.
const BATCH: usize = 60;
/// Maximum number of jobs in a batch, which ensures that the batch fits in memory.
pub const BATCH_MAX: usize = 100_000;
const SYNTHETIC_JOBS: usize = 20_000;
const SYNTHETIC_GPUS: usize = 20_000;
/// Random stream and seed of synthetic jobs and GPU lives, which all draws share.
const SYNTHETIC_STREAM: usize = 1;
const SYNTHETIC_SEED: u64 = 1;

/// Settings that determine the jobs and how they are drawn.
#[derive(Clone, Debug)]
pub struct JobsInput {
    /// File that lists the jobs; synthetic jobs if absent.
    pub file: Option<PathBuf>,
    /// Number of jobs to sample in each draw. If absent, jobs with arrival times are used unchanged, and 60 jobs are
    /// sampled from jobs without arrival times.
    pub batch: Option<usize>,
    /// Mean time between arrivals of sampled jobs, in seconds. If it is absent, all sampled jobs arrive at once, as
    /// with 0.
    pub interarrival: Option<f64>,
    /// Lower limit of job durations, in seconds (exclusive); other jobs are excluded.
    pub shortest: Option<f64>,
    /// Upper limit of job durations, in seconds (exclusive); other jobs are excluded.
    pub longest: Option<f64>,
    /// Maximum number of GPUs of a job; larger jobs are excluded.
    pub widest: Option<usize>,
    /// Gavel's throughput file, which a Gavel trace requires.
    pub throughputs: Option<PathBuf>,
    /// GPU type whose throughputs are used.
    pub gpu_type: String,
    /// Folder of Pollux's applications, which a Pollux workload requires.
    pub applications: Option<PathBuf>,
    /// Treatment of Alibaba pods that request a fraction of a GPU.
    pub shared_gpus: SharedGpus,
}

impl Default for JobsInput {
    /// Returns a batch of synthetic jobs.
    fn default() -> Self {
        Self {
            file: None,
            batch: None,
            interarrival: None,
            shortest: None,
            longest: None,
            widest: None,
            throughputs: None,
            gpu_type: "v100".to_owned(),
            applications: None,
            shared_gpus: SharedGpus::LeaveOut,
        }
    }
}

/// Source of jobs, and the rows of the file that were excluded: for each reason, the number of rows and the reason as
/// text that completes a sentence after `each of which`.
pub type LoadedJobs = (JobSource, Vec<(usize, &'static str)>);

/// Jobs read from a file or generated, and whether they have arrival times.
struct Found {
    jobs: Vec<Job>,
    have_arrivals: bool,
    left_out: Vec<(usize, &'static str)>,
}

impl JobsInput {
    /// Reads or generates the jobs, for a cluster with `gpus` GPUs.
    ///
    /// # Errors
    /// Fails if the file cannot be read, a job needs more than `gpus` GPUs, an option is out of range or does not apply
    /// to the file, or all jobs are excluded.
    pub fn load(&self, gpus: usize) -> Result<LoadedJobs, StudyError> {
        let Found { jobs, have_arrivals, left_out } = self.find()?;
        let jobs = self.select(jobs)?;
        if let Some(job) = jobs.iter().find(|job| job.gpus() > gpus) {
            let expected = format!(
                "1 to {gpus}, the number of GPUs in the cluster; --widest {gpus} excludes larger jobs"
            );
            return Err(StudyError::field("number of GPUs of a job", job.gpus(), expected));
        }
        if have_arrivals && self.batch.is_none() {
            return match self.interarrival {
                None => Ok((JobSource::Trace(jobs), left_out)),
                Some(seconds) => {
                    let expected = "none, because the file has arrival times; add --batch N to sample jobs";
                    Err(StudyError::field("interarrival", seconds, expected))
                }
            };
        }
        let interarrival = at_least_zero("interarrival", self.interarrival.unwrap_or(0.0), "seconds")?;
        let count = self.batch.unwrap_or(BATCH);
        if !(1..=BATCH_MAX).contains(&count) {
            return Err(StudyError::field("batch", count, format!("1 to {BATCH_MAX}")));
        }
        Ok((JobSource::Drawn { pool: JobPool::new(jobs)?, count, interarrival }, left_out))
    }

    fn find(&self) -> Result<Found, StudyError> {
        if let Some(path) = &self.file {
            return self.read(path);
        }
        let mut rng = stream(SYNTHETIC_SEED, Purpose::Arrivals, SYNTHETIC_STREAM);
        let jobs = synthetic_jobs(SYNTHETIC_JOBS, &mut rng)?.jobs().to_vec();
        Ok(Found { jobs, have_arrivals: false, left_out: Vec::new() })
    }

    fn read(&self, path: &Path) -> Result<Found, StudyError> {
        let (mut have_arrivals, mut left_out) = (true, Vec::new());
        let needed = |companion: &Option<PathBuf>, needs: &str| {
            companion.clone().ok_or_else(|| StudyError::file(path, needs))
        };
        let jobs = match JobsFormat::of(path)? {
            JobsFormat::Own => read_jobs(path)?,
            JobsFormat::Tiresias => read_tiresias(path)?,
            JobsFormat::Philly => {
                have_arrivals = false;
                read_philly(path)?.jobs().to_vec()
            }
            JobsFormat::Pollux => {
                read_pollux(path, &needed(&self.applications, "a Pollux workload needs --applications")?)?
            }
            JobsFormat::Gavel => {
                let throughputs = needed(&self.throughputs, "a Gavel trace needs --throughputs")?;
                let read = read_gavel(path, &Throughputs::read(&throughputs, &self.gpu_type)?)?;
                left_out = read.left_out;
                read.jobs
            }
            JobsFormat::Alibaba => {
                let read = read_alibaba_pods(path, self.shared_gpus)?;
                left_out = read.left_out;
                read.jobs
            }
        };
        Ok(Found { jobs, have_arrivals, left_out })
    }

    fn select(&self, mut jobs: Vec<Job>) -> Result<Vec<Job>, StudyError> {
        let limit = |name, limit: Option<f64>| limit.map(|limit| at_least_zero(name, limit, "seconds"));
        let shortest = limit("shortest", self.shortest).transpose()?.unwrap_or(0.0);
        let longest = limit("longest", self.longest).transpose()?.unwrap_or(f64::INFINITY);
        let widest = self.widest.unwrap_or(usize::MAX);
        jobs.retain(|job| job.duration() > shortest && job.duration() < longest && job.gpus() <= widest);
        if jobs.is_empty() {
            let expected = "at least 1 within the limits of --shortest, --longest and --widest";
            return Err(StudyError::field("number of jobs", 0, expected));
        }
        Ok(jobs)
    }
}

/// Settings that determine the failures of GPUs, and what placers know about them.
#[derive(Clone, Debug)]
pub struct FailuresInput {
    /// File of the failure histories of Titan's GPUs; synthetic histories if absent.
    pub lives: Option<PathBuf>,
    /// Installation batch of the GPUs whose histories are used; `None` for all batches.
    pub batch: Option<Batch>,
    /// Whether the history of each GPU is drawn only from the histories of its own cage.
    pub same_cage: bool,
    /// Number of the draw whose GPUs are used in all draws; if absent, each draw has its own GPUs.
    pub gpus_of_draw: Option<u64>,
    /// What placers know about the failure rates.
    pub knowledge: Knowledge,
    /// File with a table of outages, which are the same in each draw.
    pub outages: Option<PathBuf>,
    /// File with a table of failure rates and ages.
    pub rates: Option<PathBuf>,
    /// InfiniteHBD's node-fault file.
    pub node_faults: Option<PathBuf>,
}

impl Default for FailuresInput {
    /// Returns synthetic histories of GPUs of the old batch; placers know the rates.
    fn default() -> Self {
        Self {
            lives: None,
            batch: Some(Batch::Old),
            same_cage: false,
            gpus_of_draw: None,
            knowledge: Knowledge::Rates,
            outages: None,
            rates: None,
            node_faults: None,
        }
    }
}

impl FailuresInput {
    /// Reads or generates the failures.
    ///
    /// # Errors
    /// Fails if a file cannot be read or does not fit the cluster.
    pub fn load(&self, cluster: &Cluster) -> Result<FailureSource, StudyError> {
        if let Some(path) = &self.node_faults {
            return Ok(FailureSource::Nodes(read_infinitehbd(path)?));
        }
        let rates = self.rates.as_ref().map(|path| read_rates(path, cluster)).transpose()?;
        if let Some(path) = &self.outages {
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
        let mut lives = if let Some(path) = &self.lives {
            read_titan(path)?
        } else {
            let mut rng = stream(SYNTHETIC_SEED, Purpose::Rates, SYNTHETIC_STREAM);
            synthetic_lives(SYNTHETIC_GPUS, &mut rng)
        };
        lives.retain(|life| self.batch.is_none_or(|batch| life.batch == batch));
        let pool = RatePool::new(&lives, Shrinkage::default())?;
        let pool = FailureSource::Pool { pool, same_cage: self.same_cage, knowledge: self.knowledge };
        match self.gpus_of_draw {
            Some(draw) => pool.fixed(cluster, draw),
            None => Ok(pool),
        }
    }
}

/// Sets the placers' knowledge of `failures`, which occur at known times, to the rates and ages in `rates`. These rates
/// must have been estimated beforehand.
fn believed(failures: Failures, rates: &Failures) -> Result<Failures, StudyError> {
    let belief = |gpu| Belief { events: rates.estimate(gpu, 0.0, 0) * YEAR, years: 1.0 };
    let beliefs = (0..rates.gpus()).map(belief).collect();
    failures.with_beliefs(beliefs)?.with_ages(rates.ages().to_vec())
}
