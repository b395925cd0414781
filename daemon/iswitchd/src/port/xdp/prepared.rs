//! Resources of an XDP port that need privileges to create, and their transfer from the monitor to an unprivileged
//! daemon.

use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::time::Duration;

use iswitch_protocol::wire::Classifier;
use iswitch_socket::option;
use rustix::event::epoll;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use serde::{Deserialize, Serialize};

use super::super::descriptors;
use super::super::interface::{Interface, PortError, system};
use super::super::spec::{AttachMode, XdpModes};
use super::program::program;
use super::{MAX_QUEUES, bpf, device};

/// Maximum time that the packet loop waits for an answer from the monitor, which is otherwise nearly idle.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// Number of descriptors in addition to the sockets: the link and the epoll instance.
const OTHER_DESCRIPTORS: usize = 2;

const _: () = assert!(MAX_QUEUES + OTHER_DESCRIPTORS <= descriptors::DESCRIPTORS_MAX);

/// A program attached to an interface, and the sockets that it redirects to, which are not bound yet.
#[derive(Debug)]
pub(super) struct Prepared {
    /// Link, which keeps the program attached for as long as the link is open.
    pub(super) link: OwnedFd,
    /// Epoll instance that is ready when one of the sockets is.
    pub(super) epoll: OwnedFd,
    /// Sockets, one for each receive queue.
    pub(super) sockets: Vec<OwnedFd>,
    pub(super) properties: InterfaceProperties,
}

/// Properties of a prepared interface.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct InterfaceProperties {
    /// Index of the interface.
    pub(super) index: libc::c_int,
    /// Attachment point of the program.
    pub(super) attach: AttachMode,
    /// Whether frames come from the memory of this machine, so that their checksums might not be filled in yet.
    pub(super) is_software: bool,
}

/// Answer from the monitor.
#[derive(Debug, Deserialize, Serialize)]
struct Answer {
    /// Number of the interface in the request.
    number: u8,
    /// Properties of the interface, sent together with the descriptors, or the reason for the failure.
    outcome: Result<InterfaceProperties, String>,
}

/// Description from which an interface can be prepared, even later or in another process.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct XdpScript {
    pub(super) interface: String,
    pub(super) modes: XdpModes,
    /// ToS of control packets, ToS of data packets, and the UDP port.
    pub(super) tags: (u8, u8, u16),
    pub(super) send_buffer_bytes: usize,
}

impl XdpScript {
    /// Attaches the program in the first mode that the driver of the interface accepts, and opens the sockets. Needs
    /// `CAP_NET_RAW`, `CAP_NET_ADMIN` and `CAP_BPF`.
    ///
    /// iSwitch frames are dropped until the sockets are bound.
    pub(super) fn prepare(
        &self,
        interface: &Interface,
        query: BorrowedFd<'_>,
    ) -> Result<Prepared, PortError> {
        let name = &interface.name;
        let queues = device::receive_queues(interface, query);
        if queues > MAX_QUEUES {
            return Err(PortError::Queues { name: name.clone(), queues, most: MAX_QUEUES });
        }
        let map = bpf::create_socket_map(queues)
            .map_err(system(name, "create a BPF map of sockets (this needs CAP_BPF)"))?;
        let (link, attach) = self.attach(interface, map.as_fd())?;
        let sockets = self.open_sockets(queues, map.as_fd()).map_err(system(name, "open AF_XDP sockets"))?;
        let epoll = watch(&sockets).map_err(system(name, "add its sockets to an epoll instance"))?;
        let is_software = device::is_software(interface, query);
        Ok(Prepared {
            link,
            epoll,
            sockets,
            properties: InterfaceProperties { index: interface.index, attach, is_software },
        })
    }

