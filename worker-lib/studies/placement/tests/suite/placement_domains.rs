//! Placement: failures of nodes, racks and switches, spares, effective training time and recorded node faults, with
//! cases computed by hand.
use std::fs;

use iswitch_learn::algorithms::streams::{Purpose, stream};
use iswitch_placement::cluster::Level;
use iswitch_placement::domain::Domain;
use iswitch_placement::failure::{Belief, FailureDraw, Outage, YEAR};
use iswitch_placement::node_trace::NodeTrace;
use iswitch_placement::options::{AfterFailure, Checkpoint};
use iswitch_placement::policy::{Clairvoyant, PolicySpec, spread};
use iswitch_placement::reader::read_infinitehbd;
use iswitch_placement::simulation::{GpuTime, Outcome, Scenario, Simulation, simulate};
use iswitch_placement::{Cluster, Failures, Job, Options};

const BELIEF: Belief = Belief { events: 1.0, years: 1.0 };
const DAY: f64 = 86_400.0;

fn job(arrival: f64, gpus: usize, duration: f64) -> Job {
    Job::new(arrival, gpus, duration).unwrap()
}

fn options() -> Options {
    Options { restart: 10.0, repair: 10.0, ..Options::default() }
}

/// Returns a cluster of two racks, each with two nodes of two GPUs.
fn cluster() -> Cluster {
    Cluster::uniform(4, 2).unwrap().with_racks(2, 2).unwrap()
}

/// Returns a scenario on [`cluster`] with outages given as `(level, domain, begin, end)`, in seconds.
fn scenario(jobs: &[Job], outages: &[(Level, usize, f64, f64)], options: Options) -> Scenario {
    let cluster = cluster();
    let domain = |(level, number, begin, end): &(Level, usize, f64, f64)| {
        Domain::trace(cluster.domains(*level)[*number].clone(), vec![(*begin, *end)], BELIEF).unwrap()
    };
    let failures = Failures::none(&cluster).with_domains(outages.iter().map(domain).collect()).unwrap();
    Scenario::new(cluster.clone(), jobs.to_vec(), failures, options).unwrap()
}

fn run(scenario: &Scenario) -> Outcome {
    PolicySpec::FirstFit.run(scenario, 1).unwrap()
}

#[test]
fn a_node_failure_stops_each_of_its_jobs_once() {
    // Node 0 has GPUs 0 and 1. The first job loses both at 40 s and moves to node 2; the second keeps node 1.
    let scenario =
        scenario(&[job(0.0, 2, 100.0), job(0.0, 2, 50.0)], &[(Level::Node, 0, 40.0, 60.0)], options());
    let outcome = run(&scenario);
    assert_eq!(outcome.completion_times, [Some(150.0), Some(50.0)]);
    assert_eq!((outcome.failures, outcome.hits), (1, 1));
    let GpuTime { useful, lost, overhead, failed, .. } = outcome.gpu_time;
    assert_eq!((useful, lost, overhead, failed), (300.0, 80.0, 20.0, 40.0));
    // 300 GPU-seconds of work take 2 x 150 + 2 x 50 GPU-seconds.
    assert_eq!(outcome.ettr, Some(0.75));
}

#[test]
fn a_rack_failure_stops_all_jobs_of_the_rack() {
    // The first two jobs run in rack 0, which fails at 40 s and is repaired at 90 s.
    let jobs = [job(0.0, 3, 100.0), job(0.0, 1, 60.0), job(0.0, 3, 1000.0)];
    let outcome = run(&scenario(&jobs, &[(Level::Rack, 0, 40.0, 90.0)], options()));
    assert_eq!((outcome.failures, outcome.hits), (1, 2));
    // The third job holds GPUs 4 to 6, so only GPU 7 is free at 40 s. The queue is strict, so both stopped jobs wait
    // until 90 s.
    assert_eq!(outcome.completion_times, [Some(200.0), Some(160.0), Some(1000.0)]);
    assert_eq!(outcome.gpu_time.failed, 4.0 * 50.0);
}

