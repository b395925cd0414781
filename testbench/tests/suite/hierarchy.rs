//! Tests of two and three levels of switches with nine workers and real frames: each sum is exact, whichever process
//! dies or pauses. Needs root.

use std::thread::sleep;
use std::time::{Duration, Instant};

use iswitch_harness::binaries;
use iswitch_harness::cluster::{Group, PortKind, SOON, costs, times, total};
use iswitch_harness::netns::Namespace;
use iswitch_harness::process::{Process, Signal};
use iswitch_harness::requirements::{networks_and, report, together};
use iswitch_harness::tree::{ThreeLevelTree, Tree, TreeJob};
use serde_json::Value;

/// Number of workers of each rack.
const RACKS: [usize; 2] = [4, 5];
const WORKERS: u64 = 9;
const RACK: usize = 0;
const OTHER_RACK: usize = 1;
/// Ranks of the workers that a fault affects: one of each rack.
const VICTIMS: [usize; 2] = [2, 6];
/// Short lease, for tests that wait until it expires.
const SHORT_LEASE_MS: u64 = 1000;
const SHORT_LEASE: [&str; 2] = ["--lease-ms", "1000"];
/// Number of packets of a vector of `all_reduce` with default options.
const SEGMENTS: u64 = 28;

fn count(result: &Value, field: &str) -> u64 {
    result[field].as_u64().expect("a number")
}

#[test]
fn nine_workers_in_two_racks_get_exact_sums() {
    if !networks_and("nine_workers_in_two_racks_get_exact_sums", &[]) {
        return;
    }
    let _together = together();
    let tree = Tree::new(&RACKS);
    for kind in PortKind::ALL {
        for (floats, rounds) in [(10_119, 100), (1_687_206, 10)] {
            let arguments = format!("--floats {floats} --rounds {rounds}");
            let job = TreeJob::start(&tree, kind, &[], &arguments);
            let results = job.workers.results(3 * SOON);
            assert_eq!(total(&results, "rounds"), WORKERS * rounds);
            let up = job.root.traffic("contributions");
            let segments = u64::from(u32::div_ceil(floats, 366)) * rounds;
            assert_eq!(up, segments * RACKS.len() as u64, "each rack must send one packet per segment");
            report(&format!("{floats} floats, {kind:?}: {}", times(&results)));
            job.racks.into_iter().for_each(|rack| drop(rack.stop()));
            job.root.stop();
        }
    }
}

#[test]
fn three_levels_of_switches_give_exact_sums() {
    if !networks_and("three_levels_of_switches_give_exact_sums", &[]) {
        return;
    }
    let _together = together();
    let tree = ThreeLevelTree::new(&[&[2, 2], &[3, 2]]);
    let rounds = 100;
    for kind in PortKind::ALL {
        let levels = tree.start(kind);
        let arguments = format!("--rounds {rounds}");
        let results = Group::of(tree.workers(), levels[2][0].address(), &arguments).results(2 * SOON);
        assert_eq!(total(&results, "rounds"), WORKERS * rounds);
        // Each level carries one packet per child and segment.
        for (level, children) in [(0, 2), (1, 4), (2, WORKERS)] {
            let up: u64 = levels[level].iter().map(|daemon| daemon.traffic("contributions")).sum();
            assert_eq!(up, children * SEGMENTS * rounds, "level {level}");
        }
        report(&format!("three levels, {kind:?}: {}", times(&results)));
        levels.into_iter().flatten().for_each(|daemon| drop(daemon.stop()));
    }
}

#[test]
fn asynchronous_workers_in_two_racks_have_the_same_model() {
    if !networks_and("asynchronous_workers_in_two_racks_have_the_same_model", &[]) {
        return;
    }
    let _together = together();
    let tree = Tree::new(&RACKS);
    for kind in PortKind::ALL {
        let root = tree.start_root(kind, &[]);
        let racks: Vec<_> = (0..RACKS.len()).map(|rack| tree.start_rack(rack, kind, &[])).collect();
        let switch = racks[0].address();
        let spawn = |(rank, namespace): (usize, &Namespace)| {
            let arguments = format!(
                "--switch {switch} --workers {WORKERS} --rank {rank} --floats 10119 --compute-us 1000 \
                 --gradients 4000"
            );
            let mut command = namespace.command(binaries::async_times());
            Process::spawn(&format!("worker {rank}"), command.args(arguments.split_whitespace()))
        };
        let workers: Vec<_> = tree.workers().enumerate().map(spawn).collect();
        let printed: Vec<_> = workers.into_iter().map(|worker| worker.wait_success(3 * SOON)).collect();
        let results = printed.iter().map(|lines| {
            serde_json::from_str::<Value>(lines.lines().last().unwrap_or_default()).expect("one line of JSON")
        });
        let results: Vec<_> = results.collect();
        assert!(results.iter().all(|result| result["digest"] == results[0]["digest"]), "{results:?}");
        assert!(racks.iter().all(|rack| rack.traffic("partials") > 0), "vectors must go up as partial sums");
        report(&format!("asynchronous, {kind:?}: {}", results[0]));
        racks.into_iter().for_each(|rack| drop(rack.stop()));
        root.stop();
    }
}

#[test]
fn no_round_is_lost_when_a_killed_rack_switch_restarts() {
    if !networks_and("no_round_is_lost_when_a_killed_rack_switch_restarts", &[]) {
        return;
    }
    let _together = together();
    let tree = Tree::new(&RACKS);
    let mut job = TreeJob::start(&tree, PortKind::Raw, &[], "--floats 100000 --rounds 1000000");
    job.wait_for_results();
    for _ in 0..3 {
        job.racks.remove(RACK).process.kill(SOON);
        let begin = Instant::now();
        job.racks.insert(RACK, tree.start_rack(RACK, PortKind::Raw, &[]));
        job.racks[RACK].wait_for_results();
        report(&format!("rack switch killed and started: sums again after {:.0?}", begin.elapsed()));
    }
    let results = job.finish();
    assert_eq!(total(&results, "partial_rounds"), 0, "every sum holds all nine");
}

