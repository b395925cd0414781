//! Changes of tables as bytes.

use bytes::Bytes;

use super::format::u64_at;
use crate::limits::SEQ_WINDOW;
use crate::table::{Counts, Item, Origin, Window};

/// A payload with its checksum, which is computed before anything is locked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Payload {
    pub(crate) bytes: Bytes,
    pub(crate) crc: u32,
}

impl Payload {
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self { crc: crc32c::crc32c(&bytes), bytes }
    }
}

/// A change. `table` is the number that a [`Record::Table`] of the same file gives to a name; `counts` are those of the
/// table after the change.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Record {
    /// From here on the number stands for the table.
    Table { table: u16, name: String },
    /// The item is in the table. Its payload follows it.
    Item { table: u16, counts: Counts, item: Box<Item> },
    /// The items are not, any more.
    Removed { table: u16, counts: Counts, keys: Vec<u64> },
    /// The items have been drawn so often.
    Sampled { table: u16, counts: Counts, times: Vec<(u64, u32)> },
    /// The items have these priorities.
    Priorities { table: u16, counts: Counts, priorities: Vec<(u64, f64)> },
    /// The table is empty.
    Reset { table: u16 },
    /// What the table knows of an actor.
    Writer { table: u16, actor: u64, window: Box<Window> },
    /// The counts of the table.
    Counts { table: u16, counts: Counts },
    /// A snapshot is complete.
    End { items: u64 },
}

const TABLE: u8 = 1;
const ITEM: u8 = 2;
const REMOVED: u8 = 3;
const SAMPLED: u8 = 4;
const PRIORITIES: u8 = 5;
const RESET: u8 = 6;
const WRITER: u8 = 7;
const COUNTS: u8 = 8;
const END: u8 = 9;

impl Record {
    /// The body without an item's payload, which follows it.
    pub(super) fn emit(&self) -> Vec<u8> {
        let mut to = Vec::with_capacity(96);
        match self {
            Self::Table { table, name } => {
                head(&mut to, TABLE, *table);
                to.extend_from_slice(name.as_bytes());
            }
            Self::Item { table, counts, item } => {
                change(&mut to, ITEM, *table, counts);
                let Origin { actor, session, seq } = item.origin;
                let times = u64::from(item.times_sampled);
                let numbers = [
                    item.key,
                    item.priority.to_bits(),
                    times,
                    item.version,
                    actor,
                    session,
                    seq,
                    item.inserted_ms,
                ];
                numbers.into_iter().for_each(|number| put(&mut to, number));
            }
            Self::Removed { table, counts, keys } => {
                change(&mut to, REMOVED, *table, counts);
                keys.iter().for_each(|key| put(&mut to, *key));
            }
            Self::Sampled { table, counts, times } => {
                change(&mut to, SAMPLED, *table, counts);
                times
                    .iter()
                    .flat_map(|(key, times)| [*key, u64::from(*times)])
                    .for_each(|number| put(&mut to, number));
            }
            Self::Priorities { table, counts, priorities } => {
                change(&mut to, PRIORITIES, *table, counts);
                let numbers = priorities.iter().flat_map(|(key, priority)| [*key, priority.to_bits()]);
                numbers.for_each(|number| put(&mut to, number));
            }
            Self::Reset { table } => head(&mut to, RESET, *table),
            Self::Writer { table, actor, window } => {
                head(&mut to, WRITER, *table);
                [*actor, window.session, window.newest].into_iter().for_each(|number| put(&mut to, number));
                window.inserted.iter().for_each(|word| put(&mut to, *word));
            }
            Self::Counts { table, counts } => change(&mut to, COUNTS, *table, counts),
            Self::End { items } => {
                head(&mut to, END, 0);
                put(&mut to, *items);
            }
        }
        to
    }

