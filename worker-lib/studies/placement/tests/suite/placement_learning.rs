//! Learned placement: the policies compared with the rules that they start from, and training with one and with several
//! workers.
use std::sync::Arc;

use iswitch_learn::algorithms::checkpoint::MODEL_FILE;
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_placement::failure::Belief;
use iswitch_placement::generate::{synthetic_jobs, synthetic_lives};
use iswitch_placement::job::JobPool;
use iswitch_placement::learned::Trained;
use iswitch_placement::learned::config::{Network, PlacementConfig, RandomReference};
use iswitch_placement::learned::patent_net::PatentNet;
use iswitch_placement::learned::patent_placer::PatentPlacer;
use iswitch_placement::learned::shared_net::SharedNet;
use iswitch_placement::learned::shared_placer::{Exploration, SharedPlacer};
use iswitch_placement::learned::training::{PlacementStudy, Saved, Training};
use iswitch_placement::options::{Checkpoint, Queueing};
use iswitch_placement::policy::{Placer, PolicySpec};
use iswitch_placement::rates::{Knowledge, RatePool, Shrinkage};
use iswitch_placement::simulation::{Outcome, Scenario, simulate};
use iswitch_placement::state::State;
use iswitch_placement::workload::{FailureSource, JobSource, Workload};
use iswitch_placement::{Cluster, Failures, Job, Options};
use iswitch_study::testing::{alone, check_resumption, check_stop, check_workers, run_to_the_end, try_alone};

/// Returns a workload with `nodes` nodes of four GPUs each, and 1.5 times as many jobs as GPUs.
fn workload(nodes: usize) -> Workload {
    let pool = synthetic_jobs(500, &mut stream(1, Purpose::Arrivals, 0)).unwrap();
    let lives = synthetic_lives(500, &mut stream(1, Purpose::Rates, 0));
    let gpus = 4 * nodes;
    Workload {
        domains: Vec::new(),
        cluster: Cluster::uniform(nodes, 4).unwrap(),
        jobs: JobSource::Drawn {
            pool: pool.between(0.0, 1e9, gpus).unwrap(),
            count: gpus * 3 / 2,
            interarrival: 0.0,
        },
        failures: FailureSource::Pool {
            pool: RatePool::new(&lives, Shrinkage::default()).unwrap(),
            same_cage: false,
            knowledge: Knowledge::Rates,
        },
        options: Options { queueing: Queueing::Easy, ..Options::default() },
    }
}

fn untrained() -> (SharedNet, Arc<[f32]>) {
    let net = SharedNet::new();
    let parameters = net.initial_parameters(&mut stream(1, Purpose::Weights, 0)).into();
    (net, parameters)
}

#[test]
fn the_untrained_policy_equals_its_rule() {
    let (net, parameters) = untrained();
    for (draw, factor, checkpoint) in [
        (1, 1.0, Checkpoint::None),
        (2, 100.0, Checkpoint::None),
        (3, 1000.0, Checkpoint::None),
        (4, 1000.0, Checkpoint::Periodic { interval: 30_000.0, cost: 60.0 }),
    ] {
        let scenario = workload(4).scenario(draw, factor, checkpoint).unwrap();
        for (suspends, rule) in [(true, PolicySpec::Saving), (false, PolicySpec::LongestReliable)] {
            let mut placer = SharedPlacer::new(net.clone(), Arc::clone(&parameters), suspends);
            assert_eq!(simulate(&scenario, &mut placer, draw).unwrap(), rule.run(&scenario, draw).unwrap());
        }
    }
}

#[test]
fn suspensions_pay_off_only_if_gpus_fail() {
    let outcome = |policy: PolicySpec, factor| {
        let scenario = workload(4).scenario(5, factor, Checkpoint::None).unwrap();
        policy.run(&scenario, 5).unwrap()
    };
    let mut logarithms = Vec::new();
    for draw in 1..=20 {
        let scenario = workload(4).scenario(draw, 1000.0, Checkpoint::None).unwrap();
        let makespan = |policy: PolicySpec| policy.run(&scenario, draw).unwrap().makespan;
        logarithms.push((makespan(PolicySpec::LongestReliable) / makespan(PolicySpec::Saving)).ln());
    }
    println!("{logarithms:.2?}");
    assert!(logarithms.iter().sum::<f64>() / 20.0 > 0.5, "{logarithms:?}");
    assert!(outcome(PolicySpec::Saving, 1000.0).suspensions > 0);
    // With a failure in 10,000 years, Young's interval is longer than any job.
    let (saving, longest) = (outcome(PolicySpec::Saving, 1e-3), outcome(PolicySpec::LongestReliable, 1e-3));
    assert_eq!((saving.suspensions, saving), (0, longest));
}

