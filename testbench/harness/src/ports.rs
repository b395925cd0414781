//! Free ports of the loopback interface.

use std::net::TcpListener;

/// Returns `COUNT` distinct ports on which no process listens.
///
/// # Panics
/// Panics if there are not enough free ports.
pub fn free_ports<const COUNT: usize>() -> [u16; COUNT] {
    // All listeners exist at the same time, so that the ports differ.
    let listeners: [TcpListener; COUNT] =
        std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").expect("there must be a free port"));
    listeners.map(|listener| listener.local_addr().expect("a bound socket must have an address").port())
}
