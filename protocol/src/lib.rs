//! The iSwitch wire format, shared by the daemon, the worker, the simulator, the RTL fixtures and the dissector.
//!
//! - [`wire`] parses and emits packets.
//! - [`segment`] defines how a gradient vector is divided into segments and how rounds compare.
//! - [`part`] defines how a vector is divided among the threads of a switch.
//! - [`element`] defines how floats are represented.
//! - [`label`] defines the texts that members choose and operators read.
//! - [`limits`] holds every limit.
//!
//! The specification is `SPEC.md` in the directory of this crate; the code cites its requirements (`W-1`, `D-3`, ...)
//! where it enforces them.
//!
//! The crate contains no unsafe code. Except for the handling of key files, it does no I/O and allocates nothing. The
//! module `key_file`, which reads and writes files, requires the `key-file` or the `key-creation` feature. The `frame`
//! feature adds Ethernet, IPv4 and UDP headers.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(any(feature = "key-file", test))]
extern crate std;

pub mod auth;
pub mod element;
pub mod history;
#[cfg(feature = "key-file")]
pub mod key_file;
pub mod label;
pub mod limits;
pub mod part;
pub mod segment;
pub mod time;
pub mod wire;

pub use auth::Key;
pub use element::{ElementType, ElementTypes};
pub use label::{Label, LabelError};
pub use segment::{Round, Seg, SegmentIndex, VectorLayout};
pub use time::Instant;
