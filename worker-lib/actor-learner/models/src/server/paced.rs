//! Connection that limits the time for which its peer may delay it.
//!
//! The limit counts only the time during which the kernel accepts no more bytes of a response because the reader does
//! not receive them. It does not count the time during which there is nothing to write, for example while a cell waits
//! for upstream.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::counters::Counters;
use crate::limits::STALL_TIMEOUT;
use crate::manifest::millis;

/// Limits on slow readers.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Timeout after which a reader that receives nothing is disconnected.
    pub stall: Duration,
    /// Minimum rate in bytes per second. A reader is disconnected if it delays a response for longer than the transfer
    /// would take at this rate, plus `stall`.
    pub bytes_per_s_min: u64,
}

impl Patience {
    /// Returns the total time for which a peer may delay a response of `len_bytes` bytes.
    pub(crate) fn allowance(self, len_bytes: u64) -> Duration {
        self.stall + Duration::from_secs_f64(len_bytes as f64 / self.bytes_per_s_min.max(1) as f64)
    }
}

/// State that a connection shares with its responses.
#[derive(Debug)]
pub(crate) struct Pace {
    patience: Patience,
    /// Remaining time for which the reader may delay the current response, in milliseconds.
    allowed_ms: AtomicU64,
}

impl Pace {
    pub(crate) fn new(patience: Patience) -> Self {
        Self { patience, allowed_ms: AtomicU64::new(millis(patience.allowance(0))) }
    }

    /// Resets the allowance for a new response of `len_bytes` bytes.
    pub(crate) fn begin(&self, len_bytes: u64) {
        self.allowed_ms.store(millis(self.patience.allowance(len_bytes)), Ordering::Relaxed);
    }

    /// Deducts the time for which the reader has delayed the response.
    fn spend(&self, time: Duration) {
        let left = self.allowed_ms.load(Ordering::Relaxed).saturating_sub(millis(time));
        self.allowed_ms.store(left, Ordering::Relaxed);
    }

    /// Returns the maximum time to wait for the reader to make progress.
    fn wait(&self) -> Duration {
        self.patience.stall.min(Duration::from_millis(self.allowed_ms.load(Ordering::Relaxed)))
    }
}

impl Default for Patience {
    fn default() -> Self {
        Self { stall: STALL_TIMEOUT, bytes_per_s_min: crate::limits::READER_BYTES_PER_S_MIN }
    }
}

/// Connection whose peer is limited by a [`Pace`].
#[derive(Debug)]
pub(crate) struct Paced<S> {
    stream: S,
    pace: Arc<Pace>,
    counters: Arc<Counters>,
    /// The time at which the kernel stopped accepting bytes, and the timer that enforces the limit.
    blocked: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl<S: AsyncWrite + Unpin> Paced<S> {
    pub(crate) fn new(stream: S, pace: Arc<Pace>, counters: Arc<Counters>) -> Self {
        Self { stream, pace, counters, blocked: None }
    }

    fn write(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let outcome = write(Pin::new(&mut self.stream), context);
        if let Poll::Ready(outcome) = outcome {
            if let Some((since, _)) = self.blocked.take() {
                self.pace.spend(since.elapsed());
            }
            Counters::add(&self.counters.sent_bytes, *outcome.as_ref().unwrap_or(&0) as u64);
            return Poll::Ready(outcome);
        }
        let wait = self.pace.wait();
        let (_, end) = self.blocked.get_or_insert_with(|| {
            let now = Instant::now();
            (now, Box::pin(sleep_until(now + wait)))
        });
        ready!(end.as_mut().poll(context));
        Counters::add(&self.counters.slow_readers_cut, 1);
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the reader is too slow")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.write(context, |stream, context| stream.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write(context, |stream, context| stream.poll_write_vectored(context, slices))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    const STALL: Duration = Duration::from_secs(10);

    /// Writes to a reader that receives `read_len` bytes per second, in virtual time.
    async fn write(len: usize, read_len: usize) -> io::Result<()> {
        let (writer, mut reader) = duplex(1024);
        let pace = Arc::new(Pace::new(Patience { stall: STALL, bytes_per_s_min: 1000 }));
        let mut writer = Paced::new(writer, Arc::clone(&pace), Arc::default());
        pace.begin(len as u64);
        let reading = tokio::spawn(async move {
            let mut buffer = vec![0; read_len];
            while read_len > 0 && reader.read_exact(&mut buffer).await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            std::future::pending::<()>().await;
            drop(reader);
        });
        let outcome = writer.write_all(&vec![0; len]).await;
        reading.abort();
        outcome
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_at_the_minimum_rate_is_served() {
        write(100_000, 1000).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn slow_and_stalled_readers_are_disconnected() {
        for read_len in [0, 1, 500] {
            let error = write(100_000, read_len).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{read_len} bytes a second");
        }
    }
}
