//! A program on an interface: what makes an AF_XDP port see frames.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use iswitch_protocol::wire::Classifier;

use super::super::interface::{Interface, PortError, system};
use super::super::spec::{AttachMode, XdpModes};
use super::bpf;
use super::program::program;

/// A program that is attached, until this is dropped or its process ends.
#[derive(Debug)]
pub(super) struct Attachment {
    _link: OwnedFd,
    map: OwnedFd,
    pub(super) mode: AttachMode,
}

impl Attachment {
    /// Attaches a program in the first of the modes that the interface's driver takes. Needs `CAP_BPF` and
    /// `CAP_NET_ADMIN`.
    ///
    /// Our frames are dropped until there are sockets to take them.
    pub(super) fn new(
        interface: &Interface,
        classifier: &Classifier,
        modes: XdpModes,
        queues: usize,
    ) -> Result<Self, PortError> {
        use std::os::fd::AsRawFd;

        let name = &interface.name;
        let map = bpf::create_socket_map(queues)
            .map_err(system(name, "make a map of sockets, which needs CAP_BPF"))?;
        let program = bpf::load(&program(classifier, map.as_raw_fd()))
            .map_err(system(name, "load an XDP program, which needs CAP_BPF and CAP_NET_ADMIN"))?;
        let modes = modes.attach_modes();
        for (at, mode) in modes.iter().enumerate() {
            match bpf::attach(program.as_fd(), interface.index, *mode) {
                Ok(link) => return Ok(Self { _link: link, map, mode: *mode }),
                Err(error) if matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST)) => {
                    return Err(PortError::ProgramAttached(name.clone()));
                }
                Err(error) if at + 1 < modes.len() => {
                    tracing::info!(port = name, mode = mode.name(), %error, "no XDP program in this mode");
                }
                Err(error) => return Err(system(name, "attach an XDP program in the mode asked for")(error)),
            }
        }
        unreachable!("there is a mode to try, and the last one returns")
    }

    /// From now on frames of a queue go to a socket.
    pub(super) fn redirect(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        bpf::set_socket(self.map.as_fd(), queue, socket)
    }
}
