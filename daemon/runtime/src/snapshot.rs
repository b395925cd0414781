//! The state of a running switch at one moment, as operators and tests see it.

use std::sync::Arc;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::port::Port;
use iswitch_switch::{JobStatus, LimitStatus, Switch};

fn in_hex<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{number:016x}"))
}

/// State of the switch and its ports.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Snapshot {
    /// Boot id: a random number for each run of the switch. Serialized as 16 hexadecimal digits.
    #[serde(serialize_with = "in_hex")]
    pub boot: u64,
    /// Time since the switch started, in milliseconds.
    pub uptime_ms: u64,
    /// Traffic counters of the core.
    pub traffic: CounterList,
    /// Number of dropped datagrams, by reason.
    pub drops: CounterList,
    /// Counters of the card, if a card sums.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub card: Option<CardSnapshot>,
    /// Ports, ordered by number.
    pub ports: Vec<PortSnapshot>,
    /// Jobs of the switch.
    pub jobs: Vec<JobStatus>,
    /// Limits of the switch and their current usage.
    pub limits: Vec<LimitStatus>,
}

/// Counters of a card since the daemon started.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CardSnapshot {
    /// Counters of frames, contributions and results.
    pub counters: CounterList,
    /// Number of contributions that the card dropped, by reason.
    pub drops: CounterList,
}

/// State of one port.
#[derive(Clone, Debug, Serialize)]
pub struct PortSnapshot {
    /// Address or interface of the port.
    pub name: String,
    /// Mode of the port: `udp`, `raw`, or `xdp` with its modes and queues.
    pub mode: String,
    /// Size of the receive buffer that the kernel granted, in bytes, as the kernel reports it.
    pub recv_buffer_bytes: usize,
    /// Counters of the port.
    pub counters: CounterList,
}

/// List of counter names and values in a fixed order, serialized as a map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterList(Vec<(&'static str, u64)>);

impl CounterList {
    /// Returns the value of a counter, or zero if the list has no counter with this name.
    pub fn get(&self, name: &str) -> u64 {
        self.iter().find(|(other, _)| *other == name).map_or(0, |(_, value)| value)
    }

    /// Returns an iterator over the names and values of the counters.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.0.iter().copied()
    }

    /// Returns the sum of all values.
    pub fn total(&self) -> u64 {
        self.iter().map(|(_, value)| value).sum()
    }
}

impl CounterList {
    /// Adds each value of another list to the value with the same name in this list.
    fn add(&mut self, other: &Self) {
        for (name, value) in other.iter() {
            match self.0.iter_mut().find(|(own, _)| *own == name) {
                Some((_, own)) => *own += value,
                None => self.0.push((name, value)),
            }
        }
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
    /// Merges the snapshots of the loops of one switch. The first snapshot must come from the first thread's loop.
    /// Ports with the same name and parts of the same job are combined, and their counters are added.
    pub(crate) fn merged(mut all: Vec<Arc<Self>>) -> Arc<Self> {
        if all.len() == 1 {
            return all.remove(0);
        }
        let mut whole = Self::default();
        for (at, one) in all.iter().enumerate() {
            if at == 0 {
                whole.boot = one.boot;
                // A daemon with a card has one thread.
                whole.card.clone_from(&one.card);
            }
            whole.uptime_ms = whole.uptime_ms.max(one.uptime_ms);
            whole.traffic.add(&one.traffic);
            whole.drops.add(&one.drops);
            one.ports.iter().for_each(|port| whole.add_port(port));
            one.jobs.iter().for_each(|job| whole.add_job(job));
            one.limits.iter().for_each(|limit| whole.add_limit(limit));
        }
        Arc::new(whole)
    }

    fn add_port(&mut self, port: &PortSnapshot) {
        match self.ports.iter_mut().find(|own| own.name == port.name) {
            Some(own) => {
                own.recv_buffer_bytes = own.recv_buffer_bytes.min(port.recv_buffer_bytes);
                own.counters.add(&port.counters);
            }
            None => self.ports.push(port.clone()),
        }
    }

    fn add_limit(&mut self, limit: &LimitStatus) {
        match self.limits.iter_mut().find(|own| own.limit == limit.limit) {
            Some(own) if limit.is_divided() => {
                own.used += limit.used;
                own.value += limit.value;
            }
            // A job with a long vector counts once, although each thread has a part of it.
            Some(own) => own.used = own.used.max(limit.used),
            None => self.limits.push(limit.clone()),
        }
    }

    fn add_job(&mut self, job: &JobStatus) {
        let is_same = |own: &&mut JobStatus| own.job == job.job && own.part && job.part;
        match self.jobs.iter_mut().find(is_same) {
            Some(own) => own.add_part(job),
            None => self.jobs.push(job.clone()),
        }
    }

    pub(crate) fn of(
        switch: &Switch,
        boot: u64,
        uptime: Duration,
        ports: Vec<PortSnapshot>,
        card: Option<CardSnapshot>,
    ) -> Self {
        let counters = switch.counters();
        let drops = counters.dropped_by_reason();
        Self {
            boot,
            uptime_ms: uptime.as_millis() as u64,
            traffic: counters.traffic().collect(),
            drops: drops.map(|(reason, count)| (reason.name(), count)).collect(),
            card,
            ports,
            jobs: switch.jobs().collect(),
            limits: switch.limits(),
        }
    }
}
