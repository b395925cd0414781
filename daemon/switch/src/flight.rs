//! The flight recorder: the latest incidents of each job, for diagnosing stalls.
//!
//! A log has two rings of fixed size, so that frequent records of rounds do not displace joins and departures. No
//! record is written for a packet that is summed. Each round adds two records, and repetitions of an incident only
//! increase the count in its record.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;

use iswitch_protocol::limits::{FLIGHT_RECORDS, MAX_JOBS, MAX_MEMBERS};
use iswitch_protocol::{Instant, Round};

use crate::event::Event;
use crate::ids::JobIndex;
use crate::reason::DropReason;

/// An incident in a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incident {
    /// An event, which the driver also logs.
    Event(Event),
    /// The first contribution to a round, or its first result from the parent, has arrived.
    RoundOpened {
        /// Number of the round.
        round: Round,
        /// Members that take part in the round, one bit each.
        participants: u64,
        /// Number of contributions that complete a segment.
        threshold: u16,
    },
    /// The last segment of a round has its result.
    RoundFinished {
        /// Number of the round.
        round: Round,
    },
    /// A member requested results.
    Helped {
        /// Id of the member.
        member: u16,
        /// Number of the round.
        round: Round,
    },
    /// Datagrams from a member were dropped.
    Dropped {
        /// Id of the member.
        member: u16,
        /// Reason for the drops.
        reason: DropReason,
    },
}

impl Incident {
    /// Returns the name of the incident in structured records.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Event(event) => event.name(),
            Self::RoundOpened { .. } => "round_opened",
            Self::RoundFinished { .. } => "round_finished",
            Self::Helped { .. } => "helped",
            Self::Dropped { .. } => "dropped",
        }
    }

    /// Returns the round that the incident concerns, if any.
    pub const fn round(&self) -> Option<Round> {
        match self {
            Self::Event(event) => event.round(),
            Self::RoundOpened { round, .. } | Self::RoundFinished { round } | Self::Helped { round, .. } => {
                Some(*round)
            }
            Self::Dropped { .. } => None,
        }
    }

    /// Returns the member that the incident concerns, if any.
    pub const fn member(&self) -> Option<u16> {
        match self {
            Self::Event(event) => event.member(),
            Self::Helped { member, .. } | Self::Dropped { member, .. } => Some(*member),
            Self::RoundOpened { .. } | Self::RoundFinished { .. } => None,
        }
    }

    /// Returns whether the incident occurs in the normal course of rounds and is therefore frequent.
    const fn is_frequent(&self) -> bool {
        !matches!(self, Self::Event(_))
    }

    /// Returns whether repetitions of the incident are merged into one record with a count.
    const fn repeats(&self) -> bool {
        matches!(self, Self::Helped { .. } | Self::Dropped { .. })
    }
}

impl fmt::Display for Incident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(event) => event.fmt(f),
            Self::RoundOpened { round, participants, threshold } => {
                let members = participants.count_ones();
                write!(f, "round {round} opened: {members} members, threshold H {threshold}")
            }
            Self::RoundFinished { round } => write!(f, "round {round} finished"),
            Self::Helped { member, round } => write!(f, "member {member} requested results of round {round}"),
            Self::Dropped { member, reason } => {
                write!(f, "datagrams from member {member} dropped: {}", reason.name())
            }
        }
    }
}

/// A record of an incident: what happened, when, and how many times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlightRecord {
    /// Time of the first occurrence.
    pub at: Instant,
    /// Time of the last occurrence.
    pub until: Instant,
    /// Number of occurrences. It exceeds one only for repeated Helps from a member in the same round, and for repeated
    /// drops for the same reason.
    pub times: u32,
    /// The incident.
    pub incident: Incident,
}

/// The records of one job.
#[derive(Debug)]
pub(crate) struct FlightLog {
    job: Option<u32>,
    /// Events: changes of membership and everything else that is logged.
    events: VecDeque<FlightRecord>,
    /// Incidents of rounds.
    rounds: VecDeque<FlightRecord>,
}

impl FlightLog {
    fn new() -> Self {
        let ring = || VecDeque::with_capacity(FLIGHT_RECORDS);
        Self { job: None, events: ring(), rounds: ring() }
    }

    // Not inlined, because the packet path calls it only twice per round.
    #[cold]
    #[inline(never)]
    pub(crate) fn record(&mut self, at: Instant, incident: Incident) {
        self.record_times(at, 1, incident);
    }

    /// Records an incident that occurred `times` times in immediate succession.
    #[cold]
    pub(crate) fn record_times(&mut self, at: Instant, times: u32, incident: Incident) {
        let ring = if incident.is_frequent() { &mut self.rounds } else { &mut self.events };
        if incident.repeats() {
            // Members alternate, so the same incident of the same member is not far back.
            let recent = ring.iter_mut().rev().take(MAX_MEMBERS);
            let mut recent = recent.take_while(|record| record.incident.repeats());
            if let Some(same) = recent.find(|record| record.incident == incident) {
                (same.until, same.times) = (at, same.times.saturating_add(times));
                return;
            }
        }
        if ring.len() == FLIGHT_RECORDS {
            ring.pop_front();
        }
        ring.push_back(FlightRecord { at, until: at, times, incident });
    }

