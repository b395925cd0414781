//! Decoding of items in Reverb's format: columns made of slices of chunks, which contain compressed tensors.

use bytes::Bytes;
use tonic::Status;

use super::proto::flat_trajectory::Column;
use super::proto::sample_stream_response::SampleEntry;
use super::proto::tensor_shape_proto::Dim;
use super::proto::{ChunkData, SampleInfo, TensorProto, TensorShapeProto};
use crate::proto::Item;

/// TensorFlow's data type codes.
pub(super) const UINT8: i32 = 4;
pub(super) const INT64: i32 = 9;
/// Indices of this crate's tensors within a chunk. They differ from the indices of the columns, because the payload is
/// the first column.
pub(super) const METADATA: i32 = 0;
pub(super) const PAYLOAD: i32 = 1;

/// Creates a tensor with a single step.
pub(super) fn tensor(dtype: i32, len: usize, tensor_content: Bytes) -> TensorProto {
    let dim = vec![Dim { size: 1 }, Dim { size: len as i64 }];
    TensorProto { dtype, tensor_shape: Some(TensorShapeProto { dim }), tensor_content }
}

/// Parts of an item that has not been received completely.
#[derive(Default)]
pub(super) struct Pieces {
    info: Option<SampleInfo>,
    chunks: Vec<ChunkData>,
}

impl Pieces {
    /// Adds an entry. Returns the item if the entry completes it.
    pub(super) fn take(&mut self, entry: SampleEntry) -> Result<Option<Item>, Status> {
        if entry.info.is_some() {
            self.info = entry.info;
        }
        self.chunks.extend(entry.data);
        if !entry.end_of_sequence {
            return Ok(None);
        }
        let Self { info, chunks } = std::mem::take(self);
        item(info.unwrap_or_default(), &chunks).map(Some)
    }
}

fn item(info: SampleInfo, chunks: &[ChunkData]) -> Result<Item, Status> {
    let item = info.item.unwrap_or_default();
    let columns = item.flat_trajectory.unwrap_or_default().columns;
    let Some(payload) = columns.first() else { return Err(wrong(item.key, "no column")) };
    let payload = content(item.key, payload, UINT8, chunks)?;
    let metadata = match columns.get(1) {
        Some(column) => content(item.key, column, INT64, chunks).unwrap_or_default(),
        None => Vec::new(),
    };
    let number = |at: usize| {
        let bytes = metadata.get(8 * at..8 * at + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_le_bytes)
    };
    let inserted = item.inserted_at.unwrap_or_default();
    Ok(Item {
        key: item.key,
        priority: item.priority,
        times_sampled: item.times_sampled as u32,
        version: number(0),
        actor: number(1),
        seq: number(2),
        inserted_ms: inserted.seconds as u64 * 1000 + inserted.nanos as u64 / 1_000_000,
        payload: payload.into(),
        probability: info.probability,
        table_size: info.table_size as u64,
    })
}

/// Returns the concatenated bytes of all steps of a column.
fn content(key: u64, column: &Column, dtype: i32, chunks: &[ChunkData]) -> Result<Vec<u8>, Status> {
    let mut bytes = Vec::new();
    for slice in &column.chunk_slices {
        let chunk = chunks.iter().find(|chunk| chunk.chunk_key == slice.chunk_key);
        let tensors = chunk.and_then(|chunk| chunk.data.as_ref()).map(|data| &data.tensors);
        let tensor = tensors.and_then(|tensors| tensors.get(usize::try_from(slice.index).ok()?));
        let (Some(chunk), Some(tensor)) = (chunk, tensor) else {
            return Err(wrong(key, format!("no tensor {} of chunk {}", slice.index, slice.chunk_key)));
        };
        if tensor.dtype != dtype {
            return Err(wrong(key, format!("a tensor of TensorFlow type {}, not {dtype}", tensor.dtype)));
        }
        let (steps, step_bytes) = extent(tensor, dtype).ok_or_else(|| wrong(key, "a shape without steps"))?;
        let raw = uncompressed(key, tensor, steps * step_bytes)?;
        let raw = if chunk.delta_encoded { sums(key, raw, dtype, step_bytes)? } else { raw };
        let (first, count) = (slice.offset as usize, slice.length as usize);
        let within = first.checked_add(count).filter(|end| *end <= steps);
        let Some(end) = within else {
            return Err(wrong(
                key,
                format!(
                    "a slice of {count} steps that begins at step {first} of a tensor with {steps} steps"
                ),
            ));
        };
        bytes.extend_from_slice(&raw[first * step_bytes..end * step_bytes]);
    }
    Ok(bytes)
}

