//! Selection with equal probabilities.

use rand::{Rng, RngExt};

/// A dense array of all slots, and the position of each slot in the array.
#[derive(Clone, Debug, Default)]
pub(in crate::table) struct Uniform {
    members: Vec<u32>,
    places: Vec<u32>,
}

impl Uniform {
    pub(super) fn insert(&mut self, slot: u32) {
        let at = slot as usize;
        if self.places.len() <= at {
            self.places.resize(at + 1, 0);
        }
        self.places[at] = self.members.len() as u32;
        self.members.push(slot);
    }

    /// Removes a slot. The last slot of the array moves to the position of the removed slot.
    pub(super) fn remove(&mut self, slot: u32) {
        let place = self.places[slot as usize];
        self.members.swap_remove(place as usize);
        if let Some(moved) = self.members.get(place as usize) {
            self.places[*moved as usize] = place;
        }
    }

    pub(super) fn pick(&self, rng: &mut impl Rng) -> Option<(u32, f64)> {
        if self.members.is_empty() {
            return None;
        }
        let at = rng.random_range(0..self.members.len());
        Some((self.members[at], 1.0 / self.members.len() as f64))
    }
}
