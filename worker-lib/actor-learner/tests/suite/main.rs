//! Tests of actors and learners, one program so that they are linked once.

mod access;
mod actor_learner;
