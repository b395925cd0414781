//! The history of a job: one number that identifies the exact sequence of sums that a member has applied.
//!
//! Two members with the same history have the same sums, and therefore the same weights. A restarted switch has
//! forgotten its jobs. From the histories of the members that rejoin, it determines which of them are up to date,
//! which lack only the last sum, and which cannot catch up (requirements M-8 to M-10).

use crate::limits::TURN_BITS;
use crate::segment::Round;

/// Mask of the bits in which the history of a part counts the sums.
const TURN_MASK: u64 = (1 << TURN_BITS) - 1;

/// Rule by which a history is computed from the preceding one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chain {
    /// Rule for histories of a whole vector, which only identify its sums.
    Whole,
    /// Rule for histories of one part of a vector. The low bits of such a history also count the sums of the part, so
    /// that a member can determine whether all parts have the same number of sums although each part numbers its rounds
    /// independently (requirement T-6).
    Part,
}

impl Chain {
    /// Returns the rule for a job; `part` states whether the flag "part" is set in the Joins of the job.
    #[inline]
    pub const fn of(part: bool) -> Self {
        if part { Self::Part } else { Self::Whole }
    }

    /// Returns the initial history of a job whose current incarnation has epoch `boot` and begins at `round`. The
    /// result is never zero.
    #[inline]
    pub fn begin(self, boot: u64, job: u32, round: Round) -> u64 {
        self.counted(begin(boot, job, round), 0)
    }

    /// Returns the history after the sum of `round` was added to `history`. The result is never zero.
    #[inline]
    pub fn after(self, history: u64, boot: u64, round: Round) -> u64 {
        self.counted(after(history, boot, round), u64::from(turn(history)) + 1)
    }

    fn counted(self, history: u64, turn: u64) -> u64 {
        match self {
            Self::Whole => history,
            // The bit above the count keeps the history from becoming zero.
            Self::Part => history & !TURN_MASK | 1 << TURN_BITS | turn & TURN_MASK,
        }
    }
}

/// Returns the number of sums in the history of a part, modulo 2^24.
#[inline]
pub const fn turn(history: u64) -> u32 {
    (history & TURN_MASK) as u32
}

/// Returns the initial history of a whole-vector job whose current incarnation has epoch `boot` and begins at
/// `round`. The result is never zero.
#[inline]
pub fn begin(boot: u64, job: u32, round: Round) -> u64 {
    non_zero(mix(mix(boot) ^ u64::from(job) << 32 ^ u64::from(round.get())))
}

/// Returns the history after the sum of `round` was added to the `history` of a whole vector. The result is never zero.
#[inline]
pub fn after(history: u64, boot: u64, round: Round) -> u64 {
    non_zero(mix(mix(history ^ boot) ^ u64::from(round.get())))
}

/// Finaliser of SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ x >> 31
}

/// Replaces zero, which stands for "no history", with 1.
fn non_zero(x: u64) -> u64 {
    if x == 0 { 1 } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histories_of_different_sums_differ() {
        let round = Round::new(7);
        let first = begin(1, 2, round);
        let all = [
            first,
            begin(2, 2, round),
            begin(1, 3, round),
            begin(1, 2, round.next()),
            after(first, 1, round),
            after(first, 2, round),
            after(first, 1, round.next()),
            after(after(first, 1, round), 1, round.next()),
        ];
        for (position, history) in all.iter().enumerate() {
            assert!(!all[..position].contains(history));
        }
    }

    #[test]
    fn the_history_function_is_fixed() {
        // Members and the switch may run different versions.
        assert_eq!(begin(0x0123_4567_89ab_cdef, 1, Round::new(0)), 8_874_051_391_050_643_150);
        assert_eq!(after(1, 0x0123_4567_89ab_cdef, Round::new(9)), 10_185_778_304_968_672_382);
    }

    #[test]
    fn the_history_of_a_part_counts_its_sums() {
        let mut history = Chain::Part.begin(5, 1, Round::new(0x00ff_fffe));
        let mut round = Round::new(0x00ff_fffe);
        for sums in 0..100 {
            assert_eq!(turn(history), sums);
            assert_ne!(history, 0);
            let next = Chain::Part.after(history, 5, round);
            assert_ne!(next & !TURN_MASK, history & !TURN_MASK);
            (history, round) = (next, round.next());
        }
        let last = history | TURN_MASK;
        assert_eq!(turn(Chain::Part.after(last, 5, round)), 0, "the count wraps");
        assert_eq!(Chain::Whole.after(9, 5, round), after(9, 5, round));
        assert_eq!(Chain::Whole.begin(5, 1, round), begin(5, 1, round));
    }

    #[test]
    fn the_history_function_of_parts_is_fixed() {
        let first = Chain::Part.begin(0x0123_4567_89ab_cdef, 1, Round::new(0));
        assert_eq!(first, 8_874_051_391_065_161_728);
        assert_eq!(Chain::Part.after(first, 0x0123_4567_89ab_cdef, Round::new(0)), 7_405_319_277_185_597_441);
    }
}
