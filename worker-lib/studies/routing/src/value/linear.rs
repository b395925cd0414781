//! Value function that is linear in the number of queues of each length, by stage.
//!
//! A state has these features:
//!
//! - for each stage except the first, the numbers of queues with 1, 2, ... packets; queues with [`LENGTHS`] or more
//!   packets are counted together;
//! - for each of these stages, the total number of packets beyond [`LENGTHS`] in such queues;
//! - the total number of packets in the first stage, which packets enter only as arrivals, never by a decision;
//! - the constant 1.
//!
//! The value is therefore a sum over queues of a function of their length, and evaluating a candidate link takes one
//! table look-up. The function is made convex: an additional packet never costs less in a longer queue than in a
//! shorter one, so noise cannot make a rarely seen length look attractive.

use super::isotonic::isotonic;
use super::{Value, separable};
use crate::network::{Queues, Shape};
use crate::policy::Lane;

/// Number of queue lengths that the features distinguish; longer queues are counted together with queues of this
/// length.
pub const LENGTHS: usize = 7;
/// Number of features of one stage.
const STAGE: usize = LENGTHS + 1;
/// Ridge coefficient, relative to the sums of the squares of the features. The ridge keeps the equations solvable even
/// if a queue length does not occur in the data.
const RIDGE: f64 = 1e-6;

/// Returns the number of features of a state.
pub fn features_len(shape: Shape) -> usize {
    shape.boundaries() * STAGE + 2
}

/// Writes the features of a state; `into` must have [`features_len`] elements.
pub fn features(queues: &Queues, into: &mut [f64]) {
    into.fill(0.0);
    let shape = queues.shape();
    for stage in 1..shape.stages() {
        queues.stage(stage).iter().for_each(|len| add_queue(into, stage, *len, 1.0));
    }
    let last = into.len() - 1;
    into[last - 1] = queues.stage_total(0) as f64;
    into[last] = 1.0;
}

/// Adds `count` queues of length `len` in a stage after the first to the features. A negative `count` removes queues.
fn add_queue(features: &mut [f64], stage: usize, len: u32, count: f64) {
    let len = len as usize;
    let at = (stage - 1) * STAGE;
    if len > 0 {
        features[at + len.min(LENGTHS) - 1] += count;
        features[at + LENGTHS] += count * len.saturating_sub(LENGTHS) as f64;
    }
}

/// Updates features after the length of one queue of a stage has changed.
pub(in super::super) fn change_queue(features: &mut [f64], stage: usize, from: u32, to: u32) {
    if stage == 0 {
        let total = features.len() - 2;
        features[total] += f64::from(to) - f64::from(from);
    } else {
        add_queue(features, stage, from, -1.0);
        add_queue(features, stage, to, 1.0);
    }
}

/// Sums of a least-squares fit. To fit several data sets together, their sums are added.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearFit {
    len: usize,
    /// Sums of the products of two features, as `[len, len]`: the upper triangle, row by row.
    products: Vec<f64>,
    /// Sums of the products of a feature and the target, as `[len]`.
    moments: Vec<f64>,
    /// Sum of the squares of the targets.
    squares: f64,
}

impl LinearFit {
    /// Creates a fit without data.
    pub fn new(shape: Shape) -> Self {
        let len = features_len(shape);
        Self { len, products: vec![0.0; len * (len + 1) / 2], moments: vec![0.0; len], squares: 0.0 }
    }

    /// Adds a state with the features `features` and the discounted cost `target`.
    pub fn add(&mut self, features: &[f64], target: f64) {
        self.squares += target * target;
        let mut row = 0;
        for (i, x) in features.iter().enumerate() {
            let rest = self.len - i;
            if *x != 0.0 {
                let sums = &mut self.products[row..row + rest];
                sums.iter_mut().zip(&features[i..]).for_each(|(sum, y)| *sum += x * y);
                self.moments[i] += x * target;
            }
            row += rest;
        }
    }

