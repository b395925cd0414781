//! The observation that the agent receives from an environment: the newest observation, or a stack of the newest
//! images.

use std::collections::VecDeque;

use super::message::Observations;

/// The newest observations of one environment, encoded as in messages between the processes.
#[derive(Debug)]
pub(super) struct Latest {
    observations: Observations,
    /// Observations, oldest first.
    frames: VecDeque<Vec<u8>>,
}

impl Latest {
    /// Creates a stack of observations whose values are all zero.
    pub(super) fn new(observations: Observations) -> Self {
        let stack = match observations {
            Observations::Floats(_) => 1,
            Observations::Images { stack, .. } => stack,
        };
        Self { observations, frames: vec![vec![0; observations.len_bytes()]; stack].into() }
    }

    /// Fills the whole stack with the first observation of an episode.
    pub(super) fn start(&mut self, observation: &[u8]) {
        self.frames.iter_mut().for_each(|frame| frame.copy_from_slice(observation));
    }

    /// Adds the next observation and drops the oldest frame.
    pub(super) fn push(&mut self, observation: &[u8]) {
        if let Some(mut frame) = self.frames.pop_front() {
            frame.copy_from_slice(observation);
            self.frames.push_back(frame);
        }
    }

    /// Writes the agent's observation: numbers, or a stack of images with values from 0 to 255 in the layout `[height,
    /// width, stack * channels]`, newest image last.
    pub(super) fn write(&self, observation: &mut [f32]) {
        match self.observations {
            Observations::Floats(_) => {
                let numbers = self.frames[0].as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
                observation.iter_mut().zip(numbers).for_each(|(to, number)| *to = number);
            }
            Observations::Images { frame, stack } => {
                let (channels, numbers) = (frame.channels, stack * frame.channels);
                for (i, pixels) in self.frames.iter().enumerate() {
                    for channel in 0..channels {
                        let to = observation[i * channels + channel..].iter_mut().step_by(numbers);
                        let from = pixels[channel..].iter().step_by(channels);
                        to.zip(from).for_each(|(to, value)| *to = f32::from(*value));
                    }
                }
            }
        }
    }

    /// Returns a checksum of the newest observation.
    pub(super) fn digest(&self) -> u32 {
        self.frames.back().map_or(0, |frame| crc32c::crc32c(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::Image;

    #[test]
    fn frames_are_stacked_with_the_newest_last() {
        let frame = Image { height: 1, width: 2, channels: 1 };
        let mut latest = Latest::new(Observations::Images { frame, stack: 3 });
        let mut seen = [9.0; 6];
        latest.start(&[10, 20]);
        latest.write(&mut seen);
        assert_eq!(seen, [10.0, 10.0, 10.0, 20.0, 20.0, 20.0]);
        latest.push(&[11, 21]);
        latest.push(&[12, 255]);
        latest.write(&mut seen);
        assert_eq!(seen, [10.0, 11.0, 12.0, 20.0, 21.0, 255.0]);
        latest.push(&[13, 0]);
        latest.write(&mut seen);
        assert_eq!(seen, [11.0, 12.0, 13.0, 21.0, 255.0, 0.0]);
        latest.start(&[1, 2]);
        latest.write(&mut seen);
        assert_eq!(seen, [1.0, 1.0, 1.0, 2.0, 2.0, 2.0], "an episode sees nothing of the one before");
    }

    #[test]
    fn the_channels_of_a_colour_frame_stay_together() {
        let frame = Image { height: 1, width: 1, channels: 3 };
        let mut latest = Latest::new(Observations::Images { frame, stack: 2 });
        latest.start(&[1, 2, 3]);
        latest.push(&[4, 5, 6]);
        let mut seen = [0.0; 6];
        latest.write(&mut seen);
        assert_eq!(seen, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    }

    #[test]
    fn float_observations_are_not_stacked() {
        let mut latest = Latest::new(Observations::Floats(2));
        let bytes = |numbers: [f32; 2]| numbers.map(f32::to_le_bytes).concat();
        latest.start(&bytes([1.0, 2.0]));
        let digest = latest.digest();
        latest.push(&bytes([-0.5, f32::INFINITY]));
        let mut seen = [0.0; 2];
        latest.write(&mut seen);
        assert_eq!(seen, [-0.5, f32::INFINITY]);
        assert_ne!(latest.digest(), digest);
    }
}
