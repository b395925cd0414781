//! The membership table of a job (figure 9 of the paper).

use core::net::SocketAddrV4;

use iswitch_protocol::auth::{NO_SESSION, TagKey};
use iswitch_protocol::limits::MAX_MEMBERS;
use iswitch_protocol::wire::{Kind, ResumeRepr, Standing};
use iswitch_protocol::{Instant, Round};

use crate::budget::RepeatBudget;
use crate::endpoint::Endpoint;
use crate::ids::{MemberId, MemberSet};

/// One member of a job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) endpoint: Endpoint,
    pub(crate) kind: Kind,
    /// Number of workers that the member represents.
    pub(crate) weight: u16,
    /// Levels of switches below and including the member.
    pub(crate) height: u8,
    /// Whether the member, or a switch below it, may change to another parent.
    pub(crate) roams: bool,
    /// Distinguishes a restarted process from a repeated Join.
    pub(crate) instance: u32,
    /// Position of the member in ordered sums.
    pub(crate) rank: u16,
    /// Request id of the Join, which the notice that the job is complete repeats.
    pub(crate) join_request: u32,
    /// The sums that the member had before it joined, if any.
    pub(crate) resume: Option<ResumeRepr>,
    pub(crate) start: Start,
    pub(crate) admitted: Instant,
    pub(crate) last_heard: Instant,
    pub(crate) session: Session,
    /// The latest round that was reported to wait for this member; cleared when a later round has finished in time.
    pub(crate) held_up: Option<Round>,
    /// Budget for repeated results.
    pub(crate) repeats: RepeatBudget,
    /// Contributions since the member was admitted.
    pub(crate) progress: Progress,
}

/// Where a member begins or continues: what the Ack of its Join states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) standing: Standing,
    /// The first round that the member takes part in.
    pub(crate) round: Round,
    /// The history before that round.
    pub(crate) history: u64,
}

/// The authenticated session of a member in a job with a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Session {
    /// The nonce that the member was admitted with, to which its trailers are bound; [`NO_SESSION`] without a key.
    nonce: u64,
    /// The highest counter in the member's trailers.
    counter: u64,
    /// Key of the tags of the member's contributions, if data is tagged.
    data_key: Option<TagKey>,
}

impl Session {
    /// The session of a member that has proved nothing.
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

    /// Records the counter of a trailer. Returns false if the counter is not above the last one (requirement A-4).
    pub(crate) fn advance(&mut self, counter: u64) -> bool {
        let rises = counter > self.counter;
        self.counter = self.counter.max(counter);
        rises
    }
}

/// Contributions of a member that were accepted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// Number of segments.
    pub(crate) segments: u64,
    /// Round of the last one, or in an asynchronous job the number of its vector.
    pub(crate) round: Option<Round>,
    /// Arrival of the last one.
    pub(crate) at: Instant,
}

impl Member {
    /// Whether the member lacks a sum that others supply in that round.
    pub(crate) fn awaits(&self, round: Round) -> bool {
        self.start.standing == Standing::Awaits && self.start.round == round
    }

    /// Records contributions that were accepted at once, the last of them to `round`.
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
    /// Whether a switch is or was among them: packets of the members below it may still be in flight.
    had_switches: bool,
}

impl Members {
    pub(super) fn new() -> Self {
        Self { table: [None; MAX_MEMBERS], present: MemberSet::EMPTY, had_switches: false }
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

    pub(crate) fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.table.iter().flatten().map(|member| &member.endpoint)
    }

    /// The ids in use.
    pub(crate) fn present(&self) -> MemberSet {
        self.present
    }

    pub(crate) fn count(&self) -> u16 {
        self.present.len()
    }

    /// Number of workers that all members represent.
    pub(crate) fn weight(&self) -> u32 {
        self.iter().map(|(_, member)| u32::from(member.weight)).sum()
    }

    /// Whether a switch among them may change to another parent.
    pub(crate) fn roam(&self) -> bool {
        self.iter().any(|(_, member)| member.roams)
    }

    /// Levels of switches among and below them.
    pub(crate) fn height(&self) -> u8 {
        self.iter().map(|(_, member)| member.height).max().unwrap_or(0)
    }

    /// Whether a switch is or was among them.
    pub(super) fn had_switches(&self) -> bool {
        self.had_switches
    }

    /// A worker that may be asked for the state of its learner: the longest-standing one, but not `id` itself.
    pub(crate) fn peer_of(&self, id: Option<MemberId>) -> Option<SocketAddrV4> {
        let others = self.iter().filter(|(other, member)| Some(*other) != id && member.kind == Kind::Worker);
        others.min_by_key(|(_, member)| member.admitted).map(|(_, member)| member.endpoint.peer)
    }

    /// What the members that had been members before state of their sums.
    pub(super) fn returning(&self) -> impl Iterator<Item = &ResumeRepr> {
        self.iter().filter_map(|(_, member)| member.resume.as_ref())
    }

    /// The same of the members that hold sums and do not only know of some.
    pub(super) fn resuming(&self) -> impl Iterator<Item = &ResumeRepr> {
        self.returning().filter(|resume| !resume.fresh)
    }

    /// Whether a member would take part in a round that opened now.
    pub(super) fn would_take_part(&self, id: MemberId, round: Round) -> bool {
        self.get(id).is_some_and(|member| !round.is_before(member.start.round))
    }

    /// The members that would take part in a round that opened now.
    pub(super) fn starting_by(&self, round: Round) -> MemberSet {
        self.iter().filter(|(_, member)| !round.is_before(member.start.round)).map(|(id, _)| id).collect()
    }

    /// Moves starts before `round` up to it.
    pub(super) fn start_no_earlier_than(&mut self, round: Round) {
        for (_, member) in self.iter_mut().filter(|(_, member)| member.start.round.is_before(round)) {
            member.start.round = round;
        }
    }

    pub(super) fn insert(&mut self, id: MemberId, member: Member) {
        self.had_switches |= member.kind == Kind::Switch;
        self.table[id.get()] = Some(member);
        self.present = self.present.with(id);
    }

    pub(super) fn remove(&mut self, id: MemberId) -> Option<Member> {
        let member = self.table[id.get()].take()?;
        self.present = self.present.without(id);
        Some(member)
    }
}

/// Addresses of members that began a job before the holders of its sums came back. The sums of these members do not
/// count when the next incarnation is completed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dismissed([Option<SocketAddrV4>; MAX_MEMBERS]);

impl Default for Dismissed {
    fn default() -> Self {
        Self([None; MAX_MEMBERS])
    }
}

impl Dismissed {
    /// The members of the incarnation that ends.
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
