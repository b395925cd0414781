//! Tests of the service that answers requests from a cluster's scheduler.

use std::collections::BTreeMap;

use iswitch_coflow::agent::{Agent, COFLOWS_MAX, FLOWS_MAX, ID_LEN_MAX_BYTES};
use iswitch_coflow::deepweave::agent::DeepWeave;
use iswitch_coflow::deepweave::lookahead::Lookahead;
use iswitch_coflow::generate::{JobSource, synthetic_shape, synthetic_trace};
use iswitch_coflow::policy::{Policy, PolicySpec};
use iswitch_coflow::simulation::{Fabric, Rack, Rates, simulate};
use iswitch_coflow::trace::JobFile;
use iswitch_coflow::workload::Job;
use iswitch_learn::algorithms::streams::{Purpose, stream};
use serde_json::{Value, json};

const PORTS: usize = 8;
const CAPACITY: f64 = 125e6;

fn agent(policy: PolicySpec, fabric: &Fabric) -> Agent {
    let capacity = fabric.capacity;
    Agent::new(policy.to_string(), Box::new(move |_| Ok(policy.build(capacity))), fabric.clone()).unwrap()
}

fn ask(agent: &mut Agent, request: &Value) -> Value {
    serde_json::from_str(&agent.answer(&request.to_string())).unwrap()
}

fn error(agent: &mut Agent, request: &Value) -> String {
    let answer = ask(agent, request);
    answer["error"].as_str().unwrap_or_else(|| panic!("{request}: {answer}")).to_owned()
}

fn jobs(seed: u64, count: usize, interarrival: f64) -> Vec<Job> {
    let mut rng = stream(seed, Purpose::Arrivals, 0);
    let trace = synthetic_trace(PORTS, 60, 1.0, &mut rng).unwrap();
    let coflows = trace.arrivals.into_iter().map(|arrival| arrival.coflow).collect();
    let shapes = (1..7).map(|nodes| synthetic_shape(nodes, 2, &mut rng)).collect();
    JobSource::new(shapes, coflows).unwrap().draw(count, interarrival, &mut rng)
}

/// Returns the coflows of a job in the form that a request requires.
fn coflows(job: &Job) -> Value {
    let file = JobFile { ports: PORTS, jobs: vec![job.clone()] };
    let content: Value = serde_json::from_str(&file.to_text()).unwrap();
    content["jobs"][0]["coflows"].clone()
}

/// Cluster that sends at exactly the rates that the agent returns.
struct Cluster {
    agent: Agent,
    time: f64,
    /// For each coflow that is ready and not fully sent, the remaining bytes of each of its flows and the flow's rate,
    /// in bits per second.
    sent: BTreeMap<(String, usize), Vec<(f64, f64)>>,
    ready: BTreeMap<(String, usize), f64>,
    /// Completion time of each coflow, in seconds from the time at which it became ready.
    times: BTreeMap<(String, usize), f64>,
}

impl Cluster {
    fn new(agent: Agent) -> Self {
        let (sent, ready, times) = Default::default();
        Self { agent, time: 0.0, sent, ready, times }
    }

    fn ask(&mut self, request: &Value, jobs: &[Job]) -> Value {
        let mut request = request.clone();
        request["time_s"] = json!(self.time);
        let answer = ask(&mut self.agent, &request);
        for name in answer["ready"].as_array().unwrap_or_else(|| panic!("{answer}")) {
            let (job, coflow) = (name["job"].as_str().unwrap(), name["coflow"].as_u64().unwrap() as usize);
            let flows = jobs[job.parse::<usize>().unwrap()].coflows()[coflow].flows();
            let key = (job.to_owned(), coflow);
            self.sent.insert(key.clone(), flows.iter().map(|flow| (flow.size, 0.0)).collect());
            self.ready.insert(key, self.time);
        }
        answer
    }

