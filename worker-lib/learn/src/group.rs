//! Exact and floating-point sums over the workers of a training job.

use std::ops::Range;

use crate::algorithms::TrainError;
use crate::algorithms::exact::{Limbs, all_gather_u64, all_reduce_uniform, from_fixed};
use crate::algorithms::trainer::World;
use iswitch::GradientAggregator;

/// A worker's handle to the group of workers that train together.
pub struct Group {
    world: World,
    aggregator: Box<dyn GradientAggregator>,
    limbs: Limbs,
    vector: Vec<f32>,
    /// Limbs of exact sums.
    values: Vec<f32>,
}

impl Group {
    /// Creates this worker's handle to the group. `aggregator` must sum vectors of `vector_len` floats.
    pub fn new(
        world: World,
        environments: usize,
        vector_len: usize,
        aggregator: Box<dyn GradientAggregator>,
    ) -> Result<Self, TrainError> {
        let refuse = |reason| Err(TrainError::Config(reason));
        let World { size: workers, .. } = world;
        if !environments.is_multiple_of(workers) {
            return refuse(format!(
                "environments is {environments}, expected a multiple of the number of workers ({workers})"
            ));
        }
        let limbs = Limbs::new(aggregator.element_types(), workers)?;
        let actual = aggregator.gradient_len();
        if actual != vector_len {
            return refuse(format!("the aggregator's vectors have {actual} floats, expected {vector_len}"));
        }
        Ok(Self { world, aggregator, limbs, vector: vec![0.0; vector_len], values: Vec::new() })
    }

    /// Returns the rank of this worker and the world size.
    pub fn world(&self) -> World {
        self.world
    }

    /// Returns the aggregator that the group uses to compute sums.
    pub fn aggregator(&self) -> &dyn GradientAggregator {
        self.aggregator.as_ref()
    }

    /// Returns the range of environments that belong to this worker if `environments` environments are divided among
    /// all workers.
    pub fn own(&self, environments: usize) -> Range<usize> {
        let each = environments / self.world.size;
        self.world.rank * each..(self.world.rank + 1) * each
    }

    /// Replaces each number with its exact sum over all workers.
    pub fn sum(&mut self, numbers: &mut [i128]) -> Result<(), TrainError> {
        let (limbs, len) = (self.limbs, self.limbs.of_sum());
        self.values.resize(numbers.len() * len, 0.0);
        all_reduce_uniform(self.aggregator.as_mut(), &mut self.values, |values| {
            let places = values.chunks_exact_mut(len);
            places.zip(numbers.iter()).for_each(|(floats, number)| limbs.write_sum(*number, floats));
        })?;
        let sums = self.values.chunks_exact(len).map(|floats| limbs.read_sum(floats));
        numbers.iter_mut().zip(sums).for_each(|(number, sum)| *number = sum);
        Ok(())
    }

    /// Replaces `numbers` with their exact sums over all workers, and returns the sums as floats: a gradient that is
    /// bit-identical for every world size.
    pub fn sum_exactly(&mut self, numbers: &mut [i128]) -> Result<Vec<f32>, TrainError> {
        self.sum(numbers)?;
        Ok(numbers.iter().map(|sum| from_fixed(*sum) as f32).collect())
    }

    /// Replaces a gradient with its sum over all workers. If some workers did not contribute, scales the sum in
    /// proportion, as an estimate of the sum over all workers.
    pub fn sum_gradient(&mut self, gradient: &mut [f32]) -> Result<(), TrainError> {
        self.vector.fill(0.0);
        self.vector[..gradient.len()].copy_from_slice(gradient);
        let round = self.aggregator.all_reduce(&mut self.vector)?;
        let scale = self.world.size as f32 / f32::from(round.contributors.max(1));
        gradient.iter_mut().zip(&self.vector).for_each(|(own, sum)| *own = sum * scale);
        Ok(())
    }

    /// Returns the numbers that each worker passed, by rank.
    fn gather(&mut self, numbers: &[u64]) -> Result<Vec<Vec<u64>>, TrainError> {
        all_gather_u64(self.aggregator.as_mut(), self.world.rank, self.world.size, numbers)
    }

    /// Checks that the digests of settings and state are the same on all workers; `own` contains those of this worker.
    pub fn agree(&mut self, own: [u64; 2]) -> Result<(), TrainError> {
        let all = self.gather(&own)?;
        // The entry of a lost worker is 0.
        let differs = |other: &Vec<u64>| other[0] != 0 && *other != own;
        let Some(other) = all.iter().position(differs) else { return Ok(()) };
        let what =
            if all[other][0] == own[0] { "starts from a different state" } else { "has different settings" };
        let rank = self.world.rank;
        Err(TrainError::Disagreement(format!("worker {other} {what} than worker {rank}")))
    }

    /// Returns whether all workers that took part passed the same state digest.
    pub fn is_identical(&mut self, digest: u64) -> Result<bool, TrainError> {
        Ok(self.gather(&[digest])?.iter().all(|other| other[0] == digest || other[0] == 0))
    }
}
