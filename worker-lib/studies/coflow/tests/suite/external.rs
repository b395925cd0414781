//! External policies: programs that order the coflows of a run.

use std::collections::BTreeMap;
use std::fs;

use iswitch_study::testing::{failure, python_example, results};

const PROGRAM: &str = env!("CARGO_BIN_EXE_iswitch-coflow");
const JOBS: [&str; 9] = ["--jobs", "25", "--ports", "8", "--draws", "3", "--interarrival", "5", "--json"];

fn with<'a>(args: &[&'a str]) -> Vec<&'a str> {
    args.iter().chain(&JOBS).copied().collect()
}

#[test]
fn the_example_in_python_gives_the_completion_times_of_sebf() {
    let Some(command) = python_example("the example in Python", "sebf.py") else { return };
    let (mine, directory) = (format!("mine={command}"), tempfile::tempdir().unwrap());
    let list = directory.path().join("coflows.csv");
    let list = list.to_str().unwrap();
    for rates in ["backfill", "blocking"] {
        let args = ["compare", "sebf", "fifo", &mine, "--per-coflow", list, "--rates", rates];
        let found = results(PROGRAM, &with(&args));
        assert_eq!(found[0], found[2]);
        assert_ne!(found[0], found[1]);
        // Each line is `draw,policy,...,cct_s`.
        let text = fs::read_to_string(list).unwrap();
        let mut of_policies: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for line in text.lines().skip(1) {
            let fields: Vec<_> = line.split(',').collect();
            of_policies.entry(fields[1]).or_default().push([&fields[..1], &fields[2..]].concat().join(","));
        }
        assert_eq!(of_policies["mine"], of_policies["sebf"]);
        assert!(of_policies["mine"].len() >= 75);
    }
}

/// Program that answers every request with the ids of its coflows, sorted by a key: a Python expression in which `c`
/// is the coflow and `j` is its job. `rest` contains the further fields of the answer.
fn sorting(key: &str, rest: &str) -> String {
    let python = format!(
        "import json, sys\n\
         for line in sys.stdin:\n    \
             request = json.loads(line)\n    \
             if \"describe\" in request:\n        \
                 print(\"{{}}\", flush=True)\n        \
                 continue\n    \
             jobs = {{job[\"job\"]: job for job in request[\"jobs\"]}}\n    \
             key = lambda c: (lambda j: ({key}, c[\"id\"]))(jobs[c[\"job\"]])\n    \
             order = [c[\"id\"] for c in sorted(request[\"coflows\"], key=key)]\n    \
             print(json.dumps({{\"order\": order, {rest}}}), flush=True)\n"
    );
    format!("mine=exec python3 -c '{python}'")
}

#[test]
fn requests_contain_the_keys_of_our_rules() {
    if python_example("keys of our rules", "sebf.py").is_none() {
        return;
    }
    for (policy, key) in [
        ("fifo", r#"c["ready_s"]"#),
        ("fifo-job", r#"j["arrival_s"], -c["path_s"]"#),
        ("job-srpt", r#"j["path_s"], -c["path_s"]"#),
        ("job-sebf", r#"j["need_s"], -c["path_s"]"#),
    ] {
        let found = results(PROGRAM, &with(&["compare", policy, &sorting(key, r#""sharing": "madd""#)]));
        assert_eq!(found[0], found[1], "{policy}");
    }
    // The largest sum of remaining bytes at a port is the bottleneck; if it is not, the program divides by zero.
    let key = r#"c["bottleneck_s"] / (abs(max(
        sum(flow[2] for flow in c["flows"] if flow[side] == port) for side in (0, 1) for port in range(8)
    ) / 1.25e8 - c["bottleneck_s"]) < 1e-6)"#;
    let found = results(PROGRAM, &with(&["compare", "sebf", &sorting(key, r#""sharing": "madd""#)]));
    assert_eq!(found[0], found[1]);
    // A policy that is asked again without an event decides more often, but with the same order.
    let again = sorting(r#"c["ready_s"]"#, r#""sharing": "greedy", "look_again_s": 0.5"#);
    let once = sorting(r#"c["ready_s"]"#, r#""sharing": "greedy""#).replacen("mine", "once", 1);
    let found = results(PROGRAM, &with(&["compare", &again, &once]));
    let jct = |at: usize| found[at]["jct"]["mean"]["mean"].as_f64().unwrap();
    assert!((jct(0) / jct(1) - 1.0).abs() < 0.05, "{} {}", jct(0), jct(1));
}

#[test]
fn an_invalid_order_ends_the_comparison_with_one_error() {
    let jobs = tempfile::tempdir().unwrap();
    let file = jobs.path().join("jobs.json");
    let coflows = r#"{"coflows": [{"flows": [[0, 1, 1e9]]}, {"flows": [[1, 0, 1e9]]}]}"#;
    fs::write(&file, format!(r#"{{"ports": 2, "jobs": [{coflows}]}}"#)).unwrap();
    let of = |answer: &str| {
        let command = format!("mine=read line; echo '{{}}'; read line; echo '{answer}'; cat > /dev/null");
        failure(PROGRAM, &["evaluate", &command, "--job-file", file.to_str().unwrap()])
    };
    let each = "the id of a coflow in the request, listed only once";
    for (answer, error) in [
        (r#"{"order": [0, 0], "sharing": "madd"}"#, format!("order[1] is 0, expected {each}")),
        (r#"{"order": [2, 0, 1], "sharing": "madd"}"#, format!("order[0] is 2, expected {each}")),
        (r#"{"order": [-1], "sharing": "madd"}"#, format!("order[0] is -1, expected {each}")),
        (
            r#"{"order": [1], "sharing": "madd"}"#,
            "length of order is 1, expected 2, one entry for each coflow; coflow 0 is missing".to_owned(),
        ),
        (
            r#"{"order": [0, 1], "sharing": "fast"}"#,
            "sharing is fast, expected one of madd, greedy, greedy-per-flow, equal".to_owned(),
        ),
        (
            r#"{"order": [0, 1], "sharing": "madd", "look_again_s": 0}"#,
            "look_again_s is 0, expected a number of seconds >= 0.001".to_owned(),
        ),
    ] {
        assert_eq!(of(answer), format!("iswitch-coflow: policy mine, request 1: {error}"));
    }
    let error = of(r#"{"order": [0, 1]}"#);
    assert!(
        error.ends_with(r#"expected {"order": [id, ...], "sharing": "madd"}: missing field `sharing`"#),
        "{error}"
    );
    let error = failure(PROGRAM, &["serve", "mine=true"]);
    assert!(error.contains("policy is mine=true, expected a policy of iSwitch"), "{error}");
    let error = failure(PROGRAM, &["evaluate", "sebf=true"]);
    assert!(error.ends_with("is sebf, a built-in policy; expected another name"), "{error}");
}
