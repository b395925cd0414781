//! Benchmark of model reads: a learner and caches in cells, each behind a link of the same rate, and actors that all
//! read a new version at the same moment. The article on Menger (Google AI blog 2020) reports the corresponding
//! measurement: the mean read latency of 512 actors, with and without caches.

pub mod contender;
pub mod nginx;
pub mod table;
pub mod testbed;

use crate::contest::{Contest, Latencies, Progress};

pub use contender::Contender;
pub use table::Table;
pub use testbed::Testbed;

/// Latencies of the actors of one turn, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Mean latency of the actors.
    pub mean_ms: f64,
    /// 99th percentile of the latency.
    pub p99_ms: f64,
    /// Time until the last actor has the model.
    pub last_ms: f64,
}

impl Run {
    /// Summarizes the latencies of all actors.
    fn of(latencies: &Latencies) -> Self {
        Self {
            mean_ms: latencies.mean_ms(),
            p99_ms: latencies.percentile_ms(99),
            last_ms: latencies.percentile_ms(100),
        }
    }
}

/// Parameters of one measurement: the number of actors, the size of the model and the number of turns.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Number of actors that read at the same moment.
    pub actors: usize,
    /// Length of the model in bytes.
    pub len_bytes: usize,
    /// Number of interleaved measurements of each contender.
    pub turns: usize,
}

/// Lets each contender serve one version of the model in each turn. The caches are cold, because each version is new.
///
/// # Panics
/// Panics if an actor does not receive the model.
pub fn measure(testbed: &mut Testbed, contenders: &[Contender], load: Load, progress: &Progress) -> Table {
    let title = format!("{} bytes", load.len_bytes);
    let contest = Contest::new(contenders.iter().copied(), load.turns).titled(title);
    let standings = contest.hold(progress, |contender, _| testbed.read(*contender, load));
    Table { load, rate: testbed.rate(), standings }
}
