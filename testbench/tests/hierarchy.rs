//! Three switches in two levels, nine workers, real frames: whatever dies or is cut off, each sum is right. Needs root.

use std::time::{Duration, Instant};

use iswitch_testbench::cluster::{Daemon, Group, PortKind, SOON, times, total};
use iswitch_testbench::requirements::{alone, report, root_and};
use iswitch_testbench::tree::Tree;

/// Workers of each rack.
const RACKS: [usize; 2] = [4, 5];
const WORKERS: u64 = 9;
const RACK: usize = 0;
/// Short, for tests that wait for its end.
const SHORT_LEASE: [&str; 2] = ["--lease-ms", "1500"];

struct Job {
    root: Daemon,
    racks: Vec<Daemon>,
    workers: Group,
}

impl Job {
    fn start(tree: &Tree, kind: PortKind, options: &[&str], arguments: &str) -> Self {
        let root = tree.start_root(kind, options);
        let racks: Vec<_> = (0..RACKS.len()).map(|rack| tree.start_rack(rack, kind, options)).collect();
        let workers = tree.start_workers(racks[0].address(), arguments);
        Self { root, racks, workers }
    }

    /// Waits until sums come down, checks all of them to the end, and returns the results.
    fn finish(mut self) -> Vec<serde_json::Value> {
        self.racks[RACK].wait_for_results();
        self.workers.end();
        self.workers.results(2 * SOON)
    }
}

/// Time from now until the rack has new results.
fn time_to_results(daemon: &Daemon) -> Duration {
    let begin = Instant::now();
    daemon.wait_for_results();
    begin.elapsed()
}

#[test]
fn nine_workers_in_two_racks_get_exact_sums() {
    if !root_and("nine_workers_in_two_racks_get_exact_sums", &["ip"]) {
        return;
    }
    let _alone = alone();
    let tree = Tree::new(&RACKS);
    for kind in PortKind::ALL {
        for (floats, rounds) in [(10_119, 100), (1_687_206, 10)] {
            let arguments = format!("--floats {floats} --rounds {rounds}");
            let job = Job::start(&tree, kind, &[], &arguments);
            let results = job.workers.results(3 * SOON);
            assert_eq!(total(&results, "rounds"), WORKERS * rounds);
            let up = job.root.traffic("contributions");
            let segments = u64::from(u32::div_ceil(floats, 366)) * rounds;
            assert_eq!(up, segments * RACKS.len() as u64, "one packet a rack and segment");
            report(&format!("{floats} floats, {kind:?}: {}", times(&results)));
            job.racks.into_iter().for_each(|rack| drop(rack.stop()));
            job.root.stop();
        }
    }
}

#[test]
fn a_killed_rack_switch_comes_back_and_no_round_is_lost() {
    if !root_and("a_killed_rack_switch_comes_back_and_no_round_is_lost", &["ip"]) {
        return;
    }
    let _alone = alone();
    let tree = Tree::new(&RACKS);
    let mut job = Job::start(&tree, PortKind::Raw, &[], "--floats 100000 --rounds 1000000");
    job.racks[RACK].wait_for_results();
    for _ in 0..3 {
        let mut killed = job.racks.remove(RACK);
        killed.process.kill(SOON);
        let begin = Instant::now();
        job.racks.insert(RACK, tree.start_rack(RACK, PortKind::Raw, &[]));
        time_to_results(&job.racks[RACK]);
        report(&format!("rack switch killed and started: sums again after {:.0?}", begin.elapsed()));
    }
    let results = job.finish();
    assert_eq!(total(&results, "partial_rounds"), 0, "every sum holds all nine");
}

#[test]
fn a_killed_root_comes_back_and_no_round_is_lost() {
    if !root_and("a_killed_root_comes_back_and_no_round_is_lost", &["ip"]) {
        return;
    }
    let _alone = alone();
    let tree = Tree::new(&RACKS);
    for kind in PortKind::ALL {
        let mut job = Job::start(&tree, kind, &SHORT_LEASE, "--floats 100000 --rounds 1000000");
        job.racks[RACK].wait_for_results();
        for _ in 0..3 {
            job.root.process.kill(SOON);
            let begin = Instant::now();
            job.root = tree.start_root(kind, &SHORT_LEASE);
            time_to_results(&job.racks[RACK]);
            report(&format!("root killed and started, {kind:?}: sums again after {:.0?}", begin.elapsed()));
        }
        let results = job.finish();
        assert_eq!(total(&results, "partial_rounds"), 0, "every sum holds all nine");
    }
}