#[test]
fn the_expected_loss_matches_the_average_loss() {
    for checkpoint in [Checkpoint::None, Checkpoint::Periodic { interval: 20_000.0, cost: 60.0 }] {
        let (mut lost, mut expected) = (0.0, 0.0);
        for draw in 1..=150 {
            let scenario = workload(2).scenario(draw, 300.0, checkpoint).unwrap();
            let outcome = PolicySpec::Saving.run(&scenario, draw).unwrap();
            lost += outcome.gpu_time.lost;
            expected += outcome.expected_loss;
        }
        assert!((lost / expected - 1.0).abs() < 0.15, "{checkpoint:?}: {lost}, {expected}");
    }
}

/// Placer that checks each pick of another placer.
struct Witness<P>(P, usize);

impl<P: Placer> Placer for Witness<P> {
    fn suspend(&mut self, state: &State<'_>, jobs: &mut Vec<usize>) {
        self.0.suspend(state, jobs);
    }

    fn order(&mut self, state: &State<'_>, queue: &mut [usize]) {
        let mut before = queue.to_vec();
        self.0.order(state, queue);
        let mut after = queue.to_vec();
        before.sort_unstable();
        after.sort_unstable();
        assert_eq!(before, after);
    }

    fn place(&mut self, state: &State<'_>, job: usize, size: usize, picks: &mut Vec<usize>) {
        self.0.place(state, job, size, picks);
        let unavailable: Vec<bool> = state.unavailable().collect();
        assert!(picks.iter().all(|gpu| !unavailable[*gpu]), "{picks:?}");
        assert_eq!(picks.len(), size);
        self.1 += 1;
    }

    fn look_again(&mut self, state: &State<'_>) -> Option<f64> {
        self.0.look_again(state)
    }
}

const EXPLORATION: Exploration =
    Exploration { order_temperature: 0.5, pick_temperature: 1.0, save_deviation: 0.5 };

#[test]
fn busy_or_failed_gpus_are_never_picked() {
    let scenario = workload(4).scenario(1, 1000.0, Checkpoint::None).unwrap();
    let (net, parameters) = untrained();
    let rng = || stream(1, Purpose::Actions, 0);
    let shared = SharedPlacer::new(net, parameters, true).with_exploration(EXPLORATION, rng());
    let mut shared = Witness(shared, 0);
    let outcome = simulate(&scenario, &mut shared, 1).unwrap();
    assert!(outcome.failures > 10 && outcome.placements as usize == shared.1, "{outcome:?}");
    let score = shared.0.into_score();
    assert!(score.choices.iter().all(|choices| *choices > 0), "{score:?}");
    assert!(score.log_probability.iter().any(|slope| *slope != 0.0));
    let net = PatentNet::new(16);
    let parameters = net.initial_parameters(&mut stream(1, Purpose::Weights, 0)).into();
    let patent = PatentPlacer::new(net, parameters).with_exploration(rng());
    let mut patent = Witness(patent, 0);
    let outcome = simulate(&scenario, &mut patent, 1).unwrap();
    assert!(outcome.placements as usize == patent.1 && patent.1 > scenario.jobs().len());
    for sample in patent.0.into_samples() {
        assert!(!sample.taken(16).nth(sample.action as usize).unwrap());
        assert!(sample.log_probability <= 0.0);
    }
}

fn small(network: Network) -> PlacementConfig {
    PlacementConfig {
        iterations: 3,
        environments: 4,
        courses: 2,
        checkpoint_intervals: vec![0.0, 40_000.0],
        replay_capacity: 150,
        random_placements: 2,
        updates: 1,
        test_interval: 2,
        test_draws: 5,
        ..PlacementConfig::preset(network, 8)
    }
}

/// Returns a configuration for each method of training.
fn configs() -> [PlacementConfig; 4] {
    let shared = small(Network::Shared);
    let patent = small(Network::Patent);
    let hindsight = PlacementConfig { random_reference: RandomReference::Hindsight, ..patent.clone() };
    [PlacementConfig { suspends: false, shaping: false, ..shared.clone() }, shared, patent, hindsight]
}

#[test]
fn four_workers_learn_bit_identically_to_one_process() {
    for config in configs() {
        check_workers::<PlacementStudy>(4, &config, &workload(2));
    }
}

fn outcome(scenario: &Scenario, policy: &mut dyn Placer) -> Outcome {
    simulate(scenario, policy, 1).unwrap()
}

