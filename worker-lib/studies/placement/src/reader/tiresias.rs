//! Reader of the job traces of the Tiresias simulator (Gu et al., NSDI 2019).

use std::path::Path;

use crate::Job;
use crate::job::sort_by_arrival;
use iswitch_study::StudyError;
use iswitch_study::table::{Table, read};

/// Reads a table of jobs with the columns `num_gpu,submit_time,duration`; times are in seconds.
///
/// # Errors
/// Fails if the file cannot be read, or if a line does not describe a job; the error then names the line.
pub fn read_tiresias(path: &Path) -> Result<Vec<Job>, StudyError> {
    let text = read(path)?;
    let table = Table::new(&text, path, ["submit_time", "num_gpu", "duration"])?;
    let mut jobs = table.rows(|row| {
        Job::new(row.number(0)?, row.number(1)?, row.number(2)?).map_err(|error| error.to_string())
    })?;
    sort_by_arrival(&mut jobs);
    Ok(jobs)
}
