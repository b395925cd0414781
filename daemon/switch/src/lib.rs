//! The switch core: bytes and a clock in; bytes, events and a deadline out.
//!
//! It does no I/O, reads no clock and allocates nothing after [`Switch::new`]. The daemon's UDP and raw
//! ports, the simulator and the comparison with the RTL all drive this one type.
//!
//! # Contract
//! After each `handle_*` call [`Switch::poll_transmit`] until `None`, then [`Switch::poll_event`] until
//! `None`, then sleep until input arrives or the instant of [`Switch::poll_timeout`], and then call
//! [`Switch::handle_timeout`]. Spurious calls do nothing.
//!
//! Between two `handle_*` calls the switch does a bounded part of the work that it has queued (see the module `steps`).
//! If work is left, [`Switch::poll_timeout`] is due at once, so that the driver receives packets in between.
//!
//! # Layers
//! A module uses only modules that this list names after it, which a test enforces.
//! - Interface to the driver: `switch`.
//! - Causes of change, which are time, packets of the parent and of members, and queued work: `timers`, `upstream`,
//!   `control`, `data`, `steps`.
//! - Life of a job: `lifecycle`, `quota`.
//! - Packets that the switch sends: `authentication`, `parent`, `reply`.
//! - All parts of a switch: `state`.
//! - Parts, each of which keeps its own invariants: `jobs`, `config`, `status`, `waiting`, `backlog`, `output`,
//!   `uplink`, `directory`.
//! - One job with its members, rounds, slots and sums: `job`.
//! - Values and tables that do not depend on jobs: `journal`, `flight`, `event`, `limiter`, `keys`, `origin`, `budget`,
//!   `questions`, `batch`, `accumulate`, `arena`, `ring`, `reason`, `endpoint`, `ids`.
//!
//! # The path of a contribution
//! 1. `switch`: [`Switch::handle_datagrams`] takes in a super-frame.
//! 2. `data`: finds the member by its address, verifies the tags, and counts.
//! 3. `job/aggregation`: checks the contribution against its slot, and opens, fills and closes it. In an asynchronous
//!    job, `job/vectors` sets it aside.
//! 4. `job/rounds`: which rounds are open, and which members take part in them.
//! 5. `accumulate`: adds the floats, the last contribution straight into the outgoing packet.
//! 6. `output`: [`Switch::poll_transmit`] lends the batch of results to the driver.

#![no_std]

extern crate alloc;

pub mod accumulate;
mod arena;
mod authentication;
mod backlog;
mod batch;
mod budget;
mod config;
mod control;
mod data;
mod directory;
mod endpoint;
mod event;
mod flight;
mod ids;
mod job;
mod jobs;
mod journal;
mod keys;
mod lifecycle;
mod limiter;
mod origin;
mod output;
mod parent;
mod questions;
mod quota;
mod reason;
mod reply;
mod ring;
mod state;
mod status;
mod steps;
mod switch;
mod timers;
mod uplink;
mod upstream;
mod waiting;

pub use accumulate::NonFinite;
pub use config::{Config, start_len_bytes};
pub use endpoint::{Endpoint, PortId};
pub use event::{Departure, Event};
pub use flight::{FlightRecord, Incident};
pub use iswitch_protocol::Instant;
pub use keys::{Keys, SECRET_LEN_BYTES};
pub use limiter::StrangerLimits;
pub use output::Transmit;
pub use reason::{Counters, DropReason};
pub use status::{AwaitedStatus, JobStatus, MemberStatus, WaitingStatus};
pub use switch::Switch;
pub use uplink::Uplinks;
