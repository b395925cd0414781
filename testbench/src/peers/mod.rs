//! Comparison of the switch with its alternatives, in the same namespaces, on the same links, in alternating turns.

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

/// Measurements of one run of one contender.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Median time of a sum at rank 0, in microseconds.
    pub us_p50: f64,
    /// 99th percentile of the time of a sum at rank 0, in microseconds.
    pub us_p99: f64,
    /// Mean time of an iteration (local computation and sum) at rank 0, in microseconds. It is zero for programs of
    /// other projects, which only sum.
    pub iteration_us: f64,
    /// Part of the mean iteration time that was spent on local computation, in microseconds.
    pub compute_us: f64,
    /// CPU seconds of one worker per 10^9 bytes of summed vectors.
    pub worker_cpu_s_per_gb: f64,
    /// CPU seconds of the switch or the server per 10^9 bytes of summed vectors; zero if there is neither.
    pub switch_cpu_s_per_gb: f64,
    /// Maximum memory of a worker, in KiB.
    pub worker_peak_kib: u64,
    /// Maximum memory of the switch or the server, in KiB; zero if there is neither.
    pub switch_peak_kib: u64,
}

/// Vector to sum, and the number of rounds.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Number of floats in the vector.
    pub floats: u32,
    /// Number of measured rounds.
    pub rounds: usize,
    /// Number of rounds before the measured ones.
    pub warm_up: usize,
    /// Time that each worker sleeps before each sum, in place of a computation. Programs of other projects do not
    /// sleep; they only sum.
    pub compute: Duration,
}

/// Bytes that a run of four workers sums in about a second on an unlimited link. More workers share the same cores.
const BYTES_IN_A_RUN: f64 = 2e8;
const ROUNDS: (f64, f64) = (5.0, 1000.0);
const SECONDS_IN_A_RUN: f64 = 6.0;

impl Load {
    /// Returns a load whose rounds take a few seconds in total.
    pub fn of(floats: u32, rate: Option<Rate>, workers: usize) -> Self {
        let bytes = f64::from(floats) * size_of::<f32>() as f64;
        let share = 4.0 / workers as f64;
        let unlimited = (BYTES_IN_A_RUN / bytes).min(ROUNDS.1) * share.min(1.0);
        // Time of the slowest contender: a parameter server receives and sends a vector for each worker over one link.
        let slowest_s = |rate: Rate| 2.0 * workers as f64 * rate.seconds_for(bytes);
        let limited = rate.map_or(f64::MAX, |rate| SECONDS_IN_A_RUN / slowest_s(rate));
        let rounds = unlimited.min(limited).max(ROUNDS.0) as usize;
        Self { floats, rounds, warm_up: (rounds / 10).max(2), compute: Duration::ZERO }
    }

    /// Returns the length of the vector in bytes.
    pub fn bytes(&self) -> f64 {
        f64::from(self.floats) * size_of::<f32>() as f64
    }

    /// Returns the total length of the vectors that a run sums, in units of 10^9 bytes.
    pub fn gigabytes(&self) -> f64 {
        self.bytes() * (self.rounds + self.warm_up + 1) as f64 / 1e9
    }
}

/// Runs all contenders in alternating turns.
///
/// # Panics
/// Panics if a sum is wrong or does not arrive.
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
