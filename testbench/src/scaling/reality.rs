//! Comparison of the model with measurements by `testbench peers --json` on one machine. All processes share the few
//! cores of the machine. There is one switch, and the links are unlimited, shaped or delayed.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

use iswitch_protocol::limits::MAX_MEMBERS;
use serde_json::{Value, json};

use super::costs::Costs;
use super::{Algorithm, Detail, MAX_FLOATS, Scenario, micros};
use crate::contest::Markdown;

/// Setting of one measured table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// Number of workers connected to the switch.
    pub workers: usize,
    /// Number of floats in the summed vector.
    pub floats: u32,
    /// Rate of each link in bits per second; `None` if the links are not shaped.
    pub bits_per_s: Option<f64>,
    /// Delay of each link, in microseconds.
    pub delay_us: f64,
}

/// Measured time and modelled time of one algorithm, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// Algorithm that was measured and modelled.
    pub algorithm: Algorithm,
    /// Setting of the measurement.
    pub setting: Setting,
    /// Median time of the measured runs, in microseconds.
    pub measured_us: f64,
    /// Time that the model predicts, in microseconds.
    pub model_us: f64,
}

/// Returns the algorithm of the model that corresponds to a contender, if there is one.
fn algorithm_of(contender: &str) -> Option<Algorithm> {
    Some(match contender {
        "iswitchd, UDP port" => Algorithm::Daemon,
        "ring, as in the paper" => Algorithm::Ring,
        "ring, pipelined" => Algorithm::RingPipelined,
        "parameter server, as in the paper" => Algorithm::Server,
        "parameter server, pipelined" => Algorithm::ServerPipelined,
        "Open MPI, Rabenseifner" => Algorithm::HalvingDoubling,
        "Open MPI, recursive doubling" => Algorithm::RecursiveDoubling,
        _ => return None,
    })
}

/// Reads measurements, one table per line, and predicts the same times with the model. Tables with racks are skipped.
///
/// # Errors
/// Fails if a line is not a table of `testbench peers --json`. The error names the line and the reason.
pub fn compare(peers: &str, cores: usize, costs: Costs) -> Result<Vec<Pair>, String> {
    let mut pairs = Vec::new();
    for (number, line) in (1..).zip(peers.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let table: Value = serde_json::from_str(line).map_err(|error| format!("line {number}: {error}"))?;
        let lacks = |field: &str| {
            format!(
                "line {number}: field {field} is missing or invalid, expected a line of the output of \
                 `testbench peers --json`"
            )
        };
        if !table["racks"].is_null() {
            continue;
        }
        let setting = Setting::of(&table).map_err(lacks)?;
        for row in table["rows"].as_array().ok_or_else(|| lacks("rows"))? {
            let contender = row["contender"].as_str().ok_or_else(|| lacks("contender"))?;
            let Some(algorithm) = algorithm_of(contender) else { continue };
            let measured_us = row["us_p50"]["median"].as_f64().ok_or_else(|| lacks("us_p50.median"))?;
            let model_us = setting.model_us(algorithm, cores, costs);
            pairs.push(Pair { algorithm, setting, measured_us, model_us });
        }
    }
    Ok(pairs)
}

impl Setting {
    /// Returns the setting of a table, or the name of the invalid field.
    fn of(table: &Value) -> Result<Self, &'static str> {
        let number = |field: &'static str, range: RangeInclusive<u64>| {
            table[field].as_u64().filter(|number| range.contains(number)).ok_or(field)
        };
        Ok(Self {
            workers: number("workers", 1..=MAX_MEMBERS as u64)? as usize,
            floats: number("floats", 1..=u64::from(MAX_FLOATS))? as u32,
            bits_per_s: table["bits_per_s"].as_f64(),
            delay_us: table["delay_us"].as_f64().unwrap_or(0.0),
        })
    }

    fn model_us(self, algorithm: Algorithm, cores: usize, costs: Costs) -> f64 {
        let scenario = Scenario {
            rack: self.workers,
            bits_per_s: self.bits_per_s.unwrap_or(f64::INFINITY),
            delay_us: self.delay_us,
            shared_cores: Some(cores),
            ..Scenario::new(self.workers, self.floats, costs)
        };
        micros(scenario.run(algorithm, Detail::Packets))
    }
}

/// Returns the fraction of pairs of algorithms, within each table, that the model ranks in the measured order. Pairs
/// whose times differ by at most a tenth are ignored.
pub fn agreement(pairs: &[Pair]) -> Option<f64> {
    let (mut agreeing, mut all) = (0_u32, 0_u32);
    for (at, a) in pairs.iter().enumerate() {
        for b in pairs[at + 1..].iter().filter(|b| b.setting == a.setting) {
            let measured = a.measured_us / b.measured_us;
            if (measured - 1.0).abs() > 0.1 {
                all += 1;
                agreeing += u32::from((measured > 1.0) == (a.model_us > b.model_us));
            }
        }
    }
    (all > 0).then(|| f64::from(agreeing) / f64::from(all))
}

/// Returns the comparison as Markdown.
pub fn text(pairs: &[Pair]) -> String {
    let mut rows =
        Markdown::new(["", "workers", "floats", "links", "measured, us", "model, us", "model / measured"]);
    for Pair { algorithm, setting, measured_us, model_us } in pairs {
        let Setting { workers, floats, bits_per_s, delay_us } = setting;
        let rate = bits_per_s.map_or_else(|| "unlimited".to_owned(), |rate| format!("{} Gbit/s", rate / 1e9));
        rows.row([
            algorithm.to_string(),
            workers.to_string(),
            floats.to_string(),
            if *delay_us > 0.0 { format!("{rate}, {delay_us} us") } else { rate },
            format!("{measured_us:.0}"),
            format!("{model_us:.0}"),
            format!("{:.2}", model_us / measured_us),
        ]);
    }
    let mut text = rows.text();
    if let Some(share) = agreement(pairs) {
        let percent = share * 100.0;
        let _ = writeln!(
            text,
            "\nOf the pairs whose measured times differ by more than 10 %, the model ranks {percent:.0} % correctly."
        );
    }
    text
}

/// Returns the comparison as JSON.
pub fn json(pairs: &[Pair]) -> Value {
    let row = |pair: &Pair| {
        let Setting { workers, floats, bits_per_s, delay_us } = pair.setting;
        json!({
            "algorithm": pair.algorithm, "workers": workers, "floats": floats, "bits_per_s": bits_per_s,
            "delay_us": delay_us, "measured_us": pair.measured_us, "model_us": pair.model_us,
        })
    };
    json!({ "rows": pairs.iter().map(row).collect::<Vec<_>>(), "agreement": agreement(pairs) })
}
