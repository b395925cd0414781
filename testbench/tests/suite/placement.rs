//! Tests of `iswitch place` on the command line.

use iswitch_harness::process::run;
use iswitch_harness::requirements::programs;
use iswitch_harness::scratch;
use serde_json::Value;

use super::studies::{Agent, Files, PLACE, Row, near, number, rows, text};

const DAY: f64 = 86_400.0;

const POLICIES: [&str; 3] = ["random", "reliable", "hindsight:3"];
const DRAWS: usize = 4;
const JOBS: usize = 8;
const GPUS: f64 = 16.0;

#[test]
fn table_csv_json_and_figures_agree() {
    let directory = scratch::directory();
    let [csv, per_job, plots] = ["table.csv", "jobs.csv", "plots"].map(|name| directory.path().join(name));
    let (draws, jobs) = (DRAWS.to_string(), JOBS.to_string());
    let workload = ["--gpus", "16", "--batch", &jobs, "--draws", &draws];
    let sweep = ["--rate-factors", "1,100", "--checkpoints", "none,3600,young-daly"];
    let arguments = [&["compare"], &POLICIES[..], &workload, &sweep].concat();
    let mut command = PLACE.command(&arguments);
    command.arg("--quiet").arg("--csv").arg(&csv).arg("--per-job").arg(&per_job);
    let printed = run(command.arg("--plots").arg(&plots));
    let conditions = 6;
    assert_eq!(printed.matches("\nreliable ").count(), conditions, "{printed}");

    let results = PLACE.json(&arguments);
    assert_eq!(results["baseline"], "random");
    let (table, by_job) = (rows(&csv), rows(&per_job));
    assert_eq!(table.len(), conditions * POLICIES.len());
    assert_eq!(by_job.len(), conditions * POLICIES.len() * DRAWS * JOBS);
    for (row, result) in table.iter().zip(results["results"].as_array().unwrap()) {
        check_row(row, result);
        let own = |job: &&Row| ["policy", "rate_factor", "checkpoint"].iter().all(|it| job[*it] == row[*it]);
        let jct: f64 = by_job.iter().filter(own).map(|job| number(job, "jct_s")).sum();
        assert!(near(number(row, "jct_s"), jct / (DRAWS * JOBS) as f64), "{row:?}");
        if !row["policy"].starts_with("hindsight") {
            let hits: f64 = by_job.iter().filter(own).map(|job| number(job, "hits")).sum();
            assert!(near(number(row, "hits"), hits / DRAWS as f64), "{row:?}");
        }
        let days = number(row, "makespan_s") / DAY;
        assert!(printed.contains(&format!("{days:.2} +/- ")), "{days}: {printed}");
    }
    let figures = ["rate-none", "rate-3600", "rate-young-daly", "checkpoint-x1", "checkpoint-x100"];
    for name in figures {
        let svg = text(&plots.join(format!("makespan-{name}.svg")));
        assert!(POLICIES.iter().all(|policy| svg.contains(policy)), "{name}");
    }
    let svg = text(&plots.join("makespan-checkpoint-x1.svg"));
    assert!(["none", "1 h", "young-daly"].iter().all(|name| svg.contains(&format!("\n{name}\n"))), "{svg}");
}

fn check_row(row: &Row, result: &Value) {
    assert_eq!(result["policy"], row["policy"]);
    assert_eq!(result["checkpoint"], row["checkpoint"]);
    let hours = &result["gpu_hours"];
    for (column, value) in [
        ("rate_factor", &result["rate_factor"]),
        ("makespan_s", &result["makespan"]["mean"]),
        ("makespan_ci95_s", &result["makespan"]["ci95"]),
        ("makespan_ratio", &result["makespan_ratio"]["mean"]),
        ("jct_s", &result["jct"]["mean"]["mean"]),
        ("jct_p95_s", &result["jct"]["p95"]["mean"]),
        ("jct_ratio", &result["jct_ratio"]["mean"]),
        ("hits", &result["hits"]["mean"]),
        ("lost_gpu_h", &hours["lost"]["mean"]),
        ("utilisation", &result["utilisation"]["mean"]),
    ] {
        assert!(near(number(row, column), value.as_f64().unwrap()), "{column}: {row:?}, {result}");
    }
    let parts = ["useful", "lost", "overhead", "held", "failed", "idle"];
    let all: f64 = parts.iter().map(|part| hours[part]["mean"].as_f64().unwrap()).sum();
    let of_makespan = number(row, "makespan_s") / 3600.0 * GPUS;
    assert!((all / of_makespan - 1.0).abs() < 1e-9, "{all}, {of_makespan}: {row:?}");
}

