//! Placement: cases computed by hand, analytic expectations, and invariants that hold for all failures.
use iswitch_learn::algorithms::streams::Purpose;
use iswitch_placement::domain::Domain;
use iswitch_placement::expected::{expected_time, expected_time_with_checkpoints};
use iswitch_placement::failure::{FailureDraw, Outage, YEAR};
use iswitch_placement::job::Scaling;
use iswitch_placement::options::{AfterFailure, Checkpoint, Queueing};
use iswitch_placement::policy::{Placer, PolicySpec};
use iswitch_placement::simulation::{Event, GpuTime, Outcome, Scenario, Simulation, simulate, simulate_draw};
use iswitch_placement::state::{Phase, State};
use iswitch_placement::{Cluster, Failures, Job, Options};
use proptest::prelude::*;

fn job(arrival: f64, gpus: usize, duration: f64) -> Job {
    Job::new(arrival, gpus, duration).unwrap()
}

fn options() -> Options {
    Options { restart: 10.0, repair: 10.0, ..Options::default() }
}

/// Returns a scenario with a batch of jobs on one node and with outages given as `(gpu, begin, end)`, in seconds.
fn scenario(gpus: usize, jobs: &[Job], outages: &[(usize, f64, f64)], options: Options) -> Scenario {
    let cluster = Cluster::uniform(1, gpus).unwrap();
    let outages: Vec<_> =
        outages.iter().map(|(gpu, begin, end)| Outage { gpu: *gpu, begin: *begin, end: *end }).collect();
    let failures = Failures::trace(&cluster, &outages).unwrap();
    Scenario::new(cluster, jobs.to_vec(), failures, options).unwrap()
}

/// Runs a policy and returns the completion time of each job. All jobs must complete.
fn times(scenario: &Scenario, policy: PolicySpec) -> Vec<f64> {
    let outcome = policy.run(scenario, 1).unwrap();
    outcome.completion_times.into_iter().map(|time| time.expect("every job must complete")).collect()
}

#[test]
fn a_failure_costs_unsaved_work_and_a_restart() {
    let of = |gpus, options| {
        PolicySpec::FirstFit
            .run(&scenario(gpus, &[job(0.0, 1, 100.0)], &[(0, 40.0, 55.0)], options), 1)
            .unwrap()
    };
    // The GPU is repaired at 55 s, the restart ends at 65 s, and all work is repeated.
    let outcome = of(1, options());
    let want = GpuTime { useful: 100.0, lost: 40.0, overhead: 10.0, failed: 15.0, ..GpuTime::default() };
    assert_eq!((outcome.makespan, outcome.gpu_time), (165.0, want));
    assert_eq!((outcome.failures, outcome.hits, outcome.placements), (1, 1, 2));
    // Checkpoints at 15 s and 31 s take a second each; the failure undoes 8 s of work. The remaining 70 s of work
    // contain four more checkpoints.
    let checkpoint = Checkpoint::Periodic { interval: 15.0, cost: 1.0 };
    let outcome = of(1, Options { checkpoint, ..options() });
    let want = GpuTime { useful: 100.0, lost: 8.0, overhead: 16.0, failed: 15.0, ..GpuTime::default() };
    assert_eq!((outcome.makespan, outcome.gpu_time), (139.0, want));
    // If another GPU is free, the job is placed again at once; with WaitForRepair, it waits.
    assert_eq!(of(2, options()).makespan, 150.0);
    let wait = Options { after_failure: AfterFailure::WaitForRepair, ..options() };
    let outcome = of(2, wait);
    assert_eq!((outcome.makespan, outcome.placements, outcome.gpu_time.idle), (165.0, 1, 165.0));
}

#[test]
fn a_gang_stops_and_waits_as_a_whole() {
    let wait = Options { after_failure: AfterFailure::WaitForRepair, ..options() };
    // GPU 1 fails at 40 s, and GPU 0 at 50 s, while the job waits; the job resumes at 70 s.
    let scenario = scenario(2, &[job(0.0, 2, 100.0)], &[(1, 40.0, 60.0), (0, 50.0, 70.0)], wait);
    let outcome = PolicySpec::FirstFit.run(&scenario, 1).unwrap();
    assert_eq!((outcome.makespan, outcome.failures, outcome.hits), (180.0, 2, 1));
    let want =
        GpuTime { useful: 200.0, lost: 80.0, overhead: 20.0, held: 20.0, failed: 40.0, ..GpuTime::default() };
    assert_eq!(outcome.gpu_time, want);
}

