//! A switch inside another program: a UDP port and the loop, in a thread.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use iswitch_protocol::wire::Classifier;
use iswitch_socket::Options;

use crate::port::{Port, UdpPort};
use crate::runtime::{Handle, Runtime};
use crate::snapshot::Snapshot;
use iswitch_switch::{Config, Keys, PortId, SECRET_LEN_BYTES};

/// What an embedded switch is to be like.
#[derive(Clone, Copy, Debug, Default)]
pub struct EmbeddedOptions {
    /// The core. A boot id and a key of zero are replaced by random ones, `recv_buffer_bytes` by what the kernel
    /// gives.
    pub config: Config,
    /// The socket.
    pub socket: Options,
    /// The ToS values.
    pub classifier: Classifier,
    /// How long to look for packets before blocking: shortens a round trip and costs a core.
    pub spin: Duration,
}

/// A switch that runs in a thread of this process until it is dropped.
#[derive(Debug)]
pub struct EmbeddedSwitch {
    address: SocketAddrV4,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl EmbeddedSwitch {
    /// Starts a switch on a local address; port 0 takes a free one.
    ///
    /// # Errors
    /// Those of `bind(2)`, and of starting a thread.
    pub fn start(address: SocketAddrV4, options: &EmbeddedOptions) -> io::Result<Self> {
        Self::start_with_keys(address, options, Keys::default())
    }

    /// The same with the keys of the jobs that have one, see [`random_secret`].
    ///
    /// # Errors
    /// As for [`Self::start`].
    pub fn start_with_keys(address: SocketAddrV4, options: &EmbeddedOptions, keys: Keys) -> io::Result<Self> {
        let port = UdpPort::bind(PortId(0), address, options.classifier, &options.socket)?;
        let address = port.address();
        let mut config = options.config;
        if config.boot == 0 {
            config.boot = random_boot();
        }
        if config.strangers.key == [0; SECRET_LEN_BYTES] {
            config.strangers.key = random_secret()?;
        }
        let ports: Vec<Box<dyn Port>> = vec![Box::new(port)];
        let (runtime, handle) = Runtime::with_keys(config, keys, ports, options.spin)?;
        let thread = std::thread::Builder::new().name("iswitch".to_owned()).spawn(move || {
            if let Err(error) = runtime.run() {
                tracing::error!(%error, "the embedded switch has ended");
            }
        })?;
        Ok(Self { address, handle, thread: Some(thread) })
    }

    /// Where workers reach the switch.
    pub fn address(&self) -> SocketAddrV4 {
        self.address
    }

    /// The state of the switch: its counters, its port and its jobs. Not made more often than 50 times a second:
    /// a second call waits.
    ///
    /// # Errors
    /// See [`Handle::snapshot`].
    pub fn snapshot(&self) -> io::Result<Arc<Snapshot>> {
        self.handle.snapshot()
    }
}

impl Drop for EmbeddedSwitch {
    fn drop(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            // A panic of the switch's thread has been printed; dropping must not raise another.
            let _ = thread.join();
        }
    }
}

/// The secret of [`Keys`], of this run.
///
/// # Errors
/// If the system has no random numbers.
pub fn random_secret() -> io::Result<[u8; SECRET_LEN_BYTES]> {
    let mut secret = [0; SECRET_LEN_BYTES];
    getrandom::fill(&mut secret)?;
    Ok(secret)
}

/// A number that differs from one run to the next, not zero.
pub fn random_boot() -> u64 {
    // The standard library's hasher is seeded by the system's random numbers, but perhaps not for each
    // process: the time makes sure of it.
    RandomState::new().hash_one((SystemTime::now(), std::process::id())).max(1)
}