/// Tests a job of 100 s that occupies two GPUs. GPU 1 fails at 40 s and is repaired 20 s later. The job starts again at
/// 60 s, needs 10 s to restart, and completes at 170 s. With a checkpoint every 30 s, each of which takes 2 s, the job
/// resumes from the checkpoint at 30 s and completes at 60 + 10 + 70 + 2 * 2 = 144 s.
#[test]
fn a_known_failure_has_the_expected_cost() {
    let files = Files::new();
    let jobs = files.write("jobs", "arrival_s,gpus,duration_s\n0,2,100\n");
    let failures = files.write("failures", "gpu,begin_s,end_s\n1,40,60\n");
    let evaluate = |more: &[&str]| {
        let given = ["evaluate", "first-fit", "--gpus", "2", "--jobs", &jobs, "--failures", &failures];
        PLACE.json(&[&given, &["--restart", "10"][..], more].concat())
    };
    let result = evaluate(&[]);
    assert_eq!((&result["draws"], &result["hits"]["mean"]), (&1.into(), &1.0.into()), "{result}");
    let makespan = |result: &Value| result["makespan"]["mean"].as_f64().unwrap();
    assert_eq!(makespan(&result), 170.0);
    let hours = |name: &str| result["gpu_hours"][name]["mean"].as_f64().unwrap() * 3600.0;
    let expected = [("useful", 200.0), ("lost", 80.0), ("overhead", 20.0), ("failed", 20.0), ("idle", 20.0)];
    for (name, seconds) in expected {
        assert!(near(hours(name), seconds), "{name}: {result}");
    }
    assert_eq!(makespan(&evaluate(&["--checkpoint", "30", "--checkpoint-cost", "2"])), 144.0);
    // With twice the failure rate, the failure is at 20 s.
    assert_eq!(makespan(&evaluate(&["--rate-factor", "2"])), 150.0);
}

#[test]
fn waiting_jobs_start_as_the_queue_discipline_requires() {
    let files = Files::new();
    // The second job needs both GPUs. The third and the fourth would fit beside the first, and only the third ends
    // before it.
    let lines = "0,1,100\n1,2,50\n2,1,90\n3,1,500\n";
    let jobs = files.write("jobs", &format!("arrival_s,gpus,duration_s\n{lines}"));
    let none = files.write("none", "gpu,begin_s,end_s\n");
    let per_job = files.0.path().join("per_job");
    let starts = |rule: &str| {
        let mut command =
            PLACE.command(&["evaluate", "first-fit", "--gpus", "2", "--jobs", &jobs, "--quiet"]);
        command.args(["--failures", &none, "--queueing", rule]).arg("--per-job").arg(&per_job);
        run(&mut command);
        rows(&per_job).iter().map(|row| number(row, "started_s")).collect::<Vec<_>>()
    };
    assert_eq!(starts("strict"), [0.0, 100.0, 150.0, 150.0]);
    assert_eq!(starts("easy"), [0.0, 100.0, 2.0, 150.0]);
    assert_eq!(starts("first-fit"), [0.0, 592.0, 2.0, 92.0]);
}

#[test]
fn every_format_of_jobs_is_recognised_by_its_first_line() {
    let files = Files::new();
    let throughputs = r#"{"v100": {"('A', 1)": {"null": 10.0}}}"#;
    let throughputs = files.write("throughputs.json", throughputs);
    let names = "name,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time";
    let pods = format!("{names}\na,1,1000,0,100,0\nb,1,500,0,100,0\n");
    for (name, text, more) in [
        ("own", "arrival_s,gpus,duration_s\n0,1,100\n", vec![]),
        ("philly", "duration_s,gpus\n100,1\n", vec!["--batch", "1"]),
        ("gavel", "A\trun\t-s\t1\t1000\t0.0\t1\n", vec!["--throughputs", &throughputs]),
        ("alibaba", &pods, vec![]),
        ("tiresias", "job_id,num_gpu,submit_time,duration\n0,1,0,100\n", vec![]),
    ] {
        let path = files.write(name, text);
        let given = ["evaluate", "reliable", "--jobs", &path, "--draws", "2"];
        let result = PLACE.json(&[&given[..], &more].concat());
        assert_eq!(result["makespan"]["mean"].as_f64().unwrap(), 100.0, "{name}: {result}");
    }
    let application = files.0.path().join("a");
    std::fs::create_dir(&application).unwrap();
    for (name, text) in [
        ("validation-8.csv", "iteration\n99\n"),
        ("scalability.csv", "num_replicas,local_bsz,step_time,sync_time\n1,8,1,0\n"),
        ("placements.csv", "placement,local_bsz,step_time,sync_time\n"),
    ] {
        std::fs::write(application.join(name), text).unwrap();
    }
    let pollux = files.write("pollux", "time,application,num_replicas,batch_size\n0,a,1,8\n");
    let directory = files.0.path().display().to_string();
    let result =
        PLACE.json(&["evaluate", "las", "--jobs", &pollux, "--applications", &directory, "--draws", "2"]);
    assert_eq!(result["makespan"]["mean"].as_f64().unwrap(), 100.0, "{result}");
    let nodes = files.write("nodes", "sn,gpu,model\na,2,x\nb,0,x\n");
    let rates = files.write("rates", "gpu,per_year,age_years\n0,0,1\n1,0,1\n");
    let given =
        ["evaluate", "oracle", "--cluster", &nodes, "--rates", &rates, "--widest", "2", "--draws", "2"];
    assert_eq!(PLACE.json(&given)["hits"]["mean"], 0.0);
}

