//! Training jobs, and pools from which jobs are drawn.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, Exp};

use super::failure::YEAR;
use iswitch_study::StudyError;
use iswitch_study::error::{above_zero, at_least_zero, check_range};

/// Latest permitted arrival of a job, in seconds: 100 years. A simulation processes all GPU failures until the last job
/// has arrived, so it would take too long with later arrivals. Beyond 2^53 seconds, the floating-point clock would no
/// longer advance.
pub const ARRIVAL_MAX_S: f64 = 100.0 * YEAR;

/// Model of the speed of a job that runs on more or fewer GPUs than it asks for. The global batch size stays the same,
/// so a step on k GPUs takes 1/k of the computation time of a step on one GPU, plus the time for synchronisation if k >
/// 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaling {
    /// Synchronisation time of a step, as a fraction of the step's computation time on one GPU.
    pub synchronisation: f64,
    /// Minimum number of GPUs of the job.
    pub least: usize,
    /// Maximum number of GPUs of the job.
    pub most: usize,
}

impl Scaling {
    /// Returns the speed-up on `gpus` GPUs relative to one GPU.
    pub fn speedup(self, gpus: usize) -> f64 {
        let synchronisation = if gpus > 1 { self.synchronisation } else { 0.0 };
        1.0 / (1.0 / gpus as f64 + synchronisation)
    }
}

/// Gang-scheduled job: it runs on all of its GPUs at once and owns them exclusively.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Job {
    arrival: f64,
    gpus: usize,
    duration: f64,
    scaling: Option<Scaling>,
}

impl Job {
    /// Creates a job that arrives at `arrival` seconds, needs `gpus` GPUs, and runs for `duration` seconds if none of
    /// them fails.
    ///
    /// # Errors
    /// Fails if the arrival is negative or after [`ARRIVAL_MAX_S`], `gpus` is 0, or the duration is not above 0.
    pub fn new(arrival: f64, gpus: usize, duration: f64) -> Result<Self, StudyError> {
        check_range("arrival of a job", arrival, 0.0..=ARRIVAL_MAX_S, "seconds")?;
        above_zero("duration of a job", duration, "seconds")?;
        if gpus == 0 {
            return Err(StudyError::field("number of GPUs of a job", gpus, "at least 1"));
        }
        Ok(Self { arrival, gpus, duration, scaling: None })
    }

    /// Allows the job to run on more or fewer GPUs than it asks for.
    ///
    /// # Errors
    /// Fails if the synchronisation time is negative, `least` is 0, or the number of GPUs that the job asks for is not
    /// from `least` to `most`.
    pub fn with_scaling(self, scaling: Scaling) -> Result<Self, StudyError> {
        at_least_zero("synchronisation of a job", scaling.synchronisation, "seconds")?;
        let Scaling { least, most, .. } = scaling;
        if least == 0 {
            return Err(StudyError::field("minimum number of GPUs of a job", least, "1 or more"));
        }
        if !(least..=most).contains(&self.gpus) {
            let expected = format!("{least} to {most}, the numbers with which the job can run");
            return Err(StudyError::field("number of GPUs of a job", self.gpus, expected));
        }
        Ok(Self { scaling: Some(scaling), ..self })
    }

    /// Returns the job with its arrival time replaced by `arrival`, in seconds.
    ///
    /// # Errors
    /// Fails if the arrival is negative or after [`ARRIVAL_MAX_S`].
    pub fn arriving(self, arrival: f64) -> Result<Self, StudyError> {
        check_range("arrival of a job", arrival, 0.0..=ARRIVAL_MAX_S, "seconds")?;
        Ok(Self { arrival, ..self })
    }

    /// Returns the arrival time in seconds.
    pub fn arrival(&self) -> f64 {
        self.arrival
    }

    /// Returns the number of GPUs that the job asks for.
    pub fn gpus(&self) -> usize {
        self.gpus
    }

    /// Returns the duration in seconds on the number of GPUs that the job asks for, if none of these GPUs fails.
    pub fn duration(&self) -> f64 {
        self.duration
    }

    /// Returns the duration times the number of GPUs, in GPU-seconds.
    pub fn gpu_seconds(&self) -> f64 {
        self.duration * self.gpus as f64
    }

    /// Returns the model of the job's speed on more or fewer GPUs, or `None` if the job runs only on the number of GPUs
    /// that it asks for.
    pub fn scaling(&self) -> Option<Scaling> {
        self.scaling
    }

    /// Returns whether the job can run on `gpus` GPUs.
    pub fn can_have(&self, gpus: usize) -> bool {
        self.scaling.map_or(gpus == self.gpus, |scaling| (scaling.least..=scaling.most).contains(&gpus))
    }

    /// Returns the speed on `gpus` GPUs, relative to the speed on the number that the job asks for.
    pub fn speed(&self, gpus: usize) -> f64 {
        self.scaling.map_or(1.0, |scaling| scaling.speedup(gpus) / scaling.speedup(self.gpus))
    }
}

/// Sorts jobs by arrival time, as a simulation requires.
pub fn sort_by_arrival(jobs: &mut [Job]) {
    jobs.sort_by(|a, b| a.arrival.total_cmp(&b.arrival));
}

/// Pool of jobs from which jobs are drawn with equal probability; the arrival times in the pool are ignored.
#[derive(Clone, Debug, PartialEq)]
pub struct JobPool {
    jobs: Vec<Job>,
}

