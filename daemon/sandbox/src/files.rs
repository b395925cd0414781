//! Landlock restrictions on access to files and TCP ports.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, PathBeneath, PathFd, RestrictionStatus, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};

/// Newest version of Landlock whose restrictions are requested. A kernel with an older version enforces only those that
/// it supports.
const LANDLOCK_ABI: ABI = ABI::V6;

/// Files and TCP ports that a restricted process may use. By default, the process may not open files, bind or connect
/// TCP sockets, connect to abstract Unix sockets of other processes, or send signals to other processes.
#[derive(Clone, Debug, Default)]
pub struct FileRules {
    paths: Vec<(PathBuf, BitFlags<AccessFs>)>,
    connects: bool,
    uses_abstract_sockets: bool,
}

/// Outcome of [`FileRules::restrict`].
#[derive(Clone, Debug)]
pub enum Landlock {
    /// The restrictions are in force.
    Enforced {
        /// State of Landlock in the kernel.
        kernel: landlock::LandlockStatus,
    },
    /// Landlock is not available, so access to files and TCP ports is not restricted.
    Missing {
        /// Reason why the restrictions are not in force.
        reason: String,
    },
}

impl FileRules {
    /// Allows reading a file, or all files in a directory. A path that does not exist is ignored.
    #[must_use]
    pub fn read(mut self, path: &Path) -> Self {
        if path.is_dir() {
            self.paths.push((path.to_owned(), AccessFs::ReadFile | AccessFs::ReadDir));
        } else if path.exists() {
            self.paths.push((path.to_owned(), AccessFs::ReadFile.into()));
        }
        self
    }

    /// Allows listing a directory, and creating, reading, writing, renaming and removing regular files in it.
    #[must_use]
    pub fn write_directory(mut self, directory: &Path) -> Self {
        let read = AccessFs::ReadFile | AccessFs::ReadDir;
        let write = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::MakeReg | AccessFs::RemoveFile;
        self.paths.push((directory.to_owned(), read | write));
        self
    }

    /// Allows creating Unix sockets in the directory of `path`, and removing files from it.
    #[must_use]
    pub fn socket(mut self, path: &Path) -> Self {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        self.paths.push((parent.to_owned(), AccessFs::MakeSock | AccessFs::RemoveFile));
        self
    }

    /// Allows connecting TCP sockets.
    #[must_use]
    pub fn connect(mut self) -> Self {
        self.connects = true;
        self
    }

    /// Allows connecting to abstract Unix sockets of other processes.
    #[must_use]
    pub fn abstract_sockets(mut self) -> Self {
        self.uses_abstract_sockets = true;
        self
    }

    /// Restricts the calling thread and the threads that it starts later. On a kernel without Landlock, this changes
    /// nothing and returns [`Landlock::Missing`].
    pub fn restrict(&self) -> Landlock {
        match self.try_restrict() {
            Ok(status) if status.ruleset == RulesetStatus::NotEnforced => {
                Landlock::Missing { reason: format!("Landlock status of the kernel: {:?}", status.landlock) }
            }
            Ok(status) => Landlock::Enforced { kernel: status.landlock },
            Err(reason) => Landlock::Missing { reason },
        }
    }

    fn try_restrict(&self) -> Result<RestrictionStatus, String> {
        let mut scopes = Scope::from_all(LANDLOCK_ABI);
        if self.uses_abstract_sockets {
            scopes.remove(Scope::AbstractUnixSocket);
        }
        let mut ports = AccessNet::from_all(LANDLOCK_ABI);
        if self.connects {
            ports.remove(AccessNet::ConnectTcp);
        }
        let created = Ruleset::default()
            .handle_access(AccessFs::from_all(LANDLOCK_ABI))
            .and_then(|rules| rules.handle_access(ports))
            .and_then(|rules| rules.scope(scopes))
            .and_then(Ruleset::create);
        let mut created = created.map_err(|error| error.to_string())?;
        for (path, access) in &self.paths {
            let directory = PathFd::new(path).map_err(|error| format!("{}: {error}", path.display()))?;
            created = created
                .add_rule(PathBeneath::new(directory, *access))
                .map_err(|error| format!("{}: {error}", path.display()))?;
        }
        created.restrict_self().map_err(|error| error.to_string())
    }
}
