//! Joining over a socket: Joins are repeated until the job is complete; if the switch does not answer, the cause is
//! diagnosed.

use std::io;
use std::time::Duration;

use iswitch_protocol::VectorLayout;
use iswitch_protocol::limits::MAX_SUPERFRAME_LEN_BYTES;
use iswitch_protocol::wire::{ControlBody, JoinRepr, Mode};

use super::attempt::LAST_RETRY;
use super::enrolment::{Enrolment, JoinProgress, Joins, SessionConfig};
use super::join::{JoinError, JoinOptions};
use super::link::{Link, is_transient};
use super::query::{PROBE_REQUEST, parse_ack};
use super::session::Session;

/// Linux errno for a packet that is larger than the path MTU.
const EMSGSIZE: i32 = 90;

/// Role of a worker in a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Role {
    pub(super) mode: Mode,
    /// Random number drawn by this process; see [`instance`].
    pub(super) instance: u32,
    /// Number of parts into which the whole vector is divided; this membership is for one of them.
    pub(super) parts: usize,
    /// Whether the switch itself must have at least `parts` parts, because it also serves the other parts, on other
    /// ports.
    pub(super) has_other_ports: bool,
    /// Whether the protocol sends heartbeats. If not, the caller must send them.
    pub(super) heartbeats: bool,
    /// Time to wait for further workers to join, counted from the last one that joined; `None` waits as long as the
    /// options permit.
    pub(super) stay: Option<Duration>,
}

impl Role {
    /// Returns the role of a worker whose vector is summed by a single switch.
    pub(super) fn of_one(mode: Mode, heartbeats: bool) -> Self {
        Self { mode, instance: instance(), parts: 1, has_other_ports: false, heartbeats, stay: None }
    }
}

/// Joins a job and waits until all its workers have joined, as long as `keep_waiting` returns true. Also returns the
/// buffer into which packets were written.
pub(super) fn join<P: Joins>(
    link: &mut Link,
    options: &JoinOptions,
    role: Role,
    keep_waiting: &mut dyn FnMut() -> bool,
) -> Result<(P, Vec<u8>), JoinError> {
    let outcome = join_once(link, options, role, keep_waiting);
    if let Err(error) = &outcome
        && let Some(options) = options.without_groups(error)
    {
        tracing::debug!("joining without group delivery, which the switch may not support");
        return join(link, &options, role, keep_waiting);
    }
    if let Err(error) = &outcome
        && let Some(options) = options.with_partial_segments(error)
    {
        tracing::debug!(
            segment_floats = options.segment_floats,
            "joining with the shorter segments of a switch that has a parent"
        );
        return join_once(link, &options, role, keep_waiting);
    }
    outcome
}

/// Works like [`join`], but does not adapt the size of segments to a switch with a parent.
pub(super) fn join_once<P: Joins>(
    link: &mut Link,
    options: &JoinOptions,
    role: Role,
    keep_waiting: &mut dyn FnMut() -> bool,
) -> Result<(P, Vec<u8>), JoinError> {
    let config = SessionConfig {
        job: options.job,
        layout: VectorLayout::with_elements(options.gradient_len, options.segment_floats, options.elements)?,
        parts: role.parts,
        join: JoinRepr { mode: role.mode, part: role.parts > 1, ..options.repr(role.instance) },
        recv_buffer_bytes: link.socket.recv_buffer_bytes()?,
        heartbeats: role.heartbeats,
        name: options.stated_name(),
    };
    let mut protocol = P::begin(config, link.now());
    if let Some(authenticator) = link.authenticator.clone() {
        protocol.enrolment().set_key(authenticator);
    }
    let mut buffer = Vec::with_capacity(MAX_SUPERFRAME_LEN_BYTES);
    let joined =
        Joining { link: &mut *link, options, role, buffer: &mut buffer, keep_waiting }.run(&mut protocol);
    if let Err(error) = joined {
        // Best effort: the Leave ends the membership immediately; without it, the membership ends when the lease
        // expires.
        let (class, stride) = protocol.enrolment().emit(0, ControlBody::Leave, &mut buffer);
        let _ = link.send(class, &buffer, stride);
        return Err(error);
    }
    Ok((protocol, buffer))
}

/// Returns the error for a switch that has not answered a query for the time `waited`. To diagnose the cause, sends a
/// Join.
pub(super) fn explain_silence(link: &mut Link, options: &JoinOptions, waited: Duration) -> JoinError {
    let once = JoinOptions { connect_timeout: Duration::ZERO, ..options.clone() };
    match join_once::<Session>(link, &once, Role::of_one(Mode::Synchronous, false), &mut || true) {
        Err(JoinError::NoAnswer { switch, detail, .. }) => JoinError::NoAnswer { switch, waited, detail },
        Err(error) => error,
        Ok(_) => JoinError::NoAnswer { switch: options.switch, waited, detail: String::new() },
    }
}

/// State of a worker until the switch has answered and all workers have joined.
struct Joining<'a> {
    link: &'a mut Link,
    options: &'a JoinOptions,
    role: Role,
    buffer: &'a mut Vec<u8>,
    keep_waiting: &'a mut dyn FnMut() -> bool,
}

