//! Actors, replay, cells and learners, each in its own process: how learning scales with the number of actors, and how
//! long each kind of process takes to recover after it is killed.

pub mod recovery;
pub mod scaling;
pub mod testbed;
