//! Tests of the switch core, in a single program so that they are linked only once.

#[path = "../common/mod.rs"]
mod common;

mod admission;
mod asynchronous;
mod authentication;
mod card;
mod elements;
mod fairness;
mod group;
mod hierarchy;
mod layers;
mod limits;
mod names;
mod operator;
mod ordered;
mod parts;
mod progress;
mod resume;
mod roaming;
mod specification;
mod strangers;
mod synchronous;
mod waiting;
