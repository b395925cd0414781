//! The switch daemon: what `iswitchd` adds to the loop of `iswitch_runtime`. Ports of raw frames, configuration,
//! control socket, metrics, sandbox.

pub mod config;
pub mod control_socket;
pub mod daemon;
pub mod flight_file;
pub mod log;
pub mod memory;
pub mod metrics;
pub mod monitor;
pub mod port;
pub mod sandbox;
pub mod service_manager;
mod side_thread;