    /// Sends for a number of seconds, and reports the progress.
    fn send(&mut self, seconds: f64, jobs: &[Job]) {
        self.time += seconds;
        let mut progress = Vec::new();
        let mut complete = Vec::new();
        for (key, flows) in &mut self.sent {
            for (left, rate) in flows.iter_mut() {
                // The tolerance is that of the simulator, in which flows that end almost at the same time end in one
                // event.
                let sent = *rate / 8.0 * seconds;
                *left = if *left <= sent * (1.0 + 1e-9) { 0.0 } else { *left - sent };
            }
            let left: Vec<f64> = flows.iter().map(|(left, _)| *left).collect();
            if left.iter().all(|left| *left == 0.0) {
                complete.push(key.clone());
            }
            progress.push(json!({"job": key.0, "coflow": key.1, "bytes_left": left}));
        }
        for key in complete {
            self.sent.remove(&key);
            self.times.insert(key.clone(), self.time - self.ready[&key]);
        }
        self.ask(&json!({ "progress": progress }), jobs);
    }

    /// Asks for the rates. Returns the number of seconds for which they are valid.
    fn rates(&mut self, jobs: &[Job]) -> f64 {
        let answer = self.ask(&json!({"rates": true}), jobs);
        let order = answer["order"].as_array().unwrap();
        assert_eq!(order.len(), self.sent.len());
        for rated in order {
            let key = (rated["job"].as_str().unwrap().to_owned(), rated["coflow"].as_u64().unwrap() as usize);
            let rates = rated["rates_bps"].as_array().unwrap().iter().map(|rate| rate.as_f64().unwrap());
            let flows = self.sent.get_mut(&key).unwrap();
            assert_eq!(flows.len(), rated["rates_bps"].as_array().unwrap().len());
            flows.iter_mut().zip(rates).for_each(|((_, old), rate)| *old = rate);
        }
        answer["valid_s"].as_f64().unwrap_or(f64::INFINITY)
    }
}

/// Runs jobs through an agent, and returns the completion time of each coflow in the order of a simulation.
fn replay(agent: Agent, jobs: &[Job]) -> Vec<f64> {
    let mut cluster = Cluster::new(agent);
    let mut arrived = 0;
    while arrived < jobs.len() || !cluster.sent.is_empty() {
        while arrived < jobs.len() && jobs[arrived].arrival <= cluster.time {
            let request = json!({"job": {"id": arrived.to_string(), "coflows": coflows(&jobs[arrived])}});
            cluster.ask(&request, jobs);
            arrived += 1;
        }
        let valid = cluster.rates(jobs);
        let next = jobs.get(arrived).map_or(f64::INFINITY, |job| job.arrival - cluster.time);
        cluster.send(valid.min(next), jobs);
    }
    let all = jobs.iter().enumerate();
    let keys = all.flat_map(|(job, it)| (0..it.coflows().len()).map(move |coflow| (job.to_string(), coflow)));
    keys.map(|key| cluster.times[&key]).collect()
}

fn check_replay(name: &str, make: impl Fn() -> Box<dyn Policy> + 'static, fabric: &Fabric, jobs: &[Job]) {
    let want = simulate(jobs, fabric, make().as_mut(), &mut |_, _| {}).unwrap().coflow_times;
    let agent = Agent::new(name.to_owned(), Box::new(move |_| Ok(make())), fabric.clone()).unwrap();
    let got = replay(agent, jobs);
    let near = |(got, want): (&f64, &f64)| (got - want).abs() <= 1e-6 * want.max(1e-3);
    let other = got.iter().zip(&want).position(|pair| !near(pair));
    assert!(other.is_none(), "{name}: coflow {other:?} of {got:?}, expected {want:?}");
}

