//! What off-policy algorithms share: environments that fill replay buffers, and when to act and when to learn.

use serde::{Deserialize, Serialize};

use super::TrainError;
use super::checkpoint::{Reader, Writer, read_slots, write_slots};
use super::environments::{EnvFactory, EnvironmentSlot, local_slots};
use super::halves::Tail;
use super::phases::Phase;
use super::replay::{Batch, Prioritisation, Replay, Transition};
use super::share::Share;
use super::trainer::Place;
use crate::env::EnvSpec;

/// When to act and when to learn. Sizes are global, over all environments of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// Environment steps before learning begins.
    pub learning_starts: u64,
    /// Environment steps between updates.
    pub train_every: u64,
    /// Updates in a row; 0 for as many as there were environment steps.
    pub updates: u64,
}

/// How large and of what kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExperienceOptions {
    /// Of all random streams.
    pub seed: u64,
    /// Transitions that are kept, over all environments.
    pub buffer_size: usize,
    /// Samples of a batch, over all environments.
    pub batch_size: usize,
    /// When to act.
    pub schedule: Schedule,
    /// Draw by error.
    pub prioritisation: Option<Prioritisation>,
    /// Learn from the sign of a reward.
    pub clip_rewards: bool,
}

/// This worker's environments, each with a replay buffer of its own: what is drawn does not depend on how environments
/// are divided over workers.
pub struct Experience {
    spec: EnvSpec,
    slots: Vec<EnvironmentSlot>,
    replays: Vec<Replay>,
    environments: usize,
    batch_per_env: usize,
    /// Of each environment.
    steps_per_phase: u64,
    updates_per_phase: u64,
    clip_rewards: bool,
    /// Of each environment, so far.
    steps: u64,
    steps_left: u64,
    updates_left: u64,
    tail: Tail,
    /// As the networks want them, `[environments, observation_dim]`.
    observations: Vec<f32>,
    next_observation: Vec<f32>,
    batch: Batch,
    drawn: Batch,
}

impl Experience {
    /// At the start of a run.
    ///
    /// # Errors
    /// If an environment cannot be made, or sizes do not fit the number of environments.
    pub fn new(
        options: &ExperienceOptions,
        environments: Option<usize>,
        place: Place,
        factory: &EnvFactory,
    ) -> Result<Self, TrainError> {
        let schedule = options.schedule;
        // A share of rollouts of one step; it divides the environments.
        let share = Share::new(place.rank, place.workers, environments, 1, 1)?;
        let environments = share.environments;
        if options.batch_size < environments || options.buffer_size < environments {
            return Err(TrainError::Config(format!(
                "a batch of {} out of {} transitions, expected at least one for each of {environments} environments",
                options.batch_size, options.buffer_size
            )));
        }
        let (spec, slots) = local_slots(&share, options.seed, factory)?;
        let action_dim = spec.action.stored_dim();
        let capacity = options.buffer_size / environments;
        let replays = slots
            .iter()
            .map(|_| Replay::for_environment(capacity, &spec, action_dim, options.prioritisation))
            .collect::<Result<_, _>>()?;
        let per_env = |steps: u64| steps.div_ceil(environments as u64).max(1);
        let steps_per_phase = per_env(schedule.train_every);
        let updates =
            if schedule.updates == 0 { steps_per_phase * environments as u64 } else { schedule.updates };
        Ok(Self {
            observations: vec![0.0; slots.len() * spec.observation_dim],
            next_observation: vec![0.0; spec.observation_dim],
            spec,
            slots,
            replays,
            environments,
            batch_per_env: options.batch_size / environments,
            steps_per_phase,
            updates_per_phase: updates,
            clip_rewards: options.clip_rewards,
            steps: 0,
            steps_left: per_env(schedule.learning_starts),
            updates_left: 0,
            tail: Tail::default(),
            batch: Batch::default(),
            drawn: Batch::default(),
        })
    }

    /// The environment's shapes and limits.
    pub fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    /// Environments of the job.
    pub fn environments(&self) -> usize {
        self.environments
    }

    /// This worker's environments.
    pub fn slots_mut(&mut self) -> &mut [EnvironmentSlot] {
        &mut self.slots
    }

    /// Samples of a batch of this worker.
    pub fn batch_size(&self) -> usize {
        self.batch_per_env * self.slots.len()
    }

    /// Environment steps so far, over all environments of the job if all have gone equally far.
    pub fn steps(&self) -> u64 {
        self.steps * self.environments as u64
    }

    /// Whether [`Self::act`] is to be called before the next batch.
    pub fn is_acting(&self) -> bool {
        self.updates_left == 0
    }

