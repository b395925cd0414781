//! The threads of a switch: each runs a loop with its own core, and sums one part of every long vector.
//!
//! The threads share no state on the packet path. Thread `i` serves the UDP ports of the first thread plus `i`, so that
//! the hardware queues of network cards, packet filters and sockets can separate the packets of the threads.

use std::io;
use std::net::SocketAddrV4;
use std::thread::JoinHandle;

use iswitch_protocol::limits::MAX_PARTS;
use iswitch_protocol::part;
use iswitch_protocol::wire::Classifier;
use iswitch_socket::Options;

use crate::port::UdpPort;
use crate::runtime::{Handle, Runtime};
use crate::snapshot::Snapshot;
use iswitch_switch::{Config, PortId, StrangerLimits};

/// Number of attempts to find free consecutive ports.
const BIND_ATTEMPTS: usize = 32;
/// Difference between the boot ids of consecutive cores, which are derived from the boot id of the switch. It is odd,
/// so that the boot ids stay distinct.
const BOOT_STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// Returns the configuration of each of `threads` cores. The memory limits and the total rate limit for non-members are
/// divided among the cores, so that the limits of the whole switch stay as configured. The other limits apply to each
/// core.
#[must_use]
pub fn divided(config: Config, threads: usize) -> Config {
    let threads = threads.clamp(1, MAX_PARTS);
    let total_rate = config.strangers.total_rate.div_ceil(threads as u32);
    Config {
        parts: threads as u8,
        memory_bytes: config.memory_bytes / threads,
        job_memory_bytes: if config.job_memory_bytes == usize::MAX {
            usize::MAX
        } else {
            config.job_memory_bytes / threads
        },
        strangers: StrangerLimits { total_rate, ..config.strangers },
        ..config
    }
}

/// Returns the configuration of one of the cores. Only the first core announces the parts, so that workers that use the
/// address of another core are served by that core alone. If the boot id is not zero, each core gets a different boot
/// id derived from it.
#[must_use]
pub fn of_thread(divided: Config, at: usize) -> Config {
    let parts = if at == 0 { divided.parts } else { 1 };
    let boot = match divided.boot {
        0 => 0,
        boot => boot.wrapping_add(BOOT_STEP.wrapping_mul(at as u64)).max(1),
    };
    Config { parts, boot, ..divided }
}

/// Binds the UDP port of each of `count` threads. If the port number of `address` is zero, the system selects the first
/// port, and the function makes up to 32 attempts to find a first port that is followed by enough free ports.
///
/// # Errors
/// Returns the errors of `bind(2)`.
pub fn bind_consecutive(
    id: PortId,
    address: SocketAddrV4,
    count: usize,
    classifier: Classifier,
    options: &Options,
) -> io::Result<Vec<UdpPort>> {
    let bind = |address| UdpPort::bind(id, address, classifier, options);
    let bind_all = || -> io::Result<Vec<UdpPort>> {
        let first = bind(address)?;
        let next = |at| part::address(first.address(), at).ok_or(io::ErrorKind::AddrNotAvailable);
        let others = (1..count).map(|at| bind(next(at)?)).collect::<io::Result<Vec<_>>>()?;
        Ok(std::iter::once(first).chain(others).collect())
    };
    let attempts = if address.port() == 0 { BIND_ATTEMPTS } else { 1 };
    let mut outcome = bind_all();
    for _ in 1..attempts {
        match &outcome {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => outcome = bind_all(),
            _ => break,
        }
    }
    outcome
}

/// Running loops of all threads except the first.
#[derive(Debug)]
pub struct OtherThreads {
    threads: Vec<JoinHandle<io::Result<Snapshot>>>,
}

impl OtherThreads {
    /// Starts a thread for each of the loops. When one of them ends for any reason, `handle` stops all loops.
    ///
    /// # Errors
    /// Fails if a thread cannot be started.
    pub fn start(runtimes: impl IntoIterator<Item = Runtime>, handle: &Handle) -> io::Result<Self> {
        let start = |(at, runtime): (usize, Runtime)| {
            let stop = StopOnExit(handle.clone());
            let run = move || {
                let _stop = stop;
                runtime.run()
            };
            std::thread::Builder::new().name(format!("iswitch-part-{}", at + 1)).spawn(run)
        };
        let threads = runtimes.into_iter().enumerate().map(start).collect::<io::Result<_>>()?;
        Ok(Self { threads })
    }

    /// Waits for the loops to end after they have been stopped. `first` is the final state of the first loop. Returns
    /// the final state of the whole switch.
    ///
    /// # Errors
    /// Fails if a loop has failed.
    pub fn join(self, first: Snapshot) -> io::Result<Snapshot> {
        let mut all = vec![first.into()];
        for thread in self.threads {
            // The panic message has already been printed.
            let outcome =
                thread.join().unwrap_or_else(|_| Err(io::Error::other("a packet thread has panicked")));
            all.push(outcome?.into());
        }
        Ok((*Snapshot::merged(all)).clone())
    }
}

/// Guard that stops all loops when one of them ends, because a job cannot continue without the part that this loop
/// sums.
struct StopOnExit(Handle);

impl Drop for StopOnExit {
    fn drop(&mut self) {
        self.0.stop();
    }
}
