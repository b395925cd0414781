//! The daemon with the Verilated card: the RTL sums, the daemon keeps the membership, and real workers in network
//! namespaces send and receive real frames.

use std::time::Duration;

use hdl::accelerator::Build;
use iswitch_harness::binaries;
use iswitch_harness::cluster::{Daemon, Group, PortKind, SOON, total};
use iswitch_harness::faults::{Faults, hits};
use iswitch_harness::netns::{Namespace, Star, StarOptions};
use iswitch_harness::process::{Process, Signal};
use iswitch_harness::requirements::{networks_and, report, together};
use iswitch_harness::scratch;
use iswitch_harness::tree::{Tree, TreeJob};
use serde_json::Value;

use crate::lockstep::verilated;

/// Time limit for a job. The simulation runs at some 10^5 cycles per second.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Number of workers, one at each port of the card.
const WORKERS: u64 = 4;
/// Job that runs until its test ends it, and that needs only three workers.
const ENDLESS: &str = "--floats 4000 --rounds 100000000 --min-workers 3";
/// Lease for tests that wait until it expires, in milliseconds.
const SHORT_LEASE_MS: &str = "2000";

/// Returns the option with which a daemon uses the simulated card.
fn card() -> String {
    format!("--card=sim:{}", verilated(Build::Slots128).display())
}

fn start(star: &Star, arguments: &[&str]) -> Daemon {
    let card = card();
    Daemon::on_ports(star, &[&[card.as_str()], arguments].concat())
}

#[test]
fn sums_of_the_card_are_exact() {
    if !networks_and("sums_of_the_card_are_exact", &["verilator"]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions::default());
    let daemon = start(&star, &[]);
    let rounds = 20;
    let group = Group::in_star(&star, daemon.address(), &format!("--floats 1000 --rounds {rounds}"));
    let results = group.results(TIMEOUT);
    assert_eq!(total(&results, "rounds"), WORKERS * rounds);
    assert!(daemon.wait_for_log("the card sums the job").contains("the card sums the job"));
    daemon.stop();
}

#[test]
fn loss_and_duplicates_change_no_sum_of_the_card() {
    if !networks_and("loss_and_duplicates_change_no_sum_of_the_card", &["verilator"]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions::default());
    let daemon = start(&star, &[]);
    let faults = Faults { loss_permille: 30, duplication_permille: 20, ..Faults::default() };
    star.workers.iter().for_each(|worker| faults.inject(worker));
    let rounds = 20;
    // More segments than the card has slots.
    let arguments = format!("--floats 50000 --rounds {rounds} --no-offload");
    let results = Group::in_star(&star, daemon.address(), &arguments).results(TIMEOUT);
    assert_eq!(total(&results, "rounds"), WORKERS * rounds);
    let lost: u64 = star.workers.iter().map(|worker| hits(worker).lost).sum();
    let retransmitted = total(&results, "retransmitted");
    assert!(lost > 0 && retransmitted > 0, "{lost} packets lost, {retransmitted} segments retransmitted");
    report(&format!("card: {lost} lost, {retransmitted} retransmitted"));
    check_counters(&daemon.counters()["card"], WORKERS * rounds * 50_000_u64.div_ceil(366));
    daemon.stop();
}

/// Checks the counters of a card with which `contributions` segments were contributed, some of them repeatedly.
fn check_counters(card: &Value, contributions: u64) {
    let counter = |name: &str| card["counters"][name].as_u64().unwrap_or_else(|| panic!("no {name}: {card}"));
    // Each contribution is either summed or completes its segment. The core sums the rounds before the card takes over.
    let (summed, completed) = (counter("summed"), counter("completed"));
    assert_eq!(summed, (WORKERS - 1) * completed, "{card}");
    let taken = summed + completed;
    assert!(taken > contributions / 2 && taken <= contributions, "{taken} of {contributions}: {card}");
    assert!(counter("frames_received") > summed && counter("control") > 0, "{card}");
    let drops = |name: &str| card["drops"][name].as_u64().unwrap_or_else(|| panic!("no {name}: {card}"));
    assert!(drops("duplicate") + drops("late") > 0, "{card}");
    assert_eq!(drops("malformed") + drops("unknown_member"), 0, "{card}");
}

#[test]
fn the_others_continue_on_the_card_without_a_killed_worker() {
    if !networks_and("the_others_continue_on_the_card_without_a_killed_worker", &["verilator"]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions::default());
    let daemon = start(&star, &["--lease-ms", SHORT_LEASE_MS]);
    let mut group = Group::in_star(&star, daemon.address(), ENDLESS);
    daemon.wait_for_results();
    group.kill(2);
    daemon.wait_for_members(WORKERS as usize - 1);
    daemon.wait_for_results();
    group.end();
    let results = group.results(TIMEOUT);
    assert!(total(&results, "partial_rounds") > 0, "rounds without the killed worker");
    daemon.stop();
}

