//! Links that lose, duplicate, delay, reorder and corrupt packets and limit their rate.

use std::ops::AddAssign;
use std::time::Duration;

use iswitch_protocol::Instant;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// Loss model of a link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Loss {
    /// Each packet is lost independently.
    Bernoulli {
        /// Probability of a loss.
        probability: f64,
    },
    /// Losses occur in bursts: the link is good or bad and may change state with each packet (Gilbert 1960, Elliott
    /// 1963).
    GilbertElliott {
        /// Probability that a good link becomes bad.
        to_bad: f64,
        /// Probability that a bad link becomes good.
        to_good: f64,
        /// Probability of a loss while the link is bad; a good link loses nothing.
        loss_bad: f64,
    },
}

/// A bottleneck that serialises packets at a fixed rate and drops those that its queue cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Rate in bytes per second, headers included.
    pub bytes_per_second: u64,
    /// Capacity of the queue, in bytes.
    pub queue_bytes: u64,
}

/// Behaviour of a link. All probabilities are per packet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkModel {
    /// Minimum delay of every packet.
    pub delay: Duration,
    /// Maximum additional delay, drawn for each packet.
    pub jitter: Duration,
    /// Whether packets arrive in the order in which they were sent, regardless of their delays.
    pub fifo: bool,
    /// Probability that a packet takes a longer path, on which it can be overtaken even if `fifo` is set.
    pub late: f64,
    /// Maximum additional delay on the longer path.
    pub late_by: Duration,
    /// Loss model; `None` if no packet is lost.
    pub loss: Option<Loss>,
    /// Probability that a packet is duplicated.
    pub duplication: f64,
    /// Probability that bits of a packet are flipped. The UDP checksum detects the corruption, and the receiver drops
    /// the packet.
    pub corruption: f64,
    /// Probability that the checksum does not detect corruption. If this probability is not zero, sums may be wrong,
    /// and the simulation only checks that nothing panics.
    pub missed_checksum: f64,
    /// Bottleneck of the link; `None` if its rate is unlimited.
    pub rate: Option<Rate>,
}

impl LinkModel {
    /// A link without loss or reordering.
    pub const PERFECT: Self = Self {
        delay: Duration::from_micros(20),
        jitter: Duration::ZERO,
        fifo: true,
        late: 0.0,
        late_by: Duration::ZERO,
        loss: None,
        duplication: 0.0,
        corruption: 0.0,
        missed_checksum: 0.0,
        rate: None,
    };

    /// A link that loses 5 %, duplicates 5 % and corrupts 5 % of the packets, and reorders packets.
    pub const ALL_FAULTS: Self = Self {
        delay: Duration::from_micros(100),
        jitter: Duration::from_millis(2),
        fifo: false,
        loss: Some(Loss::Bernoulli { probability: 0.05 }),
        duplication: 0.05,
        corruption: 0.05,
        ..Self::PERFECT
    };

    /// Returns a copy of the model without faults.
    #[must_use]
    pub fn healed(&self) -> Self {
        Self { delay: self.delay, ..Self::PERFECT }
    }

    /// Returns the longest time that a packet can be in flight.
    pub fn max_lifetime(&self) -> Duration {
        let queued = self.rate.map_or(0.0, |rate| rate.queue_bytes as f64 / rate.bytes_per_second as f64);
        self.delay + self.jitter + self.late_by + Duration::from_secs_f64(queued)
    }
}

/// Counts of packets sent and of network faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinkCounters {
    /// Packets sent.
    pub sent: u64,
    /// Number of packets lost at random.
    pub lost: u64,
    /// Number of packets dropped because a queue was full.
    pub overflowed: u64,
    /// Number of packets dropped by a partition.
    pub blocked: u64,
    /// Packets duplicated.
    pub duplicated: u64,
    /// Number of packets that took the longer path.
    pub late: u64,
    /// Number of packets with flipped bits.
    pub corrupted: u64,
}

impl AddAssign for LinkCounters {
    fn add_assign(&mut self, other: Self) {
        self.sent += other.sent;
        self.lost += other.lost;
        self.overflowed += other.overflowed;
        self.blocked += other.blocked;
        self.duplicated += other.duplicated;
        self.late += other.late;
        self.corrupted += other.corrupted;
    }
}

/// Whether a packet was corrupted, and whether the receiver's checksum detects the corruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The packet is intact.
    None,
    /// The receiver's checksum detects the corruption.
    Found,
    /// The receiver's checksum does not detect the corruption.
    Missed,
}

/// One arrival of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Time of the arrival.
    pub at: Instant,
    /// State of the packet.
    pub damage: Damage,
}

/// One direction of a network link.
#[derive(Debug)]
pub struct Link {
    model: LinkModel,
    /// State of the Gilbert-Elliott model.
    is_bad: bool,
    /// Number of partitions that currently include this link.
    partitions: u32,
    /// Time at which the bottleneck will have sent all queued packets.
    busy_until: Instant,
    last_arrival: Instant,
}

impl Link {
    /// Creates an idle link in the good state.
    pub fn new(model: LinkModel) -> Self {
        Self {
            model,
            is_bad: false,
            partitions: 0,
            busy_until: Instant::default(),
            last_arrival: Instant::default(),
        }
    }

    pub(super) fn block(&mut self) {
        self.partitions += 1;
    }

    pub(super) fn unblock(&mut self) {
        self.partitions = self.partitions.saturating_sub(1);
    }

    pub(super) fn heal(&mut self) {
        self.model = self.model.healed();
        self.partitions = 0;
    }

