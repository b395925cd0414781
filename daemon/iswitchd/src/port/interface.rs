//! State of a network interface, the claim to it, and the reasons why it cannot be a port.
#![allow(unsafe_code)]

use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;
use std::{fs, io};

use iswitch_protocol::wire::{Classifier, FrameAddresses};
use libc::c_int;

use super::claim::InterfaceClaim;
use super::ingress_rule::RuleError;
use iswitch_runtime::port::source::{self, BadSource};
use iswitch_switch::{Endpoint, PortId};

/// Reason why an interface cannot be a port.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// The interface does not exist.
    #[error("interface {name:?} does not exist, expected one of: {existing}")]
    NoInterface {
        /// Name that was given.
        name: String,
        /// Names of the existing interfaces.
        existing: String,
    },
    /// The interface does not carry Ethernet frames.
    #[error(
        "interface {0:?} is not an Ethernet interface; serve tunnels and other interfaces with --udp ADDR:PORT"
    )]
    NotEthernet(String),
    /// Another process serves the interface.
    #[error("interface {0:?} is already served by another iswitchd")]
    Taken(String),
    /// The ingress rules could not be installed.
    #[error("cannot install the ingress rules for {names}: {source}")]
    Rules {
        /// Names of the interfaces.
        names: String,
        /// Reason for the failure.
        source: RuleError,
    },
    /// Another XDP program is attached to the interface.
    #[error(
        "another XDP program is attached to interface {0:?}; detach it with `ip link set dev {0} xdp off` if it is not \
         in use, or serve the interface without XDP: --port {0}"
    )]
    ProgramAttached(String),
    /// The interface has more receive queues than a port serves.
    #[error(
        "interface {name:?} has {queues} queues, expected at most {most}; run `ethtool -L {name} combined {most}`"
    )]
    Queues {
        /// Name of the interface.
        name: String,
        /// Number of receive queues of the interface.
        queues: usize,
        /// Maximum number of queues that a port serves.
        most: usize,
    },
    /// A frame of the interface does not fit in one buffer.
    #[error(
        "interface {name:?} has an MTU of {mtu_bytes} bytes, expected at most {most_bytes} for an XDP port; \
         lower the MTU, or use --port {name}, which supports any MTU"
    )]
    Mtu {
        /// Name of the interface.
        name: String,
        /// MTU of the interface, in bytes.
        mtu_bytes: usize,
        /// Largest MTU that an XDP port supports, in bytes.
        most_bytes: usize,
    },
    /// A system call failed.
    #[error("interface {name:?}: cannot {call}: {source}")]
    System {
        /// Name of the interface.
        name: String,
        /// The operation that failed.
        call: &'static str,
        /// Error of the operating system.
        source: io::Error,
    },
}

/// Returns a function that converts the error of a failed system call.
pub(super) fn system(name: &str, call: &'static str) -> impl FnOnce(io::Error) -> PortError {
    let name = name.to_owned();
    move |source| PortError::System { name, call, source }
}

/// Checks that the interface exists; the error lists the existing ones.
pub fn check_interface(name: &str) -> Result<(), PortError> {
    let existing: Vec<_> = pnet_datalink::interfaces().into_iter().map(|interface| interface.name).collect();
    if existing.iter().any(|existing| existing == name) {
        return Ok(());
    }
    Err(PortError::NoInterface { name: name.to_owned(), existing: existing.join(", ") })
}

/// Claims an existing interface for this process.
pub(super) fn claim_interface(name: &str) -> Result<InterfaceClaim, PortError> {
    check_interface(name)?;
    InterfaceClaim::acquire(name).map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => PortError::Taken(name.to_owned()),
        _ => system(name, "claim it")(source),
    })
}

/// State of an interface when it was last read.
#[derive(Clone, Debug)]
pub(super) struct Interface {
    pub(super) name: String,
    pub(super) index: c_int,
    pub(super) mac: [u8; 6],
    pub(super) mtu_bytes: usize,
    pub(super) link: Link,
    /// Index of the bridge to which the interface belonged when the daemon started, if any.
    pub(super) bridge: Option<c_int>,
    /// Whether this is a loopback interface, whose senders are on this machine.
    is_loopback: bool,
}

/// State of the link of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Up,
    Down,
    Gone,
}

impl Interface {
    /// Finds an Ethernet interface by its name. `socket` may be any socket that accepts the `SIOCGIF*` requests.
    pub(super) fn find(name: &str, socket: BorrowedFd<'_>) -> Result<Self, PortError> {
        let mut interface = Self {
            name: name.to_owned(),
            index: 0,
            mac: [0; 6],
            mtu_bytes: 0,
            link: Link::Up,
            bridge: bridge_of(name),
            is_loopback: false,
        };
        if !interface.refresh(socket).map_err(system(name, "read its state"))? {
            return Err(PortError::NotEthernet(name.to_owned()));
        }
        Ok(interface)
    }

