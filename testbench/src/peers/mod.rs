//! What a user would pick instead of the switch, measured beside it: in the same namespaces, on the same links, in
//! turns.

pub mod contender;
pub mod links;
pub mod network;
pub mod plot;
pub mod racks;
pub mod series;
pub mod table;
pub mod tools;

use std::time::Duration;

use crate::contest::{Contest, Progress};

pub use contender::Contender;
pub use links::{Links, Rate};
pub use network::Network;
pub use series::{Axis, Series};
pub use table::{Runs, Table};
pub use tools::Tools;

/// What one run of one contender has taken.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Median time of a sum at rank 0, in microseconds.
    pub us_p50: f64,
    /// The time that one sum in a hundred exceeds.
    pub us_p99: f64,
    /// Mean time of an iteration at rank 0: local computation and then a sum. Zero of others' programs, which only sum.
    pub iteration_us: f64,
    /// The part of it that the local computation took.
    pub compute_us: f64,
    /// CPU seconds for each 10^9 bytes of vector that were summed, of one worker.
    pub worker_cpu_s_per_gb: f64,
    /// The same of the switch or the server; zero if there is none.
    pub switch_cpu_s_per_gb: f64,
    /// Most memory that a worker had, in KiB.
    pub worker_peak_kib: u64,
    /// Most memory that the switch or the server had, in KiB; zero if there is none.
    pub switch_peak_kib: u64,
}

/// A vector to be summed, and how often.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Floats in the vector.
    pub floats: u32,
    /// Rounds that are measured.
    pub rounds: usize,
    /// Rounds before that.
    pub warm_up: usize,
    /// What each worker does before each sum: it sleeps for so long. Others' programs only sum.
    pub compute: Duration,
}

/// Bytes that a run of four workers sums in about a second on a link without a limit. More workers take turns on the
/// same cores.
const BYTES_IN_A_RUN: f64 = 2e8;
const ROUNDS: (f64, f64) = (5.0, 1000.0);
const SECONDS_IN_A_RUN: f64 = 6.0;

impl Load {
    /// As many rounds as a run of a few seconds has.
    pub fn of(floats: u32, rate: Option<Rate>, workers: usize) -> Self {
        let bytes = f64::from(floats) * size_of::<f32>() as f64;
        let share = 4.0 / workers as f64;
        let unlimited = (BYTES_IN_A_RUN / bytes).min(ROUNDS.1) * share.min(1.0);
        // What the slowest contender needs: over one link a parameter server gets and sends a vector for each worker.
        let slowest_s = |rate: Rate| 2.0 * workers as f64 * rate.seconds_for(bytes);
        let limited = rate.map_or(f64::MAX, |rate| SECONDS_IN_A_RUN / slowest_s(rate));
        let rounds = unlimited.min(limited).max(ROUNDS.0) as usize;
        Self { floats, rounds, warm_up: (rounds / 10).max(2), compute: Duration::ZERO }
    }

    /// Bytes of the vector.
    pub fn bytes(&self) -> f64 {
        f64::from(self.floats) * size_of::<f32>() as f64
    }

    /// 10^9 bytes of vector that are summed in a run, all rounds counted.
    pub fn gigabytes(&self) -> f64 {
        self.bytes() * (self.rounds + self.warm_up + 1) as f64 / 1e9
    }
}

/// Sums with all contenders in turns.
///
/// # Panics
/// If a sum is wrong, or does not come.
pub fn measure(
    network: &Network,
    tools: &Tools,
    contenders: &[Contender],
    load: Load,
    turns: usize,
    progress: &Progress,
) -> Table {
    let workers = network.worker_count();
    let title = format!("{workers} workers, {} floats", load.floats);
    let contest = Contest::new(contenders.iter().copied(), turns).titled(title);
    let standings = contest.hold(progress, |contender, _| contender.run(network, tools, load));
    Table { load, links: network.links(), workers, racks: network.rack_count(), standings }
}
