//! Group delivery: offers of groups, Probes, and the confirmation of Probes (SPEC, section 13).

use iswitch_protocol::limits::{DATA_TAG_LEN_BYTES, MIN_GROUP_MEMBERS, TRAILER_LEN_BYTES};
use iswitch_protocol::wire::control::{NONCE_LEN_BYTES, SegmentSetRepr};
use iswitch_protocol::wire::{ControlBody, ControlRepr};
use iswitch_protocol::{Instant, SegmentIndex};

use crate::event::Event;
use crate::ids::{JobIndex, MemberAt, MemberId, MemberSet};
use crate::job::{Due, Group, Job, Member};
use crate::keys::Seal;
use crate::state::State;

/// Number of most recent Probes that may still be confirmed. It exceeds one, because the confirmation of a Probe may
/// arrive after the next Probe was sent.
const CONFIRMABLE_PROBES: u32 = 2;

/// Offers the group of a job to the members that should receive results through it, and sends the Probes that are due.
pub(crate) fn tend(state: &mut State, at: JobIndex) {
    let Some(job) = state.jobs.get(at).filter(|job| job.is_formed()) else { return };
    let due = due_offers(job, state.now);
    if !due.is_empty() && job.group().is_none() {
        let taken =
            due.iter().find_map(|id| job.members().get(id)).map(|member| member.endpoint.local.port());
        let address = state.group_addresses.draw(taken.unwrap_or(0));
        if let Some(job) = state.jobs.get_mut(at) {
            job.begin_group(address);
        }
    }
    due.iter().for_each(|id| offer(state, MemberAt { job: at, member: id }));
    probe_if_due(state, at);
}

/// Returns the members to which the group is to be offered now: those that support groups, do not receive results
/// through the group yet, and share their outlet with another member.
fn due_offers(job: &Job, now: Instant) -> MemberSet {
    let hearing = job.group().map_or(MemberSet::EMPTY, Group::hearing);
    let shares_outlet = |own: &Member| {
        let sharing = job.members().iter().filter(|(_, member)| member.outlet() == own.outlet());
        sharing.count() >= usize::from(MIN_GROUP_MEMBERS)
    };
    let is_due = |id: MemberId, member: &Member| member.reception.is_due(now) && !hearing.contains(id);
    let due = job.members().iter().filter(|(id, member)| is_due(*id, member) && shares_outlet(member));
    due.map(|(id, _)| id).collect()
}

fn offer(state: &mut State, at: MemberAt) {
    let now = state.now;
    let Some(job) = state.jobs.get_mut(at.job) else { return };
    let Some(member) = job.members_mut().get_mut(at.member) else { return };
    member.reception.postpone(now);
    let (member, to) = (*member, member.endpoint);
    let (id, seal) = (job.id(), job.seal(at.member));
    let Some(group) = job.group_mut() else { return };
    if group.offer(at.member, &member) {
        let body = ControlBody::Group(group.address());
        state.send_control(&to, &ControlRepr { job: id, request: 0, body }, 0, seal);
    }
}

/// Sends a Probe if one is due, and reports the members that the group no longer reaches.
fn probe_if_due(state: &mut State, at: JobIndex) {
    let now = state.now;
    let Some(job) = state.jobs.get_mut(at) else { return };
    match job.group().and_then(|group| group.due(now)) {
        None => return,
        Some(Due::Asked) => {}
        Some(Due::Periodic) => {
            for id in job.settle_probe(now).iter() {
                report_lost(state, MemberAt { job: at, member: id });
            }
        }
    }
    probe(state, at);
}

fn probe(state: &mut State, at: JobIndex) {
    let now = state.now;
    let Some(group) = state.jobs.get_mut(at).and_then(Job::group_mut) else { return };
    group.note_probe(now);
    let outlets = group.outlets().count();
    for outlet in 0..outlets {
        let Some(job) = state.jobs.get(at) else { return };
        let Some(group) = job.group() else { return };
        let Some(to) = group.outlets().nth(outlet).map(|(_, outlet)| *outlet.to()) else { continue };
        let nonce = nonce_of(state, job, group, outlet, group.probes());
        let (id, epoch) = (job.id(), job.epoch());
        let seal = if job.has_key() { Seal::Group { job: id, epoch } } else { Seal::Bare };
        let packet = ControlRepr { job: id, request: 0, body: ControlBody::Probe { nonce } };
        let padding_len = probe_padding(job);
        state.send_control(&to, &packet, padding_len, seal);
    }
}

