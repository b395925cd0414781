//! Machines on which all contenders run: workers and a server, each with its own cable to a switch.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use iswitch_protocol::limits::DEFAULT_PORT;

use super::links::{Links, choose_congestion_control, shape};
use super::racks::Racks;
use crate::wire_relay::WireRelay;
use iswitch_harness::cluster::{Daemon, PortKind};
use iswitch_harness::netns::{Cable, Namespace, SWITCH_ADDRESS, Star, StarOptions};
use iswitch_simulation::network::LinkModel;

/// Workers and a server, connected to one switch or to the switches of racks.
#[derive(Debug)]
pub struct Network {
    /// Relays of the cables. This is the first field, because the relays hold ends of the cables and must be removed
    /// before the cables are.
    relays: Vec<WireRelay>,
    layout: Layout,
    links: Links,
}

#[derive(Debug)]
enum Layout {
    /// One switch. The last cable belongs to the server.
    Star(Star),
    Racks(Racks),
}

impl Network {
    /// Creates workers around one switch.
    ///
    /// # Panics
    /// Panics if a step fails. Call [`iswitch_harness::requirements::networks_and`] first.
    pub fn star(workers: usize, links: Links) -> Self {
        let star = Star::new(StarOptions { workers: workers + 1, ..StarOptions::default() });
        Self { relays: Vec::new(), layout: Layout::Star(star), links }.linked()
    }

    /// Creates racks with the given numbers of workers. The switches of the racks are children of a common parent
    /// switch.
    ///
    /// # Panics
    /// Panics if a step fails. Call [`iswitch_harness::requirements::networks_and`] first.
    pub fn racks(workers: &[usize], links: Links) -> Self {
        Self { relays: Vec::new(), layout: Layout::Racks(Racks::new(workers)), links }.linked()
    }

    /// Applies the rate and the delay to the cables.
    fn linked(mut self) -> Self {
        if let Some(delay) = self.links.delay {
            let model = LinkModel { delay, ..LinkModel::PERFECT };
            self.relays = self
                .cables()
                .iter()
                .zip(0..)
                .map(|(cable, seed)| WireRelay::insert(cable, model, seed))
                .collect();
        }
        if let Layout::Racks(racks) = &self.layout {
            racks.route();
        }
        for cable in self.cables() {
            choose_congestion_control(cable.end);
        }
        if let Some(rate) = self.links.rate {
            for cable in self.cables() {
                shape(cable.switch, &cable.port, rate);
                shape(cable.end, cable.interface, rate);
            }
        }
        self
    }

    fn cables(&self) -> Vec<Cable<'_>> {
        match &self.layout {
            Layout::Star(star) => (0..star.workers.len()).map(|at| star.cable(at)).collect(),
            Layout::Racks(racks) => racks.cables(),
        }
    }

    /// Returns the properties of the cables.
    pub fn links(&self) -> Links {
        self.links
    }

    /// Returns the workers, by rank.
    pub fn workers(&self) -> Vec<&Namespace> {
        match &self.layout {
            Layout::Star(star) => star.workers[..star.workers.len() - 1].iter().collect(),
            Layout::Racks(racks) => racks.workers().collect(),
        }
    }

    /// Returns the number of workers.
    pub fn worker_count(&self) -> usize {
        self.workers().len()
    }

    /// Returns the number of racks, if the workers are in racks.
    pub fn rack_count(&self) -> Option<usize> {
        match &self.layout {
            Layout::Star(_) => None,
            Layout::Racks(racks) => Some(racks.count()),
        }
    }

    /// Returns the address of a worker. All workers are in 10.9.0.0/16.
    pub fn worker_address(&self, rank: usize) -> Ipv4Addr {
        match &self.layout {
            Layout::Star(_) => Star::worker_address(rank),
            Layout::Racks(racks) => racks.worker_address(rank),
        }
    }

    /// Returns the server, which is connected to the workers' switch or, with racks, to the parent switch.
    pub fn server(&self) -> &Namespace {
        match &self.layout {
            Layout::Star(star) => &star.workers[star.workers.len() - 1],
            Layout::Racks(racks) => racks.server(),
        }
    }

    /// Returns the address of the server.
    pub fn server_address(&self) -> Ipv4Addr {
        match &self.layout {
            Layout::Star(_) => Star::worker_address(self.worker_count()),
            Layout::Racks(racks) => racks.server_address(),
        }
    }

    /// Starts a daemon with the given options on each switch.
    ///
    /// # Panics
    /// Panics if a daemon does not become ready.
    pub fn start_switches(&self, kind: PortKind, options: &[&str]) -> Vec<Daemon> {
        match &self.layout {
            Layout::Star(star) => vec![Daemon::in_star(star, kind, options)],
            Layout::Racks(racks) => racks.start_switches(kind, options),
        }
    }

    /// Returns the address of the switch that a worker reaches over its cable.
    pub fn switch_of(&self, rank: usize) -> SocketAddrV4 {
        let address = match &self.layout {
            Layout::Star(_) => SWITCH_ADDRESS,
            Layout::Racks(racks) => racks.switch_address_of(rank),
        };
        SocketAddrV4::new(address, DEFAULT_PORT)
    }

    /// Returns the median round-trip time of a packet between the first worker and its switch on the idle network:
    /// twice the delay of a cable, plus the time that the machine and the relays add.
    ///
    /// # Panics
    /// Panics if ping fails.
    pub fn round_trip(&self) -> Duration {
        let switch = self.switch_of(0).ip().to_string();
        let output = self.workers()[0].run(["ping", "-c", "101", "-i", "0.002", &switch]);
        let time = |line: &str| line.split_once("time=")?.1.split_whitespace().next()?.parse::<f64>().ok();
        let mut times: Vec<_> = output.lines().filter_map(time).collect();
        times.sort_by(f64::total_cmp);
        Duration::from_secs_f64(times[times.len() / 2] / 1e3)
    }
}
