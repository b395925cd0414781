//! Synthetic jobs and GPU life histories that resemble those recorded on the Philly and Titan clusters.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, Gamma, LogNormal, Poisson};

use super::Job;
use super::cluster::CAGES;
use super::job::JobPool;
use super::rates::{Batch, GpuLife};
use iswitch_study::StudyError;

/// Kinds of jobs: number of GPUs, share of all jobs, and the median (in seconds) and the standard deviation of the
/// logarithm of a lognormal distribution. A duration is one hour plus a value from this distribution; durations above a
/// week are redrawn. The distributions were fitted to the 31,804 jobs in Gavel's copy of the Philly trace that last
/// between an hour and a week.
const KINDS: [(usize, f64, f64, f64); 4] = [
    (1, 0.771, 7330.0, 1.8),
    (2, 0.019, 400_000.0, 2.7),
    (4, 0.091, 73_100.0, 2.2),
    (8, 0.119, 98_700.0, 2.4),
];
/// Shortest and longest duration of a generated job, in seconds.
const DURATIONS: (f64, f64) = (3600.0, 7.0 * 86_400.0);

/// Draws `count` jobs with heavy-tailed durations from an hour to a week, on 1, 2, 4 or 8 GPUs.
///
/// # Errors
/// Fails if `count` is 0.
pub fn synthetic_jobs(count: usize, rng: &mut ChaCha8Rng) -> Result<JobPool, StudyError> {
    let one = |_| {
        let mut share: f64 = rng.random();
        let kind = KINDS.iter().find(|(_, of, _, _)| {
            share -= of;
            share < 0.0
        });
        let (gpus, _, median, deviation) = *kind.unwrap_or(&KINDS[0]);
        let durations = LogNormal::new(f64::ln(median), deviation).expect("the deviation must be above 0");
        let duration = loop {
            let duration: f64 = DURATIONS.0 + durations.sample(rng);
            if duration < DURATIONS.1 {
                break duration;
            }
        };
        Job::new(0.0, gpus, duration)
    };
    JobPool::new((0..count).map(one).collect::<Result<_, _>>()?)
}

/// Mean failure rate of a GPU in Titan's old batch, in failures per year, by cage.
const CAGE_RATES: [f64; CAGES] = [0.038, 0.085, 0.153];
/// Shape of the gamma distribution of the rates within a cage. It is below 1, so a few GPUs have most of the failures.
const RATE_SHAPE: f64 = 0.5;
/// Shortest and longest observation period of a generated GPU, in years.
const YEARS: (f64, f64) = (1.0, 6.0);

/// Draws the life histories of `count` GPUs, which are assigned to the cages in turn, with the failure rates of Titan's
/// old batch: GPUs in upper cages fail more often, and rates differ widely within a cage.
pub fn synthetic_lives(count: usize, rng: &mut ChaCha8Rng) -> Vec<GpuLife> {
    let one = |number: usize| {
        let cage = number % CAGES;
        let rates = Gamma::new(RATE_SHAPE, CAGE_RATES[cage] / RATE_SHAPE).expect("both must be above 0");
        let (rate, years): (f64, f64) = (rates.sample(rng), rng.random_range(YEARS.0..YEARS.1));
        // The rate may be so small that the mean is 0, for which there is no Poisson distribution.
        let events = Poisson::new(rate * years).map_or(0.0, |events| events.sample(rng));
        GpuLife { events: events as u32, years, cage, batch: Batch::Old }
    };
    (0..count).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rates::by_cage;
    use iswitch_learn::algorithms::streams::{Purpose, stream};

    #[test]
    fn synthetic_jobs_resemble_the_philly_trace() {
        let pool = synthetic_jobs(5000, &mut stream(1, Purpose::Arrivals, 0)).unwrap();
        let mut durations: Vec<_> = pool.jobs().iter().map(Job::duration).collect();
        durations.sort_by(f64::total_cmp);
        // Philly's jobs have a median of 13,253 s, a 95th percentile of 284,874 s and 2.13 GPUs on average.
        assert!((9000.0..20_000.0).contains(&durations[2500]), "{}", durations[2500]);
        assert!((2e5..4e5).contains(&durations[4750]), "{}", durations[4750]);
        let gpus = pool.jobs().iter().map(Job::gpus).sum::<usize>() as f64 / 5000.0;
        assert!((1.9..2.3).contains(&gpus), "{gpus}");
        assert!(durations[0] >= 3600.0 && durations[4999] < 7.0 * 86_400.0);
    }

    #[test]
    fn synthetic_gpu_lives_have_the_cage_gradient_of_titan() {
        let lives = synthetic_lives(30_000, &mut stream(1, Purpose::Rates, 0));
        for (cage, rate) in by_cage(&lives).iter().zip(CAGE_RATES) {
            assert!((cage.rate() / rate - 1.0).abs() < 0.1, "{}, {rate}", cage.rate());
        }
        let most = lives.iter().map(|life| life.events).max().unwrap();
        assert!(most >= 5, "{most}");
    }
}
