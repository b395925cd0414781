//! Packet routing: comparison of the simulated network with the results of an independent program, and tests of the
//! learners.
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_routing::config::{Learner, RoutingConfig, ValueKind};
use iswitch_routing::measure::{Measurement, measure};
use iswitch_routing::network::Shape;
use iswitch_routing::policy::{Fill, PolicySpec};
use iswitch_routing::rates::{Arrivals, Rates};
use iswitch_routing::training::{Iteration, RoutingStudy, Saved, Task, Training};
use iswitch_routing::value::ConvolutionalOptions;
use iswitch_study::testing::{
    self, check_resumption, check_stop, check_workers, over_a_switch, run_to_the_end, try_alone,
};

const DRAWS: u64 = 20;
const TOLERANCE: f64 = 0.03;

/// Number of switches, load, and results of the independent program for each policy: the mean number of packets before
/// arrivals, and the delay in slots. The results are means over 20 draws of rates with 200 slots each, starting from an
/// empty network.
const MEASURED: [(usize, f64, Figures); 4] = [
    (16, 0.6, figures([(424.4, 3.764), (411.1, 3.677), (375.3, 3.444), (307.5, 3.002)])),
    (16, 0.7, figures([(591.6, 4.302), (546.1, 4.048), (473.9, 3.645), (367.5, 3.052)])),
    (16, 0.8, figures([(949.6, 5.637), (786.7, 4.842), (678.5, 4.314), (510.9, 3.495)])),
    (20, 0.5, figures([(495.9, 3.479), (487.0, 3.434), (464.3, 3.321), (397.0, 2.984)])),
];

type Figures = [(PolicySpec, f64, f64); 4];

const fn figures(values: [(f64, f64); 4]) -> Figures {
    let [a, b, c, d] = values;
    [
        (PolicySpec::Random, a.0, a.1),
        (PolicySpec::JoinShortestQueue, b.0, b.1),
        (PolicySpec::PowerOfTwo, c.0, c.1),
        (PolicySpec::Colouring, d.0, d.1),
    ]
}

/// Returns the rates of a draw of the independent program, from a splitmix64 generator with the same seed.
fn rates(shape: Shape, load: f64, draw: u64) -> Rates {
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut state = ((1000 + draw) ^ 0x00AB_CDEF).wrapping_mul(GOLDEN) ^ 0xD1B5_4A32_D192_ED03;
    let mut next = || {
        state = state.wrapping_add(GOLDEN);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    };
    (0..8).for_each(|_| {
        next();
    });
    let drawn: Vec<f64> = (0..shape.links()).map(|_| next()).collect();
    let scale = load * shape.links() as f64 / drawn.iter().sum::<f64>();
    Rates::new(shape, drawn.into_iter().map(|rate| rate * scale).collect()).unwrap()
}

fn run(policy: PolicySpec, rates: &Rates, draw: u64) -> Measurement {
    let mut arrivals = Arrivals::new(rates, stream(draw, Purpose::Arrivals, 0));
    let mut policy = policy.build(rates.shape(), Fill::Random, draw);
    measure(policy.as_mut(), rates, &mut arrivals, 200, &mut |_, _, _| {}).unwrap()
}

#[test]
fn baselines_match_an_independent_program() {
    for (switches, load, figures) in MEASURED {
        let shape = Shape::new(3, switches).unwrap();
        let draws: Vec<_> = (0..DRAWS).map(|draw| rates(shape, load, draw)).collect();
        for (policy, queued, delay) in figures {
            let results: Vec<_> =
                draws.iter().zip(0..).map(|(rates, draw)| run(policy, rates, draw)).collect();
            let mean = |of: fn(&Measurement) -> f64| results.iter().map(of).sum::<f64>() / DRAWS as f64;
            for (what, got, want) in
                [("queued", mean(|it| it.queued), queued), ("delay", mean(|it| it.delay), delay)]
            {
                let off = got / want - 1.0;
                println!(
                    "N={switches} load {load}, {policy}, {what}: {got:.3}, expected {want} ({:+.1} %)",
                    off * 100.0
                );
                assert!(
                    off.abs() < TOLERANCE,
                    "N={switches} load {load}, {policy}, {what}: {got}, expected {want}"
                );
            }
            assert!(results.iter().all(|it| it.queued >= it.bound_queued), "{policy} is below the bound");
        }
    }
}

#[test]
fn a_linear_value_reaches_the_bound() {
    for (load, tolerance, by_iteration) in [(0.6, 0.01, 3), (0.8, 0.03, 8)] {
        for draw in 0..5 {
            let mut training = alone(linear(), &rates(shape(), load, draw));
            run_to_the_end(&mut training);
            let above = |it: &Iteration| it.queued / it.bound_queued - 1.0;
            let history = training.history();
            let line: Vec<_> = history.iter().map(|it| format!("{:+.1} %", above(it) * 100.0)).collect();
            println!("load {load}, draw {draw}: {}", line.join(" "));
            // After the first policy within the tolerance, no later policy may be worse than the tolerance.
            let learnt = history.iter().position(|it| above(it) < tolerance).unwrap_or(usize::MAX);
            assert!(learnt <= by_iteration, "load {load}, draw {draw}: {line:?}");
            assert!(
                history[learnt..].iter().all(|it| above(it) < tolerance),
                "load {load}, draw {draw}: {line:?}"
            );
            assert!(history.iter().all(|it| it.queued >= it.bound_queued));
        }
    }
}

