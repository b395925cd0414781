//! Figures of `iswitch plot`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Trains A2C on CartPole-v1 with two values of gamma and two seeds, and returns the result.
fn sweep(out: &Path) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iswitch-sweep"));
    command.args(["train", "a2c", "--workers", "1", "--steps", "4000", "--seeds", "2", "--json", "--quiet"]);
    let output = command.args(["--grid", "gamma=0.9,0.99", "--out"]).arg(out).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn plot(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iswitch-plot"));
    command.current_dir(directory).args(arguments).output().unwrap()
}

#[test]
fn runs_that_differ_only_in_the_seed_form_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let result = sweep(&directory.path().join("sweep"));
    // A run that is given twice counts only once.
    let output = plot(directory.path(), &["sweep", "sweep/gamma=0.9/seed-1", "--json", "--out", "plot.svg"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let plot: Value = serde_json::from_slice(&output.stdout).unwrap();
    let svg = fs::read_to_string(directory.path().join("plot.svg")).unwrap();
    for (at, name) in ["gamma=0.9", "gamma=0.99"].into_iter().enumerate() {
        let configuration = &plot["configurations"][at];
        assert_eq!(configuration["name"], name);
        let runs = configuration["runs"].as_array().unwrap();
        assert_eq!(runs.iter().map(|run| &run["seed"]).collect::<Vec<_>>(), [1, 2]);
        let of_sweep = result["configurations"][at]["runs"].as_array().unwrap();
        let returns: Vec<_> = of_sweep.iter().map(|run| run["final_return"].as_f64().unwrap()).collect();
        for (run, expected) in runs.iter().zip(&returns) {
            assert!((run["mean_return"].as_f64().unwrap() - expected).abs() < 1e-6, "{run} {expected}");
        }
        let last = configuration["curve"].as_array().unwrap().last().unwrap();
        assert!(
            (last["iqm"].as_f64().unwrap() - f64::midpoint(returns[0], returns[1])).abs() < 1e-6,
            "{last} {returns:?}"
        );
        assert!(last["low"].as_f64() < last["high"].as_f64(), "{last}");
        assert_eq!(svg.matches(&format!("\n{name}\n")).count(), 1, "{name}");
    }
    assert_eq!(svg.matches("<polygon").count(), 2, "each line has a band");
    assert!(svg.contains("A2C on CartPole-v1: learning curves") && svg.contains("\nsolved\n"));
}

#[test]
fn runs_without_a_configuration_have_lines_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    for run in ["old", "older"] {
        fs::create_dir(directory.path().join(run)).unwrap();
        let rows = "step,charts/mean_return_100\n100,\n200,7.5\n300,9\n";
        fs::write(directory.path().join(run).join("progress.csv"), rows).unwrap();
    }
    let Output { status, stdout, stderr } = plot(directory.path(), &["old", "older"]);
    let text = String::from_utf8(stdout).unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    assert_eq!(
        text,
        "Learning curves in curves.svg:\n- old: 1 run, return 9.0 (95 % interval: 9.0 to 9.0) after 300 steps\n\
         - older: 1 run, return 9.0 (95 % interval: 9.0 to 9.0) after 300 steps\n"
    );
    assert!(fs::read_to_string(directory.path().join("curves.svg")).unwrap().contains("\nolder\n"));
}

#[test]
fn directories_and_files_that_cannot_be_used_are_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir_all(directory.path().join("empty/below")).unwrap();
    fs::create_dir(directory.path().join("other")).unwrap();
    fs::write(directory.path().join("other/progress.csv"), "step,loss\n1,2\n").unwrap();
    let refusals = [
        (&["empty"][..], "empty holds no run, expected a directory with progress.csv"),
        (&["nowhere"], "nowhere holds no run"),
        (&["other"], "other/progress.csv: there is no column charts/mean_return_100"),
        (&["empty", "--out", "curves.png"], "--out curves.png: figures are SVG"),
        (&[], "<RUN>..."),
    ];
    for (arguments, reason) in refusals {
        let Output { status, stderr, .. } = plot(directory.path(), arguments);
        let stderr = String::from_utf8_lossy(&stderr);
        assert!(!status.success() && stderr.contains(reason), "{arguments:?}: {stderr}");
        assert!(!directory.path().join("curves.svg").exists());
    }
}
