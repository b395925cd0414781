//! Authentication of control packets: trailers, sessions, counters and nonces (SPEC, section 8).
//!
//! A job with a key accepts only packets whose trailer was made with that key. Replaying a recorded packet has no
//! effect: the tags of a membership are bound to its session, which is identified by the nonce with which the member
//! was admitted, and counters only increase within a session. A challenge issues a nonce to one address, and that nonce
//! is valid for only one admission.

use iswitch_protocol::auth::{Direction, NO_SESSION};
use iswitch_protocol::limits::PROTOCOL_VERSION;
use iswitch_protocol::wire::{Action, ControlPacket, JoinRepr, Status};

use crate::endpoint::Endpoint;
use crate::event::Event;
use crate::ids::MemberAt;
use crate::job::{Member, Session};
use crate::keys::Seal;
use crate::reason::DropReason;
use crate::reply::{self, Request};
use crate::state::State;

/// Reason why a control packet is not processed.
enum Denial {
    /// The job has a key and the trailer is missing or invalid, or the packet has a trailer although the job has no
    /// key.
    NotAuthentic { has_key: bool },
    /// The counter is not greater than that of an earlier packet from the same sender.
    Replayed,
    /// The session is not known, so the packet cannot be verified.
    UnknownMember { counter: u64 },
}

/// Freshness of a Join that has a valid trailer or is addressed to a job without a key.
pub(crate) enum Freshness {
    /// The Join repeats the Join of a member, needs no proof of its return path, or has proved the path without opening
    /// a session.
    Repeated,
    /// The Join repeats the Join of a member and contains the current, unused nonce, so the member still uses this
    /// switch (M-14).
    Present,
    /// The Join contains the current, unused nonce and therefore opens a session.
    Proven { counter: u64 },
    /// The Join may be a replayed recording. If its sender repeats the Join with this nonce, the switch accepts it.
    Unproven { nonce: u64 },
    /// The Join is a replayed recording.
    Replayed,
}

pub(crate) fn is_join(packet: &ControlPacket<'_>) -> bool {
    packet.action_code() == Action::Join as u8
}

/// Authenticates a control packet. Returns how the answer must be authenticated, or `None` if the packet must not be
/// processed; in that case, the packet has already been counted and, if required, refused.
pub(crate) fn authenticate(state: &mut State, from: &Endpoint, packet: &ControlPacket<'_>) -> Option<Seal> {
    match check_authentic(state, from, packet) {
        Ok(seal) => Some(seal),
        Err(denial) => {
            deny(state, from, packet, &denial);
            None
        }
    }
}

fn check_authentic(state: &mut State, from: &Endpoint, packet: &ControlPacket<'_>) -> Result<Seal, Denial> {
    if packet.version() != PROTOCOL_VERSION {
        // The caller refuses the packet because of its version. Another version may authenticate its packets
        // differently.
        return Ok(Seal::Bare);
    }
    // A Join opens a session; every other packet belongs to an existing session.
    let member = if is_join(packet) { None } else { state.jobs.find_member(from) };
    let joined = member.and_then(|at| Some((at, state.jobs.get(at.job)?)));
    let job = joined.map_or(packet.job(), |(_, job)| job.id());
    let session = member.map_or(NO_SESSION, |at| session_of(state, at));
    let Some(key) = state.keys.of(job) else {
        let is_bare = !packet.is_authenticated();
        return is_bare.then_some(Seal::Bare).ok_or(Denial::NotAuthentic { has_key: false });
    };
    let not_authentic = Denial::NotAuthentic { has_key: true };
    if member.is_none() && !is_join(packet) {
        let counter = packet.counter().ok_or(not_authentic)?;
        return Err(Denial::UnknownMember { counter });
    }
    let counter = key.verify(Direction::ToSwitch, session, packet).ok_or(not_authentic)?;
    match member {
        None => Ok(Seal::Echo { job, counter }),
        Some(at) if advance_counter(state, at, counter) => Ok(Seal::Session { job, session }),
        Some(_) => Err(Denial::Replayed),
    }
}

/// Records a member's counter. Returns false if the counter is not greater than the previous one (requirement A-4).
fn advance_counter(state: &mut State, at: MemberAt, counter: u64) -> bool {
    state.jobs.member_mut(at).is_some_and(|member| member.session.advance(counter))
}

