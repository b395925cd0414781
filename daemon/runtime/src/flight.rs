//! Flight records of a job, copied out of the packet loop.

use std::collections::BTreeMap;

use iswitch_protocol::Instant;

use iswitch_switch::{FlightRecord, JobStatus, Switch};

/// Flight records and status of one job.
#[derive(Clone, Debug)]
pub struct JobFlight {
    /// Boot id of the switch.
    pub boot: u64,
    /// Time at which this copy was made. The records use the same clock, which starts with the switch.
    pub taken: Instant,
    /// Number of the job.
    pub job: u32,
    /// Status of the job; `None` if the job has ended.
    pub status: Option<JobStatus>,
    /// Recorded events, oldest first.
    pub records: Vec<FlightRecord>,
}

impl JobFlight {
    /// Returns the flight records of all current and past jobs that the switch knows.
    pub(crate) fn all(switch: &Switch, boot: u64, taken: Instant) -> Vec<Self> {
        // The jobs are described in one pass, because a look-up of a single job also describes all jobs before it.
        let mut statuses: BTreeMap<_, _> = switch.jobs().map(|status| (status.job, status)).collect();
        let jobs = switch.flight_records();
        jobs.map(|(job, records)| Self { boot, taken, job, status: statuses.remove(&job), records }).collect()
    }

    /// Returns the flight records of one job, if the switch knows it.
    pub(crate) fn of(switch: &Switch, boot: u64, taken: Instant, job: u32) -> Option<Self> {
        let records = switch.flight_records_of(job)?;
        Some(Self { boot, taken, job, status: switch.job_status(job), records })
    }
}
