//! Learners for networks and clusters, on the same aggregation as [`algorithms`](crate::algorithms).

#[cfg(feature = "actor-learner")]
pub mod actor_learner;
pub mod coflow;
mod group;
mod part;
pub mod placement;
pub mod routing;
