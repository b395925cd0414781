//! Completion times of small cases, compared with values calculated by hand. Ports have a capacity of 1, so the size of
//! a flow is also its duration in seconds. A flow is written as its ingress port, its egress port and its size. The
//! coflows of a case are called A, B and C, in this order.

use iswitch_coflow::policy::PolicySpec;
use iswitch_coflow::simulation::{Fabric, Rates, simulate};
use iswitch_coflow::workload::{Coflow, Dependencies, Flow, Job};

const PORTS: usize = 4;

type Flows<'a> = &'a [(usize, usize, f64)];

fn coflow(flows: Flows<'_>) -> Coflow {
    let flows = flows.iter().map(|(from, to, size)| Flow { from: *from, to: *to, size: *size });
    Coflow::new(PORTS, flows.collect()).unwrap()
}

fn check_on(fabric: &Fabric, policy: PolicySpec, coflows: &[(f64, Flows<'_>)], want: &[f64]) {
    let jobs: Vec<_> =
        coflows.iter().map(|(arrival, flows)| Job::single(*arrival, coflow(flows)).unwrap()).collect();
    let outcome = simulate(&jobs, fabric, policy.build(fabric.capacity).as_mut(), &mut |_, _| {}).unwrap();
    // Aalo moves a coflow to a lower queue 1e-9 s after the coflow has reached the limit of its queue, so that rounding
    // cannot keep it in the queue.
    let is_near = |(got, want): (&f64, &f64)| (got - want).abs() < 1e-8;
    let got = &outcome.coflow_times;
    assert!(got.iter().zip(want).all(is_near), "{policy}: {got:?}, expected {want:?}");
}

/// Checks the completion time of each coflow, measured from its arrival.
fn check(policy: PolicySpec, coflows: &[(f64, Flows<'_>)], want: &[f64]) {
    check_on(&Fabric::new(PORTS, 1.0), policy, coflows, want);
}

fn check_blocking(policy: PolicySpec, coflows: &[(f64, Flows<'_>)], want: &[f64]) {
    check_on(&Fabric { rates: Rates::Blocking, ..Fabric::new(PORTS, 1.0) }, policy, coflows, want);
}

#[test]
fn flows_of_a_coflow_end_together() {
    // 1. Port 0 sends 1 + 3.
    check(PolicySpec::Sebf, &[(0.0, &[(0, 0, 1.0), (0, 1, 3.0)])], &[4.0]);
    // 2. Three ports send 1 each to port 0.
    check(PolicySpec::Sebf, &[(0.0, &[(0, 0, 1.0), (1, 0, 1.0), (2, 0, 1.0)])], &[3.0]);
}

#[test]
fn flows_of_a_blocked_coflow_use_free_ports() {
    // A needs 1 s. B needs 3 s at egress port 1, but its first flow waits for ingress port 0.
    let coflows: [(f64, Flows<'_>); 2] = [(0.0, &[(0, 0, 1.0)]), (0.0, &[(0, 1, 1.0), (1, 1, 2.0)])];
    // 3. Until 1 s, the second flow of B is backfilled at full rate and sends 1. The rest of B, 1 + 1 at egress port 1,
    // takes until 3 s.
    check(PolicySpec::Sebf, &coflows, &[1.0, 3.0]);
    // 4. Under the blocking model, B starts at 1 s and needs 3 s.
    check_blocking(PolicySpec::Sebf, &coflows, &[1.0, 4.0]);
}

#[test]
fn a_coflow_leaves_what_it_does_not_need() {
    // A needs 8 s at ingress port 0, B needs 6 s at egress port 0.
    let coflows: [(f64, Flows<'_>); 2] = [(0.0, &[(0, 0, 4.0), (0, 1, 4.0)]), (0.0, &[(1, 0, 6.0)])];
    // 5. B is first, until 6 s. The second flow of A is backfilled until 4 s; the first one has egress port 0 from 6 s
    // to 10 s.
    check(PolicySpec::Sebf, &coflows, &[10.0, 6.0]);
    // 6. First in, first out: A is first, with 1/2 for each flow until 8 s. B has the other half of egress port 0 until
    // then and sends 4; the remaining 2 take until 10 s.
    check(PolicySpec::Fifo, &coflows, &[8.0, 10.0]);
}

#[test]
fn shortest_coflows_preempt_others() {
    // 7. B, which needs 1 s, arrives at 2 s, when A still needs 8 s.
    check(PolicySpec::Sebf, &[(0.0, &[(0, 0, 10.0)]), (2.0, &[(0, 0, 1.0)])], &[11.0, 1.0]);
    // 8. B arrives when A needs only 0.5 s, and waits.
    check(PolicySpec::Sebf, &[(0.0, &[(0, 0, 2.5)]), (2.0, &[(0, 0, 1.0)])], &[2.5, 1.5]);
}

#[test]
fn size_and_bottleneck_may_differ() {
    // A has 2 s of bytes in all and needs 1 s; B has 1.5 s of bytes and needs 1.5 s.
    let coflows: [(f64, Flows<'_>); 2] = [(0.0, &[(0, 0, 1.0), (1, 1, 1.0)]), (0.0, &[(0, 0, 1.5)])];
    // 9. By size, B is first; the second flow of A is backfilled, the first one follows B.
    check(PolicySpec::Lcf, &coflows, &[2.5, 1.5]);
    // 10. By bottleneck, A is first.
    check(PolicySpec::Sebf, &coflows, &[1.0, 2.5]);
}

#[test]
fn fair_rates_are_those_of_flows() {
    // 11. Each has a rate of 1/2 until A ends at 2 s; then B has 2 s left.
    check(PolicySpec::Fair, &[(0.0, &[(0, 0, 1.0)]), (0.0, &[(0, 0, 3.0)])], &[2.0, 4.0]);
    // 12. A sends 2 until B arrives at 2 s. B ends at 4 s, when A has 1 s left.
    check(PolicySpec::Fair, &[(0.0, &[(0, 0, 4.0)]), (2.0, &[(0, 0, 1.0)])], &[5.0, 2.0]);
    // 13. The three flows of A have 3/4 of port 0; all four flows end at 4 s.
    let three: Flows<'_> = &[(0, 0, 1.0), (0, 1, 1.0), (0, 2, 1.0)];
    check(PolicySpec::Fair, &[(0.0, three), (0.0, &[(0, 3, 1.0)])], &[4.0, 4.0]);
    // 14. The flows of A have a rate of 1/3 each, so the flow of B gets 2/3 of egress port 2 and also ends at 3 s.
    check(PolicySpec::Fair, &[(0.0, three), (0.0, &[(1, 2, 2.0)])], &[3.0, 3.0]);
    // 15. All three have a rate of 1/2. When A and B end at 4 s, C has sent 2 of 3 and continues alone.
    let chain: [(f64, Flows<'_>); 3] = [(0.0, &[(0, 0, 2.0)]), (0.0, &[(0, 1, 2.0)]), (0.0, &[(1, 1, 3.0)])];
    check(PolicySpec::Fair, &chain, &[4.0, 4.0, 5.0]);
}

#[test]
fn the_order_of_sincronia_is_sent_greedily() {
    // 16. The busiest port is ingress port 0 with a load of 2 + 1. A, which has the larger part of this load, is last.
    check(PolicySpec::Bssi, &[(0.0, &[(0, 0, 2.0)]), (0.0, &[(0, 1, 1.0)])], &[3.0, 1.0]);
    // 17. Ports 0 and 1 have a load of 2 each. A, which uses both, is last: B and C end at 1 s, A at 2 s.
    let shared: [(f64, Flows<'_>); 3] =
        [(0.0, &[(0, 0, 1.0), (1, 1, 1.0)]), (0.0, &[(0, 2, 1.0)]), (0.0, &[(1, 3, 1.0)])];
    check(PolicySpec::Bssi, &shared, &[2.0, 1.0, 1.0]);
}

#[test]
fn aalo_does_not_know_sizes() {
    // At the full rate of a port, a coflow reaches the limit of the first queue, 10 MB, after 1 s.
    let fabric = Fabric::new(PORTS, 10e6);
    // 18. A leaves the first queue at 1 s, so B sends until 1.5 s, and A ends at 3.5 s.
    check_on(&fabric, PolicySpec::Aalo, &[(0.0, &[(0, 0, 30e6)]), (0.0, &[(0, 0, 5e6)])], &[3.5, 1.5]);
    // 19. The flows of A share port 0 equally, so the first one ends at 0.8 s and the second one, alone, at 1.2 s. Half
    // of egress port 0 is free until 0.8 s, so B sends 4 MB until then; its remaining 2 MB take 0.2 s.
    let coflows: [(f64, Flows<'_>); 2] = [(0.0, &[(0, 0, 4e6), (0, 1, 8e6)]), (0.0, &[(1, 0, 6e6)])];
    check_on(&fabric, PolicySpec::Aalo, &coflows, &[1.2, 1.0]);
}

#[test]
fn job_level_policies_see_what_follows() {
    // 20. A job of two coflows of 1 s each, one after the other, and a job of one coflow of 1.5 s, all at port 0. sebf
    // sends the coflows of the first job before the second job; job-sebf sends the second job first.
    let pair = Job::new(
        0.0,
        vec![coflow(&[(0, 0, 1.0)]), coflow(&[(0, 0, 1.0)])],
        vec![Dependencies::default(), Dependencies { starts_after: vec![0], finishes_after: vec![] }],
    );
    let jobs = [pair.unwrap(), Job::single(0.0, coflow(&[(0, 0, 1.5)])).unwrap()];
    for (policy, want) in [(PolicySpec::Sebf, [2.0, 3.5]), (PolicySpec::JobSebf, [3.5, 1.5])] {
        let outcome = simulate(&jobs, &Fabric::new(PORTS, 1.0), policy.build(1.0).as_mut(), &mut |_, _| {});
        assert_eq!(outcome.unwrap().job_times, want, "{policy}");
    }
}
