//! Critics for continuous actions and their loss, used by DDPG, TD3 and SAC. The parameters are stored in one flat
//! vector.

use std::ops::Range;

use rand::{Rng, RngExt as _};

use super::TrainError;
use super::actor_critic::{NamedTensor, network_tensors};
use super::phases::Phase;
use super::replay::Batch;
use crate::env::{ActionSpec, EnvSpec};
use crate::nn::{Activation, Network, Operation, Workspace, uniform_by_fan_in};

/// Bound on the initial weights and biases of output layers in the normalised architecture. It is small, so that
/// actions and values start near zero.
const LAST_LAYER_SPREAD: f32 = 3e-3;

/// Architecture of actors and critics for continuous actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// Hidden layers have layer normalisation, the action enters a critic at its second layer, and the outputs start
    /// near zero (Lillicrap et al., 2016).
    Normalised,
    /// Hidden layers have only ReLU activations, the action enters a critic at its first layer, and all layers are
    /// initialised as in PyTorch (Fujimoto et al., 2018; Haarnoja et al., 2018).
    Plain,
}

impl Architecture {
    /// Adds a hidden layer with ReLU activations to a network.
    pub fn hidden(self, network: Network, width: usize) -> Network {
        match self {
            Self::Normalised => network.dense(width, Activation::Identity).layer_norm(Activation::Relu),
            Self::Plain => network.dense(width, Activation::Relu),
        }
    }

    /// Writes the initial parameters of a network (`[parameter_count]`, zeros before the call). Weights and biases are
    /// drawn uniformly from an interval [-b, b]. In normalised output layers, b is 0.003; in all other layers, it
    /// depends on the fan-in, as in PyTorch. Layer normalisation starts with gain 1 and bias 0.
    pub fn initialise(self, network: &Network, parameters: &mut [f32], rng: &mut impl Rng) {
        let layers = network.layers();
        for (i, layer) in layers.iter().enumerate() {
            if matches!(layer.operation, Operation::LayerNorm { .. }) {
                parameters[layer.weight.clone()].fill(1.0);
                continue;
            }
            let both = &mut parameters[layer.weight.start..layer.bias.end];
            if self == Self::Normalised && i + 1 == layers.len() {
                let near_zero = -LAST_LAYER_SPREAD..=LAST_LAYER_SPREAD;
                both.iter_mut().for_each(|x| *x = rng.random_range(near_zero.clone()));
            } else {
                uniform_by_fan_in(both, layer.inputs(), rng);
            }
        }
    }
}

/// Returns the number of floats in an action of `env`. Also checks that actions are continuous and that there are
/// hidden layers.
///
/// # Errors
/// [`TrainError::Config`] if the actions are discrete or there are no hidden layers.
pub(super) fn continuous_dim(env: &EnvSpec, hidden: &[usize]) -> Result<usize, TrainError> {
    let ActionSpec::Continuous { dim } = env.action else {
        return Err(TrainError::Config(format!(
            "{} has discrete actions, expected continuous ones; for discrete actions, train ppo, a2c or dqn",
            env.id
        )));
    };
    if hidden.is_empty() {
        return Err(TrainError::Config("hidden has no layer, expected at least one".to_owned()));
    }
    Ok(dim)
}

/// One or two critics of equal shape. The type contains only the shapes. In the parameter vector, the second critic
/// follows the first; within a critic, the layers before the action input come first.
#[derive(Clone, Debug, PartialEq)]
pub struct Critics {
    /// Layers that precede the action input; none in the plain architecture.
    features: Network,
    value: Network,
    count: usize,
    action_dim: usize,
    architecture: Architecture,
}

/// Buffers for passing one batch through a critic.
#[derive(Clone, Debug)]
struct CriticWorkspace {
    features: Workspace,
    value: Workspace,
    /// Concatenated features and actions, `[batch_max, width + action_dim]`. `by_joined` is the gradient of the loss
    /// with respect to them.
    joined: Vec<f32>,
    by_joined: Vec<f32>,
}

