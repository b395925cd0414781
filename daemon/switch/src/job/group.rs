//! The group of a job: the members that receive the results of the job as one multicast copy (SPEC, section 13).
//!
//! A member hears the group once it has confirmed a Probe that reached it through the group. Until then, and again once
//! the group no longer seems to reach it, the member receives results by unicast.

use core::net::SocketAddrV4;
use core::time::Duration;

use iswitch_protocol::limits::{
    FIRST_OFFER_RETRY_MS, LAST_OFFER_RETRY_MS, MAX_GROUP_MISSES, MAX_GROUP_OUTLETS, MIN_GROUP_MEMBERS,
    MIN_PROBE_INTERVAL_MS, PROBE_INTERVAL_MS,
};
use iswitch_protocol::{Instant, Round};

use crate::endpoint::{Endpoint, PortId};
use crate::ids::{MemberId, MemberSet};
use crate::job::members::Member;

/// Number of consecutive periodic Probes that a contributing member may leave unconfirmed.
const MAX_UNCONFIRMED: u8 = 2;
/// Number of vectors that a member must contribute after a Probe before the missing confirmation counts as a sign of
/// loss. A member that is computing does not read its sockets.
const VECTORS_PER_PROBE: u64 = 2;
/// Maximum distance, in rounds, between two rounds whose missed results count as consecutive misses. After a miss, the
/// member receives the results of the round under way and of the next one by unicast.
const SUCCESSIVE_ROUNDS: u32 = 2;

/// Number of offers after which the pause between offers no longer grows.
const MAX_OFFERS: u8 = (LAST_OFFER_RETRY_MS / FIRST_OFFER_RETRY_MS).ilog2() as u8;

/// State of a member with respect to the group of its job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reception {
    /// Port of the switch through which the group of the job reaches the member, if both the member and the port
    /// support groups.
    port: Option<PortId>,
    /// Earliest time at which the group may next be offered to the member.
    offer_at: Instant,
    /// Number of offers since a periodic Probe was last confirmed. It determines the pause after the next offer.
    offers: u8,
    /// Latest round for which the member requested results that had been sent to the group; valid only if `misses`, the
    /// number of consecutive rounds with such requests, is not zero.
    missed: Round,
    misses: u8,
    /// Number of consecutive periodic Probes that the member has not confirmed.
    unconfirmed: u8,
    /// Number of segments that the member had contributed at the last periodic Probe.
    segments: u64,
}

impl Reception {
    /// Creates the state of a new member.
    pub(crate) const fn new(port: Option<PortId>) -> Self {
        Self {
            port,
            offer_at: Instant::from_nanos(0),
            offers: 0,
            missed: Round::new(0),
            misses: 0,
            unconfirmed: 0,
            segments: 0,
        }
    }

    /// Returns the port of the switch through which the group of the job can reach the member, if any.
    pub(crate) fn port(&self) -> Option<PortId> {
        self.port
    }

    /// Returns whether the group may be offered to the member now, provided that the member does not already hear it.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.port.is_some() && self.offer_at <= now
    }

    /// Makes the next offer to the member due immediately.
    pub(super) fn expect_offer(&mut self) {
        self.offer_at = Instant::from_nanos(0);
    }

    /// Delays the next offer. Each offer doubles the delay, until the member has confirmed a periodic Probe.
    pub(crate) fn postpone(&mut self, now: Instant) {
        let pause_ms = (FIRST_OFFER_RETRY_MS << self.offers).min(LAST_OFFER_RETRY_MS);
        self.offer_at = now.plus(Duration::from_millis(pause_ms));
        self.offers = (self.offers + 1).min(MAX_OFFERS);
    }

    /// Records that the member requested results of a round that had been sent to the group. Returns the number of
    /// consecutive rounds for which this has happened.
    fn miss(&mut self, round: Round) -> u8 {
        if self.misses == 0 || self.missed != round {
            let is_next = self.misses > 0 && round.distance_from(self.missed) <= SUCCESSIVE_ROUNDS;
            self.misses = if is_next { self.misses + 1 } else { 1 };
            self.missed = round;
        }
        self.misses
    }

    /// Evaluates the last periodic Probe. `segments` is the number of segments that the member has contributed in
    /// total. Returns whether the member no longer counts as hearing the group.
    fn settle(&mut self, is_confirmed: bool, segments: u64, vector_segments: u32) -> bool {
        let contributed = segments.saturating_sub(self.segments);
        self.segments = segments;
        if is_confirmed {
            self.unconfirmed = 0;
            self.offers = 0;
        } else if contributed >= VECTORS_PER_PROBE * u64::from(vector_segments) {
            self.unconfirmed += 1;
        }
        self.unconfirmed >= MAX_UNCONFIRMED
    }

    /// Forgets earlier misses when the member hears the group again.
    fn begin(&mut self, segments: u64) {
        (self.misses, self.unconfirmed, self.segments) = (0, 0, segments);
    }
}

