//! Reader of the workloads of Pollux (Qiao et al., OSDI 2021), as published in the artifact of that paper.

use std::collections::BTreeMap;
use std::path::Path;

use crate::Job;
use crate::job::{Scaling, sort_by_arrival};
use iswitch_study::StudyError;
use iswitch_study::table::{Table, read};

/// Maximum number of GPUs on which a job may run, as a multiple of the number that the job asks for.
const MOST: usize = 4;

/// Measured time of a training step.
struct Step {
    gpus: usize,
    local_batch: f64,
    seconds: f64,
    synchronisation: f64,
}

/// Reads a workload from a table with the columns `time,application,num_replicas,batch_size`. `applications` is a
/// folder that has a subfolder for each application, in which `validation-BATCH.csv` gives the number of training
/// steps, and `scalability.csv` and `placements.csv` give measured step times. A job's duration is the number of steps
/// times the step time, at the job's batch size and on the number of GPUs that it asks for. The step time is the one
/// measured at the nearest number of GPUs and at the nearest batch size per GPU; a batch larger than the largest
/// measured one is divided into several smaller ones (gradient accumulation).
///
/// # Errors
/// Fails if a file cannot be read, or a line is invalid; the error then names the line.
pub fn read_pollux(path: &Path, applications: &Path) -> Result<Vec<Job>, StudyError> {
    let text = read(path)?;
    let names = ["time", "application", "num_replicas", "batch_size"];
    let mut known: BTreeMap<String, Vec<Step>> = BTreeMap::new();
    let mut iterations: BTreeMap<(String, u64), f64> = BTreeMap::new();
    let mut rows = Vec::new();
    Table::new(&text, path, names)?.rows(|row| {
        let name = row.text(1).to_owned();
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        {
            return Err(format!(
                "application is {name:?}, expected a folder name of letters, digits, - and _"
            ));
        }
        let (gpus, batch): (usize, u64) = (row.number(2)?, row.number(3)?);
        if gpus == 0 || batch == 0 {
            return Err(format!(
                "num_replicas is {gpus} and batch_size is {batch}, expected at least 1 for both"
            ));
        }
        rows.push((row.line, row.number(0)?, name, gpus, batch));
        Ok(())
    })?;
    let mut jobs = Vec::with_capacity(rows.len());
    for (line, arrival, name, gpus, batch) in rows {
        let folder = applications.join(&name);
        if !known.contains_key(&name) {
            known.insert(name.clone(), read_steps(&folder)?);
        }
        let key = (name.clone(), batch);
        if !iterations.contains_key(&key) {
            let count = last_iteration(&folder.join(format!("validation-{batch}.csv")))?;
            iterations.insert(key.clone(), count);
        }
        let job = job(arrival, gpus, batch, &known[&name], iterations[&key]);
        jobs.push(job.map_err(|error| StudyError::line(path, line, error))?);
    }
    sort_by_arrival(&mut jobs);
    Ok(jobs)
}

fn job(arrival: f64, gpus: usize, batch: u64, steps: &[Step], iterations: f64) -> Result<Job, StudyError> {
    let (seconds, synchronisation) = step_time(steps, gpus, batch as f64 / gpus as f64);
    let job = Job::new(arrival, gpus, iterations * seconds)?;
    // The computation time of a step on a single GPU is the sum of the computation times on all GPUs.
    let computation = (seconds - synchronisation).max(f64::MIN_POSITIVE) * gpus as f64;
    let most = gpus.saturating_mul(MOST);
    job.with_scaling(Scaling { synchronisation: synchronisation / computation, least: 1, most })
}

/// Returns the duration of a training step and the part of it that is spent on synchronisation, in seconds.
fn step_time(steps: &[Step], gpus: usize, local_batch: f64) -> (f64, f64) {
    let distance = |of: f64, wanted: f64| (of / wanted).ln().abs();
    let nearest = |step: &&Step| distance(step.gpus as f64, gpus as f64);
    let Some(like) = steps.iter().min_by(|a, b| nearest(a).total_cmp(&nearest(b))) else { return (0.0, 0.0) };
    let same = || steps.iter().filter(|step| step.gpus == like.gpus);
    let largest = same().map(|step| step.local_batch).fold(0.0, f64::max);
    let parts = (local_batch / largest).ceil().max(1.0);
    let nearest = |step: &&Step| distance(step.local_batch, local_batch / parts);
    let step = same().min_by(|a, b| nearest(a).total_cmp(&nearest(b))).unwrap_or(like);
    let computation = (step.seconds - step.synchronisation).max(0.0);
    (computation * parts + step.synchronisation, step.synchronisation)
}

/// Reads the measured step times from `placements.csv` and `scalability.csv`.
fn read_steps(folder: &Path) -> Result<Vec<Step>, StudyError> {
    let step = |gpus: usize, numbers: [f64; 3]| {
        let [local_batch, seconds, synchronisation] = numbers;
        let is_fine = gpus > 0 && local_batch > 0.0 && local_batch.is_finite() && seconds > 0.0;
        if is_fine && seconds.is_finite() && (0.0..=seconds).contains(&synchronisation) {
            return Ok(Step { gpus, local_batch, seconds, synchronisation });
        }
        let text =
            format!("{gpus} GPUs, local_bsz {local_batch}, step_time {seconds}, sync_time {synchronisation}");
        Err(format!("step is {text:?}, expected sync_time from 0 to step_time and all other values above 0"))
    };
    let numbers = ["local_bsz", "step_time", "sync_time"];
    let path = folder.join("scalability.csv");
    let text = read(&path)?;
    let [local, seconds, synchronisation] = numbers;
    let table = Table::new(&text, &path, ["num_replicas", local, seconds, synchronisation])?;
    let mut steps =
        table.rows(|row| step(row.number(0)?, [row.number(1)?, row.number(2)?, row.number(3)?]))?;
    let path = folder.join("placements.csv");
    let text = read(&path)?;
    let table = Table::new(&text, &path, ["placement", local, seconds, synchronisation])?;
    steps.extend(table.rows(|row| {
        // Each digit is the number of GPUs on a node: 112 means four GPUs on three nodes.
        let digits = row.text(0).bytes().map(|digit| usize::from(digit.wrapping_sub(b'0')));
        let gpus = digits.clone().all(|digit| digit < 10).then(|| digits.sum());
        let gpus = gpus.ok_or_else(|| format!("placement is {:?}, expected digits", row.text(0)))?;
        step(gpus, [row.number(1)?, row.number(2)?, row.number(3)?])
    })?);
    if steps.is_empty() {
        return Err(StudyError::file(&path, "neither this file nor scalability.csv has a measured step"));
    }
    Ok(steps)
}

/// Returns the number of training steps: one more than the iteration in the last line.
fn last_iteration(path: &Path) -> Result<f64, StudyError> {
    let text = read(path)?;
    let iterations: Vec<(usize, f64)> =
        Table::new(&text, path, ["iteration"])?.rows(|row| Ok((row.line, row.number(0)?)))?;
    match iterations.last() {
        Some((_, last)) if *last >= 0.0 && last.is_finite() => Ok(last + 1.0),
        Some((line, last)) => {
            Err(StudyError::line(path, *line, format!("iteration is {last}, expected at least 0")))
        }
        None => Err(StudyError::file(path, "there are no iterations, expected at least 1")),
    }
}
