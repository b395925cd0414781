//! Fuzz targets: every parser of the wire format. `docs/fuzzing.md` describes how to run them.

use iswitch_protocol::auth::{Conversation, Direction, NO_SESSION};
use iswitch_protocol::limits::{
    DATA_TAG_LEN_BYTES, MAX_PAYLOAD_LEN_BYTES, PROTOCOL_VERSION, SEG_LEN_BYTES, TRAILER_LEN_BYTES,
};
use iswitch_protocol::wire::control::{HEADER_LEN_BYTES, SegmentSetRepr};
use iswitch_protocol::wire::frame::{ETHERNET_HEADER_LEN_BYTES, complete_udp_checksum};
use iswitch_protocol::wire::{
    Action, Classifier, ControlBody, ControlPacket, ControlRepr, DataPacket, FrameView, emit_seg,
};
use iswitch_protocol::{ElementTypes, Key, Seg, VectorLayout};

const FLAGS: std::ops::Range<usize> = 2..4;

fn key() -> Key {
    Key::new(b"the key of this job").expect("the key must be long enough")
}

/// Checks that a parsed control packet is emitted as the same bytes.
fn check_control(bytes: &[u8]) {
    let Ok(packet) = ControlPacket::new_checked(bytes) else { return };
    assert_eq!(packet.packet_len(), bytes.len());
    assert_eq!(packet.counter().is_some(), packet.is_authenticated());
    let _ = key().verify(Direction::ToSwitch, NO_SESSION, &packet);
    let Ok(repr) = ControlRepr::parse(&packet) else { return };
    let trailer_len = if packet.is_authenticated() { TRAILER_LEN_BYTES } else { 0 };
    let mut content = bytes[..bytes.len() - trailer_len].to_vec();
    // The flags announce the trailer, which is not part of the value.
    content[FLAGS].fill(0);
    let mut emitted = vec![0xa5; repr.buffer_len()];
    assert_eq!(repr.emit(&mut emitted), emitted.len());
    // Only the padding may be longer or shorter (C-4).
    let common = emitted.len().min(content.len());
    assert_eq!(emitted[..common], content[..common]);
    assert!(emitted[common..].iter().chain(&content[common..]).all(|byte| *byte == 0));
    assert_eq!(ControlPacket::new_checked(&emitted).and_then(|again| ControlRepr::parse(&again)), Ok(repr));
    if let Some(set) = segments_of(&repr) {
        assert!(set.indices().all(|index| index >= set.range.first));
        assert!(set.indices().count() <= set.range.count as usize);
    }
}

fn segments_of<'a>(repr: &ControlRepr<'a>) -> Option<SegmentSetRepr<'a>> {
    match repr.body {
        ControlBody::Help(set) | ControlBody::Confirm(set) => Some(set),
        ControlBody::Ack(ack) => ack.missing,
        _ => None,
    }
}

/// Checks that a parsed data packet is emitted as the same bytes. An exception is the number of contributions, which
/// senders that follow the paper leave zero.
fn check_data(bytes: &[u8]) {
    let Ok(packet) = DataPacket::new_checked(bytes) else { return };
    let seg = packet.seg();
    let mut emitted = vec![0; bytes.len()];
    emit_seg(&mut emitted, seg).copy_from_slice(packet.element_bytes());
    assert_eq!(packet.floats().len(), packet.element_bytes().len() / 4);
    let is_counted = bytes[SEG_LEN_BYTES - 2..SEG_LEN_BYTES] != [0, 0];
    let same_from = if is_counted { 0 } else { SEG_LEN_BYTES };
    assert_eq!(emitted[same_from..], bytes[same_from..]);
    assert_eq!(emitted[..SEG_LEN_BYTES - 2], bytes[..SEG_LEN_BYTES - 2]);
}

/// Replaces the headers of a frame with those that the protocol crate emits. Checks that the new frame is classified
/// identically and has a correct checksum.
fn check_frame(view: &FrameView<'_>) {
    let classifier = Classifier::default();
    let _ = view.verify_checksum();
    let headers = classifier.emit_headers(view.class, &view.addresses, view.payload.len());
    let mut frame = [&headers[..], view.payload].concat();
    complete_udp_checksum(&mut frame);
    let again =
        classifier.classify(&frame).expect("the frame must be tagged").expect("the frame must be valid");
    assert_eq!((again.class, again.addresses), (view.class, view.addresses));
    assert_eq!(again.payload, view.payload);
    assert_eq!(again.verify_checksum(), Ok(()));
}

