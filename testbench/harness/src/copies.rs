//! Programs that the user `nobody` may run too.

use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::process::command_of_nobody;
use crate::requirements::has_nobody_namespaces;
use crate::{binaries, scratch};

/// Copies of programs, in a directory where everybody may run them and make files.
#[derive(Debug)]
pub struct Copies(TempDir);

impl Copies {
    /// Of these programs: names and paths. They are deleted when the value is dropped.
    ///
    /// The temporary directory of root may be closed to others, or allow no programs: then they lie in another.
    ///
    /// # Panics
    /// If the user nobody may run programs in no directory for temporary files.
    pub fn of(programs: &[(&str, &Path)]) -> Self {
        let own = std::env::temp_dir();
        let candidates = [own.as_path(), Path::new("/tmp"), Path::new("/var/tmp"), Path::new("/dev/shm")];
        let mut copies = candidates.into_iter().filter_map(|parent| Self::in_directory(parent, programs));
        // Where the tests do not become that user, the first will do.
        let is_for_nobody = has_nobody_namespaces();
        let found = copies.find(|copies| !is_for_nobody || copies.may_nobody_run(programs[0].0));
        found.unwrap_or_else(|| panic!("the user nobody may run programs in none of {candidates:?}"))
    }

    fn in_directory(parent: &Path, programs: &[(&str, &Path)]) -> Option<Self> {
        let directory = scratch::directory_in(parent).ok()?;
        let open = |path: &Path, mode| {
            fs::set_permissions(path, Permissions::from_mode(mode)).expect("our own file");
        };
        open(directory.path(), 0o777);
        for (name, program) in programs {
            let copy = directory.path().join(name);
            fs::copy(program, &copy).expect("room for the programs");
            open(&copy, 0o755);
        }
        Some(Self(directory))
    }

    fn may_nobody_run(&self, program: &str) -> bool {
        // By a shell: setpriv itself may still go where root may.
        let mut shell = command_of_nobody("sh");
        shell.args(["-c", "exec \"$0\" --version"]).arg(self.path(program)).current_dir("/");
        shell.output().expect("setpriv was found").status.success()
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        self.0.path()
    }

    /// The copy of a program.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// An environment variable, and its value, that lets a test program use the copies of these programs.
    ///
    /// # Panics
    /// If a path is not UTF-8.
    pub fn variable(&self, programs: &[&str]) -> (&'static str, String) {
        let paths: HashMap<_, _> =
            programs.iter().map(|name| ((*name).to_owned(), self.path(name))).collect();
        binaries::variable(&paths)
    }
}
