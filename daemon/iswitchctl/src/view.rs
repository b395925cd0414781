//! State of a daemon as its control socket reports it in the answer to `snapshot`.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Values of counters by name.
pub(crate) type Counters = BTreeMap<String, u64>;

/// State of the daemon at one moment.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct View {
    /// Boot id of the switch, as hexadecimal digits.
    pub(crate) boot: String,
    /// Time since the daemon started, in milliseconds.
    pub(crate) uptime_ms: u64,
    pub(crate) traffic: Counters,
    /// Number of datagrams that were dropped, by reason.
    pub(crate) drops: Counters,
    pub(crate) ports: Vec<PortView>,
    pub(crate) jobs: Vec<JobView>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PortView {
    pub(crate) name: String,
    pub(crate) mode: String,
    pub(crate) recv_buffer_bytes: u64,
    pub(crate) counters: Counters,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct JobView {
    pub(crate) job: u32,
    /// Name of the job, if a member has stated one.
    #[serde(default)]
    pub(crate) name: Option<String>,
    /// Number of floats in the gradient vector of the job.
    pub(crate) gradient_len: u32,
    /// Number of threads of the switch, each of which sums a part of the job's vector.
    #[serde(default = "one")]
    pub(crate) parts: u16,
    pub(crate) mode: String,
    /// Number of workers that the first Join declared; zero if the job does not wait for workers.
    pub(crate) workers: u16,
    pub(crate) formed: bool,
    pub(crate) threshold: u16,
    pub(crate) halted: bool,
    /// Whether the card of the switch currently sums the job.
    #[serde(default)]
    pub(crate) on_card: bool,
    /// Address of the multicast group to which results are sent, if there is one.
    #[serde(default)]
    pub(crate) group: Option<String>,
    pub(crate) round: Option<u32>,
    pub(crate) parent_lost: bool,
    pub(crate) parent_refusal: Option<String>,
    pub(crate) members: Vec<MemberView>,
    pub(crate) waiting: Option<WaitingView>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct MemberView {
    pub(crate) id: u16,
    /// Rank that the member has stated, if any.
    #[serde(default)]
    pub(crate) rank: Option<u16>,
    /// Host name that the member has stated, if any.
    #[serde(default)]
    pub(crate) host: Option<String>,
    pub(crate) address: String,
    pub(crate) kind: String,
    /// Whether the member receives results through the group of the job.
    #[serde(default)]
    pub(crate) hears_group: bool,
    pub(crate) silent_ms: u64,
    /// Number of segments that the member has contributed since it joined.
    pub(crate) contributions: u64,
    /// Round of the member's last contribution.
    pub(crate) last_round: Option<u32>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct WaitingView {
    pub(crate) waited_ms: u64,
    /// Number of segments into which the job's vector is divided.
    pub(crate) segments: u32,
    pub(crate) members: Vec<AwaitedView>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct AwaitedView {
    pub(crate) member: u16,
    /// Rank that the member has stated, if any.
    #[serde(default)]
    pub(crate) rank: Option<u16>,
    /// Host name that the member has stated, if any.
    #[serde(default)]
    pub(crate) host: Option<String>,
    pub(crate) missing_segments: u32,
}

impl AwaitedView {
    /// Returns the id of the member, followed by its rank and its host name in parentheses, as far as they are known.
    pub(crate) fn text(&self) -> String {
        let member = self.member;
        match (self.rank, &self.host) {
            (None, None) => member.to_string(),
            (Some(rank), None) => format!("{member} (rank {rank})"),
            (None, Some(host)) => format!("{member} (on {host})"),
            (Some(rank), Some(host)) => format!("{member} (rank {rank} on {host})"),
        }
    }
}

impl View {
    /// Returns the sum of one counter over all ports.
    pub(crate) fn of_ports(&self, counter: &str) -> u64 {
        self.ports.iter().map(|port| value(&port.counters, counter)).sum()
    }
}

/// Returns the value of a counter, or zero if the daemon does not have that counter.
pub(crate) fn value(counters: &Counters, name: &str) -> u64 {
    counters.get(name).copied().unwrap_or(0)
}

/// Returns the default number of parts of a job, for a daemon that does not report this number.
fn one() -> u16 {
    1
}