#[test]
fn the_queueing_option_determines_head_of_line_blocking() {
    let jobs = [job(0.0, 3, 100.0), job(0.0, 4, 50.0), job(0.0, 1, 300.0), job(0.0, 1, 90.0)];
    let of =
        |queueing| times(&scenario(4, &jobs, &[], Options { queueing, ..options() }), PolicySpec::FirstFit);
    assert_eq!(of(Queueing::Strict), [100.0, 150.0, 450.0, 240.0]);
    // The third job starts at once, so the second cannot have its four GPUs.
    assert_eq!(of(Queueing::FirstFit), [100.0, 350.0, 300.0, 190.0]);
    // Only the last job ends before the second can start.
    assert_eq!(of(Queueing::Easy), [100.0, 150.0, 450.0, 90.0]);
    // If the second job leaves a spare GPU, the third can start.
    let jobs = [job(0.0, 3, 100.0), job(0.0, 3, 50.0), job(0.0, 1, 300.0), job(0.0, 1, 90.0)];
    let scenario = scenario(4, &jobs, &[], Options { queueing: Queueing::Easy, ..options() });
    assert_eq!(times(&scenario, PolicySpec::FirstFit), [100.0, 150.0, 300.0, 240.0]);
}

#[test]
fn jobs_on_more_nodes_than_necessary_are_slower() {
    let cluster = Cluster::uniform(2, 2).unwrap();
    let failures = Failures::none(&cluster);
    let rules = Options { spread_slowdown: 2.0, ..options() };
    let jobs = vec![job(0.0, 1, 10.0), job(0.0, 2, 100.0)];
    let scenario = Scenario::new(cluster, jobs, failures, rules).unwrap();
    assert_eq!(times(&scenario, PolicySpec::FirstFit), [10.0, 200.0]);
    assert_eq!(times(&scenario, PolicySpec::BestFit), [10.0, 100.0]);
}

#[test]
fn least_attained_service_suspends_jobs_that_have_had_more_service() {
    let rules = Options { restart: 100.0, ..options() };
    // The first job moves to the second queue at 3,250 s. It restarts when the second job has completed its 1,000 s of
    // work.
    let scenario = scenario(1, &[job(0.0, 1, 10_000.0), job(100.0, 1, 1000.0)], &[], rules);
    let outcome = PolicySpec::Las.run(&scenario, 1).unwrap();
    assert_eq!(outcome.completion_times, [Some(11_100.0), Some(4150.0)]);
    assert_eq!((outcome.suspensions, outcome.gpu_time.lost, outcome.gpu_time.overhead), (1, 0.0, 100.0));
}

#[test]
fn elastic_jobs_share_the_available_gpus() {
    let scaling = Scaling { synchronisation: 0.0, least: 1, most: 4 };
    let elastic = |arrival| job(arrival, 1, 36_000.0).with_scaling(scaling).unwrap();
    let rules = Options { restart: 0.0, ..options() };
    let scenario = scenario(4, &[elastic(0.0), elastic(1000.0)], &[], rules);
    // The first job has four GPUs until 3,600 s; then both jobs have two each until 14,400 s; then the second has four.
    // No GPU is ever idle.
    let outcome = PolicySpec::Pollux.run(&scenario, 1).unwrap();
    assert_eq!(outcome.completion_times, [Some(14_400.0), Some(17_000.0)]);
    assert_eq!((outcome.gpu_time.idle, outcome.suspensions), (0.0, 2));
    assert_eq!(times(&scenario, PolicySpec::FirstFit), [36_000.0, 36_000.0]);
}

