//! Distributed reinforcement learning, and what its algorithms share.
//!
//! Each algorithm has its hyper-parameters documented at the top: [`dqn`], [`a2c`], [`ppo`], [`ddpg`].
//! Each is a resumable state machine around a [`GradientAggregator`](iswitch::GradientAggregator): each worker computes
//! the gradient of its share of a batch, the aggregator sums them, and all workers apply the same step, so that
//! their replicas of the network stay identical to the last bit.
//!
//! Hyper-parameters are global: a batch of 64 is 64 samples over all workers, however many there are. The
//! environments of a job are numbered; each has its own random streams, keyed by the job's seed and that
//! number ([`streams`]), so that one process with four environments and four processes with one each do the
//! same mathematics, up to the rounding of sums.

pub mod a2c;
pub mod actor_critic;
pub mod async_server;
pub mod asynchronous;
pub mod checkpoint;
mod config;
pub mod ddpg;
pub mod deterministic;
pub mod dqn;
pub mod environments;
pub mod episodes;
mod error;
pub mod evaluate;
pub mod exact;
pub mod experience;
pub mod halves;
pub mod metrics;
pub mod normalise;
pub mod off_policy;
pub mod on_policy;
pub mod phases;
pub mod policy_value;
pub mod ppo;
pub mod q_network;
pub mod remote;
pub mod replay;
pub mod replica;
pub mod rollout;
pub mod share;
pub mod statistics;
pub mod streams;
pub mod synchronous;
pub mod trained;
pub mod trainer;
pub mod vector_env;

pub use error::TrainError;
