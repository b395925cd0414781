//! A worker: a member of a job that sums vectors through the switch.
//!
//! [`Worker`] is the blocking interface. [`session`] is the sans-I/O state machine on which it is based and which the
//! simulator also drives, and [`protocol`] implements its rounds. [`asynchronous`] provides the equivalents of both for
//! jobs in which workers contribute at their own pace. Joining, rejoining and heartbeats are the same in both modes:
//! `enrolment` is their state machine, and `joining` drives it over a socket.

mod any_length;
pub mod asynchronous;
mod attempt;
pub mod auth;
mod bitmap;
mod enrolment;
pub mod failover;
mod group;
mod heartbeat;
mod join;
mod joining;
mod lane;
mod link;
mod membership;
mod naming;
mod outcome;
mod part;
mod parting;
mod parts;
pub mod protocol;
mod query;
mod requests;
mod scattered_receive;
pub mod session;
mod sharded;
pub mod state;
mod superframe;
mod timer;
mod udp;
mod values;
mod window;

pub use any_length::{AnyLengthError, AnyLengthWorker, MAX_LENGTHS, MAX_PIECE_FLOATS, Summed};
pub use group::Path;
pub(crate) use join::DEFAULT_SPIN;
pub use join::{JoinError, JoinOptions};
pub use sharded::ShardedWorker;
pub use state::StateError;
pub use timer::MIN_TIMEOUT;
pub use udp::Worker;
pub use values::Values;
