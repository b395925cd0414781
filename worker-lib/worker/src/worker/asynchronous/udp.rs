//! The asynchronous worker: a separate thread drives the protocol over a UDP socket.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use iswitch_protocol::wire::{ControlBody, DigestRepr, Mode, Status};
use iswitch_protocol::{ElementTypes, Instant, Round};
use iswitch_socket::PollSet;

use super::{AsyncCounters, AsyncProtocol, Submission, Sum};
use crate::aggregate::{AggregateError, check_finite, check_len};
use crate::worker::enrolment::JoinProgress;
use crate::worker::failover::{self, Itinerary, Visit};
use crate::worker::join::{JoinError, JoinOptions};
use crate::worker::joining::{Role, instance, join};
use crate::worker::link::Link;
use crate::worker::outcome::{accept, forgotten_is_done, round_error};
use crate::worker::protocol::Membership;

/// Maximum number of datagrams or super-frames that the thread receives before it turns to the callers' requests.
const RECEIVES_PER_TURN: usize = 64;

/// Outcome of a submitted vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// The sequence number that [`AsyncWorker::submit`] returned.
    pub sequence: u64,
    /// Number of the aggregate that contains the vector; `None` if the vector was lost.
    pub aggregate: Option<u32>,
}

/// A worker that has joined an asynchronous job. Several threads may use it: for example, one submits vectors and
/// another takes sums.
///
/// A separate thread sends and receives; it is the GA (gradient aggregation) stage of the paper's pipeline. When
/// dropped, the worker leaves the job.
///
/// If there are [standbys](JoinOptions::standbys) and the switch fails, the worker moves to the next switch. A vector
/// in flight is then lost, as after a restart of the switch.
///
/// ```no_run
/// use iswitch::JoinOptions;
/// use iswitch::worker::asynchronous::AsyncWorker;
///
/// let worker = AsyncWorker::join(JoinOptions::new("10.9.0.254:7711".parse()?, 4, 10_119))?;
/// let (gradient, mut sum) = (vec![0.5; 10_119], vec![0.0; 10_119]);
/// worker.submit(&gradient)?;
/// let (aggregate, contributions) = worker.recv_sum(&mut sum)?;
/// println!("aggregate {aggregate}: sum of {contributions} gradients");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AsyncWorker {
    shared: Arc<Shared>,
    membership: Membership,
    gradient_len: usize,
    elements: ElementTypes,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Notified when a vector may be submitted or when the worker is closed.
    ready: Condvar,
    /// Notified when a sum or a failure is available or when the worker is closed.
    sums: Condvar,
    /// Notified when the switch has answered an order or when the worker is closed.
    answered: Condvar,
    /// Mutex that a caller holds while its order is in progress.
    ordering: Mutex<()>,
    wake: UnixStream,
}

/// State that callers and the network thread exchange.
#[derive(Debug, Default)]
struct State {
    is_ready: bool,
    is_closed: bool,
    next_sequence: u64,
    /// Vector that a caller has submitted and the network thread has not taken yet.
    outgoing: Option<Vec<f32>>,
    spare: Vec<Vec<f32>>,
    admissions: VecDeque<Admission>,
    /// The next sum for the caller. Further sums are kept by the protocol until this one is taken.
    sum: Option<Sum>,
    digests: Vec<DigestRepr>,
    order: Option<ControlBody<'static>>,
    answer: Option<Status>,
    failure: Option<AggregateError>,
    counters: AsyncCounters,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        // If the socket is full, enough wake-ups are already pending.
        let _ = (&self.wake).write(&[0]);
    }

    fn close(&self) {
        self.lock().is_closed = true;
        self.ready.notify_all();
        self.sums.notify_all();
        self.answered.notify_all();
        self.wake();
    }
}

