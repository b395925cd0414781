//! What happened, said once: the driver logs it, a test reads it.

use core::fmt;
use core::net::SocketAddrV4;

use iswitch_protocol::Round;
use iswitch_protocol::limits::MAX_PENDING_EVENTS;
use iswitch_protocol::wire::Status;

use crate::ring::Ring;

/// Something that an operator wants to know. Packets are counted, not reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The first Join of a job.
    JobCreated {
        /// The job.
        job: u32,
        /// Floats in its vector.
        gradient_len: u32,
        /// Workers that it waits for, zero if it does not.
        workers: u16,
    },
    /// The last member of a job is gone and its memory free.
    JobEnded {
        /// The job.
        job: u32,
    },
    /// As many workers have joined as the job was declared with.
    JobFormed {
        /// The job.
        job: u32,
        /// Its members.
        members: u16,
    },
    /// Members of an earlier run of the switch have come back, and the job continues.
    JobResumed {
        /// The job.
        job: u32,
        /// Its members.
        members: u16,
        /// The round from which it continues.
        round: Round,
    },
    /// A parent does not answer any more: there are no sums until it does.
    ParentLost {
        /// The job.
        job: u32,
        /// The parent.
        parent: SocketAddrV4,
    },
    /// It answers again.
    ParentFound {
        /// The job.
        job: u32,
        /// The parent.
        parent: SocketAddrV4,
    },
    /// The next of the parents is tried.
    ParentChosen {
        /// The job.
        job: u32,
        /// The parent.
        parent: SocketAddrV4,
    },
    /// The parent does not let this switch join.
    ParentRefused {
        /// The job.
        job: u32,
        /// The parent.
        parent: SocketAddrV4,
        /// The field or resource that is the reason.
        status: Status,
        /// What it should have been, see [`Status`].
        expected: u32,
    },
    /// The parent does not know this switch: its members have to join again.
    JobForgotten {
        /// The job.
        job: u32,
    },
    /// A job without declared workers has begun without members that have its sums, of which one has come back: all
    /// join again.
    GaveWay {
        /// The job.
        job: u32,
    },
    /// A member was admitted.
    Joined {
        /// The job.
        job: u32,
        /// The member's id.
        member: u16,
        /// Its address.
        address: SocketAddrV4,
        /// The first round it takes part in.
        round: Round,
    },
    /// A Join was refused.
    JoinRefused {
        /// The job asked for.
        job: u32,
        /// The sender.
        address: SocketAddrV4,
        /// The field or resource that is the reason.
        status: Status,
        /// What it should have been, see [`Status`].
        expected: u32,
    },
    /// A member left.
    Left {
        /// The job.
        job: u32,
        /// The member's id.
        member: u16,
        /// Its address.
        address: SocketAddrV4,
        /// Why it is gone.
        why: Departure,
    },
    /// A round has waited for a member for longer than [`Config::slow_ms`](crate::Config::slow_ms), while others
    /// have given what it can take. Not repeated before [`Self::Recovered`].
    Slow {
        /// The job.
        job: u32,
        /// The member's id.
        member: u16,
        /// Its address.
        address: SocketAddrV4,
        /// The round.
        round: Round,
        /// Time since the round's first contribution, in milliseconds.
        waited_ms: u64,
        /// Segments to which others have contributed and this member has not.
        missing_segments: u32,
        /// Segments of the vector.
        segments: u32,
    },
    /// Rounds no longer wait for a member that was slow.
    Recovered {
        /// The job.
        job: u32,
        /// The member's id.
        member: u16,
        /// Its address.
        address: SocketAddrV4,
    },
    /// The threshold H was set, from the next round on.
    ThresholdSet {
        /// The job.
        job: u32,
        /// The threshold; zero lets it follow the number of members.
        threshold: u16,
    },
    /// The job was cleared; its members join again.
    Reset {
        /// The job.
        job: u32,
    },
    /// The job was suspended.
    Halted {
        /// The job.
        job: u32,
    },
    /// The weights of two members differ after the same round.
    Diverged {
        /// The job.
        job: u32,
        /// The round.
        round: Round,
        /// The member whose digest differs.
        member: u16,
        /// The member that reported its digest of that round first.
        other: u16,
    },
    /// More happened at once than there was room to remember.
    EventsLost {
        /// How many events are missing here.
        count: u32,
    },
}

