//! The switch daemon: everything that `iswitchd` adds to the packet loop of `iswitch_runtime`, namely ports for raw
//! frames, the configuration, the control socket, the metrics and the sandbox.

pub mod config;
pub mod control_socket;
pub mod daemon;
pub mod flight_file;
pub mod log;
pub mod memory;
pub mod metrics;
pub mod monitor;
pub mod port;
pub mod reload;
pub mod sandbox;
pub mod service_manager;
mod side_thread;
mod stdin;