impl AsyncWorker {
    /// Joins a job in asynchronous mode and waits until all its workers have joined.
    pub fn join(options: JoinOptions) -> Result<Self, JoinError> {
        let ((link, protocol, buffer), itinerary) = failover::join_at_any(&options, |options, stay| {
            let mut link = Link::open(&options)?;
            // Asynchronous vectors are admitted whole, and therefore by one switch (requirement T-2).
            let role = Role { stay, ..Role::of_one(Mode::Asynchronous, true) };
            let (protocol, buffer) = join::<AsyncProtocol>(&mut link, &options, role, &mut || true)?;
            Ok((link, protocol, buffer))
        })?;
        let membership = *protocol.membership().expect("a worker that has joined is a member");
        tracing::debug!(member = membership.member, window = membership.window, "joined");
        let (woken, wake) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        wake.set_nonblocking(true)?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State::default()),
            ready: Condvar::new(),
            sums: Condvar::new(),
            answered: Condvar::new(),
            ordering: Mutex::new(()),
            wake,
        });
        let (gradient_len, elements) = (options.gradient_len as usize, options.elements);
        let network = Network {
            shared: Arc::clone(&shared),
            options: JoinOptions { switch: itinerary.switch(), ..options },
            itinerary,
            visit: Visit::of_newcomer(link.now()),
            link,
            protocol,
            buffer,
            woken,
            poll: PollSet::new(),
            sequence: 0,
        };
        let thread = std::thread::Builder::new().name("iswitch-ga".into()).spawn(move || network.run())?;
        Ok(Self { shared, membership, gradient_len, elements, thread: Some(thread) })
    }

    /// Returns the membership that the switch granted when the worker joined.
    pub fn membership(&self) -> &Membership {
        &self.membership
    }

    /// Returns the number of floats in each vector.
    pub fn gradient_len(&self) -> usize {
        self.gradient_len
    }

    /// Returns the element types of the packets. With 16-bit types, contributions and sums are rounded.
    pub fn element_types(&self) -> ElementTypes {
        self.elements
    }

    /// Returns the protocol's counters.
    pub fn counters(&self) -> AsyncCounters {
        self.shared.lock().counters
    }

    /// Waits until a vector may be submitted: the previous vector is part of an aggregate, and sums are taken as fast
    /// as they arrive.
    pub fn wait_ready(&self) -> Result<(), AggregateError> {
        let state = self.shared.lock();
        let state = self
            .shared
            .ready
            .wait_while(state, |state| !state.is_ready && !state.is_closed)
            .unwrap_or_else(PoisonError::into_inner);
        if state.is_closed { Err(AggregateError::Closed) } else { Ok(()) }
    }

    /// Submits a vector (`[gradient_len]`) for sending; returns its sequence number among the vectors of this worker.
    /// Blocks like [`Self::wait_ready`], but does not wait until this vector has been sent.
    pub fn submit(&self, vector: &[f32]) -> Result<u64, AggregateError> {
        loop {
            self.wait_ready()?;
            // Another thread may have submitted a vector in the meantime.
            if let Some(sequence) = self.try_submit(vector)? {
                return Ok(sequence);
            }
        }
    }

    /// Works like [`Self::submit`], but does not wait: returns `None` if no vector may be submitted now.
    pub fn try_submit(&self, vector: &[f32]) -> Result<Option<u64>, AggregateError> {
        check_len(vector, self.gradient_len)?;
        check_finite(vector, self.elements.contributions())?;
        let mut state = self.shared.lock();
        if state.is_closed {
            return Err(AggregateError::Closed);
        }
        if !std::mem::take(&mut state.is_ready) {
            return Ok(None);
        }
        let mut outgoing = state.spare.pop().unwrap_or_default();
        outgoing.clear();
        outgoing.extend_from_slice(vector);
        state.outgoing = Some(outgoing);
        let sequence = state.next_sequence;
        state.next_sequence += 1;
        drop(state);
        self.shared.wake();
        Ok(Some(sequence))
    }

    /// Waits for the next sum and copies it into `sum` (`[gradient_len]`). Sums are delivered in order and without
    /// gaps. Returns the number of the aggregate and the number of worker gradients in the sum.
    ///
    /// After [`AggregateError::MissedRounds`], the caller lacks sums and needs the state of another worker before it
    /// applies the next sum.
    pub fn recv_sum(&self, sum: &mut [f32]) -> Result<(u32, u16), AggregateError> {
        if sum.len() != self.gradient_len {
            return Err(AggregateError::WrongLength { actual: sum.len(), expected: self.gradient_len });
        }
        let state = self.shared.lock();
        let mut state = self
            .shared
            .sums
            .wait_while(state, |state| state.sum.is_none() && state.failure.is_none() && !state.is_closed)
            .unwrap_or_else(PoisonError::into_inner);
        // A sum that is present together with a failure follows the failure.
        if let Some(failure) = state.failure.take() {
            return Err(failure);
        }
        let next = state.sum.take().ok_or(AggregateError::Closed)?;
        drop(state);
        sum.copy_from_slice(&next.vector);
        self.shared.lock().spare.push(next.vector);
        self.shared.wake();
        Ok((next.aggregate.get(), next.contributions))
    }

    /// Returns the next outcome of a submitted vector, or `None` if no further outcome is known. Outcomes are returned
    /// in order of submission, and each of them only once.
    pub fn poll_admission(&self) -> Option<Admission> {
        self.shared.lock().admissions.pop_front()
    }

    /// Sends the switch a digest of the weights after an aggregate has been applied, for comparison with the other
    /// workers' digests. If the digests differ, [`Self::recv_sum`] fails with [`AggregateError::Diverged`].
    pub fn send_digest(&self, aggregate: u32, digest: u64) {
        self.shared.lock().digests.push(DigestRepr { round: Round::new(aggregate), digest });
        self.shared.wake();
    }

    /// Pins the threshold H of the job, starting with the next aggregate. If `threshold` is zero, H again follows the
    /// number of members.
    pub fn set_threshold(&self, threshold: u16) -> Result<(), AggregateError> {
        self.order(ControlBody::SetH { threshold })
    }

    /// Clears the job at the switch and ends a halt. All workers rejoin: vectors in flight are lost, and a worker that
    /// is missing a sum received by others gets [`AggregateError::MissedRounds`].
    pub fn reset(&self) -> Result<(), AggregateError> {
        forgotten_is_done(self.order(ControlBody::RESET))
    }

    /// Suspends the job: the switch refuses contributions until a [`Self::reset`].
    pub fn halt(&self) -> Result<(), AggregateError> {
        self.order(ControlBody::Halt)
    }

    /// Closes the worker: all pending and future calls fail with [`AggregateError::Closed`].
    pub fn close(&self) {
        self.shared.close();
    }

    /// Sends an order and waits for the switch to answer. Only one order is in progress at a time.
    fn order(&self, body: ControlBody<'static>) -> Result<(), AggregateError> {
        let _ordering = self.shared.ordering.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.shared.lock();
        (state.order, state.answer) = (Some(body), None);
        self.shared.wake();
        let mut state = self
            .shared
            .answered
            .wait_while(state, |state| state.answer.is_none() && !state.is_closed)
            .unwrap_or_else(PoisonError::into_inner);
        accept(state.answer.take().ok_or(AggregateError::Closed)?)
    }
}

