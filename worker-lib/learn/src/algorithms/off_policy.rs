//! The family of algorithms that learn from replayed transitions. This module combines an algorithm's behaviour (its
//! choice of actions) and its learner into the local half of a worker, or into a remote actor and a remote learner.

use std::ops::Range;

use rand_chacha::ChaCha8Rng;

use super::TrainError;
use super::actor_critic::NamedTensor;
use super::checkpoint::{Reader, Writer};
use super::environments::{EnvFactory, slots};
use super::experience::{Experience, ExperienceOptions};
use super::halves::{Halves, LocalHalf, Tail};
use super::phases::Phase;
use super::remote::{BatchLearner, RemoteActor, RemoteHalves, RemoteLearner, Rest, StepActor, batch_share};
use super::streams::{Purpose, stream};
use super::trainer::{Algorithm, Family, Mode, World};
use super::vector_env::{TransitionSink, VectorEnv};
use crate::env::EnvSpec;

/// Action selection during training.
pub(super) trait Behaviour: Send {
    /// Chooses actions (`[environments, action_dim]`) for the current observations of `acting`. `parameters` is the
    /// part of the model that acting requires; `steps` is the number of environment steps that the run has taken.
    fn choose(&mut self, parameters: &[f32], steps: u64, acting: &mut VectorEnv, actions: &mut Vec<f32>);
}

/// A learner that can also learn from batches of this worker's own environments.
pub(super) trait ReplayLearner: BatchLearner {
    /// Draws the random numbers for the next gradient, which covers `samples` samples, from the random streams of the
    /// environments.
    fn draw(&mut self, _samples: usize, _acting: &mut VectorEnv) {}
}

/// Source of a learner's transitions.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    /// This worker's own environments, in a job with this mode of synchronisation.
    Own(Mode),
    /// Remote actors. The number is the rank of this learner.
    Elsewhere(usize),
}

impl Source {
    /// Returns the random stream of a learner with remote actors, or `None` for a learner that uses the random streams
    /// of its own environments.
    pub(super) fn rng(self, seed: u64) -> Option<ChaCha8Rng> {
        match self {
            Self::Own(_) => None,
            Self::Elsewhere(rank) => Some(stream(seed, Purpose::Minibatches, rank)),
        }
    }
}

/// The parts that differ between the algorithms of the family.
pub(super) trait OffPolicyAlgorithm: Algorithm {
    type Behaviour: Behaviour + 'static;
    type Learner: ReplayLearner + 'static;

    fn experience(&self) -> ExperienceOptions;

    /// Returns the range of the model's parameters that acting requires.
    fn acting(&self, spec: &EnvSpec) -> Result<Range<usize>, TrainError>;

    fn behaviour(&self, spec: &EnvSpec, environments: usize) -> Result<Self::Behaviour, TrainError>;

    /// Creates a learner for batches of up to `samples` samples.
    fn learner(&self, spec: &EnvSpec, samples: usize, source: Source) -> Result<Self::Learner, TrainError>;

    /// Returns the fields of [`Halves`] other than the local half.
    fn rest(self, spec: &EnvSpec) -> Result<Rest, TrainError>;
}

/// Algorithms that learn from replayed transitions, such as DQN, DDPG, TD3 and SAC.
#[derive(Clone, Copy, Debug)]
pub struct OffPolicy;

impl<C: OffPolicyAlgorithm> Family<C> for OffPolicy {
    fn halves(mut config: C, world: World, factory: &EnvFactory, mode: Mode) -> Result<Halves, TrainError> {
        let environments = *config.common().environments;
        let mut experience = Experience::new(&config.experience(), environments, world, factory)?;
        // The number of environments is fixed from here on, so that a run resumed with more workers keeps them.
        *config.common().environments = Some(experience.environments());
        let (spec, samples) = (experience.spec().clone(), experience.batch_size());
        let local = LocalReplay {
            behaviour: config.behaviour(&spec, experience.acting_mut().slots().len())?,
            learner: config.learner(&spec, samples, Source::Own(mode))?,
            acting: config.acting(&spec)?,
            actions: Vec::new(),
            experience,
        };
        Ok(config.rest(&spec)?.with(Box::new(local)))
    }

