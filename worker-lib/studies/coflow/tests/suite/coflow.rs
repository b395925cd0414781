//! Coflow scheduling, compared with the results of an independent program. The tests use the trace of the benchmark if
//! it is available.
use std::path::Path;

use iswitch_coflow::bound::Bound;
use iswitch_coflow::generate::{JobSource, synthetic_shape, synthetic_trace};
use iswitch_coflow::measure::Measurement;
use iswitch_coflow::policy::{PolicySpec, ShafieeGhaderi};
use iswitch_coflow::search::{StaticPriorities, local_search};
use iswitch_coflow::simulation::{Fabric, Interval, Outcome, Rates, State, simulate};
use iswitch_coflow::trace::{CoflowTrace, read_shapes};
use iswitch_coflow::workload::{Coflow, Dependencies, Flow, Job};
use iswitch_learn::algorithms::streams::{Purpose, stream};

/// Capacity of a port, in bytes per second: 1 Gbit/s.
const CAPACITY: f64 = 125e6;
/// Environment variable with the path of the coflow benchmark, FB2010-1Hr-150-0.txt.
const TRACE: &str = "ISWITCH_COFLOW_TRACE";

/// Environment variable with the path of the shapes of TPC-H queries, tpch_shapes.txt.
const SHAPES: &str = "ISWITCH_DAG_SHAPES";

/// Environment variable with the path of a file of tasks from Alibaba's cluster-trace-v2018, such as sample_tasks.csv
/// of the package spar.
const TASKS: &str = "ISWITCH_ALIBABA_TASKS";

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn run_blocking(jobs: &[Job], ports: usize, policy: PolicySpec) -> Outcome {
    // The independent program whose figures are compared here blocks whole coflows.
    let fabric = Fabric { rates: Rates::Blocking, ..Fabric::new(ports, CAPACITY) };
    simulate(jobs, &fabric, policy.build(CAPACITY).as_mut(), &mut |_, _| {}).unwrap()
}

/// Returns synthetic jobs for a small fabric.
fn synthetic(seed: u64, jobs: usize, interarrival: f64) -> Vec<Job> {
    let mut rng = stream(seed, Purpose::Arrivals, 0);
    let trace = synthetic_trace(PORTS, 60, 1.0, &mut rng).unwrap();
    let coflows = trace.arrivals.into_iter().map(|arrival| arrival.coflow).collect();
    let shapes = (1..9).map(|nodes| synthetic_shape(nodes, 2, &mut rng)).collect();
    JobSource::new(shapes, coflows).unwrap().draw(jobs, interarrival, &mut rng)
}

const PORTS: usize = 12;

#[test]
fn no_port_exceeds_its_capacity_and_every_byte_arrives() {
    for (policy, rates) in PolicySpec::all().flat_map(|it| [(it, Rates::Backfill), (it, Rates::Blocking)]) {
        for (seed, interarrival) in [(1, 0.0), (2, 20.0), (3, 200.0)] {
            let jobs = synthetic(seed, 25, interarrival);
            let fabric = Fabric { rates, ..Fabric::new(PORTS, CAPACITY) };
            let mut sent = vec![0.0; jobs.iter().map(|job| job.coflows().len()).sum()];
            let mut check = |state: &State<'_>, interval: Interval<'_>| {
                let mut used = [0.0; 2 * PORTS];
                for (stage, rate) in interval.rates {
                    let stage_state = &state.stages[*stage];
                    assert!(stage_state.ready.is_some_and(|ready| ready <= interval.begin), "{policy}");
                    sent[*stage] += rate * (interval.end - interval.begin);
                    state.add_port_shares(*stage, &mut used);
                }
                assert!(used.iter().all(|share| *share <= 1.0 + 1e-9), "{policy}: {used:?}");
                // As long as a ready coflow has bytes left, at least one coflow is being sent.
                assert!(
                    !interval.rates.is_empty()
                        || state.stages.iter().all(|it| it.ready.is_none() || it.left == 0.0)
                );
            };
            let outcome = simulate(&jobs, &fabric, policy.build(CAPACITY).as_mut(), &mut check).unwrap();
            // The rates are those at the start of the interval, but flows can end within it.
            let more = if rates == Rates::Blocking { 1e-6 } else { 0.05 };
            assert!(sent.iter().all(|sent| *sent > 1.0 - 1e-6), "{policy}: {sent:?}");
            assert!(mean(&sent) < 1.0 + more, "{policy}: {sent:?}");
            let bound = Bound::of(&jobs, &fabric);
            let time = mean(&outcome.job_times);
            assert!(time >= bound.greatest() * (1.0 - 1e-9), "{policy}: {time}, {bound:?}");
        }
    }
}

