//! Ring all-reduce over TCP (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
//! workstations", JPDC 2009). Each of N workers sends 2 (N - 1) / N times the size of the vector, and only to its next
//! neighbour.
//!
//! A worker sends one stream of 2 (N - 1) chunks and receives another stream of equal length. It first sends its own
//! chunk. After that, it sends each chunk that it has just received: it adds its own contribution to the first N - 1
//! chunks that it receives, and forwards the others unchanged.

use std::net::{SocketAddrV4, TcpListener};
use std::ops::Range;
use std::thread::yield_now;
use std::time::{Duration, Instant};

use iswitch_protocol::limits::FLOAT_LEN_BYTES;
use iswitch_socket::{PollSet, Spin};

use super::connection::{Connection, Forming, Hello, READ_LEN_BYTES, check_group, deadline, floats, listen};
use super::{
    AggregateError, AggregatorStats, ConnectError, GradientAggregator, Round, Style, check_vector,
    count_round,
};
use crate::worker::DEFAULT_SPIN;

/// Options of one member of a ring.
#[derive(Clone, Debug)]
pub struct RingOptions {
    /// Addresses on which the workers listen, by rank.
    pub members: Vec<SocketAddrV4>,
    /// Rank of this worker, an index into `members`.
    pub rank: u16,
    /// Number of floats in each vector.
    pub gradient_len: u32,
    /// Whether a worker forwards whole chunks only, or each part of a chunk as soon as it is summed.
    pub style: Style,
    /// Timeout for connecting to the neighbours and, once connected, for receiving data from them.
    pub timeout: Duration,
}

/// A member of a ring.
#[derive(Debug)]
pub struct Ring {
    style: Style,
    timeout: Duration,
    workers: usize,
    /// Connections to the neighbours; `None` for a ring of one.
    neighbours: Option<Neighbours>,
    /// Range of floats of each chunk, in the order in which the chunks are sent. Chunk i + 1 is received while chunk
    /// i is sent.
    chunks: Vec<Range<usize>>,
    sum: Vec<f32>,
    /// Received bytes that have yet to be summed.
    staging: Vec<u8>,
    waiting: PollSet,
    spin: Spin,
    stats: AggregatorStats,
}

#[derive(Debug)]
struct Neighbours {
    next: Connection,
    previous: Connection,
}

/// Progress of a round, in bytes of the two streams.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    sent: usize,
    received: usize,
    /// Number of bytes that have been received and summed.
    processed: usize,
}

impl Ring {
    /// Connects to the next worker and waits for the previous one. A connection whose greeting is not that of the
    /// previous worker of this ring is closed and logged.
    ///
    /// # Errors
    /// Fails if the next worker cannot be reached, if the previous one does not connect within the timeout, or if an
    /// option is invalid.
    pub fn join(options: &RingOptions) -> Result<Self, ConnectError> {
        let at = *options.members.get(usize::from(options.rank)).ok_or(ConnectError::BadOption {
            field: "rank",
            value: usize::from(options.rank),
            expected: "less than the number of members",
        })?;
        Self::join_at(options, &listen(at)?)
    }

    /// Works like [`Self::join`], but with an existing listener.
    pub fn join_at(options: &RingOptions, listener: &TcpListener) -> Result<Self, ConnectError> {
        let workers = options.members.len();
        check_group(workers, options.gradient_len)?;
        let hello = |rank: usize| Hello {
            rank: rank as u16,
            workers: workers as u16,
            gradient_len: options.gradient_len,
        };
        let rank = usize::from(options.rank);
        let neighbours = if workers > 1 {
            let next =
                Connection::connect(options.members[(rank + 1) % workers], hello(rank), options.timeout)?;
            next.begin()?;
            let expected = hello((rank + workers - 1) % workers);
            let previous = await_previous(listener, expected, &next, options.timeout)?;
            previous.begin()?;
            Some(Neighbours { next, previous })
        } else {
            None
        };
        let len = options.gradient_len as usize;
        let chunk = |at: usize| len * at / workers..len * (at + 1) / workers;
        let steps = 2 * workers.saturating_sub(1);
        // One more entry than there are chunks to send: the last chunk is only received.
        let chunks = (0..=steps).map(|step| chunk((rank + 2 * workers - step) % workers)).collect();
        Ok(Self {
            style: options.style,
            timeout: options.timeout,
            workers,
            neighbours,
            chunks,
            sum: vec![0.0; len],
            staging: vec![0; READ_LEN_BYTES],
            waiting: PollSet::new(),
            spin: Spin::new(DEFAULT_SPIN),
            stats: AggregatorStats::default(),
        })
    }