    /// Sends a packet of `len` bytes and returns its arrivals: none, one or two.
    pub fn carry(
        &mut self,
        now: Instant,
        len: usize,
        random: &mut ChaCha8Rng,
        counters: &mut LinkCounters,
    ) -> [Option<Arrival>; 2] {
        counters.sent += 1;
        if self.partitions > 0 {
            counters.blocked += 1;
            return [None; 2];
        }
        let Some(departure) = self.serialise(now, len) else {
            counters.overflowed += 1;
            return [None; 2];
        };
        let copies = if chance(random, self.model.duplication) { 2 } else { 1 };
        counters.duplicated += copies - 1;
        let mut arrivals = [None; 2];
        for arrival in arrivals.iter_mut().take(copies as usize) {
            if self.loses(random) {
                counters.lost += 1;
            } else {
                *arrival = Some(self.arrive(departure, random, counters));
            }
        }
        arrivals
    }

    /// Returns the time at which the packet leaves the bottleneck, or `None` if the queue is full.
    fn serialise(&mut self, now: Instant, len: usize) -> Option<Instant> {
        let Some(rate) = self.model.rate else { return Some(now) };
        let start = self.busy_until.max(now);
        let nanos_per_byte = 1_000_000_000 / rate.bytes_per_second.max(1);
        let waiting_bytes = start.since(now).as_nanos() as u64 / nanos_per_byte.max(1);
        if waiting_bytes + len as u64 > rate.queue_bytes {
            return None;
        }
        self.busy_until = start.plus(Duration::from_nanos(len as u64 * nanos_per_byte));
        Some(self.busy_until)
    }

    fn loses(&mut self, random: &mut ChaCha8Rng) -> bool {
        match self.model.loss {
            None => false,
            Some(Loss::Bernoulli { probability }) => chance(random, probability),
            Some(Loss::GilbertElliott { to_bad, to_good, loss_bad }) => {
                let changes = chance(random, if self.is_bad { to_good } else { to_bad });
                self.is_bad ^= changes;
                self.is_bad && chance(random, loss_bad)
            }
        }
    }

    fn arrive(
        &mut self,
        departure: Instant,
        random: &mut ChaCha8Rng,
        counters: &mut LinkCounters,
    ) -> Arrival {
        let LinkModel { delay, jitter, fifo, late, late_by, corruption, missed_checksum, .. } = self.model;
        let mut at = departure.plus(delay + up_to(random, jitter));
        if chance(random, late) {
            counters.late += 1;
            at = at.plus(up_to(random, late_by));
        } else if fifo {
            at = at.max(self.last_arrival);
            self.last_arrival = at;
        }
        let damage = match chance(random, corruption) {
            false => Damage::None,
            true if chance(random, missed_checksum) => Damage::Missed,
            true => Damage::Found,
        };
        counters.corrupted += u64::from(damage != Damage::None);
        Arrival { at, damage }
    }
}

/// Returns true with the given probability. Draws no random number if the probability is zero, because most links have
/// only a few kinds of faults.
fn chance(random: &mut ChaCha8Rng, probability: f64) -> bool {
    probability > 0.0 && random.random_bool(probability)
}

fn up_to(random: &mut ChaCha8Rng, limit: Duration) -> Duration {
    let limit = limit.as_nanos() as u64;
    Duration::from_nanos(if limit == 0 { 0 } else { random.random_range(0..=limit) })
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    const PACKETS: u64 = 20_000;

    /// Returns the arrival times of 100-byte packets sent 10 us apart.
    fn send(model: LinkModel) -> (Vec<Instant>, LinkCounters) {
        let (mut link, mut counters) = (Link::new(model), LinkCounters::default());
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut arrivals = Vec::new();
        for packet in 0..PACKETS {
            let now = Instant::from_nanos(packet * 10_000);
            arrivals.extend(link.carry(now, 100, &mut random, &mut counters).into_iter().flatten());
        }
        (arrivals.into_iter().map(|arrival| arrival.at).collect(), counters)
    }

    #[test]
    fn the_loss_rate_matches_the_model() {
        let (_, alone) =
            send(LinkModel { loss: Some(Loss::Bernoulli { probability: 0.1 }), ..LinkModel::PERFECT });
        assert!((1_800..2_200).contains(&alone.lost), "{alone:?}");
        // The link is bad a fifth of the time and then loses half of the packets.
        let bursts = Loss::GilbertElliott { to_bad: 0.01, to_good: 0.04, loss_bad: 0.5 };
        let (_, bursts) = send(LinkModel { loss: Some(bursts), ..LinkModel::PERFECT });
        assert!((1_600..2_400).contains(&bursts.lost), "{bursts:?}");
    }

    #[test]
    fn only_a_fifo_link_preserves_packet_order() {
        let jitter = Duration::from_micros(100);
        let (arrivals, _) = send(LinkModel { jitter, ..LinkModel::PERFECT });
        assert!(arrivals.is_sorted());
        let (arrivals, _) = send(LinkModel { jitter, fifo: false, ..LinkModel::PERFECT });
        assert!(!arrivals.is_sorted());
    }

    #[test]
    fn a_bottleneck_drops_packets_that_overflow_its_queue() {
        // 100 bytes every 10 us require 10 MB/s.
        let half = Rate { bytes_per_second: 5_000_000, queue_bytes: 1_000 };
        let model = LinkModel { rate: Some(half), ..LinkModel::PERFECT };
        let (arrivals, counters) = send(model);
        assert!((9_990..10_020).contains(&arrivals.len()), "{}", arrivals.len());
        assert_eq!(counters.overflowed + arrivals.len() as u64, PACKETS);
        let slowest = arrivals.last().map(|at| at.since(Instant::from_nanos((PACKETS - 1) * 10_000)));
        assert!(slowest.is_none_or(|time| time <= model.max_lifetime()), "{slowest:?}");
    }
}
