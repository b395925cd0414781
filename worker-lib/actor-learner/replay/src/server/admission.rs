//! Admission control: a request reserves memory before the server receives its body.
//!
//! A gRPC message begins with its length. The server reads this length, and reads the rest of the message once memory
//! is available. Until then, HTTP/2 flow control holds back the sender.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;

use crate::limits::{RECEIVE_WAIT_MS, SMALL_REQUEST_BYTES};
use crate::lock;

/// Length of gRPC's message prefix: a one-byte compression flag and a four-byte length.
const PREFIX_BYTES: usize = 5;

type Acquiring = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, Status>> + Send>>;

/// Memory that requests may occupy.
#[derive(Clone)]
pub(super) struct Admission {
    /// Free memory, in bytes.
    pub(super) memory: Arc<Semaphore>,
    pub(super) memory_bytes: u64,
    /// Maximum length of a message, in bytes.
    pub(super) message_max_bytes: u64,
}

/// Memory reserved by a request; released when all clones are dropped.
#[derive(Clone, Default)]
pub(super) struct Share(Arc<Mutex<Vec<OwnedSemaphorePermit>>>);

/// The body of a request. It reserves memory while it is being received.
pub(super) struct Admitted<B> {
    body: B,
    admission: Admission,
    share: Share,
    /// Prefix bytes of the current message that have been received so far.
    prefix: Vec<u8>,
    left: u64,
    acquiring: Option<Acquiring>,
    /// Frame that was received together with the end of the prefix. It is held back until memory is reserved.
    held_back: Option<Frame<Bytes>>,
}

impl Admission {
    pub(super) fn admit<B>(&self, body: B) -> (Admitted<B>, Share) {
        let share = Share::default();
        let admitted = Admitted {
            body,
            admission: self.clone(),
            share: share.clone(),
            prefix: Vec::with_capacity(PREFIX_BYTES),
            left: 0,
            acquiring: None,
            held_back: None,
        };
        (admitted, share)
    }

    fn acquire(&self, bytes: u64) -> Acquiring {
        let admission = self.clone();
        Box::pin(async move {
            let memory = Arc::clone(&admission.memory);
            let acquired = tokio::time::timeout(
                Duration::from_millis(RECEIVE_WAIT_MS),
                memory.acquire_many_owned(bytes as u32),
            );
            if let Ok(Ok(permit)) = acquired.await {
                return Ok(permit);
            }
            let used = admission.memory_bytes.saturating_sub(admission.memory.available_permits() as u64);
            Err(Status::resource_exhausted(format!(
                "requests hold {used} of {} bytes of memory, and the {bytes} bytes needed for this request were not \
                 available within {RECEIVE_WAIT_MS} ms",
                admission.memory_bytes
            )))
        })
    }
}

impl<B> Admitted<B> {
    /// Returns the total length, in bytes, of the messages that begin in `data`.
    fn begun(&mut self, mut data: &[u8]) -> Result<u64, Status> {
        let mut begun = 0;
        while !data.is_empty() {
            let passed = self.left.min(data.len() as u64) as usize;
            data = &data[passed..];
            self.left -= passed as u64;
            let of_prefix = data.len().min(PREFIX_BYTES - self.prefix.len());
            self.prefix.extend_from_slice(&data[..of_prefix]);
            data = &data[of_prefix..];
            if let [_, a, b, c, d] = *self.prefix {
                let len = u64::from(u32::from_be_bytes([a, b, c, d]));
                if len > self.admission.message_max_bytes {
                    return Err(Status::invalid_argument(format!(
                        "the request is {len} bytes long, expected at most {} (--item-max plus 1 MiB)",
                        self.admission.message_max_bytes
                    )));
                }
                self.prefix.clear();
                self.left = len;
                begun += len;
            }
        }
        Ok(begun)
    }
}

impl<B> Body for Admitted<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        loop {
            if let Some(acquiring) = &mut this.acquiring {
                let permit = ready!(acquiring.as_mut().poll(cx));
                this.acquiring = None;
                match permit {
                    Ok(permit) => lock(&this.share.0).push(permit),
                    Err(status) => return Poll::Ready(Some(Err(status))),
                }
            }
            if let Some(frame) = this.held_back.take() {
                return Poll::Ready(Some(Ok(frame)));
            }
            let frame = match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Poll::Ready(Some(Err(Status::from_error(Box::new(error))))),
                None => return Poll::Ready(None),
            };
            match frame.data_ref().map_or(Ok(0), |data| this.begun(data)) {
                Ok(begun) if begun > SMALL_REQUEST_BYTES => {
                    this.acquiring = Some(this.admission.acquire(begun));
                }
                Ok(_) => {}
                Err(status) => return Poll::Ready(Some(Err(status))),
            }
            this.held_back = Some(frame);
        }
    }

    fn is_end_stream(&self) -> bool {
        self.held_back.is_none() && self.acquiring.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

#[cfg(test)]
mod tests;
