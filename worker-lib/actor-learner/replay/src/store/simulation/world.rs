//! Simulated world: the store of a shard and its clients on a simulated disk. A seed determines the operations of the
//! clients and the faults.

use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::disk::{End, Faults, SimulatedDisk};
use super::model::{Entry, Model, State, version};
use crate::lock;
use crate::store::journal::{Journal, Lsn};
use crate::store::record::{Payload, Record};
use crate::store::snapshot::{Pace, write_snapshot};
use crate::store::writer::Writer;
use crate::store::{Directory, Durability, StoreError, restore};
use crate::table::{Item, Origin, Table, TableConfig};

/// Number of client operations and faults before the world runs without further faults.
const STEPS: u32 = 60;
const ACTOR: u64 = 4;
/// Maximum number of consecutive starts with faults. The next start then has no faults.
const STARTS_MAX: u32 = 3;

/// Counts of the events in a world.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Summary {
    pub(super) acknowledged: u64,
    pub(super) ends: u64,
    pub(super) damages: u64,
    pub(super) failures: u64,
    pub(super) recovered: u64,
    pub(super) snapshots: u64,
    pub(super) kept_files: u64,
}

/// Acknowledgement that a client receives when a record becomes durable.
enum Acknowledgement {
    Insert { seq: u64, evicted: Vec<u64> },
    Removal(Vec<u64>),
    Priority { seq: u64, place: usize },
}

/// State of one shard process.
struct Process {
    directory: Arc<Directory>,
    table: Arc<Mutex<Table>>,
    journal: Journal,
    writer: Writer,
}

pub(super) struct World {
    rng: ChaCha8Rng,
    disk: SimulatedDisk,
    durability: Durability,
    config: TableConfig,
    segment_bytes: u64,
    process: Process,
    pending: Vec<(Lsn, Acknowledgement)>,
    model: Model,
    next_seq: u64,
    next_key: u64,
    summary: Summary,
}

/// Runs the simulated world of a seed.
///
/// # Errors
/// Returns a description of the guarantee that was violated.
pub(super) fn run(seed: u64) -> Result<Summary, String> {
    let mut world = World::new(seed)?;
    for _ in 0..STEPS {
        world.step()?;
    }
    world.conclude()?;
    Ok(world.summary)
}

fn open(
    disk: &SimulatedDisk,
    durability: Durability,
    config: &TableConfig,
    segment_bytes: u64,
) -> Result<(Process, u64, bool), StoreError> {
    let directory = Directory::on(Path::new("simulated"), Arc::new(disk.clone()), None)?;
    let mut table = Table::new(config.clone(), 1).expect("the configuration is valid");
    let restored = restore(&directory, durability, &mut [&mut table])?;
    let directory = Arc::new(directory);
    let (journal, writer) =
        Journal::unattended(Arc::clone(&directory), restored.next_number, durability, segment_bytes);
    let is_reported = !lock(&directory.damaged).is_empty();
    let table = Arc::new(Mutex::new(table));
    Ok((Process { directory, table, journal, writer }, restored.next_key, is_reported))
}

