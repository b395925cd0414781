//! Exact sums of integers, computed by an aggregator that sums floats.
//!
//! Each number is split into limbs, and each limb is sent as one float. A limb has so few bits that the packet elements
//! represent both the limb and any sum of limbs exactly. The aggregator's sums are therefore exact, regardless of the
//! order of addition and of the number of switches. Negative numbers are represented in two's complement; a carry out
//! of the top limb is dropped, as in any wrapping addition.

use super::TrainError;
use iswitch::{AggregateError, ElementType, ElementTypes, GradientAggregator};

/// Maximum number of workers whose limbs can be summed exactly in 32-bit elements.
pub const WORKERS_MAX: usize = 256;

/// Number of floats for one 128-bit sum in 32-bit elements.
pub const LIMBS: usize = Limbs::F32.of_sum();

/// Maximum length of a limb, in bits. A sum of [`WORKERS_MAX`] limbs of this length is below 2^24, so 32-bit elements
/// represent it exactly.
const LIMB_BITS_MAX: u32 = 16;
/// Maximum number of attempts to complete a round with equal contributions. Each lost worker may cost one attempt.
const RETRIES_MAX: usize = 8;

/// Scale factor of [`to_fixed`]: sums have a resolution of 5e-20 and a range from -9e18 to 9e18.
const FRACTION: f64 = 18_446_744_073_709_551_616.0; // 2^64

/// Lengths of limbs that are represented exactly by all element types of an aggregator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limbs {
    /// Length, in bits, of a limb that is summed over all workers.
    summed_bits: u32,
    /// Length, in bits, of a limb that only one worker contributes; the others contribute zero.
    single_bits: u32,
}

impl Limbs {
    /// Limb lengths for 32-bit elements.
    pub const F32: Self = Self { summed_bits: LIMB_BITS_MAX, single_bits: LIMB_BITS_MAX };

    /// Returns the limb lengths for a job of `workers` workers whose packets have the given element types.
    ///
    /// # Errors
    /// [`TrainError::Config`] if the elements cannot hold exact sums over this number of workers.
    pub fn new(elements: ElementTypes, workers: usize) -> Result<Self, TrainError> {
        let sent = significand_bits(elements.contributions()).min(LIMB_BITS_MAX);
        let received = significand_bits(elements.results());
        let workers_max = WORKERS_MAX.min(1 << (received - 1));
        if workers > workers_max {
            return Err(TrainError::Config(format!(
                "workers is {workers}, expected at most {workers_max} with elements of type {elements}"
            )));
        }
        let headroom = workers.max(1).next_power_of_two().ilog2();
        Ok(Self { summed_bits: sent.min(received - headroom), single_bits: sent.min(received) })
    }

    /// Returns the number of floats that hold one 128-bit sum.
    pub const fn of_sum(self) -> usize {
        i128::BITS.div_ceil(self.summed_bits) as usize
    }

    /// Returns the number of floats that hold one [`u64`] written by a single worker.
    pub const fn of_u64(self) -> usize {
        u64::BITS.div_ceil(self.single_bits) as usize
    }

    /// Returns the number of floats that hold one [`f32`] written by a single worker.
    pub fn of_f32(self) -> usize {
        if self.is_wide() { 1 } else { u32::BITS.div_ceil(self.single_bits) as usize }
    }

    /// Splits this worker's contribution to a sum into limbs and writes them to `floats` (`[of_sum]`), lowest limb
    /// first.
    pub fn write_sum(self, value: i128, floats: &mut [f32]) {
        write(value, self.summed_bits, floats);
    }

    /// Reconstructs a sum, modulo 2^128, from `floats`, which contains the sums of its limbs over all workers.
    pub fn read_sum(self, floats: &[f32]) -> i128 {
        read(floats, self.summed_bits)
    }

    /// Writes the limbs of a number to `floats` (`[of_u64]`), lowest limb first. All other workers must contribute
    /// zeros at these positions.
    pub fn write_u64(self, value: u64, floats: &mut [f32]) {
        write(i128::from(value), self.single_bits, floats);
    }

    /// Returns the number that [`Self::write_u64`] wrote as limbs to `floats`.
    pub fn read_u64(self, floats: &[f32]) -> u64 {
        read(floats, self.single_bits) as u64
    }