    /// Reads a whole body; nothing if it has not the shape of any record.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let (kind, rest) = body.split_first()?;
        let (table, rest) = rest.split_first_chunk::<2>()?;
        let table = u16::from_le_bytes(*table);
        Some(match *kind {
            TABLE => Self::Table { table, name: String::from_utf8(rest.to_vec()).ok()? },
            RESET if rest.is_empty() => Self::Reset { table },
            END => Self::End { items: single(rest)? },
            WRITER => parse_writer(table, rest)?,
            _ => parse_change(*kind, table, rest)?,
        })
    }
}

fn parse_change(kind: u8, table: u16, rest: &[u8]) -> Option<Record> {
    let counts = Counts { inserts: u64_at(rest, 0)?, samples: u64_at(rest, 8)?, deletes: u64_at(rest, 16)? };
    let rest = &rest[24..];
    Some(match kind {
        ITEM => Record::Item { table, counts, item: Box::new(parse_item(rest)?) },
        REMOVED => Record::Removed { table, counts, keys: numbers(rest)?.collect() },
        SAMPLED => {
            let times = pairs(rest)?.map(|(key, times)| Some((key, u32::try_from(times).ok()?)));
            Record::Sampled { table, counts, times: times.collect::<Option<_>>()? }
        }
        PRIORITIES => {
            let priorities = pairs(rest)?.map(|(key, priority)| (key, f64::from_bits(priority)));
            Record::Priorities { table, counts, priorities: priorities.collect() }
        }
        COUNTS if rest.is_empty() => Record::Counts { table, counts },
        _ => return None,
    })
}

const ITEM_NUMBERS: usize = 8;

fn parse_item(rest: &[u8]) -> Option<Item> {
    let (numbers, payload) = rest.split_at_checked(8 * ITEM_NUMBERS)?;
    let number = |at: usize| u64_at(numbers, 8 * at);
    Some(Item {
        key: number(0)?,
        priority: f64::from_bits(number(1)?),
        times_sampled: u32::try_from(number(2)?).ok()?,
        version: number(3)?,
        origin: Origin { actor: number(4)?, session: number(5)?, seq: number(6)? },
        inserted_ms: number(7)?,
        payload: Bytes::copy_from_slice(payload),
    })
}

fn parse_writer(table: u16, rest: &[u8]) -> Option<Record> {
    let mut inserted = [0; (SEQ_WINDOW / 64) as usize];
    if rest.len() != 8 * (3 + inserted.len()) {
        return None;
    }
    for (at, word) in inserted.iter_mut().enumerate() {
        *word = u64_at(rest, 8 * (3 + at))?;
    }
    let window = Window { session: u64_at(rest, 8)?, newest: u64_at(rest, 16)?, inserted };
    Some(Record::Writer { table, actor: u64_at(rest, 0)?, window: Box::new(window) })
}

fn head(to: &mut Vec<u8>, kind: u8, table: u16) {
    to.push(kind);
    to.extend_from_slice(&table.to_le_bytes());
}

fn change(to: &mut Vec<u8>, kind: u8, table: u16, counts: &Counts) {
    head(to, kind, table);
    [counts.inserts, counts.samples, counts.deletes].into_iter().for_each(|count| put(to, count));
}

fn put(to: &mut Vec<u8>, number: u64) {
    to.extend_from_slice(&number.to_le_bytes());
}

fn single(rest: &[u8]) -> Option<u64> {
    if rest.len() == 8 { u64_at(rest, 0) } else { None }
}

fn numbers(rest: &[u8]) -> Option<impl Iterator<Item = u64>> {
    let (chunks, left) = rest.as_chunks::<8>();
    left.is_empty().then(|| chunks.iter().map(|chunk| u64::from_le_bytes(*chunk)))
}

fn pairs(rest: &[u8]) -> Option<impl Iterator<Item = (u64, u64)>> {
    let (chunks, left) = rest.as_chunks::<16>();
    let pair = |chunk: &[u8; 16]| {
        let both = u128::from_le_bytes(*chunk);
        (both as u64, (both >> 64) as u64)
    };
    left.is_empty().then(|| chunks.iter().map(pair))
}
