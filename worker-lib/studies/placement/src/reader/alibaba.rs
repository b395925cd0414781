//! Reader of the 2023 trace of Alibaba's GPU cluster (Weng et al., ATC 2023).

use std::path::Path;

use super::Jobs;
use crate::job::sort_by_arrival;
use crate::{Cluster, Job};
use iswitch_study::StudyError;
use iswitch_study::table::{Table, read};

/// Treatment of pods that request a fraction of a GPU. A rule is necessary because, in this model, jobs own GPUs
/// exclusively.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedGpus {
    /// Pods that request a fraction of a GPU are excluded.
    LeaveOut,
    /// Each pod that requests a fraction of a GPU gets a whole GPU.
    Whole,
}

/// Value of `gpu_milli` for a whole GPU.
const WHOLE: u32 = 1000;

/// Reads the nodes that have GPUs from a table with the columns `sn,cpu_milli,memory_mib,gpu,model`. All nodes are
/// assigned to cage 0, because their positions are not known.
///
/// # Errors
/// Fails if the file cannot be read or has no nodes with GPUs, or if a line does not describe a node; the error then
/// names the line.
pub fn read_alibaba_nodes(path: &Path) -> Result<Cluster, StudyError> {
    let text = read(path)?;
    let nodes: Vec<usize> = Table::new(&text, path, ["gpu"])?.rows(|row| row.number(0))?;
    let nodes = nodes.into_iter().filter(|gpus| *gpus > 0).map(|gpus| (gpus, 0));
    Cluster::new(nodes).map_err(|error| StudyError::file(path, error))
}

/// Reads pods as jobs, which arrive at `creation_time` and last from `scheduled_time` to `deletion_time`. Pods that
/// never ran or request no GPU are excluded.
///
/// # Errors
/// Fails if the file cannot be read, or if a line does not describe a pod; the error then names the line.
pub fn read_alibaba_pods(path: &Path, shared: SharedGpus) -> Result<Jobs, StudyError> {
    let text = read(path)?;
    let names = ["num_gpu", "gpu_milli", "creation_time", "deletion_time", "scheduled_time"];
    let mut counts = [(0, "requests no GPU"), (0, "requests a fraction of a GPU"), (0, "never ran")];
    let rows = Table::new(&text, path, names)?.rows(|row| {
        let mut leave_out = |reason: usize| {
            counts[reason].0 += 1;
            Ok(None)
        };
        let gpus: usize = row.number(0)?;
        if gpus == 0 {
            return leave_out(0);
        }
        if row.number::<u32>(1)? < WHOLE && shared == SharedGpus::LeaveOut {
            return leave_out(1);
        }
        let (created, deleted): (f64, f64) = (row.number(2)?, row.number(3)?);
        // The scheduled time of a pod that was never scheduled is empty.
        if row.text(4).is_empty() {
            return leave_out(2);
        }
        let scheduled: f64 = row.number(4)?;
        if scheduled == deleted {
            return leave_out(2);
        }
        Job::new(created, gpus, deleted - scheduled).map(Some).map_err(|error| error.to_string())
    })?;
    let mut jobs: Vec<Job> = rows.into_iter().flatten().collect();
    sort_by_arrival(&mut jobs);
    Ok(Jobs { jobs, left_out: counts.to_vec() })
}
