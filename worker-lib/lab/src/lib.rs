//! Virtual networks inside one machine. An ordinary user can create hosts, links, and a bridge that connects them.
//!
//! A process that is started with [`isolation::command_inside`] has its own user namespace, and can therefore create
//! network namespaces, interfaces and firewall rules; a root process needs no user namespace. Everything that the
//! process creates and starts disappears when the process exits. The program `iswitch-lab` and the tests of this
//! project build their networks with this crate.

mod error;
pub mod isolation;
pub mod links;
pub mod namespace;
pub mod network;
pub mod process;

pub use error::LabError;
