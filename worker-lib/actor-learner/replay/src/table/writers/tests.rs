use super::*;
use proptest::prelude::*;
use std::collections::HashSet;

fn origin(actor: u64, session: u64, seq: u64) -> Origin {
    Origin { actor, session, seq }
}

proptest! {
    /// Tests that marked numbers are known, that unmarked numbers are not, and that numbers older than the window are
    /// refused.
    #[test]
    fn windows_remember_recent_numbers(jumps in prop::collection::vec((0_u64..3000, any::<bool>()), 1..200)) {
        let mut writers = Writers::default();
        let (mut marked, mut newest) = (HashSet::new(), 0);
        for (jump, is_back) in jumps {
            let seq = if is_back { u64::saturating_sub(newest, jump) } else { newest + jump % 40 };
            let known = writers.has(origin(1, 1, seq));
            let is_forgotten = !marked.is_empty() && seq + SEQ_WINDOW <= newest;
            if is_forgotten {
                prop_assert_eq!(known, Err(OriginError::Forgotten { oldest: newest + 1 - SEQ_WINDOW }));
            } else {
                prop_assert_eq!(known, Ok(marked.contains(&seq)));
                writers.mark(origin(1, 1, seq));
                marked.insert(seq);
                newest = newest.max(seq);
            }
        }
    }
}

#[test]
fn a_later_session_fences_off_the_earlier_one() {
    let mut writers = Writers::default();
    writers.mark(origin(7, 1, 5));
    assert_eq!(writers.has(origin(7, 1, 5)), Ok(true));
    assert_eq!(writers.has(origin(7, 2, 5)), Ok(false));
    writers.mark(origin(7, 2, 0));
    assert_eq!(writers.has(origin(7, 2, 5)), Ok(false));
    assert_eq!(writers.has(origin(7, 1, 6)), Err(OriginError::Fenced { latest: 2 }));
    assert_eq!(writers.has(origin(8, 1, 6)), Ok(false));
}

#[test]
fn the_least_recently_active_actors_are_forgotten() {
    let mut writers = Writers::default();
    for actor in 0..WRITERS_MAX as u64 {
        writers.mark(origin(actor, 1, 0));
    }
    writers.mark(origin(0, 1, 1));
    writers.mark(origin(u64::MAX, 1, 0));
    assert!(writers.iter().count() <= WRITERS_MAX);
    assert_eq!(writers.has(origin(0, 1, 0)), Ok(true));
    assert_eq!(writers.has(origin(u64::MAX, 1, 0)), Ok(true));
    assert_eq!(writers.has(origin(1, 1, 0)), Ok(false));
}
