//! Options for jobs.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_placement::Job;
use iswitch_placement::generate::synthetic_jobs;
use iswitch_placement::job::JobPool;
use iswitch_placement::reader::{
    self, JobsFormat, Throughputs, read_alibaba_pods, read_gavel, read_jobs, read_philly, read_pollux,
    read_tiresias,
};
use iswitch_placement::workload::JobSource;

/// Default number of jobs in a batch, as in the patent.
const BATCH: u64 = 60;
/// Maximum number of jobs in a batch, so that they fit in memory.
const BATCH_MAX: u64 = 100_000;
const SYNTHETIC_JOBS: usize = 20_000;
/// Number of the random stream from which the synthetic jobs are generated. All draws share these jobs.
const SYNTHETIC_STREAM: usize = 1;
const SYNTHETIC_SEED: u64 = 1;

/// Options that describe the jobs and their arrivals.
#[derive(Args, Clone, Debug)]
pub(super) struct JobsArgs {
    /// File that lists the jobs
    ///
    /// The first line determines the format: a CSV file with the columns arrival_s,gpus,duration_s; Philly job
    /// durations (duration_s,gpus); a Gavel trace; the pod list of Alibaba's 2023 GPU trace; a Pollux workload; or a
    /// Tiresias trace. Without a file, the jobs are synthetic and resemble Philly's.
    #[arg(long, value_name = "FILE")]
    jobs: Option<PathBuf>,
    /// Number of jobs to sample in each draw
    ///
    /// All jobs are equally likely to be sampled. The sampled jobs arrive at once, unless --interarrival is given. The
    /// default is 60; if the job file has arrival times, the default is to use its jobs unchanged.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=BATCH_MAX))]
    batch: Option<u64>,
    /// Mean time between arrivals of sampled jobs, in seconds
    ///
    /// The arrivals are a Poisson process. With 0, the default, all jobs arrive at once.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    interarrival: Option<f64>,
    /// Lower limit of job durations, in seconds; shorter jobs are excluded
    ///
    /// A job whose duration equals the limit is excluded too.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    shortest: Option<f64>,
    /// Upper limit of job durations, in seconds; longer jobs are excluded
    ///
    /// A job whose duration equals the limit is excluded too.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    longest: Option<f64>,
    /// Maximum number of GPUs per job; larger jobs are excluded
    #[arg(long, value_name = "GPUS")]
    widest: Option<usize>,
    /// Gavel's simulation_throughputs.json, required for a Gavel trace
    #[arg(long, value_name = "FILE", requires = "jobs")]
    throughputs: Option<PathBuf>,
    /// GPU type whose throughputs are used, such as v100
    #[arg(long, value_name = "TYPE", default_value = "v100", requires = "throughputs")]
    gpu_type: String,
    /// Folder of Pollux's applications, required for a Pollux workload
    ///
    /// The folder has one subfolder for each application.
    #[arg(long, value_name = "DIR", requires = "jobs")]
    applications: Option<PathBuf>,
    /// Treatment of Alibaba pods that request a fraction of a GPU
    #[arg(long, value_name = "WHAT", default_value = "leave-out")]
    shared_gpus: SharedGpus,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SharedGpus {
    /// Exclude them
    LeaveOut,
    /// Give each a whole GPU
    Whole,
}

/// Jobs read from a file or generated, and whether they have arrival times.
struct Found {
    jobs: Vec<Job>,
    have_arrivals: bool,
}

impl JobsArgs {
    /// Reads or generates the jobs.
    ///
    /// # Errors
    /// Fails if a file cannot be read, if a job needs more than `gpus` GPUs, if an option is out of range, or if no
    /// jobs are left.
    pub(super) fn load(&self, gpus: usize) -> anyhow::Result<JobSource> {
        let found = if let Some(path) = &self.jobs {
            self.read(path)?
        } else {
            let mut rng = stream(SYNTHETIC_SEED, Purpose::Arrivals, SYNTHETIC_STREAM);
            let pool = synthetic_jobs(SYNTHETIC_JOBS, &mut rng)?;
            Found { jobs: pool.jobs().to_vec(), have_arrivals: false }
        };
        let have_arrivals = found.have_arrivals;
        let jobs = self.select(found.jobs)?;
        if let Some(job) = jobs.iter().find(|job| job.gpus() > gpus) {
            bail!(
                "number of GPUs of a job is {}, expected 1 to {gpus}, the number in the cluster; --widest {gpus} \
                 excludes larger jobs",
                job.gpus()
            );
        }
        if have_arrivals && self.batch.is_none() {
            if self.interarrival.is_some() {
                bail!(
                    "--interarrival applies only to sampled jobs, but the file has arrival times; add --batch N to \
                     sample jobs"
                );
            }
            return Ok(JobSource::Trace(jobs));
        }
        let interarrival = self.interarrival.unwrap_or(0.0);
        if !(interarrival.is_finite() && interarrival >= 0.0) {
            bail!("interarrival is {interarrival}, expected a number of seconds of at least 0");
        }
        let count = usize::try_from(self.batch.unwrap_or(BATCH))?;
        Ok(JobSource::Drawn { pool: JobPool::new(jobs)?, count, interarrival })
    }

    fn read(&self, path: &Path) -> anyhow::Result<Found> {
        let format = JobsFormat::of(path)?;
        let (mut have_arrivals, mut left_out) = (true, Vec::new());
        let jobs = match format {
            JobsFormat::Own => read_jobs(path)?,
            JobsFormat::Tiresias => read_tiresias(path)?,
            JobsFormat::Philly => {
                have_arrivals = false;
                read_philly(path)?.jobs().to_vec()
            }
            JobsFormat::Pollux => {
                let applications = self
                    .applications
                    .as_ref()
                    .with_context(|| format!("{}: a Pollux workload needs --applications", path.display()))?;
                read_pollux(path, applications)?
            }
            JobsFormat::Gavel => {
                let throughputs = self
                    .throughputs
                    .as_ref()
                    .with_context(|| format!("{}: a Gavel trace needs --throughputs", path.display()))?;
                let read = read_gavel(path, &Throughputs::read(throughputs, &self.gpu_type)?)?;
                left_out = read.left_out;
                read.jobs
            }
            JobsFormat::Alibaba => {
                let shared = match self.shared_gpus {
                    SharedGpus::LeaveOut => reader::SharedGpus::LeaveOut,
                    SharedGpus::Whole => reader::SharedGpus::Whole,
                };
                let read = read_alibaba_pods(path, shared)?;
                left_out = read.left_out;
                read.jobs
            }
        };
        for (count, reason) in left_out.into_iter().filter(|(count, _)| *count > 0) {
            eprintln!("{}: excluded {count} rows, each of which {reason}", path.display());
        }
        Ok(Found { jobs, have_arrivals })
    }

    fn select(&self, mut jobs: Vec<Job>) -> anyhow::Result<Vec<Job>> {
        for (name, value) in [("shortest", self.shortest), ("longest", self.longest)] {
            if let Some(value) = value.filter(|value| !(value.is_finite() && *value >= 0.0)) {
                bail!("{name} is {value}, expected a number of seconds of at least 0");
            }
        }
        let (shortest, longest) = (self.shortest.unwrap_or(0.0), self.longest.unwrap_or(f64::INFINITY));
        let widest = self.widest.unwrap_or(usize::MAX);
        jobs.retain(|job| job.duration() > shortest && job.duration() < longest && job.gpus() <= widest);
        if jobs.is_empty() {
            bail!(
                "no jobs are left, expected at least 1 within the limits of --shortest, --longest and --widest"
            );
        }
        Ok(jobs)
    }
}
