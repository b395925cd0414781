//! Tables of times: one for each vector, a row for each number of workers.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::bounds::least;
use super::{Algorithm, Detail, Picos, Scenario, micros};
use crate::contest::Markdown;

/// What is to be found out.
#[derive(Clone, Debug)]
pub struct Study {
    /// Everything but workers.
    pub scenario: Scenario,
    /// Numbers of workers.
    pub workers: Vec<usize>,
    /// What sums.
    pub algorithms: Vec<Algorithm>,
    /// Up to so many workers every packet is followed.
    pub packets_up_to: usize,
}

/// One time.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// What sums.
    pub algorithm: Algorithm,
    /// How closely it was followed.
    pub detail: Detail,
    /// None where workers begin at different times and are too many to follow each.
    pub time: Option<Picos>,
    /// What links alone would take.
    pub bound: Picos,
}

/// The times of one vector.
#[derive(Clone, Debug)]
pub struct Table {
    /// Everything but workers.
    pub scenario: Scenario,
    /// For each number of workers.
    pub rows: Vec<(usize, Vec<Cell>)>,
}

impl Study {
    /// Calculates all times; says which before each.
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
    /// For people, as Markdown, in milliseconds.
    pub fn text(&self) -> String {
        let Scenario { floats, bits_per_s, delay_us, rack, radix, jitter_us, .. } = self.scenario;
        let mut text = format!(
            "### {floats} floats, {} Gbit/s, {delay_us} us each link, racks of {rack}, radix {radix}",
            bits_per_s / 1e9
        );
        if jitter_us > 0.0 {
            let _ = write!(text, ", starts {jitter_us} us apart");
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

    /// For programs.
    pub fn json(&self) -> Value {
        let Scenario {
            floats,
            bits_per_s,
            delay_us,
            rack,
            radix,
            superframe_segments,
            switch_daemons,
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
            "switch_daemons": switch_daemons, "jitter_us": jitter_us, "seed": seed,
            "rows": rows.collect::<Vec<_>>(),
        })
    }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// Three digits that count.
fn millis(ms: f64) -> String {
    let digits = match ms {
        ..1.0 => 3,
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{ms:.digits$}")
}
