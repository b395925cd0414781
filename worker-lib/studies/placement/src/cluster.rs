//! Nodes and their GPUs.

use std::ops::Range;

use iswitch_study::StudyError;

/// Maximum number of GPUs in a cluster. The limit prevents an input file from exhausting the memory.
pub const GPUS_MAX: usize = 1 << 20;
/// Number of cages in a cabinet of the Titan supercomputer; cages are numbered from the coolest to the hottest.
pub const CAGES: usize = 3;

/// Node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Ids of the node's GPUs.
    pub gpus: Range<usize>,
    /// Cage that holds the node. Failure rates depend on the cage. (A cabinet of Titan has cages 0 to 2 from the bottom
    /// to the top, and the cooling air passes the lower cages before the upper ones.)
    pub cage: usize,
}

/// Level of the failure domains that contain more than one GPU. A failure of a domain stops all of its GPUs at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Level {
    /// A server.
    Node,
    /// Nodes that share a power supply or a top-of-rack switch.
    Rack,
    /// Racks that share a switch of the layer above the top-of-rack switches.
    Switch,
}

/// All nodes of a cluster. GPU ids are 0 to [`gpus`](Self::gpus) - 1, node by node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    nodes: Vec<Node>,
    /// Node of each GPU.
    node_of: Vec<usize>,
    /// Number of GPUs in the largest node.
    widest: usize,
    /// Number of nodes in a rack; the last rack may have fewer.
    nodes_per_rack: usize,
    /// Number of nodes behind a switch; the last switch may have fewer.
    nodes_per_switch: usize,
}

impl Level {
    /// All levels, from the smallest domains to the largest.
    pub const ALL: [Self; 3] = [Self::Node, Self::Rack, Self::Switch];
}

impl Cluster {
    /// Creates a cluster from a `(gpus, cage)` pair for each node: its number of GPUs and its cage.
    ///
    /// # Errors
    /// Fails if there are no nodes, a node has no GPUs, or all nodes together have more than [`GPUS_MAX`].
    pub fn new(nodes: impl IntoIterator<Item = (usize, usize)>) -> Result<Self, StudyError> {
        let mut cluster = Self {
            nodes: Vec::new(),
            node_of: Vec::new(),
            widest: 0,
            nodes_per_rack: usize::MAX,
            nodes_per_switch: usize::MAX,
        };
        for (gpus, cage) in nodes {
            let (number, first) = (cluster.nodes.len(), cluster.node_of.len());
            if gpus == 0 || gpus > GPUS_MAX - first {
                let expected = format!("at least 1, and at most {GPUS_MAX} for all nodes together");
                return Err(StudyError::field(format!("number of GPUs of node {number}"), gpus, expected));
            }
            cluster.nodes.push(Node { gpus: first..first + gpus, cage });
            cluster.node_of.resize(first + gpus, number);
            cluster.widest = cluster.widest.max(gpus);
        }
        if cluster.nodes.is_empty() {
            return Err(StudyError::field("number of nodes", 0, "at least 1"));
        }
        Ok(cluster)
    }

    /// Creates a cluster of identical nodes, which are assigned to the [`CAGES`] cages in turn.
    ///
    /// # Errors
    /// Returns the errors of [`Self::new`].
    pub fn uniform(nodes: usize, gpus_per_node: usize) -> Result<Self, StudyError> {
        Self::new((0..nodes).map(|node| (gpus_per_node, node % CAGES)))
    }

    /// Creates a cluster of `gpus` GPUs, with `gpus_per_node` GPUs on every node except the last, which has the
    /// remainder. Nodes are assigned to the [`CAGES`] cages in turn.
    ///
    /// # Errors
    /// Fails if either argument is 0, or if `gpus` is above [`GPUS_MAX`].
    pub fn of_gpus(gpus: usize, gpus_per_node: usize) -> Result<Self, StudyError> {
        for (name, value) in [("gpus", gpus), ("gpus-per-node", gpus_per_node)] {
            if value == 0 {
                return Err(StudyError::field(name, value, "at least 1"));
            }
        }
        let node = |number: usize| (gpus_per_node.min(gpus - number * gpus_per_node), number % CAGES);
        Self::new((0..gpus.div_ceil(gpus_per_node)).map(node))
    }

    /// Divides the nodes into racks, and the racks into groups that share a switch, in the order of their numbers. By
    /// default, all nodes are in one rack.
    ///
    /// # Errors
    /// Fails if either argument is 0.
    pub fn with_racks(self, nodes_per_rack: usize, racks_per_switch: usize) -> Result<Self, StudyError> {
        for (name, value) in [("nodes per rack", nodes_per_rack), ("racks per switch", racks_per_switch)] {
            if value == 0 {
                return Err(StudyError::field(name, value, "at least 1"));
            }
        }
        let nodes_per_switch = nodes_per_rack.saturating_mul(racks_per_switch);
        Ok(Self { nodes_per_rack, nodes_per_switch, ..self })
    }

