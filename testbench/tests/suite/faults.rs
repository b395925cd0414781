//! Faults of real processes and real frames: a network that delays, reorders, loses and duplicates; workers and
//! switches that pause or die; cables that are pulled. In all cases, each delivered sum contains exactly one
//! contribution of each worker that it claims to include. Needs root.

use std::thread::sleep;
use std::time::{Duration, Instant};

use iswitch_harness::cluster::{Daemon, Group, PortKind, SOON, costs, times, total};
use iswitch_harness::faults::{Faults, complete_checksums, hits};
use iswitch_harness::netns::{Namespace, Star, StarOptions, WORKER_INTERFACE};
use iswitch_harness::process::Signal;
use iswitch_harness::requirements::{networks_and, report, together};
use iswitch_protocol::limits::DEFAULT_SEGMENT_FLOATS;
use iswitch_simulation::network::{LinkCounters, LinkModel, Loss};
use iswitch_testbench::wire_relay::{Relayed, WireRelay};
use serde_json::Value;

const WORKERS: usize = 4;
/// Number of floats in a vector of 6.4 MB. A round of such a vector takes long enough for a test to pause a worker in
/// the middle of it.
const LARGE: u32 = 1_687_206;
/// Short lease, for tests that wait until it expires.
const SHORT_LEASE_MS: u64 = 1000;
/// Default lease, much longer than any pause of a busy machine.
const LONG_LEASE_MS: u64 = 10_000;
/// Number of times that a switch is killed in one job.
const RESTARTS: usize = 3;
/// Rank of the worker that a fault affects.
const VICTIM: usize = 2;

/// Runs jobs on both kinds of port with a relay in each cable, and returns the counters of the relays.
fn aggregate_through(model: LinkModel, rounds: u64, what: &str) -> Vec<Relayed> {
    let run = |kind| {
        let star = Star::new(StarOptions::default());
        let relays: Vec<_> = (0..WORKERS)
            .map(|worker| WireRelay::insert(&star.cable(worker), model, worker as u64 + 1))
            .collect();
        let daemon = Daemon::in_star(&star, kind, &[]);
        let results =
            Group::in_star(&star, daemon.address(), &format!("--rounds {rounds}")).results(2 * SOON);
        assert_eq!(total(&results, "rounds"), WORKERS as u64 * rounds);
        daemon.stop();
        let relayed: Vec<_> = relays.iter().flat_map(|relay| [relay.to_switch(), relay.to_end()]).collect();
        let refused: u64 = relayed.iter().map(|relayed| relayed.refused).sum();
        assert_eq!(refused, 0, "no frame may be too long for the cable");
        report(&format!(
            "{what}, {kind:?}: {}, {} retransmitted, {} helps; {} frames, {} lost, {} twice, {} overtaken",
            times(&results),
            total(&results, "retransmitted"),
            total(&results, "helps"),
            sum(&relayed, |relayed| relayed.link.sent),
            sum(&relayed, |relayed| relayed.link.lost),
            sum(&relayed, |relayed| relayed.link.duplicated),
            sum(&relayed, |relayed| relayed.overtaken),
        ));
        relayed
    };
    PortKind::ALL.into_iter().flat_map(run).collect()
}

fn sum(relayed: &[Relayed], count: impl Fn(&Relayed) -> u64) -> u64 {
    relayed.iter().map(count).sum()
}

#[test]
fn delay_and_reordering_change_no_sum() {
    if !networks_and("delay_and_reordering_change_no_sum", &["ethtool"]) {
        return;
    }
    let _together = together();
    let delay = Duration::from_micros(500);
    let relayed = aggregate_through(LinkModel { delay, ..LinkModel::PERFECT }, 50, "0.5 ms");
    assert_eq!(sum(&relayed, |relayed| relayed.link.lost), 0);
    let model = LinkModel { delay, jitter: Duration::from_millis(5), fifo: false, ..LinkModel::PERFECT };
    let relayed = aggregate_through(model, 50, "0.5 to 5.5 ms");
    assert!(relayed.iter().all(|relayed| relayed.overtaken > 0), "{relayed:?}");
}

#[test]
fn loss_of_1_and_of_10_percent_changes_no_sum() {
    if !networks_and("loss_of_1_and_of_10_percent_changes_no_sum", &["ethtool"]) {
        return;
    }
    let _together = together();
    for (loss, rounds) in [(0.01, 100), (0.1, 50)] {
        let model = LinkModel { loss: Some(Loss::Bernoulli { probability: loss }), ..LinkModel::PERFECT };
        let relayed = aggregate_through(model, rounds, &format!("{} % lost", loss * 100.0));
        assert!(relayed.iter().all(|relayed| relayed.link.lost > 0), "{relayed:?}");
    }
}

