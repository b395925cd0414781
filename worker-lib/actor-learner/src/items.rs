//! Encoding of replay items. All numbers are little-endian; image observations have one byte per value.
//!
//! | transition | bytes |
//! |---|---|
//! | tag, 1 | 4 |
//! | reward; 0 if the episode terminated, otherwise 1 | 8 |
//! | action | 4 per dimension |
//! | observation, next observation | 4 per value; 1 per value for images |
//!
//! | rollout of `n` steps of one environment | bytes |
//! |---|---|
//! | tag, 2 | 4 |
//! | steps and episodes since the last rollout; sums of the episodes' returns and lengths | 16 |
//! | statistics of the algorithm | 4 each |
//! | estimated value of the observation after the rollout | 4 |
//! | state of a recurrent policy before the first step | 4 per value |
//! | log-probabilities, rewards, values; 1 where an episode ended, otherwise 0 | 16 n |
//! | actions | 4 n per dimension |
//! | observations | 4 n per value; n per value for images |

use super::ActorLearnerError;
use super::error::malformed;
use iswitch_learn::algorithms::halves::Tail;
use iswitch_learn::algorithms::replay::{Batch, Transition};
use iswitch_learn::algorithms::rollout::RolloutBuffer;
use iswitch_learn::env::{ActionSpec, EnvSpec};

const TRANSITION: u32 = 1;
const ROLLOUT: u32 = 2;
const FLOAT: usize = size_of::<f32>();

/// Encoding of the items of an environment.
#[derive(Clone, Debug)]
pub(super) struct ItemFormat {
    observation_dim: usize,
    is_image: bool,
    action: ActionSpec,
}

impl ItemFormat {
    pub(super) fn new(spec: &EnvSpec) -> Self {
        let (observation_dim, action) = (spec.observation_dim, spec.action);
        Self { observation_dim, is_image: spec.image.is_some(), action }
    }

    fn observation_bytes(&self) -> usize {
        if self.is_image { self.observation_dim } else { self.observation_dim * FLOAT }
    }

    fn transition_bytes(&self) -> usize {
        3 * FLOAT + self.action.stored_dim() * FLOAT + 2 * self.observation_bytes()
    }

    fn rollout_bytes(&self, buffer: &RolloutBuffer, statistics: usize) -> usize {
        let of_step = 4 * FLOAT + self.action.stored_dim() * FLOAT + self.observation_bytes();
        (1 + 4 + statistics + 1 + state_len(buffer)) * FLOAT + buffer.steps * of_step
    }

    pub(super) fn transition(&self, transition: &Transition<'_>) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.transition_bytes());
        bytes.extend(TRANSITION.to_le_bytes());
        let goes_on = if transition.terminated { 0.0 } else { 1.0 };
        put(&mut bytes, &[transition.reward, goes_on]);
        put(&mut bytes, transition.action);
        self.put_observations(&mut bytes, transition.observation);
        self.put_observations(&mut bytes, transition.next_observation);
        bytes
    }

    /// Decodes a transition and appends it to `batch`, except for its index and weight.
    pub(super) fn read_transition(&self, bytes: &[u8], batch: &mut Batch) -> Result<(), ActorLearnerError> {
        let mut from = open("transition", bytes, TRANSITION, self.transition_bytes())?;
        let (mut head, mut action) = ([0.0; 2], vec![0.0; self.action.stored_dim()]);
        take(&mut from, &mut head);
        take(&mut from, &mut action);
        self.check_actions("transition", &action)?;
        batch.rewards.push(head[0]);
        batch.goes_on.push(head[1]);
        batch.actions.extend(action);
        for column in [&mut batch.observations, &mut batch.next_observations] {
            let start = column.len();
            column.resize(start + self.observation_dim, 0.0);
            self.take_observations(&mut from, &mut column[start..]);
        }
        Ok(())
    }

