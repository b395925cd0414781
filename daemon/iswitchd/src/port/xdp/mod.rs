//! A port on a network interface through AF_XDP: single Ethernet frames in memory that is shared with the kernel or
//! with the device itself.
//!
//! An XDP program in the driver, or in the receive path of the kernel, selects iSwitch frames; all other frames are
//! unaffected. Selected frames reach neither the bridge nor the IP stack, so no ingress rule is needed.

mod batch;
mod bpf;
mod device;
mod memory;
mod prepared;
mod program;
mod queue;
#[cfg(test)]
mod tests;

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixDatagram;

use iswitch_protocol::limits::{MAX_SUPERFRAME_LEN_BYTES, datagram_truesize};
use iswitch_protocol::wire::frame::{ETHERNET_HEADER_LEN_BYTES, HEADERS_LEN_BYTES, complete_udp_checksum};
use iswitch_protocol::wire::{Class, Classifier, WireError};
use rustix::process::{Resource, Rlimit, setrlimit};

use super::claim::InterfaceClaim;
use super::interface::{Interface, Link, PortError, claim_interface, frame_addresses, system};
use super::spec::{AttachMode, XdpModes};
use batch::{BATCH_FRAMES, Waiting, take_run};
use iswitch_runtime::port::{Arrival, Datagrams, Faults, Port, PortCounters, datagrams};
use iswitch_switch::{Endpoint, PortId};
use prepared::Prepared;
pub use prepared::{XdpKeeper, XdpScript};
use queue::{Queue, QueueSize};

/// Maximum number of receive queues of an interface. Each queue takes memory, and a single thread serves all queues.
const MAX_QUEUES: usize = 64;

/// Options of an AF_XDP port.
#[derive(Clone, Copy, Debug)]
pub struct XdpOptions {
    /// Requested modes.
    pub modes: XdpModes,
    /// Total memory for received frames across all queues, in bytes.
    pub recv_buffer_bytes: usize,
    /// Size of the send buffer to request for each queue, in bytes.
    pub send_buffer_bytes: usize,
}

/// A port on a network interface through AF_XDP. Dropping it detaches its program.
#[derive(Debug)]
pub struct XdpPort {
    id: PortId,
    interface: Interface,
    classifier: Classifier,
    script: XdpScript,
    /// Total memory for received frames across all queues, in bytes.
    recv_buffer_bytes: usize,
    // Drop order: the program is detached before its sockets are closed, and the claim is released last.
    served: Served,
    _claim: InterfaceClaim,
    /// Socket for queries about the interface.
    query: UnixDatagram,
    /// Handle of the monitor, which retains the privileges that the daemon drops.
    keeper: Option<XdpKeeper>,
    /// Reason why a recreated interface is not served yet.
    unserved: Option<String>,
    batch: Batch,
    /// Payloads of the most recently received datagrams.
    buffer: Box<[u8]>,
    counters: PortCounters,
    faults: Faults,
    /// Drops counted by sockets that have been closed.
    drops_before: u64,
}

/// An interface with the attached program and its sockets.
#[derive(Debug)]
struct Served {
    _link: OwnedFd,
    queues: Vec<Queue>,
    /// Epoll instance that is ready when one of the queues is.
    epoll: OwnedFd,
    /// Index of the interface.
    index: libc::c_int,
    size: QueueSize,
    /// Whether frames come from the memory of this machine, so that their checksums might not be filled in yet.
    is_software: bool,
    /// Mode of operation, as shown to the operator.
    mode: String,
}

/// Received frames of one queue that are processed and returned to the kernel together.
#[derive(Debug, Default)]
struct Batch {
    queue: usize,
    frames: u32,
    waiting: Vec<Waiting>,
    invalid: Vec<WireError>,
}

impl Batch {
    fn is_done(&self) -> bool {
        self.waiting.is_empty() && self.invalid.is_empty()
    }
}

