//! User-space relay in the middle of a cable, which delays, reorders, drops, duplicates and corrupts real frames. It
//! replaces netem, which not every kernel has.
//!
//! ```text
//!     bridge port s1 ===== port | relay | end ===== e0
//!                          `- a namespace of its own -'
//! ```
//!
//! The relay passes whole Ethernet frames in both directions, including ordinary traffic, and is invisible to both
//! ends. The offloads of both ends are turned off, so there are no super-frames, each datagram is affected
//! independently, and its checksum is filled in before it leaves. The relay runs in threads of the test, and ends with
//! the test. It applies to frames the same link model that the simulation applies to packets.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::IntoRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use iswitch_protocol::Instant;
use pnet_datalink::{Channel, Config, DataLinkReceiver, DataLinkSender};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};

use iswitch_harness::netns::{Cable, Namespace};
use iswitch_simulation::network::{Damage, Link, LinkCounters, LinkModel};

/// Interface of the relay on the side of the switch.
const SWITCH_SIDE: &str = "port";
/// Interface of the relay on the other side, towards a worker or another endpoint.
const FAR_SIDE: &str = "end";
/// Offloads that create super-frames or leave checksums to a device.
const OFFLOADS: [&str; 5] = ["tx", "tso", "gso", "gro", "tx-udp-segmentation"];
/// Size of the receive buffer, in bytes. It holds the frames of several windows, because the relay must lose only
/// frames that its model drops.
const RECV_BUFFER_BYTES: usize = 64 << 20;
/// Size of a frame buffer, in bytes. It holds the longest frame.
const FRAME_BYTES: usize = 1 << 16;
/// Maximum time until a relay notices a request to stop.
const READ_TIMEOUT: Duration = Duration::from_millis(50);

/// Running relay. Dropping it removes the relay and cuts the cable.
#[derive(Debug)]
pub struct WireRelay {
    to_switch: Arc<Mutex<RelayedWire>>,
    to_end: Arc<Mutex<RelayedWire>>,
    epoch: std::time::Instant,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// Namespace of the relay, removed last together with the interfaces in it.
    _namespace: Namespace,
}

/// One direction of the relay, with the counters of its frames.
#[derive(Debug)]
struct RelayedWire {
    link: Link,
    random: ChaCha8Rng,
    relayed: Relayed,
}

/// Counters of the frames of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Relayed {
    /// Counters of what the link model did to the frames.
    pub link: LinkCounters,
    /// Number of frames that left after a frame that had arrived later.
    pub overtaken: u64,
    /// Number of frames that the kernel did not accept, such as those too long for the cable.
    pub refused: u64,
}

/// Frame that waits until it is due.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Frame {
    due: Instant,
    /// Arrival number, which preserves the order of frames that are due at the same time.
    sequence: u64,
    bytes: Vec<u8>,
}

impl WireRelay {
    /// Cuts a cable in two and inserts a relay. The seed determines what the relay does to frames.
    ///
    /// # Panics
    /// Panics if a step fails. Call [`iswitch_harness::requirements::networks_and`] for root and ethtool first.
    pub fn insert(cable: &Cable<'_>, model: LinkModel, seed: u64) -> Self {
        let namespace = Namespace::new("relay");
        recable(cable, &namespace);
        let (to_port, from_port) = open(&namespace, SWITCH_SIDE);
        let (to_end, from_end) = open(&namespace, FAR_SIDE);
        let mut relay = Self {
            to_switch: Arc::new(Mutex::new(RelayedWire::new(LinkModel::PERFECT, 0))),
            to_end: Arc::new(Mutex::new(RelayedWire::new(LinkModel::PERFECT, 0))),
            epoch: std::time::Instant::now(),
            is_over: Arc::default(),
            threads: Vec::new(),
            _namespace: namespace,
        };
        relay.start(Arc::clone(&relay.to_switch), from_end, to_port);
        relay.start(Arc::clone(&relay.to_end), from_port, to_end);
        cable.await_frames();
        // Both ends can exchange frames now. From here on the model applies.
        *lock(&relay.to_switch) = RelayedWire::new(model, seed.wrapping_mul(2));
        *lock(&relay.to_end) = RelayedWire::new(model, seed.wrapping_mul(2).wrapping_add(1));
        relay
    }

    /// Returns the counters of the frames that travel to the switch.
    pub fn to_switch(&self) -> Relayed {
        lock(&self.to_switch).relayed
    }

    /// Returns the counters of the frames that come from the switch.
    pub fn to_end(&self) -> Relayed {
        lock(&self.to_end).relayed
    }

    /// Starts the threads of one direction.
    fn start(
        &mut self,
        wire: Arc<Mutex<RelayedWire>>,
        from: Box<dyn DataLinkReceiver>,
        to: Box<dyn DataLinkSender>,
    ) {
        let (sender, frames) = channel();
        let (epoch, is_over, reader) = (self.epoch, Arc::clone(&self.is_over), Arc::clone(&wire));
        self.threads
            .push(std::thread::spawn(move || receive_frames(from, &reader, &sender, epoch, &is_over)));
        self.threads.push(std::thread::spawn(move || send_frames(to, &wire, &frames, epoch)));
    }
}