#[test]
fn control_packet() {
    bolero::check!().with_iterations(10_000).for_each(check_control);
}

#[test]
fn data_packet() {
    bolero::check!().with_iterations(10_000).for_each(|bytes: &[u8]| {
        check_data(bytes);
        // A fuzzer that observes comparisons can construct a packet with a valid tag. Signing its content again must
        // yield the same tag.
        let key = key().result_key(1, 2);
        if let Some(content) = key.verify(bytes) {
            let mut again = [content, &[0; DATA_TAG_LEN_BYTES]].concat();
            key.sign(&mut again);
            assert_eq!(again, bytes);
        }
    });
}

/// The first two bytes of the input are the length of each datagram; the rest is the payload of one offloaded receive.
#[test]
fn super_frame() {
    bolero::check!().with_iterations(10_000).for_each(|bytes: &[u8]| {
        let Some((stride, payload)) = bytes.split_first_chunk() else { return };
        let stride = usize::from(u16::from_le_bytes(*stride)).max(1);
        for datagram in payload.chunks(stride) {
            check_data(datagram);
            check_control(datagram);
        }
    });
}

#[test]
fn frame() {
    bolero::check!().with_iterations(10_000).for_each(|bytes: &[u8]| {
        let classify = |bytes: &[u8]| {
            if let Some(Ok(view)) = Classifier::default().classify(bytes) {
                check_frame(&view);
            }
        };
        classify(bytes);
        // By chance, the fuzzer would hardly ever reach the code that runs after the checksum has been verified.
        classify(&with_header_checksum(bytes));
    });
}

/// Returns the frame with the checksum of its IPv4 header corrected, if it has such a header.
fn with_header_checksum(bytes: &[u8]) -> Vec<u8> {
    let mut frame = bytes.to_vec();
    let Some(packet) = frame.get_mut(ETHERNET_HEADER_LEN_BYTES..) else { return frame };
    let header_len = packet.first().map_or(0, |first| usize::from(first & 0xf) * 4);
    let Some(header) = packet.get_mut(..header_len).filter(|header| header.len() >= 20) else { return frame };
    header[10..12].fill(0);
    let words = header.as_chunks::<2>().0.iter().map(|word| u32::from(u16::from_be_bytes(*word)));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    frame
}

/// The text of a key file is either refused or yields the key that its digits encode.
#[test]
fn key_text() {
    bolero::check!().with_iterations(10_000).for_each(|text: &[u8]| {
        let Ok(key) = Key::from_hex(text) else { return };
        let text = std::str::from_utf8(text).expect("hexadecimal digits must be text").trim_ascii();
        let pairs = (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16));
        let bytes: Vec<u8> = pairs.map(|byte| byte.expect("a byte must have two digits")).collect();
        let same = Key::new(&bytes).expect("the length must be that of a key");
        let mut packets = [[0; 64]; 2];
        key.sign(Direction::ToSwitch, 1, 2, &mut packets[0]);
        same.sign(Direction::ToSwitch, 1, 2, &mut packets[1]);
        assert_eq!(packets[0], packets[1]);
    });
}

#[test]
fn key_file() {
    use std::os::unix::fs::OpenOptionsExt;

    let directory = tempfile::tempdir().expect("a temporary directory must be available");
    let path = directory.path().join("key");
    bolero::check!().with_iterations(500).for_each(|text: &[u8]| {
        let mut options = std::fs::OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(&path);
        std::io::Write::write_all(&mut file.expect("the file must open"), text)
            .expect("the file must be writable");
        let read = iswitch_protocol::key_file::read(&path);
        assert!(read.is_err() || Key::from_hex(text).is_ok());
    });
}

/// Every segment of a vector lies within the vector, and the length of its packet corresponds to the number of its
/// floats.
#[test]
fn layout() {
    bolero::check!()
        .with_iterations(10_000)
        .with_type::<(u32, u16, [u8; 2], [u8; SEG_LEN_BYTES])>()
        .for_each(|(len, floats, [contributions, results], seg)| {
            let Some(elements) = ElementTypes::from_codes(contributions % 4, results % 4) else { return };
            let Ok(layout) = VectorLayout::with_elements(*len, *floats, elements) else { return };
            let index = Seg::from_bytes(*seg).index;
            let range = layout.range(index);
            assert_eq!(layout.contains(index), !range.is_empty());
            for element in [elements.contributions(), elements.results()] {
                let len = layout.packet_len(index, element);
                assert_eq!(len, SEG_LEN_BYTES + element.len_bytes() * range.len());
                assert!(len <= MAX_PAYLOAD_LEN_BYTES);
            }
            assert!(range.end <= *len as usize && range.len() <= usize::from(*floats));
        });
}

