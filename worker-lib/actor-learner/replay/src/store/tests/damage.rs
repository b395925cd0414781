//! Tests with damaged files.

use super::*;
use crate::store::format::{FRAME_BYTES, HEADER_BYTES, HEADER_COPY_BYTES, Header, SECOND_COPY};
use crate::store::record::framed;
use crate::store::simulation::disk::SimulatedDisk;
use crate::store::simulation::records;

const JOURNAL_1: &[u8] = include_bytes!("../../../tests/fixtures/journal-format-1");
const SNAPSHOT_1: &[u8] = include_bytes!("../../../tests/fixtures/snapshot-format-1");

/// Items, counts and actor windows of a table.
type Contents = (Vec<Item>, Counts, Vec<(u64, Window)>);

/// Restores the tables from a disk that contains the given files.
fn read(files: &[(&str, &[u8])]) -> (Vec<Contents>, Restored, Directory) {
    let disk = SimulatedDisk::new(1);
    files.iter().for_each(|(name, bytes)| disk.put(name, bytes));
    let directory = Directory::on(Path::new("simulated"), Arc::new(disk), None).unwrap();
    let mut tables =
        ["t", "another"].map(|name| Table::new(TableConfig::uniform(name, 1000, 1 << 30), 1).unwrap());
    let restored = restore(&directory, Durability::Sync, &mut tables.iter_mut().collect::<Vec<_>>()).unwrap();
    let contents = |table: &Table| {
        let mut items = table.part(0, usize::MAX, u64::MAX).0;
        items.sort_unstable_by_key(|item| item.key);
        let mut writers: Vec<_> = table.writers.iter().map(|(actor, window)| (actor, *window)).collect();
        writers.sort_unstable_by_key(|(actor, _)| *actor);
        (items, table.counts(), writers)
    };
    (tables.iter().map(contents).collect(), restored, directory)
}

fn small_item(key: u64) -> Item {
    Item { payload: Bytes::from(vec![key as u8; 9]), ..item(key) }
}

/// Returns a record of each kind, for two tables.
fn each_kind() -> Vec<Record> {
    let counts = |inserts| Counts { inserts, samples: 3, deletes: 0 };
    let insert = |table: &str, key| Record::Item {
        table: table.into(),
        counts: counts(key),
        item: Box::new(small_item(key)),
    };
    let window = Box::new(Window { session: 9, newest: 1, inserted: [5; 16] });
    vec![
        insert("another", 1),
        Record::Reset { table: "another".into() },
        Record::Writer { table: "t".into(), actor: 77, window },
        insert("t", 2),
        insert("another", 3),
        insert("t", 4),
        insert("t", 5),
        Record::Sampled { table: "t".into(), counts: counts(5), times: vec![(2, 6), (5, 7)] },
        Record::Priorities { table: "t".into(), counts: counts(5), priorities: vec![(4, 0.5)] },
        Record::Removed { table: "t".into(), counts: counts(5), keys: vec![5] },
        insert("t", 6),
        Record::Counts { table: "another".into(), counts: counts(8) },
        Record::End { items: 4 },
    ]
}

/// Encodes a file that contains the given records.
fn file(records: &[Record]) -> Vec<u8> {
    let mut bytes = Header::new(42).emit().to_vec();
    for record in records {
        let payload = match record {
            Record::Item { item, .. } => Some(Payload::new(item.payload.clone())),
            _ => None,
        };
        for part in framed(record, payload.as_ref(), 42, bytes.len() as u64).0 {
            bytes.extend_from_slice(&part);
        }
    }
    bytes
}

/// Flips each bit of a file in turn. Each time, checks that all records are restored except the one that contains the
/// bit.
fn flip_each_bit(name: &str) {
    let all = each_kind();
    let whole = file(&all);
    let places: Vec<_> = records(&whole).into_iter().map(|(place, _)| place).collect();
    assert_eq!(places.len(), all.len());
    let without = |at: usize| {
        let others: Vec<Record> = all
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != at)
            .map(|(_, record)| record.clone())
            .collect();
        read(&[(name, &file(&others))]).0
    };
    let expected: Vec<Vec<Contents>> = (0..all.len()).map(without).collect();
    let (untouched, restored, _) = read(&[(name, &whole)]);
    assert_eq!((restored.damaged_files, restored.damaged_bytes, restored.torn_bytes), (0, 0, 0));
    // The area between the copies of the header is unused.
    let header = (0..=HEADER_COPY_BYTES).chain(SECOND_COPY - 1..HEADER_BYTES);
    for at in header.chain(HEADER_BYTES..whole.len()) {
        for bit in 0..8 {
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << bit;
            let (found, restored, directory) = read(&[(name, &flipped)]);
            let hit = places.iter().position(|place| place.contains(&at));
            assert_eq!(
                &found,
                hit.map_or(&untouched, |hit| &expected[hit]),
                "{name}: bit {bit} of byte {at}"
            );
            let is_reported = (restored.damaged_files, restored.damaged_bytes > 0) == (1, true);
            assert_eq!(is_reported, hit.is_some(), "{name}: bit {bit} of byte {at}");
            assert_eq!(lock(&directory.damaged).contains(name), hit.is_some());
        }
    }
}

