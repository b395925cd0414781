//! Tests of a daemon with several threads: each thread sums a part of the vector, all sums are exact, and operators see
//! a single job. Needs root.

use std::thread::sleep;
use std::time::{Duration, Instant};

use iswitch_harness::cluster::{Daemon, Group, PortKind, SOON, costs, times, total};
use iswitch_harness::faults::{Faults, hits};
use iswitch_harness::netns::{Star, StarOptions};
use iswitch_harness::process::Signal;
use iswitch_harness::requirements::{networks_and, programs, report, together};
use iswitch_harness::tree::{Tree, TreeJob};
use serde_json::Value;

const WORKERS: u64 = 4;
/// Number of floats in a vector. The resulting 274 segments are divided among four threads.
const FLOATS: u64 = 100_000;
const KINDS: [PortKind; 2] = [PortKind::Raw, PortKind::Udp];
/// Number of workers of each rack.
const RACKS: [usize; 2] = [2, 3];
const VICTIM: usize = 2;
const SHORT_LEASE_MS: u64 = 1000;

fn endless() -> String {
    format!("--floats {FLOATS} --rounds 1000000")
}

fn finish(mut group: Group) -> Vec<Value> {
    group.end();
    group.results(2 * SOON)
}

#[test]
fn operators_see_one_job_whatever_the_number_of_threads() {
    let test = "operators_see_one_job_whatever_the_number_of_threads";
    if !programs(test, &["setpriv"]) {
        return;
    }
    let _together = together();
    for threads in ["1", "2", "4"] {
        let daemon = Daemon::on_loopback(&["--threads", threads]);
        let group = Group::here(WORKERS as usize, daemon.address(), &endless());
        daemon.wait_for_results();
        daemon.wait_for_members(WORKERS as usize);
        let jobs = daemon.jobs();
        assert_eq!(jobs.as_array().map(Vec::len), Some(1), "{jobs}");
        assert_eq!(jobs[0]["gradient_len"].as_u64(), Some(FLOATS), "{jobs}");
        assert_eq!(jobs[0]["parts"].to_string(), threads);
        let status = daemon.status();
        assert_eq!(
            (status["jobs"].as_u64(), status["members"].as_u64()),
            (Some(1), Some(WORKERS)),
            "{status}"
        );
        let results = finish(group);
        assert_eq!(total(&results, "partial_rounds"), 0);
        report(&format!("udp, {threads} threads: {}", times(&results)));
        daemon.stop();
    }
}

#[test]
fn threads_give_exact_sums_on_raw_and_udp_ports() {
    if !networks_and("threads_give_exact_sums_on_raw_and_udp_ports", &[]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions::default());
    for kind in KINDS {
        for threads in ["2", "4"] {
            let daemon = Daemon::in_star(&star, kind, &["--threads", threads]);
            let rounds = 50;
            let arguments = format!("--floats {FLOATS} --rounds {rounds}");
            let results = Group::in_star(&star, daemon.address(), &arguments).results(2 * SOON);
            assert_eq!(total(&results, "rounds"), WORKERS * rounds);
            assert_eq!(daemon.traffic("results"), FLOATS.div_ceil(366) * rounds);
            report(&format!("{kind:?}, {threads} threads: {}", times(&results)));
            daemon.stop();
        }
    }
}

#[test]
fn loss_changes_no_sum_of_several_threads() {
    if !networks_and("loss_changes_no_sum_of_several_threads", &[]) {
        return;
    }
    let _together = together();
    for kind in KINDS {
        let star = Star::new(StarOptions::default());
        let daemon = Daemon::in_star(&star, kind, &["--threads", "4"]);
        let faults = Faults { loss_permille: 20, ..Faults::default() };
        star.workers.iter().for_each(|worker| faults.inject(worker));
        let arguments = format!("--floats {FLOATS} --rounds 30 --no-offload");
        let results = Group::in_star(&star, daemon.address(), &arguments).results(4 * SOON);
        assert_eq!(total(&results, "rounds"), WORKERS * 30);
        let lost: u64 = star.workers.iter().map(|worker| hits(worker).lost).sum();
        assert!(lost > 0 && total(&results, "retransmitted") > 0, "{lost} packets lost");
        report(&format!("{kind:?}, 4 threads, 2 % lost: {}", times(&results)));
        daemon.stop();
    }
}

