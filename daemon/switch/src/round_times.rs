//! Histogram of the durations of a job's rounds.

use core::time::Duration;

use iswitch_protocol::Instant;

/// Upper bounds of the buckets of a [`RoundTimes`], in microseconds. The bounds are inclusive. One further bucket has
/// no upper bound.
pub const ROUND_TIME_BOUNDS_US: [u64; 16] = [
    100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000, 10_000_000,
];

/// Histogram of the durations of a job's rounds, each from its first contribution to its last result. In an
/// asynchronous job, it contains the durations of the aggregates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundTimes {
    /// Number of rounds in each bucket. Each bucket that has a bound in [`ROUND_TIME_BOUNDS_US`] counts the rounds
    /// whose duration exceeds the preceding bound but not its own; the last bucket counts those that exceed all bounds.
    pub buckets: [u64; ROUND_TIME_BOUNDS_US.len() + 1],
    /// Sum of all durations, in microseconds.
    pub sum_us: u64,
    /// Time at which the current aggregate began, in an asynchronous job.
    opened: Option<Instant>,
}

impl RoundTimes {
    pub(crate) fn record(&mut self, duration: Duration) {
        let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.buckets[ROUND_TIME_BOUNDS_US.partition_point(|bound| *bound < us)] += 1;
        self.sum_us = self.sum_us.saturating_add(us);
    }

    /// Notes that an aggregate begins.
    pub(crate) fn open(&mut self, now: Instant) {
        self.opened = Some(now);
    }

    /// Records the duration of the aggregate whose beginning [`Self::open`] noted.
    pub(crate) fn close(&mut self, now: Instant) {
        if let Some(opened) = self.opened.take() {
            self.record(now.since(opened));
        }
    }

    /// Returns the number of recorded rounds.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_inclusive_and_ascending() {
        assert!(ROUND_TIME_BOUNDS_US.is_sorted());
        let mut times = RoundTimes::default();
        for (at, bound) in ROUND_TIME_BOUNDS_US.into_iter().enumerate() {
            times.record(Duration::from_micros(bound));
            assert_eq!(times.buckets[at], 1, "{bound}");
        }
        times.record(Duration::from_secs(11));
        assert_eq!((times.buckets[ROUND_TIME_BOUNDS_US.len()], times.count()), (1, 17));
        assert_eq!(times.sum_us, ROUND_TIME_BOUNDS_US.iter().sum::<u64>() + 11_000_000);
    }

    #[test]
    fn an_aggregate_is_recorded_once() {
        let (begin, mut times) = (Instant::from_nanos(5), RoundTimes::default());
        times.close(begin);
        times.open(begin);
        times.close(begin.plus(Duration::from_micros(300)));
        times.close(begin.plus(Duration::from_micros(900)));
        assert_eq!((times.count(), times.sum_us), (1, 300));
    }
}
