//! Copy of the workspace's sources, into which bugs can be planted without changing the workspace.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::Mutant;

/// Copy of the sources. It persists between runs, in the same directory, so that cargo builds only what has changed.
#[derive(Debug)]
pub struct Sources {
    workspace: PathBuf,
    directory: PathBuf,
    /// Lock that is held while the copy is in use.
    _lock: File,
}

impl Sources {
    /// Copies the sources of a workspace: the files that git tracks or would track, as they are in the working tree.
    ///
    /// # Errors
    /// Fails if the files cannot be listed, read or written, or if the copy is in use.
    pub fn copy(workspace: &Path, directory: &Path) -> Result<Self> {
        fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
        let lock = lock(&directory.with_extension("lock"))?;
        let copy = Self { workspace: workspace.to_owned(), directory: directory.to_owned(), _lock: lock };
        let files = list(workspace)?;
        remove_others(directory, directory, &files)?;
        for file in &files {
            copy.restore(file)?;
        }
        Ok(copy)
    }

    /// Returns the directory of the copy.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Plants a bug. Only one bug may be planted at a time: see [`Self::restore`].
    ///
    /// # Errors
    /// Fails if the mutant does not fit the source, or if the source cannot be read or written.
    pub fn plant(&self, mutant: &Mutant) -> Result<()> {
        let file = &mutant.bug.file;
        let path = self.workspace.join(file);
        let source = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        write(&self.directory.join(file), mutant.apply(&source)?.as_bytes())
    }

    /// Restores a file of the copy from the workspace.
    ///
    /// # Errors
    /// Fails if the file cannot be read or written.
    pub fn restore(&self, file: impl AsRef<Path>) -> Result<()> {
        let path = self.workspace.join(&file);
        let content = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        write(&self.directory.join(&file), &content)
    }
}

/// Locks the copy, because two concurrent runs would corrupt each other's copy.
fn lock(path: &Path) -> Result<File> {
    let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            bail!("{} is locked: another process is testing mutants; wait until it has ended", path.display())
        }
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}

fn list(workspace: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut git = Command::new("git");
    git.arg("-C").arg(workspace).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let output = git.output().context("cannot run git to list the sources")?;
    ensure!(output.status.success(), "{git:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
    let names = output.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let names: Result<BTreeSet<_>, _> =
        names.map(|name| std::str::from_utf8(name).map(PathBuf::from)).collect();
    let mut files = names.context("the name of a source file is not UTF-8")?;
    // Git lists a removed file until the removal is committed.
    files.retain(|file| workspace.join(file).is_file());
    Ok(files)
}

/// Removes files that an earlier copy has left, because cargo would build the programs and tests among them.
fn remove_others(root: &Path, directory: &Path, files: &BTreeSet<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))? {
        let path = entry.with_context(|| format!("cannot read {}", directory.display()))?.path();
        if path.is_dir() {
            remove_others(root, &path, files)?;
        } else if path.strip_prefix(root).is_ok_and(|file| !files.contains(file)) {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}

/// Writes a file unless it already has this content, because cargo compares modification times.
fn write(path: &Path, content: &[u8]) -> Result<()> {
    match fs::read(path) {
        Ok(present) if present == content => return Ok(()),
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot read {}", path.display()));
        }
        _ => {}
    }
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    }
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}
