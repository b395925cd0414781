//! Results of asynchronous simulations.

use std::ops::AddAssign;

use iswitch::pipeline::Staleness;
use iswitch::worker::asynchronous::AsyncCounters;
use serde::Serialize;

/// Report of one worker process.
#[derive(Clone, Debug)]
pub struct WorkerReport {
    /// Clock t of the worker and the staleness of its gradients.
    pub staleness: Staleness,
    /// Counters of the worker's protocol.
    pub counters: AsyncCounters,
    /// Number of times that the worker needed the state of a peer.
    pub missed: u64,
}

/// Report of one simulation.
#[derive(Clone, Debug)]
pub struct Report {
    /// Number of restarts of the switch, Resets, and crashes of workers.
    pub upsets: u64,
    /// Processes that ended and members that departed.
    pub departures: Departures,
    /// Whether the job has a key.
    pub is_keyed: bool,
    /// Whether there are switches below the root.
    pub is_tree: bool,
    /// Number of aggregates that at least one worker has applied.
    pub aggregates: u64,
    /// Number of aggregates whose sum was compared with the vectors in them.
    pub checked: u64,
    /// Number of datagrams put on the wire.
    pub datagrams: u64,
    /// Number of data packets that the switch sent to groups.
    pub group_datagrams: u64,
    /// Report of the last process of each worker.
    pub workers: Vec<WorkerReport>,
    /// Reports of the earlier processes.
    pub ended: Vec<WorkerReport>,
}

/// Counts of processes that ended and of members that departed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Departures {
    /// Number of worker processes killed.
    pub crashes: u64,
    /// Number of worker processes that replaced an earlier one.
    pub returns: u64,
    /// Number of Joins refused because members that had ended still occupied the job's slots.
    pub turned_away: u64,
    /// Number of members expelled because their lease expired.
    pub expelled: u64,
    /// Number of workers that continued with their own state because all workers with a later state had ended.
    pub orphans: u64,
    /// Number of aggregates with a vector whose sender received no confirmation.
    pub unconfirmed: u64,
    /// Number of restarts of switches below the root.
    pub rack_restarts: u64,
    /// Number of times that a worker moved to its other switch.
    pub moves: u64,
}

/// Counts from one simulation, or their totals over several simulations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Number of aggregates that at least one worker has applied.
    pub aggregates: u64,
    /// Number of aggregates whose sum was compared with the vectors in them.
    pub checked: u64,
    /// Number of datagrams put on the wire.
    pub datagrams: u64,
    /// Number of data packets that the switch sent to groups.
    pub group_datagrams: u64,
    /// Number of vectors admitted to aggregates.
    pub admitted: u64,
    /// Number of gradients that were too stale to be committed.
    pub skipped: u64,
    /// Number of segments retransmitted because the switch lacked them.
    pub retransmitted: u64,
    /// Help packets sent.
    pub helps: u64,
    /// Number of times that a worker needed the state of a peer.
    pub missed: u64,
    /// Number of times that a worker rejoined after the switch had lost its membership.
    pub rejoins: u64,
    /// Number of restarts of the switch, Resets, and crashes of workers.
    pub upsets: u64,
    /// Number of worker processes killed.
    pub crashes: u64,
    /// Number of worker processes that replaced an earlier one.
    pub returns: u64,
    /// Number of Joins refused because members that had ended still occupied the job's slots.
    pub turned_away: u64,
    /// Number of members expelled because their lease expired.
    pub expelled: u64,
    /// Number of workers that continued with their own state because all workers with a later state had ended.
    pub orphans: u64,
    /// Number of aggregates with a vector whose sender received no confirmation.
    pub unconfirmed: u64,
    /// Number of simulations of a job with a key.
    pub authenticated: u64,
    /// Number of simulations of a tree of switches.
    pub trees: u64,
    /// Number of restarts of switches below the root.
    pub rack_restarts: u64,
    /// Number of times that a worker moved to its other switch.
    #[serde(skip_serializing_if = "crate::report::is_zero")]
    pub moves: u64,
}

impl Totals {
    pub(super) fn of(report: &Report) -> Self {
        let processes = || report.workers.iter().chain(&report.ended);
        let sum = |count: fn(&WorkerReport) -> u64| processes().map(count).sum();
        let Departures {
            crashes,
            returns,
            turned_away,
            expelled,
            orphans,
            unconfirmed,
            rack_restarts,
            moves,
        } = report.departures;
        Self {
            aggregates: report.aggregates,
            checked: report.checked,
            datagrams: report.datagrams,
            group_datagrams: report.group_datagrams,
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
            trees: u64::from(report.is_tree),
            rack_restarts,
            moves,
        }
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.aggregates += other.aggregates;
        self.checked += other.checked;
        self.datagrams += other.datagrams;
        self.group_datagrams += other.group_datagrams;
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
        self.trees += other.trees;
        self.rack_restarts += other.rack_restarts;
        self.moves += other.moves;
    }
}
