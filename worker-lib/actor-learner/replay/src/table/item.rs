//! Items of a table.

use bytes::Bytes;

/// Item as supplied by an actor.
#[derive(Clone, Debug, PartialEq)]
pub struct NewItem {
    /// Priority; finite, and not negative if a selector of the table is prioritized.
    pub priority: f64,
    /// Version of the policy that produced the item.
    pub version: u64,
    /// Payload; opaque to the table.
    pub payload: Bytes,
}

/// Origin of an item: its actor and its position in the actor's sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Number of the actor.
    pub actor: u64,
    /// Session of the actor; increases with each start of the actor.
    pub session: u64,
    /// Sequence number of the item within the session.
    pub seq: u64,
}

/// Item of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Key of the item, unique within its shard. Later items have greater keys.
    pub key: u64,
    /// See [`NewItem::priority`].
    pub priority: f64,
    /// Number of times that the item was drawn.
    pub times_sampled: u32,
    /// See [`NewItem::version`].
    pub version: u64,
    /// Origin of the item.
    pub origin: Origin,
    /// Insertion time, in milliseconds since 1970.
    pub inserted_ms: u64,
    /// See [`NewItem::payload`].
    pub payload: Bytes,
}

/// Item that was drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled {
    /// Drawn item; its `times_sampled` includes this draw.
    pub item: Item,
    /// Probability of the draw among the items of the table; 1 if the sampler is deterministic.
    pub probability: f64,
    /// Number of items in the table at the time of the draw.
    pub table_size: u64,
    /// Whether this was the last draw that `max_times_sampled` allows, so that the item has been removed from the
    /// table.
    pub is_removed: bool,
}
