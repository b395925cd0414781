//! The control plane: one function for each Action.

use iswitch_protocol::auth::NO_SESSION;
use iswitch_protocol::limits::{
    DATA_TAG_LEN_BYTES, MAX_BITMAP_LEN_BYTES, MAX_HEIGHT, MAX_MEMBERS, PROTOCOL_VERSION, datagram_truesize,
    recv_room,
};
use iswitch_protocol::wire::control::{ACK_LEN_BYTES, JOIN_LEN_BYTES, RangeRepr, SegmentSetRepr};
use iswitch_protocol::wire::{
    AckRepr, Action, ControlBody, ControlPacket, ControlRepr, JoinRepr, Kind, Mode, ResumeRepr, Status,
    WireError,
};
use iswitch_protocol::{Round, SegmentIndex};

use super::Switch;
use super::asynchronous::Receipt;
use super::authentication::{Freshness, Seal, is_join};
use super::budget::RepeatBudget;
use super::event::{Departure, Event};
use super::flight::Incident;
use super::formation::{Dismissed, Granted};
use super::job::Job;
use super::limiter::Asks;
use super::membership::{Member, MemberAt, Progress};
use super::output::{Endpoint, Outbox};
use super::reason::{Counters, DropReason};
use super::work::Work;

/// A request that is not granted: the reason, and what was expected.
pub(super) struct Refusal {
    pub(super) status: Status,
    pub(super) expected: u32,
    pub(super) round: Round,
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Self { status, expected: 0, round: Round::default() }
    }
}

impl From<(Status, u32)> for Refusal {
    fn from((status, expected): (Status, u32)) -> Self {
        Self { expected, ..status.into() }
    }
}

/// The fields of a request that its Ack repeats, and how that is authenticated.
#[derive(Clone, Copy)]
pub(super) struct Request {
    pub(super) job: u32,
    id: u32,
    action: Action,
    pub(super) seal: Seal,
    room: AnswerRoom,
}

/// The length limit of an answer (requirement C-11).
#[derive(Clone, Copy, PartialEq, Eq)]
enum AnswerRoom {
    /// No limit: a member has proved its return path.
    Any,
    /// The bytes that were received, without trailer: the sender has proved nothing.
    Bytes(usize),
}

impl AnswerRoom {
    /// The limit for a sender that is not a member.
    fn of(packet: &ControlPacket<'_>) -> Self {
        Self::Bytes(packet.content_len())
    }

    fn holds(self, len: usize) -> bool {
        match self {
            Self::Any => true,
            Self::Bytes(room) => len <= room,
        }
    }
}

impl Switch {
    pub(super) fn handle_control(&mut self, from: &Endpoint, bytes: &[u8]) {
        self.counters.control_received += 1;
        let member = self.directory.find(from);
        // A Join that answers a challenge passes even if a flood has used up the limit.
        let is_proven = member.is_none() && self.redeem_nonce(from, bytes);
        let is_limited = member.is_none() && !is_proven;
        if is_limited && !self.limiter.admit(self.now, *from.peer.ip(), Asks::Control) {
            return self.counters.count_drop(DropReason::RateLimited);
        }
        let packet = match ControlPacket::new_checked(bytes) {
            Ok(packet) => packet,
            Err(error) => return self.counters.count_drop(DropReason::Wire(error)),
        };
        if member.is_none() && self.is_stray(from) && !is_join(&packet) {
            return self.counters.count_drop(DropReason::OtherPort);
        }
        if packet.action_code() == Action::Ack as u8 {
            // A response is never answered: two switches would exchange Acks for ever.
            return self.counters.count_drop(DropReason::UnexpectedAck);
        }
        let Some(seal) = self.authenticate(from, &packet) else { return };
        let repr = match ControlRepr::parse(&packet) {
            Ok(repr) => repr,
            Err(error) => return self.refuse_unparsed(from, &packet, error, seal),
        };
        let room = if member.is_some() { AnswerRoom::Any } else { AnswerRoom::of(&packet) };
        let request = Request { job: repr.job, id: repr.request, action: repr.action(), seal, room };
        if let ControlBody::Join(join) = &repr.body {
            return self.handle_join(from, request, join, is_proven);
        }
        let Some(at) = member else {
            self.counters.count_drop(DropReason::UnknownMember);
            return self.refuse(from, request, &Status::UnknownMember.into());
        };
        let Some(job) = self.job(at.job) else { return };
        if job.id != repr.job {
            let expected = job.id;
            self.counters.count_drop(DropReason::ForeignJob);
            return self.refuse(from, request, &(Status::ForeignJob, expected).into());
        }
        self.hear_from(at);
        self.follow(at, from);
        let outcome = match repr.body {
            ControlBody::Join(_) | ControlBody::Ack(_) => unreachable!("handled above"),
            ControlBody::Leave => return self.handle_leave(from, request, at),
            ControlBody::Help(wanted) => self.handle_help(from, request, at, wanted),
            ControlBody::Reset { boot } => return self.handle_reset(from, request, at, boot),
            ControlBody::SetH { threshold } => self.handle_set_h(from, request, at, threshold),
            ControlBody::FBcast(range) => self.handle_fbcast(from, request, at, range),
            ControlBody::Halt => return self.handle_halt(from, request, at),
            ControlBody::Confirm(asked) => self.handle_confirm(from, request, at, asked),
            ControlBody::Digest(told) => {
                self.compare_digest(at, told).map(|()| self.grant(from, request, at))
            }
        };
        if let Err(refusal) = outcome {
            self.counters.count_drop(DropReason::RequestRefused);
            self.refuse(from, request, &refusal);
        }
    }

