//! A job as an operator sees it.

use core::net::SocketAddrV4;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use iswitch_protocol::wire::{Kind, Mode};
use iswitch_protocol::{Instant, Round};

use crate::job::{Job, Member, Slot};
use crate::uplink::Uplink;
use crate::waiting::Waiting;

/// A job as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct JobStatus {
    /// The job's id.
    pub job: u32,
    /// Floats in its vector.
    pub gradient_len: u32,
    /// Floats in each segment but the last.
    pub segment_floats: u16,
    /// The run of the topmost switch, which the numbers of its rounds belong to.
    pub boot: u64,
    /// `synchronous` or `asynchronous`.
    pub mode: &'static str,
    /// Workers that it was declared with, zero if it waits for none.
    pub workers: u16,
    /// Whether they have all joined.
    pub formed: bool,
    /// Whether it has a key, without which no packet changes it.
    pub authenticated: bool,
    /// Whether its data packets are tagged as well.
    pub tagged: bool,
    /// The threshold H of the next round.
    pub threshold: u16,
    /// Whether H was set by SetH.
    pub threshold_pinned: bool,
    /// Whether the job is suspended.
    pub halted: bool,
    /// The latest round, if any has begun.
    pub round: Option<u32>,
    /// The switch above this one, if the job goes up to one.
    pub parent: Option<SocketAddrV4>,
    /// How long that has been silent, in milliseconds, if it is being asked.
    pub parent_silent_ms: Option<u64>,
    /// Whether it does not answer: there are no sums until it does.
    pub parent_lost: bool,
    /// Why it does not let this switch join, if it does not.
    pub parent_refusal: Option<String>,
    /// Digests of the weights that differed from another member's.
    pub diverged: u64,
    /// Its members.
    pub members: Vec<MemberStatus>,
    /// The members that the oldest unfinished round waits for, if it waits for any.
    pub waiting: Option<WaitingStatus>,
}

/// A round that waits for members.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct WaitingStatus {
    /// The round.
    pub round: u32,
    /// Time since its first contribution, in milliseconds.
    pub waited_ms: u64,
    /// Segments of the vector.
    pub segments: u32,
    /// The members that it waits for.
    pub members: Vec<AwaitedStatus>,
}

/// A member that a round waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct AwaitedStatus {
    /// The member's id.
    pub member: u16,
    /// Its address.
    pub address: SocketAddrV4,
    /// Segments to which others have contributed and this member has not.
    pub missing_segments: u32,
}

/// A member as it is (figure 9 of the paper).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct MemberStatus {
    /// The member's id.
    pub id: u16,
    /// Its address.
    pub address: SocketAddrV4,
    /// `worker` or `switch`.
    pub kind: &'static str,
    /// The first round it takes part in.
    pub start_round: u32,
    /// How long it has been silent, in milliseconds.
    pub silent_ms: u64,
    /// Segments that it has contributed since it joined.
    pub contributions: u64,
    /// Round of the last of these, or in an asynchronous job the number of its vector; none if there are none.
    pub last_round: Option<u32>,
    /// How long ago that was, in milliseconds.
    pub idle_ms: Option<u64>,
}

impl JobStatus {
    pub(crate) fn of(job: &Job, slots: &[Slot], uplink: Option<&Uplink>, now: Instant) -> Self {
        let members = job.members().iter();
        let members = members.map(|(id, member)| MemberStatus::of(id.to_wire(), member, now));
        Self {
            job: job.id(),
            gradient_len: job.layout().gradient_len(),
            segment_floats: job.layout().segment_floats(),
            boot: job.epoch(),
            mode: match job.rounds().mode() {
                Mode::Synchronous => "synchronous",
                Mode::Asynchronous => "asynchronous",
            },
            workers: job.workers(),
            formed: job.is_formed(),
            authenticated: job.has_key(),
            tagged: job.is_tagged(),
            threshold: job.threshold(),
            threshold_pinned: job.pinned_threshold().is_some(),
            halted: job.is_halted(),
            round: job.rounds().numbers().newest().map(Round::get),
            parent: uplink.map(|uplink| uplink.parent().peer),
            parent_silent_ms: uplink
                .filter(|uplink| uplink.is_in_use())
                .map(|uplink| uplink.silence(now).as_millis() as u64),
            parent_lost: uplink.is_some_and(Uplink::is_lost),
            parent_refusal: uplink
                .and_then(Uplink::refusal)
                .map(|(status, expected)| format!("{} (expected {expected})", status.name())),
            diverged: job.digests().diverged(),
            members: members.collect(),
            waiting: Waiting::of(job, slots).map(|waiting| WaitingStatus::of(&waiting, job, now)),
        }
    }
}

impl MemberStatus {
    fn of(id: u16, member: &Member, now: Instant) -> Self {
        let progress = &member.progress;
        Self {
            id,
            address: member.endpoint.peer,
            kind: match member.kind {
                Kind::Worker => "worker",
                Kind::Switch => "switch",
            },
            start_round: member.start.round.get(),
            silent_ms: now.since(member.last_heard).as_millis() as u64,
            contributions: progress.segments,
            last_round: progress.round.map(Round::get),
            idle_ms: progress.round.map(|_| now.since(progress.at).as_millis() as u64),
        }
    }
}

impl WaitingStatus {
    fn of(waiting: &Waiting<'_>, job: &Job, now: Instant) -> Self {
        let missing = waiting.missing_segments();
        let awaited = job.members().iter().filter(|(id, _)| waiting.is_for(*id));
        let members = awaited.map(|(id, member)| AwaitedStatus {
            member: id.to_wire(),
            address: member.endpoint.peer,
            missing_segments: missing[id.get()],
        });
        Self {
            round: waiting.open.round.get(),
            waited_ms: waiting.waited_ms(now),
            segments: waiting.segments(),
            members: members.collect(),
        }
    }
}
