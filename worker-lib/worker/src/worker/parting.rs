//! Joining a job whose vector is divided into parts: how many parts there are, which switch sums each of them, and
//! how the worker brings all parts to the same vector.
//!
//! The job of the first part determines into how many parts the vector is divided. If a worker assumes a different
//! number, its first part has the wrong length; the switch refuses the worker, which learns the number from the
//! refusal. The worker joins the other parts only after the first. In a running job, the switches may admit the worker
//! at different vectors, because the other workers contribute in the meantime; the worker then leaves and rejoins the
//! parts that are behind (requirements T-5 and T-7).

use std::net::SocketAddrV4;
use std::ops::Range;
use std::time::Duration;

use iswitch_protocol::limits::{MAX_PARTS, MAX_SEGMENTS};
use iswitch_protocol::part;
use iswitch_protocol::wire::{ControlBody, Mode, Status};

use super::heartbeat::Heartbeat;
use super::join::{JoinError, JoinOptions, Timeouts};
use super::joining::{Role, explain_silence, instance, join_once};
use super::link::Link;
use super::outcome::forgotten_is_done;
use super::part::Part;
use super::parts::{Agreement, Parts, compare};
use super::query::Query;
use super::session::Session;

/// Number of times that a worker changes the number of parts without a pause; before each further change, it waits
/// for [`PAUSE`], because other workers may have to leave first.
const CHANGES_AT_ONCE: u32 = 3;
/// Pause between attempts to join with a different number of parts, and between queries about the vector that a part
/// has reached.
const PAUSE: Duration = Duration::from_millis(20);

/// Division of a vector into parts. Each part is summed by a different thread of one switch, or by a different switch.
#[derive(Clone, Debug)]
pub(super) struct Division {
    options: JoinOptions,
    /// For each part, the address of the thread or switch that sums it.
    switches: Vec<SocketAddrV4>,
    are_threads: bool,
    /// Random instance number that this process uses for its memberships at these switches, except for those that
    /// follow a Leave.
    instance: u32,
    /// Time to wait for further workers to join; see [`Role::stay`].
    stay: Option<Duration>,
}

impl Division {
    /// Divides the vector among the threads of `options.switch`, which serve consecutive UDP ports.
    fn among_threads(options: JoinOptions, count: usize) -> Self {
        let switches = (0..count).map_while(|at| part::address(options.switch, at)).collect();
        Self { options, switches, are_threads: true, instance: instance(), stay: None }
    }

    /// Sets the time to wait for further workers to join; see [`Role::stay`].
    pub(super) fn staying(self, stay: Option<Duration>) -> Self {
        Self { stay, ..self }
    }

    /// Moves all parts to the threads of another switch. The worker joins there as another instance, so that the switch
    /// can tell this visit from earlier ones (requirement M-14).
    pub(super) fn move_to(&mut self, switch: SocketAddrV4) {
        // If there is no such port, the part is sent to the first thread, which refuses it, because its own part has a
        // different length.
        let thread = |at| part::address(switch, at).unwrap_or(switch);
        self.switches = (0..self.count()).map(thread).collect();
        (self.options.switch, self.instance) = (switch, instance());
    }

    pub(super) fn instance(&self) -> u32 {
        self.instance
    }

    /// Divides the vector among separate switches; if there are more switches than segments, the remaining switches are
    /// not used.
    pub(super) fn among_switches(options: &JoinOptions, switches: &[SocketAddrV4]) -> Self {
        let segments = options.gradient_len.div_ceil(u32::from(options.segment_floats).max(1));
        let count = switches.len().min(segments.clamp(1, MAX_SEGMENTS) as usize);
        let switches = switches[..count].to_vec();
        Self { options: options.clone(), switches, are_threads: false, instance: instance(), stay: None }
    }

    pub(super) fn options(&self) -> &JoinOptions {
        &self.options
    }

    pub(super) fn set_timeouts(&mut self, timeouts: Timeouts) {
        self.options.set_timeouts(timeouts);
    }

    fn count(&self) -> usize {
        self.switches.len()
    }

    fn range(&self, at: usize) -> Range<usize> {
        let JoinOptions { gradient_len, segment_floats, .. } = self.options;
        part::range(gradient_len, segment_floats, self.count(), at)
    }

    /// Returns the options with which the worker joins one part. If the local port is fixed, the parts use consecutive
    /// ports that begin with it.
    pub(super) fn options_of(&self, at: usize) -> JoinOptions {
        let mut local = self.options.local;
        if local.port() != 0 {
            local.set_port(local.port().saturating_add(at as u16));
        }
        let gradient_len = self.range(at).len() as u32;
        JoinOptions { switch: self.switches[at], local, gradient_len, ..self.options.clone() }
    }

