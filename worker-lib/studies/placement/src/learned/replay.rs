//! The patent's replay buffer (steps B1 to B4): the oldest sample makes room for the newest. What the text calls a
//! stack is thus a queue.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

/// Bits of a word.
const BITS: usize = u64::BITS as usize;
/// Words of a sample that are not of GPUs.
const FIXED_WORDS: usize = 3;

/// A GPU that was picked: state, action and reward. The state that comes next is not there: there is one reward, at the
/// end, that every pick of a course gets, and it is not discounted.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// GPUs that the job needs.
    pub asked: u32,
    /// Its duration in weeks.
    pub weeks: f32,
    /// For each GPU whether it was not to be had, as bits.
    taken: Vec<u64>,
    /// The GPU.
    pub action: u32,
    /// The logarithm of its probability when it was picked.
    pub log_probability: f32,
    /// What the course was rewarded with.
    pub reward: f32,
}

impl Sample {
    /// Without its reward: `(asked, weeks)`, what was taken, `(action, log_probability)`.
    pub fn new((asked, weeks): (u32, f32), taken: &[bool], (action, log_probability): (u32, f32)) -> Self {
        let word = |chunk: &[bool]| {
            chunk.iter().enumerate().fold(0, |word, (bit, is_taken)| word | u64::from(*is_taken) << bit)
        };
        let taken = taken.chunks(BITS).map(word).collect();
        Self { asked, weeks, taken, action, log_probability, reward: 0.0 }
    }

    /// The same with what its course was rewarded with.
    #[must_use]
    pub fn with_reward(self, reward: f32) -> Self {
        Self { reward, ..self }
    }

    /// Whether each of the first so many GPUs was not to be had.
    pub fn taken(&self, gpus: usize) -> impl Iterator<Item = bool> {
        (0..gpus).map(|gpu| self.taken[gpu / BITS] >> (gpu % BITS) & 1 == 1)
    }

    /// Words of a sample of a cluster with so many GPUs.
    pub fn words(gpus: usize) -> usize {
        gpus.div_ceil(BITS) + FIXED_WORDS
    }

    /// As words.
    pub fn encode(&self, words: &mut Vec<u64>) {
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        words.extend(&self.taken);
        words.push(pair(self.asked, self.weeks.to_bits()));
        words.push(pair(self.action, self.log_probability.to_bits()));
        words.push(u64::from(self.reward.to_bits()));
    }

    /// What [`Self::encode`] has written, if it can be of a cluster with so many GPUs.
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

/// The buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    samples: Vec<Sample>,
    capacity: usize,
    /// Where the next one goes when it is full: the oldest.
    next: usize,
}

impl Replay {
    /// For so many samples.
    pub fn new(capacity: usize) -> Self {
        Self { samples: Vec::new(), capacity: capacity.max(1), next: 0 }
    }

    /// Samples in it.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Adds one, in place of the oldest if there is no more room.
    pub fn push(&mut self, sample: Sample) {
        if self.samples.len() < self.capacity {
            self.samples.push(sample);
        } else {
            self.samples[self.next] = sample;
        }
        self.next = (self.next + 1) % self.capacity;
    }

    /// So many of them, each drawn from all. The patent's batch is dynamic: as many as the interval brought.
    pub fn draw(&self, count: usize, rng: &mut ChaCha8Rng) -> Vec<&Sample> {
        let len = self.samples.len();
        // By age, not by place: one that was read from a file has all samples at other places.
        (0..count).map(|_| &self.samples[(self.oldest() + rng.random_range(0..len)) % len]).collect()
    }

    /// The place of the oldest sample.
    fn oldest(&self) -> usize {
        if self.samples.len() < self.capacity { 0 } else { self.next }
    }

    /// All samples as words, the oldest first.
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
    fn samples_come_back_and_damaged_ones_do_not() {
        let mut words = Vec::new();
        sample(3).encode(&mut words);
        assert_eq!(words.len(), Sample::words(70));
        assert_eq!(Sample::decode(&words, 70), Some(sample(3)));
        assert_eq!(sample(3).taken(70).filter(|is_taken| *is_taken).count(), 23);
        assert_eq!(Sample::decode(&words[1..], 70), None);
        // A GPU that was taken, or is not there.
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
    fn the_oldest_sample_makes_room() {
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
