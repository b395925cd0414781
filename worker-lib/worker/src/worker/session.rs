//! A worker's membership from the first Join to the last round, as a sans-I/O state machine: its inputs are bytes and
//! the time, and its outputs are bytes, a deadline and outcomes.
//!
//! The session joins, waits until the job is complete, and takes part in rounds. If the switch no longer knows the
//! worker, because the switch was restarted or the lease expired, the session rejoins and reports which sums it has.
//! Usually the round in progress is then repeated, and the caller notices only the delay. If the other workers have
//! continued in the meantime, the round ends with [`Failure::Missed`].

use core::net::SocketAddrV4;
use core::ops::Range;

use iswitch_protocol::history::Chain;
use iswitch_protocol::wire::{Action, Class, ControlBody, ControlRepr, Standing, Status};
use iswitch_protocol::{ElementType, Instant, Round, VectorLayout};

use super::attempt::Answer;
use super::auth::Authenticator;
use super::enrolment::{Enrolment, Joins};
use super::group::Path;
use super::protocol::{Failure, Finished, Membership, WorkerCounters, WorkerProtocol};
use super::scattered_receive::ScatteredReceive;
use super::superframe::Frame;
use super::window::Arrivals;
use crate::aggregate::Absent;

pub use super::enrolment::{JoinProgress, SessionConfig};

/// The complete protocol of a worker.
#[derive(Debug)]
pub struct Session {
    enrolment: Enrolment,
    /// Whether the member is sending its most recent sum to the members that lack it. The caller's round waits until
    /// this is complete.
    is_supplying: bool,
    /// Protocol of the rounds; `None` until the switch has admitted the worker.
    protocol: Option<WorkerProtocol>,
    /// Sum of the most recent round, and results of the round in progress: `[gradient_len]`.
    sums: Vec<f32>,
    /// Whether the caller is waiting for a round.
    is_wanted: bool,
    /// Round at which the worker continues after it missed rounds. `None` if no rounds were missed, or if the caller
    /// has been notified.
    missed: Option<Round>,
    outcome: Option<Result<Finished, Failure>>,
    /// Id of the caller's request that awaits its Ack, and the status in the Ack once it has arrived.
    request: Option<(u32, Option<Status>)>,
    /// Answer to the caller's Waiting, if it has arrived.
    absent: Option<Absent>,
    /// Number of control packets that were rejected because they were malformed or not authentic.
    forged: u64,
    /// Buffer for [`Self::poll_transmit`].
    frame: Frame,
}

impl Session {
    /// Creates a worker and begins to join.
    pub fn new(config: SessionConfig, now: Instant) -> Self {
        Self {
            enrolment: Enrolment::new(config, now),
            is_supplying: false,
            protocol: None,
            sums: vec![0.0; config.layout.gradient_len() as usize],
            is_wanted: false,
            missed: None,
            outcome: None,
            request: None,
            absent: None,
            forged: 0,
            frame: Frame::default(),
        }
    }

    /// Sets the key of the job. From then on, only packets that were authenticated with this key are accepted.
    #[must_use]
    pub fn with_key(mut self, authenticator: Authenticator) -> Self {
        self.enrolment.set_key(authenticator);
        self
    }

    /// Returns whether the job has a key, according to a refusal of this worker's key. The refusal is not authenticated
    /// and may be forged. Returns `None` if there was no such refusal.
    pub fn key_refused(&self) -> Option<bool> {
        self.enrolment.key_refused()
    }

    /// Returns the progress of the attempt to join.
    pub fn join_progress(&self) -> JoinProgress {
        self.enrolment.progress()
    }

    /// Returns the membership that the switch granted when it last admitted the worker, or `None` if it has not
    /// admitted the worker yet.
    pub fn membership(&self) -> Option<&Membership> {
        self.protocol.as_ref().map(WorkerProtocol::membership)
    }

    /// Returns the layout of the vector: its division into segments.
    pub fn layout(&self) -> &VectorLayout {
        &self.config().layout
    }

    /// Returns the sum of the most recently finished round, `[gradient_len]`; valid until the next round begins.
    pub fn sum(&self) -> &[f32] {
        &self.sums
    }

