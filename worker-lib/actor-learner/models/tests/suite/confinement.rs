//! Tests of the programs in their sandbox.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};

/// Server that is killed when it is dropped.
struct Program {
    child: Child,
    listen: String,
}

impl Program {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_iswitch-models"));
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let lines: Vec<_> = lines.map(Result::unwrap).take_while(|line| line != "ready").collect();
        let listen = lines[0].strip_prefix("listening at ").unwrap().to_owned();
        Self { child, listen }
    }

    fn assert_confined(&self) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        for field in
            ["Seccomp:\t2", "NoNewPrivs:\t1", "CapEff:\t0000000000000000", "CapPrm:\t0000000000000000"]
        {
            assert!(status.lines().any(|line| line == field), "no {field} in {status}");
        }
    }

    /// Stops the server with SIGTERM, and returns its standard error.
    fn terminate(&mut self) -> String {
        let kill = format!("kill -TERM {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        let mut errors = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert!(self.child.wait().unwrap().success(), "{errors}");
        errors
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The server may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run(arguments: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_iswitch-models")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn servers_and_cells_work_in_their_sandbox() {
    let root = tempfile::tempdir().unwrap();
    let path = |name: &str| root.path().join(name).display().to_string();
    std::fs::write(path("model"), vec![7; 3 << 20]).unwrap();
    let socket = format!("unix:{}", path("socket"));
    let mut server = Program::start(&[
        "serve",
        "--publish-from",
        "everywhere",
        "--listen",
        "127.0.0.1:0",
        "--listen",
        &socket,
    ]);
    let port = server.listen.rsplit_once(':').unwrap().1.to_owned();
    // The upstreams are given as an IP address, as a host name and as a path.
    let upstreams = [server.listen.clone(), format!("localhost:{port}"), socket.clone()];
    let mut cells = upstreams
        .map(|upstream| Program::start(&["cell", "--listen", "127.0.0.1:0", "--upstream", &upstream]));
    for program in cells.iter().chain([&server]) {
        program.assert_confined();
    }
    run(&["publish", "--learner", &socket, "--name", "ppo", "--version", "1", &path("model")]);
    run(&["publish", "--learner", &server.listen, "--name", "ppo", "--version", "2", &path("model")]);
    for cell in &cells {
        run(&["fetch", "--from", &cell.listen, "--name", "ppo", "--output", &path("copy")]);
        assert!(std::fs::read(path("copy")).unwrap() == std::fs::read(path("model")).unwrap());
        std::fs::remove_file(path("copy")).unwrap();
    }
    for program in cells.iter_mut().chain([&mut server]) {
        let errors = program.terminate();
        assert!(errors.contains("iswitch-models: sandbox: no capabilities"), "{errors}");
    }
    assert!(!root.path().join("socket").exists(), "the socket is removed on shutdown");
}

#[test]
fn the_sandbox_can_be_disabled() {
    let mut server = Program::start(&["serve", "--listen", "127.0.0.1:0", "--no-sandbox"]);
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let own = std::fs::read_to_string("/proc/self/status").unwrap();
    for field in ["Seccomp:", "NoNewPrivs:", "CapEff:"] {
        let line = |text: &str| text.lines().find(|line| line.starts_with(field)).map(str::to_owned);
        assert_eq!(line(&status), line(&own));
    }
    assert!(!server.terminate().contains("sandbox:"));
}
