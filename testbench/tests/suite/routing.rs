//! Tests of `iswitch route` on the command line.

use iswitch_harness::process::run;
use iswitch_harness::requirements::programs;
use iswitch_harness::scratch;

use super::studies::{Agent, Files, ROUTE, text};

#[test]
fn four_workers_and_one_process_write_the_same_curve() {
    ROUTE.check_curves(&["--iterations", "2", "--load", "0.8"], |out, _| {
        assert!(text(&out.join("queued.svg")).contains("bound"));
    });
}

#[test]
fn a_stopped_training_resumes_where_it_stopped() {
    if !programs("a_stopped_training_resumes_where_it_stopped", &["setpriv"]) {
        return;
    }
    let network = ["--switches", "4", "--set", "slots=200", "--set", "window=20", "--set", "epochs=2"];
    let begun = [&network[..], &["--value", "cnn", "--iterations", "1000"]].concat();
    ROUTE.check_resumption(&begun, &[]);
}

#[test]
fn comparisons_are_written_as_table_csv_and_figures() {
    let directory = scratch::directory();
    let [csv, plots] = ["table.csv", "plots"].map(|name| directory.path().join(name));
    let arguments =
        ["compare", "rand", "jsq", "colouring", "--switches", "6", "--draws", "3", "--loads", "0.5,0.7"];
    let printed =
        run(ROUTE.command(&arguments).args(["--quiet", "--csv"]).arg(&csv).arg("--plots").arg(&plots));
    assert_eq!(printed.lines().count(), 1 + 2 * 3, "{printed}");
    assert_eq!(text(&csv).lines().count(), 1 + 2 * 3);
    for name in ["queued.svg", "delay.svg", "heat-0.50.svg", "heat-0.70.svg"] {
        let svg = text(&plots.join(name));
        assert!(["rand", "jsq", "colouring"].iter().all(|policy| svg.contains(policy)), "{name}");
    }
    let results = ROUTE.json(&arguments);
    let above = |at: usize| results["results"][at]["above_bound"].as_f64().unwrap();
    assert!(above(0) > above(2) && above(2) >= 0.0, "{results}");
}

#[test]
fn an_agent_answers_every_line() {
    if !programs("an_agent_answers_every_line", &["setpriv"]) {
        return;
    }
    let mut agent = Agent::serve(ROUTE, &["jsq", "--stages", "2", "--switches", "2"]);
    assert_eq!(agent.ask(r#"{"describe": true}"#)["switches"], 2);
    let links = agent.ask(r#"{"queues": [[[1, 0], [0, 0]], [[5, 0], [0, 0]]]}"#);
    assert_eq!(links["links"], serde_json::json!([[[null, 0], [null, null]]]));
    agent.check_robustness(ROUTE, "jsq");
    agent.stop();
}

#[test]
fn errors_name_the_invalid_input() {
    let files = Files::new();
    let (uneven, heavy) = (files.write("uneven", "0.1,0.2\n0.1\n"), files.write("heavy", "2,2\n2,2\n"));
    ROUTE.check_refusals([
        (vec!["train", "--load", "1"], "load is 1, expected a number above 0 and below 1"),
        (vec!["train", "--switches", "0"], "switches is 0, expected 1 to 256"),
        (vec!["train", "--rates", &uneven], "number of rates in line 2 is 1, expected 2"),
        (vec!["evaluate", "jsq", "--rates", &heavy], "load is 2, expected a number above 0 and below 1"),
        (vec!["evaluate", "best"], "policy is best, expected rand, jsq, po2"),
        (vec!["evaluate", "jsq", "--fill", "all"], "fill is all, expected random or rule"),
        (vec!["evaluate", "jsq", "--trace", "t"], "--trace requires a single run: add --draws 1"),
        (vec!["compare", "jsq", "jsq"], "two policies are named jsq"),
        (
            vec!["train", "--learner", "mc", "--value", "linear"],
            "value is linear, expected cnn, because learner is mc",
        ),
        (vec!["train", "--set", "window=many"], "--set window=\"many\": invalid type"),
        (vec!["train", "--set", "widow=3"], "--set widow: no such hyper-parameter"),
        (vec!["train", "--workers", "3", "--set", "environments=4"], "a multiple of the number of workers"),
        (vec!["train", "--resume", "--out", "/nowhere"], "nothing to resume"),
        (
            vec!["serve", "mlpi", "--socket", "/nowhere/s"],
            "train a policy with `iswitch route train` and give its run directory",
        ),
        (vec!["serve", "jsq", "--socket", "/nowhere/s"], "--socket /nowhere/s"),
    ]);
}

#[test]
fn a_client_above_the_limit_of_the_service_is_refused() {
    Agent::check_limit(ROUTE, &["jsq"]);
}
