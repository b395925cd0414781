//! Join: admits a sender as a member, or updates the number of workers that a member represents.

use iswitch_protocol::limits::{MAX_HEIGHT, MAX_MEMBERS};
use iswitch_protocol::wire::{Exceeded, JoinRepr, Kind, Limit, Mode, Status};

use crate::authentication::{Freshness, check_fresh, open_session};
use crate::budget::RepeatBudget;
use crate::config::CardLimits;
use crate::endpoint::Endpoint;
use crate::event::{Departure, Event};
use crate::ids::{JobIndex, MemberAt};
use crate::job::{Dismissed, Job, Member, Presence, Progress, Reception, Session};
use crate::lifecycle;
use crate::limiter::StrangerPacket;
use crate::quota::create_job;
use crate::reason::DropReason;
use crate::reply::{self, Refusal, Request};
use crate::state::State;

/// Processes a Join. `is_proven` indicates whether the Join contained the nonce that the switch had issued to the
/// sender's address.
pub(super) fn handle_join(
    state: &mut State,
    from: &Endpoint,
    request: Request,
    join: &JoinRepr,
    is_proven: bool,
) {
    if is_double(state, from, request.job, join) {
        // The same Join arrived on two ports, but a member has only one port.
        return state.counters.count_drop(DropReason::OtherPort);
    }
    let freshness = check_fresh(state, from, request, join, is_proven);
    match freshness {
        Freshness::Repeated | Freshness::Present | Freshness::Proven { .. } => {}
        Freshness::Unproven { nonce } => {
            // Limit the rate of members here as well, because replacing a member delays the other members.
            let replaces = state.jobs.find_member(from).is_some();
            if replaces && !state.limiter.admit(state.now, *from.peer.ip(), StrangerPacket::Control) {
                return state.counters.count_drop(DropReason::RateLimited);
            }
            return reply::challenge(state, from, request, nonce, join);
        }
        Freshness::Replayed => return state.counters.count_drop(DropReason::Replayed),
    }
    let has_nonce = matches!(freshness, Freshness::Present | Freshness::Proven { .. });
    let outcome = if join.query {
        query(state, request.job, join)
    } else {
        try_join(state, from, request, join, has_nonce)
    };
    if let (Freshness::Proven { counter }, Ok(Some(at))) = (freshness, &outcome) {
        open_session(state, *at, join.nonce, counter);
    }
    match outcome {
        Ok(at) => reply::grant_join(state, from, request, at, join),
        Err(refusal) => {
            let Refusal { status, expected, exceeded, .. } = refusal;
            // A refused query is an answer, not a fault: a worker with a long vector asks for the number of parts
            // before it joins, usually before the job exists, and `iswitchctl doctor` asks about any job.
            if !join.query {
                state.counters.count_drop(match status {
                    Status::ForeignJob => DropReason::ForeignJob,
                    _ => DropReason::JoinRefused,
                });
                let (job, address) = (request.job, from.peer);
                state.report(Event::JoinRefused { job, address, status, expected, exceeded });
            }
            reply::refuse_join(state, from, request, &refusal, join);
        }
    }
}

/// Returns whether the sender of a Join is already a member on another port and is still active there.
fn is_double(state: &State, from: &Endpoint, id: u32, join: &JoinRepr) -> bool {
    let other = state.jobs.same_elsewhere(from, id, join);
    other.is_some_and(|at| state.jobs.is_heard(at, state.now, state.config.lease()))
}

/// Answers a query about a job. The result is `None` if the query is granted, because the sender is not admitted.
fn query(state: &State, id: u32, join: &JoinRepr) -> Result<Option<MemberAt>, Refusal> {
    let job = state.jobs.find(id).and_then(|at| state.jobs.get(at)).ok_or(Status::UnknownJob)?;
    job.mismatch(join).map_or(Ok(None), |mismatch| Err(mismatch.into()))
}

