//! Failure rates of GPUs, estimated from the life histories of other GPUs.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, Gamma};

use super::failure::{Belief, RATE_MAX};
use super::{Cluster, Failures};
use iswitch_study::StudyError;
use iswitch_study::error::{above_zero, at_least_zero};

/// Batch of a GPU, by its date of installation. Titan's GPUs installed from 2016 on fail far less often than the older
/// GPUs that they replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batch {
    /// GPU installed before 2016.
    Old,
    /// GPU installed in 2016 or later.
    New,
}

/// Observed life history of a GPU in another cluster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GpuLife {
    /// Number of failures.
    pub events: u32,
    /// Years of observation.
    pub years: f64,
    /// Cage in which the GPU had its longest uninterrupted stay.
    pub cage: usize,
    /// Batch, by the date of installation.
    pub batch: Batch,
}

/// Failures and years of observation, summed over all GPUs of a cage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CageLife {
    /// Number of failures.
    pub events: f64,
    /// Years of observation.
    pub years: f64,
}

impl CageLife {
    /// Returns the failure rate of a GPU of the cage, in failures per year.
    pub fn rate(&self) -> f64 {
        self.events / self.years
    }
}

/// Sums failures and years of observation over the GPUs of each cage, from the coolest cage to the hottest.
pub fn by_cage(lives: &[GpuLife]) -> Vec<CageLife> {
    let cages = lives.iter().map(|life| life.cage + 1).max().unwrap_or(0);
    let mut sums = vec![CageLife::default(); cages];
    for life in lives {
        sums[life.cage].events += f64::from(life.events);
        sums[life.cage].years += life.years;
    }
    sums
}

/// Parameters for estimating failure rates from life histories.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shrinkage {
    /// Shape of the gamma prior of the failure rates. The prior has the same weight as this number of observed
    /// failures. The shape should be below 1 if the rates of the GPUs differ widely.
    pub shape: f64,
    /// Whether rates are shrunk towards the mean rate of the GPU's cage instead of the mean rate of all GPUs.
    pub by_cage: bool,
    /// Minimum observation time, in years. Only life histories that exceed it are used.
    pub years_min: f64,
}

impl Default for Shrinkage {
    /// Returns parameters with a prior whose weight is half a failure and whose mean is the mean rate of all GPUs, and
    /// with a minimum observation time of one year.
    fn default() -> Self {
        Self { shape: 0.5, by_cage: false, years_min: 1.0 }
    }
}

/// Knowledge that placers have of the failure rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumIter)]
#[strum(serialize_all = "kebab-case")]
pub enum Knowledge {
    /// Placers know the rate at which each GPU fails, which is the posterior mean given its life history.
    Rates,
    /// Each GPU fails at a rate drawn from the posterior distribution given its life history. Placers know only the
    /// life history and the failures that they observe.
    Lives,
}

/// GPU of a [`RatePool`].
#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    belief: Belief,
    cage: usize,
    age: f64,
}

/// Pool of GPUs from which clusters are drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct RatePool {
    entries: Vec<Entry>,
    /// Indices of the pool's entries in each cage.
    of_cage: Vec<Vec<usize>>,
}

impl RatePool {
    /// Estimates rates by empirical Bayes. The number of failures in y years has a Poisson distribution whose rate has
    /// a gamma distribution; its shape is a parameter, and its mean m is the mean rate of all GPUs, or of the GPU's
    /// cage if [`Shrinkage::by_cage`] is set. Given e failures, the posterior mean of the rate is (e + shape) / (y +
    /// shape / m).
    ///
    /// # Errors
    /// Fails if the shape is not above 0, the minimum observation time is negative, or no life history that exceeds
    /// this time contains a failure.
    pub fn new(lives: &[GpuLife], shrinkage: Shrinkage) -> Result<Self, StudyError> {
        above_zero("shape", shrinkage.shape, "failures")?;
        at_least_zero("minimum years", shrinkage.years_min, "years")?;
        let lives: Vec<_> = lives.iter().filter(|life| life.years > shrinkage.years_min).copied().collect();
        let cages = by_cage(&lives);
        let mut all = CageLife::default();
        cages.iter().for_each(|cage| {
            all.events += cage.events;
            all.years += cage.years;
        });
        if all.events == 0.0 {
            let expected = format!("at least 1 for life histories longer than {} years", shrinkage.years_min);
            return Err(StudyError::field("number of failures of the GPUs", 0, expected));
        }
        let mut pool =
            Self { entries: Vec::with_capacity(lives.len()), of_cage: vec![Vec::new(); cages.len()] };
        for life in lives {
            let own = cages[life.cage];
            let mean = if shrinkage.by_cage && own.events > 0.0 { own.rate() } else { all.rate() };
            let belief = Belief::shrunk(f64::from(life.events), life.years, shrinkage.shape, mean);
            pool.of_cage[life.cage].push(pool.entries.len());
            pool.entries.push(Entry { belief, cage: life.cage, age: life.years });
        }
        Ok(pool)
    }