    /// Encodes the part of `buffer` that belongs to environment `env` as a rollout.
    pub(super) fn rollout(
        &self,
        buffer: &RolloutBuffer,
        env: usize,
        tail: &Tail,
        statistics: &[f32],
    ) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.rollout_bytes(buffer, statistics.len()));
        bytes.extend(ROLLOUT.to_le_bytes());
        put(&mut bytes, &[tail.steps, tail.episodes, tail.returns, tail.lengths]);
        put(&mut bytes, statistics);
        put(&mut bytes, &[buffer.last_values[env]]);
        let len = state_len(buffer);
        put(&mut bytes, &buffer.states[env * len..(env + 1) * len]);
        let rows = env * buffer.steps..(env + 1) * buffer.steps;
        for column in [&buffer.log_probs, &buffer.rewards, &buffer.values] {
            put(&mut bytes, &column[rows.clone()]);
        }
        let dones = buffer.dones[rows.clone()].iter();
        put(&mut bytes, &dones.map(|done| f32::from(u8::from(*done))).collect::<Vec<_>>());
        let wide = |dim: usize| rows.start * dim..rows.end * dim;
        put(&mut bytes, &buffer.actions[wide(self.action.stored_dim())]);
        self.put_observations(&mut bytes, &buffer.observations[wide(self.observation_dim)]);
        bytes
    }

    /// Decodes a rollout into the part of `buffer` that belongs to environment `env`, adds the algorithm's statistics
    /// in the rollout to `statistics`, and returns the rollout's episode statistics.
    pub(super) fn read_rollout(
        &self,
        bytes: &[u8],
        buffer: &mut RolloutBuffer,
        env: usize,
        statistics: &mut [f32],
    ) -> Result<Tail, ActorLearnerError> {
        let steps = buffer.steps;
        let mut from = open("rollout", bytes, ROLLOUT, self.rollout_bytes(buffer, statistics.len()))?;
        let mut head = [0.0; 4];
        take(&mut from, &mut head);
        let mut own = vec![0.0; statistics.len()];
        take(&mut from, &mut own);
        take(&mut from, &mut buffer.last_values[env..=env]);
        let len = state_len(buffer);
        take(&mut from, &mut buffer.states[env * len..(env + 1) * len]);
        let rows = env * steps..(env + 1) * steps;
        for column in [&mut buffer.log_probs, &mut buffer.rewards, &mut buffer.values] {
            take(&mut from, &mut column[rows.clone()]);
        }
        let mut dones = vec![0.0; steps];
        take(&mut from, &mut dones);
        buffer.dones[rows.clone()].iter_mut().zip(dones).for_each(|(done, float)| *done = float > 0.0);
        let dim = self.action.stored_dim();
        let actions = &mut buffer.actions[rows.start * dim..rows.end * dim];
        take(&mut from, actions);
        self.check_actions("rollout", actions)?;
        let dim = self.observation_dim;
        self.take_observations(&mut from, &mut buffer.observations[rows.start * dim..rows.end * dim]);
        statistics.iter_mut().zip(own).for_each(|(sum, x)| *sum += x);
        let [steps, episodes, returns, lengths] = head;
        Ok(Tail { steps, episodes, returns, lengths, ..Tail::default() })
    }

    /// Checks that the actions are valid, because the learner uses them as indices into tables of values.
    fn check_actions(&self, what: &'static str, actions: &[f32]) -> Result<(), ActorLearnerError> {
        let ActionSpec::Discrete { n } = self.action else { return Ok(()) };
        match actions.iter().find(|action| !(0.0..n as f32).contains(*action)) {
            None => Ok(()),
            Some(action) => {
                Err(malformed(what, format!("invalid (action {action})"), format!("an action in 0..{n}")))
            }
        }
    }

    fn put_observations(&self, bytes: &mut Vec<u8>, observations: &[f32]) {
        if self.is_image {
            bytes.extend(observations.iter().map(|x| (x * 255.0).round() as u8));
        } else {
            put(bytes, observations);
        }
    }

    fn take_observations(&self, from: &mut &[u8], observations: &mut [f32]) {
        if !self.is_image {
            return take(from, observations);
        }
        let (own, rest) = from.split_at(observations.len());
        observations.iter_mut().zip(own).for_each(|(x, byte)| *x = f32::from(*byte) / 255.0);
        *from = rest;
    }
}

/// Returns the number of floats in the state of one environment.
fn state_len(buffer: &RolloutBuffer) -> usize {
    buffer.states.len() / buffer.last_values.len()
}

/// Returns the bytes after the tag, if the tag and the total length are correct.
fn open<'a>(
    what: &'static str,
    bytes: &'a [u8],
    tag: u32,
    len: usize,
) -> Result<&'a [u8], ActorLearnerError> {
    if bytes.len() != len {
        return Err(malformed(what, format!("{} bytes", bytes.len()), format!("{len}")));
    }
    let (found, rest) = bytes.split_at(FLOAT);
    if found != tag.to_le_bytes() {
        return Err(malformed(what, format!("invalid (tag {found:?})"), format!("tag {tag}")));
    }
    Ok(rest)
}

fn put(bytes: &mut Vec<u8>, floats: &[f32]) {
    bytes.extend_from_slice(bytemuck::cast_slice(floats));
}

/// Fills `floats` with values from the start of `from`, and advances `from` past them. `from` must contain enough
/// bytes.
fn take(from: &mut &[u8], floats: &mut [f32]) {
    let (own, rest) = from.split_at(size_of_val(floats));
    bytemuck::cast_slice_mut::<f32, u8>(floats).copy_from_slice(own);
    *from = rest;
}

#[cfg(test)]
mod tests {
    use super::*;
    use iswitch_learn::nn::Image;

