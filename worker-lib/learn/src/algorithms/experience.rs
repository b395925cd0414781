//! Code shared by the off-policy algorithms: environments that fill replay buffers, and the schedule by which acting
//! and learning alternate.

use serde::{Deserialize, Serialize};

use super::TrainError;
use super::checkpoint::{Reader, Writer, read_slots, write_slots};
use super::environments::{EnvFactory, local_slots};
use super::halves::Tail;
use super::phases::Phase;
use super::remote::Demand;
use super::replay::{Batch, Prioritisation, Replay};
use super::share::Share;
use super::trainer::World;
use super::vector_env::VectorEnv;
use crate::env::EnvSpec;

/// Schedule by which acting and learning alternate. Sizes are totals over all environments of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// Number of environment steps before learning begins.
    pub learning_starts: u64,
    /// Number of environment steps between two consecutive groups of updates.
    pub train_every: u64,
    /// Number of updates in a group; 0 means one update per environment step.
    pub updates: u64,
}

/// Sizes and options of a job's experience replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExperienceOptions {
    /// Seed of all random streams.
    pub seed: u64,
    /// Capacity of the replay buffer, in transitions (total across all environments).
    pub buffer_size: usize,
    /// Batch size, in samples (total across all environments).
    pub batch_size: usize,
    /// Schedule of acting and learning.
    pub schedule: Schedule,
    /// Settings of prioritised replay; `None` for uniform sampling.
    pub prioritisation: Option<Prioritisation>,
    /// Whether to learn from rewards clipped to [-1, 1].
    pub clip_rewards: bool,
}

impl ExperienceOptions {
    /// Returns the same settings as requirements for the replay shards that remote actors fill.
    pub fn demand(&self) -> Demand {
        let Schedule { learning_starts, train_every, updates } = self.schedule;
        let updates = if updates == 0 { train_every } else { updates };
        Demand::Transitions {
            capacity: self.buffer_size as u64,
            batch_size: self.batch_size,
            learning_starts,
            samples_per_insert: self.batch_size as f64 * updates as f64 / train_every as f64,
            prioritisation: self.prioritisation,
        }
    }
}

/// Builds the experience options of an algorithm that samples uniformly. Each option is copied from the hyper-parameter
/// with the same name.
macro_rules! uniform_experience {
    ($config:expr) => {
        $crate::algorithms::experience::ExperienceOptions {
            seed: $config.seed,
            buffer_size: $config.buffer_size,
            batch_size: $config.batch_size,
            schedule: $crate::algorithms::experience::Schedule {
                learning_starts: $config.learning_starts,
                train_every: $config.train_every,
                updates: $config.updates,
            },
            prioritisation: None,
            clip_rewards: false,
        }
    };
}

pub(super) use uniform_experience;

/// This worker's environments. Each has its own replay buffer, so the samples drawn do not depend on which worker runs
/// which environment.
pub struct Experience {
    acting: VectorEnv,
    replays: Vec<Replay>,
    environments: usize,
    batch_per_env: usize,
    /// Number of steps that each environment takes between two consecutive groups of updates.
    steps_per_phase: u64,
    updates_per_phase: u64,
    /// Number of steps of each environment so far.
    steps: u64,
    steps_left: u64,
    updates_left: u64,
    batch: Batch,
    drawn: Batch,
}