impl World {
    fn new(seed: u64) -> Result<Self, String> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let disk = SimulatedDisk::new(rng.random());
        let durability = if rng.random_bool(0.7) { Durability::Sync } else { Durability::Write };
        let config = TableConfig {
            max_times_sampled: rng.random_range(0..3),
            ..TableConfig::uniform("t", if rng.random_bool(0.5) { 8 } else { 1000 }, 1 << 30)
        };
        let segment_bytes = if rng.random_bool(0.5) { 5_000 } else { 1 << 20 };
        let (process, next_key, _) =
            open(&disk, durability, &config, segment_bytes).map_err(|error| error.to_string())?;
        Ok(Self {
            rng,
            disk,
            durability,
            config,
            segment_bytes,
            process,
            pending: Vec::new(),
            model: Model::default(),
            next_seq: 0,
            next_key,
            summary: Summary::default(),
        })
    }

    fn step(&mut self) -> Result<(), String> {
        match self.rng.random_range(0..100) {
            0..60 => self.client(),
            60..80 => self.pump(),
            80..87 => self.snapshot(),
            87..90 => self.disk.set_room(self.rng.random_range(0..12_000)),
            90..93 => self.disk.set_room(u64::MAX),
            93..96 => self.faults(),
            96..98 => {
                let operations = self.rng.random_range(1..40);
                self.disk.crash_after(Some(operations));
            }
            _ => return self.restart(true),
        }
        if self.disk.is_crashed() {
            return self.restart(true);
        }
        self.violations()
    }

    fn violations(&self) -> Result<(), String> {
        self.disk.violations().first().map_or(Ok(()), |violation| Err(violation.clone()))
    }

    fn faults(&mut self) {
        let pick = |rng: &mut ChaCha8Rng, from: [u32; 3]| from[rng.random_range(0..3)];
        self.disk.set_faults(Faults {
            failure: pick(&mut self.rng, [0, 60, 12]),
            short_write: pick(&mut self.rng, [0, 3, 3]),
            flipped_read: pick(&mut self.rng, [0, 3, 3]),
        });
    }

    /// Performs one operation of a client.
    fn client(&mut self) {
        match self.rng.random_range(0..20) {
            0..11 => self.insert(),
            11..14 => self.sample(),
            14..16 => self.delete(),
            16..19 => self.set_priority(),
            _ if self.rng.random_bool(0.2) => self.reset(),
            _ => {}
        }
    }

    fn is_refused(&self) -> bool {
        self.process.journal.failure().is_some()
    }

    /// Inserts an item as `Shard::try_insert` does. The item is new, or its earlier insert was not acknowledged.
    fn insert(&mut self) {
        if self.is_refused() {
            return;
        }
        let again = self.model.entries.iter().find(|(_, entry)| entry.inserted == State::Perhaps);
        let seq = match again.map(|(seq, _)| *seq) {
            Some(seq) if self.rng.random_bool(0.5) => seq,
            _ => self.new_item(),
        };
        let origin = Origin { actor: ACTOR, session: 1, seq };
        let mut table = lock(&self.process.table);
        let entry = self.model.entries.get_mut(&seq).expect("the entry exists");
        if table.writers.has(origin) == Ok(true) {
            let lsn = self.process.journal.appended();
            self.pending.push((lsn, Acknowledgement::Insert { seq, evicted: Vec::new() }));
            return;
        }
        entry.insert_again();
        let (key, payload) = (self.next_key, Payload::new(entry.payload.clone()));
        self.next_key += 1;
        self.model.by_key.insert(key, seq);
        entry.key = key;
        let item = Item {
            key,
            priority: entry.priority(),
            times_sampled: 0,
            version: version(seq),
            origin,
            inserted_ms: key,
            payload: payload.bytes.clone(),
        };
        let evicted = table.insert(item.clone());
        let counts = table.counts();
        let record = Record::Item { table: "t".into(), counts, item: Box::new(item) };
        let mut lsn = self.process.journal.append(&record, Some(&payload));
        if !evicted.is_empty() {
            let record = Record::Removed { table: "t".into(), counts, keys: evicted.clone() };
            lsn = self.process.journal.append(&record, None);
        }
        let evicted = self.model.seqs(&evicted);
        self.model.remove(&evicted, State::Perhaps);
        self.pending.push((lsn, Acknowledgement::Insert { seq, evicted }));
    }

    fn new_item(&mut self) -> u64 {
        let seq = self.next_seq;
        self.next_seq += 1;
        // Some payloads are so long that the journal writes them as a separate part.
        let len = if self.rng.random_bool(0.05) { 4_200 } else { self.rng.random_range(0..60) };
        let payload: Bytes = (0..len).map(|at: u64| (seq * 31 + at) as u8).collect();
        self.model.entries.insert(seq, Entry::new(payload, self.rng.random_range(0.0..9.0)));
        seq
    }

    /// Samples as `Shard::sample` does. A draw is answered before it is durable.
    fn sample(&mut self) {
        let mut table = lock(&self.process.table);
        let Ok(sampled) = table.sample() else { return };
        let (counts, item) = (table.counts(), sampled.item);
        let record = if sampled.is_removed {
            let seqs = self.model.seqs(&[item.key]);
            self.model.remove(&seqs, State::Perhaps);
            Record::Removed { table: "t".into(), counts, keys: vec![item.key] }
        } else {
            Record::Sampled { table: "t".into(), counts, times: vec![(item.key, item.times_sampled)] }
        };
        self.process.journal.append(&record, None);
    }

    /// Returns the key of a random item of the table, or `None` if the table is empty.
    fn some_key(&mut self) -> Option<u64> {
        let items = lock(&self.process.table).part(0, usize::MAX, u64::MAX).0;
        if items.is_empty() { None } else { Some(items[self.rng.random_range(0..items.len())].key) }
    }

    fn delete(&mut self) {
        let Some(key) = self.some_key().filter(|_| !self.is_refused()) else { return };
        let mut table = lock(&self.process.table);
        table.delete(key);
        let record = Record::Removed { table: "t".into(), counts: table.counts(), keys: vec![key] };
        let lsn = self.process.journal.append(&record, None);
        let seqs = self.model.seqs(&[key]);
        self.model.remove(&seqs, State::Perhaps);
        self.pending.push((lsn, Acknowledgement::Removal(seqs)));
    }

    fn set_priority(&mut self) {
        let Some(key) = self.some_key().filter(|_| !self.is_refused()) else { return };
        let (priority, seq) = (self.rng.random_range(0.0..9.0), self.model.by_key[&key]);
        let mut table = lock(&self.process.table);
        table.set_priority(key, priority).expect("any finite priority is accepted");
        let priorities = vec![(key, priority)];
        let record = Record::Priorities { table: "t".into(), counts: table.counts(), priorities };
        let lsn = self.process.journal.append(&record, None);
        let place = self.model.entries.get_mut(&seq).expect("it is in the table").set_priority(priority);
        self.pending.push((lsn, Acknowledgement::Priority { seq, place }));
    }

    fn reset(&mut self) {
        if self.is_refused() {
            return;
        }
        let mut table = lock(&self.process.table);
        let keys: Vec<u64> = table.part(0, usize::MAX, u64::MAX).0.into_iter().map(|item| item.key).collect();
        table.reset();
        let lsn = self.process.journal.append(&Record::Reset { table: "t".into() }, None);
        let seqs = self.model.seqs(&keys);
        self.model.remove(&seqs, State::Perhaps);
        self.pending.push((lsn, Acknowledgement::Removal(seqs)));
    }

    /// Lets the journal write its queued records, and sends the clients acknowledgements for the records that are
    /// durable.
    fn pump(&mut self) {
        let failures = self.process.journal.failures();
        self.process.journal.write(&mut self.process.writer);
        self.summary.failures += self.process.journal.failures() - failures;
        for (lsn, acknowledgement) in std::mem::take(&mut self.pending) {
            match self.process.journal.is_durable(lsn) {
                Ok(true) => self.acknowledge(acknowledgement),
                Ok(false) => self.pending.push((lsn, acknowledgement)),
                // The client does not learn the outcome of its request.
                Err(_) => {}
            }
        }
    }

    fn acknowledge(&mut self, acknowledgement: Acknowledgement) {
        self.summary.acknowledged += 1;
        match acknowledgement {
            Acknowledgement::Insert { seq, evicted } => {
                self.model.entries.entry(seq).and_modify(|entry| entry.inserted = State::Surely);
                self.model.remove(&evicted, State::Surely);
            }
            Acknowledgement::Removal(seqs) => self.model.remove(&seqs, State::Surely),
            Acknowledgement::Priority { seq, place } => {
                self.model.entries.entry(seq).and_modify(|entry| entry.acknowledge_priority(place));
            }
        }
    }

    /// Writes a snapshot as `Shard::snapshot` does, while clients continue to send requests.
    fn snapshot(&mut self) {
        let rotated = self.process.journal.begin_rotation();
        self.pump();
        let (recoverable_failures, was_failed) =
            (self.process.journal.recoverable_failures(), self.is_refused());
        let directory = Arc::clone(&self.process.directory);
        let table = Arc::clone(&self.process.table);
        let mut between = || {
            for _ in 0..self.rng.random_range(0..3) {
                self.client();
            }
            if self.rng.random_bool(0.3) {
                self.pump();
            }
        };
        let mut pace = Pace { items: 2, bytes: 1 << 20, between: &mut between };
        let written = write_snapshot(&directory, rotated.number, &[table], &mut pace);
        if written.is_ok() {
            self.summary.snapshots += 1;
            if let Some(recoverable_failures) = recoverable_failures {
                let is_well = self.process.journal.recover(recoverable_failures);
                self.summary.recovered += u64::from(was_failed && is_well);
            }
        }
    }

    /// Ends the process, and starts a new one that restores the directory.
    fn restart(&mut self, has_faults: bool) -> Result<(), String> {
        self.pending.clear();
        for start in 0..=STARTS_MAX {
            let is_machine = self.durability == Durability::Sync && self.rng.random_bool(0.6);
            self.disk.end(if is_machine { End::Machine } else { End::Process });
            self.summary.ends += 1;
            if has_faults && start == 0 && self.rng.random_bool(0.3) {
                self.damage();
            }
            if has_faults && start < STARTS_MAX && self.rng.random_bool(0.4) {
                self.faults();
            }
            match open(&self.disk, self.durability, &self.config, self.segment_bytes) {
                Ok((process, next_key, is_reported)) => {
                    self.process = process;
                    self.next_key = self.next_key.max(next_key);
                    return self.check(is_reported);
                }
                Err(StoreError::Io { .. }) if start < STARTS_MAX => {}
                Err(error) => return Err(format!("starting without faults failed: {error}")),
            }
        }
        Ok(())
    }

    fn check(&mut self, is_reported: bool) -> Result<(), String> {
        for name in &*lock(&self.process.directory.damaged) {
            self.disk.protect(name);
        }
        self.model.check(&lock(&self.process.table), is_reported)?;
        self.violations()
    }

    /// Damages a bit or a sector of a file that the store uses.
    fn damage(&mut self) {
        let mut names = self.disk.file_names();
        names.retain(|name| !name.contains('.'));
        if names.is_empty() {
            return;
        }
        let name = &names[self.rng.random_range(0..names.len())];
        let file = self.disk.bytes(name);
        if file.is_empty() {
            return;
        }
        let at = self.rng.random_range(0..file.len());
        let (bit, kind) = (1 << self.rng.random_range(0..8), self.rng.random_range(0..3));
        let sector = at / 512 * 512..file.len().min(at / 512 * 512 + 512);
        let range = if kind == 0 { at..at + 1 } else { sector };
        let is_done = self.disk.damage(name, range.clone(), |bytes| match kind {
            0 => bytes[0] ^= bit,
            1 => bytes.fill(0),
            _ => bytes.iter_mut().for_each(|byte| *byte = byte.wrapping_mul(167).wrapping_add(13)),
        });
        if is_done {
            self.summary.damages += 1;
            self.model.damage(&file, &range);
        }
    }

    /// Stops all faults, and checks that all operations work again.
    fn conclude(&mut self) -> Result<(), String> {
        self.restart(false)?;
        self.disk.set_room(u64::MAX);
        self.snapshot();
        if let Some(failure) = self.process.journal.failure() {
            return Err(format!("without faults: {failure}"));
        }
        let before = self.summary.acknowledged;
        self.insert();
        self.pump();
        if self.summary.acknowledged <= before {
            return Err("an insert is not acknowledged although there are no faults".to_owned());
        }
        self.restart(false)?;
        let names = self.disk.file_names();
        if let Some(name) = names.iter().find(|name| name.ends_with(".unfinished")) {
            return Err(format!("{name} was not removed"));
        }
        self.summary.kept_files = names.iter().filter(|name| name.ends_with(".damaged")).count() as u64;
        self.violations()
    }
}