    fn refuse_unparsed(&mut self, from: &Endpoint, packet: &ControlPacket<'_>, error: WireError, seal: Seal) {
        self.counters.count_drop(DropReason::Wire(error));
        let refusal = match error {
            WireError::WrongVersion => (Status::WrongVersion, u32::from(PROTOCOL_VERSION)),
            _ => (Status::Malformed, 0),
        };
        self.refuse_packet(from, packet, refusal, seal);
    }

    /// Refuses a packet of which no more than the header was read: a status, and what was expected. The answer to a
    /// Join is not padded (C-4).
    pub(super) fn refuse_packet(
        &mut self,
        from: &Endpoint,
        packet: &ControlPacket<'_>,
        refusal: (Status, u32),
        seal: Seal,
    ) {
        let action = Action::from_code(packet.action_code()).unwrap_or(Action::Ack);
        let room = AnswerRoom::of(packet);
        let request = Request { job: packet.job(), id: packet.request(), action, seal, room };
        self.refuse(from, request, &refusal.into());
    }

    fn handle_join(&mut self, from: &Endpoint, request: Request, join: &JoinRepr, is_proven: bool) {
        if self.is_double(from, request.job, join) {
            // The same Join arrived on two ports; a member has one.
            return self.counters.count_drop(DropReason::OtherPort);
        }
        let freshness = self.check_fresh(from, request, join, is_proven);
        match freshness {
            Freshness::Repeated | Freshness::Proven { .. } => {}
            Freshness::Unproven { nonce } => {
                // Replacing a member costs the other members time, so members are limited here as well.
                let replaces = self.directory.find(from).is_some();
                if replaces && !self.limiter.admit(self.now, *from.peer.ip(), Asks::Control) {
                    return self.counters.count_drop(DropReason::RateLimited);
                }
                return self.challenge(from, request, nonce, join);
            }
            Freshness::Replayed => return self.counters.count_drop(DropReason::Replayed),
        }
        let outcome =
            if join.query { self.query(request.job, join) } else { self.try_join(from, request, join) };
        if let (Freshness::Proven { counter }, Ok(Some(at))) = (freshness, &outcome) {
            self.open_session(*at, join.nonce, counter);
        }
        match outcome {
            Ok(at) => self.grant_join(from, request, at, join),
            Err(refusal) => {
                let Refusal { status, expected, .. } = refusal;
                self.counters.count_drop(match status {
                    Status::ForeignJob => DropReason::ForeignJob,
                    _ => DropReason::JoinRefused,
                });
                self.report(Event::JoinRefused { job: request.job, address: from.peer, status, expected });
                self.refuse_padded(from, request, &refusal, join_ack_padding(join));
            }
        }
    }

