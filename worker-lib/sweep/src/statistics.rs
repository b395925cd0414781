//! Robust statistics of the returns of several runs, as in Agarwal et al., 2021, "Deep reinforcement learning at the
//! edge of the statistical precipice", and their library rliable.
//!
//! A sweep has only one environment, so rliable's bootstrap, which is stratified by environment, has a single stratum.

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

/// Fraction of the values that the interquartile mean omits at each end.
const OMITTED: f64 = 0.25;
/// Quantiles of the resampled statistics that form the ends of the 95 % interval.
const BOUNDS: [f64; 2] = [0.025, 0.975];
/// Seed of the bootstrap, which is fixed so that the same returns always have the same interval.
const SEED: u64 = 1;

/// An interquartile mean and its 95 % interval, computed with a percentile bootstrap.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Interquartile mean.
    pub iqm: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// Number of resamples that rliable uses by default for interval estimates.
    pub const RESAMPLES: usize = 50_000;

    /// Returns the estimate from the values, or `None` if `values` is empty.
    pub fn of(values: &[f64], resamples: usize) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let mut random = ChaCha8Rng::seed_from_u64(SEED);
        let mut resample = vec![0.0; values.len()];
        let mut iqms: Vec<_> = (0..resamples)
            .map(|_| {
                resample.fill_with(|| values[random.random_range(0..values.len())]);
                interquartile_mean(&mut resample)
            })
            .collect();
        iqms.sort_by(f64::total_cmp);
        let [low, high] = BOUNDS.map(|share| quantile(&iqms, share));
        Some(Self { iqm: interquartile_mean(&mut values.to_vec()), low, high })
    }
}

/// Sorts the values and returns the mean of those between the quartiles. At each end, a quarter of the values, rounded
/// down to a whole number, is omitted (`scipy.stats.trim_mean`).
fn interquartile_mean(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let omitted = (OMITTED * values.len() as f64) as usize;
    let kept = &values[omitted..values.len() - omitted];
    kept.iter().sum::<f64>() / kept.len() as f64
}

/// Returns a quantile of sorted values, linearly interpolated between two neighbouring values (`numpy.percentile`).
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    below + (above - below) * at.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interquartile_mean_omits_a_quarter_of_the_values_at_each_end() {
        let mean = |values: &[f64]| interquartile_mean(&mut values.to_vec());
        // The expected values are those of `scipy.stats.trim_mean(values, 0.25)`.
        assert_eq!(mean(&[9.0, 1.0, 3.0, -1e9]), 2.0);
        assert_eq!(mean(&[10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]), 5.5);
        assert_eq!(mean(&[1.0, 2.0, 6.0]), 3.0);
        assert_eq!(mean(&[7.0]), 7.0);
    }

    #[test]
    fn quantiles_are_interpolated() {
        // The expected values are those of `numpy.percentile([1, 2, 4, 8], [0, 2.5, 50, 97.5, 100])`.
        let quantiles = [0.0, 0.025, 0.5, 0.975, 1.0].map(|share| quantile(&[1.0, 2.0, 4.0, 8.0], share));
        assert!(
            quantiles.iter().zip([1.0, 1.075, 3.0, 7.7, 8.0]).all(|(x, y)| (x - y).abs() < 1e-12),
            "{quantiles:?}"
        );
    }

    /// The expected values are those of `rliable.library.get_interval_estimates` (rliable 1.2.0) with `aggregate_iqm`
    /// and 50,000 resamples. The ends of its interval vary by about 3 between seeds.
    #[test]
    fn estimates_match_rliable() {
        let returns =
            [3012.5, 2874.1, 1294.9, 3344.0, 2762.3, 3093.7, 2966.2, 2001.4, 3118.8, 2929.0, 3165.6, 2867.9];
        let Estimate { iqm, low, high } = Estimate::of(&returns, Estimate::RESAMPLES).unwrap();
        assert!((iqm - 2_957.233_333).abs() < 1e-6, "{iqm}");
        assert!((low - 2599.4).abs() < 6.0 && (high - 3081.3).abs() < 6.0, "{low} to {high}");
    }

    #[test]
    fn equal_values_have_an_interval_without_width() {
        assert_eq!(Estimate::of(&[500.0; 9], 100), Some(Estimate { iqm: 500.0, low: 500.0, high: 500.0 }));
        assert_eq!(Estimate::of(&[], 100), None);
    }
}
