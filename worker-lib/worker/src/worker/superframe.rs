//! Super-frames: consecutive data packets that are sent in one system call and segmented by the kernel or the device.

use std::io::IoSlice;
use std::ops::Range;

use iswitch_protocol::auth::TagKey;
use iswitch_protocol::limits::{
    DATA_TAG_LEN_BYTES, FLOAT_LEN_BYTES, MAX_SUPERFRAME_DATAGRAMS, MAX_SUPERFRAME_LEN_BYTES, SEG_LEN_BYTES,
    superframe_datagrams,
};
use iswitch_protocol::wire::emit_seg;
use iswitch_protocol::{ElementType, Seg, VectorLayout};

/// Appends the packet of a segment of `vector`, with elements of the given type, and with a tag if there is a key for
/// tags. Returns false if the super-frame is full: it has reached its maximum number of bytes or packets, or its last
/// packet is shorter than the others.
pub(crate) fn push_segment(
    layout: &VectorLayout,
    seg: Seg,
    vector: &[f32],
    element: ElementType,
    tag_key: Option<&TagKey>,
    buffer: &mut Vec<u8>,
) -> bool {
    let tag_len = if tag_key.is_some() { DATA_TAG_LEN_BYTES } else { 0 };
    let (start, full) = (buffer.len(), layout.full_packet_len(element) + tag_len);
    let content_len = layout.packet_len(seg.index, element);
    let len = content_len + tag_len;
    let is_full = start + len > MAX_SUPERFRAME_LEN_BYTES || start == full * MAX_SUPERFRAME_DATAGRAMS;
    if is_full || !start.is_multiple_of(full) {
        return false;
    }
    buffer.resize(start + len, 0);
    let content = &mut buffer[start..][..content_len];
    iswitch_element::round(element, &vector[layout.range(seg.index)], emit_seg(content, seg));
    if let Some(key) = tag_key {
        key.sign(&mut buffer[start..]);
    }
    true
}

/// Number of floats in a cache line.
const LINE_FLOATS: usize = 16;

/// Loads floats into the cache, several lines at a time. The instruction with which the kernel copies waits for each
/// line in turn, so copying from memory would take several times as long.
pub(crate) fn warm(floats: &[f32]) {
    let bits = floats.iter().step_by(LINE_FLOATS).fold(0, |bits, x| bits | x.to_bits());
    std::hint::black_box(bits);
}

/// Packets of one send: the packets are either complete or lack their floats, which then remain in the vector until the
/// kernel copies them.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    /// All bytes of the packets, or only their Segs if the floats remain in the vector.
    bytes: Vec<u8>,
    /// For each Seg, the range of the vector that contains the packet's floats. Empty if the floats are in `bytes`.
    floats: Vec<Range<usize>>,
}

impl Frame {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.floats.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the total length of all packets, in bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() + self.floats.iter().map(|range| range.len() * FLOAT_LEN_BYTES).sum::<usize>()
    }

    /// Returns the buffer for a control packet, which replaces the data packets.
    pub(crate) fn control(&mut self) -> &mut Vec<u8> {
        self.floats.clear();
        &mut self.bytes
    }

    /// Returns the bytes of all packets if the packets are complete, and otherwise `None`.
    pub(crate) fn complete_bytes(&self) -> Option<&[u8]> {
        self.floats.is_empty().then_some(&self.bytes)
    }

    /// Works like [`push_segment`], but may leave the floats in the vector.
    pub(crate) fn push(
        &mut self,
        layout: &VectorLayout,
        seg: Seg,
        vector: &[f32],
        element: ElementType,
        tag_key: Option<&TagKey>,
    ) -> bool {
        // The bytes of the packet must be assembled if a tag covers them, or if they differ from the bytes in memory,
        // which is the case for 16-bit elements and on big-endian machines.
        if element != ElementType::F32 || tag_key.is_some() || cfg!(target_endian = "big") {
            return push_segment(layout, seg, vector, element, tag_key, &mut self.bytes);
        }
        let range = layout.range(seg.index);
        let (full, count) = (layout.full_packet_len(element), self.floats.len());
        let is_after_shorter =
            self.floats.last().is_some_and(|last| last.len() < usize::from(layout.segment_floats()));
        if count == superframe_datagrams(full) || is_after_shorter {
            return false;
        }
        let at = self.bytes.len();
        self.bytes.resize(at + SEG_LEN_BYTES, 0);
        emit_seg(&mut self.bytes[at..], seg);
        self.floats.push(range);
        true
    }

    /// Loads the floats of the packets into the cache; see [`warm`].
    pub(crate) fn warm(&self, vector: &[f32]) {
        self.floats.iter().for_each(|range| warm(&vector[range.clone()]));
    }

    /// Returns the Seg and the floats of each packet. The iterator is empty if the packets are complete.
    pub(crate) fn packets<'a>(&'a self, vector: &'a [f32]) -> impl Iterator<Item = [IoSlice<'a>; 2]> {
        let heads = self.bytes.chunks_exact(SEG_LEN_BYTES);
        let bodies = self.floats.iter().map(|range| bytemuck::cast_slice(&vector[range.clone()]));
        heads.zip(bodies).map(|(head, body)| [IoSlice::new(head), IoSlice::new(body)])
    }

    /// Assembles the bytes of all packets in `buffer`.
    pub(crate) fn assemble(&self, vector: &[f32], buffer: &mut Vec<u8>) {
        buffer.clear();
        match self.complete_bytes() {
            Some(bytes) => buffer.extend_from_slice(bytes),
            None => self.packets(vector).flatten().for_each(|part| buffer.extend_from_slice(&part)),
        }
    }
}
