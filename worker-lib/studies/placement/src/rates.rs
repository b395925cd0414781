//! How often GPUs fail, estimated from the lives of others.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, Gamma};

use super::failure::{Belief, RATE_MAX};
use super::{Cluster, Failures};
use iswitch_study::StudyError;
use iswitch_study::error::{above_zero, at_least_zero};

/// When a GPU came: on Titan those that were replaced from 2016 on fail far less often than those before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batch {
    /// Before 2016.
    Old,
    /// From 2016 on.
    New,
}

/// What is known of a GPU that has lived elsewhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GpuLife {
    /// Failures.
    pub events: u32,
    /// In which it was watched.
    pub years: f64,
    /// The cage in which it was longest at a time.
    pub cage: usize,
    /// When it came.
    pub batch: Batch,
}

/// Failures and years of all GPUs of a cage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CageLife {
    /// Failures.
    pub events: f64,
    /// In which its GPUs were watched.
    pub years: f64,
}

impl CageLife {
    /// Failures a year.
    pub fn rate(&self) -> f64 {
        self.events / self.years
    }
}

/// Sums over the GPUs of each cage: the gradient of the rate from the coolest to the hottest.
pub fn by_cage(lives: &[GpuLife]) -> Vec<CageLife> {
    let cages = lives.iter().map(|life| life.cage + 1).max().unwrap_or(0);
    let mut sums = vec![CageLife::default(); cages];
    for life in lives {
        sums[life.cage].events += f64::from(life.events);
        sums[life.cage].years += life.years;
    }
    sums
}

/// How lives become rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shrinkage {
    /// Shape of the gamma prior whose mean is the rate of all: so many failures count as much as the GPU's own.
    /// Below 1 for GPUs that differ much.
    pub shape: f64,
    /// Shrink to the rate of the GPU's cage, not of all.
    pub by_cage: bool,
    /// Lives that were watched for less are left out.
    pub years_min: f64,
}

impl Default for Shrinkage {
    /// Half a failure, all cages together, a year.
    fn default() -> Self {
        Self { shape: 0.5, by_cage: false, years_min: 1.0 }
    }
}

/// Whether placers know the rates by which GPUs fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// A GPU fails as its life says on average, and placers know that.
    Rates,
    /// A GPU fails at a rate that is drawn from what its life leaves open; placers know the life, and what they see.
    Lives,
}

/// A GPU of a [`RatePool`].
#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    belief: Belief,
    cage: usize,
    age: f64,
}

/// GPUs to draw clusters from.
#[derive(Clone, Debug, PartialEq)]
pub struct RatePool {
    entries: Vec<Entry>,
    /// Numbers of the entries of each cage.
    of_cage: Vec<Vec<usize>>,
}

impl RatePool {
    /// Rates by empirical Bayes: the number of failures in y years is Poisson with a rate that is gamma-distributed
    /// with this shape and the mean m of all; given e failures its mean is (e + shape) / (y + shape / m).
    ///
    /// # Errors
    /// If the shape is not above 0, no life is long enough, or none has a failure.
    pub fn new(lives: &[GpuLife], shrinkage: Shrinkage) -> Result<Self, StudyError> {
        above_zero("shape", shrinkage.shape, "failures")?;
        at_least_zero("least years", shrinkage.years_min, "years")?;
        let lives: Vec<_> = lives.iter().filter(|life| life.years > shrinkage.years_min).copied().collect();
        let cages = by_cage(&lives);
        let mut all = CageLife::default();
        cages.iter().for_each(|cage| {
            all.events += cage.events;
            all.years += cage.years;
        });
        if all.events == 0.0 {
            let expected = format!("at least 1 in lives of more than {} years", shrinkage.years_min);
            return Err(StudyError::field("failures to estimate rates from", 0, expected));
        }
        let mut pool =
            Self { entries: Vec::with_capacity(lives.len()), of_cage: vec![Vec::new(); cages.len()] };
        for life in lives {
            let own = cages[life.cage];
            let mean = if shrinkage.by_cage && own.events > 0.0 { own.rate() } else { all.rate() };
            let belief = Belief {
                events: f64::from(life.events) + shrinkage.shape,
                years: life.years + shrinkage.shape / mean,
            };
            pool.of_cage[life.cage].push(pool.entries.len());
            pool.entries.push(Entry { belief, cage: life.cage, age: life.years });
        }
        Ok(pool)
    }

    /// Estimated failures a year of all GPUs.
    pub fn rates(&self) -> impl Iterator<Item = f64> {
        self.entries.iter().map(|entry| entry.belief.events / entry.belief.years)
    }