    /// Writes a float without loss of precision to `floats` (`[of_f32]`). All other workers must contribute zeros at
    /// these positions.
    pub fn write_f32(self, value: f32, floats: &mut [f32]) {
        if self.is_wide() {
            floats[0] = value;
        } else {
            write(i128::from(value.to_bits()), self.single_bits, floats);
        }
    }

    /// Returns the float that [`Self::write_f32`] wrote to `floats`.
    pub fn read_f32(self, floats: &[f32]) -> f32 {
        if self.is_wide() { floats[0] } else { f32::from_bits(read(floats, self.single_bits) as u32) }
    }

    /// Returns whether the packets' elements can represent every finite [`f32`] exactly.
    fn is_wide(self) -> bool {
        self.single_bits == LIMB_BITS_MAX
    }
}

/// Returns the number of bits `n` in an element type's significand. The type represents every integer up to 2^n
/// exactly.
fn significand_bits(element: ElementType) -> u32 {
    match element {
        ElementType::F32 => f32::MANTISSA_DIGITS,
        ElementType::F16 => 11,
        ElementType::Bf16 => 8,
    }
}

fn write(value: i128, bits: u32, floats: &mut [f32]) {
    let mask = (1_i128 << bits) - 1;
    for (i, float) in floats.iter_mut().enumerate() {
        *float = ((value >> (bits * i as u32)) & mask) as f32;
    }
}

fn read(floats: &[f32], bits: u32) -> i128 {
    let limb = |(i, float): (usize, &f32)| i128::from(*float as u32).wrapping_shl(bits * i as u32);
    floats.iter().enumerate().map(limb).fold(0, i128::wrapping_add)
}

/// Converts `value` to a fixed-point number with 64 fraction bits. Sums of such numbers do not depend on the order of
/// addition. Values out of range saturate; NaN becomes zero.
pub fn to_fixed(value: f64) -> i128 {
    (value * FRACTION) as i128
}

/// Adds each of `values`, converted to fixed point, to the corresponding element of `sums`.
pub fn add_fixed(sums: &mut [i128], values: impl IntoIterator<Item = f64>) {
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += to_fixed(value));
}

/// Converts a fixed-point number, such as a sum of results of [`to_fixed`], back to f64.
pub fn from_fixed(fixed: i128) -> f64 {
    fixed as f64 / FRACTION
}

/// Sums values over all workers. Each attempt sets `values` to zero, calls `write` to fill in this worker's
/// contributions, and sums them in as many rounds as they require. If a worker is lost during an attempt, some values
/// may contain its contribution and others may not, which corrupts numbers that are split into limbs. All workers
/// detect this identically and make another attempt.
///
/// # Errors
/// Fails if the aggregation fails, or if the contributions are unequal in every attempt.
pub fn all_reduce_uniform(
    aggregator: &mut dyn GradientAggregator,
    values: &mut [f32],
    write: impl Fn(&mut [f32]),
) -> Result<(), TrainError> {
    for _ in 0..RETRIES_MAX {
        values.fill(0.0);
        write(values);
        if all_reduce(aggregator, values)? {
            return Ok(());
        }
    }
    Err(TrainError::Disagreement(format!(
        "in each of {RETRIES_MAX} successive attempts, some values lacked contributions that others contained"
    )))
}

/// Sums `values` over all workers. Returns whether every value is the sum of the same number of contributions.
fn all_reduce(aggregator: &mut dyn GradientAggregator, values: &mut [f32]) -> Result<bool, TrainError> {
    let len = aggregator.gradient_len();
    if len == 0 {
        return Err(AggregateError::WrongLength { actual: values.len(), expected: len }.into());
    }
    let (mut contributors, mut is_uniform) = (None, true);
    for part in values.chunks_mut(len) {
        let round = if part.len() == len {
            aggregator.all_reduce(part)?
        } else {
            let mut vector = vec![0.0; len];
            vector[..part.len()].copy_from_slice(part);
            let (round, sum) = aggregator.reduce(&vector)?;
            part.copy_from_slice(&sum[..part.len()]);
            round
        };
        is_uniform &= round.uniform && *contributors.get_or_insert(round.contributors) == round.contributors;
    }
    Ok(is_uniform)
}

