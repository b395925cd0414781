//! Machines of the benchmark: a learner and cells behind links of the same rate, and actors behind an unlimited link.

use std::path::PathBuf;
use std::time::Duration;

use iswitch_models::{ClientOptions, Endpoint, ModelName, Times, publish};
use tempfile::TempDir;

use super::nginx::Nginx;
use super::{Contender, Load, Run};
use crate::contest::ActorPool;
use crate::peers::Rate;
use crate::peers::links::{choose_congestion_control, shape};
use iswitch_harness::binaries;
use iswitch_harness::cluster::SOON;
use iswitch_harness::netns::{Namespace, Star, StarOptions, WORKER_INTERFACE};
use iswitch_harness::process::Process;
use iswitch_harness::scratch;

const LEARNER_PORT: u16 = 7720;
const EMBEDDED_PORT: u16 = 7721;
const NGINX_PORT: u16 = 7722;
/// Number of processes that the actors run in.
const READER_PROCESSES: usize = 2;
/// Timeout of one turn, for the slowest contender.
const TURN_TIMEOUT: Duration = Duration::from_secs(1800);
/// Options that keep servers from disconnecting slow readers: the readers share links that are slow on purpose.
const PATIENT: [&str; 4] = ["--stall-ms", "600000", "--reader-bytes-per-s-min", "1"];
const NAME: &str = "bench";

/// Learner, cells with both kinds of caches, and a namespace for actors.
#[derive(Debug)]
pub struct Testbed {
    // The order matters: programs must end before their namespaces.
    caches: Vec<(Process, Option<Nginx>)>,
    _learner: Process,
    star: Star,
    rate: Rate,
    version: u64,
    directory: TempDir,
}

impl Testbed {
    /// Starts all servers. The caches are idle until actors read from them.
    ///
    /// # Panics
    /// Panics if a step fails. Call [`iswitch_harness::requirements::networks_and`] first.
    pub fn new(cells: usize, rate: Rate, has_nginx: bool) -> Self {
        let star = Star::new(StarOptions { workers: cells + 2, ..StarOptions::default() });
        star.workers.iter().for_each(choose_congestion_control);
        for at in 0..=cells {
            shape(&star.switch, &Star::port(at), rate);
            shape(&star.workers[at], WORKER_INTERFACE, rate);
        }
        let directory = scratch::directory();
        let learner = start_learner(&star.workers[0], &directory);
        let caches = (1..=cells).map(|at| start_caches(&star, at, has_nginx)).collect();
        Self { caches, _learner: learner, star, rate, version: 0, directory }
    }

    /// Returns the rate of the links of the learner and of the cells.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Publishes a new version of the model and lets all actors read it.
    ///
    /// # Panics
    /// Panics if an actor does not receive the new version, or if the contender has more cells than the testbed.
    pub fn read(&mut self, contender: Contender, load: Load) -> Run {
        self.publish(load.len_bytes);
        let (first, last, port) = match contender {
            Contender::Direct => (0, 0, LEARNER_PORT),
            Contender::Embedded(cells) => (1, cells, EMBEDDED_PORT),
            Contender::Nginx(cells) => (1, cells, NGINX_PORT),
        };
        assert!(last <= self.caches.len(), "{contender}: the testbed has only {} cells", self.caches.len());
        let from: Vec<_> = (first..=last).map(|at| format!("{}:{port}", Star::worker_address(at))).collect();
        let actor_pool =
            ActorPool { actors: load.actors, processes: READER_PROCESSES, timeout: TURN_TIMEOUT };
        Run::of(&actor_pool.run(|| {
            let mut command = self.actors().command(binaries::model_readers());
            command.args(["--from", &from.join(","), "--control", &self.control(), "--name", NAME]);
            command
        }))
    }

    fn publish(&mut self, len_bytes: usize) {
        self.version += 1;
        // The bytes vary, so that a wrong offset would be detected.
        let seed = self.version as u32;
        let bytes: Vec<u8> = (0..len_bytes as u32)
            .map(|at| (at.wrapping_add(seed).wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        let learner: Endpoint = self.control().parse().expect("the path must be a valid endpoint");
        let name: ModelName = NAME.parse().expect("the name must be valid");
        let times = Times { stall: SOON, ..Times::default() };
        let options = ClientOptions { times, ..ClientOptions::default() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("the runtime must start");
        let published = runtime.block_on(publish(&learner, &name, self.version, bytes.into(), &options));
        published.expect("the learner must accept models at its Unix socket");
    }

    fn actors(&self) -> &Namespace {
        &self.star.workers[self.star.workers.len() - 1]
    }

    /// Returns the learner's Unix socket, which all namespaces can reach because they share the file system.
    fn control(&self) -> String {
        format!("unix:{}", socket(&self.directory).display())
    }
}

fn socket(directory: &TempDir) -> PathBuf {
    directory.path().join("learner")
}

fn start_learner(namespace: &Namespace, directory: &TempDir) -> Process {
    let mut command = namespace.command(binaries::iswitch_models());
    command.args(["serve", "--listen", &format!("{}:{LEARNER_PORT}", Star::worker_address(0))]);
    command.args(["--listen", &format!("unix:{}", socket(directory).display())]).args(PATIENT);
    let mut learner = Process::spawn("learner", &mut command);
    learner.wait_for("ready", SOON);
    learner
}

fn start_caches(star: &Star, at: usize, has_nginx: bool) -> (Process, Option<Nginx>) {
    let (namespace, address) = (&star.workers[at], Star::worker_address(at));
    let upstream = format!("{}:{LEARNER_PORT}", Star::worker_address(0));
    let mut command = namespace.command(binaries::iswitch_models());
    command.args(["cell", "--listen", &format!("{address}:{EMBEDDED_PORT}"), "--upstream", &upstream]);
    command.args(["--upstream-stall-ms", "600000"]).args(PATIENT);
    let mut embedded = Process::spawn("cell", &mut command);
    embedded.wait_for("ready", SOON);
    let upstream = [upstream.parse().expect("the endpoint must be valid")];
    let nginx = has_nginx.then(|| {
        Nginx::start(&format!("{address}:{NGINX_PORT}"), &upstream, |program| namespace.command(program))
    });
    (embedded, nginx)
}
