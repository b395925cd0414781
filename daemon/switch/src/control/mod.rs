//! Control packets from members and non-members: one function for each Action.

mod join;
mod segments;

use iswitch_protocol::limits::{MAX_MEMBERS, PROTOCOL_VERSION};
use iswitch_protocol::wire::{
    Action, ControlBody, ControlPacket, ControlRepr, DigestRepr, NameRepr, Status, WireError,
};

use crate::authentication::{authenticate, is_join, redeem_nonce};
use crate::endpoint::Endpoint;
use crate::event::{Departure, Event};
use crate::ids::MemberAt;
use crate::job::Divergence;
use crate::keys::Seal;
use crate::limiter::StrangerPacket;
use crate::reason::DropReason;
use crate::reply::{self, AnswerRoom, Refusal, Request};
use crate::state::State;
use crate::{delivery, lifecycle, parent};

/// Processes a control packet.
pub(crate) fn handle_control(state: &mut State, from: &Endpoint, bytes: &[u8]) {
    state.counters.control_received += 1;
    let member = state.jobs.find_member(from);
    // Admit a Join that answers a challenge even if a flood has used up the rate limit.
    let is_proven = member.is_none() && redeem_nonce(state, from, bytes);
    let is_limited = member.is_none() && !is_proven;
    if is_limited && !state.limiter.admit(state.now, *from.peer.ip(), StrangerPacket::Control) {
        return state.counters.count_drop(DropReason::RateLimited);
    }
    let packet = match ControlPacket::new_checked(bytes) {
        Ok(packet) => packet,
        Err(error) => return state.counters.count_drop(DropReason::Wire(error)),
    };
    if member.is_none() && state.is_stray(from) && !is_join(&packet) {
        return state.counters.count_drop(DropReason::OtherPort);
    }
    if packet.action_code() == Action::Ack as u8 {
        // Never answer an Ack, because two switches could then exchange Acks forever.
        return state.counters.count_drop(DropReason::UnexpectedAck);
    }
    let Some(seal) = authenticate(state, from, &packet) else { return };
    let repr = match ControlRepr::parse(&packet) {
        Ok(repr) => repr,
        Err(error) => return refuse_unparsed(state, from, &packet, error, seal),
    };
    let room = if member.is_some() { AnswerRoom::Any } else { AnswerRoom::of(&packet) };
    let request = Request { job: repr.job, id: repr.request, action: repr.action(), seal, room };
    match (repr.body, member) {
        (ControlBody::Join(join), _) => join::handle_join(state, from, request, &join, is_proven),
        (body, Some(at)) => handle_request(state, from, request, at, body),
        (_, None) => {
            state.counters.count_drop(DropReason::UnknownMember);
            reply::refuse(state, from, request, &Status::UnknownMember.into());
        }
    }
}

fn refuse_unparsed(
    state: &mut State,
    from: &Endpoint,
    packet: &ControlPacket<'_>,
    error: WireError,
    seal: Seal,
) {
    state.counters.count_drop(DropReason::Wire(error));
    let refusal = match error {
        WireError::WrongVersion => (Status::WrongVersion, u32::from(PROTOCOL_VERSION)),
        _ => (Status::Malformed, 0),
    };
    reply::refuse_packet(state, from, packet, refusal, seal);
}

/// Processes any request from a member except a Join.
fn handle_request(state: &mut State, from: &Endpoint, request: Request, at: MemberAt, body: ControlBody<'_>) {
    let Some(job) = state.jobs.get(at.job) else { return };
    if job.id() != request.job {
        let expected = job.id();
        state.counters.count_drop(DropReason::ForeignJob);
        return reply::refuse(state, from, request, &(Status::ForeignJob, expected).into());
    }
    state.hear_from(at);
    state.jobs.follow(at, from);
    let outcome = match body {
        // The caller handles these packets.
        ControlBody::Join(_) | ControlBody::Ack(_) => return,
        ControlBody::Leave => return handle_leave(state, from, request, at),
        ControlBody::Reset { boot } => return handle_reset(state, from, request, at, boot),
        ControlBody::Halt => return handle_halt(state, from, request, at),
        ControlBody::SetH { threshold } => handle_set_h(state, from, request, at, threshold),
        ControlBody::Digest(digest) => handle_digest(state, from, request, at, digest),
        ControlBody::Heard { nonce } => {
            delivery::handle_heard(state, at, nonce);
            return reply::grant(state, from, request, at);
        }
        ControlBody::Name(name) => return handle_name(state, from, request, at, &name),
        ControlBody::Waiting => return reply::name_absent(state, from, request, at),
        // Only a switch sends these packets.
        ControlBody::Group(_) | ControlBody::Probe { .. } | ControlBody::Absent(_) => {
            Err(Status::Malformed.into())
        }
        ControlBody::Help(wanted) => segments::handle_help(state, from, request, at, wanted),
        ControlBody::Confirm(asked) => segments::handle_confirm(state, from, request, at, asked),
        ControlBody::FBcast(range) => segments::handle_fbcast(state, from, request, at, range),
    };
    if let Err(refusal) = outcome {
        state.counters.count_drop(DropReason::RequestRefused);
        reply::refuse(state, from, request, &refusal);
    }
}

