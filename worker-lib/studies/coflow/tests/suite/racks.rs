//! Fabrics with unequal ports and oversubscribed racks: small cases calculated by hand, and properties that are checked
//! with the rates of single flows. A size of 1 takes 1 s at 1 Gbit/s.

use iswitch_coflow::agent::Agent;
use iswitch_coflow::bound::{Bound, alone};
use iswitch_coflow::inputs::GBIT;
use iswitch_coflow::policy::PolicySpec;
use iswitch_coflow::simulation::{Fabric, Rack, Rates, simulate};
use iswitch_coflow::workload::{Coflow, Dependencies, Flow, Job};
use proptest::prelude::*;
use serde_json::{Value, json};

const PORTS: usize = 4;

type Flows<'a> = &'a [(usize, usize, f64)];

fn coflow(flows: Flows<'_>) -> Coflow {
    let flows = flows.iter().map(|(from, to, size)| Flow { from: *from, to: *to, size: size * GBIT });
    Coflow::new(PORTS, flows.collect()).unwrap()
}

fn rack(name: &str, ports: &[usize], gbit: f64) -> Rack {
    Rack { name: name.to_owned(), ports: ports.to_vec(), uplink_gbit: gbit, downlink_gbit: gbit }
}

/// Returns two racks of two 1 Gbit/s ports each, whose links have an oversubscription factor of 2.
fn two_racks(rates: Rates) -> Fabric {
    let racks = [rack("a", &[0, 1], 1.0), rack("b", &[2, 3], 1.0)];
    Fabric::of_rates(&[1.0; PORTS], &[1.0; PORTS], &racks, rates).unwrap()
}