/// Returns a fabric of unequal ports, and of racks with oversubscribed links.
fn racks(rates: Rates) -> Fabric {
    let rack = |name: &str, ports: std::ops::Range<usize>, gbit| Rack {
        name: name.to_owned(),
        ports: ports.collect(),
        uplink_gbit: gbit,
        downlink_gbit: gbit + 0.25,
    };
    let gbit: Vec<f64> = (0..PORTS).map(|port| if port == 2 { 2.5 } else { 1.0 }).collect();
    Fabric::of_rates(&gbit, &[1.0; PORTS], &[rack("a", 0..3, 1.5), rack("b", 3..7, 1.25)], rates).unwrap()
}

#[test]
fn a_cluster_that_follows_the_agent_has_the_completion_times_of_the_simulator() {
    for rates in [Rates::Backfill, Rates::Blocking] {
        for fabric in [Fabric { rates, ..Fabric::new(PORTS, CAPACITY) }, racks(rates)] {
            for policy in PolicySpec::all() {
                let capacity = fabric.capacity;
                let make = move || policy.build(capacity);
                check_replay(&policy.to_string(), make, &fabric, &jobs(3, 12, 10.0));
            }
        }
    }
}

#[test]
fn a_policy_with_a_network_and_a_search_plans_as_in_the_simulator() {
    let search = || Lookahead::new(3, stream(1, Purpose::Actions, 1));
    let make = move || Box::new(DeepWeave::job_sebf().with_lookahead(search())) as Box<dyn Policy>;
    check_replay("lookahead", make, &Fabric::new(PORTS, CAPACITY), &jobs(4, 10, 10.0));
}

#[test]
fn the_shortest_coflow_comes_first_and_others_get_the_rest() {
    let mut agent = agent(PolicySpec::Sebf, &Fabric::new(3, CAPACITY));
    let long = json!({"coflow": {"id": "long", "flows": [[0, 0, 4e9], [1, 1, 1e9]]}});
    assert_eq!(
        ask(&mut agent, &long),
        json!({"time_s": 0.0, "incomplete": 1, "ready": [{"job": "long", "coflow": 0}]})
    );
    let short =
        json!({"coflow": {"id": "short", "flows": [[0, 2, 1.25e8]]}, "rates": true, "id": 7, "time_s": 2});
    let answer = ask(&mut agent, &short);
    assert_eq!(answer["order"][0], json!({"job": "short", "coflow": 0, "rates_bps": [1e9]}));
    assert_eq!(answer["order"][1], json!({"job": "long", "coflow": 0, "rates_bps": [0.0, 1e9]}));
    assert_eq!((&answer["valid_s"], &answer["id"]), (&json!(1.0), &json!(7)));
    let ended = json!({"finished": [{"job": "short"}], "rates": true, "time_s": 3});
    let answer = ask(&mut agent, &ended);
    // The first flow needs 32 s. The second one, alone at its ports, is backfilled.
    assert_eq!(answer["order"], json!([{"job": "long", "coflow": 0, "rates_bps": [1e9, 1e9]}]));
    let removed = ask(&mut agent, &json!({"remove": "long", "rates": true}));
    assert_eq!(removed, json!({"time_s": 3.0, "incomplete": 0, "ready": [], "order": []}));
}

#[test]
fn followers_become_ready_when_their_parents_have_ended() {
    let mut agent = agent(PolicySpec::JobSebf, &Fabric::new(4, CAPACITY));
    let job = json!({"job": {"id": "a", "coflows": [
        {"flows": [[0, 1, 1e9], [0, 2, 1e9]]},
        {"collective": {"kind": "ring-all-reduce", "hosts": [0, 1, 2], "bytes": 3e8}, "starts_after": [0]},
    ]}});
    assert_eq!(ask(&mut agent, &job)["ready"], json!([{"job": "a", "coflow": 0}]));
    let early = json!({"progress": [{"job": "a", "coflow": 1, "bytes_left": [0, 0, 0]}]});
    let expected = "progress[0].coflow is 1, expected a coflow that is ready and incomplete; coflow 1 of job a waits \
                    for other coflows";
    assert_eq!(error(&mut agent, &early), expected);
    let first = json!({"finished": [{"job": "a", "coflow": 0, "flows": [1]}]});
    assert_eq!(ask(&mut agent, &first)["ready"], json!([]));
    let rest = json!({"finished": [{"job": "a", "coflow": 0, "flows": [0]}], "rates": true});
    let answer = ask(&mut agent, &rest);
    assert_eq!(answer["ready"], json!([{"job": "a", "coflow": 1}]));
    assert_eq!(answer["order"], json!([{"job": "a", "coflow": 1, "rates_bps": [1e9, 1e9, 1e9]}]));
}

