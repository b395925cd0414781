//! nginx as a cell, with the configuration that is shipped.

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

/// A running nginx. Dropping ends it, with its workers.
#[derive(Debug)]
pub struct Nginx {
    process: Process,
    /// Its cache.
    _directory: TempDir,
}

impl Nginx {
    /// Starts one; `command` makes the command of a program, as in a namespace.
    ///
    /// # Panics
    /// If it does not become ready.
    pub fn start(listen: &str, upstream: &[Endpoint], command: impl FnOnce(&Path) -> Command) -> Self {
        let directory = scratch::directory();
        // Its workers are nobody if we are root.
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(directory.path(), open).expect("the directory is ours");
        let config = NginxCell {
            listen: listen.to_owned(),
            upstream: upstream.to_vec(),
            directory: directory.path().to_owned(),
            capacity_bytes: 1 << 30,
            workers: 2,
        };
        let file = directory.path().join("cell.conf");
        std::fs::write(&file, config.render().expect("plain values")).expect("a file for the configuration");
        let mut command = command(Path::new("nginx"));
        command.arg("-c").arg(&file);
        let mut process = Process::spawn("nginx", &mut command);
        // It writes its id when its sockets listen.
        let begin = Instant::now();
        while !directory.path().join("nginx.pid").exists() {
            assert!(process.is_running() && begin.elapsed() < SOON, "nginx does not start");
            std::thread::sleep(Duration::from_millis(5));
        }
        Self { process, _directory: directory }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        if self.process.is_running() {
            // Killed, it would leave its workers behind.
            self.process.signal(Signal::TERM);
            let begin = Instant::now();
            while self.process.is_running() && begin.elapsed() < SOON {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }
}