#[test]
fn a_training_resumed_from_its_file_gives_identical_results() {
    let directory = tempfile::tempdir().unwrap();
    for config in configs() {
        let resumed = check_resumption::<PlacementStudy>(&config, &workload(2), 2, directory.path());
        let scenario = workload(2).scenario(7, 300.0, Checkpoint::None).unwrap();
        let read = Trained::of_saved(&Saved::read(directory.path()).unwrap()).unwrap();
        let best = Trained::best_of(&resumed).unwrap();
        let mut placers = [read, best].map(|policy| policy.placer(scenario.cluster()).unwrap());
        let [read, best] = placers.each_mut().map(|placer| outcome(&scenario, placer.as_mut()));
        assert_eq!(read, best);
    }
}

#[test]
fn a_stopped_iteration_changes_nothing() {
    for config in configs() {
        check_stop::<PlacementStudy>(&config, &workload(2));
    }
}

#[test]
fn a_per_gpu_policy_applies_to_any_cluster() {
    let mut training: Training = alone(small(Network::Shared), workload(2));
    run_to_the_end(&mut training);
    for nodes in [1, 3, 10] {
        let scenario = workload(nodes).scenario(1, 300.0, Checkpoint::None).unwrap();
        let mut placer = Trained::of_training(&training).placer(scenario.cluster()).unwrap();
        let outcome = outcome(&scenario, placer.as_mut());
        assert_eq!(outcome.unfinished(), 0);
    }
    let mut training: Training = alone(small(Network::Patent), workload(2));
    run_to_the_end(&mut training);
    let error =
        Trained::of_training(&training).placer(&Cluster::uniform(3, 4).unwrap()).err().unwrap().to_string();
    assert_eq!(
        error,
        "number of GPUs in the cluster is 12, expected 8, for which the patent's network was created"
    );
}

/// Returns a workload with one long job on one of four GPUs, the first of which fails very often; restarts have a cost.
fn one_bad_gpu() -> Workload {
    let cluster = Cluster::uniform(1, 4).unwrap();
    let failures = Failures::poisson(vec![60.0, 0.0, 0.0, 0.0]).unwrap();
    let job = Job::new(0.0, 1, 10_000.0).unwrap();
    Workload {
        domains: Vec::new(),
        cluster,
        jobs: JobSource::Drawn { pool: JobPool::new(vec![job]).unwrap(), count: 1, interarrival: 0.0 },
        failures: FailureSource::Fixed { failures, is_trace: false, has_rates: true },
        options: Options { horizon: 1e6, ..Options::default() },
    }
}

/// Returns the GPU on which the trained policy first starts the job.
fn first_pick(training: &Training, workload: &Workload) -> usize {
    let scenario = workload.scenario(1, 100.0, Checkpoint::None).unwrap();
    let mut picks = Vec::new();
    let mut placer = Trained::of_training(training).placer(&workload.cluster).unwrap();
    let mut witness = FirstPick(placer.as_mut(), &mut picks);
    simulate(&scenario, &mut witness, 1).unwrap();
    picks[0]
}

struct FirstPick<'a>(&'a mut dyn Placer, &'a mut Vec<usize>);

impl Placer for FirstPick<'_> {
    fn place(&mut self, state: &State<'_>, job: usize, size: usize, picks: &mut Vec<usize>) {
        self.0.place(state, job, size, picks);
        self.1.extend(picks.iter());
    }
}

#[test]
fn the_patent_network_learns_to_avoid_a_bad_gpu() {
    let config = PlacementConfig {
        iterations: 25,
        environments: 4,
        courses: 8,
        factor_min: 100.0,
        factor_max: 100.0,
        learning_rate: 1e-3,
        test_interval: 25,
        test_draws: 1,
        ..PlacementConfig::preset(Network::Patent, 4)
    };
    let mut training: Training = alone(config, one_bad_gpu());
    run_to_the_end(&mut training);
    let rewards: Vec<f64> = training.history().iter().filter_map(|it| it.reward).collect();
    let mean = |some: &[f64]| some.iter().sum::<f64>() / some.len() as f64;
    println!("{rewards:.2?}");
    // The best random plan never picks the bad GPU, and no policy can do better, so the reward approaches 0.
    assert!(mean(&rewards[..3]) < -0.01 && mean(&rewards[15..]) > -0.005, "{rewards:?}");
    assert_ne!(first_pick(&training, &one_bad_gpu()), 0);
}

/// Returns the workload of [`one_bad_gpu`], except that placers believe that all GPUs fail equally often and that the
/// failing GPU is far older than the others.
fn one_old_gpu() -> Workload {
    let belief = Belief { events: 5e6, years: 1e6 };
    let failures = Failures::poisson(vec![20.0, 0.0, 0.0, 0.0]).unwrap();
    let failures = failures.with_beliefs(vec![belief; 4]).unwrap();
    let failures = failures.with_ages(vec![15.0, 1.0, 2.0, 3.0]).unwrap();
    let failures = FailureSource::Fixed { failures, is_trace: false, has_rates: true };
    Workload { failures, ..one_bad_gpu() }
}

