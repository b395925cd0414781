//! State of a cluster as its resource manager describes it, and a policy's advice for it.
//!
//! [`slurm`] and [`kubernetes`] read the output of the managers' own commands; [`xid`] reads failures from kernel logs.
//! Policies consider only nodes, GPUs, jobs and failures. Other constraints, such as partitions, processors, memory,
//! quotas and affinities, remain with the manager, which rejects advice that violates them.

mod advice;
mod hostlist;
pub mod kubernetes;
pub mod slurm;
pub mod xid;

use std::collections::HashMap;
use std::path::Path;

pub use advice::{Advice, ManagedStart, NodeGpus};
use serde::de::DeserializeOwned;

use crate::cluster::GPUS_MAX;
use iswitch_study::StudyError;
use iswitch_study::table::read;

/// Whether a node accepts jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// The node accepts jobs.
    Up,
    /// The node's jobs keep running, but it gets no new ones.
    Draining,
    /// The node runs no jobs.
    Down,
}

/// Node with GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedNode {
    /// Name of the node, unique among the nodes.
    pub name: String,
    /// Number of GPUs.
    pub gpus: usize,
    /// Number of GPUs that listed and unlisted jobs use according to the manager; `None` if the manager does not report
    /// this number.
    pub in_use: Option<usize>,
    /// Whether the node accepts jobs.
    pub availability: Availability,
}

/// GPUs that a job holds on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Index of the node in [`Managed::nodes`].
    pub node: usize,
    /// Number of GPUs.
    pub count: usize,
    /// Indices of the GPUs on the node; empty if the manager does not report them.
    pub gpus: Vec<usize>,
}

/// Job that waits for GPUs or holds them.
#[derive(Clone, Debug, PartialEq)]
pub struct ManagedJob {
    /// Name of the job, unique among the jobs.
    pub id: String,
    /// Number of GPUs that the job holds or requests.
    pub gpus: usize,
    /// Time limit in seconds, used as the duration of the job; `None` if the job has no limit.
    pub limit: Option<f64>,
    /// GPUs that the job holds; empty if it waits.
    pub on: Vec<Held>,
    /// Time since the start of the current run, in seconds.
    pub running_for: f64,
    /// Number of starts, including that of the current run.
    pub starts: u32,
}

/// Nodes with GPUs, and jobs that use GPUs, as listed by a manager.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Managed {
    /// Nodes with GPUs.
    pub nodes: Vec<ManagedNode>,
    /// Jobs that wait for GPUs or hold them.
    pub jobs: Vec<ManagedJob>,
    /// Reasons why jobs were left out, each with the number of jobs to which it applies.
    pub left_out: Vec<(usize, &'static str)>,
}

impl Managed {
    /// Adds one to the number of jobs left out for this reason.
    fn leave_out(&mut self, reason: &'static str) {
        match self.left_out.iter_mut().find(|(_, other)| *other == reason) {
            Some((count, _)) => *count += 1,
            None => self.left_out.push((1, reason)),
        }
    }

    /// Returns the index of each node by its name.
    pub fn by_name(&self) -> HashMap<String, usize> {
        self.nodes.iter().enumerate().map(|(at, node)| (node.name.clone(), at)).collect()
    }

    /// Checks that the names of the nodes are distinct and that the total number of GPUs is from 1 to [`GPUS_MAX`].
    fn check(self) -> Result<Self, StudyError> {
        if self.by_name().len() < self.nodes.len() {
            let mut names: Vec<_> = self.nodes.iter().map(|node| node.name.as_str()).collect();
            names.sort_unstable();
            let twice = names.windows(2).find(|pair| pair[0] == pair[1]).map_or("", |pair| pair[0]);
            return Err(StudyError::field("name of a node", twice, "a different name for each node"));
        }
        let gpus = self.nodes.iter().fold(0_usize, |sum, node| sum.saturating_add(node.gpus));
        if !(1..=GPUS_MAX).contains(&gpus) {
            return Err(StudyError::field("GPUs of all nodes", gpus, format!("1 to {GPUS_MAX}")));
        }
        Ok(self)
    }
}

/// Reads a JSON file. If parsing fails, the error names the field.
fn parse<T: DeserializeOwned>(path: &Path) -> Result<T, StudyError> {
    let text = read(path)?;
    let mut reader = serde_json::Deserializer::from_str(&text);
    serde_path_to_error::deserialize(&mut reader).map_err(|error| StudyError::file(path, error))
}
