//! `iswitch coflow` on the command line.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use iswitch_harness::process::run;
use iswitch_harness::scratch;
use serde_json::{Value, json};

use super::studies::{Agent, COFLOW, Files, near, number, rows, text};

const POLICIES: [&str; 3] = ["sebf", "fair", "shafiee-ghaderi"];
const DRAWS: usize = 3;
const JOBS: usize = 12;

#[test]
fn table_csv_json_and_figures_agree() {
    let directory = scratch::directory();
    let [csv, per_job, per_coflow, plots] =
        ["table.csv", "jobs.csv", "coflows.csv", "plots"].map(|name| directory.path().join(name));
    let (draws, jobs) = (DRAWS.to_string(), JOBS.to_string());
    let workload = ["--ports", "6", "--jobs", &jobs, "--draws", &draws, "--deadlines", "3"];
    let arguments = [&["compare"], &POLICIES[..], &workload].concat();
    let mut command = COFLOW.command(&arguments);
    command.arg("--quiet").arg("--csv").arg(&csv).arg("--per-job").arg(&per_job);
    let printed = run(command.arg("--per-coflow").arg(&per_coflow).arg("--plots").arg(&plots));
    assert_eq!(printed.lines().count(), 3 + POLICIES.len(), "{printed}");

    let results = COFLOW.json(&arguments);
    assert_eq!(results["baseline"], "sebf");
    let (table, by_job) = (rows(&csv), rows(&per_job));
    assert_eq!((table.len(), by_job.len()), (POLICIES.len(), POLICIES.len() * DRAWS * JOBS));
    let mean_jct = |policy: &str, draw: usize| {
        let own = by_job.iter().filter(|row| row["policy"] == policy && row["draw"] == draw.to_string());
        own.map(|row| number(row, "jct_s")).sum::<f64>() / JOBS as f64
    };
    for (at, policy) in POLICIES.into_iter().enumerate() {
        let result = &results["results"][at];
        assert_eq!((&result["policy"], &table[at]["policy"]), (&policy.into(), &policy.to_owned()));
        for (column, value) in [
            ("cct_s", &result["cct"]["mean"]["mean"]),
            ("cct_p95_s", &result["cct"]["p95"]["mean"]),
            ("jct_s", &result["jct"]["mean"]["mean"]),
            ("jct_ci95_s", &result["jct"]["mean"]["ci95"]),
            ("makespan_s", &result["makespan"]["mean"]),
            ("deadlines_met", &result["deadlines_met"]["mean"]),
            ("jct_ratio", &result["jct_ratio"]["mean"]),
        ] {
            assert!(
                near(number(&table[at], column), value.as_f64().unwrap()),
                "{policy}: {column}, {result}"
            );
        }
        let jct = (1..=DRAWS).map(|draw| mean_jct(policy, draw)).sum::<f64>() / DRAWS as f64;
        assert!(near(number(&table[at], "jct_s"), jct), "{policy}");
        let ratio = (1..=DRAWS).map(|draw| mean_jct(policy, draw) / mean_jct("sebf", draw)).sum::<f64>();
        assert!(near(number(&table[at], "jct_ratio"), ratio / DRAWS as f64), "{policy}");
        assert!(printed.contains(&format!("{jct:.2} +/- ")), "{printed}");
        let met =
            by_job.iter().filter(|row| row["policy"] == policy && row["deadline_met"] == "true").count();
        assert!(near(number(&table[at], "deadlines_met"), met as f64 / (DRAWS * JOBS) as f64), "{policy}");
    }
    let coflows: f64 = by_job.iter().map(|row| number(row, "coflows")).sum();
    assert_eq!(rows(&per_coflow).len() as f64, coflows);
    assert!(by_job.iter().all(|row| number(row, "jct_s") >= number(row, "alone_s") * (1.0 - 1e-6)));
    check_figures(&plots);
}

