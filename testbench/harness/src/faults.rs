//! Faults that the kernel injects into iSwitch packets between a worker and its bridge port.
//!
//! Faults are applied to packets for the switch as they leave the worker, because a daemon's packet socket receives
//! frames before any netfilter hook. Netfilter treats an offloaded super-frame as one packet, so up to 64 datagrams
//! share one fault. For independent faults per datagram, the sender must not use offload.

use iswitch_protocol::wire::Classifier;

use crate::netns::{Namespace, WORKER_INTERFACE};

const TABLE: &str = "iswitch_faults";
/// Position of the byte that is corrupted, in bits from the start of the UDP header. The byte belongs to a data
/// packet's fourth float.
const CORRUPTED_BIT: u32 = 8 * (8 + 8 + 3 * 4);

/// Rates of faults of iSwitch packets, in thousandths of the packets. Unless a field says otherwise, the rates apply in
/// each direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Rate at which packets are lost.
    pub loss_permille: u32,
    /// Rate at which packets are duplicated, in the direction of the switch only.
    pub duplication_permille: u32,
    /// Rate at which packets are corrupted in one byte, in the direction of the switch only; the checksum is not
    /// updated. The worker's kernel must compute checksums; see [`complete_checksums`].
    pub corruption_permille: u32,
}

/// Numbers of packets affected so far; a super-frame counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hits {
    /// Packets lost.
    pub lost: u64,
    /// Packets duplicated.
    pub duplicated: u64,
    /// Packets corrupted.
    pub corrupted: u64,
}

impl Faults {
    /// Injects the faults into the packets of a worker until its namespace is removed or [`remove`] is called.
    ///
    /// # Panics
    /// Panics if nft refuses the rules.
    pub fn inject(&self, worker: &Namespace) {
        let Classifier { control_tos, data_tos, .. } = Classifier::default();
        let tagged = format!("ip dscp {{ {}, {} }}", control_tos >> 2, data_tos >> 2);
        let data = format!("ip dscp {}", data_tos >> 2);
        let random = |permille: u32| format!("numgen random mod 1000 < {permille}");
        let (lose, duplicate, corrupt) =
            (random(self.loss_permille), random(self.duplication_permille), random(self.corruption_permille));
        // A duplicate passes this hook too and may be duplicated again; this ends because the probability is less than
        // one.
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

/// Returns the numbers of a worker's packets that the faults have affected.
///
/// # Panics
/// Panics if no faults were injected.
pub fn hits(worker: &Namespace) -> Hits {
    let count = |name: &str| {
        let text = worker.run(["nft", "-j", "list", "counter", "netdev", TABLE, name]);
        let listing: serde_json::Value = serde_json::from_str(&text).expect("nft must print JSON");
        let objects = listing["nftables"].as_array().expect("nft must print a list of objects");
        objects
            .iter()
            .find_map(|object| object["counter"]["packets"].as_u64())
            .expect("the rule must have a counter")
    };
    Hits { lost: count("lost"), duplicated: count("duplicated"), corrupted: count("corrupted") }
}

/// Removes the faults of a worker.
///
/// # Panics
/// Panics if no faults were injected.
pub fn remove(worker: &Namespace) {
    worker.run(["nft", "delete", "table", "netdev", TABLE]);
}

/// Makes a worker's kernel compute checksums. Otherwise the kernel leaves them to the virtual cable, which never
/// computes them.
///
/// # Panics
/// Panics if ethtool fails.
pub fn complete_checksums(worker: &Namespace) {
    worker.run(["ethtool", "-K", WORKER_INTERFACE, "tx", "off"]);
}
