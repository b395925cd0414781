//! Placement: 60 of Philly's jobs on 64 GPUs with the failure rates of Titan's GPUs, compared with the results of an
//! independent program; also properties that must hold on synthetic jobs and rates.
use std::path::Path;
use std::time::Instant;

use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_placement::generate::{synthetic_jobs, synthetic_lives};
use iswitch_placement::job::JobPool;
use iswitch_placement::options::Checkpoint;
use iswitch_placement::policy::PolicySpec;
use iswitch_placement::rates::{Batch, Knowledge, RatePool, Shrinkage};
use iswitch_placement::reader::{read_philly, read_titan};
use iswitch_placement::simulation::Scenario;
use iswitch_placement::{Cluster, Options};

/// Environment variable that contains the path of philly_job_distribution.csv, the durations and numbers of GPUs of
/// Philly's jobs.
const JOBS: &str = "ISWITCH_PHILLY_JOBS";
/// Environment variable that contains the path of gc_full.csv, the life histories of Titan's GPUs.
const LIVES: &str = "ISWITCH_TITAN_LIFE";

const DAY: f64 = 86_400.0;
const HOURLY: Checkpoint = Checkpoint::Periodic { interval: 3600.0, cost: 0.0 };

/// Source from which jobs and GPUs are drawn.
struct Source {
    jobs: JobPool,
    rates: RatePool,
}

impl Source {
    fn synthetic() -> Self {
        let jobs = synthetic_jobs(20_000, &mut stream(1, Purpose::Arrivals, 1)).unwrap();
        let lives = synthetic_lives(20_000, &mut stream(1, Purpose::Rates, 1));
        Self { jobs, rates: RatePool::new(&lives, Shrinkage::default()).unwrap() }
    }

    /// Reads the real files, if the environment variables are set.
    fn real() -> Option<Self> {
        let (Some(jobs), Some(lives)) = (std::env::var_os(JOBS), std::env::var_os(LIVES)) else {
            eprintln!(
                "SKIPPED the table of placements: {JOBS} and {LIVES} are not set to the paths of the files"
            );
            return None;
        };
        let jobs = read_philly(Path::new(&jobs)).unwrap().between(3600.0, 7.0 * DAY, 32).unwrap();
        let mut lives = read_titan(Path::new(&lives)).unwrap();
        lives.retain(|life| life.batch == Batch::Old);
        Some(Self { jobs, rates: RatePool::new(&lives, Shrinkage::default()).unwrap() })
    }

    fn scenario(&self, factor: f64, checkpoint: Checkpoint, seed: u64) -> Scenario {
        let cluster = Cluster::uniform(8, 8).unwrap();
        let mut rng = stream(seed, Purpose::Rates, 0);
        let failures = self.rates.draw(&cluster, false, Knowledge::Rates, &mut rng).unwrap();
        let jobs = self.jobs.draw(60, 0.0, &mut stream(seed, Purpose::Arrivals, 0)).unwrap();
        let options = Options { checkpoint, ..Options::default() };
        Scenario::new(cluster, jobs, failures.scaled(factor).unwrap(), options).unwrap()
    }

    /// Measures the makespan in days and the number of failures that stopped a job, as means over `seeds` seeds.
    fn measure(&self, policy: PolicySpec, factor: f64, checkpoint: Checkpoint, seeds: u64) -> Figure {
        let mut days = Vec::new();
        let mut hits = 0;
        let mut seconds = 0.0;
        for seed in 0..seeds {
            let scenario = self.scenario(factor, checkpoint, seed);
            let begin = Instant::now();
            let outcome = policy.run(&scenario, seed).unwrap();
            seconds += begin.elapsed().as_secs_f64();
            days.push(outcome.makespan / DAY);
            hits += outcome.hits;
        }
        let mean = days.iter().sum::<f64>() / seeds as f64;
        let variance = days.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / (seeds - 1) as f64;
        let figure =
            Figure { days: mean, error: (variance / seeds as f64).sqrt(), hits: hits as f64 / seeds as f64 };
        println!(
            "x{factor} {checkpoint:?} {policy}: {:.2} +- {:.2} d, {:.1} failures, {:.0} us each",
            figure.days,
            figure.error,
            figure.hits,
            seconds / seeds as f64 * 1e6
        );
        figure
    }
}

#[derive(Clone, Copy, Debug)]
struct Figure {
    days: f64,
    error: f64,
    hits: f64,
}

/// Results of the independent program: makespans in days with their standard errors, and the number of failures that
/// stopped a job. All are means over 200 draws.
type Measured = [(PolicySpec, f64, f64, f64); 5];

const SEEDS: u64 = 200;

