//! The vectors that workers sum, and their encoding for an aggregator with 16-bit elements.
//!
//! A learner's vector consists of a gradient, which may be rounded, and of exact values, which must not be rounded: the
//! statistics for normalisation, and the [`Tail`](super::halves::Tail). An aggregator with 32-bit elements sums the
//! learner's vector directly. For an aggregator with 16-bit elements, each exact value is converted to a fixed-point
//! number and sent in limbs (see [`exact`](super::exact)), so that its sum is exact.

use super::TrainError;
use super::exact::{Limbs, from_fixed, to_fixed};
use iswitch::ElementTypes;

/// Lengths of the two parts of a learner's vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VectorShape {
    /// Number of floats that may be rounded.
    pub gradient: usize,
    /// Number of floats after the gradient, which must not be rounded.
    pub exact: usize,
}

impl VectorShape {
    /// Returns the number of floats in a learner's vector.
    #[expect(clippy::len_without_is_empty, reason = "no vector is empty")]
    pub fn len(self) -> usize {
        self.gradient + self.exact
    }

    /// Returns the number of floats that an aggregator with these element types sums in a job of `workers` workers.
    ///
    /// # Errors
    /// [`TrainError::Config`] if the elements cannot hold exact sums over this number of workers.
    pub fn summed_len(self, elements: ElementTypes, workers: usize) -> Result<usize, TrainError> {
        Ok(VectorCodec::new(self, elements, workers)?.summed_len())
    }
}

/// Conversion between a learner's vectors and those that an aggregator sums.
#[derive(Clone, Debug)]
pub struct VectorCodec {
    shape: VectorShape,
    /// Lengths of the limbs of the exact values; `None` if the aggregator sums the learner's vector directly.
    limbs: Option<Limbs>,
    workers: usize,
    /// The learner's vector that was most recently encoded or decoded, `[shape.len]`; empty if `limbs` is `None`.
    vector: Vec<f32>,
}

impl VectorCodec {
    /// Creates the conversion for a job of `workers` workers whose packets have the given element types.
    ///
    /// # Errors
    /// See [`VectorShape::summed_len`].
    pub fn new(shape: VectorShape, elements: ElementTypes, workers: usize) -> Result<Self, TrainError> {
        let limbs = (elements != ElementTypes::F32).then(|| Limbs::new(elements, workers)).transpose()?;
        let len = limbs.map_or(0, |_| shape.len());
        Ok(Self { shape, limbs, workers, vector: vec![0.0; len] })
    }

    /// Returns the number of floats that the aggregator sums.
    pub fn summed_len(&self) -> usize {
        self.shape.gradient + self.shape.exact * self.limbs.map_or(1, Limbs::of_sum)
    }

    /// Calls `fill` to write a vector of the learner, `[shape.len]`, and encodes the vector into `summed`
    /// (`[summed_len]`), which the aggregator sums.
    ///
    /// # Errors
    /// Fails if `fill` fails.
    pub fn encode<E>(
        &mut self,
        summed: &mut [f32],
        fill: impl FnOnce(&mut [f32]) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(limbs) = self.limbs else { return fill(summed) };
        fill(&mut self.vector)?;
        let (gradient, exact) = self.vector.split_at(self.shape.gradient);
        let (rounded, encoded) = summed.split_at_mut(self.shape.gradient);
        rounded.copy_from_slice(gradient);
        for (value, floats) in exact.iter().zip(encoded.chunks_exact_mut(limbs.of_sum())) {
            limbs.write_sum(to_fixed(f64::from(*value)), floats);
        }
        Ok(())
    }

    /// Returns the learner's vector that the preceding [`Self::encode`] call encoded into `summed`.
    pub fn encoded<'a>(&'a self, summed: &'a [f32]) -> &'a [f32] {
        if self.limbs.is_some() { &self.vector } else { summed }
    }

    /// Decodes a sum of `contributions` encoded vectors into a vector of the learner. If `uniform` is false, the limbs
    /// of a number may be sums over different sets of workers. If there are more contributions than the job has
    /// workers, a sum of limbs may be inexact. In both cases, the exact values that were sent as limbs are returned as
    /// zeros.
    pub fn decode<'a>(&'a mut self, summed: &'a [f32], contributions: u16, uniform: bool) -> &'a [f32] {
        let Some(limbs) = self.limbs else { return summed };
        let (rounded, encoded) = summed.split_at(self.shape.gradient);
        let (gradient, exact) = self.vector.split_at_mut(self.shape.gradient);
        gradient.copy_from_slice(rounded);
        let is_readable = uniform && usize::from(contributions) <= self.workers;
        for (value, floats) in exact.iter_mut().zip(encoded.chunks_exact(limbs.of_sum())) {
            *value = if is_readable { from_fixed(limbs.read_sum(floats)) as f32 } else { 0.0 };
        }
        &self.vector
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encode(codec: &mut VectorCodec, vector: &[f32], summed: &mut [f32]) {
        let copy = |to: &mut [f32]| -> Result<(), TrainError> {
            to.copy_from_slice(vector);
            Ok(())
        };
        codec.encode(summed, copy).unwrap();
    }

    proptest! {
        #[test]
        fn exact_values_pass_sixteen_bit_elements(
            elements in prop::sample::select(vec!["f32", "bf16", "f16", "bf16-f32", "f16-f32"]),
            vectors in prop::collection::vec(prop::collection::vec(-1e6_f32..1e6, 7), 1..=9),
        ) {
            let elements: ElementTypes = elements.parse().unwrap();
            let shape = VectorShape { gradient: 3, exact: 4 };
            let mut codec = VectorCodec::new(shape, elements, vectors.len()).unwrap();
            let mut sum = vec![0.0_f32; codec.summed_len()];
            for vector in &vectors {
                let mut summed = vec![0.0; codec.summed_len()];
                encode(&mut codec, vector, &mut summed);
                sum.iter_mut().zip(summed).for_each(|(sum, x)| *sum += x);
            }
            let decoded = codec.decode(&sum, vectors.len() as u16, true);
            for at in 3..7 {
                let expected: f64 = vectors.iter().map(|vector| f64::from(vector[at])).sum();
                let tolerance = if elements == ElementTypes::F32 { 1.0 } else { 0.0 };
                prop_assert!((f64::from(decoded[at]) - f64::from(expected as f32)).abs() <= tolerance);
            }
        }
    }

    #[test]
    fn sums_of_too_many_or_different_vectors_have_no_exact_values() {
        let shape = VectorShape { gradient: 1, exact: 1 };
        let mut codec = VectorCodec::new(shape, "bf16".parse().unwrap(), 2).unwrap();
        let mut summed = vec![0.0; codec.summed_len()];
        encode(&mut codec, &[1.0, 2.0], &mut summed);
        assert_eq!(codec.encoded(&summed), [1.0, 2.0]);
        assert_eq!(codec.decode(&summed, 3, true), [1.0, 0.0]);
        assert_eq!(codec.decode(&summed, 2, false), [1.0, 0.0]);
        assert_eq!(codec.decode(&summed, 2, true), [1.0, 2.0]);
    }
}
