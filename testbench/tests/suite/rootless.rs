//! Tests with real frames that an ordinary user can run. Each test runs in a separate user namespace and leaves nothing
//! behind.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use iswitch_harness::binaries;
use iswitch_harness::cluster::SOON;
use iswitch_harness::copies::Copies;
use iswitch_harness::process::{Process, Signal, command_of_nobody};
use iswitch_harness::requirements::{alone, nobody_and};

const REASON: &str = "ordinary users run every test with real frames this way";
const PROGRAMS: [&str; 3] = ["iswitchd", "iswitchctl", "all_reduce"];

/// Directory with copies of this test program and of the programs that its tests run. The user `nobody` may run the
/// copies.
struct Tests(Copies);

impl Tests {
    fn copy() -> Self {
        // The path of this program is not used, because a test that builds the workspace may have replaced the file.
        let own = Path::new("/proc/self/exe");
        let [daemon, control, workers] = PROGRAMS.map(|name| (name, binaries::path(name)));
        Self(Copies::of(&[daemon, control, workers, ("suite", own)]))
    }

    /// Returns a command that runs a test of this program as an ordinary user.
    fn run(&self, test: &str) -> Command {
        let (variable, value) = self.0.variable(&PROGRAMS);
        let mut tests = command_of_nobody(self.0.path("suite"));
        let directory = self.0.directory();
        tests.args(["--exact", test]).env(variable, value).env("TMPDIR", directory).current_dir(directory);
        tests
    }

    /// Returns the number of processes that run one of the copied programs.
    fn running(&self) -> usize {
        let needle = self.0.directory().display().to_string();
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
    let copied = Tests::copy();
    let test = "real_frames::sums_are_exact_without_super_frames";
    let finished = Process::spawn("tests of nobody", &mut copied.run(test)).wait(5 * SOON);
    assert!(finished.stdout.contains("test result: ok. 1 passed"), "{}{}", finished.stdout, finished.stderr);
    assert!(!finished.stderr.contains("SKIPPED"), "{}", finished.stderr);
    assert_eq!(copied.running(), 0);
}

#[test]
fn killed_tests_leave_nothing_behind() {
    if !nobody_and("killed_tests_leave_nothing_behind", REASON, &[]) {
        return;
    }
    let _alone = alone();
    let copied = Tests::copy();
    let mut tests =
        Process::spawn("tests of nobody", &mut copied.run("faults::a_pause_of_the_switch_expels_no_worker"));
    let begin = Instant::now();
    // The processes are the test outside and inside the namespace, the daemon and its workers.
    while copied.running() < 6 {
        assert!(tests.is_running() && begin.elapsed() < 2 * SOON, "{}{}", tests.stdout(), tests.stderr());
        sleep(Duration::from_millis(1));
    }
    tests.stop(Signal::KILL, SOON);
    let begin = Instant::now();
    while copied.running() > 0 {
        assert!(begin.elapsed() < SOON, "{} processes are left", copied.running());
        sleep(Duration::from_millis(10));
    }
}
