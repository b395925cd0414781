//! The machines that all contenders run on: workers and a server, each behind its own cable to the switch.

use std::net::Ipv4Addr;
use std::str::FromStr;

use crate::netns::{Namespace, Star, StarOptions, WORKER_INTERFACE};

/// Least bytes that a shaper lets through at once: a super-frame of 64 KiB with the headers of its 45 segments, all of
/// which tbf counts: 68,130 bytes over TCP. A longer one is cut up by the kernel before it waits; with 68,000 here each
/// contender over TCP sent single segments, at five times the processor time, which hid the rate. Vectors that are not
/// much longer than this hide it too.
const MIN_BURST_BYTES: f64 = 72_000.0;
/// What a shaper lets through at once: less would be lost to the resolution of the kernel's timers.
const BURST_SECONDS: f64 = 50e-6;
/// Bytes that wait for a shaper: more than any contender has in flight, so that none is judged by its drops.
const QUEUE_BYTES: u64 = 64 << 20;

/// Bits per second of each link, each way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Bits per second.
    pub bits_per_s: f64,
}

impl Rate {
    /// How long so many bytes occupy a link, headers not counted.
    pub fn seconds_for(self, bytes: f64) -> f64 {
        bytes * 8.0 / self.bits_per_s
    }

    /// Such as `1 Gbit/s`.
    pub fn text(self) -> String {
        format!("{} Gbit/s", self.bits_per_s / 1e9)
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix("gbit").and_then(|number| number.parse::<f64>().ok());
        let gigabits = number.filter(|number| *number > 0.0 && number.is_finite());
        gigabits
            .map(|gigabits| Self { bits_per_s: gigabits * 1e9 })
            .ok_or_else(|| format!("{text:?}, expected such as 1gbit"))
    }
}

/// A star of workers and, behind the last cable, a server.
#[derive(Debug)]
pub struct Network {
    /// The machines.
    pub star: Star,
    /// How fast the links are, if not as fast as the machine.
    pub rate: Option<Rate>,
}

impl Network {
    /// Makes it.
    ///
    /// # Panics
    /// If that fails: ask [`crate::requirements::root_and`] first.
    pub fn new(workers: usize, rate: Option<Rate>) -> Self {
        let star = Star::new(StarOptions { workers: workers + 1, ..StarOptions::default() });
        let network = Self { star, rate };
        if let Some(rate) = rate {
            (0..=workers).for_each(|at| network.shape(at, rate));
        }
        network
    }

    fn shape(&self, at: usize, rate: Rate) {
        let burst = (rate.bits_per_s / 8.0 * BURST_SECONDS).max(MIN_BURST_BYTES);
        let limit = QUEUE_BYTES.to_string();
        let (rate, burst) = (format!("{:.0}bit", rate.bits_per_s), format!("{burst:.0}"));
        let shape = |namespace: &Namespace, interface: &str| {
            namespace.run([
                "tc", "qdisc", "add", "dev", interface, "root", "tbf", "rate", &rate, "burst", &burst,
                "limit", &limit,
            ]);
        };
        shape(&self.star.switch, &Star::port(at));
        shape(&self.star.workers[at], WORKER_INTERFACE);
    }

    /// The workers.
    pub fn workers(&self) -> &[Namespace] {
        &self.star.workers[..self.worker_count()]
    }

    /// How many there are.
    pub fn worker_count(&self) -> usize {
        self.star.workers.len() - 1
    }

    /// The server.
    pub fn server(&self) -> &Namespace {
        &self.star.workers[self.worker_count()]
    }

    /// Its address.
    pub fn server_address(&self) -> Ipv4Addr {
        Star::worker_address(self.worker_count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read() {
        assert_eq!("1gbit".parse(), Ok(Rate { bits_per_s: 1e9 }));
        assert_eq!("2.5gbit".parse::<Rate>().unwrap().text(), "2.5 Gbit/s");
        for bad in ["", "gbit", "0gbit", "-1gbit", "1mbit", "nangbit", "infgbit"] {
            assert!(bad.parse::<Rate>().is_err(), "{bad:?}");
        }
        assert!((Rate { bits_per_s: 1e9 }.seconds_for(125e6) - 1.0).abs() < 1e-12);
    }
}
