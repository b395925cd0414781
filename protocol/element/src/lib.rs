//! Conversion between floats and the elements of data packets. On a CPU with AVX2, code compiled for AVX2 runs;
//! otherwise, code compiled for the baseline of the architecture runs. The results are bit-identical.

#![no_std]
// The loops must be inlined into the functions that are compiled for AVX2; otherwise, the compiler targets the baseline
// CPU.
#![expect(clippy::inline_always)]

#[cfg(test)]
extern crate std;

use iswitch_protocol::ElementType;
use iswitch_protocol::element::F16_OVERFLOW;

const CANONICAL_NAN: f32 = f32::from_bits(0x7FC0_0000);
const CANONICAL_BF16_NAN: u16 = 0x7FC0;
const CANONICAL_F16_NAN: u16 = 0x7E00;

/// Converts little-endian elements to floats without rounding. A NaN becomes the canonical NaN if elements have 16
/// bits; otherwise it keeps its bits. Stops at the end of the shorter slice.
pub fn widen(element: ElementType, elements: &[u8], floats: &mut [f32]) {
    if element == ElementType::F32 {
        for (float, bytes) in floats.iter_mut().zip(elements.as_chunks().0) {
            *float = f32::from_le_bytes(*bytes);
        }
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if x86::widen(element, elements, floats) {
        return;
    }
    widen_short(element, elements, floats);
}

/// Converts floats to little-endian elements. For 16-bit elements, values are rounded to nearest even, subnormals are
/// kept, magnitudes beyond the range become infinities, and NaN becomes the canonical NaN. 32-bit elements are copied.
/// Stops at the end of the shorter slice.
pub fn round(element: ElementType, floats: &[f32], elements: &mut [u8]) {
    if element == ElementType::F32 {
        for (float, bytes) in floats.iter().zip(elements.as_chunks_mut().0) {
            *bytes = float.to_le_bytes();
        }
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if x86::round(element, floats, elements) {
        return;
    }
    round_short(element, floats, elements);
}

/// Returns a float rounded to the precision of an element type.
pub fn rounded(element: ElementType, x: f32) -> f32 {
    if element == ElementType::F32 {
        return x;
    }
    let (mut bytes, mut float) = ([0; 2], [0.0]);
    round(element, &[x], &mut bytes);
    widen(element, &bytes, &mut float);
    float[0]
}

#[inline(always)]
fn widen_short(element: ElementType, elements: &[u8], floats: &mut [f32]) {
    match element {
        ElementType::Bf16 => widen_each(elements, floats, widen_bf16),
        _ => widen_each(elements, floats, widen_f16),
    }
}

#[inline(always)]
fn round_short(element: ElementType, floats: &[f32], elements: &mut [u8]) {
    match element {
        ElementType::Bf16 => round_each(floats, elements, round_bf16),
        _ => round_each(floats, elements, round_f16),
    }
}

#[inline(always)]
fn widen_each(elements: &[u8], floats: &mut [f32], widen: impl Fn(u16) -> f32) {
    for (float, bytes) in floats.iter_mut().zip(elements.as_chunks().0) {
        *float = widen(u16::from_le_bytes(*bytes));
    }
}

#[inline(always)]
fn round_each(floats: &[f32], elements: &mut [u8], round: impl Fn(f32) -> u16) {
    for (float, bytes) in floats.iter().zip(elements.as_chunks_mut().0) {
        *bytes = round(*float).to_le_bytes();
    }
}

#[inline(always)]
fn widen_bf16(element: u16) -> f32 {
    canonical(f32::from_bits(u32::from(element) << 16))
}

#[inline(always)]
fn round_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    // Adds half a unit in the last place, minus one bit if the truncated value is even (ties round to even). An
    // overflow carries into the exponent.
    let rounded = bits.wrapping_add(0x7FFF + (bits >> 16 & 1)) >> 16;
    if x.is_nan() { CANONICAL_BF16_NAN } else { rounded as u16 }
}

#[inline(always)]
fn widen_f16(element: u16) -> f32 {
    /// 2^112: two to the power of the difference between the exponent biases of the two types.
    const REBIAS: f32 = f32::from_bits((112 + 127) << 23);
    let sign = u32::from(element & 0x8000) << 16;
    let magnitude = u32::from(element & 0x7FFF);
    // The product is exact, even for subnormals.
    let finite = (f32::from_bits(magnitude << 13) * REBIAS).to_bits();
    let bits = if magnitude >= 0x7C00 { 0x7F80_0000 | magnitude << 13 } else { finite };
    canonical(f32::from_bits(sign | bits))
}

#[inline(always)]
fn round_f16(x: f32) -> u16 {
    const SMALLEST_NORMAL: u32 = 0x3880_0000;
    const OVERFLOW: u32 = F16_OVERFLOW.to_bits();
    /// Difference between the exponent biases of the two types, shifted to the exponent field of binary32.
    const REBIAS: u32 = 112 << 23;
    let sign = (x.to_bits() >> 16 & 0x8000) as u16;
    let magnitude = x.to_bits() & 0x7FFF_FFFF;
    // The spacing of binary32 numbers from 0.5 up to 1 equals that of binary16 subnormals, so adding 0.5 rounds to such
    // a subnormal.
    let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let normal = magnitude.wrapping_sub(REBIAS).wrapping_add(0xFFF + (magnitude >> 13 & 1)) >> 13;
    let finite = if magnitude < SMALLEST_NORMAL { subnormal } else { normal };
    let bits = if magnitude >= OVERFLOW { 0x7C00 } else { finite as u16 };
    if x.is_nan() { CANONICAL_F16_NAN } else { sign | bits }
}

#[inline(always)]
fn canonical(x: f32) -> f32 {
    if x.is_nan() { CANONICAL_NAN } else { x }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    //! The loops, compiled for AVX2.
    #![allow(unsafe_code)]

    use iswitch_protocol::ElementType;

    use super::{round_short, widen_short};

    cpufeatures::new!(avx2, "avx2");

    /// Works like [`super::widen`] for 16-bit elements; returns false if the CPU lacks AVX2.
    pub(super) fn widen(element: ElementType, elements: &[u8], floats: &mut [f32]) -> bool {
        let has_avx2 = avx2::get();
        if has_avx2 {
            // SAFETY: the CPU has AVX2.
            unsafe { widen_by_avx2(element, elements, floats) }
        }
        has_avx2
    }

    /// Works like [`super::round`] for 16-bit elements; returns false if the CPU lacks AVX2.
    pub(super) fn round(element: ElementType, floats: &[f32], elements: &mut [u8]) -> bool {
        let has_avx2 = avx2::get();
        if has_avx2 {
            // SAFETY: the CPU has AVX2.
            unsafe { round_by_avx2(element, floats, elements) }
        }
        has_avx2
    }

    #[target_feature(enable = "avx2")]
    fn widen_by_avx2(element: ElementType, elements: &[u8], floats: &mut [f32]) {
        widen_short(element, elements, floats);
    }

    #[target_feature(enable = "avx2")]
    fn round_by_avx2(element: ElementType, floats: &[f32], elements: &mut [u8]) {
        round_short(element, floats, elements);
    }
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    const SHORT: [ElementType; 2] = [ElementType::Bf16, ElementType::F16];

    fn widened(element: ElementType, bits: u16) -> f32 {
        let mut float = [0.0];
        widen(element, &bits.to_le_bytes(), &mut float);
        float[0]
    }

    fn rounded_bits(element: ElementType, x: f32) -> u16 {
        let mut bytes = [0; 2];
        round(element, &[x], &mut bytes);
        u16::from_le_bytes(bytes)
    }

    #[test]
    fn known_values_are_converted() {
        let cases = [
            (ElementType::Bf16, 0x3F80, 1.0),
            (ElementType::Bf16, 0xC049, -3.140_625),
            (ElementType::Bf16, 0x7F80, f32::INFINITY),
            (ElementType::Bf16, 0x0001, f32::from_bits(0x0001_0000)),
            (ElementType::F16, 0x3C00, 1.0),
            (ElementType::F16, 0xC248, -3.140_625),
            (ElementType::F16, 0x7BFF, 65_504.0),
            (ElementType::F16, 0xFC00, f32::NEG_INFINITY),
            (ElementType::F16, 0x0001, 1.0 / 16_777_216.0),
            (ElementType::F16, 0x8000, -0.0),
        ];
        for (element, bits, float) in cases {
            assert_eq!(widened(element, bits).to_bits(), float.to_bits(), "{element} {bits:#x}");
            assert_eq!(rounded_bits(element, float), bits, "{element} {float}");
        }
    }

    #[test]
    fn every_element_survives_widening_and_rounding() {
        for (element, nan) in [(ElementType::Bf16, CANONICAL_BF16_NAN), (ElementType::F16, CANONICAL_F16_NAN)]
        {
            for bits in 0..=u16::MAX {
                let float = widened(element, bits);
                let expected = if float.is_nan() { nan } else { bits };
                assert_eq!(rounded_bits(element, float), expected, "{element} {bits:#x}");
                assert!(!float.is_nan() || float.to_bits() == CANONICAL_NAN.to_bits());
                assert_eq!(element.holds(float), float.is_finite());
            }
        }
    }

    /// Finds, by binary search, the element that is closest to a float, following the definition of rounding to
    /// nearest even.
    fn nearest(element: ElementType, x: f32) -> u16 {
        let sign = u16::from(x.is_sign_negative()) << 15;
        let infinity = rounded_bits(element, f32::INFINITY);
        let magnitude = f64::from(x.abs());
        // A magnitude increases with its bits. For rounding, the largest finite value is followed by the next power of
        // two.
        let finite = |bits: u16| f64::from(widened(element, bits));
        let value = |bits: u16| {
            if bits == infinity { 2.0 * finite(bits - 1) - finite(bits - 2) } else { finite(bits) }
        };
        let (mut low, mut high) = (0, infinity);
        while high - low > 1 {
            let middle = low.midpoint(high);
            if value(middle) <= magnitude { low = middle } else { high = middle }
        }
        let (below, above) = (magnitude - value(low), value(high) - magnitude);
        let is_high = above < below || above == below && high % 2 == 0;
        sign | if is_high { high } else { low }
    }

    proptest! {
        #[test]
        fn floats_are_rounded_to_nearest_even(
            bits in any::<u32>(), exponent in 0x3000_0000u32..0x4800_0000, low in any::<u16>(),
        ) {
            // Any float, a float in the range of binary16, and floats at and near ties.
            let near = |bits: u32| [bits & 0xFFFF_0000, bits & 0xFFFF_0000 | 0x8000, bits & 0xFFFF_E000 | 0x1000];
            let candidates = [bits, exponent ^ u32::from(low), exponent | 0x8000_0000];
            for bits in candidates.into_iter().chain(near(bits)).chain(near(exponent)) {
                let x = f32::from_bits(bits);
                for element in SHORT.into_iter().filter(|_| x.is_finite()) {
                    prop_assert_eq!(rounded_bits(element, x), nearest(element, x), "{} {:e}", element, x);
                    prop_assert_eq!(element.holds(x), widened(element, rounded_bits(element, x)).is_finite());
                }
            }
        }

        #[test]
        fn the_instructions_of_the_cpu_change_no_bit(
            bits in proptest::collection::vec(any::<u32>(), 0..70), longer in 0usize..3,
        ) {
            let floats: Vec<_> = bits.iter().map(|bits| f32::from_bits(*bits)).collect();
            for element in SHORT {
                let mut elements = vec![0xA5; 2 * floats.len() + longer];
                let mut expected = elements.clone();
                round(element, &floats, &mut elements);
                let is_bf16 = element == ElementType::Bf16;
                let scalar_round = |x| if is_bf16 { round_bf16(x) } else { round_f16(x) };
                let scalar_widen = |bits| if is_bf16 { widen_bf16(bits) } else { widen_f16(bits) };
                round_each(&floats, &mut expected, scalar_round);
                prop_assert_eq!(&elements, &expected);
                let (mut widened, mut again) = (vec![0.0; floats.len()], vec![0.0; floats.len()]);
                widen(element, &elements, &mut widened);
                widen_each(&elements, &mut again, scalar_widen);
                let bits = |floats: &[f32]| floats.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                prop_assert_eq!(bits(&widened), bits(&again));
            }
        }
    }
}