/// Processes a Join that is not a query. `has_nonce` indicates whether it contained the current nonce of its sender.
fn try_join(
    state: &mut State,
    from: &Endpoint,
    request: Request,
    join: &JoinRepr,
    has_nonce: bool,
) -> Result<Option<MemberAt>, Refusal> {
    let id = request.job;
    check_fields(join)?;
    if join.roams && join.kind == Kind::Worker && state.config.uplinks.is_some() {
        // Only a topmost switch can ensure that no other switch sums the vectors of the job (M-14).
        return Err((Status::TooManyLevels, u32::from(MAX_HEIGHT)).into());
    }
    if let Some(ban) = state.bans.find(state.now, id, from.peer) {
        return Err(ban.refusal().into());
    }
    if let Some(refusal) = refused_above(state, id, join) {
        if let Some(at) = state.jobs.find_member(from) {
            lifecycle::remove_member(state, at, Departure::Leave);
        }
        return Err(refusal);
    }
    if let Some(at) = state.jobs.find_member(from) {
        let job = state.jobs.get(at.job).ok_or(Status::UnknownMember)?;
        if job.id() != id {
            return Err((Status::ForeignJob, job.id()).into());
        }
        if let Some(mismatch) = job.mismatch(join) {
            return Err(mismatch.into());
        }
        if job.is_known(at.member, join) {
            state.hear_from(at);
            state.jobs.follow(at, from);
            renew(state, at, join, has_nonce);
            return Ok(Some(at));
        }
        lifecycle::remove_member(state, at, Departure::Restarted);
    }
    if join.updates {
        return Err(Status::UnknownMember.into());
    }
    if let Some(at) = state.jobs.same_elsewhere(from, id, join) {
        // The member was silent on its previous port, so it has moved to this one.
        lifecycle::remove_member(state, at, Departure::Restarted);
    }
    let dismissed = give_way(state, id, join);
    let at = match state.jobs.find(id) {
        Some(at) => at,
        None => create_job(state, id, *from.peer.ip(), join)?,
    };
    if let (Some(dismissed), Some(job)) = (dismissed, state.jobs.get_mut(at)) {
        job.dismiss(&dismissed);
    }
    admit(state, at, from, request.id, join).map(Some)
}

/// Returns the refusal of a Join if the parent has recently refused the same vector length. From this refusal, members
/// that divide the vector differently learn how the parent's job divides it (T-8).
fn refused_above(state: &State, id: u32, join: &JoinRepr) -> Option<Refusal> {
    let is_formed = state.jobs.find(id).and_then(|at| state.jobs.get(at)).is_some_and(Job::is_formed);
    let mut expected = state.uplinks.iter().filter_map(|uplink| uplink.expected_len(id, state.now));
    let expected = expected.find(|len| *len != join.gradient_len && !is_formed)?;
    Some((Status::GradientLenMismatch, expected).into())
}

/// Ends a job that began without the members that hold its sums, if the Join comes from one of these members. Returns
/// the addresses of the job's current members, which must rejoin.
fn give_way(state: &mut State, id: u32, join: &JoinRepr) -> Option<Dismissed> {
    let at = state.jobs.find(id)?;
    let (now, lease) = (state.now, state.config.lease());
    let job = state.jobs.get(at).filter(|job| job.gives_way_to(join, now, lease))?;
    let dismissed = Dismissed::of(job.members());
    state.report(Event::GaveWay { job: id });
    lifecycle::dismiss_members(state, at);
    Some(dismissed)
}

/// Updates a member from a repeated Join. A member that is a switch may now represent a different number of workers.
/// `has_nonce` indicates whether the Join contained the member's current nonce.
fn renew(state: &mut State, at: MemberAt, join: &JoinRepr, has_nonce: bool) {
    let Some(job) = state.jobs.get_mut(at.job) else { return };
    let is_forming = !job.is_formed();
    let peer = job.members().get(at.member).map(|member| member.endpoint.peer);
    let resume = peer.and_then(|peer| job.resume_of(join, peer));
    let Some(member) = job.members_mut().get_mut(at.member) else { return };
    (member.instance, member.weight) = (join.instance, join.weight);
    (member.height, member.roams) = (join.height, join.roams);
    if is_forming {
        member.resume = resume;
        if member.is_asked() && has_nonce {
            member.presence = Presence::Shown;
            lifecycle::gather(state, at.job, Some(at.member));
        }
    } else {
        job.renew_reception(at.member);
        let round = job.standing_of_member(at.member, join.resume.as_ref()).round;
        if job.begin_later(at.member, round) {
            lifecycle::close_finished(state, at.job);
        }
    }
    if join.kind == Kind::Switch {
        lifecycle::gather(state, at.job, Some(at.member));
        if join.mode == Mode::Asynchronous {
            // H may have fallen to the number of gradients in the aggregate (V-4).
            lifecycle::close_finished(state, at.job);
        }
    }
}