impl Critics {
    /// Creates `count` critics (1 or 2) for an environment with continuous actions; `hidden` gives the widths of the
    /// hidden layers.
    ///
    /// # Errors
    /// [`TrainError::Config`] if the actions are discrete or there are no hidden layers.
    pub fn new(
        env: &EnvSpec,
        hidden: &[usize],
        count: usize,
        architecture: Architecture,
    ) -> Result<Self, TrainError> {
        let action_dim = continuous_dim(env, hidden)?;
        let add = |network: Network, width: &usize| architecture.hidden(network, *width);
        let (before, after) = hidden.split_at(match architecture {
            Architecture::Normalised => 1,
            Architecture::Plain => 0,
        });
        let features = before.iter().fold(Network::flat(env.observation_dim), add);
        let value = after.iter().fold(Network::flat(features.outputs() + action_dim), add);
        let value = value.dense(1, Activation::Identity);
        Ok(Self { features, value, count, action_dim, architecture })
    }

    /// Returns the number of critics, one or two.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the number of floats in the parameter and gradient slices of all critics.
    pub fn parameter_count(&self) -> usize {
        self.range(self.count).start
    }

    /// Returns the range of the parameters of critic `number` within the slice of all critics.
    pub fn range(&self, number: usize) -> Range<usize> {
        let len = self.features.parameter_count() + self.value.parameter_count();
        number * len..(number + 1) * len
    }

    /// Writes the initial parameters (`[parameter_count]`, zeros before the call); see [`Architecture::initialise`].
    pub fn initialise(&self, parameters: &mut [f32], rng: &mut impl Rng) {
        for critic in parameters.chunks_exact_mut(self.range(0).len()) {
            let (of_features, of_value) = critic.split_at_mut(self.features.parameter_count());
            self.architecture.initialise(&self.features, of_features, rng);
            self.architecture.initialise(&self.value, of_value, rng);
        }
    }

    /// Returns the names and shapes of all parameters, as stored in files. `start` is the offset of the critics in the
    /// parameter vector.
    pub fn tensors(&self, start: usize) -> Vec<NamedTensor> {
        let of_critic = |number: usize| {
            let start = start + self.range(number).start;
            let mut tensors = network_tensors(&format!("critic_{number}.features"), &self.features, start);
            let start = start + self.features.parameter_count();
            tensors.extend(network_tensors(&format!("critic_{number}.value"), &self.value, start));
            tensors
        };
        (0..self.count).flat_map(of_critic).collect()
    }

    fn workspace(&self, batch_max: usize) -> CriticWorkspace {
        let joined = vec![0.0; batch_max * self.value.inputs()];
        CriticWorkspace {
            features: self.features.workspace(batch_max),
            value: self.value.workspace(batch_max),
            by_joined: joined.clone(),
            joined,
        }
    }