    fn run_round(&mut self, contribution: &[f32]) -> Result<(), AggregateError> {
        let Some(mut neighbours) = self.neighbours.take() else {
            self.sum.copy_from_slice(contribution);
            return Ok(());
        };
        let outcome = self.exchange(&mut neighbours, contribution);
        // After an error, the two streams remain out of step for good: the ring cannot be used again.
        self.neighbours = Some(neighbours);
        outcome
    }

    fn exchange(&mut self, neighbours: &mut Neighbours, contribution: &[f32]) -> Result<(), AggregateError> {
        let steps = self.chunks.len() - 1;
        let total: usize = self.chunks[1..].iter().map(byte_len).sum();
        let to_send: usize = self.chunks[..steps].iter().map(byte_len).sum();
        let mut progress = Progress::default();
        let mut heard = Instant::now();
        while progress.sent < to_send || progress.processed < total {
            let ready = self.ready_to_send(progress.processed);
            let sent = self.send(&mut neighbours.next, contribution, progress.sent, ready)?;
            progress.sent += sent;
            let received = self.receive(&mut neighbours.previous, contribution, &mut progress)?;
            if sent + received > 0 {
                self.spin.note(heard.elapsed());
                heard = Instant::now();
                continue;
            }
            if self.spin.goes_on(heard.elapsed()) {
                yield_now();
                continue;
            }
            let ready = self.ready_to_send(progress.processed);
            self.wait(neighbours, progress.processed < total, progress.sent < ready, heard)?;
        }
        Ok(())
    }

    /// Returns the number of bytes of the outgoing stream that may be sent after `processed` bytes of the incoming
    /// stream have been processed.
    fn ready_to_send(&self, processed: usize) -> usize {
        let steps = self.chunks.len() - 1;
        let first = byte_len(&self.chunks[0]);
        let passed_on = match self.style {
            Style::Pipelined => processed,
            Style::Paper => whole_chunks(&self.chunks[1..], processed),
        };
        let to_send: usize = self.chunks[..steps].iter().map(byte_len).sum();
        (first + passed_on).min(to_send)
    }

    fn send(
        &mut self,
        next: &mut Connection,
        contribution: &[f32],
        sent: usize,
        ready: usize,
    ) -> Result<usize, AggregateError> {
        if sent >= ready {
            return Ok(0);
        }
        let (step, within) = position(&self.chunks, sent);
        // The first chunk is this worker's contribution; all others have been received into `sum`.
        let source = if step == 0 { contribution } else { &self.sum };
        let chunk: &[u8] = bytemuck::cast_slice(&source[self.chunks[step].clone()]);
        let end = chunk.len().min(within + ready - sent);
        next.write_some(&chunk[within..end])
    }

    /// Reads the available bytes of the incoming chunk and sums them.
    fn receive(
        &mut self,
        previous: &mut Connection,
        contribution: &[f32],
        progress: &mut Progress,
    ) -> Result<usize, AggregateError> {
        let incoming = &self.chunks[1..];
        let (step, within) = position(incoming, progress.processed);
        let Some(chunk) = incoming.get(step).cloned() else { return Ok(0) };
        let left = byte_len(&chunk) - within;
        if step + 1 >= self.workers {
            // From this step on, the received chunks are complete sums, so they are stored unchanged.
            let place: &mut [u8] = bytemuck::cast_slice_mut(&mut self.sum[chunk]);
            let len = previous.read_some(&mut place[within..])?;
            progress.received += len;
            progress.processed += len;
            return Ok(len);
        }
        // `staging` may already hold the first bytes of a float.
        let begun = progress.received - progress.processed;
        let room = left.min(self.staging.len() / FLOAT_LEN_BYTES * FLOAT_LEN_BYTES);
        let len = previous.read_some(&mut self.staging[begun..room])?;
        progress.received += len;
        let whole = (begun + len) / FLOAT_LEN_BYTES;
        let first = chunk.start + within / FLOAT_LEN_BYTES;
        let received = floats(&self.staging[..whole * FLOAT_LEN_BYTES]);
        let own = &contribution[first..first + whole];
        for ((sum, own), x) in self.sum[first..first + whole].iter_mut().zip(own).zip(received) {
            *sum = own + x;
        }
        progress.processed += whole * FLOAT_LEN_BYTES;
        self.staging.copy_within(whole * FLOAT_LEN_BYTES..begun + len, 0);
        Ok(len)
    }

