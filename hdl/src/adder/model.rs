//! Reference model of the adder.

const CANONICAL_NAN: u32 = 0x7FC0_0000;

/// Returns the bits of the sum of two floats as required by D-5: the host CPU's sum, in which every NaN is replaced by
/// 0x7FC00000.
pub fn add(a: u32, b: u32) -> u32 {
    let sum = f32::from_bits(a) + f32::from_bits(b);
    if sum.is_nan() { CANONICAL_NAN } else { sum.to_bits() }
}
