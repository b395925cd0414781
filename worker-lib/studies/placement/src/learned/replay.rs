//! Replay buffer of the patent (steps B1 to B4). When the buffer is full, a new sample replaces the oldest one, so the
//! "stack" of the patent's text is a queue.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

/// Number of bits in a word.
const BITS: usize = u64::BITS as usize;
/// Number of words of an encoded sample, excluding the words that hold one bit per GPU.
const FIXED_WORDS: usize = 3;

/// Sample of one pick of a GPU: state, action and reward. The next state is not stored, because every pick of a
/// simulated run gets the same reward, that of the whole run, without discounting.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Number of GPUs that the job needs.
    pub asked: u32,
    /// Duration of the job in weeks.
    pub weeks: f32,
    /// One bit for each GPU: whether it was taken or failed.
    taken: Vec<u64>,
    /// GPU that was picked.
    pub action: u32,
    /// Logarithm of the GPU's probability when it was picked.
    pub log_probability: f32,
    /// Reward of the simulated run.
    pub reward: f32,
}

impl Sample {
    /// Creates a sample from `(asked, weeks)`, a flag for each GPU that indicates whether it is taken, and `(action,
    /// log_probability)`. The reward is set later.
    pub fn new((asked, weeks): (u32, f32), taken: &[bool], (action, log_probability): (u32, f32)) -> Self {
        let word = |chunk: &[bool]| {
            chunk.iter().enumerate().fold(0, |word, (bit, is_taken)| word | u64::from(*is_taken) << bit)
        };
        let taken = taken.chunks(BITS).map(word).collect();
        Self { asked, weeks, taken, action, log_probability, reward: 0.0 }
    }

    /// Sets the reward, which is that of the whole simulated run.
    #[must_use]
    pub fn with_reward(self, reward: f32) -> Self {
        Self { reward, ..self }
    }

    /// Returns for each of the first `gpus` GPUs whether it was taken or failed.
    pub fn taken(&self, gpus: usize) -> impl Iterator<Item = bool> {
        (0..gpus).map(|gpu| self.taken[gpu / BITS] >> (gpu % BITS) & 1 == 1)
    }

    /// Returns the number of words of a sample for a cluster with `gpus` GPUs.
    pub fn words(gpus: usize) -> usize {
        gpus.div_ceil(BITS) + FIXED_WORDS
    }

    /// Appends the sample to `words`.
    pub fn encode(&self, words: &mut Vec<u64>) {
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        words.extend(&self.taken);
        words.push(pair(self.asked, self.weeks.to_bits()));
        words.push(pair(self.action, self.log_probability.to_bits()));
        words.push(u64::from(self.reward.to_bits()));
    }

    /// Decodes the words that [`Self::encode`] wrote; returns `None` if they are not a valid sample for a cluster with
    /// `gpus` GPUs.
    pub fn decode(words: &[u64], gpus: usize) -> Option<Self> {
        let (taken, fixed) = words.split_at_checked(gpus.div_ceil(BITS))?;
        let [job, choice, reward] = fixed.try_into().ok()?;
        let (high, low) = (|word: u64| (word >> 32) as u32, |word: u64| f32::from_bits(word as u32));
        let sample = Self {
            asked: high(job),
            weeks: low(job),
            taken: taken.to_vec(),
            action: high(choice),
            log_probability: low(choice),
            reward: low(reward),
        };
        let action = sample.action as usize;
        let floats = [sample.weeks, sample.log_probability, sample.reward];
        let is_sound = action < gpus && floats.iter().all(|it| it.is_finite());
        (is_sound && !sample.taken(gpus).nth(action)?).then_some(sample)
    }
}

/// Replay buffer of samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    samples: Vec<Sample>,
    capacity: usize,
    /// Index at which the next sample is stored. If the buffer is full, this is the index of the oldest sample, which
    /// is replaced.
    next: usize,
}

impl Replay {
    /// Creates a buffer for `capacity` samples; a capacity of 0 counts as 1.
    pub fn new(capacity: usize) -> Self {
        Self { samples: Vec::new(), capacity: capacity.max(1), next: 0 }
    }

    /// Returns the number of samples.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Returns whether the buffer has no samples.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Adds a sample; if the buffer is full, it replaces the oldest.
    pub fn push(&mut self, sample: Sample) {
        if self.samples.len() < self.capacity {
            self.samples.push(sample);
        } else {
            self.samples[self.next] = sample;
        }
        self.next = (self.next + 1) % self.capacity;
    }

    /// Draws `count` samples with replacement. In the patent, a batch has as many samples as the policy has produced
    /// since the previous update.
    pub fn draw(&self, count: usize, rng: &mut ChaCha8Rng) -> Vec<&Sample> {
        let len = self.samples.len();
        // Samples are drawn by age, not by index, because a buffer that was read from a file has them at different
        // indices.
        (0..count).map(|_| &self.samples[(self.oldest() + rng.random_range(0..len)) % len]).collect()
    }

    /// Returns the index of the oldest sample.
    fn oldest(&self) -> usize {
        if self.samples.len() < self.capacity { 0 } else { self.next }
    }

    /// Encodes all samples as words, the oldest first.
    pub fn encode(&self) -> Vec<u64> {
        let (newer, older) = self.samples.split_at(self.oldest());
        let mut words = Vec::new();
        older.iter().chain(newer).for_each(|sample| sample.encode(&mut words));
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iswitch_learn::algorithms::streams::{Purpose, stream};

    fn sample(number: u32) -> Sample {
        let taken: Vec<bool> = (0..70).map(|gpu| gpu % 3 == 1).collect();
        let sample = Sample::new((number, 0.25), &taken, (69, -0.5));
        Sample { reward: number as f32 / 8.0, ..sample }
    }

    #[test]
    fn samples_round_trip_and_damaged_ones_are_refused() {
        let mut words = Vec::new();
        sample(3).encode(&mut words);
        assert_eq!(words.len(), Sample::words(70));
        assert_eq!(Sample::decode(&words, 70), Some(sample(3)));
        assert_eq!(sample(3).taken(70).filter(|is_taken| *is_taken).count(), 23);
        assert_eq!(Sample::decode(&words[1..], 70), None);
        // The action is a GPU that was taken, or one that does not exist.
        for action in [1, 70] {
            let mut wrong = Vec::new();
            Sample { action, ..sample(3) }.encode(&mut wrong);
            assert_eq!(Sample::decode(&wrong, 70), None);
        }
        let mut wrong = Vec::new();
        Sample { reward: f32::NAN, ..sample(3) }.encode(&mut wrong);
        assert_eq!(Sample::decode(&wrong, 70), None);
    }

    #[test]
    fn the_oldest_sample_is_evicted() {
        let mut replay = Replay::new(4);
        (0..6).for_each(|number| replay.push(sample(number)));
        let mut again = Replay::new(4);
        for words in replay.encode().chunks(Sample::words(70)) {
            again.push(Sample::decode(words, 70).unwrap());
        }
        let draw = |replay: &Replay| -> Vec<u32> {
            let mut rng = stream(1, Purpose::Minibatches, 0);
            let mut drawn: Vec<u32> = replay.draw(100, &mut rng).iter().map(|it| it.asked).collect();
            drawn.sort_unstable();
            drawn.dedup();
            drawn
        };
        assert_eq!(draw(&replay), [2, 3, 4, 5]);
        assert_eq!((draw(&again), again.len()), (vec![2, 3, 4, 5], 4));
        again.push(sample(6));
        assert_eq!(draw(&again), [3, 4, 5, 6]);
    }
}