#[test]
fn coflows_respect_start_and_finish_dependencies() {
    let coflow = |from, size| Coflow::new(3, vec![Flow { from, to: from, size }]).unwrap();
    let dependencies = vec![
        Dependencies::default(),
        Dependencies { starts_after: vec![0], finishes_after: vec![] },
        Dependencies { starts_after: vec![], finishes_after: vec![1] },
    ];
    let job = Job::new(5.0, vec![coflow(0, 100.0), coflow(1, 50.0), coflow(2, 10.0)], dependencies).unwrap();
    let fabric = Fabric::new(3, 10.0);
    for policy in PolicySpec::all() {
        let outcome =
            simulate(std::slice::from_ref(&job), &fabric, policy.build(10.0).as_mut(), &mut |_, _| {});
        let outcome = outcome.unwrap();
        assert_eq!(outcome.coflow_times, [10.0, 5.0, 15.0], "{policy}");
        assert_eq!((outcome.job_times.as_slice(), outcome.makespan), ([15.0].as_slice(), 20.0), "{policy}");
    }
}

#[test]
fn the_largest_coflows_complete() {
    let flow = |to, size| Flow { from: 0, to, size };
    let coflow = |flows| Job::single(0.0, Coflow::new(2, flows).unwrap()).unwrap();
    let jobs = [coflow(vec![flow(0, 1e18), flow(1, 1e-6)]), coflow(vec![flow(1, 1e-6)])];
    for policy in PolicySpec::all() {
        let fabric = Fabric::new(2, CAPACITY);
        let outcome = simulate(&jobs, &fabric, policy.build(CAPACITY).as_mut(), &mut |_, _| {}).unwrap();
        assert!((outcome.makespan / (1e18 / CAPACITY) - 1.0).abs() < 1e-6, "{policy}: {outcome:?}");
    }
}

#[test]
fn local_search_improves_its_initial_priorities() {
    let jobs = synthetic(4, 15, 0.0);
    let fabric = Fabric::new(PORTS, CAPACITY);
    let start = StaticPriorities::by_need(&jobs, &fabric);
    let begun = simulate(&jobs, &fabric, &mut start.clone(), &mut |_, _| {}).unwrap();
    let mut rng = stream(1, Purpose::Actions, 0);
    let (mut found, time) = local_search(&jobs, &fabric, start, 1500, &mut rng).unwrap();
    let again = mean(&simulate(&jobs, &fabric, &mut found, &mut |_, _| {}).unwrap().job_times);
    println!(
        "start {:.1} s, best found {time:.1} s, lower bound {:.1} s",
        mean(&begun.job_times),
        Bound::of(&jobs, &fabric).greatest()
    );
    assert!((again - time).abs() < 1e-9 && time < 0.98 * mean(&begun.job_times));
    assert!(time >= Bound::of(&jobs, &fabric).greatest());
}

/// Returns a batch of jobs with one flow each. All flows use the same ports.
fn at_one_port(seconds: &[f64]) -> Vec<Job> {
    let coflow = |seconds: &f64| Coflow::new(1, vec![Flow { from: 0, to: 0, size: 10.0 * seconds }]).unwrap();
    seconds.iter().map(|seconds| Job::single(0.0, coflow(seconds)).unwrap()).collect()
}

