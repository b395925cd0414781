//! Data packets one after the other, as one offloaded send takes them.

use std::io::IoSlice;
use std::ops::Range;

use iswitch_protocol::auth::TagKey;
use iswitch_protocol::limits::{
    DATA_TAG_LEN_BYTES, FLOAT_LEN_BYTES, MAX_SUPERFRAME_DATAGRAMS, MAX_SUPERFRAME_LEN_BYTES, SEG_LEN_BYTES,
    superframe_datagrams,
};
use iswitch_protocol::wire::emit_seg;
use iswitch_protocol::{Seg, VectorLayout};

/// Appends the packet of a segment of `vector`, with a tag if there is a key for it. False if the super-frame is
/// full: by bytes, by packets, or by a shorter packet.
pub(crate) fn push_segment(
    layout: &VectorLayout,
    seg: Seg,
    vector: &[f32],
    tag_key: Option<&TagKey>,
    buffer: &mut Vec<u8>,
) -> bool {
    let tag_len = if tag_key.is_some() { DATA_TAG_LEN_BYTES } else { 0 };
    let (start, full) = (buffer.len(), layout.full_packet_len() + tag_len);
    let content_len = layout.packet_len(seg.index);
    let len = content_len + tag_len;
    let is_full = start + len > MAX_SUPERFRAME_LEN_BYTES || start == full * MAX_SUPERFRAME_DATAGRAMS;
    if is_full || !start.is_multiple_of(full) {
        return false;
    }
    buffer.resize(start + len, 0);
    let content = &mut buffer[start..][..content_len];
    let (words, _) = emit_seg(content, seg).as_chunks_mut::<FLOAT_LEN_BYTES>();
    for (word, x) in words.iter_mut().zip(&vector[layout.range(seg.index)]) {
        *word = x.to_le_bytes();
    }
    if let Some(key) = tag_key {
        key.sign(&mut buffer[start..]);
    }
    true
}

/// Floats in a cache line.
const LINE_FLOATS: usize = 16;

/// Brings floats into the cache, several lines at once. The kernel copies with an instruction that waits for one line
/// after the other, which takes several times as long if they are in memory.
pub(crate) fn warm(floats: &[f32]) {
    let bits = floats.iter().step_by(LINE_FLOATS).fold(0, |bits, x| bits | x.to_bits());
    std::hint::black_box(bits);
}

/// Packets to send at once: complete, or without their floats, which need not leave the vector before the kernel
/// fetches them.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    /// All bytes, or the Segs of the packets.
    bytes: Vec<u8>,
    /// Where the floats after each Seg lie in the vector, unless they are in `bytes`.
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

    /// Bytes of all packets.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() + self.floats.iter().map(|range| range.len() * FLOAT_LEN_BYTES).sum::<usize>()
    }

    /// For the bytes of a control packet instead.
    pub(crate) fn control(&mut self) -> &mut Vec<u8> {
        self.floats.clear();
        &mut self.bytes
    }

    /// All bytes, if they are here.
    pub(crate) fn complete_bytes(&self) -> Option<&[u8]> {
        self.floats.is_empty().then_some(&self.bytes)
    }

    /// As [`push_segment`].
    pub(crate) fn push(
        &mut self,
        layout: &VectorLayout,
        seg: Seg,
        vector: &[f32],
        tag_key: Option<&TagKey>,
    ) -> bool {
        // A tag is made of the bytes, and floats are little-endian on the wire.
        if tag_key.is_some() || cfg!(target_endian = "big") {
            return push_segment(layout, seg, vector, tag_key, &mut self.bytes);
        }
        let range = layout.range(seg.index);
        let (full, count) = (layout.full_packet_len(), self.floats.len());
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

    /// Brings the floats into the cache: see [`warm`].
    pub(crate) fn warm(&self, vector: &[f32]) {
        self.floats.iter().for_each(|range| warm(&vector[range.clone()]));
    }

    /// Seg and floats of each packet; none if the packets are complete.
    pub(crate) fn packets<'a>(&'a self, vector: &'a [f32]) -> impl Iterator<Item = [IoSlice<'a>; 2]> {
        let heads = self.bytes.chunks_exact(SEG_LEN_BYTES);
        let bodies = self.floats.iter().map(|range| bytemuck::cast_slice(&vector[range.clone()]));
        heads.zip(bodies).map(|(head, body)| [IoSlice::new(head), IoSlice::new(body)])
    }

    /// Puts the bytes of all packets together.
    pub(crate) fn assemble(&self, vector: &[f32], buffer: &mut Vec<u8>) {
        buffer.clear();
        match self.complete_bytes() {
            Some(bytes) => buffer.extend_from_slice(bytes),
            None => self.packets(vector).flatten().for_each(|part| buffer.extend_from_slice(&part)),
        }
    }
}
