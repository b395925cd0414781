//! Tests of `iswitch train --track`.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// Python program that reads the data that wandb has stored in offline mode, and prints the configuration and the
/// history as JSON lines.
///
/// The file consists of a header of 7 bytes and a log of protocol-buffer messages in blocks of 32 KiB, as in LevelDB.
/// Each part of a message has a checksum, a length and a kind (1 whole, 2 first, 3 middle, 4 last).
const READER: &str = r#"
import glob, json, struct, sys
from wandb.proto import wandb_internal_pb2

def records(data):
    offset, message = 7, b""
    while offset + 7 <= len(data):
        left = 32768 - offset % 32768
        if left < 7:
            offset += left
            continue
        _, length, kind = struct.unpack_from("<IHB", data, offset)
        message += data[offset + 7 : offset + 7 + length]
        offset += 7 + length
        if kind in (1, 4):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(message)
            message = b""
            yield record

for path in sorted(glob.glob(sys.argv[1] + "/wandb/offline-run-*/run-*.wandb")):
    for record in records(open(path, "rb").read()):
        kind = record.WhichOneof("record_type")
        if kind == "history":
            items = record.history.item
            row = {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items}
            print(json.dumps({"history": row}))
        elif kind == "run":
            config = {item.key: json.loads(item.value_json) for item in record.run.config.update}
            print(json.dumps({"run": record.run.run_id, "project": record.run.project, "config": config}))
"#;

fn python() -> PathBuf {
    std::env::var_os("ISWITCH_PYTHON").unwrap_or_else(|| "python3".into()).into()
}

/// Returns whether the wandb package is installed for the interpreter. If it is not, prints that the test is skipped.
fn has_wandb() -> bool {
    let output = Command::new(python()).args(["-c", "import wandb"]).output();
    if output.is_ok_and(|output| output.status.success()) {
        return true;
    }
    let line = "SKIPPED tracking: the Python package wandb is not installed";
    assert!(std::env::var_os("ISWITCH_REQUIRE_ALL_TESTS").is_none(), "{line}");
    eprintln!("{line}");
    false
}

fn train(directory: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iswitch"));
    command.current_dir(directory).args(["train", "a2c", "--json", "--quiet", "--track", "--out", "run"]);
    command.args(options).env("WANDB_MODE", "offline");
    command
}

fn succeed(command: &mut Command) {
    let Output { status, stderr, .. } = command.output().unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
}

#[test]
fn a_run_is_logged_in_the_format_of_wandb() {
    if !has_wandb() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let first = ["--workers", "2", "--steps", "4000", "--wandb-project-name", "racks"];
    succeed(&mut train(directory.path(), &first));
    let run = directory.path().join("run");
    let id = fs::read_to_string(run.join("wandb-run-id.txt")).unwrap();
    let read = || {
        let output = Command::new(python()).args(["-c", READER]).arg(&run).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    let records = read();
    let begun = records.iter().find(|record| record["run"] == id.trim()).expect("the run is recorded");
    assert_eq!((&begun["project"], &begun["config"]["algorithm"]), (&"racks".into(), &"a2c".into()));
    assert_eq!(begun["config"]["total_steps"], 4000);
    let history: Vec<_> = records.iter().filter_map(|record| record.get("history")).collect();
    let csv = fs::read_to_string(run.join("progress.csv")).unwrap();
    assert_eq!(history.len(), csv.lines().count() - 1);
    let (last, row) = (history.last().unwrap(), csv.lines().last().unwrap());
    assert_eq!(last["global_step"].to_string(), row.split(',').next().unwrap());
    let column =
        csv.lines().next().unwrap().split(',').position(|name| name == "charts/mean_return_100").unwrap();
    let expected: f64 = row.split(',').nth(column).unwrap().parse().unwrap();
    assert_eq!(last["charts/mean_return_100"], expected);

    succeed(&mut train(directory.path(), &["--resume", "--steps", "5000"]));
    assert_eq!(fs::read_to_string(run.join("wandb-run-id.txt")).unwrap(), id);
    assert!(read().iter().filter_map(|record| record.get("history")).count() > history.len());
}

#[test]
fn a_run_that_cannot_be_tracked_is_refused_once() {
    let directory = tempfile::tempdir().unwrap();
    let fails = |command: &mut Command| {
        let Output { status, stderr, .. } = command.output().unwrap();
        let stderr = String::from_utf8(stderr).unwrap();
        assert!(!status.success() && stderr.lines().count() == 1, "{stderr}");
        stderr
    };
    let stderr = fails(train(directory.path(), &[]).env("ISWITCH_PYTHON", "/nowhere/python3"));
    assert!(stderr.starts_with("iswitch: --track: /nowhere/python3 cannot be started ("), "{stderr}");

    // Replace wandb with a module that cannot be imported, and then with one that cannot begin a run.
    let path = |text: &str| {
        fs::write(directory.path().join("wandb.py"), text).unwrap();
        directory.path().display().to_string()
    };
    let missing = path("raise ImportError('no such package')\n");
    let stderr = fails(train(directory.path(), &[]).env("PYTHONPATH", missing));
    assert!(stderr.contains("cannot import wandb (no such package); install it with: "), "{stderr}");
    let refusing = path("def init(**arguments):\n    raise ValueError('no API key')\n");
    for workers in ["1", "3"] {
        let stderr = fails(train(directory.path(), &["--workers", workers]).env("PYTHONPATH", &refusing));
        assert!(stderr.contains("--track: wandb cannot begin the run: ValueError: no API key"), "{stderr}");
    }
}

#[test]
fn training_continues_without_a_tracker_that_has_ended() {
    let directory = tempfile::tempdir().unwrap();
    let module = "
import os

class Run:
    id, url, dir = 'a', None, '.'

    def log(self, values, step):
        os._exit(1)

def init(**arguments):
    return Run()
";
    fs::write(directory.path().join("wandb.py"), module).unwrap();
    let mut command = train(directory.path(), &["--workers", "1", "--steps", "40000"]);
    let Output { status, stdout, stderr } = command.env("PYTHONPATH", directory.path()).output().unwrap();
    let stderr = String::from_utf8(stderr).unwrap();
    assert!(status.success(), "{stderr}");
    let lost = "iswitch: the run is no longer tracked: the wandb process has ended";
    assert_eq!(stderr.matches(lost).count(), 1, "{stderr}");
    assert_eq!(serde_json::from_slice::<Value>(&stdout).unwrap()["steps"], 40_000);
}
