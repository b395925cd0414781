//! Where attacks happen: workers that sum, a host that does nothing, and an attacker, around one switch.

use std::path::PathBuf;
use std::thread::sleep;

use serde_json::Value;
use tempfile::TempDir;

use super::Effort;
use crate::wire_relay::turn_offloads_off;
use iswitch_harness::cluster::{Daemon, Group, PortKind, SOON, keygen};
use iswitch_harness::netns::{Namespace, Star, StarOptions, WORKER_INTERFACE};
use iswitch_harness::scratch;

/// Job of the workers that sum.
pub(super) const JOB: u32 = 77;
/// Workers that sum.
pub(super) const WORKERS: usize = 2;
const BYSTANDER: usize = WORKERS;
const ATTACKER: usize = WORKERS + 1;
/// Namespaces around a switch, and a key.
pub(super) struct Site {
    pub(super) star: Star,
    /// The file with the key.
    key: PathBuf,
    /// The key of the workers' job, for the daemon.
    key_of_job: String,
    _directory: TempDir,
}

impl Site {
    pub(super) fn new() -> Self {
        let star = Star::new(StarOptions { workers: ATTACKER + 1, ..StarOptions::default() });
        // Recorded frames are sent again: neither end of a cable may make super-frames, which are longer than the MTU.
        for (number, worker) in star.workers.iter().enumerate() {
            turn_offloads_off(worker, WORKER_INTERFACE);
            turn_offloads_off(&star.switch, &Star::port(number));
        }
        let directory = scratch::directory();
        let key = keygen(directory.path(), "job.key");
        let key_of_job = format!("{JOB}={}", key.display());
        Self { star, key, key_of_job, _directory: directory }
    }

    /// The daemon on all ports of the switch.
    pub(super) fn daemon(&self, arguments: &[&str]) -> Daemon {
        self.daemon_on(PortKind::Raw, arguments)
    }

    /// The daemon on ports of that kind.
    pub(super) fn daemon_on(&self, kind: PortKind, arguments: &[&str]) -> Daemon {
        Daemon::in_star(&self.star, kind, arguments)
    }

    /// The daemon with a key for the job of the workers.
    pub(super) fn daemon_with_key(&self) -> Daemon {
        self.daemon(&self.key_arguments())
    }

    /// Arguments of a daemon with the key.
    pub(super) fn key_arguments(&self) -> [&str; 2] {
        ["--key-file", &self.key_of_job]
    }

    /// Starts the workers and waits until they sum. They sum until [`undisturbed`] ends them, however slow the machine
    /// is.
    pub(super) fn workers(&self, daemon: &Daemon, arguments: &str) -> Group {
        let arguments = format!("--job {JOB} --rounds 100000000 --no-offload {arguments}");
        let workers = Group::of(&self.star.workers[..WORKERS], daemon.address(), &arguments);
        daemon.wait_for_results();
        workers
    }

    /// Arguments of workers with the key.
    pub(super) fn keyed(&self) -> String {
        format!("--key-file {}", self.key.display())
    }

    /// A host that has never sent a packet to the switch.
    pub(super) fn bystander(&self) -> Host<'_> {
        self.host(BYSTANDER)
    }

    pub(super) fn attacker(&self) -> &Namespace {
        &self.star.workers[ATTACKER]
    }

    /// A worker's namespace, address and MAC address.
    pub(super) fn host(&self, worker: usize) -> Host<'_> {
        let namespace = &self.star.workers[worker];
        Host { namespace, address: Star::worker_address(worker), mac: mac(namespace) }
    }
}

/// One end of a cable.
pub(super) struct Host<'a> {
    pub(super) namespace: &'a Namespace,
    pub(super) address: std::net::Ipv4Addr,
    pub(super) mac: [u8; 6],
}

fn mac(namespace: &Namespace) -> [u8; 6] {
    let interfaces = namespace.enter(pnet_datalink::interfaces);
    let own = interfaces.into_iter().find(|it| it.name == WORKER_INTERFACE);
    own.and_then(|it| it.mac).expect("a veth interface has a MAC address").octets()
}

/// Lets the workers sum for the duration of the effort, then ends them. Every sum must be exact and hold all workers,
/// and no worker may have been away. Returns the number of rounds.
pub(super) fn undisturbed(mut workers: Group, effort: &Effort) -> Result<u64, String> {
    sleep(effort.duration);
    workers.end();
    let finished = workers.finish(SOON);
    let mut rounds = 0;
    for worker in finished {
        if !worker.status.success() {
            return Err(format!("a worker: {}: {}", worker.status, worker.stderr.trim()));
        }
        let result: Value = serde_json::from_str(&worker.stdout).map_err(|error| error.to_string())?;
        for field in ["partial_rounds", "mixed_rounds", "missed_rounds", "rejoins"] {
            if result[field] != 0 {
                return Err(format!("{field} = {} of a worker: {result}", result[field]));
            }
        }
        rounds = result["rounds"].as_u64().unwrap_or_default();
    }
    if rounds == 0 { Err("no round was summed".to_owned()) } else { Ok(rounds) }
}