impl JobPool {
    /// Creates a pool from the given jobs.
    ///
    /// # Errors
    /// Fails if `jobs` is empty.
    pub fn new(jobs: Vec<Job>) -> Result<Self, StudyError> {
        if jobs.is_empty() {
            return Err(StudyError::field("number of jobs to draw from", 0, "at least 1"));
        }
        Ok(Self { jobs })
    }

    /// Returns a pool of the jobs that run for more than `shortest` and less than `longest` seconds on at most `gpus`
    /// GPUs.
    ///
    /// # Errors
    /// Fails if the pool contains no such job.
    pub fn between(&self, shortest: f64, longest: f64, gpus: usize) -> Result<Self, StudyError> {
        let fits = |job: &&Job| job.duration > shortest && job.duration < longest && job.gpus <= gpus;
        Self::new(self.jobs.iter().filter(fits).copied().collect())
    }

    /// Returns all jobs of the pool.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// Draws `count` independent jobs whose arrivals form a Poisson process. `interarrival` is the mean time between
    /// arrivals in seconds; with 0, all jobs arrive at once, as a batch.
    ///
    /// # Errors
    /// Fails if `interarrival` is negative, or a job would arrive after [`ARRIVAL_MAX_S`].
    pub fn draw(
        &self,
        count: usize,
        interarrival: f64,
        rng: &mut ChaCha8Rng,
    ) -> Result<Vec<Job>, StudyError> {
        at_least_zero("interarrival", interarrival, "seconds")?;
        let distance = Exp::new(1.0 / interarrival).ok().filter(|_| interarrival > 0.0);
        let mut time = 0.0;
        let one = |_| {
            time += distance.map_or(0.0, |distance| distance.sample(rng));
            self.jobs[rng.random_range(0..self.jobs.len())].arriving(time)
        };
        (0..count).map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iswitch_learn::algorithms::streams::{Purpose, stream};

    #[test]
    fn invalid_jobs_are_reported_by_field() {
        let text = |arrival, gpus, duration| Job::new(arrival, gpus, duration).unwrap_err().to_string();
        assert_eq!(text(-1.0, 1, 1.0), "arrival of a job is -1, expected 0 to 3155760000 seconds");
        assert_eq!(text(1e10, 1, 1.0), "arrival of a job is 10000000000, expected 0 to 3155760000 seconds");
        assert_eq!(text(1e300, 1, 1.0), "arrival of a job is 1e300, expected 0 to 3155760000 seconds");
        assert_eq!(text(f64::NAN, 1, 1.0), "arrival of a job is NaN, expected 0 to 3155760000 seconds");
        assert_eq!(text(0.0, 0, 1.0), "number of GPUs of a job is 0, expected at least 1");
        assert_eq!(text(0.0, 1, -2.0), "duration of a job is -2, expected a number of seconds above 0");
        assert_eq!(text(0.0, 1, f64::NAN), "duration of a job is NaN, expected a number of seconds above 0");
        let scaling = Scaling { synchronisation: 0.1, least: 1, most: 2 };
        let error = Job::new(0.0, 4, 1.0).unwrap().with_scaling(scaling).unwrap_err().to_string();
        assert_eq!(
            error,
            "number of GPUs of a job is 4, expected 1 to 2, the numbers with which the job can run"
        );
        let scaling = Scaling { least: 0, ..scaling };
        let error = Job::new(0.0, 2, 1.0).unwrap().with_scaling(scaling).unwrap_err().to_string();
        assert_eq!(error, "minimum number of GPUs of a job is 0, expected 1 or more");
    }

    #[test]
    fn speed_is_relative_to_the_requested_number_of_gpus() {
        let scaling = Scaling { synchronisation: 0.25, least: 1, most: 8 };
        // Relative to one GPU, a step takes 1/2 + 1/4 of the time on two GPUs and 1/4 + 1/4 on four.
        assert_eq!([1, 2, 4].map(|gpus| scaling.speedup(gpus)), [1.0, 4.0 / 3.0, 2.0]);
        let job = Job::new(0.0, 4, 10.0).unwrap();
        assert!(job.can_have(4) && !job.can_have(2) && job.speed(4) == 1.0);
        let job = job.with_scaling(scaling).unwrap();
        assert!(job.can_have(2) && !job.can_have(9));
        assert_eq!([1, 2, 4].map(|gpus| job.speed(gpus)), [0.5, 2.0 / 3.0, 1.0]);
    }

    #[test]
    fn jobs_are_drawn_from_a_pool_at_its_rate() {
        let pool: Vec<_> = (1..=4).map(|gpus| Job::new(9.0, gpus, gpus as f64).unwrap()).collect();
        let pool = JobPool::new(pool).unwrap().between(1.0, 4.0, 8).unwrap();
        assert_eq!(pool.jobs().iter().map(Job::gpus).collect::<Vec<_>>(), [2, 3]);
        let mut rng = stream(1, Purpose::Arrivals, 0);
        let jobs = pool.draw(2000, 5.0, &mut rng).unwrap();
        assert!((jobs[1999].arrival() / 2000.0 - 5.0).abs() < 0.4, "{}", jobs[1999].arrival());
        assert!(pool.draw(5, 0.0, &mut rng).unwrap().iter().all(|job| job.arrival() == 0.0));
        let error = pool.between(5.0, 6.0, 8).unwrap_err().to_string();
        assert_eq!(error, "number of jobs to draw from is 0, expected at least 1");
    }
}