#[test]
fn a_flipped_bit_in_a_journal_costs_one_record_and_is_reported() {
    flip_each_bit("journal-0000000000000003");
}

#[test]
fn a_flipped_bit_in_a_snapshot_costs_one_record_and_is_reported() {
    flip_each_bit("snapshot-0000000000000003");
}

#[test]
fn a_lost_sector_costs_only_the_records_in_it() {
    let records: Vec<Record> = (1..=60)
        .map(|key| Record::Item {
            table: "t".into(),
            counts: Counts::default(),
            item: Box::new(small_item(key)),
        })
        .collect();
    let whole = file(&records);
    let places: Vec<_> = simulation::records(&whole).into_iter().map(|(place, _)| place).collect();
    for start in (0..whole.len()).step_by(512) {
        let end = whole.len().min(start + 512);
        for filling in [0, 0x5a] {
            let mut damaged = whole.clone();
            damaged[start..end].fill(filling);
            let (found, _, directory) = read(&[("journal-0000000000000003", &damaged)]);
            let is_hit = |key: &u64| {
                let place = &places[*key as usize - 1];
                place.start < end && start < place.end
            };
            let expected: Vec<u64> = (1..=60).filter(|key| !is_hit(key)).collect();
            let keys: Vec<u64> = found[0].0.iter().map(|item| item.key).collect();
            assert_eq!(keys, expected, "{start}..{end} are {filling}");
            assert_eq!(!lock(&directory.damaged).is_empty(), expected.len() < 60);
        }
    }
}

#[test]
fn a_damaged_frame_is_skipped_in_linear_time() {
    // This payload consists of frame headers, each of which claims the rest of the file.
    let claims: Vec<u8> =
        (0..250_000).flat_map(|_| [0xf5, b'R', b'J', b'1', 0, 0, 16, 0, 1, 2, 3, 4, 5, 6, 7, 8]).collect();
    let evil = Item { payload: claims.into(), ..item(1) };
    let record =
        |item: Item| Record::Item { table: "t".into(), counts: Counts::default(), item: Box::new(item) };
    let mut bytes = file(&[record(evil), record(small_item(2))]);
    bytes[HEADER_BYTES + FRAME_BYTES - 1] ^= 1;
    let (found, restored, _) = read(&[("journal-0000000000000000", &bytes)]);
    assert_eq!((found[0].0.len(), found[0].0[0].key), (1, 2));
    assert!(restored.damaged_bytes > 4_000_000);
}

#[test]
fn files_in_format_1_are_read() {
    let files = [("snapshot-0000000000000001", SNAPSHOT_1), ("journal-0000000000000001", JOURNAL_1)];
    let (found, restored, _) = read(&files);
    let expected = |key| match key {
        1 => Item { times_sampled: 5, ..item(key) },
        2 => Item { times_sampled: 6, priority: 0.5, ..item(key) },
        _ => item(key),
    };
    assert_eq!(found[0].0, [1, 2, 4, 5, 6, 8].map(expected));
    assert_eq!(found[0].1, Counts { inserts: 8, samples: 4, deletes: 2 });
    assert_eq!((restored.damaged_files, restored.torn_bytes, restored.next_number), (0, 0, 2));
}

#[test]
fn damage_to_files_in_format_1_is_reported() {
    let name = "journal-0000000000000001";
    // A file in format 1 stores the name of each table only once. If the name is damaged, the items of the table are
    // lost, and the file is kept.
    for at in (48..JOURNAL_1.len()).filter(|at| is_near_a_frame(JOURNAL_1, *at) || at % 61 == 0) {
        let mut flipped = JOURNAL_1.to_vec();
        flipped[at] ^= 1 << (at % 8);
        let (_, restored, directory) = read(&[("snapshot-0000000000000001", SNAPSHOT_1), (name, &flipped)]);
        assert!(restored.items >= 5 && restored.damaged_files == 1, "byte {at}");
        assert!(lock(&directory.damaged).contains(name), "byte {at}");
    }
}

#[test]
fn a_damaged_file_is_kept_under_another_name() {
    let (folder, directory, mut bytes) = small_journal();
    let last = bytes.len() - 1;
    bytes[last] ^= 4;
    std::fs::write(path(&directory, 0), &bytes).unwrap();
    let (table, first) = restored(&directory);
    assert_eq!((table.len(), first.damaged_files, directory.kept_files()), (9, 1, 0));
    let table = [Arc::new(Mutex::new(table))];
    write_snapshot(&directory, first.next_number, &table, &mut Pace::new(&mut || {})).unwrap();
    assert_eq!(std::fs::read(folder.path().join("journal-0000000000000000.damaged")).unwrap(), bytes);
    assert_eq!(directory.kept_files(), 1);
    // The damaged file is not read again, and its number is not reused.
    let (table, second) = restored(&directory);
    assert_eq!((table.len(), second.damaged_files, second.next_number), (9, 0, 2));
    std::fs::remove_file(folder.path().join("snapshot-0000000000000001")).unwrap();
    assert_eq!(restored(&directory).1.next_number, 1);
}