/// Exchanges the `values` of all workers and returns each worker's values, by rank. All workers must pass the same
/// number of values. The values of a worker that did not take part are zero.
///
/// # Errors
/// Fails if the aggregation fails, or if its elements cannot hold exact sums over this number of workers.
pub fn all_gather_u64(
    aggregator: &mut dyn GradientAggregator,
    rank: usize,
    workers: usize,
    values: &[u64],
) -> Result<Vec<Vec<u64>>, TrainError> {
    let limbs = Limbs::new(aggregator.element_types(), workers)?;
    let span = values.len() * limbs.of_u64();
    let mut all = vec![0.0; span * workers];
    all_reduce_uniform(aggregator, &mut all, |all| {
        let own = all[rank * span..(rank + 1) * span].chunks_exact_mut(limbs.of_u64());
        own.zip(values).for_each(|(floats, value)| limbs.write_u64(*value, floats));
    })?;
    let read = |rank: usize| {
        let floats = all[rank * span..(rank + 1) * span].chunks_exact(limbs.of_u64());
        floats.map(|floats| limbs.read_u64(floats)).collect()
    };
    Ok((0..workers).map(read).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use iswitch::Loopback;
    use iswitch_element::rounded;
    use proptest::prelude::*;

    fn any_limbs() -> impl Strategy<Value = (ElementTypes, usize)> {
        (0..5_usize, 1..=WORKERS_MAX).prop_map(|(at, workers)| {
            let elements = ["f32", "bf16", "f16", "bf16-f32", "f16-f32"][at].parse().unwrap();
            let limbs = |workers: &usize| Limbs::new(elements, *workers).is_ok();
            (elements, (1..=workers).rev().find(limbs).unwrap())
        })
    }

    proptest! {
        #[test]
        fn summing_limbs_sums_the_encoded_numbers(
            (elements, workers) in any_limbs(), seed in prop::collection::vec(any::<i128>(), WORKERS_MAX)
        ) {
            let limbs = Limbs::new(elements, workers).unwrap();
            let mut sum = vec![0.0_f32; limbs.of_sum()];
            for value in &seed[..workers] {
                let mut floats = vec![0.0; limbs.of_sum()];
                limbs.write_sum(*value, &mut floats);
                sum.iter_mut().zip(floats).for_each(|(sum, x)| *sum += rounded(elements.contributions(), x));
            }
            sum.iter_mut().for_each(|x| *x = rounded(elements.results(), *x));
            let want = seed[..workers].iter().fold(0_i128, |sum, value| sum.wrapping_add(*value));
            prop_assert_eq!(limbs.read_sum(&sum), want);
        }

        #[test]
        fn single_numbers_and_floats_pass_unchanged(
            (elements, workers) in any_limbs(), number in any::<u64>(), float in any::<f32>()
        ) {
            let limbs = Limbs::new(elements, workers).unwrap();
            let pass = |floats: Vec<f32>| -> Vec<f32> {
                let sent = floats.iter().map(|x| rounded(elements.contributions(), *x));
                sent.map(|x| rounded(elements.results(), x)).collect()
            };
            let mut floats = vec![0.0; limbs.of_u64()];
            limbs.write_u64(number, &mut floats);
            prop_assert_eq!(limbs.read_u64(&pass(floats)), number);
            let mut floats = vec![0.0; limbs.of_f32()];
            limbs.write_f32(float, &mut floats);
            prop_assert_eq!(limbs.read_f32(&pass(floats)).to_bits(), float.to_bits());
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
        // With vectors of 40 floats, one round suffices; with vectors of 5 floats, several are necessary.
        for len in [40, 5] {
            let threads: Vec<_> = Loopback::group(3, len)
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
    }

    #[test]
    fn excess_workers_are_reported_by_element_type() {
        let error =
            |elements: &str, workers| Limbs::new(elements.parse().unwrap(), workers).unwrap_err().to_string();
        assert_eq!(error("f32", 257), "workers is 257, expected at most 256 with elements of type f32");
        assert_eq!(error("bf16", 129), "workers is 129, expected at most 128 with elements of type bf16");
        assert!(Limbs::new("bf16-f32".parse().unwrap(), 256).is_ok());
        assert_eq!((Limbs::F32.of_sum(), Limbs::F32.of_u64(), Limbs::F32.of_f32()), (8, 4, 1));
    }
}
