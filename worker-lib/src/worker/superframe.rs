//! Data packets one after the other, as one offloaded send takes them.

use iswitch_protocol::auth::TagKey;
use iswitch_protocol::limits::{
    DATA_TAG_LEN_BYTES, FLOAT_LEN_BYTES, MAX_SUPERFRAME_DATAGRAMS, MAX_SUPERFRAME_LEN_BYTES,
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
