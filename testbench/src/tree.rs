//! Racks of workers, and a root switch above those of the racks.

use std::net::{Ipv4Addr, SocketAddrV4};

use iswitch_protocol::limits::DEFAULT_PORT;

use crate::binaries;
use crate::cluster::{Daemon, Group, PortKind};
use crate::netns::{Namespace, Star, StarOptions};

/// Address of the root.
pub const ROOT_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 8, 0, 254);
/// Interface of a rack's switch that leads to the root.
pub const UPLINK_INTERFACE: &str = "u0";

/// A switch above several [`Star`]s, whose own switches reach it through a bridge.
///
/// Rack i (from 0) is plugged into the root's bridge port `r<i + 1>` and has the address 10.8.0.(i + 1) there.
#[derive(Debug)]
pub struct Tree {
    /// The switch above the racks.
    pub root: Namespace,
    /// The racks. Their workers have the same addresses in each of them.
    pub racks: Vec<Star>,
}

impl Tree {
    /// Makes racks of so many workers each, and waits until the cables carry frames.
    ///
    /// # Panics
    /// If something fails: ask [`crate::requirements::root_and`] first.
    pub fn new(workers: &[usize]) -> Self {
        let root = Namespace::new("root");
        root.ip(&format!(
            "link add br0 address 02:00:00:00:01:fe type bridge stp_state 0 forward_delay 0\n\
             link set br0 up\naddr add {ROOT_ADDRESS}/24 dev br0\n"
        ));
        let rack = |(rack, workers): (usize, &usize)| {
            let star = Star::new(StarOptions { workers: *workers, ..StarOptions::default() });
            let (port, name) = (Self::port(rack), star.switch.name());
            root.ip(&format!(
                "link add {port} type veth peer name {UPLINK_INTERFACE} netns {name}\n\
                 link set {port} master br0 up\n"
            ));
            let address = Self::rack_address(rack);
            star.switch.ip(&format!(
                "addr add {address}/24 dev {UPLINK_INTERFACE}\nlink set {UPLINK_INTERFACE} up\n"
            ));
            star.switch.run(["ping", "-q", "-c", "1", "-w", "5", &ROOT_ADDRESS.to_string()]);
            star
        };
        let racks = workers.iter().enumerate().map(rack).collect();
        Self { root, racks }
    }

    /// Name of the root's bridge port for a rack.
    pub fn port(rack: usize) -> String {
        format!("r{}", rack + 1)
    }

    /// Address of a rack's switch towards the root.
    pub fn rack_address(rack: usize) -> Ipv4Addr {
        Ipv4Addr::new(10, 8, 0, rack as u8 + 1)
    }

    /// Starts the root's daemon.
    ///
    /// # Panics
    /// If it does not become ready.
    pub fn start_root(&self, kind: PortKind, arguments: &[&str]) -> Daemon {
        let address = SocketAddrV4::new(ROOT_ADDRESS, DEFAULT_PORT);
        let mut command = self.root.command(binaries::iswitchd());
        match kind {
            PortKind::Raw => (0..self.racks.len()).for_each(|rack| {
                command.arg("--port").arg(Self::port(rack));
            }),
            PortKind::Udp => {
                command.arg("--udp").arg(address.to_string());
            }
        }
        Daemon::start(command.args(arguments), Some(address))
    }

    /// Starts the daemon of a rack, below the root.
    ///
    /// # Panics
    /// If it does not become ready.
    pub fn start_rack(&self, rack: usize, kind: PortKind, arguments: &[&str]) -> Daemon {
        let parent = SocketAddrV4::new(ROOT_ADDRESS, DEFAULT_PORT).to_string();
        Daemon::in_star(&self.racks[rack], kind, &[&["--parent", &parent], arguments].concat())
    }

    /// Starts one job on all workers of all racks; each joins the switch of its rack.
    ///
    /// # Panics
    /// If one cannot be started.
    pub fn start_workers(&self, switch: SocketAddrV4, arguments: &str) -> Group {
        let workers = self.racks.iter().flat_map(|rack| &rack.workers);
        let commands = workers.clone().map(|worker| worker.command(binaries::all_reduce()));
        Group::start(commands, workers.count(), switch, arguments)
    }
}
