//! Encoding of insert requests in parts, without copying payloads.

use bytes::Bytes;
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint};
use tonic::Status;

use super::grpc::Parts;
use crate::proto::{InsertRequest, NewItem};

/// Field number of the items in `proto/replay.proto`.
const ITEMS_FIELD: u32 = 5;
const PAYLOAD_FIELD: u32 = 3;

/// Encodes the message with gRPC's prefix. The items come last; this is valid, because the fields of a message may be
/// in any order.
pub(super) fn parts(request: &InsertRequest) -> Result<Vec<Bytes>, Status> {
    let InsertRequest { table, actor, session, first_seq, items, wait_ms } = request;
    let (table, items_of_head) = (table.clone(), Vec::new());
    let (actor, session, first_seq, wait_ms) = (*actor, *session, *first_seq, *wait_ms);
    let head = InsertRequest { table, actor, session, first_seq, items: items_of_head, wait_ms };
    let mut parts = Parts::new();
    parts.buffer().extend(head.encode_to_vec());
    for item in items {
        let len = item.payload.len() as u64;
        let rest = NewItem { payload: Bytes::new(), ..*item }.encode_to_vec();
        let buffer = parts.buffer();
        encode_key(ITEMS_FIELD, WireType::LengthDelimited, buffer);
        // The tag of the payload field is one byte long.
        encode_varint((rest.len() + 1 + encoded_len_varint(len)) as u64 + len, buffer);
        buffer.extend(rest);
        encode_key(PAYLOAD_FIELD, WireType::LengthDelimited, buffer);
        encode_varint(len, buffer);
        parts.push(item.payload.clone());
    }
    parts.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_equals_the_prost_encoding() {
        for len in [0, 1, 127, 128, 4095, 4096, 100_000] {
            let item = |version| NewItem { priority: 1.5, version, payload: vec![9; len].into() };
            let request = InsertRequest {
                table: "replay".to_owned(),
                actor: 3,
                session: u64::MAX,
                first_seq: 300,
                items: (0..3).map(item).collect(),
                wait_ms: 60_000,
            };
            let bytes = parts(&request).unwrap().concat();
            assert_eq!(bytes[..5], [&[0][..], &(bytes.len() as u32 - 5).to_be_bytes()].concat());
            assert_eq!(InsertRequest::decode(&bytes[5..]), Ok(request), "payloads of {len} bytes");
        }
    }
}