    /// Returns all sums.
    pub fn sums(&self) -> impl Iterator<Item = f64> + '_ {
        self.products.iter().chain(&self.moments).copied().chain([self.squares])
    }

    /// Returns all sums for modification.
    pub fn sums_mut(&mut self) -> impl Iterator<Item = &mut f64> {
        self.products.iter_mut().chain(&mut self.moments).chain([&mut self.squares])
    }

    /// Returns the length of [`Self::sums`].
    pub fn sums_len(&self) -> usize {
        self.products.len() + self.moments.len() + 1
    }

    /// Finds the value function with the smallest squared error, makes it convex, and returns it.
    pub fn solve(&self) -> LinearValue {
        let weights = self.least_squares();
        let seen = |feature: usize| self.product(feature, self.len - 1);
        let stage = |stage: usize| {
            let at = stage * STAGE;
            let worth = |len: usize| if len == 0 { 0.0 } else { weights[at + len - 1] };
            let steps = (0..LENGTHS).map(|len| worth(len + 1) - worth(len));
            let marginals: Vec<_> = steps.chain([weights[at + LENGTHS]]).collect();
            // The weight of a length is the number of queues that had it. The last marginal, whose feature counts the
            // packets beyond LENGTHS, has the number of queues with LENGTHS or more packets.
            let seen: Vec<_> = (at..at + LENGTHS).chain([at + LENGTHS - 1]).map(seen).collect();
            isotonic(&marginals, &seen)
        };
        LinearValue { marginals: (0..(self.len - 2) / STAGE).flat_map(stage).map(|x| x as f32).collect() }
    }

    /// Returns the number of states that were added.
    pub fn states(&self) -> f64 {
        self.product(self.len - 1, self.len - 1)
    }

    /// Returns the fraction of the variance of the targets that is explained by the value function with the smallest
    /// squared error, or `None` if the variance is 0.
    pub fn explained(&self) -> Option<f64> {
        let (states, sum) = (self.states(), self.moments[self.len - 1]);
        let variance = self.squares - sum * sum / states;
        let known: f64 =
            self.least_squares().iter().zip(&self.moments).map(|(weight, moment)| weight * moment).sum();
        (variance > 0.0).then(|| 1.0 - (self.squares - known) / variance)
    }

    fn product(&self, i: usize, j: usize) -> f64 {
        let (i, j) = (i.min(j), i.max(j));
        self.products[i * self.len - i * (i + 1) / 2 + j]
    }

    /// Solves the least-squares equations by Cholesky decomposition, with a small ridge added to the diagonal.
    fn least_squares(&self) -> Vec<f64> {
        let len = self.len;
        let mut lower = vec![0.0; len * len];
        for i in 0..len {
            for j in 0..=i {
                let known: f64 = (0..j).map(|k| lower[i * len + k] * lower[j * len + k]).sum();
                let rest = self.product(i, j) - known;
                lower[i * len + j] = if i == j {
                    (rest + RIDGE * self.product(i, i) + RIDGE).max(f64::MIN_POSITIVE).sqrt()
                } else {
                    rest / lower[j * len + j]
                };
            }
        }
        let mut solution = self.moments.clone();
        for i in 0..len {
            let known: f64 = (0..i).map(|k| lower[i * len + k] * solution[k]).sum();
            solution[i] = (solution[i] - known) / lower[i * len + i];
        }
        for i in (0..len).rev() {
            let known: f64 = (i + 1..len).map(|k| lower[k * len + i] * solution[k]).sum();
            solution[i] = (solution[i] - known) / lower[i * len + i];
        }
        solution
    }
}

/// Value function, stored as the marginal cost of an additional packet, by the stage and the length of the queue that
/// it joins.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearValue {
    /// Marginal costs, as `[stage - 1, len]`; the last value of a stage applies to all greater lengths.
    marginals: Vec<f32>,
}

