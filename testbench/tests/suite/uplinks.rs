//! Tests of faults between the levels of switches. Although frames between the racks and the root are lost, duplicated,
//! reordered and corrupted, every sum of the nine workers must be exact. Needs root.

use std::time::{Duration, Instant};

use iswitch_harness::cluster::{PortKind, SOON, times, total};
use iswitch_harness::requirements::{networks_and, report, together};
use iswitch_harness::tree::{Tree, TreeJob};
use iswitch_simulation::network::{LinkCounters, LinkModel, Loss};
use iswitch_testbench::wire_relay::{Relayed, WireRelay};
use serde_json::Value;

/// Number of workers of each rack.
const RACKS: [usize; 2] = [4, 5];
const WORKERS: u64 = 9;
const RACK: usize = 0;
/// Numbers of floats in the paper's smallest and largest models.
const SMALL: u32 = 10_119;
const LARGE: u32 = 1_687_206;

/// Tree of switches with a relay in each cable between two levels.
struct RelayedTree {
    tree: Tree,
    relays: Vec<WireRelay>,
}

impl RelayedTree {
    fn new(model: LinkModel) -> Self {
        let tree = Tree::new(&RACKS);
        let relay = |rack| WireRelay::insert(&tree.uplink(rack), model, rack as u64 + 1);
        let relays = (0..RACKS.len()).map(relay).collect();
        Self { tree, relays }
    }

    /// Returns the frame counters of each relay, one entry per direction, and checks that the kernel accepted every
    /// frame.
    fn relayed(&self) -> Vec<Relayed> {
        let both = |relay: &WireRelay| [relay.to_switch(), relay.to_end()];
        let relayed: Vec<_> = self.relays.iter().flat_map(both).collect();
        assert_eq!(sum(&relayed, |relayed| relayed.refused), 0, "no frame may be too long for the cable");
        relayed
    }
}

fn sum(relayed: &[Relayed], count: impl Fn(&Relayed) -> u64) -> u64 {
    relayed.iter().map(count).sum()
}

/// Runs a job on each of the two kinds of port, and returns the counters of the relays.
fn aggregate_through(model: LinkModel, floats: u32, rounds: u64, what: &str) -> Vec<Relayed> {
    let run = |kind| {
        let relayed_tree = RelayedTree::new(model);
        let arguments = format!("--floats {floats} --rounds {rounds}");
        let job = TreeJob::start(&relayed_tree.tree, kind, &[], &arguments);
        let results = job.workers.results(3 * SOON);
        assert_eq!(total(&results, "rounds"), WORKERS * rounds);
        assert_eq!(total(&results, "partial_rounds"), 0);
        let relayed = relayed_tree.relayed();
        report_run(&format!("{what}, {kind:?}"), &results, &relayed);
        relayed
    };
    PortKind::ALL.into_iter().flat_map(run).collect()
}

fn report_run(what: &str, results: &[Value], relayed: &[Relayed]) {
    report(&format!(
        "between the levels {what}: {}, {} helps; {} frames, {} lost, {} duplicated, {} corrupted, {} overtaken",
        times(results),
        total(results, "helps"),
        sum(relayed, |relayed| relayed.link.sent),
        sum(relayed, |relayed| relayed.link.lost),
        sum(relayed, |relayed| relayed.link.duplicated),
        sum(relayed, |relayed| relayed.link.corrupted),
        sum(relayed, |relayed| relayed.overtaken),
    ));
}

#[test]
fn loss_of_1_and_of_10_percent_between_the_levels_changes_no_sum() {
    if !networks_and("loss_of_1_and_of_10_percent_between_the_levels_changes_no_sum", &["ethtool"]) {
        return;
    }
    let _together = together();
    for (loss, floats, rounds) in [(0.01, SMALL, 100), (0.1, SMALL, 50), (0.01, LARGE, 5)] {
        let model = LinkModel { loss: Some(Loss::Bernoulli { probability: loss }), ..LinkModel::PERFECT };
        let what = format!("{} % lost, {floats} floats", loss * 100.0);
        let relayed = aggregate_through(model, floats, rounds, &what);
        assert!(relayed.iter().all(|relayed| relayed.link.lost > 0), "{relayed:?}");
    }
}

#[test]
fn duplicates_and_reordering_between_the_levels_change_no_sum() {
    if !networks_and("duplicates_and_reordering_between_the_levels_change_no_sum", &["ethtool"]) {
        return;
    }
    let _together = together();
    let model = LinkModel {
        delay: Duration::from_micros(500),
        jitter: Duration::from_millis(5),
        fifo: false,
        duplication: 0.1,
        ..LinkModel::PERFECT
    };
    let relayed = aggregate_through(model, SMALL, 50, "10 % duplicated, 0.5 to 5.5 ms");
    let is_hit = |relayed: &Relayed| relayed.link.duplicated > 0 && relayed.overtaken > 0;
    assert!(relayed.iter().all(is_hit), "{relayed:?}");
}

#[test]
fn corruption_between_the_levels_changes_no_sum() {
    if !networks_and("corruption_between_the_levels_changes_no_sum", &["ethtool"]) {
        return;
    }
    let _together = together();
    let model = LinkModel { corruption: 0.02, ..LinkModel::PERFECT };
    let relayed = aggregate_through(model, SMALL, 100, "2 % corrupted");
    assert!(relayed.iter().all(|relayed| relayed.link.corrupted > 0), "{relayed:?}");
}

#[test]
fn all_faults_between_levels_and_a_killed_rack_switch_change_no_sum() {
    let test = "all_faults_between_levels_and_a_killed_rack_switch_change_no_sum";
    if !networks_and(test, &["ethtool"]) {
        return;
    }
    let _together = together();
    for kind in PortKind::ALL {
        let relayed_tree = RelayedTree::new(LinkModel::ALL_FAULTS);
        let mut job = TreeJob::start(&relayed_tree.tree, kind, &[], "--rounds 1000000");
        job.wait_for_results();
        job.racks.remove(RACK).process.kill(SOON);
        let begin = Instant::now();
        job.racks.insert(RACK, relayed_tree.tree.start_rack(RACK, kind, &[]));
        job.wait_for_results();
        let recovery = begin.elapsed();
        let results = job.finish();
        assert_eq!(total(&results, "partial_rounds"), 0, "every sum holds all nine");
        let relayed = relayed_tree.relayed();
        let what = format!("everything, rack switch killed, {kind:?}: sums again after {recovery:.0?}");
        report_run(&what, &results, &relayed);
        let is_hit = |relayed: &Relayed| {
            let LinkCounters { lost, duplicated, corrupted, .. } = relayed.link;
            [lost, duplicated, corrupted, relayed.overtaken].into_iter().all(|count| count > 0)
        };
        assert!(relayed.iter().all(is_hit), "{relayed:?}");
    }
}