    /// Returns the values (`[batch]`) of `actions` (`[batch, action_dim]`) at `observations`. `critic` contains the
    /// parameters of one critic.
    fn values<'w>(
        &self,
        critic: &[f32],
        observations: &[f32],
        actions: &[f32],
        work: &'w mut CriticWorkspace,
    ) -> &'w [f32] {
        let (of_features, of_value) = critic.split_at(self.features.parameter_count());
        let features = if self.features.layers().is_empty() {
            observations
        } else {
            self.features.forward(of_features, observations, &mut work.features)
        };
        let rows = features.chunks_exact(self.features.outputs()).zip(actions.chunks_exact(self.action_dim));
        for ((features, action), joined) in rows.zip(work.joined.chunks_exact_mut(self.value.inputs())) {
            let (left, right) = joined.split_at_mut(features.len());
            left.copy_from_slice(features);
            right.copy_from_slice(action);
        }
        let batch = actions.len() / self.action_dim;
        self.value.forward(of_value, &work.joined[..batch * self.value.inputs()], &mut work.value)
    }

    /// Overwrites `gradient`, which has the length of `critic`, with the gradient of the loss with respect to the
    /// critic's parameters. `delta` (`[batch]`) is the gradient of the loss with respect to the values that the
    /// preceding call of [`Self::values`] returned.
    fn gradient(
        &self,
        critic: &[f32],
        observations: &[f32],
        delta: &[f32],
        work: &mut CriticWorkspace,
        gradient: &mut [f32],
    ) {
        let (of_features, of_value) = critic.split_at(self.features.parameter_count());
        let (by_features, by_value) = gradient.split_at_mut(of_features.len());
        work.value.output_delta(delta.len()).copy_from_slice(delta);
        let joined_len = delta.len() * self.value.inputs();
        let (joined, by_joined) = (&work.joined[..joined_len], &mut work.by_joined[..joined_len]);
        if self.features.layers().is_empty() {
            self.value.backward(of_value, joined, &mut work.value, by_value);
            return;
        }
        self.value.backward_to_input(of_value, joined, &mut work.value, Some(by_value), by_joined);
        let width = self.features.outputs();
        let feature_delta = work.features.output_delta(delta.len() * width);
        for (to, from) in
            feature_delta.chunks_exact_mut(width).zip(by_joined.chunks_exact(self.value.inputs()))
        {
            to.copy_from_slice(&from[..width]);
        }
        self.features.backward(of_features, observations, &mut work.features, by_features);
    }

    /// Adds the gradient of the loss with respect to the actions to `by_actions` (`[batch, action_dim]`). `delta`
    /// (`[batch]`) is the gradient of the loss with respect to the values that the preceding call of [`Self::values`]
    /// returned.
    fn add_action_gradient(
        &self,
        critic: &[f32],
        delta: &[f32],
        work: &mut CriticWorkspace,
        by_actions: &mut [f32],
    ) {
        let of_value = &critic[self.features.parameter_count()..];
        work.value.output_delta(delta.len()).copy_from_slice(delta);
        let joined_len = delta.len() * self.value.inputs();
        let (joined, by_joined) = (&work.joined[..joined_len], &mut work.by_joined[..joined_len]);
        self.value.backward_to_input(of_value, joined, &mut work.value, None, by_joined);
        let rows =
            by_actions.chunks_exact_mut(self.action_dim).zip(by_joined.chunks_exact(self.value.inputs()));
        for (to, from) in rows {
            let from = &from[from.len() - to.len()..];
            to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        }
    }
}

/// The loss of the critics and its gradients, with buffers for the intermediate results of a batch.
#[derive(Clone, Debug)]
pub struct CriticLoss {
    critics: Critics,
    work: Vec<CriticWorkspace>,
    /// Smallest value that the critics estimate for each sample, `[batch]`. `chosen` contains, for each sample, the
    /// index of the critic that estimated this value.
    least: Vec<f32>,
    chosen: Vec<usize>,
    targets: Vec<f32>,
    /// Temporal-difference errors of the first critic in the most recent batch.
    errors: Vec<f32>,
    delta: Vec<f32>,
}

/// Statistics of the first critic in a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CriticReport {
    /// Mean squared error of the values, weighted by the sample weights.
    pub loss: f64,
    /// Mean of the values that the critic assigns to the actions.
    pub mean_value: f64,
}

impl CriticLoss {
    /// Creates the loss for batches of up to `batch_max` samples.
    pub fn new(critics: Critics, batch_max: usize) -> Self {
        Self {
            work: (0..critics.count()).map(|_| critics.workspace(batch_max)).collect(),
            critics,
            least: vec![],
            chosen: vec![],
            targets: vec![],
            errors: vec![],
            delta: vec![],
        }
    }

    /// Returns the first critic's temporal-difference errors in the most recent batch, which determine the replay
    /// priorities.
    pub fn errors(&self) -> &[f32] {
        &self.errors
    }

    /// Returns the targets of the most recent batch, `[batch]`.
    pub fn targets(&self) -> &[f32] {
        &self.targets
    }