fn batch(coflows: &[Flows<'_>]) -> Vec<Job> {
    coflows.iter().map(|flows| Job::single(0.0, coflow(flows)).unwrap()).collect()
}

fn times(fabric: &Fabric, policy: PolicySpec, jobs: &[Job]) -> Vec<f64> {
    simulate(jobs, fabric, policy.build(fabric.capacity).as_mut(), &mut |_, _| {}).unwrap().coflow_times
}

fn check(fabric: &Fabric, policy: PolicySpec, coflows: &[Flows<'_>], want: &[f64]) {
    let got = times(fabric, policy, &batch(coflows));
    let near = got.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-8);
    assert!(near, "{policy}: {got:?}, expected {want:?}");
}

#[test]
fn flows_between_racks_share_the_uplink() {
    let fabric = two_racks(Rates::Backfill);
    for policy in PolicySpec::all() {
        // Both flows leave the rack, so 2 s of bytes pass its link. Without racks, they would need 1 s.
        check(&fabric, policy, &[&[(0, 2, 1.0), (1, 3, 1.0)]], &[2.0]);
        // Flows within a rack do not use the link.
        check(&fabric, policy, &[&[(0, 1, 1.0), (1, 0, 1.0)]], &[1.0]);
        // Each link has one flow in each direction.
        check(&fabric, policy, &[&[(0, 2, 1.0), (3, 1, 1.0)]], &[1.0]);
    }
}

#[test]
fn coflows_wait_for_the_uplink_in_the_order_of_the_policy() {
    let fabric = two_racks(Rates::Backfill);
    // The coflows have no port in common, but the same link.
    let pair: [Flows<'_>; 2] = [&[(0, 2, 2.0)], &[(1, 3, 1.0)]];
    for policy in
        [PolicySpec::Sebf, PolicySpec::Lcf, PolicySpec::Bssi, PolicySpec::JobSebf, PolicySpec::JobBssi]
    {
        check(&fabric, policy, &pair, &[3.0, 1.0]);
    }
    check(&fabric, PolicySpec::Fifo, &pair, &[2.0, 3.0]);
    // Both have half of the link until the second one ends at 2 s.
    check(&fabric, PolicySpec::Fair, &pair, &[3.0, 2.0]);
    // A third flow gets the half of port 0 that the first one does not use, until the first two flows end at 2 s.
    check(&fabric, PolicySpec::Fair, &[&[(0, 2, 1.0)], &[(1, 3, 1.0)], &[(0, 1, 2.0)]], &[2.0, 2.0, 3.0]);
}

#[test]
fn a_flow_within_the_rack_is_backfilled_while_another_waits_for_the_link() {
    let coflows: [Flows<'_>; 2] = [&[(0, 2, 1.0)], &[(1, 3, 1.0), (1, 0, 1.0)]];
    // The second flow of the second coflow is sent until 1 s, when the link becomes free for the first flow of this
    // coflow.
    check(&two_racks(Rates::Backfill), PolicySpec::Sebf, &coflows, &[1.0, 2.0]);
    // Under the blocking model, the second coflow starts at 1 s and needs 2 s at its ingress port.
    check(&two_racks(Rates::Blocking), PolicySpec::Sebf, &coflows, &[1.0, 3.0]);
    // With equal shares, each coflow has half of the link. Half of the second coflow passes the link, which takes 2 s,
    // as long as the coflow needs at its ingress port. Both coflows end at 2 s.
    check(&two_racks(Rates::Blocking), PolicySpec::Fair, &coflows, &[2.0, 2.0]);
}

#[test]
fn faster_ports_send_more() {
    // Ingress port 0 and egress port 1 have 2 Gbit/s.
    let fabric =
        Fabric::of_rates(&[2.0, 1.0, 1.0, 1.0], &[1.0, 2.0, 1.0, 1.0], &[], Rates::Backfill).unwrap();
    for policy in PolicySpec::all() {
        check(&fabric, policy, &[&[(0, 1, 4.0)]], &[2.0]);
        check(&fabric, policy, &[&[(1, 1, 1.0), (2, 1, 1.0)]], &[1.0]);
    }
    // 3 s of bytes leave port 0, at 2 Gbit/s.
    check(&fabric, PolicySpec::Sebf, &[&[(0, 1, 2.0), (0, 2, 1.0)]], &[1.5]);
    // The first coflow has more bytes, but needs only 1.5 s at its fast ports; the second one needs 2 s.
    check(&fabric, PolicySpec::Sebf, &[&[(0, 1, 3.0)], &[(0, 2, 2.0)]], &[1.5, 3.5]);
    // By size, the second coflow is first and leaves half of ingress port 0 to the other one.
    check(&fabric, PolicySpec::Lcf, &[&[(0, 1, 3.0)], &[(0, 2, 2.0)]], &[2.5, 2.0]);
}

#[test]
fn bounds_include_the_links() {
    let fabric = two_racks(Rates::Backfill);
    let jobs = batch(&[&[(0, 2, 2.0)], &[(1, 3, 1.0)]]);
    // Alone, the jobs need 2 s and 1 s. The link is a machine that serves the shorter one first.
    let Bound { isolated, port, relaxation } = Bound::of(&jobs, &fabric);
    assert!((isolated - 1.5).abs() < 1e-9 && (port - 2.0).abs() < 1e-9, "{isolated}, {port}");
    assert!(relaxation < 2.0 + 1e-9 && relaxation > 1.8, "{relaxation}");
    let both = Job::single(0.0, coflow(&[(0, 2, 1.0), (1, 3, 1.0)])).unwrap();
    assert!((alone(&both, &fabric) - 2.0).abs() < 1e-9);
}

/// Random fabric: rates of all ports, and of the links of two racks; port 3 has no rack.
fn fabrics() -> impl Strategy<Value = (Vec<f64>, Vec<f64>, [f64; 4])> {
    let gbit = || prop::collection::vec(0.5..3.0, PORTS);
    (gbit(), gbit(), prop::array::uniform4(0.3..4.0))
}

fn of((ingress, egress, links): &(Vec<f64>, Vec<f64>, [f64; 4]), rates: Rates) -> Fabric {
    let [up, down, other_up, other_down] = *links;
    let racks = [
        Rack { downlink_gbit: down, ..rack("a", &[0, 1], up) },
        Rack { downlink_gbit: other_down, ..rack("b", &[2], other_up) },
    ];
    Fabric::of_rates(ingress, egress, &racks, rates).unwrap()
}

/// Constraint of a fabric: the maximum total rate, in Gbit/s, and a function that returns whether a flow, given its
/// ports, is subject to the constraint.
type Constraint = (f64, Box<dyn Fn(usize, usize) -> bool>);

fn constraints((ingress, egress, links): &(Vec<f64>, Vec<f64>, [f64; 4])) -> Vec<Constraint> {
    let mut all: Vec<Constraint> = Vec::new();
    for port in 0..PORTS {
        all.push((ingress[port], Box::new(move |from, _| from == port)));
        all.push((egress[port], Box::new(move |_, to| to == port)));
    }
    let a = |port: usize| port < 2;
    all.push((links[0], Box::new(move |from, to| a(from) && !a(to))));
    all.push((links[1], Box::new(move |from, to| !a(from) && a(to))));
    all.push((links[2], Box::new(|from, to| from == 2 && to != 2)));
    all.push((links[3], Box::new(|from, to| from != 2 && to == 2)));
    all
}

/// Returns the ports of the flows of all coflows, which form a batch, and the rates that the agent gives these flows,
/// in Gbit/s.
fn rates(
    fabric: &Fabric,
    policy: PolicySpec,
    coflows: &[Vec<(usize, usize, f64)>],
) -> Vec<(usize, usize, f64)> {
    let capacity = fabric.capacity;
    let make = Box::new(move |_: &[Job]| Ok(policy.build(capacity)));
    let mut agent = Agent::new(policy.to_string(), make, fabric.clone()).unwrap();
    for (number, flows) in coflows.iter().enumerate() {
        let flows: Vec<_> = flows.iter().map(|(from, to, size)| (from, to, size * GBIT)).collect();
        let request = json!({"coflow": {"id": number.to_string(), "flows": flows}}).to_string();
        assert!(agent.answer(&request).contains("incomplete"));
    }
    let answer: Value = serde_json::from_str(&agent.answer(r#"{"rates": true}"#)).unwrap();
    let mut all = Vec::new();
    for rated in answer["order"].as_array().unwrap() {
        let coflow = &coflows[rated["job"].as_str().unwrap().parse::<usize>().unwrap()];
        let rates = rated["rates_bps"].as_array().unwrap().iter().map(|rate| rate.as_f64().unwrap() / 1e9);
        all.extend(coflow.iter().zip(rates).map(|((from, to, _), rate)| (*from, *to, rate)));
    }
    assert_eq!(all.len(), coflows.iter().map(Vec::len).sum::<usize>());
    all
}

fn many_coflows() -> impl Strategy<Value = Vec<Vec<(usize, usize, f64)>>> {
    prop::collection::vec(prop::collection::vec((0..PORTS, 0..PORTS, 0.1..5.0), 1..8), 1..6)
}

proptest! {
    #[test]
    fn no_port_or_link_is_exceeded_and_none_is_idle_while_a_flow_waits(
        described in fabrics(),
        coflows in many_coflows(),
    ) {
        for policy in PolicySpec::all() {
            for model in [Rates::Backfill, Rates::Blocking] {
                let flows = rates(&of(&described, model), policy, &coflows);
                let full: Vec<(bool, Constraint)> = constraints(&described).into_iter().map(|(gbit, applies)| {
                    let of = flows.iter().filter(|(from, to, _)| applies(*from, *to));
                    let used: f64 = of.map(|(_, _, rate)| rate).sum();
                    assert!(used <= gbit * (1.0 + 1e-9), "{policy}, {model}: {used} of {gbit}");
                    (used >= gbit * (1.0 - 1e-5), (gbit, applies))
                }).collect();
                if model == Rates::Backfill {
                    let is_limited = |(from, to, _): &(usize, usize, f64)| {
                        full.iter().any(|(is_full, (_, applies))| *is_full && applies(*from, *to))
                    };
                    prop_assert!(flows.iter().all(is_limited), "{}: {:?}", policy, flows);
                }
            }
        }
    }

    #[test]
    fn each_flow_has_a_bottleneck_under_fair_rates(described in fabrics(), coflows in many_coflows()) {
        let flows = rates(&of(&described, Rates::Backfill), PolicySpec::Fair, &coflows);
        let all = constraints(&described);
        for (from, to, rate) in &flows {
            let is_bottleneck = |(gbit, applies): &Constraint| {
                let of = || flows.iter().filter(|(from, to, _)| applies(*from, *to)).map(|(_, _, rate)| *rate);
                let highest = of().fold(0.0, f64::max);
                applies(*from, *to) && of().sum::<f64>() >= gbit * (1.0 - 1e-9) && *rate >= highest * (1.0 - 1e-9)
            };
            prop_assert!(all.iter().any(is_bottleneck), "{from} to {to}: {flows:?}");
        }
    }

    #[test]
    fn no_policy_is_faster_than_the_bound(
        described in fabrics(),
        coflows in many_coflows(),
        interarrival in 0.0..4.0,
    ) {
        let last = coflows.len() - 1;
        let mut jobs: Vec<Job> = coflows[..last].iter().enumerate().map(|(number, flows)| {
            Job::single(number as f64 * interarrival, coflow(flows)).unwrap()
        }).collect();
        // The last job is a chain, so that critical paths matter.
        let chain = Dependencies { starts_after: vec![0], finishes_after: Vec::new() };
        let parts = vec![coflow(&coflows[last]), coflow(&coflows[0])];
        let arrival = last as f64 * interarrival;
        jobs.push(Job::new(arrival, parts, vec![Dependencies::default(), chain]).unwrap());
        for model in [Rates::Backfill, Rates::Blocking] {
            let fabric = of(&described, model);
            let bound = Bound::of(&jobs, &fabric).greatest();
            for policy in PolicySpec::all() {
                let mut policy = policy.build(fabric.capacity);
                let times = simulate(&jobs, &fabric, policy.as_mut(), &mut |_, _| {}).unwrap().job_times;
                let mean = times.iter().sum::<f64>() / times.len() as f64;
                prop_assert!(mean >= bound * (1.0 - 1e-9), "{mean}, bound {bound}");
            }
        }
    }
}
