//! Storm of forged Join packets with random source addresses, for jobs that do not exist.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::thread::sleep;
use std::time::{Duration, Instant};

use iswitch_protocol::wire::frame::complete_udp_checksum;
use iswitch_protocol::wire::{Class, Classifier, ControlBody, ControlRepr, FrameAddresses, JoinRepr};
use pnet_datalink::{Channel, Config, DataLinkSender};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use iswitch_harness::netns::{SWITCH_ADDRESS, SWITCH_MAC, WORKER_INTERFACE};

const ETHERTYPE_AT: usize = 12;
/// Pause between two bursts.
const TICK: Duration = Duration::from_millis(1);
/// MAC address of the sender. Only the IP address is forged, not the MAC address.
pub const SENDER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 0x66];
/// Range of the forged source addresses. It excludes 0.0.0.0/8, the loopback network and multicast groups.
const HOSTS: std::ops::Range<u32> = 0x0100_0000..0x7f00_0000;
const MAX_GRADIENT_LEN: u32 = 4_000_000;

/// EtherType for local experiments (IEEE 802), which no program receives.
const DECOY_ETHERTYPE: [u8; 2] = [0x88, 0xb5];

/// Kind of frame that a storm consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Forged Join packets.
    Join,
    /// Join frames whose EtherType is replaced by one that the switch's packet filter drops. They show how much of the
    /// cost is due to the sender itself.
    Decoy,
}

/// Sender of forged Join packets on a worker's interface, in the namespace in which the sender was opened.
pub struct Storm {
    sender: Box<dyn DataLinkSender>,
    random: ChaCha8Rng,
}

impl Storm {
    /// Opens the worker's interface. Call it inside the worker's namespace.
    pub fn open(seed: u64) -> io::Result<Self> {
        Self::open_on(WORKER_INTERFACE, seed)
    }

    /// Opens the interface `name` of the current namespace.
    pub fn open_on(name: &str, seed: u64) -> io::Result<Self> {
        let interface = pnet_datalink::interfaces().into_iter().find(|it| it.name == name);
        let interface = interface.ok_or(io::ErrorKind::NotFound)?;
        match pnet_datalink::channel(&interface, Config::default())? {
            Channel::Ethernet(sender, _) => Ok(Self { sender, random: ChaCha8Rng::seed_from_u64(seed) }),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Sends one frame. The kernel may drop the frame, as a network may: a full queue of the veth device is not an
    /// error.
    pub fn send_frame(&mut self, frame: &[u8]) -> io::Result<()> {
        match self.sender.send_to(frame, None).ok_or(io::ErrorKind::WriteZero)? {
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error()) => Ok(()),
            result => result,
        }
    }

    /// Sends `joins` frames at `rate` frames per second, or at a lower rate if the machine cannot keep up.
    pub fn send(&mut self, kind: Kind, joins: u64, rate: u64) -> io::Result<()> {
        let begin = Instant::now();
        let mut sent = 0;
        while sent < joins {
            let due = (begin.elapsed().as_secs_f64() * rate as f64) as u64;
            while sent < due.min(joins) {
                let mut frame = self.forge();
                if kind == Kind::Decoy {
                    frame[ETHERTYPE_AT..][..DECOY_ETHERTYPE.len()].copy_from_slice(&DECOY_ETHERTYPE);
                }
                self.send_frame(&frame)?;
                sent += 1;
            }
            sleep(TICK);
        }
        Ok(())
    }

    /// Returns a well-formed Join packet with a random source address, port, job and vector length.
    fn forge(&mut self) -> Vec<u8> {
        let random = &mut self.random;
        let join = JoinRepr {
            instance: random.random(),
            ..JoinRepr::worker(random.random_range(1..MAX_GRADIENT_LEN), 366, random.random_range(0..5))
        };
        let body = ControlBody::Join(join);
        let packet = ControlRepr { job: random.random(), request: random.random(), body };
        let address = Ipv4Addr::from(random.random_range(HOSTS));
        control_frame(SENDER_MAC, SocketAddrV4::new(address, random.random_range(1..=u16::MAX)), &packet)
    }
}

/// Returns a frame that carries a control packet to the switch of a [`Star`](iswitch_harness::netns::Star). The sender
/// may be forged.
pub fn control_frame(source_mac: [u8; 6], source: SocketAddrV4, packet: &ControlRepr<'_>) -> Vec<u8> {
    let mut payload = vec![0; packet.buffer_len()];
    packet.emit(&mut payload);
    frame(source_mac, source, Class::Control, &payload)
}

/// Returns a frame that carries any payload to the switch of a [`Star`](iswitch_harness::netns::Star). The sender may
/// be forged.
pub fn frame(source_mac: [u8; 6], source: SocketAddrV4, class: Class, payload: &[u8]) -> Vec<u8> {
    let classifier = Classifier::default();
    let destination = SocketAddrV4::new(SWITCH_ADDRESS, classifier.udp_port);
    let addresses = FrameAddresses { source_mac, destination_mac: SWITCH_MAC, source, destination };
    let mut frame = classifier.emit_headers(class, &addresses, payload.len()).to_vec();
    frame.extend_from_slice(payload);
    complete_udp_checksum(&mut frame);
    frame
}
