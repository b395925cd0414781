//! Table of experience: its items, the selection of the next item, and the rules that delay inserts and samples.
//!
//! A table has no I/O, no clock and no threads: the same calls with the same seed yield the same items. The terms are
//! those of Reverb (Cassirer et al., "Reverb: a framework for experience replay", 2021). A [`Sampler`] picks the item
//! to draw, and a [`Remover`] picks the item to remove when the table is full. A [`RateLimiter`] delays inserts that
//! run too far ahead of the samples, and samples that run too far ahead of the inserts.

mod config;
mod error;
mod item;
mod limiter;
mod selector;
mod writers;

use std::collections::HashMap;

use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

pub use self::config::{ConfigError, TableConfig, WhenFull};
pub use self::error::{Held, Refusal};
pub use self::item::{Item, NewItem, Origin, Sampled};
pub use self::limiter::{Counts, ErrorBuffer, LimiterError, RateLimiter};
pub use self::selector::{Remover, Sampler, Selector};
pub(crate) use self::writers::{OriginError, Window, Writers};

use self::selector::Index;
use crate::limits::ITEM_OVERHEAD_BYTES;

/// Returns how much of a table's capacity an item occupies if its payload has the given length, in bytes.
pub fn cost_bytes(payload_len: usize) -> u64 {
    payload_len as u64 + ITEM_OVERHEAD_BYTES
}

/// Table that contains experience.
#[derive(Clone, Debug)]
pub struct Table {
    config: TableConfig,
    counts: Counts,
    bytes: u64,
    slots: Vec<Option<Item>>,
    free: Vec<u32>,
    by_key: HashMap<u64, u32>,
    sampler: Index,
    remover: Index,
    rng: ChaCha8Rng,
    pub(crate) writers: Writers,
}

