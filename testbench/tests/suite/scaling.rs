//! Tests of the model behind `testbench scaling`: the times that it predicts match closed forms and lower bounds, and
//! its lockstep simulation matches its full simulation.

use iswitch_testbench::scaling::bounds::least;
use iswitch_testbench::scaling::costs::Costs;
use iswitch_testbench::scaling::study::Study;
use iswitch_testbench::scaling::wire::Framing;
use iswitch_testbench::scaling::{Algorithm, Detail, Picos, Scenario, micros, plot, reality};
use proptest::prelude::*;
use strum::IntoEnumIterator as _;

/// Returns a scenario without processing costs, in which the links are the only source of delay (7 us each).
fn only_delay(workers: usize) -> Scenario {
    Scenario {
        rack: workers,
        bits_per_s: f64::INFINITY,
        delay_us: 7.0,
        ..Scenario::new(workers, 10_119, Costs::ZERO)
    }
}

/// Compares the model with the paper's numbers of hops in a network with one switch (section 2.3): 4 for a parameter
/// server, 4N - 4 for a ring, and 2 for the switch.
#[test]
fn with_delay_only_the_time_matches_the_hops_of_the_paper() {
    for workers in [2, 3, 4, 6, 9, 12] {
        let scenario = only_delay(workers);
        for (algorithm, hops) in [
            (Algorithm::Server, 4),
            (Algorithm::ServerPipelined, 4),
            (Algorithm::Ring, 4 * workers - 4),
            (Algorithm::RingPipelined, 4 * workers - 4),
            (Algorithm::ShardedServer, 4),
            (Algorithm::Daemon, 2),
            (Algorithm::Hardware, 2),
        ] {
            for detail in [Detail::Packets, Detail::Lockstep] {
                let expected = hops as Picos * 7_000_000;
                assert_eq!(scenario.run(algorithm, detail), expected, "{algorithm}, {workers} workers");
            }
        }
        if workers.is_power_of_two() {
            let log = Picos::from(workers.ilog2());
            let halving = scenario.run(Algorithm::HalvingDoubling, Detail::Packets);
            assert_eq!(halving, 4 * log * 7_000_000);
            assert_eq!(scenario.run(Algorithm::RecursiveDoubling, Detail::Packets), 2 * log * 7_000_000);
        }
    }
}

/// Tests a ring without processing costs. Each step takes the transmission time of a chunk on the link of its sender,
/// the delays of two links, and the transmission time of one packet at the switch.
#[test]
fn a_ring_without_costs_matches_its_formula() {
    for workers in [2_usize, 4, 16, 100] {
        // Chunks of three full packets.
        let floats = 3 * 362 * workers;
        let scenario = Scenario { rack: workers, ..Scenario::new(workers, floats as u32, Costs::ZERO) };
        let framing = Framing::stream();
        assert_eq!(framing.packets(floats * 4 / workers).collect::<Vec<_>>(), [1448; 3]);
        let (picos_per_byte, delay) = (800, 1_000_000);
        let step = 4 * 1538 * picos_per_byte + 2 * delay;
        let expected = 2 * (workers as Picos - 1) * step;
        for detail in [Detail::Packets, Detail::Lockstep] {
            assert_eq!(scenario.run(Algorithm::Ring, detail), expected, "{workers} workers, {detail:?}");
        }
    }
}

/// Tests aggregation in hardware without processing costs. It takes the transmission time of the vector on the first
/// link, the transmission time of one packet on each further link, and the delays of all links.
#[test]
fn a_switch_without_costs_matches_its_formula() {
    for (workers, levels) in [(3, 1), (64, 2), (1000, 3), (100_000, 4)] {
        let scenario =
            Scenario { switch_buffer_bytes: 1 << 30, ..Scenario::new(workers, 366 * 100, Costs::ZERO) };
        assert_eq!(scenario.tree().levels(), levels);
        let levels = levels as Picos;
        let expected = (100 + 2 * levels - 1) * 1538 * 800 + 2 * levels * 1_000_000;
        assert_eq!(scenario.run(Algorithm::Hardware, Detail::Packets), expected, "{workers} workers");
    }
}

