//! Tests with parent switches that pause, fail permanently, or are each other's parents. In each case, members are
//! notified, no rack delivers a sum of only its own workers, and all racks continue automatically once a parent is
//! available. Needs root.

use std::net::Ipv4Addr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use iswitch_harness::cluster::{Daemon, Group, PortKind, SOON, costs, settled_results, total};
use iswitch_harness::netns::{Namespace, Star};
use iswitch_harness::process::Signal;
use iswitch_harness::requirements::{networks_and, report, together};
use iswitch_harness::tree::{ROOT_ADDRESS, Tree, TreeJob, UPLINK_INTERFACE};
use iswitch_protocol::limits::DEFAULT_PORT;
use serde_json::Value;

/// Number of workers of each rack.
const RACKS: [usize; 2] = [4, 5];
const WORKERS: u64 = 9;
const LEASE_MS: u64 = 1000;
const LEASE: [&str; 2] = ["--lease-ms", "1000"];

/// Asserts that every round was summed by all nine workers.
fn assert_complete(results: &[Value]) {
    assert_eq!((total(results, "partial_rounds"), total(results, "missed_rounds")), (0, 0));
}

/// Asserts that the racks report that their parent does not respond.
fn assert_notified(job: &TreeJob) {
    for rack in &job.racks {
        let text = rack.status_text();
        let line = format!("job 0: the parent {ROOT_ADDRESS}:{DEFAULT_PORT} has not answered for ");
        assert!(text.contains(&line), "{text}");
    }
}

/// Pauses the root. Returns the time until the racks reported the pause, and the time from the end of the pause until
/// results arrived again. If `is_reported` is false, does not wait for reports.
fn pause_root(job: &mut TreeJob, pause: Duration, is_reported: bool) -> (Duration, Duration) {
    job.root.process.signal(Signal::STOP);
    let begin = Instant::now();
    let before = settled_results(&job.racks);
    if is_reported {
        job.racks.iter().for_each(|rack| rack.wait_for_parent(true));
        assert_notified(job);
    }
    let reported = begin.elapsed();
    sleep(pause.saturating_sub(reported));
    assert_eq!(settled_results(&job.racks), before, "no rack may deliver a sum of its own");
    job.root.process.signal(Signal::CONT);
    let begin = Instant::now();
    job.wait_for_results();
    let recovery = begin.elapsed();
    job.racks.iter().for_each(|rack| rack.wait_for_parent(false));
    (reported, recovery)
}

#[test]
fn a_root_pause_is_reported_and_costs_only_time() {
    if !networks_and("a_root_pause_is_reported_and_costs_only_time", &[]) {
        return;
    }
    let _together = together();
    let tree = Tree::new(&RACKS);
    // The pauses are shorter than the three heartbeats after which a parent is lost, longer than them, and longer than
    // a lease.
    for (pause_ms, is_reported) in [(LEASE_MS / 4, false), (LEASE_MS * 3 / 4, true), (LEASE_MS * 2, true)] {
        for kind in PortKind::ALL {
            let mut job = TreeJob::start(&tree, kind, &LEASE, "--rounds 1000000 --patience-ms 750");
            job.wait_for_results();
            let (reported, recovery) = pause_root(&mut job, Duration::from_millis(pause_ms), is_reported);
            assert_eq!(job.root.traffic("expelled"), 0);
            let results = job.finish();
            assert_complete(&results);
            assert_eq!(total(&results, "rejoins"), 0);
            let are_notified = |result: &Value| result["orphaned_stalls"].as_u64() > Some(0);
            // If the pause is shorter than a lease, only about 200 ms of it remain for the notification. The intervals
            // between a worker's queries grow, so on a busy machine, its query may come too late.
            let all_are_notified = pause_ms < LEASE_MS || results.iter().all(are_notified);
            assert!(all_are_notified, "each worker must be notified: {results:?}");
            let reported =
                if is_reported { format!("reported after {reported:.0?}, ") } else { String::new() };
            report(&format!(
                "root paused for {pause_ms} ms, lease {LEASE_MS} ms, {kind:?}: {reported}sums again {recovery:.0?} \
                 after the pause; {}",
                costs(&results)
            ));
        }
    }
}

/// Two switches, either of which can be the parent of all racks.
struct Parents<'a> {
    tree: &'a Tree,
    first: (Namespace, Ipv4Addr),
    second: (Namespace, Ipv4Addr),
}

impl<'a> Parents<'a> {
    fn new(tree: &'a Tree) -> Self {
        let [first, second] = [8, 9].map(|place| tree.plug_switch(place));
        Self { tree, first, second }
    }

    /// Starts a job whose racks use the first parent, and waits until the job aggregates.
    fn start_job(&self, kind: PortKind) -> TreeJob {
        // The order on the command line does not matter: racks try the parent with the lower address first.
        let parents = [self.second.1, self.first.1];
        let start_rack = |rack| self.tree.start_rack_below(&parents, rack, kind, &LEASE);
        let racks = (0..RACKS.len()).map(start_rack).collect();
        let first = start_parent(&self.first, kind);
        let job = TreeJob::below(self.tree, first, racks, "--rounds 1000000 --floats 100000");
        job.wait_for_results();
        job
    }
}

