//! In-memory directory whose operations fail, tear writes and damage data. A seed determines the faults.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IoSlice};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::lock;
use crate::store::disk::{Disk, ReadFile, WriteFile};

/// Unit in which the simulated disk loses data, in bytes.
const SECTOR_BYTES: usize = 512;
/// Number of correct reads after a corrupted read. They ensure that a second read returns the actual content of the
/// file.
const GOOD_READS: u32 = 2;

/// Identifier of the content of a file. It does not change when the file is renamed.
type FileId = u64;

/// Fault rates of operations. A rate of n means that one in n operations fails; 0 disables the fault.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) failure: u32,
    pub(crate) short_write: u32,
    pub(crate) flipped_read: u32,
}

/// Kinds of crashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Crash of the process. Data that was written to the kernel survives.
    Process,
    /// Crash of the machine. Unsynced data is lost, partly or completely.
    Machine,
}

#[derive(Clone, Debug, Default)]
struct Content {
    bytes: Vec<u8>,
    /// Length of the content that survives a crash of the machine, in bytes.
    synced: usize,
}

#[derive(Clone, Debug)]
enum NameChange {
    Create(String, FileId),
    Rename(String, String),
    Remove(String),
}

#[derive(Debug)]
struct State {
    rng: ChaCha8Rng,
    contents: BTreeMap<FileId, Content>,
    names: BTreeMap<String, FileId>,
    durable_names: BTreeMap<String, FileId>,
    /// Changes to file names that have not been synced yet.
    changes: Vec<NameChange>,
    next_id: FileId,
    faults: Faults,
    good_reads: u32,
    /// Number of bytes that can be written before the disk is full.
    room: u64,
    /// Number of operations before the next crash. After the crash, all operations fail until the process or the
    /// machine restarts.
    until_crash: Option<u32>,
    /// Files that must be neither changed nor removed.
    protected: BTreeSet<FileId>,
    damaged: BTreeSet<FileId>,
    violations: Vec<String>,
}

/// Simulated directory. Clones share the same state.
#[derive(Clone, Debug)]
pub(crate) struct SimulatedDisk(Arc<Mutex<State>>);

struct OpenFile {
    disk: SimulatedDisk,
    id: FileId,
}

impl State {
    fn chance(&mut self, one_in: u32) -> bool {
        one_in > 0 && self.rng.random_range(0..one_in) == 0
    }

    /// Counts an operation. The operation may fail.
    fn operate(&mut self) -> io::Result<()> {
        if let Some(left) = &mut self.until_crash {
            if *left == 0 {
                return Err(io::Error::other("the machine has crashed"));
            }
            *left -= 1;
        }
        if self.chance(self.faults.failure) {
            let kinds = [io::ErrorKind::Other, io::ErrorKind::QuotaExceeded, io::ErrorKind::OutOfMemory];
            return Err(kinds[self.rng.random_range(0..kinds.len())].into());
        }
        Ok(())
    }

    fn is_crashed(&self) -> bool {
        self.until_crash == Some(0)
    }

