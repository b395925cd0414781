//! Response bodies that share their bytes instead of copying them for each reader.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use crate::arriving::Follower;
use crate::limits::SLICE_LEN_BYTES;

/// Body of a response.
#[derive(Debug)]
pub(crate) enum Body {
    /// Bytes that are all available.
    Ready(Bytes),
    /// Bytes, some of which may not have arrived yet.
    Following(Follower),
}

impl Body {
    pub(crate) fn empty() -> Self {
        Self::Ready(Bytes::new())
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Ready(bytes) => bytes.len() as u64,
            Self::Following(follower) => follower.rest_len(),
        }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut *self {
            Self::Ready(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Ready(bytes) => {
                let slice = bytes.split_to(bytes.len().min(SLICE_LEN_BYTES));
                Poll::Ready(Some(Ok(Frame::data(slice))))
            }
            Self::Following(follower) => follower.poll_next(context).map_ok(Frame::data),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.len() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.len())
    }
}
