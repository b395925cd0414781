//! Detection of file formats.

use std::path::Path;

use super::{read_alibaba_nodes, read_cluster};
use crate::Cluster;
use iswitch_study::StudyError;
use iswitch_study::table::{header, lines, read};

/// Format of a job file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobsFormat {
    /// The project's own format: [`read_jobs`](super::read_jobs).
    Own,
    /// Philly's jobs: [`read_philly`](super::read_philly).
    Philly,
    /// Gavel's traces: [`read_gavel`](super::read_gavel).
    Gavel,
    /// Alibaba's pods: [`read_alibaba_pods`](super::read_alibaba_pods).
    Alibaba,
    /// Pollux's workloads: [`read_pollux`](super::read_pollux).
    Pollux,
    /// Tiresias's traces: [`read_tiresias`](super::read_tiresias).
    Tiresias,
}

/// Columns that identify each format. Formats with more columns come first, because Philly's columns are a subset of
/// those of [`JobsFormat::Own`].
const JOBS: [(JobsFormat, &[&str]); 5] = [
    (JobsFormat::Alibaba, &["num_gpu", "gpu_milli", "creation_time", "deletion_time", "scheduled_time"]),
    (JobsFormat::Pollux, &["time", "application", "num_replicas", "batch_size"]),
    (JobsFormat::Tiresias, &["submit_time", "num_gpu", "duration"]),
    (JobsFormat::Own, &["arrival_s", "gpus", "duration_s"]),
    (JobsFormat::Philly, &["duration_s", "gpus"]),
];

impl JobsFormat {
    /// Detects the format of a file from the column names in its first line. A tab-separated file is a Gavel trace.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or its first line matches no known format.
    pub fn of(path: &Path) -> Result<Self, StudyError> {
        let text = read(path)?;
        if lines(&text).next().is_some_and(|(_, first)| first.contains('\t')) {
            return Ok(Self::Gavel);
        }
        let (line, first) = header(&text, path)?;
        let found = JOBS.into_iter().find(|(_, names)| has_columns(&first, names));
        found.map(|(format, _)| format).ok_or_else(|| {
            let known = JOBS.map(|(_, names)| names.join(",")).join(" or ");
            let reason = format!(
                "columns are {:?}, expected {known}, or a tab-separated Gavel trace",
                first.join(",")
            );
            StudyError::line(path, line, reason)
        })
    }
}

/// Reads a cluster from the project's own table of nodes or from Alibaba's.
///
/// # Errors
/// Fails if the file cannot be read, has neither format, or does not describe a cluster; the error names the line.
pub fn read_nodes(path: &Path) -> Result<Cluster, StudyError> {
    let text = read(path)?;
    let (line, first) = header(&text, path)?;
    if has_columns(&first, &["gpus", "cage"]) {
        return read_cluster(path);
    }
    if has_columns(&first, &["gpu"]) {
        return read_alibaba_nodes(path);
    }
    let reason = format!("columns are {:?}, expected gpus,cage, or gpu in an Alibaba file", first.join(","));
    Err(StudyError::line(path, line, reason))
}

fn has_columns(columns: &[String], names: &[&str]) -> bool {
    names.iter().all(|name| columns.iter().any(|column| column == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn job_formats_are_recognised_by_the_first_line() {
        for (format, names) in JOBS {
            let mut columns = names.to_vec();
            columns.reverse();
            columns.insert(1, "other");
            assert_eq!(JobsFormat::of(file(&columns.join(",")).path()).unwrap(), format);
        }
        assert_eq!(
            JobsFormat::of(file("A (batch size 8)\trun\t-s\t1\t9\t0.0\t1").path()).unwrap(),
            JobsFormat::Gavel
        );
        let error = JobsFormat::of(file("\nduration\n7\n").path()).unwrap_err().to_string();
        assert!(error.contains("line 2: columns are \"duration\", expected num_gpu,gpu_milli"), "{error}");
        assert!(JobsFormat::of(file("").path()).is_err());
    }

    #[test]
    fn node_files_have_the_native_or_the_alibaba_format() {
        assert_eq!(read_nodes(file("gpus,cage\n2,1\n").path()).unwrap(), Cluster::new([(2, 1)]).unwrap());
        assert_eq!(
            read_nodes(file("sn,gpu,model\na,4,x\n").path()).unwrap(),
            Cluster::new([(4, 0)]).unwrap()
        );
        let error = read_nodes(file("cpus\n").path()).unwrap_err().to_string();
        assert!(
            error.ends_with("line 1: columns are \"cpus\", expected gpus,cage, or gpu in an Alibaba file")
        );
    }
}
