//! Recorded faults of a cluster's nodes, replayed from random starts.

use rand::RngExt as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;

use super::Cluster;
use super::cluster::Level;
use super::domain::Domain;
use super::failure::{Belief, YEAR};
use iswitch_study::StudyError;
use iswitch_study::error::above_zero;

/// Number of failures that the prior is worth in the estimate of a node's failure rate. It is low because the
/// rates of the nodes differ widely.
const SHAPE: f64 = 0.5;
/// Fraction of the trace that placers know: the part directly before the time at which a run starts.
const HISTORY: f64 = 0.5;

/// Faults of nodes over a period.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeTrace {
    /// `(begin, end)` of the outages of each node that had outages, in seconds and in chronological order.
    nodes: Vec<Vec<(f64, f64)>>,
    /// Length of the period, in seconds.
    length: f64,
}

impl NodeTrace {
    /// Creates a trace from the outages `(begin, end)` of each node that had outages, in seconds. Outages of a node
    /// that overlap or touch are merged.
    ///
    /// # Errors
    /// Fails if the length of the period is not above 0, there is no outage, or an outage begins before 0, ends after
    /// the period or does not end after it begins.
    pub fn new(mut nodes: Vec<Vec<(f64, f64)>>, length: f64) -> Result<Self, StudyError> {
        above_zero("length of a fault trace", length, "seconds")?;
        for (node, outages) in nodes.iter_mut().enumerate() {
            outages.sort_by(|a, b| a.0.total_cmp(&b.0));
            if let Some((begin, end)) =
                outages.iter().find(|(begin, end)| !(*begin >= 0.0 && end > begin && *end <= length))
            {
                let expected = format!("an outage within 0 to {length} s that ends after it begins");
                let value = format!("{begin} s to {end} s");
                return Err(StudyError::field(format!("outage of node {node}"), value, expected));
            }
            outages.dedup_by(|later, earlier| {
                let touches = later.0 <= earlier.1;
                if touches {
                    earlier.1 = earlier.1.max(later.1);
                }
                touches
            });
        }
        nodes.retain(|outages| !outages.is_empty());
        if nodes.is_empty() {
            return Err(StudyError::field("number of nodes with faults", 0, "at least 1"));
        }
        Ok(Self { nodes, length })
    }

    /// Returns the number of nodes that had an outage.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the number of outages.
    pub fn outages(&self) -> usize {
        self.nodes.iter().map(Vec::len).sum()
    }

    /// Returns the length of the period, in seconds.
    pub fn length(&self) -> f64 {
        self.length
    }

    /// Returns the mean rate of outages of the nodes of a cluster, in outages per node and year.
    pub fn per_year(&self, cluster: &Cluster) -> f64 {
        self.outages() as f64 / (cluster.nodes().len() as f64 * self.length / YEAR)
    }

    /// Draws failures of a cluster's nodes by replaying the trace from a random time and, after its end, from its
    /// beginning, with the nodes in random order. If the cluster has more nodes than the trace, the remaining nodes
    /// never fail. Placers know the mean rate and each node's outages in the half of the trace before the start. A run
    /// that is longer than the other half of the trace therefore repeats outages that placers have already counted.
    ///
    /// # Errors
    /// Fails if the cluster has fewer nodes than the trace has nodes with outages.
    pub fn draw(&self, cluster: &Cluster, rng: &mut ChaCha8Rng) -> Result<Vec<Domain>, StudyError> {
        let mut nodes = cluster.domains(Level::Node);
        if self.nodes.len() > nodes.len() {
            let expected = format!("at most {}, the number of nodes in the cluster", nodes.len());
            return Err(StudyError::field("number of nodes with faults", self.nodes.len(), expected));
        }
        let start = rng.random_range(0.0..self.length);
        nodes.shuffle(rng);
        let mean = self.per_year(cluster);
        let outages = self.nodes.iter().map(Vec::as_slice).chain(std::iter::repeat(&[][..]));
        nodes
            .into_iter()
            .zip(outages)
            .map(|(gpus, outages)| self.domain(gpus, outages, start, mean))
            .collect()
    }

    /// Returns the failures of one node, with times relative to `start`, a time in the trace.
    fn domain(
        &self,
        gpus: std::ops::Range<usize>,
        outages: &[(f64, f64)],
        start: f64,
        mean: f64,
    ) -> Result<Domain, StudyError> {
        let history = self.length * HISTORY;
        let (mut ahead, mut seen, mut repaired) = (Vec::with_capacity(outages.len() + 1), 0.0, -history);
        for (begin, end) in outages {
            let after = (begin - start).rem_euclid(self.length);
            let lasts = end - begin;
            ahead.push((after, after + lasts));
            let before = after - self.length;
            if before >= -history {
                seen += 1.0;
            }
            if before + lasts > 0.0 {
                // The node is down at the start.
                ahead.push((0.0, before + lasts));
            } else if before >= -history {
                repaired = f64::max(repaired, before + lasts);
            }
        }
        ahead.sort_by(|a, b| a.0.total_cmp(&b.0));
        let belief = Belief::shrunk(seen, history / YEAR, SHAPE, mean);
        Domain::trace(gpus, ahead, belief)?.with_level(Level::Node).repaired_at(repaired)
    }
}
