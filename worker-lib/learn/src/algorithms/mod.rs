//! Distributed reinforcement-learning algorithms and the code that they share.
//!
//! The module of each algorithm documents its hyper-parameters: [`dqn`], [`a2c`], [`ppo`], [`ddpg`], [`td3`],
//! [`sac`]. Each algorithm is a resumable state machine around a
//! [`GradientAggregator`](iswitch::GradientAggregator): each worker computes the gradient of its share of a batch, the
//! aggregator sums the gradients, and all workers apply the same step, so that their replicas of the network stay
//! bit-identical.
//!
//! Hyper-parameters are global: a batch size of 64 means 64 samples over all workers, regardless of the world size. The
//! environments of a job are numbered. Each has its own random streams, keyed by the job's seed and the environment's
//! number ([`streams`]). One process with four environments therefore performs the same computation as four processes
//! with one environment each, up to the rounding of sums.

pub mod a2c;
pub mod actor_critic;
pub mod async_server;
pub mod asynchronous;
pub mod checkpoint;
mod config;
pub mod critics;
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
pub mod policy_graph;
pub mod policy_value;
pub mod ppo;
pub mod q_network;
pub mod remote;
pub mod replay;
pub mod replica;
pub mod rollout;
pub mod sac;
pub mod share;
pub mod statistics;
pub mod streams;
pub mod synchronous;
pub mod td3;
pub mod trained;
pub mod trainer;
pub mod vector;
pub mod vector_env;

pub use error::TrainError;
