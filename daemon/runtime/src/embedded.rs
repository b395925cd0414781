//! A switch embedded in another program: one or more threads, each with a UDP port and a packet loop.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use iswitch_protocol::limits::MAX_PARTS;
use iswitch_protocol::wire::Classifier;
use iswitch_socket::Options;

use crate::port::{Port, UdpPort};
use crate::runtime::{DEFAULT_SPIN, Handle, Runtime};
use crate::snapshot::Snapshot;
use crate::threads::{OtherThreads, bind_consecutive, divided, of_thread};
use iswitch_switch::{Config, Keys, PortId, SECRET_LEN_BYTES};

/// Options of an embedded switch.
#[derive(Clone, Copy, Debug)]
pub struct EmbeddedOptions {
    /// Configuration of the core. Three fields are replaced: a boot id of zero becomes a random boot id, a
    /// `strangers.key` of zeros becomes a random secret, and `recv_buffer_bytes` becomes the size that the kernel
    /// grants.
    pub config: Config,
    /// Options of the socket.
    pub socket: Options,
    /// ToS values of packets.
    pub classifier: Classifier,
    /// Maximum time to poll for packets before blocking. Polling shortens a round trip but occupies a core. The default
    /// is [`DEFAULT_SPIN`].
    pub spin: Duration,
    /// Number of threads, each of which sums one part of every long vector; zero counts as one. The threads serve
    /// consecutive UDP ports, starting with the port of the address.
    pub threads: usize,
}

impl Default for EmbeddedOptions {
    fn default() -> Self {
        let (config, socket, classifier) = (Config::default(), Options::default(), Classifier::default());
        Self { config, socket, classifier, spin: DEFAULT_SPIN, threads: 1 }
    }
}

/// Switch that runs in threads of this process until it is dropped.
#[derive(Debug)]
pub struct EmbeddedSwitch {
    address: SocketAddrV4,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl EmbeddedSwitch {
    /// Starts a switch on a local address; port 0 selects a free port.
    ///
    /// # Errors
    /// Fails if `bind(2)` fails or if a thread cannot be started.
    pub fn start(address: SocketAddrV4, options: &EmbeddedOptions) -> io::Result<Self> {
        Self::start_with_keys(address, options, Keys::default())
    }

    /// Starts a switch like [`Self::start`], and gives it the keys of jobs. To create `keys`, use [`random_secret`].
    ///
    /// # Errors
    /// Returns the errors of [`Self::start`].
    pub fn start_with_keys(address: SocketAddrV4, options: &EmbeddedOptions, keys: Keys) -> io::Result<Self> {
        let threads = options.threads.clamp(1, MAX_PARTS);
        let ports = bind_consecutive(PortId(0), address, threads, options.classifier, &options.socket)?;
        let address = ports[0].address();
        let mut config = divided(options.config, threads);
        if config.strangers.key == [0; SECRET_LEN_BYTES] {
            config.strangers.key = random_secret()?;
        }
        let (other_keys, mut keys) = (keys.clone(), Some(keys));
        let start = |(at, port): (usize, UdpPort)| {
            let mut config = of_thread(config, at);
            if config.boot == 0 {
                config.boot = random_boot();
            }
            // The first thread uses the caller's secret.
            let keys = match keys.take() {
                Some(first) => first,
                None => other_keys.clone().with_secret(random_secret()?),
            };
            let ports: Vec<Box<dyn Port>> = vec![Box::new(port)];
            Runtime::with_keys(config, keys, ports, options.spin)
        };
        let started = ports.into_iter().enumerate().map(start).collect::<io::Result<Vec<_>>>()?;
        let (runtimes, handles): (Vec<_>, Vec<_>) = started.into_iter().unzip();
        let handle = Handle::of_all(handles);
        let mut runtimes = runtimes.into_iter();
        let first = runtimes.next().expect("there is at least one thread");
        let others = OtherThreads::start(runtimes, &handle)?;
        let thread = std::thread::Builder::new().name("iswitch".to_owned()).spawn(move || {
            if let Err(error) = first.run().and_then(|last| others.join(last)) {
                tracing::error!(%error, "the embedded switch has failed");
            }
        })?;
        Ok(Self { address, handle, thread: Some(thread) })
    }

    /// Returns the address at which workers reach the switch.
    pub fn address(&self) -> SocketAddrV4 {
        self.address
    }

    /// Returns the state of the switch: its counters, its port and its jobs. The switch makes at most 50 snapshots per
    /// second; a call that exceeds this rate waits.
    ///
    /// # Errors
    /// Returns the errors of [`Handle::snapshot`].
    pub fn snapshot(&self) -> io::Result<Arc<Snapshot>> {
        self.handle.snapshot()
    }
}

impl Drop for EmbeddedSwitch {
    fn drop(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            // The panic message of the switch's thread has already been printed, and a drop must not panic again.
            let _ = thread.join();
        }
    }
}

/// Returns a random secret for [`Keys`], for this run of the switch.
///
/// # Errors
/// Fails if the system cannot provide random numbers.
pub fn random_secret() -> io::Result<[u8; SECRET_LEN_BYTES]> {
    let mut secret = [0; SECRET_LEN_BYTES];
    getrandom::fill(&mut secret)?;
    Ok(secret)
}

/// Returns a random boot id, which identifies one run of a switch and is never zero.
pub fn random_boot() -> u64 {
    // The standard library seeds its hasher with random numbers from the system, but does not guarantee a new seed for
    // each process. The time and the process id make the number unique.
    RandomState::new().hash_one((SystemTime::now(), std::process::id())).max(1)
}