impl Experience {
    /// Creates the environments and empty replay buffers at the start of a run.
    ///
    /// # Errors
    /// Fails if an environment cannot be created, or if a size is too small for the number of environments.
    pub fn new(
        options: &ExperienceOptions,
        environments: Option<usize>,
        world: World,
        factory: &EnvFactory,
    ) -> Result<Self, TrainError> {
        let schedule = options.schedule;
        // The share is needed only to divide the environments, so its rollouts have one step.
        let share = Share::new(world.rank, world.size, environments, 1, 1)?;
        let environments = share.environments;
        if options.batch_size < environments || options.buffer_size < environments {
            return Err(TrainError::Config(format!(
                "batch_size is {} and buffer_size is {}, expected at least {environments} each, one per environment",
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
            acting: VectorEnv::new(spec, slots, options.clip_rewards),
            replays,
            environments,
            batch_per_env: options.batch_size / environments,
            steps_per_phase,
            updates_per_phase: updates,
            steps: 0,
            steps_left: per_env(schedule.learning_starts),
            updates_left: 0,
            batch: Batch::default(),
            drawn: Batch::default(),
        })
    }

    /// Returns the environment's specification, including the shapes of observations and actions.
    pub fn spec(&self) -> &EnvSpec {
        self.acting.spec()
    }

    /// Returns the number of environments in the job.
    pub fn environments(&self) -> usize {
        self.environments
    }

    /// Returns this worker's environments.
    pub fn acting_mut(&mut self) -> &mut VectorEnv {
        &mut self.acting
    }

    /// Returns the number of samples in this worker's share of a batch.
    pub fn batch_size(&self) -> usize {
        self.batch_per_env * self.replays.len()
    }

    /// Returns the number of environment steps taken so far, in total across all environments of the job, assuming that
    /// each environment has taken the same number of steps.
    pub fn steps(&self) -> u64 {
        self.steps * self.environments as u64
    }

    /// Returns whether [`Self::act`] must be called before the next batch is sampled.
    pub fn is_acting(&self) -> bool {
        self.updates_left == 0
    }

    /// Takes one step in each environment; row `i` of `actions` is the action of environment `i`. See
    /// [`VectorEnv::step`].
    ///
    /// # Errors
    /// Fails if an environment fails.
    pub fn act(&mut self, actions: &[f32]) -> Result<(), TrainError> {
        let replays = &mut self.replays;
        self.acting.step(actions, &mut |k, transition| replays[k].push(*transition))?;
        self.steps += 1;
        self.steps_left -= 1;
        if self.steps_left == 0 {
            (self.steps_left, self.updates_left) = (self.steps_per_phase, self.updates_per_phase);
        }
        Ok(())
    }

    /// Draws this worker's share of a batch, with the same number of samples from each environment.
    pub fn sample(&mut self) -> &Batch {
        let _phase = Phase::Sample.enter();
        self.updates_left -= 1;
        self.batch.clear();
        for (replay, slot) in self.replays.iter().zip(self.acting.slots_mut()) {
            replay.sample(self.batch_per_env, &mut slot.minibatch_rng, &mut self.drawn);
            self.batch.append(&self.drawn);
        }
        &self.batch
    }

    /// Updates the priorities of the transitions in the most recent batch from their `errors`, one for each sample.
    pub fn update_priorities(&mut self, errors: &[f32]) {
        let _phase = Phase::Sample.enter();
        let rows = self.batch.indices.chunks_exact(self.batch_per_env);
        for ((replay, indices), errors) in
            self.replays.iter_mut().zip(rows).zip(errors.chunks_exact(self.batch_per_env))
        {
            replay.update_priorities(indices, errors);
        }
    }

    /// Returns the statistics collected since the previous call.
    pub fn take_tail(&mut self) -> Tail {
        self.acting.take_tail()
    }

    /// Writes the environments and replay buffers to a checkpoint.
    pub fn write(&self, writer: &mut Writer) {
        write_slots(writer, self.acting.slots());
        for (slot, replay) in self.acting.slots().iter().zip(&self.replays) {
            replay.write(&format!("replay.{}", slot.index), writer);
        }
        writer.text("steps_per_environment", self.steps.to_string());
        writer.text("steps_left", self.steps_left.to_string());
        writer.text("updates_left", self.updates_left.to_string());
    }

    /// Restores the state that [`Self::write`] wrote. Returns the indices of the environments that are in none of
    /// `files`.
    ///
    /// # Errors
    /// Fails if the saved state does not match the environments and buffers.
    pub fn read(&mut self, files: &[Reader<'_>]) -> Result<Vec<usize>, TrainError> {
        let missing = read_slots(files, self.acting.slots_mut())?;
        for (slot, replay) in self.acting.slots().iter().zip(&mut self.replays) {
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
            // The buffer of a reset environment contains no transitions to sample, so all environments act first.
            (self.steps_left, self.updates_left) = (self.steps_left.max(1), 0);
        }
        Ok(missing)
    }
}
