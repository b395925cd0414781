//! Local and shared halves of a PPO learner for asynchronous jobs.
//!
//! This variant is the same as [`ppo`](super), except for the steps in which all workers must take part at the same
//! time. Here, each worker collects its rollouts independently and normalises advantages over its own rollout only. The
//! probability ratio and its clipping account for changes of the model since the rollout. The model includes the
//! statistics of observations and returns, and the discount factor. The statistics of a rollout are sent with the
//! gradient of its first minibatch, as a count, sums and sums of squares.

use rand_chacha::ChaCha8Rng;

use super::PpoConfig;
use super::rollouts::{Collector, Frozen, Minibatches, Tally, new_buffer};
use crate::algorithms::TrainError;
use crate::algorithms::actor_critic::ActorCritic;
use crate::algorithms::checkpoint::{Reader, Writer};
use crate::algorithms::environments::EnvironmentSlot;
use crate::algorithms::halves::{Counters, LOSSES, SharedHalf, Tail};
use crate::algorithms::normalise::{Deviations, Moments, Normaliser};
use crate::algorithms::on_policy::{HasSlots, OnPolicyAlgorithm};
use crate::algorithms::phases::Phase;
use crate::algorithms::remote::{Rest, RolloutActor, RolloutLearner};
use crate::algorithms::rollout::RolloutBuffer;
use crate::algorithms::share::Share;
use crate::algorithms::streams::{Purpose, stream};
use crate::algorithms::trainer::World;
use crate::algorithms::vector::VectorShape;
use crate::env::EnvSpec;
use crate::nn::{Adam, clip_global_norm};

impl OnPolicyAlgorithm for PpoConfig {
    type Actor = PpoActor;
    type Learner = PpoLearner;

    fn share_of(&self, world: World) -> Result<Share, TrainError> {
        self.share(world.rank, world.size)
    }

    fn actor(&self, spec: EnvSpec, slots: Vec<EnvironmentSlot>) -> PpoActor {
        PpoActor::new(self.clone(), spec, slots)
    }

    fn learner(&self, share: &Share, spec: &EnvSpec) -> PpoLearner {
        let streams = share.local_environments().map(|index| stream(self.seed, Purpose::Minibatches, index));
        PpoLearner::new(self, share.clone(), spec, streams.collect())
    }

    fn statistics_len(&self, spec: &EnvSpec) -> usize {
        Layout::new(&self.networks(spec)).statistics_len()
    }

    fn rest(mut self, spec: &EnvSpec) -> Rest {
        let agent = self.networks(spec);
        let layout = Layout::new(&agent);
        let mut model = vec![0.0; layout.model_len()];
        let mut rng = stream(self.seed, Purpose::Weights, 0);
        model[..layout.parameters].copy_from_slice(&agent.initial_parameters(self.log_std_init, &mut rng));
        let shared = PpoShared {
            adam: Adam::new(layout.parameters, self.adam_epsilon),
            moments: [Moments::new(layout.dim), Moments::new(1)],
            agent,
            layout,
            config: self.clone(),
        };
        shared.show_moments(&mut model);
        shared.show_gamma(&mut model, 0);
        Rest::new(&mut self, layout.vector_shape(), model, Box::new(shared))
    }
}

/// Layout of the model, `[parameters | means | variances | discount factor]`, and of the gradient, `[parameters | count
/// | sums | sums of squares]`. Each group of statistics has one entry for each element of the observation, followed by
/// one for the discounted return.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    parameters: usize,
    dim: usize,
}

impl Layout {
    pub(super) fn new(agent: &ActorCritic) -> Self {
        Self { parameters: agent.parameter_count(), dim: agent.observation_dim() }
    }

    fn model_len(self) -> usize {
        self.gamma_at() + 1
    }

    /// Returns the position of the discount factor in the model.
    fn gamma_at(self) -> usize {
        self.parameters + 2 * (self.dim + 1)
    }

    /// Returns the number of floats that hold the count, the sums and the sums of squares.
    fn statistics_len(self) -> usize {
        1 + 2 * (self.dim + 1)
    }