const MEASURED: [(f64, Checkpoint, Measured); 4] = [
    (
        1.0,
        Checkpoint::None,
        measured([
            (5.73, 0.09, 0.0),
            (5.76, 0.10, 0.0),
            (5.75, 0.10, 0.0),
            (5.64, 0.09, 0.0),
            (5.72, 0.09, 0.0),
        ]),
    ),
    (
        100.0,
        Checkpoint::None,
        measured([
            (8.72, 0.38, 3.5),
            (7.94, 0.33, 3.3),
            (7.20, 0.20, 2.7),
            (7.02, 0.24, 2.4),
            (7.14, 0.20, 2.7),
        ]),
    ),
    (
        100.0,
        HOURLY,
        measured([
            (5.72, 0.09, 2.8),
            (5.72, 0.09, 2.6),
            (5.72, 0.09, 2.5),
            (5.62, 0.09, 2.2),
            (5.72, 0.09, 2.4),
        ]),
    ),
    (
        1000.0,
        Checkpoint::None,
        measured([
            (170.31, 11.16, 437.3),
            (201.93, 12.0, 583.9),
            (85.75, 8.22, 129.1),
            (78.38, 7.49, 126.9),
            (84.2, 7.65, 134.7),
        ]),
    ),
];

const fn measured(values: [(f64, f64, f64); 5]) -> Measured {
    let [a, b, c, d, e] = values;
    [
        (PolicySpec::Random, a.0, a.1, a.2),
        (PolicySpec::FirstFit, b.0, b.1, b.2),
        (PolicySpec::Reliable, c.0, c.1, c.2),
        (PolicySpec::LongestReliable, d.0, d.1, d.2),
        (PolicySpec::Match, e.0, e.1, e.2),
    ]
}

#[test]
fn compared_checkpoint_settings_replace_the_default() {
    // With the default, young-daly, a checkpoint must take time.
    let args = [
        "compare",
        "first-fit",
        "--checkpoint-cost",
        "0",
        "--checkpoints",
        "none,3600",
        "--draws",
        "1",
        "--json",
    ];
    let found = iswitch_study::testing::results(env!("CARGO_BIN_EXE_iswitch-place"), &args);
    let settings: Vec<_> = found.iter().map(|result| result["checkpoint"].as_str().unwrap()).collect();
    assert_eq!(settings, ["none", "3600"]);
}

#[test]
fn makespans_of_real_jobs_match_an_independent_program() {
    let Some(source) = Source::real() else { return };
    for (factor, checkpoint, measured) in MEASURED {
        for (policy, days, error, hits) in measured {
            let got = source.measure(policy, factor, checkpoint, SEEDS);
            let error = got.error.hypot(error);
            assert!((got.days - days).abs() < 4.0 * error, "{policy}: {got:?}, expected {days} +- {error}");
            assert!(
                (got.hits - hits).abs() < 0.25 * hits + 0.3,
                "{policy}: {got:?}, expected {hits} failures"
            );
        }
        for policy in [
            PolicySpec::Hindsight(20),
            PolicySpec::BestOf(20),
            PolicySpec::BestFit,
            PolicySpec::Las,
            PolicySpec::Pollux,
            PolicySpec::Oracle,
        ] {
            source.measure(policy, factor, checkpoint, 12);
        }
    }
}

#[test]
fn placement_matters_only_with_frequent_failures_and_no_checkpoints() {
    let source = Source::synthetic();
    let measure = |policy, factor, checkpoint| source.measure(policy, factor, checkpoint, 24).days;
    // Placement makes no difference with Titan's unscaled rates, nor with hourly checkpoints.
    for (factor, checkpoint) in [(1.0, Checkpoint::None), (1000.0, HOURLY)] {
        let random = measure(PolicySpec::Random, factor, checkpoint);
        for policy in [PolicySpec::FirstFit, PolicySpec::BestFit, PolicySpec::Reliable, PolicySpec::Match] {
            let days = measure(policy, factor, checkpoint);
            assert!((days / random - 1.0).abs() < 0.03, "{policy}: {days}, {random}");
        }
    }
    let random = measure(PolicySpec::Random, 1000.0, Checkpoint::None);
    for policy in [PolicySpec::Reliable, PolicySpec::LongestReliable, PolicySpec::Oracle] {
        assert!(measure(policy, 1000.0, Checkpoint::None) < 0.8 * random, "{policy}");
    }
}

#[test]
fn hindsight_beats_random_and_best_of_placement() {
    let source = Source::synthetic();
    let (mut random, mut hindsight, mut best) = (0.0, 0.0, 0.0);
    for seed in 0..40 {
        let scenario = source.scenario(100.0, Checkpoint::None, seed);
        let days = |policy: PolicySpec| policy.run(&scenario, seed).unwrap().makespan / DAY;
        let (one, least) = (days(PolicySpec::Random), days(PolicySpec::Hindsight(10)));
        // The run of the `random` policy is the first of the runs among which `hindsight` chooses.
        assert!(least <= one);
        random += one;
        hindsight += least;
        best += days(PolicySpec::BestOf(10));
    }
    println!("random {random:.0} d, best of 10 {best:.0} d, with hindsight {hindsight:.0} d");
    assert!(hindsight < 0.9 * random && hindsight < 0.9 * best);
}