    /// Reads the whole state and returns whether the interface is Ethernet. Fails with `ENODEV` if no interface has
    /// that name now.
    pub(super) fn refresh(&mut self, socket: BorrowedFd<'_>) -> io::Result<bool> {
        let request = self.query(socket, libc::SIOCGIFINDEX)?;
        // SAFETY: SIOCGIFINDEX fills in this member.
        self.index = unsafe { request.ifr_ifru.ifru_ifindex };
        let request = self.query(socket, libc::SIOCGIFMTU)?;
        // SAFETY: SIOCGIFMTU fills in this member.
        let mtu_bytes = usize::try_from(unsafe { request.ifr_ifru.ifru_mtu }).unwrap_or(0);
        if self.mtu_bytes != 0 && self.mtu_bytes != mtu_bytes {
            tracing::info!(port = self.name, from = self.mtu_bytes, to = mtu_bytes, "MTU changed");
        }
        self.mtu_bytes = mtu_bytes;
        let request = self.query(socket, libc::SIOCGIFFLAGS)?;
        // SAFETY: SIOCGIFFLAGS fills in this member.
        let flags = c_int::from(unsafe { request.ifr_ifru.ifru_flags });
        self.set_link(if flags & libc::IFF_UP == 0 { Link::Down } else { Link::Up });
        let request = self.query(socket, libc::SIOCGIFHWADDR)?;
        // SAFETY: SIOCGIFHWADDR fills in this member.
        let hardware = unsafe { request.ifr_ifru.ifru_hwaddr };
        for (to, from) in self.mac.iter_mut().zip(hardware.sa_data) {
            *to = from as u8;
        }
        self.is_loopback = hardware.sa_family == libc::ARPHRD_LOOPBACK;
        Ok(matches!(hardware.sa_family, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK))
    }

    fn query(&self, socket: BorrowedFd<'_>, call: libc::Ioctl) -> io::Result<libc::ifreq> {
        let mut request = self.request();
        // SAFETY: the request is a live ifreq, which is what the SIOCGIF* calls read and write.
        let outcome = unsafe { libc::ioctl(socket.as_raw_fd(), call, &raw mut request) };
        if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(request) }
    }

    /// Returns an `ioctl(2)` request for this interface.
    pub(super) fn request(&self) -> libc::ifreq {
        // SAFETY: an ifreq consists of numbers and arrays of numbers, for which zero is a valid value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        // The last byte stays zero, because the name is a C string.
        let room = request.ifr_name.len() - 1;
        for (to, from) in request.ifr_name[..room].iter_mut().zip(self.name.bytes()) {
            *to = from as libc::c_char;
        }
        request
    }

    /// Sets the state of the link. If the state has changed, logs the change.
    pub(super) fn set_link(&mut self, link: Link) {
        if self.link != link {
            let port = &self.name;
            match link {
                Link::Up => tracing::info!(port, "interface is up"),
                Link::Down => tracing::warn!(port, "interface is down"),
                Link::Gone => {
                    tracing::warn!(port, "interface is gone; waiting for an interface with the same name");
                }
            }
            self.link = link;
        }
    }

    /// Checks that the sender of a received frame can be answered.
    pub(super) fn check_sender(&self, addresses: &FrameAddresses) -> Result<(), BadSource> {
        source::check(addresses.source, Some(addresses.source_mac), self.is_loopback)
    }

    /// Returns the sender and the destination of a received frame.
    pub(super) fn endpoint(&self, port: PortId, addresses: &FrameAddresses) -> Endpoint {
        // A frame to a group must not be answered from the MAC address of the group.
        let to_group = addresses.destination_mac[0] & 1 == 1;
        Endpoint {
            port,
            peer: addresses.source,
            local: addresses.destination,
            peer_mac: addresses.source_mac,
            local_mac: if to_group { self.mac } else { addresses.destination_mac },
        }
    }
}

/// Returns the index of the bridge to which an interface belongs, if any.
pub(super) fn bridge_of(name: &str) -> Option<c_int> {
    let master = Path::new("/sys/class/net").join(name).join("master");
    // A master that is not a bridge, such as a bond, does not count.
    if !master.join("bridge").exists() {
        return None;
    }
    fs::read_to_string(master.join("ifindex")).ok()?.trim().parse().ok()
}

/// Returns the addresses of a frame to a peer.
pub(super) fn frame_addresses(to: &Endpoint, classifier: &Classifier) -> FrameAddresses {
    FrameAddresses {
        source_mac: to.local_mac,
        destination_mac: to.peer_mac,
        source: SocketAddrV4::new(*to.local.ip(), classifier.udp_port),
        destination: to.peer,
    }
}