#[test]
fn loss_in_bursts_changes_no_sum() {
    if !networks_and("loss_in_bursts_changes_no_sum", &["ethtool"]) {
        return;
    }
    let _together = together();
    // On average, two hundred good frames are followed by a burst of five frames, of which one in ten passes.
    let loss = Loss::GilbertElliott { to_bad: 0.005, to_good: 0.2, loss_bad: 0.9 };
    let relayed = aggregate_through(LinkModel { loss: Some(loss), ..LinkModel::PERFECT }, 100, "bursts");
    assert!(relayed.iter().all(|relayed| relayed.link.lost > 0), "{relayed:?}");
}

#[test]
fn duplicates_change_no_sum() {
    if !networks_and("duplicates_change_no_sum", &["ethtool"]) {
        return;
    }
    let _together = together();
    let model = LinkModel { duplication: 0.1, ..LinkModel::PERFECT };
    let relayed = aggregate_through(model, 100, "10 % duplicated");
    assert!(relayed.iter().all(|relayed| relayed.link.duplicated > 0), "{relayed:?}");
}

#[test]
fn all_faults_at_once_change_no_sum() {
    if !networks_and("all_faults_at_once_change_no_sum", &["ethtool"]) {
        return;
    }
    let _together = together();
    let relayed =
        aggregate_through(LinkModel::ALL_FAULTS, 50, "5 % each lost, duplicated, corrupted, 0.1 to 2.1 ms");
    let is_hit = |relayed: &Relayed| {
        let LinkCounters { lost, duplicated, corrupted, .. } = relayed.link;
        [lost, duplicated, corrupted, relayed.overtaken].into_iter().all(|count| count > 0)
    };
    assert!(relayed.iter().all(is_hit), "{relayed:?}");
}

/// For the raw port, see `duplicates_and_corruption_change_no_sum` in `real_frames.rs`.
#[test]
fn a_udp_port_drops_corrupted_packets() {
    if !networks_and("a_udp_port_drops_corrupted_packets", &["ethtool"]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions::default());
    let daemon = Daemon::in_star(&star, PortKind::Udp, &[]);
    for worker in &star.workers {
        complete_checksums(worker);
        Faults { corruption_permille: 20, ..Faults::default() }.inject(worker);
    }
    let results = Group::in_star(&star, daemon.address(), "--rounds 200 --no-offload").results(SOON);
    let corrupted: u64 = star.workers.iter().map(|worker| hits(worker).corrupted).sum();
    let retransmitted = total(&results, "retransmitted");
    assert!(corrupted > 0 && retransmitted > 0, "{corrupted} corrupted, {retransmitted} retransmitted");
    daemon.stop();
}

/// Job on one kind of port that runs until it is ended.
struct Job {
    star: Star,
    kind: PortKind,
    lease_ms: u64,
    daemon: Daemon,
    group: Group,
}

impl Job {
    /// Starts a job, and waits until it aggregates.
    fn start(kind: PortKind, lease_ms: u64, arguments: &str) -> Self {
        let star = Star::new(StarOptions { workers: WORKERS, ..StarOptions::default() });
        let daemon = start_switch(&star, kind, lease_ms);
        let arguments = format!("--rounds 1000000 {arguments}");
        let group = Group::in_star(&star, daemon.address(), &arguments);
        daemon.wait_for_results();
        Self { star, kind, lease_ms, daemon, group }
    }

    /// Ends the job, and returns the results of its workers.
    fn end(mut self) -> Vec<Value> {
        self.daemon.wait_for_results();
        self.group.end();
        let results = self.group.results(SOON);
        self.daemon.stop();
        results
    }

    fn restart_switch(&mut self) {
        self.daemon.process.kill(SOON);
        self.daemon = start_switch(&self.star, self.kind, self.lease_ms);
    }

    /// Returns the interfaces at both ends of the victim's cable.
    fn ends(&self) -> [(&Namespace, String); 2] {
        [(&self.star.workers[VICTIM], WORKER_INTERFACE.to_owned()), (&self.star.switch, Star::port(VICTIM))]
    }

    fn assert_nobody_was_expelled(&self) {
        assert_eq!(self.daemon.traffic("expelled"), 0);
    }

