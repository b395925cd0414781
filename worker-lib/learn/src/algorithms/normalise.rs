//! Running mean and variance of observations and returns. They are identical on all workers.

use serde::{Deserialize, Serialize};

use super::TrainError;
use super::checkpoint::{Reader, Writer};

/// The sum of a quantity's deviations, during a rollout, from its mean before the rollout, and the sum of their
/// squares. Because the deviations are small, the sums are accurate even if the mean is large.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Deviations {
    /// Sum of `x - mean`.
    pub sum: f64,
    /// Sum of `(x - mean)^2`.
    pub sum_squares: f64,
}

impl Deviations {
    /// Adds one sample.
    pub fn add(&mut self, x: f64, mean: f64) {
        let deviation = x - mean;
        self.sum += deviation;
        self.sum_squares += deviation * deviation;
    }
}

/// Mean and variance of each element over all samples so far. They are constant during a rollout: workers collect
/// [`Deviations`], whose sums over all workers are merged at the end of the rollout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    /// Mean of each element, `[dim]`.
    pub mean: Vec<f64>,
    /// Variance of each element, `[dim]`.
    pub variance: Vec<f64>,
    /// Number of samples so far.
    pub count: f64,
}

/// Constant added to a variance before its square root is taken.
const VARIANCE_MIN: f64 = 1e-8;
/// Bound on the absolute value of normalised elements.
pub const CLIP: f64 = 10.0;

impl Moments {
    /// Creates moments with mean 0, variance 1 and a negligible sample count.
    pub fn new(dim: usize) -> Self {
        Self { mean: vec![0.0; dim], variance: vec![1.0; dim], count: 1e-4 }
    }

    /// Merges `count` samples, given the sums of their deviations from the current means (`[dim]`). Uses the pairwise
    /// update of Chan, Golub and LeVeque. Has no effect if `count` is zero.
    pub fn merge(&mut self, count: f64, deviations: &[Deviations]) {
        if count <= 0.0 {
            return;
        }
        let total = self.count + count;
        for (i, sums) in deviations.iter().enumerate() {
            let shift = sums.sum / count;
            let spread = (sums.sum_squares - sums.sum * shift).max(0.0);
            let between = shift * shift * self.count * count / total;
            self.variance[i] = (self.variance[i] * self.count + spread + between) / total;
            self.mean[i] += shift * count / total;
        }
        self.count = total;
    }

    /// Writes the moments to a checkpoint.
    pub fn write(&self, name: &str, writer: &mut Writer) {
        writer.doubles(&format!("{name}.mean"), &self.mean);
        writer.doubles(&format!("{name}.variance"), &self.variance);
        writer.doubles(&format!("{name}.count"), &[self.count]);
    }

    /// Reads moments of `dim` elements that [`Self::write`] wrote.
    ///
    /// # Errors
    /// Fails if the moments are missing, or if their length is not `dim`.
    pub fn read(name: &str, dim: usize, reader: &Reader<'_>) -> Result<Self, TrainError> {
        Ok(Self {
            mean: reader.doubles(&format!("{name}.mean"), dim)?,
            variance: reader.doubles(&format!("{name}.variance"), dim)?,
            count: reader.doubles(&format!("{name}.count"), 1)?[0],
        })
    }

    /// Returns the reciprocal of the standard deviation, `[dim]`.
    pub fn scale(&self) -> Vec<f64> {
        self.variance.iter().map(|variance| 1.0 / (variance + VARIANCE_MIN).sqrt()).collect()
    }
}

/// A normalisation that is constant during a rollout: `clip((x - mean) * scale)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Normaliser {
    mean: Vec<f64>,
    scale: Vec<f64>,
}

impl Normaliser {
    /// Creates the normalisation from the moments at the start of the rollout.
    pub fn new(moments: &Moments) -> Self {
        Self { mean: moments.mean.clone(), scale: moments.scale() }
    }

    /// Normalises `raw` (`[dim]`) into `normalised` (`[dim]`).
    pub fn apply(&self, raw: &[f32], normalised: &mut [f32]) {
        for (i, (out, x)) in normalised.iter_mut().zip(raw).enumerate() {
            *out = ((f64::from(*x) - self.mean[i]) * self.scale[i]).clamp(-CLIP, CLIP) as f32;
        }
    }
}

/// Normalises an observation, or copies it unchanged if there is no normaliser.
pub fn normalise_or_copy(normaliser: Option<&Normaliser>, raw: &[f32], observation: &mut [f32]) {
    match normaliser {
        Some(normaliser) => normaliser.apply(raw, observation),
        None => observation.copy_from_slice(raw),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn merged_moments_agree_with_a_single_pass(
            chunks in prop::collection::vec(prop::collection::vec(-1e3_f64..1e3, 1..50), 1..6),
        ) {
            let mut moments = Moments { count: 0.0, ..Moments::new(1) };
            for chunk in &chunks {
                let mut sums = [Deviations::default()];
                chunk.iter().for_each(|x| sums[0].add(*x, moments.mean[0]));
                moments.merge(chunk.len() as f64, &sums);
            }
            let all: Vec<f64> = chunks.concat();
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            let variance = all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / all.len() as f64;
            prop_assert!((moments.mean[0] - mean).abs() < 1e-9 * 1e3);
            prop_assert!((moments.variance[0] - variance).abs() < 1e-9 * 1e6);
        }
    }

    #[test]
    fn normalised_values_are_clipped() {
        let moments = Moments { mean: vec![1.0, 0.0], variance: vec![4.0, 1.0], count: 10.0 };
        let mut out = [0.0; 2];
        Normaliser::new(&moments).apply(&[5.0, -99.0], &mut out);
        assert!((out[0] - 2.0).abs() < 1e-6);
        assert!((out[1] + 10.0).abs() < f32::EPSILON);
    }

    #[test]
    fn merging_an_empty_batch_changes_nothing() {
        let mut moments = Moments::new(1);
        moments.merge(0.0, &[Deviations::default()]);
        assert_eq!(moments, Moments::new(1));
    }
}
