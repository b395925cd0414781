//! `iswitch coflow` on the command line.

use std::path::Path;

use iswitch_harness::process::run;
use iswitch_harness::scratch;
use serde_json::Value;

use super::studies::{COFLOW, Files, near, number, rows, text};

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

#[test]
fn errors_name_the_invalid_input() {
    let files = Files::new();
    let file = |name: &str, text: &str| files.write(name, text);
    let port = file("port", "4 2\n1 0 1 0 1 1:1\n2 5 1 0 1 4:1\n");
    let short = file("short", "4 2\n1 0 1 0 1 1:1\n");
    let none = file("none", "4 0\n");
    let trace = file("trace", "4 1\n1 0 1 0 1 1:1\n");
    let cycle = file("cycle", "2 1 0 1\n3 3 0 1 1 2 2 1\n");
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
        (vec!["compare", "sebf", "sebf"], "two policies are called sebf"),
        (vec!["compare", "sebf", "--baseline", "fair"], "baseline is fair, expected one of"),
        (vec!["evaluate", "sebf", "--capacity", "0"], "capacity is 0, expected 0.001 to 1000000 Gbit/s"),
        (vec!["evaluate", "sebf", "--deadlines", "-1"], "deadlines is -1, expected a number of at least 0"),
        (
            vec!["evaluate", "sebf", "--interarrival", "-1"],
            "interarrival is -1, expected a number of seconds",
        ),
        (vec!["evaluate", "sebf", "--ports", "0"], "invalid value '0' for '--ports <M>'"),
        (vec!["evaluate", "sebf", "--trace", &short, "--ports", "4"], "cannot be used with"),
        (
            vec!["evaluate", "sebf", "--trace", &trace, "--draws", "2"],
            "draws is 2, expected 1, because a trace or a file of jobs has the same jobs in each draw",
        ),
        (
            vec!["evaluate", "sebf", "--trace", &trace, "--interarrival", "5"],
            "interarrival is 5, expected 0, because the trace contains the arrival times",
        ),
    ]);
}
