//! Objects that are still being received from upstream. Readers receive the bytes as they arrive.
//!
//! The received bytes are copied once, into blocks whose total length is exactly that of the object. Readers share the
//! blocks.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};

use crate::Manifest;
use crate::limits::SLICE_LEN_BYTES;

/// Minimum length of a piece that is passed on to readers, in bytes. Only the last piece may be shorter.
const PIECE_LEN_BYTES: usize = 64 << 10;

/// Object that has been received partly or completely.
#[derive(Debug)]
pub(crate) struct Arriving {
    manifest: Manifest,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Received pieces, each with the offset of its first byte.
    pieces: Vec<(u64, Bytes)>,
    received: u64,
    /// Reason why no more bytes will arrive; `None` if the download has not failed.
    failure: Option<String>,
    /// Wakers of the readers that are waiting for more bytes.
    waiting: HashMap<u64, Waker>,
    readers: u64,
}

impl Arriving {
    pub(crate) fn new(manifest: Manifest) -> Self {
        Self { manifest, state: Mutex::default() }
    }

    pub(crate) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Appends received bytes, and wakes the readers that are waiting for them.
    fn push(&self, bytes: Bytes) {
        let mut state = self.lock();
        let start = state.received;
        state.received += bytes.len() as u64;
        state.pieces.push((start, bytes));
        state.wake();
    }

    /// Ends the download with a failure, and wakes the readers of the object.
    pub(crate) fn fail(&self, reason: String) {
        let mut state = self.lock();
        state.failure = Some(reason);
        state.wake();
    }

    /// Returns a reader for a range of the object. It yields the bytes that have already arrived, and then the
    /// remaining bytes as they arrive.
    pub(crate) fn follow(self: &Arc<Self>, range: Range<u64>) -> Follower {
        let mut state = self.lock();
        state.readers += 1;
        let reader = state.readers;
        drop(state);
        Follower { arriving: Arc::clone(self), reader, rest: range }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn wake(&mut self) {
        self.waiting.drain().for_each(|(_, waker)| waker.wake());
    }

    /// Returns received bytes that begin at the start of `wanted` and do not extend past its end.
    fn piece(&self, wanted: &Range<u64>) -> Option<Bytes> {
        if wanted.start >= self.received {
            return None;
        }
        let at = self.pieces.partition_point(|(start, _)| *start <= wanted.start) - 1;
        let (start, bytes) = &self.pieces[at];
        let first = (wanted.start - start) as usize;
        let len = (wanted.end - wanted.start).min((bytes.len() - first) as u64) as usize;
        Some(bytes.slice(first..first + len))
    }
}

/// Reader of an object that is still arriving.
#[derive(Debug)]
pub(crate) struct Follower {
    arriving: Arc<Arriving>,
    reader: u64,
    rest: Range<u64>,
}

impl Follower {
    /// Returns the number of bytes that have not been read yet.
    pub(crate) fn rest_len(&self) -> u64 {
        self.rest.end - self.rest.start
    }

    /// Polls for the next bytes. Returns `None` if all bytes of the range have been read.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let mut state = self.arriving.lock();
        if let Some(bytes) = state.piece(&self.rest) {
            self.rest.start += bytes.len() as u64;
            return Poll::Ready(Some(Ok(bytes)));
        }
        if let Some(reason) = &state.failure {
            return Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::UnexpectedEof, reason.clone()))));
        }
        state.waiting.insert(self.reader, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.arriving.lock().waiting.remove(&self.reader);
    }
}

/// Writer of an object that is being received. It withholds the last piece from readers until [`Filler::finish`] is
/// called.
#[derive(Debug)]
pub(crate) struct Filler {
    arriving: Arc<Arriving>,
    block: BytesMut,
    taken: u64,
}

impl Filler {
    pub(crate) fn new(arriving: Arc<Arriving>) -> Self {
        Self { arriving, block: BytesMut::new(), taken: 0 }
    }

    /// Appends a copy of the bytes, up to the length of the object.
    pub(crate) fn write(&mut self, mut bytes: &[u8]) {
        let len_bytes = self.arriving.manifest.len_bytes;
        while !bytes.is_empty() && self.taken < len_bytes {
            if self.block.len() == self.block.capacity() {
                self.pass_on();
                let block_len = (len_bytes - self.taken).min(SLICE_LEN_BYTES as u64);
                self.block = BytesMut::with_capacity(block_len as usize);
            }
            let len = bytes.len().min(self.block.capacity() - self.block.len());
            self.block.extend_from_slice(&bytes[..len]);
            self.taken += len as u64;
            bytes = &bytes[len..];
        }
        if self.block.len() >= PIECE_LEN_BYTES && self.taken < len_bytes {
            self.pass_on();
        }
    }

    /// Passes on the withheld piece after the object has been verified.
    pub(crate) fn finish(mut self) {
        self.pass_on();
    }

    fn pass_on(&mut self) {
        let piece = self.block.split().freeze();
        if !piece.is_empty() {
            self.arriving.push(piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(follower: &mut Follower) -> Result<Vec<u8>, Vec<u8>> {
        let mut read = Vec::new();
        loop {
            match follower.poll_next(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Some(Ok(bytes))) => read.extend_from_slice(&bytes),
                Poll::Ready(None) => return Ok(read),
                Poll::Ready(Some(Err(_))) | Poll::Pending => return Err(read),
            }
        }
    }

    fn object(len: usize) -> (Vec<u8>, Arc<Arriving>) {
        let bytes: Vec<u8> = (0..len).map(|at| (at * 7 % 251) as u8).collect();
        let arriving = Arc::new(Arriving::new(Manifest::of(1, &bytes)));
        (bytes, arriving)
    }

    proptest! {
        #[test]
        fn each_reader_gets_its_range_for_any_chunking(
            len in 1_usize..700_000, piece_len in 1_usize..300_000, a in 0.0..1.0, b in 0.0..1.0
        ) {
            let (bytes, arriving) = object(len);
            let (start, end) = ((a * len as f64) as usize, (b * len as f64) as usize);
            let part = start.min(end)..start.max(end) + 1;
            let follow = || arriving.follow(part.start as u64..part.end.min(len) as u64);
            let mut before = follow();
            let mut filler = Filler::new(Arc::clone(&arriving));
            let mut got = Vec::new();
            for piece in bytes.chunks(piece_len.max(len / 100)) {
                filler.write(piece);
                got.extend(read(&mut before).unwrap_or_else(|got| got));
            }
            filler.finish();
            got.extend(read(&mut before).unwrap());
            prop_assert_eq!(&got[..], &bytes[part.start..part.end.min(len)]);
            prop_assert_eq!(read(&mut follow()).unwrap(), got);
            let kept: usize = arriving.lock().pieces.iter().map(|(_, bytes)| bytes.len()).sum();
            prop_assert_eq!(kept, len);
        }
    }

    #[test]
    fn the_end_of_an_object_is_withheld_until_it_is_verified() {
        let (bytes, arriving) = object(200_000);
        let mut follower = arriving.follow(0..200_000);
        let mut filler = Filler::new(Arc::clone(&arriving));
        filler.write(&bytes);
        let got = read(&mut follower).unwrap_err();
        assert!(got.len() < 200_000 && bytes.starts_with(&got));
        arriving.fail("its digest differs".to_owned());
        assert_eq!(read(&mut follower), Err(Vec::new()));
        assert!(follower.rest_len() > 0);
    }
}
