//! Actors, replay, cells and learners in processes of their own: how learning scales with actors, and how soon each of
//! them is back when it is killed.

pub mod recovery;
pub mod scaling;
pub mod site;
