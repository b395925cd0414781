//! Copies of programs that the user `nobody` may also run.

use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::process::command_of_nobody;
use crate::requirements::has_nobody_namespaces;
use crate::{binaries, scratch};

/// Copies of programs, in a directory where every user may run them and create files.
#[derive(Debug)]
pub struct Copies(TempDir);

impl Copies {
    /// Copies programs, each given by its name and path. The copies are deleted when the value is dropped.
    ///
    /// Root's temporary directory may be inaccessible to other users or may not permit execution. In that case, the
    /// copies are made in another temporary directory, such as `/tmp`.
    ///
    /// # Panics
    /// Panics if the user nobody cannot run programs in any of the temporary directories.
    pub fn of(programs: &[(&str, &Path)]) -> Self {
        let own = std::env::temp_dir();
        let candidates = [own.as_path(), Path::new("/tmp"), Path::new("/var/tmp"), Path::new("/dev/shm")];
        let mut copies = candidates.into_iter().filter_map(|parent| Self::in_directory(parent, programs));
        // If the tests do not switch to the user nobody, the first directory is sufficient.
        let is_for_nobody = has_nobody_namespaces();
        let found = copies.find(|copies| !is_for_nobody || copies.may_nobody_run(programs[0].0));
        found.unwrap_or_else(|| {
            panic!("the user nobody must be able to run programs in one of {candidates:?}")
        })
    }

    fn in_directory(parent: &Path, programs: &[(&str, &Path)]) -> Option<Self> {
        let directory = scratch::directory_in(parent).ok()?;
        let open = |path: &Path, mode| {
            fs::set_permissions(path, Permissions::from_mode(mode))
                .expect("the permissions must be changeable");
        };
        open(directory.path(), 0o777);
        for (name, program) in programs {
            let copy = directory.path().join(name);
            fs::copy(program, &copy).expect("there must be disk space for the programs");
            open(&copy, 0o755);
        }
        Some(Self(directory))
    }

    fn may_nobody_run(&self, program: &str) -> bool {
        // A shell starts the program, because setpriv itself may still have root's access.
        let mut shell = command_of_nobody("sh");
        shell.args(["-c", "exec \"$0\" --version"]).arg(self.path(program)).current_dir("/");
        shell.output().expect("setpriv must run").status.success()
    }

    /// Returns the directory.
    pub fn directory(&self) -> &Path {
        self.0.path()
    }

    /// Returns the path of a program's copy.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Returns the name and the value of an environment variable with which a test program uses the copies of the given
    /// programs.
    ///
    /// # Panics
    /// Panics if a path is not UTF-8.
    pub fn variable(&self, programs: &[&str]) -> (&'static str, String) {
        let paths: HashMap<_, _> =
            programs.iter().map(|name| ((*name).to_owned(), self.path(name))).collect();
        binaries::variable(&paths)
    }
}
