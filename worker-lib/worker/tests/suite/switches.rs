//! Addresses of embedded switches, and switches that tests start at a given address.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use iswitch_runtime::embedded::{EmbeddedOptions, EmbeddedSwitch};

/// Returns a loopback address that no other switch of the tests uses, with port 0.
///
/// If all switches had the address 127.0.0.1, a new switch could be given the port of a switch that another test has
/// stopped, and the workers of that test would join it.
pub(crate) fn own_address() -> SocketAddrV4 {
    static NEXT: AtomicU16 = AtomicU16::new(1);
    let [high, low] = NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    // Another test program may run at the same time.
    let [.., process] = std::process::id().to_be_bytes();
    SocketAddrV4::new(Ipv4Addr::new(127, process.max(1), high, low), 0)
}

/// Starts a switch at the address of one that was dropped.
///
/// If another test in this process starts a program, the child process holds the socket of the dropped switch until its
/// `exec`. The address may therefore remain in use for a moment.
pub(crate) fn restart_at(address: SocketAddrV4) -> EmbeddedSwitch {
    let begun = Instant::now();
    loop {
        match EmbeddedSwitch::start(address, &EmbeddedOptions::default()) {
            Ok(switch) => return switch,
            Err(error)
                if error.kind() == ErrorKind::AddrInUse && begun.elapsed() < Duration::from_secs(30) =>
            {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(error) => panic!("no switch at {address}: {error}"),
        }
    }
}