    /// Returns all records, oldest first. Allocates memory: intended for operator queries, not for the packet path.
    fn records(&self) -> Vec<FlightRecord> {
        let mut records: Vec<_> = self.events.iter().chain(&self.rounds).copied().collect();
        records.sort_by_key(|record| record.at);
        records
    }
}

/// Logs of all jobs, one for each possible job index.
#[derive(Debug)]
pub(crate) struct FlightRecorder {
    logs: Vec<FlightLog>,
}

impl FlightRecorder {
    pub(crate) fn new() -> Self {
        let mut logs = Vec::with_capacity(MAX_JOBS);
        logs.resize_with(MAX_JOBS, FlightLog::new);
        Self { logs }
    }

    /// Begins the log of a job. If a log of a job with the same number exists, it is continued.
    pub(crate) fn begin(&mut self, at: JobIndex, job: u32) {
        if let Some(other) = self.logs.iter().position(|log| log.job == Some(job)) {
            return self.logs.swap(at.get(), other);
        }
        let log = &mut self.logs[at.get()];
        log.job = Some(job);
        log.events.clear();
        log.rounds.clear();
    }

    /// Returns the log of a job.
    pub(crate) fn log_mut(&mut self, at: JobIndex) -> &mut FlightLog {
        &mut self.logs[at.get()]
    }

    /// Records an event in the log of the job that it concerns. Events of jobs without a log are not recorded.
    pub(crate) fn record_event(&mut self, at: Instant, event: Event) {
        if let Some(log) = self.logs.iter_mut().find(|log| log.job.is_some() && log.job == event.job()) {
            log.record(at, Incident::Event(event));
        }
    }

    /// Returns the numbers of all current and past jobs, with their records.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = (u32, Vec<FlightRecord>)> {
        self.logs.iter().filter_map(|log| Some((log.job?, log.records())))
    }

    /// Returns the records of one job, if they are kept.
    pub(crate) fn job(&self, job: u32) -> Option<Vec<FlightRecord>> {
        self.logs.iter().find(|log| log.job == Some(job)).map(FlightLog::records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(round: u32) -> Incident {
        Incident::RoundOpened { round: Round::new(round), participants: 0b11, threshold: 2 }
    }

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn round_records_do_not_evict_events_and_memory_stays_constant() {
        let mut recorder = FlightRecorder::new();
        recorder.begin(JobIndex::new(3), 7);
        recorder.record_event(at(1), Event::JobCreated { job: 7, gradient_len: 5, workers: 2 });
        recorder.record_event(at(2), Event::JobEnded { job: 8 });
        let capacity = recorder.logs[3].rounds.capacity();
        for round in 0..10_000 {
            recorder.log_mut(JobIndex::new(3)).record(at(10 + u64::from(round)), opened(round));
        }
        assert_eq!(recorder.logs[3].rounds.capacity(), capacity);
        let records = recorder.job(7).unwrap();
        assert_eq!(records.len(), 1 + FLIGHT_RECORDS);
        assert_eq!(records[0].incident.name(), "job_created");
        assert_eq!(records[FLIGHT_RECORDS].incident, opened(9_999));
        assert_eq!(recorder.jobs().count(), 1);
    }

    #[test]
    fn repeated_incidents_share_one_record_until_a_different_one_occurs() {
        let mut recorder = FlightRecorder::new();
        let log = recorder.log_mut(JobIndex::new(0));
        let helped = |member| Incident::Helped { member, round: Round::new(1) };
        for time in 0..5 {
            (0..3).for_each(|member| log.record(at(time), helped(member)));
        }
        log.record(at(5), opened(2));
        log.record_times(at(6), 44, helped(1));
        let records = log.records();
        assert_eq!(records.iter().map(|record| record.times).collect::<Vec<_>>(), [5, 5, 5, 1, 44]);
        assert_eq!((records[0].at, records[0].until), (at(0), at(4)));
    }

    #[test]
    fn a_job_recreated_at_another_index_keeps_its_records() {
        let mut recorder = FlightRecorder::new();
        recorder.begin(JobIndex::new(0), 7);
        recorder.record_event(at(1), Event::JobEnded { job: 7 });
        recorder.begin(JobIndex::new(1), 7);
        recorder.begin(JobIndex::new(0), 9);
        recorder.record_event(at(2), Event::Halted { job: 7 });
        let names: Vec<_> = recorder.job(7).unwrap().iter().map(|record| record.incident.name()).collect();
        assert_eq!(names, ["job_ended", "halted"]);
        assert_eq!(recorder.job(9), Some(Vec::new()));
    }
}
