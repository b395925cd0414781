//! The switch core, a sans-I/O state machine: it takes datagrams and the time, and produces datagrams, events and a
//! deadline.
//!
//! It performs no I/O, reads no clock and, after [`Switch::new`], allocates no memory except in status queries and
//! orders of the operator. The daemon's UDP and raw ports, the simulator and the comparison with the RTL all drive this
//! one type.
//!
//! # Contract
//! After each `handle_*` call, the driver calls [`Switch::poll_transmit`] until it returns `None`, then
//! [`Switch::poll_event`] until it returns `None`. It then sleeps until input arrives or until the instant that
//! [`Switch::poll_timeout`] returns; at that instant it calls [`Switch::handle_timeout`]. Spurious calls have no
//! effect.
//!
//! Between two `handle_*` calls, the switch executes a bounded amount of its queued work (see the module `steps`). If
//! work remains, the deadline of [`Switch::poll_timeout`] is immediate, so that the driver can receive packets in
//! between.
//!
//! # Layers
//! A module depends only on modules that appear later in this list. A test enforces this.
//! - Interface to the driver: `switch`.
//! - Inputs, which are time, packets from the parent, packets from members, sums from a card, orders from the
//!   operator, and queued work: `timers`, `upstream`, `control`, `data`, `card`, `operator`, `steps`.
//! - Life cycle of a job, and the limits: `lifecycle`, `capacity`, `quota`.
//! - Packets that the switch sends: `authentication`, `ascent`, `parent`, `delivery`, `reply`.
//! - State of the whole switch: `state`.
//! - Components, each of which maintains its own invariants: `jobs`, `config`, `status`, `waiting`, `backlog`,
//!   `output`, `uplink`, `directory`, `card_orders`.
//! - One job with its members, rounds, slots and sums: `job`.
//! - Values and tables that are independent of jobs: `journal`, `flight`, `event`, `limiter`, `bans`, `keys`,
//!   `names`, `origin`, `budget`, `transfer`, `questions`, `batch`, `accumulate`, `arena`, `ring`, `reason`, `refused`,
//!   `round_times`, `group_address`,
//!   `endpoint`, `ids`.
//!
//! # The path of a contribution
//! 1. `switch`: [`Switch::handle_datagrams`] receives a super-frame.
//! 2. `data`: finds the member by its address, verifies the tags, and updates the counters.
//! 3. `job/aggregation`: checks the contribution against its slot, and opens, fills and closes the slot. In an
//!    asynchronous job, `job/vectors` stages the contribution.
//! 4. `job/rounds`: tracks which rounds are open, and which members take part in them.
//! 5. `accumulate`: adds the floats. The last contribution is added directly into the outgoing packet.
//! 6. `output`: [`Switch::poll_transmit`] lends the batch of results to the driver.

#![no_std]

extern crate alloc;

pub mod accumulate;
mod arena;
mod ascent;
mod authentication;
mod backlog;
mod bans;
mod batch;
mod budget;
mod capacity;
mod card;
mod card_orders;
mod config;
mod control;
mod data;
mod delivery;
mod directory;
mod endpoint;
mod event;
mod flight;
mod group_address;
mod ids;
mod job;
mod jobs;
mod journal;
mod keys;
mod lifecycle;
mod limiter;
mod names;
mod operator;
mod origin;
mod output;
mod parent;
mod questions;
mod quota;
mod reason;
mod refused;
mod reply;
mod ring;
mod round_times;
mod state;
mod status;
mod steps;
mod switch;
mod timers;
mod transfer;
mod uplink;
mod upstream;
mod waiting;

pub use accumulate::NonFinite;
pub use capacity::LimitStatus;
pub use card::{CardJob, CardMember, MAX_CARD_MEMBERS};
pub use config::{CardLimits, Config, start_len_bytes};
pub use endpoint::{Endpoint, PortId};
pub use event::{Departure, Event, Report};
pub use flight::{FlightRecord, Incident};
pub use group_address::GroupPorts;
pub use iswitch_protocol::Instant;
pub use keys::{Keys, SECRET_LEN_BYTES};
pub use limiter::StrangerLimits;
pub use operator::{Limits, Order, OrderError};
pub use output::Transmit;
pub use reason::{Counters, DropReason};
pub use round_times::{ROUND_TIME_BOUNDS_US, RoundTimes};
pub use status::{AwaitedStatus, JobStatus, MemberStatus, WaitingStatus};
pub use switch::Switch;
pub use uplink::Uplinks;
