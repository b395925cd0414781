//! `iswitch study reproduce` with the programs of the studies: small versions of all commands of the results pages.

use std::collections::BTreeSet;
use std::process::Command;

use iswitch_harness::process::run;
use iswitch_harness::requirements::programs;
use iswitch_harness::{binaries, scratch};
use serde_json::Value;

use super::studies::text;

/// Returns a command of `iswitch study reproduce`.
fn reproduce(arguments: &[&str]) -> Command {
    let mut command = Command::new(binaries::iswitch());
    command.args(["study", "reproduce"]).args(arguments);
    command
}

/// Reproduces a page with small commands, and checks that each table and figure of the page is complete. A second call
/// must run nothing.
fn check(study: &str) {
    let test = format!("small versions of the {study} page");
    // The page has programs that print input files.
    if study != "routing" && !programs(&test, &["python3"]) {
        return;
    }
    for program in ["iswitch-study", "iswitch-route", "iswitch-coflow", "iswitch-place"] {
        assert!(binaries::path(program).exists());
    }
    let directory = scratch::directory();
    let out = directory.path().join("out");
    let arguments = [study, "--quick", "--json", "--quiet", "--out", out.to_str().unwrap()];
    let printed = run(&mut reproduce(&arguments));
    let report: Value = serde_json::from_str(&printed).unwrap();
    for step in report["steps"].as_array().unwrap() {
        assert_eq!(step["state"], "complete", "{step}");
    }
    for table in report["tables"].as_array().unwrap() {
        assert_eq!(table["missing"], Value::Array(Vec::new()), "{table}");
        assert_eq!(table["compared"], Value::Null, "a quick run is not comparable with the page");
        let text = table["rows"].to_string();
        assert!(!text.contains("NaN") && !text.contains("inf"), "{table}");
    }
    for figure in report["figures"].as_array().unwrap() {
        let file = figure["file"].as_str().unwrap_or_else(|| panic!("{figure}"));
        assert!(text(&out.join(file)).starts_with("<svg"), "{figure}");
    }
    let synthetic: BTreeSet<&str> = report["tables"].as_array().unwrap().iter().flat_map(names).collect();
    let expected: &[&str] = match study {
        "coflow" => &["ALIBABA", "FB2010", "TPCH"],
        "placement" => &["INFINITEHBD", "PHILLY", "TITAN"],
        _ => &[],
    };
    assert_eq!(synthetic.into_iter().collect::<Vec<_>>(), expected);
    assert_eq!(text(&out.join("report.md")).contains("**Synthetic data**"), study != "routing");

    let again: Value = serde_json::from_str(&run(&mut reproduce(&arguments))).unwrap();
    assert_eq!(again["steps"], report["steps"], "the durations of the first call");
    let listed = run(&mut reproduce(&[&arguments[..], &["--list"]].concat()));
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert!(listed["steps"].as_array().unwrap().iter().all(|step| step["complete"] == true), "{listed}");
}

fn names(table: &Value) -> Vec<&str> {
    table["synthetic"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect()
}

#[test]
fn the_routing_page_is_reproduced_by_small_commands() {
    check("routing");
}

#[test]
fn the_coflow_page_is_reproduced_by_small_commands() {
    check("coflow");
}

#[test]
fn the_placement_page_is_reproduced_by_small_commands() {
    check("placement");
}

#[test]
fn invalid_requests_are_refused_by_name() {
    let error = |arguments: &[&str]| {
        let directory = scratch::directory();
        let output = reproduce(arguments).current_dir(directory.path()).output().unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let text = error(&["routing", "--only", "n17"]);
    assert!(text.contains("--only: step is n17, expected one of n16, n20, heat"), "{text}");
    let text = error(&["routing", "--only", "cnn16"]);
    assert!(text.contains("the step cnn16 takes hours; add --long"), "{text}");
    let text = error(&["coflow", "--fb2010", "nowhere/trace.txt"]);
    assert!(text.contains("nowhere/trace.txt: No such file"), "{text}");
    let text = error(&["routing", "--quick", "--long"]);
    assert!(text.contains("cannot be used with"), "{text}");
}
