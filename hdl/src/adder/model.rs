//! The contract of the adder in one line of arithmetic.

const CANONICAL_NAN: u32 = 0x7FC0_0000;

/// Bits of the sum of two floats, as requirement D-5 asks: what the machine's own adder gives, with one NaN.
pub fn add(a: u32, b: u32) -> u32 {
    let sum = f32::from_bits(a) + f32::from_bits(b);
    if sum.is_nan() { CANONICAL_NAN } else { sum.to_bits() }
}