/// Why a member is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// It asked to leave.
    Leave,
    /// Its lease ran out.
    Silent,
    /// Another process joined from its address.
    Restarted,
    /// The parent has forgotten this switch.
    Forgotten,
}

impl Event {
    /// Name for records.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::JobCreated { .. } => "job_created",
            Self::JobEnded { .. } => "job_ended",
            Self::JobFormed { .. } => "job_formed",
            Self::JobResumed { .. } => "job_resumed",
            Self::ParentLost { .. } => "parent_lost",
            Self::ParentFound { .. } => "parent_found",
            Self::ParentChosen { .. } => "parent_chosen",
            Self::ParentRefused { .. } => "parent_refused",
            Self::JobForgotten { .. } => "job_forgotten",
            Self::GaveWay { .. } => "gave_way",
            Self::Joined { .. } => "joined",
            Self::JoinRefused { .. } => "join_refused",
            Self::Left { .. } => "left",
            Self::Slow { .. } => "slow",
            Self::Recovered { .. } => "recovered",
            Self::ThresholdSet { .. } => "threshold_set",
            Self::Reset { .. } => "reset",
            Self::Halted { .. } => "halted",
            Self::Diverged { .. } => "diverged",
            Self::EventsLost { .. } => "events_lost",
        }
    }

    /// The job that it is about; none for events that were lost.
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
            | Self::ThresholdSet { job, .. }
            | Self::Reset { job }
            | Self::Halted { job }
            | Self::Diverged { job, .. } => Some(*job),
            Self::EventsLost { .. } => None,
        }
    }

    /// The member that it is about, if it is about one.
    pub const fn member(&self) -> Option<u16> {
        match self {
            Self::Joined { member, .. }
            | Self::Left { member, .. }
            | Self::Slow { member, .. }
            | Self::Recovered { member, .. }
            | Self::Diverged { member, .. } => Some(*member),
            _ => None,
        }
    }

    /// The round that it is about, if it is about one.
    pub const fn round(&self) -> Option<Round> {
        match self {
            Self::JobResumed { round, .. }
            | Self::Joined { round, .. }
            | Self::Slow { round, .. }
            | Self::Diverged { round, .. } => Some(*round),
            _ => None,
        }
    }

    /// Whether a job is stalled, so that the flight recorder is dumped.
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
            Self::ParentRefused { job, parent, status, expected } => {
                write!(
                    f,
                    "job {job}: refused by the parent {parent}: {} (expected {expected})",
                    status.name()
                )
            }
            Self::GaveWay { job } => {
                write!(f, "job {job}: began without members that have its sums, all members join again")
            }
            Self::JobForgotten { job } => write!(f, "job {job}: forgotten by the parent, members join again"),
            Self::Joined { job, member, address, round } => {
                write!(f, "member {member} of job {job} joined from {address} at round {round}")
            }
            Self::JoinRefused { job, address, status, expected } => {
                write!(f, "join of {address} to job {job} refused: {} (expected {expected})", status.name())
            }
            Self::Left { job, member, address, why } => {
                let why = match why {
                    Departure::Leave => "left",
                    Departure::Silent => "expelled, its lease ran out",
                    Departure::Forgotten => "has to join again",
                    Departure::Restarted => "replaced, another process joined from its address",
                };
                write!(f, "member {member} of job {job} at {address} {why}")
            }
            Self::Slow { job, member, address, round, waited_ms, missing_segments, segments } => {
                let seconds = *waited_ms as f64 / 1000.0;
                write!(f, "round {round} of job {job} is waiting for member {member} ({address}) ")?;
                write!(f, "for {seconds:.1} s: {missing_segments} of {segments} segments")
            }
            Self::Recovered { job, member, address } => {
                write!(f, "rounds of job {job} no longer wait for member {member} ({address})")
            }
            Self::ThresholdSet { job, threshold: 0 } => {
                write!(f, "threshold H of job {job} follows its members")
            }
            Self::ThresholdSet { job, threshold } => write!(f, "threshold H of job {job} set to {threshold}"),
            Self::Reset { job } => write!(f, "job {job} reset, its members join again"),
            Self::Halted { job } => write!(f, "job {job} halted"),
            Self::Diverged { job, round, member, other } => write!(
                f,
                "job {job}: members {member} and {other} have different weights after round {round}"
            ),
            Self::EventsLost { count } => write!(f, "{count} events were not recorded"),
        }
    }
}

/// Events that wait to be logged. Those for which there is no room are counted.
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
