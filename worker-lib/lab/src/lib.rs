//! Virtual networks inside one machine: hosts, links and a bridge between them, created by an ordinary user.
//!
//! A process started by [`isolation::command_inside`] can create network namespaces, interfaces and firewall rules,
//! because it has its own user namespace; as root, it needs none. Everything that it creates and starts disappears
//! with it. The program `iswitch-lab` and the tests of this project build their networks with this crate.

mod error;
pub mod isolation;
pub mod links;
pub mod namespace;
pub mod network;
pub mod process;

pub use error::LabError;
