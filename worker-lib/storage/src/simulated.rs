//! Simulated disk in memory that fails, tears writes and loses data, as determined by a seed.
//!
//! The disk distinguishes between what processes see and what survives a crash. The content of a file is certain to
//! survive once the file has been flushed; the name of a file is certain to survive once its directory has been
//! flushed. [`SimulatedDisk::crash`] decides everything else at random, from the seed: each unflushed change of a
//! name survives or is lost, independently of the others; unflushed content is truncated, and each of its blocks
//! contains the new data, zeros or noise.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::{Disk, NewFile, file_name, parent};

/// Length of a block (sector), in bytes. Unflushed content survives or is lost in units of blocks.
const BLOCK_LEN_BYTES: usize = 512;

/// Index of a file's content. Names refer to contents by this index.
type Inode = usize;

#[derive(Clone, Debug, Default)]
struct Content {
    bytes: Vec<u8>,
    is_flushed: bool,
}

/// Change of a file name that has not been flushed to its directory yet.
#[derive(Clone, Debug)]
enum Change {
    Link(PathBuf, Inode),
    Unlink(PathBuf),
    /// Renaming from the first path to the second. It is atomic: after a crash, either both names have changed or
    /// neither has.
    Rename(PathBuf, PathBuf, Inode),
}

impl Change {
    fn path(&self) -> &Path {
        match self {
            Self::Link(path, _) | Self::Unlink(path) | Self::Rename(path, _, _) => path,
        }
    }

    fn apply(&self, names: &mut BTreeMap<PathBuf, Inode>) {
        match self {
            Self::Link(path, inode) => {
                names.insert(path.clone(), *inode);
            }
            Self::Unlink(path) => {
                names.remove(path);
            }
            Self::Rename(from, to, inode) => {
                names.remove(from);
                names.insert(to.clone(), *inode);
            }
        }
    }
}

#[derive(Clone, Debug)]
struct State {
    contents: Vec<Content>,
    /// Names as processes see them.
    names: BTreeMap<PathBuf, Inode>,
    /// Names that are certain to survive a crash.
    flushed: BTreeMap<PathBuf, Inode>,
    /// Unflushed changes of names, oldest first.
    changes: Vec<Change>,
    rng: ChaCha8Rng,
    /// Probability that an operation that changes the disk fails.
    failure_chance: f64,
    failures: u64,
    /// Number of operations after which all operations that change the disk fail, as if the process had been killed;
    /// `None` if there is no such limit.
    operations_left: Option<u64>,
}

/// Simulated disk in memory. Clones share the same disk.
#[derive(Clone, Debug)]
pub struct SimulatedDisk(Arc<Mutex<State>>);

