//! Model names that readers have requested from a cell. A name for which upstream has no model never displaces a name
//! for which upstream has one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::pointers::Pointer;
use crate::ModelName;

/// Pointers by model name. Known models and unknown models are kept separately.
#[derive(Debug, Default)]
pub(super) struct Names {
    known: HashMap<ModelName, Arc<Pointer>>,
    /// Names for which upstream has no model or has not answered yet, and names that have a model but did not fit
    /// among the known names.
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

    /// Adds a name that may or may not exist upstream. If there are already `unknown_max` such names, removes and
    /// returns the least recently requested one, preferably one that no reader is waiting for.
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

    /// Moves a name from the unknown to the known names, because upstream has the model. If there are already
    /// `known_max` known names, first removes those that no reader has requested for `idle`. If there is still no room,
    /// the name remains unknown.
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
