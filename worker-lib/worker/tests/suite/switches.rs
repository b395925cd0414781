//! Embedded switches that tests start at a given address.

use std::io::ErrorKind;
use std::net::SocketAddrV4;
use std::time::{Duration, Instant};

use iswitch_runtime::embedded::{EmbeddedOptions, EmbeddedSwitch};

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
