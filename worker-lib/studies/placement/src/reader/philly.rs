//! Microsoft's Philly cluster (Jeon et al., ATC 2019), as it comes with Gavel (Narayanan et al., OSDI 2020).

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::Jobs;
use crate::Job;
use crate::job::{JobPool, sort_by_arrival};
use iswitch_study::StudyError;
use iswitch_study::table::{Records, StringRecord, Table, number, read};

/// Durations and GPUs of jobs: `duration_s,gpus`. They have no arrivals.
///
/// # Errors
/// If the file cannot be read or has no jobs; with the number of the line if one is of no job.
pub fn read_philly(path: &Path) -> Result<JobPool, StudyError> {
    let text = read(path)?;
    let jobs = Table::new(&text, path, ["duration_s", "gpus"])?
        .rows(|row| Job::new(0.0, row.number(1)?, row.number(0)?).map_err(|error| error.to_string()))?;
    JobPool::new(jobs).map_err(|error| StudyError::file(path, error))
}

/// Steps a second of jobs of a kind on so many GPUs, by kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Throughputs {
    of: BTreeMap<String, BTreeMap<usize, f64>>,
}

impl Throughputs {
    /// Gavel's `simulation_throughputs.json`: for each type of GPU, such as `v100`, for each `('KIND', GPUS)` the steps
    /// a second alone (`null`) and beside others, which are not looked at.
    ///
    /// # Errors
    /// If the file cannot be read or is not that; if it does not know the type.
    pub fn read(path: &Path, gpu_type: &str) -> Result<Self, StudyError> {
        let fail = |reason: String| StudyError::file(path, reason);
        let all: Value = serde_json::from_str(&read(path)?).map_err(|error| fail(error.to_string()))?;
        let types = all.as_object().ok_or_else(|| fail("expected an object by type of GPU".to_owned()))?;
        let kinds = types.get(gpu_type).and_then(Value::as_object).ok_or_else(|| {
            let mut known: Vec<_> = types.keys().map(String::as_str).collect();
            known.sort_unstable();
            fail(format!("type of GPU is {gpu_type}, expected one of {}", known.join(", ")))
        })?;
        let mut throughputs = Self::default();
        for (key, value) in kinds {
            let (kind, gpus) = kind_and_gpus(key)
                .ok_or_else(|| fail(format!("{key} of {gpu_type}: expected ('KIND', GPUS)")))?;
            let alone = value.get("null").and_then(Value::as_f64).filter(|steps| *steps >= 0.0);
            let alone =
                alone.ok_or_else(|| fail(format!("{key} of {gpu_type}: expected steps a second as null")))?;
            throughputs.of.entry(kind.to_owned()).or_default().insert(gpus, alone);
        }
        Ok(throughputs)
    }

    /// Of a kind on so many GPUs. Where that is not known, in proportion to the greatest number below for which it is:
    /// Gavel's table ends at 8 GPUs, and knows some kinds only on one. None if the kind is unknown or does not run.
    pub fn get(&self, kind: &str, gpus: usize) -> Option<f64> {
        let (known, steps) = self.of.get(kind)?.range(..=gpus).next_back()?;
        Some(steps * gpus as f64 / *known as f64).filter(|steps| *steps > 0.0)
    }
}

/// Of `('ResNet-18 (batch size 16)', 2)`.
fn kind_and_gpus(key: &str) -> Option<(&str, usize)> {
    let (kind, gpus) = key.strip_prefix("('")?.strip_suffix(')')?.rsplit_once("', ")?;
    Some((kind, gpus.parse().ok()?))
}

/// Fields of a line of a trace.
const FIELDS: usize = 7;

/// A trace of Gavel: fields with tabs between them, of which the first is the kind, the fifth the number of steps, the
/// sixth the arrival in seconds, the seventh the number of GPUs. Durations are steps by throughput.
///
/// # Errors
/// If the file cannot be read; with the number of the line if one is of no job.
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
    Ok(Jobs { jobs, left_out: vec![(unknown, "of a kind that does not run on GPUs of this type")] })
}

fn job(row: &StringRecord, throughputs: &Throughputs) -> Result<Option<Job>, String> {
    let fields: Vec<_> = row.iter().collect();
    let &[kind, _, _, _, steps, arrival, gpus] = fields.as_slice() else {
        return Err(format!("number of fields is {}, expected {FIELDS}", fields.len()));
    };
    let (steps, arrival): (f64, f64) = (number("steps", steps)?, number("arrival", arrival)?);
    let gpus = number("GPUs", gpus)?;
    let Some(per_second) = throughputs.get(kind, gpus) else { return Ok(None) };
    Job::new(arrival, gpus, steps / per_second).map(Some).map_err(|error| error.to_string())
}
