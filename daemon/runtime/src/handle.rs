//! Questions to a running loop from any thread, and the rate at which the loop answers them.
//!
//! The packet loop itself computes the answers, and the answer for a large job takes milliseconds to compute. The loop
//! therefore answers all pending questions with one snapshot. It then pauses for `REST_FACTOR` times as long as the
//! answer took, but for at least `ANSWER_INTERVAL` and at most `REST_MAX`. An answer is never older than its question.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::time::Duration;

use iswitch_protocol::Instant;

use iswitch_switch::{Order, OrderError, PortId};

use crate::flight::JobFlight;
use crate::port::Port;
use crate::snapshot::Snapshot;

/// Minimum time between two answers of the loop, however many questions arrive.
const ANSWER_INTERVAL: Duration = Duration::from_millis(20);
/// Ratio of a pause to the time that the preceding answer took. Unless [`REST_MAX`] limits the pause, answers take at
/// most 2 % of the loop's time.
const REST_FACTOR: u32 = 50;
/// Maximum pause; short enough that a question is still answered within [`ANSWER_TIMEOUT`].
const REST_MAX: Duration = Duration::from_secs(1);
/// Maximum time that a question waits for its answer.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of questions that may be queued for the loop.
const QUESTIONS_PENDING: usize = 64;

const _: () = assert!(ANSWER_INTERVAL.as_nanos() <= REST_MAX.as_nanos());
const _: () = assert!(REST_MAX.as_nanos() < ANSWER_TIMEOUT.as_nanos());

/// Handle to a running switch, for use from any thread. The switch consists of one loop or, if it runs several threads,
/// of one loop per thread; the answers of several loops are merged.
#[derive(Clone, Debug)]
pub struct Handle {
    loops: Vec<LoopHandle>,
}

/// Handle to a single loop.
#[derive(Clone, Debug)]
struct LoopHandle {
    questions: SyncSender<Question>,
    stop: Arc<AtomicBool>,
    wake: Arc<UnixStream>,
}

/// Function that creates a port with a given id.
pub type MakePort = Box<dyn FnOnce(PortId) -> Box<dyn Port> + Send>;

/// Change of the ports of a loop, or a question about one of them.
pub(crate) enum PortCommand {
    Add(MakePort),
    /// Number of members that reach the switch through the port with this name.
    CountMembers(String),
    Remove(String),
}

/// Operation that the loop carries out between two packets, with the channel for its outcome.
pub(crate) enum Command {
    Order(Order, SyncSender<Result<(), OrderError>>),
    Port(PortCommand, SyncSender<usize>),
}

/// Question to the loop, and the channel for its answer.
enum Question {
    Port(PortCommand, SyncSender<usize>),
    Order(Box<Order>, SyncSender<Result<(), OrderError>>),
    Snapshot(SyncSender<Arc<Snapshot>>),
    Flights(SyncSender<Arc<Vec<JobFlight>>>),
}

impl Handle {
    /// Returns a handle to all loops of a switch. The first of `handles` must belong to the first thread's loop.
    #[must_use]
    pub fn of_all(handles: impl IntoIterator<Item = Self>) -> Self {
        Self { loops: handles.into_iter().flat_map(|handle| handle.loops).collect() }
    }

