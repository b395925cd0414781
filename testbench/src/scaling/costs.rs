//! Processing costs of a message at both ends. They are the only measured inputs of the model.

use serde::{Deserialize, Serialize};

use super::Picos;

/// Time that grows linearly with the number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// Time per call, in nanoseconds, regardless of the number of bytes.
    pub ns: f64,
    /// Nanoseconds per byte.
    pub ns_per_byte: f64,
}

impl Line {
    /// Cost that is zero for any number of bytes.
    pub const ZERO: Self = Self { ns: 0.0, ns_per_byte: 0.0 };

    /// Returns the time for a number of bytes.
    pub fn of(self, bytes: usize) -> Picos {
        to_picos(self.ns + self.ns_per_byte * bytes as f64)
    }

    /// Returns the sum of this time and `other`.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { ns: self.ns + other.ns, ns_per_byte: self.ns_per_byte + other.ns_per_byte }
    }
}

/// Converts nanoseconds to picoseconds.
pub(super) fn to_picos(ns: f64) -> Picos {
    (ns * 1e3).round() as Picos
}

/// Processor time at the two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndCosts {
    /// Time to send one super-frame.
    pub send: Line,
    /// Time to receive one super-frame.
    pub receive: Line,
}

/// Costs of the accelerator in hardware.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pipeline {
    /// Throughput of each port, in bytes of packets per second.
    pub bytes_per_s: f64,
    /// Time from the last byte of the last contribution to the first byte of the sum, in nanoseconds.
    pub latency_ns: f64,
}

/// All costs of a study.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// Costs of UDP super-frames at a worker, which copies floats from its vector into packets and from packets into
    /// the sum.
    pub superframe: EndCosts,
    /// Costs of UDP super-frames at the switch daemon, which sends them from one buffer and receives them into one
    /// buffer.
    pub switch_frame: EndCosts,
    /// Costs of TCP streams, which are used by rings, parameter servers, and recursive halving and doubling.
    pub stream: EndCosts,
    /// Time of the switch core to process a contribution, in addition to the time to receive it.
    pub switch_add: Line,
    /// Time of the switch core to process a sum, in addition to the time to send it.
    pub switch_emit: Line,
    /// Time to add a received vector to the receiver's own.
    pub worker_add: Line,
    /// Time from the arrival of a message until the idle process that waits for it starts to run, in nanoseconds.
    pub wake_ns: f64,
    /// Costs of the switch in hardware. They come from its design, not from a measurement.
    pub hardware: Pipeline,
}

const MEASURED: &str = include_str!("measured.toml");

impl Costs {
    /// Costs of machines on which only the links take time.
    pub const ZERO: Self = Self {
        superframe: EndCosts { send: Line::ZERO, receive: Line::ZERO },
        switch_frame: EndCosts { send: Line::ZERO, receive: Line::ZERO },
        stream: EndCosts { send: Line::ZERO, receive: Line::ZERO },
        switch_add: Line::ZERO,
        switch_emit: Line::ZERO,
        worker_add: Line::ZERO,
        wake_ns: 0.0,
        hardware: Pipeline { bytes_per_s: f64::INFINITY, latency_ns: 0.0 },
    };

    /// Returns the costs in `measured.toml`, which also documents their origin.
    ///
    /// # Panics
    /// Panics if the file in the source tree is not well-formed.
    pub fn measured() -> Self {
        Self::parse(MEASURED).expect("measured.toml is well-formed")
    }

    /// Parses a file of costs.
    ///
    /// # Errors
    /// Fails if a field is missing, unknown, negative, too large or not a number. The error names the field.
    pub fn parse(text: &str) -> Result<Self, String> {
        let costs: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        let Self { superframe, switch_frame, stream, switch_add, switch_emit, worker_add, wake_ns, hardware } =
            costs;
        let lines = [
            ("superframe.send", superframe.send),
            ("superframe.receive", superframe.receive),
            ("switch_frame.send", switch_frame.send),
            ("switch_frame.receive", switch_frame.receive),
            ("stream.send", stream.send),
            ("stream.receive", stream.receive),
            ("switch_add", switch_add),
            ("switch_emit", switch_emit),
            ("worker_add", worker_add),
        ];
        let of_lines = lines.iter().flat_map(|(name, line)| {
            [(format!("{name}.ns"), line.ns), (format!("{name}.ns_per_byte"), line.ns_per_byte)]
        });
        let single = [("wake_ns", wake_ns), ("hardware.latency_ns", hardware.latency_ns)];
        let single = single.map(|(name, value)| (name.to_owned(), value));
        for (name, value) in of_lines.chain(single) {
            if !(0.0..=MAX_NS).contains(&value) {
                return Err(format!("{name} is {value}, expected 0 to {MAX_NS:e}"));
            }
        }
        if hardware.bytes_per_s.is_nan() || hardware.bytes_per_s < MIN_BYTES_PER_S {
            let value = hardware.bytes_per_s;
            return Err(format!("hardware.bytes_per_s is {value}, expected at least {MIN_BYTES_PER_S:e}"));
        }
        Ok(costs)
    }
}

/// Maximum of a single cost: one second.
const MAX_NS: f64 = 1e9;
const MIN_BYTES_PER_S: f64 = 1e3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_costs_are_read_and_invalid_ones_refused() {
        assert!(Costs::measured().stream.send.ns > 0.0);
        for (from, to) in
            [("wake_ns = ", "wake_ns = -"), ("wake_ns = ", "wake = "), ("wake_ns = ", "wake_ns = 1e12 # ")]
        {
            let error = Costs::parse(&MEASURED.replace(from, to)).unwrap_err();
            assert!(error.contains("wake"), "{error}");
        }
    }

    #[test]
    fn a_cost_line_adds_a_cost_per_byte() {
        assert_eq!(Line { ns: 2.0, ns_per_byte: 0.5 }.of(10), 7_000);
    }
}
