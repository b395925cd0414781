//! Inserts into a Reverb server. Each item is a separate chunk, and its payload is sent without being copied.

use bytes::Bytes;
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

use super::item::{INT64, METADATA, PAYLOAD, UINT8, tensor};
use super::proto::chunk_data::Data;
use super::proto::flat_trajectory::{ChunkSlice, Column};
use super::proto::{
    ChunkData, FlatTrajectory, InsertStreamRequest, InsertStreamResponse, PrioritizedItem, SequenceRange,
};
use crate::client::grpc::{self, Parts};
use crate::proto::{InsertRequest, NewItem};

const INSERT_PATH: &str = "/deepmind.reverb.ReverbService/InsertStream";
/// Field numbers of `proto/reverb.proto`.
const CONTENT_FIELD: u32 = 4;
const TENSORS_FIELD: u32 = 1;
const DATA_FIELD: u32 = 5;
const CHUNKS_FIELD: u32 = 1;
/// Snappy tag of a literal; the next four bytes contain the length minus one.
const SNAPPY_LITERAL: u8 = 0xfc;

/// A stream of inserts, with at most one insert in flight.
#[derive(Default)]
pub(super) struct InsertStream {
    open: Option<Open>,
}

struct Open {
    /// Queue of request parts. It may be unbounded, because it contains the parts of at most one request.
    requests: mpsc::UnboundedSender<Bytes>,
    answers: Streaming<InsertStreamResponse>,
}

impl InsertStream {
    /// Inserts the items of a request. Returns their keys once all items are in the table.
    pub(super) async fn insert(
        &mut self,
        channel: &Channel,
        request: &InsertRequest,
    ) -> Result<Vec<u64>, Status> {
        let keys: Vec<u64> = (0..request.items.len() as u64).map(|at| item_key(request, at)).collect();
        let parts = parts(request, &keys)?;
        let open = match &mut self.open {
            Some(open) => {
                // If the stream has ended, its response contains the cause.
                let _ = parts.into_iter().try_for_each(|part| open.requests.send(part));
                open
            }
            None => self.open.insert(Open::new(channel, parts).await?),
        };
        let mut left = keys.len();
        while left > 0 {
            let Some(answer) = open.answers.message().await? else {
                return Err(Status::unavailable(
                    "the server closed the insert stream before it acknowledged all items",
                ));
            };
            left = left.saturating_sub(answer.keys.len());
        }
        Ok(keys)
    }
}

impl Open {
    /// Opens a stream and sends the first request at once, because the server responds only after it has received one.
    async fn new(channel: &Channel, parts: Vec<Bytes>) -> Result<Self, Status> {
        let (requests, sent) = mpsc::unbounded_channel();
        parts
            .into_iter()
            .try_for_each(|part| requests.send(part))
            .expect("the channel must be open, because its receiver still exists");
        let answers = grpc::call(channel.clone(), INSERT_PATH, UnboundedReceiverStream::new(sent)).await?;
        Ok(Self { requests, answers })
    }
}

/// Returns the key of an item, which is the same in every attempt to insert the item.
fn item_key(request: &InsertRequest, at: u64) -> u64 {
    let of_actor = mixed(request.session ^ mixed(request.actor));
    mixed(of_actor ^ mixed(request.first_seq.wrapping_add(at)))
}

