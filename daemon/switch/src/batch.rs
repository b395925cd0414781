//! Data packets that are sent together.

use alloc::boxed::Box;
use alloc::vec;

use iswitch_protocol::auth::TagKey;
use iswitch_protocol::limits::{DATA_TAG_LEN_BYTES, MAX_SUPERFRAME_LEN_BYTES, SEG_LEN_BYTES};
use iswitch_protocol::wire::emit_seg;
use iswitch_protocol::{ElementType, Seg};

/// Data packets of the same length, stored contiguously as a single GSO send requires.
#[derive(Debug)]
pub(crate) struct Batch {
    /// Buffer for a full super-frame. Each push overwrites the previous content, so nothing needs to be cleared.
    room: Box<[u8]>,
    /// Bytes in use.
    len: usize,
    stride: usize,
    /// Number of bytes reserved after the elements of each packet for the tag, which [`Self::sign`] fills in.
    tag_len: usize,
    datagrams: u64,
    /// Whether a shorter packet was pushed. A shorter packet must be the last one of the batch.
    closed: bool,
}

/// Batches for the sums that incoming contributions complete.
pub(crate) struct SumBatches<'a> {
    /// Batch for sums that are results.
    pub(crate) results: &'a mut Batch,
    /// Batch for sums that are sent to the parent as contributions.
    pub(crate) partials: &'a mut Batch,
}

impl Batch {
    pub(crate) fn new() -> Self {
        let room = vec![0; MAX_SUPERFRAME_LEN_BYTES].into_boxed_slice();
        Self { room, len: 0, stride: 0, tag_len: 0, datagrams: 0, closed: false }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.datagrams = 0;
        self.closed = false;
    }

    /// Returns whether a packet of `len` bytes, without its tag, still fits into this batch.
    pub(crate) fn has_room(&self, len: usize) -> bool {
        let len = len + self.tag_len;
        self.is_empty() || !self.closed && len <= self.stride && self.len + len <= MAX_SUPERFRAME_LEN_BYTES
    }

    /// Returns the buffer for the elements of the next packet, which the caller fills in and then appends with
    /// [`Self::push`]. If the caller does not call `push`, the batch is unchanged.
    ///
    /// # Panics
    /// Panics if there is no room (see [`Self::has_room`]).
    pub(crate) fn next_elements(&mut self, len_bytes: usize) -> &mut [u8] {
        &mut self.room[self.len + SEG_LEN_BYTES..][..len_bytes]
    }

    /// Appends a packet. Converts `floats` to elements of type `element`.
    ///
    /// # Panics
    /// Panics if there is no room (see [`Self::has_room`]).
    pub(crate) fn push_floats(&mut self, seg: Seg, floats: &[f32], element: ElementType) {
        let elements = self.push(seg, floats.len() * element.len_bytes());
        iswitch_element::round(element, floats, elements);
    }

    /// Appends a packet with the Seg `seg`. Returns the buffer for its elements, which the caller must fill in unless
    /// it has already done so through [`Self::next_elements`].
    ///
    /// # Panics
    /// Panics if there is no room (see [`Self::has_room`]).
    pub(crate) fn push(&mut self, seg: Seg, len_bytes: usize) -> &mut [u8] {
        let content_len = SEG_LEN_BYTES + len_bytes;
        assert!(self.has_room(content_len));
        let len = content_len + self.tag_len;
        if self.is_empty() {
            self.stride = len;
        }
        self.closed = len < self.stride;
        self.datagrams += 1;
        let start = self.len;
        self.len += len;
        emit_seg(&mut self.room[start..][..content_len], seg)
    }

    /// Fills in the tag of each packet, if the data of the job is tagged.
    pub(crate) fn sign(&mut self, key: Option<&TagKey>) {
        if let Some(key) = key {
            self.room[..self.len].chunks_mut(self.stride).for_each(|packet| key.sign(packet));
        }
    }

    /// Returns the concatenated packets.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.room[..self.len]
    }

    /// Returns the length of each packet except the last, in bytes.
    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// Returns the number of packets.
    pub(crate) fn datagrams(&self) -> u64 {
        self.datagrams
    }

    /// Prepares the empty batch for packets with or without tags.
    pub(crate) fn begin(&mut self, is_tagged: bool) {
        debug_assert!(self.is_empty());
        self.tag_len = if is_tagged { DATA_TAG_LEN_BYTES } else { 0 };
    }
}