/// A port and an address of the switch from which results are sent to the group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outlet {
    /// Destination and source of the results: the group, and the address of the switch.
    to: Endpoint,
    /// Members that have confirmed a Probe from this outlet.
    hearing: MemberSet,
}

impl Outlet {
    pub(crate) fn to(&self) -> &Endpoint {
        &self.to
    }

    /// Returns whether the switch sends results to the group through this outlet.
    fn is_used(&self) -> bool {
        self.hearing.len() >= MIN_GROUP_MEMBERS
    }
}

/// The group of a job.
#[derive(Debug)]
pub(crate) struct Group {
    address: SocketAddrV4,
    outlets: [Option<Outlet>; MAX_GROUP_OUTLETS],
    /// Members that have been offered the group and therefore know its address.
    offered: MemberSet,
    /// Members that may confirm a Probe: those that were offered the group and have not been excluded since.
    invited: MemberSet,
    /// Members that have confirmed a Probe since the last periodic Probe was sent.
    confirmed: MemberSet,
    /// Latest round for which members requested results that had been sent to the group, and the members that did so.
    /// These members also receive results by unicast.
    doubted: Option<(Round, MemberSet)>,
    probes: u32,
    last_probe: Option<Instant>,
    /// Time at which the next requested Probe is sent, if a member has requested one.
    asked_at: Option<Instant>,
    /// Time of the next periodic Probe.
    periodic_at: Option<Instant>,
}

/// A Probe that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Probe for a member that is ready to receive it through the group.
    Asked,
    /// Probe that every member that hears the group must confirm, to show that the group still reaches it.
    Periodic,
}

impl Group {
    pub(crate) fn new(address: SocketAddrV4) -> Self {
        Self {
            address,
            outlets: [None; MAX_GROUP_OUTLETS],
            offered: MemberSet::EMPTY,
            invited: MemberSet::EMPTY,
            confirmed: MemberSet::EMPTY,
            doubted: None,
            probes: 0,
            last_probe: None,
            asked_at: None,
            periodic_at: None,
        }
    }

    pub(crate) fn address(&self) -> SocketAddrV4 {
        self.address
    }

    /// Returns the number of Probes that were sent.
    pub(crate) fn probes(&self) -> u32 {
        self.probes
    }

    /// Returns whether the group has been offered to a member, which therefore knows its address and can receive
    /// packets to it.
    pub(super) fn is_offered(&self, id: MemberId) -> bool {
        self.offered.contains(id)
    }

    /// Returns the members that hear the group.
    pub(crate) fn hearing(&self) -> MemberSet {
        self.outlets.iter().flatten().fold(MemberSet::EMPTY, |all, outlet| all.union(outlet.hearing))
    }

    /// Returns the outlets through which results are sent.
    pub(crate) fn used_outlets(&self) -> impl Iterator<Item = &Outlet> {
        self.outlets.iter().flatten().filter(|outlet| outlet.is_used())
    }

    /// Returns all outlets with their positions.
    pub(crate) fn outlets(&self) -> impl Iterator<Item = (usize, &Outlet)> {
        self.outlets.iter().enumerate().filter_map(|(at, outlet)| Some((at, outlet.as_ref()?)))
    }

    /// Returns the members that receive results only through the multicast copy. `newest` is the latest round of the
    /// job.
    pub(crate) fn served(&self, newest: Option<Round>) -> MemberSet {
        let served = self.used_outlets().fold(MemberSet::EMPTY, |all, outlet| all.union(outlet.hearing));
        match self.doubted {
            Some((round, members)) if newest.is_none_or(|newest| !round.next().is_before(newest)) => {
                served.difference(members)
            }
            _ => served,
        }
    }

