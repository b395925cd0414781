//! The path to the switch: the socket, the clock, and the receive buffer.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use iswitch_protocol::Instant;
use iswitch_protocol::limits::{MAX_SUPERFRAME_DATAGRAMS, MAX_SUPERFRAME_LEN_BYTES};
use iswitch_protocol::wire::{Class, Classifier, ControlPacket};
use iswitch_socket::{Options, Received, UdpSocket};

use super::auth::Authenticator;
use super::group::{Path, Subscription};
use super::join::{JoinError, JoinOptions};
use super::requests::Requests;
use super::scattered_receive::ScatteredReceive;
use super::superframe::Frame;

/// Maximum number of attempts to bind the port of the previous socket, and the pause between them.
const REBIND_TRIES: u32 = 20;
const REBIND_PAUSE: Duration = Duration::from_millis(1);

/// Endpoint of a worker: the socket, the clock and the receive buffer.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) socket: Arc<UdpSocket>,
    classifier: Classifier,
    epoch: std::time::Instant,
    pub(super) recv_buffer: Vec<u8>,
    /// Time of the last packet from any switch.
    pub(super) last_heard: Instant,
    /// Path on which the last packet was received.
    pub(super) path: Path,
    /// Socket for the group of the job, if the switch has offered one.
    subscription: Subscription,
    switch: SocketAddrV4,
    options: Options,
    /// Number of receive calls, which determines which socket is tried first.
    receives: u32,
    /// Authenticator; `None` if the job has no key.
    pub(super) authenticator: Option<Authenticator>,
}

impl Link {
    /// Opens a socket to the switch.
    pub(super) fn open(options: &JoinOptions) -> Result<Self, JoinError> {
        Self::open_at(options, std::time::Instant::now())
    }

    /// Opens a socket to another switch. The new link shares this link's clock.
    pub(super) fn open_beside(&self, options: &JoinOptions) -> Result<Self, JoinError> {
        Self::open_at(options, self.epoch)
    }

    fn open_at(options: &JoinOptions, epoch: std::time::Instant) -> Result<Self, JoinError> {
        if options.tag_data && options.key.is_none() {
            return Err(JoinError::TagsWithoutKey);
        }
        let buffers = options.recv_buffer_bytes;
        let socket_options =
            Options { recv_buffer_bytes: buffers, send_buffer_bytes: buffers, offload: options.offload };
        let socket = UdpSocket::bind(options.local, &socket_options)?;
        socket.connect(options.switch)?;
        socket.set_nonblocking(true)?;
        let classifier =
            Classifier { control_tos: options.control_tos, data_tos: options.data_tos, udp_port: 0 };
        Ok(Self {
            socket: Arc::new(socket),
            classifier,
            epoch,
            recv_buffer: vec![0; MAX_SUPERFRAME_LEN_BYTES],
            last_heard: Instant::default(),
            path: Path::Unicast,
            subscription: Subscription::default(),
            switch: options.switch,
            options: socket_options,
            receives: 0,
            authenticator: options.key.clone().map(|key| Authenticator::new(key, wall_clock_nanos())),
        })
    }

    /// Replaces the socket with one to the switch of `options`. The new socket receives no packets from the previous
    /// switch. If possible, it has the same port, so that a switch to which the worker returns replaces the earlier
    /// membership.
    pub(super) fn move_to(&mut self, options: &JoinOptions) -> io::Result<()> {
        let port = self.socket.local_addr()?.port();
        self.subscription = Subscription::default();
        // Close the socket first, because only one socket can have the port.
        let any_port = SocketAddrV4::new(*options.local.ip(), 0);
        self.socket = Arc::new(UdpSocket::bind(any_port, &self.options)?);
        let same_port = SocketAddrV4::new(*options.local.ip(), port);
        for _ in 0..REBIND_TRIES {
            match UdpSocket::bind(same_port, &self.options) {
                Ok(socket) => {
                    self.socket = Arc::new(socket);
                    break;
                }
                // The heartbeat thread may be about to close the socket.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => thread::sleep(REBIND_PAUSE),
                Err(error) => return Err(error),
            }
        }
        self.socket.connect(options.switch)?;
        self.socket.set_nonblocking(true)?;
        (self.switch, self.path) = (options.switch, Path::Unicast);
        Ok(())
    }

    /// Returns the ToS of control packets.
    pub(super) fn control_tos(&self) -> u8 {
        self.classifier.control_tos
    }

    /// Creates the state for requests outside a session.
    pub(super) fn requests(&self, job: u32) -> Requests {
        let mut requests = Requests::new(job);
        if let Some(authenticator) = self.authenticator.clone() {
            requests.set_key(authenticator);
        }
        requests
    }

    /// Returns the local address of the socket. It is the address at which the switch sees this worker, unless the path
    /// translates addresses.
    pub(super) fn address(&self) -> io::Result<SocketAddrV4> {
        self.socket.local_addr()
    }

    pub(super) fn now(&self) -> Instant {
        Instant::from_nanos(self.epoch.elapsed().as_nanos() as u64)
    }

    /// Sends a packet or super-frame. A full send buffer is treated like a loss on the path, from which the protocol
    /// recovers.
    pub(super) fn send(&self, class: Class, payload: &[u8], stride: usize) -> io::Result<()> {
        let tos = self.classifier.tos_of(class);
        match self.socket.send(tos, None, None, payload, stride) {
            Err(error) if is_transient(&error) => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Ok(()),
        }
    }

