//! What a test needs of the machine, and the loud line of a test that does not find it.

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

/// Where this is set, a test that would skip fails instead.
pub const REQUIRE_VARIABLE: &str = "ISWITCH_REQUIRE_ALL_TESTS";

/// Whether the test may run in this process: it needs network namespaces and these programs.
///
/// Root has network namespaces, and what an ordinary user has run in a user namespace. For an ordinary user the test,
/// or the program if the caller is none of tests, is run again in such a namespace, and this returns false once it has
/// passed; the caller returns then. If something is missing, says on stderr what, and returns false too.
///
/// # Panics
/// If the test fails there, or if something is missing and [`REQUIRE_VARIABLE`] is set.
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

/// Whether the test may run: it needs network namespaces, these programs, and for a reason the root of this machine,
/// which a user namespace has not. The tests that do are listed in `testbench/ROOT.md`.
///
/// # Panics
/// If something is missing, and [`REQUIRE_VARIABLE`] is set.
pub fn root_and(test: &str, reason: &str, programs: &[&str]) -> bool {
    let missing = match networks() {
        _ if !is_root() => Some(format!("root ({reason})")),
        Networks::Missing(missing) => Some(missing.clone()),
        Networks::Here | Networks::Inside => None,
    };
    with_programs(test, missing, programs)
}

/// Whether the test may run: it starts programs that make namespaces of their own, and needs these programs.
///
/// # Panics
/// If something is missing, and [`REQUIRE_VARIABLE`] is set.
pub fn isolation_and(test: &str, programs: &[&str]) -> bool {
    with_programs(test, isolation::check().err().map(|error| error.to_string()), programs)
}

/// Whether the test may run: it needs root, to become an ordinary user who may have user namespaces, and for a reason
/// that [`root_and`] shows.
///
/// # Panics
/// If something is missing, and [`REQUIRE_VARIABLE`] is set.
pub fn nobody_and(test: &str, reason: &str, programs: &[&str]) -> bool {
    if is_root() && !has_nobody_namespaces() {
        return with_programs(test, Some("user namespaces for ordinary users".to_owned()), programs);
    }
    root_and(test, reason, programs)
}

/// Whether this process is root, and ordinary users may have user namespaces.
pub fn has_nobody_namespaces() -> bool {
    let mut unshare = command_of_nobody("unshare");
    unshare.args(["--user", "--map-current-user", "--net", "--", "true"]);
    is_root() && unshare.output().is_ok_and(|output| output.status.success())
}

/// Whether this process is root on this machine, not only in a user namespace.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root() && !isolation::is_inside()
}

/// Whether the test may run: it needs these programs, but no privilege.
///
/// # Panics
/// If something is missing, and [`REQUIRE_VARIABLE`] is set.
pub fn programs(test: &str, programs: &[&str]) -> bool {
    with_programs(test, None, programs)
}

/// Whether the test may run: as [`root_and`], with a kernel that has AF_XDP sockets.
///
/// # Panics
/// If something is missing, and [`REQUIRE_VARIABLE`] is set.
pub fn root_xdp_and(test: &str, programs: &[&str]) -> bool {
    const REASON: &str = "the kernel loads XDP programs for no user namespace";
    if is_root() && !has_xdp() {
        return with_programs(test, Some("a kernel with AF_XDP sockets".to_owned()), programs);
    }
    root_and(test, REASON, programs)
}

/// Whether the kernel has AF_XDP sockets, and we may load the programs that they need.
pub fn has_xdp() -> bool {
    is_root()
        && rustix::net::socket(rustix::net::AddressFamily::XDP, rustix::net::SocketType::RAW, None).is_ok()
}

/// Whether the test may run: it needs ns-3's and nlohmann's header files, and these programs, but no privilege.
///
/// # Panics
/// If something is missing, and [`REQUIRE_VARIABLE`] is set.
pub fn ns3_and(test: &str, programs: &[&str]) -> bool {
    const HEADERS: [(&str, &str); 2] =
        [("ns3/point-to-point-module.h", "libns3-dev"), ("nlohmann/json.hpp", "nlohmann-json3-dev")];
    let missing = HEADERS.into_iter().find(|(header, _)| !Path::new("/usr/include").join(header).exists());
    let missing = missing.map(|(header, package)| format!("{header} (apt install {package})"));
    with_programs(test, missing, programs)
}

/// What the caller has found, if the test may run: it needs that and these programs, but no privilege. The error of
/// `found` says what is missing.
///
/// # Panics
/// If something is missing, and [`REQUIRE_VARIABLE`] is set.
pub fn found_and<T>(test: &str, found: Result<T, String>, programs: &[&str]) -> Option<T> {
    let (found, missing) = match found {
        Ok(found) => (Some(found), None),
        Err(missing) => (None, Some(missing)),
    };
    if with_programs(test, missing, programs) { found } else { None }
}

/// Whether the test may run: it needs this Python with a module, which pip installs as `package`.
///
/// # Panics
/// If something is missing, and [`REQUIRE_VARIABLE`] is set.
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

/// Writes a line to stderr that passes through the capture of the test harness.
pub fn report(line: &str) {
    // One call for the line and its end: other tests write too. Nobody is left to tell if it fails.
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Where this process's tests have networks.
enum Networks {
    /// Here.
    Here,
    /// In a process of its own in a user namespace.
    Inside,
    /// Nowhere: this is missing.
    Missing(String),
}

/// Tried once: being root does not suffice inside a container.
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

/// Held by a test while no other one that asks may load the machine.
#[derive(Debug)]
pub struct Alone {
    _threads: RwLockWriteGuard<'static, ()>,
    /// Locked until it is closed.
    _program: File,
}

/// Held by a test that mostly waits.
#[derive(Debug)]
pub struct Together {
    _threads: RwLockReadGuard<'static, ()>,
    /// Locked until it is closed.
    _program: File,
}

/// Orders the threads of this process, and lets none that wants to be alone wait for ever.
static THREADS: RwLock<()> = RwLock::new(());

/// Waits until no other test holds [`Alone`] or [`Together`]: for tests that compare times, count what others would
/// disturb, or need the whole machine. The others may be threads of this process or processes of the same program.
///
/// # Panics
/// If the file of this program cannot be locked.
pub fn alone() -> Alone {
    let threads = THREADS.write().unwrap_or_else(PoisonError::into_inner);
    let program = own_file();
    program.lock().expect("a lock on this program");
    Alone { _threads: threads, _program: program }
}

/// Waits until no test holds [`Alone`]: for tests of real networks, most of whose time goes by while a packet is
/// late, a lease expires or a process starts.
///
/// # Panics
/// If the file of this program cannot be locked.
pub fn together() -> Together {
    let threads = THREADS.read().unwrap_or_else(PoisonError::into_inner);
    let program = own_file();
    program.lock_shared().expect("a lock on this program");
    Together { _threads: threads, _program: program }
}

/// Not by its path: a test that builds the workspace may have replaced the file.
fn own_file() -> File {
    File::open("/proc/self/exe").expect("this program")
}
