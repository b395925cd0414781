//! Latency histogram of requests.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Number of buckets per power of two. It limits the relative error of percentiles to 1/16.
const PARTS: usize = 16;
const POWERS: usize = 40;

/// Counts of durations in microseconds, in buckets of equal relative width. Several threads may record at the same
/// time.
#[derive(Debug)]
pub(crate) struct Histogram {
    buckets: Box<[AtomicU64]>,
    max_us: AtomicU64,
}

/// Quantiles of a histogram, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Quantiles {
    pub(crate) count: u64,
    /// Values at the quantiles 0.5, 0.9, 0.99 and 0.999.
    pub(crate) at: [u64; 4],
    pub(crate) max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: (0..PARTS * POWERS).map(|_| AtomicU64::new(0)).collect(), max_us: AtomicU64::new(0) }
    }
}

impl Histogram {
    pub(crate) fn record(&self, duration: Duration) {
        let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.buckets[bucket(us).min(self.buckets.len() - 1)].fetch_add(1, Relaxed);
        self.max_us.fetch_max(us, Relaxed);
    }

    pub(crate) fn quantiles(&self) -> Quantiles {
        let counts: Vec<u64> = self.buckets.iter().map(|bucket| bucket.load(Relaxed)).collect();
        let count: u64 = counts.iter().sum();
        let max = self.max_us.load(Relaxed);
        let at = [500, 900, 990, 999].map(|per_mille| {
            let rank = (count * per_mille).div_ceil(1000);
            let mut passed = 0;
            let place = counts.iter().position(|in_bucket| {
                passed += in_bucket;
                passed >= rank
            });
            place.map_or(0, upper).min(max)
        });
        Quantiles { count, at, max }
    }
}

fn bucket(us: u64) -> usize {
    if us < PARTS as u64 {
        return us as usize;
    }
    let power = us.ilog2() as usize - PARTS.ilog2() as usize;
    power * PARTS + (us >> power) as usize
}

/// Returns the maximum value of a bucket.
fn upper(bucket: usize) -> u64 {
    if bucket < 2 * PARTS {
        return bucket as u64;
    }
    let power = bucket / PARTS - 1;
    let part = (bucket - power * PARTS) as u64;
    ((part + 1) << power) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn histogram_buckets_are_narrow(us in 0_u64..1 << 40) {
            let at = bucket(us);
            prop_assert!(us <= upper(at) && upper(at) <= us + us / PARTS as u64);
            prop_assert!(at == 0 || upper(at - 1) < us);
        }
    }

    #[test]
    fn quantiles_match_the_recorded_durations() {
        let histogram = Histogram::default();
        assert_eq!(histogram.quantiles(), Quantiles::default());
        (1..=1000).for_each(|us| histogram.record(Duration::from_micros(us)));
        let quantiles = histogram.quantiles();
        assert_eq!((quantiles.count, quantiles.max), (1000, 1000));
        for (found, want) in quantiles.at.into_iter().zip([500, 900, 990, 999]) {
            assert!((want..=want + want / 16).contains(&found), "{found} for {want}");
        }
    }
}
