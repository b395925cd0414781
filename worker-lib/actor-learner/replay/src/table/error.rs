//! Why an item is not inserted or not drawn.

use super::{Counts, RateLimiter, Selector};

/// It can never be done.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// Selectors order numbers.
    #[error("priority is {priority}, expected a finite number")]
    PriorityNotFinite {
        /// What it was.
        priority: f64,
    },
    /// Chances are not negative, and their sum has to fit.
    #[error("priority is {priority}, expected 0 to 2^40 to the power of the exponent of {selector}")]
    PriorityOutOfRange {
        /// What it was.
        priority: f64,
        /// Whose weight it would be.
        selector: Selector,
    },
    /// The table could not hold it if it were empty.
    #[error("payload is {len} bytes long, expected at most {most}")]
    PayloadTooLong {
        /// Bytes.
        len: u64,
        /// Bytes that the table has room for.
        most: u64,
    },
}

/// It has to wait.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Held {
    /// The rate limiter waits for samples.
    #[error(
        "the rate limiter waits for samples: an insert would make the difference {}, expected at most {} (inserts {}, \
         samples {}, items {})",
        .limiter.difference(.counts) + .limiter.samples_per_insert, .limiter.max_diff, .counts.inserts, .counts.samples,
        .counts.size()
    )]
    Inserts {
        /// What was done so far.
        counts: Counts,
        /// The rule.
        limiter: RateLimiter,
    },
    /// The rate limiter waits for inserts.
    #[error(
        "the rate limiter waits for inserts: {} items, expected at least {}; a sample would make the difference {}, \
         expected at least {} (inserts {}, samples {})",
        .counts.size(), .limiter.min_size_to_sample, .limiter.difference(.counts) - 1.0, .limiter.min_diff,
        .counts.inserts, .counts.samples
    )]
    Samples {
        /// What was done so far.
        counts: Counts,
        /// The rule.
        limiter: RateLimiter,
    },
    /// There is no room, and nothing is removed for new items.
    #[error(
        "the table is full with {items} items of {bytes} bytes, and its items are removed only when they are sampled"
    )]
    Full {
        /// Items in the table.
        items: u64,
        /// Bytes in the table.
        bytes: u64,
    },
}
