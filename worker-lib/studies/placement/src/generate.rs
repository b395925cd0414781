//! Jobs and lives of GPUs where there are no files, in the kind of those that there are.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, Gamma, LogNormal, Poisson};

use super::Job;
use super::cluster::CAGES;
use super::job::JobPool;
use super::rates::{Batch, GpuLife};
use iswitch_study::StudyError;

/// Share of jobs with so many GPUs; of the seconds beyond an hour that they take, the median and the deviation of the
/// logarithm, before those beyond a week are left out. Fitted to Philly's jobs from an hour to a week (31,804 of those
/// that come with Gavel).
const KINDS: [(usize, f64, f64, f64); 4] = [
    (1, 0.771, 7330.0, 1.8),
    (2, 0.019, 400_000.0, 2.7),
    (4, 0.091, 73_100.0, 2.2),
    (8, 0.119, 98_700.0, 2.4),
];
/// The shortest and the longest of these, in seconds.
const DURATIONS: (f64, f64) = (3600.0, 7.0 * 86_400.0);

/// So many jobs with heavy-tailed durations from an hour to a week, on 1, 2, 4 or 8 GPUs.
///
/// # Errors
/// If `count` is 0.
pub fn synthetic_jobs(count: usize, rng: &mut ChaCha8Rng) -> Result<JobPool, StudyError> {
    let one = |_| {
        let mut share: f64 = rng.random();
        let kind = KINDS.iter().find(|(_, of, _, _)| {
            share -= of;
            share < 0.0
        });
        let (gpus, _, median, deviation) = *kind.unwrap_or(&KINDS[0]);
        let durations = LogNormal::new(f64::ln(median), deviation).expect("the deviation is above 0");
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

/// Failures a year in each cage of Titan, of GPUs of the old batch.
const CAGE_RATES: [f64; CAGES] = [0.038, 0.085, 0.153];
/// Shape of the gamma distribution of the rates within a cage: few GPUs have most failures.
const RATE_SHAPE: f64 = 0.5;
/// Years for which GPUs are watched.
const YEARS: (f64, f64) = (1.0, 6.0);

/// Lives of so many GPUs, in the cages in turn, with the rates of Titan's old batch: upper cages fail more often, and
/// within a cage rates differ much.
pub fn synthetic_lives(count: usize, rng: &mut ChaCha8Rng) -> Vec<GpuLife> {
    let one = |number: usize| {
        let cage = number % CAGES;
        let rates = Gamma::new(RATE_SHAPE, CAGE_RATES[cage] / RATE_SHAPE).expect("both are above 0");
        let (rate, years): (f64, f64) = (rates.sample(rng), rng.random_range(YEARS.0..YEARS.1));
        // A mean of 0 has no distribution: a rate may be as small as that.
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
    fn jobs_are_in_the_kind_of_philly() {
        let pool = synthetic_jobs(5000, &mut stream(1, Purpose::Arrivals, 0)).unwrap();
        let mut durations: Vec<_> = pool.jobs().iter().map(Job::duration).collect();
        durations.sort_by(f64::total_cmp);
        // Those of Philly: median 13,253 s, 95 % at 284,874 s, 2.13 GPUs.
        assert!((9000.0..20_000.0).contains(&durations[2500]), "{}", durations[2500]);
        assert!((2e5..4e5).contains(&durations[4750]), "{}", durations[4750]);
        let gpus = pool.jobs().iter().map(Job::gpus).sum::<usize>() as f64 / 5000.0;
        assert!((1.9..2.3).contains(&gpus), "{gpus}");
        assert!(durations[0] >= 3600.0 && durations[4999] < 7.0 * 86_400.0);
    }

    #[test]
    fn lives_have_the_gradient_of_titan() {
        let lives = synthetic_lives(30_000, &mut stream(1, Purpose::Rates, 0));
        for (cage, rate) in by_cage(&lives).iter().zip(CAGE_RATES) {
            assert!((cage.rate() / rate - 1.0).abs() < 0.1, "{}, {rate}", cage.rate());
        }
        let most = lives.iter().map(|life| life.events).max().unwrap();
        assert!(most >= 5, "{most}");
    }
}
