//! A port that is a network interface, through AF_XDP: single Ethernet frames in memory that is shared with the
//! kernel, or with the device itself.
//!
//! A program in the driver, or in the kernel's receive path, picks our frames out; all others go their way as if it
//! were not there. What it takes reaches neither bridge nor IP stack, so that no ingress rule is needed.

mod attachment;
mod batch;
mod bpf;
mod device;
mod memory;
mod program;
mod queue;
#[cfg(test)]
mod tests;

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixDatagram;

use iswitch_protocol::limits::{DATAGRAM_OVERHEAD_BYTES, MAX_SUPERFRAME_LEN_BYTES};
use iswitch_protocol::wire::frame::{ETHERNET_HEADER_LEN_BYTES, HEADERS_LEN_BYTES, complete_udp_checksum};
use iswitch_protocol::wire::{Class, Classifier, WireError};
use rustix::event::epoll;

use super::claim::InterfaceClaim;
use super::counters::{Faults, PortCounters, datagrams};
use super::interface::{Interface, Link, PortError, claim_interface, frame_addresses, system};
use super::spec::{AttachMode, CopyMode, XdpModes};
use super::{Arrival, Datagrams, Port};
use crate::switch::{Endpoint, PortId};
use attachment::Attachment;
use batch::{BATCH_FRAMES, Waiting, take_run};
use queue::{Queue, QueueSize};

/// Most receive queues of an interface: each takes memory, and the packet loop is one thread.
const MAX_QUEUES: usize = 64;

/// What an AF_XDP port is to be like.
#[derive(Clone, Copy, Debug)]
pub struct XdpOptions {
    /// Modes that are asked for.
    pub modes: XdpModes,
    /// Memory for received frames, in bytes, of all queues together.
    pub recv_buffer_bytes: usize,
    /// Send buffer to ask for, of each queue, in bytes.
    pub send_buffer_bytes: usize,
}

/// A network interface as a port, through AF_XDP. Dropping it detaches its program.
#[derive(Debug)]
pub struct XdpPort {
    id: PortId,
    interface: Interface,
    classifier: Classifier,
    options: XdpOptions,
    // Fields are dropped in this order: frames are no longer redirected when their sockets go, and the claim goes last.
    served: Served,
    _claim: InterfaceClaim,
    /// What interfaces are asked about through.
    query: UnixDatagram,
    /// Whether privileges are given up: then no other interface can be served.
    is_sealed: bool,
    batch: Batch,
    /// Payloads of the datagrams that were received last.
    buffer: Box<[u8]>,
    counters: PortCounters,
    faults: Faults,
    /// Drops of sockets that are closed.
    drops_before: u64,
}

/// An interface with our program and sockets.
#[derive(Debug)]
struct Served {
    _attachment: Attachment,
    queues: Vec<Queue>,
    /// Ready when one of the queues is.
    epoll: OwnedFd,
    size: QueueSize,
    /// Whether frames come from this machine's memory, with checksums that nobody has filled in yet.
    is_software: bool,
    /// How it is served, for people.
    mode: String,
}

