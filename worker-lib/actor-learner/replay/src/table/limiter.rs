//! The rate limiter, which limits how far inserts and samples can run ahead of each other. Its rules and their names
//! are those of Reverb (Cassirer et al., "Reverb: a framework for experience replay", 2021, and its `rate_limiter.cc`).

use serde::{Deserialize, Serialize};

/// Rate limiter of a table.
///
/// With i inserts, s samples and d removals so far, and `difference` = i x `samples_per_insert` - s, the rules are:
/// - an insert is allowed if the table has at most `min_size_to_sample` items after the insert (i + 1 - d), or if the
///   difference after the insert is at most `max_diff`;
/// - a sample is allowed if the table has at least `min_size_to_sample` items and the difference after the sample is
///   at least `min_diff`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimiter {
    /// Number of samples that each insert allows; above 0.
    pub samples_per_insert: f64,
    /// Minimum number of items in the table before sampling starts; at least 1.
    pub min_size_to_sample: u64,
    /// Minimum `difference` after a sample.
    pub min_diff: f64,
    /// Maximum `difference` after an insert.
    pub max_diff: f64,
}

/// Margin of error for [`RateLimiter::sample_to_insert_ratio`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ErrorBuffer {
    /// Margin below and above `samples_per_insert` x `min_size_to_sample`.
    Margin(f64),
    /// Minimum and maximum `difference`, given directly.
    Range(f64, f64),
}

/// Invalid rate limiter, such as one that would block forever.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{field} of the rate limiter is {value}, expected {expected}")]
pub struct LimiterError {
    /// Name of the field.
    pub field: &'static str,
    /// Invalid value.
    pub value: String,
    /// Valid values.
    pub expected: String,
}

impl RateLimiter {
    /// Returns a limiter that delays samples until there are `min_size_to_sample` items. It delays nothing else.
    pub fn min_size(min_size_to_sample: u64) -> Self {
        Self { samples_per_insert: 1.0, min_size_to_sample, min_diff: -f64::MAX, max_diff: f64::MAX }
    }

    /// Returns a limiter with which each item is sampled `samples_per_insert` times on average, once there are
    /// `min_size_to_sample` items.
    ///
    /// # Errors
    /// Fails if the margin could hold back inserts and samples at the same time.
    pub fn sample_to_insert_ratio(
        samples_per_insert: f64,
        min_size_to_sample: u64,
        error_buffer: ErrorBuffer,
    ) -> Result<Self, LimiterError> {
        let offset = samples_per_insert * min_size_to_sample as f64;
        let (min_diff, max_diff) = match error_buffer {
            ErrorBuffer::Margin(margin) => (offset - margin, offset + margin),
            ErrorBuffer::Range(least, greatest) => (least, greatest),
        };
        let least_width = 2.0 * samples_per_insert.max(1.0);
        if max_diff - min_diff < least_width {
            let value = format!("a range of width {}", max_diff - min_diff);
            let expected =
                format!("a width of at least {least_width}, twice the larger of 1 and samples_per_insert");
            return Err(LimiterError { field: "error_buffer", value, expected });
        }
        if min_diff > offset {
            let value = format!("{min_diff} to {max_diff}");
            let expected =
                format!("a lower bound of at most samples_per_insert x min_size_to_sample ({offset})");
            return Err(LimiterError { field: "error_buffer", value, expected });
        }
        Self { samples_per_insert, min_size_to_sample, min_diff, max_diff }.checked()
    }

    /// Returns a limiter with which each item is sampled once. At most `size` items wait to be sampled. The limiter is
    /// meant for a table with a FIFO sampler, a FIFO remover and a `max_times_sampled` of 1.
    pub fn queue(size: u64) -> Self {
        Self { samples_per_insert: 1.0, min_size_to_sample: 1, min_diff: 0.0, max_diff: size as f64 }
    }

    /// Returns the same limiter as [`Self::queue`], for a table that draws the newest item first.
    pub fn stack(size: u64) -> Self {
        Self::queue(size)
    }

    /// # Errors
    /// Returns an error that names one of the fields that are out of range.
    pub fn checked(self) -> Result<Self, LimiterError> {
        let refuse = |field, value: String, expected: &str| {
            Err(LimiterError { field, value, expected: expected.to_owned() })
        };
        if !(self.samples_per_insert > 0.0 && self.samples_per_insert.is_finite()) {
            return refuse("samples_per_insert", self.samples_per_insert.to_string(), "a number above 0");
        }
        if self.min_size_to_sample < 1 {
            return refuse("min_size_to_sample", self.min_size_to_sample.to_string(), "at least 1");
        }
        if self.min_diff.is_nan() || self.max_diff.is_nan() || self.min_diff > self.max_diff {
            return refuse("min_diff", self.min_diff.to_string(), "at most max_diff");
        }
        Ok(self)
    }

    /// Returns whether one more insert is allowed.
    pub fn can_insert(&self, counts: &Counts) -> bool {
        if counts.inserts < self.min_size_to_sample.saturating_add(counts.deletes) {
            return true;
        }
        (counts.inserts + 1) as f64 * self.samples_per_insert - counts.samples as f64 <= self.max_diff
    }

    /// Returns whether one more sample is allowed.
    pub fn can_sample(&self, counts: &Counts) -> bool {
        counts.size() >= self.min_size_to_sample && self.difference(counts) - 1.0 >= self.min_diff
    }

    /// Returns the number of samples that the inserts so far allow, minus the number of samples so far.
    pub fn difference(&self, counts: &Counts) -> f64 {
        counts.inserts as f64 * self.samples_per_insert - counts.samples as f64
    }
}

/// Counts of the operations on a table since it was created or reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of inserted items.
    pub inserts: u64,
    /// Number of draws. An item that is drawn several times counts each time.
    pub samples: u64,
    /// Number of items removed for any reason.
    pub deletes: u64,
}

impl Counts {
    /// Returns the number of items in the table.
    pub fn size(&self) -> u64 {
        self.inserts.saturating_sub(self.deletes)
    }
}

#[cfg(test)]
mod tests;
