//! The family of algorithms that learn from rollouts of the policy that they train: how an actor and a learner become
//! the half of a worker, or either side of a replay.

use std::ops::Range;

use super::TrainError;
use super::checkpoint::{Reader, Writer, read_slots, write_slots};
use super::environments::{EnvFactory, EnvironmentSlot, local_slots, slots};
use super::halves::{Halves, LocalHalf, Tail};
use super::remote::{Demand, RemoteActor, RemoteHalves, RemoteLearner, Rest, RolloutActor, RolloutLearner};
use super::share::Share;
use super::trainer::{Algorithm, Family, Mode, Place};
use crate::env::EnvSpec;

/// What has environments whose state can be saved.
pub(super) trait HasSlots {
    /// The environments.
    fn slots(&self) -> &[EnvironmentSlot];
    /// The environments.
    fn slots_mut(&mut self) -> &mut [EnvironmentSlot];
}

/// What differs between algorithms of the family.
pub(super) trait OnPolicyAlgorithm: Algorithm {
    type Actor: RolloutActor + HasSlots + 'static;
    type Learner: RolloutLearner + 'static;

    /// How the global batch is divided.
    fn share_of(&self, place: Place) -> Result<Share, TrainError>;

    fn actor(&self, spec: EnvSpec, slots: Vec<EnvironmentSlot>) -> Self::Actor;

    /// Learns from the rollouts of the local environments of a share.
    fn learner(&self, share: &Share, spec: &EnvSpec) -> Self::Learner;

    /// Floats that go with each rollout.
    fn statistics_len(&self, _spec: &EnvSpec) -> usize {
        0
    }

    /// Everything but the local half.
    fn rest(self, spec: &EnvSpec) -> Rest;
}

/// Algorithms that learn from rollouts, such as A2C and PPO.
#[derive(Clone, Copy, Debug)]
pub struct OnPolicy;

impl<C: OnPolicyAlgorithm> Family<C> for OnPolicy {
    fn halves(mut config: C, place: Place, factory: &EnvFactory, _mode: Mode) -> Result<Halves, TrainError> {
        let share = fix_environments(&mut config, place)?;
        let (spec, slots) = local_slots(&share, *config.common().seed, factory)?;
        let (actor, learner) = (config.actor(spec.clone(), slots), config.learner(&share, &spec));
        let local = LocalRollouts { actor, learner, statistics: vec![0.0; config.statistics_len(&spec)] };
        Ok(config.rest(&spec).with(Box::new(local)))
    }

    fn remote_learner(mut config: C, place: Place, spec: &EnvSpec) -> Result<RemoteHalves, TrainError> {
        let share = fix_environments(&mut config, place)?;
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

/// Divides the job, whose environments are fixed from here on: a run that goes on with more workers keeps them.
fn fix_environments<C: OnPolicyAlgorithm>(config: &mut C, place: Place) -> Result<Share, TrainError> {
    let share = config.share_of(place)?;
    *config.common().environments = Some(share.environments);
    Ok(share)
}

/// Acts for a rollout, learns from it, and again.
struct LocalRollouts<A, L> {
    actor: A,
    learner: L,
    /// What came with the last rollout.
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
            learner.begin(statistics);
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
