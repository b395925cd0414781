//! Journal of the switch: events for the driver's log, and the flight recorder.

use iswitch_protocol::Instant;
use iswitch_protocol::wire::NameRepr;

use crate::event::{Event, EventQueue, Report};
use crate::flight::{FlightLog, FlightRecorder};
use crate::ids::JobIndex;

/// Events, and the flight logs of the jobs.
#[derive(Debug)]
pub(crate) struct Journal {
    events: EventQueue,
    flight: FlightRecorder,
}

impl Journal {
    pub(crate) fn new() -> Self {
        Self { events: EventQueue::new(), flight: FlightRecorder::new() }
    }

    /// Reports an event to the driver, with the names of the job and the member that it concerns, and records the event
    /// in the flight log of the job.
    pub(crate) fn report(&mut self, now: Instant, event: Event, name: NameRepr) {
        self.events.push(Report { event, name });
        self.flight.record_event(now, event);
    }

    /// Returns the next event for the driver, or `None` if there is none.
    pub(crate) fn next_event(&mut self) -> Option<Report> {
        self.events.pop()
    }

    /// Begins the flight log of a job.
    pub(crate) fn begin(&mut self, at: JobIndex, job: u32) {
        self.flight.begin(at, job);
    }

    /// Returns the flight log of a job.
    pub(crate) fn log_mut(&mut self, at: JobIndex) -> &mut FlightLog {
        self.flight.log_mut(at)
    }

    pub(crate) fn flight(&self) -> &FlightRecorder {
        &self.flight
    }
}