/// Returns an agent with a job of two coflows, of which the second one is complete. The agent's time is 5 s.
fn half_done() -> Agent {
    let mut agent = agent(PolicySpec::Fifo, &Fabric::new(2, CAPACITY));
    let coflows = json!([{"flows": [[0, 1, 1e6]]}, {"flows": [[1, 0, 1e6]]}]);
    ask(&mut agent, &json!({"job": {"id": "a", "coflows": coflows}, "time_s": 5}));
    ask(&mut agent, &json!({"finished": [{"job": "a", "coflow": 1}]}));
    agent
}

/// Checks that each request is refused with the error message that is paired with it, and that it has no effect.
fn check_refusals<'a>(cases: impl IntoIterator<Item = (Value, &'a str)>) {
    let mut agent = half_done();
    let rates = json!({"rates": true});
    let before = ask(&mut agent, &rates);
    for (mut request, want) in cases {
        if request.get("time_s").is_none() {
            request["time_s"] = json!(9);
        }
        assert_eq!(error(&mut agent, &request), want);
        assert_eq!(ask(&mut agent, &rates), before, "{want}");
    }
}

#[test]
fn invalid_jobs_are_refused_by_field() {
    let single = |id: &str, flows: Value| json!({"coflow": {"id": id, "flows": flows}});
    let job = |coflows: Value| json!({"job": {"id": "b", "coflows": coflows}});
    let hosts: Vec<usize> = (0..2000).collect();
    let huge = json!([{"collective": {"kind": "all-to-all", "hosts": hosts, "bytes": 1}}]);
    let long = "x".repeat(ID_LEN_MAX_BYTES + 1);
    check_refusals([
        (single("a", json!([[0, 1, 1]])), "id of the job is a, expected an id that no incomplete job has"),
        (single("", json!([[0, 1, 1]])), "length of the job's id is 0, expected 1 to 128 bytes"),
        (single(&long, json!([[0, 1, 1]])), "length of the job's id is 129, expected 1 to 128 bytes"),
        (single("b", json!([[0, 2, 1]])), "coflows[0] of job b: egress port is 2, expected 0 to 1"),
        (
            single("b", json!([[0, 1, 0]])),
            "coflows[0] of job b: size of a flow is 0, expected 1e-6 to 1e18 bytes",
        ),
        (
            single("b", json!([])),
            "coflows[0] of job b: number of flows of a coflow is 0, expected at least 1",
        ),
        (job(json!([{}])), "coflows[0] of job b: expected exactly one of flows and collective"),
        (
            job(json!([])),
            "number of coflows of a job is 0, expected at least 1, and one list of dependencies for each coflow",
        ),
        (job(json!([{"flows": [[0, 1, 1]], "starts_after": [0]}])), "coflows wait for each other: 0 -> 0"),
    ]);
    let flows =
        format!("number of flows of incomplete jobs with this job is 3998002, expected at most {FLOWS_MAX}");
    let count = COFLOWS_MAX + 2;
    let coflows =
        format!("number of incomplete coflows with this job is {count}, expected at most {COFLOWS_MAX}");
    let many = vec![json!({"flows": [[0, 1, 1]]}); COFLOWS_MAX];
    check_refusals([(job(huge), flows.as_str()), (job(json!(many)), coflows.as_str())]);
}