fn handle_leave(state: &mut State, from: &Endpoint, request: Request, at: MemberAt) {
    // Acknowledge first: after the removal, the job may no longer exist.
    reply::grant(state, from, request, at);
    lifecycle::remove_member(state, at, Departure::Leave);
}

/// Clears a job. Its members rejoin, and the histories in their Joins show which sums they have. If the job instead
/// continued with the same members, it would go unnoticed that only some of them have received a certain sum.
fn handle_reset(state: &mut State, from: &Endpoint, request: Request, at: MemberAt, boot: u64) {
    let Some(job) = state.jobs.get_mut(at.job) else { return };
    let is_over = boot != 0 && boot != job.epoch();
    if is_over || !job.is_formed() {
        // A repeated Reset takes effect only once, and a job without rounds has nothing to clear.
        if !is_over {
            job.end_halt();
        }
        return reply::grant(state, from, request, at);
    }
    let boot = job.epoch();
    if job.has_parent() {
        // The parent grants the Reset by forgetting this switch, which then forgets its own members.
        return parent::pass_on(state, at.job, ControlBody::Reset { boot });
    }
    reply::grant(state, from, request, at);
    lifecycle::reset_job(state, at.job);
}

fn handle_halt(state: &mut State, from: &Endpoint, request: Request, at: MemberAt) {
    if state.jobs.get(at.job).is_some_and(|job| job.has_parent() && !job.is_halted()) {
        return parent::pass_on(state, at.job, ControlBody::Halt);
    }
    lifecycle::halt_job(state, at.job);
    reply::grant(state, from, request, at);
}

fn handle_set_h(
    state: &mut State,
    from: &Endpoint,
    request: Request,
    at: MemberAt,
    threshold: u16,
) -> Result<(), Refusal> {
    if usize::from(threshold) > MAX_MEMBERS {
        return Err((Status::BadThreshold, MAX_MEMBERS as u32).into());
    }
    let job = state.jobs.get_mut(at.job).ok_or(Status::UnknownMember)?;
    if job.passes_on() {
        parent::pass_on_for(state, at, request, ControlBody::SetH { threshold });
        return Ok(());
    }
    job.pin_threshold(threshold);
    let id = job.id();
    state.report(Event::ThresholdSet { job: id, threshold });
    reply::grant(state, from, request, at);
    Ok(())
}

/// Records the names that a member states. Only its first Name is reported, so that a member cannot fill the log.
fn handle_name(state: &mut State, from: &Endpoint, request: Request, at: MemberAt, name: &NameRepr) {
    let Some(job) = state.jobs.get_mut(at.job) else { return };
    let (id, is_first) = (job.id(), job.members_mut().state_name(at.member, name));
    if is_first {
        let (member, address) = (at.member.to_wire(), from.peer);
        state.report(Event::Named { job: id, member, address });
    }
    reply::grant(state, from, request, at);
}

/// Compares the digest of a member's weights with those of the other members.
fn handle_digest(
    state: &mut State,
    from: &Endpoint,
    request: Request,
    at: MemberAt,
    digest: DigestRepr,
) -> Result<(), Refusal> {
    let job = state.jobs.get_mut(at.job).ok_or(Status::UnknownMember)?;
    let (id, numbers, round) = (job.id(), job.rounds().numbers(), digest.round);
    if numbers.newest().is_none_or(|newest| newest.is_before(round)) {
        return Err(Refusal::stale_round(numbers.current()));
    }
    let Err(Divergence { other, is_new }) = job.digests_mut().compare(at.member, digest) else {
        reply::grant(state, from, request, at);
        return Ok(());
    };
    let other = other.to_wire();
    if is_new {
        state.report(Event::Diverged { job: id, round, member: at.member.to_wire(), other });
    }
    Err(Refusal { round, ..(Status::Diverged, u32::from(other)).into() })
}
