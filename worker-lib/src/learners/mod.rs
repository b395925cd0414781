//! Learners for networks and clusters, on the same aggregation as [`algorithms`](crate::algorithms).

pub mod coflow;
mod group;
mod part;
pub mod placement;
pub mod routing;
