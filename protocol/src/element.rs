//! Element types: how the floats of a data packet are represented (requirements D-2, D-8).
//!
//! The switch always sums in binary32. Packets with 16-bit elements are about half as long; each contribution is
//! rounded once, by its sender, and each result once, by the switch. The crate `iswitch-element` converts vectors.

use core::fmt;
use core::str::FromStr;

use crate::limits::{FLOAT_LEN_BYTES, segment_floats_for_mtu, tagged_segment_floats};

/// Minimum magnitude that rounds to infinity in bfloat16: the midpoint between the largest bfloat16 value and 2^128.
pub const BF16_OVERFLOW: f32 = f32::from_bits(0x7F7F_8000);
/// Minimum magnitude that rounds to infinity in binary16: the midpoint between the largest binary16 value and 2^16.
pub const F16_OVERFLOW: f32 = 65_520.0;

/// Representation of the elements of a data packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ElementType {
    /// IEEE 754 binary32.
    #[default]
    F32 = 0,
    /// bfloat16: the upper half of a binary32. It has the range of binary32 and a significand of 8 bits.
    Bf16 = 1,
    /// IEEE 754 binary16: magnitudes up to 65,504 and a significand of 11 bits.
    F16 = 2,
}

impl ElementType {
    /// All variants, in the order of their codes.
    pub const ALL: [Self; 3] = [Self::F32, Self::Bf16, Self::F16];

    /// Returns the type with this code, or `None` if no type has the code.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::F32),
            1 => Some(Self::Bf16),
            2 => Some(Self::F16),
            _ => None,
        }
    }

    /// Returns the name by which options and reports refer to the type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::F16 => "f16",
        }
    }

    /// Returns the length of one element, in bytes.
    #[inline]
    pub const fn len_bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::Bf16 | Self::F16 => 2,
        }
    }

    /// Returns the minimum magnitude of a float that becomes infinite when it is rounded to this type.
    #[inline]
    pub const fn overflow(self) -> f32 {
        match self {
            Self::F32 => f32::INFINITY,
            Self::Bf16 => BF16_OVERFLOW,
            Self::F16 => F16_OVERFLOW,
        }
    }

    /// Returns whether a float is finite after rounding to this type.
    #[inline]
    pub fn holds(self, x: f32) -> bool {
        x.abs() < self.overflow()
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Element types of a job: one for the contributions of its workers, and one for its results, which is either the same
/// type or binary32. Partial sums between switches are always binary32, so that a sum is rounded only once, regardless
/// of the number of switches on its path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ElementTypes {
    contributions: ElementType,
    results: ElementType,
}

impl ElementTypes {
    /// Binary32 in both directions.
    pub const F32: Self = Self::uniform(ElementType::F32);

    /// Returns element types with `element` for both contributions and results.
    pub const fn uniform(element: ElementType) -> Self {
        Self { contributions: element, results: element }
    }

    /// Returns element types with `contributions` for contributions and binary32 for results.
    pub const fn with_wide_results(contributions: ElementType) -> Self {
        Self { contributions, results: ElementType::F32 }
    }

    /// Returns the element types with these codes, or `None` if a code is unknown or the two types cannot be combined.
    pub const fn from_codes(contributions: u8, results: u8) -> Option<Self> {
        match (ElementType::from_code(contributions), ElementType::from_code(results)) {
            (Some(element), Some(ElementType::F32)) => Some(Self::with_wide_results(element)),
            (Some(element), Some(_)) if contributions == results => Some(Self::uniform(element)),
            _ => None,
        }
    }

    /// Returns the codes of both types as one number, in the format of the Ack of a refused Join: bits 0 to 7 are the
    /// code of the contributions, and bits 8 to 15 are the code of the results.
    pub const fn code(self) -> u32 {
        (self.results as u32) << 8 | self.contributions as u32
    }

    /// Returns the element type of workers' contributions.
    #[inline]
    pub const fn contributions(self) -> ElementType {
        self.contributions
    }

    /// Returns the element type of results.
    #[inline]
    pub const fn results(self) -> ElementType {
        self.results
    }

    /// Returns the number of floats in a segment whose packets, in both directions, fit on a path with this MTU. If
    /// `tagged` is true, the packets also have room for tags.
    pub const fn segment_floats_for_mtu(self, mtu_bytes: u16, tagged: bool) -> u16 {
        let ratio = (FLOAT_LEN_BYTES / self.longest_len_bytes()) as u16;
        let floats = segment_floats_for_mtu(mtu_bytes);
        if tagged { tagged_segment_floats(floats) * ratio } else { floats * ratio }
    }

    /// Returns the length of an element of the longer of the two types, in bytes.
    #[inline]
    pub const fn longest_len_bytes(self) -> usize {
        let (up, down) = (self.contributions.len_bytes(), self.results.len_bytes());
        if up > down { up } else { down }
    }
}

/// Formats one name, such as `bf16`, if both types are the same. Otherwise formats the type of the contributions and
/// the type of the results, such as `bf16-f32`.
impl fmt::Display for ElementTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.contributions == self.results {
            self.contributions.fmt(f)
        } else {
            write!(f, "{}-{}", self.contributions, self.results)
        }
    }
}

/// Error for a text that is not a valid name of element types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownElementTypes;

impl fmt::Display for UnknownElementTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected f32, bf16, f16, bf16-f32 or f16-f32")
    }
}

impl core::error::Error for UnknownElementTypes {}

impl FromStr for ElementTypes {
    type Err = UnknownElementTypes;

    fn from_str(text: &str) -> Result<Self, UnknownElementTypes> {
        let named = |name: &str| ElementType::ALL.into_iter().find(|element| element.name() == name);
        let types = match text.split_once('-') {
            None => named(text).map(Self::uniform),
            Some((contributions, "f32")) if contributions != "f32" => {
                named(contributions).map(Self::with_wide_results)
            }
            Some(_) => None,
        };
        types.ok_or(UnknownElementTypes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_codes_stand_for_the_same_types() {
        let names = ["f32", "bf16", "f16", "bf16-f32", "f16-f32"];
        for name in names {
            let types: ElementTypes = name.parse().unwrap();
            assert_eq!(std::format!("{types}"), name);
            let [contributions, results, ..] = types.code().to_le_bytes();
            assert_eq!(ElementTypes::from_codes(contributions, results), Some(types));
        }
        for unknown in ["", "f64", "f32-f32", "bf16-bf16", "f32-bf16", "bf16-", "-f32"] {
            assert_eq!(unknown.parse::<ElementTypes>(), Err(UnknownElementTypes), "{unknown}");
        }
    }

    #[test]
    fn segments_fill_the_mtu() {
        let floats =
            |name: &str, tagged| name.parse::<ElementTypes>().unwrap().segment_floats_for_mtu(1500, tagged);
        assert_eq!([floats("f32", false), floats("f32", true)], [366, 364]);
        assert_eq!([floats("f16", false), floats("f16", true)], [732, 728]);
        assert_eq!([floats("bf16-f32", false), floats("bf16-f32", true)], [366, 364]);
    }
}
