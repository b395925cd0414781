//! Networks inside one machine: hosts, cables and a bridge between them, made by an ordinary user.
//!
//! A process that [`isolation::command_inside`] starts may make network namespaces, interfaces and firewall rules,
//! because it has a user namespace of its own; as root it needs none. Everything that it makes and starts disappears
//! with it. The program `iswitch-lab` and the tests of this project build their networks on this.

mod error;
pub mod isolation;
pub mod links;
pub mod namespace;
pub mod network;
pub mod process;

pub use error::LabError;
