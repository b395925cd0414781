//! A policy's decisions for the jobs of a manager, which refer to nodes and jobs by the manager's names.

use serde::Serialize;

use super::{Availability, Managed, ManagedJob};
use crate::agent::{Agent, Given, Use};
use crate::decide::JobState;
use crate::{Cluster, Failures};
use iswitch_study::StudyError;

/// Decisions of a policy. All suspensions are carried out first, then all starts. A job in both lists saves its work
/// and moves to other GPUs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Advice {
    /// Names of the jobs to suspend. Each such job saves its work and returns to the queue.
    pub suspend: Vec<String>,
    /// Jobs to start.
    pub start: Vec<ManagedStart>,
    /// Number of seconds, at least 1, after which the policy must be consulted again even if nothing happens before
    /// then; null if it decides only after events.
    pub look_again_s: Option<f64>,
}

/// Start of a job, or its resumption after a suspension or failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ManagedStart {
    /// Name of the job.
    pub job: String,
    /// Nodes of the job and their GPUs.
    pub nodes: Vec<NodeGpus>,
}

/// GPUs of one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeGpus {
    /// Name of the node.
    pub node: String,
    /// Indices of the GPUs on the node. If the manager does not report which GPUs are in use, only the number of
    /// indices is meaningful.
    pub gpus: Vec<usize>,
}

impl Managed {
    /// Returns the nodes as a cluster. Its GPUs are numbered node by node, in the order of [`Managed::nodes`].
    ///
    /// # Errors
    /// Fails if there are no nodes or too many GPUs.
    pub fn cluster(&self) -> Result<Cluster, StudyError> {
        Cluster::new(self.nodes.iter().map(|node| (node.gpus, 0)))
    }

    /// Returns random failures in which each GPU fails at the rate of its node. `rates` contains one rate for each
    /// node, in failures per GPU and year.
    ///
    /// # Errors
    /// Fails if a rate is out of range.
    pub fn failures(&self, rates: &[f64]) -> Result<Failures, StudyError> {
        let of_gpus =
            self.nodes.iter().zip(rates).flat_map(|(node, rate)| std::iter::repeat_n(*rate, node.gpus));
        Failures::poisson(of_gpus.collect())
    }

    /// Returns the decisions of the agent's policy for all jobs. The agent must have been created for
    /// [`Self::cluster`].
    ///
    /// # Errors
    /// Fails if two jobs have the same GPU or the same name, the jobs on a node hold more GPUs than the node has, or a
    /// job asks for more GPUs than the cluster has.
    pub fn advise(&self, agent: &mut Agent) -> Result<Advice, StudyError> {
        let occupancy = Occupancy::new(self)?;
        let given = occupancy.given(self, agent);
        let jobs: Vec<_> = self.jobs.iter().zip(occupancy.of_job).map(|(job, on)| job.state(on)).collect();
        let decisions = agent.decide(&given, &jobs)?;
        let start = decisions.start.into_iter().map(|start| {
            let cluster = &agent.cluster;
            let mut nodes: Vec<NodeGpus> = Vec::new();
            let mut gpus = start.gpus;
            gpus.sort_unstable();
            for gpu in gpus {
                let node = cluster.node_of(gpu);
                let (name, index) = (&self.nodes[node].name, gpu - cluster.nodes()[node].gpus.start);
                match nodes.last_mut().filter(|last| last.node == *name) {
                    Some(last) => last.gpus.push(index),
                    None => nodes.push(NodeGpus { node: name.clone(), gpus: vec![index] }),
                }
            }
            ManagedStart { job: start.job, nodes }
        });
        let look_again_s = decisions.look_again_s;
        Ok(Advice { suspend: decisions.suspend, start: start.collect(), look_again_s })
    }
}

impl ManagedJob {
    /// Converts the job, which holds the GPUs `on`, to the format of a request to an agent.
    fn state(&self, on: Vec<usize>) -> JobState {
        JobState {
            id: self.id.clone(),
            gpus: self.gpus,
            duration: self.limit,
            done: 0.0,
            on,
            running_for: self.running_for,
            starts: self.starts,
            left: None,
        }
    }
}

/// Assignment of GPUs to jobs.
struct Occupancy {
    /// First GPU of each node.
    first: Vec<usize>,
    /// GPUs of each job.
    of_job: Vec<Vec<usize>>,
    /// For each GPU, whether one of the listed jobs holds it.
    is_taken: Vec<bool>,
}

impl Occupancy {
    fn new(managed: &Managed) -> Result<Self, StudyError> {
        let mut gpus = 0;
        let first = managed.nodes.iter().map(|node| {
            gpus += node.gpus;
            gpus - node.gpus
        });
        let first = first.collect();
        let of_job = vec![Vec::new(); managed.jobs.len()];
        let mut occupancy = Self { first, of_job, is_taken: vec![false; gpus] };
        let jobs = managed.jobs.iter().enumerate();
        let mut all: Vec<_> = jobs.flat_map(|(at, job)| job.on.iter().map(move |held| (at, held))).collect();
        // Allocations with known GPU indices come before those for which the manager reports only a number of GPUs.
        all.sort_by_key(|(_, held)| held.gpus.is_empty());
        for (at, held) in all {
            let (job, node) = (&managed.jobs[at], &managed.nodes[held.node]);
            let fail = |expected: &str| {
                StudyError::field(format!("GPUs of job {} on {}", job.id, node.name), held.count, expected)
            };
            let gpus = occupancy.first[held.node]..occupancy.first[held.node] + node.gpus;
            let chosen = if held.gpus.is_empty() {
                occupancy.lowest_free(gpus, held.count)
            } else {
                held.gpus.iter().map(|gpu| gpus.start + gpu).collect()
            };
            if chosen.len() < held.count {
                return Err(fail("at most the number of GPUs that no other job holds"));
            }
            for gpu in chosen {
                if std::mem::replace(&mut occupancy.is_taken[gpu], true) {
                    return Err(fail("GPUs that no other job holds"));
                }
                occupancy.of_job[at].push(gpu);
            }
        }
        Ok(occupancy)
    }

    /// Returns the first `count` GPUs in the range `gpus` that no job holds, or fewer if there are not enough.
    fn lowest_free(&self, gpus: std::ops::Range<usize>, count: usize) -> Vec<usize> {
        gpus.filter(|gpu| !self.is_taken[*gpu]).take(count).collect()
    }

    /// Returns the state of each GPU in the format of a request to an agent.
    fn given(&self, managed: &Managed, agent: &Agent) -> Vec<Given> {
        let mut given = Vec::with_capacity(self.is_taken.len());
        for (node, begin) in managed.nodes.iter().zip(&self.first) {
            let taken = self.is_taken[*begin..begin + node.gpus].iter().filter(|it| **it).count();
            // The other GPUs in use are held by jobs that are not listed, such as those of other users.
            let mut unlisted = node.in_use.unwrap_or(taken).saturating_sub(taken);
            for gpu in *begin..begin + node.gpus {
                let used = match (self.is_taken[gpu], node.availability) {
                    (true, Availability::Up) => Use::Busy,
                    (true, _) | (false, Availability::Draining) => Use::Draining,
                    (false, Availability::Down) => Use::Failed,
                    (false, Availability::Up) if unlisted > 0 => {
                        unlisted -= 1;
                        Use::Draining
                    }
                    (false, Availability::Up) => Use::Free,
                };
                given.push(agent.known(gpu, used));
            }
        }
        given
    }
}
