//! Fit of a value function to the discounted costs that follow the states of simulated slots.

use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;

use super::config::RoutingConfig;
use super::model::CnnModel;
use super::network::{Queues, Shape};
use super::training::{FitResult, Step, index};
use super::trajectory::{Environment, Trajectory};
use super::value::{ConvolutionalValue, LinearFit, LinearValue, change_queue, features, features_len};
use iswitch_learn::algorithms::exact::{add_fixed, from_fixed, to_fixed};
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_learn::group::Group;
use iswitch_learn::nn::Adam;
use iswitch_study::StudyError;

fn targets(config: &RoutingConfig, trajectory: &Trajectory) -> Vec<f64> {
    trajectory.discounted(config.discount, config.window)
}

/// Fits the linear value function by least squares over all states of all workers.
pub(super) fn fit_linear(
    step: &mut Step<'_>,
    environments: &[Environment],
    value: &mut LinearValue,
    fit: &mut LinearFit,
) -> Result<FitResult, StudyError> {
    let config = step.config;
    let shape = config.shape()?;
    let mut own = LinearFit::new(shape);
    // The sums of each environment are added as integers, so the result is bit-identical for any division of the
    // environments among workers.
    let mut numbers = vec![0_i128; own.sums_len()];
    for trajectory in environments.iter().map(|environment| &environment.trajectory) {
        let fit = fit_of(trajectory, &targets(config, trajectory), shape);
        add_fixed(&mut numbers, fit.sums());
    }
    step.group.sum(&mut numbers)?;
    own.sums_mut().zip(&numbers).for_each(|(sum, number)| *sum = from_fixed(*number));
    let learnt = FitResult { states: own.states() as u64, explained: own.explained() };
    if config.pool_data {
        fit.sums_mut().zip(own.sums()).for_each(|(sum, new)| *sum += new);
    } else {
        *fit = own;
    }
    *value = fit.solve();
    Ok(learnt)
}

/// Returns the sums for the least-squares fit of one environment.
fn fit_of(trajectory: &Trajectory, targets: &[f64], shape: Shape) -> LinearFit {
    let mut fit = LinearFit::new(shape);
    let mut row = vec![0.0; features_len(shape)];
    let mut state = Queues::empty(shape);
    for (slot, target) in targets.iter().enumerate() {
        state.copy_from(trajectory.start(slot));
        features(&state, &mut row);
        fit.add(&row, *target);
        for hop in trajectory.hops(slot) {
            let (stage, class) = (usize::from(hop.stage), usize::from(hop.class));
            let from = state.len(stage, usize::from(hop.switch), class);
            let to = state.len(stage + 1, usize::from(hop.link), class);
            change_queue(&mut row, stage, from, from - 1);
            change_queue(&mut row, stage + 1, to, to + 1);
            state.apply(*hop);
            fit.add(&row, *target);
        }
    }
    fit
}

/// Sampler for the states of one environment, which are drawn in passes. Each pass contains all states in a new random
/// order.
struct Samples<'a> {
    trajectory: &'a Trajectory,
    targets: Vec<f64>,
    /// `(slot, number of the state within the slot)` of each state, in the order of the current pass.
    order: Vec<(u32, u32)>,
    next: usize,
    rng: ChaCha8Rng,
}

impl<'a> Samples<'a> {
    fn new(trajectory: &'a Trajectory, targets: Vec<f64>, rng: ChaCha8Rng) -> Self {
        let of_slot =
            |slot: usize| (0..trajectory.states(slot) as u32).map(move |state| (slot as u32, state));
        let order: Vec<_> = (0..targets.len()).flat_map(of_slot).collect();
        Self { trajectory, targets, next: order.len(), order, rng }
    }

    /// Writes the next state into `state` and returns its target.
    fn draw(&mut self, state: &mut Queues) -> f64 {
        if self.next == self.order.len() {
            self.order.shuffle(&mut self.rng);
            self.next = 0;
        }
        let (slot, at) = self.order[self.next];
        self.next += 1;
        self.trajectory.state(slot as usize, at as usize, state);
        self.targets[slot as usize]
    }

    /// Returns the number of states, the sum of their targets, and the sum of the squares of the targets.
    fn moments(&self) -> [f64; 3] {
        let of_slot = |(slot, target): (usize, &f64)| {
            let states = self.trajectory.states(slot) as f64;
            [states, states * target, states * target * target]
        };
        let slots = self.targets.iter().enumerate().map(of_slot);
        slots.fold([0.0; 3], |sum, slot| [sum[0] + slot[0], sum[1] + slot[1], sum[2] + slot[2]])
    }
}