fn check_figures(plots: &Path) {
    for name in ["cdf-cct.svg", "cdf-jct.svg"] {
        let svg = text(&plots.join(name));
        assert!(POLICIES.iter().all(|policy| svg.contains(policy)), "{name}");
    }
    for policy in POLICIES {
        let svg = text(&plots.join(format!("gantt-{policy}.svg")));
        let named = |port: &str| svg.contains(&format!("\n{port}\n"));
        assert!(["in 0", "in 5", "out 5", "job 11"].into_iter().all(named) && !named("in 6"), "{policy}");
    }
}

#[test]
fn the_busiest_ports_are_drawn() {
    let directory = scratch::directory();
    let trace = directory.path().join("trace");
    std::fs::write(&trace, "4 2\n1 0 1 0 1 1:10\n2 0 1 2 1 3:20\n").unwrap();
    let mut command = COFLOW.command(&["evaluate", "fair", "--gantt-ports", "1", "--quiet", "--trace"]);
    run(command.arg(&trace).arg("--plots").arg(directory.path()));
    let svg = text(&directory.path().join("gantt-fair.svg"));
    assert!(svg.contains("the 1 busiest of 4 ports a side"), "{svg}");
    assert!(svg.contains("\nin 2\n") && svg.contains("\nout 3\n") && !svg.contains("\nin 0\n"), "{svg}");
}

#[test]
fn each_coflow_of_a_trace_becomes_a_job() {
    let directory = scratch::directory();
    let file = directory.path().join("trace");
    // At 1 Gbit/s, the transfers take 1 and 4 s. The second job arrives half a second after the first, so they take 1
    // and 4.5 s.
    std::fs::write(&file, "2 2\n1 0 1 0 1 1:125\n2 500 1 0 1 1:500\n").unwrap();
    let trace = file.to_str().unwrap();
    let evaluate = |more: &[&str]| COFLOW.json(&[&["evaluate", "sebf", "--trace", trace], more].concat());
    let mean = |result: &Value| result["cct"]["mean"]["mean"].as_f64().unwrap();
    let result = evaluate(&[]);
    assert!(near(mean(&result), 2.75), "{result}");
    assert_eq!(
        (&result["draws"], &result["jobs"], &result["jct_ratio"]),
        (&1.into(), &2.into(), &Value::Null)
    );
    assert!(near(mean(&evaluate(&["--capacity", "10"])), 0.25));
    assert!(near(mean(&evaluate(&["--interarrival", "0"])), 3.0));
    assert_eq!(evaluate(&["--jobs", "7", "--draws", "2"])["jobs"], 7);
}

#[test]
fn both_formats_of_shapes_give_the_same_jobs() {
    let files = Files::new();
    let evaluate = |name: &str, text: &str| {
        let path = files.write(name, text);
        COFLOW.json(&["evaluate", "job-sebf", "--draws", "2", "--jobs", "9", "--dags", &path])
    };
    let shapes = evaluate("shapes.csv", "3 2 0 2 1 2\n2 0\n");
    let tasks: String = ["a,M1", "a,M2", "a,J3_1_2", "b,task_x", "b,task_y"]
        .map(|it| format!("0,{it},5,100,0.3,1\n"))
        .concat();
    assert_eq!(evaluate("tasks.txt", &tasks), shapes);
}

#[test]
fn searched_priorities_beat_the_initial_priorities() {
    let results = COFLOW.json(&[
        "compare",
        "local-search:0",
        "local-search:300",
        "--baseline",
        "local-search:0",
        "--jobs",
        "10",
        "--ports",
        "5",
        "--draws",
        "2",
        "--interarrival",
        "0",
    ]);
    let [begun, found] = [0, 1].map(|at| results["results"][at]["jct_ratio"]["mean"].as_f64().unwrap());
    assert!(begun == 1.0 && found < 1.0, "{results}");
    let mean = |of: &str| results["results"][1][of]["mean"].as_f64().unwrap();
    let jct = results["results"][1]["jct"]["mean"]["mean"].as_f64().unwrap();
    assert!(jct >= mean("bound_isolated") && jct >= mean("bound_port"), "{results}");
}

