//! Questions to a running loop, from any thread, and the pace at which the loop answers them.
//!
//! An answer is made inside the packet loop, and describing a large job takes milliseconds. The loop therefore answers
//! all questions that wait with one snapshot, and then rests: for `ANSWER_INTERVAL` at least, and for `REST_FACTOR`
//! times as long as the answer has taken. An answer is never older than its question.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use iswitch_protocol::Instant;

use crate::flight::JobFlight;
use crate::snapshot::Snapshot;

/// Shortest time between two answers of the loop, whatever is asked.
const ANSWER_INTERVAL: Duration = Duration::from_millis(20);
/// How many times as long as it has taken to answer the loop answers nothing: answers take at most 2 % of its time.
const REST_FACTOR: u32 = 50;
/// Longest rest, so that a question is answered before [`ANSWER_TIMEOUT`].
const REST_MAX: Duration = Duration::from_secs(1);
/// How long a question to the loop may wait for its answer.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Questions that may wait for the loop to look at them.
const QUESTIONS_PENDING: usize = 64;

const _: () = assert!(ANSWER_INTERVAL.as_nanos() <= REST_MAX.as_nanos());
const _: () = assert!(REST_MAX.as_nanos() < ANSWER_TIMEOUT.as_nanos());

/// Talks to a running loop, from any thread.
#[derive(Clone, Debug)]
pub struct Handle {
    questions: SyncSender<Question>,
    stop: Arc<AtomicBool>,
    wake: Arc<UnixStream>,
}

/// What the loop is asked, and where the answer goes.
enum Question {
    Snapshot(SyncSender<Arc<Snapshot>>),
    Flights(SyncSender<Arc<Vec<JobFlight>>>),
}

