//! Privileges that the running daemon drops once all resources are open, so that a bug in the packet path can do
//! little harm.
//!
//! The order is as follows. First the daemon drops root and all capabilities, with no way to regain them
//! ([`drop_privileges`]), then access to files and TCP (Landlock). Both happen while the process has a single
//! thread, because they apply to the calling thread and to the threads that it starts later. Finally it blocks, for
//! all threads, the system calls that the daemon does not make ([`filter_system_calls`]). Open descriptors stay
//! usable: a packet socket keeps working without capabilities. Operations that still need privileges are left to the
//! [monitor](crate::monitor).

mod system_calls;

use iswitch_sandbox::{FileRules, Landlock};
use nix::unistd::{Gid, Uid, User, setgroups, setresgid, setresuid};

/// Users to switch to when the daemon is started as root; the first that exists is used.
const USUAL_USERS: [&str; 2] = ["iswitchd", "nobody"];
/// Environment variable with the socket for systemd notifications: a path, or an abstract name after `@`.
const NOTIFY_SOCKET: &str = "NOTIFY_SOCKET";

/// Reason why the daemon cannot drop its privileges.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The user does not exist.
    #[error("user is {0:?}, expected an existing user of this system")]
    NoUser(String),
    /// The daemon was not started as root, so it cannot change to the given user.
    #[error(
        "user is {0:?}, expected the user that starts the daemon; to switch to another user, start the daemon as root"
    )]
    NotRoot(String),
    /// None of the default users exists.
    #[error("there is no user {}; choose another user with --user", USUAL_USERS.join(" or "))]
    Nobody,
    /// A system call failed.
    #[error(transparent)]
    System(#[from] iswitch_sandbox::SandboxError),
}

fn system(call: &'static str) -> impl FnOnce(nix::Error) -> SandboxError {
    move |error| iswitch_sandbox::SandboxError::of(call)(error).into()
}

/// User to which the daemon switches.
#[derive(Clone, Debug)]
pub struct Account {
    name: String,
    uid: Uid,
    gid: Gid,
}

impl Account {
    /// Returns the user with this name or, if no name is given, the first default user that exists. Returns `None` if
    /// the daemon does not have to change its user.
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

/// Drops root, all capabilities, and access to files and TCP. The process must have a single thread.
///
/// # Errors
/// Fails if the process would keep privileges. A kernel without Landlock only causes a warning.
pub fn drop_privileges(account: Option<&Account>) -> Result<(), SandboxError> {
    iswitch_sandbox::drop_privileges(|| {
        let Some(Account { uid, gid, .. }) = account else { return Ok(()) };
        setgroups(&[]).map_err(system("drop the supplementary groups"))?;
        setresgid(*gid, *gid, *gid).map_err(system("change the group"))?;
        setresuid(*uid, *uid, *uid).map_err(system("change the user"))
    })?;
    let user = account.map_or("unchanged", |account| &account.name);
    tracing::info!(user, "privileges dropped");
    drop_file_access();
    Ok(())
}

fn drop_file_access() {
    let mut rules = FileRules::default();
    if std::env::var_os(NOTIFY_SOCKET).is_some_and(|name| name.as_encoded_bytes().starts_with(b"@")) {
        rules = rules.abstract_sockets();
    }
    match rules.restrict() {
        Landlock::Enforced { kernel } => tracing::info!(?kernel, "files and TCP blocked by Landlock"),
        Landlock::Missing { reason } => {
            tracing::warn!(reason, "Landlock is not available: the daemon retains access to files");
        }
    }
}

/// Installs the filter that ends the process, with a message, if any thread makes a system call that the daemon does
/// not need.
///
/// A kernel without seccomp only causes a warning.
pub fn filter_system_calls() {
    let notifies = std::env::var_os(NOTIFY_SOCKET).is_some();
    match system_calls::list(notifies).filter("iswitchd") {
        Ok(allowed) => tracing::info!(allowed, "system calls filtered by seccomp"),
        Err(error) => {
            tracing::warn!(%error, "seccomp is not available: the daemon can still make any system call");
        }
    }
}