    /// Returns the position of the outlet that leads to a member, or `None` if there is no such outlet.
    pub(crate) fn outlet_of(&self, member: &Member) -> Option<usize> {
        let key = member.outlet()?;
        let leads_there = |outlet: &Outlet| (outlet.to.port, *outlet.to.local.ip()) == key;
        self.outlets.iter().position(|outlet| outlet.as_ref().is_some_and(leads_there))
    }

    /// Records that the group is offered to a member. Returns false if the member's outlet is new and there is no room
    /// for another outlet.
    pub(crate) fn offer(&mut self, id: MemberId, member: &Member) -> bool {
        let Some(port) = member.reception.port() else { return false };
        let peer_mac = multicast_mac(self.address);
        let to = Endpoint { port, peer: self.address, peer_mac, ..member.endpoint };
        if let Some(outlet) = self.outlet_of(member).and_then(|at| self.outlets[at].as_mut()) {
            // The MAC address of the switch may have changed since the last offer.
            outlet.to = to;
        } else {
            let Some(free) = self.outlets.iter_mut().find(|outlet| outlet.is_none()) else { return false };
            *free = Some(Outlet { to, hearing: MemberSet::EMPTY });
        }
        (self.offered, self.invited) = (self.offered.with(id), self.invited.with(id));
        true
    }

    /// Records a confirmation through an outlet. Returns whether this is new, that is, whether the member did not hear
    /// the group before. Returns `None` if the member may not confirm the group now.
    pub(super) fn confirm(&mut self, id: MemberId, at: usize) -> Option<bool> {
        let is_invited = self.invited.contains(id);
        let outlet = self.outlets.get_mut(at)?.as_mut().filter(|_| is_invited)?;
        let is_new = !outlet.hearing.contains(id);
        outlet.hearing = outlet.hearing.with(id);
        self.confirmed = self.confirmed.with(id);
        Some(is_new)
    }

    /// Switches a member back to unicast until it accepts another offer.
    pub(super) fn exclude(&mut self, id: MemberId) {
        self.invited = self.invited.without(id);
        for outlet in self.outlets.iter_mut().flatten() {
            outlet.hearing = outlet.hearing.without(id);
        }
    }

    /// Makes the switch send the results of a round to a member by unicast as well.
    fn doubt(&mut self, id: MemberId, round: Round) {
        let others = self.doubted.filter(|(other, _)| *other == round);
        let others = others.map_or(MemberSet::EMPTY, |(_, members)| members);
        self.doubted = Some((round, others.with(id)));
    }

    /// Schedules a Probe for a member that is ready to receive it. Returns the time of the Probe, or `None` if the
    /// member does not know this group.
    pub(crate) fn ask(&mut self, id: MemberId, now: Instant) -> Option<Instant> {
        let pause = Duration::from_millis(MIN_PROBE_INTERVAL_MS);
        let earliest = self.last_probe.map_or(now, |last| last.plus(pause).max(now));
        let at = self.asked_at.map_or(earliest, |at| at.min(earliest));
        self.invited.contains(id).then(|| *self.asked_at.insert(at))
    }

    /// Returns the time at which the next requested Probe is sent, if a member has requested one.
    pub(crate) fn asked_at(&self) -> Option<Instant> {
        self.asked_at
    }

    /// Returns the Probe that is due, if any.
    pub(crate) fn due(&self, now: Instant) -> Option<Due> {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if is_due(self.periodic_at) {
            Some(Due::Periodic)
        } else {
            is_due(self.asked_at).then_some(Due::Asked)
        }
    }

    /// Counts a Probe that is about to be sent.
    pub(crate) fn note_probe(&mut self, now: Instant) {
        self.probes = self.probes.wrapping_add(1);
        (self.last_probe, self.asked_at) = (Some(now), None);
        let periodic = now.plus(Duration::from_millis(PROBE_INTERVAL_MS));
        self.periodic_at = Some(self.periodic_at.filter(|at| *at > now).unwrap_or(periodic));
    }
}

impl super::Job {
    pub(crate) fn group(&self) -> Option<&Group> {
        self.group.as_ref()
    }

