//! Selection of the stalls whose flight records are dumped.
//!
//! A stall that persists, or that a member provokes repeatedly, is dumped at ever longer intervals, because frequent
//! dumps of one stall would displace other dumps in the file.

use std::time::Duration;

use iswitch_protocol::Instant;
use iswitch_protocol::limits::MAX_JOBS;

use iswitch_switch::Event;

/// Maximum number of dumps between two calls of [`Stalls::refill`].
const DUMPS_PER_INTERVAL: u32 = 4;
/// Pause after the first dump, during which the same kind of stall of the same job is not dumped.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Maximum pause between dumps of the same kind of stall of the same job; each dump doubles the pause up to this limit.
const LAST_PAUSE: Duration = Duration::from_secs(1024);
/// Maximum number of pauses that are stored: one for each possible job and each kind of [stall](Event::is_stall).
const PAUSES: usize = MAX_JOBS * 5;

/// Record of the stalls that were dumped recently.
pub(crate) struct Stalls {
    left: u32,
    pauses: Vec<Pause>,
}

/// Pause after a dump.
struct Pause {
    job: u32,
    kind: &'static str,
    len: Duration,
    end: Instant,
}

impl Stalls {
    /// Returns an empty record.
    pub(crate) fn new() -> Self {
        Self { left: DUMPS_PER_INTERVAL, pauses: Vec::with_capacity(PAUSES) }
    }

    /// Allows new dumps. Call this about once a second.
    pub(crate) fn refill(&mut self) {
        self.left = DUMPS_PER_INTERVAL;
    }

    /// Returns the job whose flight records must be dumped because of this event. Returns `None` if the event is not a
    /// stall, or if dumps of this kind of stall are paused.
    pub(crate) fn admit(&mut self, now: Instant, event: &Event) -> Option<u32> {
        let job = event.job().filter(|_| event.is_stall() && self.left > 0)?;
        let kind = event.name();
        let known = self.pauses.iter().position(|pause| (pause.job, pause.kind) == (job, kind));
        let len = match known.map(|at| &self.pauses[at]) {
            Some(pause) if now < pause.end => return None,
            // A stall that has not recurred for twice the pause counts as new.
            Some(pause) if now < pause.end.plus(pause.len) => (pause.len * 2).min(LAST_PAUSE),
            _ => FIRST_PAUSE,
        };
        let place = known.or_else(|| self.place_of_oldest());
        let pause = Pause { job, kind, len, end: now.plus(len) };
        match place {
            Some(at) => self.pauses[at] = pause,
            None => self.pauses.push(pause),
        }
        self.left -= 1;
        Some(job)
    }

    /// If the list of stored pauses is full, returns the index of the oldest one, which the next pause replaces.
    fn place_of_oldest(&self) -> Option<usize> {
        let is_full = self.pauses.len() == PAUSES;
        let oldest = || (0..self.pauses.len()).min_by_key(|at| self.pauses[*at].end);
        is_full.then(oldest).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iswitch_protocol::Round;

    fn diverged(job: u32) -> Event {
        Event::Diverged { job, round: Round::new(1), member: 0, other: 1 }
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn a_recurring_stall_is_dumped_at_growing_intervals() {
        let mut stalls = Stalls::new();
        let dumped: Vec<u64> = (0..100)
            .filter(|second| {
                stalls.refill();
                // Several stalls per second.
                (0..9).filter(|_| stalls.admit(at(*second), &diverged(7)).is_some()).count() == 1
            })
            .collect();
        assert_eq!(dumped, [0, 1, 3, 7, 15, 31, 63]);
        // Another kind of stall and another job are dumped immediately; the same stall is dumped once it has been quiet
        // for long enough.
        stalls.refill();
        assert_eq!(stalls.admit(at(100), &Event::JobForgotten { job: 7 }), Some(7));
        assert_eq!(stalls.admit(at(100), &diverged(8)), Some(8));
        assert_eq!(stalls.admit(at(100), &diverged(7)), None);
        assert_eq!(stalls.admit(at(63 + 64 + 64), &diverged(7)), Some(7));
        stalls.refill();
        assert_eq!(stalls.admit(at(63 + 64 + 64 + 1), &diverged(7)), Some(7), "a new stall");
    }

    #[test]
    fn the_numbers_of_dumped_and_remembered_stalls_are_limited() {
        let mut stalls = Stalls::new();
        let all = DUMPS_PER_INTERVAL + 1;
        assert_eq!((0..all).filter_map(|job| stalls.admit(at(0), &diverged(job))).count(), all as usize - 1);
        for job in 0..2 * PAUSES as u32 {
            stalls.refill();
            assert_eq!(stalls.admit(at(1 + u64::from(job)), &diverged(job)), Some(job));
        }
        assert_eq!(stalls.pauses.len(), PAUSES);
        assert_eq!(stalls.admit(at(1), &Event::JobEnded { job: 1 }), None, "no stall");
    }
}
