//! The iSwitch wire format, written once: daemon, worker, simulator, RTL fixtures and dissector read this.
//!
//! [`wire`] turns bytes into values and back; [`segment`] says how a gradient vector is cut into segments and
//! how rounds compare; [`limits`] holds every limit. `SPEC.md` beside this crate is the specification; its
//! requirements (`W-1`, `D-3`, ...) are cited where they are enforced.
//!
//! The crate does no I/O, allocates nothing and has no unsafe code; only `key_file`, behind the features
//! `key-file` and `key-creation`, reads and writes files. The feature `frame` adds Ethernet, IPv4 and UDP headers.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "key-file")]
extern crate std;

pub mod auth;
pub mod history;
#[cfg(feature = "key-file")]
pub mod key_file;
pub mod limits;
pub mod segment;
pub mod time;
pub mod wire;

pub use auth::Key;
pub use segment::{Round, Seg, SegmentIndex, VectorLayout};
pub use time::Instant;
