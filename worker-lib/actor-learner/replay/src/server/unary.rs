//! Handler of inserts that bypasses tonic's decoder. It receives the message into one allocation of exactly the right
//! length, and the payload is a slice of this allocation. tonic would use a buffer that may be twice as long as the
//! message, and the item would keep all of this buffer in memory.

use bytes::{Buf, BufMut as _, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, header};
use http_body::{Body, Frame};
use http_body_util::{BodyExt as _, StreamBody};
use prost::Message;
use tonic::Status;

use super::service::Service;
use crate::proto::InsertRequest;

/// Path of the gRPC method that [`answer`] handles.
pub(super) const INSERT_PATH: &str = "/iswitch.replay.v1.Replay/Insert";
/// Length of gRPC's message prefix: a one-byte compression flag and a four-byte length.
const PREFIX_BYTES: usize = 5;

/// Answers an insert request.
pub(super) async fn answer<B>(
    service: Service,
    request: http::Request<B>,
) -> http::Response<tonic::body::Body>
where
    B: Body<Data = Bytes, Error = Status> + Unpin,
{
    let answered = async {
        let message = receive(request.into_body()).await?;
        let request = InsertRequest::decode(message)
            .map_err(|error| Status::internal(format!("the request is not an InsertRequest: {error}")))?;
        service.insert_items(request).await
    };
    match answered.await {
        Ok(message) => response(&message),
        Err(status) => status.into_http(),
    }
}

/// Receives the single message of a request.
async fn receive(mut body: impl Body<Data = Bytes, Error = Status> + Unpin) -> Result<Bytes, Status> {
    let mut prefix = BytesMut::with_capacity(PREFIX_BYTES);
    let mut message: Option<(BytesMut, usize)> = None;
    while let Some(frame) = body.frame().await {
        let Ok(mut data) = frame?.into_data() else { continue };
        if message.is_none() {
            prefix.put(data.copy_to_bytes(data.len().min(PREFIX_BYTES - prefix.len())));
            message = begun(&prefix)?.map(|len| (BytesMut::with_capacity(len), len));
        }
        if let Some((received, len)) = &mut message {
            if data.len() > *len - received.len() {
                let text =
                    format!("the request of {len} bytes is followed by more data, expected a single request");
                return Err(Status::invalid_argument(text));
            }
            received.put(data);
        }
    }
    match message {
        Some((received, len)) if received.len() == len => Ok(received.freeze()),
        Some((received, len)) => {
            Err(Status::invalid_argument(format!("the request ends after {} of {len} bytes", received.len())))
        }
        None => Err(Status::invalid_argument("the request contains no complete message, expected one")),
    }
}

/// Returns the length of the message if its prefix is complete.
fn begun(prefix: &[u8]) -> Result<Option<usize>, Status> {
    match *prefix {
        [0, a, b, c, d] => Ok(Some(u32::from_be_bytes([a, b, c, d]) as usize)),
        [flag, _, _, _, _] => {
            Err(Status::unimplemented(format!("compression flag is {flag}, expected 0 (no compression)")))
        }
        _ => Ok(None),
    }
}

fn response(message: &impl Message) -> http::Response<tonic::body::Body> {
    let len = message.encoded_len();
    let mut bytes = BytesMut::with_capacity(PREFIX_BYTES + len);
    bytes.put_u8(0);
    bytes.put_u32(len as u32);
    message.encode(&mut bytes).expect("the buffer has room for the message");
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    let frames = [Frame::data(bytes.freeze()), Frame::trailers(trailers)].map(Ok::<_, Status>);
    let body = tonic::body::Body::new(StreamBody::new(tokio_stream::iter(frames)));
    let mut response = http::Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(frames: &[&[u8]]) -> Result<Bytes, Status> {
        let frames: Vec<_> =
            frames.iter().map(|frame| Ok(Frame::data(Bytes::copy_from_slice(frame)))).collect();
        let body = StreamBody::new(tokio_stream::iter(frames));
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(receive(body))
    }

    #[test]
    fn a_message_is_reassembled_from_any_frames() {
        let bytes = b"\0\0\0\0\x05hello";
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let frames = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                assert_eq!(received(&frames).unwrap(), "hello", "cut at {first} and {second}");
            }
        }
        assert_eq!(received(&[b"\0\0\0\0\0"]).unwrap(), "");
    }

    #[test]
    fn requests_without_exactly_one_message_are_refused_with_the_reason() {
        let text = |frames: &[&[u8]]| received(frames).unwrap_err().message().to_owned();
        assert_eq!(text(&[]), "the request contains no complete message, expected one");
        assert_eq!(text(&[b"\0\0\0"]), "the request contains no complete message, expected one");
        assert_eq!(text(&[b"\0\0\0\0\x05he", b"ll"]), "the request ends after 4 of 5 bytes");
        assert_eq!(
            text(&[b"\0\0\0\0\x02hello"]),
            "the request of 2 bytes is followed by more data, expected a single request"
        );
        assert_eq!(text(&[b"\x01\0\0\0\x02he"]), "compression flag is 1, expected 0 (no compression)");
    }

    #[test]
    fn a_message_is_allocated_with_its_exact_length() {
        let long = vec![7; 100_000];
        let received = received(&[b"\0\0\x01\x86\xa0", &long[..70_000], &long[70_000..]]).unwrap();
        assert_eq!(received.try_into_mut().unwrap().capacity(), 100_000);
    }
}
