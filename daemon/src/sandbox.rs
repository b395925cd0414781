//! What a running daemon gives up, once everything that needs it is open: a bug in the packet path is then a
//! bug of a process that may do next to nothing.
//!
//! In this order: root, capabilities and the hope to get any back ([`give_up_privileges`]); files and TCP
//! (Landlock), both while there is one thread, because threads inherit these and keep them apart; then, for
//! all threads, the system calls that the daemon does not make ([`filter_system_calls`]). Descriptors that
//! are open stay usable: a packet socket goes on without capabilities. What still needs privilege is done by
//! the [monitor](crate::monitor).

mod system_calls;
mod violation;

use std::io;

use landlock::{ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetStatus, Scope};
use nix::unistd::{Gid, Uid, User, setgroups, setresgid, setresuid};
use rustix::io::Errno;
use rustix::process::{parent_process_death_signal, set_parent_process_death_signal};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

use system_calls::Filters;

/// Whom a daemon becomes that is started as root: the first of these users that there is.
const USUAL_USERS: [&str; 2] = ["iswitchd", "nobody"];
/// What of Landlock is asked for; a kernel that knows less enforces that.
const LANDLOCK_ABI: ABI = ABI::V6;
/// Where systemd wants to be told that the daemon is ready; a path, or an abstract name after `@`.
const NOTIFY_SOCKET: &str = "NOTIFY_SOCKET";

/// Why the daemon cannot give up what it should.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// There is no such user.
    #[error("user is {0:?}, expected a user of this system")]
    NoUser(String),
    /// Only root can become another user.
    #[error("user is {0:?}, expected the user that the daemon is started by, or to be started as root")]
    NotRoot(String),
    /// There is nobody to become.
    #[error("there is no user {}: give one with --user", USUAL_USERS.join(" or "))]
    Nobody,
    /// A system call failed.
    #[error("cannot {call}: {source}")]
    System {
        /// What was tried.
        call: &'static str,
        /// Why.
        source: io::Error,
    },
}

fn system<E: Into<io::Error>>(call: &'static str) -> impl FnOnce(E) -> SandboxError {
    move |source| SandboxError::System { call, source: source.into() }
}

/// Whom to become.
#[derive(Clone, Debug)]
pub struct Account {
    name: String,
    uid: Uid,
    gid: Gid,
}

impl Account {
    /// The user of that name, or the usual one. `None` for a daemon that is nobody special already.
    pub fn choose(name: Option<&str>) -> Result<Option<Self>, SandboxError> {
        let find = |name: &str| User::from_name(name).map_err(system("look up the user"));
        let is_root = Uid::effective().is_root();
        let Some(name) = name else {
            if !is_root {
                return Ok(None);
            }
            for name in USUAL_USERS {
                if let Some(user) = find(name)? {
                    return Ok(Some(user.into()));
                }
            }
            return Err(SandboxError::Nobody);
        };
        let user = find(name)?.ok_or_else(|| SandboxError::NoUser(name.to_owned()))?;
        if is_root {
            Ok(Some(user.into()))
        } else if user.uid == Uid::effective() {
            Ok(None)
        } else {
            Err(SandboxError::NotRoot(name.to_owned()))
        }
    }
}

impl From<User> for Account {
    fn from(user: User) -> Self {
        Self { name: user.name, uid: user.uid, gid: user.gid }
    }
}

/// Gives up root, all capabilities, files and TCP. The process has one thread.
///
/// # Errors
/// If the process would keep privileges. A kernel without Landlock is only warned about.
pub fn give_up_privileges(account: Option<&Account>) -> Result<(), SandboxError> {
    // Becoming another user clears the signal that ends this process with its parent.
    let death_signal = parent_process_death_signal().map_err(system("read the parent's death signal"))?;
    empty_bounding_set();
    clear_ambient_capability_set().map_err(system("clear the ambient capabilities"))?;
    if let Some(Account { uid, gid, .. }) = account {
        setgroups(&[]).map_err(system("leave all groups"))?;
        setresgid(*gid, *gid, *gid).map_err(system("change the group"))?;
        setresuid(*uid, *uid, *uid).map_err(system("change the user"))?;
    }
    let none = CapabilitySet::empty();
    let no_capabilities = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, no_capabilities).map_err(system("give up the capabilities"))?;
    set_no_new_privs(true).map_err(system("give up new privileges"))?;
    set_parent_process_death_signal(death_signal).map_err(system("restore the parent's death signal"))?;
    let left = capabilities(None).map_err(system("read the capabilities"))?;
    if !(left.effective | left.permitted | left.inheritable).is_empty() {
        return Err(system("give up the capabilities")(Errno::PERM));
    }
    let user = account.map_or("unchanged", |account| &account.name);
    tracing::info!(user, "privileges given up");
    give_up_files();
    Ok(())
}

/// Without `CAP_SETPCAP` the set stays, but is of no use: no program that is started gets anything of it.
fn empty_bounding_set() {
    for capability in CapabilitySet::all().iter() {
        if capability_is_in_bounding_set(capability).unwrap_or(false)
            && let Err(error) = remove_capability_from_bounding_set(capability)
        {
            tracing::debug!(%error, "the capability bounding set stays");
            return;
        }
    }
}

fn give_up_files() {
    let status = || {
        let mut scopes = Scope::from_all(LANDLOCK_ABI);
        if std::env::var_os(NOTIFY_SOCKET).is_some_and(|name| name.as_encoded_bytes().starts_with(b"@")) {
            scopes.remove(Scope::AbstractUnixSocket);
        }
        let rules = Ruleset::default()
            .handle_access(AccessFs::from_all(LANDLOCK_ABI))?
            .handle_access(AccessNet::from_all(LANDLOCK_ABI))?
            .scope(scopes)?;
        rules.create()?.restrict_self()
    };
    match status() {
        Ok(status) if status.ruleset == RulesetStatus::NotEnforced => {
            tracing::warn!(kernel = ?status.landlock, "no Landlock: the daemon could still open files");
        }
        Ok(status) => tracing::info!(kernel = ?status.landlock, "Landlock: no files, no TCP"),
        Err(error) => tracing::warn!(%error, "no Landlock: the daemon could still open files"),
    }
}

/// Ends the process, and says why, if any of its threads makes a system call that the daemon has no use for.
///
/// A kernel without seccomp is only warned about.
pub fn filter_system_calls() {
    let notifies = std::env::var_os(NOTIFY_SOCKET).is_some();
    let outcome = Filters::compile(notifies).and_then(|filters| {
        violation::report_before_death()?;
        filters.install()
    });
    match outcome {
        Ok(allowed) => tracing::info!(allowed, "system calls filtered"),
        Err(error) => tracing::warn!(%error, "no seccomp: the daemon could still make any system call"),
    }
}