impl XdpPort {
    /// Opens a port on an interface. Needs `CAP_NET_RAW`, `CAP_NET_ADMIN` and `CAP_BPF`.
    pub fn open(
        id: PortId,
        name: &str,
        classifier: Classifier,
        options: &XdpOptions,
    ) -> Result<Self, PortError> {
        let claim = claim_interface(name)?;
        let query = UnixDatagram::unbound().map_err(system(name, "open a socket"))?;
        let interface = Interface::find(name, query.as_fd())?;
        let XdpOptions { modes, recv_buffer_bytes, send_buffer_bytes } = *options;
        let tags = (classifier.control_tos, classifier.data_tos, classifier.udp_port);
        let script = XdpScript { interface: name.to_owned(), modes, tags, send_buffer_bytes };
        check_mtu(&interface)?;
        lift_memory_limit();
        let prepared = script.prepare(&interface, query.as_fd())?;
        let served = Served::new(&interface, prepared, modes, recv_buffer_bytes)?;
        Ok(Self {
            id,
            interface,
            classifier,
            script,
            recv_buffer_bytes,
            served,
            _claim: claim,
            query,
            keeper: None,
            unserved: None,
            batch: Batch::default(),
            buffer: vec![0; MAX_SUPERFRAME_LEN_BYTES].into(),
            counters: PortCounters::default(),
            faults: Faults::default(),
            drops_before: 0,
        })
    }

    /// Returns the script, which the monitor needs to prepare a recreated interface.
    pub fn script(&self) -> &XdpScript {
        &self.script
    }

    /// Sets the handle through which the monitor prepares the interface again after it has been recreated. The daemon
    /// lacks the privileges for that.
    pub fn entrust(&mut self, keeper: XdpKeeper) {
        self.keeper = Some(keeper);
    }

    /// Parses the frames of the next queue that has received any. Returns `false` if none has.
    fn start_batch(&mut self) -> bool {
        let Self { served, batch, classifier, interface, counters, .. } = self;
        let count = served.queues.len();
        let next = (1..=count).map(|step| (batch.queue + step) % count);
        let Some(at) = next.into_iter().find(|at| served.queues[*at].received() > 0) else { return false };
        batch.queue = at;
        batch.frames = served.queues[at].received().min(BATCH_FRAMES);
        for frame in 0..batch.frames {
            match parse(classifier, served, interface.mtu_bytes, frame, at) {
                Some(Ok(datagram)) => match interface.check_sender(&datagram.addresses) {
                    Ok(()) => batch.waiting.push(datagram),
                    Err(bad) => counters.refused(bad, 1),
                },
                Some(Err(error)) => batch.invalid.push(error),
                None => counters.untagged += 1,
            }
        }
        true
    }

    fn end_batch(&mut self) {
        let frames = std::mem::take(&mut self.batch.frames);
        if frames > 0 {
            self.served.queues[self.batch.queue].release(frames);
        }
    }

    /// Returns the queue that sends to a peer. A peer always has the same queue, so that datagrams keep their order.
    fn queue_for(&self, to: &Endpoint) -> usize {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        (hasher.hash_one(to.peer) % self.served.queues.len() as u64) as usize
    }

    /// Counts datagrams that cannot be sent.
    fn lose(&mut self, len: usize, stride: usize, error: io::Error) {
        let lost = datagrams(len, stride);
        self.counters.send_errors += lost;
        self.faults.send(lost, error);
    }

    fn refresh(&mut self) {
        match self.interface.refresh(self.query.as_fd()) {
            Ok(_) if self.interface.index != self.served.index => self.serve_again(),
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => self.interface.set_link(Link::Gone),
            Err(error) => self.faults.receive(error),
        }
    }

    /// Serves an interface that was recreated under the same name.
    fn serve_again(&mut self) {
        match self.prepare_again() {
            Ok(served) => {
                self.batch = Batch::default();
                self.drops_before += self.served.drops();
                self.served = served;
                self.unserved = None;
                tracing::info!(port = self.interface.name, "serving the recreated interface");
            }
            Err(error) => {
                // Retried at each maintenance, because the interface may still be under construction; logged only if
                // the error changes.
                let error = Some(error.to_string());
                if self.unserved != error {
                    let error = error.as_deref();
                    tracing::error!(
                        port = self.interface.name,
                        error,
                        "cannot serve the recreated interface"
                    );
                }
                self.unserved = error;
            }
        }
    }