    /// Returns the estimated failure rate of each GPU, in failures per year.
    pub fn rates(&self) -> impl Iterator<Item = f64> {
        self.entries.iter().map(|entry| entry.belief.rate())
    }

    /// Draws the failures of a cluster: each of its GPUs is drawn independently from the pool; with `same_cage`, only
    /// from the pool's GPUs in the same cage.
    ///
    /// # Errors
    /// Fails if `same_cage` is set and the pool has no GPU for a cage of the cluster.
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
                    StudyError::field(
                        format!("cage of GPU {gpu}"),
                        cage,
                        "a cage with at least 1 GPU life history",
                    )
                })?;
                some[rng.random_range(0..some.len())]
            } else {
                rng.random_range(0..self.entries.len())
            };
            drawn.push(self.entries[entry]);
        }
        let failures = match knowledge {
            Knowledge::Rates => Failures::poisson(drawn.iter().map(|entry| entry.belief.rate()).collect())?,
            Knowledge::Lives => {
                let rates = drawn.iter().map(|entry| sample(entry.belief, rng)).collect();
                Failures::poisson(rates)?.with_beliefs(drawn.iter().map(|entry| entry.belief).collect())?
            }
        };
        failures.with_ages(drawn.iter().map(|entry| entry.age).collect())
    }
}

/// Draws a failure rate, in failures per year, from the posterior distribution of a belief.
fn sample(belief: Belief, rng: &mut ChaCha8Rng) -> f64 {
    let gamma = Gamma::new(belief.events, 1.0 / belief.years).expect("both must be above 0");
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
    fn estimated_rates_are_shrunk_towards_the_mean() {
        // 6 failures in 12 years are 0.5 a year; the prior counts as half a failure in one year.
        let lives = [life(0, 4.0, 0), life(1, 4.0, 0), life(5, 4.0, 1), life(9, 0.5, 1)];
        let rates: Vec<_> = RatePool::new(&lives, Shrinkage::default()).unwrap().rates().collect();
        assert_eq!(rates, [0.5 / 5.0, 1.5 / 5.0, 5.5 / 5.0]);
        // Cage 0 has 1 failure in 8 years, cage 1 has 5 in 4 years.
        let shrinkage = Shrinkage { by_cage: true, ..Shrinkage::default() };
        let rates: Vec<_> = RatePool::new(&lives, shrinkage).unwrap().rates().collect();
        assert_eq!(rates, [0.5 / 8.0, 1.5 / 8.0, 5.5 / 4.4]);
        let cages: Vec<_> = by_cage(&lives[..3]).iter().map(CageLife::rate).collect();
        assert_eq!(cages, [1.0 / 8.0, 5.0 / 4.0]);
    }

    #[test]
    fn gpu_lives_without_information_are_refused() {
        let error = RatePool::new(&[life(0, 2.0, 0), life(3, 0.5, 0)], Shrinkage::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "number of failures of the GPUs is 0, expected at least 1 for life histories longer than 1 years"
        );
    }

    #[test]
    fn gpu_rates_are_drawn_from_the_cage_of_their_node() {
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
        assert_eq!(error, "cage of GPU 0 is 2, expected a cage with at least 1 GPU life history");
    }

    #[test]
    fn drawn_rates_have_the_known_mean() {
        let mut rng = stream(1, Purpose::Rates, 0);
        let belief = Belief { events: 2.5, years: 5.0 };
        let mean = (0..20_000).map(|_| sample(belief, &mut rng)).sum::<f64>() / 20_000.0;
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
    }
}
