//! Queries to the switch about a job that the worker has not joined.

use std::io;
use std::net::SocketAddrV4;
use std::time::Duration;

use iswitch_protocol::history::turn;
use iswitch_protocol::wire::{
    AckRepr, Class, ControlBody, ControlPacket, ControlRepr, JoinRepr, Mode, Status,
};

use super::attempt::{FIRST_RETRY, LAST_RETRY};
use super::join::{JoinError, JoinOptions};
use super::joining::instance;
use super::link::Link;

/// Request id of Joins that serve only as queries. It distinguishes the answers to them from the answers to other
/// Joins.
pub(super) const PROBE_REQUEST: u32 = u32::MAX;

/// Query about a job, which the switch answers without admitting the worker.
pub(super) struct Query<'a> {
    link: &'a mut Link,
    options: &'a JoinOptions,
    /// Whether the job has a key, according to an unauthenticated refusal; see
    /// [`Session::key_refused`](super::session::Session::key_refused).
    key_refused: Option<bool>,
}

/// Information about a job, from the switch's answer to a query.
struct JobAnswer {
    status: Status,
    expected: u32,
    parts: u8,
    history: u64,
    /// Address of a worker of the job; `None` if the job has not begun.
    peer: Option<SocketAddrV4>,
}

impl<'a> Query<'a> {
    pub(super) fn new(link: &'a mut Link, options: &'a JoinOptions) -> Self {
        Self { link, options, key_refused: None }
    }

    /// Queries the switch and returns the address of a worker of the job, or `None` if the job has not begun. `part`
    /// is true if the vector is one part of a longer vector.
    pub(super) fn peer(
        &mut self,
        part: bool,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Option<SocketAddrV4>, JoinError> {
        let answer = self.ask(part, keep_waiting)?;
        Ok(self.accept(answer)?.and_then(|answer| answer.peer))
    }

    /// Returns the number of parts into which the switch divides long vectors. A switch that does not support parts
    /// refuses the query with the status Malformed, and the result is then 1.
    pub(super) fn parts(&mut self, keep_waiting: &mut dyn FnMut() -> bool) -> Result<usize, JoinError> {
        Ok(self.ask(true, keep_waiting)?.parts.into())
    }

    /// Returns the number of sums that the job of a part had before the round at which a new worker would begin, modulo
    /// 2^24; `None` if there is no such job.
    pub(super) fn turn(&mut self, keep_waiting: &mut dyn FnMut() -> bool) -> Result<Option<u32>, JoinError> {
        let answer = self.ask(true, keep_waiting)?;
        Ok(self.accept(answer)?.filter(|answer| answer.history != 0).map(|answer| turn(answer.history)))
    }

    /// Returns the switch's answer, or `None` if it states that the switch does not know the job.
    fn accept(&self, answer: JobAnswer) -> Result<Option<JobAnswer>, JoinError> {
        let JobAnswer { status, expected, .. } = answer;
        match status {
            Status::Success => Ok(Some(answer)),
            Status::UnknownJob => Ok(None),
            _ => {
                let reason = self.options.refusal(Mode::Synchronous, status, expected, None);
                Err(JoinError::Refused { status, expected, reason })
            }
        }
    }

    fn ask(&mut self, part: bool, keep_waiting: &mut dyn FnMut() -> bool) -> Result<JobAnswer, JoinError> {
        let query =
            JoinRepr { query: true, part, groups: false, padding_len: 0, ..self.options.repr(instance()) };
        let requests = self.link.requests(self.options.job);
        let (begin, mut packet) = (self.link.now(), Vec::new());
        let mut retry = FIRST_RETRY;
        while self.link.now().since(begin) < self.options.connect_timeout {
            let (class, len) = requests.emit(PROBE_REQUEST, ControlBody::Join(query), &mut packet);
            self.link.send(class, &packet, len)?;
            match self.await_answer(retry)? {
                Some(answer) => return Ok(answer),
                None if !keep_waiting() => return Err(JoinError::Interrupted),
                None => retry = (retry * 2).min(LAST_RETRY),
            }
        }
        let JoinOptions { switch, job, connect_timeout: waited, .. } = *self.options;
        if let Some(has_key) = self.key_refused {
            return Err(JoinError::KeyRefused { switch, job, waited, has_key });
        }
        Err(JoinError::NoAnswer { switch, waited, detail: String::new() })
    }

    fn await_answer(&mut self, patience: Duration) -> io::Result<Option<JobAnswer>> {
        let deadline = self.link.now().plus(patience);
        while self.link.wait(deadline)? {
            let Some((class, len, stride)) = self.link.receive()? else { continue };
            for bytes in self.link.recv_buffer[..len].chunks(stride.max(1)) {
                let Some((PROBE_REQUEST, ack)) = parse_ack(class, bytes) else { continue };
                if self.link.is_authentic(bytes) {
                    let peer = ack.peer.filter(|_| ack.formed);
                    let AckRepr { status, expected, parts, history, .. } = ack;
                    return Ok(Some(JobAnswer { status, expected, parts, history, peer }));
                }
                if ack.status == Status::NotAuthentic {
                    self.key_refused = Some(ack.expected != 0);
                }
            }
        }
        Ok(None)
    }
}

/// Parses a datagram as an Ack. Returns the Ack together with the id of the request that it answers, or `None` if the
/// datagram is not an Ack.
pub(super) fn parse_ack(class: Class, bytes: &[u8]) -> Option<(u32, AckRepr<'_>)> {
    if class != Class::Control {
        return None;
    }
    let packet = ControlPacket::new_checked(bytes).ok()?;
    match ControlRepr::parse(&packet).ok()? {
        ControlRepr { request, body: ControlBody::Ack(ack), .. } => Some((request, ack)),
        _ => None,
    }
}
