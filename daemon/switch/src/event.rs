//! Events of the switch, which the driver logs and which tests check.

use core::fmt;
use core::net::SocketAddrV4;

use iswitch_protocol::Round;
use iswitch_protocol::limits::MAX_PENDING_EVENTS;
use iswitch_protocol::wire::{Exceeded, NameRepr, Status};

use crate::refused::Refused;
use crate::ring::Ring;

/// An event of interest to an operator. Individual packets are counted, not reported as events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Event {
    /// The first Join to a job created the job.
    JobCreated {
        /// The job's number.
        job: u32,
        /// Number of floats in the job's vector.
        gradient_len: u32,
        /// Number of workers that the job waits for; zero if it does not wait.
        workers: u16,
    },
    /// The last member of a job has left, and the memory of the job has been freed.
    JobEnded {
        /// The job's number.
        job: u32,
    },
    /// All declared workers have joined the job.
    JobFormed {
        /// The job's number.
        job: u32,
        /// Number of members.
        members: u16,
    },
    /// Members from an earlier run of the switch have rejoined, and the job continues.
    JobResumed {
        /// The job's number.
        job: u32,
        /// Number of members.
        members: u16,
        /// Round from which the job continues.
        round: Round,
    },
    /// A parent no longer answers. Until it answers again, no sums are delivered.
    ParentLost {
        /// The job's number.
        job: u32,
        /// Address of the parent.
        parent: SocketAddrV4,
    },
    /// A parent that had stopped answering answers again.
    ParentFound {
        /// The job's number.
        job: u32,
        /// Address of the parent.
        parent: SocketAddrV4,
    },
    /// The switch changed from one of its parents to the next.
    ParentChosen {
        /// The job's number.
        job: u32,
        /// Address of the parent.
        parent: SocketAddrV4,
    },
    /// The parent refused the Join of this switch.
    ParentRefused {
        /// The job's number.
        job: u32,
        /// Address of the parent.
        parent: SocketAddrV4,
        /// Reason for the refusal.
        status: Status,
        /// Expected value, see [`Status`].
        expected: u32,
        /// Limit of the parent that the Join would exceed, if the parent names it.
        exceeded: Option<Exceeded>,
    },
    /// The parent no longer knows this switch, so the switch's own members must rejoin.
    JobForgotten {
        /// The job's number.
        job: u32,
    },
    /// In a job whose workers have several switches to choose from, a worker was lost, or a worker joined in place of
    /// one that had left. All members must rejoin; the job continues once all its workers have done so (M-14).
    JobInterrupted {
        /// The job's number.
        job: u32,
    },
    /// A job without declared workers had started without the members that hold its sums, and one of these members
    /// has returned. All members must rejoin.
    GaveWay {
        /// The job's number.
        job: u32,
    },
    /// A member was admitted.
    Joined {
        /// The job's number.
        job: u32,
        /// Id of the member.
        member: u16,
        /// Address of the member.
        address: SocketAddrV4,
        /// First round in which the member takes part.
        round: Round,
    },
    /// A member has stated its names for the first time since it was admitted.
    Named {
        /// The job's number.
        job: u32,
        /// Id of the member.
        member: u16,
        /// Address of the member.
        address: SocketAddrV4,
    },
    /// A Join was refused.
    JoinRefused {
        /// Number of the requested job.
        job: u32,
        /// Address of the sender.
        address: SocketAddrV4,
        /// Reason for the refusal.
        status: Status,
        /// Expected value, see [`Status`].
        expected: u32,
        /// Limit of the switch that the Join would exceed, if that is the reason.
        exceeded: Option<Exceeded>,
    },
    /// A member left or was removed.
    Left {
        /// The job's number.
        job: u32,
        /// Id of the member.
        member: u16,
        /// Address of the member.
        address: SocketAddrV4,
        /// Reason for the departure.
        why: Departure,
    },
    /// A round has waited for a member for longer than [`Config::slow_ms`](crate::Config::slow_ms), although other
    /// members have contributed everything that the round can accept. The event is not repeated until
    /// [`Self::Recovered`] has been reported.
    Slow {
        /// The job's number.
        job: u32,
        /// Id of the member.
        member: u16,
        /// Address of the member.
        address: SocketAddrV4,
        /// Number of the round.
        round: Round,
        /// Time since the first contribution to the round, in milliseconds.
        waited_ms: u64,
        /// Number of segments to which other members have contributed but this member has not.
        missing_segments: u32,
        /// Number of segments in the vector.
        segments: u32,
    },
    /// Rounds no longer wait for a member that was reported as slow.
    Recovered {
        /// The job's number.
        job: u32,
        /// Id of the member.
        member: u16,
        /// Address of the member.
        address: SocketAddrV4,
    },
    /// A member has confirmed that packets to its job's group reach it. From now on, it receives results through the
    /// group.
    GroupHeard {
        /// The job's number.
        job: u32,
        /// Id of the member.
        member: u16,
        /// Address of the member.
        address: SocketAddrV4,
    },
    /// The group of the job no longer reaches a member, which receives results by unicast until it confirms the group
    /// again.
    GroupLost {
        /// The job's number.
        job: u32,
        /// Id of the member.
        member: u16,
        /// Address of the member.
        address: SocketAddrV4,
    },
    /// SetH changed the threshold H, with effect from the next round.
    ThresholdSet {
        /// The job's number.
        job: u32,
        /// The threshold; zero means that H follows the number of members.
        threshold: u16,
    },
    /// A Reset cleared the job, and its members must rejoin.
    Reset {
        /// The job's number.
        job: u32,
    },
    /// A Halt suspended the job.
    Halted {
        /// The job's number.
        job: u32,
    },
    /// Two members reported different digests of their weights after the same round.
    Diverged {
        /// The job's number.
        job: u32,
        /// Number of the round.
        round: Round,
        /// Id of the member whose digest differs from the first one that was reported.
        member: u16,
        /// Id of the member that was first to report a digest of that round.
        other: u16,
    },
    /// The event queue overflowed.
    EventsLost {
        /// Number of consecutive events that were lost.
        count: u32,
    },
}

