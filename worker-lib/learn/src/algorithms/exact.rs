//! Exact integer sums through an aggregator of f32.
//!
//! A number is split into 16-bit limbs, each written as one float. The sum of up to 256 limbs is below 2^24, and f32
//! represents every integer in that range, so the aggregator's sums are exact in any order and through any number of
//! switches. Negative numbers are in two's complement; an overflow of the top limb is dropped, as in any wrapping
//! addition.

use super::TrainError;
use iswitch::{AggregateError, GradientAggregator};

/// Maximum number of workers whose limbs can be summed exactly.
pub const WORKERS_MAX: usize = 256;

const LIMB_BITS: u32 = 16;
/// Number of floats for one 128-bit number.
pub const LIMBS: usize = 8;
/// Number of floats for one u64.
const LIMBS_U64: usize = 4;
/// Maximum number of attempts to complete a round with equal contributions. Each lost worker may cost one attempt.
const RETRIES_MAX: usize = 8;

/// Scale of [`to_fixed`]: sums have a resolution of 5e-20 and a range of 9e18.
const FRACTION: f64 = 18_446_744_073_709_551_616.0; // 2^64

/// Converts `value` to a fixed-point number with 64 fraction bits. Sums of such numbers do not depend on their order.
/// Values out of range saturate; NaN becomes zero.
pub fn to_fixed(value: f64) -> i128 {
    (value * FRACTION) as i128
}

/// Adds one value to each of the fixed-point `sums`.
pub fn add_fixed(sums: &mut [i128], values: impl IntoIterator<Item = f64>) {
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += to_fixed(value));
}

/// Converts a fixed-point number, such as a sum of results of [`to_fixed`], back to f64.
pub fn from_fixed(fixed: i128) -> f64 {
    fixed as f64 / FRACTION
}

/// Writes the limbs of `value`, lowest first, to `floats`, which has at most [`LIMBS`] elements.
pub fn write_limbs(value: i128, floats: &mut [f32]) {
    for (i, float) in floats.iter_mut().enumerate() {
        *float = f32::from((value >> (LIMB_BITS * i as u32)) as u16);
    }
}

/// Returns the number, modulo 2^128, whose summed limbs are `floats`.
pub fn read_limbs(floats: &[f32]) -> i128 {
    let limb = |(i, float): (usize, &f32)| i128::from(*float as u32).wrapping_shl(LIMB_BITS * i as u32);
    floats.iter().enumerate().map(limb).fold(0, i128::wrapping_add)
}

/// Sums over all workers the values that `write` puts into `vector` (`[gradient_len]`, zeroed first). If a worker is
/// lost during a round, segments may hold different numbers of contributions, and the limbs of a number would not
/// match. All workers detect this identically and repeat the round.
///
/// # Errors
/// Fails if the aggregation fails or the contributions remain unequal.
pub fn all_reduce_uniform(
    aggregator: &mut dyn GradientAggregator,
    vector: &mut [f32],
    write: impl Fn(&mut [f32]),
) -> Result<(), TrainError> {
    for _ in 0..RETRIES_MAX {
        vector.fill(0.0);
        write(vector);
        if aggregator.all_reduce(vector)?.uniform {
            return Ok(());
        }
    }
    Err(TrainError::Disagreement(format!(
        "the segments had different contributions in each of {RETRIES_MAX} successive rounds"
    )))
}

/// Exchanges the `values` of every worker and returns them by rank. All workers must pass the same number of values.
/// The values of a worker that did not take part are zero.
///
/// # Errors
/// Fails if the aggregation fails, or if the vector is too short for `workers * values.len()` numbers of four floats.
pub fn all_gather_u64(
    aggregator: &mut dyn GradientAggregator,
    rank: usize,
    workers: usize,
    values: &[u64],
) -> Result<Vec<Vec<u64>>, TrainError> {
    let span = values.len() * LIMBS_U64;
    let mut vector = vec![0.0; aggregator.gradient_len()];
    if span * workers > vector.len() {
        let (actual, expected) = (span * workers, vector.len());
        return Err(AggregateError::WrongLength { actual, expected }.into());
    }
    all_reduce_uniform(aggregator, &mut vector, |vector| {
        let own = vector[rank * span..(rank + 1) * span].chunks_exact_mut(LIMBS_U64);
        own.zip(values).for_each(|(floats, value)| write_limbs(i128::from(*value), floats));
    })?;
    let read = |rank: usize| {
        let floats = vector[rank * span..(rank + 1) * span].chunks_exact(LIMBS_U64);
        floats.map(|floats| read_limbs(floats) as u64).collect()
    };
    Ok((0..workers).map(read).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use iswitch::Loopback;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn summing_limbs_sums_the_encoded_numbers(values in prop::collection::vec(any::<i128>(), 1..=WORKERS_MAX)) {
            let mut sum = [0.0_f32; LIMBS];
            for value in &values {
                let mut limbs = [0.0; LIMBS];
                write_limbs(*value, &mut limbs);
                sum.iter_mut().zip(limbs).for_each(|(sum, limb)| *sum += limb);
            }
            let want = values.iter().fold(0_i128, |sum, value| sum.wrapping_add(*value));
            prop_assert_eq!(read_limbs(&sum), want);
        }

        #[test]
        fn the_fixed_point_format_preserves_values(value in -1e15_f64..1e15) {
            prop_assert_eq!(from_fixed(to_fixed(value)).to_bits(), value.to_bits());
        }
    }

    #[test]
    fn the_fixed_point_format_resolves_small_numbers() {
        let value = 1.234_567e-12;
        assert!((from_fixed(to_fixed(value)) - value).abs() < 1e-19);
        assert_eq!(to_fixed(f64::NAN), 0);
    }

    #[test]
    fn every_member_gets_the_numbers_of_all_members() {
        let threads: Vec<_> = Loopback::group(3, 40)
            .into_iter()
            .enumerate()
            .map(|(rank, mut member)| {
                std::thread::spawn(move || {
                    all_gather_u64(&mut member, rank, 3, &[u64::MAX - rank as u64, rank as u64]).unwrap()
                })
            })
            .collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), [[u64::MAX, 0], [u64::MAX - 1, 1], [u64::MAX - 2, 2]]);
        }
    }

    #[test]
    fn a_too_short_vector_is_refused() {
        let error = all_gather_u64(&mut Loopback::alone(3), 0, 1, &[1]).unwrap_err();
        assert_eq!(error.to_string(), "vector has 4 floats; the job aggregates 3");
    }
}
