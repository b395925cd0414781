//! Scenario of a simulation: everything except its placer and its seed.

use crate::{Cluster, Failures, Job, Options};
use iswitch_study::StudyError;

/// Consistent combination of a cluster, jobs, failures and options.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    cluster: Cluster,
    jobs: Vec<Job>,
    failures: Failures,
    options: Options,
}

impl Scenario {
    /// Creates a scenario; `jobs` must be sorted by arrival.
    ///
    /// # Errors
    /// Fails if a job needs more GPUs than the cluster has (excluding its spare GPUs), the jobs are not sorted by
    /// arrival, `failures` describes a different number of GPUs than the cluster has, or an option is out of range.
    pub fn new(
        cluster: Cluster,
        jobs: Vec<Job>,
        failures: Failures,
        options: Options,
    ) -> Result<Self, StudyError> {
        options.check()?;
        let gpus = cluster.gpus();
        if failures.gpus() != gpus {
            let expected = format!("{gpus}, the number of GPUs in the cluster");
            return Err(StudyError::field("number of GPUs with failures", failures.gpus(), expected));
        }
        for (number, job) in jobs.iter().enumerate() {
            let most = gpus.saturating_sub(options.spares);
            if job.gpus() > most {
                let expected = match options.spares {
                    0 => format!("1 to {gpus}, the number of GPUs in the cluster"),
                    spares => {
                        format!("1 to {most}, the number of GPUs in the cluster minus its {spares} spares")
                    }
                };
                return Err(StudyError::field(
                    format!("number of GPUs of job {number}"),
                    job.gpus(),
                    expected,
                ));
            }
        }
        if let Some(at) = jobs.windows(2).position(|pair| pair[1].arrival() < pair[0].arrival()) {
            let expected = format!("at least {} s, the arrival time of the previous job", jobs[at].arrival());
            let field = format!("arrival of job {}", at + 1);
            return Err(StudyError::field(field, jobs[at + 1].arrival(), expected));
        }
        Ok(Self { cluster, jobs, failures, options })
    }

    /// Returns the cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Returns the jobs, sorted by arrival.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// Returns the failures of the GPUs.
    pub fn failures(&self) -> &Failures {
        &self.failures
    }

    /// Returns the options.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Returns the time in seconds at which the simulation ends even if jobs are still running.
    pub(super) fn end(&self) -> f64 {
        self.jobs.last().map_or(0.0, Job::arrival) + self.options.horizon
    }
}