/// Reason why a member is no longer part of its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Departure {
    /// The member sent a Leave.
    Leave,
    /// The lease of the member expired.
    Silent,
    /// Another process joined from the member's address, or the same process joined on another port.
    Restarted,
    /// The switch dismissed all members of the job so that they rejoin, because its parent had forgotten it, or because
    /// the job was reset, was interrupted, or gave way to members that hold its sums.
    Forgotten,
    /// The operator removed the member.
    Expelled,
}

impl Departure {
    /// Returns the end of the sentence that reports the departure.
    const fn text(self) -> &'static str {
        match self {
            Self::Leave => "left",
            Self::Silent => "expelled because its lease expired",
            Self::Expelled => "expelled by the operator",
            Self::Forgotten => "must rejoin",
            Self::Restarted => "replaced by a process that joined from the same address",
        }
    }
}

impl Event {
    /// Returns the name of the event in structured records, one of [`Self::names`].
    pub fn name(&self) -> &'static str {
        self.into()
    }

    /// Returns the names of all events.
    pub fn names() -> &'static [&'static str] {
        <Self as strum::VariantNames>::VARIANTS
    }

    /// Returns the job that the event concerns, or `None` for [`Self::EventsLost`].
    pub const fn job(&self) -> Option<u32> {
        match self {
            Self::JobCreated { job, .. }
            | Self::JobEnded { job }
            | Self::JobFormed { job, .. }
            | Self::JobResumed { job, .. }
            | Self::ParentLost { job, .. }
            | Self::ParentFound { job, .. }
            | Self::ParentChosen { job, .. }
            | Self::ParentRefused { job, .. }
            | Self::JobForgotten { job }
            | Self::JobInterrupted { job }
            | Self::GaveWay { job }
            | Self::Joined { job, .. }
            | Self::Named { job, .. }
            | Self::JoinRefused { job, .. }
            | Self::Left { job, .. }
            | Self::Slow { job, .. }
            | Self::Recovered { job, .. }
            | Self::GroupHeard { job, .. }
            | Self::GroupLost { job, .. }
            | Self::ThresholdSet { job, .. }
            | Self::Reset { job }
            | Self::Halted { job }
            | Self::Diverged { job, .. } => Some(*job),
            Self::EventsLost { .. } => None,
        }
    }

    /// Returns the member that the event concerns, if any.
    pub const fn member(&self) -> Option<u16> {
        match self {
            Self::Joined { member, .. }
            | Self::Named { member, .. }
            | Self::Left { member, .. }
            | Self::Slow { member, .. }
            | Self::Recovered { member, .. }
            | Self::GroupHeard { member, .. }
            | Self::GroupLost { member, .. }
            | Self::Diverged { member, .. } => Some(*member),
            _ => None,
        }
    }

    /// Returns the round that the event concerns, if any.
    pub const fn round(&self) -> Option<Round> {
        match self {
            Self::JobResumed { round, .. }
            | Self::Joined { round, .. }
            | Self::Slow { round, .. }
            | Self::Diverged { round, .. } => Some(*round),
            _ => None,
        }
    }

    /// Returns the address of the member, sender or parent that the event concerns, if any.
    pub const fn address(&self) -> Option<SocketAddrV4> {
        match self {
            Self::Joined { address, .. }
            | Self::Named { address, .. }
            | Self::JoinRefused { address, .. }
            | Self::Left { address, .. }
            | Self::Slow { address, .. }
            | Self::Recovered { address, .. }
            | Self::GroupHeard { address, .. }
            | Self::GroupLost { address, .. } => Some(*address),
            Self::ParentLost { parent, .. }
            | Self::ParentFound { parent, .. }
            | Self::ParentChosen { parent, .. }
            | Self::ParentRefused { parent, .. } => Some(*parent),
            _ => None,
        }
    }

    /// Returns the limit that caused this switch to refuse a Join, or the parent to refuse this switch. Returns `None`
    /// for all other events.
    pub const fn exceeded(&self) -> Option<Exceeded> {
        match self {
            Self::JoinRefused { exceeded, .. } | Self::ParentRefused { exceeded, .. } => *exceeded,
            _ => None,
        }
    }

    /// Returns the reason why a member departed, or the status with which a Join was refused, if the event has one.
    pub fn reason(&self) -> Option<&'static str> {
        match self {
            Self::Left { why, .. } => Some(why.into()),
            Self::JoinRefused { status, .. } | Self::ParentRefused { status, .. } => Some(status.name()),
            _ => None,
        }
    }

    /// Returns the reason why all members of a job must rejoin.
    const fn cause_of_rejoining(&self) -> &'static str {
        match self {
            Self::GaveWay { .. } => "a worker that holds earlier sums has joined",
            Self::JobInterrupted { .. } => "a worker was lost or replaced",
            _ => "the parent no longer knows this switch",
        }
    }

    /// Returns whether the event indicates a stalled job or diverged replicas. If so, the driver dumps the flight
    /// recorder.
    pub const fn is_stall(&self) -> bool {
        matches!(
            self,
            Self::Slow { .. }
                | Self::Left { why: Departure::Silent, .. }
                | Self::ParentLost { .. }
                | Self::JobForgotten { .. }
                | Self::JobInterrupted { .. }
                | Self::Diverged { .. }
        )
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Report { event: *self, name: NameRepr::UNKNOWN }.fmt(f)
    }
}

