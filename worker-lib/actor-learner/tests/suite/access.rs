//! Tests of learners, actors, shards and cells that require tokens and certificates from each other.
use std::fs::Permissions;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::Value;
use tempfile::TempDir;

type Authority = CertifiedIssuer<'static, KeyPair>;

/// Timeout that no operation of these tests exceeds, even on a busy machine.
const HANGS: Duration = Duration::from_secs(180);
const POLL: Duration = Duration::from_millis(50);

const REPLAY_CLIENT: [&str; 4] = [
    "--replay-token-file replay.token",
    "--replay-ca ca.pem",
    "--replay-cert client.pem",
    "--replay-key client.key",
];
const MODEL_CLIENT: [&str; 4] = [
    "--model-token-file model.token",
    "--model-ca ca.pem",
    "--model-cert client.pem",
    "--model-key client.key",
];

/// Tokens, certificates, addresses and processes of a run. The processes are killed when this value is dropped.
struct Site {
    folder: TempDir,
    learner: String,
    shard: String,
    cell: String,
    processes: Vec<Child>,
}

impl Site {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let (ours, other) = (authority(), authority());
        write(folder.path(), "ca.pem", &ours.pem());
        write(folder.path(), "other-ca.pem", &other.pem());
        for name in ["server", "client"] {
            let key = KeyPair::generate().unwrap();
            let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
            write(folder.path(), &format!("{name}.pem"), &params.signed_by(&key, &ours).unwrap().pem());
            write(folder.path(), &format!("{name}.key"), &key.serialize_pem());
        }
        write(folder.path(), "replay.token", "the-token-of-the-shards\n");
        write(folder.path(), "model.token", "the-token-of-the-policies\n");
        let [learner, shard, cell] = free_addresses();
        Self { folder, learner, shard, cell, processes: Vec::new() }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_iswitch-actors"));
        command.args(arguments.iter().flat_map(|some| some.split_whitespace()));
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    fn start(&mut self, arguments: &[&str]) {
        let child = self.command(arguments).stdout(Stdio::null()).spawn().unwrap();
        self.processes.push(child);
    }

    /// Returns the arguments of a learner that serves policies at `publish`.
    fn learner(&self, publish: &str, steps: u64, replay: &[&str]) -> Command {
        let what =
            format!("learner dqn --steps {steps} --set learning_starts=500 --json --quiet --out {steps}");
        let at = format!("--replay https://{} --publish {publish}", self.shard);
        let serves = "--model-read-token-file model.token --model-tls-cert server.pem --model-tls-key server.key \
                      --model-client-ca ca.pem";
        self.command(&[&[&what, &at, serves], replay].concat())
    }

    fn start_shard(&mut self) {
        let at = format!("replay --models https://{} --listen {}", self.learner, self.shard);
        let serves =
            "--token-file replay.token --tls-cert server.pem --tls-key server.key --tls-client-ca ca.pem";
        self.start(&[&[&at, serves], &MODEL_CLIENT[..]].concat());
    }

    fn start_cell(&mut self) {
        let at = format!("cell --listen {} --upstream https://{}", self.cell, self.learner);
        let shows = "--token-file model.token --ca ca.pem --cert client.pem --key client.key";
        let serves =
            "--read-token-file model.token --tls-cert server.pem --tls-key server.key --client-ca ca.pem";
        self.start(&[&at, shows, serves]);
    }

    fn actors(&self, models: &str, access: &[&str]) -> Command {
        let what = format!("actors --actors 2 --json --quiet --models {models}");
        self.command(&[&[what.as_str()], access].concat())
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        for process in &mut self.processes {
            // The process may have ended already.
            let _ = process.kill().and_then(|()| process.wait());
        }
    }
}

fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn write(folder: &Path, name: &str, text: &str) {
    let path: PathBuf = folder.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
}

fn free_addresses<const N: usize>() -> [String; N] {
    let all: [TcpListener; N] = std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    all.map(|listener| listener.local_addr().unwrap().to_string())
}

/// Runs a process until it exits.
fn finish(mut command: Command) -> Output {
    wait(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

fn wait(mut child: Child) -> Output {
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > HANGS {
            let _ = child.kill();
            panic!("no end within {HANGS:?}: {:?}", child.wait_with_output());
        }
        std::thread::sleep(POLL);
    }
    child.wait_with_output().unwrap()
}

fn result(output: &Output) -> Value {
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}\n{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&stdout).unwrap()
}