    fn attach(&self, interface: &Interface, map: BorrowedFd<'_>) -> Result<(OwnedFd, AttachMode), PortError> {
        let name = &interface.name;
        let (control_tos, data_tos, udp_port) = self.tags;
        let classifier = Classifier { control_tos, data_tos, udp_port };
        let program = bpf::load(&program(&classifier, map.as_raw_fd()))
            .map_err(system(name, "load the XDP program (this needs CAP_BPF and CAP_NET_ADMIN)"))?;
        let mut refusal = io::Error::from(io::ErrorKind::Unsupported);
        for mode in self.modes.attach_modes() {
            match bpf::attach(program.as_fd(), interface.index, mode) {
                Ok(link) => return Ok((link, mode)),
                Err(error) if matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST)) => {
                    return Err(PortError::ProgramAttached(name.clone()));
                }
                Err(error) => {
                    let mode = mode.name();
                    tracing::info!(port = name, mode, %error, "cannot attach the XDP program in this mode");
                    refusal = error;
                }
            }
        }
        Err(system(name, "attach the XDP program")(refusal))
    }

    fn open_sockets(&self, queues: usize, map: BorrowedFd<'_>) -> io::Result<Vec<OwnedFd>> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let open = |queue| {
            let socket = socket_with(AddressFamily::XDP, SocketType::RAW, flags, None)?;
            option::set_send_buffer(socket.as_fd(), self.send_buffer_bytes)?;
            bpf::set_socket(map, queue, socket.as_fd())?;
            Ok(socket)
        };
        (0..queues as u32).map(open).collect()
    }

    /// Prepares the interface of this script for another process, and passes the descriptors to that process.
    ///
    /// # Errors
    /// Fails if the answer cannot be sent.
    pub fn prepare_for(&self, number: u8, to: BorrowedFd<'_>) -> io::Result<()> {
        let prepare = || {
            let query = UnixDatagram::unbound().map_err(system(&self.interface, "open a socket"))?;
            let interface = Interface::find(&self.interface, query.as_fd())?;
            self.prepare(&interface, query.as_fd())
        };
        let (outcome, descriptors) = match prepare() {
            Ok(Prepared { link, epoll, sockets, properties }) => {
                (Ok(properties), [link, epoll].into_iter().chain(sockets).collect())
            }
            Err(error) => (Err(error.to_string()), Vec::new()),
        };
        descriptors::send(to, &serde_json::to_vec(&Answer { number, outcome })?, &descriptors)
    }
}

/// Returns one descriptor that is ready when any of the sockets is.
fn watch(sockets: &[OwnedFd]) -> io::Result<OwnedFd> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (number, socket) in sockets.iter().enumerate() {
        let data = epoll::EventData::new_u64(number as u64);
        epoll::add(&epoll, socket, data, epoll::EventFlags::IN)?;
    }
    Ok(epoll)
}

/// Handle that asks the monitor to prepare an interface.
#[derive(Debug)]
pub struct XdpKeeper {
    requests: UnixStream,
    /// Number of the interface in requests to the monitor.
    number: u8,
}

impl XdpKeeper {
    /// Creates a handle that sends the number of the interface to the monitor through the stream.
    ///
    /// # Errors
    /// Fails if the timeout of the stream cannot be set.
    pub fn new(requests: UnixStream, number: u8) -> io::Result<Self> {
        requests.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        Ok(Self { requests, number })
    }

    pub(super) fn ask(&self) -> io::Result<Prepared> {
        (&self.requests).write_all(&[self.number])?;
        loop {
            let (text, mut descriptors) = descriptors::receive(self.requests.as_fd())?;
            let answer: Answer = serde_json::from_slice(&text)?;
            // An answer with a different number belongs to a request that timed out.
            if answer.number == self.number {
                let properties = answer.outcome.map_err(io::Error::other)?;
                let mut next = || descriptors.pop_front().ok_or(io::ErrorKind::UnexpectedEof);
                let (link, epoll) = (next()?, next()?);
                if descriptors.is_empty() {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                return Ok(Prepared { link, epoll, sockets: descriptors.into(), properties });
            }
        }
    }
}
