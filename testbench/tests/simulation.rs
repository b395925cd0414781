//! The real core and the real worker protocol on a simulated network: every sum is exact, every round ends.

use std::time::Duration;

use iswitch_testbench::network::{Loss, Network};
use iswitch_testbench::simulation::{Report, Scenario, Simulation};

const SCENARIO: Scenario = Scenario {
    workers: 4,
    gradient_len: 1000,
    segment_floats: 16,
    rounds: 20,
    network: Network::PERFECT,
    recv_buffer_bytes: 4 << 20,
};

fn run(scenario: Scenario, seed: u64) -> Report {
    let report = Simulation::new(scenario, seed).run();
    report.unwrap_or_else(|error| panic!("seed {seed}: {error}\n{scenario:#?}"))
}

#[test]
fn a_perfect_network_needs_no_packet_too_many() {
    for workers in [1, 2, 4, 9, 64] {
        let report = run(Scenario { workers, ..SCENARIO }, 1);
        assert_eq!(report.rounds, 20 * workers as u64);
        assert_eq!(report.datagrams, report.ideal);
    }
}

#[test]
fn one_segment_and_uneven_segments_work() {
    for gradient_len in [1, 15, 16, 17, 31] {
        let report = run(Scenario { gradient_len, ..SCENARIO }, 1);
        assert_eq!(report.datagrams, report.ideal);
    }
}

#[test]
fn a_small_buffer_narrows_the_window_and_nothing_else() {
    let report = run(Scenario { recv_buffer_bytes: 1, ..SCENARIO }, 1);
    assert_eq!(report.datagrams, report.ideal);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let network =
        Network { loss: Loss::Bernoulli(0.05), jitter: Duration::from_micros(300), ..Network::PERFECT };
    let scenario = Scenario { network, ..SCENARIO };
    assert_eq!(run(scenario, 7), run(scenario, 7));
    assert_ne!(run(scenario, 7), run(scenario, 8));
}

#[test]
fn faults_never_change_a_sum() {
    // In bursts of ten packets, of which one in five comes through.
    let bursts = Loss::GilbertElliott { to_bad: 0.01, to_good: 0.1, good_loss: 0.001, bad_loss: 0.8 };
    let [none, rare, one, ten, thirty] = [0.0, 0.001, 0.01, 0.1, 0.3].map(Loss::Bernoulli);
    let losses = [none, rare, one, bursts, ten, thirty, bursts];
    for seed in 0..200 {
        let network = Network {
            delay: Duration::from_micros(20),
            jitter: Duration::from_micros([0, 50, 5000][seed as usize % 3]),
            loss: losses[seed as usize % losses.len()],
            duplication: [0.0, 0.01, 0.2][seed as usize % 3],
        };
        let workers = [1, 2, 3, 4, 8][seed as usize % 5];
        let recv_buffer_bytes = [10_000, 100_000, 4 << 20][seed as usize % 3];
        run(Scenario { workers, network, recv_buffer_bytes, ..SCENARIO }, seed);
    }
}

#[test]
fn one_percent_loss_costs_few_packets() {
    let network = Network { loss: Loss::Bernoulli(0.01), ..Network::PERFECT };
    let scenario = Scenario { network, gradient_len: 20_000, rounds: 50, ..SCENARIO };
    let report = run(scenario, 3);
    let overhead = report.datagrams as f64 / report.ideal as f64;
    assert!(overhead < 1.12, "{overhead} packets for each one that is needed");
}