#[test]
fn deadlines_count_as_met_only_for_jobs_that_complete_in_time() {
    let fabric = Fabric::new(1, 10.0);
    let mut jobs = at_one_port(&[2.0, 1.0, 4.0]);
    let measure = |jobs: &[Job], policy: PolicySpec| {
        let outcome = simulate(jobs, &fabric, policy.build(10.0).as_mut(), &mut |_, _| {}).unwrap();
        Measurement::of(jobs, Bound::of(jobs, &fabric), &outcome)
    };
    assert_eq!(measure(&jobs, PolicySpec::Fifo).deadlines_met, None);
    jobs[0].deadline = Some(2.0);
    jobs[1].deadline = Some(1.5);
    // The jobs end at 2, 3 and 7 with FIFO; at 3, 1 and 7 with shortest first; and at 5, 3 and 7 with equal shares.
    for (policy, times, met) in [
        (PolicySpec::Fifo, [2.0, 3.0, 7.0], 0.5),
        (PolicySpec::Sebf, [1.0, 3.0, 7.0], 0.5),
        (PolicySpec::Fair, [3.0, 5.0, 7.0], 0.0),
    ] {
        let measured = measure(&jobs, policy);
        assert_eq!(measured.deadlines_met, Some(met), "{policy}");
        assert_eq!(measured.jct.mean, times.iter().sum::<f64>() / 3.0, "{policy}");
        assert_eq!((measured.jct.p50, measured.jct.p99), (times[1], times[2]), "{policy}");
        assert_eq!((measured.makespan, measured.cct), (7.0, measured.jct), "{policy}");
    }
}

#[test]
fn groups_order_jobs_and_random_delays_order_jobs_within_a_group() {
    let fabric = Fabric::new(1, 10.0);
    let first_of = |jobs: &[Job], seed: u64| {
        let outcome = simulate(jobs, &fabric, &mut ShafieeGhaderi::new(seed), &mut |_, _| {}).unwrap();
        (0..jobs.len()).min_by(|a, b| outcome.job_times[*a].total_cmp(&outcome.job_times[*b])).unwrap()
    };
    // The sums of path and load are 10 + 11 and 1 + 1, so the jobs are in different groups.
    assert!((0..20).all(|seed| first_of(&at_one_port(&[10.0, 1.0]), seed) == 1));
    // These jobs share a group, so random delays determine their order. The same seed always gives the same order, and
    // not all seeds give the same order.
    let alike = at_one_port(&[4.0, 4.0, 4.0, 4.0]);
    let firsts: Vec<_> = (0..40).map(|seed| first_of(&alike, seed)).collect();
    assert_eq!(firsts, (0..40).map(|seed| first_of(&alike, seed)).collect::<Vec<_>>());
    assert!(firsts.iter().any(|first| *first != firsts[0]), "{firsts:?}");
}

#[test]
fn jobs_that_cannot_be_simulated_are_reported() {
    let mut jobs = synthetic(1, 2, 10.0);
    jobs.reverse();
    let fabric = Fabric::new(PORTS, CAPACITY);
    let error =
        simulate(&jobs, &fabric, PolicySpec::Sebf.build(CAPACITY).as_mut(), &mut |_, _| {}).unwrap_err();
    assert!(error.to_string().starts_with("arrival of job 1 is "), "{error}");
    let fabric = Fabric { ports: PORTS + 1, ..fabric };
    jobs.reverse();
    let error =
        simulate(&jobs, &fabric, PolicySpec::Sebf.build(CAPACITY).as_mut(), &mut |_, _| {}).unwrap_err();
    assert_eq!(error.to_string(), "ports of a coflow's fabric is 12, expected 13");
}