    pub(super) fn vector_shape(self) -> VectorShape {
        VectorShape { gradient: self.parameters, exact: self.statistics_len() + Tail::LEN }
    }
}

/// Count, sums and sums of squares of the observation's elements and of the discounted return.
struct Sums {
    count: f64,
    totals: Vec<f64>,
    squares: Vec<f64>,
}

impl Sums {
    fn new(dim: usize) -> Self {
        Self { count: 0.0, totals: vec![0.0; dim + 1], squares: vec![0.0; dim + 1] }
    }

    fn clear(&mut self) {
        self.count = 0.0;
        self.totals.fill(0.0);
        self.squares.fill(0.0);
    }

    fn add_observation(&mut self, observation: &[f32]) {
        self.count += 1.0;
        for ((sum, square), x) in self.totals.iter_mut().zip(&mut self.squares).zip(observation) {
            *sum += f64::from(*x);
            *square += f64::from(*x).powi(2);
        }
    }

    fn add_return(&mut self, discounted_return: f64) {
        let (sum, square) = (self.totals.last_mut(), self.squares.last_mut());
        sum.into_iter().for_each(|sum| *sum += discounted_return);
        square.into_iter().for_each(|square| *square += discounted_return.powi(2));
    }

    fn write(&self, floats: &mut [f32]) {
        let values =
            [self.count].into_iter().chain(self.totals.iter().copied()).chain(self.squares.iter().copied());
        floats.iter_mut().zip(values).for_each(|(float, value)| *float = value as f32);
    }

    /// Reads the sums that [`Self::write`] wrote. Returns the count, and the deviations of each quantity from its mean
    /// in `means`.
    fn read(floats: &[f32], means: impl Iterator<Item = f64>) -> (f64, Vec<Deviations>) {
        let (count, rest) = (f64::from(floats[0]), &floats[1..]);
        let (sums, squares) = rest.split_at(rest.len() / 2);
        let deviations = sums.iter().zip(squares).zip(means).map(|((sum, square), mean)| {
            let (sum, square) = (f64::from(*sum), f64::from(*square));
            let sum_squares = square - 2.0 * mean * sum + count * mean * mean;
            Deviations { sum: sum - count * mean, sum_squares: sum_squares.max(0.0) }
        });
        (count, deviations.collect())
    }
}

/// Position of the next minibatch.
#[derive(Clone, Copy, Debug)]
struct Position {
    epoch: usize,
    number: usize,
}

/// Statistics of a rollout, and the tail of the next gradient.
struct SumsOfRollout {
    sums: Sums,
    tail: Tail,
}

impl Tally for SumsOfRollout {
    fn return_mean(&self) -> f64 {
        0.0
    }

    fn observed(&mut self, slot: &mut EnvironmentSlot) {
        self.sums.add_observation(&slot.observation);
    }

    fn stepped(&mut self, slot: &EnvironmentSlot) {
        self.sums.add_return(slot.discounted_return);
        self.tail.steps += 1.0;
    }

    fn ended(&mut self, slot: &EnvironmentSlot, _step: usize) {
        self.tail.count_episode(slot);
    }
}

/// The actor of PPO, which fills one rollout at a time.
pub(in crate::algorithms) struct PpoActor {
    config: PpoConfig,
    collector: Collector,
    layout: Layout,
    tally: SumsOfRollout,
}

impl PpoActor {
    fn new(config: PpoConfig, spec: EnvSpec, slots: Vec<EnvironmentSlot>) -> Self {
        let collector = Collector::new(&config, spec, slots);
        let layout = Layout::new(&collector.agent);
        let tally = SumsOfRollout { sums: Sums::new(layout.dim), tail: Tail::default() };
        Self { config, collector, layout, tally }
    }

    /// Returns the normaliser of the observations and the factor by which rewards are multiplied, both computed from
    /// the statistics in the model.
    fn normaliser(&self, model: &[f32]) -> (Option<Normaliser>, Option<f64>) {
        let dim = self.layout.dim;
        let statistics: Vec<_> =
            model[self.layout.parameters..self.layout.gamma_at()].iter().map(|x| f64::from(*x)).collect();
        let (means, variances) = statistics.split_at(dim + 1);
        let of_observations =
            Moments { mean: means[..dim].to_vec(), variance: variances[..dim].to_vec(), count: 1.0 };
        let of_returns = Moments { mean: vec![0.0], variance: variances[dim..].to_vec(), count: 1.0 };
        (
            self.config.normalise_observations.then(|| Normaliser::new(&of_observations)),
            self.config.normalise_rewards.then(|| of_returns.scale()[0]),
        )
    }
}

