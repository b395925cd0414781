//! Racks of workers and the switches above them.

use std::net::{Ipv4Addr, SocketAddrV4};

use iswitch_lab::network::bridge_commands;
use iswitch_protocol::limits::DEFAULT_PORT;
use serde_json::Value;

use crate::cluster::{Daemon, Group, PortKind, SOON};
use crate::netns::{Cable, Namespace, Star, StarOptions};

/// Address of the switch above the racks.
pub const ROOT_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 8, 0, 254);
/// Address of the switch above the trees of a [`ThreeLevelTree`].
pub const TOP_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 7, 0, 254);
/// Interface of a switch that leads to its parent.
pub const UPLINK_INTERFACE: &str = "u0";
/// MTU of every cable, in bytes.
pub const MTU_BYTES: u32 = 1500;

/// Creates a namespace with a bridge.
pub fn bridge(role: &str, address: Ipv4Addr, mac: [u8; 6]) -> Namespace {
    let namespace = Namespace::new(role);
    namespace.ip(&bridge_commands(address, mac));
    namespace
}

/// Returns the name of the bridge port of a switch's n-th child (from 0).
pub fn port(child: usize) -> String {
    format!("r{}", child + 1)
}

/// Returns the n-th address (from 0) of a bridge's own network.
pub fn neighbour(bridge: Ipv4Addr, number: usize) -> Ipv4Addr {
    let [a, b, c, _] = bridge.octets();
    Ipv4Addr::new(a, b, c, number as u8 + 1)
}

/// Returns the cable between a switch and its parent's bridge.
pub fn uplink<'a>(above: &'a Namespace, address: Ipv4Addr, below: &'a Namespace, child: usize) -> Cable<'a> {
    Cable {
        switch: above,
        port: port(child),
        end: below,
        interface: UPLINK_INTERFACE,
        address: neighbour(address, child),
        switch_address: address,
        mtu_bytes: MTU_BYTES,
    }
}

/// Creates an uplink cable, configures its end at the child, and waits until it carries frames.
pub fn plug_in(cable: &Cable<'_>) {
    cable.lay();
    cable.configure();
    cable.await_frames();
}

fn parent_at(address: Ipv4Addr) -> String {
    SocketAddrV4::new(address, DEFAULT_PORT).to_string()
}

/// A switch above several [`Star`]s, whose switches reach it through a bridge.
///
/// Rack i (from 0) is plugged into the root's bridge port `r<i + 1>` and has the address 10.8.0.(i + 1) there.
#[derive(Debug)]
pub struct Tree {
    /// The switch above the racks.
    pub root: Namespace,
    /// The racks; all use the same addresses for their workers.
    pub racks: Vec<Star>,
}

impl Tree {
    /// Creates racks with the given numbers of workers and waits until all cables carry frames.
    ///
    /// # Panics
    /// Panics if a step fails; call [`crate::requirements::networks_and`] first.
    pub fn new(workers: &[usize]) -> Self {
        let root = bridge("root", ROOT_ADDRESS, [2, 0, 0, 0, 1, 0xfe]);
        let star = |workers: &usize| Star::new(StarOptions { workers: *workers, ..StarOptions::default() });
        let tree = Self { root, racks: workers.iter().map(star).collect() };
        (0..workers.len()).for_each(|rack| plug_in(&tree.uplink(rack)));
        tree
    }

    /// Returns the cable between a rack's switch and the root.
    pub fn uplink(&self, rack: usize) -> Cable<'_> {
        uplink(&self.root, ROOT_ADDRESS, &self.racks[rack].switch, rack)
    }

    /// Returns the address of a rack's switch on the network of the root.
    pub fn rack_address(rack: usize) -> Ipv4Addr {
        neighbour(ROOT_ADDRESS, rack)
    }

    /// Connects another switch to the root's bridge, in addition to the racks, and returns its namespace and address.
    ///
    /// # Panics
    /// Panics if a step fails or the port is already in use.
    pub fn plug_switch(&self, place: usize) -> (Namespace, Ipv4Addr) {
        let namespace = Namespace::new("switch");
        let cable = uplink(&self.root, ROOT_ADDRESS, &namespace, place);
        plug_in(&cable);
        let address = cable.address;
        (namespace, address)
    }

    /// Starts the root's daemon.
    ///
    /// # Panics
    /// Panics if the daemon does not become ready.
    pub fn start_root(&self, kind: PortKind, arguments: &[&str]) -> Daemon {
        let ports: Vec<_> = (0..self.racks.len()).map(port).collect();
        Daemon::serving(&self.root, ROOT_ADDRESS, kind, &ports, arguments)
    }

    /// Starts the daemon of a rack, with the root as its parent.
    ///
    /// # Panics
    /// Panics if the daemon does not become ready.
    pub fn start_rack(&self, rack: usize, kind: PortKind, arguments: &[&str]) -> Daemon {
        self.start_rack_below(&[ROOT_ADDRESS], rack, kind, arguments)
    }

    /// Starts the daemon of a rack with the given parent candidates.
    ///
    /// # Panics
    /// Panics if the daemon does not become ready.
    pub fn start_rack_below(
        &self,
        parents: &[Ipv4Addr],
        rack: usize,
        kind: PortKind,
        arguments: &[&str],
    ) -> Daemon {
        let parents: Vec<_> = parents.iter().map(|address| parent_at(*address)).collect();
        let parents = parents.iter().flat_map(|parent| ["--parent", parent]);
        let arguments: Vec<_> = parents.chain(arguments.iter().copied()).collect();
        Daemon::in_star(&self.racks[rack], kind, &arguments)
    }

    /// Returns the workers of all racks.
    pub fn workers(&self) -> impl Iterator<Item = &Namespace> {
        self.racks.iter().flat_map(|rack| &rack.workers)
    }
}