    /// Returns the number of loops, which is the number of threads of the switch.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.loops.len()
    }

    /// Asks all loops to end after their current turn.
    pub fn stop(&self) {
        for one in &self.loops {
            one.stop.store(true, Ordering::SeqCst);
            let _ = one.wake();
        }
    }

    /// Returns the state of the switch and its ports. Waits up to one second for the end of the pause after the loop's
    /// last answer.
    ///
    /// # Errors
    /// Returns `BrokenPipe` if a loop has ended, `TimedOut` if it does not answer within two seconds, or `WouldBlock`
    /// if 64 questions are already queued.
    pub fn snapshot(&self) -> io::Result<Arc<Snapshot>> {
        let answers = self.ask_each(Question::Snapshot)?;
        let snapshots = answers.iter().map(answer).collect::<io::Result<_>>()?;
        Ok(Snapshot::merged(snapshots))
    }

    /// Returns false only if it is certain that there is no job. If a busy switch does not answer in time, returns
    /// true.
    #[must_use]
    pub fn may_have_jobs(&self) -> bool {
        match self.snapshot() {
            Ok(snapshot) => !snapshot.jobs.is_empty(),
            Err(error) => error.kind() != io::ErrorKind::BrokenPipe,
        }
    }

    /// Returns the flight records of each job, or of each of its parts.
    ///
    /// # Errors
    /// Returns the errors of [`Self::snapshot`].
    pub fn flights(&self) -> io::Result<Arc<Vec<JobFlight>>> {
        let answers = self.ask_each(Question::Flights)?;
        let mut flights = answers.iter().map(answer).collect::<io::Result<Vec<_>>>()?;
        if flights.len() == 1 {
            return Ok(flights.remove(0));
        }
        Ok(Arc::new(flights.iter().flat_map(|flights| flights.iter().cloned()).collect()))
    }

    /// Sends an order to each loop. `order` takes the index of a loop and the number of loops, and returns the order
    /// for that loop. Because a job with a short vector exists only in the first loop, the call succeeds if at least
    /// one loop carries out the order.
    ///
    /// # Errors
    /// Returns `InvalidInput` with an [`OrderError`] if no loop can carry out the order, which then has no effect;
    /// otherwise the errors of [`Self::snapshot`].
    pub fn order(&self, order: impl Fn(usize, usize) -> Order) -> io::Result<()> {
        let ask = |(at, one): (usize, &LoopHandle)| {
            let order = Box::new(order(at, self.loops.len()));
            one.ask(|answer| Question::Order(order, answer))
        };
        let answers = self.loops.iter().enumerate().map(ask).collect::<io::Result<Vec<_>>>()?;
        let outcomes = answers.iter().map(answer).collect::<io::Result<Vec<_>>>()?;
        let is_obeyed = outcomes.iter().any(Result::is_ok);
        match outcomes.into_iter().find_map(Result::err).filter(|_| !is_obeyed) {
            Some(error) => Err(io::Error::new(io::ErrorKind::InvalidInput, error)),
            None => Ok(()),
        }
    }

    /// Adds a port to each loop. `ports` contains one function for each loop, in the order of the loops.
    ///
    /// # Errors
    /// Returns the errors of [`Self::snapshot`].
    pub fn add_port(&self, ports: Vec<MakePort>) -> io::Result<()> {
        let asked = self
            .loops
            .iter()
            .zip(ports)
            .map(|(one, port)| one.ask(|answer| Question::Port(PortCommand::Add(port), answer)));
        asked.collect::<io::Result<Vec<_>>>()?.iter().try_for_each(|asked| answer(asked).map(drop))
    }

    /// Returns the number of members that reach the switch through a port.
    ///
    /// # Errors
    /// Returns the errors of [`Self::snapshot`].
    pub fn members_on(&self, port: &str) -> io::Result<usize> {
        let question = |answer| Question::Port(PortCommand::CountMembers(port.to_owned()), answer);
        let counts = self.ask_each(question)?.iter().map(answer).collect::<io::Result<Vec<_>>>()?;
        // A job with a long vector has members in several loops.
        Ok(counts.into_iter().max().unwrap_or(0))
    }

    /// Closes a port of each loop. Members that still use the port are expelled when their leases expire.
    ///
    /// # Errors
    /// Returns the errors of [`Self::snapshot`].
    pub fn remove_port(&self, port: &str) -> io::Result<()> {
        let question = |answer| Question::Port(PortCommand::Remove(port.to_owned()), answer);
        self.ask_each(question)?.iter().try_for_each(|asked| answer(asked).map(drop))
    }

    /// Requests the state of the switch and its ports without waiting for the answer.
    ///
    /// # Errors
    /// Returns `BrokenPipe` if a loop has ended, or `WouldBlock` if 64 questions are already queued.
    pub fn ask_snapshot(&self) -> io::Result<PendingSnapshot> {
        Ok(PendingSnapshot { awaited: self.ask_each(Question::Snapshot)?, arrived: Vec::new() })
    }

    fn ask_each<T>(&self, question: impl Fn(SyncSender<T>) -> Question) -> io::Result<Vec<Receiver<T>>> {
        self.loops.iter().map(|one| one.ask(&question)).collect()
    }
}

