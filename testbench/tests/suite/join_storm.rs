//! A storm of forged Joins during a job: the switch allocates no memory for them, and every sum stays exact. Needs
//! root. The program `join_storm` makes the same measurement on a larger scale.

use iswitch_harness::cluster::{Daemon, Group, SOON, total};
use iswitch_harness::netns::{Star, StarOptions};
use iswitch_harness::requirements::{alone, networks_and, report};
use iswitch_testbench::storm::{Kind, Storm};

const WORKERS: usize = 4;
const JOINS: u64 = 50_000;
const JOINS_PER_S: u64 = 25_000;
const MAX_RSS_GROWTH_KIB: u64 = 1024;
/// Number of segments of the vectors that `all_reduce` sums by default.
const SEGMENTS: u64 = 28;

#[test]
fn forged_joins_use_no_memory_and_change_no_sum() {
    if !networks_and("forged_joins_use_no_memory_and_change_no_sum", &[]) {
        return;
    }
    let _alone = alone();
    let star = Star::new(StarOptions { workers: WORKERS + 1, ..StarOptions::default() });
    let mut daemon = Daemon::on_ports(&star, &[]);
    let mut group = Group::of(&star.workers[..WORKERS], daemon.address(), "--rounds 100000000");
    daemon.wait_until_results(4 * SEGMENTS);
    let (rss_before_kib, results_before) = (daemon.process.rss_kib(), daemon.results());
    star.workers[WORKERS].enter(|| {
        let mut storm = Storm::open(1).expect("the interface must open");
        storm.send(Kind::Join, JOINS, JOINS_PER_S).expect("the frames must be sent");
    });
    assert!(daemon.results() > results_before, "the job must continue");
    let rss_after_kib = daemon.process.rss_kib();
    assert!(rss_after_kib <= rss_before_kib + MAX_RSS_GROWTH_KIB, "{rss_before_kib} to {rss_after_kib} KiB");
    assert!(daemon.drops("rate_limited") > JOINS / 2, "{}", daemon.counters());
    assert!(daemon.process.is_running());
    group.end();
    let results = group.results(SOON);
    assert!(total(&results, "rounds") > 0);
    report(&format!("{JOINS} forged Joins: {rss_before_kib} KiB before, {rss_after_kib} KiB after"));
    daemon.stop();
}