impl Drop for AsyncWorker {
    fn drop(&mut self) {
        self.shared.close();
        if let Some(thread) = self.thread.take() {
            // The panic of the thread has already been printed; dropping must not panic again.
            let _ = thread.join();
        }
    }
}

/// The part of a worker that belongs to the network thread.
struct Network {
    shared: Arc<Shared>,
    link: Link,
    protocol: AsyncProtocol,
    /// Options of the worker; `switch` is the switch that it uses at present.
    options: JoinOptions,
    itinerary: Itinerary,
    /// Visit to the current switch, if the worker has several switches.
    visit: Visit,
    buffer: Vec<u8>,
    woken: UnixStream,
    poll: PollSet,
    /// Sequence number of the vector that is being sent.
    sequence: u64,
}

impl Network {
    fn run(mut self) {
        if let Err(error) = self.serve() {
            let mut state = self.shared.lock();
            state.failure = Some(error.into());
            drop(state);
            self.shared.close();
        }
        // Best effort: if the Leave is lost, the lease ends the membership.
        let (class, stride) = self.protocol.emit(0, ControlBody::Leave, &mut self.buffer);
        let _ = self.link.send(class, &self.buffer, stride);
    }

    /// Serves until the worker is closed or the socket fails.
    fn serve(&mut self) -> io::Result<()> {
        self.link.last_heard = self.link.now();
        while self.exchange() {
            let is_refused = matches!(self.protocol.join_progress(), JoinProgress::Refused(..));
            if is_refused && self.shared.lock().failure.is_some() {
                // The switch does not readmit this worker.
                self.shared.close();
                break;
            }
            self.move_if_in_vain()?;
            if let Some(group) = self.link.follow(self.protocol.group()) {
                self.protocol.subscribed(group);
            }
            let now = self.link.now();
            while let Some((class, stride)) = self.protocol.poll_transmit(now, &mut self.buffer) {
                self.link.send(class, &self.buffer, stride)?;
            }
            self.wait()?;
            for _ in 0..RECEIVES_PER_TURN {
                if !self.protocol.has_room() {
                    // The worker reads no datagrams now, so this time must not count as silence of the switch.
                    self.link.last_heard = self.link.now();
                    break;
                }
                let Some((class, len, stride)) = self.link.receive()? else { break };
                let (now, path) = (self.link.now(), self.link.path);
                let payload = &self.link.recv_buffer[..len];
                self.protocol.handle_arrival(now, path, class, payload, stride);
            }
            let now = self.link.now();
            if self.protocol.poll_timeout().is_some_and(|deadline| deadline <= now) {
                self.protocol.handle_timeout(now);
            }
        }
        Ok(())
    }

