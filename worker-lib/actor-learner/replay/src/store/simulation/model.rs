//! Model of the guarantees that a shard gives to its clients. It checks that restored tables satisfy these guarantees.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;

use crate::store::format::{Frame, Header};
use crate::store::record::Record;
use crate::table::{Item, Table};

/// Degree of certainty that an operation has taken effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    No,
    /// The operation was requested, but not acknowledged.
    Perhaps,
    /// The operation was acknowledged.
    Surely,
}

/// Item that a client has inserted.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) payload: Bytes,
    /// Key that the shard has most recently assigned to the item.
    pub(super) key: u64,
    pub(super) inserted: State,
    pub(super) removed: State,
    /// All priorities that were set for the item, and the index of the earliest one that the item may still have.
    priorities: Vec<f64>,
    first_priority: usize,
    /// Damage to the records of the item. A damaged item may be missing, may reappear, or may have an earlier priority.
    damage: Damage,
}

#[derive(Clone, Copy, Debug, Default)]
struct Damage {
    of_item: bool,
    of_removal: bool,
    of_change: bool,
}

/// Expected state of all items, by sequence number.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) entries: BTreeMap<u64, Entry>,
    /// Sequence numbers, by the keys that the shard assigned.
    pub(super) by_key: BTreeMap<u64, u64>,
}

/// Returns the policy version of the item with this sequence number.
pub(super) fn version(seq: u64) -> u64 {
    3 * seq + 1
}

impl Entry {
    pub(super) fn new(payload: Bytes, priority: f64) -> Self {
        Self {
            payload,
            key: 0,
            inserted: State::No,
            removed: State::No,
            priorities: vec![priority],
            first_priority: 0,
            damage: Damage::default(),
        }
    }

    pub(super) fn priority(&self) -> f64 {
        self.priorities[0]
    }

    /// Records that an item that is in no table may be inserted again, with its initial priority.
    pub(super) fn insert_again(&mut self) {
        (self.inserted, self.removed) = (State::Perhaps, State::No);
        self.first_priority = self.set_priority(self.priorities[0]);
    }

    /// Records a priority, and returns its index.
    pub(super) fn set_priority(&mut self, priority: f64) -> usize {
        self.priorities.push(priority);
        self.priorities.len() - 1
    }

    pub(super) fn acknowledge_priority(&mut self, place: usize) {
        self.first_priority = self.first_priority.max(place);
    }

    fn check_present(&self, seq: u64, item: &Item) -> Result<(), String> {
        if item.payload != self.payload || item.version != version(seq) {
            return Err(format!("item {seq} differs from the item that was inserted"));
        }
        if self.removed == State::Surely && !self.damage.of_removal {
            return Err(format!("item {seq} reappeared even though its removal was acknowledged"));
        }
        // Without the latest record, an earlier one applies, for example the item's copy in a snapshot.
        let is_earlier = self.damage.of_change || self.damage.of_item;
        let first = if is_earlier { 0 } else { self.first_priority };
        if !self.priorities[first..].contains(&item.priority) {
            return Err(format!(
                "item {seq} has priority {}, expected one that was set at index {first} or later",
                item.priority
            ));
        }
        Ok(())
    }

    fn is_missing(&self) -> bool {
        self.inserted == State::Surely && self.removed == State::No
    }
}

impl Model {
    pub(super) fn seqs(&self, keys: &[u64]) -> Vec<u64> {
        keys.iter().filter_map(|key| self.by_key.get(key).copied()).collect()
    }

    /// Records that the removal of the items is at least as certain as `state`.
    pub(super) fn remove(&mut self, seqs: &[u64], state: State) {
        for seq in seqs {
            if let Some(entry) = self.entries.get_mut(seq) {
                entry.removed = entry.removed.max(state);
            }
        }
    }

    /// Records which items may be affected by the damaged bytes of a file.
    pub(super) fn damage(&mut self, file: &[u8], range: &Range<usize>) {
        let hit = |place: &Range<usize>| place.start < range.end && range.start < place.end;
        for (_, record) in records(file).into_iter().filter(|(place, _)| hit(place)) {
            let (item, removal, change) = match record {
                Record::Item { item, .. } => (vec![item.key], vec![], vec![]),
                Record::Removed { keys, .. } => (vec![], keys, vec![]),
                Record::Reset { .. } => (vec![], self.by_key.keys().copied().collect(), vec![]),
                Record::Priorities { priorities, .. } => {
                    (vec![], vec![], priorities.into_iter().map(|(key, _)| key).collect())
                }
                _ => continue,
            };
            let mut mark = |keys: &[u64], mark: fn(&mut Damage)| {
                for seq in self.seqs(keys) {
                    self.entries.entry(seq).and_modify(|entry| mark(&mut entry.damage));
                }
            };
            mark(&item, |damage| damage.of_item = true);
            mark(&removal, |damage| damage.of_removal = true);
            mark(&change, |damage| damage.of_change = true);
        }
    }

    /// Checks a restored table against the guarantees, and then adopts its state as the expected state.
    ///
    /// # Errors
    /// Returns a description of the guarantee that is violated.
    pub(super) fn check(&mut self, table: &Table, is_damage_reported: bool) -> Result<(), String> {
        let mut present: BTreeMap<u64, Item> = BTreeMap::new();
        for item in table.part(0, usize::MAX, u64::MAX).0 {
            if let Some(twice) = present.insert(item.origin.seq, item) {
                return Err(format!("item {} is present twice", twice.origin.seq));
            }
        }
        if let Some(seq) = present.keys().find(|seq| !self.entries.contains_key(seq)) {
            return Err(format!("item {seq} was never inserted"));
        }
        let oldest = present.values().map(|item| item.key).min();
        let is_full = table.len() as u64 >= table.config().capacity_items;
        for (seq, entry) in &mut self.entries {
            match present.get(seq) {
                Some(item) => {
                    entry.check_present(*seq, item)?;
                    self.by_key.insert(item.key, *seq);
                    (entry.inserted, entry.removed) = (State::Surely, State::No);
                    // If a record is damaged, the item may return to one of its earlier priorities.
                    entry.first_priority = entry.set_priority(item.priority);
                }
                // A draw that was not durable may be undone. In that case, the item returns, and the oldest item is
                // removed in its place.
                None if is_full && Some(entry.key) < oldest => entry.removed = State::Perhaps,
                None if entry.is_missing() && !entry.damage.of_item => {
                    return Err(format!("item {seq} is missing although it was acknowledged"));
                }
                None if entry.is_missing() && !is_damage_reported => {
                    return Err(format!("item {seq} is missing although no damage was reported"));
                }
                None => entry.removed = State::Surely,
            }
            entry.damage = Damage::default();
        }
        Ok(())
    }
}

/// Returns the complete records of a file and their byte ranges.
pub(crate) fn records(file: &[u8]) -> Vec<(Range<usize>, Record)> {
    let Some(header) = Header::parse(file) else { return Vec::new() };
    let mut records = Vec::new();
    let mut at = header.len();
    while at < file.len() {
        let frame = header.frame(&file[at..], at as u64);
        let body = |frame: Frame| at + header.frame_len()..at + header.frame_len() + frame.body_len as usize;
        let whole = frame.and_then(|frame| {
            let bytes = file.get(body(frame)).filter(|bytes| header.is_body(frame, bytes, at as u64))?;
            Some((at..body(frame).end, Record::parse(bytes)?))
        });
        at = whole.as_ref().map_or(at + 1, |(place, _)| place.end);
        records.extend(whole);
    }
    records
}
