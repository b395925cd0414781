//! What the flight recorder has of a job, taken out of the packet loop.

use std::collections::BTreeMap;

use iswitch_protocol::Instant;

use iswitch_switch::{FlightRecord, JobStatus, Switch};

/// The records of one job, and how it stands.
#[derive(Clone, Debug)]
pub struct JobFlight {
    /// The run of the switch.
    pub boot: u64,
    /// When this was taken; records have times of the same clock, which starts with the switch.
    pub taken: Instant,
    /// The job.
    pub job: u32,
    /// How it stands; none if it has ended.
    pub status: Option<JobStatus>,
    /// What happened, the oldest first.
    pub records: Vec<FlightRecord>,
}

impl JobFlight {
    /// Those of all jobs that are or were.
    pub(crate) fn all(switch: &Switch, boot: u64, taken: Instant) -> Vec<Self> {
        // Described once, all together: to look each up would describe those before it as well.
        let mut statuses: BTreeMap<_, _> = switch.jobs().map(|status| (status.job, status)).collect();
        let jobs = switch.flight_records();
        jobs.map(|(job, records)| Self { boot, taken, job, status: statuses.remove(&job), records }).collect()
    }

    /// That of one job, if it is known.
    pub(crate) fn of(switch: &Switch, boot: u64, taken: Instant, job: u32) -> Option<Self> {
        let records = switch.flight_records_of(job)?;
        Some(Self { boot, taken, job, status: switch.job_status(job), records })
    }
}