    fn id(&self, name: &str) -> io::Result<FileId> {
        self.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Reports a violation if the file that is about to be changed or removed has been found to be damaged.
    fn touch(&mut self, id: FileId, what: &str) {
        if self.protected.contains(&id) {
            self.violations.push(format!("a damaged file was {what}"));
        }
    }

    /// Appends the parts, up to `most` bytes in total.
    fn append(&mut self, id: FileId, parts: &[IoSlice<'_>], most: usize) -> usize {
        let mut left = most.min(usize::try_from(self.room).unwrap_or(usize::MAX));
        let before = left;
        for part in parts {
            let taken = part.len().min(left);
            let content = self.contents.get_mut(&id).expect("it is open");
            content.bytes.extend_from_slice(&part[..taken]);
            left -= taken;
        }
        self.room -= (before - left) as u64;
        before - left
    }

    /// Discards unsynced data, as in a crash of the machine.
    fn crash(&mut self) {
        for change in std::mem::take(&mut self.changes) {
            // A file system may write unsynced changes in any order.
            if self.rng.random_bool(0.5) {
                continue;
            }
            match change {
                NameChange::Create(name, id) => drop(self.durable_names.insert(name, id)),
                NameChange::Remove(name) => drop(self.durable_names.remove(&name)),
                NameChange::Rename(from, to) => {
                    if let Some(id) = self.durable_names.remove(&from) {
                        self.durable_names.insert(to, id);
                    }
                }
            }
        }
        self.names.clone_from(&self.durable_names);
        for (id, content) in &mut self.contents {
            if content.synced < content.bytes.len() {
                // The lost data may include a file that was found to be damaged.
                self.protected.remove(id);
            }
            let len = self.rng.random_range(content.synced..=content.bytes.len());
            content.bytes.truncate(len);
            let mut sector = content.synced;
            while sector < len {
                let end = (sector / SECTOR_BYTES + 1) * SECTOR_BYTES;
                if self.rng.random_bool(0.3) {
                    content.bytes[sector..end.min(len)].fill(0);
                }
                sector = end;
            }
            content.synced = len;
        }
    }
}

impl SimulatedDisk {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            rng: ChaCha8Rng::seed_from_u64(seed),
            contents: BTreeMap::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            changes: Vec::new(),
            next_id: 0,
            faults: Faults::default(),
            good_reads: 0,
            room: u64::MAX,
            until_crash: None,
            protected: BTreeSet::new(),
            damaged: BTreeSet::new(),
            violations: Vec::new(),
        })))
    }

    pub(crate) fn set_faults(&self, faults: Faults) {
        lock(&self.0).faults = faults;
    }

    pub(crate) fn set_room(&self, bytes: u64) {
        lock(&self.0).room = bytes;
    }

    pub(crate) fn crash_after(&self, operations: Option<u32>) {
        lock(&self.0).until_crash = operations;
    }

    pub(crate) fn is_crashed(&self) -> bool {
        lock(&self.0).is_crashed()
    }

    /// Simulates the end of the process or a crash of the machine, and disables all faults. Afterwards, all operations
    /// work again.
    pub(crate) fn end(&self, end: End) {
        let mut state = lock(&self.0);
        (state.until_crash, state.faults) = (None, Faults::default());
        if end == End::Machine {
            state.crash();
        }
        let created = state.changes.iter().filter_map(|change| match change {
            NameChange::Create(_, id) => Some(*id),
            NameChange::Rename(..) | NameChange::Remove(_) => None,
        });
        let named = state.names.values().chain(state.durable_names.values()).copied();
        let used: BTreeSet<FileId> = named.chain(created).collect();
        state.contents.retain(|id, _| used.contains(id));
    }

    pub(crate) fn file_names(&self) -> Vec<String> {
        lock(&self.0).names.keys().cloned().collect()
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        let state = lock(&self.0);
        state.names.get(name).map(|id| state.contents[id].bytes.clone()).unwrap_or_default()
    }

    /// Creates a file with this content, which survives crashes.
    pub(crate) fn put(&self, name: &str, bytes: &[u8]) {
        let mut state = lock(&self.0);
        let id = state.next_id;
        state.next_id += 1;
        state.contents.insert(id, Content { bytes: bytes.to_vec(), synced: bytes.len() });
        state.names.insert(name.to_owned(), id);
        state.durable_names.insert(name.to_owned(), id);
    }

    /// Changes bytes of a file directly, as a fault of the disk would, unless the file has already been damaged.
    /// Returns whether it changed the file.
    pub(crate) fn damage(&self, name: &str, range: Range<usize>, change: impl Fn(&mut [u8])) -> bool {
        let mut state = lock(&self.0);
        let Some(id) = state.names.get(name).copied() else { return false };
        let is_first = state.damaged.insert(id);
        if is_first && let Some(content) = state.contents.get_mut(&id) {
            change(&mut content.bytes[range]);
        }
        is_first
    }

    /// Protects a file that was reported as damaged, if it is in fact damaged. Any later change or removal of the file
    /// is a violation.
    pub(crate) fn protect(&self, name: &str) {
        let mut state = lock(&self.0);
        // A file that could not be read may be undamaged.
        let id = state.names.get(name).copied().filter(|id| state.damaged.contains(id));
        state.protected.extend(id);
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        lock(&self.0).violations.clone()
    }
}

impl Disk for SimulatedDisk {
    fn names(&self) -> io::Result<Vec<String>> {
        let mut state = lock(&self.0);
        state.operate()?;
        Ok(state.names.keys().cloned().collect())
    }