/// Returns the padding that makes a Probe as long as a result: if the Probe arrives, results will arrive as well.
fn probe_padding(job: &Job) -> u16 {
    let tag_len = if job.is_tagged() { DATA_TAG_LEN_BYTES } else { 0 };
    let trailer_len = if job.has_key() { TRAILER_LEN_BYTES } else { 0 };
    let result_len = job.layout().full_packet_len(job.layout().elements().results()) + tag_len;
    result_len.saturating_sub(NONCE_LEN_BYTES + trailer_len) as u16
}

fn nonce_of(state: &State, job: &Job, group: &Group, outlet: usize, probe: u32) -> u64 {
    state.nonces.of_probe(job.epoch(), group.address(), outlet, probe)
}

/// Handles a Heard packet. A nonce of zero requests a Probe; any other nonce confirms one.
pub(crate) fn handle_heard(state: &mut State, at: MemberAt, nonce: u64) {
    let now = state.now;
    if nonce == 0 {
        let group = state.jobs.get_mut(at.job).and_then(Job::group_mut);
        match group.and_then(|group| group.ask(at.member, now)) {
            Some(asked_at) if asked_at <= now => probe_if_due(state, at.job),
            Some(asked_at) => state.expect_by(asked_at),
            None => {}
        }
        return;
    }
    let Some(outlet) = confirmed_outlet(state, at, nonce) else { return };
    let Some(job) = state.jobs.get_mut(at.job) else { return };
    if job.confirm_group(at.member, outlet) {
        let job = job.id();
        report(state, at, |member, address| Event::GroupHeard { job, member, address });
    }
}

/// Returns the outlet that leads to a member if `nonce` belongs to one of the latest Probes through that outlet.
fn confirmed_outlet(state: &State, at: MemberAt, nonce: u64) -> Option<usize> {
    let job = state.jobs.get(at.job)?;
    let group = job.group()?;
    let outlet = group.outlet_of(job.members().get(at.member)?)?;
    let latest = (0..CONFIRMABLE_PROBES.min(group.probes())).map(|back| group.probes() - back);
    latest.map(|probe| nonce_of(state, job, group, outlet, probe)).any(|it| it == nonce).then_some(outlet)
}

/// Evaluates a Help as a sign of lost multicast packets: if the switch has already sent the requested results to the
/// group, the group may no longer reach the member.
///
/// A Help for a single segment is not evidence of loss if the vector has several segments. A member sends such a Help
/// only to find out whether results are still in flight (F-2), which is common on a busy machine.
pub(crate) fn note_help(state: &mut State, at: MemberAt, wanted: SegmentSetRepr<'_>) {
    if !state.jobs.get(at.job).is_some_and(|job| job.hears_group(at.member)) {
        return;
    }
    let (now, round) = (state.now, wanted.range.round);
    let Some(aggregation) = state.aggregation(at.job) else { return };
    let is_probe = wanted.indices().nth(1).is_none() && aggregation.job().layout().segment_count() > 1;
    let mut segments = wanted.indices().filter_map(SegmentIndex::new);
    let is_missed =
        |index: SegmentIndex| aggregation.has_result(round, index) || aggregation.is_overtaken(round);
    if is_probe || !segments.any(is_missed) {
        return;
    }
    let Some(job) = state.jobs.get_mut(at.job) else { return };
    if job.note_group_miss(at.member, round, now) {
        report_lost(state, at);
    }
}

fn report_lost(state: &mut State, at: MemberAt) {
    let Some(job) = state.jobs.get(at.job).map(Job::id) else { return };
    report(state, at, |member, address| Event::GroupLost { job, member, address });
}

fn report(state: &mut State, at: MemberAt, event: impl FnOnce(u16, core::net::SocketAddrV4) -> Event) {
    if let Some(address) = state.jobs.member(at).map(|member| member.endpoint.peer) {
        state.report(event(at.member.to_wire(), address));
    }
}
