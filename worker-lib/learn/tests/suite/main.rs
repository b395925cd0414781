//! Tests of the algorithms, built as a single program so that they are linked only once.

mod asynchronous_training;
mod checkpoint;
mod checkpoint_faults;
mod elements;
mod networks;
mod ppo;
mod synchronous;
mod threads;
