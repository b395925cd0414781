//! Learned coflow scheduling: the untrained policy, the search, and training with one and with several workers.
use iswitch_coflow::deepweave::agent::DeepWeave;
use iswitch_coflow::deepweave::config::{DeepWeaveConfig, Explore};
use iswitch_coflow::deepweave::episodes::Task;
use iswitch_coflow::deepweave::lookahead::Lookahead;
use iswitch_coflow::deepweave::net::NetKind;
use iswitch_coflow::deepweave::training::{DeepWeaveStudy, Saved, Training};
use iswitch_coflow::generate::{JobSource, synthetic_shape, synthetic_trace};
use iswitch_coflow::policy::{Policy, PolicySpec};
use iswitch_coflow::simulation::{Fabric, Rates, simulate};
use iswitch_coflow::workload::Job;
use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_study::testing::{alone, check_resumption, check_stop, check_workers, run_to_the_end, try_alone};

const FABRIC: Fabric = Fabric::new(10, 125e6);

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
    simulate(jobs, &FABRIC, policy, &mut |_, _| {}).unwrap().job_times
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn lookahead(evaluations: u64) -> Lookahead {
    Lookahead::new(evaluations, stream(1, Purpose::Actions, 0))
}

#[test]
fn the_untrained_policy_equals_job_sebf() {
    for (seed, interarrival) in [(1, 0.0), (2, 5.0), (3, 60.0)] {
        let jobs = draw(seed, 30, interarrival);
        let want = job_times(&jobs, PolicySpec::JobSebf.build(FABRIC.capacity).as_mut());
        assert_eq!(job_times(&jobs, &mut DeepWeave::job_sebf()), want);
    }
}

#[test]
fn a_search_makes_jobs_complete_earlier() {
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

/// Returns hyper-parameters for each kind of training.
fn configs() -> [DeepWeaveConfig; 3] {
    let node = small(NetKind::Node);
    let actions = DeepWeaveConfig { explore: Explore::Actions, ..node.clone() };
    [node, actions, small(NetKind::Paper)]
}

fn task() -> Task {
    Task { source: source(7), fabric: FABRIC }
}

#[test]
fn four_workers_learn_bit_identically_to_one_process() {
    for config in configs() {
        check_workers::<DeepWeaveStudy>(4, &config, &task());
    }
}

#[test]
fn a_training_resumed_from_its_file_gives_identical_results() {
    let directory = tempfile::tempdir().unwrap();
    for config in configs() {
        let resumed = check_resumption::<DeepWeaveStudy>(&config, &task(), 3, directory.path());
        let jobs = draw(9, 12, 10.0);
        let saved = Saved::read(directory.path()).unwrap();
        let mut policy = DeepWeave::of_saved(&saved, &jobs).unwrap();
        let mut best = DeepWeave::of_training(&resumed).unwrap();
        assert_eq!(job_times(&jobs, &mut policy), job_times(&jobs, &mut best));
    }
}

#[test]
fn a_stopped_iteration_changes_nothing() {
    for config in configs() {
        check_stop::<DeepWeaveStudy>(&config, &task());
    }
}

#[test]
fn the_network_of_the_paper_learns_with_default_options() {
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
    let mut training: Training = alone(config, task());
    run_to_the_end(&mut training);
    let gains: Vec<_> = training.history().iter().filter_map(|record| record.gain).collect();
    println!("{gains:.3?}");
    assert!(training.best().unwrap().gain.unwrap() > 1.3 * gains[0], "{gains:?}");
}

#[test]
fn invalid_training_settings_are_reported_by_name() {
    let config = small(NetKind::Node);
    let refused = |config, task| try_alone::<DeepWeaveStudy>(config, task).err().unwrap().to_string();
    let text = |config| refused(config, task());
    assert_eq!(text(DeepWeaveConfig { agents: 0, ..config.clone() }), "agents is 0, expected 1 to 4096");
    let wrong = DeepWeaveConfig { interarrivals: vec![1.0, -2.0], ..config.clone() };
    assert_eq!(text(wrong), "interarrivals is -2, expected numbers of seconds >= 0");
    let wrong = DeepWeaveConfig { coflow_share: 1.5, ..config.clone() };
    assert_eq!(text(wrong), "coflow_share is 1.5, expected a number above 0 and at most 1");
    assert_eq!(
        text(DeepWeaveConfig { coflows_max: 3, ..small(NetKind::Paper) }),
        "number of coflows of job 3 is 4, expected at most 3, the maximum that the network supports"
    );
    let directory = tempfile::tempdir().unwrap();
    let mut training: Training = alone(config.clone(), task());
    training.advance().unwrap();
    training.save(directory.path()).unwrap();
    let mut other = alone(config, Task { source: source(8), fabric: FABRIC });
    let error = Saved::read(directory.path()).unwrap().restore(&mut other).unwrap_err().to_string();
    assert!(error.contains("it was trained with coflows or shapes that differ"), "{error}");
}

#[test]
fn a_run_directory_records_the_model_of_rates() {
    for rates in [Rates::Backfill, Rates::Blocking] {
        let of = |rates| Task { fabric: Fabric { rates, ..FABRIC }, ..task() };
        let directory = tempfile::tempdir().unwrap();
        let mut training: Training = alone(small(NetKind::Node), of(rates));
        training.advance().unwrap();
        training.save(directory.path()).unwrap();
        let saved = Saved::read(directory.path()).unwrap();
        assert_eq!(DeepWeave::rates_of_saved(&saved).unwrap(), Some(rates));
        saved.restore(&mut alone(small(NetKind::Node), of(rates))).unwrap();
        let other = if rates == Rates::Backfill { Rates::Blocking } else { Rates::Backfill };
        let error = saved.restore(&mut alone(small(NetKind::Node), of(other))).unwrap_err().to_string();
        let want = format!("trained with --rates {rates}, but this run has --rates {other}");
        assert!(error.contains(&want), "{error}");
    }
}
