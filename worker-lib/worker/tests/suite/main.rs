//! Tests of the worker library, in a single program so that they are linked only once.

mod any_length;
mod authentication;
mod elements;
mod failover;
mod group_delivery;
mod groups;
mod late_join;
mod meeting;
mod names;
mod parts;
mod pipeline;
mod rejoin;
mod sharded;
mod specification;
mod switches;
mod turns;
mod worker;