impl RolloutActor for PpoActor {
    fn state_len(&self) -> usize {
        self.collector.agent.state_len()
    }

    fn spec(&self) -> &EnvSpec {
        &self.collector.spec
    }

    fn roll_out(
        &mut self,
        model: &[f32],
        buffer: &mut RolloutBuffer,
        statistics: &mut [f32],
    ) -> Result<Tail, TrainError> {
        let _acting = Phase::Act.enter();
        let (normaliser, reward_scale) = self.normaliser(model);
        let parameters = &model[..self.layout.parameters];
        self.tally.sums.clear();
        let gamma = model[self.layout.gamma_at()];
        let with = Frozen { parameters, normaliser: normaliser.as_ref(), reward_scale, gamma };
        self.collector.collect(&with, buffer, &mut self.tally)?;
        self.tally.sums.write(statistics);
        Ok(std::mem::take(&mut self.tally.tail))
    }
}

impl HasSlots for PpoActor {
    fn slots(&self) -> &[EnvironmentSlot] {
        &self.collector.slots
    }

    fn slots_mut(&mut self) -> &mut [EnvironmentSlot] {
        &mut self.collector.slots
    }
}

/// The learner of PPO, which computes several gradients from each rollout.
pub(in crate::algorithms) struct PpoLearner {
    config: PpoConfig,
    share: Share,
    layout: Layout,
    buffer: RolloutBuffer,
    minibatches: Minibatches,
    position: Position,
    /// Random streams that determine the order of the samples, one for each environment.
    streams: Vec<ChaCha8Rng>,
    /// Statistics of the rollout.
    statistics: Vec<f32>,
    /// Whether the statistics of the rollout have not been sent yet; if so, the next gradient carries them.
    statistics_unsent: bool,
    sends_statistics: bool,
}

impl PpoLearner {
    fn new(config: &PpoConfig, share: Share, spec: &EnvSpec, streams: Vec<ChaCha8Rng>) -> Self {
        let agent = config.networks(spec);
        let layout = Layout::new(&agent);
        Self {
            buffer: new_buffer(&share, &agent),
            minibatches: Minibatches::new(config, &share, agent),
            position: Position { epoch: config.epochs, number: 0 },
            streams,
            statistics: vec![0.0; layout.statistics_len()],
            statistics_unsent: false,
            sends_statistics: false,
            config: config.clone(),
            share,
            layout,
        }
    }

    fn next_minibatch(&mut self, parameters: &[f32]) {
        let _phase = Phase::Sample.enter();
        let Position { epoch, number } = self.position;
        if number == 0 {
            self.minibatches.shuffle(self.streams.iter_mut());
        }
        self.minibatches.draw(number, parameters, &self.buffer);
        self.position = if number + 1 == self.share.minibatches() {
            Position { epoch: epoch + 1, number: 0 }
        } else {
            Position { epoch, number: number + 1 }
        };
    }
}

/// Normalises the advantages to the mean and variance of this worker's rollout alone.
fn normalise_advantages(buffer: &mut RolloutBuffer) {
    let advantages = &buffer.advantages;
    let count = advantages.len() as f64;
    let mean = advantages.iter().map(|x| f64::from(*x)).sum::<f64>() / count;
    let variance = advantages.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / count;
    buffer.normalise_advantages(mean, variance);
}

impl RolloutLearner for PpoLearner {
    fn wants_rollout(&self) -> bool {
        self.position.epoch >= self.config.epochs
    }

    fn buffer_mut(&mut self) -> &mut RolloutBuffer {
        &mut self.buffer
    }

