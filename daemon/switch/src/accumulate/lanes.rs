//! The loops over the floats of a packet, generic over the length of the SIMD registers.
//!
//! The loops begin at a position from which no register of the sum straddles two cache lines, because stores across
//! cache lines are slow. One extra register covers the floats before that position, and another covers those after the
//! last whole register; both overlap registers of the loop. The extra registers are computed first, from the original
//! values. The floats in an overlap are therefore computed twice, with bit-identical results, and no scalar loop is
//! needed.
//!
//! If the CPU offers no wider SIMD level than the compile target (no AVX2, or another architecture), scalar loops that
//! the compiler vectorizes are used instead.

// These functions must be inlined into functions that are compiled for a SIMD level; otherwise, the compiler targets
// the baseline CPU.
#![expect(clippy::inline_always)]

use core::marker::PhantomData;

use iswitch_protocol::limits::FLOAT_LEN_BYTES;
use pulp::bytemuck::{bytes_of, pod_read_unaligned};
use pulp::{Simd, WithSimd};

use super::{CANONICAL_NAN, NonFinite};

const MAGNITUDE_MASK: u32 = 0x7FFF_FFFF;
const LOWEST_EXPONENT_BIT: u32 = 0x0080_0000;

/// Computes the new value of an element of a sum from its previous value and the corresponding float of the payload.
pub(super) trait Combine {
    fn one(sum: f32, float: f32) -> f32;
    fn lanes<S: Simd>(simd: S, sum: S::f32s, floats: S::f32s) -> S::f32s;
}

/// Combination that stores the float and ignores the previous value.
pub(super) struct Store;
/// Combination that stores the float plus +0.0 and ignores the previous value.
pub(super) struct Overwrite;
/// Combination that adds the float to the previous value.
pub(super) struct Add;

impl Combine for Store {
    #[inline(always)]
    fn one(_: f32, float: f32) -> f32 {
        float
    }

    #[inline(always)]
    fn lanes<S: Simd>(_: S, _: S::f32s, floats: S::f32s) -> S::f32s {
        floats
    }
}

impl Combine for Overwrite {
    #[inline(always)]
    fn one(_: f32, float: f32) -> f32 {
        canonical(0.0 + float)
    }

    #[inline(always)]
    fn lanes<S: Simd>(simd: S, _: S::f32s, floats: S::f32s) -> S::f32s {
        canonical_lanes(simd, simd.add_f32s(simd.splat_f32s(0.0), floats))
    }
}

impl Combine for Add {
    #[inline(always)]
    fn one(sum: f32, float: f32) -> f32 {
        canonical(sum + float)
    }

    #[inline(always)]
    fn lanes<S: Simd>(simd: S, sum: S::f32s, floats: S::f32s) -> S::f32s {
        canonical_lanes(simd, simd.add_f32s(sum, floats))
    }
}

#[inline(always)]
pub(super) fn canonical(x: f32) -> f32 {
    if x.is_nan() { CANONICAL_NAN } else { x }
}

#[inline(always)]
fn canonical_lanes<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    // Only a NaN compares unequal to itself.
    simd.select_f32s(simd.equal_f32s(x, x), x, simd.splat_f32s(CANONICAL_NAN))
}

/// Operation that checks a payload and combines it with a sum. Returns whether the payload was accepted; if not, the
/// sum is unchanged.
pub(super) struct Take<'a, C> {
    sum: &'a mut [f32],
    payload: &'a [u8],
    non_finite: NonFinite,
    how: PhantomData<C>,
}

impl<'a, C: Combine> Take<'a, C> {
    pub(super) fn new(sum: &'a mut [f32], payload: &'a [u8], non_finite: NonFinite) -> Self {
        Self { sum, payload, non_finite, how: PhantomData }
    }
}

impl<C: Combine> WithSimd for Take<'_, C> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> bool {
        let Self { sum, payload, non_finite, .. } = self;
        let is_taken = non_finite == NonFinite::Sum || !has_non_finite(simd, payload);
        if is_taken {
            combine::<S, C>(simd, sum, payload);
        }
        is_taken
    }
}

/// Operation that checks a payload, adds it to a sum, and also writes the result into a packet. Returns whether the
/// payload was accepted.
pub(super) struct TakeInto<'a> {
    pub(super) sum: &'a mut [f32],
    pub(super) payload: &'a [u8],
    pub(super) packet: &'a mut [u8],
    pub(super) non_finite: NonFinite,
}

impl WithSimd for TakeInto<'_> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> bool {
        let Self { sum, payload, packet, non_finite } = self;
        let is_taken = non_finite == NonFinite::Sum || !has_non_finite(simd, payload);
        if is_taken {
            add_into(simd, sum, payload, packet);
        }
        is_taken
    }
}

#[inline(always)]
fn combine<S: Simd, C: Combine>(simd: S, sum: &mut [f32], payload: &[u8]) {
    let len = sum.len().min(payload.len() / FLOAT_LEN_BYTES);
    let (sum, payload) = (&mut sum[..len], &payload[..len * FLOAT_LEN_BYTES]);
    if is_short::<S>(len) {
        for (sum, word) in sum.iter_mut().zip(words(payload)) {
            *sum = C::one(*sum, f32::from_le_bytes(*word));
        }
        return;
    }
    let rest = len - S::F32_LANES;
    let first = C::lanes(simd, register::<S>(sum), floats::<S>(payload));
    let last = C::lanes(simd, register::<S>(&sum[rest..]), floats::<S>(&payload[rest * FLOAT_LEN_BYTES..]));
    let begin = unaligned_floats::<S>(sum).min(rest);
    let registers = payload[begin * FLOAT_LEN_BYTES..].chunks_exact(size_of::<S::f32s>());
    for (sum, bytes) in S::as_mut_simd_f32s(&mut sum[begin..]).0.iter_mut().zip(registers) {
        *sum = C::lanes(simd, *sum, floats::<S>(bytes));
    }
    S::as_mut_simd_f32s(sum).0[0] = first;
    S::as_mut_simd_f32s(&mut sum[rest..]).0[0] = last;
}

