//! Machines of the benchmark: shards behind links of the same rate, and actors behind an unlimited link.

use std::time::Duration;

use super::reverb::{Reverb, Sampler};
use super::{Contender, Kind, Load, Pace, Run};
use crate::contest::ActorPool;
use crate::peers::links::{choose_congestion_control, shape};
use iswitch_harness::binaries;
use iswitch_harness::cluster::SOON;
use iswitch_harness::netns::{Star, StarOptions, WORKER_INTERFACE};
use iswitch_harness::process::Process;

const OWN_PORT: u16 = 7800;
const REVERB_PORT: u16 = 7801;
/// Number of processes that the actors run in.
const WRITER_PROCESSES: usize = 2;
/// Timeout of one turn, for the slowest contender.
const TURN_TIMEOUT: Duration = Duration::from_secs(900);
/// Total size of the items that a shard stores, in bytes.
const TABLE_BYTES: usize = 256 << 20;
/// Memory limit of `replayd`. An eighth of it is reserved for requests. If many actors send at once, requests that
/// exceed this share wait in their connections.
const MEMORY_MAX: &str = "768MiB";

/// Shards of both kinds, and a namespace for actors. Shards to which no actor writes are idle.
#[derive(Debug)]
pub struct Testbed {
    // The order matters: programs must end before their namespaces.
    _servers: Vec<Process>,
    star: Star,
    shards: usize,
}

impl Testbed {
    /// Starts all servers, for items of one length.
    ///
    /// # Panics
    /// Panics if a step fails. Call [`iswitch_harness::requirements::networks_and`] first.
    pub fn new(shards: usize, load: &Load, reverb: Option<&Reverb>) -> Self {
        let star = Star::new(StarOptions { workers: shards + 1, ..StarOptions::default() });
        star.workers.iter().for_each(choose_congestion_control);
        let items = (TABLE_BYTES / load.len_bytes).max(1);
        let mut servers = Vec::new();
        for at in 0..shards {
            shape(&star.switch, &Star::port(at), load.rate);
            shape(&star.workers[at], WORKER_INTERFACE, load.rate);
            servers.push(start_own(&star, at, items));
        }
        let start = |(at, reverb): (usize, &Reverb)| {
            reverb.start(REVERB_PORT, items, Sampler::Uniform, |python| star.workers[at].command(python))
        };
        let mut others: Vec<_> = (0..shards).zip(reverb.into_iter().cycle()).map(start).collect();
        others.iter_mut().for_each(|server| assert_eq!(Reverb::port(server), REVERB_PORT));
        servers.extend(others);
        Self { _servers: servers, star, shards }
    }

    /// Lets the given number of actors write to a contender.
    ///
    /// # Panics
    /// Panics if an insert fails, or if the contender has more shards than the testbed.
    pub fn write(&self, contender: Contender, load: &Load, actors: usize) -> Run {
        assert!(contender.shards <= self.shards, "{contender}: the testbed has only {} shards", self.shards);
        let address = |at| match contender.kind {
            Kind::Own => format!("http://{}:{OWN_PORT}", Star::worker_address(at)),
            Kind::Reverb => format!("reverb://{}:{REVERB_PORT}", Star::worker_address(at)),
        };
        let addresses: Vec<_> = (0..contender.shards).map(address).collect();
        let Pace { think, warm_up, measured } = load.pace(actors, contender.shards);
        let actor_pool = ActorPool { actors, processes: WRITER_PROCESSES, timeout: TURN_TIMEOUT };
        Run::of(&actor_pool.run(|| {
            let mut command = self.star.workers[self.shards].command(binaries::replay_writers());
            command.args(["--shards", &addresses.join(","), "--bytes", &load.len_bytes.to_string()]);
            command.args(["--think-s", &think.as_secs_f64().to_string()]);
            command.args(["--warm-up-s", &warm_up.as_secs_f64().to_string()]);
            command.args(["--measured-s", &measured.as_secs_f64().to_string()]);
            command
        }))
    }
}

fn start_own(star: &Star, at: usize, items: usize) -> Process {
    let mut command = star.workers[at].command(binaries::replayd());
    command.args(["--listen", &format!("{}:{OWN_PORT}", Star::worker_address(at)), "--json"]);
    command.args(["--table", &format!("name=t,capacity={items}"), "--memory-max", MEMORY_MAX]);
    let mut server = Process::spawn("replayd", &mut command);
    server.wait_for("{", SOON);
    server
}
