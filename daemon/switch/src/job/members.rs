//! Membership table of a job (figure 9 of the paper).

use core::net::{Ipv4Addr, SocketAddrV4};

use iswitch_protocol::auth::{NO_SESSION, TagKey};
use iswitch_protocol::limits::MAX_MEMBERS;
use iswitch_protocol::wire::{Kind, NameRepr, ResumeRepr, Standing};
use iswitch_protocol::{Instant, Round};

use crate::budget::RepeatBudget;
use crate::endpoint::{Endpoint, PortId};
use crate::ids::{MemberId, MemberSet};
use crate::job::group::Reception;
use crate::names::Names;

/// A member of a job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) endpoint: Endpoint,
    pub(crate) kind: Kind,
    /// Number of workers that the member represents.
    pub(crate) weight: u16,
    /// Number of levels of switches from the workers up to and including the member: zero for a worker.
    pub(crate) height: u8,
    /// Whether the member is a worker that can move to another switch, or a switch that can change to another parent or
    /// has such a switch below it.
    pub(crate) roams: bool,
    /// Instance number of the process, which distinguishes a restarted process from a repeated Join.
    pub(crate) instance: u32,
    /// Position of the member in ordered sums.
    pub(crate) rank: u16,
    /// Request id of the Join. The switch repeats this id in its notice that the job is complete.
    pub(crate) join_request: u32,
    /// Resume state in the member's Join, which describes the sums that the member had before it joined, if any.
    pub(crate) resume: Option<ResumeRepr>,
    pub(crate) start: Start,
    pub(crate) admitted: Instant,
    pub(crate) last_heard: Instant,
    pub(crate) session: Session,
    /// Latest round that the switch has reported as waiting for this member. `None` if no round waits for the member
    /// any longer.
    pub(crate) held_up: Option<Round>,
    /// Budget for repeated results.
    pub(crate) repeats: RepeatBudget,
    /// State of the member with respect to the group of the job.
    pub(crate) reception: Reception,
    /// Whether the member still uses this switch, in a job that roams.
    pub(crate) presence: Presence,
    /// Accepted contributions since the member was admitted.
    pub(crate) progress: Progress,
}

/// Whether a worker that can move to another switch was at this one when the last member joined (M-14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// The switch has not asked since the last member joined, because other members are still missing.
    Unasked,
    /// The switch has asked the member to repeat its Join with a new nonce.
    Asked,
    /// The member has answered.
    Shown,
}

/// Start of a member, as stated in the Ack of its Join: its standing, the round at which it begins or continues, and
/// its history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) standing: Standing,
    /// First round in which the member takes part.
    pub(crate) round: Round,
    /// History before `round`; for the standings Supplies and Awaits, the history after `round`.
    pub(crate) history: u64,
}

/// The authenticated session of a member in a job with a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Session {
    /// Nonce with which the member was admitted; its trailers are bound to this nonce. [`NO_SESSION`] if the job has no
    /// key.
    nonce: u64,
    /// Highest counter in the member's trailers so far.
    counter: u64,
    /// Key for the tags of the member's contributions, if data is tagged.
    data_key: Option<TagKey>,
}

impl Session {
    /// Session of a member without authentication.
    pub(crate) const NONE: Self = Self { nonce: NO_SESSION, counter: 0, data_key: None };

    pub(crate) fn new(nonce: u64, counter: u64, data_key: Option<TagKey>) -> Self {
        Self { nonce, counter, data_key }
    }

    pub(crate) fn nonce(&self) -> u64 {
        self.nonce
    }

    pub(crate) fn data_key(&self) -> Option<TagKey> {
        self.data_key
    }

    /// Records the counter of a trailer. Returns false if the counter is not greater than all earlier counters
    /// (requirement A-4).
    pub(crate) fn advance(&mut self, counter: u64) -> bool {
        let rises = counter > self.counter;
        self.counter = self.counter.max(counter);
        rises
    }
}

/// Accepted contributions of a member.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// Number of accepted segments.
    pub(crate) segments: u64,
    /// Round of the last accepted contribution, or, in an asynchronous job, the number of the vector to which it
    /// belongs.
    pub(crate) round: Option<Round>,
    /// Arrival time of the last accepted contribution.
    pub(crate) at: Instant,
}

