//! A placer that uses the shared network. It follows the rule [`Saving`](crate::policy::Saving), but adds the output of
//! one network head to each value on which the rule bases a decision.
//!
//! | head | the rule's value | decision that the head changes |
//! |---|---|---|
//! | order | the logarithm of a job's GPU-seconds | which waiting job is first |
//! | pick | the negative logarithm of a GPU's failure rate | which GPUs a job gets |
//! | save | the logarithm of Young's interval | after how much work a running job is suspended |

use std::sync::Arc;
use strum::VariantArray as _;

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, StandardNormal};

use super::features::View;
use super::score::{add_choice_gradient, add_entropy_gradient, choose};
use super::shared_net::{HEADS, Head, SharedNet};
use crate::policy::Placer;
use crate::policy::saving::{due_in, interval, is_due};
use crate::state::State;

/// Maximum absolute difference between the logarithm of the chosen interval between suspensions and that of Young's
/// interval.
const SAVE_MOST: f64 = 3.0;
/// Constant that is added to a rate before its logarithm is taken, so that the logarithm is finite for a rate of 0.
const RATE_LEAST: f64 = 1e-300;

/// Randomness of the choices during training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exploration {
    /// Temperature at which the order of the queue is sampled.
    pub order_temperature: f64,
    /// Temperature at which GPUs are sampled.
    pub pick_temperature: f64,
    /// Standard deviation of the logarithm of a sampled interval between suspensions.
    pub save_deviation: f64,
}

/// Score of a simulated run: the gradients, with respect to the parameters, of the log-probability of all its choices
/// and of their entropy. The gradients are sums over choices; see [`Self::mean`].
#[derive(Clone, Debug, Default)]
pub struct Score {
    /// Gradient of the log-probability, `[parameters]`.
    pub log_probability: Vec<f32>,
    /// Gradient of the entropy, `[parameters]`.
    pub entropy: Vec<f32>,
    /// Number of choices of each head.
    pub choices: [u64; HEADS],
}

impl Score {
    fn new(parameters: usize) -> Self {
        let zeros = vec![0.0; parameters];
        Self { log_probability: zeros.clone(), entropy: zeros, choices: [0; HEADS] }
    }

    /// Divides the gradients of each head by its number of choices, so that a run with many choices has no more weight
    /// than one with few.
    #[must_use]
    pub fn mean(mut self, net: &SharedNet) -> Self {
        for head in Head::VARIANTS.iter().copied() {
            let scale = 1.0 / self.choices[head as usize].max(1) as f32;
            for vector in [&mut self.log_probability, &mut self.entropy] {
                vector[net.range(head)].iter_mut().for_each(|slope| *slope *= scale);
            }
        }
        self
    }
}

#[derive(Clone, Debug)]
struct Random {
    exploration: Exploration,
    rng: ChaCha8Rng,
    score: Score,
}

/// Placer with the shared network. Each simulated run needs a new instance.
#[derive(Clone, Debug)]
pub struct SharedPlacer {
    net: SharedNet,
    parameters: Arc<[f32]>,
    suspends: bool,
    random: Option<Random>,
    /// For each job, the number of its most recent run and the suspension interval chosen for that run.
    intervals: Vec<(u32, f64)>,
}

impl SharedPlacer {
    /// Creates a placer from a network and its parameters; `suspends` indicates whether the placer may suspend jobs.
    ///
    /// # Panics
    /// Panics if the number of parameters does not match the network.
    pub fn new(net: SharedNet, parameters: Arc<[f32]>, suspends: bool) -> Self {
        assert_eq!(
            parameters.len(),
            net.parameter_count(),
            "the number of parameters must match the network"
        );
        Self { net, parameters, suspends, random: None, intervals: Vec::new() }
    }

    /// Adds exploration: makes random choices and records their score.
    #[must_use]
    pub fn with_exploration(mut self, exploration: Exploration, rng: ChaCha8Rng) -> Self {
        let score = Score::new(self.parameters.len());
        self.random = Some(Random { exploration, rng, score });
        self
    }

    /// Returns the score of the choices; empty without exploration.
    pub fn into_score(self) -> Score {
        self.random.map(|random| random.score).unwrap_or_default()
    }