    /// Returns the number of gradients in each segment of the most recent sum: `[segment_count]`.
    pub fn contributions(&self) -> &[u16] {
        self.protocol.as_ref().map_or(&[], WorkerProtocol::contributions)
    }

    /// Returns the current counters.
    pub fn counters(&self) -> WorkerCounters {
        let counters = self.protocol.as_ref().map(|protocol| *protocol.counters()).unwrap_or_default();
        WorkerCounters { ignored: counters.ignored + self.forged, ..counters }
    }

    /// Returns the number of times that the switch has forgotten this worker and readmitted it.
    pub fn rejoins(&self) -> u64 {
        self.enrolment.rejoins()
    }

    /// Returns the number of the next round, or of the round in progress. The numbering of the job changes when the
    /// switch is restarted.
    pub fn round(&self) -> Round {
        self.protocol.as_ref().map_or_else(Round::default, WorkerProtocol::next_round)
    }

    /// If the vector is a part of a longer one, returns the number of sums that the job had before the next round,
    /// modulo 2^24 (requirement T-6). Returns `None` if the vector is not such a part, or if the number is unknown.
    /// Parts for which this number is equal are at the same vector.
    pub fn turn(&self) -> Option<u32> {
        self.protocol.as_ref().and_then(WorkerProtocol::turn)
    }

    /// Returns the results of the most recent round; `None` before its end.
    pub(super) fn arrivals(&self) -> Option<Arrivals> {
        self.protocol.as_ref().and_then(WorkerProtocol::arrivals)
    }

    /// If the worker has missed rounds and this has not been reported yet, returns the round at which it continues.
    /// Otherwise returns `None`. The call counts as the report, so the next round begins without a failure.
    pub fn take_missed(&mut self) -> Option<Round> {
        self.missed.take()
    }

    /// Returns whether the switch has lost its parent. Without its parent, it delivers no sums.
    pub fn is_orphaned(&self) -> bool {
        self.protocol.as_ref().is_some_and(WorkerProtocol::is_orphaned)
    }

    /// Returns the number of segments without a result in the round in progress.
    pub fn remaining(&self) -> usize {
        self.protocol.as_ref().map_or(0, WorkerProtocol::remaining)
    }

    /// Begins the next round. If the worker is currently not a member, the round begins once it is a member again.
    pub fn begin_round(&mut self, now: Instant) {
        self.outcome = None;
        if let Some(round) = self.missed.take() {
            self.outcome = Some(Err(Failure::Missed(round)));
            return;
        }
        self.is_wanted = true;
        if self.is_in_rounds() {
            self.start_round(now);
        } else if self.enrolment.is_refused() {
            self.join(now);
        }
    }

    /// Gives up the round in progress; the next call to [`Self::begin_round`] repeats it.
    pub fn abandon_round(&mut self) {
        self.is_wanted = false;
        if self.is_in_rounds()
            && let Some(protocol) = &mut self.protocol
        {
            protocol.abandon_round();
        }
    }

    /// Returns the outcome of the round, or `None` if the round has not ended. Each outcome is returned only once.
    pub fn take_outcome(&mut self) -> Option<Result<Finished, Failure>> {
        self.outcome.take()
    }

