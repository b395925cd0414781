//! Queries to the switch about a job that the worker has not joined.

use std::io;
use std::net::SocketAddrV4;
use std::time::Duration;

use iswitch_protocol::wire::{
    AckRepr, Class, ControlBody, ControlPacket, ControlRepr, JoinRepr, Mode, Status,
};

use super::attempt::{FIRST_RETRY, LAST_RETRY};
use super::join::{JoinError, JoinOptions};
use super::joining::instance;
use super::link::Link;

/// Request id of Joins that only query. It separates their answers from those of ordinary Joins.
pub(super) const PROBE_REQUEST: u32 = u32::MAX;

/// Asks the switch about a job without joining it.
pub(super) struct Query<'a> {
    link: &'a mut Link,
    options: &'a JoinOptions,
    /// Whether the job has a key, as an unauthenticated refusal states; see
    /// [`Session::key_refused`](super::session::Session::key_refused).
    key_refused: Option<bool>,
}

/// Answer of the switch to a query about a job.
struct JobAnswer {
    status: Status,
    expected: u32,
    /// Address of a worker of the job, if the job has begun.
    peer: Option<SocketAddrV4>,
}

impl<'a> Query<'a> {
    pub(super) fn new(link: &'a mut Link, options: &'a JoinOptions) -> Self {
        Self { link, options, key_refused: None }
    }

    /// Queries the switch and returns the address of a worker of the job, if the job has begun.
    pub(super) fn run(&mut self) -> Result<Option<SocketAddrV4>, JoinError> {
        let query = JoinRepr { query: true, groups: false, padding_len: 0, ..self.options.repr(instance()) };
        let requests = self.link.requests(self.options.job);
        let (begin, mut packet) = (self.link.now(), Vec::new());
        let mut retry = FIRST_RETRY;
        while self.link.now().since(begin) < self.options.connect_timeout {
            let (class, len) = requests.emit(PROBE_REQUEST, ControlBody::Join(query), &mut packet);
            self.link.send(class, &packet, len)?;
            match self.await_answer(retry)? {
                Some(JobAnswer { status: Status::Success, peer, .. }) => return Ok(peer),
                Some(JobAnswer { status: Status::UnknownJob, .. }) => return Ok(None),
                Some(JobAnswer { status, expected, .. }) => {
                    let reason = self.options.refusal(Mode::Synchronous, status, expected);
                    return Err(JoinError::Refused { status, expected, reason });
                }
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
                    return Ok(Some(JobAnswer { status: ack.status, expected: ack.expected, peer }));
                }
                if ack.status == Status::NotAuthentic {
                    self.key_refused = Some(ack.expected != 0);
                }
            }
        }
        Ok(None)
    }
}

/// Returns the Ack in a datagram, if the datagram is one, and the id of the request that it answers.
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