    /// A cluster's failures: each of its GPUs is one of these, independently; with `same_cage` one of its own cage.
    ///
    /// # Errors
    /// If there is none of a cage.
    pub fn draw(
        &self,
        cluster: &Cluster,
        same_cage: bool,
        knowledge: Knowledge,
        rng: &mut ChaCha8Rng,
    ) -> Result<Failures, StudyError> {
        let mut drawn = Vec::with_capacity(cluster.gpus());
        for gpu in 0..cluster.gpus() {
            let cage = cluster.cage_of(gpu);
            let entry = if same_cage {
                let some = self.of_cage.get(cage).filter(|some| !some.is_empty()).ok_or_else(|| {
                    StudyError::field(format!("cage of GPU {gpu}"), cage, "one of which GPUs are known")
                })?;
                some[rng.random_range(0..some.len())]
            } else {
                rng.random_range(0..self.entries.len())
            };
            drawn.push(self.entries[entry]);
        }
        let mean = |entry: &Entry| entry.belief.events / entry.belief.years;
        let failures = match knowledge {
            Knowledge::Rates => Failures::poisson(drawn.iter().map(mean).collect())?,
            Knowledge::Lives => {
                let rates = drawn.iter().map(|entry| sample(entry.belief, rng)).collect();
                Failures::poisson(rates)?.with_beliefs(drawn.iter().map(|entry| entry.belief).collect())?
            }
        };
        failures.with_ages(drawn.iter().map(|entry| entry.age).collect())
    }
}

/// A rate that a GPU may have of which this is known.
fn sample(belief: Belief, rng: &mut ChaCha8Rng) -> f64 {
    let gamma = Gamma::new(belief.events, 1.0 / belief.years).expect("both are above 0");
    gamma.sample(rng).min(RATE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::YEAR;
    use iswitch_learn::algorithms::streams::{Purpose, stream};

    fn life(events: u32, years: f64, cage: usize) -> GpuLife {
        GpuLife { events, years, cage, batch: Batch::Old }
    }

    #[test]
    fn rates_are_shrunk_to_the_mean() {
        // 6 failures in 12 years: 0.5 a year; the prior counts as half a failure in a year.
        let lives = [life(0, 4.0, 0), life(1, 4.0, 0), life(5, 4.0, 1), life(9, 0.5, 1)];
        let rates: Vec<_> = RatePool::new(&lives, Shrinkage::default()).unwrap().rates().collect();
        assert_eq!(rates, [0.5 / 5.0, 1.5 / 5.0, 5.5 / 5.0]);
        // Cage 0: 1 in 8 years; cage 1: 5 in 4 years.
        let shrinkage = Shrinkage { by_cage: true, ..Shrinkage::default() };
        let rates: Vec<_> = RatePool::new(&lives, shrinkage).unwrap().rates().collect();
        assert_eq!(rates, [0.5 / 8.0, 1.5 / 8.0, 5.5 / 4.4]);
        let cages: Vec<_> = by_cage(&lives[..3]).iter().map(CageLife::rate).collect();
        assert_eq!(cages, [1.0 / 8.0, 5.0 / 4.0]);
    }

    #[test]
    fn lives_that_say_nothing_are_refused() {
        let error = RatePool::new(&[life(0, 2.0, 0), life(3, 0.5, 0)], Shrinkage::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "failures to estimate rates from is 0, expected at least 1 in lives of more than 1 years"
        );
    }

    #[test]
    fn clusters_have_gpus_of_their_cages() {
        let lives = [life(1, 4.0, 0), life(9, 4.0, 1)];
        let pool = RatePool::new(&lives, Shrinkage::default()).unwrap();
        let cluster = Cluster::new([(8, 0), (8, 1)]).unwrap();
        let mut rng = stream(1, Purpose::Rates, 0);
        let failures = pool.draw(&cluster, true, Knowledge::Rates, &mut rng).unwrap();
        let rates: Vec<_> = pool.rates().collect();
        for gpu in 0..16 {
            let estimate = failures.estimate(gpu, 0.0, 0) * YEAR;
            assert!((estimate - rates[gpu / 8]).abs() < 1e-12);
            assert_eq!(failures.ages()[gpu], 4.0);
        }
        let hot = Cluster::new([(1, 2)]).unwrap();
        let error = pool.draw(&hot, true, Knowledge::Rates, &mut rng).unwrap_err().to_string();
        assert_eq!(error, "cage of GPU 0 is 2, expected one of which GPUs are known");
    }

    #[test]
    fn drawn_rates_have_the_mean_that_is_known() {
        let mut rng = stream(1, Purpose::Rates, 0);
        let belief = Belief { events: 2.5, years: 5.0 };
        let mean = (0..20_000).map(|_| sample(belief, &mut rng)).sum::<f64>() / 20_000.0;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
    }
}
