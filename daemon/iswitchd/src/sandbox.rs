//! What a running daemon gives up, once everything that needs it is open: a bug in the packet path is then a
//! bug of a process that may do next to nothing.
//!
//! In this order: root, capabilities and the hope to get any back ([`give_up_privileges`]); files and TCP
//! (Landlock), both while there is one thread, because threads inherit these and keep them apart; then, for
//! all threads, the system calls that the daemon does not make ([`filter_system_calls`]). Descriptors that
//! are open stay usable: a packet socket goes on without capabilities. What still needs privilege is done by
//! the [monitor](crate::monitor).

mod system_calls;

use iswitch_sandbox::{FileRules, Landlock};
use nix::unistd::{Gid, Uid, User, setgroups, setresgid, setresuid};

/// Whom a daemon becomes that is started as root: the first of these users that there is.
const USUAL_USERS: [&str; 2] = ["iswitchd", "nobody"];
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
    #[error(transparent)]
    System(#[from] iswitch_sandbox::SandboxError),
}

fn system(call: &'static str) -> impl FnOnce(nix::Error) -> SandboxError {
    move |error| iswitch_sandbox::SandboxError::of(call)(error).into()
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
    iswitch_sandbox::give_up_privileges(|| {
        let Some(Account { uid, gid, .. }) = account else { return Ok(()) };
        setgroups(&[]).map_err(system("leave all groups"))?;
        setresgid(*gid, *gid, *gid).map_err(system("change the group"))?;
        setresuid(*uid, *uid, *uid).map_err(system("change the user"))
    })?;
    let user = account.map_or("unchanged", |account| &account.name);
    tracing::info!(user, "privileges given up");
    give_up_files();
    Ok(())
}

fn give_up_files() {
    let mut rules = FileRules::default();
    if std::env::var_os(NOTIFY_SOCKET).is_some_and(|name| name.as_encoded_bytes().starts_with(b"@")) {
        rules = rules.abstract_sockets();
    }
    match rules.restrict() {
        Landlock::Enforced { kernel } => tracing::info!(?kernel, "Landlock: no files, no TCP"),
        Landlock::Missing { reason } => {
            tracing::warn!(reason, "no Landlock: the daemon could still open files");
        }
    }
}

/// Ends the process, and says why, if any of its threads makes a system call that the daemon has no use for.
///
/// A kernel without seccomp is only warned about.
pub fn filter_system_calls() {
    let notifies = std::env::var_os(NOTIFY_SOCKET).is_some();
    match system_calls::list(notifies).filter("iswitchd") {
        Ok(allowed) => tracing::info!(allowed, "system calls filtered"),
        Err(error) => tracing::warn!(%error, "no seccomp: the daemon could still make any system call"),
    }
}
