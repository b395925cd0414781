//! The names that readers have asked a cell for. A name that upstream does not have never takes the place of one that
//! it has.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::pointers::Pointer;
use crate::ModelName;

/// Names with their pointers: those of models that upstream has, and others.
#[derive(Debug, Default)]
pub(super) struct Names {
    known: HashMap<ModelName, Arc<Pointer>>,
    /// Upstream has not answered yet, has no such model, or there are too many known ones.
    unknown: HashMap<ModelName, Arc<Pointer>>,
}

impl Names {
    pub(super) fn known_len(&self) -> usize {
        self.known.len()
    }

    pub(super) fn unknown_len(&self) -> usize {
        self.unknown.len()
    }

    pub(super) fn get(&self, name: &ModelName) -> Option<&Arc<Pointer>> {
        self.known.get(name).or_else(|| self.unknown.get(name))
    }

    /// Adds a name of which nothing is known yet; gives the one that it displaces if there are more than `unknown_max`:
    /// one that no reader waits for, then the one that was wanted the longest ago.
    pub(super) fn add(&mut self, pointer: &Arc<Pointer>, unknown_max: usize) -> Option<Arc<Pointer>> {
        let mut displaced = None;
        if self.unknown.len() >= unknown_max.max(1) {
            let oldest = self.unknown.values().min_by_key(|it| (it.has_readers(), it.wanted_at()));
            let oldest = oldest.map(|it| it.name().clone());
            displaced = oldest.and_then(|name| self.unknown.remove(&name));
        }
        self.unknown.insert(pointer.name().clone(), Arc::clone(pointer));
        displaced
    }

    /// Gives a model that upstream has a place of its own. If all `known_max` are taken, one that nobody has wanted for
    /// `idle` gives way; without one the model keeps its place among the unknown.
    pub(super) fn promote(&mut self, pointer: &Arc<Pointer>, known_max: usize, idle: Duration) {
        if self.known.contains_key(pointer.name()) {
            return;
        }
        if self.known.len() >= known_max {
            self.known.retain(|_, it| it.is_wanted(idle));
        }
        if self.known.len() < known_max {
            self.unknown.remove(pointer.name());
            self.known.insert(pointer.name().clone(), Arc::clone(pointer));
        }
    }
}
