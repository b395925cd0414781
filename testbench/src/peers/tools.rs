//! Open MPI and Gloo: where they are, or how to get them.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use iswitch_harness::scratch;

const MPI_SOURCE: &str = include_str!("../../peers/allreduce_mpi.c");
const GLOO_SOURCE: &str = include_str!("../../peers/allreduce_gloo.py");

/// Peers that are on this machine.
#[derive(Debug)]
pub struct Tools {
    directory: TempDir,
    /// The program of Open MPI, if it could be built.
    pub mpi: Result<PathBuf, String>,
    /// A Python with PyTorch.
    pub python: Result<PathBuf, String>,
}

impl Tools {
    /// Looks for them; `python` is the interpreter to try.
    ///
    /// # Panics
    /// If files cannot be written.
    pub fn find(python: &Path) -> Self {
        let directory = scratch::directory();
        let mpi = build_mpi(directory.path());
        std::fs::write(directory.path().join("gloo.py"), GLOO_SOURCE).expect("a file for the script");
        Self { directory, mpi, python: check_python(python) }
    }

    /// For contenders that need none.
    pub fn none() -> Self {
        let nobody_asked = || Err("not looked for".to_owned());
        Self { directory: scratch::directory(), mpi: nobody_asked(), python: nobody_asked() }
    }

    /// The script of Gloo.
    pub fn gloo_script(&self) -> PathBuf {
        self.directory.path().join("gloo.py")
    }

    /// Writes a script by which mpirun starts its helper on another machine: the namespace with that address.
    ///
    /// Helpers that take each other for one on the same machine make and remove each other's directories: each has its
    /// own.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn remote_shell(&self, machines: &[(String, String)]) -> PathBuf {
        let mut script = String::from("#!/bin/sh\nhost=$1; shift\ncase $host in\n");
        for (address, namespace) in machines {
            let files = self.directory.path().join(namespace);
            std::fs::create_dir_all(&files).expect("a directory for the helper's files");
            let files = files.display();
            let _ = writeln!(
                script,
                "{address}) exec ip netns exec {namespace} env TMPDIR={files} sh -c \"$*\" ;;"
            );
        }
        script += "esac\necho \"no machine $host\" >&2; exit 1\n";
        let path = self.directory.path().join("remote-shell");
        std::fs::write(&path, script).expect("a file for the script");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("the file is ours");
        path
    }
}

fn build_mpi(directory: &Path) -> Result<PathBuf, String> {
    let missing = "Open MPI is missing: apt-get install openmpi-bin libopenmpi-dev gcc";
    let (source, program) = (directory.join("allreduce_mpi.c"), directory.join("allreduce_mpi"));
    std::fs::write(&source, MPI_SOURCE).expect("a file for the source");
    let output = Command::new("mpicc").args(["-O2", "-o"]).arg(&program).arg(&source).output();
    match output {
        Ok(output) if output.status.success() => Ok(program),
        Ok(output) => Err(format!("{missing}\n{}", String::from_utf8_lossy(&output.stderr))),
        Err(_) => Err(missing.to_owned()),
    }
}

fn check_python(python: &Path) -> Result<PathBuf, String> {
    let missing = format!(
        "Gloo is missing: python3 -m venv peers && peers/bin/pip install torch numpy, then --python \
         peers/bin/python ({} has no PyTorch with Gloo)",
        python.display()
    );
    let check = "import torch.distributed as d; assert d.is_gloo_available()";
    let status = Command::new(python).args(["-c", check]).stderr(Stdio::null()).stdin(Stdio::null()).status();
    status.is_ok_and(|status| status.success()).then(|| python.to_owned()).ok_or(missing)
}