    /// Asks who wants to join to say so once more, with a number that no recorded Join can have.
    fn challenge(&mut self, from: &Endpoint, request: Request, nonce: u64, join: &JoinRepr) {
        let ack = AckRepr { history: nonce, ..self.bare_ack(Action::Join, Status::Challenge) };
        self.send_ack(from, request, ack, join_ack_padding(join));
    }

    /// Who asks about a job is not admitted to it.
    fn query(&self, id: u32, join: &JoinRepr) -> Result<Option<MemberAt>, Refusal> {
        let job = self.find_job(id).and_then(|at| self.job(at)).ok_or(Status::UnknownJob)?;
        job.mismatch(join).map_or(Ok(None), |mismatch| Err(mismatch.into()))
    }

    fn try_join(
        &mut self,
        from: &Endpoint,
        request: Request,
        join: &JoinRepr,
    ) -> Result<Option<MemberAt>, Refusal> {
        let id = request.job;
        check_fields(join, !self.uplinks.is_empty())?;
        if let Some(at) = self.directory.find(from) {
            let job = self.job(at.job).expect("the directory lists members of jobs that exist");
            if job.id != id {
                return Err((Status::ForeignJob, job.id).into());
            }
            if let Some(mismatch) = job.mismatch(join) {
                return Err(mismatch.into());
            }
            if job.is_known(at.member, join) {
                self.hear_from(at);
                self.follow(at, from);
                self.renew(at, join);
                return Ok(Some(at));
            }
            self.remove_member(at, Departure::Restarted);
        }
        if join.updates {
            return Err(Status::UnknownMember.into());
        }
        if let Some(at) = self.same_elsewhere(from, id, join) {
            // The member was silent on its own port: it has moved to this one.
            self.remove_member(at, Departure::Restarted);
        }
        let dismissed = self.give_way(id, join);
        let at = match self.find_job(id) {
            Some(at) => at,
            None => self.create_job(id, *from.peer.ip(), join)?,
        };
        if let (Some(dismissed), Some(job)) = (dismissed, self.jobs[at].as_mut()) {
            job.dismissed = dismissed;
        }
        self.admit(at, from, request.id, join).map(Some)
    }

    /// Ends a job that has begun without those who have its sums, of whom one now comes back. Returns where its members
    /// are, which join again.
    fn give_way(&mut self, id: u32, join: &JoinRepr) -> Option<Dismissed> {
        let at = self.find_job(id)?;
        let job = self.job(at).filter(|job| job.gives_way_to(join, self.now, self.lease()))?;
        let dismissed = Dismissed::members_of(job);
        self.report(Event::GaveWay { job: id });
        self.dismiss_members(at);
        Some(dismissed)
    }

    /// A member says again what it stands for: a switch may stand for more than before.
    fn renew(&mut self, at: MemberAt, join: &JoinRepr) {
        let Some(job) = self.jobs[at.job].as_mut() else { return };
        let is_forming = !job.formed;
        let peer = job.member(at.member).map(|member| member.endpoint.peer);
        let resume = peer.and_then(|peer| job.resume_of(join, peer));
        let Some(member) = job.member_mut(at.member) else { return };
        (member.instance, member.weight) = (join.instance, join.weight);
        (member.height, member.roams) = (join.height, join.roams);
        if is_forming {
            member.resume = resume;
        } else {
            let (_, round, _) = job.standing_of_member(at.member, join.resume.as_ref());
            if job.begin_later(at.member, round) {
                self.close_finished(at.job);
            }
        }
        if join.kind == Kind::Switch {
            self.gather(at.job, Some(at.member));
        }
    }

    /// Members have come, or stand for more: perhaps the job is complete.
    pub(super) fn gather(&mut self, job_at: usize, last: Option<usize>) {
        let Some(job) = self.job(job_at) else { return };
        if job.has_parent {
            self.declare_to_parent(job_at);
        } else if !job.formed && job.is_gathered() {
            self.form_job(job_at, last, None);
        }
    }