#[derive(Clone, Debug, bolero::TypeGenerator)]
enum Turn {
    /// The member sends a packet to the switch.
    Sends { joins: bool },
    /// A challenge gives the member a new nonce.
    OpensSession,
    /// The switch sends a packet, either inside or outside the session.
    Hears { in_session: bool, counter: u8 },
    /// An earlier packet arrives again.
    Repeated { age: u8 },
    /// An earlier packet arrives damaged.
    Damaged { age: u8, at: u8, flip: u8 },
}

/// Member and the packets that were sent to it.
struct Listener {
    key: Key,
    first_counter: u64,
    conversation: Conversation,
    nonce: u64,
    /// Received packets, and whether the member accepted them.
    heard: Vec<(Vec<u8>, bool)>,
}

impl Listener {
    fn new(first_counter: u64) -> Self {
        let conversation = Conversation::new(first_counter);
        Self { key: key(), first_counter, conversation, nonce: NO_SESSION, heard: Vec::new() }
    }

    fn believes(&mut self, bytes: &[u8]) -> bool {
        let packet = ControlPacket::new_checked(bytes).expect("the packet must keep its length");
        self.conversation.accept(&self.key, &packet)
    }

    /// Delivers a packet from the switch to the member, and checks that the member does not accept the same bytes
    /// twice.
    fn hear(&mut self, bytes: Vec<u8>) {
        let was_believed = self.heard.iter().any(|(known, is_believed)| *is_believed && *known == bytes);
        let is_believed = self.believes(&bytes);
        assert!(!(is_believed && was_believed), "accepted twice: {bytes:?}");
        self.heard.push((bytes, is_believed));
    }

    fn earlier(&self, age: u8) -> Option<Vec<u8>> {
        let at = self.heard.len().checked_sub(1 + usize::from(age))?;
        Some(self.heard[at].0.clone())
    }

    fn take(&mut self, turn: &Turn) {
        match *turn {
            Turn::Sends { joins } => {
                let action = if joins { Action::Join } else { Action::Help };
                let (context, _) = self.conversation.next(action);
                assert_eq!(context, if joins { NO_SESSION } else { self.nonce });
            }
            Turn::OpensSession => {
                self.nonce += 1;
                self.conversation.open_session(self.nonce);
            }
            Turn::Hears { in_session, counter } => {
                let (context, first) =
                    if in_session { (self.nonce, 0) } else { (NO_SESSION, self.first_counter) };
                let mut bytes = vec![0; HEADER_LEN_BYTES + TRAILER_LEN_BYTES];
                (bytes[0], bytes[1]) = (Action::Halt as u8, PROTOCOL_VERSION);
                let counter = first.wrapping_add(u64::from(counter));
                self.key.sign(Direction::ToMember, context, counter, &mut bytes);
                self.hear(bytes);
            }
            Turn::Repeated { age } => {
                if let Some(bytes) = self.earlier(age) {
                    self.hear(bytes);
                }
            }
            Turn::Damaged { age, at, flip } => {
                if let Some(mut bytes) = self.earlier(age).filter(|_| flip != 0) {
                    let at = usize::from(at) % bytes.len();
                    bytes[at] ^= flip;
                    // Two changes may cancel each other out.
                    let is_whole = self.heard.iter().any(|(known, _)| *known == bytes);
                    assert!(is_whole || !self.believes(&bytes), "accepted although damaged: {bytes:?}");
                }
            }
        }
    }
}

/// A member accepts each packet from the switch at most once, and no damaged packet.
#[test]
fn conversation() {
    let turns = bolero::produce::<Vec<Turn>>().with().len(0..=40usize);
    bolero::check!().with_iterations(1000).with_generator((bolero::produce::<u64>(), turns)).for_each(
        |(first, turns)| {
            let mut listener = Listener::new(*first);
            turns.iter().for_each(|turn| listener.take(turn));
        },
    );
}