#[test]
fn invalid_reports_are_refused_by_field() {
    let progress = |left: Value| json!({"progress": [{"job": "a", "coflow": 0, "bytes_left": left}]});
    let finished = |entry: Value| json!({"finished": [{"job": "a", "coflow": 0}, entry]});
    let range = "expected 0, or 1e-6 to 1000000 bytes, the size of the flow";
    let (above, below) = (
        format!("progress[0].bytes_left[0] is 2000000, {range}"),
        format!("progress[0].bytes_left[0] is -1, {range}"),
    );
    check_refusals([
        (progress(json!([2e6])), above.as_str()),
        (progress(json!([-1])), below.as_str()),
        (
            progress(json!([1, 1])),
            "length of progress[0].bytes_left is 2, expected 1, one for each flow of the coflow",
        ),
        (finished(json!({"job": "x"})), "finished[1].job is x, expected the id of an incomplete job"),
        (finished(json!({"job": "a"})), "finished[1].coflow is missing, expected 0 to 1 for job a"),
        (finished(json!({"job": "a", "coflow": 2})), "finished[1].coflow is 2, expected 0 to 1 for job a"),
        (
            finished(json!({"job": "a", "coflow": 1})),
            "finished[1].coflow is 1, expected a coflow that is ready and incomplete; coflow 1 of job a is complete",
        ),
        (finished(json!({"job": "a", "coflow": 0, "flows": [1]})), "finished[1].flows is 1, expected 0 to 0"),
        (json!({"remove": "x"}), "remove is x, expected the id of an incomplete job"),
    ]);
}

#[test]
fn invalid_requests_are_refused_by_field() {
    check_refusals([
        (
            json!({"rates": true, "time_s": 4}),
            "time_s is 4, expected a number of seconds between 5, the time of the previous request, and 1e12",
        ),
        (
            json!({"remove": "a", "finished": []}),
            "remove is present, expected no other change in addition to finished",
        ),
        (json!({"describe": true, "rates": true}), "describe is true, expected no other request in addition"),
    ]);
    let mut agent = half_done();
    for (text, start) in
        [("", "request is EOF"), ("{}", "request is {}"), (r#"{"rate": true}"#, "request is unknown field")]
    {
        let answer: Value = serde_json::from_str(&agent.answer(text)).unwrap();
        assert!(answer["error"].as_str().unwrap().starts_with(start), "{answer}");
    }
    let described = json!({
        "policy": "fifo", "ports": 2, "rates": "backfill", "incomplete": 1, "coflows_max": COFLOWS_MAX,
        "flows_max": FLOWS_MAX,
    });
    assert_eq!(ask(&mut agent, &json!({"describe": true})), described);
}

#[test]
fn complete_jobs_are_forgotten_when_the_limits_are_reached() {
    let hosts: Vec<usize> = (0..512).collect();
    let mut agent = agent(PolicySpec::ShafieeGhaderi, &Fabric::new(512, CAPACITY));
    ask(&mut agent, &json!({"coflow": {"id": "kept", "flows": [[0, 1, 1e9]]}}));
    // Five of these jobs together have more flows than the limit allows.
    for number in 0..6 {
        let collective = json!({"kind": "all-to-all", "hosts": hosts, "bytes": 1e6});
        let job = json!({"job": {"id": number.to_string(), "coflows": [{"collective": collective}]}});
        assert_eq!(ask(&mut agent, &job)["incomplete"], 2, "job {number}");
        assert_eq!(ask(&mut agent, &json!({"finished": [{"job": number.to_string()}]}))["incomplete"], 1);
    }
    let answer = ask(&mut agent, &json!({"rates": true}));
    assert_eq!(answer["order"], json!([{"job": "kept", "coflow": 0, "rates_bps": [1e9]}]));
}
