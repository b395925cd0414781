//! Exclusive claim to an interface: a name that only one living process of the network namespace can hold.

use std::fmt::Write;
use std::io;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Maximum time that [`InterfaceClaim::acquire`] waits. A daemon that starts at the same time briefly holds a claim
/// while it removes the table that a crashed owner left behind.
const PATIENCE: Duration = Duration::from_secs(1);
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// Exclusive right to serve an interface. It is released when dropped, and by the kernel when the process dies.
///
/// The claim is an abstract Unix socket. Names of such sockets belong to the network namespace, as interfaces do; they
/// leave nothing behind and cannot be bound twice.
#[derive(Debug)]
pub struct InterfaceClaim {
    socket: UnixDatagram,
}

impl InterfaceClaim {
    /// Claims an interface. Fails with `AddrInUse` if another living process holds the claim.
    pub fn acquire(interface: &str) -> io::Result<Self> {
        let table = table_name(interface);
        let start = Instant::now();
        loop {
            match Self::of_table(&table) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && start.elapsed() < PATIENCE => {
                    sleep(RETRY_INTERVAL);
                }
                outcome => return outcome,
            }
        }
    }

    /// Takes over a claim that another process has passed.
    pub(super) fn passed(socket: OwnedFd) -> Self {
        Self { socket: socket.into() }
    }

    /// Returns the descriptor that holds the claim, to pass it to another process.
    pub(super) fn into_descriptor(self) -> OwnedFd {
        self.socket.into()
    }

    /// Claims the interface to which the table with this name belongs. Does not wait.
    pub(super) fn of_table(table: &str) -> io::Result<Self> {
        let name = SocketAddr::from_abstract_name(table)?;
        Ok(Self { socket: UnixDatagram::bind_addr(&name)? })
    }
}

/// Prefix of the names of all nft tables of iswitchd.
pub(super) const TABLE_PREFIX: &str = "iswitchd_";

/// Returns the name of the nft table of an interface. Letters and digits are kept; any other byte becomes `_` and two
/// hexadecimal digits.
pub(super) fn table_name(interface: &str) -> String {
    let mut name = TABLE_PREFIX.to_owned();
    for byte in interface.bytes() {
        if byte.is_ascii_alphanumeric() {
            name.push(char::from(byte));
        } else {
            let _ = write!(name, "_{byte:02x}");
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_names_are_nft_identifiers_and_differ() {
        assert_eq!(table_name("eth0"), "iswitchd_eth0");
        assert_eq!(table_name("br-lan.5"), "iswitchd_br_2dlan_2e5");
        assert_ne!(table_name("a_2d"), table_name("a-"));
    }

    #[test]
    fn an_interface_is_claimed_once() {
        let interface = format!("test{}", std::process::id());
        let first = InterfaceClaim::acquire(&interface).unwrap();
        assert_eq!(InterfaceClaim::acquire(&interface).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(first);
        InterfaceClaim::acquire(&interface).unwrap();
    }
}
