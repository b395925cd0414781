//! Tests of the programs when their standard output has been closed, as after `iswitch-models ... | head -c 0`.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Starts a program whose standard output has no reader.
fn start(arguments: &[&str]) -> Child {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_iswitch-models"));
    command.args(arguments).stdout(writer).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until a program exits, and returns its standard error.
fn end(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}: {text}", output.status);
    text
}

#[test]
fn programs_exit_quietly_and_servers_continue_without_standard_output() {
    let directory = tempfile::tempdir().unwrap();
    let at = format!("unix:{}", directory.path().join("socket").display());
    let mut server = start(&["serve", "--listen", &at]);
    let file = directory.path().join("weights");
    std::fs::write(&file, [7; 1000]).unwrap();
    let file = file.to_str().unwrap();
    while !directory.path().join("socket").exists() {
        assert!(server.try_wait().unwrap().is_none(), "the server ended early");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(end(start(&["publish", "--learner", &at, "--name", "ppo", "--version", "1", file])), "");
    assert_eq!(end(start(&["fetch", "--from", &at, "--name", "ppo"])), "");
    // If its output has no reader, the command must exit instead of waiting for newer versions forever.
    assert_eq!(end(start(&["fetch", "--from", &at, "--name", "ppo", "--follow"])), "");
    let nginx = ["nginx-config", "--listen", "80", "--upstream", "a:1", "--directory", "/x"];
    assert_eq!(end(start(&nginx)), "");
    assert!(server.try_wait().unwrap().is_none(), "the server ended");
    server.kill().unwrap();
    server.wait().unwrap();
}
