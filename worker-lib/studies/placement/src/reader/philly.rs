//! Readers of the jobs of Microsoft's Philly cluster (Jeon et al., ATC 2019), as published with Gavel (Narayanan et
//! al., OSDI 2020), and of Gavel's own traces.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::Jobs;
use crate::Job;
use crate::job::{JobPool, sort_by_arrival};
use iswitch_study::StudyError;
use iswitch_study::table::{Records, StringRecord, Table, number, read};

/// Reads a table of jobs with the columns `duration_s,gpus`. The jobs have no arrival times.
///
/// # Errors
/// Fails if the file cannot be read or has no jobs, or if a line does not describe a job; the error then names the
/// line.
pub fn read_philly(path: &Path) -> Result<JobPool, StudyError> {
    let text = read(path)?;
    let jobs = Table::new(&text, path, ["duration_s", "gpus"])?
        .rows(|row| Job::new(0.0, row.number(1)?, row.number(0)?).map_err(|error| error.to_string()))?;
    JobPool::new(jobs).map_err(|error| StudyError::file(path, error))
}

/// Throughputs of jobs in steps per second, by kind of job and number of GPUs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Throughputs {
    of: BTreeMap<String, BTreeMap<usize, f64>>,
}

impl Throughputs {
    /// Reads Gavel's `simulation_throughputs.json`. For each type of GPU, such as `v100`, and each `('KIND', GPUS)`,
    /// the file has two kinds of throughput, in steps per second: one for a job that runs alone (`null`) and one for
    /// a job that shares its GPUs with another. The latter is ignored.
    ///
    /// # Errors
    /// Fails if the file cannot be read, has a different format, or has no entry for `gpu_type`.
    pub fn read(path: &Path, gpu_type: &str) -> Result<Self, StudyError> {
        let fail = |reason: String| StudyError::file(path, reason);
        let all: Value = serde_json::from_str(&read(path)?).map_err(|error| fail(error.to_string()))?;
        let types = all
            .as_object()
            .ok_or_else(|| fail("expected a JSON object whose keys are GPU types".to_owned()))?;
        let kinds = types.get(gpu_type).and_then(Value::as_object).ok_or_else(|| {
            let mut known: Vec<_> = types.keys().map(String::as_str).collect();
            known.sort_unstable();
            fail(format!("type of GPU is {gpu_type:?}, expected one of {}", known.join(", ")))
        })?;
        let mut throughputs = Self::default();
        for (key, value) in kinds {
            let (kind, gpus) = kind_and_gpus(key)
                .ok_or_else(|| fail(format!("key of {gpu_type} is {key}, expected ('KIND', GPUS)")))?;
            let alone = value.get("null").and_then(Value::as_f64).filter(|steps| *steps >= 0.0);
            let alone = alone.ok_or_else(|| {
                let null = value.get("null").map_or_else(|| "missing".to_owned(), Value::to_string);
                fail(format!(
                    "throughput of {key} on {gpu_type} (key null) is {null}, expected a number >= 0"
                ))
            })?;
            throughputs.of.entry(kind.to_owned()).or_default().insert(gpus, alone);
        }
        Ok(throughputs)
    }

    /// Returns the throughput, in steps per second, of a kind of job on `gpus` GPUs. If the table has no value for this
    /// number of GPUs, the value for the largest smaller number is extrapolated in proportion to the number of GPUs.
    /// (Gavel's table ends at 8 GPUs and lists some kinds of job for only one GPU.) Returns `None` if the kind is
    /// unknown or its throughput is 0.
    pub fn get(&self, kind: &str, gpus: usize) -> Option<f64> {
        let (known, steps) = self.of.get(kind)?.range(..=gpus).next_back()?;
        Some(steps * gpus as f64 / *known as f64).filter(|steps| *steps > 0.0)
    }
}

/// Parses a key such as `('ResNet-18 (batch size 16)', 2)`.
fn kind_and_gpus(key: &str) -> Option<(&str, usize)> {
    let (kind, gpus) = key.strip_prefix("('")?.strip_suffix(')')?.rsplit_once("', ")?;
    Some((kind, gpus.parse().ok()?))
}

/// Number of fields in a line of a Gavel trace.
const FIELDS: usize = 7;

/// Reads a Gavel trace. The fields are separated by tabs: the first is the kind of job, the fifth the number of steps,
/// the sixth the arrival time in seconds, and the seventh the number of GPUs. A job's duration is the number of steps
/// divided by the throughput.
///
/// # Errors
/// Fails if the file cannot be read, or if a line does not describe a job; the error then names the line.
pub fn read_gavel(path: &Path, throughputs: &Throughputs) -> Result<Jobs, StudyError> {
    let text = read(path)?;
    let (mut jobs, mut unknown) = (Vec::new(), 0);
    Records::separated_by(b'\t', &text).for_each(path, |_, row| {
        match job(row, throughputs)? {
            Some(job) => jobs.push(job),
            None => unknown += 1,
        }
        Ok(())
    })?;
    sort_by_arrival(&mut jobs);
    Ok(Jobs {
        jobs,
        left_out: vec![(unknown, "is of a kind without a throughput on the selected type of GPU")],
    })
}

fn job(row: &StringRecord, throughputs: &Throughputs) -> Result<Option<Job>, String> {
    let fields: Vec<_> = row.iter().collect();
    let &[kind, _, _, _, steps, arrival, gpus] = fields.as_slice() else {
        return Err(format!("number of tab-separated fields is {}, expected {FIELDS}", fields.len()));
    };
    let (steps, arrival): (f64, f64) = (number("steps", steps)?, number("arrival", arrival)?);
    let gpus = number("GPUs", gpus)?;
    let Some(per_second) = throughputs.get(kind, gpus) else { return Ok(None) };
    Job::new(arrival, gpus, steps / per_second).map(Some).map_err(|error| error.to_string())
}
