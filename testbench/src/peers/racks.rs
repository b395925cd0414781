//! Racks of workers, each with a child switch, below one parent switch. Each rack is a separate IP network. The
//! switches route between the networks, so that a ring and a parameter server use the same cables.

use std::net::{Ipv4Addr, SocketAddrV4};

use iswitch_protocol::limits::DEFAULT_PORT;

use iswitch_harness::cluster::{Daemon, PortKind};
use iswitch_harness::netns::{Cable, Namespace, Star, WORKER_INTERFACE};
use iswitch_harness::tree::{MTU_BYTES, ROOT_ADDRESS, bridge, neighbour, plug_in, port, uplink};

/// Racks, and a server that is connected to the parent switch.
#[derive(Debug)]
pub struct Racks {
    root: Namespace,
    each: Vec<Rack>,
    server: Namespace,
}

#[derive(Debug)]
struct Rack {
    switch: Namespace,
    workers: Vec<Namespace>,
}

/// Returns racks of three workers, as in the paper, or of two if there are four workers.
pub fn racks_of(workers: usize) -> Vec<usize> {
    let size = if workers == 4 { 2 } else { 3 };
    let mut racks = vec![size; workers / size];
    racks.extend(Some(workers % size).filter(|rest| *rest > 0));
    racks
}

impl Racks {
    /// Creates racks with the given numbers of workers, and waits until the cables carry frames.
    ///
    /// # Panics
    /// Panics if a step fails. Call [`iswitch_harness::requirements::networks_and`] first.
    pub(super) fn new(workers: &[usize]) -> Self {
        let rack = |(rack, workers): (usize, &usize)| Rack {
            switch: bridge(&format!("sw{}", rack + 1), switch_address(rack), [2, 0, 0, 1, rack as u8, 0xfe]),
            workers: (0..*workers)
                .map(|worker| Namespace::new(&format!("w{}-{}", rack + 1, worker + 1)))
                .collect(),
        };
        let racks = Self {
            root: bridge("root", ROOT_ADDRESS, [2, 0, 0, 0, 1, 0xfe]),
            each: workers.iter().enumerate().map(rack).collect(),
            server: Namespace::new("server"),
        };
        racks.cables().iter().for_each(plug_in);
        racks
    }

    /// Adds routes from each machine to the networks of the others.
    pub(super) fn route(&self) {
        for rack in 0..self.each.len() {
            let routes: String = (0..self.each.len()).filter(|other| *other != rack).map(route_to).collect();
            let switch = &self.each[rack].switch;
            switch.ip(&routes);
            switch.run(["sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"]);
            let up = format!("route add default via {}\n", switch_address(rack));
            self.each[rack].workers.iter().for_each(|worker| worker.ip(&up));
        }
        self.server.ip(&(0..self.each.len()).map(route_to).collect::<String>());
    }

    /// Returns all cables: those of the workers, those between switches, and that of the server.
    pub(super) fn cables(&self) -> Vec<Cable<'_>> {
        let workers = self.each.iter().enumerate().flat_map(|(rack, below)| {
            below.workers.iter().enumerate().map(move |(worker, end)| Cable {
                switch: &below.switch,
                port: Star::port(worker),
                end,
                interface: WORKER_INTERFACE,
                address: neighbour(switch_address(rack), worker),
                switch_address: switch_address(rack),
                mtu_bytes: MTU_BYTES,
            })
        });
        let above = self.each.iter().map(|rack| &rack.switch).chain([&self.server]);
        let above = above.enumerate().map(|(child, below)| uplink(&self.root, ROOT_ADDRESS, below, child));
        workers.chain(above).collect()
    }

    pub(super) fn workers(&self) -> impl Iterator<Item = &Namespace> {
        self.each.iter().flat_map(|rack| &rack.workers)
    }

    pub(super) fn count(&self) -> usize {
        self.each.len()
    }

    /// Returns the rack of a worker and the worker's index in it.
    fn place(&self, rank: usize) -> (usize, usize) {
        let mut place = rank;
        for (rack, Rack { workers, .. }) in self.each.iter().enumerate() {
            if place < workers.len() {
                return (rack, place);
            }
            place -= workers.len();
        }
        panic!("rank is {rank}, expected less than the number of workers ({})", self.workers().count())
    }

    pub(super) fn worker_address(&self, rank: usize) -> Ipv4Addr {
        let (rack, worker) = self.place(rank);
        neighbour(switch_address(rack), worker)
    }

    pub(super) fn switch_address_of(&self, rank: usize) -> Ipv4Addr {
        switch_address(self.place(rank).0)
    }

    pub(super) fn server(&self) -> &Namespace {
        &self.server
    }

    pub(super) fn server_address(&self) -> Ipv4Addr {
        neighbour(ROOT_ADDRESS, self.each.len())
    }

    /// Starts the daemon of the parent switch, then those of the racks.
    pub(super) fn start_switches(&self, kind: PortKind, options: &[&str]) -> Vec<Daemon> {
        let ports = |count, name: fn(usize) -> String| (0..count).map(name).collect::<Vec<_>>();
        let root = Daemon::serving(&self.root, ROOT_ADDRESS, kind, &ports(self.each.len(), port), options);
        let parent = SocketAddrV4::new(ROOT_ADDRESS, DEFAULT_PORT).to_string();
        let racks = self.each.iter().enumerate().map(|(rack, Rack { switch, workers })| {
            let ports = ports(workers.len(), Star::port);
            let options = [&["--parent", &parent], options].concat();
            Daemon::serving(switch, switch_address(rack), kind, &ports, &options)
        });
        [root].into_iter().chain(racks).collect()
    }
}

/// Returns the address at which workers reach the switch of their rack.
fn switch_address(rack: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 9, rack as u8 + 1, 254)
}

/// Returns the `ip` command that adds a route to the workers of a rack via its switch.
fn route_to(rack: usize) -> String {
    format!("route add {}/24 via {}\n", neighbour_network(rack), neighbour(ROOT_ADDRESS, rack))
}

fn neighbour_network(rack: usize) -> Ipv4Addr {
    let [a, b, c, _] = switch_address(rack).octets();
    Ipv4Addr::new(a, b, c, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rack_sizes_match_the_paper() {
        assert_eq!(racks_of(4), [2, 2]);
        assert_eq!(racks_of(6), [3, 3]);
        assert_eq!(racks_of(9), [3, 3, 3]);
        assert_eq!(racks_of(12), [3; 4]);
        assert_eq!(racks_of(8), [3, 3, 2]);
    }
}
