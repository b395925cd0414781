//! Networks in which workers are connected to the bridge of a switch.

use std::net::Ipv4Addr;

use crate::LabError;
use crate::links::Links;
use crate::namespace::Namespace;

/// Name of the only interface of each worker.
pub const WORKER_INTERFACE: &str = "e0";
/// MAC address of the bridge.
pub const SWITCH_MAC: [u8; 6] = [2, 0, 0, 0, 0, 0xfe];
/// Address of the bridge.
pub const SWITCH_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 254);

/// Returns the name of the bridge port that a worker is connected to.
pub fn port(worker: usize) -> String {
    format!("s{}", worker + 1)
}

/// Returns the address of a worker.
pub fn worker_address(worker: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 9, 0, worker as u8 + 1)
}

/// Returns the `ip` commands that create the bridge `br0`. They set its MAC address explicitly, so that the address
/// does not change when ports are added or removed.
pub fn bridge_commands(address: Ipv4Addr, mac: [u8; 6]) -> String {
    let mac = mac.map(|byte| format!("{byte:02x}")).join(":");
    format!(
        "link add br0 address {mac} type bridge stp_state 0 forward_delay 0\n\
         link set br0 up\naddr add {address}/24 dev br0\n"
    )
}

/// Veth pair between a port of the bridge `br0` and an interface in another namespace.
#[derive(Clone, Debug)]
pub struct Cable<'a> {
    /// Name of the bridge port.
    pub port: String,
    /// Name of the interface at the far end.
    pub interface: &'a str,
    /// Address of the interface at the far end.
    pub address: Ipv4Addr,
    /// MTU of both ends, in bytes.
    pub mtu_bytes: u32,
}

impl Cable<'_> {
    /// Returns the `ip` commands that create a cable. One end is the bridge port; the other end is created in the
    /// namespace `end`.
    pub fn lay_commands(&self, end: &str) -> String {
        let Self { port, interface, mtu_bytes, .. } = self;
        format!(
            "link add {port} mtu {mtu_bytes} type veth peer name {interface} mtu {mtu_bytes} netns {end}\n\
             link set {port} master br0 up\n"
        )
    }

    /// Returns the `ip` commands that assign an address to the far end and bring it up.
    pub fn configure_commands(&self) -> String {
        let Self { address, interface, .. } = self;
        format!("addr add {address}/24 dev {interface}\nlink set {interface} up\n")
    }
}

/// Switch with workers. Each worker is connected to a port of the switch's bridge.
#[derive(Debug)]
pub struct Network {
    /// Namespace of the switch.
    pub switch: Namespace,
    /// Namespaces of the workers, by rank.
    pub workers: Vec<Namespace>,
}

impl Network {
    /// Creates the namespaces `switch`, `worker0`, `worker1` and so on, the links and the bridge. Waits until the links
    /// carry frames.
    ///
    /// # Errors
    /// Fails if a command fails.
    pub fn new(workers: usize, mtu_bytes: u32, links: Links) -> Result<Self, LabError> {
        let switch = Namespace::new("switch")?;
        switch.ip(&bridge_commands(SWITCH_ADDRESS, SWITCH_MAC))?;
        let mut network = Self { switch, workers: Vec::with_capacity(workers) };
        for rank in 0..workers {
            let end = Namespace::new(format!("worker{rank}"))?;
            network.plug_in(rank, &end, mtu_bytes)?;
            network.workers.push(end);
        }
        network.switch.ip(&format!("link set br0 mtu {mtu_bytes}\n"))?;
        for (rank, end) in network.workers.iter().enumerate() {
            end.run(["ping", "-q", "-c", "1", "-w", "5", &SWITCH_ADDRESS.to_string()])?;
            links.shape(&network.switch, &port(rank))?;
            links.shape(end, WORKER_INTERFACE)?;
        }
        Ok(network)
    }

    fn plug_in(&self, rank: usize, end: &Namespace, mtu_bytes: u32) -> Result<(), LabError> {
        let (port, address) = (port(rank), worker_address(rank));
        let cable = Cable { port, interface: WORKER_INTERFACE, address, mtu_bytes };
        self.switch.ip(&cable.lay_commands(end.name()))?;
        end.ip(&cable.configure_commands())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_commands_name_both_ends_of_a_link() {
        let bridge = bridge_commands(SWITCH_ADDRESS, SWITCH_MAC);
        assert!(
            bridge.contains("address 02:00:00:00:00:fe ") && bridge.contains(" 10.9.0.254/24 "),
            "{bridge}"
        );
        let cable = Cable { port: port(2), interface: "e0", address: worker_address(2), mtu_bytes: 9000 };
        let lay = cable.lay_commands("there");
        assert!(
            lay.starts_with("link add s3 mtu 9000 type veth peer name e0 mtu 9000 netns there\n"),
            "{lay}"
        );
        assert_eq!(cable.configure_commands(), "addr add 10.9.0.3/24 dev e0\nlink set e0 up\n");
    }
}