#[test]
fn no_round_is_lost_when_a_killed_root_restarts() {
    if !networks_and("no_round_is_lost_when_a_killed_root_restarts", &[]) {
        return;
    }
    let _together = together();
    let tree = Tree::new(&RACKS);
    for kind in PortKind::ALL {
        let mut job = TreeJob::start(&tree, kind, &SHORT_LEASE, "--floats 100000 --rounds 1000000");
        job.wait_for_results();
        for _ in 0..3 {
            job.root.process.kill(SOON);
            let begin = Instant::now();
            job.root = tree.start_root(kind, &SHORT_LEASE);
            job.racks[RACK].wait_for_results();
            report(&format!("root killed and started, {kind:?}: sums again after {:.0?}", begin.elapsed()));
        }
        let results = job.finish();
        assert_eq!(total(&results, "partial_rounds"), 0, "every sum holds all nine");
    }
}

#[test]
fn a_rack_switch_pause_shorter_than_its_lease_costs_only_time() {
    if !networks_and("a_rack_switch_pause_shorter_than_its_lease_costs_only_time", &[]) {
        return;
    }
    let _together = together();
    let tree = Tree::new(&RACKS);
    for kind in PortKind::ALL {
        // This lease is longer than any pause of a busy machine.
        let mut job = TreeJob::start(&tree, kind, &[], "--rounds 1000000");
        job.wait_for_results();
        job.racks[RACK].process.signal(Signal::STOP);
        sleep(Duration::from_millis(SHORT_LEASE_MS));
        job.racks[RACK].process.signal(Signal::CONT);
        job.wait_for_results();
        let expelled = job.root.traffic("expelled") + job.racks[RACK].traffic("expelled");
        assert_eq!(expelled, 0);
        let results = job.finish();
        assert_eq!((total(&results, "partial_rounds"), total(&results, "missed_rounds")), (0, 0));
        report(&format!("rack switch paused for 1/10 of its lease, {kind:?}: {}", costs(&results)));
    }
}

#[test]
fn a_rack_that_pauses_beyond_its_lease_misses_rounds_and_rejoins() {
    if !networks_and("a_rack_that_pauses_beyond_its_lease_misses_rounds_and_rejoins", &[]) {
        return;
    }
    let _together = together();
    let tree = Tree::new(&RACKS);
    for kind in PortKind::ALL {
        let arguments = format!("--rounds 1000000 --min-workers {}", RACKS[OTHER_RACK]);
        let mut job = TreeJob::start(&tree, kind, &SHORT_LEASE, &arguments);
        job.wait_for_results();
        job.racks[RACK].process.signal(Signal::STOP);
        let begin = Instant::now();
        job.root.wait_for_more("expelled", 0);
        job.racks[OTHER_RACK].wait_for_results();
        let without = begin.elapsed();
        job.racks[RACK].process.signal(Signal::CONT);
        let begin = Instant::now();
        job.root.wait_for_members(RACKS.len());
        job.wait_for_results();
        report(&format!(
            "rack switch paused, {kind:?}: the other rack continues after {} ms, the rack is back {} ms after \
             the pause",
            without.as_millis(),
            begin.elapsed().as_millis()
        ));
        let results = job.finish();
        for result in &results {
            let was_away = count(result, "rank") < RACKS[RACK] as u64;
            assert_eq!(count(result, "missed_rounds") > 0, was_away, "{result}");
            assert!(was_away || count(result, "partial_rounds") > 0, "{result}");
        }
        report(&format!("{kind:?}: {}", costs(&results)));
    }
}

#[test]
fn both_racks_continue_without_a_paused_or_dead_worker() {
    if !networks_and("both_racks_continue_without_a_paused_or_dead_worker", &[]) {
        return;
    }
    let _together = together();
    let tree = Tree::new(&RACKS);
    for kind in PortKind::ALL {
        let arguments = format!("--rounds 1000000 --min-workers {}", WORKERS - 1);
        let mut job = TreeJob::start(&tree, kind, &SHORT_LEASE, &arguments);
        job.wait_for_results();
        let without_victim = |job: &TreeJob, rack: usize| {
            let begin = Instant::now();
            job.racks[rack].wait_for_more("expelled", 0);
            job.wait_for_results();
            report(&format!(
                "worker of rack {rack} gone, {kind:?}: both racks continue after {} ms",
                begin.elapsed().as_millis()
            ));
        };
        job.workers.signal(VICTIMS[RACK], Signal::STOP);
        without_victim(&job, RACK);
        job.workers.signal(VICTIMS[RACK], Signal::CONT);
        job.racks[RACK].wait_for_members(RACKS[RACK]);
        job.wait_for_results();
        job.workers.kill(VICTIMS[OTHER_RACK]);
        without_victim(&job, OTHER_RACK);
        assert_eq!(job.root.traffic("expelled"), 0, "no rack may be expelled because of one of its workers");
        let results = job.finish();
        for result in &results {
            let is_victim = count(result, "rank") == VICTIMS[RACK] as u64;
            assert_eq!(count(result, "missed_rounds") > 0, is_victim, "{result}");
            assert!(count(result, "partial_rounds") > 0, "{result}");
            assert!(count(result, "partial_rounds") < count(result, "rounds"), "{result}");
        }
        report(&format!("{kind:?}: {}", costs(&results)));
    }
}