#[test]
fn a_gpu_works_again_when_the_last_of_its_domains_is_repaired() {
    let outages =
        [(Level::Node, 0, 10.0, 30.0), (Level::Rack, 0, 20.0, 50.0), (Level::Switch, 0, 25.0, 40.0)];
    let outcome = run(&scenario(&[job(0.0, 8, 100.0)], &outages, options()));
    // All GPUs work again at 50 s; a restart takes 10 s.
    assert_eq!((outcome.makespan, outcome.failures, outcome.hits), (160.0, 3, 1));
    // The GPUs of node 0 are down for 40 s, those of node 1 for 30 s, and those of rack 1 for 15 s.
    assert_eq!(outcome.gpu_time.failed, 2.0 * 40.0 + 2.0 * 30.0 + 4.0 * 15.0);
    let wait = Options { after_failure: AfterFailure::WaitForRepair, ..options() };
    let outcome = run(&scenario(&[job(0.0, 8, 100.0)], &outages, wait));
    assert_eq!((outcome.makespan, outcome.placements), (160.0, 1));
    // The job holds its working GPUs: six from 10 s to 20 s, four from 20 s to 25 s, and four from 40 s to 50 s.
    assert_eq!(outcome.gpu_time.held, 60.0 + 20.0 + 40.0);
}

#[test]
fn spares_are_only_for_jobs_that_a_failure_has_stopped() {
    let jobs = [job(0.0, 4, 100.0), job(0.0, 4, 100.0)];
    let outages = [(Level::Node, 0, 40.0, 1040.0)];
    let of = |spares| run(&scenario(&jobs, &outages, Options { spares, ..options() })).completion_times;
    // Without spares, the second job runs until 100 s, and then the first restarts.
    assert_eq!(of(0), [Some(210.0), Some(100.0)]);
    // With four spares, the first job restarts on them at once. The second waits until 1,040 s, because it must leave
    // four GPUs free.
    assert_eq!(of(4), [Some(150.0), Some(1140.0)]);
    let error = Scenario::new(
        cluster(),
        jobs.to_vec(),
        Failures::none(&cluster()),
        Options { spares: 5, ..options() },
    );
    let text = error.unwrap_err().to_string();
    assert_eq!(
        text,
        "number of GPUs of job 0 is 4, expected 1 to 3, the number of GPUs in the cluster minus its 5 spares"
    );
}

#[test]
fn larger_jobs_restart_more_slowly() {
    let rules = Options { restart_per_gpu: 2.5, ..options() };
    let outcome = run(&scenario(&[job(0.0, 4, 100.0)], &[(Level::Node, 0, 40.0, 60.0)], rules));
    // The restart takes 10 + 4 x 2.5 s on GPUs 2 to 5.
    assert_eq!((outcome.makespan, outcome.gpu_time.overhead), (160.0, 80.0));
}

#[test]
fn effective_training_time_excludes_the_wait_before_the_first_start_only() {
    // The second job waits until 100 s and is stopped at 120 s by a failure of all GPUs, which lasts until 150 s.
    let jobs = [job(0.0, 8, 100.0), job(0.0, 8, 50.0)];
    let outcome = run(&scenario(&jobs, &[(Level::Switch, 0, 120.0, 150.0)], options()));
    assert_eq!(outcome.completion_times, [Some(100.0), Some(210.0)]);
    assert_eq!(outcome.ettr, Some(150.0 / 210.0));
    // A job that is incomplete at the end of the simulation contributes the work that it has completed.
    let cut = Options { horizon: 130.0, ..options() };
    let outcome = run(&scenario(&jobs[..1], &[(Level::Node, 0, 60.0, 70.0)], cut));
    assert_eq!(outcome.ettr, Some(50.0 / 130.0));
}

