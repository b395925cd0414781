//! `iswitch route` on the command line.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use iswitch_harness::binaries;
use iswitch_harness::process::{Process, Signal, command, run};
use iswitch_harness::requirements::programs;
use iswitch_harness::scratch;
use serde_json::Value;

const TIMEOUT: Duration = Duration::from_secs(60);

fn route(arguments: &[&str]) -> Command {
    let mut command = Command::new(binaries::iswitch());
    command.arg("route").args(arguments);
    command
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn four_workers_and_one_process_write_the_same_curve() {
    let directory = scratch::directory();
    let train = |name: &str, more: &[&str]| {
        let out = directory.path().join(name);
        let mut command =
            route(&["train", "--iterations", "2", "--load", "0.8", "--quiet", "--json", "--out"]);
        let printed = run(command.arg(&out).args(more));
        let result: Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(result["replicas_identical"], true, "{result}");
        assert!(text(&out.join("queued.svg")).contains("bound"));
        (text(&out.join("progress.csv")), result)
    };
    let (one, result) = train("one", &[]);
    let eval =
        Command::new(binaries::iswitch()).arg("eval").arg(directory.path().join("one")).output().unwrap();
    assert!(String::from_utf8_lossy(&eval.stderr).contains("`iswitch route evaluate` runs"), "{eval:?}");
    assert_eq!((&result["workers"], &result["aggregator"]), (&1.into(), &"loopback".into()));
    for aggregator in ["switch", "ps", "ring"] {
        let (four, result) = train(aggregator, &["--workers", "4", "--aggregator", aggregator]);
        assert_eq!(result["workers"], 4);
        assert_eq!(four, one, "{aggregator}");
    }
}

#[test]
fn a_training_that_is_stopped_goes_on_where_it_was() {
    if !programs("a_training_that_is_stopped_goes_on_where_it_was", &["setpriv"]) {
        return;
    }
    let directory = scratch::directory();
    let out = directory.path().join("run");
    let network = ["--switches", "4", "--set", "slots=200", "--set", "window=20", "--set", "epochs=2"];
    let mut train = command(binaries::iswitch());
    train.args(["route", "train", "--value", "cnn", "--iterations", "1000", "--out"]).arg(&out).args(network);
    let process = Process::spawn("train", &mut train);
    let begin = Instant::now();
    while !out.join("model.safetensors").exists() {
        assert!(begin.elapsed() < TIMEOUT, "no checkpoint after {TIMEOUT:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    let finished = process.stop(Signal::TERM, TIMEOUT);
    assert!(finished.status.success(), "{finished:?}");
    let done = text(&out.join("progress.csv")).lines().count() - 1;
    let iterations = (done + 1).to_string();
    let mut resume = route(&["train", "--resume", "--json", "--quiet", "--iterations", &iterations, "--out"]);
    let result: Value = serde_json::from_str(&run(resume.arg(&out))).unwrap();
    assert_eq!(result["iterations"], done + 1, "{result}");
    assert_eq!(text(&out.join("progress.csv")).lines().count(), done + 3);
}

#[test]
fn comparisons_come_as_a_table_as_csv_and_as_figures() {
    let directory = scratch::directory();
    let [csv, plots] = ["table.csv", "plots"].map(|name| directory.path().join(name));
    let arguments =
        ["compare", "rand", "jsq", "colouring", "--switches", "6", "--draws", "3", "--loads", "0.5,0.7"];
    let printed = run(route(&arguments).args(["--quiet", "--csv"]).arg(&csv).arg("--plots").arg(&plots));
    assert_eq!(printed.lines().count(), 1 + 2 * 3, "{printed}");
    assert_eq!(text(&csv).lines().count(), 1 + 2 * 3);
    for name in ["queued.svg", "delay.svg", "heat-0.50.svg", "heat-0.70.svg"] {
        let svg = text(&plots.join(name));
        assert!(["rand", "jsq", "colouring"].iter().all(|policy| svg.contains(policy)), "{name}");
    }
    let printed = run(route(&arguments).args(["--quiet", "--json"]));
    let results: Value = serde_json::from_str(&printed).unwrap();
    let above = |at: usize| results["results"][at]["above_bound"].as_f64().unwrap();
    assert!(above(0) > above(2) && above(2) >= 0.0, "{results}");
}

#[test]
fn an_agent_answers_every_line() {
    if !programs("an_agent_answers_every_line", &["setpriv"]) {
        return;
    }
    let directory = scratch::directory();
    let socket = directory.path().join("agent.sock");
    let mut serve = command(binaries::iswitch());
    serve.args(["route", "serve", "jsq", "--stages", "2", "--switches", "2", "--socket"]).arg(&socket);
    let process = Process::spawn("agent", &mut serve);
    let begin = Instant::now();
    let stream = loop {
        match UnixStream::connect(&socket) {
            Ok(stream) => break stream,
            Err(error) => assert!(begin.elapsed() < TIMEOUT, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let mut answers = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut ask = |line: &str| -> Value {
        writeln!(&stream, "{line}").unwrap();
        serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap()
    };
    assert_eq!(ask(r#"{"describe": true}"#)["switches"], 2);
    assert!(ask("nonsense")["error"].as_str().unwrap().starts_with("request is"));
    let links = ask(r#"{"queues": [[[1, 0], [0, 0]], [[5, 0], [0, 0]]]}"#);
    assert_eq!(links["links"], serde_json::json!([[[null, 0], [null, null]]]));
    let second = route(&["serve", "jsq", "--socket"]).arg(&socket).output().unwrap();
    assert!(String::from_utf8_lossy(&second.stderr).contains("another process listens there"));
    // Longer than any network of this size needs, and than a socket's buffers hold.
    assert!(ask(&"x".repeat(4_000_000))["error"].as_str().unwrap().contains("longer than"));
    assert_eq!(ask(r#"{"describe": true}"#)["switches"], 2);
    process.stop(Signal::TERM, TIMEOUT);
    assert!(!socket.exists());
}

#[test]
fn bad_input_is_named() {
    let directory = scratch::directory();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (uneven, heavy) = (file("uneven", "0.1,0.2\n0.1\n"), file("heavy", "2,2\n2,2\n"));
    for (arguments, expected) in [
        (vec!["train", "--load", "1"], "load is 1, expected a number above 0 and below 1"),
        (vec!["train", "--switches", "0"], "switches is 0, expected 1 to 256"),
        (vec!["train", "--rates", &uneven], "numbers in line 2 is 1, expected 2"),
        (vec!["evaluate", "jsq", "--rates", &heavy], "load is 2, expected a number above 0 and below 1"),
        (vec!["evaluate", "best"], "policy is best, expected rand, jsq, po2"),
        (vec!["evaluate", "jsq", "--fill", "all"], "fill is all, expected random or rule"),
        (vec!["evaluate", "jsq", "--trace", "t"], "--trace is of one run: give --draws 1"),
        (vec!["compare", "jsq", "jsq"], "two policies are called jsq"),
        (
            vec!["train", "--learner", "mc", "--value", "linear"],
            "value is linear, expected cnn, as learner is mc",
        ),
        (vec!["train", "--set", "window=many"], "--set window=\"many\": invalid type"),
        (vec!["train", "--set", "widow=3"], "--set widow: no such hyper-parameter"),
        (vec!["train", "--workers", "3", "--set", "environments=4"], "expected a multiple of the 3 workers"),
        (vec!["train", "--resume", "--out", "/nowhere"], "nothing to resume"),
        (vec!["serve", "mlpi", "--socket", "/nowhere/s"], "give a directory of `iswitch route train`"),
        (vec!["serve", "jsq", "--socket", "/nowhere/s"], "--socket /nowhere/s"),
    ] {
        let output = route(&arguments).current_dir(directory.path()).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{arguments:?}");
        assert!(printed.contains(expected), "{arguments:?}: {printed}");
        assert!(!printed.contains("panicked"), "{printed}");
    }
}