#[inline(always)]
fn add_into<S: Simd>(simd: S, sum: &mut [f32], payload: &[u8], packet: &mut [u8]) {
    let len = sum.len().min(payload.len() / FLOAT_LEN_BYTES).min(packet.len() / FLOAT_LEN_BYTES);
    let bytes = len * FLOAT_LEN_BYTES;
    let (sum, payload, packet) = (&mut sum[..len], &payload[..bytes], &mut packet[..bytes]);
    if is_short::<S>(len) {
        let outs = packet.as_chunks_mut::<FLOAT_LEN_BYTES>().0;
        for ((sum, word), out) in sum.iter_mut().zip(words(payload)).zip(outs) {
            *sum = Add::one(*sum, f32::from_le_bytes(*word));
            *out = sum.to_le_bytes();
        }
        return;
    }
    let rest = len - S::F32_LANES;
    let begin = unaligned_floats::<S>(sum).min(rest);
    let (begin_bytes, rest_bytes, width) =
        (begin * FLOAT_LEN_BYTES, rest * FLOAT_LEN_BYTES, size_of::<S::f32s>());
    let first = Add::lanes(simd, register::<S>(sum), floats::<S>(payload));
    let last = Add::lanes(simd, register::<S>(&sum[rest..]), floats::<S>(&payload[rest_bytes..]));
    let registers = payload[begin_bytes..].chunks_exact(width);
    let outs = packet[begin_bytes..].chunks_exact_mut(width);
    for ((sum, bytes), out) in S::as_mut_simd_f32s(&mut sum[begin..]).0.iter_mut().zip(registers).zip(outs) {
        *sum = Add::lanes(simd, *sum, floats::<S>(bytes));
        out.copy_from_slice(bytes_of(sum));
    }
    S::as_mut_simd_f32s(sum).0[0] = first;
    S::as_mut_simd_f32s(&mut sum[rest..]).0[0] = last;
    packet[..width].copy_from_slice(bytes_of(&first));
    packet[rest_bytes..].copy_from_slice(bytes_of(&last));
}

/// Returns whether any float of a payload is NaN or an infinity.
#[inline(always)]
pub(super) fn has_non_finite<S: Simd>(simd: S, payload: &[u8]) -> bool {
    let words = words(payload);
    if is_short::<S>(words.len()) {
        // If the exponent is all ones, the sum carries into the sign bit. There is no early exit, so that the compiler
        // can vectorize the loop.
        let carry = |bits: u32| (bits & MAGNITUDE_MASK) + LOWEST_EXPONENT_BIT;
        return words.iter().fold(0, |all, word| all | carry(u32::from_le_bytes(*word))) > MAGNITUDE_MASK;
    }
    let (magnitude, lowest) = (simd.splat_u32s(MAGNITUDE_MASK), simd.splat_u32s(LOWEST_EXPONENT_BIT));
    let width = size_of::<S::u32s>();
    let last = &payload[words.len() * FLOAT_LEN_BYTES - width..][..width];
    // If the exponent is all ones, the sum carries into the sign bit. Two independent chains of operations hide the
    // latency.
    let carry = |bytes: &[u8]| {
        let bits: S::u32s = pod_read_unaligned(&bytes[..width]);
        simd.add_u32s(simd.and_u32s(bits, magnitude), lowest)
    };
    let (mut some, mut others) = (carry(last), simd.splat_u32s(0));
    let mut pairs = payload.chunks_exact(2 * width);
    for bytes in &mut pairs {
        some = simd.or_u32s(some, carry(bytes));
        others = simd.or_u32s(others, carry(&bytes[width..]));
    }
    if let Some(bytes) = pairs.remainder().get(..width) {
        some = simd.or_u32s(some, carry(bytes));
    }
    let carries = simd.or_u32s(some, others);
    simd.first_true_m32s(simd.greater_than_u32s(carries, magnitude)) < S::U32_LANES
}

/// Returns whether the plain loop is used: on scalar targets, for short vectors, and on big-endian machines, whose
/// SIMD registers would have the wrong byte order.
#[inline(always)]
fn is_short<S: Simd>(len: usize) -> bool {
    S::IS_SCALAR || len < S::F32_LANES || cfg!(target_endian = "big")
}

/// Returns the number of floats before the first position at which a register lies within one cache line.
#[inline(always)]
fn unaligned_floats<S: Simd>(sum: &[f32]) -> usize {
    sum.as_ptr().align_offset(size_of::<S::f32s>())
}

/// Loads the first register of a sum.
#[inline(always)]
fn register<S: Simd>(sum: &[f32]) -> S::f32s {
    S::as_simd_f32s(sum).0[0]
}

/// Loads the floats of one register from the beginning of a slice.
#[inline(always)]
fn floats<S: Simd>(bytes: &[u8]) -> S::f32s {
    pod_read_unaligned(&bytes[..size_of::<S::f32s>()])
}

#[inline(always)]
fn words(payload: &[u8]) -> &[[u8; FLOAT_LEN_BYTES]] {
    payload.as_chunks().0
}