fn any_scenario() -> impl Strategy<Value = Scenario> {
    let shape = (1_usize..40, 1_usize..9, 2_usize..9, 1_u32..60_000);
    let network = (prop_oneof![Just(1e9), Just(10e9), Just(100e9)], 0.0..60.0_f64, 1_usize..45, 14_usize..25);
    let costs = prop_oneof![Just(Costs::ZERO), Just(Costs::measured())];
    (shape, network, costs).prop_map(|(shape, network, costs)| {
        let (workers, rack, radix, floats) = shape;
        let (bits_per_s, delay_us, superframe_segments, buffer) = network;
        Scenario {
            rack,
            radix,
            bits_per_s,
            delay_us,
            superframe_segments,
            switch_buffer_bytes: 1 << buffer,
            ..Scenario::new(workers, floats, costs)
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_algorithm_beats_its_lower_bound(scenario in any_scenario()) {
        for algorithm in Algorithm::iter() {
            for detail in [Detail::Packets, Detail::Lockstep] {
                let (time, bound) = (scenario.run(algorithm, detail), least(&scenario, algorithm));
                prop_assert!(time >= bound, "{algorithm} {detail:?}: {} of {} us", micros(time), micros(bound));
            }
        }
    }
}

/// Returns the maximum relative difference between the results of the lockstep simulation and those of the full
/// simulation. The lockstep simulation is exact if all workers perform the same steps at the same times. It is less
/// accurate for sharded servers with more workers than shards, and for rings whose links have different lengths,
/// because the workers of these do not act in lockstep.
fn tolerance(algorithm: Algorithm) -> f64 {
    match algorithm {
        Algorithm::ShardedServer => 0.12,
        _ => 0.05,
    }
}

#[test]
fn one_simulated_worker_represents_all_workers() {
    for costs in [Costs::ZERO, Costs::measured()] {
        for (workers, rack, radix) in [(8, 8, 8), (12, 3, 64), (64, 32, 32), (100, 3, 64), (200, 32, 32)] {
            for floats in [1_000, 10_119, 40_327, 200_000] {
                let scenario = Scenario { rack, radix, ..Scenario::new(workers, floats, costs) };
                for algorithm in Algorithm::iter().filter(|algorithm| !algorithm.is_switch()) {
                    let time = |detail| micros(scenario.run(algorithm, detail));
                    let (long, short) = (time(Detail::Packets), time(Detail::Lockstep));
                    let ratio = short / long;
                    println!(
                        "{algorithm}, {workers} workers, {floats} floats: {short:.1} of {long:.1} us: {ratio:.4}"
                    );
                    assert!(
                        (ratio - 1.0).abs() <= tolerance(algorithm),
                        "{algorithm}, {scenario:?}: {short} for {long} us"
                    );
                }
            }
        }
    }
}

#[test]
fn the_seed_determines_which_workers_are_late() {
    let late = |seed| Scenario { jitter_us: 500.0, seed, ..Scenario::new(20, 40_327, Costs::measured()) };
    for algorithm in Algorithm::iter() {
        let time = |seed| late(seed).run(algorithm, Detail::Packets);
        assert_eq!(time(1), time(1), "{algorithm}");
        assert_ne!(time(1), time(2), "{algorithm}");
        let on_time = Scenario { jitter_us: 0.0, ..late(1) }.run(algorithm, Detail::Packets);
        // Late workers can stall a pipeline or relieve a server, but the time grows by no more than this.
        let most = 2 * on_time + 500_000_000;
        assert!((on_time * 4 / 5..=most).contains(&time(1)), "{algorithm}: {} after {on_time}", time(1));
    }
}

/// Tests the target scenario: 4 workers, vectors of 40 KB and a delay of 50 us on each link. The switch is modelled as
/// a daemon with the costs that were measured for it.
#[test]
fn a_long_delay_costs_a_ring_more_than_a_switch() {
    let scenario = Scenario { rack: 4, delay_us: 50.0, ..Scenario::new(4, 10_119, Costs::measured()) };
    let time = |algorithm| micros(scenario.run(algorithm, Detail::Packets));
    for ring in [Algorithm::Ring, Algorithm::RingPipelined] {
        let ratio = time(ring) / time(Algorithm::Daemon);
        assert!(ratio >= 2.5, "{ring}: {ratio}");
    }
}

#[test]
fn tables_name_every_time_and_bound() {
    let study = Study {
        scenario: Scenario::new(1, 1_000, Costs::measured()),
        workers: vec![4, 200],
        algorithms: Algorithm::iter().collect(),
        packets_up_to: 100,
    };
    let table = study.run(|_, _| {});
    let rows = table.json()["rows"].as_array().cloned().unwrap_or_default();
    assert_eq!(rows.len(), 2 * Algorithm::iter().len());
    for row in &rows {
        assert!(row["us"].as_f64() >= row["least_us"].as_f64(), "{row}");
        assert_eq!(row["detail"] == "packets", row["workers"] == 4, "{row}");
    }
    assert_eq!(
        table.text().lines().filter(|line| line.starts_with("| 4 ") || line.starts_with("| 200 ")).count(),
        2
    );
    // A worker that begins late does not represent all others.
    let late = Study { scenario: Scenario { jitter_us: 5.0, ..study.scenario }, ..study };
    let rows = late.run(|_, _| {}).json()["rows"].as_array().cloned().unwrap_or_default();
    assert!(rows.iter().all(|row| row["us"].is_null() == (row["workers"] == 200)));
}

#[test]
fn plots_are_drawn() {
    let study = Study {
        scenario: Scenario::new(1, 1_000, Costs::measured()),
        workers: vec![4, 16],
        algorithms: vec![Algorithm::Daemon, Algorithm::Ring],
        packets_up_to: 100,
    };
    let svg = plot::draw(&study.run(|_, _| {}));
    assert!(svg.contains("<svg") && svg.contains("iswitchd") && svg.contains("ring, as in the paper"));
    assert!(svg.matches("<polyline").count() >= 2);
    let nothing = Study { workers: Vec::new(), ..study };
    assert!(plot::draw(&nothing.run(|_, _| {})).contains("3.9 KiB"));
}

#[test]
fn measured_times_are_compared_with_the_simulation() {
    let line = r#"{"workers":4,"floats":866439,"bits_per_s":null,"rows":[
        {"contender":"iswitchd, UDP port","us_p50":{"median":6882.0}},
        {"contender":"parameter server, as in the paper","us_p50":{"median":10545.0}},
        {"contender":"Gloo","us_p50":{"median":11746.0}}]}"#
        .replace('\n', "");
    let pairs = reality::compare(&line, 2, Costs::measured()).expect("the line must be a table");
    assert_eq!(pairs.len(), 2);
    assert_eq!((pairs[0].algorithm, pairs[0].measured_us), (Algorithm::Daemon, 6882.0));
    assert!(pairs.iter().all(|pair| pair.model_us > 0.0));
    assert_eq!(reality::agreement(&pairs), Some(1.0));
    for bad in [
        "{",
        "{}",
        r#"{"workers":4,"floats":0,"rows":[]}"#,
        r#"{"workers":4,"floats":1,"rows":[{"contender":"iswitchd, UDP port"}]}"#,
    ] {
        let error = reality::compare(bad, 2, Costs::measured()).unwrap_err();
        assert!(error.starts_with("line 1: "), "{error}");
    }
}
