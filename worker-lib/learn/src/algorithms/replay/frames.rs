//! Transitions whose observations are stacks of the most recent frames. Each frame is stored only once, as bytes.
//!
//! An entry consists of a frame and the action that the agent chose for it. The entry after it holds the frame that
//! results from this action; that entry has an action of its own, unless its frame is the last one of the episode.

use super::{Batch, Transition};
use crate::algorithms::TrainError;
use crate::algorithms::checkpoint::{Reader, Writer};
use crate::env::ImageShape;

/// Flag: the frame is the first of its episode; its stack consists of copies of this frame.
const STARTS: u8 = 1;
/// Flag: the entry has an action.
const ACTS: u8 = 2;
/// Flag: the episode terminated with this action, so the next state has no value.
const TERMINATES: u8 = 4;
/// Flag: the frame is the last one of its episode.
const ENDS: u8 = 8;

/// Minimum capacity, in entries; a smaller buffer might contain no transition that can be drawn.
pub(super) const CAPACITY_MIN: usize = 8;

/// A ring buffer of entries; new entries replace the oldest ones.
#[derive(Clone, Debug)]
pub(super) struct Frames {
    capacity: usize,
    pixels: usize,
    stack: usize,
    /// Number of entries added so far. The newest entry contains the frame that resulted from the most recent step.
    made: u64,
    bytes: Vec<u8>,
    actions: Vec<f32>,
    rewards: Vec<f32>,
    flags: Vec<u8>,
}

impl Frames {
    pub(super) fn new(capacity: usize, image: ImageShape) -> Self {
        let (pixels, stack) = (image.height * image.width, image.channels);
        Self {
            capacity,
            pixels,
            stack,
            made: 0,
            bytes: Vec::new(),
            actions: Vec::new(),
            rewards: Vec::new(),
            flags: Vec::new(),
        }
    }

    /// Returns the number of entries. It slightly exceeds the number of transitions, because the last frame of an
    /// episode is an entry too.
    pub(super) fn len(&self) -> usize {
        self.flags.len()
    }

    /// Adds a transition and returns its index. Calls `lost` with the index of each entry that can no longer be drawn.
    pub(super) fn push(&mut self, transition: &Transition<'_>, mut lost: impl FnMut(usize)) -> usize {
        let is_new = self.made == 0 || self.flags[self.slot(self.made - 1)] & ENDS != 0;
        if is_new {
            self.append(transition.observation, STARTS);
        }
        let at = self.slot(self.made - 1);
        self.actions[at] = transition.action[0];
        self.rewards[at] = transition.reward;
        self.flags[at] |= ACTS | if transition.terminated { TERMINATES } else { 0 };
        self.append(transition.next_observation, if transition.episode_ends { ENDS } else { 0 });
        // The oldest entries follow the newest one in the buffer. Their stacks are incomplete, because frames in them
        // have been overwritten.
        let newest = self.made - 1;
        (0..self.stack as u64).map(|k| self.slot(newest + k)).filter(|slot| *slot != at).for_each(&mut lost);
        at
    }

    /// Returns the buffer index of entry `number`; entries are numbered from 0 in the order in which they are added.
    fn slot(&self, number: u64) -> usize {
        (number % self.capacity as u64) as usize
    }

    fn append(&mut self, observation: &[f32], flags: u8) {
        let at = self.slot(self.made);
        if at == self.flags.len() {
            self.bytes.resize((at + 1) * self.pixels, 0);
            self.actions.push(0.0);
            self.rewards.push(0.0);
            self.flags.push(0);
        }
        let newest = observation.iter().skip(self.stack - 1).step_by(self.stack);
        let frame = &mut self.bytes[at * self.pixels..(at + 1) * self.pixels];
        frame.iter_mut().zip(newest).for_each(|(byte, x)| *byte = (x * 255.0).round() as u8);
        self.flags[at] = flags;
        self.made += 1;
    }

