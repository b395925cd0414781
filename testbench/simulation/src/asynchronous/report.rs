//! What asynchronous simulations have shown.

use std::ops::AddAssign;

use iswitch::pipeline::Staleness;
use iswitch::worker::asynchronous::AsyncCounters;
use serde::Serialize;

/// What one worker process has done.
#[derive(Clone, Debug)]
pub struct WorkerReport {
    /// Its clock t and the staleness of its gradients.
    pub staleness: Staleness,
    /// What its protocol counted.
    pub counters: AsyncCounters,
    /// How often it needed the state of a peer.
    pub missed: u64,
}

/// What a simulation has shown.
#[derive(Clone, Debug)]
pub struct Report {
    /// Restarts of the switch, Resets, and crashes of workers.
    pub upsets: u64,
    /// What became of processes and members.
    pub departures: Departures,
    /// Whether the job has a key.
    pub is_keyed: bool,
    /// Aggregates that any worker has applied.
    pub aggregates: u64,
    /// Aggregates whose sum was compared with the vectors in them.
    pub checked: u64,
    /// Datagrams that were put on the wire.
    pub datagrams: u64,
    /// The workers, each with its last process.
    pub workers: Vec<WorkerReport>,
    /// Processes that ended before.
    pub ended: Vec<WorkerReport>,
}

/// Processes that ended, and members that the switch let go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Departures {
    /// Worker processes that were killed.
    pub crashes: u64,
    /// Worker processes that took the place of another.
    pub returns: u64,
    /// Joins that found the places of the job taken by members that were gone.
    pub turned_away: u64,
    /// Members that were expelled by their lease.
    pub expelled: u64,
    /// Workers that continued with their own state, because all with a later one were gone.
    pub orphans: u64,
    /// Aggregates with a vector whose sender never learned of it.
    pub unconfirmed: u64,
}

/// Counts of one simulation, or of many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Aggregates that any worker has applied.
    pub aggregates: u64,
    /// Aggregates whose sum was compared with the vectors in them.
    pub checked: u64,
    /// Datagrams that were put on the wire.
    pub datagrams: u64,
    /// Vectors that aggregates have taken.
    pub admitted: u64,
    /// Gradients that were too stale to be committed.
    pub skipped: u64,
    /// Segments sent again because the switch missed them.
    pub retransmitted: u64,
    /// Helps sent.
    pub helps: u64,
    /// Times that a worker needed the state of a peer.
    pub missed: u64,
    /// Times that the switch had forgotten a worker and took it back.
    pub rejoins: u64,
    /// Restarts of the switch, Resets, and crashes of workers.
    pub upsets: u64,
    /// Worker processes that were killed.
    pub crashes: u64,
    /// Worker processes that took the place of another.
    pub returns: u64,
    /// Joins that found the places of the job taken by members that were gone.
    pub turned_away: u64,
    /// Members that were expelled by their lease.
    pub expelled: u64,
    /// Workers that continued with their own state, because all with a later one were gone.
    pub orphans: u64,
    /// Aggregates with a vector whose sender never learned of it.
    pub unconfirmed: u64,
    /// Jobs with a key.
    pub authenticated: u64,
}

impl Totals {
    pub(super) fn of(report: &Report) -> Self {
        let processes = || report.workers.iter().chain(&report.ended);
        let sum = |count: fn(&WorkerReport) -> u64| processes().map(count).sum();
        let Departures { crashes, returns, turned_away, expelled, orphans, unconfirmed } = report.departures;
        Self {
            aggregates: report.aggregates,
            checked: report.checked,
            datagrams: report.datagrams,
            admitted: sum(|worker| worker.counters.admitted),
            skipped: sum(|worker| worker.staleness.skipped()),
            retransmitted: sum(|worker| worker.counters.retransmitted),
            helps: sum(|worker| worker.counters.helps),
            missed: sum(|worker| worker.missed),
            rejoins: sum(|worker| worker.counters.rejoins),
            upsets: report.upsets,
            crashes,
            returns,
            turned_away,
            expelled,
            orphans,
            unconfirmed,
            authenticated: u64::from(report.is_keyed),
        }
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.aggregates += other.aggregates;
        self.checked += other.checked;
        self.datagrams += other.datagrams;
        self.admitted += other.admitted;
        self.skipped += other.skipped;
        self.retransmitted += other.retransmitted;
        self.helps += other.helps;
        self.missed += other.missed;
        self.rejoins += other.rejoins;
        self.upsets += other.upsets;
        self.crashes += other.crashes;
        self.returns += other.returns;
        self.turned_away += other.turned_away;
        self.expelled += other.expelled;
        self.orphans += other.orphans;
        self.unconfirmed += other.unconfirmed;
        self.authenticated += other.authenticated;
    }
}