impl LinearValue {
    /// Creates a value function under which all states have the same value, so packets take random links.
    pub fn flat(shape: Shape) -> Self {
        Self { marginals: vec![0.0; shape.boundaries() * STAGE] }
    }

    /// Creates a value function with these marginal costs, as `[stage - 1, len]`. Returns `None` if their number is
    /// wrong for a network of size `shape`.
    pub fn from_marginals(shape: Shape, marginals: Vec<f32>) -> Option<Self> {
        (marginals.len() == shape.boundaries() * STAGE).then_some(Self { marginals })
    }

    /// Returns the marginal costs, as `[stage - 1, len]`; the last value of a stage applies to all greater lengths.
    pub fn marginals(&self) -> &[f32] {
        &self.marginals
    }
}

impl Value for LinearValue {
    fn costs(&mut self, lanes: &[Lane], asked: &[usize], costs: &mut Vec<f32>) {
        separable(lanes, asked, costs, |stage, len| {
            self.marginals[(stage - 1) * STAGE + (len as usize).min(LENGTHS)]
        });
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt as _;

    use super::*;
    use iswitch_learn::algorithms::streams::{Purpose, stream};

    fn shape() -> Shape {
        Shape::new(3, 4).unwrap()
    }

    fn random_queues(seed: u32) -> Queues {
        let mut queues = Queues::empty(shape());
        let mut rng = stream(u64::from(seed), Purpose::Arrivals, 0);
        queues.all_mut().iter_mut().for_each(|len| *len = rng.random_range(0..11));
        queues
    }

    #[test]
    fn incremental_feature_changes_match_a_full_computation() {
        let mut queues = random_queues(1);
        let mut kept = vec![0.0; features_len(shape())];
        features(&queues, &mut kept);
        for (i, to) in [(3, 9), (17, 0), (18, 7), (33, 12), (40, 1)] {
            let len = &mut queues.all_mut()[i];
            change_queue(&mut kept, i / 16, *len, to);
            *len = to;
            let mut fresh = vec![0.0; kept.len()];
            features(&queues, &mut fresh);
            assert_eq!(kept, fresh);
        }
    }

    #[test]
    fn the_fit_recovers_a_convex_value_of_queue_lengths() {
        let want = |stage: usize, len: u32| [0.0, 0.5, 1.5][stage] * f64::from(len) * f64::from(len + 2);
        let mut fit = LinearFit::new(shape());
        let mut x = vec![0.0; features_len(shape())];
        for seed in 0..400 {
            let mut queues = random_queues(seed);
            queues.all_mut().iter_mut().for_each(|len| *len = (*len).min(LENGTHS as u32 + 1));
            features(&queues, &mut x);
            let target: f64 =
                (1..3).flat_map(|stage| queues.stage(stage).iter().map(move |len| want(stage, *len))).sum();
            fit.add(&x, target + 3.0 * queues.stage_total(0) as f64 + 100.0);
        }
        let value = fit.solve();
        for stage in 1..3 {
            for len in 0..=LENGTHS as u32 {
                let marginal = f64::from(value.marginals()[(stage - 1) * STAGE + len as usize]);
                let expected = want(stage, len + 1) - want(stage, len);
                assert!(
                    (marginal - expected).abs() < 0.02 * expected,
                    "{stage} {len}: {marginal} {expected}"
                );
            }
        }
    }

    #[test]
    fn merging_the_sums_of_two_halves_gives_the_whole() {
        let mut halves = [LinearFit::new(shape()), LinearFit::new(shape())];
        let mut whole = LinearFit::new(shape());
        let mut x = vec![0.0; features_len(shape())];
        for seed in 0..20 {
            features(&random_queues(seed), &mut x);
            halves[seed as usize % 2].add(&x, f64::from(seed));
            whole.add(&x, f64::from(seed));
        }
        let [mut first, second] = halves;
        first.sums_mut().zip(second.sums()).for_each(|(sum, other)| *sum += other);
        assert_eq!(first, whole);
    }
}