impl Drop for WireRelay {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl RelayedWire {
    fn new(model: LinkModel, seed: u64) -> Self {
        let random = ChaCha8Rng::seed_from_u64(seed);
        Self { link: Link::new(model), random, relayed: Relayed::default() }
    }
}

fn lock(wire: &Mutex<RelayedWire>) -> MutexGuard<'_, RelayedWire> {
    wire.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Moves the end of a cable into the relay's namespace, and replaces it with the end of a new cable.
fn recable(cable: &Cable<'_>, relay: &Namespace) {
    let Cable { end, interface, mtu_bytes, .. } = cable;
    end.ip(&format!(
        "link set {interface} down\n\
         link set {interface} netns {} name {SWITCH_SIDE}\n",
        relay.name()
    ));
    relay.ip(&format!(
        "link add {FAR_SIDE} mtu {mtu_bytes} type veth \
         peer name {interface} mtu {mtu_bytes} netns {}\n\
         link set {SWITCH_SIDE} up\nlink set {FAR_SIDE} up\n",
        end.name()
    ));
    cable.configure();
    turn_offloads_off(cable.switch, &cable.port);
    turn_offloads_off(end, interface);
}

/// Turns off the offloads of an interface, so that it has no super-frames and checksums are filled in.
pub(crate) fn turn_offloads_off(namespace: &Namespace, interface: &str) {
    let mut command = namespace.command("ethtool");
    command.args(["-K", interface]);
    OFFLOADS.iter().for_each(|offload| {
        command.args([offload, "off"]);
    });
    iswitch_harness::process::run(&mut command);
}

/// Opens a packet socket on an interface. One socket serves both directions, because the kernel does not deliver to a
/// socket the frames that the socket itself has sent.
fn open(namespace: &Namespace, interface: &str) -> (Box<dyn DataLinkSender>, Box<dyn DataLinkReceiver>) {
    namespace.enter(|| {
        let interfaces = pnet_datalink::interfaces();
        let found =
            interfaces.iter().find(|found| found.name == interface).expect("the interface must exist");
        // A socket without a protocol receives nothing until it is bound to the interface.
        let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)
            .expect("the process must own the network namespace to open a packet socket");
        // Only root gets more than net.core.rmem_max. For other users, a burst may lose frames that a longer buffer
        // would hold.
        sockopt::set_socket_recv_buffer_size_force(&socket, RECV_BUFFER_BYTES)
            .or_else(|_| sockopt::set_socket_recv_buffer_size(&socket, RECV_BUFFER_BYTES))
            .expect("the receive buffer must be set");
        let config = Config {
            read_buffer_size: FRAME_BYTES,
            read_timeout: Some(READ_TIMEOUT),
            socket_fd: Some(socket.into_raw_fd()),
            ..Config::default()
        };
        match pnet_datalink::channel(found, config) {
            Ok(Channel::Ethernet(sender, receiver)) => (sender, receiver),
            Ok(_) => panic!("{interface} is not an Ethernet interface"),
            Err(error) => panic!("{interface}: {error}"),
        }
    })
}

fn time_since(epoch: std::time::Instant) -> Instant {
    Instant::from_nanos(epoch.elapsed().as_nanos() as u64)
}

/// Determines the fate of each frame, and passes on those that will arrive.
fn receive_frames(
    mut from: Box<dyn DataLinkReceiver>,
    wire: &Mutex<RelayedWire>,
    to: &Sender<Frame>,
    epoch: std::time::Instant,
    is_over: &AtomicBool,
) {
    let mut sequence = 0;
    while !is_over.load(Ordering::Relaxed) {
        let bytes = match from.next() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => continue,
            // An interface that went down may come up again.
            Err(_) => {
                sleep(READ_TIMEOUT);
                continue;
            }
        };
        let arrivals = {
            let RelayedWire { link, random, relayed } = &mut *lock(wire);
            link.carry(time_since(epoch), bytes.len(), random, &mut relayed.link)
        };
        for arrival in arrivals.into_iter().flatten() {
            let mut frame = Frame { due: arrival.at, sequence, bytes: bytes.to_vec() };
            if arrival.damage != Damage::None {
                corrupt(&mut frame.bytes);
            }
            // Sending cannot fail: the thread that receives the frames ends only after this one.
            let _ = to.send(frame);
        }
        sequence += 1;
    }
}

/// Flips bits in the last byte, which is payload.
fn corrupt(frame: &mut [u8]) {
    if let Some(last) = frame.last_mut() {
        *last ^= 0x55;
    }
}

/// Sends each frame when it is due, until no more frames can arrive.
fn send_frames(
    mut to: Box<dyn DataLinkSender>,
    wire: &Mutex<RelayedWire>,
    frames: &Receiver<Frame>,
    epoch: std::time::Instant,
) {
    let mut waiting: BinaryHeap<Reverse<Frame>> = BinaryHeap::new();
    let mut latest = 0;
    loop {
        let patience = waiting.peek().map(|Reverse(next)| next.due.since(time_since(epoch)));
        if patience == Some(Duration::ZERO) {
            let Some(Reverse(frame)) = waiting.pop() else { continue };
            let is_sent = matches!(to.send_to(&frame.bytes, None), Some(Ok(())));
            let relayed = &mut lock(wire).relayed;
            relayed.refused += u64::from(!is_sent);
            relayed.overtaken += u64::from(frame.sequence < latest);
            latest = latest.max(frame.sequence);
            continue;
        }
        let received = match patience {
            Some(patience) => frames.recv_timeout(patience),
            None => frames.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match received {
            Ok(frame) => waiting.push(Reverse(frame)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
