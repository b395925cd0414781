//! The state of a running switch at one moment, as operators and tests see it.

use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::port::Port;
use iswitch_switch::{JobStatus, Switch};

/// State of switch and ports.
#[derive(Clone, Debug, Serialize)]
pub struct Snapshot {
    /// Drawn at random for each run of the switch.
    pub boot: u64,
    /// Time since the start, in milliseconds.
    pub uptime_ms: u64,
    /// What the core counted.
    pub traffic: CounterList,
    /// Datagrams that changed nothing, by reason.
    pub drops: CounterList,
    /// The ports, by number.
    pub ports: Vec<PortSnapshot>,
    /// The jobs.
    pub jobs: Vec<JobStatus>,
}

/// State of one port.
#[derive(Clone, Debug, Serialize)]
pub struct PortSnapshot {
    /// Address or interface.
    pub name: String,
    /// How datagrams pass it: `udp`, `raw`, or `xdp` with its modes and queues.
    pub mode: String,
    /// Receive buffer that the kernel gave, in the kernel's own bytes.
    pub recv_buffer_bytes: usize,
    /// What the port counted.
    pub counters: CounterList,
}

/// Names and values, in a fixed order. A map when serialized.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterList(Vec<(&'static str, u64)>);

impl CounterList {
    /// The value of a counter; zero for a name that does not exist.
    pub fn get(&self, name: &str) -> u64 {
        self.iter().find(|(other, _)| *other == name).map_or(0, |(_, value)| value)
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.0.iter().copied()
    }

    /// Sum of all values.
    pub fn total(&self) -> u64 {
        self.iter().map(|(_, value)| value).sum()
    }
}

impl FromIterator<(&'static str, u64)> for CounterList {
    fn from_iter<I: IntoIterator<Item = (&'static str, u64)>>(counters: I) -> Self {
        Self(counters.into_iter().collect())
    }
}

impl Serialize for CounterList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl PortSnapshot {
    pub(crate) fn of(port: &dyn Port) -> Self {
        Self {
            name: port.name().to_owned(),
            mode: port.mode().to_owned(),
            recv_buffer_bytes: port.recv_buffer_bytes(),
            counters: port.counters().iter().collect(),
        }
    }
}

impl Snapshot {
    pub(crate) fn of(switch: &Switch, boot: u64, uptime: Duration, ports: Vec<PortSnapshot>) -> Self {
        let counters = switch.counters();
        let drops = counters.dropped_by_reason();
        Self {
            boot,
            uptime_ms: uptime.as_millis() as u64,
            traffic: counters.traffic().collect(),
            drops: drops.map(|(reason, count)| (reason.name(), count)).collect(),
            ports,
            jobs: switch.jobs().collect(),
        }
    }
}