    fn admit(
        &mut self,
        job_at: usize,
        from: &Endpoint,
        join_request: u32,
        join: &JoinRepr,
    ) -> Result<MemberAt, Refusal> {
        let (now, lease) = (self.now, self.lease());
        let job = self.jobs[job_at].as_mut().expect("the caller found or made the job");
        if let Some(mismatch) = job.mismatch(join) {
            return Err(mismatch.into());
        }
        let id = job.free_id().ok_or((Status::JobFull, job.max_members()))?;
        let resume = job.resume_of(join, from.peer);
        let (standing, start, history) = job.standing_of_newcomer(resume.as_ref());
        let member = Member {
            endpoint: *from,
            kind: join.kind,
            weight: join.weight,
            height: join.height,
            roams: join.roams,
            join_request,
            resume,
            standing,
            history,
            instance: join.instance,
            rank: join.rank,
            start,
            admitted: now,
            last_heard: now,
            held_up: None,
            session: NO_SESSION,
            counter: 0,
            tag_key: None,
            repeats: RepeatBudget::new(&job.income(now, lease)),
            progress: Progress::default(),
        };
        job.admit(id, member);
        let job_id = job.id;
        let at = MemberAt { job: job_at, member: id };
        self.directory.insert(from, at);
        self.expect_tick();
        self.report(Event::Joined { job: job_id, member: id as u16, address: from.peer, round: start });
        self.gather(job_at, Some(id));
        Ok(at)
    }

    /// Completes a job. The last member to join, if it was that, gets an Ack of its own.
    pub(super) fn form_job(&mut self, job_at: usize, last: Option<usize>, granted: Option<Granted>) {
        let Some(job) = self.jobs[job_at].as_mut() else { return };
        job.form(self.generations.next(), granted, self.now);
        let (id, members) = (job.id, job.member_count());
        if let (Some(granted), Some(key)) = (granted, self.keys.of(id).filter(|_| job.tag_key.is_some())) {
            // The members learn the boot id of the topmost switch, and with that the key of its results.
            job.tag_key = Some(key.result_key(granted.boot, id));
        }
        if job.is_resumed() {
            let round = job.base;
            self.report(Event::JobResumed { job: id, members, round });
        } else if job.workers > 1 {
            self.report(Event::JobFormed { job: id, members });
        }
        self.announce_formed(job_at, last);
        // The last worker may have joined after the others' contributions.
        self.close_finished(job_at);
    }

    fn handle_leave(&mut self, from: &Endpoint, request: Request, at: MemberAt) {
        // Acknowledged first: afterwards the job may be gone.
        self.grant(from, request, at);
        self.remove_member(at, Departure::Leave);
    }

    /// Clears a job: its members join again and state by their histories which sums they have. If the job continued
    /// with the same members instead, a sum that some have received and others have not would go unnoticed.
    fn handle_reset(&mut self, from: &Endpoint, request: Request, at: MemberAt, boot: u64) {
        let Some(job) = self.jobs[at.job].as_mut() else { return };
        let is_over = boot != 0 && boot != job.boot();
        if is_over || !job.formed {
            // A repeated request takes effect once, and a job without rounds has nothing to clear.
            job.halted &= is_over;
            return self.grant(from, request, at);
        }
        let (id, boot) = (job.id, job.boot());
        if job.has_parent {
            // The parent answers by forgetting this switch, which then forgets its members.
            return self.pass_to_parent(at.job, ControlBody::Reset { boot });
        }
        self.grant(from, request, at);
        self.report(Event::Reset { job: id });
        self.dismiss_members(at.job);
    }

    fn handle_halt(&mut self, from: &Endpoint, request: Request, at: MemberAt) {
        if self.job(at.job).is_some_and(|job| job.has_parent && !job.halted) {
            return self.pass_to_parent(at.job, ControlBody::Halt);
        }
        self.halt_job(at.job);
        self.grant(from, request, at);
    }

    pub(super) fn halt_job(&mut self, job_at: usize) {
        let Some(job) = self.jobs[job_at].as_mut() else { return };
        if !job.halted {
            job.halted = true;
            let id = job.id;
            self.report(Event::Halted { job: id });
        }
        self.notify_members(job_at, ControlBody::Halt);
    }