    fn begin(&mut self, model: &[f32], statistics: &[f32]) {
        let _sampling = Phase::Sample.enter();
        self.statistics.copy_from_slice(statistics);
        self.statistics_unsent = true;
        self.minibatches.begin(&mut self.buffer, model[self.layout.gamma_at()]);
        normalise_advantages(&mut self.buffer);
        self.position = Position { epoch: 0, number: 0 };
    }

    fn gradient(&mut self, model: &[f32], gradient: &mut [f32]) -> [f32; LOSSES] {
        let parameters = &model[..self.layout.parameters];
        self.next_minibatch(parameters);
        let (by_parameters, statistics) = gradient.split_at_mut(self.layout.parameters);
        let losses = self.minibatches.gradient(&self.config, parameters, by_parameters);
        statistics.fill(0.0);
        self.sends_statistics = std::mem::take(&mut self.statistics_unsent);
        if self.sends_statistics {
            statistics.copy_from_slice(&self.statistics);
        }
        [losses.policy, losses.value, losses.entropy, losses.approx_kl].map(|loss| loss as f32)
    }

    fn skipped(&mut self) {
        self.statistics_unsent |= self.sends_statistics;
    }
}

struct PpoShared {
    config: PpoConfig,
    agent: ActorCritic,
    layout: Layout,
    adam: Adam,
    /// Moments of the observations and of the discounted return.
    moments: [Moments; 2],
}

impl PpoShared {
    fn merge(&mut self, sums: &[f32]) {
        let means: Vec<_> = self.moments.iter().flat_map(|moments| moments.mean.clone()).collect();
        let (count, deviations) = Sums::read(sums, means.into_iter());
        let (of_observations, of_return) = deviations.split_at(self.layout.dim);
        self.moments[0].merge(count, of_observations);
        self.moments[1].merge(count, of_return);
    }

    /// Copies the statistics into the model.
    fn show_moments(&self, model: &mut [f32]) {
        let means = self.moments.iter().flat_map(|moments| &moments.mean);
        let variances = self.moments.iter().flat_map(|moments| &moments.variance);
        let places = &mut model[self.layout.parameters..];
        places.iter_mut().zip(means.chain(variances)).for_each(|(world, x)| *world = *x as f32);
    }

    /// Copies the discount factor after `steps` environment steps into the model.
    fn show_gamma(&self, model: &mut [f32], steps: u64) {
        model[self.layout.gamma_at()] = self.config.gamma_after(self.part(steps));
    }

    /// Returns the fraction of the run that is complete after `steps` environment steps.
    fn part(&self, steps: u64) -> f64 {
        steps as f64 / self.config.total_steps as f64
    }
}

impl SharedHalf for PpoShared {
    fn update(&mut self, model: &mut [f32], gradient: &mut [f32], counters: &Counters) {
        let (by_parameters, statistics) = gradient.split_at_mut(self.layout.parameters);
        clip_global_norm(by_parameters, self.config.max_grad_norm);
        let rate = self.config.learning_rate_after(self.part(counters.steps));
        self.adam.step(&mut model[..self.layout.parameters], by_parameters, rate);
        if statistics[0] > 0.0 {
            self.merge(statistics);
            self.show_moments(model);
        }
        self.show_gamma(model, counters.steps);
    }

    fn loss_names(&self) -> &'static [&'static str] {
        &["losses/policy_loss", "losses/value_loss", "losses/entropy", "losses/approx_kl"]
    }

    fn write(&self, model: &[f32], writer: &mut Writer) {
        writer.parameters("", self.agent.tensors(), &model[..self.layout.parameters]);
        writer.adam("optimiser", &self.adam);
        self.moments[0].write("observation", writer);
        self.moments[1].write("return", writer);
    }

    fn read(&mut self, model: &mut [f32], reader: &Reader<'_>) -> Result<(), TrainError> {
        let parameters = self.layout.parameters;
        model[..parameters].copy_from_slice(&reader.parameters("", self.agent.tensors())?);
        reader.adam("optimiser", parameters, &mut self.adam)?;
        self.moments =
            [Moments::read("observation", self.layout.dim, reader)?, Moments::read("return", 1, reader)?];
        self.show_moments(model);
        self.show_gamma(model, reader.number("steps")?);
        Ok(())
    }
}
