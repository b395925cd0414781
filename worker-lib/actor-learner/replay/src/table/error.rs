//! Errors of inserts and samples, and the conditions that they wait for.

use super::{Counts, RateLimiter, Selector};

/// Reasons to refuse a request permanently.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// A priority is not a finite number.
    #[error("priority is {priority}, expected a finite number")]
    PriorityNotFinite {
        /// Invalid priority.
        priority: f64,
    },
    /// A priority is negative, or its weight is so large that the sum of the weights could overflow.
    #[error(
        "priority is {priority}, expected at least 0, and at most 2^40 when raised to the exponent of {selector}"
    )]
    PriorityOutOfRange {
        /// Invalid priority.
        priority: f64,
        /// Selector in which the weight would be out of range.
        selector: Selector,
    },
    /// The payload is too long even for an empty table.
    #[error("payload is {len} bytes long, expected at most {most}")]
    PayloadTooLong {
        /// Length of the payload, in bytes.
        len: u64,
        /// Maximum length of a payload, in bytes.
        most: u64,
    },
}

/// Reasons to hold a request back temporarily.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Held {
    /// The rate limiter holds back the insert until more items are sampled.
    #[error(
        "the rate limiter is waiting for samples: an insert would raise inserts x samples_per_insert - samples to {}, \
         expected at most {} (inserts {}, samples {}, items {})",
        .limiter.difference(.counts) + .limiter.samples_per_insert, .limiter.max_diff, .counts.inserts, .counts.samples,
        .counts.size()
    )]
    Inserts {
        /// Counts of the table.
        counts: Counts,
        /// Rate limiter of the table.
        limiter: RateLimiter,
    },
    /// The rate limiter holds back the sample until more items are inserted.
    #[error(
        "the rate limiter is waiting for inserts: the table has {} items, expected at least {}; a sample would lower \
         inserts x samples_per_insert - samples to {}, expected at least {} (inserts {}, samples {})",
        .counts.size(), .limiter.min_size_to_sample, .limiter.difference(.counts) - 1.0, .limiter.min_diff,
        .counts.inserts, .counts.samples
    )]
    Samples {
        /// Counts of the table.
        counts: Counts,
        /// Rate limiter of the table.
        limiter: RateLimiter,
    },
    /// The table is full, and it is configured not to remove items to make room.
    #[error(
        "the table is full with {items} items ({bytes} bytes in total), and its items are removed only when they are \
         sampled"
    )]
    Full {
        /// Number of items in the table.
        items: u64,
        /// Size of the table's items in bytes.
        bytes: u64,
    },
}