#[test]
fn gpus_are_drawn_with_their_failures() {
    let files = Files::new();
    let jobs = files.write("jobs", "arrival_s,gpus,duration_s\n0,2,86400\n");
    let failures = files.write("failures", "gpu,begin_s,end_s\n1,43200,43300\n2,500,600\n");
    let svg = files.0.path().join("gpus.svg");
    let given = ["evaluate", "first-fit", "--gpus", "3", "--jobs", &jobs, "--failures", &failures, "--quiet"];
    run(PLACE.command(&given).args(["--gantt-gpus", "2", "--gantt"]).arg(&svg));
    let drawn = text(&svg);
    assert!(drawn.contains("first-fit; the first 2 of 3 GPUs"), "{drawn}");
    assert!(
        ["GPU 0", "GPU 1", "job 0", "GPU failed"].iter().all(|name| drawn.contains(&format!("\n{name}\n")))
    );
    // There is one mark and one in the legend, because GPU 2 is not shown.
    assert_eq!(drawn.matches("stroke-width=\"2\"").count(), 2, "{drawn}");
    assert!(!drawn.contains("\nGPU 2\n"), "{drawn}");
    let output = PLACE.command(&given).args(["--gantt"]).arg(&svg).arg("--json").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut hindsight = given;
    hindsight[1] = "hindsight:2";
    let output = PLACE.command(&hindsight).arg("--gantt").arg(&svg).output().unwrap();
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("cannot write the Gantt chart: policy hindsight:2"),
        "{output:?}"
    );
}

#[test]
fn every_decision_of_a_run_is_logged() {
    let files = Files::new();
    let jobs = files.write("jobs", "arrival_s,gpus,duration_s\n0,2,100\n10,1,50\n");
    let failures = files.write("failures", "gpu,begin_s,end_s\n1,20,80\n");
    let log = files.0.path().join("decisions.csv");
    let given = ["evaluate", "first-fit", "--gpus", "2", "--jobs", &jobs, "--failures", &failures];
    let options = ["--quiet", "--checkpoint", "none", "--restart", "5"];
    run(PLACE.command(&given).args(options).arg("--decisions").arg(&log));
    // Computed by hand: the failure stops job 0, and job 1 uses the other GPU. After the repair, job 0 starts with a
    // restart of 5 s.
    let expected = "time_s,event,job,gpus,waiting,running,free_gpus\n\
        0,start,0,0 1,0,1,0\n\
        20,failure,,1,1,1,0\n\
        20,stopped_by_failure,0,1,2,0,1\n\
        20,start,1,0,1,1,0\n\
        70,complete,1,,1,0,1\n\
        80,repair,,1,1,0,2\n\
        80,start,0,0 1,0,1,0\n\
        185,complete,0,,0,0,2\n";
    let text = text(&log);
    assert_eq!(text, expected);
    let mut hindsight = given;
    hindsight[1] = "hindsight:2";
    let output = PLACE.command(&hindsight).args(options).arg("--decisions").arg(&log).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("cannot write the decisions: policy hindsight:2"), "{output:?}");
}

