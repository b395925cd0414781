//! External policies: programs that route the packets of a run.

use iswitch_study::testing::{failure, python_example, results};

const PROGRAM: &str = env!("CARGO_BIN_EXE_iswitch-route");
const NETWORK: [&str; 9] = ["--stages", "3", "--switches", "4", "--slots", "60", "--draws", "3", "--json"];

fn with<'a>(args: &[&'a str]) -> Vec<&'a str> {
    args.iter().chain(&NETWORK).copied().collect()
}

/// Returns the command of an external policy whose program is the routing agent with one of the built-in policies.
fn served(policy: &str) -> String {
    format!("mine=exec {PROGRAM} serve {policy} --stages 3 --switches 4 --seed $ISWITCH_SEED 2>/dev/null")
}

#[test]
fn a_served_policy_gives_the_same_results_as_the_policy_itself() {
    for policy in ["jsq", "maxweight", "drill:2:1"] {
        let found = results(PROGRAM, &with(&["compare", policy, &served(policy), "--loads", "0.5,0.9"]));
        assert_eq!(found.len(), 4);
        assert_eq!(found[0], found[1], "{policy}");
        assert_eq!(found[2], found[3], "{policy}");
        assert_ne!(found[0], found[2], "{policy}");
    }
    let [own, external] =
        ["jsq", &served("jsq")].map(|policy| results(PROGRAM, &with(&["evaluate", policy])));
    assert_eq!(own, external);
}

#[test]
fn the_example_in_python_routes_better_than_random_links() {
    let Some(command) = python_example("the example in Python", "jsq.py") else { return };
    let mine = format!("mine={command}");
    let found = results(PROGRAM, &with(&["compare", "rand", "jsq", &mine, "--loads", "0.8"]));
    let queued = |at: usize| found[at]["queued"]["mean"].as_f64().unwrap();
    assert!(queued(2) < queued(0), "{found:?}");
    // The rules differ only in how they break ties and in the links of packets behind the heads of queues.
    assert!(queued(2) < 1.1 * queued(1), "{found:?}");
}

#[test]
fn a_failing_program_ends_the_comparison_with_one_error() {
    let of = |greeting: &str, answer: &str| {
        let command = format!("mine=read line; echo '{greeting}'; read line; {answer}");
        failure(PROGRAM, &with(&["compare", "jsq", &command, "--quiet", "--answer-timeout", "5"]))
    };
    let error = "iswitch-route: policy mine, the greeting: the program reports an error: three stages only";
    assert_eq!(of(r#"{"error": "three stages only"}"#, ""), error);
    let idle = "[null, null, null, null]";
    let stage = format!("[{idle}, {idle}, {idle}, {idle}]");
    let unknown = stage.replacen("null", "4", 1);
    let absent = stage.replacen("null", "0", 4);
    for (answer, error) in [
        (r#"echo '{"links": []}'"#.to_owned(), "length of links is 0, expected 2 stages"),
        (
            format!(r#"echo '{{"links": [{stage}, {unknown}]}}'"#),
            "links[1][0][0] is 4, expected a class from 0 to 3, or null",
        ),
        (format!(r#"echo '{{"links": [{stage}, {stage}], "slot": 3}}'"#), "slot is 3, expected 0"),
        (
            "exit 7".to_owned(),
            "answer is missing, expected one line of JSON; the program has ended with exit status: 7",
        ),
        (
            "sleep 1000".to_owned(),
            "time without an answer is 5 s, expected an answer within 5 s (--answer-timeout)",
        ),
    ] {
        assert_eq!(of("{}", &answer), format!("iswitch-route: policy mine, request 1: {error}"));
    }
    let error = of("{}", &format!(r#"echo '{{"links": [{stage}, {absent}]}}'"#));
    assert!(error.starts_with("iswitch-route: policy mine, request 1: number of "), "{error}");
    let error = of("{}", "echo no");
    let text =
        r#"policy mine, request 1: answer is no, expected {"links": [[[class or null, ...], ...], ...]}: "#;
    assert!(error.contains(text), "{error}");
}

#[test]
fn a_served_policy_refuses_the_run_of_another_network() {
    let error = failure(PROGRAM, &["evaluate", &served("jsq"), "--switches", "5"]);
    let text = "policy mine, the greeting: the program reports an error: describe.switches is 5, expected 4";
    assert!(error.ends_with(text), "{error}");
}

#[test]
fn names_of_external_policies_are_checked() {
    for (policy, text) in [
        ("jsq=true", "name of an external policy is jsq, a built-in policy; expected another name"),
        ("mlpi=true", "name of an external policy is mlpi, a built-in policy; expected another name"),
        ("mine=", r#"command of policy mine is "", expected a command that sh can run"#),
    ] {
        assert!(failure(PROGRAM, &["evaluate", policy]).ends_with(text), "{policy}");
    }
    let error = failure(PROGRAM, &["serve", "mine=true"]);
    assert!(error.contains("policy is mine=true, expected a policy of iSwitch"), "{error}");
}