#[test]
fn benchmark_completion_times_match_an_independent_program() {
    let Some(path) = std::env::var_os(TRACE) else {
        return eprintln!("SKIPPED the benchmark's completion times: {TRACE} does not name its file");
    };
    let trace = CoflowTrace::read(Path::new(&path)).unwrap();
    let jobs: Vec<_> = trace
        .arrivals
        .into_iter()
        .map(|arrival| Job::single(arrival.time, arrival.coflow).unwrap())
        .collect();
    for (policy, want) in [
        (PolicySpec::Fair, 123.9),
        (PolicySpec::Fifo, 195.1),
        (PolicySpec::Lcf, 66.0),
        (PolicySpec::Sebf, 56.4),
        (PolicySpec::Bssi, 56.3),
    ] {
        let begin = std::time::Instant::now();
        let outcome = run_blocking(&jobs, trace.ports, policy);
        let got = mean(&outcome.coflow_times);
        println!(
            "{policy}: {got:.1} s, expected {want}; {} decisions, {:?}",
            outcome.decisions,
            begin.elapsed()
        );
        assert!((got / want - 1.0).abs() < 0.03, "{policy}: {got}, expected {want}");
    }
    println!("aalo: {:.1} s", mean(&run_blocking(&jobs, trace.ports, PolicySpec::Aalo).coflow_times));
}

#[test]
fn shapes_of_alibaba_jobs_match_an_independent_program() {
    let Some(path) = std::env::var_os(TASKS) else {
        return eprintln!("SKIPPED shapes of Alibaba's jobs: {TASKS} does not name their file");
    };
    let shapes = read_shapes(Path::new(&path)).unwrap();
    let nodes: usize = shapes.iter().map(|shape| shape.nodes).sum();
    let edges: usize = shapes.iter().map(|shape| shape.edges.len()).sum();
    assert_eq!((shapes.len(), nodes, edges), (16_749, 67_634, 52_829));
    assert_eq!(shapes.iter().map(|shape| shape.nodes).max(), Some(91));
    assert_eq!(shapes.iter().filter(|shape| shape.edges.is_empty()).count(), 4_873);
}

/// Random number generator of the independent program: SplitMix64.
struct SplitMix(u64);

impl SplitMix {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, count: usize) -> usize {
        (self.unit() * count as f64) as usize
    }
}

#[test]
fn completion_times_of_graph_jobs_match_an_independent_program() {
    let (Some(trace), Some(shapes)) = (std::env::var_os(TRACE), std::env::var_os(SHAPES)) else {
        return eprintln!("SKIPPED completion times of graphs: {TRACE} and {SHAPES} do not name their files");
    };
    let trace = CoflowTrace::read(Path::new(&trace)).unwrap();
    let coflows: Vec<_> = trace.arrivals.into_iter().map(|arrival| arrival.coflow).collect();
    let (count, shapes) = (coflows.len(), read_shapes(Path::new(&shapes)).unwrap());
    let source = JobSource::new(shapes, coflows).unwrap();
    let policies = [
        PolicySpec::Fair,
        PolicySpec::Fifo,
        PolicySpec::Sebf,
        PolicySpec::Bssi,
        PolicySpec::JobSrpt,
        PolicySpec::JobSebf,
        PolicySpec::JobBssi,
    ];
    for (interarrival, want) in [
        (40.0, [1903.0, 1927.0, 965.0, 992.0, 806.0, 803.0, 828.0]),
        (20.0, [2817.0, 2724.0, 1409.0, 1441.0, 1223.0, 1216.0, 1261.0]),
        (10.0, [3295.0, 3347.0, 1630.0, 1694.0, 1464.0, 1455.0, 1509.0]),
    ] {
        let draw = |seed: u64| -> Vec<Job> {
            let mut rng = SplitMix(99 + seed);
            let mut time = 0.0;
            (0..200)
                .map(|_| {
                    time += -(1.0 - rng.unit()).ln() * interarrival;
                    let shape = source.shapes()[rng.below(source.shapes().len())].clone();
                    source.job(time, &shape, |_| rng.below(count)).unwrap()
                })
                .collect()
        };
        let workloads: Vec<_> = (0..3).map(draw).collect();
        for (policy, want) in policies.into_iter().zip(want) {
            let times = workloads.iter().map(|jobs| mean(&run_blocking(jobs, trace.ports, policy).job_times));
            let got = times.sum::<f64>() / 3.0;
            println!("every {interarrival} s, {policy}: {got:.0} s, expected {want}");
            assert!(
                (got / want - 1.0).abs() < 0.03,
                "every {interarrival} s, {policy}: {got}, expected {want}"
            );
        }
    }
}
