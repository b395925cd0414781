//! Tests of the worker library, one program so that they are linked once.

mod any_length;
mod authentication;
mod c_interface;
mod groups;
mod late_join;
mod pipeline;
mod rejoin;
mod sharded;
mod switches;
mod worker;