    fn format(image: bool, action: ActionSpec) -> (ItemFormat, usize) {
        let image = image.then_some(Image { channels: 1, height: 2, width: 3 });
        let id = "test".into();
        let spec =
            EnvSpec { id, observation_dim: 6, image, action, episode_steps_max: 1, solved_return: 0.0 };
        (ItemFormat::new(&spec), spec.observation_dim)
    }

    #[test]
    fn transitions_round_trip() {
        for (image, action) in
            [(false, ActionSpec::Continuous { dim: 2 }), (true, ActionSpec::Discrete { n: 3 })]
        {
            let (format, dim) = format(image, action);
            let observation: Vec<f32> = (0..dim).map(|i| i as f32 * 40.0 / 255.0).collect();
            let next: Vec<f32> = observation.iter().rev().copied().collect();
            let taken = vec![1.0; action.stored_dim()];
            let transition = Transition {
                observation: &observation,
                action: &taken,
                reward: -0.25,
                next_observation: &next,
                terminated: true,
                episode_ends: true,
            };
            let bytes = format.transition(&transition);
            let mut batch = Batch::default();
            format.read_transition(&bytes, &mut batch).unwrap();
            format.read_transition(&bytes, &mut batch).unwrap();
            assert_eq!((batch.rewards, batch.goes_on), (vec![-0.25; 2], vec![0.0; 2]));
            assert_eq!(batch.actions, taken.repeat(2));
            assert_eq!(batch.observations, observation.repeat(2));
            assert_eq!(batch.next_observations, next.repeat(2));
        }
    }

    #[test]
    fn rollouts_round_trip_and_statistics_add_up() {
        let (format, dim) = format(false, ActionSpec::Discrete { n: 2 });
        let (environments, steps) = (2, 3);
        let mut buffer = RolloutBuffer::new(environments, steps, dim, 1).with_states(2);
        let samples = environments * steps;
        let numbers = |start: f32, len: usize| (0..len).map(|i| start + i as f32).collect::<Vec<_>>();
        buffer.observations = numbers(0.5, samples * dim);
        buffer.actions = vec![0.0, 1.0, 0.0, 1.0, 1.0, 0.0];
        buffer.log_probs = numbers(-9.0, samples);
        buffer.rewards = numbers(1.0, samples);
        buffer.values = numbers(20.0, samples);
        buffer.dones = vec![false, true, false, false, false, true];
        buffer.last_values = vec![3.0, 4.0];
        buffer.states = vec![0.5, 0.6, 0.7, 0.8];
        let tail = Tail { steps: 6.0, episodes: 2.0, returns: 7.0, lengths: 5.0, ..Tail::default() };
        let mut copy = RolloutBuffer::new(environments, steps, dim, 1).with_states(2);
        let mut statistics = vec![1.0, 1.0];
        for env in 0..environments {
            let bytes = format.rollout(&buffer, env, &tail, &[2.0, 3.0]);
            // A rollout can be decoded into the slot of any environment, so swap the two environments.
            let reported = format.read_rollout(&bytes, &mut copy, 1 - env, &mut statistics).unwrap();
            assert_eq!(reported, tail);
        }
        assert_eq!(statistics, [5.0, 7.0]);
        let swap = |column: &[f32]| {
            let (first, second) = column.split_at(column.len() / 2);
            [second, first].concat()
        };
        assert_eq!(copy.observations, swap(&buffer.observations));
        assert_eq!(copy.actions, swap(&buffer.actions));
        assert_eq!(copy.log_probs, swap(&buffer.log_probs));
        assert_eq!(copy.rewards, swap(&buffer.rewards));
        assert_eq!(copy.values, swap(&buffer.values));
        assert_eq!(copy.last_values, [4.0, 3.0]);
        assert_eq!(copy.states, [0.7, 0.8, 0.5, 0.6]);
        assert_eq!(copy.dones, [false, false, true, false, true, false]);
    }

    #[test]
    fn invalid_items_are_reported_and_change_nothing() {
        let (format, dim) = format(false, ActionSpec::Discrete { n: 2 });
        let observation = vec![0.0; dim];
        let transition = |action: &[f32]| {
            format.transition(&Transition {
                observation: &observation,
                action,
                reward: 0.0,
                next_observation: &observation,
                terminated: false,
                episode_ends: false,
            })
        };
        let mut batch = Batch::default();
        let mut error = |bytes: &[u8]| format.read_transition(bytes, &mut batch).unwrap_err().to_string();
        assert_eq!(error(&[]), "transition is 0 bytes, expected 64");
        assert_eq!(
            error(&transition(&[2.0])),
            "transition is invalid (action 2), expected an action in 0..2"
        );
        assert_eq!(
            error(&transition(&[f32::NAN])),
            "transition is invalid (action NaN), expected an action in 0..2"
        );
        let mut bytes = transition(&[1.0]);
        bytes[0] = 9;
        assert_eq!(error(&bytes), "transition is invalid (tag [9, 0, 0, 0]), expected tag 1");
        assert_eq!(batch, Batch::default());
    }
}
