//! Checks that the machine fulfils the requirements of a test, and a visible report of each test that is skipped
//! because the machine does not fulfil them.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use iswitch_lab::isolation;
use iswitch_lab::process::find_program;

use crate::isolated;
use crate::netns::Namespace;
use crate::process::command_of_nobody;

/// Environment variable that makes a test fail instead of being skipped.
pub const REQUIRE_VARIABLE: &str = "ISWITCH_REQUIRE_ALL_TESTS";

/// Returns whether the test may run in this process. The test needs network namespaces and the given programs.
///
/// Network namespaces are available to root, and to processes inside a user namespace. For an ordinary user, the test
/// (or the program, if the caller is not a test) is run again in such a namespace; once it has passed, this function
/// returns false and the caller returns. If a requirement is missing, the function reports it on stderr and also
/// returns false.
///
/// # Panics
/// Panics if the test fails inside the namespace, or if a requirement is missing and [`REQUIRE_VARIABLE`] is set.
pub fn networks_and(test: &str, programs: &[&str]) -> bool {
    match networks() {
        Networks::Here => with_programs(test, None, programs),
        Networks::Inside => {
            if with_programs(test, None, programs) {
                isolated::run_again();
            }
            false
        }
        Networks::Missing(missing) => with_programs(test, Some(missing.clone()), programs),
    }
}

/// Returns whether the test may run. The test needs network namespaces, the given programs and, for the given reason,
/// root on this machine, which a user namespace does not provide. `testbench/ROOT.md` lists these tests.
///
/// # Panics
/// Panics if a requirement is missing and [`REQUIRE_VARIABLE`] is set.
pub fn root_and(test: &str, reason: &str, programs: &[&str]) -> bool {
    let missing = match networks() {
        _ if !is_root() => Some(format!("root ({reason})")),
        Networks::Missing(missing) => Some(missing.clone()),
        Networks::Here | Networks::Inside => None,
    };
    with_programs(test, missing, programs)
}

/// Returns whether the test may run. The test starts programs that create their own namespaces, and needs the given
/// programs.
///
/// # Panics
/// Panics if a requirement is missing and [`REQUIRE_VARIABLE`] is set.
pub fn isolation_and(test: &str, programs: &[&str]) -> bool {
    with_programs(test, isolation::check().err().map(|error| error.to_string()), programs)
}

/// Returns whether the test may run. The test has the requirements of [`root_and`]. In addition, ordinary users must be
/// able to create user namespaces, because the test changes to such a user.
///
/// # Panics
/// Panics if a requirement is missing and [`REQUIRE_VARIABLE`] is set.
pub fn nobody_and(test: &str, reason: &str, programs: &[&str]) -> bool {
    if is_root() && !has_nobody_namespaces() {
        return with_programs(test, Some("user namespaces for ordinary users".to_owned()), programs);
    }
    root_and(test, reason, programs)
}

/// Returns whether this process is root and ordinary users can create user namespaces.
pub fn has_nobody_namespaces() -> bool {
    let mut unshare = command_of_nobody("unshare");
    unshare.args(["--user", "--map-current-user", "--net", "--", "true"]);
    is_root() && unshare.output().is_ok_and(|output| output.status.success())
}

/// Returns whether this process is root on the machine, not merely root inside a user namespace.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root() && !isolation::is_inside()
}

/// Returns whether the test may run. The test needs the given programs but no privilege.
///
/// # Panics
/// Panics if a requirement is missing and [`REQUIRE_VARIABLE`] is set.
pub fn programs(test: &str, programs: &[&str]) -> bool {
    with_programs(test, None, programs)
}

/// Returns whether the test may run. The test has the requirements of [`root_and`], and also needs a kernel with AF_XDP
/// sockets.
///
/// # Panics
/// Panics if a requirement is missing and [`REQUIRE_VARIABLE`] is set.
pub fn root_xdp_and(test: &str, programs: &[&str]) -> bool {
    const REASON: &str = "the kernel does not load XDP programs in user namespaces";
    if is_root() && !has_xdp() {
        return with_programs(test, Some("a kernel with AF_XDP sockets".to_owned()), programs);
    }
    root_and(test, REASON, programs)
}

/// Returns whether the kernel supports AF_XDP sockets and this process may load the XDP programs they need.
pub fn has_xdp() -> bool {
    is_root()
        && rustix::net::socket(rustix::net::AddressFamily::XDP, rustix::net::SocketType::RAW, None).is_ok()
}

/// Returns whether the test may run. The test needs the header files of ns-3 and nlohmann-json and the given
/// programs, but no privilege.
///
/// # Panics
/// Panics if a requirement is missing and [`REQUIRE_VARIABLE`] is set.
pub fn ns3_and(test: &str, programs: &[&str]) -> bool {
    const HEADERS: [(&str, &str); 2] =
        [("ns3/point-to-point-module.h", "libns3-dev"), ("nlohmann/json.hpp", "nlohmann-json3-dev")];
    let missing = HEADERS.into_iter().find(|(header, _)| !Path::new("/usr/include").join(header).exists());
    let missing = missing.map(|(header, package)| format!("{header} (apt install {package})"));
    with_programs(test, missing, programs)
}