#[test]
fn four_workers_learn_bit_identically_to_one_process() {
    let rates = rates(shape(), 0.7, 1);
    let config = RoutingConfig { iterations: 2, slots: 400, ..linear() };
    check_workers::<RoutingStudy>(4, &config, &task(&rates));
}

#[test]
fn a_training_resumed_from_its_file_gives_identical_results() {
    let directory = tempfile::tempdir().unwrap();
    for (config, rates) in small_trainings() {
        check_resumption::<RoutingStudy>(&config, &task(&rates), 2, directory.path());
        let saved = Saved::read(directory.path()).unwrap();
        assert_eq!(RoutingStudy::saved_rates(&saved).unwrap(), rates);
    }
}

#[test]
fn a_stopped_iteration_changes_nothing() {
    for (config, rates) in small_trainings() {
        check_stop::<RoutingStudy>(&config, &task(&rates));
    }
}

#[test]
fn a_trained_network_beats_joining_the_shortest_queue() {
    let config = RoutingConfig {
        iterations: 1,
        slots: 12_800,
        discount: 0.5,
        window: 10,
        epochs: 1,
        learning_rate: 1e-3,
        batch_size: 256,
        test_slots: 200,
        ..small_cnn(8)
    };
    let rates = Rates::uniform(config.shape().unwrap(), 0.6, 1).unwrap();
    let mut training = alone(config, &rates);
    run_to_the_end(&mut training);
    let shortest =
        (1..=4).map(|draw| run(PolicySpec::JoinShortestQueue, &rates, draw).queued).sum::<f64>() / 4.0;
    let history = training.history();
    println!("before {:.1}, after {:.1}, jsq {shortest:.1}", history[0].queued, history[1].queued);
    assert!(
        history[1].queued < 0.96 * shortest && history[1].queued < 0.93 * history[0].queued,
        "{history:?}"
    );
}

#[test]
fn workers_with_a_network_stay_identical_under_all_learners() {
    for learner in [Learner::Mlpi, Learner::Mc, Learner::Td] {
        let config =
            RoutingConfig { learner, slots: 40, window: 12, td_slots: 6, iterations: 2, ..small_cnn(4) };
        let rates = Rates::uniform(config.shape().unwrap(), 0.6, 1).unwrap();
        let mut one = alone(config.clone(), &rates);
        run_to_the_end(&mut one);
        for other in over_a_switch::<RoutingStudy>(2, &config, &task(&rates)) {
            // Two workers add floats in an order that differs from that of one worker, so the results differ by
            // rounding errors.
            assert_eq!(other.history()[2].states, one.history()[2].states);
            assert!((other.history()[0].queued - one.history()[0].queued).abs() < 1e-12);
            let off = other.history()[1].queued / one.history()[1].queued - 1.0;
            assert!(off.abs() < 0.25, "{learner:?}: {:?} {:?}", other.history(), one.history());
        }
    }
}

#[test]
fn invalid_training_settings_are_reported_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let config = RoutingConfig { slots: 40, test_slots: 10, iterations: 0, ..linear() };
    let mut training = alone(config.clone(), &rates(shape(), 0.6, 0));
    run_to_the_end(&mut training);
    training.save(directory.path()).unwrap();
    let saved = Saved::read(directory.path()).unwrap();
    let error =
        RoutingStudy::saved_policy(&saved, Shape::new(3, 20).unwrap(), 1, 1).err().unwrap().to_string();
    assert!(
        error.ends_with("the policy was trained for 3 stages of 16 switches, not 3 stages of 20 switches"),
        "{error}"
    );
    let other = Rates::uniform(Shape::new(3, 4).unwrap(), 0.6, 1).unwrap();
    let error = try_alone::<RoutingStudy>(config, task(&other)).err().unwrap();
    assert_eq!(error.to_string(), "number of switches in the rates is 4, expected 16");
    let path = directory.path().join("model.safetensors");
    let whole = std::fs::read(&path).unwrap();
    for len in [0, 10, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..len]).unwrap();
        let error = Saved::read(directory.path()).err().unwrap().to_string();
        assert!(error.contains("it is damaged or not a checkpoint"), "{error}");
    }
}

fn shape() -> Shape {
    Shape::new(3, 16).unwrap()
}

fn linear() -> RoutingConfig {
    RoutingConfig::preset(Learner::Mlpi, ValueKind::Linear, 3, 16)
}

fn small_cnn(switches: usize) -> RoutingConfig {
    RoutingConfig {
        control_variate: true,
        exits_first: true,
        batch_size: 32,
        test_slots: 40,
        network: ConvolutionalOptions { channels: 16, hidden: 64, ..ConvolutionalOptions::paper(switches) },
        ..RoutingConfig::preset(Learner::Mlpi, ValueKind::Cnn, 3, switches)
    }
}

fn task(rates: &Rates) -> Task {
    Task { rates: rates.clone(), threads: 1 }
}

/// Returns the configurations and rates of short training runs: one with a linear value function, and two with a
/// convolutional network and different learners.
fn small_trainings() -> [(RoutingConfig, Rates); 3] {
    let linear = RoutingConfig { slots: 200, test_slots: 50, iterations: 3, ..linear() };
    let mc = RoutingConfig { learner: Learner::Mc, window: 20, slots: 40, ..small_cnn(4) };
    let mlpi = RoutingConfig { learner: Learner::Mlpi, epochs: 2, ..mc.clone() };
    [linear, mlpi, mc].map(|config| {
        let rates = Rates::uniform(config.shape().unwrap(), 0.6, 1).unwrap();
        (config, rates)
    })
}

fn alone(config: RoutingConfig, rates: &Rates) -> Training {
    testing::alone(config, task(rates))
}