#[test]
fn an_agent_answers_every_line() {
    if !programs("an_agent_answers_every_line", &["setpriv"]) {
        return;
    }
    let files = Files::new();
    let rates = files.write("rates", "gpu,per_year,age_years\n0,3,1\n1,2,1\n2,1,1\n3,0.5,1\n");
    let cluster = ["--gpus", "4", "--gpus-per-node", "2", "--rates", &rates];
    let mut agent = Agent::serve(PLACE, &[&["reliable"], &cluster[..]].concat());
    let mut ask = |line: &str| agent.ask(line);
    let described = ask(r#"{"describe": true}"#);
    assert_eq!((&described["gpus"], &described["nodes"]), (&4.into(), &2.into()));
    assert_eq!(described["policy"], "reliable");
    let states = r#"[{"state": "free"}, {"state": "free"}, {"state": "failed"}, {"state": "free"}]"#;
    let with_job = |job: &str| format!(r#"{{"gpus": {states}, "job": {job}, "id": 7}}"#);
    let answer = ask(&with_job(r#"{"gpus": 2, "duration": 60}"#));
    assert_eq!(answer, serde_json::json!({ "gpus": [3, 1], "id": 7 }));
    assert_eq!(ask(&with_job(r#"{"gpus": 4, "duration": 60}"#))["gpus"], serde_json::json!([]));
    for (job, error) in [
        (
            r#"{"gpus": 5, "duration": 60}"#,
            "job.gpus is 5, expected 1 to 4, the number of GPUs in the cluster",
        ),
        (r#"{"gpus": 1, "duration": -60}"#, "job.duration is -60, expected a number of seconds above 0"),
    ] {
        assert_eq!(ask(&with_job(job))["error"], error);
    }
    agent.check_robustness(PLACE, "reliable");
    agent.stop();
}

#[test]
fn errors_name_the_invalid_input() {
    let files = Files::new();
    let own = |name: &str, lines: &str| files.write(name, &format!("arrival_s,gpus,duration_s\n{lines}"));
    let outages = |name: &str, lines: &str| files.write(name, &format!("gpu,begin_s,end_s\n{lines}"));
    let (wide, short) = (own("wide", "0,65,100\n"), own("short", "0,1,100\n5,1,-3\n"));
    let (fine, odd) = (own("fine", "0,1,100\n"), files.write("odd", "when,who\n1,2\n"));
    let (unknown, overlap) = (outages("unknown", "64,5,9\n"), outages("overlap", "3,5,9\n3,8,20\n"));
    let empty = outages("empty", "");
    let gavel = files.write("gavel", "A\trun\t-s\t1\t1000\t0.0\t1\n");
    PLACE.check_refusals([
        (vec!["evaluate", "best"], "policy is best, expected random, best-of:N"),
        (vec!["evaluate", "random", "--jobs", &wide], "GPUs of a job is 65, expected 1 to 64, the number"),
        (vec!["evaluate", "random", "--jobs", &short], "short, line 3: duration of a job is -3, expected"),
        (vec!["evaluate", "random", "--jobs", &odd], "odd, line 1: columns are \"when,who\", expected"),
        (vec!["evaluate", "random", "--jobs", "/nowhere"], "/nowhere: No such file"),
        (vec!["evaluate", "random", "--jobs", &gavel], "a Gavel trace needs --throughputs"),
        (vec!["evaluate", "random", "--jobs", &fine, "--interarrival", "5"], "add --batch N"),
        (vec!["evaluate", "random", "--longest", "1"], "number of jobs is 0, expected at least 1 within"),
        (
            vec!["evaluate", "random", "--failures", &unknown],
            "unknown, line 2: id of a GPU is 64, expected 0 to 63",
        ),
        (
            vec!["evaluate", "random", "--failures", &overlap],
            "overlap, line 3: outage of GPU 3 overlaps the outage in line 2",
        ),
        (
            vec!["evaluate", "random", "--failures", &empty, "--checkpoint", "young-daly"],
            "checkpoint is young-daly, which needs failure rates",
        ),
        (vec!["evaluate", "random", "--gpus", "0"], "gpus is 0, expected at least 1"),
        (vec!["evaluate", "random", "--gpus-per-node", "0"], "gpus-per-node is 0, expected at least 1"),
        (vec!["evaluate", "random", "--restart", "-1"], "restart is -1, expected a number of seconds"),
        (vec!["evaluate", "random", "--repair", "-1"], "repair is -1, expected a number of seconds"),
        (vec!["evaluate", "random", "--horizon", "0"], "horizon is 0, expected a number of seconds above 0"),
        (vec!["evaluate", "random", "--checkpoint", "0"], "checkpoint is \"0\", expected none, young-daly"),
        (vec!["evaluate", "random", "--rate-factor", "-1"], "failure factor is -1, expected a number"),
        (vec!["evaluate", "random", "--queueing", "lifo"], "invalid value 'lifo'"),
        (vec!["compare", "random", "random"], "two policies are named random"),
        (vec!["compare", "random", "--baseline", "las"], "baseline is las, expected one of"),
        (vec!["compare", "random", "--rate-factors", "1,0"], "failure factor is 0, expected a number"),
        (vec!["compare", "random", "--rate-factors", "2,2"], "--rate-factors: 2 appears twice"),
        (vec!["compare", "random", "--plots", "/nowhere"], "needs two or more --rate-factors"),
        (
            vec!["serve", "las", "--socket", "/nowhere/s"],
            "policy is las, which needs more than the current state",
        ),
        (vec!["serve", "match", "--socket", "/nowhere/s"], "--socket /nowhere/s"),
    ]);
}

#[test]
fn a_client_above_the_limit_of_the_service_is_refused() {
    Agent::check_limit(PLACE, &["reliable"]);
}
