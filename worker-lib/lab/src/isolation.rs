//! Isolation of a process and its descendants in namespaces, without root privileges.
//!
//! ```text
//! caller
//! `- unshare    new user (unless root), mount, network, IPC and PID namespaces
//!    `- program    process 1 in them: calls prepare(), then creates networks with `ip netns`
//! ```
//!
//! Inside the namespaces, the user keeps their user id. They have all capabilities over the resources that the
//! namespaces own, and none over any other resource. If the caller exits or is killed, even by SIGKILL, the kernel
//! kills `unshare` and process 1, and thereby all other processes inside. The namespaces disappear when the last of
//! these processes has exited.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::mount::{MountFlags, mount, mount_bind_recursive};

use crate::LabError;
use crate::process::{command, find_program, run};

/// Environment variable that is set for all processes inside the namespaces.
const VARIABLE: &str = "ISWITCH_ISOLATED";
/// File that contains the name of the mount namespace for which [`prepare`] has been called.
const MARK: &str = "/run/iswitch-isolated";
/// Entries of `/run` that are hidden inside the namespaces: the names of network namespaces, the mark of an outer
/// namespace, and the control socket of a daemon outside. A daemon inside uses the same path for its own socket.
const HIDDEN: [&str; 3] = ["netns", "iswitch-isolated", "iswitchd.sock"];
/// Programs that are required to create networks, with their Debian packages.
const PROGRAMS: [(&str, &str); 3] =
    [("ip", "iproute2"), ("setpriv", "util-linux"), ("unshare", "util-linux")];
/// System settings that deny user namespaces to ordinary users, each with the value that does so and the suggested fix.
const SETTINGS: [(&str, &str, &str); 3] = [
    (
        "kernel/unprivileged_userns_clone",
        "0",
        "to allow user namespaces, run `sysctl -w kernel.unprivileged_userns_clone=1` as root",
    ),
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "to allow user namespaces, run `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0` as root, or add an \
         AppArmor profile for /usr/bin/unshare with the rule `userns,`",
    ),
    (
        "user/max_user_namespaces",
        "0",
        "to allow user namespaces, run `sysctl -w user.max_user_namespaces=10000` as root",
    ),
];
const OTHER_REMEDY: &str =
    "run this program as root, or outside the container whose profile forbids `unshare`";

/// Returns a command that runs a program in new namespaces. The program must call [`prepare`] when it starts.
pub fn command_inside(program: impl AsRef<OsStr>) -> Command {
    let mut command = unshare();
    command.arg("--").arg(program).env(VARIABLE, "1");
    command
}

fn unshare() -> Command {
    let mut command = command("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-current-user", "--keep-caps"]);
    }
    command.args([
        "--mount",
        "--propagation",
        "private",
        "--net",
        "--ipc",
        "--pid",
        "--fork",
        "--kill-child=KILL",
    ]);
    command
}

/// Returns whether this process or one of its ancestors was started by [`command_inside`].
pub fn is_inside() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// Checks that [`command_inside`] works on this machine.
///
/// # Errors
/// Returns an error that states what is missing and how to fix it.
pub fn check() -> Result<(), LabError> {
    let missing = PROGRAMS.into_iter().find(|(name, _)| find_program(name).is_none());
    if let Some((program, package)) = missing {
        return Err(LabError::Program { program, package });
    }
    let error = match run(unshare().args(["--mount-proc", "--", "true"])) {
        Ok(_) => return Ok(()),
        Err(LabError::Command { reason, .. }) => reason,
        Err(error) => return Err(error),
    };
    let reason = error.lines().last().unwrap_or_default().to_owned();
    let setting = |name: &str| fs::read_to_string(Path::new("/proc/sys").join(name)).ok();
    Err(LabError::Namespaces { reason, remedy: remedy(setting).to_owned() })
}

/// Returns the suggested fix if a setting of the system forbids namespaces. `setting` reads a setting.
fn remedy(setting: impl Fn(&str) -> Option<String>) -> &'static str {
    let forbids =
        |(name, value, _): &&(&str, &str, &str)| setting(name).is_some_and(|text| text.trim() == *value);
    SETTINGS.iter().find(forbids).map_or(OTHER_REMEDY, |(_, _, remedy)| remedy)
}