/// A switch above several [`Tree`]s, whose roots reach it through a bridge: three levels of switches.
#[derive(Debug)]
pub struct ThreeLevelTree {
    /// The switch above the trees.
    pub top: Namespace,
    /// The trees; all use the same addresses.
    pub trees: Vec<Tree>,
}

impl ThreeLevelTree {
    /// Creates trees whose racks have the given numbers of workers, and waits until the cables carry frames.
    ///
    /// # Panics
    /// Panics if a step fails; call [`crate::requirements::networks_and`] first.
    pub fn new(workers: &[&[usize]]) -> Self {
        let top = bridge("top", TOP_ADDRESS, [2, 0, 0, 0, 2, 0xfe]);
        let trees: Vec<_> = workers.iter().map(|workers| Tree::new(workers)).collect();
        for (child, tree) in trees.iter().enumerate() {
            plug_in(&uplink(&top, TOP_ADDRESS, &tree.root, child));
        }
        Self { top, trees }
    }

    /// Starts the daemons of all switches and returns them by level: the top, the roots of the trees, the racks.
    ///
    /// # Panics
    /// Panics if a daemon does not become ready.
    pub fn start(&self, kind: PortKind) -> [Vec<Daemon>; 3] {
        let ports: Vec<_> = (0..self.trees.len()).map(port).collect();
        let top = Daemon::serving(&self.top, TOP_ADDRESS, kind, &ports, &[]);
        let parent = parent_at(TOP_ADDRESS);
        let roots = self.trees.iter().map(|tree| tree.start_root(kind, &["--parent", &parent]));
        let roots = roots.collect();
        let racks = self
            .trees
            .iter()
            .flat_map(|tree| (0..tree.racks.len()).map(move |rack| tree.start_rack(rack, kind, &[])));
        [vec![top], roots, racks.collect()]
    }

    /// Returns the workers of all racks.
    pub fn workers(&self) -> impl Iterator<Item = &Namespace> {
        self.trees.iter().flat_map(Tree::workers)
    }
}

/// A job with all workers of a tree.
#[derive(Debug)]
pub struct TreeJob {
    /// The daemon of the root.
    pub root: Daemon,
    /// The daemons of the racks.
    pub racks: Vec<Daemon>,
    /// The workers, rack by rack.
    pub workers: Group,
}

impl TreeJob {
    /// Starts the daemons and the workers.
    ///
    /// # Panics
    /// Panics if a daemon or a worker cannot be started.
    pub fn start(tree: &Tree, kind: PortKind, options: &[&str], arguments: &str) -> Self {
        let root = tree.start_root(kind, options);
        let racks = (0..tree.racks.len()).map(|rack| tree.start_rack(rack, kind, options)).collect();
        Self::below(tree, root, racks, arguments)
    }

    /// Starts the workers of a tree whose daemons are already running.
    ///
    /// # Panics
    /// Panics if a worker cannot be started.
    pub fn below(tree: &Tree, root: Daemon, racks: Vec<Daemon>, arguments: &str) -> Self {
        let workers = Group::of(tree.workers(), racks[0].address(), arguments);
        Self { root, racks, workers }
    }

    /// Waits until each rack has new sums.
    ///
    /// # Panics
    /// Panics if a rack receives no new sum in time.
    pub fn wait_for_results(&self) {
        self.racks.iter().for_each(|rack| {
            rack.wait_for_results();
        });
    }

    /// Waits until each rack has new results, stops all workers after the same round, and returns their results.
    ///
    /// # Panics
    /// Panics if a sum is wrong or a round does not complete.
    pub fn finish(mut self) -> Vec<Value> {
        self.wait_for_results();
        self.workers.end();
        self.workers.results(2 * SOON)
    }
}
