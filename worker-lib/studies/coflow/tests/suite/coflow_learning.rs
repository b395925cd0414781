//! Learned coflow scheduling: the policy against what it is made of, and trainings with one and with several workers.
use std::net::{Ipv4Addr, SocketAddrV4};

use iswitch::{JoinOptions, Loopback, Worker};
use iswitch_coflow::deepweave::agent::DeepWeave;
use iswitch_coflow::deepweave::config::{DeepWeaveConfig, Explore};
use iswitch_coflow::deepweave::episodes::Task;
use iswitch_coflow::deepweave::lookahead::Lookahead;
use iswitch_coflow::deepweave::net::NetKind;
use iswitch_coflow::deepweave::trained::Saved;
use iswitch_coflow::deepweave::training::{Iteration, Training, vector_len};
use iswitch_coflow::generate::{JobSource, synthetic_shape, synthetic_trace};
use iswitch_coflow::policy::{Policy, PolicySpec};
use iswitch_coflow::simulation::{Fabric, simulate};
use iswitch_coflow::workload::Job;
use iswitch_daemon::embedded::{EmbeddedOptions, EmbeddedSwitch};
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_learn::algorithms::trainer::Place;

const FABRIC: Fabric = Fabric { ports: 10, capacity: 125e6 };

fn source(seed: u64) -> JobSource {
    let mut rng = stream(seed, Purpose::Arrivals, 0);
    let trace = synthetic_trace(FABRIC.ports, 60, 1.0, &mut rng).unwrap();
    let coflows = trace.arrivals.into_iter().map(|arrival| arrival.coflow).collect();
    let shapes = (1..9).map(|nodes| synthetic_shape(nodes, 2, &mut rng)).collect();
    JobSource::new(shapes, coflows).unwrap()
}

fn draw(seed: u64, jobs: usize, interarrival: f64) -> Vec<Job> {
    source(seed).draw(jobs, interarrival, &mut stream(seed, Purpose::Arrivals, 1))
}