impl Member {
    /// Returns whether the member awaits the sum that other members supply in `round`.
    pub(crate) fn awaits(&self, round: Round) -> bool {
        self.start.standing == Standing::Awaits && self.start.round == round
    }

    /// Returns whether the switch has asked the member to show that it still uses this switch, and the member has not
    /// answered yet.
    pub(crate) fn is_asked(&self) -> bool {
        self.presence == Presence::Asked
    }

    /// Returns the port and the address of the switch from which the group of the job can reach the member, if any.
    pub(crate) fn outlet(&self) -> Option<(PortId, Ipv4Addr)> {
        Some((self.reception.port()?, *self.endpoint.local.ip()))
    }

    /// Records `segments` contributions that were accepted together; the last of them was for `round`.
    pub(crate) fn note_progress(&mut self, segments: u64, round: Option<Round>, now: Instant) {
        if segments > 0 {
            let segments = self.progress.segments + segments;
            self.progress = Progress { segments, round, at: now };
        }
    }
}

/// The members of a job.
#[derive(Debug)]
pub(crate) struct Members {
    table: [Option<Member>; MAX_MEMBERS],
    /// The ids in use.
    present: MemberSet,
    /// Whether one of the members is or was a switch. If so, packets from that switch's members may still be in flight.
    had_switches: bool,
    /// Whether one of the members is or was a worker that can move to another switch.
    had_roaming_workers: bool,
    /// Members that have not yet shown that they know that the job is complete; see [`Self::is_confirmed`].
    unconfirmed: MemberSet,
    names: Names,
}

impl Members {
    pub(super) fn new() -> Self {
        Self {
            table: [None; MAX_MEMBERS],
            present: MemberSet::EMPTY,
            had_switches: false,
            had_roaming_workers: false,
            unconfirmed: MemberSet::EMPTY,
            names: Names::new(),
        }
    }