    pub(crate) fn group_mut(&mut self) -> Option<&mut Group> {
        self.group.as_mut()
    }

    /// Creates the group of the job. No member knows its address yet.
    pub(crate) fn begin_group(&mut self, address: SocketAddrV4) {
        self.group = Some(Group::new(address));
    }

    /// Gives up the group, because a departed member knows its address and would still receive results. The members
    /// that heard the group are offered a new group immediately.
    pub(super) fn leave_group(&mut self) {
        let Some(group) = self.group.take() else { return };
        for id in group.hearing().iter() {
            if let Some(member) = self.members.get_mut(id) {
                member.reception.expect_offer();
            }
        }
    }

    /// Returns whether a member receives results through the group.
    pub(crate) fn hears_group(&self, id: MemberId) -> bool {
        self.group.as_ref().is_some_and(|group| group.hearing().contains(id))
    }

    /// Returns the members that need their own copy of each result.
    pub(crate) fn unicast_members(&self) -> MemberSet {
        let newest = self.rounds.numbers().newest();
        let served = self.group.as_ref().map_or(MemberSet::EMPTY, |group| group.served(newest));
        self.members.present().difference(served)
    }

    /// Returns the number of copies of each result that the switch sends.
    pub(crate) fn result_copies(&self) -> u16 {
        self.unicast_members().len() + self.group_copies()
    }

    /// Returns the number of copies of each result that the switch sends to the group.
    pub(crate) fn group_copies(&self) -> u16 {
        self.group.as_ref().map_or(0, |group| group.used_outlets().count() as u16)
    }

    /// Records that a member has confirmed a Probe through an outlet. Returns whether the member did not hear the group
    /// before.
    pub(crate) fn confirm_group(&mut self, id: MemberId, outlet: usize) -> bool {
        let is_new = self.group.as_mut().and_then(|group| group.confirm(id, outlet)) == Some(true);
        if let Some(member) = self.members.get_mut(id).filter(|_| is_new) {
            member.reception.begin(member.progress.segments);
        }
        is_new
    }

    /// Records that a member requested results of a round that had been sent to the group. Returns whether the member
    /// now receives results by unicast.
    pub(crate) fn note_group_miss(&mut self, id: MemberId, round: Round, now: Instant) -> bool {
        // A member of an asynchronous job would soon lack aggregates that are no longer kept.
        let most = if self.rounds.asynchronous().is_some() { 1 } else { MAX_GROUP_MISSES };
        let (Some(group), Some(member)) = (&mut self.group, self.members.get_mut(id)) else { return false };
        group.doubt(id, round);
        let is_lost = member.reception.miss(round) >= most;
        if is_lost {
            member.reception.postpone(now);
            group.exclude(id);
        }
        is_lost
    }

    /// Evaluates the last periodic Probe. Returns the members that have not confirmed it although they were reading
    /// their sockets, and that now receive results by unicast.
    pub(crate) fn settle_probe(&mut self, now: Instant) -> MemberSet {
        let segments = self.layout.segment_count();
        let Some(group) = &mut self.group else { return MemberSet::EMPTY };
        let confirmed = core::mem::take(&mut group.confirmed);
        let mut lost = MemberSet::EMPTY;
        for id in group.hearing().iter() {
            let Some(member) = self.members.get_mut(id) else { continue };
            if member.reception.settle(confirmed.contains(id), member.progress.segments, segments) {
                member.reception.postpone(now);
                group.exclude(id);
                lost = lost.with(id);
            }
        }
        lost
    }

    /// Switches a member that has repeated its Join back to unicast, because the member may have left the group. The
    /// next offer of the group is due immediately.
    pub(crate) fn renew_reception(&mut self, id: MemberId) {
        if let Some(group) = &mut self.group {
            group.exclude(id);
        }
        if let Some(member) = self.members.get_mut(id) {
            member.reception.expect_offer();
        }
    }
}

/// Returns the MAC address to which frames for a group are sent (RFC 1112 section 6.4).
fn multicast_mac(group: SocketAddrV4) -> [u8; 6] {
    let [_, second, third, fourth] = group.ip().octets();
    [0x01, 0x00, 0x5e, second & 0x7f, third, fourth]
}