/// Frames of one queue that are looked at, and go back to the kernel together.
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
        let served = Served::new(&interface, query.as_fd(), &classifier, options)?;
        Ok(Self {
            id,
            interface,
            classifier,
            options: *options,
            served,
            _claim: claim,
            query,
            is_sealed: false,
            batch: Batch::default(),
            buffer: vec![0; MAX_SUPERFRAME_LEN_BYTES].into(),
            counters: PortCounters::default(),
            faults: Faults::default(),
            drops_before: 0,
        })
    }

    /// From now on there are no privileges to serve another interface with.
    pub fn seal(&mut self) {
        self.is_sealed = true;
    }

    /// Looks at what has arrived on the next queue that has something. `false`: nothing has.
    fn start_batch(&mut self) -> bool {
        let Self { served, batch, classifier, interface, .. } = self;
        let count = served.queues.len();
        let next = (1..=count).map(|step| (batch.queue + step) % count);
        let Some(at) = next.into_iter().find(|at| served.queues[*at].received() > 0) else { return false };
        batch.queue = at;
        batch.frames = served.queues[at].received().min(BATCH_FRAMES);
        for frame in 0..batch.frames {
            match parse(classifier, served, interface.mtu_bytes, frame, at) {
                Some(Ok(datagram)) => batch.waiting.push(datagram),
                Some(Err(error)) => batch.invalid.push(error),
                None => self.counters.untagged += 1,
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

    /// The queue that sends to a peer: always the same, so that datagrams keep their order.
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
        let index = self.interface.index;
        match self.interface.refresh(self.query.as_fd()) {
            Ok(_) if self.interface.index != index => self.serve_again(),
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => self.interface.set_link(Link::Gone),
            Err(error) => self.faults.receive(error),
        }
    }

    /// The interface was deleted, and another of its name has appeared.
    fn serve_again(&mut self) {
        let name = &self.interface.name;
        if self.is_sealed {
            tracing::error!(
                port = name,
                "a new interface of that name needs privileges that are given up: restart iswitchd to serve it"
            );
            return;
        }
        match Served::new(&self.interface, self.query.as_fd(), &self.classifier, &self.options) {
            Ok(served) => {
                self.batch = Batch::default();
                self.drops_before += self.served.drops();
                self.served = served;
                tracing::info!(port = self.interface.name, "serving the new interface of that name");
            }
            Err(error) => tracing::error!(%error, "cannot serve the new interface of that name"),
        }
    }
}

impl Served {
    fn new(
        interface: &Interface,
        query: BorrowedFd<'_>,
        classifier: &Classifier,
        options: &XdpOptions,
    ) -> Result<Self, PortError> {
        let name = &interface.name;
        let longest = interface.mtu_bytes + ETHERNET_HEADER_LEN_BYTES;
        if longest > QueueSize::MAX_FRAME_LEN_BYTES {
            let most_bytes = QueueSize::MAX_FRAME_LEN_BYTES - ETHERNET_HEADER_LEN_BYTES;
            return Err(PortError::Mtu { name: name.clone(), mtu_bytes: interface.mtu_bytes, most_bytes });
        }
        let count = device::receive_queues(interface, query);
        if count > MAX_QUEUES {
            return Err(PortError::Queues { name: name.clone(), queues: count, most: MAX_QUEUES });
        }
        let attachment = Attachment::new(interface, classifier, options.modes, count)?;
        let size = QueueSize::new(longest, options.recv_buffer_bytes / count);
        let (queues, copy) = open_queues(interface, &attachment, options, count, size)?;
        let epoll = watch(&queues).map_err(system(name, "watch its sockets"))?;
        for (number, queue) in queues.iter().enumerate() {
            attachment.redirect(number as u32, queue.socket()).map_err(system(name, "redirect frames"))?;
        }
        let is_software = device::is_software(interface, query);
        let mode = format!("xdp {} {}, queues: {count}", attachment.mode.name(), copy.name());
        if is_software && attachment.mode == AttachMode::Generic {
            tracing::warn!(
                port = name,
                "generic mode sees super-frames of this machine's senders as one frame and drops them: \
                 `ethtool -K ... tx-udp-segmentation off` at the other end of the cable"
            );
        }
        Ok(Self { _attachment: attachment, queues, epoll, size, is_software, mode })
    }

    fn drops(&self) -> u64 {
        // Of an interface that is gone there is nothing to add.
        self.queues.iter().map(|queue| queue.drops().unwrap_or(0)).sum()
    }
}

/// Opens sockets on all queues, in the first mode that the first of them takes.
fn open_queues(
    interface: &Interface,
    attachment: &Attachment,
    options: &XdpOptions,
    count: usize,
    size: QueueSize,
) -> Result<(Vec<Queue>, CopyMode), PortError> {
    let open = |number: u32, mode| {
        Queue::open(interface.index as u32, number, size, options.send_buffer_bytes, mode)
            .map_err(system(&interface.name, "open an AF_XDP socket, which needs CAP_NET_RAW"))
    };
    let modes = options.modes.copy_modes(attachment.mode);
    let (last, first) = modes.split_last().expect("there is a mode to try");
    for mode in first {
        match open(0, *mode) {
            Ok(queue) => {
                let rest = (1..count as u32).map(|number| open(number, *mode));
                let queues = std::iter::once(Ok(queue)).chain(rest).collect::<Result<_, _>>()?;
                return Ok((queues, *mode));
            }
            Err(error) => tracing::debug!(%error, mode = mode.name(), "no socket in this mode"),
        }
    }
    let queues = (0..count as u32).map(|number| open(number, *last)).collect::<Result<_, _>>()?;
    Ok((queues, *last))
}

/// One descriptor for all sockets.
fn watch(queues: &[Queue]) -> io::Result<OwnedFd> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (number, queue) in queues.iter().enumerate() {
        let data = epoll::EventData::new_u64(number as u64);
        epoll::add(&epoll, queue.socket(), data, epoll::EventFlags::IN)?;
    }
    Ok(epoll)
}

/// Takes a frame apart. `None`: not ours.
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
        // A super-frame, whose cuts nobody tells.
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

    /// Each datagram takes a frame of its own, however short it is: reckoned with the shortest.
    fn recv_buffer_bytes(&self) -> usize {
        self.served.size.recv_datagrams() * DATAGRAM_OVERHEAD_BYTES
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
        // The kernel's counters of other sockets have 32 bits.
        self.faults.drops(&mut self.counters, drops as u32);
        self.faults.report(&self.interface.name);
    }

    fn counters(&self) -> &PortCounters {
        &self.counters
    }
}