    fn prepare_again(&self) -> Result<Served, PortError> {
        let name = &self.interface.name;
        check_mtu(&self.interface)?;
        let prepared = match &self.keeper {
            Some(keeper) => keeper.ask().map_err(system(name, "prepare it through the monitor"))?,
            None => self.script.prepare(&self.interface, self.query.as_fd())?,
        };
        Served::new(&self.interface, prepared, self.script.modes, self.recv_buffer_bytes)
    }
}

fn check_mtu(interface: &Interface) -> Result<(), PortError> {
    let most_bytes = QueueSize::MAX_FRAME_LEN_BYTES - ETHERNET_HEADER_LEN_BYTES;
    if interface.mtu_bytes > most_bytes {
        let (name, mtu_bytes) = (interface.name.clone(), interface.mtu_bytes);
        return Err(PortError::Mtu { name, mtu_bytes, most_bytes });
    }
    Ok(())
}

impl Served {
    /// Binds the prepared sockets, so that they receive frames. Needs no privileges.
    fn new(
        interface: &Interface,
        prepared: Prepared,
        modes: XdpModes,
        recv_buffer_bytes: usize,
    ) -> Result<Self, PortError> {
        let name = &interface.name;
        let Prepared { link, epoll, sockets, properties } = prepared;
        let count = sockets.len();
        let longest = interface.mtu_bytes + ETHERNET_HEADER_LEN_BYTES;
        let size = QueueSize::new(longest, recv_buffer_bytes / count.max(1));
        let mut copy_modes = modes.copy_modes(properties.attach);
        let mut queues = Vec::new();
        for (number, socket) in sockets.into_iter().enumerate() {
            let mut queue = Queue::new(socket, size).map_err(|error| cannot_share(name, error))?;
            let index = properties.index as u32;
            let mode =
                queue.bind(index, number as u32, &copy_modes).map_err(system(name, "bind a socket to it"))?;
            // All queues use the same copy mode.
            copy_modes = vec![mode];
            queues.push(queue);
        }
        let copy = copy_modes.first().map_or("", |mode| mode.name());
        let mode = format!("xdp {} {copy}, queues: {count}", properties.attach.name());
        if properties.is_software && properties.attach == AttachMode::Generic {
            tracing::warn!(
                port = name,
                "in generic mode, super-frames from senders on this machine arrive unsegmented and are dropped; run \
                 `ethtool -K IFACE tx-udp-segmentation off` on the interface at the other end of the link"
            );
        }
        let (index, is_software) = (properties.index, properties.is_software);
        Ok(Self { _link: link, queues, epoll, index, size, is_software, mode })
    }

    fn drops(&self) -> u64 {
        // A queue of an interface that is gone adds nothing.
        self.queues.iter().map(|queue| queue.drops().unwrap_or(0)).sum()
    }
}

/// Raises the limit on locked memory, so that it also suffices after privileges are dropped. If that is not permitted,
/// the current limit stays in force.
fn lift_memory_limit() {
    let any = Rlimit { current: None, maximum: None };
    if let Err(error) = setrlimit(Resource::Memlock, any) {
        tracing::debug!(%error, "cannot raise the limit on locked memory");
    }
}

/// Returns the error for memory that the kernel refuses to share. Without root, the usual cause is the limit on
/// locked memory.
fn cannot_share(name: &str, error: io::Error) -> PortError {
    let call = match error.raw_os_error() {
        Some(libc::ENOBUFS) => {
            "lock memory for frames; raise the limit (ulimit -l, LimitMEMLOCK), or lower --recv-buffer-bytes"
        }
        _ => "share memory with an AF_XDP socket",
    };
    system(name, call)(error)
}

