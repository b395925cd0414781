//! What a table holds.

use bytes::Bytes;

/// An item as an actor hands it in.
#[derive(Clone, Debug, PartialEq)]
pub struct NewItem {
    /// Finite; at or above 0 where a selector of the table is prioritized.
    pub priority: f64,
    /// Of the policy that made the item.
    pub version: u64,
    /// Anything.
    pub payload: Bytes,
}

/// Who inserted an item, and as which of theirs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The actor.
    pub actor: u64,
    /// Which of the actor's starts; it grows.
    pub session: u64,
    /// Which item of the session.
    pub seq: u64,
}

/// An item of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Names the item within its shard; of two items the later one has the greater key.
    pub key: u64,
    /// See [`NewItem::priority`].
    pub priority: f64,
    /// How often it was drawn.
    pub times_sampled: u32,
    /// See [`NewItem::version`].
    pub version: u64,
    /// Who inserted it.
    pub origin: Origin,
    /// When, in milliseconds since 1970.
    pub inserted_ms: u64,
    /// See [`NewItem::payload`].
    pub payload: Bytes,
}

/// An item that was drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled {
    /// The item, this draw counted.
    pub item: Item,
    /// The chance that it had among the items of the table: 1 where the sampler leaves nothing to chance.
    pub probability: f64,
    /// Items in the table at that time.
    pub table_size: u64,
    /// Whether it was the last draw that `max_times_sampled` allows: the item is no longer in the table.
    pub is_removed: bool,
}
