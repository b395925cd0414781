//! The history of a job: one number that identifies the exact sequence of sums that a member has applied.
//!
//! Two members with the same history have the same sums, and therefore the same weights. A restarted switch has
//! forgotten its jobs. From the histories of the members that rejoin, it determines which of them are up to date,
//! which lack only the last sum, and which cannot catch up (requirements M-8 to M-10).

use crate::segment::Round;

/// Returns the initial history of a job whose incarnation has the epoch `boot` and begins at `round`. Never zero.
#[inline]
pub fn begin(boot: u64, job: u32, round: Round) -> u64 {
    non_zero(mix(mix(boot) ^ u64::from(job) << 32 ^ u64::from(round.get())))
}

/// Returns the history after the sum of `round` was added to `history`. Never zero.
#[inline]
pub fn after(history: u64, boot: u64, round: Round) -> u64 {
    non_zero(mix(mix(history ^ boot) ^ u64::from(round.get())))
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ x >> 31
}

/// Replaces zero, which stands for "no history", by 1.
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
}
