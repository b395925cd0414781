//! Options for jobs.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use iswitch_placement::inputs::{BATCH_MAX, JobsInput};
use iswitch_placement::reader;
use iswitch_placement::workload::JobSource;

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
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=BATCH_MAX as u64))]
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
    /// Exclude these pods
    LeaveOut,
    /// Give each of these pods a whole GPU
    Whole,
}

impl JobsArgs {
    /// Reads or generates the jobs.
    ///
    /// # Errors
    /// Fails if a file cannot be read, if a job needs more than `gpus` GPUs, if an option is out of range or does not
    /// apply to the file, or if all jobs are excluded.
    pub(super) fn load(&self, gpus: usize) -> anyhow::Result<JobSource> {
        let input = JobsInput {
            file: self.jobs.clone(),
            batch: self.batch.map(usize::try_from).transpose()?,
            interarrival: self.interarrival,
            shortest: self.shortest,
            longest: self.longest,
            widest: self.widest,
            throughputs: self.throughputs.clone(),
            gpu_type: self.gpu_type.clone(),
            applications: self.applications.clone(),
            shared_gpus: match self.shared_gpus {
                SharedGpus::LeaveOut => reader::SharedGpus::LeaveOut,
                SharedGpus::Whole => reader::SharedGpus::Whole,
            },
        };
        let (jobs, left_out) = input.load(gpus)?;
        for (count, reason) in left_out.into_iter().filter(|(count, _)| *count > 0) {
            let file = self.jobs.as_ref().map_or("-".into(), |path| path.display().to_string());
            eprintln!("{file}: excluded {count} rows, each of which {reason}");
        }
        Ok(jobs)
    }
}