    /// Computes the targets of a batch: `r + gamma * (min Q'(s', a') + bonus)`, or only `r` if the episode terminated.
    /// `critics` holds the parameters of the target critics and `next_actions` (`[batch, action_dim]`) the actions a'.
    /// `bonus` returns the bonus of a sample, such as an entropy bonus.
    pub fn find_targets(
        &mut self,
        gamma: f32,
        critics: &[f32],
        batch: &Batch,
        next_actions: &[f32],
        bonus: impl Fn(usize) -> f32,
    ) {
        self.find_least(critics, &batch.next_observations, next_actions, self.critics.count());
        self.targets.clear();
        self.targets.extend(
            self.least
                .iter()
                .enumerate()
                .map(|(i, least)| batch.rewards[i] + gamma * batch.goes_on[i] * (least + bonus(i))),
        );
    }

    /// Overwrites `gradient` with the gradient of the mean squared error between the critics' values and the targets of
    /// [`Self::find_targets`]. The gradient is taken with respect to `critics`. Both `critics` and `gradient` have the
    /// shape `[parameter_count]`.
    pub fn gradient(&mut self, critics: &[f32], batch: &Batch, gradient: &mut [f32]) -> CriticReport {
        let mut report = CriticReport::default();
        // The first critic is the last one processed, so `errors` then contains its errors.
        for number in (0..self.critics.count()).rev() {
            report = self.gradient_of(number, critics, batch, gradient);
        }
        report
    }

    /// Writes the gradient of one critic to the critic's part of `gradient`.
    pub(super) fn gradient_of(
        &mut self,
        number: usize,
        critics: &[f32],
        batch: &Batch,
        gradient: &mut [f32],
    ) -> CriticReport {
        let (range, work) = (self.critics.range(number), &mut self.work[number]);
        let critic = &critics[range.clone()];
        let values = self.critics.values(critic, &batch.observations, &batch.actions, work);
        let count = values.len();
        self.errors.clear();
        self.errors.extend(values.iter().zip(&self.targets).map(|(value, target)| value - target));
        let mean_value = values.iter().map(|value| f64::from(*value)).sum::<f64>() / count as f64;
        let weighted = self.errors.iter().zip(&batch.weights);
        let loss = weighted.clone().map(|(error, weight)| f64::from(weight * error * error)).sum::<f64>();
        self.delta.clear();
        self.delta.extend(weighted.map(|(error, weight)| 2.0 * weight * error / count as f32));
        let _backward = Phase::Backward.enter();
        self.critics.gradient(critic, &batch.observations, &self.delta, work, &mut gradient[range]);
        CriticReport { loss: loss / count as f64, mean_value }
    }

    /// Overwrites `by_actions` (`[batch, action_dim]`) with the gradient of the policy loss with respect to `actions`,
    /// and returns the policy loss. For each sample, the first `used` critics estimate a value; the loss is the negated
    /// mean, over the batch, of the smallest of these values.
    pub fn action_gradient(
        &mut self,
        critics: &[f32],
        (observations, actions): (&[f32], &[f32]),
        used: usize,
        by_actions: &mut [f32],
    ) -> f64 {
        self.find_least(critics, observations, actions, used);
        let count = self.least.len();
        let mean = self.least.iter().map(|value| f64::from(*value)).sum::<f64>() / count as f64;
        let _backward = Phase::Backward.enter();
        by_actions.fill(0.0);
        for (number, work) in self.work[..used].iter_mut().enumerate() {
            let slope = |chosen: &usize| if *chosen == number { -1.0 / count as f32 } else { 0.0 };
            self.delta.clear();
            self.delta.extend(self.chosen.iter().map(slope));
            let critic = &critics[self.critics.range(number)];
            self.critics.add_action_gradient(critic, &self.delta, work, by_actions);
        }
        -mean
    }

    /// Computes, for each sample, the smallest value that the first `used` critics estimate.
    fn find_least(&mut self, critics: &[f32], observations: &[f32], actions: &[f32], used: usize) {
        for (number, work) in self.work[..used].iter_mut().enumerate() {
            let critic = &critics[self.critics.range(number)];
            let values = self.critics.values(critic, observations, actions, work);
            if number == 0 {
                self.least.clear();
                self.least.extend_from_slice(values);
                self.chosen.clear();
                self.chosen.resize(values.len(), 0);
                continue;
            }
            for ((least, chosen), value) in self.least.iter_mut().zip(&mut self.chosen).zip(values) {
                if value < least {
                    (*least, *chosen) = (*value, number);
                }
            }
        }
    }
}