/// Returns the number of steps and the number of bytes of each step.
fn extent(tensor: &TensorProto, dtype: i32) -> Option<(usize, usize)> {
    let dims = tensor.tensor_shape.as_ref()?.dim.iter().map(|dim| usize::try_from(dim.size).ok());
    let dims: Vec<usize> = dims.collect::<Option<_>>()?;
    let (steps, dims) = dims.split_first()?;
    let element = if dtype == INT64 { 8 } else { 1 };
    let step = dims.iter().try_fold(element, |bytes: usize, dim| bytes.checked_mul(*dim))?;
    steps.checked_mul(step)?;
    Some((*steps, step))
}

/// Decompresses a tensor, up to the length that its shape implies.
fn uncompressed(key: u64, tensor: &TensorProto, len: usize) -> Result<Vec<u8>, Status> {
    let damaged =
        |error: snap::Error| wrong(key, format!("a tensor that Snappy cannot decompress ({error})"));
    let found = snap::raw::decompress_len(&tensor.tensor_content).map_err(damaged)?;
    if found != len {
        return Err(wrong(key, format!("a tensor of {found} bytes whose shape implies {len} bytes")));
    }
    snap::raw::Decoder::new().decompress_vec(&tensor.tensor_content).map_err(damaged)
}

/// Decodes delta encoding: each step is the sum of the differences up to it.
fn sums(key: u64, mut bytes: Vec<u8>, dtype: i32, step_bytes: usize) -> Result<Vec<u8>, Status> {
    if dtype != UINT8 {
        return Err(wrong(key, "delta-encoded int64"));
    }
    for at in step_bytes..bytes.len() {
        bytes[at] = bytes[at].wrapping_add(bytes[at - step_bytes]);
    }
    Ok(bytes)
}

fn wrong(key: u64, found: impl std::fmt::Display) -> Status {
    Status::data_loss(format!("item {key} has {found}; expected a first column of whole uint8 tensors"))
}

#[cfg(test)]
mod tests {
    use super::super::proto::flat_trajectory::ChunkSlice;
    use super::*;
    use crate::client::reverb::proto::chunk_data::Data;

    fn chunk(steps: &[&[u8]], is_delta: bool) -> ChunkData {
        let content = snap::raw::Encoder::new().compress_vec(&steps.concat()).unwrap();
        let mut tensor = tensor(UINT8, steps[0].len(), content.into());
        tensor.tensor_shape.as_mut().unwrap().dim[0].size = steps.len() as i64;
        let data = Some(Data { tensors: vec![tensor] });
        ChunkData { chunk_key: 1, delta_encoded: is_delta, data, ..ChunkData::default() }
    }

    fn column(offset: i32, length: i32) -> Column {
        Column { chunk_slices: vec![ChunkSlice { chunk_key: 1, offset, length, index: 0 }], squeeze: false }
    }

    #[test]
    fn the_slice_is_extracted_and_delta_encoding_is_undone() {
        let plain = chunk(&[&[1, 2], &[3, 4], &[5, 6]], false);
        assert_eq!(content(9, &column(1, 2), UINT8, &[plain]).unwrap(), [3, 4, 5, 6]);
        let delta = chunk(&[&[250, 2], &[10, 1], &[255, 0]], true);
        assert_eq!(content(9, &column(0, 3), UINT8, &[delta]).unwrap(), [250, 2, 4, 3, 3, 3]);
    }

    #[test]
    fn incomplete_items_are_refused_with_the_reason() {
        let text = |column: &Column, dtype, chunk: ChunkData| {
            content(9, column, dtype, &[chunk]).unwrap_err().message().to_owned()
        };
        let plain = || chunk(&[&[1, 2]], false);
        for (column, dtype, chunk, expected) in [
            (column(0, 2), UINT8, plain(), "a slice of 2 steps that begins at step 0 of a tensor with 1"),
            (
                column(-1, 1),
                UINT8,
                plain(),
                "a slice of 1 steps that begins at step 18446744073709551615 of a tensor with 1",
            ),
            (column(0, 1), INT64, plain(), "TensorFlow type 4, not 9"),
            (column(0, 1), UINT8, ChunkData { chunk_key: 2, ..plain() }, "no tensor 0 of chunk 1"),
        ] {
            let text = text(&column, dtype, chunk);
            assert!(text.contains(expected) && text.contains("item 9"), "{text}");
        }
        let mut cut = plain();
        cut.data.as_mut().unwrap().tensors[0].tensor_content = Bytes::from_static(b"\x02\xfc");
        assert!(text(&column(0, 1), UINT8, cut).contains("Snappy cannot decompress"));
        let mut longer = plain();
        longer.data.as_mut().unwrap().tensors[0].tensor_shape.as_mut().unwrap().dim[1].size = i64::MAX;
        assert!(text(&column(0, 1), UINT8, longer).contains("whose shape implies"));
    }
}