/// Mixes a number with the finaliser of SplitMix64.
fn mixed(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Encodes an `InsertStreamRequest` with gRPC's prefix.
fn parts(request: &InsertRequest, keys: &[u64]) -> Result<Vec<Bytes>, Status> {
    let mut parts = Parts::new();
    for (at, (item, key)) in request.items.iter().zip(keys).enumerate() {
        let metadata = [item.version, request.actor, request.first_seq.wrapping_add(at as u64)];
        push_chunk(&mut parts, item, mixed(*key), metadata)?;
    }
    let items = request.items.iter().zip(keys).map(|(item, key)| prioritized(&request.table, item, *key));
    let rest = InsertStreamRequest { items: items.collect(), ..InsertStreamRequest::default() };
    parts.buffer().extend(rest.encode_to_vec());
    parts.finish()
}

fn push_chunk(parts: &mut Parts, item: &NewItem, chunk_key: u64, metadata: [u64; 3]) -> Result<(), Status> {
    let len = item.payload.len();
    if u32::try_from(len).is_err() {
        let text = format!("items[].payload is {len} bytes long, expected less than 4 GiB");
        return Err(Status::invalid_argument(text));
    }
    let metadata: Vec<u8> = metadata.iter().flat_map(|number| number.to_le_bytes()).collect();
    let uncompressed = (metadata.len() + len) as i64;
    let first = tensor(INT64, 3, [literal(metadata.len()), metadata].concat().into());
    let range = SequenceRange { episode_id: chunk_key, start: 0, end: 0 };
    let chunk = ChunkData {
        chunk_key,
        sequence_range: Some(range),
        data_tensors_len: 2,
        data_uncompressed_size: uncompressed,
        ..ChunkData::default()
    };
    // Encode from the payload outwards. The fields of a message may be in any order, so each enclosing field can be the
    // last one.
    let content = Nested { head: literal(len), payload_len: len };
    let content = content.within(CONTENT_FIELD, &tensor(UINT8, len, Bytes::new()));
    let data = content.within(TENSORS_FIELD, &Data { tensors: vec![first] });
    let chunk = data.within(DATA_FIELD, &chunk);
    parts.buffer().extend(chunk.within(CHUNKS_FIELD, &InsertStreamRequest::default()).head);
    parts.push(item.payload.clone());
    Ok(())
}

/// Encoded field that ends with the payload. `head` contains everything except the payload.
struct Nested {
    head: Vec<u8>,
    payload_len: usize,
}

impl Nested {
    /// Wraps this field in a message, in which it is the last field.
    fn within(self, field: u32, message: &impl Message) -> Self {
        let mut head = message.encode_to_vec();
        encode_key(field, WireType::LengthDelimited, &mut head);
        encode_varint((self.head.len() + self.payload_len) as u64, &mut head);
        head.extend(self.head);
        Self { head, ..self }
    }
}

/// Returns the header of an uncompressed Snappy literal of `len` bytes.
fn literal(len: usize) -> Vec<u8> {
    let mut head = Vec::new();
    encode_varint(len as u64, &mut head);
    if let Some(less_one) = len.checked_sub(1) {
        head.push(SNAPPY_LITERAL);
        head.extend((less_one as u32).to_le_bytes());
    }
    head
}

fn prioritized(table: &str, item: &NewItem, key: u64) -> PrioritizedItem {
    let column = |index| {
        let slice = ChunkSlice { chunk_key: mixed(key), offset: 0, length: 1, index };
        Column { chunk_slices: vec![slice], squeeze: true }
    };
    let columns = vec![column(PAYLOAD), column(METADATA)];
    PrioritizedItem {
        key,
        table: table.to_owned(),
        priority: item.priority,
        flat_trajectory: Some(FlatTrajectory { columns }),
        ..PrioritizedItem::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_equal_the_prost_encoding_and_tensors_the_snappy_encoding() {
        for len in [0, 1, 60, 5000] {
            let payload: Bytes = (0..len).map(|at| at as u8).collect::<Vec<_>>().into();
            let item = NewItem { priority: 2.5, version: 7, payload: payload.clone() };
            let request = InsertRequest {
                table: "t".to_owned(),
                actor: 3,
                session: 4,
                first_seq: 5,
                items: vec![item.clone(), item],
                wait_ms: 0,
            };
            let keys = [item_key(&request, 0), item_key(&request, 1)];
            let bytes = parts(&request, &keys).unwrap().concat();
            let message = InsertStreamRequest::decode(&bytes[5..]).unwrap();
            assert_eq!((message.chunks.len(), message.items.len()), (2, 2));
            for (at, (chunk, item)) in message.chunks.iter().zip(&message.items).enumerate() {
                assert_eq!((item.key, item.priority, item.table.as_str()), (keys[at], 2.5, "t"));
                let tensors = &chunk.data.as_ref().unwrap().tensors;
                let content = |at: i32| {
                    snap::raw::Decoder::new().decompress_vec(&tensors[at as usize].tensor_content).unwrap()
                };
                assert_eq!(content(PAYLOAD), payload);
                assert_eq!(content(METADATA)[16..], (5 + at as u64).to_le_bytes());
            }
        }
    }

    #[test]
    fn retries_reuse_their_keys_and_keys_of_different_items_differ() {
        let request = |actor, session, first_seq| InsertRequest {
            actor,
            session,
            first_seq,
            ..InsertRequest::default()
        };
        let mut keys = std::collections::HashSet::new();
        for number in 0..4096 {
            let (actor, session, seq) = (number % 16, number / 16 % 16, number / 256);
            let key = item_key(&request(actor, session, seq), 0);
            assert_eq!(key, item_key(&request(actor, session, seq.wrapping_sub(1)), 1));
            assert!(keys.insert(key));
        }
    }
}
