//! Discrete-event simulation of a cluster: jobs arrive, wait, run, are stopped by failures and restart.
//!
//! A job runs on all of its GPUs or not at all. A failure of any of them stops it: the work since its last checkpoint
//! is lost, and a restart precedes any further work. A run without failures consists of the overhead of its start, and
//! then of intervals of work that are separated by checkpoints; no checkpoint is written at the end. If a placer
//! suspends a job, the job first saves its state, regardless of the checkpoint setting, and pays for a restart when it
//! resumes.
//!
//! The result of a simulation is determined, bit for bit, by its scenario, its seed and the decisions of the placer.

mod account;
mod backfill;
mod calendar;
mod course;
mod engine;
mod scenario;

pub use account::{GpuTime, Outcome};
pub(super) use account::{checkpoints, unsaved};
pub use engine::{EVENTS_MAX, Event, Observer, Simulation, simulate, simulate_draw};
pub use scenario::Scenario;
