//! Selectors, which pick the item that is drawn or removed next.

mod ordered;
mod prioritized;
mod uniform;

use std::fmt;
use std::str::FromStr;

use rand::Rng;
use serde::{Deserialize, Serialize};

use self::ordered::{Order, Ordered};
use self::prioritized::Prioritized;
use self::uniform::Uniform;

pub(crate) use self::prioritized::{EXPONENT_MAX, WEIGHT_MAX};

/// Rule for picking an item of a table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Selector {
    /// Picks each item with equal probability.
    Uniform,
    /// Picks each item with a probability proportional to its priority to the power of `exponent`. Items of priority
    /// 0 are never picked unless all items have priority 0 (Schaul et al., "Prioritized experience replay", 2016).
    Prioritized {
        /// Exponent of the priorities; 0 to 16. With an exponent of 0, all positive priorities have the same weight.
        exponent: f64,
    },
    /// Picks the item that was inserted first.
    Fifo,
    /// Picks the item that was inserted last.
    Lifo,
    /// Picks the item with the highest priority. Among items with equal priorities, picks the one whose insertion or
    /// last priority change is the oldest.
    MaxHeap,
    /// Picks the item with the lowest priority. Among items with equal priorities, picks the one whose insertion or
    /// last priority change is the oldest.
    MinHeap,
}

/// Selector that picks the item to draw.
pub type Sampler = Selector;
/// Selector that picks the item to remove when a new item arrives at a full table.
pub type Remover = Selector;

impl Selector {
    pub(super) fn index(self) -> Index {
        match self {
            Self::Uniform => Index::Uniform(Uniform::default()),
            Self::Prioritized { exponent } => Index::Prioritized(Prioritized::new(exponent)),
            Self::Fifo => Index::Ordered(Ordered::new(Order::Oldest)),
            Self::Lifo => Index::Ordered(Ordered::new(Order::Newest)),
            Self::MaxHeap => Index::Ordered(Ordered::new(Order::Greatest)),
            Self::MinHeap => Index::Ordered(Ordered::new(Order::Least)),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => f.write_str("uniform"),
            Self::Prioritized { exponent } => write!(f, "prioritized:{exponent}"),
            Self::Fifo => f.write_str("fifo"),
            Self::Lifo => f.write_str("lifo"),
            Self::MaxHeap => f.write_str("max-heap"),
            Self::MinHeap => f.write_str("min-heap"),
        }
    }
}

impl FromStr for Selector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "uniform" => return Ok(Self::Uniform),
            "fifo" => return Ok(Self::Fifo),
            "lifo" => return Ok(Self::Lifo),
            "max-heap" => return Ok(Self::MaxHeap),
            "min-heap" => return Ok(Self::MinHeap),
            _ => {}
        }
        let exponent = text.strip_prefix("prioritized:").and_then(|exponent| exponent.parse().ok());
        match exponent {
            Some(exponent) if (0.0..=EXPONENT_MAX).contains(&exponent) => Ok(Self::Prioritized { exponent }),
            _ => Err(format!(
                "selector is {text:?}, expected uniform, prioritized:EXPONENT (0 to {EXPONENT_MAX}), fifo, lifo, \
                 max-heap or min-heap"
            )),
        }
    }
}

impl TryFrom<String> for Selector {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Selector> for String {
    fn from(selector: Selector) -> Self {
        selector.to_string()
    }
}

/// Index of the slots that contain a table's items, in the form that the selector needs.
#[derive(Clone, Debug)]
pub(super) enum Index {
    Uniform(Uniform),
    Prioritized(Prioritized),
    Ordered(Ordered),
}

impl Index {
    pub(super) fn insert(&mut self, slot: u32, priority: f64) {
        match self {
            Self::Uniform(index) => index.insert(slot),
            Self::Prioritized(index) => index.insert(slot, priority),
            Self::Ordered(index) => index.insert(slot, priority),
        }
    }

    pub(super) fn update(&mut self, slot: u32, priority: f64) {
        match self {
            Self::Uniform(_) => {}
            Self::Prioritized(index) => index.update(slot, priority),
            Self::Ordered(index) => index.update(slot, priority),
        }
    }

    pub(super) fn remove(&mut self, slot: u32) {
        match self {
            Self::Uniform(index) => index.remove(slot),
            Self::Prioritized(index) => index.remove(slot),
            Self::Ordered(index) => index.remove(slot),
        }
    }

    /// Picks a slot, and returns it with the probability of this choice. Returns `None` if there are no slots.
    pub(super) fn pick(&self, rng: &mut impl Rng) -> Option<(u32, f64)> {
        match self {
            Self::Uniform(index) => index.pick(rng),
            Self::Prioritized(index) => index.pick(rng),
            Self::Ordered(index) => index.first().map(|slot| (slot, 1.0)),
        }
    }

    /// Returns the sum of the weights to which the probabilities are proportional, or `len` if the selector has no
    /// weights.
    pub(super) fn mass(&self, len: usize) -> f64 {
        match self {
            Self::Prioritized(index) => index.mass(),
            Self::Uniform(_) | Self::Ordered(_) => len as f64,
        }
    }
}

#[cfg(test)]
mod tests;