    fn role(&self, at: usize, instance: u32) -> Role {
        let (mode, parts) = (Mode::Synchronous, self.count());
        // Only the first thread announces the parts.
        let has_other_ports = self.are_threads && at == 0;
        Role { mode, instance, parts, has_other_ports, heartbeats: false, stay: self.stay }
    }

    /// Returns whether the vector is divided into several parts.
    pub(super) fn is_divided(&self) -> bool {
        self.count() > 1
    }

    fn join(
        &self,
        at: usize,
        link: &mut Link,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<(Session, Vec<u8>), JoinError> {
        join_once(link, &self.options_of(at), self.role(at, self.instance), keep_waiting)
    }

    /// Joins a part again after a Leave. A new instance number makes late answers to the first Join distinguishable.
    fn rejoin(
        &self,
        at: usize,
        part: &mut Part,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<(), JoinError> {
        let role = self.role(at, instance());
        let session = join_once(&mut part.link, &self.options_of(at), role, keep_waiting)?;
        part.replace(session);
        Ok(())
    }

    /// Joins all parts and brings them to the same vector. Only the first part already has a socket.
    pub(super) fn join_all(
        self,
        mut link: Link,
        heartbeat: &Heartbeat,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<(Self, Parts), JoinError> {
        let session = self.join(0, &mut link, keep_waiting)?;
        self.join_rest(link, session, heartbeat, keep_waiting)
    }

    /// Joins the other parts after the first.
    fn join_rest(
        self,
        link: Link,
        session: (Session, Vec<u8>),
        heartbeat: &Heartbeat,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<(Self, Parts), JoinError> {
        let mut parts = vec![self.part(0, link, session, heartbeat)];
        let mut join_rest = || -> Result<(), JoinError> {
            for at in 1..self.count() {
                let mut link = parts[0].link.open_beside(&self.options_of(at))?;
                let session = self.join(at, &mut link, keep_waiting)?;
                parts.push(self.part(at, link, session, heartbeat));
            }
            Ok(())
        };
        let outcome = join_rest();
        let mut parts = Parts::new(parts, &self.options);
        let outcome = outcome.and_then(|()| match parts.agree() {
            Agreement::Together => Ok(()),
            Agreement::Apart => self.align(&mut parts, keep_waiting),
        });
        match outcome {
            Ok(()) => Ok((self, parts)),
            Err(error) => {
                parts.iter_mut().for_each(Part::leave_silently);
                Err(error)
            }
        }
    }

    fn part(&self, at: usize, link: Link, session: (Session, Vec<u8>), heartbeat: &Heartbeat) -> Part {
        let membership = *session.0.membership().expect("a worker that has joined is a member");
        tracing::debug!(part = at, member = membership.member, window = membership.window, "joined");
        let mut part = Part::new(link, session, self.switches[at], self.range(at));
        part.keep_alive(heartbeat, self.options.job);
        part
    }

    /// Brings all parts to the same vector. Leaves the parts that are behind the latest one, and rejoins each as soon
    /// as its job has reached the same vector. The worker then lacks the sums before that vector.
    ///
    /// # Errors
    /// Fails with [`JoinError::PartsApart`] if this takes longer than the switch timeout; the next attempt may succeed.
    pub(super) fn align(
        &self,
        parts: &mut Parts,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<(), JoinError> {
        let begin = parts.first().link.now();
        loop {
            let latest = parts.latest_turn();
            let is_behind = |part: &Part| part.session.turn().is_none_or(|turn| Some(turn) != latest);
            let Some(at) = parts.iter().position(is_behind) else { return Ok(()) };
            let waited = parts.first().link.now().since(begin);
            if waited > self.options.switch_timeout {
                return Err(JoinError::PartsApart { waited });
            }
            let Some(part) = parts.iter_mut().nth(at) else { return Ok(()) };
            leave(part)?;
            match self.await_turn(at, part, latest, keep_waiting)? {
                Reached::Turn => self.rejoin(at, part, keep_waiting)?,
                Reached::NoJob => return self.join_again(parts, keep_waiting),
                Reached::NotYet => {}
            }
        }
    }

    /// Waits until a worker that joins the job of a part would begin at the vector `latest` or a later one.
    fn await_turn(
        &self,
        at: usize,
        part: &mut Part,
        latest: Option<u32>,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Reached, JoinError> {
        let Some(latest) = latest else { return Ok(Reached::Turn) };
        let options = self.options_of(at);
        let begin = part.link.now();
        while part.link.now().since(begin) <= self.options.switch_timeout {
            match Query::new(&mut part.link, &options).turn(keep_waiting)? {
                Some(turn) if compare(turn, latest).is_ge() => return Ok(Reached::Turn),
                Some(_) => std::thread::sleep(PAUSE),
                None => return Ok(Reached::NoJob),
            }
            if !keep_waiting() {
                return Err(JoinError::Interrupted);
            }
        }
        Ok(Reached::NotYet)
    }

    /// Leaves and rejoins all parts. This is necessary if one of them has no other member and therefore cannot reach
    /// the vector of the others.
    fn join_again(&self, parts: &mut Parts, keep_waiting: &mut dyn FnMut() -> bool) -> Result<(), JoinError> {
        for part in parts.iter_mut() {
            leave(part)?;
        }
        for (at, part) in parts.iter_mut().enumerate() {
            self.rejoin(at, part, keep_waiting)?;
        }
        match parts.agree() {
            Agreement::Together => Ok(()),
            Agreement::Apart => Err(JoinError::PartsApart { waited: self.options.switch_timeout }),
        }
    }
}

/// Vector that the job of a part has reached.
enum Reached {
    Turn,
    NoJob,
    NotYet,
}

/// Leaves the job of a part. If the switch does not answer, the membership ends when the lease expires.
fn leave(part: &mut Part) -> Result<(), JoinError> {
    match forgotten_is_done(part.request(ControlBody::Leave)) {
        Err(crate::aggregate::AggregateError::Io(error)) => Err(error.into()),
        _ => Ok(()),
    }
}

/// Returns the division of the vector as announced by the switch in answer to a query, before any attempt to join.
pub(super) fn discover(
    link: &mut Link,
    options: JoinOptions,
    keep_waiting: &mut dyn FnMut() -> bool,
) -> Result<Division, JoinError> {
    let announced = announced_parts(link, &options, keep_waiting)?;
    let count = part::count(announced, options.gradient_len, options.segment_floats);
    Ok(Division::among_threads(options, count))
}

/// Returns the number of parts that the switch announces, or 1 if the vector is too short for several parts.
fn announced_parts(
    link: &mut Link,
    options: &JoinOptions,
    keep_waiting: &mut dyn FnMut() -> bool,
) -> Result<usize, JoinError> {
    if part::count(MAX_PARTS, options.gradient_len, options.segment_floats) == 1 {
        return Ok(1);
    }
    match Query::new(link, options).parts(keep_waiting) {
        Err(JoinError::NoAnswer { .. }) => Err(explain_silence(link, options, options.connect_timeout)),
        outcome => outcome,
    }
}

/// Joins all parts of a vector that is divided among the threads of a switch, beginning with the division that the
/// switch announced.
pub(super) fn join(
    mut division: Division,
    mut link: Link,
    heartbeat: &Heartbeat,
    keep_waiting: &mut dyn FnMut() -> bool,
) -> Result<(Division, Parts), JoinError> {
    let begin = link.now();
    let mut changes = 0;
    loop {
        let error = match division.join(0, &mut link, keep_waiting) {
            Ok(session) => return division.join_rest(link, session, heartbeat, keep_waiting),
            Err(error) => error,
        };
        let is_late = link.now().since(begin) > division.options.connect_timeout;
        let adapted = adapt(&division, &mut link, &error, keep_waiting)?.filter(|_| !is_late);
        division = adapted.ok_or_else(|| explain(&division.options, error))?;
        tracing::debug!(parts = division.count(), "retrying the join with adapted options");
        changes += 1;
        if changes > CHANGES_AT_ONCE {
            std::thread::sleep(PAUSE);
        }
    }
}

/// Returns the division with which a worker can join after a refusal, or `None` if there is none.
pub(super) fn adapt(
    division: &Division,
    link: &mut Link,
    error: &JoinError,
    keep_waiting: &mut dyn FnMut() -> bool,
) -> Result<Option<Division>, JoinError> {
    let options = &division.options;
    if let Some(options) = options.without_groups(error) {
        tracing::debug!("joining without group delivery, which the switch may not support");
        return Ok(Some(Division { options, ..division.clone() }));
    }
    if let Some(options) = options.with_partial_segments(error) {
        let found = discover(link, options, keep_waiting)?;
        return Ok(Some(found.staying(division.stay)));
    }
    let JoinOptions { gradient_len, segment_floats, .. } = *options;
    let count = match error {
        JoinError::Refused { status: Status::GradientLenMismatch, expected, .. } => {
            part::count_of_first(gradient_len, segment_floats, *expected)
        }
        JoinError::FewerParts { announced, .. } => {
            Some(part::count((*announced).into(), gradient_len, segment_floats))
        }
        _ => None,
    };
    let other = count.filter(|count| *count != division.count());
    Ok(other.map(|count| Division::among_threads(options.clone(), count).staying(division.stay)))
}

/// Replaces the length of a part in an error with the length of the whole vector, which is the one that the caller
/// knows.
fn explain(options: &JoinOptions, error: JoinError) -> JoinError {
    match error {
        JoinError::Refused { status: Status::GradientLenMismatch, expected, .. } => {
            let status = Status::GradientLenMismatch;
            let reason = options.refusal(Mode::Synchronous, status, expected, None);
            JoinError::Refused { status, expected, reason }
        }
        error => error,
    }
}
