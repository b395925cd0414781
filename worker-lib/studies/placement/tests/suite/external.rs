//! External policies: programs that make the decisions of a placement run.

use iswitch_study::testing::{failure, python_example, results};

const PROGRAM: &str = env!("CARGO_BIN_EXE_iswitch-place");
const CLUSTER: [&str; 9] =
    ["--gpus", "32", "--gpus-per-node", "8", "--batch", "60", "--draws", "3", "--json"];

fn with<'a>(args: &[&'a str]) -> Vec<&'a str> {
    args.iter().chain(&CLUSTER).copied().collect()
}

/// Returns the command of an external policy whose program is the placement agent with one of the built-in policies.
fn served(policy: &str) -> String {
    format!("mine=exec {PROGRAM} serve {policy} --gpus 32 --gpus-per-node 8 2>/dev/null")
}

#[test]
fn a_served_policy_gives_the_same_results_as_the_policy_itself() {
    for policy in ["first-fit", "best-fit", "reliable", "longest-reliable", "oracle"] {
        for arrivals in ["0", "3600"] {
            let args =
                ["compare", policy, &served(policy), "--rate-factor", "100", "--interarrival", arrivals];
            let found = results(PROGRAM, &with(&args));
            assert_eq!(found[0], found[1], "{policy}, {arrivals}");
        }
    }
}

#[test]
fn a_served_policy_that_suspends_jobs_is_asked_again_when_it_wants_to_be() {
    let saving = served("saving --checkpoint none");
    let args = ["compare", "saving", &saving, "--checkpoint", "none", "--rate-factor", "100"];
    let found = results(PROGRAM, &with(&args));
    let mean = |at: usize, field: &str| found[at][field]["mean"].as_f64().unwrap();
    // A request contains the time since the start of a run, from which the agent computes the start with a rounding
    // error.
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * a.abs();
    assert!(mean(0, "suspensions") > 10.0, "{found:?}");
    assert_eq!(mean(0, "suspensions"), mean(1, "suspensions"));
    assert!(near(mean(0, "makespan"), mean(1, "makespan")), "{found:?}");
}

#[test]
fn a_served_policy_knows_which_failures_stop_whole_nodes_racks_and_switches() {
    let racks = ["--nodes-per-rack", "2", "--racks-per-switch", "1"];
    let rates = ["--node-rate", "3", "--rack-rate", "20", "--switch-rate", "5", "--rate-factor", "30"];
    // The interval between suspensions depends on the rate of all GPUs of a job, in which a rack counts once.
    for policy in ["reliable", "saving"] {
        let served = served(&format!("{policy} --checkpoint none {}", racks.join(" ")));
        let args = [&["compare", policy, &served, "--checkpoint", "none"], &racks[..], &rates[..]].concat();
        let found = results(PROGRAM, &with(&args));
        let mean = |at: usize, field: &str| found[at][field]["mean"].as_f64().unwrap();
        for field in ["makespan", "suspensions", "hits"] {
            let (own, served) = (mean(0, field), mean(1, field));
            assert!((own - served).abs() <= 1e-6 * own, "{policy}, {field}: {own}, {served}");
        }
        assert_eq!(mean(0, "suspensions") > 10.0, policy == "saving");
    }
}

#[test]
fn the_example_in_python_gives_the_results_of_first_fit() {
    let Some(command) = python_example("the example in Python", "first_fit.py") else { return };
    let mine = format!("mine={command}");
    let args = ["compare", "first-fit", "random", &mine, "--queueing", "first-fit", "--rate-factor", "100"];
    let found = results(PROGRAM, &with(&args));
    assert_eq!(found[0], found[2]);
    assert_ne!(found[0], found[1]);
}

#[test]
fn a_program_can_suspend_jobs_and_start_them_elsewhere_at_once() {
    if python_example("suspensions", "first_fit.py").is_none() {
        return;
    }
    // Each job is suspended once, after an hour, and starts at once on the free GPUs with the highest ids.
    let python = "import json, sys\n\
        for line in sys.stdin:\n    \
            request = json.loads(line)\n    \
            gpus = [i for i, gpu in enumerate(request.get(\"gpus\", [])) if gpu[\"state\"] == \"free\"]\n    \
            jobs = request.get(\"jobs\", [])\n    \
            old = [job for job in jobs if job[\"starts\"] == 1 and job[\"running_for\"] >= 3600]\n    \
            gpus += [gpu for job in old for gpu in job[\"on\"]]\n    \
            start = []\n    \
            for job in old + [job for job in jobs if \"on\" not in job]:\n        \
                if job[\"gpus\"] <= len(gpus):\n            \
                    start.append({\"job\": job[\"id\"], \"gpus\": [gpus.pop() for _ in range(job[\"gpus\"])]})\n    \
            answer = {\"suspend\": [job[\"id\"] for job in old], \"start\": start, \"look_again_s\": 600}\n    \
            print(json.dumps(answer if jobs else {}), flush=True)\n";
    let mine = format!("mine=exec python3 -c '{python}'");
    let found = results(PROGRAM, &with(&["evaluate", &mine, "--rate-factor", "100"]));
    let mean = |field: &str| found[0][field]["mean"].as_f64().unwrap();
    assert!(mean("suspensions") > 30.0 && mean("unfinished") == 0.0, "{found:?}");
}

#[test]
fn an_invalid_decision_ends_the_comparison_with_one_error() {
    let of = |answer: &str| {
        let command = format!("mine=read line; echo '{{}}'; read line; echo '{answer}'; cat > /dev/null");
        failure(PROGRAM, &["evaluate", &command, "--gpus", "4", "--widest", "4", "--batch", "1"])
    };
    for (answer, error) in [
        (
            r#"{"suspend": ["0"], "start": []}"#,
            "suspend[0] is 0, expected the id of a running job, listed only once",
        ),
        (
            r#"{"suspend": [], "start": [{"job": "1", "gpus": [0]}]}"#,
            "start[0].job is 1, expected the id of a waiting or suspended job, listed only once",
        ),
        (
            r#"{"suspend": [], "start": [], "look_again_s": 0.5}"#,
            "look_again_s is 0.5, expected a number of seconds >= 1",
        ),
    ] {
        assert_eq!(of(answer), format!("iswitch-place: policy mine, request 1: {error}"));
    }
    let start = r#"{"suspend": [], "start": [{"job": "0", "gpus": [1]}]}"#;
    let one = format!("mine=read line; echo '{{}}'; read line; echo '{start}'");
    let error = failure(PROGRAM, &["evaluate", &one, "--gpus", "1", "--widest", "1", "--batch", "1"]);
    let text =
        "policy mine, request 1: start[0].gpus[0] is 1, expected a free GPU from 0 to 0, listed only once";
    assert!(error.ends_with(text), "{error}");
    let error = of(r#"{"suspend": [], "start": [{"job": "0", "gpus": [0, 1, 2, 3, 4]}]}"#);
    assert!(error.contains("request 1: length of start[0].gpus is 5, expected "), "{error}");
    for text in ["serve", "evaluate"] {
        let error = failure(PROGRAM, &[text, "first-fit=true"]);
        assert!(error.ends_with("is first-fit, a built-in policy; expected another name"), "{error}");
    }
    let error = failure(PROGRAM, &["serve", "mine=true"]);
    assert!(error.contains("policy is mine, an external policy; expected random, first-fit"), "{error}");
}
