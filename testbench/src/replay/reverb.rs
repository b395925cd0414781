//! Reverb, run by a Python interpreter in which it is installed: `pip install dm-reverb==0.14.0 tensorflow-cpu==2.15.1`
//! (Python 3.11 at most).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use tempfile::TempDir;

use iswitch_harness::process::{Process, command};
use iswitch_harness::scratch;

/// Environment variable with the path of the Python interpreter.
pub const VARIABLE: &str = "ISWITCH_REVERB_PYTHON";
/// Startup timeout of a server. A server first loads TensorFlow, and up to eight servers start at once on a busy
/// machine.
const START_TIMEOUT: Duration = Duration::from_secs(180);

const SCRIPTS: [(&str, &str); 3] = [
    ("server.py", include_str!("../../peers/reverb_server.py")),
    ("writers.py", include_str!("../../peers/reverb_writers.py")),
    ("check.py", include_str!("../../peers/reverb_check.py")),
];

/// Python interpreter with Reverb, and the scripts for it.
#[derive(Debug)]
pub struct Reverb {
    python: PathBuf,
    scripts: TempDir,
}

/// Sampling method of a Reverb server.
#[derive(Clone, Copy, Debug)]
pub enum Sampler {
    /// All items have the same probability.
    Uniform,
    /// The probability of an item is proportional to its priority.
    Prioritized,
}

impl Reverb {
    /// Finds the interpreter that [`VARIABLE`] names, and checks that it has Reverb.
    ///
    /// # Errors
    /// Fails if the variable is not set or the interpreter has no Reverb. The error text names the missing requirement.
    pub fn find() -> Result<Self, String> {
        static MISSING: OnceLock<Option<String>> = OnceLock::new();
        let python = std::env::var_os(VARIABLE).map(PathBuf::from);
        let wanted = || {
            format!(
                "Python with Reverb (pip install dm-reverb==0.14.0, and set {VARIABLE} to the path of the interpreter)"
            )
        };
        let python = python.ok_or_else(wanted)?;
        let missing = || {
            let import = ["-c", "import reverb"];
            let mut probe = Command::new(&python);
            let output = probe.args(import).env("TF_CPP_MIN_LOG_LEVEL", "3").stdin(Stdio::null()).output();
            let is_there = output.is_ok_and(|output| output.status.success());
            (!is_there).then(wanted)
        };
        match MISSING.get_or_init(missing) {
            Some(missing) => Err(missing.clone()),
            None => Ok(Self::at(python)),
        }
    }

    fn at(python: PathBuf) -> Self {
        let scripts = scratch::directory();
        for (name, text) in SCRIPTS {
            std::fs::write(scripts.path().join(name), text).expect("the script must be written");
        }
        Self { python, scripts }
    }

    /// Starts a server with a table "t" for the given number of items. `command` creates the command that runs a
    /// program, for example in a namespace. The server is ready when [`Self::port`] returns.
    ///
    /// # Panics
    /// Panics if the server cannot be started.
    pub fn start(
        &self,
        port: u16,
        items: usize,
        sampler: Sampler,
        command: impl FnOnce(&Path) -> Command,
    ) -> Process {
        let sampler = match sampler {
            Sampler::Uniform => "uniform",
            Sampler::Prioritized => "prioritized",
        };
        let mut command = command(&self.python);
        command.arg(self.scripts.path().join("server.py"));
        command.args([&port.to_string(), &items.to_string(), sampler]).env("TF_CPP_MIN_LOG_LEVEL", "3");
        Process::spawn("Reverb", &mut command)
    }

    /// Waits until a server is ready, and returns the port on which it listens.
    ///
    /// # Panics
    /// Panics if the server does not become ready.
    pub fn port(server: &mut Process) -> u16 {
        server.wait_for("ready ", START_TIMEOUT);
        let output = server.stdout();
        let port = output.lines().find_map(|line| line.strip_prefix("ready ")?.trim().parse().ok());
        port.expect("a port must follow `ready`")
    }

    /// Returns a command that runs one of the scripts, `writers.py` or `check.py`.
    pub fn script(&self, name: &str) -> Command {
        let mut command = command(&self.python);
        command.arg(self.scripts.path().join(name)).env("TF_CPP_MIN_LOG_LEVEL", "3");
        command
    }
}