#[test]
fn the_oracle_waits_for_a_better_gpu_if_it_pays_off() {
    let cluster = Cluster::uniform(1, 2).unwrap();
    // GPU 0 fails every 50 seconds on average.
    let failures = Failures::poisson(vec![YEAR / 50.0, 0.0]).unwrap();
    let jobs = vec![job(0.0, 1, 1000.0), job(0.0, 1, 900.0)];
    let scenario = Scenario::new(cluster, jobs, failures, options()).unwrap();
    let outcome = PolicySpec::Oracle.run(&scenario, 1).unwrap();
    assert_eq!((outcome.makespan, outcome.hits), (1900.0, 0));
    assert!(PolicySpec::Reliable.run(&scenario, 1).unwrap().hits > 5);
}

#[test]
fn scenarios_that_cannot_run_are_reported() {
    let cluster = Cluster::uniform(1, 4).unwrap();
    let failures = Failures::none(&cluster);
    let text = |jobs: &[Job]| {
        let made = Scenario::new(cluster.clone(), jobs.to_vec(), failures.clone(), options());
        made.unwrap_err().to_string()
    };
    assert_eq!(
        text(&[job(0.0, 1, 1.0), job(0.0, 5, 1.0)]),
        "number of GPUs of job 1 is 5, expected 1 to 4, the number of GPUs in the cluster"
    );
    assert_eq!(
        text(&[job(2.0, 1, 1.0), job(1.0, 1, 1.0)]),
        "arrival of job 1 is 1, expected at least 2 s, the arrival time of the previous job"
    );
    let small = Cluster::uniform(1, 2).unwrap();
    let error = Scenario::new(small, Vec::new(), failures, options()).unwrap_err().to_string();
    assert_eq!(error, "number of GPUs with failures is 4, expected 2, the number of GPUs in the cluster");
}

/// Placer that always picks the same GPUs.
struct Fixed(Vec<usize>);

impl Placer for Fixed {
    fn place(&mut self, _state: &State<'_>, _job: usize, _size: usize, picks: &mut Vec<usize>) {
        picks.extend(&self.0);
    }
}

/// Invalid placer, which writes the first job of the queue into all positions of the queue.
struct Twice;

impl Placer for Twice {
    fn order(&mut self, _state: &State<'_>, queue: &mut [usize]) {
        let first = queue[0];
        queue.fill(first);
    }

    fn place(&mut self, state: &State<'_>, _job: usize, size: usize, picks: &mut Vec<usize>) {
        picks.extend(state.free_gpus().take(size));
    }
}

#[test]
fn invalid_picks_are_reported_by_field() {
    let scenario = scenario(4, &[job(0.0, 2, 1.0), job(0.0, 2, 1.0)], &[(3, 0.0, 1.0)], options());
    let text = |picks: &[usize]| simulate(&scenario, &mut Fixed(picks.to_vec()), 1).unwrap_err().to_string();
    assert_eq!(text(&[0, 4]), "id of a GPU is 4, expected 0 to 3");
    assert_eq!(text(&[0, 0]), "GPU picked for job 0 is 0, expected a free GPU");
    assert_eq!(text(&[2, 3]), "GPU picked for job 0 is 3, expected a free GPU");
    assert_eq!(text(&[0]), "number of GPUs picked for job 0 is 1, expected 2");
    let error = simulate(&scenario, &mut Twice, 1).unwrap_err().to_string();
    assert_eq!(error, "job in the queue is 0, expected a waiting job");
    assert_eq!(
        text(&[]),
        "number of jobs that the placer starts is 0, expected at least 1 while all GPUs are free"
    );
}

/// Returns the mean of the values and its standard error.
fn mean(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, (variance / count).sqrt())
}

