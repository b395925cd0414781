//! Search for a better order at each decision. The search starts from the order that the network proposes. It
//! determines the cost of an order by a simulation in which no more jobs arrive.
//!
//! A rollout improves any policy (Bertsekas, "Rollout Algorithms", 1997). Here, a search starts from the proposal and
//! takes the steps of [`search`](crate::search), each of which moves a coflow or a whole job next to another coflow.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::net::Advice;
use super::remainder::Remainder;
use super::scene::Scene;
use crate::simulation::State;

/// Maximum difference between the key of a moved coflow and that of its new neighbour. Keys are logarithms.
const BESIDE: f64 = 1e-4;

/// Maximum absolute value of a logit. Beyond it, a probability is practically 0 or 1.
const LOGIT_MAX: f64 = 30.0;

/// Result of a search.
#[derive(Clone, Debug)]
pub struct Found {
    /// Best keys, with shape `[nodes]`.
    pub keys: Vec<f64>,
    /// Gradient of the mean relative saving of a step with respect to [`Advice::moved`], with shape `[nodes]`.
    pub moved: Vec<f32>,
    /// Gradient of the mean relative saving of a step with respect to [`Advice::aims`], with shape `[nodes]`.
    pub aims: Vec<f32>,
}

/// Search that evaluates a limited number of orders.
#[derive(Clone, Debug)]
pub struct Lookahead {
    evaluations: u64,
    rng: ChaCha8Rng,
    evaluated: u64,
}

impl Lookahead {
    /// Creates a search that, at each decision, tries `evaluations` orders for each job that has arrived since the
    /// previous decision.
    pub fn new(evaluations: u64, rng: ChaCha8Rng) -> Self {
        Self { evaluations, rng, evaluated: 0 }
    }

    /// Returns the number of orders tried so far.
    pub fn evaluated(&self) -> u64 {
        self.evaluated
    }

    /// Searches for better keys after `arrived` jobs have arrived since the previous decision. The search starts from
    /// the `proposed` keys or the `followed` keys (those currently in use), whichever have the lower cost; both have
    /// shape `[nodes]`. The network's `advice` determines the probabilities of the steps.
    pub fn improve(
        &mut self,
        (state, scene): (&State<'_>, &Scene),
        (arrived, advice): (usize, &Advice),
        proposed: Vec<f64>,
        followed: Vec<f64>,
    ) -> Found {
        let mut remainder = Remainder::of(state, scene);
        let mut best = proposed;
        let mut least = remainder.cost(&best, f64::INFINITY).unwrap_or(f64::INFINITY);
        if let Some(cost) = remainder.cost(&followed, least) {
            (best, least) = (followed, cost);
        }
        let begun = least.max(1e-9);
        let mut moved = Chooser::new(&advice.moved);
        let mut aims = Chooser::new(&advice.aims);
        let mut keys = best.clone();
        for _ in 0..self.evaluations * arrived as u64 {
            let step = (moved.choose(&mut self.rng), aims.choose(&mut self.rng));
            self.step(scene, &mut keys, step);
            let mut saved = 0.0;
            match remainder.cost(&keys, least) {
                Some(cost) => {
                    best.copy_from_slice(&keys);
                    saved = (least - cost) / begun;
                    least = cost;
                }
                None => keys.copy_from_slice(&best),
            }
            moved.credit(step.0, saved);
            aims.credit(step.1, saved);
            self.evaluated += 1;
        }
        Found { keys: best, moved: moved.slopes(), aims: aims.slopes() }
    }

    /// Moves a coflow, or the whole job that contains it, directly before or after another coflow.
    fn step(&mut self, scene: &Scene, keys: &mut [f64], (moved, aim): (usize, usize)) {
        let rng = &mut self.rng;
        let shift = keys[aim] + rng.random_range(-BESIDE..BESIDE) - keys[moved];
        if rng.random_bool(0.5) {
            let job = scene.job_of[moved];
            let keys = keys.iter_mut().zip(&scene.job_of);
            keys.filter(|(_, of)| **of == job).for_each(|(key, _)| *key += shift);
        } else {
            keys[moved] += shift;
        }
    }
}

/// Sampler that draws nodes with probabilities given by logits of the network.
#[derive(Clone, Debug)]
struct Chooser {
    /// For each node, the sum of the unnormalised probabilities of all nodes up to and including it.
    sums: Vec<f64>,
    draws: Vec<f64>,
    saved: Vec<f64>,
}

impl Chooser {
    fn new(logits: &[f32]) -> Self {
        // A network from a manipulated file may return any value; the probabilities must be valid nevertheless.
        let bounded =
            |logit: f32| if logit.is_nan() { 0.0 } else { f64::from(logit).clamp(-LOGIT_MAX, LOGIT_MAX) };
        let mut sum = 0.0;
        let add = |logit: &f32| {
            sum += bounded(*logit).exp();
            sum
        };
        let sums: Vec<f64> = logits.iter().map(add).collect();
        Self { draws: vec![0.0; sums.len()], saved: vec![0.0; sums.len()], sums }
    }

    fn choose(&self, rng: &mut ChaCha8Rng) -> usize {
        let last = self.sums.len() - 1;
        let draw = rng.random_range(0.0..self.sums[last]);
        self.sums.partition_point(|sum| *sum <= draw).min(last)
    }

    fn credit(&mut self, node: usize, saved: f64) {
        self.draws[node] += 1.0;
        self.saved[node] += saved;
    }

    /// Returns the gradient of a step's mean saving with respect to each logit (REINFORCE). The baseline is the mean
    /// saving over all steps of the decision; with this baseline, the term that contains the probabilities vanishes.
    fn slopes(&self) -> Vec<f32> {
        let draws: f64 = self.draws.iter().sum();
        let mean = self.saved.iter().sum::<f64>() / draws.max(1.0);
        let both = self.draws.iter().zip(&self.saved);
        both.map(|(draws_of, saved)| ((saved - draws_of * mean) / draws.max(1.0)) as f32).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iswitch_learn::algorithms::streams::{Purpose, stream};

    #[test]
    fn nodes_are_drawn_with_the_probabilities_of_the_logits() {
        let chooser = Chooser::new(&[0.0, f32::ln(3.0), f32::NEG_INFINITY]);
        let mut rng = stream(1, Purpose::Actions, 0);
        let mut counts = [0; 3];
        (0..4000).for_each(|_| counts[chooser.choose(&mut rng)] += 1);
        assert!((counts[0] - 1000_i32).abs() < 120 && counts[2] == 0, "{counts:?}");
        let chooser = Chooser::new(&[f32::NAN, f32::INFINITY, f32::MAX]);
        assert!((0..100).all(|_| chooser.choose(&mut rng) > 0));
    }

    #[test]
    fn choices_that_save_more_than_the_mean_get_positive_credit() {
        let mut chooser = Chooser::new(&[0.0; 3]);
        [(0, 0.4), (0, 0.0), (1, 0.0), (1, 0.0)]
            .into_iter()
            .for_each(|(node, saved)| chooser.credit(node, saved));
        assert_eq!(chooser.slopes(), [0.05, -0.05, 0.0]);
    }
}
