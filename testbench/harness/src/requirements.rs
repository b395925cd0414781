//! What a test needs of the machine, and the loud line of a test that does not find it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::netns::Namespace;

/// Where this is set, a test that would skip fails instead.
pub const REQUIRE_VARIABLE: &str = "ISWITCH_REQUIRE_ALL_TESTS";

/// Whether the test may run: it needs network namespaces, which only root can make, and these programs.
///
/// Otherwise says on stderr what is missing.
///
/// # Panics
/// If something is missing, and [`REQUIRE_VARIABLE`] is set.
pub fn root_and(test: &str, programs: &[&str]) -> bool {
    let namespaces = namespaces().clone().err();
    with_programs(test, namespaces, programs)
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
    let namespaces = namespaces().clone().err();
    let missing = namespaces.or_else(|| (!has_xdp()).then(|| "a kernel with AF_XDP sockets".to_owned()));
    with_programs(test, missing, programs)
}

/// Whether the kernel has AF_XDP sockets, and we may use them.
pub fn has_xdp() -> bool {
    rustix::net::socket(rustix::net::AddressFamily::XDP, rustix::net::SocketType::RAW, None).is_ok()
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

/// Tried once: being root does not suffice inside a container.
fn namespaces() -> &'static Result<(), String> {
    static OUTCOME: OnceLock<Result<(), String>> = OnceLock::new();
    OUTCOME.get_or_init(|| {
        if !rustix::process::geteuid().is_root() {
            return Err("root".to_owned());
        }
        let missing = ["ip", "nft", "ping", "setpriv"].into_iter().find(|name| find_program(name).is_none());
        if let Some(name) = missing {
            return Err(format!("the program {name}"));
        }
        Namespace::try_new("probe").map(|_| ()).map_err(|error| format!("network namespaces ({error})"))
    })
}

/// Where a program is.
fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok() && file.is_file()
}

/// Held by each test that loads the machine: together they would only be slower, and report worthless times.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
