//! The family of algorithms that learn from rollouts of the current policy. This module combines an algorithm's actor
//! and learner into the local half of a worker, or into a remote actor and a remote learner.

use std::ops::Range;

use super::TrainError;
use super::checkpoint::{Reader, Writer, read_slots, write_slots};
use super::environments::{EnvFactory, EnvironmentSlot, local_slots, slots};
use super::halves::{Halves, LocalHalf, Tail};
use super::remote::{Demand, RemoteActor, RemoteHalves, RemoteLearner, Rest, RolloutActor, RolloutLearner};
use super::share::Share;
use super::trainer::{Algorithm, Family, Mode, World};
use crate::env::EnvSpec;

/// Access to environments, for saving and restoring their state.
pub(super) trait HasSlots {
    /// Returns the environments.
    fn slots(&self) -> &[EnvironmentSlot];
    /// Returns the environments.
    fn slots_mut(&mut self) -> &mut [EnvironmentSlot];
}

/// The parts that differ between the algorithms of the family.
pub(super) trait OnPolicyAlgorithm: Algorithm {
    type Actor: RolloutActor + HasSlots + 'static;
    type Learner: RolloutLearner + 'static;

    /// Returns the worker's share of the global batch.
    fn share_of(&self, world: World) -> Result<Share, TrainError>;

    fn actor(&self, spec: EnvSpec, slots: Vec<EnvironmentSlot>) -> Self::Actor;

    /// Creates a learner for rollouts of the local environments of `share`.
    fn learner(&self, share: &Share, spec: &EnvSpec) -> Self::Learner;

    /// Returns the number of statistics that accompany each rollout.
    fn statistics_len(&self, _spec: &EnvSpec) -> usize {
        0
    }

    /// Returns the fields of [`Halves`] other than the local half.
    fn rest(self, spec: &EnvSpec) -> Rest;
}

/// Algorithms that learn from rollouts, such as A2C and PPO.
#[derive(Clone, Copy, Debug)]
pub struct OnPolicy;

impl<C: OnPolicyAlgorithm> Family<C> for OnPolicy {
    fn halves(mut config: C, world: World, factory: &EnvFactory, _mode: Mode) -> Result<Halves, TrainError> {
        let share = fix_environments(&mut config, world)?;
        let (spec, slots) = local_slots(&share, *config.common().seed, factory)?;
        let (actor, learner) = (config.actor(spec.clone(), slots), config.learner(&share, &spec));
        let local = LocalRollouts { actor, learner, statistics: vec![0.0; config.statistics_len(&spec)] };
        Ok(config.rest(&spec).with(Box::new(local)))
    }

    fn remote_learner(mut config: C, world: World, spec: &EnvSpec) -> Result<RemoteHalves, TrainError> {
        let share = fix_environments(&mut config, world)?;
        let learner = config.learner(&share, spec);
        let demand = Demand::Rollouts {
            per_update: share.environments,
            steps: share.steps_per_env,
            statistics: config.statistics_len(spec),
        };
        let rest = config.rest(spec);
        Ok(RemoteHalves {
            learner: RemoteLearner::Rollouts(Box::new(learner)),
            acting: 0..rest.model.len(),
            demand,
            spec: spec.clone(),
            rest,
        })
    }

    fn remote_actor(
        config: &C,
        environments: Range<usize>,
        factory: &EnvFactory,
    ) -> Result<RemoteActor, TrainError> {
        let (spec, slots) = slots(environments, *config.clone().common().seed, factory)?;
        Ok(RemoteActor::Rollouts(Box::new(config.actor(spec, slots))))
    }
}

/// Computes this worker's share of the job and stores the job's number of environments in `config`, so that the run
/// keeps that number even if it is resumed with more workers.
fn fix_environments<C: OnPolicyAlgorithm>(config: &mut C, world: World) -> Result<Share, TrainError> {
    let share = config.share_of(world)?;
    *config.common().environments = Some(share.environments);
    Ok(share)
}

/// Local half that alternates between acting, until a rollout is complete, and learning from that rollout.
struct LocalRollouts<A, L> {
    actor: A,
    learner: L,
    /// Statistics of the most recent rollout.
    statistics: Vec<f32>,
}

impl<A: RolloutActor + HasSlots, L: RolloutLearner> LocalHalf for LocalRollouts<A, L> {
    fn spec(&self) -> &EnvSpec {
        self.actor.spec()
    }

    fn gradient(&mut self, model: &[f32], gradient: &mut [f32]) -> Result<Tail, TrainError> {
        let Self { actor, learner, statistics } = self;
        let mut tail = Tail::default();
        if learner.wants_rollout() {
            tail = actor.roll_out(model, learner.buffer_mut(), statistics)?;
            learner.begin(model, statistics);
        }
        Ok(Tail { losses: learner.gradient(model, gradient), ..tail })
    }

    fn skipped(&mut self) {
        self.learner.skipped();
    }

    fn write(&self, writer: &mut Writer) {
        write_slots(writer, self.actor.slots());
    }

    fn read(&mut self, files: &[Reader<'_>]) -> Result<Vec<usize>, TrainError> {
        read_slots(files, self.actor.slots_mut())
    }
}