fn admit(
    state: &mut State,
    job_at: JobIndex,
    from: &Endpoint,
    join_request: u32,
    join: &JoinRepr,
) -> Result<MemberAt, Refusal> {
    let (now, lease, group_port) = (state.now, state.config.lease(), state.group_port(from.port));
    let job = state.jobs.get_mut(job_at).ok_or(Status::UnknownJob)?;
    if let Some(mismatch) = job.mismatch(join) {
        return Err(mismatch.into());
    }
    if job.free_id().is_some() && job.ends_with_newcomer() {
        // The newcomer takes part in the next incarnation.
        let next = interrupt(state, job_at, from, join)?;
        return admit(state, next, from, join_request, join);
    }
    let expected = make_room(state.config.card, job);
    let id = job.free_id().filter(|id| id.get() < expected as usize).ok_or_else(|| {
        let exceeded = Exceeded { limit: Limit::Members, value: expected.into() };
        Refusal { exceeded: Some(exceeded), ..(Status::JobFull, expected).into() }
    })?;
    let resume = job.resume_of(join, from.peer);
    if let Some(resume) = &resume {
        job.recognize(resume);
    }
    let start = job.standing_of_newcomer(resume.as_ref());
    let member = Member {
        endpoint: *from,
        kind: join.kind,
        weight: join.weight,
        height: join.height,
        roams: join.roams,
        instance: join.instance,
        rank: join.rank,
        join_request,
        resume,
        start,
        admitted: now,
        last_heard: now,
        session: Session::NONE,
        held_up: None,
        repeats: RepeatBudget::new(&job.income(now, lease)),
        reception: Reception::new(group_port.filter(|_| join.groups)),
        presence: Presence::Unasked,
        progress: Progress::default(),
    };
    let job_id = job.id();
    let at = MemberAt { job: job_at, member: id };
    state.jobs.admit(at, member);
    state.expect_tick();
    let (member, address, round) = (id.to_wire(), from.peer, start.round);
    state.report(Event::Joined { job: job_id, member, address, round });
    lifecycle::call_roll(state, job_at, id);
    lifecycle::gather(state, job_at, Some(id));
    Ok(at)
}

/// Returns the maximum number of members of a job. If the job is assigned to the card and has as many members as the
/// card supports, the core keeps the job, unless the card already sums it.
fn make_room(card: Option<CardLimits>, job: &mut Job) -> u32 {
    let Some(card) = card.filter(|_| job.is_for_card()) else { return job.max_members() };
    if !job.rounds().is_on_card() && job.members().count() >= card.members {
        job.keep_from_card();
        return job.max_members();
    }
    job.max_members().min(card.members.into())
}

/// Ends the incarnation of a job because the sender of a Join is about to become a member (M-14). Returns the next
/// incarnation, which has no members yet.
fn interrupt(state: &mut State, at: JobIndex, from: &Endpoint, join: &JoinRepr) -> Result<JobIndex, Refusal> {
    let id = state.jobs.get(at).map(Job::id).ok_or(Status::UnknownJob)?;
    lifecycle::interrupt_job(state, at);
    create_job(state, id, *from.peer.ip(), join)
}

/// Refuses a Join with a field value that is invalid in any job.
fn check_fields(join: &JoinRepr) -> Result<(), Refusal> {
    if join.mode != Mode::Synchronous && join.part {
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