    fn len(&self, name: &str) -> io::Result<u64> {
        let mut state = lock(&self.0);
        state.operate()?;
        let id = state.id(name)?;
        Ok(state.contents[&id].bytes.len() as u64)
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn ReadFile>> {
        let mut state = lock(&self.0);
        state.operate()?;
        Ok(Box::new(OpenFile { disk: self.clone(), id: state.id(name)? }))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn WriteFile>> {
        let mut state = lock(&self.0);
        state.operate()?;
        if state.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let id = state.next_id;
        state.next_id += 1;
        state.contents.insert(id, Content::default());
        state.names.insert(name.to_owned(), id);
        state.changes.push(NameChange::Create(name.to_owned(), id));
        Ok(Box::new(OpenFile { disk: self.clone(), id }))
    }

    fn sync_file(&self, name: &str) -> io::Result<()> {
        let mut state = lock(&self.0);
        state.operate()?;
        let id = state.id(name)?;
        let content = state.contents.get_mut(&id).expect("every name refers to a file");
        content.synced = content.bytes.len();
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = lock(&self.0);
        state.operate()?;
        let id = state.id(from)?;
        state.names.remove(from);
        if let Some(replaced) = state.names.insert(to.to_owned(), id) {
            state.touch(replaced, "replaced");
        }
        state.changes.push(NameChange::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = lock(&self.0);
        state.operate()?;
        let id = state.id(name)?;
        state.touch(id, "removed");
        state.names.remove(name);
        let freed = state.contents[&id].bytes.len() as u64;
        state.room = state.room.saturating_add(freed);
        state.changes.push(NameChange::Remove(name.to_owned()));
        Ok(())
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut state = lock(&self.0);
        state.operate()?;
        state.changes.clear();
        state.durable_names = state.names.clone();
        Ok(())
    }

    fn salt(&self) -> u64 {
        lock(&self.0).rng.random()
    }
}

impl ReadFile for OpenFile {
    fn read_at(&mut self, to: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = lock(&self.disk.0);
        state.operate()?;
        let from = state.contents[&self.id].bytes.get(offset as usize..).unwrap_or_default();
        let read = from.len().min(to.len());
        to[..read].copy_from_slice(&from[..read]);
        let one_in = state.faults.flipped_read;
        if state.good_reads > 0 {
            state.good_reads -= 1;
        } else if read > 0 && state.chance(one_in) {
            state.good_reads = GOOD_READS;
            to[state.rng.random_range(0..read)] ^= 1 << state.rng.random_range(0..8);
        }
        Ok(read)
    }
}

impl WriteFile for OpenFile {
    fn write(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut state = lock(&self.disk.0);
        state.touch(self.id, "written to");
        let len = parts.iter().map(|part| part.len()).sum::<usize>();
        let most = state.rng.random_range(0..=len);
        if let Err(error) = state.operate() {
            // Some of the data may have been written, unless the crash occurred before this operation.
            let most = if state.is_crashed() { 0 } else { most };
            state.append(self.id, parts, most);
            return Err(error);
        }
        let one_in = state.faults.short_write;
        let most = if most > 0 && (state.is_crashed() || state.chance(one_in)) { most } else { len };
        match state.append(self.id, parts, most) {
            0 if len > 0 => Err(io::ErrorKind::StorageFull.into()),
            written => Ok(written),
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut state = lock(&self.disk.0);
        if let Err(error) = state.operate() {
            // Although the sync fails, some of the data may be durable. The rest will never be durable.
            let is_partial = !state.is_crashed() && state.rng.random_bool(0.5);
            if let Some(content) = state.contents.get(&self.id).filter(|_| is_partial) {
                let synced = content.synced..=content.bytes.len();
                let synced = state.rng.random_range(synced);
                state.contents.entry(self.id).and_modify(|content| content.synced = synced);
            }
            return Err(error);
        }
        let content = state.contents.get_mut(&self.id).expect("it is open");
        content.synced = content.bytes.len();
        Ok(())
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        let mut state = lock(&self.disk.0);
        state.operate()?;
        state.touch(self.id, "cut");
        let content = state.contents.get_mut(&self.id).expect("it is open");
        let freed = content.bytes.len() as u64 - len;
        content.bytes.truncate(len as usize);
        content.synced = content.synced.min(content.bytes.len());
        state.room = state.room.saturating_add(freed);
        Ok(())
    }
}
