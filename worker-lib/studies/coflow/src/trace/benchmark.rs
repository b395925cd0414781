//! File format of the coflow benchmark.

use std::path::Path;

use super::Words;
use crate::workload::{Coflow, Flow, PORTS_MAX};
use iswitch_study::StudyError;
use iswitch_study::table::{lines, read};

/// Number of bytes in a megabyte, as the FB2010 benchmark defines it.
const MEGABYTE: f64 = 1e6;

/// Arrival of a coflow.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrival {
    /// Time of arrival, in seconds.
    pub time: f64,
    /// Coflow that arrives.
    pub coflow: Coflow,
}

/// Trace of coflows that do not belong to jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct CoflowTrace {
    /// Number of ingress ports, equal to the number of egress ports.
    pub ports: usize,
    /// Arrivals, sorted by time.
    pub arrivals: Vec<Arrival>,
}

impl CoflowTrace {
    /// Reads a file of the coflow benchmark. The first line is `PORTS COFLOWS`. Each further line describes one coflow:
    /// its number, its arrival in milliseconds, the number of mappers and their ports, the number of reducers, and
    /// `PORT:MEGABYTES` for each reducer. The bytes that a reducer receives are divided equally among the mappers.
    ///
    /// # Errors
    /// Fails if the file cannot be read or if a line is invalid. In the latter case, the error names the line.
    pub fn read(path: &Path) -> Result<Self, StudyError> {
        Self::parse(&read(path)?, path)
    }

    /// Parses the content of a file of the coflow benchmark, as [`Self::read`] does. `path` is used only in error
    /// messages.
    ///
    /// # Errors
    /// Fails if a line is invalid; the error names the line.
    pub fn parse(text: &str, path: &Path) -> Result<Self, StudyError> {
        let mut rest = lines(text);
        let head = rest.next().unwrap_or((1, ""));
        let fail = |line: usize| move |reason: String| StudyError::line(path, line, reason);
        let mut words = Words::new(head.1);
        let ports = words.number("number of ports").map_err(fail(head.0))?;
        let expected: usize = words.number("number of coflows").map_err(fail(head.0))?;
        words.end().map_err(fail(head.0))?;
        if !(1..=PORTS_MAX).contains(&ports) {
            return Err(fail(head.0)(format!("number of ports is {ports}, expected 1 to {PORTS_MAX}")));
        }
        let mut arrivals: Vec<Arrival> = Vec::new();
        for (number, line) in rest {
            let arrival = coflow(line, ports).map_err(fail(number))?;
            if let Some(before) = arrivals.last().filter(|before| before.time > arrival.time) {
                let (time, before) = (arrival.time * 1e3, before.time * 1e3);
                return Err(fail(number)(format!(
                    "arrival time is {time} ms, expected at least {before} ms, the time on the previous line"
                )));
            }
            arrivals.push(arrival);
        }
        if arrivals.len() != expected {
            return Err(fail(head.0)(format!(
                "number of coflows is {expected}, but {} follow",
                arrivals.len()
            )));
        }
        Ok(Self { ports, arrivals })
    }
}

fn coflow(line: &str, ports: usize) -> Result<Arrival, String> {
    let mut words = Words::new(line);
    let _: u64 = words.number("number of the coflow")?;
    let time: f64 = words.number("arrival time")?;
    if !(time.is_finite() && time >= 0.0) {
        return Err(format!("arrival time is {time} ms, expected a number >= 0"));
    }
    let mappers: usize = words.number("number of mappers")?;
    let from = (0..mappers).map(|_| words.number("port of a mapper")).collect::<Result<Vec<usize>, _>>()?;
    let reducers: usize = words.number("number of reducers")?;
    let mut flows = Vec::new();
    for _ in 0..reducers {
        let word = words.word("PORT:MEGABYTES")?;
        let pair = word
            .split_once(':')
            .and_then(|(port, size)| Some((port.parse().ok()?, size.parse::<f64>().ok()?)));
        let (to, megabytes) = pair.ok_or_else(|| format!("reducer is {word:?}, expected PORT:MEGABYTES"))?;
        let size = megabytes * MEGABYTE / mappers.max(1) as f64;
        flows.extend(from.iter().map(|from| Flow { from: *from, to, size }));
    }
    words.end()?;
    let coflow = Coflow::new(ports, flows).map_err(|error| error.to_string())?;
    Ok(Arrival { time: time / 1e3, coflow })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<CoflowTrace, String> {
        CoflowTrace::parse(text, Path::new("trace")).map_err(|error| error.to_string())
    }

    #[test]
    fn the_size_of_a_reducer_is_divided_among_its_mappers() {
        let trace = parse("4 2\n1 0 2 0 1 1 3:10.0\n2 1500 1 2 2 0:1 1:2\n").unwrap();
        assert_eq!((trace.ports, trace.arrivals.len(), trace.arrivals[1].time), (4, 2, 1.5));
        assert_eq!(trace.arrivals[0].coflow.loads(), [(0, 5e6), (1, 5e6), (7, 10e6)]);
        assert_eq!(trace.arrivals[1].coflow.loads(), [(2, 3e6), (4, 1e6), (5, 2e6)]);
    }

    #[test]
    fn errors_name_the_invalid_line() {
        for (text, want) in [
            ("", "trace, line 1: number of ports is missing"),
            ("0 0\n", "trace, line 1: number of ports is 0, expected 1 to 65536"),
            ("4 1\n1 nan 1 0 1 1:1\n", "trace, line 2: arrival time is NaN ms, expected a number >= 0"),
            ("4\n", "trace, line 1: number of coflows is missing"),
            ("4 2\n1 0 1 0 1 1:1\n", "trace, line 1: number of coflows is 2, but 1 follow"),
            ("4 1\n1 0 x\n", "trace, line 2: number of mappers is \"x\", expected a number"),
            ("4 1\n\n1 0 1 0 1 1;1\n", "trace, line 3: reducer is \"1;1\", expected PORT:MEGABYTES"),
            ("4 1\n1 0 1 0 1 4:1\n", "trace, line 2: egress port is 4, expected 0 to 3"),
            ("4 1\n1 0 0 1 1:1\n", "trace, line 2: number of flows of a coflow is 0, expected at least 1"),
            ("4 1\n1 0 1 0 1 1:1 9\n", "trace, line 2: unexpected \"9\" at the end of the line"),
            (
                "4 1\n1 0 1 0 1 1:-1\n",
                "trace, line 2: size of a flow is -1000000, expected 1e-6 to 1e18 bytes",
            ),
            (
                "4 2\n1 5 1 0 1 1:1\n2 4 1 0 1 1:1\n",
                "trace, line 3: arrival time is 4 ms, expected at least 5 ms, the time on the previous line",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err(), want);
        }
    }
}
