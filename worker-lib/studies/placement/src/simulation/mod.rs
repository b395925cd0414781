//! A cluster over time: jobs arrive, wait, run, are stopped by failures and start again.
//!
//! A job runs on all of its GPUs or not at all. A failure of any of them stops it: work since its last checkpoint is
//! lost, and before it works again it pays for the restart. A run without the last line is: overhead, work for the
//! interval, checkpoint, work, checkpoint, ..., work; no checkpoint is written at the end. A job that a placer suspends
//! writes its state first, whatever the options say, and pays for a restart later.
//!
//! A simulation is a function of its scenario, its seed and what the placer does, to the last bit.

mod account;
mod backfill;
mod calendar;
mod course;
mod engine;
mod scenario;

pub(super) use account::unsaved;
pub use account::{GpuTime, Outcome};
pub use engine::{EVENTS_MAX, Event, Observer, Simulation, simulate, simulate_draw};
pub use scenario::Scenario;