#[test]
fn the_rate_of_a_set_of_gpus_counts_each_domain_once() {
    let cluster = cluster();
    let domain = |gpus, per_year| Domain::poisson(gpus, per_year, 60.0).unwrap();
    let domains = vec![domain(0..2, 8.0), domain(2..4, 4.0), domain(0..4, 1.0)];
    let failures = Failures::poisson(vec![0.5; 8]).unwrap().with_domains(domains).unwrap();
    let checkpoint = Checkpoint::YoungDaly { cost: 60.0 };
    let rules = Options { checkpoint, ..options() };
    let scenario = Scenario::new(cluster, vec![job(0.0, 1, 1.0)], failures, rules).unwrap();
    let draw = FailureDraw::new(scenario.failures(), 1, Purpose::Failures, 0);
    let simulation = Simulation::new(&scenario, draw, None);
    let per_year = |gpus: &[usize]| (simulation.state().rate_of(gpus) * YEAR * 1e6).round() / 1e6;
    assert_eq!(per_year(&[0]), 9.5);
    assert_eq!(per_year(&[0, 1]), 10.0);
    assert_eq!(per_year(&[1, 2]), 14.0);
    assert_eq!(per_year(&[6, 7]), 1.0);
    let mut picks = Vec::new();
    spread(simulation.state(), 5, &mut picks);
    // The racks take turns, then the nodes.
    assert_eq!(picks, [0, 4, 2, 6, 1]);
}

#[test]
fn random_domain_failures_have_the_given_rate() {
    let cluster = cluster();
    let domain = Domain::poisson(0..8, 20.0, 3600.0).unwrap();
    let failures = Failures::none(&cluster).with_domains(vec![domain]).unwrap().scaled(5.0).unwrap();
    let jobs = vec![job(0.0, 1, 1.0), job(20.0 * YEAR, 1, 1.0)];
    let outcome = run(&Scenario::new(cluster, jobs, failures, options()).unwrap());
    // 2,000 failures are expected in 20 years, less about 1 % because of the repairs; the standard deviation is 45.
    assert!((1800..2160).contains(&outcome.failures), "{}", outcome.failures);
}

#[test]
fn rules_avoid_lemons_and_recently_repaired_nodes() {
    let cluster = Cluster::uniform(20, 1).unwrap();
    let domain = |node: usize| {
        let belief = Belief { events: if node == 0 { 50.0 } else { 1.0 }, years: 1.0 };
        let repaired = if node < 19 { -DAY } else { -9.0 * DAY };
        Domain::trace(node..node + 1, Vec::new(), belief).unwrap().repaired_at(repaired).unwrap()
    };
    let failures = Failures::none(&cluster).with_domains((0..20).map(domain).collect()).unwrap();
    let first = |policy: PolicySpec, gpus| {
        let jobs = vec![job(0.0, gpus, 10.0)];
        let scenario = Scenario::new(cluster.clone(), jobs, failures.clone(), options()).unwrap();
        let draw = FailureDraw::new(scenario.failures(), 1, Purpose::Failures, 0);
        let mut simulation = Simulation::new(&scenario, draw, None);
        let mut placer = policy.build(&scenario, 1).unwrap();
        let candidate = simulation.next(placer.as_mut()).unwrap().unwrap();
        simulation.place(placer.as_mut(), candidate).unwrap();
        simulation.state().gpus_of(0).to_vec()
    };
    assert_eq!(first(PolicySpec::FirstFit, 2), [0, 1]);
    assert_eq!(first(PolicySpec::DrainLemons, 2), [1, 2]);
    // A job that needs the whole cluster gets the drained node as well, after all others.
    assert_eq!(first(PolicySpec::DrainLemons, 20)[18..], [19, 0]);
    assert_eq!(first(PolicySpec::Rested, 1), [19]);
}

#[test]
fn clairvoyant_placement_avoids_every_failure_that_it_can() {
    let cluster = Cluster::uniform(1, 3).unwrap();
    let outages =
        [(0, 5.0), (0, 60.0), (1, 30.0)].map(|(gpu, begin)| Outage { gpu, begin, end: begin + 1.0 });
    let failures = Failures::trace(&cluster, &outages).unwrap();
    let jobs = vec![job(0.0, 1, 40.0), job(10.0, 1, 40.0)];
    let scenario = Scenario::new(cluster, jobs, failures, options()).unwrap();
    let outcome = simulate(&scenario, &mut Clairvoyant::new(&scenario, 1), 1).unwrap();
    // The first job gets GPU 2, which never fails, and the second gets GPU 0, which next fails at 60 s.
    assert_eq!((outcome.completion_times, outcome.hits), (vec![Some(40.0), Some(40.0)], 0));
    // With first-fit, the first job is stopped at 5 s on GPU 0 and at 30 s on GPU 1.
    assert_eq!(run(&scenario).hits, 2);
}