impl SimulatedDisk {
    /// Creates an empty disk on which every directory exists. It does not fail until configured to do so.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            contents: Vec::new(),
            names: BTreeMap::new(),
            flushed: BTreeMap::new(),
            changes: Vec::new(),
            rng: ChaCha8Rng::seed_from_u64(seed),
            failure_chance: 0.0,
            failures: 0,
            operations_left: None,
        })))
    }

    /// Sets the probability, from 0 to 1 inclusive, that an operation that changes the disk (a write, flush, rename or
    /// removal, for example) fails.
    pub fn fail_with_chance(&self, chance: f64) {
        self.lock().failure_chance = chance;
    }

    /// Makes all operations that change the disk fail once `operations` more of them have been attempted, as if the
    /// process had been killed. `None` removes the limit.
    pub fn stop_after(&self, operations: Option<u64>) {
        self.lock().operations_left = operations;
    }

    /// Returns the number of operations that have failed.
    pub fn failures(&self) -> u64 {
        self.lock().failures
    }

    /// Returns a new disk with the data that would survive if this disk crashed now. The outcome may differ between
    /// calls.
    #[must_use]
    pub fn crash(&self) -> Self {
        let mut state = self.lock();
        let mut left = state.clone();
        left.rng = ChaCha8Rng::seed_from_u64(state.rng.random());
        (left.failure_chance, left.operations_left) = (0.0, None);
        left.names = left.flushed.clone();
        for change in std::mem::take(&mut left.changes) {
            if left.rng.random() {
                change.apply(&mut left.names);
            }
        }
        left.flushed = left.names.clone();
        let State { contents, rng, .. } = &mut left;
        for content in contents.iter_mut().filter(|content| !content.is_flushed) {
            tear(&mut content.bytes, rng);
            content.is_flushed = true;
        }
        Self(Arc::new(Mutex::new(left)))
    }

    /// Damages a file, as if the disk had reported an incomplete write as complete: truncates the file, or fills one of
    /// its blocks with zeros or noise. The content is certain to change.
    ///
    /// # Panics
    /// Panics if the file does not exist or is empty.
    pub fn damage(&self, path: &Path) {
        let mut state = self.lock();
        let inode = *state.names.get(path).expect("the file must exist");
        let State { contents, rng, .. } = &mut *state;
        let before = contents[inode].bytes.clone();
        while contents[inode].bytes == before {
            let bytes = &mut contents[inode].bytes;
            if rng.random_bool(0.3) {
                bytes.truncate(rng.random_range(0..before.len()));
            } else {
                let block = rng.random_range(0..bytes.len().div_ceil(BLOCK_LEN_BYTES));
                spoil(bytes, block, rng);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the disk for an operation that changes it, or returns an error if that operation must fail.
    fn change(&self) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.lock();
        if state.fails() { Err(failure()) } else { Ok(state) }
    }
}

impl State {
    fn fails(&mut self) -> bool {
        let chance = self.failure_chance;
        let is_stopped = match &mut self.operations_left {
            Some(0) => true,
            Some(left) => {
                *left -= 1;
                false
            }
            None => false,
        };
        let fails = is_stopped || (chance > 0.0 && self.rng.random_bool(chance));
        self.failures += u64::from(fails);
        fails
    }

    fn rename_in_view(&mut self, change: Change) {
        change.apply(&mut self.names);
        self.changes.push(change);
    }
}

fn failure() -> io::Error {
    io::Error::other("simulated disk failure")
}

/// Replaces unflushed content with what remains of it after a crash.
fn tear(bytes: &mut Vec<u8>, rng: &mut ChaCha8Rng) {
    let len = rng.random_range(0..=bytes.len());
    bytes.truncate(len);
    for block in 0..len.div_ceil(BLOCK_LEN_BYTES) {
        if rng.random_bool(0.5) {
            spoil(bytes, block, rng);
        }
    }
}

/// Fills a block with zeros or noise.
fn spoil(bytes: &mut [u8], block: usize, rng: &mut ChaCha8Rng) {
    let begin = block * BLOCK_LEN_BYTES;
    let end = bytes.len().min(begin + BLOCK_LEN_BYTES);
    if rng.random() { bytes[begin..end].fill(0) } else { rng.fill(&mut bytes[begin..end]) }
}

impl Disk for SimulatedDisk {
    fn create_directory(&self, _: &Path) -> io::Result<()> {
        self.change().map(|_| ())
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let state = self.lock();
        let inode = state.names.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(state.contents[*inode].bytes.clone())
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        let state = self.lock();
        Ok(state.names.keys().filter(|path| path.parent() == Some(directory)).cloned().collect())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.change()?;
        if !state.names.contains_key(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.rename_in_view(Change::Unlink(path.to_owned()));
        Ok(())
    }

    fn create_beside(&self, path: &Path) -> io::Result<Box<dyn NewFile + '_>> {
        let name = file_name(path)?;
        let mut state = self.change()?;
        let inode = state.contents.len();
        state.contents.push(Content::default());
        let place = parent(path).join(format!(".{name}.{inode}{}", crate::UNFINISHED));
        state.rename_in_view(Change::Link(place.clone(), inode));
        Ok(Box::new(SimulatedFile { disk: self, inode, place, is_named: false }))
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        let mut state = self.change()?;
        let changes = std::mem::take(&mut state.changes);
        let (here, elsewhere): (Vec<_>, Vec<_>) =
            changes.into_iter().partition(|change| parent(change.path()) == directory);
        here.iter().for_each(|change| change.apply(&mut state.flushed));
        state.changes = elsewhere;
        Ok(())
    }
}

#[derive(Debug)]
struct SimulatedFile<'a> {
    disk: &'a SimulatedDisk,
    inode: Inode,
    place: PathBuf,
    is_named: bool,
}

