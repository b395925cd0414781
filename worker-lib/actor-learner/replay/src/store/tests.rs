mod damage;

use super::*;
use bytes::Bytes;
use proptest::prelude::*;
use std::sync::{Arc, Mutex};

use crate::table::{Counts, Item, Origin, Table, TableConfig, Window};

fn item(key: u64) -> Item {
    // Payloads of 5,000 bytes are written separately, after their record; those of 20 bytes are copied into it.
    let len = if key.is_multiple_of(4) { 5000 } else { 20 };
    Item {
        key,
        priority: key as f64 / 3.0,
        times_sampled: 2,
        version: 7 * key,
        origin: Origin { actor: key % 3, session: 9, seq: key / 3 },
        inserted_ms: 1000 + key,
        payload: Bytes::from(vec![key as u8; len]),
    }
}

fn table() -> Table {
    Table::new(TableConfig::uniform("t", 1000, 1 << 30), 1).unwrap()
}

fn item_record(key: u64) -> Record {
    Record::Item {
        table: "t".into(),
        counts: Counts { inserts: key, samples: 3, deletes: 0 },
        item: Box::new(item(key)),
    }
}

fn open(directory: &Arc<Directory>, number: u64) -> Journal {
    Journal::open(Arc::clone(directory), number, Durability::Sync).unwrap()
}

fn append_items(journal: &Journal, keys: std::ops::RangeInclusive<u64>) -> Vec<Lsn> {
    let append = |key| journal.append(&item_record(key), Some(&Payload::new(item(key).payload)));
    keys.map(append).collect()
}

/// Returns the path of a segment.
fn path(directory: &Directory, number: u64) -> PathBuf {
    directory.path().join(Directory::journal(number))
}

fn restored(directory: &Directory) -> (Table, Restored) {
    let mut table = table();
    let restored = restore(directory, Durability::Write, &mut [&mut table]).unwrap();
    (table, restored)
}

fn keys(table: &Table) -> Vec<u64> {
    let mut keys: Vec<u64> = table.part(0, usize::MAX, u64::MAX).0.iter().map(|item| item.key).collect();
    keys.sort_unstable();
    keys
}

/// Creates a directory with one segment that contains ten items. Returns the directory, and the bytes of the segment.
fn small_journal() -> (tempfile::TempDir, Arc<Directory>, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let directory = Arc::new(Directory::open(folder.path()).unwrap());
    append_items(&open(&directory, 0), 1..=10);
    let bytes = std::fs::read(path(&directory, 0)).unwrap();
    (folder, directory, bytes)
}

/// Returns whether a record begins shortly before `at`: within the length of a short record.
fn is_near_a_frame(bytes: &[u8], at: usize) -> bool {
    bytes[at.saturating_sub(130)..(at + 2).min(bytes.len())]
        .windows(4)
        .any(|window| window == format::RECORD_MAGIC)
}

#[test]
fn appended_records_are_restored() {
    let (_folder, directory, bytes) = small_journal();
    let (table, restored) = restored(&directory);
    assert_eq!(keys(&table), (1..=10).collect::<Vec<_>>());
    (1..=10).for_each(|key| assert_eq!(table.get(key), Some(&item(key))));
    assert_eq!((restored.items, restored.damaged_bytes, restored.next_number), (10, 0, 1));
    assert_eq!((restored.journal_bytes, restored.next_key), (bytes.len() as u64, 11));
    assert_eq!(table.counts(), Counts { inserts: 10, samples: 3, deletes: 0 });
    assert_eq!(table.writers.has(Origin { actor: 1, session: 9, seq: 3 }), Ok(true));
    assert_eq!(table.writers.has(Origin { actor: 1, session: 9, seq: 4 }), Ok(false));
}

#[test]
fn changes_of_items_are_restored() {
    let (_folder, directory, _) = small_journal();
    let counts = Counts { inserts: 10, samples: 8, deletes: 2 };
    {
        let journal = open(&directory, 1);
        journal.append(&Record::Sampled { table: "t".into(), counts, times: vec![(1, 5), (2, 6)] }, None);
        journal.append(
            &Record::Priorities { table: "t".into(), counts, priorities: vec![(2, 0.5), (99, 1.0)] },
            None,
        );
        journal.append(&Record::Removed { table: "t".into(), counts, keys: vec![3, 9] }, None);
    }
    let (table, _) = restored(&directory);
    assert_eq!(keys(&table), [1, 2, 4, 5, 6, 7, 8, 10]);
    assert_eq!(table.counts(), counts);
    let item = table.get(2).unwrap();
    assert_eq!((item.times_sampled, item.priority), (6, 0.5));
    {
        let journal = open(&directory, 2);
        journal.append(&Record::Reset { table: "t".into() }, None);
        append_items(&journal, 20..=20);
    }
    assert_eq!(keys(&restored(&directory).0), [20]);
}

