//! What Prometheus scrapes: the state of a switch in its text format, and the listener that serves it.

mod exposition;
mod server;

pub use exposition::render;
pub use server::{MetricsListener, MetricsServer};