/// Test inputs for losses. They consist of an environment with 3-dimensional observations and 2-dimensional actions,
/// and of a batch of transitions.
#[cfg(test)]
pub(super) mod samples {
    use rand::SeedableRng as _;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    pub(crate) const BATCH: usize = 6;

    pub(crate) fn spec() -> EnvSpec {
        EnvSpec {
            id: "test".into(),
            observation_dim: 3,
            image: None,
            action: ActionSpec::Continuous { dim: 2 },
            episode_steps_max: 1,
            solved_return: 0.0,
        }
    }

    pub(crate) fn random(len: usize, seed: u64) -> Vec<f32> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        (0..len).map(|_| rng.random_range(-1.0..1.0)).collect()
    }

    pub(crate) fn batch() -> Batch {
        Batch {
            indices: (0..BATCH).collect(),
            observations: random(BATCH * 3, 1),
            actions: random(BATCH * 2, 2),
            rewards: random(BATCH, 3),
            next_observations: random(BATCH * 3, 4),
            goes_on: vec![1.0, 0.0, 1.0, 1.0, 0.0, 1.0],
            weights: vec![1.0, 0.5, 0.25, 1.0, 0.75, 1.0],
        }
    }

    /// Returns parameters of two similar critics. For some samples, the first critic's value is smaller; for the
    /// others, the second critic's value is.
    pub(crate) fn twins(critics: &Critics) -> Vec<f32> {
        let len = critics.range(0).len();
        let first = random(len, 5);
        let mut second: Vec<f32> = first.iter().zip(random(len, 9)).map(|(x, y)| x + 0.3 * y).collect();
        second[len - 1] = first[len - 1];
        [first, second].concat()
    }

    /// Returns the number of derivatives in `gradient` that differ from the finite differences of `loss` by more than a
    /// tolerance.
    pub(crate) fn outliers(
        parameters: &[f32],
        gradient: &[f32],
        mut loss: impl FnMut(usize, &[f32]) -> f64,
    ) -> usize {
        let mut is_outlier = |i: usize| {
            let mut loss_at = |step: f32| {
                let mut moved = parameters.to_vec();
                moved[i] += step;
                loss(i, &moved)
            };
            let numeric = (loss_at(1e-3) - loss_at(-1e-3)) / 2e-3;
            (f64::from(gradient[i]) - numeric).abs() > 2e-3 + 1e-2 * numeric.abs()
        };
        (0..parameters.len()).filter(|i| is_outlier(*i)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::samples::{BATCH, batch, outliers, random, spec, twins};
    use super::*;
    use crate::algorithms::actor_critic::assert_covered;
    use rand::SeedableRng as _;
    use rand_chacha::ChaCha8Rng;

    const KINDS: [Architecture; 2] = [Architecture::Normalised, Architecture::Plain];

    fn critics(count: usize, architecture: Architecture) -> Critics {
        Critics::new(&spec(), &[7, 5], count, architecture).unwrap()
    }

    #[test]
    fn tensors_cover_all_parameters_once() {
        for kind in KINDS {
            let critics = critics(2, kind);
            assert_covered(critics.tensors(0), critics.parameter_count());
        }
    }

    #[test]
    fn initial_values_differ_and_are_near_zero_with_normalisation() {
        for (kind, bound) in KINDS.into_iter().zip([0.1, 1.0]) {
            let critics = critics(2, kind);
            let mut parameters = vec![0.0; critics.parameter_count()];
            critics.initialise(&mut parameters, &mut ChaCha8Rng::seed_from_u64(1));
            let (observations, actions) = (random(BATCH * 3, 1), random(BATCH * 2, 2));
            let mut work = critics.workspace(BATCH);
            let values = [0, 1].map(|number| {
                let critic = &parameters[critics.range(number)];
                critics.values(critic, &observations, &actions, &mut work).to_vec()
            });
            assert!(values[0] != values[1]);
            assert!(values.iter().flatten().all(|x| x.abs() < bound && *x != 0.0), "{kind:?}: {values:?}");
        }
    }

    #[test]
    fn parameter_gradients_agree_with_finite_differences() {
        for kind in KINDS {
            let (critics, batch) = (critics(2, kind), batch());
            let parameters = random(critics.parameter_count(), 5);
            let mut loss = CriticLoss::new(critics.clone(), BATCH);
            loss.find_targets(0.9, &random(parameters.len(), 6), &batch, &random(BATCH * 2, 7), |_| 0.5);
            let mut gradient = vec![f32::NAN; parameters.len()];
            loss.gradient(&parameters, &batch, &mut gradient);
            let mut ignored = gradient.clone();
            let different = outliers(&parameters, &gradient, |i, moved| {
                let number = usize::from(i >= critics.range(1).start);
                loss.gradient_of(number, moved, &batch, &mut ignored).loss
            });
            // The rectifier has a kink, where finite differences are inaccurate.
            assert!(different <= parameters.len() / 25, "{kind:?}: {different} of {}", parameters.len());
        }
    }

    #[test]
    fn action_gradients_agree_with_finite_differences() {
        for (kind, used) in KINDS.into_iter().flat_map(|kind| [(kind, 1), (kind, 2)]) {
            let critics = critics(2, kind);
            let parameters = twins(&critics);
            let (observations, actions) = (random(BATCH * 3, 1), random(BATCH * 2, 2));
            let mut loss = CriticLoss::new(critics, BATCH);
            let mut by_actions = vec![f32::NAN; actions.len()];
            loss.action_gradient(&parameters, (&observations, &actions), used, &mut by_actions);
            let chosen = loss.chosen.clone();
            let mut ignored = by_actions.clone();
            let different = outliers(&actions, &by_actions, |_, moved| {
                loss.action_gradient(&parameters, (&observations, moved), used, &mut ignored)
            });
            assert!(different <= 1, "{kind:?}, {used} critics: {different} of {}", actions.len());
            assert_eq!(chosen.contains(&1), used == 2, "{chosen:?}");
        }
    }

    #[test]
    fn the_target_of_a_terminated_transition_is_its_reward() {
        let (critics, batch) = (critics(2, Architecture::Plain), batch());
        let parameters = random(critics.parameter_count(), 5);
        let mut loss = CriticLoss::new(critics, BATCH);
        loss.find_targets(0.9, &parameters, &batch, &batch.actions, |i| i as f32);
        for (i, target) in loss.targets().iter().enumerate() {
            let is_reward = target.to_bits() == batch.rewards[i].to_bits();
            assert_eq!(is_reward, batch.goes_on[i] == 0.0, "{i}: {target}");
        }
    }

    #[test]
    fn the_target_includes_the_smaller_value_and_the_bonus() {
        let (both, batch) = (critics(2, Architecture::Plain), batch());
        let mut parameters = twins(&both);
        let targets_of = |critics: Critics, parameters: &[f32], bonus: f32| {
            let mut loss = CriticLoss::new(critics, BATCH);
            loss.find_targets(0.9, parameters, &batch, &batch.actions, |_| bonus);
            loss.targets
        };
        let one = |number: usize, parameters: &[f32]| {
            targets_of(critics(1, Architecture::Plain), &parameters[both.range(number)], 0.0)
        };
        let first = one(0, &parameters);
        // The last parameter is a bias. Changing it shifts the second critic's values until both critics have the same
        // mean value.
        let gap: f32 = first.iter().zip(one(1, &parameters)).map(|(a, b)| a - b).sum();
        *parameters.last_mut().unwrap() += gap / (0.9 * batch.goes_on.iter().sum::<f32>());
        let second = one(1, &parameters);
        let lesser: Vec<_> = first.iter().zip(&second).map(|(a, b)| a.min(*b)).collect();
        assert!(lesser != first && lesser != second);
        assert_eq!(targets_of(both.clone(), &parameters, 0.0), lesser);
        for (i, (with, without)) in targets_of(both, &parameters, 2.0).iter().zip(&lesser).enumerate() {
            assert!((with - without - 1.8 * batch.goes_on[i]).abs() < 1e-5, "{i}: {with} {without}");
        }
    }
}
