//! Experience replay: a ring of transitions, sampled uniformly or by priority.

use rand::{Rng, RngExt};

use super::TrainError;

/// What one step of an environment was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transition<'a> {
    /// What was acted on, `[observation_dim]`.
    pub observation: &'a [f32],
    /// `[action_dim]`; a discrete action is its index.
    pub action: &'a [f32],
    /// Scaled as the learner wants it.
    pub reward: f32,
    /// What the step led to, also at the end of an episode, `[observation_dim]`.
    pub next_observation: &'a [f32],
    /// Nothing of value follows. Not set where only the time limit cut the episode.
    pub terminated: bool,
}

/// Transitions that were drawn; row `i` of each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Where in the buffer each lies, `[batch]`.
    pub indices: Vec<usize>,
    /// `[batch, observation_dim]`.
    pub observations: Vec<f32>,
    /// `[batch, action_dim]`.
    pub actions: Vec<f32>,
    /// `[batch]`.
    pub rewards: Vec<f32>,
    /// `[batch, observation_dim]`.
    pub next_observations: Vec<f32>,
    /// 1 where something follows, 0 where the episode terminated, `[batch]`.
    pub goes_on: Vec<f32>,
    /// Importance weights, at most 1; all 1 if drawn uniformly, `[batch]`.
    pub weights: Vec<f32>,
}

/// The last transitions of a worker, up to a capacity.
#[derive(Clone, Debug)]
pub struct Replay {
    capacity: usize,
    observation_dim: usize,
    action_dim: usize,
    /// Transitions ever pushed; the oldest give way.
    pushed: u64,
    observations: Vec<f32>,
    actions: Vec<f32>,
    rewards: Vec<f32>,
    next_observations: Vec<f32>,
    terminated: Vec<bool>,
    priorities: Option<Priorities>,
}

/// How much more often a transition with a large error is drawn (Schaul et al., 2016).
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prioritisation {
    /// 0 is uniform, 1 in proportion to the error.
    pub alpha: f32,
    /// How far importance weights undo that: 0 not at all, 1 wholly.
    pub beta: f32,
    /// Added to each error, so that none is never drawn.
    pub epsilon: f32,
}

impl Replay {
    /// Room for `capacity` transitions, which is taken as they come.
    ///
    /// # Errors
    /// [`TrainError::Config`] without room.
    pub fn new(
        capacity: usize,
        observation_dim: usize,
        action_dim: usize,
        prioritisation: Option<Prioritisation>,
    ) -> Result<Self, TrainError> {
        if capacity == 0 {
            return Err(TrainError::Config(
                "a replay buffer of 0 transitions, expected at least 1".to_owned(),
            ));
        }
        Ok(Self {
            capacity,
            observation_dim,
            action_dim,
            pushed: 0,
            observations: Vec::new(),
            actions: Vec::new(),
            rewards: Vec::new(),
            next_observations: Vec::new(),
            terminated: Vec::new(),
            priorities: prioritisation.map(|how| Priorities::new(capacity, how)),
        })
    }

    /// Transitions that are there.
    pub fn len(&self) -> usize {
        self.rewards.len()
    }

    /// Whether none are.
    pub fn is_empty(&self) -> bool {
        self.rewards.is_empty()
    }

    /// Transitions ever pushed.
    pub fn pushed(&self) -> u64 {
        self.pushed
    }

    /// Takes in a transition; the oldest gives way to it where there is no room.
    ///
    /// # Panics
    /// If a length differs from the one given at construction.
    pub fn push(&mut self, transition: Transition<'_>) {
        let Transition { observation, action, reward, next_observation, terminated } = transition;
        assert_eq!(
            (observation.len(), action.len(), next_observation.len()),
            (self.observation_dim, self.action_dim, self.observation_dim),
            "lengths of a transition"
        );
        let at = (self.pushed % self.capacity as u64) as usize;
        if self.len() < self.capacity {
            self.observations.extend_from_slice(observation);
            self.actions.extend_from_slice(action);
            self.rewards.push(reward);
            self.next_observations.extend_from_slice(next_observation);
            self.terminated.push(terminated);
        } else {
            row_mut(&mut self.observations, at, self.observation_dim).copy_from_slice(observation);
            row_mut(&mut self.actions, at, self.action_dim).copy_from_slice(action);
            self.rewards[at] = reward;
            row_mut(&mut self.next_observations, at, self.observation_dim).copy_from_slice(next_observation);
            self.terminated[at] = terminated;
        }
        if let Some(priorities) = &mut self.priorities {
            priorities.set_greatest(at);
        }
        self.pushed += 1;
    }

