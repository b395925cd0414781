//! Widening of 16-bit elements, so that the loops over binary32 can add them.

use alloc::vec;
use alloc::vec::Vec;

use iswitch_protocol::ElementType;
use iswitch_protocol::limits::{MAX_SHORT_SEGMENT_FLOATS, SHORT_LEN_BYTES};
use pulp::bytemuck::cast_slice;

/// Buffer for the widened floats of one packet. It stays in the L1 cache.
#[derive(Debug)]
pub(crate) struct Widener {
    floats: Vec<f32>,
}

impl Widener {
    pub(crate) fn new() -> Self {
        Self { floats: vec![0.0; usize::from(MAX_SHORT_SEGMENT_FLOATS)] }
    }

    /// Returns the elements of a packet as little-endian floats, which are valid until the next call. If the elements
    /// are already binary32, returns them unchanged.
    #[inline]
    pub(crate) fn widen<'a>(&'a mut self, element: ElementType, elements: &'a [u8]) -> &'a [u8] {
        if element == ElementType::F32 {
            return elements;
        }
        let floats = &mut self.floats[..elements.len() / SHORT_LEN_BYTES];
        iswitch_element::widen(element, elements, floats);
        if cfg!(target_endian = "big") {
            floats.iter_mut().for_each(|x| *x = f32::from_bits(x.to_bits().to_le()));
        }
        cast_slice(floats)
    }
}
