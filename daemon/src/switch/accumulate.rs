//! The hot loop: adding the floats of a packet to a sum.
//!
//! Arithmetic is one contract with the RTL: IEEE 754 binary32, round to nearest even, subnormals kept, in
//! order of arrival unless a fixed order is asked for, every NaN canonical. A first contribution is +0.0 + x,
//! which turns -0.0 into +0.0 as an adder fed with a cleared buffer would. Rust neither reorders nor fuses these
//! operations.
//!
//! Payloads are little-endian floats at any alignment. The loops have no branch, so they become SIMD.

use iswitch_protocol::limits::FLOAT_LEN_BYTES;

const CANONICAL_NAN: f32 = f32::from_bits(0x7FC0_0000);
const EXPONENT_MASK: u32 = 0x7F80_0000;

/// Starts a sum: `sum[i] = +0.0 + payload[i]`.
pub fn overwrite(sum: &mut [f32], payload: &[u8]) {
    for (sum, word) in sum.iter_mut().zip(words(payload)) {
        *sum = canonical(0.0 + f32::from_le_bytes(*word));
    }
}

/// Adds to a sum: `sum[i] += payload[i]`.
pub fn accumulate(sum: &mut [f32], payload: &[u8]) {
    for (sum, word) in sum.iter_mut().zip(words(payload)) {
        *sum = canonical(*sum + f32::from_le_bytes(*word));
    }
}

/// Adds the last contribution and writes the result into the outgoing packet in the same pass.
pub fn accumulate_into(sum: &mut [f32], payload: &[u8], packet: &mut [u8]) {
    let (packet, _) = packet.as_chunks_mut::<FLOAT_LEN_BYTES>();
    for ((sum, word), out) in sum.iter_mut().zip(words(payload)).zip(packet) {
        *sum = canonical(*sum + f32::from_le_bytes(*word));
        *out = sum.to_le_bytes();
    }
}

/// Keeps the floats of a packet as they are, to be added later.
pub fn store(floats: &mut [f32], payload: &[u8]) {
    for (float, word) in floats.iter_mut().zip(words(payload)) {
        *float = f32::from_le_bytes(*word);
    }
}

/// Adds what was kept: `sum[i] += floats[i]`. From a sum of +0.0 on, that gives the bits of [`overwrite`] and
/// [`accumulate`].
pub fn add(sum: &mut [f32], floats: &[f32]) {
    for (sum, x) in sum.iter_mut().zip(floats) {
        *sum = canonical(*sum + *x);
    }
}

/// Writes a finished sum into an outgoing packet.
pub fn copy_into(sum: &[f32], packet: &mut [u8]) {
    let (packet, _) = packet.as_chunks_mut::<FLOAT_LEN_BYTES>();
    for (sum, out) in sum.iter().zip(packet) {
        *out = sum.to_le_bytes();
    }
}

/// Whether any float of a payload is NaN or an infinity.
pub fn has_non_finite(payload: &[u8]) -> bool {
    // Without an early exit the loop vectorises, and a payload is short.
    words(payload)
        .iter()
        .fold(false, |found, word| found | (u32::from_le_bytes(*word) & EXPONENT_MASK == EXPONENT_MASK))
}

fn words(payload: &[u8]) -> &[[u8; FLOAT_LEN_BYTES]] {
    payload.as_chunks().0
}

fn canonical(x: f32) -> f32 {
    if x.is_nan() { CANONICAL_NAN } else { x }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn bytes(floats: &[f32]) -> Vec<u8> {
        floats.iter().flat_map(|x| x.to_le_bytes()).collect()
    }

    fn bits(floats: &[f32]) -> Vec<u32> {
        floats.iter().map(|x| x.to_bits()).collect()
    }

    fn any_float() -> impl Strategy<Value = f32> {
        any::<u32>().prop_map(f32::from_bits)
    }

    #[test]
    fn negative_zero_and_nan_are_canonical() {
        let mut sum = [7.0; 3];
        overwrite(&mut sum, &bytes(&[-0.0, f32::from_bits(0xFFC1_2345), f32::from_bits(1)]));
        assert_eq!(bits(&sum), [0, 0x7FC0_0000, 1], "a subnormal is kept");
        accumulate(&mut sum, &bytes(&[-0.0, 1.0, f32::from_bits(1)]));
        assert_eq!(bits(&sum), [0, 0x7FC0_0000, 2]);
        let mut sum = [f32::INFINITY];
        accumulate(&mut sum, &bytes(&[f32::NEG_INFINITY]));
        assert_eq!(bits(&sum), [0x7FC0_0000]);
    }

    #[test]
    fn non_finite_payloads_are_found() {
        assert!(!has_non_finite(&bytes(&[f32::MAX, f32::MIN_POSITIVE, -0.0, f32::from_bits(1)])));
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert!(has_non_finite(&bytes(&[1.0, 2.0, bad])));
        }
    }

    proptest! {
        #[test]
        fn every_path_gives_the_same_bits(
            pairs in proptest::collection::vec((any_float(), any_float()), 1..400), offset in 0usize..4,
        ) {
            let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
            // The payload may lie at any address.
            let unaligned = |floats: &[f32]| [vec![0; offset], bytes(floats)].concat();
            let (first, second) = (unaligned(&a), unaligned(&b));
            let mut sum = vec![f32::NAN; a.len()];
            overwrite(&mut sum, &first[offset..]);
            let mut finished = sum.clone();
            let mut packet = vec![0; a.len() * 4];
            accumulate(&mut sum, &second[offset..]);
            accumulate_into(&mut finished, &second[offset..], &mut packet);
            let mut copied = vec![0; a.len() * 4];
            copy_into(&sum, &mut copied);
            let mut kept = [vec![0.0; a.len()], vec![0.0; a.len()]];
            let mut added = vec![0.0; a.len()];
            for (kept, payload) in kept.iter_mut().zip([&first, &second]) {
                store(kept, &payload[offset..]);
                add(&mut added, kept);
            }
            prop_assert_eq!(bits(&sum), bits(&added));
            prop_assert_eq!(bits(&sum), bits(&finished));
            prop_assert_eq!(&packet, &copied);
            prop_assert_eq!(&packet, &bytes(&sum));
            for ((sum, a), b) in sum.iter().zip(&a).zip(&b) {
                let expected = 0.0 + a + b;
                prop_assert!(sum.to_bits() == expected.to_bits() || sum.is_nan() && expected.is_nan());
            }
        }
    }
}
