//! Handling of arguments and outputs by the program itself.

use std::process::{Command, Output, Stdio};

/// Runs a shell script in which `$iswitchd` is the path of the daemon.
fn shell(script: &str) -> Output {
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).env("iswitchd", env!("CARGO_BIN_EXE_iswitchd")).stdin(Stdio::null());
    shell.output().expect("a shell should start")
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn unavailable_memory_is_refused_with_the_option_and_its_value() {
    let serve = "exec $iswitchd --udp 127.0.0.1:0 --memory-mib";
    let largest = shell(&format!("{serve} 1048576"));
    let text = error(&largest);
    assert_eq!(largest.status.code(), Some(2), "{text}");
    assert!(text.starts_with("iswitchd: memory_mib is 1048576"), "{text}");
    // Less memory than the machine has, but more than the limit of the process.
    let limited = shell(&format!("ulimit -v 400000; {serve} 500 --check"));
    let text = error(&limited);
    assert_eq!(limited.status.code(), Some(2), "{text}");
    let expected = "iswitchd: memory_mib is 500: with this value the switch allocates ";
    assert!(text.starts_with(expected), "{text}");
    let enough = shell(&format!("ulimit -v 400000; {serve} 100 --check"));
    assert!(enough.status.success(), "{}", error(&enough));
}

#[test]
fn the_end_of_standard_input_stops_the_daemon_if_requested() {
    let serve = "$iswitchd --udp 127.0.0.1:0 --no-control-socket --stop-on-stdin-eof";
    // The daemon runs as long as the writing end of the pipe is open.
    let output = shell(&format!("{{ sleep 0.5; echo open >&2; }} | {serve} --log-level info; echo $? >&2"));
    let text = error(&output);
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what:?} is missing in: {text}"));
    assert!(at("open\n") < at("standard input has ended") && text.ends_with("\n0\n"), "{text}");
    let output = shell(&format!("{serve} --control-socket here.sock"));
    assert_eq!(output.status.code(), Some(2), "{}", error(&output));
}

#[test]
fn a_closed_standard_output_is_not_an_error() {
    // The reader of the pipe has terminated before the daemon starts.
    let script = "{ sleep 0.2; $iswitchd --udp 127.0.0.1:0 --check; echo $? >&2; } | true";
    assert_eq!(error(&shell(script)), "0\n");
    let script = "$iswitchd --udp 127.0.0.1:0 --check >&-; echo $? >&2";
    assert_eq!(error(&shell(script)), "0\n");
}
