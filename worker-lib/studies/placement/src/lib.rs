//! Placement of deep-learning training jobs on GPUs that fail (CN113535365, Zhou, Yang, Zhang, Shao, Tan, "System and
//! method for resource placement of deep-learning training jobs based on reinforcement learning", 2021), and the
//! policies that an operator would compare a learned one with.
//!
//! # The model
//! A cluster of nodes with GPUs. A job asks for a number of GPUs, owns them whole and runs on all of them at once. Each
//! GPU fails at a rate of its own, whether a job has it or not, and is then repaired; a failure of one stops the whole
//! job, which loses the work since its last checkpoint and pays for a restart. Where its GPUs are changes how often a
//! job is stopped, and nothing else unless the options say so.
//!
//! | module | content |
//! |---|---|
//! | [`cluster`] | nodes, GPUs, cages |
//! | [`job`] | gang-scheduled jobs, pools to draw them from |
//! | [`failure`] | when GPUs fail: random or known times, what is known of rates |
//! | [`rates`] | rates that are estimated from the lives of other GPUs |
//! | [`generate`] | jobs and lives where there are no files |
//! | [`reader`] | files: Philly, Alibaba GPU 2023, Titan, Pollux, Tiresias, and tables of our own |
//! | [`options`] | restarts, repairs, checkpoints, queueing |
//! | [`expected`] | what a job takes on average |
//! | [`state`] | what a placer sees |
//! | [`simulation`] | a cluster over time |
//! | [`policy`] | placers that need no training |
//! | [`learned`] | placers that are trained, and their training |
//! | [`workload`] | scenarios of any draw |
//! | [`agent`] | where a job is placed, in JSON lines |

pub mod agent;
pub mod cluster;
pub mod expected;
pub mod failure;
pub mod generate;
pub mod job;
pub mod learned;
pub mod options;
pub mod policy;
pub mod rates;
pub mod reader;
pub mod simulation;
pub mod state;
pub mod workload;

pub use cluster::Cluster;
pub use failure::Failures;
pub use iswitch_study::StudyError;
pub use job::Job;
pub use options::Options;
