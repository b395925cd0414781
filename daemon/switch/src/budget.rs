//! Budget for the repeated results that a member may request.
//!
//! Without a budget, an attacker who forges Helps from a member could make the switch send any number of results that
//! the member does not need. Each result of the job adds a few segments to the budget of each member, which is more
//! than the retransmissions due to packet loss consume. The budget also grows with time, so that a member that is far
//! behind, or whose round is stalled, can recover.

use core::time::Duration;

use iswitch_protocol::Instant;
use iswitch_protocol::limits::{MIN_REPEATS, REPEATS_PER_RESULT};

/// Number of segments that a member may still request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RepeatBudget {
    credit: u64,
    /// Number of results of the job that are already counted in the budget.
    results: u64,
    at: Instant,
}

/// Quantities that determine how fast the budgets of a job's members grow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Income {
    /// Number of segments in the job's vector.
    pub(crate) segments: u32,
    /// Number of results of the job so far.
    pub(crate) results: u64,
    pub(crate) now: Instant,
    /// Time in which an empty budget becomes full again.
    pub(crate) lease: Duration,
}

impl Income {
    fn most(&self) -> u64 {
        (REPEATS_PER_RESULT * u64::from(self.segments)).max(MIN_REPEATS)
    }
}

impl RepeatBudget {
    /// Creates a full budget.
    pub(crate) fn new(income: &Income) -> Self {
        Self { credit: income.most(), results: income.results, at: income.now }
    }

    /// Takes `segments` from the budget. Returns false, and takes none, if fewer are left.
    pub(crate) fn take(&mut self, segments: u64, income: &Income) -> bool {
        let most = income.most();
        let in_time = self.take_time(most, income);
        let earned = REPEATS_PER_RESULT.saturating_mul(income.results - self.results);
        self.results = income.results;
        self.credit = self.credit.saturating_add(earned).saturating_add(in_time).min(most);
        let is_enough = segments <= self.credit;
        if is_enough {
            self.credit -= segments;
        }
        is_enough
    }

    /// Returns the number of segments by which the time since the previous call increases the budget. A fraction of a
    /// segment carries over to the next call.
    fn take_time(&mut self, most: u64, income: &Income) -> u64 {
        let lease = income.lease.as_nanos().max(1);
        let elapsed = income.now.since(self.at).as_nanos();
        let earned = u128::from(most) * elapsed / lease;
        let used = earned * lease / u128::from(most);
        self.at = self.at.plus(Duration::from_nanos(u64::try_from(used).unwrap_or(u64::MAX)));
        u64::try_from(earned).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn income(results: u64, now_ms: u64) -> Income {
        let now = Instant::from_nanos(now_ms * 1_000_000);
        Income { segments: 1000, results, now, lease: Duration::from_secs(10) }
    }

    #[test]
    fn results_and_elapsed_time_replenish_a_budget() {
        let most = 1000 * REPEATS_PER_RESULT;
        let mut budget = RepeatBudget::new(&income(5, 0));
        assert!(budget.take(most, &income(5, 0)) && !budget.take(1, &income(5, 0)));
        assert!(budget.take(3 * REPEATS_PER_RESULT, &income(8, 0)) && !budget.take(1, &income(8, 0)));
        // Elapsed time is credited only once, regardless of how often the budget is used.
        (0..5000).for_each(|ms| assert!(!budget.take(most / 2 + 1, &income(8, ms))));
        assert!(budget.take(most / 2 - 1, &income(8, 5000)));
        assert!(
            !budget.take(most + 1, &income(1 << 40, 1 << 30)),
            "the budget should not exceed its maximum"
        );
        assert!(budget.take(most, &income(1 << 40, 1 << 30)));
    }
}
