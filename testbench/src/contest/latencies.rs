//! Latencies that the actors of one turn have measured.

use serde_json::Value;

/// Latencies in milliseconds, sorted, at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Latencies(Vec<f64>);

impl Latencies {
    /// Sorts the latencies.
    ///
    /// # Panics
    /// Panics if there are no latencies.
    pub fn new(mut all_ms: Vec<f64>) -> Self {
        assert!(!all_ms.is_empty(), "at least one actor must measure a latency");
        all_ms.sort_by(f64::total_cmp);
        Self(all_ms)
    }

    /// Reads the outputs of the actors' programs. The last line of each output is JSON.
    ///
    /// # Panics
    /// Panics if the last line of an output is not JSON with latencies.
    pub fn printed(outputs: impl IntoIterator<Item = String>) -> Self {
        Self::new(outputs.into_iter().flat_map(|output| read(&output)).collect())
    }

    /// Returns the number of latencies.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the mean latency.
    pub fn mean_ms(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.count() as f64
    }

    /// Returns the smallest latency that `percent` percent of all latencies do not exceed; `percent` is from 1 to 100.
    pub fn percentile_ms(&self, percent: usize) -> f64 {
        self.0[(self.count() * percent).div_ceil(100) - 1]
    }
}

fn read(output: &str) -> Vec<f64> {
    let line: Value =
        serde_json::from_str(output.lines().last().unwrap_or_default()).expect("a line of JSON");
    let all = line["latencies_ms"].as_array().expect("latencies_ms must be a list");
    all.iter().map(|latency| latency.as_f64().expect("a latency must be a number")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_and_percentiles_cover_all_outputs() {
        let output = |numbers: std::ops::RangeInclusive<u32>| {
            format!("ready\n{}\n", serde_json::json!({ "latencies_ms": numbers.rev().collect::<Vec<_>>() }))
        };
        let all = Latencies::printed([output(1..=150), output(151..=200)]);
        assert_eq!((all.count(), all.mean_ms()), (200, 100.5));
        assert_eq!([50, 99, 100].map(|percent| all.percentile_ms(percent)), [100.0, 198.0, 200.0]);
        let one = Latencies::new(vec![7.0]);
        assert_eq!((one.mean_ms(), one.percentile_ms(50), one.percentile_ms(99)), (7.0, 7.0, 7.0));
    }
}
