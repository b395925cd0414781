//! Links that lose, repeat, delay, reorder, damage and limit what they carry.

use std::ops::AddAssign;
use std::time::Duration;

use iswitch_protocol::Instant;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// How packets are lost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Loss {
    /// Each packet on its own.
    Bernoulli {
        /// Probability of a loss.
        probability: f64,
    },
    /// In bursts: a link is good or bad, and changes with each packet (Gilbert 1960, Elliott 1963).
    GilbertElliott {
        /// Probability that a good link turns bad.
        to_bad: f64,
        /// Probability that a bad link turns good.
        to_good: f64,
        /// Probability of a loss while bad; a good link loses nothing.
        loss_bad: f64,
    },
}

/// A bottleneck: packets are serialised at a rate, and wait in a queue that drops what does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Bytes that leave in a second, headers included.
    pub bytes_per_second: u64,
    /// Bytes that may wait.
    pub queue_bytes: u64,
}

/// What a link does to packets. Probabilities are for each packet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkModel {
    /// Time on the wire of every packet.
    pub delay: Duration,
    /// Up to this much more, drawn for each packet.
    pub jitter: Duration,
    /// Whether packets arrive in the order that they were sent, whatever their delays.
    pub fifo: bool,
    /// Probability that a packet takes another path, on which it can be overtaken even so.
    pub late: f64,
    /// How much longer that path is at most.
    pub late_by: Duration,
    /// How packets are lost, if they are.
    pub loss: Option<Loss>,
    /// Probability that a packet arrives twice.
    pub duplication: f64,
    /// Probability that bits of a packet are flipped. The UDP checksum finds that, and the packet is dropped.
    pub corruption: f64,
    /// Probability that the checksum does not find it. Then no sum is promised, only that nothing panics.
    pub missed_checksum: f64,
    /// The bottleneck, if there is one.
    pub rate: Option<Rate>,
}

impl LinkModel {
    /// Nothing is lost, nothing overtaken.
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

    /// One packet in twenty is lost, another twice there and another damaged, and all overtake each other.
    pub const ALL_FAULTS: Self = Self {
        delay: Duration::from_micros(100),
        jitter: Duration::from_millis(2),
        fifo: false,
        loss: Some(Loss::Bernoulli { probability: 0.05 }),
        duplication: 0.05,
        corruption: 0.05,
        ..Self::PERFECT
    };

    /// The same link without its faults.
    #[must_use]
    pub fn healed(&self) -> Self {
        Self { delay: self.delay, ..Self::PERFECT }
    }

    /// The longest time that a packet can be under way.
    pub fn max_lifetime(&self) -> Duration {
        let queued = self.rate.map_or(0.0, |rate| rate.queue_bytes as f64 / rate.bytes_per_second as f64);
        self.delay + self.jitter + self.late_by + Duration::from_secs_f64(queued)
    }
}

/// What links have done to packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinkCounters {
    /// Packets that were sent.
    pub sent: u64,
    /// Packets lost at random.
    pub lost: u64,
    /// Packets that a full queue dropped.
    pub overflowed: u64,
    /// Packets that a partition dropped.
    pub blocked: u64,
    /// Packets that arrived twice.
    pub duplicated: u64,
    /// Packets that took the longer path.
    pub late: u64,
    /// Packets with flipped bits.
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

/// Whether a packet arrives as it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// It does.
    None,
    /// The receiver's checksum finds it.
    Found,
    /// The receiver's checksum does not find it.
    Missed,
}

/// One arrival of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// When it arrives.
    pub at: Instant,
    /// In what state.
    pub damage: Damage,
}

/// One direction of a cable.
#[derive(Debug)]
pub struct Link {
    model: LinkModel,
    /// State of the Gilbert-Elliott model.
    is_bad: bool,
    /// Partitions that this link is part of at the moment.
    partitions: u32,
    /// When the bottleneck will have sent what is in its queue.
    busy_until: Instant,
    last_arrival: Instant,
}

impl Link {
    /// An idle link, in the good state.
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

    /// Sends a packet of `len` bytes: when it arrives, never, once or twice.
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

    /// When the packet has left the bottleneck; `None` if its queue is full.
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

/// Draws nothing where there is nothing to decide: most links are without most faults.
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

    /// Arrivals of packets of 100 bytes sent 10 us apart.
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
    fn losses_come_as_often_as_the_model_says() {
        let (_, alone) =
            send(LinkModel { loss: Some(Loss::Bernoulli { probability: 0.1 }), ..LinkModel::PERFECT });
        assert!((1_800..2_200).contains(&alone.lost), "{alone:?}");
        // A fifth of the time bad, and then half is lost.
        let bursts = Loss::GilbertElliott { to_bad: 0.01, to_good: 0.04, loss_bad: 0.5 };
        let (_, bursts) = send(LinkModel { loss: Some(bursts), ..LinkModel::PERFECT });
        assert!((1_600..2_400).contains(&bursts.lost), "{bursts:?}");
    }

    #[test]
    fn a_fifo_link_keeps_the_order_and_another_does_not() {
        let jitter = Duration::from_micros(100);
        let (arrivals, _) = send(LinkModel { jitter, ..LinkModel::PERFECT });
        assert!(arrivals.is_sorted());
        let (arrivals, _) = send(LinkModel { jitter, fifo: false, ..LinkModel::PERFECT });
        assert!(!arrivals.is_sorted());
    }

    #[test]
    fn a_bottleneck_drops_what_its_queue_does_not_hold() {
        // 100 bytes in 10 us need 10 MB/s.
        let half = Rate { bytes_per_second: 5_000_000, queue_bytes: 1_000 };
        let model = LinkModel { rate: Some(half), ..LinkModel::PERFECT };
        let (arrivals, counters) = send(model);
        assert!((9_990..10_020).contains(&arrivals.len()), "{}", arrivals.len());
        assert_eq!(counters.overflowed + arrivals.len() as u64, PACKETS);
        let slowest = arrivals.last().map(|at| at.since(Instant::from_nanos((PACKETS - 1) * 10_000)));
        assert!(slowest.is_none_or(|time| time <= model.max_lifetime()), "{slowest:?}");
    }
}