    /// Returns the index of the failure domain of the given level that contains a GPU.
    pub fn domain_of(&self, level: Level, gpu: usize) -> usize {
        self.node_of[gpu] / self.nodes_per(level)
    }

    /// Returns the GPUs of each failure domain of the given level.
    pub fn domains(&self, level: Level) -> Vec<Range<usize>> {
        let groups = self.nodes.chunks(self.nodes_per(level).min(self.nodes.len()));
        groups.map(|nodes| nodes[0].gpus.start..nodes[nodes.len() - 1].gpus.end).collect()
    }

    fn nodes_per(&self, level: Level) -> usize {
        match level {
            Level::Node => 1,
            Level::Rack => self.nodes_per_rack,
            Level::Switch => self.nodes_per_switch,
        }
    }

    /// Returns the number of GPUs in the cluster.
    pub fn gpus(&self) -> usize {
        self.node_of.len()
    }

    /// Returns all nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns the index of the node that contains a GPU.
    pub fn node_of(&self, gpu: usize) -> usize {
        self.node_of[gpu]
    }

    /// Returns the cage of the node that contains a GPU.
    pub fn cage_of(&self, gpu: usize) -> usize {
        self.nodes[self.node_of[gpu]].cage
    }

    /// Returns the number of nodes that `gpus` GPUs would need if every node were as large as the largest one.
    pub fn nodes_needed(&self, gpus: usize) -> usize {
        gpus.div_ceil(self.widest)
    }

    /// Checks that a GPU id exists.
    ///
    /// # Errors
    /// Fails if no GPU has the id.
    pub fn check_gpu(&self, gpu: usize) -> Result<(), StudyError> {
        if gpu < self.gpus() {
            return Ok(());
        }
        Err(StudyError::field("id of a GPU", gpu, format!("0 to {}", self.gpus() - 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_numbered_node_by_node() {
        let cluster = Cluster::new([(2, 0), (4, 1), (1, 2)]).unwrap();
        assert_eq!((cluster.gpus(), cluster.nodes().len()), (7, 3));
        assert_eq!((0..7).map(|gpu| cluster.node_of(gpu)).collect::<Vec<_>>(), [0, 0, 1, 1, 1, 1, 2]);
        assert_eq!((cluster.cage_of(1), cluster.cage_of(6)), (0, 2));
        assert_eq!([1, 4, 5, 9].map(|gpus| cluster.nodes_needed(gpus)), [1, 1, 2, 3]);
    }

    #[test]
    fn racks_and_switches_group_consecutive_nodes() {
        let cluster = Cluster::new([(2, 0), (4, 1), (1, 2), (3, 0), (1, 1)]).unwrap();
        assert_eq!(cluster.domains(Level::Rack), vec![0..cluster.gpus()]);
        let cluster = cluster.with_racks(2, 2).unwrap();
        assert_eq!(cluster.domains(Level::Node), [0..2, 2..6, 6..7, 7..10, 10..11]);
        assert_eq!(cluster.domains(Level::Rack), [0..6, 6..10, 10..11]);
        assert_eq!(cluster.domains(Level::Switch), [0..10, 10..11]);
        assert_eq!(
            [Level::Node, Level::Rack, Level::Switch].map(|level| cluster.domain_of(level, 9)),
            [3, 1, 0]
        );
        let error = cluster.with_racks(0, 1).unwrap_err().to_string();
        assert_eq!(error, "nodes per rack is 0, expected at least 1");
    }

    #[test]
    fn invalid_clusters_are_reported_by_field() {
        let text = |nodes: &[(usize, usize)]| Cluster::new(nodes.iter().copied()).unwrap_err().to_string();
        assert_eq!(text(&[]), "number of nodes is 0, expected at least 1");
        let most = "expected at least 1, and at most 1048576 for all nodes together";
        assert_eq!(text(&[(1, 0), (0, 0)]), format!("number of GPUs of node 1 is 0, {most}"));
        assert_eq!(text(&[(1, 0), (GPUS_MAX, 0)]), format!("number of GPUs of node 1 is 1048576, {most}"));
        let error = Cluster::uniform(2, 4).unwrap().check_gpu(8).unwrap_err().to_string();
        assert_eq!(error, "id of a GPU is 8, expected 0 to 7");
    }
}
