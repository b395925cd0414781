//! All that a simulation is about, but its placer and its seed.

use crate::{Cluster, Failures, Job, Options};
use iswitch_study::StudyError;

/// A cluster, the jobs for it, how its GPUs fail, and the rules. Its parts fit each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    cluster: Cluster,
    jobs: Vec<Job>,
    failures: Failures,
    options: Options,
}

impl Scenario {
    /// Of these; jobs are sorted by arrival.
    ///
    /// # Errors
    /// If a job needs more GPUs than there are or arrives before the one before it, the failures are of another number
    /// of GPUs, or an option is out of range.
    pub fn new(
        cluster: Cluster,
        jobs: Vec<Job>,
        failures: Failures,
        options: Options,
    ) -> Result<Self, StudyError> {
        options.check()?;
        let gpus = cluster.gpus();
        if failures.gpus() != gpus {
            let expected = format!("{gpus}, as many as the cluster has");
            return Err(StudyError::field("GPUs that failures are of", failures.gpus(), expected));
        }
        for (number, job) in jobs.iter().enumerate() {
            if job.gpus() > gpus {
                let expected = format!("1 to {gpus}, as many as the cluster has");
                return Err(StudyError::field(format!("GPUs of job {number}"), job.gpus(), expected));
            }
        }
        if let Some(at) = jobs.windows(2).position(|pair| pair[1].arrival() < pair[0].arrival()) {
            let expected = format!("at least {}, as of the job before it", jobs[at].arrival());
            let field = format!("arrival of job {}", at + 1);
            return Err(StudyError::field(field, jobs[at + 1].arrival(), expected));
        }
        Ok(Self { cluster, jobs, failures, options })
    }

    /// Nodes and GPUs.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// By arrival.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// How GPUs fail.
    pub fn failures(&self) -> &Failures {
        &self.failures
    }

    /// The rules.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// When the simulation ends whatever still runs, in seconds.
    pub(super) fn end(&self) -> f64 {
        self.jobs.last().map_or(0.0, Job::arrival) + self.options.horizon
    }
}