    pub(crate) fn get(&self, id: MemberId) -> Option<&Member> {
        self.table[id.get()].as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: MemberId) -> Option<&mut Member> {
        self.table[id.get()].as_mut()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (MemberId, &Member)> {
        let members = self.table.iter().enumerate();
        members.filter_map(|(id, member)| Some((MemberId::new(id), member.as_ref()?)))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (MemberId, &mut Member)> {
        let members = self.table.iter_mut().enumerate();
        members.filter_map(|(id, member)| Some((MemberId::new(id), member.as_mut()?)))
    }

    /// Returns the endpoints of those members that are in a set.
    pub(crate) fn endpoints(&self, among: MemberSet) -> impl Iterator<Item = &Endpoint> {
        among.iter().filter_map(|id| self.get(id)).map(|member| &member.endpoint)
    }

    /// Returns the ids in use.
    pub(crate) fn present(&self) -> MemberSet {
        self.present
    }

    pub(crate) fn count(&self) -> u16 {
        self.present.len()
    }

    /// Returns the number of workers that the members represent in total.
    pub(crate) fn weight(&self) -> u32 {
        self.iter().map(|(_, member)| u32::from(member.weight)).sum()
    }

    /// Returns whether one of the members is or was a worker that can move to another switch.
    pub(super) fn had_roaming_workers(&self) -> bool {
        self.had_roaming_workers
    }

    /// Returns whether all members have shown that they were using this switch when the last of them joined.
    pub(super) fn are_shown(&self) -> bool {
        self.iter().all(|(_, member)| member.presence == Presence::Shown)
    }

    /// Requires each present member to show that it knows that the job is complete.
    pub(super) fn expect_confirmations(&mut self) {
        self.unconfirmed = self.present;
    }

    /// Returns whether the job may sum vectors. In a job that roams, each worker must first have shown that it knows
    /// that the job is complete (M-14).
    #[inline]
    pub(crate) fn is_confirmed(&self) -> bool {
        self.unconfirmed.is_empty()
    }

    /// Records that a member has sent a packet that it sends only if it knows that the job is complete.
    #[inline]
    pub(crate) fn confirm(&mut self, id: MemberId) {
        self.unconfirmed = self.unconfirmed.without(id);
    }

    /// Returns whether a member has shown that it knows that the job is complete, or need not show it.
    pub(super) fn has_confirmed(&self, id: MemberId) -> bool {
        !self.unconfirmed.contains(id)
    }

    /// Returns whether any member can move to another switch, or has a switch below it that can.
    pub(crate) fn roam(&self) -> bool {
        self.iter().any(|(_, member)| member.roams)
    }

    /// Returns the maximum number of switch levels up to and including a member.
    pub(crate) fn height(&self) -> u8 {
        self.iter().map(|(_, member)| member.height).max().unwrap_or(0)
    }

    /// Returns whether one of the members is or was a switch.
    pub(super) fn had_switches(&self) -> bool {
        self.had_switches
    }

    /// Returns the address of a worker from which the state of the learner can be fetched: the worker, other than `id`,
    /// that has been a member for the longest time. Returns `None` if there is no such worker.
    pub(crate) fn peer_of(&self, id: Option<MemberId>) -> Option<SocketAddrV4> {
        let others = self.iter().filter(|(other, member)| Some(*other) != id && member.kind == Kind::Worker);
        others.min_by_key(|(_, member)| member.admitted).map(|(_, member)| member.endpoint.peer)
    }

    /// Returns the resume states of the returning members, which already belonged to an earlier incarnation of the job.
    pub(super) fn returning(&self) -> impl Iterator<Item = &ResumeRepr> {
        self.iter().filter_map(|(_, member)| member.resume.as_ref())
    }

    /// Returns the resume states of the members that hold sums, that is, the resume states that are not marked as
    /// fresh.
    pub(super) fn resuming(&self) -> impl Iterator<Item = &ResumeRepr> {
        self.returning().filter(|resume| !resume.fresh)
    }

    /// Returns whether a member would take part in `round` if it opened now.
    pub(super) fn would_take_part(&self, id: MemberId, round: Round) -> bool {
        self.get(id).is_some_and(|member| !round.is_before(member.start.round))
    }

    /// Returns the members that would take part in `round` if it opened now.
    pub(super) fn starting_by(&self, round: Round) -> MemberSet {
        self.iter().filter(|(_, member)| !round.is_before(member.start.round)).map(|(id, _)| id).collect()
    }

    /// Postpones to `round` the start of any member that would otherwise start earlier.
    pub(super) fn start_no_earlier_than(&mut self, round: Round) {
        for (_, member) in self.iter_mut().filter(|(_, member)| member.start.round.is_before(round)) {
            member.start.round = round;
        }
    }

    pub(super) fn insert(&mut self, id: MemberId, member: Member) {
        self.had_switches |= member.kind == Kind::Switch;
        self.had_roaming_workers |= member.kind == Kind::Worker && member.roams;
        self.table[id.get()] = Some(member);
        self.names.admit(id);
        self.present = self.present.with(id);
    }

    pub(super) fn remove(&mut self, id: MemberId) -> Option<Member> {
        let member = self.table[id.get()].take()?;
        self.present = self.present.without(id);
        self.unconfirmed = self.unconfirmed.without(id);
        self.names.depart(id);
        Some(member)
    }

    /// Returns the names of the job and of a member, which may just have departed. If `member` is `None`, returns only
    /// the names of the job.
    pub(crate) fn names_of(&self, member: Option<MemberId>) -> NameRepr {
        self.names.of(member)
    }

    /// Records the names that a member has stated. Returns whether the member has not stated any names before.
    pub(crate) fn state_name(&mut self, id: MemberId, name: &NameRepr) -> bool {
        self.names.state(id, name)
    }
}

/// Addresses of members that began a job before the members that hold its sums returned. The sums of these members are
/// ignored when the next incarnation of the job is completed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dismissed([Option<SocketAddrV4>; MAX_MEMBERS]);

impl Default for Dismissed {
    fn default() -> Self {
        Self([None; MAX_MEMBERS])
    }
}

impl Dismissed {
    /// Collects the addresses of the members of an incarnation that is ending.
    pub(crate) fn of(members: &Members) -> Self {
        let mut dismissed = Self::default();
        for (id, member) in members.iter() {
            dismissed.0[id.get()] = Some(member.endpoint.peer);
        }
        dismissed
    }

    pub(super) fn contains(&self, address: SocketAddrV4) -> bool {
        self.0.contains(&Some(address))
    }
}
