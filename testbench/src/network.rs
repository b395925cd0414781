//! What a network does to packets: one seeded model for simulated packets and for real frames.

use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// What the network does to packets. Probabilities are per datagram.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    /// Time on the wire of every packet.
    pub delay: Duration,
    /// Up to this much more, drawn for each packet: what reorders them.
    pub jitter: Duration,
    /// Which packets are lost.
    pub loss: Loss,
    /// Probability that a packet arrives twice.
    pub duplication: f64,
}

impl Network {
    /// Nothing is lost, nothing overtaken.
    pub const PERFECT: Self = Self {
        delay: Duration::from_micros(20),
        jitter: Duration::ZERO,
        loss: Loss::Bernoulli(0.0),
        duplication: 0.0,
    };
}

/// Which packets are lost.
#[derive(Clone, Copy, Debug)]
pub enum Loss {
    /// Each with this probability, whatever became of the others.
    Bernoulli(f64),
    /// In bursts: a Markov chain of two states that may change at each packet (Elliott, "Estimates of Error
    /// Rates for Codes on Burst-Noise Channels", 1963).
    GilbertElliott {
        /// Probability of a change from the good state to the bad one. A spell of good ones lasts its inverse
        /// in packets, in the mean.
        to_bad: f64,
        /// Probability of a change from the bad state to the good one. A burst lasts its inverse.
        to_good: f64,
        /// Probability that a packet is lost in the good state.
        good_loss: f64,
        /// Probability that a packet is lost in the bad state.
        bad_loss: f64,
    },
}

/// What became of the packets of a channel so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Packets that were sent.
    pub packets: u64,
    /// Packets of which a copy was lost.
    pub lost: u64,
    /// Packets that were duplicated.
    pub duplicated: u64,
}

/// One direction of one cable.
#[derive(Debug)]
pub struct Channel {
    network: Network,
    random: ChaCha8Rng,
    is_bad: bool,
    tally: Tally,
}

impl Channel {
    /// A channel whose seed decides the fate of each of its packets.
    pub fn new(network: Network, seed: u64) -> Self {
        let random = ChaCha8Rng::seed_from_u64(seed);
        Self { network, random, is_bad: false, tally: Tally::default() }
    }

    /// After how long the next packet arrives: never if it is lost, twice if it is duplicated.
    pub fn arrivals(&mut self) -> impl Iterator<Item = Duration> + use<> {
        let is_duplicated = self.random.random_bool(self.network.duplication);
        let first = self.arrival();
        let second = if is_duplicated { self.arrival() } else { None };
        let lost = first.is_none() || (is_duplicated && second.is_none());
        self.tally.packets += 1;
        self.tally.lost += u64::from(lost);
        self.tally.duplicated += u64::from(is_duplicated);
        [first, second].into_iter().flatten()
    }

    /// What became of the packets so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    fn arrival(&mut self) -> Option<Duration> {
        if self.loses() {
            return None;
        }
        let jitter = self.network.jitter.mul_f64(self.random.random::<f64>());
        Some(self.network.delay + jitter)
    }

    fn loses(&mut self) -> bool {
        let probability = match self.network.loss {
            Loss::Bernoulli(probability) => probability,
            Loss::GilbertElliott { to_bad, to_good, good_loss, bad_loss } => {
                let change = if self.is_bad { to_good } else { to_bad };
                self.is_bad ^= self.random.random_bool(change);
                if self.is_bad { bad_loss } else { good_loss }
            }
        };
        self.random.random_bool(probability)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKETS: usize = 100_000;

    /// Whether each packet is lost.
    fn losses(loss: Loss) -> Vec<bool> {
        let mut channel = Channel::new(Network { loss, ..Network::PERFECT }, 1);
        (0..PACKETS).map(|_| channel.arrivals().next().is_none()).collect()
    }

    fn rate(losses: &[bool]) -> f64 {
        losses.iter().filter(|lost| **lost).count() as f64 / losses.len() as f64
    }

    /// Mean number of packets that are lost one after the other.
    fn burst(losses: &[bool]) -> f64 {
        let starts = losses.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        rate(losses) * losses.len() as f64 / starts as f64
    }

    #[test]
    fn both_kinds_lose_as_many_and_one_in_bursts() {
        let independent = losses(Loss::Bernoulli(0.05));
        let stationary = Loss::GilbertElliott { to_bad: 0.01, to_good: 0.19, good_loss: 0.0, bad_loss: 1.0 };
        let bursts = losses(stationary);
        // Five standard deviations; those of bursts are wider by the square root of about twice their length.
        assert!((rate(&independent) - 0.05).abs() < 0.0035, "{}", rate(&independent));
        assert!((rate(&bursts) - 0.05).abs() < 0.011, "{}", rate(&bursts));
        assert!((burst(&independent) - 1.0 / 0.95).abs() < 0.05, "{}", burst(&independent));
        assert!((burst(&bursts) - 1.0 / 0.19).abs() < 0.8, "{}", burst(&bursts));
    }

    #[test]
    fn the_seed_decides() {
        let network = Network { loss: Loss::Bernoulli(0.5), duplication: 0.5, ..Network::PERFECT };
        let network = Network { jitter: Duration::from_millis(1), ..network };
        let run = |seed| {
            let mut channel = Channel::new(network, seed);
            let arrivals: Vec<Vec<_>> = (0..100).map(|_| channel.arrivals().collect()).collect();
            (arrivals, channel.tally())
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }

    #[test]
    fn what_happened_is_counted() {
        let network = Network { duplication: 1.0, ..Network::PERFECT };
        let mut twice = Channel::new(network, 1);
        assert_eq!(twice.arrivals().collect::<Vec<_>>(), [Network::PERFECT.delay; 2]);
        assert_eq!(twice.tally(), Tally { packets: 1, lost: 0, duplicated: 1 });
        let mut never = Channel::new(Network { loss: Loss::Bernoulli(1.0), ..network }, 1);
        assert_eq!(never.arrivals().count(), 0);
        assert_eq!(never.tally(), Tally { packets: 1, lost: 1, duplicated: 1 });
    }
}
