//! Where attacks happen: workers that sum, a host that does nothing, and an attacker, around one switch.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::Effort;
use crate::cluster::{Daemon, Group, PortKind, SOON, keygen};
use crate::netns::{Namespace, Star, StarOptions, WORKER_INTERFACE};
use crate::scratch;
use crate::wire_relay::turn_offloads_off;

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
    _directory: TempDir,
}

impl Site {
    pub(super) fn new() -> Self {
        let star = Star::new(StarOptions { workers: ATTACKER + 1, ..StarOptions::default() });
        // Recorded frames have to be whole.
        star.workers.iter().for_each(|worker| turn_offloads_off(worker, WORKER_INTERFACE));
        let directory = scratch::directory();
        let key = keygen(directory.path(), "job.key");
        Self { star, key, _directory: directory }
    }

    /// The daemon on all ports of the switch.
    pub(super) fn daemon(&self, arguments: &[&str]) -> Daemon {
        Daemon::in_star(&self.star, PortKind::Raw, arguments)
    }

    /// The same with a key for the job of the workers.
    pub(super) fn daemon_with_key(&self, arguments: &[&str]) -> Daemon {
        let key = format!("{JOB}={}", self.key.display());
        self.daemon(&[&["--key-file", &key], arguments].concat())
    }

    /// Starts the workers, which sum for that long.
    pub(super) fn workers(&self, daemon: &Daemon, duration: Duration, arguments: &str) -> Group {
        let seconds = duration.as_secs_f64();
        let arguments =
            format!("--job {JOB} --rounds 100000000 --seconds {seconds} --no-offload {arguments}");
        Group::of(&self.star.workers[..WORKERS], daemon.address(), &arguments)
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

/// Waits for the workers: all of their sums were exact and held all of them, and no worker was ever away. Returns the
/// rounds.
pub(super) fn undisturbed(workers: Group, effort: &Effort) -> Result<u64, String> {
    let finished = workers.finish(effort.duration + SOON);
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