impl Joining<'_> {
    fn run<P: Joins>(&mut self, session: &mut P) -> Result<(), JoinError> {
        let begin = self.link.now();
        let mut last_error = None;
        // Time at which the most recent worker joined, and the number of workers at that time.
        let mut grown = (begin, 0);
        loop {
            let now = self.link.now();
            while let Some((_, len)) = session.enrolment().poll_transmit(now, || None, self.buffer) {
                last_error = self.send(len)?;
            }
            let waited = now.since(begin);
            self.check_parts(session.enrolment().announced_parts())?;
            match session.enrolment().progress() {
                JoinProgress::Joined => return Ok(()),
                JoinProgress::Refused(status, expected) => {
                    let (mode, exceeded) =
                        (session.enrolment().config().join.mode, session.enrolment().exceeded());
                    let reason = self.options.refusal(mode, status, expected, exceeded);
                    return Err(JoinError::Refused { status, expected, reason });
                }
                JoinProgress::Unanswered if waited > self.options.connect_timeout => {
                    return Err(self.explain_silence(session.enrolment(), waited, last_error));
                }
                JoinProgress::Unanswered => {}
                JoinProgress::Waiting(present) => {
                    if present > grown.1 {
                        grown = (now, present);
                    }
                    self.check_patience((waited, now.since(grown.0)), present)?;
                    let silent = now.since(self.link.last_heard);
                    if silent > self.options.switch_timeout {
                        return Err(self.explain_silence(session.enrolment(), silent, last_error));
                    }
                }
            }
            let deadline = session.enrolment().poll_timeout().unwrap_or(now);
            let is_readable = self.link.wait(deadline)?;
            if !(self.keep_waiting)() {
                return Err(JoinError::Interrupted);
            }
            if !is_readable {
                session.enrolment().handle_timeout(self.link.now());
            } else if let Some((class, len, stride)) = self.link.receive()? {
                let now = self.link.now();
                session.handle_datagrams(now, class, &self.link.recv_buffer[..len], stride);
            }
        }
    }

    /// Returns the error for a Join that was not answered. The Join has the length of a data packet. If a short query
    /// is answered, the path MTU is therefore too small.
    fn explain_silence(
        &mut self,
        enrolment: &Enrolment,
        waited: Duration,
        error: Option<io::Error>,
    ) -> JoinError {
        let JoinOptions { switch, job, .. } = *self.options;
        if let Some(has_key) = enrolment.key_refused() {
            return JoinError::KeyRefused { switch, job, waited, has_key };
        }
        let join = self.options.repr(instance());
        enrolment.emit(PROBE_REQUEST, ControlBody::Join(join), self.buffer);
        let padded_len = self.buffer.len();
        let probe = JoinRepr { padding_len: 0, query: true, ..join };
        enrolment.emit(PROBE_REQUEST, ControlBody::Join(probe), self.buffer);
        match self.send(self.buffer.len()).and_then(|_| self.is_answered()) {
            Ok(true) => self.path_mtu(padded_len),
            Ok(false) => JoinError::NoAnswer {
                switch,
                waited,
                detail: error.map_or_else(String::new, |error| format!(": {error}")),
            },
            Err(error) => error,
        }
    }

    fn path_mtu(&self, len: usize) -> JoinError {
        let JoinOptions { switch, segment_floats, .. } = *self.options;
        JoinError::PathMtu { switch, len, segment_floats }
    }

    /// Sends the first `len` bytes of the buffer. Returns `Ok(None)` on success, and a temporary error in `Ok(Some)`.
    fn send(&self, len: usize) -> Result<Option<io::Error>, JoinError> {
        let tos = self.options.control_tos;
        match self.link.socket.send(tos, None, None, &self.buffer[..len], len) {
            Ok(_) => Ok(None),
            Err(error) if error.raw_os_error() == Some(EMSGSIZE) => Err(self.path_mtu(len)),
            Err(error) if is_transient(&error) => Ok(Some(error)),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns whether the switch answers at all, even with a refusal.
    fn is_answered(&mut self) -> Result<bool, JoinError> {
        let deadline = self.link.now().plus(LAST_RETRY);
        while self.link.wait(deadline)? {
            let Some((class, len, stride)) = self.link.receive()? else { continue };
            let mut datagrams = self.link.recv_buffer[..len].chunks(stride.max(1));
            if datagrams.any(|bytes| parse_ack(class, bytes).is_some()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Checks that the switch has the parts into which the vector is divided. If a parent switch has fewer parts, the
    /// switch announces the smaller number only after it has heard from the parent.
    fn check_parts(&self, announced: u8) -> Result<(), JoinError> {
        let Role { parts, has_other_ports, .. } = self.role;
        if has_other_ports && announced > 0 && usize::from(announced) < parts {
            return Err(JoinError::FewerParts { switch: self.options.switch, announced, parts });
        }
        Ok(())
    }

    /// Checks the limits on the total time `waited` and on the time `stayed` since the most recent worker joined.
    fn check_patience(&self, (waited, stayed): (Duration, Duration), present: u16) -> Result<(), JoinError> {
        let workers = self.options.workers;
        let is_late = self.options.workers_timeout.is_some_and(|limit| waited > limit);
        if is_late || self.role.stay.is_some_and(|limit| stayed > limit) {
            return Err(JoinError::WorkersMissing { present, workers, waited });
        }
        Ok(())
    }
}

/// Draws a random number, so that two processes at the same address are unlikely to have the same instance number.
pub(super) fn instance() -> u32 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()) as u32
}