#[test]
fn no_round_is_lost_when_a_killed_switch_with_threads_restarts() {
    if !networks_and("no_round_is_lost_when_a_killed_switch_with_threads_restarts", &[]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions::default());
    for kind in KINDS {
        for threads in ["2", "4"] {
            let options = ["--threads", threads];
            let mut daemon = Daemon::in_star(&star, kind, &options);
            let group = Group::in_star(&star, daemon.address(), &endless());
            for _ in 0..3 {
                daemon.wait_for_results();
                daemon.process.kill(SOON);
                daemon = Daemon::in_star(&star, kind, &options);
            }
            daemon.wait_for_results();
            let results = finish(group);
            assert_eq!(total(&results, "partial_rounds") + total(&results, "missed_rounds"), 0);
            report(&format!("{kind:?}, {threads} threads, switch killed: {}", costs(&results)));
            daemon.stop();
        }
    }
}

#[test]
fn a_worker_that_misses_rounds_returns_to_the_same_round_in_all_parts() {
    if !networks_and("a_worker_that_misses_rounds_returns_to_the_same_round_in_all_parts", &[]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions::default());
    for kind in KINDS {
        let lease = SHORT_LEASE_MS.to_string();
        let daemon = Daemon::in_star(&star, kind, &["--threads", "4", "--lease-ms", &lease]);
        let mut group = Group::in_star(&star, daemon.address(), &(endless() + " --min-workers 3"));
        for _ in 0..3 {
            daemon.wait_for_members(WORKERS as usize);
            daemon.wait_for_results();
            group.signal(VICTIM, Signal::STOP);
            daemon.wait_for_members(WORKERS as usize - 1);
            sleep(Duration::from_millis(SHORT_LEASE_MS / 2));
            group.signal(VICTIM, Signal::CONT);
        }
        // If the other workers ended while the victim was still bringing its parts to the same round, the victim would
        // be alone in its next round.
        wait_for_contributions(&daemon, &star);
        let results = finish(group);
        assert!(total(&results, "missed_rounds") > 0, "{results:?}");
        report(&format!("{kind:?}, 4 threads, a worker paused beyond its lease: {}", costs(&results)));
        daemon.stop();
    }
}

/// Waits until the paused worker has contributed to complete rounds again after it was resumed.
fn wait_for_contributions(daemon: &Daemon, star: &Star) {
    let address = format!("{}:", star.cable(VICTIM).address);
    let begin = Instant::now();
    loop {
        let jobs = daemon.jobs();
        let members = jobs[0]["members"].as_array().cloned().unwrap_or_default();
        let victim = members
            .iter()
            .find(|member| member["address"].as_str().is_some_and(|it| it.starts_with(&address)));
        if victim.and_then(|victim| victim["contributions"].as_u64()) > Some(3 * FLOATS.div_ceil(366)) {
            return;
        }
        assert!(begin.elapsed() < SOON, "the paused worker contributes nothing: {jobs}");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn switches_with_threads_below_switches_with_threads_give_exact_sums() {
    if !networks_and("switches_with_threads_below_switches_with_threads_give_exact_sums", &[]) {
        return;
    }
    let _together = together();
    let tree = Tree::new(&RACKS);
    for kind in KINDS {
        let options = ["--threads", "2", "--lease-ms", "2000"];
        let mut job = TreeJob::start(&tree, kind, &options, &endless());
        job.wait_for_results();
        assert_eq!(job.root.jobs()[0]["parts"], 2);
        job.racks.remove(0).process.kill(SOON);
        job.racks.insert(0, tree.start_rack(0, kind, &options));
        job.racks[0].wait_for_results();
        job.root.process.kill(SOON);
        job.root = tree.start_root(kind, &options);
        job.racks[0].wait_for_results();
        let results = job.finish();
        assert_eq!(total(&results, "partial_rounds"), 0, "every sum holds all workers");
        report(&format!("{kind:?}, 2 threads in each switch of a tree: {}", costs(&results)));
    }
}

/// Tests a root and racks that run different numbers of threads. The workers of all racks divide their vectors into a
/// number of parts that every switch supports.
#[test]
fn different_numbers_of_threads_in_a_tree_cause_no_hang() {
    if !networks_and("different_numbers_of_threads_in_a_tree_cause_no_hang", &[]) {
        return;
    }
    let _together = together();
    let tree = Tree::new(&RACKS);
    for (root_threads, rack_threads) in [("1", ["2", "4"]), ("2", ["4", "4"]), ("4", ["2", "2"])] {
        let root = tree.start_root(PortKind::Udp, &["--threads", root_threads]);
        let rack =
            |(at, threads): (usize, &&str)| tree.start_rack(at, PortKind::Udp, &["--threads", threads]);
        let racks = rack_threads.iter().enumerate().map(rack).collect();
        let job = TreeJob::below(&tree, root, racks, &format!("--floats {FLOATS} --rounds 20"));
        let results = job.workers.results(2 * SOON);
        assert_eq!(total(&results, "partial_rounds"), 0);
        report(&format!("{root_threads} threads above {rack_threads:?}: {}", times(&results)));
        job.racks.into_iter().for_each(|rack| drop(rack.stop()));
        job.root.stop();
    }
}