/// Returns the value in `found` if the test may run. The test needs that value and the given programs, but no
/// privilege. An error in `found` names the missing requirement.
///
/// # Panics
/// Panics if a requirement is missing and [`REQUIRE_VARIABLE`] is set.
pub fn found_and<T>(test: &str, found: Result<T, String>, programs: &[&str]) -> Option<T> {
    let (found, missing) = match found {
        Ok(found) => (Some(found), None),
        Err(missing) => (None, Some(missing)),
    };
    if with_programs(test, missing, programs) { found } else { None }
}

/// Returns whether the test may run. The test needs the given Python interpreter with a module that pip installs as
/// `package`.
///
/// # Panics
/// Panics if a requirement is missing and [`REQUIRE_VARIABLE`] is set.
pub fn python_module(test: &str, python: &str, module: &str, package: &str) -> bool {
    let found = Command::new(python).args(["-c", &format!("import {module}")]).output();
    let is_there = found.is_ok_and(|output| output.status.success());
    with_programs(test, (!is_there).then(|| format!("{python} with {package} (pip install {package})")), &[])
}

fn with_programs(test: &str, missing: Option<String>, programs: &[&str]) -> bool {
    let programs = programs.iter().filter(|name| find_program(name).is_none());
    let missing: Vec<_> =
        missing.into_iter().chain(programs.map(|name| format!("the program {name}"))).collect();
    if missing.is_empty() {
        return true;
    }
    let line = format!("SKIPPED {test}: needs {}", missing.join(", "));
    assert!(std::env::var_os(REQUIRE_VARIABLE).is_none(), "{line}");
    report(&line);
    false
}

/// Writes a line to stderr, bypassing the output capture of the test harness.
pub fn report(line: &str) {
    // A single call writes the line with its line break, because other tests write too. A failure is ignored: there
    // is no other channel on which to report it.
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Where the tests of this process can use network namespaces.
enum Networks {
    /// In this process.
    Here,
    /// Only in a separate process, which runs inside a user namespace.
    Inside,
    /// Network namespaces are not available; the value names the missing requirement.
    Missing(String),
}

/// Determines, once per process, where network namespaces can be created. The function tries to create one, because
/// root privileges alone are not sufficient inside a container.
fn networks() -> &'static Networks {
    static FOUND: OnceLock<Networks> = OnceLock::new();
    FOUND.get_or_init(|| {
        let missing = ["ip", "nft", "ping", "setpriv"].into_iter().find(|name| find_program(name).is_none());
        if let Some(name) = missing {
            return Networks::Missing(format!("the program {name}"));
        }
        if isolation::is_inside() {
            let prepared = isolation::prepare().and_then(|_| Namespace::try_new("probe"));
            return prepared.map_or_else(|error| Networks::Missing(error.to_string()), |_| Networks::Here);
        }
        if is_root() && Namespace::try_new("probe").is_ok() {
            return Networks::Here;
        }
        isolation::check().map_or_else(|error| Networks::Missing(error.to_string()), |()| Networks::Inside)
    })
}

/// Guard of a test that needs the machine to itself: no other test that takes a guard runs at the same time.
#[derive(Debug)]
pub struct Alone {
    _threads: RwLockWriteGuard<'static, ()>,
    /// Program file of this process; it stays locked until it is closed.
    _program: File,
}

/// Guard of a test that may run beside most other tests, but not beside one that holds [`Alone`].
#[derive(Debug)]
pub struct Together {
    _threads: RwLockReadGuard<'static, ()>,
    /// Program file of this process; it stays locked until it is closed.
    _program: File,
}

/// Lock between the test threads of this process. A thread that waits for [`Alone`] is not starved.
static THREADS: RwLock<()> = RwLock::new(());

/// Waits until no other test holds [`Alone`] or [`Together`]. Use this in tests that compare times, count events that
/// other tests would disturb, or need the whole machine. The other tests may be threads of this process or processes
/// of the same program.
///
/// # Panics
/// Panics if the executable of this program cannot be locked.
pub fn alone() -> Alone {
    let threads = THREADS.write().unwrap_or_else(PoisonError::into_inner);
    let program = own_file();
    program.lock().expect("this program's file must be lockable");
    Alone { _threads: threads, _program: program }
}

/// Waits until no test holds [`Alone`]. Use this in tests with real networks, which spend most of their time waiting
/// for a late packet, the expiry of a lease or the start of a process.
///
/// # Panics
/// Panics if the executable of this program cannot be locked.
pub fn together() -> Together {
    let threads = THREADS.read().unwrap_or_else(PoisonError::into_inner);
    let program = own_file();
    program.lock_shared().expect("this program's file must be lockable");
    Together { _threads: threads, _program: program }
}

/// Opens the executable of this process through `/proc`, not by its path, because a test that builds the workspace may
/// have replaced the file at that path.
fn own_file() -> File {
    File::open("/proc/self/exe").expect("this program's file must be readable")
}