/// Makes the namespaces of this process usable: afterwards, `/proc` shows the processes inside, `/run/netns` is empty
/// and private, and the loopback interface is up. Has no effect if the namespaces have already been prepared.
///
/// # Errors
/// Returns the errors of system calls.
pub fn prepare() -> Result<Outside, LabError> {
    // Open the outer `/proc` before the new one hides it.
    let outside = Outside::open().map_err(LabError::system("cannot open /proc"))?;
    let namespace =
        fs::read_link("/proc/self/ns/mnt").map_err(LabError::system("cannot read /proc/self/ns/mnt"))?;
    let namespace = namespace.to_string_lossy();
    if fs::read_to_string(MARK).is_ok_and(|mark| mark == namespace) {
        return Ok(outside);
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None).map_err(LabError::system("cannot mount /proc"))?;
    replace_run().map_err(LabError::system("cannot mount /run"))?;
    run(command("ip").args(["link", "set", "lo", "up"]))?;
    fs::write(MARK, namespace.as_bytes()).map_err(LabError::system(MARK))?;
    Ok(outside)
}

/// Replaces `/run` with a writable directory that contains the entries of `/run` except those in [`HIDDEN`].
fn replace_run() -> io::Result<()> {
    let run = Path::new("/run");
    let old = File::open(run)?;
    let old = PathBuf::from(format!("/proc/self/fd/{}", old.as_raw_fd()));
    let entries = fs::read_dir(&old)?.collect::<io::Result<Vec<_>>>()?;
    mount("tmpfs", run, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, Some(c"mode=755"))?;
    for entry in entries {
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        let (from, to) = (old.join(&name), run.join(&name));
        if HIDDEN.iter().any(|hidden| name == *hidden) {
            continue;
        }
        if kind.is_symlink() {
            symlink(fs::read_link(&from)?, &to)?;
            continue;
        }
        if kind.is_dir() {
            fs::create_dir(&to)?;
        } else {
            File::create(&to)?;
        }
        // An entry remains empty if it disappears in the meantime or if the kernel refuses to mount it; no network
        // needs such an entry.
        let _ = mount_bind_recursive(&from, &to);
    }
    fs::create_dir(run.join("netns"))
}

/// Lookup of the ids that processes have in the outer PID namespace, that is, outside the isolation.
#[derive(Debug)]
pub struct Outside {
    /// `/proc` of the outer PID namespace.
    proc: File,
    own: u32,
}

impl Outside {
    fn open() -> io::Result<Self> {
        let own = fs::read_link("/proc/self")?.to_string_lossy().parse().map_err(io::Error::other)?;
        Ok(Self { proc: File::open("/proc")?, own })
    }

    /// Returns the process id that a child of this process has in the outer PID namespace.
    pub fn id_of(&self, child: u32) -> Option<u32> {
        let proc = PathBuf::from(format!("/proc/self/fd/{}", self.proc.as_raw_fd()));
        let entries = fs::read_dir(&proc).ok()?.flatten();
        let mut ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        ids.find(|id| {
            let status = fs::read_to_string(proc.join(id.to_string()).join("status")).unwrap_or_default();
            let last_of = |field: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(field));
                line.and_then(|line| line.split_whitespace().last()?.parse().ok())
            };
            last_of("PPid:") == Some(self.own) && last_of("NSpid:") == Some(child)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_that_forbids_isolation_is_reported() {
        let with = |name: &'static str, value: &'static str| {
            remedy(move |asked| (asked == name).then(|| format!("{value}\n")))
        };
        for (name, value, expected) in SETTINGS {
            assert_eq!(with(name, value), expected);
        }
        assert_eq!(with("user/max_user_namespaces", "96365"), OTHER_REMEDY);
        assert_eq!(remedy(|_| None), OTHER_REMEDY);
    }

    #[test]
    fn a_process_without_a_pid_namespace_has_one_id() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        assert_eq!(Outside::open().unwrap().id_of(child.id()), Some(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