    /// Draws `count` transitions, with replacement, into `batch`.
    ///
    /// # Panics
    /// If the buffer is empty.
    pub fn sample(&self, count: usize, rng: &mut impl Rng, batch: &mut Batch) {
        assert!(!self.is_empty(), "nothing to draw from");
        batch.indices.clear();
        batch.weights.clear();
        match &self.priorities {
            None => {
                batch.indices.extend((0..count).map(|_| rng.random_range(0..self.len())));
                batch.weights.resize(count, 1.0);
            }
            Some(priorities) => priorities.sample(count, self.len(), rng, batch),
        }
        self.copy_out(batch);
    }

    /// Tells the errors of a batch that was drawn, one for each row. Without prioritisation nothing happens.
    pub fn update_priorities(&mut self, indices: &[usize], errors: &[f32]) {
        if let Some(priorities) = &mut self.priorities {
            indices.iter().zip(errors).for_each(|(index, error)| priorities.set(*index, *error));
        }
    }

    fn copy_out(&self, batch: &mut Batch) {
        let Batch { indices, observations, actions, rewards, next_observations, goes_on, .. } = batch;
        for column in [&mut *observations, actions, rewards, next_observations, goes_on] {
            column.clear();
        }
        for at in indices.iter().copied() {
            observations.extend_from_slice(row(&self.observations, at, self.observation_dim));
            actions.extend_from_slice(row(&self.actions, at, self.action_dim));
            rewards.push(self.rewards[at]);
            next_observations.extend_from_slice(row(&self.next_observations, at, self.observation_dim));
            goes_on.push(if self.terminated[at] { 0.0 } else { 1.0 });
        }
    }
}

fn row(values: &[f32], at: usize, dim: usize) -> &[f32] {
    &values[at * dim..(at + 1) * dim]
}

fn row_mut(values: &mut [f32], at: usize, dim: usize) -> &mut [f32] {
    &mut values[at * dim..(at + 1) * dim]
}

/// Priorities as the leaves of a binary tree of their sums, so that drawing and changing take the logarithm of their
/// number. Sums are integers: they never drift from their leaves.
#[derive(Clone, Debug)]
struct Priorities {
    how: Prioritisation,
    /// `tree[1]` is the root, `tree[leaves + i]` the priority of transition `i`.
    tree: Vec<u64>,
    leaves: usize,
    greatest: u64,
}

/// A priority of 1 as an integer: priorities resolve 2^-32 and reach 2^8, and 2^24 of them have a sum.
const ONE: f64 = 4_294_967_296.0;
const PRIORITY_MAX: u64 = 1 << 40;

impl Priorities {
    fn new(capacity: usize, how: Prioritisation) -> Self {
        let leaves = capacity.next_power_of_two();
        Self { how, tree: vec![0; 2 * leaves], leaves, greatest: ONE as u64 }
    }

    fn set(&mut self, index: usize, error: f32) {
        let priority = f64::from(error.abs() + self.how.epsilon).powf(f64::from(self.how.alpha));
        // NaN becomes the least.
        let priority = ((priority * ONE) as u64).clamp(1, PRIORITY_MAX);
        self.greatest = self.greatest.max(priority);
        self.put(index, priority);
    }

    /// A new transition is drawn soon: it has the greatest priority so far.
    fn set_greatest(&mut self, index: usize) {
        self.put(index, self.greatest);
    }

    fn put(&mut self, index: usize, priority: u64) {
        let mut at = self.leaves + index;
        self.tree[at] = priority;
        while at > 1 {
            at /= 2;
            self.tree[at] = self.tree[2 * at] + self.tree[2 * at + 1];
        }
    }

    /// The transition in whose share of the sum `point` lies.
    fn find(&self, mut point: u64) -> usize {
        let mut at = 1;
        while at < self.leaves {
            at *= 2;
            if point >= self.tree[at] {
                point -= self.tree[at];
                at += 1;
            }
        }
        at - self.leaves
    }