#[test]
fn simulated_times_match_the_expected_time_formula() {
    let every = |seconds: f64| YEAR / seconds;
    // The cases are a job on one GPU with a repair time of 300 s, a job on three GPUs with unequal failure rates whose
    // failures cost only the lost work, and the latter job with checkpoints.
    let wait =
        Options { restart: 0.0, repair: 300.0, after_failure: AfterFailure::WaitForRepair, ..options() };
    let at_once = Options { restart: 0.0, repair: 0.0, ..options() };
    let checkpoint = Checkpoint::Periodic { interval: 700.0, cost: 50.0 };
    for (rates, rules) in [
        (vec![every(1000.0)], wait),
        (vec![every(2000.0), every(8000.0), every(4000.0)], at_once),
        (vec![every(2000.0), every(8000.0), every(4000.0)], Options { checkpoint, ..at_once }),
    ] {
        let cluster = Cluster::uniform(1, rates.len()).unwrap();
        let rate = rates.iter().sum::<f64>() / YEAR;
        let jobs = vec![job(0.0, rates.len(), 1500.0)];
        let scenario = Scenario::new(cluster, jobs, Failures::poisson(rates).unwrap(), rules).unwrap();
        let run = |seed| PolicySpec::FirstFit.run(&scenario, seed).unwrap().makespan;
        let (mean, error) = mean(&(0..20_000).map(run).collect::<Vec<_>>());
        let repair = if rules.after_failure == AfterFailure::WaitForRepair { rules.repair } else { 0.0 };
        let want = expected_time_with_checkpoints(rate, 1500.0, repair, rules.checkpoint);
        println!("{mean:.1} +- {error:.1} s, expected {want:.1}");
        assert!((mean - want).abs() < 4.0 * error, "{mean} +- {error}, expected {want}");
        assert!(rules.checkpoint != Checkpoint::None || want == expected_time(rate, 1500.0, repair));
    }
}

/// Checks that no GPU has two jobs, each job has all of its GPUs, and no job runs on a failed GPU.
fn check(state: &State<'_>, event: Event) {
    let mut owners = vec![None; state.gpus.len()];
    for job in &state.active {
        for gpu in state.gpus_of(*job) {
            assert_eq!(owners[*gpu].replace(*job), None, "GPU {gpu} has two jobs");
        }
        match &state.progress[*job].phase {
            Phase::Running(run) => {
                assert!(state.job(*job).can_have(run.gpus.len()));
                let works = |gpu: &usize| state.gpus[*gpu].failed_until.is_none();
                // A failure is reported before the jobs that it stops, which are reported one by one. Until then, such
                // a job counts as running on a failed GPU.
                let stops = matches!(event, Event::Failure(_) | Event::Hit { .. });
                assert!(run.gpus.iter().all(works) || stops, "{event:?}");
            }
            Phase::Stopped(gpus) => assert!(state.job(*job).can_have(gpus.len())),
            other => panic!("an active job must be running or stopped, but is {other:?}"),
        }
    }
    assert!(state.gpus.iter().zip(&owners).all(|(gpu, owner)| gpu.owner == *owner));
    assert_eq!(state.free, state.free_gpus().count());
    assert!(state.progress.iter().all(|it| it.left >= 0.0));
}

fn checked(scenario: &Scenario, policy: PolicySpec, seed: u64) -> Outcome {
    let draw = FailureDraw::new(scenario.failures(), seed, Purpose::Failures, 0);
    let mut placer = policy.build(scenario, seed).unwrap();
    simulate_draw(scenario, placer.as_mut(), draw, Some(&mut check)).unwrap()
}

fn any_options() -> impl Strategy<Value = Options> {
    let checkpoint = prop_oneof![
        Just(Checkpoint::None),
        (10.0..2000.0, 0.0..50.0_f64).prop_map(|(interval, cost)| Checkpoint::Periodic { interval, cost }),
        (1.0..50.0_f64).prop_map(|cost| Checkpoint::YoungDaly { cost }),
    ];
    let queueing = prop_oneof![Just(Queueing::Strict), Just(Queueing::FirstFit), Just(Queueing::Easy)];
    let after = prop_oneof![Just(AfterFailure::PlaceAgain), Just(AfterFailure::WaitForRepair)];
    let numbers = (0.0..100.0_f64, 0.0..1000.0_f64, 1.0..2.0_f64);
    (checkpoint, queueing, after, numbers).prop_map(|(checkpoint, queueing, after_failure, numbers)| {
        Options {
            restart: numbers.0,
            restart_per_gpu: numbers.0 / 4.0,
            spares: 0,
            repair: numbers.1,
            checkpoint,
            queueing,
            after_failure,
            spread_slowdown: numbers.2,
            horizon: 1e7,
        }
    })
}