const FAULTS: &str = r#"[
 {"node_id": "b", "event_time": 6.0, "event_type": "fault_end", "fault_type": {"Class": "GPU"}},
 {"node_id": "a", "event_time": 1.0, "event_type": "fault_start"},
 {"node_id": "b", "event_time": 4.0, "event_type": "fault_start"},
 {"node_id": "a", "event_time": 2.0, "event_type": "fault_start"},
 {"node_id": "a", "event_time": 3.0, "event_type": "fault_end"},
 {"node_id": "a", "event_time": 5.0, "event_type": "fault_end"},
 {"node_id": "a", "event_time": 8.0, "event_type": "fault_start"},
 {"node_id": "a", "event_time": 8.0, "event_type": "fault_end"},
 {"node_id": "c", "event_time": 9.0, "event_type": "fault_start"}
]"#;

#[test]
fn recorded_node_faults_are_read_and_replayed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("fault_trace.json");
    fs::write(&path, FAULTS).unwrap();
    let read = read_infinitehbd(&path).unwrap();
    // The overlapping faults of node a are one outage, and its fault without a duration lasts 1e-4 days. The fault of
    // node c lasts until the end of the period.
    let tick = 1e-4 * DAY;
    let a = vec![(DAY, 5.0 * DAY), (8.0 * DAY, 8.0 * DAY + tick)];
    let c = vec![(9.0 * DAY, 9.0 * DAY + tick)];
    assert_eq!(read, NodeTrace::new(vec![a, vec![(4.0 * DAY, 6.0 * DAY)], c], 9.0 * DAY + tick).unwrap());
    assert_eq!((read.nodes(), read.outages()), (3, 4));

    let cluster = Cluster::uniform(5, 2).unwrap();
    let mut seen = 0.0;
    for draw in 0..40 {
        let domains = read.draw(&cluster, &mut stream(draw, Purpose::Rates, 0)).unwrap();
        assert_eq!(domains.len(), 5);
        let failures = Failures::none(&cluster).with_domains(domains).unwrap();
        // The replay contains every outage once, except that an outage in progress at the start appears twice.
        let scenario = Scenario::new(
            cluster.clone(),
            vec![job(0.0, 1, 1.0), job(20.0 * DAY, 1, 1.0)],
            failures,
            options(),
        );
        let scenario = scenario.unwrap();
        let outcome = run(&scenario);
        assert!((4..=6).contains(&outcome.failures), "{}", outcome.failures);
        let mean: f64 =
            (0..5).map(|node| scenario.failures().estimate(10 + node, 0.0, 0) * YEAR).sum::<f64>() / 5.0;
        seen += mean / 40.0;
    }
    // The estimates are unbiased if the trace is stationary: 4 outages of 5 nodes in 9 days.
    assert!((seen / read.per_year(&cluster) - 1.0).abs() < 0.25, "{seen}, {}", read.per_year(&cluster));
    let error = read.draw(&Cluster::uniform(2, 2).unwrap(), &mut stream(1, Purpose::Rates, 0)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "number of nodes with faults is 3, expected at most 2, the number of nodes in the cluster"
    );
}

#[test]
fn malformed_node_faults_are_reported_by_field() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("faults.json");
    let wrong = |from: &str, to: &str| {
        fs::write(&path, FAULTS.replacen(from, to, 1)).unwrap();
        let text = read_infinitehbd(&path).unwrap_err().to_string();
        text.split_once("faults.json: ").unwrap().1.to_owned()
    };
    assert_eq!(wrong("6.0", "-6.0"), "event 0: event_time is -6, expected a number of days >= 0");
    let text = wrong("fault_end", "fault_stop");
    assert_eq!(text, "event 0: event_type is \"fault_stop\", expected fault_start or fault_end");
    let text = wrong("fault_start", "fault_end");
    assert_eq!(text, "event 1: event_type is fault_end, but the node has no open fault");
    assert!(wrong("node_id", "node").starts_with("missing field `node_id`"));
    fs::write(&path, "[]").unwrap();
    let text = read_infinitehbd(&path).unwrap_err().to_string();
    assert!(text.ends_with("number of nodes with faults is 0, expected at least 1"), "{text}");
}