/// An event, with the names of the job and of the member that it concerns, as they were when it occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// The event.
    pub event: Event,
    /// Names of the job and of the member. Unknown names are empty.
    pub name: NameRepr,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { event, name } = self;
        let job = JobText(event.job().unwrap_or_default(), name);
        let text = |address| MemberText(event.member().unwrap_or_default(), name, address);
        let (member, member_at) = (text(None), text(event.address()));
        match event {
            Event::JobCreated { gradient_len, workers, .. } => {
                write!(f, "job {job} created: {gradient_len} floats, {workers} workers")
            }
            Event::JobEnded { .. } => write!(f, "job {job} ended"),
            Event::JobFormed { members, .. } => write!(f, "job {job} complete: {members} members"),
            Event::JobResumed { members, round, .. } => {
                write!(f, "job {job} resumed at round {round}: {members} members")
            }
            Event::ParentLost { parent, .. } => write!(f, "job {job}: the parent {parent} does not answer"),
            Event::ParentFound { parent, .. } => write!(f, "job {job}: the parent {parent} answers again"),
            Event::ParentChosen { parent, .. } => write!(f, "job {job}: trying the parent {parent}"),
            Event::ParentRefused { parent, status, expected, exceeded, .. } => {
                let refused = Refused { status: *status, expected: *expected, exceeded: *exceeded };
                write!(f, "job {job}: refused by the parent {parent}: {refused}")
            }
            Event::GaveWay { .. } | Event::JobForgotten { .. } | Event::JobInterrupted { .. } => {
                write!(f, "job {job}: {}; all members must rejoin", event.cause_of_rejoining())
            }
            Event::Joined { address, round, .. } => {
                write!(f, "member {member} of job {job} joined from {address} at round {round}")
            }
            Event::Named { address, .. } => {
                write!(f, "member {member} of job {job} at {address} has stated its name")
            }
            Event::JoinRefused { address, status, expected, exceeded, .. } => {
                let refused = Refused { status: *status, expected: *expected, exceeded: *exceeded };
                write!(f, "Join from {address} to job {job} refused: {refused}")
            }
            Event::Left { address, why, .. } => {
                write!(f, "member {member} of job {job} at {address} {}", why.text())
            }
            Event::Slow { round, waited_ms, missing_segments, segments, .. } => {
                let seconds = *waited_ms as f64 / 1000.0;
                write!(f, "round {round} of job {job} has been waiting for member {member_at} ")?;
                write!(f, "for {seconds:.1} s: {missing_segments} of {segments} segments missing")
            }
            Event::Recovered { .. } => {
                write!(f, "rounds of job {job} no longer wait for member {member_at}")
            }
            Event::GroupHeard { address, .. } => {
                write!(f, "member {member} of job {job} ({address}) receives results by multicast")
            }
            Event::GroupLost { address, .. } => {
                write!(f, "member {member} of job {job} ({address}) receives results by unicast")
            }
            Event::ThresholdSet { threshold: 0, .. } => {
                write!(f, "threshold H of job {job} follows the number of members")
            }
            Event::ThresholdSet { threshold, .. } => write!(f, "threshold H of job {job} set to {threshold}"),
            Event::Reset { .. } => write!(f, "job {job} reset; all members must rejoin"),
            Event::Halted { .. } => write!(f, "job {job} halted"),
            Event::Diverged { round, other, .. } => write!(
                f,
                "job {job}: members {member} and {other} have different weights after round {round}"
            ),
            Event::EventsLost { count } => write!(f, "{count} events were not recorded"),
        }
    }
}