impl Table {
    /// Creates an empty table. `seed` determines all of its random choices.
    ///
    /// # Errors
    /// Returns the errors of [`TableConfig::check`].
    pub fn new(config: TableConfig, seed: u64) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            sampler: config.sampler.index(),
            remover: config.remover.index(),
            config,
            counts: Counts::default(),
            bytes: 0,
            slots: Vec::new(),
            free: Vec::new(),
            by_key: HashMap::new(),
            rng: ChaCha8Rng::seed_from_u64(seed),
            writers: Writers::default(),
        })
    }

    /// Returns the configuration of the table.
    pub fn config(&self) -> &TableConfig {
        &self.config
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Returns whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Returns the total size of all items in bytes, including their overhead.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the numbers of inserts, samples and deletes.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the sum of the weights that the sampler uses. If the sampler has an exponent, the weight of an item is
    /// its priority to the power of the exponent; otherwise, it is 1.
    pub fn mass(&self) -> f64 {
        self.sampler.mass(self.len())
    }

    /// Returns the item with this key.
    pub fn get(&self, key: u64) -> Option<&Item> {
        self.slots[*self.by_key.get(&key)? as usize].as_ref()
    }

    /// Checks whether the table can ever accept the item.
    ///
    /// # Errors
    /// Fails if a selector does not accept the priority, or if the payload does not fit into an empty table.
    pub fn check(&self, item: &NewItem) -> Result<(), Refusal> {
        self.check_priority(item.priority)?;
        if cost_bytes(item.payload.len()) > self.config.capacity_bytes {
            let most = self.config.capacity_bytes.saturating_sub(ITEM_OVERHEAD_BYTES);
            return Err(Refusal::PayloadTooLong { len: item.payload.len() as u64, most });
        }
        Ok(())
    }

    pub(crate) fn check_priority(&self, priority: f64) -> Result<(), Refusal> {
        for selector in [self.config.sampler, self.config.remover] {
            let Selector::Prioritized { exponent } = selector else { continue };
            if !(priority >= 0.0 && priority.powf(exponent) <= selector::WEIGHT_MAX) {
                return Err(Refusal::PriorityOutOfRange { priority, selector });
            }
        }
        if priority.is_finite() { Ok(()) } else { Err(Refusal::PriorityNotFinite { priority }) }
    }

    /// Checks whether an item with a payload of this length can be inserted now.
    ///
    /// # Errors
    /// Returns the condition that the insert must wait for.
    pub fn can_insert(&self, payload_len: usize) -> Result<(), Held> {
        if !self.config.limiter.can_insert(&self.counts) {
            return Err(Held::Inserts { counts: self.counts, limiter: self.config.limiter });
        }
        let is_full = self.len() as u64 >= self.config.capacity_items
            || self.bytes + cost_bytes(payload_len) > self.config.capacity_bytes;
        if is_full && self.config.when_full == WhenFull::Wait {
            return Err(Held::Full { items: self.len() as u64, bytes: self.bytes });
        }
        Ok(())
    }

    /// Inserts an item. [`Self::check`] and [`Self::can_insert`] must have allowed the insert, and the key of the item
    /// must be greater than all previous keys. Returns the keys of the items that were removed to make room. The new
    /// item itself may be among them, because the remover of a full table picks among all items, as in Reverb.
    pub fn insert(&mut self, item: Item) -> Vec<u64> {
        self.writers.mark(item.origin);
        self.put(item);
        self.counts.inserts += 1;
        let removed = self.shrink();
        self.counts.deletes += removed.len() as u64;
        removed
    }

    /// Removes items until the table is within its capacity.
    fn shrink(&mut self) -> Vec<u64> {
        let mut removed = Vec::new();
        while self.len() as u64 > self.config.capacity_items || self.bytes > self.config.capacity_bytes {
            let Some((slot, _)) = self.remover.pick(&mut self.rng) else { break };
            removed.extend(self.take(slot).map(|item| item.key));
        }
        removed
    }

    fn put(&mut self, item: Item) {
        let slot = self.free.pop().unwrap_or(self.slots.len() as u32);
        if slot as usize == self.slots.len() {
            self.slots.push(None);
        }
        self.by_key.insert(item.key, slot);
        self.bytes += cost_bytes(item.payload.len());
        self.sampler.insert(slot, item.priority);
        self.remover.insert(slot, item.priority);
        self.slots[slot as usize] = Some(item);
    }

    fn take(&mut self, slot: u32) -> Option<Item> {
        let item = self.slots[slot as usize].take()?;
        self.by_key.remove(&item.key);
        self.bytes -= cost_bytes(item.payload.len());
        self.sampler.remove(slot);
        self.remover.remove(slot);
        self.free.push(slot);
        Some(item)
    }

    /// Checks whether an item can be drawn now.
    ///
    /// # Errors
    /// Returns the condition that the rate limiter is waiting for.
    pub fn can_sample(&self) -> Result<(), Held> {
        if self.config.limiter.can_sample(&self.counts) && !self.is_empty() {
            return Ok(());
        }
        Err(Held::Samples { counts: self.counts, limiter: self.config.limiter })
    }

    /// Draws an item.
    ///
    /// # Errors
    /// Returns the condition that the rate limiter is waiting for.
    pub fn sample(&mut self) -> Result<Sampled, Held> {
        self.can_sample()?;
        let held = Held::Samples { counts: self.counts, limiter: self.config.limiter };
        let table_size = self.len() as u64;
        let (slot, probability) = self.sampler.pick(&mut self.rng).ok_or(held.clone())?;
        let item = self.slots[slot as usize].as_mut().ok_or(held)?;
        item.times_sampled = item.times_sampled.saturating_add(1);
        let item = item.clone();
        self.counts.samples += 1;
        let most = self.config.max_times_sampled;
        let is_removed = most > 0 && item.times_sampled >= most;
        if is_removed {
            self.take(slot);
            self.counts.deletes += 1;
        }
        Ok(Sampled { item, probability, table_size, is_removed })
    }

    /// Changes the priority of an item, and returns whether the item still exists.
    ///
    /// # Errors
    /// Fails if a selector does not accept the priority.
    pub fn set_priority(&mut self, key: u64, priority: f64) -> Result<bool, Refusal> {
        self.check_priority(priority)?;
        let Some(slot) = self.by_key.get(&key).copied() else { return Ok(false) };
        if let Some(item) = self.slots[slot as usize].as_mut() {
            item.priority = priority;
        }
        self.sampler.update(slot, priority);
        self.remover.update(slot, priority);
        Ok(true)
    }

    /// Removes an item, and returns whether it existed.
    pub fn delete(&mut self, key: u64) -> bool {
        let Some(slot) = self.by_key.get(&key).copied() else { return false };
        self.take(slot);
        self.counts.deletes += 1;
        true
    }

    /// Removes all items, resets the rate limiter to zero, and returns the number of removed items. The table still
    /// remembers the sequence numbers of each actor, so that a retransmitted insert from before the reset does not
    /// insert its items again.
    pub fn reset(&mut self) -> u64 {
        let deleted = self.len() as u64;
        (self.slots, self.free, self.bytes) = (Vec::new(), Vec::new(), 0);
        self.by_key.clear();
        self.sampler = self.config.sampler.index();
        self.remover = self.config.remover.index();
        self.counts = Counts::default();
        deleted
    }

    /// Loads saved items in the order of their keys, and restores the counts. If the capacity is smaller than when the
    /// items were saved, removes items as inserts do. Returns the number of removed items.
    pub(crate) fn restore(&mut self, items: impl Iterator<Item = Item>, counts: Counts) -> u64 {
        self.reset();
        let mut removed = 0;
        for item in items {
            self.put(item);
            removed += self.shrink().len() as u64;
        }
        // Damaged items are missing, but the rate limiter's size must match the actual size of the table.
        let inserts = counts.inserts.max(self.len() as u64);
        self.counts = Counts { inserts, samples: counts.samples, deletes: inserts - self.len() as u64 };
        removed
    }

    /// Copies items, beginning with the slot `start`, up to `items_max` items and about `bytes_max` payload bytes. Also
    /// returns the slot at which the next call must begin.
    pub(crate) fn part(&self, start: usize, items_max: usize, bytes_max: u64) -> (Vec<Item>, Option<usize>) {
        let (mut items, mut bytes) = (Vec::new(), 0);
        for (at, slot) in self.slots.iter().enumerate().skip(start) {
            if items.len() >= items_max || bytes >= bytes_max {
                return (items, Some(at));
            }
            if let Some(item) = slot {
                bytes += item.payload.len() as u64;
                items.push(item.clone());
            }
        }
        (items, None)
    }

    /// Returns the insertion times of the oldest and the newest item, in milliseconds since the Unix epoch.
    pub fn insertion_times_ms(&self) -> Option<(u64, u64)> {
        let times = || self.slots.iter().flatten().map(|item| item.inserted_ms);
        Some((times().min()?, times().max()?))
    }
}

#[cfg(test)]
mod tests;
