//! Asynchronous jobs on a simulated network: aggregates of whole vectors are exact, models are identical, and staleness
//! is bounded.

use std::path::Path;
use std::time::Duration;

use iswitch_protocol::limits::MAX_WORK_COST;
use iswitch_simulation::asynchronous::{
    self, Departures, Faults, Pace, Report, Scenario, Totals, Upset, simulate, simulate_with_standby,
};
use iswitch_simulation::{Elements, Failure, Groups, Names};

const FAST: Pace = Pace { compute: Duration::from_micros(500), stall: None };

fn scenario(workers: &[Pace]) -> Scenario {
    Scenario {
        workers: workers.to_vec(),
        threshold: 0,
        staleness_bound: 3,
        faults: Faults::NONE,
        duration: Duration::from_millis(500),
        heals: false,
        upsets: Vec::new(),
        is_keyed: false,
        gradient_len: 150,
        lease_ms: 10_000,
        is_declared: true,
        elements: Elements::F32,
        groups: Groups::default(),
        names: Names::default(),
        racks: Vec::new(),
        places: Vec::new(),
        standby: None,
        work_per_turn: MAX_WORK_COST,
    }
}

fn expect<R>(outcome: Result<R, Box<Failure<Scenario>>>) -> R {
    outcome.unwrap_or_else(|failure| {
        let Failure { seed, scenario, violation, transcript } = *failure;
        panic!("{transcript}\n{scenario:?}\nseed {seed}: {violation}")
    })
}

/// Runs a scenario and checks the invariants of every run.
fn run(scenario: &Scenario, seed: u64) -> Report {
    let report = expect(asynchronous::run(scenario, seed));
    assert!(report.aggregates > 0, "seed {seed}: at least one aggregate must be summed\n{scenario:#?}");
    report
}

fn contributed(report: &Report, worker: usize) -> u64 {
    report.workers[worker].counters.admitted
}

#[test]
fn equal_workers_contribute_equally() {
    let report = run(&scenario(&[FAST; 4]), 1);
    let admitted: Vec<_> = (0..4).map(|worker| contributed(&report, worker)).collect();
    assert!(admitted.iter().all(|count| count.abs_diff(admitted[0]) <= 1), "{admitted:?}");
    assert!(report.workers.iter().all(|worker| worker.missed == 0 && worker.counters.retransmitted == 0));
    let updates = report.workers[0].staleness.updates();
    assert!(updates.abs_diff(admitted[0]) <= 1, "{updates} updates, {admitted:?} vectors");
}

#[test]
fn a_fast_worker_contributes_more_often() {
    let slow = Pace { compute: FAST.compute * 3, ..FAST };
    let report = run(&scenario(&[FAST, FAST, slow]), 1);
    assert!(contributed(&report, 0) > 2 * contributed(&report, 2), "{report:?}");
    assert!(contributed(&report, 2) > 0, "{report:?}");
}

