//! Metrics for Prometheus: the state of the switch in the text format, and the HTTP listener that serves it.

mod exposition;
mod process;
mod server;

use exposition::render;
pub use server::{MetricsListener, MetricsServer};