#[test]
fn a_truncated_journal_restores_all_complete_records() {
    let (_folder, directory, bytes) = small_journal();
    let path = path(&directory, 0);
    let mut most = 0;
    // Test every byte of the frames and the short payloads, and some bytes of the long ones.
    for len in (0..bytes.len()).filter(|len| is_near_a_frame(&bytes, *len) || len % 61 == 0) {
        std::fs::write(&path, &bytes[..len]).unwrap();
        let (table, first) = restored(&directory);
        let found = keys(&table);
        assert_eq!(found, (1..=found.len() as u64).collect::<Vec<_>>(), "cut at {len}");
        assert!(found.len() >= most, "cut at {len}");
        most = found.len();
        found.iter().for_each(|key| assert_eq!(table.get(*key), Some(&item(*key))));
        // A truncated file is never reported as damaged. Its incomplete last record, if any, is reported as torn.
        let is_header = (format::HEADER_COPY_BYTES..format::HEADER_BYTES).contains(&len);
        assert!(first.damaged_bytes == 0 && first.damaged_files == 0, "cut at {len}");
        let ends_a_record = len == 0 || bytes[len..].starts_with(&format::RECORD_MAGIC);
        assert_eq!(first.torn_bytes > 0, !is_header && !ends_a_record, "cut at {len}");
        assert_eq!(std::fs::read(&path).unwrap(), &bytes[..len], "cut at {len}");
    }
    assert_eq!(most, 9);
}

#[test]
fn a_record_inside_a_payload_is_not_restored() {
    let folder = tempfile::tempdir().unwrap();
    let directory = Arc::new(Directory::open(folder.path()).unwrap());
    append_items(&open(&directory, 0), 1..=4);
    let image = std::fs::read(path(&directory, 0)).unwrap();
    {
        let journal = open(&directory, 1);
        let mut evil = item(50);
        evil.payload = Bytes::from(image);
        let payload = Payload::new(evil.payload.clone());
        journal.append(
            &Record::Item { table: "t".into(), counts: Counts::default(), item: Box::new(evil) },
            Some(&payload),
        );
    }
    std::fs::remove_file(path(&directory, 0)).unwrap();
    let path = path(&directory, 1);
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(keys(&restored(&directory).0), [] as [u64; 0]);
}