    /// Moves to the next switch if the current one is silent, or if the job does not become complete there. The worker
    /// resumes at the next switch with the sums that it has.
    fn move_if_in_vain(&mut self) -> io::Result<()> {
        let Some(patience) = self.itinerary.patience() else { return Ok(()) };
        let (now, progress) = (self.link.now(), self.protocol.join_progress());
        let rejoins = self.protocol.counters().rejoins;
        if progress == JoinProgress::Joined {
            self.itinerary.arrived();
        }
        if !self.visit.is_over(now, progress, self.link.last_heard, patience) {
            return Ok(());
        }
        let Some(to) = self.itinerary.advance_along_route(*self.options.local.ip()) else {
            self.visit.extend(now);
            return Ok(());
        };
        if self.visit.ends_with_leave(progress, rejoins) {
            let (class, stride) = self.protocol.emit(0, ControlBody::Leave, &mut self.buffer);
            self.link.send(class, &self.buffer, stride)?;
        }
        tracing::warn!(from = %self.options.switch, %to, "moving to the next switch");
        self.options.switch = to;
        self.link.move_to(&self.options)?;
        let now = self.link.now();
        self.protocol.move_to(now, instance());
        self.visit = Visit::begin(now, rejoins);
        Ok(())
    }

    /// Waits until a datagram arrives, a caller makes a request, or the protocol's deadline passes.
    fn wait(&mut self) -> io::Result<()> {
        let now = self.link.now();
        let deadline = self.protocol.poll_timeout().unwrap_or(now.plus(self.options.switch_timeout));
        self.poll.clear();
        self.poll.push(self.woken.as_fd());
        if self.protocol.has_room() {
            self.poll.push(self.link.socket.as_fd());
            if let Some(group) = self.link.group_socket() {
                self.poll.push(group.as_fd());
            }
        }
        self.poll.wait(Some(deadline.since(now)))?;
        if self.poll.is_ready(0) {
            while matches!((&self.woken).read(&mut [0; 64]), Ok(1..)) {}
        }
        Ok(())
    }

    /// Takes requests from the callers and passes results to them. Returns false if the worker is closed.
    fn exchange(&mut self) -> bool {
        let now = self.link.now();
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        if state.is_closed {
            return false;
        }
        self.take_from(&mut state, now);
        if state.failure.is_none() {
            state.failure = self.urgent_failure(now);
        }
        if state.failure.is_none() && state.sum.is_none() {
            state.sum = self.protocol.take_sum();
            if state.sum.is_none() {
                let failure = self.protocol.take_failure();
                state.failure = failure.map(|failure| round_error(self.protocol.next_aggregate(), failure));
            }
        }
        if state.sum.is_some() || state.failure.is_some() {
            shared.sums.notify_all();
        }
        if let Some(submission) = self.protocol.take_submission() {
            let aggregate = match submission {
                Submission::Admitted(aggregate) => Some(aggregate.get()),
                Submission::Lost => None,
            };
            state.admissions.push_back(Admission { sequence: self.sequence, aggregate });
        }
        let is_ready = state.outgoing.is_none() && self.protocol.is_ready();
        if is_ready && !state.is_ready {
            shared.ready.notify_all();
        }
        state.is_ready = is_ready;
        if let Some(status) = self.protocol.take_order_outcome() {
            state.answer = Some(status);
            shared.answered.notify_all();
        }
        state.counters = self.protocol.counters();
        true
    }

    fn take_from(&mut self, state: &mut State, now: Instant) {
        state.spare.drain(..).for_each(|vector| self.protocol.recycle(vector));
        for digest in state.digests.drain(..) {
            self.protocol.send_digest(digest.round, digest.digest);
        }
        if let Some(body) = state.order.take() {
            self.protocol.order(now, body);
        }
        if self.protocol.is_ready()
            && let Some(vector) = state.outgoing.take()
        {
            self.sequence = state.next_sequence - 1;
            self.protocol.submit(now, &vector);
            state.spare.push(vector);
        }
    }

    /// Returns a failure that must be reported to the caller immediately, even if sums that precede it have not been
    /// taken.
    fn urgent_failure(&mut self, now: Instant) -> Option<AggregateError> {
        if let Some(divergence) = self.protocol.take_divergence() {
            let aggregate = divergence.aggregate.get();
            return Some(AggregateError::Diverged { aggregate, member: divergence.member });
        }
        let silent = now.since(self.link.last_heard);
        if silent <= self.options.switch_timeout {
            return None;
        }
        // Report again only if the silence lasts for another timeout.
        self.link.last_heard = now;
        Some(AggregateError::SwitchLost { switch: SocketAddr::V4(self.options.switch), silent })
    }
}
