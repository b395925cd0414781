//! Placement of deep-learning training jobs on GPUs that fail (CN113535365, Zhou, Yang, Zhang, Shao, Tan, "System and
//! method for resource placement of deep-learning training jobs based on reinforcement learning", 2021), and other
//! policies for comparison.
//!
//! # The model
//! A cluster consists of nodes with GPUs. A job asks for a number of GPUs, owns them exclusively and runs on all of
//! them at once. Each GPU fails at its own rate, whether or not a job runs on it, and is then repaired. A failure of
//! one of a job's GPUs stops the whole job, which loses the work since its last checkpoint and pays for a restart.
//! Placement affects only how often a job is stopped, unless [`Options::spread_slowdown`] slows down jobs that run on
//! more nodes than they need.
//!
//! | module | content |
//! |---|---|
//! | [`cluster`] | nodes, GPUs, cages |
//! | [`job`] | gang-scheduled jobs, pools to draw them from |
//! | [`failure`] | failures of GPUs at random or known times, and what placers know about the rates |
//! | [`domain`] | failure domains: nodes, racks and switches |
//! | [`node_trace`] | recorded faults of nodes, replayed from random starts |
//! | [`rates`] | failure rates estimated from the life histories of other GPUs |
//! | [`generate`] | synthetic jobs and GPU life histories |
//! | [`reader`] | readers of Philly, Gavel, Alibaba GPU 2023, Titan, Pollux, Tiresias and the project's own tables |
//! | [`options`] | restarts, repairs, checkpoints, queueing |
//! | [`expected`] | expected completion time of a job on GPUs that fail |
//! | [`state`] | state of the cluster that a placer sees |
//! | [`simulation`] | discrete-event simulation of a cluster |
//! | [`policy`] | placers that need no training |
//! | [`learned`] | learned placers and their training |
//! | [`inputs`] | jobs and failures of all draws, which are read from files or generated |
//! | [`workload`] | scenarios of all draws |
//! | [`environment`] | environment in which a user-supplied agent picks the GPUs of each job |
//! | [`agent`] | placement as a service, over JSON lines |
//! | [`manager`] | nodes and jobs of Slurm and Kubernetes, and a policy's advice for them |

pub mod agent;
pub mod cluster;
mod decide;
pub mod domain;
pub mod environment;
pub mod expected;
pub mod failure;
pub mod generate;
pub mod inputs;
pub mod job;
pub mod learned;
pub mod manager;
pub mod node_trace;
pub mod options;
pub mod policy;
pub mod rates;
pub mod reader;
mod shared_rates;
pub mod simulation;
pub mod state;
pub mod workload;

pub use cluster::Cluster;
pub use decide::{Decisions, JobState, Start};
pub use failure::Failures;
pub use iswitch_study::StudyError;
pub use job::Job;
pub use options::Options;