    /// Returns whether the entry at index `at` has an action and all frames of its transition are still stored.
    pub(super) fn is_drawable(&self, at: usize) -> bool {
        let newest = self.slot(self.made - 1);
        // Number of entries that were added after this one.
        let age = (newest + self.capacity - at) % self.capacity;
        self.flags[at] & ACTS != 0 && (self.len() < self.capacity || age + self.stack <= self.capacity)
    }

    pub(super) fn copy_out(&self, batch: &mut Batch) {
        let len = batch.indices.len() * self.pixels * self.stack;
        batch.observations.resize(len, 0.0);
        batch.next_observations.resize(len, 0.0);
        let width = self.pixels * self.stack;
        for (i, at) in batch.indices.iter().copied().enumerate() {
            self.copy_stack(at, &mut batch.observations[i * width..(i + 1) * width]);
            let next = (at + 1) % self.capacity;
            self.copy_stack(next, &mut batch.next_observations[i * width..(i + 1) * width]);
            batch.actions.push(self.actions[at]);
            batch.rewards.push(self.rewards[at]);
            batch.goes_on.push(if self.flags[at] & TERMINATES != 0 { 0.0 } else { 1.0 });
        }
    }

    /// Writes the stack whose newest frame is at index `newest` to `stack`, with values in [0, 1]. For each pixel, the
    /// values in all frames are adjacent, oldest frame first.
    fn copy_stack(&self, newest: usize, stack: &mut [f32]) {
        let mut at = newest;
        for channel in (0..self.stack).rev() {
            let frame = &self.bytes[at * self.pixels..(at + 1) * self.pixels];
            let own = stack.iter_mut().skip(channel).step_by(self.stack);
            own.zip(frame).for_each(|(x, byte)| *x = f32::from(*byte) / 255.0);
            if self.flags[at] & STARTS == 0 {
                at = (at + self.capacity - 1) % self.capacity;
            }
        }
    }

    pub(super) fn write(&self, name: &str, writer: &mut Writer) {
        writer.bytes(&format!("{name}.frames"), &self.bytes);
        writer.bytes(&format!("{name}.flags"), &self.flags);
        writer.floats(&format!("{name}.actions"), vec![self.len()], &self.actions);
        writer.floats(&format!("{name}.rewards"), vec![self.len()], &self.rewards);
        writer.text(&format!("{name}.pushed"), self.made.to_string());
    }

    pub(super) fn read(&mut self, name: &str, reader: &Reader<'_>) -> Result<(), TrainError> {
        let len = reader.len_f32(&format!("{name}.rewards"))?;
        if len > self.capacity {
            return Err(
                reader.refuse(format!("{name} has {len} entries, expected at most {}", self.capacity))
            );
        }
        self.bytes = reader.bytes(&format!("{name}.frames"), len * self.pixels)?.to_vec();
        self.flags = reader.bytes(&format!("{name}.flags"), len)?.to_vec();
        self.actions = reader.floats(&format!("{name}.actions"), len)?;
        self.rewards = reader.floats(&format!("{name}.rewards"), len)?;
        self.made = reader.number(&format!("{name}.pushed"))?;
        if self.is_sound() { Ok(()) } else { Err(reader.refuse(format!("{name} has missing transitions"))) }
    }

    /// Returns whether the buffer is consistent: it is empty, or it contains at least one entry that can be drawn, and
    /// all frames of such entries. If no entry could be drawn, sampling would not terminate.
    fn is_sound(&self) -> bool {
        let len = self.len();
        if len == 0 {
            return self.made == 0;
        }
        let is_whole = len == self.capacity || (self.made == len as u64 && self.flags[0] & STARTS != 0);
        is_whole
            && self.made >= len as u64
            && self.flags[self.slot(self.made - 1)] & ACTS == 0
            && (0..len).any(|at| self.is_drawable(at))
    }
}