/// Answer to [`Handle::ask_snapshot`] that might not have arrived yet.
#[derive(Debug)]
pub struct PendingSnapshot {
    awaited: Vec<Receiver<Arc<Snapshot>>>,
    /// Answers received so far: those of the first loops, in the order of the loops.
    arrived: Vec<Arc<Snapshot>>,
}

impl PendingSnapshot {
    /// Returns the snapshot once all loops have answered.
    ///
    /// # Errors
    /// Returns `Empty` if a loop has not answered yet, or `Disconnected` if a loop has ended.
    pub fn try_recv(&mut self) -> Result<Arc<Snapshot>, TryRecvError> {
        while let Some(next) = self.awaited.get(self.arrived.len()) {
            self.arrived.push(next.try_recv()?);
        }
        self.awaited.clear();
        let arrived = std::mem::take(&mut self.arrived);
        if arrived.is_empty() { Err(TryRecvError::Disconnected) } else { Ok(Snapshot::merged(arrived)) }
    }
}

impl LoopHandle {
    fn ask<T>(&self, question: impl FnOnce(SyncSender<T>) -> Question) -> io::Result<Receiver<T>> {
        let (sender, receiver) = sync_channel(1);
        self.questions.try_send(question(sender)).map_err(|error| match error {
            TrySendError::Full(_) => {
                io::Error::new(io::ErrorKind::WouldBlock, "too many requests are pending")
            }
            TrySendError::Disconnected(_) => io::ErrorKind::BrokenPipe.into(),
        })?;
        self.wake()?;
        Ok(receiver)
    }

    fn wake(&self) -> io::Result<()> {
        match (&*self.wake).write(&[0]) {
            // The socket is full of pending wake-ups, so another one is unnecessary.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            outcome => outcome.map(|_| ()),
        }
    }
}

fn answer<T>(receiver: &Receiver<T>) -> io::Result<T> {
    receiver.recv_timeout(ANSWER_TIMEOUT).map_err(|error| match error {
        RecvTimeoutError::Timeout => io::ErrorKind::TimedOut.into(),
        RecvTimeoutError::Disconnected => io::ErrorKind::BrokenPipe.into(),
    })
}

/// The loop's end of the channel through which its [`Handle`]s send questions.
pub(crate) struct Inquiries {
    questions: Receiver<Question>,
    stop: Arc<AtomicBool>,
    wake: UnixStream,
    /// Questions that the loop will answer next.
    waiting: Vec<Question>,
    next_answer: Instant,
}

impl Inquiries {
    /// Creates the loop's end of the channel, and the first handle.
    ///
    /// # Errors
    /// Fails if the process cannot open another descriptor.
    pub(crate) fn new() -> io::Result<(Self, Handle)> {
        let (wake, waker) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        waker.set_nonblocking(true)?;
        let (sender, questions) = sync_channel(QUESTIONS_PENDING);
        let stop = Arc::new(AtomicBool::new(false));
        let one = LoopHandle { questions: sender, stop: stop.clone(), wake: Arc::new(waker) };
        let handle = Handle { loops: vec![one] };
        let waiting = Vec::with_capacity(QUESTIONS_PENDING);
        Ok((Self { questions, stop, wake, waiting, next_answer: Instant::default() }, handle))
    }

    /// Returns a descriptor that is readable once [`Self::take`] has work to do.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Collects new questions, and returns whether the loop must stop.
    pub(crate) fn take(&mut self) -> bool {
        // The wake-ups are consumed before the questions, so that a later question causes another wake-up.
        let mut is_abandoned = false;
        while let Ok(len) = self.wake.read(&mut [0; 64]) {
            if len == 0 {
                // Every handle has been dropped, so nothing else could stop the loop.
                is_abandoned = true;
                break;
            }
        }
        self.collect();
        is_abandoned || self.stop.load(Ordering::SeqCst)
    }

    fn collect(&mut self) {
        while self.waiting.len() < QUESTIONS_PENDING
            && let Ok(question) = self.questions.try_recv()
        {
            self.waiting.push(question);
        }
    }

    /// Returns the time at which the pending questions are to be answered, or `None` if there are none.
    pub(crate) fn due(&self) -> Option<Instant> {
        (!self.waiting.is_empty()).then_some(self.next_answer)
    }

