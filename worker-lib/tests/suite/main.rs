//! The tests of the worker library's interface, one program so that they are linked once.

mod actor_learner;
mod any_length;
mod asynchronous_training;
mod authentication;
mod c_interface;
mod checkpoint;
mod checkpoint_faults;
mod closed_output;
mod coflow;
mod coflow_learning;
mod groups;
mod late_join;
mod networks;
mod pipeline;
mod placement;
mod placement_files;
mod placement_learning;
mod placement_table;
mod ppo;
mod rejoin;
mod restarts;
mod routing;
mod sharded;
mod switches;
mod synchronous;
mod worker;
