//! Search for Open MPI and Gloo, with instructions to install them.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use iswitch_harness::scratch;

const MPI_SOURCE: &str = include_str!("../../peers/allreduce_mpi.c");
const GLOO_SOURCE: &str = include_str!("../../peers/allreduce_gloo.py");

/// Programs of other projects found on this machine.
#[derive(Debug)]
pub struct Tools {
    directory: TempDir,
    /// Program that uses Open MPI, or the reason why it could not be built.
    pub mpi: Result<PathBuf, String>,
    /// Python interpreter with PyTorch, or the reason why there is none.
    pub python: Result<PathBuf, String>,
}

impl Tools {
    /// Searches for the programs; `python` is the interpreter that may have PyTorch.
    ///
    /// # Panics
    /// Panics if files cannot be written.
    pub fn find(python: &Path) -> Self {
        let directory = scratch::directory();
        let mpi = build_mpi(directory.path());
        std::fs::write(directory.path().join("gloo.py"), GLOO_SOURCE).expect("the script must be written");
        Self { directory, mpi, python: check_python(python) }
    }

    /// Returns an empty set of tools, for contenders that need none.
    pub fn none() -> Self {
        let nobody_asked = || Err("not searched for".to_owned());
        Self { directory: scratch::directory(), mpi: nobody_asked(), python: nobody_asked() }
    }

    /// Returns the path of the script that runs Gloo.
    pub fn gloo_script(&self) -> PathBuf {
        self.directory.path().join("gloo.py")
    }

    /// Writes a script that mpirun uses to start its helper on another machine. The script enters the namespace with
    /// the address of that machine.
    ///
    /// Each helper has its own directory for files. Otherwise, helpers would assume that they run on the same machine,
    /// and would remove each other's directories.
    ///
    /// # Panics
    /// Panics if the script cannot be written.
    pub fn remote_shell(&self, machines: &[(String, String)]) -> PathBuf {
        let mut script = String::from("#!/bin/sh\nhost=$1; shift\ncase $host in\n");
        for (address, namespace) in machines {
            let files = self.directory.path().join(namespace);
            std::fs::create_dir_all(&files).expect("the helper's directory must be created");
            let files = files.display();
            let _ = writeln!(
                script,
                "{address}) exec ip netns exec {namespace} env TMPDIR={files} sh -c \"$*\" ;;"
            );
        }
        script += "esac\necho \"no machine $host\" >&2; exit 1\n";
        let path = self.directory.path().join("remote-shell");
        std::fs::write(&path, script).expect("the script must be written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
            .expect("permissions must be set");
        path
    }
}

fn build_mpi(directory: &Path) -> Result<PathBuf, String> {
    let missing = "Open MPI is missing; install it with `apt-get install openmpi-bin libopenmpi-dev gcc`";
    let (source, program) = (directory.join("allreduce_mpi.c"), directory.join("allreduce_mpi"));
    std::fs::write(&source, MPI_SOURCE).expect("the source must be written");
    let output =
        Command::new("mpicc").args(["-O3", "-march=native", "-o"]).arg(&program).arg(&source).output();
    match output {
        Ok(output) if output.status.success() => Ok(program),
        Ok(output) => Err(format!("{missing}\n{}", String::from_utf8_lossy(&output.stderr))),
        Err(_) => Err(missing.to_owned()),
    }
}

fn check_python(python: &Path) -> Result<PathBuf, String> {
    let missing = format!(
        "Gloo is missing, because {} has no PyTorch with Gloo; install it with `python3 -m venv peers && peers/bin/pip \
         install torch numpy`, then specify --python peers/bin/python",
        python.display()
    );
    let check = "import torch.distributed as d; assert d.is_gloo_available()";
    let status = Command::new(python).args(["-c", check]).stderr(Stdio::null()).stdin(Stdio::null()).status();
    status.is_ok_and(|status| status.success()).then(|| python.to_owned()).ok_or(missing)
}
