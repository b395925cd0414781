//! Ethernet frames: recognition of frames that carry iSwitch packets, and the headers of frames to send.

use core::net::{Ipv4Addr, SocketAddrV4};

use etherparse::{EtherType, Ethernet2Header, Ethernet2HeaderSlice, IpNumber, Ipv4Header, Ipv4HeaderSlice};
use etherparse::{IpFragOffset, UdpHeader, UdpHeaderSlice};

use crate::limits::{IPV4_HEADER_LEN_BYTES, UDP_HEADER_LEN_BYTES};
use crate::wire::{Class, Classifier, WireError};

/// Length of an Ethernet header without a VLAN tag, in bytes.
pub const ETHERNET_HEADER_LEN_BYTES: usize = 14;
/// Number of bytes before the UDP payload in the frames that the switch sends.
pub const HEADERS_LEN_BYTES: usize = ETHERNET_HEADER_LEN_BYTES + IPV4_HEADER_LEN_BYTES + UDP_HEADER_LEN_BYTES;
const TIME_TO_LIVE: u8 = 64;
/// Time to live of packets to a group. With this value, the packets do not leave the network that the port is connected
/// to (requirement B-5).
const GROUP_TIME_TO_LIVE: u8 = 1;

/// Ethernet, IP and UDP addresses of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameAddresses {
    /// MAC address of the sender.
    pub source_mac: [u8; 6],
    /// MAC address of the receiver.
    pub destination_mac: [u8; 6],
    /// IPv4 address and UDP port of the sender.
    pub source: SocketAddrV4,
    /// IPv4 address and UDP port of the receiver.
    pub destination: SocketAddrV4,
}

/// Parsed frame that carries an iSwitch packet.
#[derive(Clone, Copy, Debug)]
pub struct FrameView<'a> {
    /// Class of the packet: control or data.
    pub class: Class,
    /// Addresses of the sender and the receiver.
    pub addresses: FrameAddresses,
    /// UDP payload; for a super-frame, the concatenated payloads of all datagrams.
    pub payload: &'a [u8],
    udp: &'a [u8],
}

