//! Mean of a measured quantity over several runs, with a confidence interval.

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

/// Number of resamples.
const RESAMPLES: usize = 10_000;
/// Seed of the resampling, so that a result can be reproduced.
const SEED: u64 = 1;

/// Mean with its 95 % interval from a percentile bootstrap (Efron, 1979).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Mean of the values.
    pub mean: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Interval {
    /// Returns the mean and the confidence interval of the values.
    ///
    /// # Panics
    /// Panics if there are no values.
    pub fn of(values: &[f64]) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(SEED);
        let count = values.len() as f64;
        let mut resample =
            || values.iter().map(|_| values[random.random_range(0..values.len())]).sum::<f64>() / count;
        let mut means: Vec<_> = (0..RESAMPLES).map(|_| resample()).collect();
        means.sort_by(f64::total_cmp);
        let at = |share: f64| means[(share * RESAMPLES as f64) as usize];
        Self { mean: values.iter().sum::<f64>() / count, low: at(0.025), high: at(0.975) }
    }

    /// Formats the interval, such as `3.1 [2.9, 3.4]`, with the given number of decimals.
    pub fn text(self, digits: usize) -> String {
        let Self { mean, low, high } = self;
        format!("{mean:.digits$} [{low:.digits$}, {high:.digits$}]")
    }

    /// Returns the mean and both ends of the interval as JSON.
    pub fn json(self) -> Value {
        json!({ "mean": self.mean, "low": self.low, "high": self.high })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_known_sample_has_the_width_of_its_standard_error() {
        let values: Vec<_> = (0..100).map(f64::from).collect();
        let Interval { mean, low, high } = Interval::of(&values);
        assert_eq!(mean, 49.5);
        // The standard error of the mean is 2.89, so that the interval is 49.5 +- 5.66.
        assert!((low - 43.84).abs() < 0.5 && (high - 55.16).abs() < 0.5, "{low} to {high}");
    }

    #[test]
    fn equal_values_have_an_interval_without_width() {
        let interval = Interval::of(&[500.0; 10]);
        assert_eq!(interval.text(1), "500.0 [500.0, 500.0]");
    }
}