    /// Sends a frame. A full send buffer is treated like a loss on the path, from which the protocol recovers.
    pub(super) fn send_frame(
        &self,
        class: Class,
        frame: &Frame,
        vector: &[f32],
        stride: usize,
    ) -> io::Result<()> {
        if let Some(bytes) = frame.complete_bytes() {
            return self.send(class, bytes, stride);
        }
        frame.warm(vector);
        let mut packets = [[IoSlice::new(&[]); 2]; MAX_SUPERFRAME_DATAGRAMS];
        let count = packets.iter_mut().zip(frame.packets(vector)).map(|(to, packet)| *to = packet).count();
        match self.socket.send_gathered(self.classifier.tos_of(class), &packets[..count]) {
            Err(error) if !is_transient(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Receives the datagrams that are available. Returns their class, the total number of bytes, and the length of
    /// each datagram; `None` if no datagram is available.
    pub(super) fn receive(&mut self) -> io::Result<Option<(Class, usize, usize)>> {
        let Self { socket, subscription, recv_buffer, path, receives, .. } = self;
        let outcome = receive_either(socket, subscription, path, receives, |socket| socket.recv(recv_buffer));
        Ok(self
            .heard(outcome, |received| *received)?
            .map(|(class, received)| (class, received.len, received.stride)))
    }

    /// Works like [`Self::receive`], but places the floats of results directly in the sum; see
    /// [`ScatteredReceive::receive`].
    pub(super) fn receive_into(
        &mut self,
        places: &mut [f32],
        segment_floats: usize,
    ) -> io::Result<Option<(Class, ScatteredReceive)>> {
        let Self { socket, subscription, recv_buffer, path, receives, .. } = self;
        let receive = |parts: &mut [IoSliceMut<'_>]| {
            receive_either(socket, subscription, path, receives, |socket| socket.recv_scattered(parts))
        };
        let outcome = ScatteredReceive::receive(places, segment_floats, recv_buffer, receive);
        self.heard(outcome, |scattered| scattered.received)
    }

    /// Records the time of a reception and adds the class of the datagrams; returns `None` if no datagram of a known
    /// class arrived.
    fn heard<T>(
        &mut self,
        outcome: io::Result<T>,
        of: impl Fn(&T) -> Received,
    ) -> io::Result<Option<(Class, T)>> {
        match outcome {
            Ok(arrived) => {
                self.last_heard = self.now();
                let class = of(&arrived).tos.and_then(|tos| self.classifier.class_of(tos));
                Ok(class.map(|class| (class, arrived)))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock || is_transient(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns whether a control packet is authentic, or the job has no key.
    pub(super) fn is_authentic(&self, bytes: &[u8]) -> bool {
        let Some(authenticator) = &self.authenticator else { return true };
        ControlPacket::new_checked(bytes).is_ok_and(|packet| authenticator.accept(&packet))
    }

    /// Waits until a datagram is available or `deadline` has passed; returns whether a datagram is available.
    pub(super) fn wait(&self, deadline: Instant) -> io::Result<bool> {
        self.socket.wait_readable_with(self.subscription.socket(), Some(deadline.since(self.now())))
    }

    /// Returns the socket for the group of the job, or `None` if packets of a group are not received.
    pub(super) fn group_socket(&self) -> Option<&UdpSocket> {
        self.subscription.socket()
    }

    /// Subscribes to the group that the protocol wants, if it has changed. Returns the group if its packets are
    /// received from now on.
    pub(super) fn follow(&mut self, wanted: Option<SocketAddrV4>) -> Option<SocketAddrV4> {
        if self.subscription.group() == wanted {
            return None;
        }
        self.path = Path::Unicast;
        let is_new = self.subscription.change(wanted, &self.socket, self.switch, &self.options);
        wanted.filter(|_| is_new)
    }
}

/// Interval, in number of receive calls, at which the socket that did not deliver the last packet is tried first.
/// Without these attempts, a stream of results on one socket could delay the switch's answers on the other.
const RECEIVES_PER_SOCKET: u32 = 64;

/// Receives from the socket on which the last packet arrived or, if that socket has no packet, from the other one. If
/// there is no group, only one system call is made.
fn receive_either<T>(
    unicast: &UdpSocket,
    subscription: &Subscription,
    path: &mut Path,
    receives: &mut u32,
    mut receive: impl FnMut(&UdpSocket) -> io::Result<T>,
) -> io::Result<T> {
    let Some(group) = subscription.socket() else { return receive(unicast) };
    *receives = receives.wrapping_add(1);
    let is_others_turn = receives.is_multiple_of(RECEIVES_PER_SOCKET);
    let order = match (*path, is_others_turn) {
        (Path::Group, false) | (Path::Unicast, true) => [(Path::Group, group), (Path::Unicast, unicast)],
        _ => [(Path::Unicast, unicast), (Path::Group, group)],
    };
    let [(first, first_socket), (second, second_socket)] = order;
    match receive(first_socket) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            let received = receive(second_socket)?;
            *path = second;
            Ok(received)
        }
        outcome => {
            *path = first;
            outcome
        }
    }
}

/// Returns whether an error is temporary, such as an error reported by ICMP or caused by a busy device.
pub(super) fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::WouldBlock
            | io::ErrorKind::Interrupted
    )
}

/// Returns the wall-clock time in nanoseconds. Counters that start at this value exceed all counters that earlier
/// processes used.
fn wall_clock_nanos() -> u64 {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since_epoch.map_or(1, |time| time.as_nanos() as u64)
}