fn any_scenario() -> impl Strategy<Value = Scenario> {
    let jobs = prop::collection::vec((0.0..5000.0_f64, 1..=6_usize, 1.0..4000.0_f64, any::<bool>()), 0..12);
    let rates = prop::collection::vec(prop_oneof![Just(0.0), 0.0..5000.0_f64], 6);
    // Failure rates of the second node, of the whole cluster, and of two GPUs on different nodes.
    let domains = prop::collection::vec(prop_oneof![Just(0.0), 1.0..5000.0_f64], 3);
    (jobs, rates, domains, any_options()).prop_map(|(jobs, rates, domains, options)| {
        let mut jobs: Vec<_> = jobs
            .into_iter()
            .map(|(arrival, gpus, duration, is_elastic)| {
                let scaling = Scaling { synchronisation: 0.1, least: 1, most: 6 };
                let job = job(arrival, gpus, duration);
                if is_elastic { job.with_scaling(scaling).unwrap() } else { job }
            })
            .collect();
        jobs.sort_by(|a, b| a.arrival().total_cmp(&b.arrival()));
        let cluster = Cluster::new([(2, 0), (3, 1), (1, 2)]).unwrap();
        let domain = |(gpus, rate): (_, &f64)| Domain::poisson(gpus, *rate, 1000.0).unwrap();
        let domains = [2..5, 0..6, 1..3].into_iter().zip(&domains).map(domain).collect();
        let failures = Failures::poisson(rates).unwrap().with_domains(domains).unwrap();
        Scenario::new(cluster, jobs, failures, options).unwrap()
    })
}

fn is_placer(policy: &PolicySpec) -> bool {
    !matches!(policy, PolicySpec::Hindsight(_) | PolicySpec::Clairvoyant)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_gpu_time_is_accounted_for(scenario in any_scenario(), seed in 0..1000_u64) {
        for policy in PolicySpec::all().filter(is_placer) {
            let outcome = checked(&scenario, policy, seed);
            prop_assert_eq!(&outcome, &policy.run(&scenario, seed).unwrap(), "two runs of {} must be equal", policy);
            let GpuTime { useful, lost, overhead, held, failed, idle } = outcome.gpu_time;
            prop_assert!([useful, lost, overhead, held, failed, idle].iter().all(|time| *time >= -1e-6));
            let total = outcome.makespan * scenario.cluster().gpus() as f64;
            prop_assert!((outcome.gpu_time.total() - total).abs() <= 1e-9 * total, "{policy}: {outcome:?}");
            // A failure stops at most one job for each of the six GPUs.
            prop_assert!(outcome.hits <= 6 * outcome.failures);
            prop_assert!(outcome.hits > 0 || lost == 0.0);
            if outcome.unfinished() > 0 {
                let last = scenario.jobs().last().unwrap().arrival();
                prop_assert_eq!(outcome.makespan, last + scenario.options().horizon);
                continue;
            }
            // The useful time differs from the work for elastic jobs and for jobs that are slowed down by spreading.
            let is_rigid = policy != PolicySpec::Pollux && scenario.options().spread_slowdown == 1.0;
            let work: f64 = scenario.jobs().iter().map(Job::gpu_seconds).sum();
            prop_assert!(!is_rigid || (useful - work).abs() <= 1e-9 * work, "{policy}: {useful}, {work}");
            for (time, job) in outcome.completion_times.iter().zip(scenario.jobs()) {
                let slower = policy != PolicySpec::Pollux;
                prop_assert!(!slower || time.unwrap() >= job.duration() * (1.0 - 1e-9));
            }
        }
    }

    #[test]
    fn a_custom_event_loop_gives_the_same_simulation(scenario in any_scenario(), seed in 0..1000_u64) {
        for policy in [PolicySpec::Random, PolicySpec::Oracle, PolicySpec::Las] {
            let draw = FailureDraw::new(scenario.failures(), seed, Purpose::Failures, 0);
            let mut simulation = Simulation::new(&scenario, draw, None);
            let mut placer = policy.build(&scenario, seed).unwrap();
            // The recorded placements suffice to replay the simulated run.
            let mut placements = Vec::new();
            while let Some((job, size)) = simulation.next(placer.as_mut()).unwrap() {
                let mut picks = Vec::new();
                placer.place(simulation.state(), job, size, &mut picks);
                if picks.is_empty() { simulation.pass() } else { simulation.start(&picks).unwrap() }
                placements.push((job, picks));
            }
            prop_assert_eq!(simulation.finish(), policy.run(&scenario, seed).unwrap());
        }
    }
}