    /// What the environments stand at, as the networks want it, `[environments, observation_dim]`.
    pub fn observations(&mut self) -> &[f32] {
        let dim = self.spec.observation_dim;
        for (slot, row) in self.slots.iter().zip(self.observations.chunks_exact_mut(dim)) {
            self.spec.scale_observation(&slot.observation, row);
        }
        &self.observations
    }

    /// One step of each environment with its row of `actions` (`[environments, action_dim]`; a discrete action is
    /// its index). [`Self::observations`] comes before.
    ///
    /// # Errors
    /// If an environment fails.
    pub fn act(&mut self, actions: &[f32]) -> Result<(), TrainError> {
        let action_dim = actions.len() / self.slots.len();
        for (slot, action) in self.slots.iter_mut().zip(actions.chunks_exact(action_dim)) {
            slot.begin_step(self.spec.to_env(action))?;
        }
        for (k, action) in actions.chunks_exact(action_dim).enumerate() {
            self.finish_step(k, action)?;
        }
        self.tail.steps += self.slots.len() as f32;
        self.steps += 1;
        self.steps_left -= 1;
        if self.steps_left == 0 {
            (self.steps_left, self.updates_left) = (self.steps_per_phase, self.updates_per_phase);
        }
        Ok(())
    }

    fn finish_step(&mut self, k: usize, action: &[f32]) -> Result<(), TrainError> {
        let (slot, dim) = (&mut self.slots[k], self.spec.observation_dim);
        let step = slot.finish_step(self.spec.to_env(action), 0.0, 0.0)?;
        let reward = if self.clip_rewards { step.reward.clamp(-1.0, 1.0) } else { step.reward };
        self.spec.scale_observation(&slot.observation, &mut self.next_observation);
        self.replays[k].push(Transition {
            observation: &self.observations[k * dim..(k + 1) * dim],
            action,
            reward: reward as f32,
            next_observation: &self.next_observation,
            terminated: step.terminated || step.life_lost,
            episode_ends: slot.ended,
        });
        if slot.ended {
            self.tail.count_episode(slot);
            slot.reset()?;
        }
        Ok(())
    }

    /// Draws this worker's share of a batch, equally much from each environment.
    pub fn sample(&mut self) -> &Batch {
        let _phase = Phase::Sample.enter();
        self.updates_left -= 1;
        self.batch.clear();
        for (replay, slot) in self.replays.iter().zip(&mut self.slots) {
            replay.sample(self.batch_per_env, &mut slot.minibatch_rng, &mut self.drawn);
            self.batch.append(&self.drawn);
        }
        &self.batch
    }

    /// Tells the errors of the last batch, one for each sample.
    pub fn update_priorities(&mut self, errors: &[f32]) {
        let _phase = Phase::Sample.enter();
        let rows = self.batch.indices.chunks_exact(self.batch_per_env);
        for ((replay, indices), errors) in
            self.replays.iter_mut().zip(rows).zip(errors.chunks_exact(self.batch_per_env))
        {
            replay.update_priorities(indices, errors);
        }
    }

    /// What has happened since the last call.
    pub fn take_tail(&mut self) -> Tail {
        std::mem::take(&mut self.tail)
    }

    /// For a checkpoint.
    pub fn write(&self, writer: &mut Writer) {
        write_slots(writer, &self.slots);
        for (slot, replay) in self.slots.iter().zip(&self.replays) {
            replay.write(&format!("replay.{}", slot.index), writer);
        }
        writer.text("steps_per_environment", self.steps.to_string());
        writer.text("steps_left", self.steps_left.to_string());
        writer.text("updates_left", self.updates_left.to_string());
    }

    /// What [`Self::write`] wrote; gives the environments that are in no file.
    ///
    /// # Errors
    /// If it does not fit.
    pub fn read(&mut self, files: &[Reader<'_>]) -> Result<Vec<usize>, TrainError> {
        let missing = read_slots(files, &mut self.slots)?;
        for (slot, replay) in self.slots.iter().zip(&mut self.replays) {
            let name = format!("replay.{}", slot.index);
            if let Some(file) = files.iter().find(|file| Replay::is_in(&name, file)) {
                replay.read(&name, file)?;
            }
        }
        if let Some(file) = files.first() {
            self.steps = file.number("steps_per_environment")?;
            self.steps_left = file.number::<u64>("steps_left")?.max(1);
            self.updates_left = file.number("updates_left")?;
        }
        if self.replays.iter().any(Replay::is_empty) {
            // One that starts anew has nothing to draw from.
            (self.steps_left, self.updates_left) = (self.steps_left.max(1), 0);
        }
        Ok(missing)
    }
}