fn error(command: Command) -> String {
    let output = finish(command);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{stderr}");
    stderr
}

#[test]
fn a_run_learns_with_tokens_and_certificates_required_everywhere() {
    let mut site = Site::new();
    let mut learner = site.learner(&site.learner, 3000, &REPLAY_CLIENT);
    let learner = learner.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    site.start_shard();
    site.start_cell();
    let models = format!("https://{},https://{}", site.cell, site.learner);
    let mut actors = site.actors(&models, &[&MODEL_CLIENT[..], &REPLAY_CLIENT].concat());
    let actors = actors.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let learned = result(&wait(learner));
    assert!(learned["steps"].as_u64() >= Some(3000), "{learned}");
    assert!(learned["replay"]["items"].as_u64() > Some(0), "{learned}");
    let acted = result(&wait(actors));
    assert!(acted["items"].as_u64() > Some(0) && acted["policies"].as_u64() > Some(0), "{acted}");
}

#[test]
fn rejected_credentials_are_reported_by_option() {
    let mut site = Site::new();
    let learner = site.learner(&site.learner, 1_000_000_000, &REPLAY_CLIENT);
    site.processes.push({ learner }.stdout(Stdio::null()).spawn().unwrap());
    site.start_shard();

    let [elsewhere] = free_addresses();
    let text = error(site.learner(&elsewhere, 1000, &REPLAY_CLIENT[1..]));
    assert!(text.contains("no valid token") && text.contains("--replay-token-file"), "{text}");

    let models = format!("https://{}", site.learner);
    let [m, r] = [MODEL_CLIENT, REPLAY_CLIENT];
    let cases: [(&str, Vec<&str>); 6] = [
        ("with --model-token-file", [&m[1..], &r].concat()),
        ("with --replay-token-file", [&m[..], &r[1..]].concat()),
        ("CA in --model-ca", [&[m[0], "--model-ca other-ca.pem"], &m[2..], &r].concat()),
        ("CA in --replay-ca", [&m[..], &[r[0], "--replay-ca other-ca.pem"], &r[2..]].concat()),
        ("with --model-cert and --model-key", [&m[..2], &r].concat()),
        ("with --replay-cert and --replay-key", [&m[..], &r[..2]].concat()),
    ];
    for (expected, access) in cases {
        let text = error(site.actors(&models, &access));
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn unusable_credential_files_are_reported_before_any_process_starts() {
    let site = Site::new();
    let models = "https://127.0.0.1:1";
    let ca = "--model-ca ca.pem";
    let cases = [
        ("--replay-token-file missing", vec![ca, "--replay-token-file missing"]),
        ("--model-token-file missing", vec![ca, "--model-token-file missing"]),
        ("pass its CA certificates with --model-ca FILE", vec![]),
        ("missing.pem", vec![ca, "--replay-ca missing.pem"]),
        ("client.key", vec!["--model-ca client.key"]),
        ("--model-key", vec![ca, "--model-cert client.pem"]),
        ("--replay-cert", vec![ca, "--replay-ca ca.pem", "--replay-key client.key"]),
        ("server.pem", vec![ca, "--model-cert server.pem --model-key client.key"]),
    ];
    for (expected, access) in cases {
        let text = error(site.actors(models, &access));
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let plain = error(site.actors("10.0.0.1:7720", &[ca]));
    assert!(plain.contains("10.0.0.1:7720 is not encrypted, expected an https:// address"), "{plain}");
    std::fs::set_permissions(site.folder.path().join("model.token"), Permissions::from_mode(0o644)).unwrap();
    let exposed = error(site.actors(models, &[ca, MODEL_CLIENT[0]]));
    assert!(exposed.contains("the file's mode is 0644"), "{exposed}");
    let local = error(site.command(&["actor-learner dqn --replay-token-file missing --out run"]));
    assert!(local.contains("--replay-token-file missing"), "{local}");
    assert!(!site.folder.path().join("run").exists());
}

#[test]
fn all_processes_of_one_machine_share_the_tokens() {
    let site = Site::new();
    let what = "actor-learner dqn --actors 2 --steps 3000 --set learning_starts=500 --json --quiet --out run";
    let tokens = "--replay-token-file replay.token --model-token-file model.token";
    let learned = result(&finish(site.command(&[what, tokens])));
    assert!(learned["replay"]["items"].as_u64() > Some(0), "{learned}");
}
