//! The tests of the switch core and of the embedded switch, one program so that they are linked once.

#[path = "../common/mod.rs"]
mod common;

mod admission;
mod asynchronous;
mod authentication;
#[cfg(feature = "daemon")]
mod command_line;
#[cfg(feature = "std")]
mod embedded;
mod fairness;
mod hierarchy;
mod ordered;
mod progress;
mod resume;
mod strangers;
mod synchronous;
mod waiting;