    fn handle_set_h(
        &mut self,
        from: &Endpoint,
        request: Request,
        at: MemberAt,
        threshold: u16,
    ) -> Result<(), Refusal> {
        if usize::from(threshold) > MAX_MEMBERS {
            return Err((Status::BadThreshold, MAX_MEMBERS as u32).into());
        }
        let job = self.jobs[at.job].as_mut().ok_or(Status::UnknownMember)?;
        job.pinned_threshold = (threshold > 0).then_some(threshold);
        let id = job.id;
        self.report(Event::ThresholdSet { job: id, threshold });
        self.grant(from, request, at);
        Ok(())
    }

    fn handle_fbcast(
        &mut self,
        from: &Endpoint,
        request: Request,
        at: MemberAt,
        range: RangeRepr,
    ) -> Result<(), Refusal> {
        let job = self.check_range(at, range)?;
        if job.mode == Mode::Asynchronous {
            let filling = job.asynchronous.filling();
            if filling != range.round {
                return Err(Refusal { round: filling, ..Status::StaleRound.into() });
            }
            if job.asynchronous.is_open() {
                self.close_aggregate(at.job);
            }
            self.grant(from, request, at);
            return Ok(());
        }
        if job.is_next(range.round) {
            // Nothing was contributed to it.
            self.grant(from, request, at);
            return Ok(());
        }
        if job.open_round(range.round).is_none() {
            return Err(Refusal { round: job.next_round_of(at.member), ..Status::StaleRound.into() });
        }
        let end = range.first + range.count;
        let closing = Work::Close { job: at.job, round: range.round, next: range.first, end };
        // What finds no place in the queue is not acknowledged, so that it is asked for again.
        if self.queue_work(closing) {
            self.grant(from, request, at);
        }
        Ok(())
    }

    /// Answers a Help: what the switch misses from the member goes into the Ack, what it has follows as data.
    fn handle_help(
        &mut self,
        from: &Endpoint,
        request: Request,
        at: MemberAt,
        wanted: SegmentSetRepr<'_>,
    ) -> Result<(), Refusal> {
        let range = wanted.range;
        let job = self.check_range(at, range)?;
        if job.halted {
            return Err(Status::Halted.into());
        }
        if range.count > 0 {
            check_round(job, at, range.round)?;
        }
        let aggregation = self.aggregation(at.job).ok_or(Status::UnknownMember)?;
        let is_missing_in = |round: Round, index: SegmentIndex| {
            aggregation.job.mode == Mode::Synchronous && aggregation.is_missing(at.member, round, index)
        };
        let is_missing = |index: &SegmentIndex| is_missing_in(range.round, *index);
        let last = range.round.previous();
        let mut indices = wanted.indices().filter_map(SegmentIndex::new);
        if indices.any(|index| is_missing_in(last, index)) {
            // The answer to its Join was lost, and another one was not: who is in two places joins once more.
            return Err(Status::UnknownMember.into());
        }
        let bitmap = bitmap_of(range, wanted.indices().filter_map(SegmentIndex::new).filter(is_missing));
        let missing = SegmentSetRepr { range, bitmap: &bitmap[..wanted.bitmap.len()] };
        self.acknowledge(from, request, at, Some(missing));
        if range.count > 0 {
            let helped = Incident::Helped { member: at.member as u16, round: range.round };
            self.flight.log_mut(at.job).record(self.now, helped);
            if self.may_repeat(at, wanted) {
                self.queue_work(Work::repeat(at, wanted));
            } else {
                self.counters.count_drop(DropReason::RateLimited);
            }
            self.ask_parent(at.job, wanted);
        }
        Ok(())
    }

    /// Whether the member's budget allows these results.
    fn may_repeat(&mut self, at: MemberAt, wanted: SegmentSetRepr<'_>) -> bool {
        let (now, lease) = (self.now, self.lease());
        let Some(job) = self.jobs[at.job].as_mut() else { return false };
        let income = job.income(now, lease);
        let segments = wanted.indices().count() as u64;
        job.member_mut(at.member).is_some_and(|member| member.repeats.take(segments, &income))
    }

