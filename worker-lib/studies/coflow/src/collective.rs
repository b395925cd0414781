//! Traffic of collective operations, with which distributed training exchanges gradients and activations.

use serde::{Deserialize, Serialize};

use super::workload::Flow;
use iswitch_study::StudyError;

/// Collective operation among hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::Display, strum::EnumIter)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Collective {
    /// Ring all-reduce: each of N hosts sends 2 (N - 1) / N times the size of its buffer to the next host in the ring
    /// (Patarasuk and Yuan, 2009).
    RingAllReduce,
    /// All-reduce along a binary tree: each host sends its buffer to its parent, and receives the result from its
    /// parent. Both directions are pipelined.
    TreeAllReduce,
    /// All-to-all: each of N hosts sends 1 / N of its buffer to every other host.
    AllToAll,
}

impl Collective {
    /// Returns the number of flows of the operation among `hosts` hosts.
    pub fn flow_count(self, hosts: usize) -> usize {
        match self {
            Self::RingAllReduce => hosts,
            Self::TreeAllReduce => 2 * hosts.saturating_sub(1),
            Self::AllToAll => hosts.saturating_mul(hosts.saturating_sub(1)),
        }
    }

    /// Returns the flows of the operation. `hosts` lists at least two distinct hosts; host `i` sends from ingress port
    /// `i` and receives at egress port `i`. `bytes` is the size of each host's buffer.
    ///
    /// # Errors
    /// Fails if there are fewer than 2 hosts, or if a host is listed twice.
    pub fn flows(self, hosts: &[usize], bytes: f64) -> Result<Vec<Flow>, StudyError> {
        let count = hosts.len();
        if count < 2 {
            return Err(StudyError::field("number of hosts of a collective", count, "at least 2"));
        }
        let mut sorted = hosts.to_vec();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(StudyError::field("hosts of a collective", pair[0], "different ports"));
        }
        let flow = |from: usize, to: usize, size| Flow { from: hosts[from], to: hosts[to], size };
        let parts = count as f64;
        Ok(match self {
            Self::RingAllReduce => {
                let size = 2.0 * (parts - 1.0) / parts * bytes;
                (0..count).map(|host| flow(host, (host + 1) % count, size)).collect()
            }
            Self::TreeAllReduce => {
                let parent = |host: usize| (host - 1) / 2;
                let both = |host| [flow(host, parent(host), bytes), flow(parent(host), host, bytes)];
                (1..count).flat_map(both).collect()
            }
            Self::AllToAll => {
                let others = |host| (0..count).filter(move |other| *other != host);
                let from = |host| others(host).map(move |other| (host, other));
                (0..count).flat_map(from).map(|(from, to)| flow(from, to, bytes / parts)).collect()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strum::IntoEnumIterator as _;

    fn flows(collective: Collective, hosts: &[usize], bytes: f64) -> Vec<(usize, usize, f64)> {
        let flows = collective.flows(hosts, bytes).unwrap();
        flows.into_iter().map(|Flow { from, to, size }| (from, to, size)).collect()
    }

    #[test]
    fn hosts_exchange_the_bytes_of_the_algorithm() {
        assert_eq!(
            flows(Collective::RingAllReduce, &[3, 1, 2, 5], 4.0),
            [(3, 1, 6.0), (1, 2, 6.0), (2, 5, 6.0), (5, 3, 6.0)]
        );
        let tree = [(1, 3, 4.0), (3, 1, 4.0), (2, 3, 4.0), (3, 2, 4.0), (5, 1, 4.0), (1, 5, 4.0)];
        assert_eq!(flows(Collective::TreeAllReduce, &[3, 1, 2, 5], 4.0), tree);
        assert_eq!(flows(Collective::AllToAll, &[4, 0], 4.0), [(4, 0, 2.0), (0, 4, 2.0)]);
        assert_eq!(flows(Collective::AllToAll, &[0, 1, 2, 3], 4.0).len(), 12);
        for kind in Collective::iter() {
            assert_eq!(flows(kind, &[4, 0, 1, 3, 2], 4.0).len(), kind.flow_count(5), "{kind}");
        }
    }

    #[test]
    fn invalid_hosts_are_reported() {
        let text = |hosts: &[usize]| Collective::AllToAll.flows(hosts, 1.0).unwrap_err().to_string();
        assert_eq!(text(&[1]), "number of hosts of a collective is 1, expected at least 2");
        assert_eq!(text(&[1, 2, 1]), "hosts of a collective is 1, expected different ports");
    }
}