impl Classifier {
    /// Parses a frame. Returns `None` for ordinary traffic, and an error if the ToS marks the frame as an iSwitch
    /// packet but the frame is invalid.
    ///
    /// A frame with a VLAN tag is ordinary traffic. To serve a VLAN, open the port on the VLAN's own interface.
    pub fn classify<'a>(&self, frame: &'a [u8]) -> Option<Result<FrameView<'a>, WireError>> {
        let ethernet = Ethernet2HeaderSlice::from_slice(frame).ok()?;
        let packet = &frame[ETHERNET_HEADER_LEN_BYTES..];
        if ethernet.ether_type() != EtherType::IPV4 || packet.len() < IPV4_HEADER_LEN_BYTES {
            return None;
        }
        let class = self.class_of(packet[1])?;
        if packet[9] != IpNumber::UDP.0 {
            return None;
        }
        self.parse(class, &ethernet, packet).transpose()
    }

    fn parse<'a>(
        &self,
        class: Class,
        ethernet: &Ethernet2HeaderSlice<'a>,
        packet: &'a [u8],
    ) -> Result<Option<FrameView<'a>>, WireError> {
        let ip = Ipv4HeaderSlice::from_slice(packet).map_err(|_| WireError::BadIpHeader)?;
        if ip.is_fragmenting_payload() {
            return Err(WireError::Fragment);
        }
        let header_len = ip.slice().len();
        let total_len = usize::from(ip.total_len());
        if ip.header_checksum() != ip.to_header().calc_header_checksum() || total_len < header_len {
            return Err(WireError::BadIpHeader);
        }
        let udp = packet.get(header_len..total_len).ok_or(WireError::Truncated)?;
        let header = UdpHeaderSlice::from_slice(udp).map_err(|_| WireError::Truncated)?;
        if header.destination_port() != self.udp_port {
            return Ok(None);
        }
        let udp_len = usize::from(header.length());
        if udp_len < UDP_HEADER_LEN_BYTES {
            return Err(WireError::Truncated);
        }
        let udp = udp.get(..udp_len).ok_or(WireError::Truncated)?;
        let addresses = FrameAddresses {
            source_mac: ethernet.source(),
            destination_mac: ethernet.destination(),
            source: SocketAddrV4::new(ip.source_addr(), header.source_port()),
            destination: SocketAddrV4::new(ip.destination_addr(), header.destination_port()),
        };
        Ok(Some(FrameView { class, addresses, payload: &udp[UDP_HEADER_LEN_BYTES..], udp }))
    }

    /// Returns the Ethernet, IPv4 and UDP headers that precede a payload of `payload_len` bytes.
    ///
    /// The UDP checksum field holds only the sum of the pseudo-header, as checksum offload requires. Without offload,
    /// complete it with [`complete_udp_checksum`]. DF is set (W-4).
    ///
    /// # Panics
    /// Panics if the payload does not fit in an IPv4 packet.
    pub fn emit_headers(
        &self,
        class: Class,
        addresses: &FrameAddresses,
        payload_len: usize,
    ) -> [u8; HEADERS_LEN_BYTES] {
        let udp_len = UDP_HEADER_LEN_BYTES + payload_len;
        let (source, destination) = (addresses.source, addresses.destination);
        let mut ip = Ipv4Header {
            dscp: etherparse::IpDscp::try_new(self.tos_of(class) >> 2).expect("a ToS has six DSCP bits"),
            total_len: u16::try_from(IPV4_HEADER_LEN_BYTES + udp_len)
                .expect("payload fits in an IPv4 packet"),
            dont_fragment: true,
            fragment_offset: IpFragOffset::ZERO,
            time_to_live: if destination.ip().is_multicast() { GROUP_TIME_TO_LIVE } else { TIME_TO_LIVE },
            protocol: IpNumber::UDP,
            source: source.ip().octets(),
            destination: destination.ip().octets(),
            ..Default::default()
        };
        ip.header_checksum = ip.calc_header_checksum();
        let udp = UdpHeader {
            source_port: source.port(),
            destination_port: destination.port(),
            length: udp_len as u16,
            checksum: fold(pseudo_header_sum(*source.ip(), *destination.ip(), udp_len as u16)),
        };
        let ethernet = Ethernet2Header {
            source: addresses.source_mac,
            destination: addresses.destination_mac,
            ether_type: EtherType::IPV4,
        };
        let mut headers = [0; HEADERS_LEN_BYTES];
        let (first, rest) = headers.split_at_mut(ETHERNET_HEADER_LEN_BYTES);
        first.copy_from_slice(&ethernet.to_bytes());
        rest[..IPV4_HEADER_LEN_BYTES].copy_from_slice(&ip.to_bytes());
        rest[IPV4_HEADER_LEN_BYTES..].copy_from_slice(&udp.to_bytes());
        headers
    }
}

impl FrameView<'_> {
    /// Verifies the UDP checksum, which every iSwitch packet has (W-3). Do not call this if the kernel reports that the
    /// checksum has not been filled in yet or has already been verified.
    pub fn verify_checksum(&self) -> Result<(), WireError> {
        let stored = u16::from_be_bytes([self.udp[6], self.udp[7]]);
        let (source, destination) = (self.addresses.source, self.addresses.destination);
        let sum = pseudo_header_sum(*source.ip(), *destination.ip(), self.udp.len() as u16)
            + ones_complement_sum(self.udp);
        if stored != 0 && fold(sum) == 0xffff { Ok(()) } else { Err(WireError::BadChecksum) }
    }

    /// Returns whether the checksum field holds only the sum of the pseudo-header: the sender has left the checksum to
    /// a device, and no device has processed the frame yet. The result is meaningful only for frames that have not left
    /// the machine.
    #[inline]
    pub fn has_unfinished_checksum(&self) -> bool {
        let stored = u16::from_be_bytes([self.udp[6], self.udp[7]]);
        let (source, destination) = (self.addresses.source, self.addresses.destination);
        stored == fold(pseudo_header_sum(*source.ip(), *destination.ip(), self.udp.len() as u16))
    }
}

