//! The hot loop: adds the floats of a packet to a sum.
//!
//! The arithmetic follows the same rules as the hardware implementation (RTL): IEEE 754 binary32, round to nearest
//! even, subnormals kept, additions in order of arrival unless a fixed order is configured, every NaN canonical. A
//! first contribution is computed as +0.0 + x, which turns -0.0 into +0.0, just as an adder with a cleared buffer does.
//! Rust neither reorders nor fuses these operations.
//!
//! Payloads are little-endian floats at any alignment; packets of 16-bit elements are widened first. The loops are
//! compiled for several CPU feature levels, and the best available one is selected at run time (AVX-512, AVX2, or the
//! baseline of the architecture). The choice does not change any bit of the result.
//!
//! With [`NonFinite::Refuse`], a payload is checked in a separate pass before it is added, because an addition to the
//! sum cannot be undone. The second pass, which adds the payload, finds it in the L1 cache.

mod lanes;
mod widen;

use lanes::{Add, Overwrite, Store, Take, TakeInto};
use pulp::Arch;

pub(crate) use widen::Widener;

/// Treatment of contributions that contain NaN or an infinity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NonFinite {
    /// Drop the contributions and inform their senders: a single NaN or infinity would make the weights of every worker
    /// useless.
    #[default]
    Refuse,
    /// Sum the contributions according to IEEE 754, as the hardware implementation (RTL) does.
    Sum,
}

const CANONICAL_NAN: f32 = f32::from_bits(0x7FC0_0000);

/// Starts a sum: `sum[i] = +0.0 + payload[i]`. Returns false, and changes nothing, if the payload is refused.
#[must_use]
pub fn overwrite(sum: &mut [f32], payload: &[u8], non_finite: NonFinite) -> bool {
    Arch::new().dispatch(Take::<Overwrite>::new(sum, payload, non_finite))
}

/// Adds to a sum: `sum[i] += payload[i]`. Returns false, and changes nothing, if the payload is refused.
#[must_use]
pub fn accumulate(sum: &mut [f32], payload: &[u8], non_finite: NonFinite) -> bool {
    Arch::new().dispatch(Take::<Add>::new(sum, payload, non_finite))
}

/// Adds the last contribution and writes the result into the outgoing packet in the same pass. Returns false, and
/// changes nothing, if the payload is refused.
#[must_use]
pub fn accumulate_into(sum: &mut [f32], payload: &[u8], packet: &mut [u8], non_finite: NonFinite) -> bool {
    Arch::new().dispatch(TakeInto { sum, payload, packet, non_finite })
}

/// Stores the floats of a packet unchanged, to be added later. Returns false, and changes nothing, if the payload is
/// refused.
#[must_use]
pub fn store(floats: &mut [f32], payload: &[u8], non_finite: NonFinite) -> bool {
    Arch::new().dispatch(Take::<Store>::new(floats, payload, non_finite))
}

/// Adds stored floats: `sum[i] += floats[i]`. Starting from a sum of +0.0, this gives the same bits as [`overwrite`]
/// and [`accumulate`].
pub fn add(sum: &mut [f32], floats: &[f32]) {
    Arch::new().dispatch(
        #[inline(always)]
        || {
            for (sum, x) in sum.iter_mut().zip(floats) {
                *sum = lanes::canonical(*sum + *x);
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use iswitch_protocol::ElementType;
    use proptest::prelude::*;

    use super::NonFinite::{Refuse, Sum};
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
        assert!(overwrite(&mut sum, &bytes(&[-0.0, f32::from_bits(0xFFC1_2345), f32::from_bits(1)]), Sum));
        assert_eq!(bits(&sum), [0, 0x7FC0_0000, 1], "a subnormal should be kept");
        assert!(accumulate(&mut sum, &bytes(&[-0.0, 1.0, f32::from_bits(1)]), Sum));
        assert_eq!(bits(&sum), [0, 0x7FC0_0000, 2]);
        let mut sum = [f32::INFINITY];
        assert!(accumulate(&mut sum, &bytes(&[f32::NEG_INFINITY]), Sum));
        assert_eq!(bits(&sum), [0x7FC0_0000]);
    }

    #[test]
    fn a_refused_payload_changes_nothing() {
        let finite = [f32::MAX, f32::MIN_POSITIVE, -0.0, f32::from_bits(1)];
        assert!(store(&mut [0.0; 4], &bytes(&finite), Refuse));
        // Test each lane of the longest SIMD registers, and the remainder that does not fill a register.
        for (len, at) in [4, 16, 47, 366].into_iter().flat_map(|len| (0..len).map(move |at| (len, at))) {
            for bad in [f32::NAN, f32::from_bits(0xFF80_0001), f32::INFINITY, f32::NEG_INFINITY] {
                let mut payload = vec![f32::MAX; len];
                payload[at] = bad;
                let payload = bytes(&payload);
                let mut sum = vec![1.0; len];
                let mut packet = vec![7; 4 * len];
                let is_taken = overwrite(&mut sum, &payload, Refuse)
                    | accumulate(&mut sum, &payload, Refuse)
                    | accumulate_into(&mut sum, &payload, &mut packet, Refuse)
                    | store(&mut sum, &payload, Refuse);
                assert!(!is_taken && sum.iter().all(|x| *x == 1.0) && packet.iter().all(|byte| *byte == 7));
            }
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
            prop_assert!(overwrite(&mut sum, &first[offset..], Sum));
            let mut finished = sum.clone();
            let mut packet = vec![0; a.len() * 4];
            prop_assert!(accumulate(&mut sum, &second[offset..], Sum));
            prop_assert!(accumulate_into(&mut finished, &second[offset..], &mut packet, Sum));
            let mut copied = vec![0; a.len() * 4];
            iswitch_element::round(ElementType::F32, &sum, &mut copied);
            let mut kept = [vec![0.0; a.len()], vec![0.0; a.len()]];
            let mut added = vec![0.0; a.len()];
            for (kept, payload) in kept.iter_mut().zip([&first, &second]) {
                prop_assert!(store(kept, &payload[offset..], Sum));
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