/// A job in a sentence: its number, and its name in parentheses if it has one.
struct JobText<'a>(u32, &'a NameRepr);

impl fmt::Display for JobText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(job, name) = self;
        write!(f, "{job}")?;
        if name.job.is_empty() { Ok(()) } else { write!(f, " ({})", name.job) }
    }
}

/// A member in a sentence: its id, followed in parentheses by its rank, its host name and its address, each if it is
/// known.
struct MemberText<'a>(u16, &'a NameRepr, Option<SocketAddrV4>);

impl fmt::Display for MemberText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(member, name, address) = self;
        write!(f, "{member}")?;
        let mut separator = " (";
        if let Some(rank) = name.rank {
            write!(f, "{separator}rank {rank}")?;
            separator = " ";
        }
        if !name.host.is_empty() {
            write!(f, "{separator}on {}", name.host)?;
            separator = " ";
        }
        if let Some(address) = address {
            let comma = if separator == " (" { separator } else { ", " };
            write!(f, "{comma}{address}")?;
            separator = ", ";
        }
        if separator == " (" { Ok(()) } else { f.write_str(")") }
    }
}

/// Queue of events that wait to be logged. If the queue is full, further events are only counted.
#[derive(Debug)]
pub(crate) struct EventQueue {
    events: Ring<Report>,
    lost: u32,
}

impl EventQueue {
    pub(crate) fn new() -> Self {
        Self { events: Ring::with_capacity(MAX_PENDING_EVENTS), lost: 0 }
    }

    pub(crate) fn push(&mut self, report: Report) {
        if self.events.push(report).is_err() {
            self.lost += 1;
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Report> {
        self.events.pop().or_else(|| {
            let count = core::mem::take(&mut self.lost);
            let event = Event::EventsLost { count };
            (count > 0).then_some(Report { event, name: NameRepr::UNKNOWN })
        })
    }
}