/// Completes the UDP checksum of a frame whose headers were created by [`Classifier::emit_headers`].
///
/// # Panics
/// Panics if the frame is shorter than the headers.
pub fn complete_udp_checksum(frame: &mut [u8]) {
    let at = ETHERNET_HEADER_LEN_BYTES + IPV4_HEADER_LEN_BYTES;
    // The field already holds the sum of the pseudo-header, so the sum over the whole datagram includes it.
    let checksum = match !fold(ones_complement_sum(&frame[at..])) {
        0 => 0xffff,
        checksum => checksum,
    };
    frame[at + 6..at + 8].copy_from_slice(&checksum.to_be_bytes());
}

fn pseudo_header_sum(source: Ipv4Addr, destination: Ipv4Addr, udp_len: u16) -> u64 {
    ones_complement_sum(&source.octets())
        + ones_complement_sum(&destination.octets())
        + u64::from(IpNumber::UDP.0)
        + u64::from(udp_len)
}

/// Returns the one's complement sum of the big-endian 16-bit words. An odd last byte is padded with zero.
///
/// The words are added in native byte order, two at a time, and the bytes of the sum are swapped at the end (RFC 1071,
/// section 2). This is four times as fast as converting each word.
fn ones_complement_sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let sum: u64 = words.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    u64::from(u16::from_be(fold(sum + u64::from(u32::from_ne_bytes(last)))))
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::limits::{DEFAULT_DATA_TOS, DEFAULT_PORT};

    fn addresses() -> FrameAddresses {
        FrameAddresses {
            source_mac: [2, 0, 0, 0, 0, 1],
            destination_mac: [2, 0, 0, 0, 0, 2],
            source: SocketAddrV4::new(Ipv4Addr::new(10, 9, 0, 1), 5000),
            destination: SocketAddrV4::new(Ipv4Addr::new(10, 9, 0, 254), DEFAULT_PORT),
        }
    }

    /// Builds a frame. Returns an array that begins with the frame, and the length of the frame in bytes.
    fn frame(class: Class, payload: &[u8]) -> ([u8; 2048], usize) {
        let mut frame = [0; 2048];
        let headers = Classifier::default().emit_headers(class, &addresses(), payload.len());
        frame[..HEADERS_LEN_BYTES].copy_from_slice(&headers);
        let len = HEADERS_LEN_BYTES + payload.len();
        frame[HEADERS_LEN_BYTES..len].copy_from_slice(payload);
        complete_udp_checksum(&mut frame[..len]);
        (frame, len)
    }

    /// Sets a byte of the IPv4 header and updates the header checksum.
    fn set_ip_byte(frame: &mut [u8], at: usize, value: u8) {
        frame[ETHERNET_HEADER_LEN_BYTES + at] = value;
        let ip = &mut frame[ETHERNET_HEADER_LEN_BYTES..][..IPV4_HEADER_LEN_BYTES];
        ip[10..12].fill(0);
        let checksum = !fold(ones_complement_sum(ip));
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    }

    proptest! {
        #[test]
        fn emitted_frames_are_recognised(payload in proptest::collection::vec(any::<u8>(), 0..1472), data: bool) {
            let class = if data { Class::Data } else { Class::Control };
            let (frame, len) = frame(class, &payload);
            let view = Classifier::default().classify(&frame[..len]).unwrap().unwrap();
            prop_assert_eq!(view.class, class);
            prop_assert_eq!(view.addresses, addresses());
            prop_assert_eq!(view.payload, &payload[..]);
            prop_assert_eq!(view.verify_checksum(), Ok(()));
        }

        #[test]
        fn unfinished_checksums_are_distinguished(payload in proptest::collection::vec(any::<u8>(), 1..200)) {
            let headers = Classifier::default().emit_headers(Class::Data, &addresses(), payload.len());
            let mut frame = [&headers[..], &payload].concat();
            let view = Classifier::default().classify(&frame).unwrap().unwrap();
            prop_assert!(view.has_unfinished_checksum());
            complete_udp_checksum(&mut frame);
            let view = Classifier::default().classify(&frame).unwrap().unwrap();
            // On average, one in 65,536 completed checksums equals an unfinished one.
            prop_assert_eq!(view.has_unfinished_checksum(), frame[40..42] == headers[40..42]);
        }

        #[test]
        fn a_flipped_bit_is_detected(payload in proptest::collection::vec(any::<u8>(), 1..200), bit: u16) {
            let (mut frame, len) = frame(Class::Data, &payload);
            let bit = usize::from(bit) % (payload.len() * 8);
            frame[HEADERS_LEN_BYTES + bit / 8] ^= 1 << (bit % 8);
            let view = Classifier::default().classify(&frame[..len]).unwrap().unwrap();
            prop_assert_eq!(view.verify_checksum(), Err(WireError::BadChecksum));
        }

        #[test]
        fn arbitrary_frames_cause_no_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), tagged: bool) {
            if tagged && bytes.len() >= 24 {
                bytes[12..16].copy_from_slice(&[8, 0, 0x45, DEFAULT_DATA_TOS]);
                bytes[23] = 17;
            }
            if let Some(Ok(view)) = Classifier::default().classify(&bytes) {
                let _ = view.verify_checksum();
            }
        }
    }

    proptest! {
        #[test]
        fn the_checksum_sums_16_bit_words(bytes in proptest::collection::vec(any::<u8>(), 0..1500)) {
            let word = |pair: &[u8]| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0));
            prop_assert_eq!(ones_complement_sum(&bytes), u64::from(fold(bytes.chunks(2).map(word).sum())));
        }
    }

    #[test]
    fn frames_to_groups_have_a_ttl_of_one() {
        let ttl_to = |host: Ipv4Addr| {
            let destination = SocketAddrV4::new(host, 61_000);
            let addresses = FrameAddresses { destination, ..addresses() };
            Classifier::default().emit_headers(Class::Data, &addresses, 8)[ETHERNET_HEADER_LEN_BYTES + 8]
        };
        assert_eq!(ttl_to(Ipv4Addr::new(239, 192, 0, 1)), 1);
        assert_eq!(ttl_to(Ipv4Addr::new(10, 9, 0, 1)), 64);
    }

    #[test]
    fn ecn_bits_are_ignored() {
        let (mut frame, len) = frame(Class::Data, &[0; 12]);
        set_ip_byte(&mut frame, 1, DEFAULT_DATA_TOS | 0b11);
        assert_eq!(Classifier::default().classify(&frame[..len]).unwrap().unwrap().class, Class::Data);
    }

    #[test]
    fn ordinary_frames_are_not_classified() {
        let ordinary = |at: usize, value: u8| {
            let (mut frame, len) = frame(Class::Data, &[0; 12]);
            frame[at] = value;
            set_ip_byte(&mut frame, 8, 63);
            Classifier::default().classify(&frame[..len]).is_none()
        };
        assert!(ordinary(13, 0x06), "ARP");
        assert!(ordinary(ETHERNET_HEADER_LEN_BYTES + 1, 0), "best-effort ToS");
        assert!(ordinary(ETHERNET_HEADER_LEN_BYTES + 9, 6), "TCP");
        assert!(ordinary(HEADERS_LEN_BYTES - 6, 1), "another UDP port");
    }

    #[test]
    fn unusable_frames_cause_specific_errors() {
        let (good, len) = frame(Class::Data, &[0; 12]);
        let error = |frame: &[u8]| Classifier::default().classify(frame).unwrap().map(|_| ()).unwrap_err();
        let mut fragment = good;
        set_ip_byte(&mut fragment, 6, 0x20);
        assert_eq!(error(&fragment[..len]), WireError::Fragment);
        assert_eq!(error(&good[..len - 1]), WireError::Truncated);
        let mut header = good;
        header[ETHERNET_HEADER_LEN_BYTES + 8] ^= 1;
        assert_eq!(error(&header[..len]), WireError::BadIpHeader);
        let mut udp_len = good;
        udp_len[ETHERNET_HEADER_LEN_BYTES + IPV4_HEADER_LEN_BYTES + 5] = 7;
        assert_eq!(error(&udp_len[..len]), WireError::Truncated);
    }
}