    /// Returns the time at which [`Self::handle_timeout`] is due, or `None` if no timer is running.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let rounds = self.active_protocol().and_then(WorkerProtocol::poll_timeout);
        rounds.into_iter().chain(self.enrolment.poll_timeout()).min()
    }

    /// Handles the timers that have expired by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.enrolment.handle_timeout(now);
        if let Some(protocol) = self.active_protocol_mut() {
            protocol.handle_timeout(now);
        }
    }

    /// Returns the group that the switch has offered. The driver subscribes to this group and then calls
    /// [`Self::subscribed`]. If the result is `None`, the driver leaves its current group.
    pub fn group(&self) -> Option<SocketAddrV4> {
        self.enrolment.wanted_group()
    }

    /// Records that the driver receives packets of a group from now on. It must pass these packets to
    /// [`Self::handle_arrival`] with [`Path::Group`].
    pub fn subscribed(&mut self, group: SocketAddrV4) {
        self.enrolment.group().subscribed(group);
    }

    /// Handles a datagram that the switch sent to this member, or a super-frame of datagrams of `stride` bytes.
    pub fn handle_datagrams(&mut self, now: Instant, class: Class, payload: &[u8], stride: usize) {
        self.handle_arrival(now, Path::Unicast, class, payload, stride);
    }

    /// Works like [`Self::handle_datagrams`], but for packets that arrived on `path`.
    pub fn handle_arrival(&mut self, now: Instant, path: Path, class: Class, payload: &[u8], stride: usize) {
        let is_usable = path == Path::Unicast || self.enrolment.group().is_subscribed();
        match class {
            Class::Control => {
                payload.chunks(stride.max(1)).for_each(|bytes| self.handle_control(now, path, bytes));
            }
            Class::Data => {
                if self.enrolment.is_member()
                    && let Some(protocol) = self.protocol.as_mut().filter(|_| is_usable)
                {
                    protocol.handle_results(now, payload, stride, &mut self.sums);
                    self.follow(now);
                }
            }
        }
    }

    fn handle_control(&mut self, now: Instant, path: Path, bytes: &[u8]) {
        if path == Path::Group {
            self.forged += u64::from(!self.enrolment.handle_probe(bytes));
            return;
        }
        let Some(repr) = self.enrolment.open(bytes) else { return self.forged += 1 };
        if let (ControlBody::Ack(ack), Some((request, outcome))) = (&repr.body, &mut self.request)
            && (repr.request == *request && ack.action != Action::Join)
        {
            *outcome = Some(ack.status);
            return;
        }
        if let ControlBody::Absent(absent) = &repr.body {
            let is_answer = self.request.is_some_and(|(request, _)| request == repr.request);
            self.absent = is_answer.then(|| absent.into());
            return;
        }
        if self.enrolment.take_offer(&repr) || self.enrolment.take_name_answer(&repr) {
            return;
        }
        if self.enrolment.is_joining() {
            self.handle_join_answer(now, &repr);
        } else if self.is_contradicted(&repr) {
            self.join(now);
        } else if let Some(protocol) = self.active_protocol_mut() {
            protocol.handle_control(now, &repr);
            self.follow(now);
        }
    }

    /// Returns whether the last Join has been granted twice, with different results. In this case, one of the two
    /// answers originates from an earlier run of a switch whose parent was not restarted, and only another Join shows
    /// which answer is valid.
    fn is_contradicted(&self, repr: &ControlRepr<'_>) -> bool {
        let (ControlBody::Ack(ack), Some(membership)) = (&repr.body, self.membership()) else { return false };
        let is_granted = (ack.action, ack.status, ack.formed) == (Action::Join, Status::Success, true);
        is_granted
            && self.enrolment.is_last_join(repr.request)
            && (ack.round, ack.standing) != (membership.start, membership.standing)
    }

    /// Returns the part of the sums to which the floats of the next results are likely to belong, in the order of the
    /// segments, or `None` if no results are expected. After receiving into this buffer, the caller must call
    /// [`Self::handle_received`] before any other method.
    pub(super) fn receive_buffer(&mut self) -> Option<&mut [f32]> {
        let range = self.receive_range()?;
        self.sums.get_mut(range)
    }

    fn receive_range(&self) -> Option<Range<usize>> {
        let expected = self.protocol.as_ref().filter(|_| self.is_in_rounds())?.expected_segments()?;
        let size = usize::from(self.layout().segment_floats());
        Some(expected.start as usize * size..(expected.end as usize * size).min(self.sums.len()))
    }

    /// Has the same effect as [`Self::handle_arrival`], but places the floats of results in the sums as the driver
    /// does.
    pub fn handle_scattered(
        &mut self,
        now: Instant,
        path: Path,
        class: Class,
        payload: &[u8],
        stride: usize,
    ) {
        let segment_floats = usize::from(self.layout().segment_floats());
        let Some(floats) = self.receive_buffer() else {
            return self.handle_arrival(now, path, class, payload, stride);
        };
        let mut rest = vec![0; payload.len()];
        let scattered = ScatteredReceive::scatter(floats, segment_floats, &mut rest, payload, stride);
        self.handle_received(now, path, class, &scattered, &rest);
    }

    /// Handles data that was received into [`Self::receive_buffer`]; `rest` contains the bytes that did not fit in it.
    pub(super) fn handle_received(
        &mut self,
        now: Instant,
        path: Path,
        class: Class,
        scattered: &ScatteredReceive,
        rest: &[u8],
    ) {
        let (layout, stride) = (self.config().layout, scattered.received.stride);
        let is_usable = path == Path::Unicast || self.enrolment.group().is_subscribed();
        let (Some(range), Some(protocol)) = (self.receive_range(), &mut self.protocol) else { return };
        let segs = match class {
            Class::Data if is_usable => scattered.segs(layout.full_packet_len(ElementType::F32)),
            _ => &[],
        };
        let taken = protocol.handle_scattered(now, segs, stride, scattered.last_len());
        self.follow(now);
        if taken * stride < scattered.received.len {
            let size = usize::from(layout.segment_floats());
            let bytes = scattered.gather(taken, &self.sums[range], size, rest);
            self.handle_arrival(now, path, class, &bytes, stride);
        }
    }

    /// Writes the next packets into `buffer`. Returns their class and the length of each packet in bytes, or `None` if
    /// there is nothing to send. `contribution` (`[gradient_len]`) must not change until the round has ended.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        contribution: &[f32],
        buffer: &mut Vec<u8>,
    ) -> Option<(Class, usize)> {
        let mut frame = core::mem::take(&mut self.frame);
        let transmit = self.poll_frame(now, contribution, &mut frame);
        if transmit.is_some() {
            frame.assemble(self.source(contribution), buffer);
        }
        self.frame = frame;
        transmit
    }

    /// Returns the vector to which the segments of a frame belong.
    pub(super) fn source<'a>(&'a self, contribution: &'a [f32]) -> &'a [f32] {
        if self.is_supplying { &self.sums } else { contribution }
    }

    /// Works like [`Self::poll_transmit`], but may leave the floats in the vector instead of copying them; see
    /// [`Self::source`].
    pub(super) fn poll_frame(
        &mut self,
        now: Instant,
        contribution: &[f32],
        frame: &mut Frame,
    ) -> Option<(Class, usize)> {
        frame.clear();
        let Self { enrolment, protocol, sums, .. } = self;
        let resume = || protocol.as_ref().and_then(WorkerProtocol::resume);
        let packet = enrolment.poll_transmit(now, resume, frame.control());
        if packet.is_some() || !enrolment.is_member() {
            return packet;
        }
        let vector = if self.is_supplying { sums } else { contribution };
        protocol.as_mut()?.poll_frame(now, vector, enrolment.requests(), frame)
    }

    /// Writes a control packet into `buffer`.
    pub fn emit(&self, request: u32, body: ControlBody<'_>, buffer: &mut Vec<u8>) -> (Class, usize) {
        self.enrolment.emit(request, body, buffer)
    }

    /// Allocates and returns an id for a request from the caller. From then on, the session waits for the Ack of this
    /// request.
    pub fn begin_request(&mut self) -> u32 {
        let id = self.enrolment.requests().take_id();
        self.request = Some((id, None));
        id
    }

    /// Moves to another switch: ends the membership without notice, and begins to join as the instance `instance`,
    /// which must differ from those of all earlier memberships. The caller must not pass further packets from the
    /// previous switch to this session.
    pub fn move_to(&mut self, now: Instant, instance: u32) {
        self.enrolment.set_instance(instance);
        self.join(now);
    }

    /// Returns the answer to the caller's Waiting, or `None` if it has not arrived.
    pub(super) fn take_absent(&mut self) -> Option<Absent> {
        let absent = self.absent.take()?;
        self.request = None;
        Some(absent)
    }

    /// Returns the status in the Ack of the caller's request, or `None` if the Ack has not arrived.
    pub fn take_acknowledgement(&mut self) -> Option<Status> {
        let status = self.request?.1?;
        self.request = None;
        Some(status)
    }

    fn config(&self) -> &SessionConfig {
        self.enrolment.config()
    }

    /// Returns whether the member takes part in the caller's rounds, rather than supplying a sum to other members.
    fn is_in_rounds(&self) -> bool {
        self.enrolment.is_member() && !self.is_supplying
    }

    /// Returns the protocol if the worker is currently a member.
    fn active_protocol(&self) -> Option<&WorkerProtocol> {
        self.protocol.as_ref().filter(|_| self.enrolment.is_member())
    }

    fn active_protocol_mut(&mut self) -> Option<&mut WorkerProtocol> {
        self.protocol.as_mut().filter(|_| self.enrolment.is_member())
    }

    fn join(&mut self, now: Instant) {
        self.is_supplying = false;
        self.enrolment.join(now);
        if let Some((_, outcome)) = &mut self.request {
            // The switch does not answer a request of a membership that has ended.
            outcome.get_or_insert(Status::UnknownMember);
        }
    }

    fn handle_join_answer(&mut self, now: Instant, repr: &ControlRepr<'_>) {
        match self.enrolment.handle_answer(now, repr) {
            Some(Answer::Admitted(membership)) => self.admitted(now, membership),
            Some(Answer::Refused(status, expected)) => {
                self.end_wait(Err(Failure::JoinRefused(status, expected)));
            }
            None => {}
        }
    }

    fn admitted(&mut self, now: Instant, membership: Membership) {
        let is_news = self.protocol.as_ref().is_none_or(|protocol| !protocol.stands_at(&membership));
        let SessionConfig { job, layout, parts, recv_buffer_bytes, join, .. } = *self.config();
        let chain = Chain::of(join.part);
        let keys = self.enrolment.data_keys(membership.boot);
        let protocol = match &mut self.protocol {
            Some(protocol) => {
                protocol.readmit(membership);
                protocol
            }
            none => {
                none.insert(WorkerProtocol::new(job, chain, layout, parts, membership, recv_buffer_bytes))
            }
        };
        protocol.set_data_keys(keys);
        match membership.standing {
            Standing::Fresh if self.enrolment.rejoins() > 0 && is_news => self.has_missed(membership.start),
            Standing::Fresh | Standing::Resumed | Standing::Awaits => self.start_round(now),
            Standing::Supplies => {
                self.is_supplying = true;
                protocol.begin_supplying(now);
            }
        }
    }

    fn has_missed(&mut self, next: Round) {
        if core::mem::take(&mut self.is_wanted) {
            self.outcome = Some(Err(Failure::Missed(next)));
        } else {
            self.missed = Some(next);
        }
    }

    /// Ends the caller's wait for a round, if the caller is waiting.
    fn end_wait(&mut self, outcome: Result<Finished, Failure>) {
        if core::mem::take(&mut self.is_wanted) {
            self.outcome = Some(outcome);
        }
    }

    /// If the caller is waiting for a round, starts that round.
    fn start_round(&mut self, now: Instant) {
        if let Some(protocol) = self.protocol.as_mut().filter(|_| self.is_wanted) {
            protocol.begin_round(now);
        }
    }

    /// If the protocol has an outcome, processes it.
    fn follow(&mut self, now: Instant) {
        let Some(outcome) = self.protocol.as_mut().and_then(WorkerProtocol::take_outcome) else { return };
        let has_supplied = core::mem::take(&mut self.is_supplying);
        match outcome {
            Err(Failure::Forgotten) => self.join(now),
            Ok(_) if has_supplied => self.start_round(now),
            outcome => self.end_wait(outcome),
        }
    }
}

impl Joins for Session {
    fn begin(config: SessionConfig, now: Instant) -> Self {
        Self::new(config, now)
    }

    fn enrolment(&mut self) -> &mut Enrolment {
        &mut self.enrolment
    }

    fn handle_datagrams(&mut self, now: Instant, class: Class, payload: &[u8], stride: usize) {
        self.handle_datagrams(now, class, payload, stride);
    }
}
