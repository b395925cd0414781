//! Free ports of the loop-back interface.

use std::net::TcpListener;

/// Ports that nobody listens at, all different.
///
/// # Panics
/// If there are none.
pub fn free_ports<const COUNT: usize>() -> [u16; COUNT] {
    // All at once, so that they differ.
    let listeners: [TcpListener; COUNT] =
        std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    listeners.map(|listener| listener.local_addr().expect("an address").port())
}
