//! The state of a running switch at one moment, as operators and tests see it.

use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::port::Port;
use iswitch_switch::{JobStatus, Switch};

/// State of the switch and its ports.
#[derive(Clone, Debug, Serialize)]
pub struct Snapshot {
    /// Boot id: a random number for each run of the switch.
    pub boot: u64,
    /// Time since the switch started, in milliseconds.
    pub uptime_ms: u64,
    /// Traffic counters of the core.
    pub traffic: CounterList,
    /// Number of dropped datagrams, by reason.
    pub drops: CounterList,
    /// Ports, ordered by number.
    pub ports: Vec<PortSnapshot>,
    /// Jobs of the switch.
    pub jobs: Vec<JobStatus>,
}

/// State of one port.
#[derive(Clone, Debug, Serialize)]
pub struct PortSnapshot {
    /// Address or interface of the port.
    pub name: String,
    /// Mode of the port: `udp`, `raw`, or `xdp` with its modes and queues.
    pub mode: String,
    /// Receive buffer that the kernel granted, in the kernel's own accounting of bytes.
    pub recv_buffer_bytes: usize,
    /// Counters of the port.
    pub counters: CounterList,
}

/// List of counter names and values in a fixed order, serialized as a map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterList(Vec<(&'static str, u64)>);

impl CounterList {
    /// Returns the value of a counter, or zero if there is no counter with this name.
    pub fn get(&self, name: &str) -> u64 {
        self.iter().find(|(other, _)| *other == name).map_or(0, |(_, value)| value)
    }

    /// Returns an iterator over names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.0.iter().copied()
    }

    /// Returns the sum of all values.
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