    /// One draw from each of `count` equal parts of the sum.
    fn sample(&self, count: usize, len: usize, rng: &mut impl Rng, batch: &mut Batch) {
        let total = self.tree[1];
        for part in 0..count as u128 {
            let bound = |part: u128| (u128::from(total) * part / count as u128) as u64;
            let (start, end) = (bound(part), bound(part + 1));
            let point = if start < end { rng.random_range(start..end) } else { start };
            let index = self.find(point.min(total - 1));
            let probability = self.tree[self.leaves + index] as f64 / total as f64;
            batch.indices.push(index);
            batch.weights.push((len as f64 * probability).powf(-f64::from(self.how.beta)) as f32);
        }
        let greatest = batch.weights.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
        batch.weights.iter_mut().for_each(|weight| *weight /= greatest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng as _;
    use rand_chacha::ChaCha8Rng;

    const HOW: Prioritisation = Prioritisation { alpha: 0.6, beta: 0.4, epsilon: 1e-6 };

    fn push(replay: &mut Replay, number: u16) {
        let x = f32::from(number);
        replay.push(Transition {
            observation: &[x, -x],
            action: &[x + 0.5],
            reward: 2.0 * x,
            next_observation: &[x + 1.0, -x - 1.0],
            terminated: number.is_multiple_of(3),
        });
    }

    proptest! {
        #[test]
        fn rows_are_whole_transitions_that_are_still_there(
            (capacity, count) in (1_usize..20, 1_u16..60),
            prioritised in any::<bool>(),
            seed in any::<u64>(),
        ) {
            let mut replay = Replay::new(capacity, 2, 1, prioritised.then_some(HOW)).unwrap();
            (0..count).for_each(|number| push(&mut replay, number));
            prop_assert_eq!(replay.len(), capacity.min(usize::from(count)));
            let mut batch = Batch::default();
            replay.sample(32, &mut ChaCha8Rng::seed_from_u64(seed), &mut batch);
            for i in 0..32 {
                let x = batch.observations[2 * i];
                prop_assert!(x >= f32::from(count) - capacity as f32 && x < f32::from(count));
                let row = [
                    batch.observations[2 * i + 1],
                    batch.actions[i],
                    batch.rewards[i],
                    batch.next_observations[2 * i],
                    batch.goes_on[i],
                ];
                let goes_on = if (x as u16).is_multiple_of(3) { 0.0 } else { 1.0 };
                prop_assert_eq!(row, [-x, x + 0.5, 2.0 * x, x + 1.0, goes_on]);
            }
        }

        #[test]
        fn the_tree_finds_what_a_walk_over_all_finds(
            errors in prop::collection::vec(0.0_f32..10.0, 1..40),
            point in 0.0_f64..1.0,
        ) {
            let mut priorities = Priorities::new(errors.len(), HOW);
            errors.iter().enumerate().for_each(|(i, error)| priorities.set(i, *error));
            let point = (priorities.tree[1] as f64 * point) as u64;
            let mut left = point;
            let walk = (0..errors.len()).find(|i| {
                let own = priorities.tree[priorities.leaves + i];
                let is_here = left < own;
                left = left.saturating_sub(own);
                is_here
            });
            prop_assert_eq!(Some(priorities.find(point)), walk);
        }
    }

    #[test]
    fn large_errors_are_drawn_more_often_and_weigh_less() {
        let how = Prioritisation { alpha: 1.0, beta: 1.0, epsilon: 0.0 };
        let mut replay = Replay::new(4, 2, 1, Some(how)).unwrap();
        (0..4).for_each(|number| push(&mut replay, number));
        replay.update_priorities(&[0, 1, 2, 3], &[1.0, 1.0, 1.0, 5.0]);
        let (mut batch, mut rng) = (Batch::default(), ChaCha8Rng::seed_from_u64(1));
        let mut drawn = [0; 4];
        for _ in 0..1000 {
            replay.sample(8, &mut rng, &mut batch);
            batch.indices.iter().for_each(|index| drawn[*index] += 1);
            for (index, weight) in batch.indices.iter().zip(&batch.weights) {
                let want = if *index == 3 { 0.2 } else { 1.0 };
                assert!((weight - want).abs() < 1e-5, "{index}: {weight}");
            }
        }
        // Five of eight; the others one each.
        assert_eq!(drawn.iter().sum::<usize>(), 8000);
        assert!((4900..5100).contains(&drawn[3]), "{drawn:?}");
    }

    #[test]
    fn a_buffer_without_room_is_refused() {
        let error = Replay::new(0, 1, 1, None).unwrap_err().to_string();
        assert_eq!(error, "a replay buffer of 0 transitions, expected at least 1");
    }
}