#[test]
fn a_late_worker_joins_a_job_on_the_card() {
    if !networks_and("a_late_worker_joins_a_job_on_the_card", &["verilator"]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions::default());
    let daemon = start(&star, &["--lease-ms", SHORT_LEASE_MS]);
    let mut group = Group::in_star(&star, daemon.address(), ENDLESS);
    daemon.wait_for_results();
    // The worker is expelled while it is stopped, and joins again, at a later round than the one that it knows.
    group.signal(3, Signal::STOP);
    daemon.wait_for_members(WORKERS as usize - 1);
    daemon.wait_for_results();
    group.signal(3, Signal::CONT);
    daemon.wait_for_members(WORKERS as usize);
    daemon.wait_for_results();
    group.end();
    let results = group.results(TIMEOUT);
    assert!(total(&results, "missed_rounds") > 0, "the late worker must have missed rounds: {results:?}");
    daemon.stop();
}

#[test]
fn a_restart_of_the_host_costs_only_time() {
    if !networks_and("a_restart_of_the_host_costs_only_time", &["verilator"]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions::default());
    let mut daemon = start(&star, &[]);
    let mut group = Group::in_star(&star, daemon.address(), ENDLESS);
    for _ in 0..2 {
        daemon.wait_for_results();
        daemon.process.kill(SOON);
        daemon = start(&star, &[]);
        daemon.wait_for_log("the card sums the job");
        daemon.wait_for_results();
    }
    assert!(group.is_running(), "the workers must still be running");
    group.end();
    group.results(TIMEOUT);
    daemon.stop();
}

/// Trains on CartPole with one process in each namespace, and returns the result of worker 0. `arguments` begins with
/// the name of the algorithm.
fn train(namespaces: &[Namespace], daemon: &Daemon, arguments: &str) -> Value {
    let directory = scratch::directory();
    let spawn = |(rank, namespace): (usize, &Namespace)| {
        let place = format!("--switch {} --workers {} --rank {rank}", daemon.address(), namespaces.len());
        let mut command = namespace.command(binaries::iswitch());
        let arguments = format!("train {arguments} --env CartPole-v1 --seed 1 --json --quiet --out");
        command.args(arguments.split_whitespace()).arg(directory.path().join("run"));
        command.args(place.split_whitespace());
        Process::spawn(&format!("iswitch train of rank {rank}"), &mut command)
    };
    let workers: Vec<_> = namespaces.iter().enumerate().map(spawn).collect();
    let printed: Vec<_> = workers.into_iter().map(|worker| worker.wait_success(TIMEOUT)).collect();
    serde_json::from_str(&printed[0]).expect(&printed[0])
}

#[test]
fn ppo_trains_through_the_card_with_loss() {
    if !networks_and("ppo_trains_through_the_card_with_loss", &["verilator"]) {
        return;
    }
    let _together = together();
    let trained = |with_card: bool| {
        let star = Star::new(StarOptions::default());
        let daemon = if with_card { start(&star, &[]) } else { Daemon::on_ports(&star, &[]) };
        let faults = Faults { loss_permille: 10, ..Faults::default() };
        star.workers.iter().for_each(|worker| faults.inject(worker));
        let result = train(&star.workers, &daemon, "ppo --steps 1000");
        let results = daemon.results();
        daemon.stop();
        assert_eq!(result["replicas_identical"], true, "{result}");
        report(&format!("card {with_card}: {results} results, {result}"));
        result
    };
    let (card, software) = (trained(true), trained(false));
    for field in ["steps", "updates", "rounds"] {
        assert_eq!(card[field], software[field], "{field}");
    }
}

