//! Vectors of floats of any element type, in the memory of the caller.

use std::ops::Range;

use iswitch_protocol::ElementType;

use crate::aggregate::{AggregateError, check_finite, first_outside};

/// Number of floats that are widened at a time to check them.
const CHECKED_FLOATS: usize = 1024;

/// Vector of floats of one element type. 16-bit floats are represented by their bit patterns, in the byte order of
/// the machine.
#[derive(Debug)]
pub enum Values<'a> {
    /// IEEE 754 binary32.
    F32(&'a mut [f32]),
    /// bfloat16.
    Bf16(&'a mut [u16]),
    /// IEEE 754 binary16.
    F16(&'a mut [u16]),
}

impl Values<'_> {
    /// Returns the number of floats.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(floats) => floats.len(),
            Self::Bf16(halves) | Self::F16(halves) => halves.len(),
        }
    }

    /// Returns whether the vector has no floats.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the type of the floats.
    pub fn element(&self) -> ElementType {
        match self {
            Self::F32(_) => ElementType::F32,
            Self::Bf16(_) => ElementType::Bf16,
            Self::F16(_) => ElementType::F16,
        }
    }

    /// Returns the range `range` of the vector.
    pub(super) fn slice(&mut self, range: Range<usize>) -> Values<'_> {
        match self {
            Self::F32(floats) => Values::F32(&mut floats[range]),
            Self::Bf16(halves) => Values::Bf16(&mut halves[range]),
            Self::F16(halves) => Values::F16(&mut halves[range]),
        }
    }

    /// Rejects a vector that, after its first `start` floats, contains a NaN, an infinity, or a value that becomes
    /// infinite when it is converted to the element type of the packets.
    pub(super) fn check_finite(&self, start: usize, element: ElementType) -> Result<(), AggregateError> {
        let halves = match self {
            Self::F32(floats) => {
                return check_finite(&floats[start..], element).map_err(|error| after(start, error));
            }
            Self::Bf16(halves) | Self::F16(halves) => &halves[start..],
        };
        if self.element() == element {
            return check_halves(element, halves).map_err(|error| after(start, error));
        }
        let mut floats = [0.0; CHECKED_FLOATS];
        for (chunk, first) in halves.chunks(CHECKED_FLOATS).zip((start..).step_by(CHECKED_FLOATS)) {
            let floats = &mut floats[..chunk.len()];
            widen(self.element(), chunk, floats);
            check_finite(floats, element).map_err(|error| after(first, error))?;
        }
        Ok(())
    }

    /// Writes the floats to the beginning of `floats`.
    pub(super) fn widen_into(&self, floats: &mut [f32]) {
        match self {
            Self::F32(own) => floats[..own.len()].copy_from_slice(own),
            Self::Bf16(halves) | Self::F16(halves) => widen(self.element(), halves, floats),
        }
    }

    /// Replaces all floats with `floats` (`[len]`), rounded to the element type of the vector.
    pub(super) fn round_from(&mut self, floats: &[f32]) {
        let element = self.element();
        match self {
            Self::F32(own) => own.copy_from_slice(floats),
            Self::Bf16(halves) | Self::F16(halves) => {
                iswitch_element::round(element, floats, bytemuck::cast_slice_mut(halves));
                halves.iter_mut().for_each(|half| *half = u16::from_le(*half));
            }
        }
    }
}

/// Rejects 16-bit floats that contain a NaN or an infinity: in both, all exponent bits are set.
fn check_halves(element: ElementType, halves: &[u16]) -> Result<(), AggregateError> {
    let exponent: u16 = if element == ElementType::Bf16 { 0x7f80 } else { 0x7c00 };
    let Some(index) = first_outside(halves, |half| half & exponent != exponent) else { return Ok(()) };
    let mut value = [0.0];
    widen(element, &halves[index..=index], &mut value);
    Err(AggregateError::NonFinite { index, value: value[0] })
}

/// Adapts an error for a part of a vector that begins at index `start`, so that the index in the error refers to the
/// whole vector.
fn after(start: usize, error: AggregateError) -> AggregateError {
    match error {
        AggregateError::NonFinite { index, value } => {
            AggregateError::NonFinite { index: start + index, value }
        }
        other => other,
    }
}

fn widen(element: ElementType, halves: &[u16], floats: &mut [f32]) {
    if cfg!(target_endian = "little") {
        iswitch_element::widen(element, bytemuck::cast_slice(halves), floats);
    } else {
        for (half, float) in halves.iter().zip(floats) {
            iswitch_element::widen(element, &half.to_le_bytes(), std::slice::from_mut(float));
        }
    }
}