    /// Waits until the victim is expelled and the other workers continue without it.
    fn wait_for_expulsion(&self) {
        assert_eq!(self.daemon.wait_for_more("expelled", 0), 1);
        self.daemon.wait_for_results();
    }

    /// Waits until the victim has rejoined and contributes.
    fn wait_for_return(&self) {
        self.daemon.wait_for_members(WORKERS);
        self.daemon.wait_for_results();
        assert_eq!(self.daemon.traffic("expelled"), 1);
    }
}

fn start_switch(star: &Star, kind: PortKind, lease_ms: u64) -> Daemon {
    Daemon::in_star(star, kind, &["--lease-ms", &lease_ms.to_string()])
}

/// Runs `test` with a job on each of the two kinds of port, and returns the results of the workers of both jobs.
fn for_both_ports(lease_ms: u64, arguments: &str, test: impl Fn(&mut Job)) -> Vec<Value> {
    let run = |kind| {
        let mut job = Job::start(kind, lease_ms, arguments);
        test(&mut job);
        job.end()
    };
    PortKind::ALL.into_iter().flat_map(run).collect()
}

/// Returns the arguments of a job whose sums may lack one worker.
fn without_one(floats: u32) -> String {
    format!("--min-workers {} --floats {floats}", WORKERS - 1)
}

/// Prints the effects of a fault on the rounds of a job.
fn report_recovery(fault: &str, results: &[Value]) {
    report(&format!("{fault}: {}", costs(results)));
}

/// Asserts that no worker has missed a round, and that every round includes all workers.
fn assert_complete(results: &[Value]) {
    assert_eq!(results.len(), WORKERS * PortKind::ALL.len());
    assert_eq!((total(results, "partial_rounds"), total(results, "missed_rounds")), (0, 0));
}

/// Asserts that the other workers continued without the victim, and that the victim was notified of the number of
/// rounds it missed, and rejoined.
fn assert_victim_missed_rounds(results: &[Value]) {
    assert_eq!(results.len(), WORKERS * PortKind::ALL.len());
    for result in results {
        let is_victim = result["rank"] == VICTIM;
        let count = |field: &str| result[field].as_u64().expect("a number");
        assert_eq!(count("missed_rounds") > 0, is_victim, "{result}");
        assert_eq!(count("rejoins"), u64::from(is_victim), "{result}");
        assert!(is_victim || count("partial_rounds") > 0, "{result}");
        assert!(count("partial_rounds") < count("rounds"), "{result}");
    }
}

#[test]
fn a_worker_pause_shorter_than_its_lease_costs_only_time() {
    if !networks_and("a_worker_pause_shorter_than_its_lease_costs_only_time", &[]) {
        return;
    }
    let _together = together();
    let results = for_both_ports(LONG_LEASE_MS, "", |job| {
        job.group.signal(VICTIM, Signal::STOP);
        sleep(Duration::from_millis(LONG_LEASE_MS / 20));
        job.group.signal(VICTIM, Signal::CONT);
        job.daemon.wait_for_results();
        job.assert_nobody_was_expelled();
    });
    assert_complete(&results);
    report_recovery("a worker paused for 1/20 of its lease", &results);
}

#[test]
fn a_worker_that_pauses_beyond_its_lease_misses_rounds_and_rejoins() {
    if !networks_and("a_worker_that_pauses_beyond_its_lease_misses_rounds_and_rejoins", &[]) {
        return;
    }
    let _together = together();
    let results = for_both_ports(SHORT_LEASE_MS, &without_one(10_119), |job| {
        job.group.signal(VICTIM, Signal::STOP);
        job.wait_for_expulsion();
        job.group.signal(VICTIM, Signal::CONT);
        job.wait_for_return();
    });
    assert_victim_missed_rounds(&results);
    report_recovery(&format!("a worker paused for longer than its lease of {SHORT_LEASE_MS} ms"), &results);
}

/// Pauses the victim when its contributions to some segments of a round, but not to all, have been summed.
fn pause_in_mid_round(job: &mut Job) {
    let segments = u64::from(LARGE.div_ceil(u32::from(DEFAULT_SEGMENT_FLOATS)));
    let begin = Instant::now();
    loop {
        job.group.signal(VICTIM, Signal::STOP);
        // Once the victim's packets in flight have arrived, the other workers wait for it.
        let mut results = job.daemon.results();
        loop {
            sleep(Duration::from_millis(20));
            let before = std::mem::replace(&mut results, job.daemon.results());
            if results == before {
                break;
            }
        }
        if !results.is_multiple_of(segments) {
            return;
        }
        assert!(begin.elapsed() < SOON, "the pause must begin within a round");
        job.group.signal(VICTIM, Signal::CONT);
        job.daemon.wait_for_results();
    }
}

