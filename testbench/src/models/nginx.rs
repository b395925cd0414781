//! nginx as a cell, with the configuration that the project ships.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use iswitch_models::Endpoint;
use iswitch_models::nginx::NginxCell;
use tempfile::TempDir;

use iswitch_harness::cluster::SOON;
use iswitch_harness::process::{Process, Signal};
use iswitch_harness::scratch;

/// Running nginx. Dropping it ends nginx and its workers.
#[derive(Debug)]
pub struct Nginx {
    process: Process,
    /// Directory of the nginx cache.
    _directory: TempDir,
}

impl Nginx {
    /// Starts nginx. `command` creates the command that runs a program, for example in a namespace.
    ///
    /// # Panics
    /// Panics if nginx does not become ready.
    pub fn start(listen: &str, upstream: &[Endpoint], command: impl FnOnce(&Path) -> Command) -> Self {
        let directory = scratch::directory();
        // If this process runs as root, the workers of nginx run as `nobody` and must be able to enter the directory.
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(directory.path(), open).expect("the permissions must be set");
        let config = NginxCell {
            listen: listen.to_owned(),
            upstream: upstream.to_vec(),
            directory: directory.path().to_owned(),
            capacity_bytes: 1 << 30,
            workers: 2,
        };
        let file = directory.path().join("cell.conf");
        std::fs::write(&file, config.render().expect("valid values")).expect("a writable file");
        let mut command = command(Path::new("nginx"));
        command.arg("-c").arg(&file);
        let mut process = Process::spawn("nginx", &mut command);
        // nginx writes its process id once its sockets listen.
        let begin = Instant::now();
        while !directory.path().join("nginx.pid").exists() {
            assert!(process.is_running() && begin.elapsed() < SOON, "nginx must start");
            std::thread::sleep(Duration::from_millis(5));
        }
        Self { process, _directory: directory }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        if self.process.is_running() {
            // SIGKILL would leave its workers running.
            self.process.signal(Signal::TERM);
            let begin = Instant::now();
            while self.process.is_running() && begin.elapsed() < SOON {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }
}
