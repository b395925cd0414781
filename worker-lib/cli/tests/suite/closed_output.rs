//! Tests of commands whose standard output has been closed by its reader, as in `iswitch ... --json | head -c 0`.
use std::process::{Command, Stdio};

/// Runs the command with a standard output whose reader has already closed it. Returns the standard error of the
/// command.
fn run(arguments: &[&str]) -> String {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = Command::new(env!("CARGO_BIN_EXE_iswitch"))
        .args(arguments)
        .stdout(writer)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {}: {text}", output.status);
    text
}

#[test]
fn commands_exit_quietly_if_their_output_is_closed() {
    let place = ["--gpus", "8", "--batch", "3", "--draws", "1", "--quiet"];
    let coflow = ["--ports", "4", "--jobs", "3", "--draws", "1", "--quiet"];
    let route = ["--switches", "4", "--slots", "10", "--draws", "1"];
    let rules: [(&[&str], &[&str]); 6] = [
        (&["place", "evaluate", "best-fit"], &place),
        (&["place", "compare", "best-fit", "first-fit"], &place),
        (&["coflow", "evaluate", "fair"], &coflow),
        (&["coflow", "compare", "fair", "fifo"], &coflow),
        (&["route", "evaluate", "rand"], &route),
        (&["route", "compare", "rand"], &route),
    ];
    for (command, options) in rules {
        for format in [&["--json"][..], &[]] {
            let text = run(&[command, options, format].concat());
            assert!(!text.contains("panicked"), "{command:?}: {text}");
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().to_str().unwrap();
    let train =
        ["train", "a2c", "--env", "CartPole-v1", "--workers", "1", "--steps", "500", "--out", out, "--json"];
    run(&train);
    run(&["eval", out, "--episodes", "1", "--json"]);
}
