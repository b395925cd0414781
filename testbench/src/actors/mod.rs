//! Actors, replay, cells and learners, each in its own process: how learning scales with the number of actors, and how
//! soon each kind of process recovers after it is killed.

pub mod recovery;
pub mod scaling;
pub mod site;
