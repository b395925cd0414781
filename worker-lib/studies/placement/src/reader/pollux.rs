//! Workloads of Pollux (Qiao et al., OSDI 2021), as in the artifact of that paper.

use std::collections::BTreeMap;
use std::path::Path;

use crate::Job;
use crate::job::{Scaling, sort_by_arrival};
use iswitch_study::StudyError;
use iswitch_study::table::{Table, read};

/// GPUs that a job may have at most, as many times as it asks for.
const MOST: usize = 4;

/// A step that was measured.
struct Step {
    gpus: usize,
    local_batch: f64,
    seconds: f64,
    synchronisation: f64,
}

/// A workload: `time,application,num_replicas,batch_size`, and the folder with a folder for each application, in which
/// `validation-BATCH.csv` tells the steps until it is trained and `scalability.csv` and `placements.csv` the seconds of
/// a step. A job's duration is the one by the other, both at its own batch size on as many GPUs as it asks for; steps
/// are those of the nearest number of GPUs and of the nearest batch on a GPU that were measured, with batches beyond
/// the largest in as many parts (gradient accumulation).
///
/// # Errors
/// If a file cannot be read; with the number of the line if one does not hold that.
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
            return Err(format!("application is {name:?}, expected the name of a folder"));
        }
        let (gpus, batch): (usize, u64) = (row.number(2)?, row.number(3)?);
        if gpus == 0 || batch == 0 {
            return Err(format!("num_replicas is {gpus} and batch_size {batch}, expected at least 1"));
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
    // What a step on one GPU computes is what all do.
    let computation = (seconds - synchronisation).max(f64::MIN_POSITIVE) * gpus as f64;
    let most = gpus.saturating_mul(MOST);
    job.with_scaling(Scaling { synchronisation: synchronisation / computation, least: 1, most })
}

/// Seconds of a step, and of its synchronisation.
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

/// Steps of both tables.
fn read_steps(folder: &Path) -> Result<Vec<Step>, StudyError> {
    let step = |gpus: usize, numbers: [f64; 3]| {
        let [local_batch, seconds, synchronisation] = numbers;
        let is_fine = gpus > 0 && local_batch > 0.0 && local_batch.is_finite() && seconds > 0.0;
        if is_fine && seconds.is_finite() && (0.0..=seconds).contains(&synchronisation) {
            return Ok(Step { gpus, local_batch, seconds, synchronisation });
        }
        let text =
            format!("{gpus} GPUs, local_bsz {local_batch}, step_time {seconds}, sync_time {synchronisation}");
        Err(format!("step is {text}, expected numbers above 0 and no longer synchronisation than step"))
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
        // GPUs on each node, a digit each: 112 is four on three nodes.
        let digits = row.text(0).bytes().map(|digit| usize::from(digit.wrapping_sub(b'0')));
        let gpus = digits.clone().all(|digit| digit < 10).then(|| digits.sum());
        let gpus = gpus.ok_or_else(|| format!("placement is {:?}, expected digits", row.text(0)))?;
        step(gpus, [row.number(1)?, row.number(2)?, row.number(3)?])
    })?);
    if steps.is_empty() {
        return Err(StudyError::file(&path, "there are no steps"));
    }
    Ok(steps)
}

/// Steps of a training: one more than the number of the last line.
fn last_iteration(path: &Path) -> Result<f64, StudyError> {
    let text = read(path)?;
    let iterations: Vec<(usize, f64)> =
        Table::new(&text, path, ["iteration"])?.rows(|row| Ok((row.line, row.number(0)?)))?;
    match iterations.last() {
        Some((_, last)) if *last >= 0.0 && last.is_finite() => Ok(last + 1.0),
        Some((line, last)) => {
            Err(StudyError::line(path, *line, format!("iteration is {last}, expected at least 0")))
        }
        None => Err(StudyError::file(path, "there are no iterations")),
    }
}