    fn remote_learner(config: C, world: World, spec: &EnvSpec) -> Result<RemoteHalves, TrainError> {
        let samples = batch_share(config.experience().batch_size, world.size);
        let learner = config.learner(spec, samples, Source::Elsewhere(world.rank))?;
        Ok(RemoteHalves {
            learner: RemoteLearner::Batches(Box::new(learner)),
            acting: config.acting(spec)?,
            demand: config.experience().demand(),
            spec: spec.clone(),
            rest: config.rest(spec)?,
        })
    }

    fn remote_actor(
        config: &C,
        environments: Range<usize>,
        factory: &EnvFactory,
    ) -> Result<RemoteActor, TrainError> {
        let options = config.experience();
        let (spec, slots) = slots(environments, options.seed, factory)?;
        Ok(RemoteActor::Steps(Box::new(Actor {
            behaviour: config.behaviour(&spec, slots.len())?,
            acting: VectorEnv::new(spec, slots, options.clip_rewards),
            actions: Vec::new(),
        })))
    }
}

/// Local half that acts until a batch is due and then learns from the batch.
struct LocalReplay<B, L> {
    experience: Experience,
    behaviour: B,
    learner: L,
    /// Range of the model's parameters that acting requires.
    acting: Range<usize>,
    /// Actions of all environments, `[environments, action_dim]`.
    actions: Vec<f32>,
}

impl<B: Behaviour, L: ReplayLearner> LocalReplay<B, L> {
    fn act(&mut self, model: &[f32]) -> Result<(), TrainError> {
        let _phase = Phase::Act.enter();
        let steps = self.experience.steps();
        let parameters = &model[self.acting.clone()];
        self.behaviour.choose(parameters, steps, self.experience.acting_mut(), &mut self.actions);
        self.experience.act(&self.actions)
    }
}

impl<B: Behaviour, L: ReplayLearner> LocalHalf for LocalReplay<B, L> {
    fn spec(&self) -> &EnvSpec {
        self.experience.spec()
    }

    fn gradient(&mut self, model: &[f32], gradient: &mut [f32]) -> Result<Tail, TrainError> {
        while self.experience.is_acting() {
            self.act(model)?;
        }
        self.learner.draw(self.experience.batch_size(), self.experience.acting_mut());
        let losses = self.learner.gradient(model, self.experience.sample(), gradient);
        self.experience.update_priorities(self.learner.errors());
        Ok(Tail { losses, ..self.experience.take_tail() })
    }

    fn write(&self, writer: &mut Writer) {
        self.experience.write(writer);
        self.learner.write(writer);
    }

    fn read(&mut self, files: &[Reader<'_>]) -> Result<Vec<usize>, TrainError> {
        self.learner.read(files)?;
        self.experience.read(files)
    }
}

/// Actor that acts for remote learners.
struct Actor<B> {
    behaviour: B,
    acting: VectorEnv,
    actions: Vec<f32>,
}

impl<B: Behaviour> StepActor for Actor<B> {
    fn spec(&self) -> &EnvSpec {
        self.acting.spec()
    }

    fn step(&mut self, model: &[f32], steps: u64, sink: &mut TransitionSink<'_>) -> Result<(), TrainError> {
        self.behaviour.choose(model, steps, &mut self.acting, &mut self.actions);
        self.acting.step(&self.actions, sink)
    }

    fn take_tail(&mut self) -> Tail {
        self.acting.take_tail()
    }
}

/// Moves `target` towards `parameters` by the fraction `tau` of their difference.
pub(super) fn follow(target: &mut [f32], parameters: &[f32], tau: f32) {
    if tau >= 1.0 {
        target.copy_from_slice(parameters);
    } else {
        target.iter_mut().zip(parameters).for_each(|(target, x)| *target += tau * (x - *target));
    }
}

/// Writes a model that consists of parameters and the same number of target parameters.
pub(super) fn write_with_targets(writer: &mut Writer, tensors: impl Fn() -> Vec<NamedTensor>, model: &[f32]) {
    let (parameters, targets) = model.split_at(model.len() / 2);
    writer.parameters("", tensors(), parameters);
    writer.parameters("target.", tensors(), targets);
}

/// Restores the model that [`write_with_targets`] wrote.
pub(super) fn read_with_targets(
    reader: &Reader<'_>,
    tensors: impl Fn() -> Vec<NamedTensor>,
    model: &mut [f32],
) -> Result<(), TrainError> {
    let (parameters, targets) = model.split_at_mut(model.len() / 2);
    parameters.copy_from_slice(&reader.parameters("", tensors())?);
    targets.copy_from_slice(&reader.parameters("target.", tensors())?);
    Ok(())
}
