//! Testbed of the attacks: a switch with aggregating workers, an idle host and an attacker connected to it.

use std::path::PathBuf;
use std::thread::sleep;

use serde_json::Value;
use tempfile::TempDir;

use super::Effort;
use crate::wire_relay::turn_offloads_off;
use iswitch_harness::cluster::{Daemon, Group, PortKind, SOON, keygen};
use iswitch_harness::netns::{Namespace, Star, StarOptions, WORKER_INTERFACE};
use iswitch_harness::scratch;

/// Job of the workers.
pub(super) const JOB: u32 = 77;
/// Number of workers.
pub(super) const WORKERS: usize = 2;
const BYSTANDER: usize = WORKERS;
const ATTACKER: usize = WORKERS + 1;
/// Namespaces around a switch, and a key.
pub(super) struct Testbed {
    pub(super) star: Star,
    /// File with the key.
    key: PathBuf,
    /// Value of the daemon's `--key-file` option for the workers' job.
    key_of_job: String,
    _directory: TempDir,
}

impl Testbed {
    pub(super) fn new() -> Self {
        let star = Star::new(StarOptions { workers: ATTACKER + 1, ..StarOptions::default() });
        // The attacks replay recorded frames. Neither end of a cable may produce super-frames, because they exceed the
        // MTU.
        for (number, worker) in star.workers.iter().enumerate() {
            turn_offloads_off(worker, WORKER_INTERFACE);
            turn_offloads_off(&star.switch, &Star::port(number));
        }
        let directory = scratch::directory();
        let key = keygen(directory.path(), "job.key");
        let key_of_job = format!("{JOB}={}", key.display());
        Self { star, key, key_of_job, _directory: directory }
    }

    /// Starts the daemon on all ports of the switch.
    pub(super) fn daemon(&self, arguments: &[&str]) -> Daemon {
        self.daemon_on(PortKind::Raw, arguments)
    }

    /// Starts the daemon on ports of the given kind.
    pub(super) fn daemon_on(&self, kind: PortKind, arguments: &[&str]) -> Daemon {
        Daemon::in_star(&self.star, kind, arguments)
    }

    /// Starts the daemon with a key for the workers' job.
    pub(super) fn daemon_with_key(&self) -> Daemon {
        self.daemon(&self.key_arguments())
    }

    /// Returns the daemon arguments that configure the key of the workers' job.
    pub(super) fn key_arguments(&self) -> [&str; 2] {
        ["--key-file", &self.key_of_job]
    }

    /// Starts the workers and waits until they aggregate. They continue until [`undisturbed`] ends them, even on a slow
    /// machine.
    pub(super) fn workers(&self, daemon: &Daemon, arguments: &str) -> Group {
        let arguments = format!("--job {JOB} --rounds 100000000 --no-offload {arguments}");
        let workers = Group::of(&self.star.workers[..WORKERS], daemon.address(), &arguments);
        daemon.wait_for_results();
        workers
    }

    /// Returns the worker arguments that specify the key of the job.
    pub(super) fn keyed(&self) -> String {
        format!("--key-file {}", self.key.display())
    }

    /// Returns a host that has never sent a packet to the switch.
    pub(super) fn bystander(&self) -> Host<'_> {
        self.host(BYSTANDER)
    }

    pub(super) fn attacker(&self) -> &Namespace {
        &self.star.workers[ATTACKER]
    }

    /// Returns the namespace, the address and the MAC address of a worker.
    pub(super) fn host(&self, worker: usize) -> Host<'_> {
        let namespace = &self.star.workers[worker];
        Host { namespace, address: Star::worker_address(worker), mac: mac(namespace) }
    }
}

/// Host at one end of a cable.
pub(super) struct Host<'a> {
    pub(super) namespace: &'a Namespace,
    pub(super) address: std::net::Ipv4Addr,
    pub(super) mac: [u8; 6],
}

fn mac(namespace: &Namespace) -> [u8; 6] {
    let interfaces = namespace.enter(pnet_datalink::interfaces);
    let own = interfaces.into_iter().find(|it| it.name == WORKER_INTERFACE);
    own.and_then(|it| it.mac).expect("a veth interface must have a MAC address").octets()
}

/// Lets the workers aggregate for the duration in `effort`, stops them, and returns the number of rounds. Fails if a
/// sum was not exact or lacked a worker's contribution, or if a worker was absent.
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
                return Err(format!("a worker reports {field} = {}, expected 0: {result}", result[field]));
            }
        }
        rounds = result["rounds"].as_u64().unwrap_or_default();
    }
    if rounds == 0 { Err("no round was completed".to_owned()) } else { Ok(rounds) }
}
