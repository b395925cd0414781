//! The origin of a job: an epoch that differs from those of all other incarnations, and a first round that no packet in
//! flight can name.
//!
//! The keys of tagged results are derived from the epoch, so a recorded result is never valid in a later
//! incarnation, regardless of the round numbers of that incarnation. The first round protects against late packets of
//! honest senders. Because round numbers wrap after 2^24 and can be compared only if they are less than half of that
//! range apart, rounds are also counted in 64 bits.

use core::hash::Hasher;

use iswitch_protocol::Round;
use iswitch_protocol::limits::ROUND_BITS;
use siphasher::sip::SipHasher24;

/// A round number, together with its 64-bit count, which does not wrap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    round: Round,
    count: u64,
}

impl Position {
    pub(crate) fn round(self) -> Round {
        self.round
    }

    /// Moves forward to `round`. Does nothing if `round` is earlier.
    pub(crate) fn advance(&mut self, round: Round) {
        if self.round.is_before(round) {
            self.count += u64::from(round.distance_from(self.round));
            self.round = round;
        }
    }
}

/// Generator of the epochs and first rounds of jobs.
#[derive(Debug)]
pub(crate) struct Origins {
    boot: u64,
    incarnations: u64,
    next: Position,
}

impl Origins {
    /// Creates the generator for a run of the switch. The first round is taken from the upper bits of `boot`, so that
    /// late packets of an earlier run do not name rounds of this run (M-7).
    pub(crate) fn new(boot: u64) -> Self {
        let round = Round::new((boot >> (u64::BITS - ROUND_BITS)) as u32);
        Self { boot, incarnations: 0, next: Position { round, count: 0 } }
    }

    /// Returns the epoch of a new incarnation of a job. It is neither zero nor `boot`. It differs from all other epochs
    /// of this run and, because `boot` is drawn at random, from those of all other runs.
    pub(crate) fn take_epoch(&mut self) -> u64 {
        loop {
            self.incarnations += 1;
            let mut hasher = SipHasher24::new_with_keys(self.boot, 0);
            hasher.write(&self.incarnations.to_le_bytes());
            let epoch = hasher.finish();
            if epoch != 0 && epoch != self.boot {
                return epoch;
            }
        }
    }

    /// Returns the position at which the next job begins.
    pub(crate) fn next(&self) -> Position {
        self.next
    }

    /// Records the end of a job whose packets in flight all name rounds before `position`.
    pub(crate) fn end_before(&mut self, position: Position) {
        if self.next.count < position.count {
            self.next = position;
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn no_epoch_is_issued_twice() {
        let mut origins = Origins::new(42);
        let mut epochs: Vec<u64> = (0..1000).map(|_| origins.take_epoch()).collect();
        assert_ne!(epochs[0], Origins::new(43).take_epoch());
        epochs.sort_unstable();
        epochs.dedup();
        assert_eq!(epochs.len(), 1000);
        assert!(!epochs.contains(&0) && !epochs.contains(&42));
    }

    #[test]
    fn the_next_job_starts_after_the_furthest_round_of_ended_jobs() {
        const STEP: u32 = 1 << 22;
        let mut origins = Origins::new(5 << 40);
        let mut far = origins.next();
        let mut near = origins.next();
        assert_eq!(far.round(), Round::new(5));
        // Advance by more than half of the range, so that the first round would seem to lie ahead.
        for _ in 0..3 {
            far.advance(far.round().plus(STEP));
        }
        near.advance(near.round().plus(7));
        origins.end_before(far);
        assert_eq!(origins.next().round(), Round::new(5 + 3 * STEP));
        origins.end_before(near);
        assert_eq!(origins.next().round(), Round::new(5 + 3 * STEP));
        // The round numbers wrap.
        far.advance(far.round().plus(STEP));
        origins.end_before(far);
        assert_eq!(origins.next().round(), Round::new(5));
    }

    #[test]
    fn advancing_to_an_earlier_round_changes_nothing() {
        let mut position = Origins::new(9 << 40).next();
        position.advance(Round::new(8));
        assert_eq!((position.round(), position.count), (Round::new(9), 0));
    }
}