#[tokio::test]
async fn a_snapshot_replaces_the_journal_before_it() {
    let (_folder, directory, _) = small_journal();
    let (table, first) = restored(&directory);
    let table = Arc::new(Mutex::new(table));
    let journal = open(&directory, first.next_number);
    append_items(&journal, 11..=12);
    (11..=12).for_each(|key| assert!(table.lock().unwrap().insert(item(key)).is_empty()));
    let (number, _) = journal.rotate().await;
    // These items are appended after the rotation and before the snapshot, so both contain them.
    append_items(&journal, 13..=13);
    table.lock().unwrap().insert(item(13));
    let snapshot =
        write_snapshot(&directory, number, std::slice::from_ref(&table), &mut Pace::new(&mut || {})).unwrap();
    assert_eq!(snapshot.items, 13);
    append_items(&journal, 14..=14);
    let counts = Counts { inserts: 14, samples: 3, deletes: 1 };
    journal.append(&Record::Removed { table: "t".into(), counts, keys: vec![5] }, None);
    drop(journal);
    assert_eq!(directory.numbers("snapshot").unwrap(), [number]);
    assert_eq!(directory.numbers("journal").unwrap(), [number]);
    let (again, restored) = restored(&directory);
    assert_eq!(keys(&again), [1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
    assert_eq!((again.counts(), restored.damaged_bytes), (counts, 0));
    assert_eq!(again.writers.has(item(5).origin), Ok(true));
}

#[test]
fn an_unfinished_snapshot_is_ignored_and_removed() {
    let (folder, directory, _) = small_journal();
    let unfinished = folder.path().join("snapshot-0000000000000001.unfinished");
    std::fs::write(&unfinished, b"anything").unwrap();
    assert_eq!(restored(&directory).0.len(), 10);
    drop(directory);
    let directory = Directory::open(folder.path()).unwrap();
    assert!(!unfinished.exists());
    assert_eq!(restored(&directory).0.len(), 10);
}

#[test]
fn items_of_an_unconfigured_table_are_not_lost_silently() {
    let (_folder, directory, _) = small_journal();
    let mut other = Table::new(TableConfig::uniform("other", 10, 1 << 20), 1).unwrap();
    let error = restore(&directory, Durability::Sync, &mut [&mut other]).unwrap_err().to_string();
    assert!(error.contains("contains records for table \"t\", which is not configured"), "{error}");
}

#[test]
fn a_data_directory_has_one_owner() {
    let folder = tempfile::tempdir().unwrap();
    let _first = Directory::open(folder.path()).unwrap();
    assert!(matches!(Directory::open(folder.path()), Err(StoreError::InUse { .. })));
}

#[test]
fn a_smaller_table_keeps_the_items_that_its_remover_would_keep() {
    let (_folder, directory, _) = small_journal();
    let mut table = Table::new(TableConfig::uniform("t", 4, 1 << 20), 1).unwrap();
    restore(&directory, Durability::Sync, &mut [&mut table]).unwrap();
    assert_eq!(keys(&table), [7, 8, 9, 10]);
    assert_eq!(table.counts().size(), 4);
}

#[tokio::test]
async fn records_that_cannot_be_written_become_durable_by_a_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let directory = Arc::new(Directory::open(folder.path()).unwrap());
    let journal = open(&directory, 0);
    journal.durable(append_items(&journal, 1..=1)[0]).await.unwrap();
    // The next segment cannot be created because its file already exists.
    std::fs::write(path(&directory, 1), b"").unwrap();
    let (_, recoverable_failures) = journal.rotate().await;
    assert_eq!(recoverable_failures, None);
    let lost = append_items(&journal, 2..=2)[0];
    let failure = journal.durable(lost).await.unwrap_err();
    assert!(failure.to_string().contains("cannot begin"), "{failure}");
    assert_eq!(journal.room().await, Err(failure.clone()));
    // The following segment can be created, but does not contain the lost records.
    let (number, recoverable_failures) = journal.rotate().await;
    assert_eq!(journal.durable(lost).await, Err(failure));
    let table = Arc::new(Mutex::new(table()));
    (1..=2).for_each(|key| assert!(table.lock().unwrap().insert(item(key)).is_empty()));
    write_snapshot(&directory, number, &[table], &mut Pace::new(&mut || {})).unwrap();
    assert!(journal.recover(recoverable_failures.unwrap()));
    assert_eq!(journal.durable(lost).await, Ok(()));
    journal.durable(append_items(&journal, 3..=3)[0]).await.unwrap();
    drop(journal);
    assert_eq!(keys(&restored(&directory).0), [1, 2, 3]);
}

fn records() -> impl Strategy<Value = Record> {
    let counts = (any::<u64>(), any::<u64>(), any::<u64>()).prop_map(|(inserts, samples, deletes)| Counts {
        inserts,
        samples,
        deletes,
    });
    let table = "[a-z]{1,20}".prop_map(|name| TableName::from(&*name));
    let changed = (table.clone(), counts.clone());
    prop_oneof![
        (changed.clone(), 0_u64..1 << 40).prop_map(|((table, counts), key)| {
            Record::Item { table, counts, item: Box::new(Item { payload: Bytes::new(), ..item(key) }) }
        }),
        (changed.clone(), prop::collection::vec(any::<u64>(), 0..9))
            .prop_map(|((table, counts), keys)| Record::Removed { table, counts, keys }),
        (changed.clone(), prop::collection::vec(any::<(u64, u32)>(), 0..9))
            .prop_map(|((table, counts), times)| Record::Sampled { table, counts, times }),
        (changed.clone(), prop::collection::vec((any::<u64>(), -1e9..1e9), 0..9))
            .prop_map(|((table, counts), priorities)| Record::Priorities { table, counts, priorities }),
        table.clone().prop_map(|table| Record::Reset { table }),
        (table, any::<u64>(), any::<[u64; 16]>()).prop_map(|(table, actor, inserted)| {
            Record::Writer { table, actor, window: Box::new(Window { session: 3, newest: 77, inserted }) }
        }),
        changed.prop_map(|(table, counts)| Record::Counts { table, counts }),
        any::<u64>().prop_map(|items| Record::End { items }),
    ]
}

proptest! {
    #[test]
    fn records_round_trip(record in records()) {
        prop_assert_eq!(Record::parse(&record.emit()), Some(record));
    }

    #[test]
    fn arbitrary_bytes_cause_no_panic_in_the_record_reader(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Record::parse(&bytes);
    }
}
