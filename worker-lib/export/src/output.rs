//! Files that the command writes, and the summary that it prints.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use iswitch_cli::evaluation::Evaluation;
use iswitch_cli::files::make_directory;
use iswitch_learn::algorithms::checkpoint::Reader;
use iswitch_manual::print_line;
use iswitch_storage::{RealDisk, replace};
use serde::Serialize;

use crate::options::Format;
use crate::policy::ExportedPolicy;

/// Files that one export writes. All paths are checked before the first file is written.
pub(crate) struct Files {
    replaces: bool,
    reserved: Vec<PathBuf>,
    written: Vec<WrittenFile>,
}

#[derive(Serialize)]
struct WrittenFile {
    path: PathBuf,
    bytes: usize,
}

impl Files {
    /// Creates an empty list of files. If `replaces` is true, existing files may be replaced.
    pub(crate) fn new(replaces: bool) -> Self {
        Self { replaces, reserved: Vec::new(), written: Vec::new() }
    }

    /// Checks that a file may be written to `path`.
    pub(crate) fn reserve(&mut self, path: PathBuf) -> anyhow::Result<()> {
        if self.reserved.contains(&path) {
            bail!("{} would be written twice; choose another file for --test-data", path.display());
        }
        if path.is_dir() {
            bail!("{} is a directory, expected a file; only --format hub writes a directory", path.display());
        }
        if std::fs::read(&path).is_ok_and(|bytes| Reader::new(&path, &bytes).is_ok()) {
            bail!(
                "{} is the checkpoint of a run, which an export never replaces; choose another path",
                path.display()
            );
        }
        if path.exists() && !self.replaces {
            bail!("{} already exists; replace it with --force, or choose another path", path.display());
        }
        self.reserved.push(path);
        Ok(())
    }

    /// Writes a file, either completely or not at all. Creates its directory if necessary.
    pub(crate) fn write(&mut self, path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            make_directory(directory)?;
        }
        replace(&RealDisk, path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        self.written.push(WrittenFile { path: path.to_owned(), bytes: bytes.len() });
        Ok(())
    }
}

/// Summary of an export. Other programs rely on the keys of the JSON object and on their order.
#[derive(Serialize)]
pub(crate) struct Summary<'a> {
    algorithm: &'a str,
    env: &'a str,
    /// Number of environment steps during training.
    steps: u64,
    format: Format,
    /// Number of weights and biases of the policy.
    parameters: usize,
    files: Vec<WrittenFile>,
    /// Evaluation for the model card; null for the other formats.
    evaluation: Option<Evaluation>,
}

impl<'a> Summary<'a> {
    /// Creates the summary of an export that has written `files`.
    pub(crate) fn new(
        exported: &'a ExportedPolicy,
        format: Format,
        files: Files,
        evaluation: Option<Evaluation>,
    ) -> Self {
        Self {
            algorithm: &exported.algorithm,
            env: &exported.env,
            steps: exported.steps,
            format,
            parameters: exported.parameter_count(),
            files: files.written,
            evaluation,
        }
    }

    /// Prints the summary to standard output.
    pub(crate) fn print(&self, json: bool) -> anyhow::Result<()> {
        if json {
            print_line!("{}", serde_json::to_string(self)?)?;
            return Ok(());
        }
        print_line!(
            "{} on {} after {} training steps, {} parameters",
            self.algorithm.to_uppercase(),
            self.env,
            self.steps,
            self.parameters
        )?;
        if let Some(Evaluation { episodes, mean_return, std_return, .. }) = &self.evaluation {
            print_line!("mean return {mean_return:.1} +/- {std_return:.1} over {episodes} episodes")?;
        }
        for WrittenFile { path, bytes } in &self.files {
            print_line!("wrote {} ({bytes} bytes)", path.display())?;
        }
        Ok(())
    }
}
