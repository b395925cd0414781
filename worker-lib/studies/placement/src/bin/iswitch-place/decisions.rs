//! Log of the decisions of a policy in a run, and of the failures and job completions between them.

use std::fmt::{self, Display, Formatter};

use iswitch_placement::simulation::Event;
use iswitch_placement::state::State;
use iswitch_study::table::{OrEmpty, Output};

const COLUMNS: &str = "time_s,event,job,gpus,waiting,running,free_gpus";

/// Table with one row for each decision and each event of a run, in chronological order.
///
/// The `gpus` column contains the ids of the GPUs on which a job starts, or the id of the GPU that fails or is
/// repaired. The last three columns describe the state after the event.
pub(super) struct Decisions(Output);

impl Decisions {
    pub(super) fn new() -> Self {
        Self(Output::new(COLUMNS))
    }

    pub(super) fn add(&mut self, state: &State<'_>, event: Event) {
        let (name, job, gpus) = match event {
            Event::Start(job) => ("start", Some(job), state.gpus_of(job)),
            Event::Suspend(job) => ("suspend", Some(job), &[][..]),
            Event::Complete(job) => ("complete", Some(job), &[][..]),
            Event::Hit { job, gpu } => ("stopped_by_failure", Some(job), &[gpu][..]),
            Event::Failure(gpu) => ("failure", None, &[gpu][..]),
            Event::Repair(gpu) => ("repair", None, &[gpu][..]),
        };
        let running = state.active.iter().filter(|job| state.is_running(**job)).count();
        let (waiting, free) = (state.queue.len(), state.free);
        self.0.row(&[&state.time, &name, &OrEmpty(job), &Ids(gpus), &waiting, &running, &free]);
    }

    /// Returns the table as CSV text.
    pub(super) fn into_text(self) -> String {
        self.0.into_text()
    }
}

/// List of ids, displayed with spaces between them.
struct Ids<'a>(&'a [usize]);

impl Display for Ids<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (at, id) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(" ")?;
            }
            write!(f, "{id}")?;
        }
        Ok(())
    }
}
