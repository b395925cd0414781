//! The tests with real frames, run by an ordinary user: each in a user namespace, of which nothing is left.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use iswitch_harness::binaries;
use iswitch_harness::cluster::SOON;
use iswitch_harness::process::{Process, Signal, command_of_nobody};
use iswitch_harness::requirements::{alone, nobody_and};
use iswitch_harness::scratch;
use tempfile::TempDir;

const REASON: &str = "ordinary users run every test with real frames this way";
const PROGRAMS: [&str; 3] = ["iswitchd", "iswitchctl", "all_reduce"];

/// This test program and those that its tests run, where the user `nobody` may run them too.
struct Copies(TempDir);

impl Copies {
    fn new() -> Self {
        let directory = scratch::directory();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("its own directory");
        for name in PROGRAMS {
            fs::copy(binaries::path(name), directory.path().join(name)).expect("room for the programs");
        }
        let own = std::env::current_exe().expect("a program knows where it is");
        fs::copy(own, directory.path().join("suite")).expect("room for the tests");
        Self(directory)
    }

    /// Runs one test as an ordinary user.
    fn run(&self, test: &str) -> Command {
        let path = |name: &str| self.0.path().join(name);
        let programs: HashMap<_, _> = PROGRAMS.iter().map(|name| ((*name).to_owned(), path(name))).collect();
        let (variable, value) = binaries::variable(&programs);
        let mut tests = command_of_nobody(path("suite"));
        tests.args(["--exact", test]).env(variable, value).env_remove("TMPDIR");
        tests
    }

    /// How many processes run a program of these.
    fn running(&self) -> usize {
        let needle = self.0.path().display().to_string();
        let processes = fs::read_dir("/proc").expect("/proc").flatten();
        let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
        lines.filter(|line| String::from_utf8_lossy(line).contains(&needle)).count()
    }
}

#[test]
fn an_ordinary_user_runs_a_test_with_real_frames() {
    if !nobody_and("an_ordinary_user_runs_a_test_with_real_frames", REASON, &[]) {
        return;
    }
    let copies = Copies::new();
    let test = "real_frames::plain_frames_are_exact_too";
    let finished = Process::spawn("tests of nobody", &mut copies.run(test)).wait(5 * SOON);
    assert!(finished.stdout.contains("test result: ok. 1 passed"), "{}", finished.stdout);
    assert!(!finished.stderr.contains("SKIPPED"), "{}", finished.stderr);
    assert_eq!(copies.running(), 0);
}

#[test]
fn nothing_is_left_of_tests_that_were_killed() {
    if !nobody_and("nothing_is_left_of_tests_that_were_killed", REASON, &[]) {
        return;
    }
    let _alone = alone();
    let copies = Copies::new();
    let mut tests =
        Process::spawn("tests of nobody", &mut copies.run("faults::a_pause_of_the_switch_expels_nobody"));
    let begin = Instant::now();
    // The test outside and inside, the daemon and its workers.
    while copies.running() < 6 {
        assert!(tests.is_running() && begin.elapsed() < 2 * SOON, "{}{}", tests.stdout(), tests.stderr());
        sleep(Duration::from_millis(1));
    }
    tests.stop(Signal::KILL, SOON);
    let begin = Instant::now();
    while copies.running() > 0 {
        assert!(begin.elapsed() < SOON, "{} processes are left", copies.running());
        sleep(Duration::from_millis(10));
    }
}
