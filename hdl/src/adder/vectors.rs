//! Operands that reveal errors in adders.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

const EDGE_EXPONENTS: [u32; 9] = [0, 1, 2, 126, 127, 128, 253, 254, 255];
/// Fractions that exercise carry chains: values at which a carry starts, stops or propagates, and values next to them.
const CORNER_FRACTIONS: [u32; 12] =
    [0, 1, 2, 3, 0x0800, 0x2a_aaaa, 0x3f_ffff, 0x40_0000, 0x40_0001, 0x55_5555, 0x7f_fffe, 0x7f_ffff];
const EXPONENTS: u64 = 256;
const FRACTIONS: u64 = CORNER_FRACTIONS.len() as u64;
/// Number of pairs that [`corner_pair`] can return: each float may have any sign, any exponent, and one of the corner
/// fractions.
pub const CORNER_PAIRS: u64 = (EXPONENTS * FRACTIONS * 2).pow(2);

/// Returns the bits of a random float. In half of the floats, all bits are uniformly random. In the other half, the
/// exponent is at an edge of the format, near the exponent of 1.0, or near the exponent of the subnormals.
fn float(random: &mut ChaCha8Rng) -> u32 {
    let bits: u32 = random.random();
    let exponent = match random.random_range(0..6) {
        0..=2 => return bits,
        3 => EDGE_EXPONENTS[random.random_range(0..EDGE_EXPONENTS.len())],
        4 => random.random_range(100..156),
        _ => random.random_range(0..30),
    };
    let fraction = match random.random_range(0..2) {
        0 => CORNER_FRACTIONS[random.random_range(0..CORNER_FRACTIONS.len())],
        _ => bits & 0x7f_ffff,
    };
    bits & 0x8000_0000 | exponent << 23 | fraction
}

/// Returns the bits of two random floats. On average, in one pair of eight, the second float is almost the negative of
/// the first.
pub fn random_pair(random: &mut ChaCha8Rng) -> (u32, u32) {
    let a = float(random);
    if random.random_range(0..8) > 0 {
        return (a, float(random));
    }
    let near = (a ^ 0x8000_0000).wrapping_add(random.random_range(0..16)).wrapping_sub(8);
    (a, near)
}

/// Returns the bits of the pair with the given index, which must be below [`CORNER_PAIRS`].
pub fn corner_pair(number: u64) -> (u32, u32) {
    let floats = EXPONENTS * FRACTIONS * 2;
    (corner(number / floats), corner(number % floats))
}

fn corner(number: u64) -> u32 {
    let (sign, rest) = ((number % 2) as u32, number / 2);
    let fraction = CORNER_FRACTIONS[(rest % FRACTIONS) as usize];
    sign << 31 | ((rest / FRACTIONS) as u32) << 23 | fraction
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn corner_values_cover_all_floats_with_the_corner_fractions() {
        let floats: HashSet<_> = (0..EXPONENTS * FRACTIONS * 2).map(corner).collect();
        assert_eq!(floats.len() as u64, EXPONENTS * FRACTIONS * 2);
        assert!(floats.iter().all(|bits| CORNER_FRACTIONS.contains(&(bits & 0x7f_ffff))));
        assert_eq!(CORNER_PAIRS, 65_536 * 144 * 4);
        assert_eq!(corner_pair(CORNER_PAIRS - 1), (u32::MAX, u32::MAX));
    }
}
