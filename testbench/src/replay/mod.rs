//! Benchmark of writes to replay: shards, each behind a link of the same rate, and actors that pause between their
//! writes. The article on Menger (Google AI blog 2020) reports the corresponding measurement: the write latency of 16
//! to 2048 actors, with one shard and with several.

pub mod contender;
pub mod reverb;
pub mod table;
pub mod testbed;
pub mod throughput;

pub use contender::{Contender, Kind};
pub use reverb::Reverb;
pub use table::Table;
pub use testbed::Testbed;

use std::fmt;
use std::time::Duration;

use crate::contest::{Contest, Latencies, Progress};
use crate::peers::Rate;

/// Load that the largest number of actors offers to [`SHARDS_AT_EASE`] shards, as a fraction of their links' capacity.
const SHARE_AT_EASE: f64 = 0.2;
const SHARDS_AT_EASE: f64 = 8.0;
/// Load of the links, as a fraction of their capacity, above which the queues grow until actors wait longer than their
/// pauses.
const SHARE_FILLING: f64 = 0.7;

/// Latencies of the inserts of one turn, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Number of inserts.
    pub inserts: usize,
    /// Mean latency.
    pub mean_ms: f64,
    /// Median latency.
    pub p50_ms: f64,
    /// 99th percentile of the latency.
    pub p99_ms: f64,
}

impl Run {
    /// Summarizes the latencies of all inserts.
    fn of(latencies: &Latencies) -> Self {
        Self {
            inserts: latencies.count(),
            mean_ms: latencies.mean_ms(),
            p50_ms: latencies.percentile_ms(50),
            p99_ms: latencies.percentile_ms(99),
        }
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mean {:.1} ms, p99 {:.1} ms", self.mean_ms, self.p99_ms)
    }
}

/// Parameters of one measurement: the numbers of actors, the size of the items, the rate of the links, and the number
/// and the duration of the turns.
#[derive(Clone, Debug)]
pub struct Load {
    /// Numbers of actors, each measured separately, in ascending order.
    pub actors: Vec<usize>,
    /// Length of an item in bytes.
    pub len_bytes: usize,
    /// Rate of the links of the shards.
    pub rate: Rate,
    /// Number of interleaved measurements of each contender.
    pub turns: usize,
    /// Minimum duration of the measurement in a turn.
    pub least: Duration,
}

/// Timing of the actors of one turn.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Mean pause of an actor between two inserts.
    pub think: Duration,
    /// Time from the first insert to the measurement.
    pub warm_up: Duration,
    /// Duration of the measurement.
    pub measured: Duration,
}

impl Load {
    /// Returns the mean pause of each actor between two inserts. It is the same for all numbers of actors and shards.
    /// With this pause, the load of the largest number of actors is a fifth of the capacity of eight links, and thus
    /// exceeds the capacity of one link.
    pub fn think(&self) -> Duration {
        let most = self.actors.iter().copied().max().unwrap_or(1) as f64;
        Duration::from_secs_f64(most * self.wire_s() / (SHARDS_AT_EASE * SHARE_AT_EASE))
    }

    /// Returns the load that the given number of actors offers, as a fraction of the total link capacity of the given
    /// number of shards.
    pub fn share(&self, actors: usize, shards: usize) -> f64 {
        actors as f64 * self.wire_s() / self.think().as_secs_f64() / shards as f64
    }

    /// Returns the time for which one item occupies a link, in seconds.
    pub fn wire_s(&self) -> f64 {
        self.rate.seconds_for(self.len_bytes as f64)
    }

    /// Returns the timing of a turn. If the load exceeds the fraction `SHARE_FILLING` of the capacity of the links, the
    /// measurement begins only once the queues have filled.
    pub fn pace(&self, actors: usize, shards: usize) -> Pace {
        let think = self.think();
        let filling = if self.share(actors, shards) > SHARE_FILLING { think } else { Duration::ZERO };
        Pace { think, warm_up: filling, measured: self.least.max(think / 2) }
    }
}

/// Contender and number of actors that write to it; each such pair has its own turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadedContender {
    /// Contender that the actors write to.
    pub contender: Contender,
    /// Number of actors.
    pub actors: usize,
}

impl fmt::Display for LoadedContender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} actors, {}", self.actors, self.contender)
    }
}

/// Measures each contender with each number of actors in each turn.
///
/// # Panics
/// Panics if an insert fails.
pub fn measure(testbed: &Testbed, contenders: &[Contender], load: &Load, progress: &Progress) -> Table {
    let pairs = contenders.iter().flat_map(|contender| {
        load.actors.iter().map(|actors| LoadedContender { contender: *contender, actors: *actors })
    });
    let contest = Contest::new(pairs, load.turns).titled(format!("{} bytes", load.len_bytes));
    let standings = contest.hold(progress, |LoadedContender { contender, actors }, turn| {
        let run = testbed.write(*contender, load, *actors);
        turn.report(run);
        run
    });
    Table { load: load.clone(), standings }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_number_of_actors_saturates_one_link_but_not_eight() {
        let rate = Rate { bits_per_s: 1e9 };
        let least = Duration::from_secs(1);
        let load = Load { actors: vec![16, 2048], len_bytes: 125_000, rate, turns: 1, least };
        assert!((load.share(2048, 8) - 0.2).abs() < 1e-9 && (load.share(2048, 1) - 1.6).abs() < 1e-9);
        assert!((load.share(16, 1) - 0.0125).abs() < 1e-9);
        assert!(load.pace(2048, 1).warm_up == load.think() && load.pace(2048, 4).warm_up.is_zero());
    }
}