    fn wait(
        &mut self,
        neighbours: &Neighbours,
        to_read: bool,
        to_write: bool,
        heard: Instant,
    ) -> Result<(), AggregateError> {
        self.waiting.clear();
        if to_read {
            self.waiting.push(neighbours.previous.as_fd());
        }
        if to_write {
            self.waiting.push_for(neighbours.next.as_fd(), false, true);
        }
        let silent = heard.elapsed();
        if silent >= self.timeout {
            let peer = if to_read { neighbours.previous.peer() } else { neighbours.next.peer() };
            return Err(AggregateError::PeerLost { peer, silent });
        }
        self.waiting.wait(Some(self.timeout.saturating_sub(silent)))?;
        Ok(())
    }
}

/// Waits for the previous worker. If the next worker closes its connection during this time, the ring fails.
fn await_previous(
    listener: &TcpListener,
    expected: Hello,
    next: &Connection,
    timeout: Duration,
) -> Result<Connection, ConnectError> {
    let mut forming = Forming::new(listener)?;
    let until = deadline(timeout);
    loop {
        match forming.next(until, Some(next))? {
            Some((previous, theirs)) => match theirs.expect(expected, previous.peer()) {
                Ok(()) => return Ok(previous),
                Err(error) => forming.refuse(previous.peer(), &error),
            },
            None if next.is_closed() => {
                return Err(ConnectError::Left { address: next.peer(), refused: forming.refused() });
            }
            None if Instant::now() >= until => {
                return Err(forming.incomplete(vec![expected.rank], timeout));
            }
            // `next` was reported as readable but is still open: either a signal interrupted the wait, or the peer sent
            // bytes, which a ring member never does on this connection.
            None if next.has_bytes() => return Err(ConnectError::Foreign { address: next.peer() }),
            None => {}
        }
    }
}

fn byte_len(chunk: &Range<usize>) -> usize {
    chunk.len() * FLOAT_LEN_BYTES
}

/// Returns the index of the chunk that contains byte number `at` of the stream, and the offset within that chunk.
fn position(chunks: &[Range<usize>], at: usize) -> (usize, usize) {
    let mut before = 0;
    for (step, chunk) in chunks.iter().enumerate() {
        if at < before + byte_len(chunk) {
            return (step, at - before);
        }
        before += byte_len(chunk);
    }
    (chunks.len(), 0)
}

/// Returns the total length of the chunks that lie completely within the first `processed` bytes of a stream, in
/// bytes.
fn whole_chunks(chunks: &[Range<usize>], processed: usize) -> usize {
    let ends = chunks.iter().scan(0, |end, chunk| {
        *end += byte_len(chunk);
        Some(*end)
    });
    ends.take_while(|end| *end <= processed).last().unwrap_or(0)
}

impl GradientAggregator for Ring {
    fn name(&self) -> &'static str {
        "ring"
    }

    fn gradient_len(&self) -> usize {
        self.sum.len()
    }

    fn reduce(&mut self, contribution: &[f32]) -> Result<(Round, &[f32]), AggregateError> {
        check_vector(contribution, self.sum.len())?;
        self.run_round(contribution)?;
        Ok((count_round(&mut self.stats, self.workers as u16), &self.sum))
    }

    fn stats(&self) -> AggregatorStats {
        self.stats
    }
}
