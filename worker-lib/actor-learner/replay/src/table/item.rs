//! Items of a table.

use bytes::Bytes;

/// Item in the form in which an actor supplies it.
#[derive(Clone, Debug, PartialEq)]
pub struct NewItem {
    /// Priority. It must be finite and, if a selector of the table is prioritized, not negative.
    pub priority: f64,
    /// Version of the policy that produced the item.
    pub version: u64,
    /// The payload, which the table does not interpret.
    pub payload: Bytes,
}

/// The origin of an item: its actor, and its position in the sequence of the actor's items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Number that identifies the actor.
    pub actor: u64,
    /// Session number of the actor. It increases each time the actor starts.
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
    /// Insertion time, in milliseconds since the Unix epoch.
    pub inserted_ms: u64,
    /// See [`NewItem::payload`].
    pub payload: Bytes,
}

/// Item that was drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled {
    /// Drawn item. Its `times_sampled` includes this draw.
    pub item: Item,
    /// Probability with which this draw selected the item among the items of the table; 1 if the sampler is
    /// deterministic.
    pub probability: f64,
    /// Number of items in the table at the time of the draw.
    pub table_size: u64,
    /// Whether this was the last draw that `max_times_sampled` allows. If it was, the item has been removed from the
    /// table.
    pub is_removed: bool,
}