    /// Removes and returns the next pending command, or returns `None` if there is none.
    pub(crate) fn next_command(&mut self) -> Option<Command> {
        let is_command = |question: &Question| matches!(question, Question::Order(..) | Question::Port(..));
        let at = self.waiting.iter().position(is_command)?;
        match self.waiting.remove(at) {
            Question::Order(order, outcome) => Some(Command::Order(*order, outcome)),
            Question::Port(command, outcome) => Some(Command::Port(command, outcome)),
            Question::Snapshot(_) | Question::Flights(_) => None,
        }
    }

    /// Answers all pending questions. `clock` reads the clock of the loop.
    ///
    /// # Errors
    /// Returns the error of `snapshot`, which is called only if a question needs it.
    pub(crate) fn answer(
        &mut self,
        clock: impl Fn() -> Instant,
        snapshot: impl FnOnce() -> io::Result<Snapshot>,
        flights: impl FnOnce() -> Vec<JobFlight>,
    ) -> io::Result<()> {
        let begin = clock();
        let wants_snapshot = |question: &Question| matches!(question, Question::Snapshot(_));
        let snapshot = self.waiting.iter().any(wants_snapshot).then(snapshot).transpose()?.map(Arc::new);
        let wants_flights = |question: &Question| matches!(question, Question::Flights(_));
        let flights = self.waiting.iter().any(wants_flights).then(|| Arc::new(flights()));
        for question in self.waiting.drain(..) {
            // A failed send is ignored: the caller may have given up.
            match question {
                // The caller has already carried out the commands.
                Question::Order(..) | Question::Port(..) => {}
                Question::Snapshot(to) => drop(snapshot.clone().map(|snapshot| to.try_send(snapshot))),
                Question::Flights(to) => drop(flights.clone().map(|flights| to.try_send(flights))),
            }
        }
        // Questions that did not fit before remain in the channel, and their wake-up is already consumed.
        self.collect();
        let end = clock();
        self.next_answer = end.plus(rest_after(end.since(begin)));
        Ok(())
    }
}

/// Returns the duration of the loop's pause after an answer that took the time `answer`.
fn rest_after(answer: Duration) -> Duration {
    (answer * REST_FACTOR).clamp(ANSWER_INTERVAL, REST_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::CounterList;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn empty() -> Snapshot {
        let (traffic, drops) = (CounterList::default(), CounterList::default());
        let (ports, jobs, limits) = (Vec::new(), Vec::new(), Vec::new());
        Snapshot { boot: 1, uptime_ms: 0, traffic, drops, card: None, ports, jobs, limits }
    }

    #[test]
    fn concurrent_requests_share_one_snapshot_and_are_rate_limited() {
        let (mut inquiries, handle) = Inquiries::new().unwrap();
        let made = std::cell::Cell::new(0);
        let answer = |inquiries: &mut Inquiries, now| {
            let snapshot = || {
                made.set(made.get() + 1);
                Ok(empty())
            };
            let flights = || unreachable!("expected only requests for snapshots");
            inquiries.answer(|| at(now), snapshot, flights).unwrap();
        };
        assert_eq!(inquiries.due(), None);
        let mut first: Vec<_> = (0..QUESTIONS_PENDING).map(|_| handle.ask_snapshot().unwrap()).collect();
        assert_eq!(handle.ask_snapshot().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert!(!inquiries.take());
        // The loop has collected the first questions, so the channel has room again.
        let mut second = handle.ask_snapshot().unwrap();
        assert!(inquiries.due().is_some_and(|due| due <= at(5)));
        answer(&mut inquiries, 5);
        assert!(first.iter_mut().all(|asked| asked.try_recv().is_ok()));
        assert!(second.try_recv().is_err(), "one snapshot should answer only the 64 collected requests");

        assert_eq!(inquiries.due(), Some(at(5 + 20)), "the loop should pause before the next snapshot");
        answer(&mut inquiries, 25);
        assert!(second.try_recv().is_ok());
        assert_eq!(made.get(), 2);
        assert_eq!(inquiries.due(), None);
        handle.stop();
        assert!(inquiries.take());
    }

    #[test]
    fn a_slow_snapshot_is_followed_by_a_long_pause() {
        let ms = Duration::from_millis;
        assert_eq!(rest_after(ms(0)), ANSWER_INTERVAL);
        assert_eq!(rest_after(ms(4)), ms(200));
        assert_eq!(rest_after(ms(300)), REST_MAX);
    }
}