#[test]
fn the_shared_network_learns_rates_that_its_rule_does_not_know() {
    let config = PlacementConfig {
        iterations: 40,
        environments: 4,
        courses: 8,
        factor_min: 100.0,
        factor_max: 100.0,
        checkpoint_intervals: vec![0.0],
        suspends: false,
        significance: 0.0,
        // Expectations computed from wrong rates explain nothing.
        shaping: false,
        pick_temperature: 1.0,
        learning_rate: 1e-2,
        test_interval: 40,
        test_draws: 16,
        ..PlacementConfig::preset(Network::Shared, 4)
    };
    let mut training: Training = alone(config, one_old_gpu());
    assert_eq!(first_pick(&training, &one_old_gpu()), 0);
    run_to_the_end(&mut training);
    let gains: Vec<f64> = training.history().iter().filter_map(|it| it.gain).collect();
    println!("{gains:.3?}");
    assert_ne!(first_pick(&training, &one_old_gpu()), 0);
    assert_eq!(gains[0], 1.0);
    assert!(gains[1] > 1.15, "{gains:?}");
}

#[test]
fn invalid_training_settings_are_reported_by_name() {
    let config = small(Network::Shared);
    let refused = |config, workload| try_alone::<PlacementStudy>(config, workload).err().unwrap().to_string();
    let text = |config| refused(config, workload(2));
    let wrong = PlacementConfig { environments: 0, ..config.clone() };
    assert_eq!(text(wrong), "environments is 0, expected 1 to 4096");
    let wrong = PlacementConfig { factor_max: 0.5, ..config.clone() };
    assert_eq!(text(wrong), "factor_max is 0.5, expected a number >= factor_min (3)");
    let wrong = PlacementConfig { checkpoint_intervals: vec![-1.0], ..config.clone() };
    assert_eq!(text(wrong), "checkpoint_intervals is -1, expected numbers of seconds >= 0");
    let wrong = PlacementConfig { pick_temperature: f64::NAN, ..config.clone() };
    assert_eq!(text(wrong), "pick_temperature is NaN, expected a number above 0");
    let wrong = PlacementConfig { gpus: 5000, ..small(Network::Patent) };
    assert_eq!(text(wrong), "gpus is 5000, expected 1 to 4096");
    let error = refused(small(Network::Patent), workload(3));
    assert!(error.starts_with("number of GPUs in the cluster is 12, expected 8"), "{error}");
    let directory = tempfile::tempdir().unwrap();
    let mut training: Training = alone(config.clone(), workload(2));
    training.advance().unwrap();
    training.save(directory.path()).unwrap();
    let mut other = alone(config, workload(4));
    let error = Saved::read(directory.path()).unwrap().restore(&mut other).unwrap_err().to_string();
    assert!(error.contains("it was trained with jobs, GPUs or rules that differ"), "{error}");
}

#[test]
fn damaged_model_files_are_refused() {
    for config in [small(Network::Shared), small(Network::Patent)] {
        let directory = tempfile::tempdir().unwrap();
        let mut training: Training = alone(PlacementConfig { iterations: 1, ..config }, workload(2));
        run_to_the_end(&mut training);
        training.save(directory.path()).unwrap();
        let path = directory.path().join(MODEL_FILE);
        let whole = std::fs::read(&path).unwrap();
        let refused = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            Saved::read(directory.path()).and_then(|saved| Trained::of_saved(&saved)).unwrap_err().to_string()
        };
        assert!(refused(&whole[..whole.len() / 2]).contains("it is damaged"));
        let with = |from: &str, to: &str| {
            assert_eq!(from.len(), to.len());
            let at = whole.windows(from.len()).position(|part| part == from.as_bytes()).unwrap();
            let mut bytes = whole.clone();
            bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
            // The checksum is computed over the file with zeros in the place of the checksum.
            let key = b"\"crc32c\":\"";
            let digits = bytes.windows(key.len()).position(|part| part == key).unwrap() + key.len();
            bytes[digits..digits + 8].copy_from_slice(b"00000000");
            let checksum = format!("{:08x}", crc32c::crc32c(&bytes));
            bytes[digits..digits + 8].copy_from_slice(checksum.as_bytes());
            bytes
        };
        assert!(
            refused(&with("\"place\"", "\"plane\"")).contains("it holds a run of algorithm plane, not place")
        );
        assert!(
            refused(&with("courses\\\":2", "courses\\\":0")).contains("courses is 0, expected 1 to 4096")
        );
        assert!(refused(&with("best.", "rest.")).contains("best."));
    }
}
