//! Reader of the project's own table formats, in which operators can describe their clusters.

use std::path::Path;

use crate::failure::{Outage, RATE_MAX, check_outage};
use crate::job::sort_by_arrival;
use crate::{Cluster, Failures, Job};
use iswitch_study::StudyError;
use iswitch_study::error::at_least_zero;
use iswitch_study::table::{Table, read};

/// Reads a table of nodes with the columns `gpus,cage`, one node per line.
///
/// # Errors
/// Fails if the file cannot be read or does not describe a cluster; if a line is invalid, the error names it.
pub fn read_cluster(path: &Path) -> Result<Cluster, StudyError> {
    let text = read(path)?;
    let nodes =
        Table::new(&text, path, ["gpus", "cage"])?.rows(|row| Ok((row.number(0)?, row.number(1)?)))?;
    Cluster::new(nodes).map_err(|error| StudyError::file(path, error))
}

/// Reads a table of jobs with the columns `arrival_s,gpus,duration_s`. The lines may be in any order; the jobs are
/// returned sorted by arrival.
///
/// # Errors
/// Fails if the file cannot be read, or if a line does not describe a job; the error then names the line.
pub fn read_jobs(path: &Path) -> Result<Vec<Job>, StudyError> {
    let text = read(path)?;
    let table = Table::new(&text, path, ["arrival_s", "gpus", "duration_s"])?;
    let mut jobs = table.rows(|row| {
        Job::new(row.number(0)?, row.number(1)?, row.number(2)?).map_err(|error| error.to_string())
    })?;
    sort_by_arrival(&mut jobs);
    Ok(jobs)
}

/// Reads a table of failures at known times with the columns `gpu,begin_s,end_s`. The lines may be in any order.
///
/// # Errors
/// Fails if the file cannot be read, a GPU is unknown, an outage begins before 0 or does not end after it begins, or
/// two outages of the same GPU overlap. The error names the line.
pub fn read_outages(path: &Path, cluster: &Cluster) -> Result<Vec<Outage>, StudyError> {
    let text = read(path)?;
    let mut lines = Vec::new();
    let outages = Table::new(&text, path, ["gpu", "begin_s", "end_s"])?.rows(|row| {
        let outage = Outage { gpu: row.number(0)?, begin: row.number(1)?, end: row.number(2)? };
        check_outage(cluster, outage).map_err(|error| error.to_string())?;
        lines.push(row.line);
        Ok(outage)
    })?;
    let mut order: Vec<usize> = (0..outages.len()).collect();
    let key = |number: &usize| (outages[*number].gpu, outages[*number].begin);
    order.sort_by(|a, b| key(a).0.cmp(&key(b).0).then(key(a).1.total_cmp(&key(b).1)));
    for pair in order.windows(2) {
        let (first, second) = (outages[pair[0]], outages[pair[1]]);
        if first.gpu == second.gpu && second.begin < first.end {
            let (line, other) = (lines[pair[0]].max(lines[pair[1]]), lines[pair[0]].min(lines[pair[1]]));
            let reason = format!("outage of GPU {} overlaps the outage in line {other}", first.gpu);
            return Err(StudyError::line(path, line, reason));
        }
    }
    Ok(outages)
}

/// Reads a table of rates of random failures with the columns `gpu,per_year,age_years`, one line for each GPU in the
/// cluster.
///
/// # Errors
/// Fails if the file cannot be read, a GPU is unknown, missing or repeated, or a number is out of range. The error
/// names the line, except for a missing GPU.
pub fn read_rates(path: &Path, cluster: &Cluster) -> Result<Failures, StudyError> {
    let text = read(path)?;
    let mut of_gpu: Vec<Option<(f64, f64)>> = vec![None; cluster.gpus()];
    Table::new(&text, path, ["gpu", "per_year", "age_years"])?.rows(|row| {
        let gpu: usize = row.number(0)?;
        let (rate, age): (f64, f64) = (row.number(1)?, row.number(2)?);
        cluster.check_gpu(gpu).map_err(|error| error.to_string())?;
        if !(0.0..=RATE_MAX).contains(&rate) {
            return Err(format!("per_year is {rate}, expected 0 to {RATE_MAX} failures"));
        }
        at_least_zero("age_years", age, "years").map_err(|error| error.to_string())?;
        match of_gpu[gpu].replace((rate, age)) {
            None => Ok(()),
            Some(_) => Err(format!("GPU {gpu} appears twice, expected one line for each GPU")),
        }
    })?;
    if let Some(gpu) = of_gpu.iter().position(Option::is_none) {
        return Err(StudyError::file(
            path,
            format!("there is no line for GPU {gpu}, expected one for each GPU"),
        ));
    }
    let (rates, ages) = of_gpu.into_iter().flatten().unzip();
    Failures::poisson(rates)?.with_ages(ages)
}