fn start_parent((namespace, address): &(Namespace, Ipv4Addr), kind: PortKind) -> Daemon {
    Daemon::serving(namespace, *address, kind, &[UPLINK_INTERFACE.to_owned()], &LEASE)
}

/// Waits until sums arrive through `next`, the racks' next parent, and returns the elapsed time.
fn wait_for_next_parent(job: &TreeJob, next: &Daemon) -> Duration {
    let begin = Instant::now();
    next.wait_for_more("contributions", 0);
    job.wait_for_results();
    begin.elapsed()
}

fn report_next_parent(fault: &str, kind: PortKind, recovery: Duration, results: &[Value]) {
    assert_complete(results);
    assert_eq!(total(results, "rejoins"), WORKERS);
    report(&format!(
        "root {fault}, lease {LEASE_MS} ms, {kind:?}: sums through the next parent after {} ms; {}",
        recovery.as_millis(),
        costs(results)
    ));
}

#[test]
fn racks_move_to_the_next_parent_if_the_root_does_not_return() {
    if !networks_and("racks_move_to_the_next_parent_if_the_root_does_not_return", &[]) {
        return;
    }
    let _together = together();
    let tree = Tree::new(&RACKS);
    let parents = Parents::new(&tree);
    for kind in PortKind::ALL {
        let next = start_parent(&parents.second, kind);
        let mut job = parents.start_job(kind);
        assert_eq!(next.traffic("contributions"), 0, "the first parent must serve the job");
        job.root.process.kill(SOON);
        let recovery = wait_for_next_parent(&job, &next);
        job.workers.end();
        report_next_parent("killed for good", kind, recovery, &job.workers.results(2 * SOON));
        // A new job begins at the first parent again.
        let back = start_parent(&parents.first, kind);
        let results = Group::of(tree.workers(), job.racks[0].address(), "--rounds 20").results(SOON);
        assert_complete(&results);
        assert!(back.traffic("contributions") > 0);
    }
}

#[test]
fn a_root_that_resumes_after_its_racks_have_left_changes_no_sum() {
    if !networks_and("a_root_that_resumes_after_its_racks_have_left_changes_no_sum", &[]) {
        return;
    }
    let _together = together();
    let tree = Tree::new(&RACKS);
    let parents = Parents::new(&tree);
    for kind in PortKind::ALL {
        let next = start_parent(&parents.second, kind);
        let mut job = parents.start_job(kind);
        job.root.process.signal(Signal::STOP);
        let recovery = wait_for_next_parent(&job, &next);
        job.root.process.signal(Signal::CONT);
        // The root expels the racks, because it no longer receives their heartbeats.
        job.root.wait_for_more("expelled", RACKS.len() as u64 - 1);
        report_next_parent("paused for longer", kind, recovery, &job.finish());
    }
}

#[test]
fn switches_in_a_cycle_refuse_each_other_with_a_specific_error() {
    if !networks_and("switches_in_a_cycle_refuse_each_other_with_a_specific_error", &[]) {
        return;
    }
    let _together = together();
    let tree = Tree::new(&[2, 2]);
    let addresses = [0, 1].map(Tree::rack_address);
    let services = addresses.map(|address| format!("{address}:{DEFAULT_PORT}"));
    let start = |rack: usize| {
        let arguments = ["--udp", &services[rack], LEASE[0], LEASE[1]];
        tree.start_rack_below(&[addresses[1 - rack]], rack, PortKind::Raw, &arguments)
    };
    let mut racks = [start(0), start(1)];
    let workers = Group::of(tree.workers(), racks[0].address(), "--rounds 20");
    for rack in &mut racks {
        // One rack refuses the other's Join, and the other logs the refusal.
        rack.process.wait_for("levels of switches (expected 8)", SOON);
    }
    let refused = racks.iter().filter(|rack| rack.status_text().contains("refuses this switch: levels of"));
    assert!(refused.count() > 0);
    for star in &tree.racks {
        let neighbour = Star::worker_address(1).to_string();
        let text = star.workers[0].run(["ping", "-q", "-c", "50", "-i", "0.01", &neighbour]);
        assert!(text.contains(" 0% packet loss"), "{text}");
    }
    assert_eq!(racks.each_ref().map(Daemon::results), [0, 0]);
    // Once one of the switches is the root, the waiting workers continue.
    racks.into_iter().for_each(|rack| drop(rack.stop()));
    let arguments = ["--udp", &services[1], LEASE[0], LEASE[1]];
    let _root = Daemon::in_star(&tree.racks[1], PortKind::Raw, &arguments);
    let _rack = tree.start_rack_below(&[addresses[1]], 0, PortKind::Raw, &LEASE);
    let results = workers.results(2 * SOON);
    assert_complete(&results);
}
