//! Ports for raw frames, and the syntax that names a port.

mod claim;
mod descriptors;
mod filter;
mod ingress_rule;
mod interface;
mod packet_ring;
mod packet_sockets;
mod spec;
mod xdp;

pub use claim::InterfaceClaim;
pub use ingress_rule::{IngressRule, RuleError, RuleKeeper, RuleScript, remove_orphans};
pub use interface::{PortError, check_interface};
pub use packet_ring::{PacketOptions, PacketPort};
pub use packet_sockets::PacketSockets;
pub use spec::{AttachMode, CopyMode, PortSpec, XdpModes};
pub use xdp::{XdpKeeper, XdpOptions, XdpPort, XdpScript};
