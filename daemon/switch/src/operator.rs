//! Orders with which the operator changes jobs, members and limits while the switch runs.
//!
//! Members cannot give these orders; the driver receives them from an operator's tool. Unlike the processing of
//! packets, the execution of an order may allocate memory.

use core::fmt;
use core::net::SocketAddrV4;

use crate::accumulate::NonFinite;
use crate::bans::Ban;
use crate::config::Config;
use crate::event::Departure;
use crate::ids::{JobIndex, MemberAt, MemberId};
use crate::job::Job;
use crate::keys::Keys;
use crate::limiter::StrangerLimits;
use crate::reply;
use crate::state::State;
use crate::{lifecycle, uplink};

/// Limits of a switch that can change while it runs. The fields have the same meaning as those of [`Config`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time after which a member that a round waits for is reported as slow, in milliseconds.
    pub slow_ms: u32,
    /// Maximum memory for the sums of one new job, in bytes.
    pub job_memory_bytes: usize,
    /// Maximum number of jobs that count towards the quota of one IPv4 address.
    pub max_jobs_per_source: usize,
    /// Maximum rate of packets from one non-member address, in packets per second.
    pub source_rate: u32,
    /// Maximum rate of packets from all non-members together, in packets per second.
    pub total_rate: u32,
    /// Treatment of contributions that contain NaN or infinities.
    pub non_finite: NonFinite,
}

impl Limits {
    /// Returns the limits that a configuration contains.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        let Config { slow_ms, job_memory_bytes, max_jobs_per_source, strangers, non_finite, .. } = *config;
        let StrangerLimits { source_rate, total_rate, .. } = strangers;
        Self { slow_ms, job_memory_bytes, max_jobs_per_source, source_rate, total_rate, non_finite }
    }
}

/// An order of the operator.
#[derive(Clone, Debug)]
pub enum Order {
    /// Change the limits. Existing jobs keep their memory.
    SetLimits(Limits),
    /// Change the keys of jobs. An existing job keeps the key with which it was created, or remains without a key.
    SetKeys(Keys),
    /// Suspend a job, as the Action Halt does.
    Halt {
        /// The job's number.
        job: u32,
    },
    /// Resume a halted job. Its members rejoin.
    Resume {
        /// The job's number.
        job: u32,
    },
    /// Clear a job, as the Action Reset does. Its members rejoin.
    Reset {
        /// The job's number.
        job: u32,
    },
    /// Halt a job, remove its members, and refuse Joins of this job for the duration of one lease.
    Remove {
        /// The job's number.
        job: u32,
    },
    /// Remove a member, and refuse its Joins for the duration of one lease.
    Expel {
        /// The job's number.
        job: u32,
        /// Id of the member.
        member: u16,
    },
    /// Create no further jobs, except those whose workers return with sums.
    Drain,
}

/// Reason why an order cannot be carried out. The switch has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderError {
    /// No job has this number.
    UnknownJob {
        /// The job's number.
        job: u32,
    },
    /// The job has no member with this id.
    UnknownMember {
        /// The job's number.
        job: u32,
        /// Id of the member.
        member: u16,
    },
    /// The job is not halted.
    NotHalted {
        /// The job's number.
        job: u32,
    },
    /// A parent switch forms the sums of the job, so the order must be given to the topmost switch.
    BelowParent {
        /// The job's number.
        job: u32,
        /// Address of the parent.
        parent: SocketAddrV4,
    },
}

impl fmt::Display for OrderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownJob { job } => {
                write!(f, "job is {job}, expected the number of a job of this switch")
            }
            Self::UnknownMember { job, member } => {
                write!(f, "member is {member}, expected the id of a member of job {job}")
            }
            Self::NotHalted { job } => write!(f, "job {job} is not halted"),
            Self::BelowParent { job, parent } => {
                write!(f, "job {job} is summed by the parent {parent}; send the command to the parent")
            }
        }
    }
}

impl core::error::Error for OrderError {}

/// Carries out an order.
pub(crate) fn obey(state: &mut State, order: Order) -> Result<(), OrderError> {
    match order {
        Order::SetLimits(limits) => set_limits(state, &limits),
        Order::SetKeys(keys) => state.keys.replace(keys, state.jobs.iter().map(|(_, job)| job.id())),
        Order::Halt { job } => {
            let at = find_topmost(state, job)?;
            lifecycle::halt_job(state, at);
        }
        Order::Resume { job } => {
            let at = find_topmost(state, job)?;
            if !state.jobs.get(at).is_some_and(Job::is_halted) {
                return Err(OrderError::NotHalted { job });
            }
            lifecycle::reset_job(state, at);
        }
        Order::Reset { job } => {
            let at = find_topmost(state, job)?;
            lifecycle::reset_job(state, at);
        }
        Order::Remove { job } => remove(state, job)?,
        Order::Expel { job, member } => expel(state, job, member)?,
        Order::Drain => state.is_draining = true,
    }
    Ok(())
}

fn set_limits(state: &mut State, limits: &Limits) {
    let Limits { slow_ms, job_memory_bytes, max_jobs_per_source, source_rate, total_rate, non_finite } =
        *limits;
    let strangers = StrangerLimits { source_rate, total_rate, ..state.config.strangers };
    state.limiter.set_rates(&strangers);
    state.config =
        Config { slow_ms, job_memory_bytes, max_jobs_per_source, strangers, non_finite, ..state.config };
    // If a limit has become shorter, the next check must take place earlier.
    state.expect_tick();
}

fn find(state: &State, job: u32) -> Result<JobIndex, OrderError> {
    state.jobs.find(job).ok_or(OrderError::UnknownJob { job })
}

/// Finds a job whose results this switch computes itself. If the switch has a parent, orders must be given to the
/// topmost switch instead.
fn find_topmost(state: &State, job: u32) -> Result<JobIndex, OrderError> {
    let at = find(state, job)?;
    let parent = state.uplink(at).map(uplink::Uplink::parent);
    parent.map_or(Ok(at), |parent| Err(OrderError::BelowParent { job, parent: parent.peer }))
}

fn remove(state: &mut State, job: u32) -> Result<(), OrderError> {
    let at = find(state, job)?;
    lifecycle::halt_job(state, at);
    let until = state.now.plus(state.config.lease());
    state.bans.insert(Ban { job, address: None, until });
    lifecycle::dismiss_members(state, at);
    Ok(())
}

fn expel(state: &mut State, job: u32, id: u16) -> Result<(), OrderError> {
    let at = find(state, job)?;
    let member = state.jobs.get(at).and_then(|job| {
        let mut present = job.members().present().iter();
        present.find(|member: &MemberId| member.to_wire() == id)
    });
    let member = member.ok_or(OrderError::UnknownMember { job, member: id })?;
    let place = MemberAt { job: at, member };
    if let Some(endpoint) = state.jobs.member(place).map(|member| member.endpoint) {
        let until = state.now.plus(state.config.lease());
        let ban = Ban { job, address: Some(endpoint.peer), until };
        state.bans.insert(ban);
        reply::refuse_data(state, &endpoint, place, &ban.refusal().into());
    }
    lifecycle::remove_member(state, place, Departure::Expelled);
    Ok(())
}