#[test]
fn the_others_continue_without_a_worker_killed_in_mid_round() {
    if !networks_and("the_others_continue_without_a_worker_killed_in_mid_round", &[]) {
        return;
    }
    let _together = together();
    let results = for_both_ports(SHORT_LEASE_MS, &without_one(LARGE), |job| {
        pause_in_mid_round(job);
        job.group.kill(VICTIM);
        job.wait_for_expulsion();
    });
    // The part of the victim's contribution that had arrived remains in the sums.
    assert_eq!(total(&results, "mixed_rounds"), results.len() as u64);
    assert!(total(&results, "partial_rounds") > total(&results, "mixed_rounds"));
    report_recovery(&format!("a worker killed in mid-round, lease {SHORT_LEASE_MS} ms"), &results);
}

#[test]
fn a_pause_of_the_switch_expels_no_worker() {
    if !networks_and("a_pause_of_the_switch_expels_no_worker", &[]) {
        return;
    }
    let _together = together();
    // The pauses are shorter than half a lease, longer than half a lease, and longer than a lease.
    for pause_ms in [SHORT_LEASE_MS / 4, SHORT_LEASE_MS * 3 / 4, SHORT_LEASE_MS * 2] {
        let results = for_both_ports(SHORT_LEASE_MS, "", |job| {
            job.daemon.process.signal(Signal::STOP);
            sleep(Duration::from_millis(pause_ms));
            job.daemon.process.signal(Signal::CONT);
            // This loop runs for two leases, so every lease that is going to expire does so within it.
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_millis(2 * SHORT_LEASE_MS) {
                job.daemon.wait_for_results();
                job.assert_nobody_was_expelled();
            }
        });
        assert_complete(&results);
        report_recovery(&format!("the switch paused for {pause_ms} ms, lease {SHORT_LEASE_MS} ms"), &results);
    }
}

#[test]
fn killing_and_restarting_the_switch_costs_only_time() {
    if !networks_and("killing_and_restarting_the_switch_costs_only_time", &[]) {
        return;
    }
    let _together = together();
    for floats in [10_119, LARGE] {
        let results = for_both_ports(LONG_LEASE_MS, &format!("--floats {floats}"), |job| {
            for _ in 0..RESTARTS {
                job.daemon.wait_for_results();
                job.restart_switch();
            }
            // All workers must have rejoined before they are stopped: a worker that is asked to stop while it rejoins
            // may join once more.
            job.daemon.wait_for_results();
        });
        assert_complete(&results);
        // On a busy machine, the refusal of a packet that was sent before a Join may arrive after the answer to the
        // Join, and the worker then joins once more.
        let restarts = (results.len() * RESTARTS) as u64;
        assert!((restarts..=2 * restarts).contains(&total(&results, "rejoins")), "{results:?}");
        report_recovery(&format!("the switch killed {RESTARTS} times, {floats} floats"), &results);
    }
}

#[test]
fn a_partition_shorter_than_the_lease_heals() {
    if !networks_and("a_partition_shorter_than_the_lease_heals", &[]) {
        return;
    }
    let _together = together();
    let results = for_both_ports(LONG_LEASE_MS, "", |job| {
        for (namespace, interface) in job.ends() {
            namespace.ip(&format!("link set {interface} down\n"));
            sleep(Duration::from_millis(LONG_LEASE_MS / 20));
            namespace.ip(&format!("link set {interface} up\n"));
            job.daemon.wait_for_results();
            job.assert_nobody_was_expelled();
        }
    });
    assert_complete(&results);
    report_recovery(&format!("a cable cut for {} ms", LONG_LEASE_MS / 20), &results);
}

#[test]
fn a_worker_rejoins_after_a_partition_longer_than_its_lease() {
    if !networks_and("a_worker_rejoins_after_a_partition_longer_than_its_lease", &[]) {
        return;
    }
    let _together = together();
    for end in 0..2 {
        let results = for_both_ports(SHORT_LEASE_MS, &without_one(10_119), |job| {
            let (namespace, interface) = &job.ends()[end];
            namespace.ip(&format!("link set {interface} down\n"));
            job.wait_for_expulsion();
            namespace.ip(&format!("link set {interface} up\n"));
            job.wait_for_return();
        });
        assert_victim_missed_rounds(&results);
        report_recovery(&format!("a cable cut for longer than the lease of {SHORT_LEASE_MS} ms"), &results);
    }
}
