//! Tables of all-reduce times: one table for each vector length, with a row for each number of workers.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::bounds::least;
use super::{Algorithm, Detail, Picos, Scenario, micros};
use crate::contest::Markdown;

/// Scenarios and algorithms whose times are calculated.
#[derive(Clone, Debug)]
pub struct Study {
    /// Scenario; its number of workers is ignored.
    pub scenario: Scenario,
    /// Numbers of workers to calculate times for.
    pub workers: Vec<usize>,
    /// Algorithms to compare.
    pub algorithms: Vec<Algorithm>,
    /// Maximum number of workers for which every packet is simulated.
    pub packets_up_to: usize,
}

/// Calculated all-reduce time of one algorithm with one number of workers.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// Algorithm.
    pub algorithm: Algorithm,
    /// Level of detail of the simulation.
    pub detail: Detail,
    /// All-reduce time; `None` if the workers start at different times and there are too many of them to simulate each
    /// one.
    pub time: Option<Picos>,
    /// Lower bound of the time, from the rates and delays of the links.
    pub bound: Picos,
}

/// All-reduce times for one vector length.
#[derive(Clone, Debug)]
pub struct Table {
    /// Scenario; its number of workers is ignored.
    pub scenario: Scenario,
    /// Number of workers of each row, with one cell for each algorithm.
    pub rows: Vec<(usize, Vec<Cell>)>,
}

impl Study {
    /// Calculates all times, and calls `progress` before each calculation.
    pub fn run(&self, progress: impl Fn(usize, Algorithm)) -> Table {
        let row = |workers: usize| {
            let cell = |algorithm: &Algorithm| {
                progress(workers, *algorithm);
                self.cell(workers, *algorithm)
            };
            (workers, self.algorithms.iter().map(cell).collect())
        };
        Table { scenario: self.scenario, rows: self.workers.iter().map(|workers| row(*workers)).collect() }
    }

    fn cell(&self, workers: usize, algorithm: Algorithm) -> Cell {
        let scenario = Scenario { workers, ..self.scenario };
        let follows_all = workers <= self.packets_up_to;
        let detail = if follows_all { Detail::Packets } else { Detail::Lockstep };
        let is_alike = scenario.jitter_us == 0.0;
        let time = (follows_all || is_alike).then(|| scenario.run(algorithm, detail));
        Cell { algorithm, detail, time, bound: least(&scenario, algorithm) }
    }
}

impl Table {
    /// Returns the table as Markdown, in milliseconds.
    pub fn text(&self) -> String {
        let Scenario { floats, bits_per_s, delay_us, rack, radix, jitter_us, .. } = self.scenario;
        let mut text = format!(
            "### {floats} floats, {} Gbit/s, {delay_us} us per link, racks of {rack}, radix {radix}",
            bits_per_s / 1e9
        );
        if jitter_us > 0.0 {
            let _ = write!(text, ", starts up to {jitter_us} us apart");
        }
        let Some((_, first)) = self.rows.first() else { return text };
        let algorithms = first.iter().map(|cell| cell.algorithm.to_string());
        let mut rows = Markdown::new(["ms", "levels"].map(str::to_owned).into_iter().chain(algorithms));
        for (workers, cells) in &self.rows {
            let levels = Scenario { workers: *workers, ..self.scenario }.tree().levels();
            let times = cells
                .iter()
                .map(|cell| cell.time.map_or_else(String::new, |time| millis(micros(time) * 1e-3)));
            rows.row([workers.to_string(), levels.to_string()].into_iter().chain(times));
        }
        text += "\n\n";
        text + &rows.text()
    }

    /// Returns the table as JSON.
    pub fn json(&self) -> Value {
        let Scenario {
            floats,
            bits_per_s,
            delay_us,
            rack,
            radix,
            superframe_segments,
            switch_threads,
            jitter_us,
            seed,
            ..
        } = self.scenario;
        let rows = self.rows.iter().flat_map(|(workers, cells)| {
            let levels = Scenario { workers: *workers, ..self.scenario }.tree().levels();
            cells.iter().map(move |cell| {
                json!({
                    "workers": workers, "levels": levels, "algorithm": cell.algorithm, "detail": cell.detail,
                    "us": cell.time.map(micros), "least_us": micros(cell.bound),
                })
            })
        });
        json!({
            "floats": floats, "bits_per_s": finite(bits_per_s), "delay_us": delay_us, "rack": rack, "radix": radix,
            "superframe_segments": superframe_segments,
            "switch_threads": switch_threads, "jitter_us": jitter_us, "seed": seed,
            "rows": rows.collect::<Vec<_>>(),
        })
    }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// Formats milliseconds with three significant digits.
fn millis(ms: f64) -> String {
    let digits = match ms {
        ..1.0 => 3,
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{ms:.digits$}")
}