/// Fits the convolutional network with Adam, in several passes over all states. Returns `None` if the fit was stopped
/// early.
pub(super) fn fit_cnn(
    step: &mut Step<'_>,
    environments: &[Environment],
    model: &mut CnnModel,
) -> Result<Option<FitResult>, StudyError> {
    let (config, iteration) = (step.config, step.iteration);
    let CnnModel { value, adam, mean, deviation } = model;
    let own = step.group.own(config.environments);
    let rng = |environment| stream(config.seed, Purpose::Minibatches, index(config, iteration, environment));
    let mut samples: Vec<_> = environments
        .iter()
        .zip(own)
        .map(|(it, number)| Samples::new(&it.trajectory, targets(config, &it.trajectory), rng(number)))
        .collect();
    let moments: Vec<_> = samples.iter().map(Samples::moments).collect();
    let mut sums = [0, 1, 2].map(|at| moments.iter().map(|moments| to_fixed(moments[at])).sum());
    step.group.sum(&mut sums)?;
    let [states, sum, squares] = sums.map(from_fixed);
    let new_mean = sum / states;
    let new_deviation = (squares / states - new_mean * new_mean).max(0.0).sqrt().max(1e-6);
    value.rescale((*mean, *deviation), (new_mean, new_deviation));
    (*mean, *deviation) = (new_mean, new_deviation);

    let batches = (states as u64 / config.batch_size as u64).max(1);
    let total = batches * config.epochs;
    let mut state = Queues::empty(config.shape()?);
    let mut minibatch = Minibatch::new(config, value.parameters().len());
    let mut squares = 0.0;
    for batch in 0..total {
        if step.is_stopped() {
            return Ok(None);
        }
        step.show("fitting", batch, total);
        minibatch.begin(value);
        for samples in &mut samples {
            for _ in 0..config.batch_each() {
                let target = samples.draw(&mut state);
                minibatch.push(value, &state, (target - *mean) / *deviation);
            }
        }
        let error = minibatch.finish(value, adam, step.group)?;
        // Only the errors of the last pass are counted.
        squares += if batch >= total - batches { error } else { 0.0 };
    }
    let mut squares = [to_fixed(squares)];
    step.group.sum(&mut squares)?;
    let seen = (batches as usize * config.batch_each() * config.environments) as f64;
    Ok(Some(FitResult { states: states as u64, explained: Some(1.0 - from_fixed(squares[0]) / seen) }))
}

/// This worker's part of a minibatch, for one Adam step over all workers.
pub(super) struct Minibatch {
    targets: Vec<f32>,
    gradient: Vec<f32>,
    /// Number of states in the minibatch of all workers together.
    divisor: f32,
    learning_rate: f32,
    l2: f32,
}

impl Minibatch {
    pub(super) fn new(config: &RoutingConfig, parameters: usize) -> Self {
        Self {
            targets: Vec::new(),
            gradient: vec![0.0; parameters],
            divisor: (config.batch_each() * config.environments) as f32,
            learning_rate: config.learning_rate,
            l2: config.l2,
        }
    }

    pub(super) fn begin(&mut self, value: &mut ConvolutionalValue) {
        value.begin_batch();
        self.targets.clear();
    }

    /// Adds a state and its target, which is in the units of the value network's output.
    pub(super) fn push(&mut self, value: &mut ConvolutionalValue, state: &Queues, target: f64) {
        value.push(state);
        self.targets.push(target as f32);
    }

    /// Sums the gradient over all workers, takes one Adam step, and returns the sum of this worker's squared errors.
    pub(super) fn finish(
        &mut self,
        value: &mut ConvolutionalValue,
        adam: &mut Adam,
        group: &mut Group,
    ) -> Result<f64, StudyError> {
        let squares = value.gradient(&self.targets, self.divisor, &mut self.gradient);
        group.sum_gradient(&mut self.gradient)?;
        let weights: Vec<_> = value.weights().collect();
        for range in weights {
            let weights = &value.parameters()[range.clone()];
            self.gradient[range]
                .iter_mut()
                .zip(weights)
                .for_each(|(slope, weight)| *slope += self.l2 * weight);
        }
        adam.step(value.parameters_mut(), &self.gradient, self.learning_rate);
        Ok(squares)
    }
}
