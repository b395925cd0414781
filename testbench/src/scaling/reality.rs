//! The model beside what `testbench peers --json` has measured on one machine: all processes on its few cores, cables
//! as fast as they are or shaped.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::costs::Costs;
use super::{Algorithm, Detail, Scenario, micros};

/// One time as measured and as the model has it, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// What sums.
    pub algorithm: Algorithm,
    /// Floats in the vector.
    pub floats: u32,
    /// Rate of the links, if it is limited.
    pub bits_per_s: Option<f64>,
    /// Median of the measured runs.
    pub measured_us: f64,
    /// What the model says.
    pub model_us: f64,
}

/// The contender that is most like an algorithm of the model.
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

/// Reads what was measured, a table a line, and calculates the same.
///
/// # Errors
/// The line that is no such table, and why.
pub fn compare(peers: &str, workers: usize, cores: usize, costs: Costs) -> Result<Vec<Pair>, String> {
    let mut pairs = Vec::new();
    for (number, line) in (1..).zip(peers.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let table: Value = serde_json::from_str(line).map_err(|error| format!("line {number}: {error}"))?;
        let lacks =
            |field: &str| format!("line {number}: no {field}, expected a table of `testbench peers --json`");
        let floats = table["floats"].as_u64().and_then(|floats| u32::try_from(floats).ok());
        let floats = floats.filter(|floats| *floats > 0).ok_or_else(|| lacks("floats"))?;
        let bits_per_s = table["bits_per_s"].as_f64();
        for row in table["rows"].as_array().ok_or_else(|| lacks("rows"))? {
            let contender = row["contender"].as_str().ok_or_else(|| lacks("contender"))?;
            let Some(algorithm) = algorithm_of(contender) else { continue };
            let measured_us = row["us_p50"]["median"].as_f64().ok_or_else(|| lacks("us_p50.median"))?;
            let model_us = model(algorithm, floats, bits_per_s, workers, cores, costs);
            pairs.push(Pair { algorithm, floats, bits_per_s, measured_us, model_us });
        }
    }
    Ok(pairs)
}

/// One switch, as many workers as were measured, and no delay but what the processors take.
pub fn model(
    algorithm: Algorithm,
    floats: u32,
    bits_per_s: Option<f64>,
    workers: usize,
    cores: usize,
    costs: Costs,
) -> f64 {
    let scenario = Scenario {
        rack: workers,
        bits_per_s: bits_per_s.unwrap_or(f64::INFINITY),
        delay_us: 0.0,
        shared_cores: Some(cores),
        ..Scenario::new(workers, floats, costs)
    };
    micros(scenario.run(algorithm, Detail::Packets))
}

/// Share of the pairs of algorithms, within each table, that the model puts into the order that was measured. Times
/// within a tenth of each other have none.
pub fn agreement(pairs: &[Pair]) -> Option<f64> {
    let (mut agreeing, mut all) = (0_u32, 0_u32);
    for (at, a) in pairs.iter().enumerate() {
        let same_table = |b: &&Pair| (b.floats, b.bits_per_s) == (a.floats, a.bits_per_s);
        for b in pairs[at + 1..].iter().filter(same_table) {
            let measured = a.measured_us / b.measured_us;
            if (measured - 1.0).abs() > 0.1 {
                all += 1;
                agreeing += u32::from((measured > 1.0) == (a.model_us > b.model_us));
            }
        }
    }
    (all > 0).then(|| f64::from(agreeing) / f64::from(all))
}

/// For people, as Markdown.
pub fn text(pairs: &[Pair]) -> String {
    let mut text =
        "| | floats | links | measured, us | model, us | model / measured |\n|---|---|---|---|---|---|\n"
            .to_owned();
    for Pair { algorithm, floats, bits_per_s, measured_us, model_us } in pairs {
        let rate = bits_per_s.map_or_else(|| "unlimited".to_owned(), |rate| format!("{} Gbit/s", rate / 1e9));
        let ratio = model_us / measured_us;
        let _ = writeln!(
            text,
            "| {algorithm} | {floats} | {rate} | {measured_us:.0} | {model_us:.0} | {ratio:.2} |"
        );
    }
    if let Some(share) = agreement(pairs) {
        let _ = writeln!(
            text,
            "\nOf all pairs more than a tenth apart the model has {:.0} % in the measured order.",
            share * 100.0
        );
    }
    text
}

/// For programs.
pub fn json(pairs: &[Pair]) -> Value {
    let row = |pair: &Pair| {
        json!({
            "algorithm": pair.algorithm, "floats": pair.floats, "bits_per_s": pair.bits_per_s,
            "measured_us": pair.measured_us, "model_us": pair.model_us,
        })
    };
    json!({ "rows": pairs.iter().map(row).collect::<Vec<_>>(), "agreement": agreement(pairs) })
}
