//! Runs the tests of modules with unsafe code under Memcheck, which must find no access outside allocated memory and no
//! uninitialised value in a branch or a system call. Miri supports neither sockets nor foreign libraries. The C
//! interface has its own test, `worker-lib/worker/tests/suite/c_interface.rs`.

use std::path::{Path, PathBuf};
use std::process::Command;

use iswitch_harness::binaries::tests_of;
use iswitch_harness::requirements::{alone, programs};

/// Test programs, each with its target and kind, its directory, and the arguments that select its tests.
const TESTS: [(&str, &str, &str, &[&str]); 5] = [
    ("iswitch_socket", "lib", "daemon/socket", &[]),
    ("loopback", "test", "daemon/socket", &[]),
    ("embedded", "test", "daemon/runtime", &[]),
    // Valgrind misinterprets the attributes of bpf calls.
    ("iswitch_daemon", "lib", "daemon/iswitchd", &["port::", "--skip", "port::xdp::tests::"]),
    ("iswitch_learn", "lib", "worker-lib/learn", &["nn::matmul"]),
];

#[test]
fn unsafe_code_passes_valgrind() {
    if !programs("unsafe_code_passes_valgrind", &["valgrind"]) {
        return;
    }
    let _alone = alone();
    for (target, kind, directory, arguments) in TESTS {
        let mut command = Command::new("valgrind");
        command.args(["-q", "--error-exitcode=99"]).arg(tests_of(target, kind)).arg("--test-threads=1");
        command.args(arguments).current_dir(workspace().join(directory));
        let output = command.output().expect("valgrind runs");
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{target}: {}\n{stdout}\n{stderr}", output.status);
        assert!(!stdout.contains(" 0 passed"), "{target} must have such tests: {stdout}");
    }
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