impl NewFile for SimulatedFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.disk.lock();
        let fails = state.fails();
        let len = if fails { state.rng.random_range(0..=bytes.len()) } else { bytes.len() };
        let content = &mut state.contents[self.inode];
        content.bytes.extend_from_slice(&bytes[..len]);
        content.is_flushed = false;
        if fails { Err(failure()) } else { Ok(()) }
    }

    fn sync(&mut self) -> io::Result<()> {
        self.disk.change()?.contents[self.inode].is_flushed = true;
        Ok(())
    }

    fn rename(mut self: Box<Self>, path: &Path) -> io::Result<()> {
        let mut state = self.disk.lock();
        let fails = state.fails();
        // A rename that is reported as failed may have happened nevertheless, unless the process was killed.
        if !fails || (state.operations_left != Some(0) && state.rng.random()) {
            state.rename_in_view(Change::Rename(self.place.clone(), path.to_owned(), self.inode));
            self.is_named = true;
        }
        if fails { Err(failure()) } else { Ok(()) }
    }
}

impl Drop for SimulatedFile<'_> {
    fn drop(&mut self) {
        if !self.is_named {
            let _ = self.disk.remove(&self.place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replace;

    const SEEDS: u64 = 300;

    fn content(number: u8) -> Vec<u8> {
        (0..3_000_usize).map(|at| (at as u8).wrapping_mul(number)).collect()
    }

    #[test]
    fn a_file_has_old_or_new_content_after_any_failure_and_crash() {
        let path = Path::new("/d/file");
        let (mut failed, mut succeeded) = (0, 0);
        for seed in 0..SEEDS {
            let disk = SimulatedDisk::new(seed);
            replace(&disk, path, &content(1)).unwrap();
            let mut allowed = vec![content(1)];
            disk.fail_with_chance(0.1);
            for number in 2..6 {
                if replace(&disk, path, &content(number)).is_ok() {
                    allowed.clear();
                    succeeded += 1;
                } else {
                    failed += 1;
                }
                allowed.push(content(number));
                for left in [disk.clone(), disk.crash()] {
                    let found = left.read(path).unwrap();
                    assert!(allowed.contains(&found), "seed {seed}, file {number}");
                }
            }
        }
        assert!(failed > SEEDS && succeeded > SEEDS, "{failed} failed, {succeeded} succeeded");
    }

    /// Checks that the simulated disk reveals a missing flush of a file or of its directory.
    #[test]
    fn an_unflushed_file_is_lost_or_torn() {
        let path = Path::new("/d/file");
        let wrong = |write: fn(&SimulatedDisk, &Path) -> io::Result<()>| {
            let is_wrong = |seed: &u64| {
                let disk = SimulatedDisk::new(*seed);
                replace(&disk, path, &content(1)).unwrap();
                write(&disk, path).unwrap();
                disk.crash().read(path).ok() != Some(content(2))
            };
            (0..SEEDS).filter(is_wrong).count()
        };
        let without_flush = wrong(|disk, path| {
            let mut file = disk.create_beside(path)?;
            file.write(&content(2))?;
            file.rename(path)?;
            disk.sync_directory(parent(path))
        });
        let without_directory = wrong(|disk, path| {
            let mut file = disk.create_beside(path)?;
            file.write(&content(2))?;
            file.sync()?;
            file.rename(path)
        });
        assert!(without_flush > 0 && without_directory > 0, "{without_flush} {without_directory}");
    }
}
