//! Encoding of changes to tables. Each record contains the name of its table, so that it can be decoded without other
//! records.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};

use super::format::{FRAME_BYTES, Frame, u64_at};
use crate::limits::{NAME_BYTES_MAX, SEQ_WINDOW};
use crate::table::{Counts, Item, Origin, Window};

/// Name of a table.
pub(crate) type TableName = Arc<str>;

/// Length in bytes up to which a payload is copied into the buffer of its record. A longer payload is written as a
/// separate part.
const COPY_BYTES: usize = 4096;

const _: () = assert!(NAME_BYTES_MAX <= u8::MAX as usize);

/// A payload and its checksum. The checksum is computed before any lock is taken.
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

/// Change to a table. `counts` are the counts of the table's operations after the change.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Record {
    /// The table contains the item. The item's payload follows the record.
    Item { table: TableName, counts: Counts, item: Box<Item> },
    /// The items have been removed.
    Removed { table: TableName, counts: Counts, keys: Vec<u64> },
    /// Each item has been drawn the given number of times.
    Sampled { table: TableName, counts: Counts, times: Vec<(u64, u32)> },
    /// Each item has the given priority.
    Priorities { table: TableName, counts: Counts, priorities: Vec<(u64, f64)> },
    /// The table is empty.
    Reset { table: TableName },
    /// The window of an actor's sequence numbers has this state.
    Writer { table: TableName, actor: u64, window: Box<Window> },
    /// The counts of the table's operations have these values.
    Counts { table: TableName, counts: Counts },
    /// Final record of a complete snapshot.
    End { items: u64 },
}

/// Result of decoding a record body of format 1.
pub(super) enum Parsed1 {
    /// The record assigns a name to a table number.
    Name,
    Record(Record),
}

/// Tag of a record, used only in format 1, that assigns a number to a table for the rest of the file.
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
    /// Encodes the body without an item's payload, which follows the body.
    pub(super) fn emit(&self) -> Vec<u8> {
        let mut to = Vec::with_capacity(96);
        match self {
            Self::Item { table, counts, item } => {
                change(&mut to, ITEM, table, counts);
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
                change(&mut to, REMOVED, table, counts);
                keys.iter().for_each(|key| put(&mut to, *key));
            }
            Self::Sampled { table, counts, times } => {
                change(&mut to, SAMPLED, table, counts);
                times
                    .iter()
                    .flat_map(|(key, times)| [*key, u64::from(*times)])
                    .for_each(|number| put(&mut to, number));
            }
            Self::Priorities { table, counts, priorities } => {
                change(&mut to, PRIORITIES, table, counts);
                let numbers = priorities.iter().flat_map(|(key, priority)| [*key, priority.to_bits()]);
                numbers.for_each(|number| put(&mut to, number));
            }
            Self::Reset { table } => head(&mut to, RESET, table),
            Self::Writer { table, actor, window } => {
                head(&mut to, WRITER, table);
                [*actor, window.session, window.newest].into_iter().for_each(|number| put(&mut to, number));
                window.inserted.iter().for_each(|word| put(&mut to, *word));
            }
            Self::Counts { table, counts } => change(&mut to, COUNTS, table, counts),
            Self::End { items } => {
                head(&mut to, END, "");
                put(&mut to, *items);
            }
        }
        to
    }

    /// Decodes a whole body. Returns `None` if it is not a valid record.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let (kind, rest) = body.split_first()?;
        let (name_len, rest) = rest.split_first()?;
        let (name, rest) = rest.split_at_checked(usize::from(*name_len))?;
        parse_rest(*kind, std::str::from_utf8(name).ok()?.into(), rest)
    }

    /// Decodes a body of format 1; see [`Self::parse`]. `names` contains the tables that earlier records of the file
    /// have named. A record that names a table contains nothing else.
    pub(super) fn parse_format_1(body: &[u8], names: &mut HashMap<u16, TableName>) -> Option<Parsed1> {
        let (kind, rest) = body.split_first()?;
        let (number, rest) = rest.split_first_chunk::<2>()?;
        let number = u16::from_le_bytes(*number);
        if *kind == TABLE {
            names.insert(number, std::str::from_utf8(rest).ok()?.into());
            return Some(Parsed1::Name);
        }
        let table = if *kind == END { "".into() } else { Arc::clone(names.get(&number)?) };
        parse_rest(*kind, table, rest).map(Parsed1::Record)
    }

    /// Returns the name of the table, or `None` if the record applies to the whole file.
    pub(super) fn table(&self) -> Option<&TableName> {
        match self {
            Self::Item { table, .. }
            | Self::Removed { table, .. }
            | Self::Sampled { table, .. }
            | Self::Priorities { table, .. }
            | Self::Reset { table }
            | Self::Writer { table, .. }
            | Self::Counts { table, .. } => Some(table),
            Self::End { .. } => None,
        }
    }
}

/// Encodes a record that is to be written at `offset` in a file. Returns the encoding as one or two parts, and its
/// length in bytes.
pub(super) fn framed(
    record: &Record,
    payload: Option<&Payload>,
    salt: u64,
    offset: u64,
) -> (Vec<Bytes>, u64) {
    let body = record.emit();
    let payload_len = payload.map_or(0, |payload| payload.bytes.len());
    let len = (body.len() + payload_len) as u32;
    let mut crc = crc32c::crc32c(&body);
    if let Some(payload) = payload {
        crc = crc32c::crc32c_combine(crc, payload.crc, payload_len);
    }
    let copied = payload.filter(|_| payload_len <= COPY_BYTES);
    let mut head = BytesMut::with_capacity(FRAME_BYTES + body.len() + copied.map_or(0, |_| payload_len));
    head.put_slice(&Frame::new(len, crc).emit(salt, offset));
    head.put_slice(&body);
    copied.into_iter().for_each(|payload| head.put_slice(&payload.bytes));
    let mut parts = vec![head.freeze()];
    parts.extend(payload.filter(|_| payload_len > COPY_BYTES).map(|payload| payload.bytes.clone()));
    (parts, FRAME_BYTES as u64 + u64::from(len))
}

fn parse_rest(kind: u8, table: TableName, rest: &[u8]) -> Option<Record> {
    match kind {
        RESET if rest.is_empty() => Some(Record::Reset { table }),
        END if table.is_empty() => Some(Record::End { items: single(rest)? }),
        WRITER => parse_writer(table, rest),
        _ => parse_change(kind, table, rest),
    }
}

fn parse_change(kind: u8, table: TableName, rest: &[u8]) -> Option<Record> {
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

fn parse_writer(table: TableName, rest: &[u8]) -> Option<Record> {
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

fn head(to: &mut Vec<u8>, kind: u8, table: &str) {
    to.extend([kind, table.len() as u8]);
    to.extend_from_slice(table.as_bytes());
}

fn change(to: &mut Vec<u8>, kind: u8, table: &str, counts: &Counts) {
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