/// Two racks of two ports. The link of each rack has half the total rate of the rack's ports.
const RACKS: &str =
    "ports = 4\n[[rack]]\nports = [0, 1]\noversubscription = 2\n[[rack]]\nports = [2, 3]\nuplink_gbit = 1\n";

#[test]
fn a_scheduler_gets_the_rates_of_its_coflows() {
    let files = Files::new();
    let fabric = files.write("fabric.toml", RACKS);
    let mut agent = Agent::serve(COFLOW, &["sebf", "--fabric", &fabric]);
    let first = agent.ask(r#"{"coflow": {"id": "a", "flows": [[0, 2, 2.5e8], [0, 1, 1.25e8]]}}"#);
    assert_eq!(first["ready"], json!([{"job": "a", "coflow": 0}]));
    let answer = agent.ask(r#"{"coflow": {"id": "b", "flows": [[1, 3, 1.25e8]]}, "rates": true}"#);
    // The second coflow, which needs 1 s, occupies the link of the rack. A flow within the rack is not affected.
    assert_eq!(answer["order"][0], json!({"job": "b", "coflow": 0, "rates_bps": [1e9]}));
    assert_eq!(answer["order"][1], json!({"job": "a", "coflow": 0, "rates_bps": [0.0, 1e9]}));
    agent.check_robustness(COFLOW, "sebf");
    agent.stop();
}

#[test]
fn requests_on_standard_input_are_answered_on_standard_output() {
    let mut command = COFLOW.command(&["serve", "lookahead:2", "--ports", "2", "--capacity", "10"]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let mut input = process.stdin.take().unwrap();
    let coflow = r#"{"coflow": {"id": "a", "flows": [[0, 1, 5e9]]}}"#;
    let rates = r#"{"rates": true}"#;
    write!(input, "{coflow}\nnonsense\n{rates}").unwrap();
    drop(input);
    let output = process.wait_with_output().unwrap();
    let answers = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> = answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(output.status.success() && answers.len() == 3, "{answers:?}");
    assert!(answers[1]["error"].as_str().unwrap().starts_with("request is"), "{answers:?}");
    assert_eq!(answers[2]["order"], json!([{"job": "a", "coflow": 0, "rates_bps": [1e10]}]));
    assert_eq!(answers[2]["valid_s"], 4.0);
    assert!(String::from_utf8_lossy(&output.stderr).contains("lookahead:2 for 2 ports of 10 Gbit/s"));
}

#[test]
fn racks_slow_the_jobs_of_a_trace_down() {
    let files = Files::new();
    let (fabric, trace) =
        (files.write("fabric.toml", RACKS), files.write("trace", "4 1\n1 0 2 0 1 2 2:125 3:125\n"));
    let plain = files.write("plain.toml", "ports = 4\ngbit = 1\n");
    let evaluate = |more: &[&str]| COFLOW.json(&[&["evaluate", "sebf", "--trace", &trace], more].concat());
    let mean = |result: &Value| result["cct"]["mean"]["mean"].as_f64().unwrap();
    // Each of the four flows takes 0.5 s at the full rate of a port. All of them leave the rack, so its link needs 2 s,
    // and each port needs 1 s.
    let result = evaluate(&["--fabric", &fabric]);
    assert!(
        near(mean(&result), 2.0) && near(result["bound_port"]["mean"].as_f64().unwrap(), 2.0),
        "{result}"
    );
    // With `--capacity 2`, the ports and the link of the first rack are twice as fast, but the file states the rate of
    // the other link.
    assert!(near(mean(&evaluate(&["--fabric", &fabric, "--capacity", "2"])), 2.0));
    let equal = evaluate(&["--fabric", &plain]);
    assert!(near(mean(&equal), 1.0), "{equal}");
    assert_eq!(equal, evaluate(&[]));
}

#[test]
fn errors_name_the_invalid_input() {
    let files = Files::new();
    let file = |name: &str, text: &str| files.write(name, text);
    let port = file("port", "4 2\n1 0 1 0 1 1:1\n2 5 1 0 1 4:1\n");
    let short = file("short", "4 2\n1 0 1 0 1 1:1\n");
    let none = file("none", "4 0\n");
    let trace = file("trace", "4 1\n1 0 1 0 1 1:1\n");
    let cycle = file("cycle", "2 1 0 1\n3 3 0 1 1 2 2 1\n");
    let rack = file("rack.toml", "ports = 3\n[[rack]]\nname = \"a\"\nports = [0, 3]\nuplink_gbit = 1\n");
    let eight = file("eight.toml", "ports = 8\n");
    let tasks = file("tasks", "0,a,M1,1,1,1,1\n0,a,R2_3,1,1,1,1\n0,a,R3_2,1,1,1,1\n");
    COFLOW.check_refusals([
        (vec!["evaluate", "sebf", "--trace", &port], "port, line 3: egress port is 4, expected 0 to 3"),
        (vec!["evaluate", "sebf", "--trace", &short], "line 1: number of coflows is 2, but 1 follow"),
        (
            vec!["evaluate", "sebf", "--trace", &none],
            "number of coflows in the trace is 0, expected at least 1",
        ),
        (vec!["evaluate", "sebf", "--trace", "/nowhere"], "/nowhere: No such file"),
        (vec!["compare", "--dags", &cycle], "cycle, line 2: coflows wait for each other: 2 -> 1 -> 2"),
        (
            vec!["compare", "--dags", &tasks],
            "tasks, line 3: dependencies of job a form a cycle: R3_2 -> R2_3 -> R3_2",
        ),
        (vec!["evaluate", "best"], "policy is best, expected fair, fifo, fifo-job, lcf, sebf"),
        (vec!["evaluate", "local-search"], "that all arrive at time 0; add --interarrival 0"),
        (
            vec!["evaluate", "local-search:many"],
            "number of evaluations of local-search is \"many\", expected a whole number",
        ),
        (vec!["compare", "sebf", "--fabric", &rack], "rack.toml: port of rack a is 3, expected 0 to 2"),
        (
            vec!["evaluate", "sebf", "--fabric", &eight, "--trace", &trace],
            "eight.toml: ports is 8, expected 4, as in the jobs",
        ),
        (vec!["evaluate", "sebf", "--fabric", &eight, "--ports", "8"], "cannot be used with"),
        (vec!["evaluate", "sebf", "--fabric", "/nowhere"], "/nowhere: No such file"),
        (vec!["serve", "local-search"], "expected a policy that does not need all jobs in advance"),
        (vec!["serve", "best"], "policy is best, expected fair, fifo, fifo-job, lcf, sebf"),
        (vec!["serve", "sebf", "--socket", "/nowhere/s"], "--socket /nowhere/s"),
        (vec!["compare", "sebf", "sebf"], "two policies are named sebf"),
        (vec!["compare", "sebf", "--baseline", "fair"], "baseline is fair, expected one of"),
        (vec!["evaluate", "sebf", "--capacity", "0"], "capacity is 0, expected 0.001 to 1000000 Gbit/s"),
        (vec!["evaluate", "sebf", "--deadlines", "-1"], "--deadlines is -1, expected a number >= 0"),
        (
            vec!["evaluate", "sebf", "--interarrival", "-1"],
            "--interarrival is -1, expected a number of seconds",
        ),
        (vec!["evaluate", "sebf", "--ports", "0"], "invalid value '0' for '--ports <M>'"),
        (vec!["evaluate", "sebf", "--trace", &short, "--ports", "4"], "cannot be used with"),
        (
            vec!["evaluate", "sebf", "--trace", &trace, "--draws", "2"],
            "--draws is 2, expected 1, because a trace or a job file has the same jobs in each draw",
        ),
        (
            vec!["evaluate", "sebf", "--trace", &trace, "--interarrival", "5"],
            "--interarrival is 5, expected 0, because the trace contains the arrival times",
        ),
    ]);
}

#[test]
fn a_client_above_the_limit_of_the_service_is_refused() {
    Agent::check_limit(COFLOW, &["sebf"]);
}