fn job_times(jobs: &[Job], policy: &mut dyn Policy) -> Vec<f64> {
    simulate(jobs, FABRIC, policy, &mut |_, _| {}).unwrap().job_times
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn lookahead(evaluations: u64) -> Lookahead {
    Lookahead::new(evaluations, stream(1, Purpose::Actions, 0))
}

#[test]
fn before_any_learning_it_does_as_job_sebf() {
    for (seed, interarrival) in [(1, 0.0), (2, 5.0), (3, 60.0)] {
        let jobs = draw(seed, 30, interarrival);
        let want = job_times(&jobs, PolicySpec::JobSebf.build(FABRIC.capacity).as_mut());
        assert_eq!(job_times(&jobs, &mut DeepWeave::job_sebf()), want);
    }
}

#[test]
fn a_search_makes_jobs_end_earlier() {
    let mut logarithms = Vec::new();
    for seed in 1..=8 {
        let jobs = draw(seed, 25, 10.0);
        let begun = mean(&job_times(&jobs, &mut DeepWeave::job_sebf()));
        let searched = job_times(&jobs, &mut DeepWeave::job_sebf().with_lookahead(lookahead(40)));
        logarithms.push((begun / mean(&searched)).ln());
    }
    println!("{logarithms:.3?}");
    assert!(mean(&logarithms) > 0.02, "{logarithms:?}");
}

fn small(network: NetKind) -> DeepWeaveConfig {
    DeepWeaveConfig {
        agents: 4,
        imitation_iterations: u64::from(network == NetKind::Node),
        imitation_steps: 3,
        evaluations: 5,
        own_jobs: 8,
        iterations: 4,
        episode_jobs: 8.0,
        interarrivals: vec![0.0, 10.0],
        batch_jobs: 6,
        test_interval: 2,
        test_workloads: 4,
        test_evaluations: 2,
        test_jobs: 10,
        ..DeepWeaveConfig::preset(network)
    }
}

/// All ways to learn.
fn configs() -> [DeepWeaveConfig; 3] {
    let node = small(NetKind::Node);
    let actions = DeepWeaveConfig { explore: Explore::Actions, ..node.clone() };
    [node, actions, small(NetKind::Paper)]
}

fn task() -> Task {
    Task { source: source(7), fabric: FABRIC }
}

fn alone(config: DeepWeaveConfig) -> Training {
    let len = vector_len(&config).unwrap();
    Training::new(config, task(), Place::ALONE, Box::new(Loopback::alone(len))).unwrap()
}

fn run_to_the_end(training: &mut Training) {
    while !training.is_finished() {
        assert!(training.advance().unwrap().is_some());
    }
}

/// All but the times.
fn curve(training: &Training) -> Vec<Iteration> {
    training.history().iter().map(|record| Iteration { seconds: 0.0, ..record.clone() }).collect()
}

#[test]
fn four_workers_learn_what_one_process_learns_to_the_last_bit() {
    for config in configs() {
        let mut one = alone(config.clone());
        run_to_the_end(&mut one);
        let begun = alone(config.clone()).digest();
        for other in over_a_switch(4, &config) {
            assert_eq!(curve(&other), curve(&one));
            assert_eq!(other.digest(), one.digest());
            assert_ne!(other.digest(), begun);
        }
    }
}

fn over_a_switch(workers: usize, config: &DeepWeaveConfig) -> Vec<Training> {
    let any_port = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    let switch = EmbeddedSwitch::start(any_port, &EmbeddedOptions::default()).unwrap();
    let address = switch.address();
    let len = vector_len(config).unwrap();
    let train = |rank: usize| {
        let config = config.clone();
        move || {
            let options = JoinOptions::new(address, workers as u16, len as u32);
            let worker = Worker::join(JoinOptions { rank: rank as u16, ..options }).unwrap();
            let mut training =
                Training::new(config, task(), Place { rank, workers }, Box::new(worker)).unwrap();
            run_to_the_end(&mut training);
            assert!(training.replicas_identical().unwrap());
            training
        }
    };
    let threads: Vec<_> = (0..workers).map(|rank| std::thread::spawn(train(rank))).collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

#[test]
fn a_training_goes_on_from_its_file_as_if_nothing_had_happened() {
    let directory = tempfile::tempdir().unwrap();
    for config in configs() {
        let mut whole = alone(config.clone());
        run_to_the_end(&mut whole);
        let mut first = alone(config.clone());
        (0..3).for_each(|_| assert!(first.advance().unwrap().is_some()));
        first.save(directory.path()).unwrap();
        let saved = Saved::read(directory.path()).unwrap();
        let mut second = alone(saved.config().clone());
        saved.restore(&mut second).unwrap();
        run_to_the_end(&mut second);
        assert_eq!(curve(&second), curve(&whole));
        assert_eq!(second.digest(), whole.digest());
        second.save(directory.path()).unwrap();
        let jobs = draw(9, 12, 10.0);
        let mut policy = Saved::read(directory.path()).unwrap().policy(&jobs).unwrap();
        let mut best = second.best_policy().unwrap();
        assert_eq!(job_times(&jobs, &mut policy), job_times(&jobs, &mut best));
    }
}

#[test]
fn the_papers_network_learns_without_being_told_anything() {
    let config = DeepWeaveConfig {
        agents: 8,
        iterations: 60,
        episode_jobs: 20.0,
        interarrivals: vec![10.0],
        test_interval: 20,
        test_workloads: 6,
        test_jobs: 30,
        ..DeepWeaveConfig::preset(NetKind::Paper)
    };
    let mut training = alone(config);
    run_to_the_end(&mut training);
    let gains: Vec<_> = training.history().iter().filter_map(|record| record.gain).collect();
    println!("{gains:.3?}");
    assert!(training.best().unwrap().gain.unwrap() > 1.3 * gains[0], "{gains:?}");
}

#[test]
fn what_does_not_fit_is_named() {
    let config = small(NetKind::Node);
    let text = |config: DeepWeaveConfig| vector_len(&config).unwrap_err().to_string();
    assert_eq!(text(DeepWeaveConfig { agents: 0, ..config.clone() }), "agents is 0, expected 1 to 4096");
    let wrong = DeepWeaveConfig { interarrivals: vec![1.0, -2.0], ..config.clone() };
    assert_eq!(text(wrong), "interarrivals is -2, expected numbers of seconds of at least 0");
    let wrong = DeepWeaveConfig { coflow_share: 1.5, ..config.clone() };
    assert_eq!(text(wrong), "coflow_share is 1.5, expected a number above 0, at most 1");
    let paper = DeepWeaveConfig { coflows_max: 3, ..small(NetKind::Paper) };
    let len = vector_len(&paper).unwrap();
    let error = Training::new(paper, task(), Place::ALONE, Box::new(Loopback::alone(len))).err().unwrap();
    assert_eq!(
        error.to_string(),
        "coflows of job 3 is 4, expected at most 3, for which the network was made"
    );
    let directory = tempfile::tempdir().unwrap();
    let mut training = alone(config.clone());
    training.advance().unwrap();
    training.save(directory.path()).unwrap();
    let len = vector_len(&config).unwrap();
    let other = Task { source: source(8), fabric: FABRIC };
    let mut other = Training::new(config, other, Place::ALONE, Box::new(Loopback::alone(len))).unwrap();
    let error = Saved::read(directory.path()).unwrap().restore(&mut other).unwrap_err().to_string();
    assert!(error.contains("it was trained with other coflows or shapes"), "{error}");
}