    /// Answers a Confirm (requirement V-5).
    fn handle_confirm(
        &mut self,
        from: &Endpoint,
        request: Request,
        at: MemberAt,
        asked: SegmentSetRepr<'_>,
    ) -> Result<(), Refusal> {
        let range = asked.range;
        let job = self.check_range(at, range)?;
        if job.mode != Mode::Asynchronous {
            return Err((Status::ModeMismatch, job.mode as u32).into());
        }
        if job.halted {
            return Err(Status::Halted.into());
        }
        let receipt = job.asynchronous.receipt(at.member, range.round);
        if let Receipt::Unknown(round) = receipt {
            return Err(Refusal { round, ..Status::StaleRound.into() });
        }
        let aggregation = self.aggregation(at.job).ok_or(Status::UnknownMember)?;
        let is_missing = |index: &SegmentIndex| {
            receipt == Receipt::Expected && aggregation.is_unstaged(at.member, range.round, *index)
        };
        let missing = asked.indices().filter_map(SegmentIndex::new).filter(is_missing);
        let bitmap = bitmap_of(range, missing);
        let missing = SegmentSetRepr { range, bitmap: &bitmap[..asked.bitmap.len()] };
        let Some(job) = self.job(at.job) else { return Ok(()) };
        let ack = AckRepr { missing: Some(missing), ..self.job_ack(at.job, job, at.member, request.action) };
        let ack = match receipt {
            Receipt::Admitted(round) => AckRepr { round, expected: 1, ..ack },
            _ => ack,
        };
        self.send_ack(from, request, ack, 0);
        Ok(())
    }

    fn check_range(&self, at: MemberAt, range: RangeRepr) -> Result<&Job, Refusal> {
        let job = self.job(at.job).ok_or(Status::UnknownMember)?;
        let segments = job.layout.segment_count();
        match range.first.checked_add(range.count) {
            Some(end) if end <= segments => Ok(job),
            _ => Err((Status::OutOfRange, segments).into()),
        }
    }

    pub(super) fn notify_members(&mut self, job_at: usize, body: ControlBody<'_>) {
        let Some(job) = &self.jobs[job_at] else { return };
        let notice = ControlRepr { job: job.id, request: 0, body };
        for (id, member) in job.members() {
            queue(&mut self.outbox, &mut self.counters, &member.endpoint, &notice, 0, job.seal(id));
        }
    }

    /// Acknowledges a request that was granted.
    fn grant(&mut self, to: &Endpoint, request: Request, at: MemberAt) {
        self.acknowledge(to, request, at, None);
    }

    fn acknowledge(
        &mut self,
        to: &Endpoint,
        request: Request,
        at: MemberAt,
        missing: Option<SegmentSetRepr<'_>>,
    ) {
        let Some(job) = self.job(at.job) else { return };
        // The round of a Confirm may be the number of a vector.
        let asked = missing.filter(|_| request.action == Action::Help);
        let history = asked.map_or(0, |asked| job.history_before(asked.range.round));
        let ack = AckRepr { missing, history, ..self.job_ack(at.job, job, at.member, request.action) };
        self.send_ack(to, request, ack, 0);
    }

    /// The Ack of a Join is as long as the Join, so that both directions of the path are proved.
    fn grant_join(&mut self, to: &Endpoint, mut request: Request, at: Option<MemberAt>, join: &JoinRepr) {
        let ack = if let Some(at) = at {
            request.seal = self.member_seal(at);
            let Some(job) = self.job(at.job) else { return };
            self.join_ack(at.job, job, at.member, join.resume.as_ref())
        } else {
            let Some(job_at) = self.find_job(request.job) else { return };
            let Some(job) = self.job(job_at) else { return };
            let (round, peer) = (job.start_round(), job.peer_of(None));
            AckRepr { round, peer, ..self.job_ack(job_at, job, 0, Action::Join) }
        };
        self.send_ack(to, request, ack, join_ack_padding(join));
    }

