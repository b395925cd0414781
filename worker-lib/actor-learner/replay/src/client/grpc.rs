//! gRPC calls that send the parts of a request without copying them. tonic's encoder would copy each message into its
//! own buffer, and for payloads of several megabytes, this copy would take longer than the system calls that send the
//! message.

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, Version, header};
use http_body::Frame;
use http_body_util::StreamBody;
use prost::Message;
use tokio_stream::{Stream, StreamExt as _};
use tonic::body::Body;
use tonic::codec::Codec as _;
use tonic::{Status, Streaming};
use tonic_prost::ProstCodec;
use tower_service::Service;

/// Length of gRPC's message prefix: a one-byte compression flag and a four-byte length.
const PREFIX_BYTES: usize = 5;
/// Length in bytes below which it is cheaper to copy a part than to send it separately.
const COPY_BYTES: usize = 4096;

/// Message that is sent in parts.
#[derive(Debug)]
pub(super) struct Parts {
    parts: Vec<Bytes>,
    /// Bytes of the message that follow the parts completed so far.
    last: Vec<u8>,
}

impl Parts {
    pub(super) fn new() -> Self {
        Self { parts: Vec::new(), last: vec![0; PREFIX_BYTES] }
    }

    /// Returns the buffer to which small parts are appended.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.last
    }

    pub(super) fn push(&mut self, bytes: Bytes) {
        if bytes.len() < COPY_BYTES {
            self.last.extend_from_slice(&bytes);
        } else {
            self.parts.push(std::mem::take(&mut self.last).into());
            self.parts.push(bytes);
        }
    }

    /// Returns the parts of the message, including its prefix.
    ///
    /// # Errors
    /// Fails if the message is longer than the prefix can represent.
    pub(super) fn finish(mut self) -> Result<Vec<Bytes>, Status> {
        if !self.last.is_empty() {
            self.parts.push(self.last.into());
        }
        let len = self.parts.iter().map(Bytes::len).sum::<usize>() - PREFIX_BYTES;
        let prefix = u32::try_from(len).map_err(|_| {
            Status::invalid_argument(format!(
                "the request is {len} bytes long, expected at most {}",
                u32::MAX
            ))
        })?;
        let mut first = Vec::from(std::mem::take(&mut self.parts[0]));
        first[1..PREFIX_BYTES].copy_from_slice(&prefix.to_be_bytes());
        self.parts[0] = first.into();
        Ok(self.parts)
    }
}

/// Calls a method with the request that consists of `parts`.
pub(super) async fn call<M: Message + Default + 'static>(
    mut channel: impl Service<Request<Body>, Response = Response<Body>, Error = tonic::transport::Error>,
    path: &'static str,
    parts: impl Stream<Item = Bytes> + Send + 'static,
) -> Result<Streaming<M>, Status> {
    let body = StreamBody::new(parts.map(|part| Ok::<_, Status>(Frame::data(part))));
    let mut request = Request::new(Body::new(body));
    *request.method_mut() = Method::POST;
    *request.version_mut() = Version::HTTP_2;
    *request.uri_mut() = http::Uri::from_static(path);
    let headers = request.headers_mut();
    headers.insert(header::TE, HeaderValue::from_static("trailers"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    let failed = |error: tonic::transport::Error| Status::from_error(Box::new(error));
    std::future::poll_fn(|cx| channel.poll_ready(cx)).await.map_err(failed)?;
    let response = channel.call(request).await.map_err(failed)?;
    if let Some(status) = Status::from_header_map(response.headers())
        && status.code() != tonic::Code::Ok
    {
        return Err(status);
    }
    let (head, body) = response.into_parts();
    let decoder = ProstCodec::<M, M>::default().decoder();
    Ok(Streaming::new_response(decoder, body, head.status, None, Some(usize::MAX)))
}

/// Returns the single message of a response.
pub(super) async fn only<M>(mut answers: Streaming<M>) -> Result<M, Status> {
    let message = answers.message().await?;
    // The status arrives after the message.
    answers.trailers().await?;
    message.ok_or_else(|| Status::internal("the response is empty, expected a message"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_parts_are_not_copied() {
        let long = Bytes::from(vec![7; COPY_BYTES]);
        let mut parts = Parts::new();
        parts.buffer().push(1);
        parts.push(long.clone());
        parts.push(Bytes::from_static(b"short"));
        let sent = parts.finish().unwrap();
        assert_eq!(sent[0], [0, 0, 0, 0x10, 6, 1][..]);
        assert_eq!(sent[1].as_ptr(), long.as_ptr());
        assert_eq!((sent[2].as_ref(), sent.len()), (&b"short"[..], 3));
        assert_eq!(Parts::new().finish().unwrap(), [Bytes::from_static(&[0; 5])]);
    }
}
