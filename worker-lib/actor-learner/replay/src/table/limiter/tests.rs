use super::*;
use proptest::prelude::*;

/// A line-by-line transcription of Reverb's `rate_limiter.cc`, with signed counters.
struct Reverb {
    samples_per_insert: f64,
    min_size_to_sample: i64,
    min_diff: f64,
    max_diff: f64,
    inserts: i64,
    samples: i64,
    deletes: i64,
}

impl Reverb {
    fn can_sample(&self, num: i64) -> bool {
        if self.inserts - self.deletes < self.min_size_to_sample {
            return false;
        }
        self.inserts as f64 * self.samples_per_insert - self.samples as f64 - num as f64 >= self.min_diff
    }

    fn can_insert(&self, num: i64) -> bool {
        if self.inserts + num - self.deletes <= self.min_size_to_sample {
            return true;
        }
        (num + self.inserts) as f64 * self.samples_per_insert - self.samples as f64 <= self.max_diff
    }
}

fn limiters() -> impl Strategy<Value = RateLimiter> {
    prop_oneof![
        (1_u64..20).prop_map(RateLimiter::min_size),
        (1_u64..20).prop_map(RateLimiter::queue),
        (prop::sample::select(vec![0.25_f64, 0.5, 1.0, 2.0, 8.0]), 1_u64..20, 0.0_f64..20.0).prop_map(
            |(ratio, size, extra)| {
                let margin = ErrorBuffer::Margin(ratio.max(1.0) + extra);
                RateLimiter::sample_to_insert_ratio(ratio, size, margin).unwrap()
            }
        ),
    ]
}

proptest! {
    #[test]
    fn limiter_decisions_match_reverb(limiter in limiters(), steps in prop::collection::vec(0_u8..5, 1..300)) {
        let mut counts = Counts::default();
        let mut reverb = Reverb {
            samples_per_insert: limiter.samples_per_insert,
            min_size_to_sample: limiter.min_size_to_sample as i64,
            min_diff: limiter.min_diff,
            max_diff: limiter.max_diff,
            inserts: 0,
            samples: 0,
            deletes: 0,
        };
        for step in steps {
            prop_assert_eq!(limiter.can_insert(&counts), reverb.can_insert(1));
            prop_assert_eq!(limiter.can_sample(&counts), reverb.can_sample(1));
            match step {
                0 | 1 if reverb.can_insert(1) => {
                    reverb.inserts += 1;
                    counts.inserts += 1;
                }
                2 | 3 if reverb.can_sample(1) => {
                    reverb.samples += 1;
                    counts.samples += 1;
                }
                4 if reverb.inserts > reverb.deletes => {
                    reverb.deletes += 1;
                    counts.deletes += 1;
                }
                _ => {}
            }
        }
    }

    /// Tests that the ratio remains within the margin for any sequence of attempts, and that inserts and samples are
    /// never held back at the same time.
    #[test]
    fn the_sample_to_insert_ratio_stays_within_its_margin(
        (ratio, size) in (0.1_f64..10.0, 1_u64..30),
        tries in prop::collection::vec(any::<bool>(), 1..500),
    ) {
        let margin = 2.0 * ratio.max(1.0);
        let limiter = RateLimiter::sample_to_insert_ratio(ratio, size, ErrorBuffer::Margin(margin)).unwrap();
        let mut counts = Counts::default();
        for is_insert in tries {
            let (insert, sample) = (limiter.can_insert(&counts), limiter.can_sample(&counts));
            prop_assert!(insert || sample);
            if is_insert && insert {
                counts.inserts += 1;
            } else if !is_insert && sample {
                counts.samples += 1;
            }
            if counts.inserts > size {
                let error = (counts.inserts - size) as f64 * ratio - counts.samples as f64;
                prop_assert!(error.abs() <= margin + 1e-9, "{} of {}", error, margin);
            }
        }
    }
}

#[test]
fn limiter_bounds_that_would_block_forever_are_refused() {
    let error =
        RateLimiter::sample_to_insert_ratio(4.0, 10, ErrorBuffer::Margin(3.0)).unwrap_err().to_string();
    assert_eq!(
        error,
        "error_buffer of the rate limiter is a range of width 6, expected a width of at least 8, twice the larger of 1 \
         and samples_per_insert"
    );
    let above = ErrorBuffer::Range(50.0, 90.0);
    assert_eq!(RateLimiter::sample_to_insert_ratio(4.0, 10, above).unwrap_err().field, "error_buffer");
    let none = RateLimiter::min_size(0).checked().unwrap_err().to_string();
    assert_eq!(none, "min_size_to_sample of the rate limiter is 0, expected at least 1");
    for ratio in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(RateLimiter { samples_per_insert: ratio, ..RateLimiter::min_size(1) }.checked().is_err());
    }
}