    fn job_ack(&self, job_at: usize, job: &Job, member: usize, action: Action) -> AckRepr<'static> {
        let (weight, orphaned) = match self.uplinks.get(job_at) {
            Some(uplink) => (u32::from(uplink.weight), uplink.is_lost),
            None => (job.weight(), false),
        };
        AckRepr {
            member: member as u16,
            members: job.member_count(),
            threshold: job.threshold(),
            round: job.current_round(),
            window: self.window(job_at, job),
            formed: job.formed,
            pinned: job.pinned_threshold.is_some(),
            orphaned,
            boot: job.boot(),
            weight: weight.min(u32::from(u16::MAX)) as u16,
            ..self.bare_ack(action, Status::Success)
        }
    }

    fn join_ack(&self, job_at: usize, job: &Job, id: usize, resume: Option<&ResumeRepr>) -> AckRepr<'static> {
        let (standing, round, history) = job.standing_of_member(id, resume);
        let peer = job.peer_of(Some(id));
        AckRepr { standing, round, history, peer, ..self.job_ack(job_at, job, id, Action::Join) }
    }

    /// Tells the members that wait for the last one that it has come.
    fn announce_formed(&mut self, job_at: usize, last: Option<usize>) {
        let Some(job) = &self.jobs[job_at] else { return };
        for (id, waiting) in job.members().filter(|(id, _)| Some(*id) != last) {
            let body = ControlBody::Ack(self.join_ack(job_at, job, id, None));
            let notice = ControlRepr { job: job.id, request: waiting.join_request, body };
            queue(&mut self.outbox, &mut self.counters, &waiting.endpoint, &notice, 0, job.seal(id));
        }
    }

    fn refuse(&mut self, to: &Endpoint, request: Request, refusal: &Refusal) {
        self.refuse_padded(to, request, refusal, 0);
    }

    fn refuse_padded(&mut self, to: &Endpoint, request: Request, refusal: &Refusal, padding_len: u16) {
        let Refusal { status, expected, round } = *refusal;
        let job = self.find_job(request.job).and_then(|at| self.job(at));
        // Who is told where to go on is told what has been summed until then.
        // The round in the answer to a Confirm is the number of a vector.
        let told = job.filter(|_| status == Status::StaleRound && request.action != Action::Confirm);
        let history = told.map_or(0, |job| job.history_before(round));
        let boot = job.map_or(self.config.boot, Job::boot);
        // What a job says of its rounds before it is complete is not final.
        let formed = job.is_some_and(|job| job.formed);
        let ack = AckRepr { expected, round, history, boot, formed, ..self.bare_ack(request.action, status) };
        self.send_ack(to, request, ack, padding_len);
    }

    /// Tells a member why its data packets were dropped.
    pub(super) fn refuse_data(
        &mut self,
        to: &Endpoint,
        at: MemberAt,
        status: Status,
        round: Round,
        expected: u32,
    ) {
        let Some(job) = self.job(at.job) else { return };
        let (seal, room) = (job.seal(at.member), AnswerRoom::Any);
        let request = Request { job: job.id, id: 0, action: Action::Ack, seal, room };
        self.refuse(to, request, &Refusal { status, expected, round });
    }

    /// Tells the sender of that many bytes of data packets that it is no member.
    pub(super) fn refuse_stranger(&mut self, to: &Endpoint, len_bytes: usize) {
        let room = AnswerRoom::Bytes(len_bytes);
        let request = Request { job: 0, id: 0, action: Action::Ack, seal: Seal::Bare, room };
        self.refuse(to, request, &Status::UnknownMember.into());
    }

    fn bare_ack(&self, action: Action, status: Status) -> AckRepr<'static> {
        AckRepr { boot: self.config.boot, lease_ms: self.config.lease_ms, ..AckRepr::bare(action, status) }
    }

    /// A request with id zero wants no answer, unless it is refused.
    fn send_ack(&mut self, to: &Endpoint, request: Request, ack: AckRepr<'_>, padding_len: u16) {
        if request.id != 0 || ack.status != Status::Success {
            self.push_ack(to, request, ack, padding_len);
        }
    }

    fn push_ack(&mut self, to: &Endpoint, request: Request, ack: AckRepr<'_>, padding_len: u16) {
        let repr = ControlRepr { job: request.job, request: request.id, body: ControlBody::Ack(ack) };
        if !request.room.holds(repr.buffer_len() + usize::from(padding_len)) {
            return;
        }
        queue(&mut self.outbox, &mut self.counters, to, &repr, padding_len, request.seal);
    }

    /// Segments that each member may have in flight, so that those of all members fit in the receive buffer.
    fn window(&self, job_at: usize, job: &Job) -> u16 {
        let tag_len = if job.tag_key.is_some() { DATA_TAG_LEN_BYTES } else { 0 };
        let datagram = datagram_truesize(job.layout.full_packet_len() + tag_len);
        let members = usize::from(job.member_count().max(job.workers).max(1));
        let own = recv_room(self.config.recv_buffer_bytes) / (datagram * members);
        let own = own.clamp(1, usize::from(u16::MAX)) as u16;
        // What members have in flight is in flight to the parent as well.
        self.uplinks.get(job_at).filter(|_| job.formed).map_or(own, |uplink| own.min(uplink.window.max(1)))
    }
}

