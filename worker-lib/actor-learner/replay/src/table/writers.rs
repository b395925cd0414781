//! Record of the items that each actor has inserted. It prevents a retransmitted request from inserting items a second
//! time. As with Kafka's idempotent producers, an actor numbers its items, and a restarted actor fences off its
//! predecessor.

use std::collections::HashMap;

use super::item::Origin;
use crate::limits::{SEQ_WINDOW, WRITERS_MAX};

const WORDS: usize = (SEQ_WINDOW / 64) as usize;

/// Reasons to refuse an item because of its actor, session or sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OriginError {
    /// A later session of the actor has already inserted items.
    Fenced { latest: u64 },
    /// The sequence number is older than the window, so the table no longer knows whether the item was inserted.
    Forgotten { oldest: u64 },
}

/// Window of an actor's most recent sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) session: u64,
    /// Greatest sequence number so far.
    pub(crate) newest: u64,
    /// Bitmap of the most recent `SEQ_WINDOW` sequence numbers. Bit `seq % SEQ_WINDOW` represents `seq`.
    pub(crate) inserted: [u64; WORDS],
}

impl Window {
    fn new(origin: Origin) -> Self {
        Self { session: origin.session, newest: origin.seq, inserted: [0; WORDS] }
    }

    fn has(&self, seq: u64) -> bool {
        self.inserted[word(seq)] & bit(seq) != 0
    }

    fn mark(&mut self, seq: u64) {
        if seq > self.newest {
            if seq - self.newest >= SEQ_WINDOW {
                self.inserted = [0; WORDS];
            } else {
                (self.newest + 1..=seq).for_each(|passed| self.inserted[word(passed)] &= !bit(passed));
            }
            self.newest = seq;
        }
        self.inserted[word(seq)] |= bit(seq);
    }

    /// Returns the oldest sequence number in the window.
    fn oldest(&self) -> u64 {
        (self.newest + 1).saturating_sub(SEQ_WINDOW)
    }
}

fn word(seq: u64) -> usize {
    (seq % SEQ_WINDOW / 64) as usize
}

fn bit(seq: u64) -> u64 {
    1 << (seq % 64)
}

/// Windows of all actors of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writers {
    windows: HashMap<u64, (Window, u64)>,
    /// Logical clock that advances with each insert. It is used to find the actors that have been inactive for the
    /// longest time.
    clock: u64,
}

impl Writers {
    /// Returns whether an item with this origin has already been inserted.
    pub(crate) fn has(&self, origin: Origin) -> Result<bool, OriginError> {
        let Some((window, _)) = self.windows.get(&origin.actor) else { return Ok(false) };
        if origin.session < window.session {
            return Err(OriginError::Fenced { latest: window.session });
        }
        if origin.session > window.session {
            return Ok(false);
        }
        if origin.seq < window.oldest() {
            return Err(OriginError::Forgotten { oldest: window.oldest() });
        }
        Ok(origin.seq <= window.newest && window.has(origin.seq))
    }

    /// Records that an item was inserted. Has no effect if [`Self::has`] refuses the item's origin.
    pub(crate) fn mark(&mut self, origin: Origin) {
        if self.windows.len() >= WRITERS_MAX && !self.windows.contains_key(&origin.actor) {
            self.forget_some();
        }
        self.clock += 1;
        let (window, used) = self.windows.entry(origin.actor).or_insert((Window::new(origin), 0));
        *used = self.clock;
        if origin.session > window.session {
            *window = Window::new(origin);
        }
        if origin.session == window.session && origin.seq >= window.oldest() {
            window.mark(origin.seq);
        }
    }

    /// Loads the window of an actor from a snapshot.
    pub(crate) fn restore(&mut self, actor: u64, window: Window) {
        self.clock += 1;
        self.windows.insert(actor, (window, self.clock));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Window)> {
        self.windows.iter().map(|(actor, (window, _))| (*actor, window))
    }

    /// Forgets the least recently active eighth of the actors. Because it forgets many at once, most inserts need no
    /// search for inactive actors.
    fn forget_some(&mut self) {
        let mut used: Vec<u64> = self.windows.values().map(|(_, used)| *used).collect();
        let (_, limit, _) = used.select_nth_unstable(WRITERS_MAX / 8);
        let limit = *limit;
        self.windows.retain(|_, (_, used)| *used > limit);
    }
}

#[cfg(test)]
mod tests;