    /// Returns the best `count` items by the sum of the rule's value and the head's output. With exploration, returns a
    /// random choice whose probabilities depend on these sums.
    fn choose(
        &mut self,
        head: Head,
        rows: &[f32],
        rule: &[f64],
        count: usize,
        before: impl Fn(usize, usize) -> std::cmp::Ordering,
    ) -> Vec<usize> {
        let added = self.net.forward(head, &self.parameters, rows);
        let sums = rule.iter().zip(&added).map(|(rule, added)| rule + f64::from(*added));
        let Some(Random { exploration, rng, score }) = &mut self.random else {
            return choose(&sums.collect::<Vec<_>>(), count, None, before);
        };
        let temperature = match head {
            Head::Order => exploration.order_temperature,
            _ => exploration.pick_temperature,
        };
        let logits: Vec<f64> = sums.map(|sum| sum / temperature).collect();
        let chosen = choose(&logits, count, Some(rng), before);
        let mut by_choice = vec![0.0; logits.len()];
        add_choice_gradient(&logits, &chosen, 1.0 / temperature, &mut by_choice);
        let mut by_entropy = vec![0.0; logits.len()];
        add_entropy_gradient(&logits, 1.0 / temperature, &mut by_entropy);
        for (by, gradient) in [(by_choice, &mut score.log_probability), (by_entropy, &mut score.entropy)] {
            let by: Vec<f32> = by.into_iter().map(|slope| slope as f32).collect();
            self.net.backward(head, &self.parameters, rows, &by, gradient);
        }
        score.choices[head as usize] += 1;
        chosen
    }

    /// Returns the work, in seconds, after which a running job is suspended. The value is constant throughout a run of
    /// the job.
    fn interval(&mut self, state: &State<'_>, job: usize) -> f64 {
        if !self.suspends || !state.is_running(job) {
            return f64::INFINITY;
        }
        self.intervals.resize(state.progress.len(), (0, f64::INFINITY));
        let run = state.progress[job].runs;
        if self.intervals[job].0 != run {
            self.intervals[job] = (run, self.choose_interval(state, job));
        }
        self.intervals[job].1
    }

    fn choose_interval(&mut self, state: &State<'_>, job: usize) -> f64 {
        let young = interval(state, job);
        if !young.is_finite() {
            return young;
        }
        let row = View::of(state).of_run(state, job);
        let mean = f64::from(self.net.forward(Head::Save, &self.parameters, &row)[0]);
        let mut folds = mean;
        if let Some(Random { exploration, rng, score }) = &mut self.random {
            let noise: f64 = StandardNormal.sample(rng);
            folds += exploration.save_deviation * noise;
            // This is the derivative of the logarithm of a normal density with respect to its mean.
            let by = [(noise / exploration.save_deviation) as f32];
            self.net.backward(Head::Save, &self.parameters, &row, &by, &mut score.log_probability);
            score.choices[Head::Save as usize] += 1;
        }
        young * folds.clamp(-SAVE_MOST, SAVE_MOST).exp()
    }
}

impl Placer for SharedPlacer {
    fn suspend(&mut self, state: &State<'_>, jobs: &mut Vec<usize>) {
        for job in state.active.iter().copied() {
            let interval = self.interval(state, job);
            if is_due(state, job, interval) {
                jobs.push(job);
            }
        }
    }

    fn order(&mut self, state: &State<'_>, queue: &mut [usize]) {
        if queue.len() < 2 {
            return;
        }
        let rows = View::of(state).of_queue(state, queue);
        let sizes: Vec<f64> = queue.iter().map(|job| state.job(*job).gpu_seconds()).collect();
        let rule: Vec<f64> = sizes.iter().map(|size| size.ln()).collect();
        let before = |a: usize, b: usize| sizes[b].total_cmp(&sizes[a]).then(a.cmp(&b));
        let order = self.choose(Head::Order, &rows, &rule, queue.len(), before);
        let jobs: Vec<usize> = order.into_iter().map(|at| queue[at]).collect();
        queue.copy_from_slice(&jobs);
    }

    fn place(&mut self, state: &State<'_>, job: usize, size: usize, picks: &mut Vec<usize>) {
        let free: Vec<usize> = state.free_gpus().collect();
        let rows = View::of(state).of_gpus(state, job, size, &free);
        let rates: Vec<f64> = free.iter().map(|gpu| state.rate(*gpu)).collect();
        let rule: Vec<f64> = rates.iter().map(|rate| -(rate + RATE_LEAST).ln()).collect();
        let before = |a: usize, b: usize| rates[a].total_cmp(&rates[b]).then(a.cmp(&b));
        let chosen = self.choose(Head::Pick, &rows, &rule, size, before);
        picks.extend(chosen.into_iter().map(|at| free[at]));
    }

    fn look_again(&mut self, state: &State<'_>) -> Option<f64> {
        let mut least: Option<f64> = None;
        for job in state.active.iter().copied() {
            let interval = self.interval(state, job);
            if let Some(wait) = due_in(state, job, interval) {
                least = Some(least.map_or(wait, |least| least.min(wait)));
            }
        }
        least
    }
}
