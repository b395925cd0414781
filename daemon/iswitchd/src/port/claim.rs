//! Who serves an interface: a name that exactly one living process of the network namespace can hold.

use std::fmt::Write;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long [`InterfaceClaim::acquire`] waits: another daemon that starts at the same time holds a claim for
/// a moment while it removes the table that a crashed owner left behind.
const PATIENCE: Duration = Duration::from_secs(1);
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// The right to serve an interface, given up when dropped, and by the kernel when the process dies.
///
/// An abstract Unix socket: such names belong to the network namespace, as interfaces do, leave nothing
/// behind and cannot be taken twice.
#[derive(Debug)]
pub struct InterfaceClaim {
    _socket: UnixDatagram,
}

impl InterfaceClaim {
    /// Claims an interface, `AddrInUse` if another living process has it.
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

    /// Claims the interface that a table is named after, without waiting.
    pub(super) fn of_table(table: &str) -> io::Result<Self> {
        let name = SocketAddr::from_abstract_name(table)?;
        Ok(Self { _socket: UnixDatagram::bind_addr(&name)? })
    }
}

/// Start of the names of all our nft tables.
pub(super) const TABLE_PREFIX: &str = "iswitchd_";

/// The nft table of an interface: letters and digits as they are, any other byte as `_` and two hex digits.
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