impl Handle {
    /// Asks the loop to end after what it is doing now.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = self.wake();
    }

    /// The state of switch and ports. Waits until the loop has rested from its last answer: up to one second.
    ///
    /// # Errors
    /// `BrokenPipe` if the loop has ended, `TimedOut` if it does not answer within two seconds, `WouldBlock` if 64
    /// questions wait.
    pub fn snapshot(&self) -> io::Result<Arc<Snapshot>> {
        answer(&self.ask_snapshot()?)
    }

    /// What the flight recorder has of each job.
    ///
    /// # Errors
    /// As [`Self::snapshot`].
    pub fn flights(&self) -> io::Result<Arc<Vec<JobFlight>>> {
        answer(&self.ask(Question::Flights)?)
    }

    /// Asks for the state of switch and ports without waiting for it.
    ///
    /// # Errors
    /// `BrokenPipe` if the loop has ended, `WouldBlock` if 64 questions wait.
    pub fn ask_snapshot(&self) -> io::Result<Receiver<Arc<Snapshot>>> {
        self.ask(Question::Snapshot)
    }

    fn ask<T>(&self, question: impl FnOnce(SyncSender<T>) -> Question) -> io::Result<Receiver<T>> {
        let (sender, receiver) = sync_channel(1);
        self.questions.try_send(question(sender)).map_err(|error| match error {
            TrySendError::Full(_) => io::Error::new(io::ErrorKind::WouldBlock, "too many questions wait"),
            TrySendError::Disconnected(_) => io::ErrorKind::BrokenPipe.into(),
        })?;
        self.wake()?;
        Ok(receiver)
    }

    fn wake(&self) -> io::Result<()> {
        match (&*self.wake).write(&[0]) {
            // Full: so many wake-ups are pending that one more tells nothing.
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

/// The loop's end of its [`Handle`]s.
pub(crate) struct Inquiries {
    questions: Receiver<Question>,
    stop: Arc<AtomicBool>,
    wake: UnixStream,
    /// Questions that the next answer is for.
    waiting: Vec<Question>,
    next_answer: Instant,
}

impl Inquiries {
    /// Both ends.
    ///
    /// # Errors
    /// If there can be no further descriptor.
    pub(crate) fn new() -> io::Result<(Self, Handle)> {
        let (wake, waker) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        waker.set_nonblocking(true)?;
        let (sender, questions) = sync_channel(QUESTIONS_PENDING);
        let stop = Arc::new(AtomicBool::new(false));
        let handle = Handle { questions: sender, stop: stop.clone(), wake: Arc::new(waker) };
        let waiting = Vec::with_capacity(QUESTIONS_PENDING);
        Ok((Self { questions, stop, wake, waiting, next_answer: Instant::default() }, handle))
    }

    /// Readable once [`Self::take`] has something to do.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Takes in what is asked, and tells whether to stop.
    pub(crate) fn take(&mut self) -> bool {
        // Emptied first: a question that comes after is one more wake-up.
        let mut is_abandoned = false;
        while let Ok(len) = self.wake.read(&mut [0; 64]) {
            if len == 0 {
                // Every handle is gone, and nobody else could ever stop the loop.
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

    /// When the questions that wait are to be answered; none if none waits.
    pub(crate) fn due(&self) -> Option<Instant> {
        (!self.waiting.is_empty()).then_some(self.next_answer)
    }

    /// Answers all questions that wait; `clock` is that of the loop.
    pub(crate) fn answer(
        &mut self,
        clock: impl Fn() -> Instant,
        snapshot: impl FnOnce() -> Snapshot,
        flights: impl FnOnce() -> Vec<JobFlight>,
    ) {
        let begin = clock();
        let wants_snapshot = |question: &Question| matches!(question, Question::Snapshot(_));
        let snapshot = self.waiting.iter().any(wants_snapshot).then(|| Arc::new(snapshot()));
        let flights = self.waiting.iter().any(|it| !wants_snapshot(it)).then(|| Arc::new(flights()));
        for question in self.waiting.drain(..) {
            // The asker may have given up.
            match question {
                Question::Snapshot(to) => drop(snapshot.clone().map(|snapshot| to.try_send(snapshot))),
                Question::Flights(to) => drop(flights.clone().map(|flights| to.try_send(flights))),
            }
        }
        // Those for which there was no room, and whose wake-up is spent.
        self.collect();
        let end = clock();
        self.next_answer = end.plus(rest_after(end.since(begin)));
    }
}

/// How long the loop answers nothing after an answer that has taken so long.
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
        Snapshot { boot: 1, uptime_ms: 0, traffic, drops, ports: Vec::new(), jobs: Vec::new() }
    }

    #[test]
    fn however_many_ask_the_loop_makes_one_snapshot_and_rests() {
        let (mut inquiries, handle) = Inquiries::new().unwrap();
        let made = std::cell::Cell::new(0);
        let answer = |inquiries: &mut Inquiries, now| {
            let snapshot = || {
                made.set(made.get() + 1);
                empty()
            };
            inquiries.answer(|| at(now), snapshot, || unreachable!("nobody asks for flights"));
        };
        assert_eq!(inquiries.due(), None);
        let first: Vec<_> = (0..QUESTIONS_PENDING).map(|_| handle.ask_snapshot().unwrap()).collect();
        assert_eq!(handle.ask_snapshot().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert!(!inquiries.take());
        // The loop has taken them in, so that there is room again.
        let second = handle.ask_snapshot().unwrap();
        assert!(inquiries.due().is_some_and(|due| due <= at(5)));
        answer(&mut inquiries, 5);
        assert!(first.iter().all(|asked| asked.try_recv().is_ok()));
        assert!(second.try_recv().is_err(), "one answer is for 64 questions");

        assert_eq!(inquiries.due(), Some(at(5 + 20)), "the loop rests");
        answer(&mut inquiries, 25);
        assert!(second.try_recv().is_ok());
        assert_eq!(made.get(), 2);
        assert_eq!(inquiries.due(), None);
        handle.stop();
        assert!(inquiries.take());
    }

    #[test]
    fn a_slow_answer_earns_a_long_rest() {
        let ms = Duration::from_millis;
        assert_eq!(rest_after(ms(0)), ANSWER_INTERVAL);
        assert_eq!(rest_after(ms(4)), ms(200));
        assert_eq!(rest_after(ms(300)), REST_MAX);
    }
}
