//! Tests of the algorithms, one program so that they are linked once.

mod asynchronous_training;
mod checkpoint;
mod checkpoint_faults;
mod networks;
mod ppo;
mod synchronous;
