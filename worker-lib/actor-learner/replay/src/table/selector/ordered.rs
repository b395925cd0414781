//! Selection by insertion order or by priority.

use std::collections::BTreeMap;

/// Criterion by which slots are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Oldest,
    Newest,
    Greatest,
    Least,
}

/// Sort key of a slot. It consists of the slot's rank and a number that increases with each insertion or change.
type Place = (u64, u64);

/// Slots in sorted order.
#[derive(Clone, Debug)]
pub(in crate::table) struct Ordered {
    order: Order,
    sorted: BTreeMap<Place, u32>,
    places: Vec<Place>,
    stamps: u64,
}

impl Ordered {
    pub(super) fn new(order: Order) -> Self {
        Self { order, sorted: BTreeMap::new(), places: Vec::new(), stamps: 0 }
    }

    pub(super) fn insert(&mut self, slot: u32, priority: f64) {
        let rank = match self.order {
            Order::Oldest | Order::Newest => 0,
            Order::Least => rank(priority),
            Order::Greatest => !rank(priority),
        };
        let place = (rank, self.stamps);
        self.stamps += 1;
        if self.places.len() <= slot as usize {
            self.places.resize(slot as usize + 1, (0, 0));
        }
        self.places[slot as usize] = place;
        self.sorted.insert(place, slot);
    }

    pub(super) fn update(&mut self, slot: u32, priority: f64) {
        if matches!(self.order, Order::Greatest | Order::Least) {
            self.remove(slot);
            self.insert(slot, priority);
        }
    }

    pub(super) fn remove(&mut self, slot: u32) {
        self.sorted.remove(&self.places[slot as usize]);
    }

    pub(super) fn first(&self) -> Option<u32> {
        let end = match self.order {
            Order::Newest => self.sorted.last_key_value(),
            Order::Oldest | Order::Greatest | Order::Least => self.sorted.first_key_value(),
        };
        end.map(|(_, slot)| *slot)
    }
}

/// Maps finite floats to integers that have the same order.
fn rank(priority: f64) -> u64 {
    // Maps -0.0 to 0.0, so that both zeros rank equally.
    let bits = (priority + 0.0).to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}
