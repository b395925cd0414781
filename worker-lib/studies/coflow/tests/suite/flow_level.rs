//! Rates of individual flows, compared with the independent program of [`reference`](super::reference).

use std::time::Instant;

use iswitch_coflow::generate::synthetic_trace;
use iswitch_coflow::policy::PolicySpec;
use iswitch_coflow::simulation::{Fabric, simulate};
use iswitch_coflow::trace::{Arrival, CoflowTrace};
use iswitch_coflow::workload::{Coflow, Flow, Job};
use iswitch_learn::algorithms::streams::{Purpose, stream};
use proptest::prelude::*;

use super::reference::{RefCoflow, RefFlow, RefRule, completion_times, read};

/// Capacity of a port, in bytes per second. With this capacity, the limit of Aalo's first queue, 10 MB, corresponds to
/// 1 s.
const CAPACITY: f64 = 10e6;

const RULES: [(PolicySpec, RefRule); 4] = [
    (PolicySpec::Fair, RefRule::Fair),
    (PolicySpec::Fifo, RefRule::Fifo),
    (PolicySpec::Sebf, RefRule::Sebf),
    (PolicySpec::Aalo, RefRule::Aalo { limit: 1.0 }),
];

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the completion times that the simulator computes for coflows.
fn simulated((ports, capacity): (usize, f64), coflows: &[RefCoflow], policy: PolicySpec) -> Vec<f64> {
    let job = |coflow: &RefCoflow| {
        let flow = |flow: &RefFlow| Flow { from: flow.ingress, to: flow.egress, size: flow.left * capacity };
        let flows = coflow.flows.iter().map(flow).collect();
        Job::single(coflow.arrival, Coflow::new(ports, flows).unwrap()).unwrap()
    };
    let jobs: Vec<_> = coflows.iter().map(job).collect();
    let mut policy = policy.build(capacity);
    simulate(&jobs, &Fabric::new(ports, capacity), policy.as_mut(), &mut |_, _| {}).unwrap().coflow_times
}

/// Converts the coflows of a trace to those of the independent program.
fn of_trace(trace: CoflowTrace) -> Vec<RefCoflow> {
    let coflow = |Arrival { time, coflow }: Arrival| {
        let flow = |flow: &Flow| RefFlow::new(flow.from, flow.to, flow.size / 125e6);
        RefCoflow { arrival: time, flows: coflow.flows().iter().map(flow).collect() }
    };
    trace.arrivals.into_iter().map(coflow).collect()
}

#[test]
fn synthetic_traces_have_the_times_of_the_independent_program() {
    for (seed, interarrival) in [(1, 0.5), (2, 2.0), (3, 8.0)] {
        let trace = synthetic_trace(8, 40, interarrival, &mut stream(seed, Purpose::Arrivals, 0)).unwrap();
        let coflows = of_trace(trace);
        for (policy, rule) in RULES {
            let (got, want) =
                (simulated((8, CAPACITY), &coflows, policy), completion_times(8, &coflows, rule, 0.0));
            let ratio = mean(&got) / mean(&want);
            println!("seed {seed}, {policy}: {:.3} s, {:.3} s", mean(&got), mean(&want));
            assert!((ratio - 1.0).abs() < 0.01, "seed {seed}, {policy}: {got:?}, expected {want:?}");
        }
    }
}

proptest! {
    #[test]
    fn small_cases_have_the_times_of_the_independent_program(
        coflows in prop::collection::vec(
            (0.0..5.0_f64, prop::collection::vec((0..3_usize, 0..3_usize, 0.5..4.0_f64), 1..6)),
            1..6,
        ),
    ) {
        let flow = |(from, to, size)| RefFlow::new(from, to, size);
        let coflow = |(arrival, flows): (f64, Vec<_>)| {
            RefCoflow { arrival, flows: flows.into_iter().map(flow).collect() }
        };
        let mut coflows: Vec<_> = coflows.into_iter().map(coflow).collect();
        coflows.sort_by(|a, b| a.arrival.total_cmp(&b.arrival));
        for (policy, rule) in RULES {
            let (got, want) = (simulated((3, CAPACITY), &coflows, policy), completion_times(3, &coflows, rule, 0.0));
            let ratio = mean(&got) / mean(&want);
            prop_assert!((ratio - 1.0).abs() < 0.01, "{policy}: {got:?}, expected {want:?}");
        }
    }
}

#[test]
fn the_benchmark_has_the_times_of_the_independent_program() {
    const TRACE: &str = "ISWITCH_COFLOW_TRACE";
    let Some(path) = std::env::var_os(TRACE) else {
        return eprintln!("SKIPPED flow-level times of the benchmark: {TRACE} does not name its file");
    };
    let (ports, coflows) = read(&std::fs::read_to_string(path).unwrap());
    for (policy, rule) in RULES {
        let begin = Instant::now();
        let got = mean(&simulated((ports, 125e6), &coflows, policy));
        let took = begin.elapsed();
        let rule = if policy == PolicySpec::Aalo { RefRule::Aalo { limit: 10e6 / 125e6 } } else { rule };
        let want = mean(&completion_times(ports, &coflows, rule, 0.1));
        println!("{policy}: {got:.2} s in {took:.2?}, expected {want:.2} s, {:.2?}", begin.elapsed());
        assert!((got / want - 1.0).abs() < 0.01, "{policy}: {got}, expected {want}");
    }
}
