//! Tests of actors and learners in a single program, so that they are linked only once.

mod access;
mod actor_learner;