/// Parses a frame. Returns `None` if it is not an iSwitch frame.
fn parse(
    classifier: &Classifier,
    served: &Served,
    mtu_bytes: usize,
    frame: u32,
    queue: usize,
) -> Option<Result<Waiting, WireError>> {
    let bytes = served.queues[queue].frame(frame);
    let view = match classifier.classify(bytes)? {
        Ok(view) => view,
        Err(error) => return Some(Err(error)),
    };
    if bytes.len() > mtu_bytes + ETHERNET_HEADER_LEN_BYTES {
        // A super-frame: AF_XDP does not report where to split it.
        return Some(Err(WireError::Fragment));
    }
    if let Err(error) = view.verify_checksum()
        && !(served.is_software && view.has_unfinished_checksum())
    {
        return Some(Err(error));
    }
    let start = view.payload.as_ptr().addr() - bytes.as_ptr().addr();
    let payload = start..start + view.payload.len();
    Some(Ok(Waiting { class: view.class, addresses: view.addresses, frame, payload }))
}

impl Port for XdpPort {
    fn name(&self) -> &str {
        &self.interface.name
    }

    fn mode(&self) -> &str {
        &self.served.mode
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        self.served.epoll.as_fd()
    }

    /// Returns the size of the socket buffer that would hold as many of the shortest datagrams as a queue does. A
    /// queue stores each datagram, however short, in a whole frame.
    fn recv_buffer_bytes(&self) -> usize {
        self.served.size.recv_datagrams() * datagram_truesize(0)
    }

    fn recv(&mut self) -> Option<Arrival<'_>> {
        while self.batch.is_done() {
            self.end_batch();
            if !self.start_batch() {
                return None;
            }
        }
        if let Some(error) = self.batch.invalid.pop() {
            return Some(Err(error));
        }
        let Self { served, batch, buffer, .. } = self;
        let queue = &served.queues[batch.queue];
        let mut len = 0;
        let run = take_run(&mut batch.waiting, |datagram| {
            let payload = queue.frame(datagram.frame).get(datagram.payload.clone()).unwrap_or_default();
            buffer[len..len + payload.len()].copy_from_slice(payload);
            len += payload.len();
        })?;
        let stride = run.stride.max(1);
        self.counters.received(len, stride);
        Some(Ok(Datagrams {
            from: self.interface.endpoint(self.id, &run.addresses),
            class: run.class,
            payload: &self.buffer[..len],
            stride,
        }))
    }

    fn send(&mut self, to: &Endpoint, class: Class, payload: &[u8], stride: usize) {
        let addresses = frame_addresses(to, &self.classifier);
        let at = self.queue_for(to);
        let queue = &mut self.served.queues[at];
        let room = self.interface.mtu_bytes + ETHERNET_HEADER_LEN_BYTES;
        if stride.min(payload.len()) + HEADERS_LEN_BYTES > room {
            self.lose(payload.len(), stride, io::Error::from_raw_os_error(libc::EMSGSIZE));
            return;
        }
        let mut outcome = Ok(());
        let (mut sent, mut rest) = (0, payload);
        loop {
            let (one, others) = rest.split_at(rest.len().min(stride));
            let headers = self.classifier.emit_headers(class, &addresses, one.len());
            if !queue.push([&headers, one], complete_udp_checksum) {
                outcome = outcome.and_then(|()| queue.transmit());
                if !queue.push([&headers, one], complete_udp_checksum) {
                    break;
                }
            }
            sent += one.len();
            rest = others;
            if rest.is_empty() {
                break;
            }
        }
        match outcome.and_then(|()| queue.transmit()) {
            Ok(()) => {
                if sent > 0 || payload.is_empty() {
                    self.counters.sent(sent, stride);
                }
                if !rest.is_empty() {
                    self.counters.send_full += datagrams(rest.len(), stride);
                }
            }
            Err(error) => self.lose(payload.len(), stride, error),
        }
    }

    fn maintain(&mut self) {
        self.refresh();
        let drops = self.drops_before + self.served.drops();
        // The counters of other sockets in the kernel have 32 bits, so this one is truncated to match.
        self.faults.drops(&mut self.counters, drops as u32);
        self.faults.report(&self.interface.name);
    }

    fn counters(&self) -> &PortCounters {
        &self.counters
    }
}