#[test]
fn the_daemon_sums_the_jobs_that_the_card_cannot_sum() {
    if !networks_and("the_daemon_sums_the_jobs_that_the_card_cannot_sum", &["verilator"]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions::default());
    let daemon = start(&star, &[]);
    let on_card = Group::in_star(&star, daemon.address(), &format!("{ENDLESS} --job 1"));
    daemon.wait_for_log("the card sums the job");
    let rounds = 20;
    let arguments = ["--wire bf16", "--floats 1000"];
    let groups = (2..).zip(arguments).map(|(job, arguments)| {
        let arguments = format!("--job {job} --rounds {rounds} {arguments}");
        Group::in_star(&star, daemon.address(), &arguments)
    });
    for group in groups.collect::<Vec<_>>() {
        assert_eq!(total(&group.results(TIMEOUT), "rounds"), WORKERS * rounds);
    }
    let jobs = daemon.jobs();
    assert!(jobs.as_array().unwrap().iter().all(|job| job["on_card"] == (job["job"] == 1)), "{jobs}");
    let counters = daemon.counters();
    let (ordinary, strangers) =
        (&counters["card"]["counters"]["ordinary"], &counters["card"]["drops"]["unknown_member"]);
    assert!(ordinary.as_u64().unwrap() > rounds && *strangers == 0, "{counters}");
    let mut on_card = on_card;
    on_card.end();
    on_card.results(TIMEOUT);
    daemon.stop();
}

#[test]
fn asynchronous_workers_train_beside_a_job_on_the_card() {
    if !networks_and("asynchronous_workers_train_beside_a_job_on_the_card", &["verilator"]) {
        return;
    }
    let _together = together();
    let star = Star::new(StarOptions::default());
    let daemon = start(&star, &[]);
    let mut on_card = Group::in_star(&star, daemon.address(), &format!("{ENDLESS} --job 1"));
    daemon.wait_for_log("the card sums the job");
    let result = train(&star.workers, &daemon, "a2c --async --steps 4000 --job 2");
    assert_eq!((&result["mode"], &result["skipped"]), (&"asynchronous".into(), &0.into()), "{result}");
    daemon.wait_for_results();
    on_card.end();
    on_card.results(TIMEOUT);
    daemon.stop();
}

/// Starts a job in a tree in which the switch of each rack has a card. If `above` is set, the root has one, too. Waits
/// until all cards sum the job.
fn start_tree(tree: &Tree, above: bool, arguments: &str) -> TreeJob {
    let card = card();
    let options = ["--lease-ms", SHORT_LEASE_MS, card.as_str()];
    let root = tree.start_root(PortKind::Raw, if above { &options } else { &options[..2] });
    let racks = (0..tree.racks.len()).map(|rack| tree.start_rack(rack, PortKind::Raw, &options));
    let job = TreeJob::below(tree, root, racks.collect(), arguments);
    let with_card = job.racks.iter().chain(above.then_some(&job.root));
    with_card.for_each(|daemon| drop(daemon.wait_for_log("the card sums the job")));
    job
}

#[test]
fn cards_sum_at_two_levels_of_switches() {
    if !networks_and("cards_sum_at_two_levels_of_switches", &["verilator"]) {
        return;
    }
    let _together = together();
    let tree = Tree::new(&[2, 2]);
    let faults = Faults { loss_permille: 10, ..Faults::default() };
    tree.workers().for_each(|worker| faults.inject(worker));
    let job = start_tree(&tree, true, &format!("{ENDLESS} --no-offload"));
    for daemon in job.racks.iter().chain([&job.root]) {
        let completed =
            |daemon: &Daemon| daemon.counters()["card"]["counters"]["completed"].as_u64().unwrap();
        let before = completed(daemon);
        job.wait_for_results();
        job.wait_for_results();
        assert!(completed(daemon) > before, "the card must continue to sum");
    }
    let results = job.finish();
    assert!(total(&results, "rounds") > 0, "{results:?}");
}

#[test]
fn a_tree_with_cards_survives_a_restarted_daemon_and_killed_workers() {
    if !networks_and("a_tree_with_cards_survives_a_restarted_daemon_and_killed_workers", &["verilator"]) {
        return;
    }
    let _together = together();
    let tree = Tree::new(&[2, 2]);
    let mut job = start_tree(&tree, false, "--floats 4000 --rounds 100000000 --min-workers 1");
    job.wait_for_results();
    let mut rack = job.racks.pop().expect("there are two racks");
    rack.process.kill(SOON);
    let card = card();
    let rack = tree.start_rack(1, PortKind::Raw, &["--lease-ms", SHORT_LEASE_MS, card.as_str()]);
    rack.wait_for_log("the card sums the job");
    rack.wait_for_results();
    job.racks.push(rack);
    // One worker of the first rack, then both workers of the second.
    job.workers.kill(0);
    job.racks[0].wait_for_members(1);
    job.wait_for_results();
    // Without worker 0, workers 2 and 3 are at positions 1 and 2.
    [2, 1].into_iter().for_each(|position| job.workers.kill(position));
    job.root.wait_for_members(1);
    job.racks[0].wait_for_results();
    job.workers.end();
    let results = job.workers.results(TIMEOUT);
    assert!(total(&results, "partial_rounds") > 0, "{results:?}");
}
