//! What the program itself does with its arguments and outputs.

use std::process::{Command, Output, Stdio};

/// A shell runs `script`, in which `$iswitchd` stands for the daemon.
fn shell(script: &str) -> Output {
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).env("iswitchd", env!("CARGO_BIN_EXE_iswitchd")).stdin(Stdio::null());
    shell.output().expect("a shell")
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn memory_that_the_machine_cannot_give_is_refused_and_named() {
    let serve = "exec $iswitchd --udp 127.0.0.1:0 --memory-mib";
    let largest = shell(&format!("{serve} 1048576"));
    let text = error(&largest);
    assert_eq!(largest.status.code(), Some(2), "{text}");
    assert!(text.starts_with("iswitchd: memory_mib is 1048576"), "{text}");
    // Less than the machine has, and more than the process may have.
    let limited = shell(&format!("ulimit -v 400000; {serve} 500 --check"));
    let text = error(&limited);
    assert_eq!(limited.status.code(), Some(2), "{text}");
    let expected = "iswitchd: memory_mib is 500: the system does not let this process have the ";
    assert!(text.starts_with(expected), "{text}");
    let enough = shell(&format!("ulimit -v 400000; {serve} 100 --check"));
    assert!(enough.status.success(), "{}", error(&enough));
}

#[test]
fn a_standard_output_that_is_closed_is_no_error() {
    // The pipe has no reader from the beginning.
    let script = "{ sleep 0.2; $iswitchd --udp 127.0.0.1:0 --check; echo $? >&2; } | true";
    assert_eq!(error(&shell(script)), "0\n");
    let script = "$iswitchd --udp 127.0.0.1:0 --check >&-; echo $? >&2";
    assert_eq!(error(&shell(script)), "0\n");
}