fn deny(state: &mut State, from: &Endpoint, packet: &ControlPacket<'_>, denial: &Denial) {
    let (job, status) = (packet.job(), Status::NotAuthentic);
    match *denial {
        Denial::Replayed => state.counters.count_drop(DropReason::Replayed),
        Denial::UnknownMember { counter } => {
            state.counters.count_drop(DropReason::UnknownMember);
            let seal = Seal::Echo { job, counter };
            reply::refuse_packet(state, from, packet, (Status::UnknownMember, 0), seal);
        }
        Denial::NotAuthentic { has_key } => {
            state.counters.count_drop(DropReason::NotAuthentic);
            let expected = u32::from(has_key);
            if is_join(packet) {
                let address = from.peer;
                state.report(Event::JoinRefused { job, address, status, expected, exceeded: None });
            }
            reply::refuse_packet(state, from, packet, (status, expected), Seal::Bare);
        }
    }
}

/// Checks whether a Join may be a replayed recording (requirement A-6). A Join with a valid nonce uses up that nonce;
/// `is_proven` indicates whether [`redeem_nonce`] has already done so.
pub(crate) fn check_fresh(
    state: &mut State,
    from: &Endpoint,
    request: Request,
    join: &JoinRepr,
    is_proven: bool,
) -> Freshness {
    if join.query {
        return Freshness::Repeated;
    }
    let Seal::Echo { job: id, counter } = request.seal else {
        return check_return_path(state, from, request.job, join, is_proven);
    };
    let at = state.jobs.find_member(from).filter(|at| state.jobs.is_process(*at, id, join.instance));
    if let Some(at) = at {
        if !advance_counter(state, at, counter) {
            return Freshness::Replayed;
        }
        if session_of(state, at) == join.nonce {
            return Freshness::Repeated;
        }
        // The member has answered a delayed challenge from an earlier run of the switch. It now uses the nonce of that
        // challenge as its session, and does not accept answers in the session that the switch knows.
    }
    if is_proven || state.nonces.redeem(from, join.nonce) {
        return Freshness::Proven { counter };
    }
    Freshness::Unproven { nonce: state.nonces.of(from) }
}

/// Returns whether a Join contains the nonce that was issued to its address. If so, the nonce is used up, regardless of
/// the other contents of the Join, so that a challenge exempts only one packet from the rate limit on non-members.
pub(crate) fn redeem_nonce(state: &mut State, from: &Endpoint, bytes: &[u8]) -> bool {
    let nonce = ControlPacket::new_checked(bytes).ok().and_then(|packet| packet.join_nonce());
    nonce.is_some_and(|nonce| state.nonces.redeem(from, nonce))
}

/// Counterpart of [`check_fresh`] for Joins to a job without a key, whose nonces prove only the return path.
fn check_return_path(
    state: &mut State,
    from: &Endpoint,
    id: u32,
    join: &JoinRepr,
    is_proven: bool,
) -> Freshness {
    let known = state.jobs.find_member(from).filter(|at| state.jobs.is_process(*at, id, join.instance));
    let is_asked = known.and_then(|at| state.jobs.member(at)).is_some_and(Member::is_asked);
    if is_asked && state.nonces.redeem(from, join.nonce) {
        return Freshness::Present;
    }
    if known.is_some() || is_proven || state.nonces.redeem(from, join.nonce) {
        return Freshness::Repeated;
    }
    Freshness::Unproven { nonce: state.nonces.of(from) }
}

fn session_of(state: &State, at: MemberAt) -> u64 {
    state.jobs.member(at).map_or(NO_SESSION, |own| own.session.nonce())
}

/// Opens the session of a member, identified by the nonce with which the member was admitted.
pub(crate) fn open_session(state: &mut State, at: MemberAt, nonce: u64, counter: u64) {
    let Some(job) = state.jobs.get_mut(at.job) else { return };
    let (key, is_tagged) = (state.keys.of(job.id()), job.is_tagged());
    if let (Some(key), Some(member)) = (key, job.members_mut().get_mut(at.member)) {
        let data_key = is_tagged.then(|| key.contribution_key(nonce));
        member.session = Session::new(nonce, counter, data_key);
    }
}