#[test]
fn gradients_beyond_the_bound_are_skipped() {
    let slow = Pace { compute: FAST.compute * 40, ..FAST };
    let report = run(&Scenario { staleness_bound: 1, ..scenario(&[FAST, FAST, slow]) }, 1);
    assert!(report.workers[2].staleness.skipped() > 0);
    assert_eq!(contributed(&report, 2), 0, "the slow worker must never be in time");
    assert!(report.workers[2].staleness.updates() > 100, "the slow worker must still apply the updates");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let faults = Faults { loss: 0.05, jitter: Duration::from_micros(300), ..Faults::NONE };
    let run = |seed| run(&Scenario { faults, ..scenario(&[FAST; 3]) }, seed).datagrams;
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

/// Returns a tree with two racks of two workers, and one worker at the root.
fn tree(pace: Pace) -> Scenario {
    Scenario { racks: vec![0, 0], places: vec![1, 1, 2, 2, 0], ..scenario(&[pace; 5]) }
}

#[test]
fn workers_of_a_tree_contribute_equally() {
    let report = run(&tree(FAST), 1);
    let admitted: Vec<_> = (0..5).map(|worker| contributed(&report, worker)).collect();
    // A vector of a rack crosses one more link before it is admitted.
    assert!(admitted.iter().all(|count| *count * 10 > admitted[4] * 8), "{admitted:?}");
    assert!(report.workers.iter().all(|worker| worker.missed == 0 && worker.counters.retransmitted == 0));
    assert!(report.checked == report.aggregates, "{report:?}");
}

/// Returns one of several combinations of faults, which the seed selects.
fn faults_of(seed: u64) -> Faults {
    Faults {
        delay: Duration::from_micros(20),
        jitter: Duration::from_micros([0, 50, 5000][seed as usize % 3]),
        loss: [0.0, 0.001, 0.01, 0.1, 0.3][seed as usize % 5],
        duplication: [0.0, 0.01, 0.2][seed as usize % 3],
    }
}

#[test]
fn faults_never_change_a_sum_in_a_tree() {
    for seed in 0..60 {
        let at = |choices: &[u64]| choices[seed as usize % choices.len()];
        let faults = faults_of(seed);
        let pace = Pace { compute: Duration::from_micros(at(&[0, 100, 700, 2000])), stall: None };
        let threshold = [0, 0, 1, 2][seed as usize % 4];
        let duration = Duration::from_millis([200, 200, 200, 200, 5000][seed as usize % 5]);
        // Half of the trees have three levels.
        let racks = if seed % 2 == 0 { vec![0, 0] } else { vec![0, 1] };
        let scenario = Scenario { threshold, faults, duration, racks, heals: true, ..tree(pace) };
        run(&scenario, seed);
    }
}

#[test]
fn the_workers_of_a_restarted_rack_resume() {
    for seed in 0..10 {
        let upsets = vec![(Duration::from_millis(100), Upset::RestartRack(1))];
        let report = run(&Scenario { heals: true, upsets, ..tree(FAST) }, seed);
        assert_eq!(report.departures.rack_restarts, 1);
        let rejoins: Vec<_> = report.workers.iter().map(|worker| worker.counters.rejoins).collect();
        assert_eq!(rejoins, [1, 1, 0, 0, 0], "only the workers of the rack should rejoin");
    }
}

#[test]
fn faults_never_change_a_sum() {
    for seed in 0..90 {
        let at = |choices: &[u64]| choices[seed as usize % choices.len()];
        let faults = faults_of(seed);
        let pace = |worker: u64| Pace {
            compute: Duration::from_micros(at(&[0, 100, 700, 2000]) + worker * at(&[0, 50, 900])),
            stall: (worker == 1 && seed % 4 == 0).then_some(Duration::from_millis(at(&[3, 40, 11]))),
        };
        let workers: Vec<_> = (0..at(&[1, 2, 3, 4, 8])).map(pace).collect();
        let threshold = [0, 0, 1, 2][seed as usize % 4];
        let staleness_bound = [0, 1, 3][seed as usize % 3];
        // If every third packet is lost, even the Join takes a long time.
        let duration = Duration::from_millis([200, 200, 200, 200, 5000][seed as usize % 5]);
        run(&Scenario { threshold, staleness_bound, faults, duration, ..scenario(&workers) }, seed);
    }
}

#[test]
fn a_worker_that_missed_more_than_the_kept_results_continues() {
    // The other workers fill an aggregate in little more time than a Help and its answer take.
    let fast = Pace { compute: Duration::from_micros(6), stall: None };
    let stalling = Pace { stall: Some(Duration::from_millis(200)), ..fast };
    let faults = Faults { delay: Duration::from_micros(6), loss: 0.04, ..Faults::NONE };
    let scenario = Scenario {
        threshold: 2,
        faults,
        duration: Duration::from_millis(410),
        heals: true,
        ..scenario(&[fast, fast, stalling])
    };
    let missed: Vec<_> = (0..3).map(|seed| run(&scenario, seed).workers[2].missed).collect();
    assert!(missed.iter().any(|missed| *missed > 0), "{missed:?}");
}

/// Runs 500 ms of a job with three equal workers and a lease of 50 ms, in which one worker is killed after 100 ms.
fn one_is_killed(return_after: Option<Duration>, new_port: bool) -> Report {
    let crash = Upset::Crash { worker: 2, return_after, new_port };
    let upsets = vec![(Duration::from_millis(100), crash)];
    run(&Scenario { lease_ms: 50, heals: true, upsets, ..scenario(&[FAST; 3]) }, 1)
}

#[test]
fn a_killed_worker_is_expelled_and_the_others_continue() {
    let report = one_is_killed(None, false);
    let departures = Departures { crashes: 1, expelled: 1, ..report.departures };
    assert_eq!(report.departures, departures);
    assert_eq!((departures.returns, departures.turned_away), (0, 0));
    let (others, killed) = (contributed(&report, 0), contributed(&report, 2));
    assert!(
        killed > 0 && others > 4 * killed,
        "{others} vectors of the other workers, {killed} of the killed one"
    );
}

#[test]
fn a_replacement_at_the_same_address_joins_immediately() {
    let report = one_is_killed(Some(Duration::from_millis(1)), false);
    let Departures { crashes, returns, turned_away, expelled, .. } = report.departures;
    assert_eq!((crashes, returns, turned_away, expelled), (1, 1, 0, 0));
    let (updates, others) = (report.workers[2].staleness.updates(), report.workers[0].staleness.updates());
    assert!(updates > others / 2 && updates < others, "{updates} updates since the crash, {others} in total");
}

#[test]
fn a_replacement_at_another_port_joins_after_the_old_lease_expires() {
    let report = one_is_killed(Some(Duration::from_millis(1)), true);
    let Departures { crashes, returns, turned_away, expelled, .. } = report.departures;
    assert_eq!((crashes, expelled), (1, 1));
    assert!(turned_away > 0 && returns == 1 + turned_away, "{:?}", report.departures);
    assert!(contributed(&report, 2) > 0, "{report:?}");
}

#[test]
fn random_scenarios_violate_no_rule_and_cover_all_events() {
    let mut total = Totals::default();
    (0..400).for_each(|seed| total += expect(simulate(seed)));
    for (name, count) in serde_json::to_value(total).unwrap().as_object().unwrap() {
        assert!(count.as_u64() != Some(0), "400 seeds must include {name}");
    }
}

#[test]
fn a_worker_that_stalls_half_of_the_time_does_not_slow_the_others() {
    let stalling = Pace { stall: Some(Duration::from_millis(50)), ..FAST };
    let without = run(&Scenario { threshold: 3, ..scenario(&[FAST; 3]) }, 1);
    let with = run(&Scenario { threshold: 3, ..scenario(&[FAST, FAST, FAST, stalling]) }, 1);
    for worker in 0..3 {
        let (alone, together) = (contributed(&without, worker), contributed(&with, worker));
        assert!(together + 1 >= alone, "worker {worker}: {together} vectors, {alone} without the slow one");
    }
    assert!(with.aggregates > without.aggregates, "the slow worker must contribute when it can");
    assert_eq!(with.workers[3].missed, 0, "the slow worker must catch up with the kept aggregates");
}

#[test]
fn recorded_regressions_do_not_recur() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/regressions/asynchronous");
    let files: Vec<_> = directory.read_dir().unwrap().collect();
    assert!(!files.is_empty());
    for file in files {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let regression: serde_json::Value = serde_json::from_str(&text).unwrap();
        let scenario = serde_json::from_value(regression["scenario"].clone()).unwrap();
        run(&scenario, regression["seed"].as_u64().unwrap());
    }
}

#[test]
fn two_switches_never_sum_at_the_same_time() {
    let mut total = Totals::default();
    (0..30).for_each(|seed| total += expect(simulate_with_standby(seed)));
    assert!(total.moves > 0 && total.missed > 0 && total.upsets > 0, "{total:?}");
}
