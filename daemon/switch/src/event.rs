//! Events of the switch, which the driver logs and which tests check.

use core::fmt;
use core::net::SocketAddrV4;

use iswitch_protocol::Round;
use iswitch_protocol::limits::MAX_PENDING_EVENTS;
use iswitch_protocol::wire::{Exceeded, Status};

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
        /// Number of segments to which other members have contributed and this member has not.
        missing_segments: u32,
        /// Number of segments in the vector.
        segments: u32,
    },
    /// Rounds no longer have to wait for a member that was reported as slow.
    Recovered {
        /// The job's number.
        job: u32,
        /// Id of the member.
        member: u16,
        /// Address of the member.
        address: SocketAddrV4,
    },
    /// A member has confirmed that it hears the group of its job, and receives results through it.
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
    /// The switch dismissed its members so that they rejoin: its parent has forgotten it, the job was reset, or the
    /// job gave way to members that hold its sums.
    Forgotten,
    /// The operator removed the member.
    Expelled,
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
            | Self::GaveWay { job }
            | Self::Joined { job, .. }
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

    /// If this switch refused a Join, or its parent refused this switch, because of a limit, returns that limit.
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

    /// Returns whether the event indicates a stalled job or diverged replicas, so that the driver dumps the flight
    /// recorder.
    pub const fn is_stall(&self) -> bool {
        matches!(
            self,
            Self::Slow { .. }
                | Self::Left { why: Departure::Silent, .. }
                | Self::ParentLost { .. }
                | Self::JobForgotten { .. }
                | Self::Diverged { .. }
        )
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::JobCreated { job, gradient_len, workers } => {
                write!(f, "job {job} created: {gradient_len} floats, {workers} workers")
            }
            Self::JobEnded { job } => write!(f, "job {job} ended"),
            Self::JobFormed { job, members } => write!(f, "job {job} complete: {members} members"),
            Self::JobResumed { job, members, round } => {
                write!(f, "job {job} resumed at round {round}: {members} members")
            }
            Self::ParentLost { job, parent } => write!(f, "job {job}: the parent {parent} does not answer"),
            Self::ParentFound { job, parent } => write!(f, "job {job}: the parent {parent} answers again"),
            Self::ParentChosen { job, parent } => write!(f, "job {job}: trying the parent {parent}"),
            Self::ParentRefused { job, parent, status, expected, exceeded } => {
                let refused = Refused { status: *status, expected: *expected, exceeded: *exceeded };
                write!(f, "job {job}: refused by the parent {parent}: {refused}")
            }
            Self::GaveWay { job } => {
                write!(
                    f,
                    "job {job}: a worker that holds earlier sums of the job has joined; all members must rejoin"
                )
            }
            Self::JobForgotten { job } => {
                write!(f, "job {job}: the parent no longer knows this switch; all members must rejoin")
            }
            Self::Joined { job, member, address, round } => {
                write!(f, "member {member} of job {job} joined from {address} at round {round}")
            }
            Self::JoinRefused { job, address, status, expected, exceeded } => {
                let refused = Refused { status: *status, expected: *expected, exceeded: *exceeded };
                write!(f, "Join from {address} to job {job} refused: {refused}")
            }
            Self::Left { job, member, address, why } => {
                let why = match why {
                    Departure::Leave => "left",
                    Departure::Silent => "expelled because its lease expired",
                    Departure::Expelled => "expelled by the operator",
                    Departure::Forgotten => "must rejoin",
                    Departure::Restarted => "replaced by a process that joined from the same address",
                };
                write!(f, "member {member} of job {job} at {address} {why}")
            }
            Self::Slow { job, member, address, round, waited_ms, missing_segments, segments } => {
                let seconds = *waited_ms as f64 / 1000.0;
                write!(f, "round {round} of job {job} has been waiting for member {member} ({address}) ")?;
                write!(f, "for {seconds:.1} s: {missing_segments} of {segments} segments missing")
            }
            Self::Recovered { job, member, address } => {
                write!(f, "rounds of job {job} no longer wait for member {member} ({address})")
            }
            Self::GroupHeard { job, member, address } => {
                write!(
                    f,
                    "member {member} of job {job} ({address}) receives results through the multicast group"
                )
            }
            Self::GroupLost { job, member, address } => {
                write!(f, "member {member} of job {job} ({address}) receives results by unicast")
            }
            Self::ThresholdSet { job, threshold: 0 } => {
                write!(f, "threshold H of job {job} follows the number of members")
            }
            Self::ThresholdSet { job, threshold } => write!(f, "threshold H of job {job} set to {threshold}"),
            Self::Reset { job } => write!(f, "job {job} reset; all members must rejoin"),
            Self::Halted { job } => write!(f, "job {job} halted"),
            Self::Diverged { job, round, member, other } => write!(
                f,
                "job {job}: members {member} and {other} have different weights after round {round}"
            ),
            Self::EventsLost { count } => write!(f, "{count} events were not recorded"),
        }
    }
}

/// Queue of events that wait to be logged. If the queue is full, further events are only counted.
#[derive(Debug)]
pub(crate) struct EventQueue {
    events: Ring<Event>,
    lost: u32,
}

impl EventQueue {
    pub(crate) fn new() -> Self {
        Self { events: Ring::with_capacity(MAX_PENDING_EVENTS), lost: 0 }
    }

    pub(crate) fn push(&mut self, event: Event) {
        if self.events.push(event).is_err() {
            self.lost += 1;
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Event> {
        self.events.pop().or_else(|| {
            let count = core::mem::take(&mut self.lost);
            (count > 0).then_some(Event::EventsLost { count })
        })
    }
}
