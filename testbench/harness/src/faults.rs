//! Faults that the kernel injects between a worker and its bridge port, into tagged packets only.
//!
//! Packets to the switch are hit where they leave the worker, because the packet socket of a daemon reads an
//! interface before any netfilter hook of it. Netfilter sees an offloaded super-frame as one packet: up to 64
//! datagrams share its fate. Where each datagram is to have its own, the sender has to do without offload.

use iswitch_protocol::wire::Classifier;

use crate::netns::{Namespace, WORKER_INTERFACE};

const TABLE: &str = "iswitch_faults";
/// Position, in bits of the UDP packet, of a byte of the fourth float of a data packet.
const CORRUPTED_BIT: u32 = 8 * (8 + 8 + 3 * 4);

/// What happens to tagged packets, in thousandths of them, each way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Lost.
    pub loss_permille: u32,
    /// Delivered twice, to the switch only.
    pub duplication_permille: u32,
    /// Changed in one byte on the way to the switch, without a change of the checksum. Needs checksums: see
    /// [`complete_checksums`].
    pub corruption_permille: u32,
}

/// How many packets (super-frames count once) were hit so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hits {
    /// Lost.
    pub lost: u64,
    /// Delivered twice.
    pub duplicated: u64,
    /// Changed.
    pub corrupted: u64,
}

impl Faults {
    /// Injects the faults at a worker until its namespace is removed, or [`remove`] is called.
    ///
    /// # Panics
    /// If nft refuses it.
    pub fn inject(&self, worker: &Namespace) {
        let Classifier { control_tos, data_tos, .. } = Classifier::default();
        let tagged = format!("ip dscp {{ {}, {} }}", control_tos >> 2, data_tos >> 2);
        let data = format!("ip dscp {}", data_tos >> 2);
        let random = |permille: u32| format!("numgen random mod 1000 < {permille}");
        let (lose, duplicate, corrupt) =
            (random(self.loss_permille), random(self.duplication_permille), random(self.corruption_permille));
        // A copy passes the hook too, and may be hit again, but with a chance of less than one it ends.
        worker.nft(&format!(
            "table netdev {TABLE} {{
                counter lost {{ }}
                counter duplicated {{ }}
                counter corrupted {{ }}
                chain up {{
                    type filter hook egress device {WORKER_INTERFACE} priority 0;
                    {tagged} {lose} counter name lost drop
                    {tagged} {duplicate} counter name duplicated dup to {WORKER_INTERFACE}
                    {data} {corrupt} counter name corrupted @th,{CORRUPTED_BIT},8 set 0x55
                }}
                chain down {{
                    type filter hook ingress device {WORKER_INTERFACE} priority 0;
                    {tagged} {lose} counter name lost drop
                }}
            }}"
        ));
    }
}

/// How often the faults of a worker have hit.
///
/// # Panics
/// If none were injected.
pub fn hits(worker: &Namespace) -> Hits {
    let count = |name: &str| {
        let text = worker.run(["nft", "-j", "list", "counter", "netdev", TABLE, name]);
        let listing: serde_json::Value = serde_json::from_str(&text).expect("nft prints JSON");
        let objects = listing["nftables"].as_array().expect("a list of objects");
        objects.iter().find_map(|object| object["counter"]["packets"].as_u64()).expect("a counter")
    };
    Hits { lost: count("lost"), duplicated: count("duplicated"), corrupted: count("corrupted") }
}

/// Ends the faults of a worker.
///
/// # Panics
/// If none were injected.
pub fn remove(worker: &Namespace) {
    worker.run(["nft", "delete", "table", "netdev", TABLE]);
}

/// Lets a worker's kernel fill in checksums, which it otherwise leaves to a virtual cable that never does.
///
/// # Panics
/// If ethtool fails.
pub fn complete_checksums(worker: &Namespace) {
    worker.run(["ethtool", "-K", WORKER_INTERFACE, "tx", "off"]);
}
