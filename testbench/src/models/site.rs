//! The machines: a learner and cells behind links of one rate, and actors behind one without a limit.

use std::path::PathBuf;
use std::time::Duration;

use iswitch_models::{ClientOptions, Endpoint, ModelName, Times, publish};
use tempfile::TempDir;

use super::nginx::Nginx;
use super::{Contender, Load, Run};
use crate::contest::Crowd;
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
/// Processes that the actors are in.
const READER_PROCESSES: usize = 2;
/// In which these start.
const HEAD_START: Duration = Duration::from_millis(1500);
/// One turn of the slowest contender.
const TURN_TIMEOUT: Duration = Duration::from_secs(1800);
/// Readers share links that are slow on purpose: nobody is cut off.
const PATIENT: [&str; 4] = ["--stall-ms", "600000", "--reader-bytes-per-s-min", "1"];
const NAME: &str = "bench";

/// A learner, cells with both kinds of caches, and room for actors.
#[derive(Debug)]
pub struct Site {
    // In this order: programs end before their namespaces.
    caches: Vec<(Process, Option<Nginx>)>,
    _learner: Process,
    star: Star,
    rate: Rate,
    version: u64,
    directory: TempDir,
}

impl Site {
    /// Starts everything. Caches that are not asked wait.
    ///
    /// # Panics
    /// If something fails: ask [`iswitch_harness::requirements::networks_and`] first.
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

    /// Of the links of learner and cells.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// All actors read a new version.
    ///
    /// # Panics
    /// If one of them does not get it, or there are not so many cells.
    pub fn read(&mut self, contender: Contender, load: Load) -> Run {
        self.publish(load.len_bytes);
        let (first, last, port) = match contender {
            Contender::Direct => (0, 0, LEARNER_PORT),
            Contender::Embedded(cells) => (1, cells, EMBEDDED_PORT),
            Contender::Nginx(cells) => (1, cells, NGINX_PORT),
        };
        assert!(last <= self.caches.len(), "{contender}: there are {} cells", self.caches.len());
        let from: Vec<_> = (first..=last).map(|at| format!("{}:{port}", Star::worker_address(at))).collect();
        let crowd = Crowd {
            actors: load.actors,
            processes: READER_PROCESSES,
            head_start: HEAD_START,
            timeout: TURN_TIMEOUT,
        };
        Run::of(&crowd.run(|| {
            let mut command = self.actors().command(binaries::model_readers());
            command.args(["--from", &from.join(","), "--control", &self.control(), "--name", NAME]);
            command
        }))
    }

    fn publish(&mut self, len_bytes: usize) {
        self.version += 1;
        // Not all alike, so that a mistake of places would be found.
        let seed = self.version as u32;
        let bytes: Vec<u8> = (0..len_bytes as u32)
            .map(|at| (at.wrapping_add(seed).wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        let learner: Endpoint = self.control().parse().expect("a path without spaces");
        let name: ModelName = NAME.parse().expect("a name of letters");
        let times = Times { stall: SOON, ..Times::default() };
        let options = ClientOptions { times, ..ClientOptions::default() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("room for a runtime");
        let published = runtime.block_on(publish(&learner, &name, self.version, bytes.into(), &options));
        published.expect("the learner takes models at its Unix socket");
    }

    fn actors(&self) -> &Namespace {
        &self.star.workers[self.star.workers.len() - 1]
    }

    /// The learner's Unix socket: all namespaces share the file system.
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
    let upstream = [upstream.parse().expect("an address and a port")];
    let nginx = has_nginx.then(|| {
        Nginx::start(&format!("{address}:{NGINX_PORT}"), &upstream, |program| namespace.command(program))
    });
    (embedded, nginx)
}