impl Switch {
    /// Queues a control packet that is no answer.
    pub(super) fn send_control(
        &mut self,
        to: &Endpoint,
        packet: &ControlRepr<'_>,
        padding_len: u16,
        seal: Seal,
    ) {
        queue(&mut self.outbox, &mut self.counters, to, packet, padding_len, seal);
    }
}

/// Queues a control packet. If there is no room the loss is counted: whoever waits for it asks again.
fn queue(
    outbox: &mut Outbox,
    counters: &mut Counters,
    to: &Endpoint,
    packet: &ControlRepr<'_>,
    padding_len: u16,
    seal: Seal,
) {
    if !outbox.push_control(*to, packet, padding_len, seal) {
        counters.count_drop(DropReason::Busy);
    }
}

/// The set of some segments of a range, one bit each.
pub(super) fn bitmap_of(
    range: RangeRepr,
    indices: impl Iterator<Item = SegmentIndex>,
) -> [u8; MAX_BITMAP_LEN_BYTES] {
    let mut bitmap = [0; MAX_BITMAP_LEN_BYTES];
    for index in indices {
        let bit = index.get() - range.first;
        bitmap[bit as usize / 8] |= 1 << (bit % 8);
    }
    bitmap
}

/// Refuses a Join with a field that it may not have, whatever its job.
fn check_fields(join: &JoinRepr, has_parent: bool) -> Result<(), Refusal> {
    if join.mode != Mode::Synchronous && has_parent {
        return Err((Status::ModeMismatch, Mode::Synchronous as u32).into());
    }
    if join.height >= MAX_HEIGHT {
        return Err((Status::TooManyLevels, u32::from(MAX_HEIGHT)).into());
    }
    if join.weight == 0 || join.kind == Kind::Worker && join.weight > 1 {
        return Err((Status::BadWeight, 1).into());
    }
    if usize::from(join.workers) > MAX_MEMBERS {
        return Err((Status::JobFull, MAX_MEMBERS as u32).into());
    }
    if join.resume.is_some_and(|resume| usize::from(resume.threshold) > MAX_MEMBERS) {
        return Err((Status::BadThreshold, MAX_MEMBERS as u32).into());
    }
    Ok(())
}

/// Refuses a round that is no longer kept, or that the member has no part in.
fn check_round(job: &Job, at: MemberAt, round: Round) -> Result<(), Refusal> {
    if job.mode == Mode::Asynchronous {
        let oldest = job.oldest_kept();
        let is_kept = !round.is_before(oldest);
        return if is_kept { Ok(()) } else { Err(Refusal { round: oldest, ..Status::StaleRound.into() }) };
    }
    let member = job.member(at.member);
    // A switch may have members that lack the sum before the round at which it goes on.
    let begins_later = member.is_some_and(|it| it.kind == Kind::Worker && round.is_before(it.start));
    let current = job.current_round();
    if round.next().is_before(current) || round.is_before(job.base) || begins_later {
        return Err(Refusal { round: job.next_round_of(at.member), ..Status::StaleRound.into() });
    }
    Ok(())
}

/// The Ack of a Join is as long as the Join, so that both directions of the path are proved.
fn join_ack_padding(join: &JoinRepr) -> u16 {
    (JOIN_LEN_BYTES as u16).saturating_add(join.padding_len).saturating_sub(ACK_LEN_BYTES as u16)
}
