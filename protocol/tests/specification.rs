//! Tests of requirements of `SPEC.md` that the golden packets do not cover, in the order of the sections of `SPEC.md`.
//! The codes are compared with the tables in `SPEC.md`.

use std::net::{Ipv4Addr, SocketAddrV4};

use iswitch_protocol::limits::{self, DEFAULT_PORT, TRAILER_LEN_BYTES};
use iswitch_protocol::wire::control::{ACK_LEN_BYTES, RangeRepr, SegmentSetRepr};
use iswitch_protocol::wire::frame::{HEADERS_LEN_BYTES, complete_udp_checksum};
use iswitch_protocol::wire::{
    AbsentList, AbsentMember, AbsentRepr, AckRepr, Action, Class, Classifier, ControlBody, ControlPacket,
    ControlRepr, DigestRepr, FrameAddresses, JoinRepr, NameRepr, ResumeRepr, Status, WireError,
};
use iswitch_protocol::{Round, history};

const SPECIFICATION: &str = include_str!("../SPEC.md");

/// Length of the common header of control packets, in bytes.
const HEADER_LEN_BYTES: usize = 12;

fn frame(classifier: &Classifier, class: Class) -> Vec<u8> {
    let addresses = FrameAddresses {
        source_mac: [2, 0, 0, 0, 0, 1],
        destination_mac: [2, 0, 0, 0, 0, 2],
        source: SocketAddrV4::new(Ipv4Addr::new(10, 9, 0, 1), 5000),
        destination: SocketAddrV4::new(Ipv4Addr::new(10, 9, 0, 254), classifier.udp_port),
    };
    let payload = [7; 20];
    let mut frame = classifier.emit_headers(class, &addresses, payload.len()).to_vec();
    frame.extend(payload);
    complete_udp_checksum(&mut frame);
    frame
}

fn emit(body: ControlBody<'_>) -> Vec<u8> {
    let repr = ControlRepr { job: 7, request: 1, body };
    let mut bytes = vec![0; repr.buffer_len()];
    repr.emit(&mut bytes);
    bytes
}

fn parse(bytes: &[u8]) -> Result<ControlRepr<'_>, WireError> {
    ControlRepr::parse(&ControlPacket::new_checked(bytes)?)
}

/// Section 1, W-1.
#[test]
fn both_tos_values_and_the_port_are_configurable() {
    let chosen = Classifier { control_tos: 0x2c, data_tos: 0x3c, udp_port: DEFAULT_PORT + 1 };
    for class in [Class::Control, Class::Data] {
        let bytes = frame(&chosen, class);
        assert_eq!(chosen.classify(&bytes).unwrap().unwrap().class, class);
        assert!(Classifier::default().classify(&bytes).is_none(), "{class:?}");
        assert!(chosen.classify(&frame(&Classifier::default(), class)).is_none(), "{class:?}");
    }
}

/// Section 1, W-1.
#[test]
fn a_frame_with_a_vlan_tag_is_ordinary_traffic() {
    let mut bytes = frame(&Classifier::default(), Class::Data);
    bytes.splice(12..12, [0x81, 0, 0, 5]);
    assert!(Classifier::default().classify(&bytes).is_none());
}

/// Section 1, W-3.
#[test]
fn a_packet_without_a_checksum_is_refused() {
    let mut bytes = frame(&Classifier::default(), Class::Data);
    let verify = |bytes: &[u8]| Classifier::default().classify(bytes).unwrap().unwrap().verify_checksum();
    assert_eq!(verify(&bytes), Ok(()));
    bytes[HEADERS_LEN_BYTES - 2..HEADERS_LEN_BYTES].fill(0);
    assert_eq!(verify(&bytes), Err(WireError::BadChecksum));
}

/// Returns the code and the name in each row of the first table of a section; `heading` is the beginning of the
/// section's heading.
fn codes(heading: &str) -> Vec<(u8, String)> {
    let table = SPECIFICATION.lines().skip_while(|line| !line.starts_with(heading)).skip(2);
    let rows = table.take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let mut cells = row.split('|').skip(1).map(str::trim);
        let code =
            cells.next().expect("a row should have a code").parse().expect("a code should be a number");
        (code, cells.next().expect("a row should have a name").to_owned())
    })
    .collect()
}

/// Section 3.
#[test]
fn action_codes_match_the_specification() {
    let actions: Vec<_> = (0..=u8::MAX)
        .filter_map(|code| Action::from_code(code).map(|action| (code, format!("{action:?}"))))
        .collect();
    assert_eq!(codes("| code | Action |"), actions);
}

/// Section 3, C-5.
#[test]
fn a_round_of_more_than_24_bits_is_refused() {
    let round = Round::new(9);
    let range = RangeRepr { round, first: 0, count: 4 };
    let set = SegmentSetRepr { range, bitmap: &[0b1010] };
    let resume = ResumeRepr {
        round,
        members: 1,
        weight: 1,
        threshold: 0,
        history: 5,
        previous: 0,
        behind: 0,
        fresh: false,
    };
    let join = JoinRepr { resume: Some(resume), ..JoinRepr::worker(10, 4, 1) };
    let ack = AckRepr { round, ..AckRepr::bare(Action::Join, Status::Success) };
    let first = HEADER_LEN_BYTES;
    let cases = [
        (ControlBody::FBcast(range), first),
        (ControlBody::Help(set), first),
        (ControlBody::Confirm(set), first),
        (ControlBody::Digest(DigestRepr { round, digest: 1 }), first),
        (ControlBody::Ack(ack), first + 8),
        (ControlBody::Join(join), first + 20),
    ];
    for (body, at) in cases {
        let mut bytes = emit(body);
        assert_eq!(bytes[at..at + 4], round.get().to_le_bytes(), "{body:?}");
        parse(&bytes).unwrap();
        bytes[at + 3] = 1;
        assert_eq!(parse(&bytes), Err(WireError::BadValue), "{body:?}");
    }
}

/// Section 3, C-7.
#[test]
fn a_range_names_at_most_1024_segments() {
    let of = |count: u32| {
        let mut bytes = emit(ControlBody::HEARTBEAT);
        bytes.truncate(HEADER_LEN_BYTES);
        bytes.extend([0, 100, count].into_iter().flat_map(u32::to_le_bytes));
        bytes.resize(bytes.len() + count.div_ceil(8) as usize, 0xff);
        parse(&bytes).map(|_| ())
    };
    assert_eq!(of(1024), Ok(()));
    assert_eq!(of(1025), Err(WireError::BadValue));
}

/// Section 3, C-7.
#[test]
fn bits_beyond_a_range_are_ignored() {
    let range = RangeRepr { round: Round::new(9), first: 100, count: 3 };
    let bytes = emit(ControlBody::Help(SegmentSetRepr { range, bitmap: &[0b1111_1101] }));
    let Ok(ControlRepr { body: ControlBody::Help(set), .. }) = parse(&bytes) else {
        panic!("expected a Help")
    };
    assert!(set.indices().eq([100, 102]));
}

/// Section 3, C-8.
#[test]
fn status_codes_match_the_specification() {
    let statuses = Status::ALL.map(|status| (status as u8, format!("{status:?}")));
    assert_eq!(codes("| code | status |"), statuses);
    assert_eq!(Status::from_code(statuses.len() as u8), None);
}

/// Section 4, M-8: checks the example in the text of the requirement.
#[test]
fn histories_match_the_example_in_the_specification() {
    let example = "job 1 of epoch 0x0123456789ABCDEF begins at round 0 with 8874051391050643150, and the sum of \
                   round 9 changes history 1 to 10185778304968672382";
    let text = SPECIFICATION.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(example));
    let epoch = 0x0123_4567_89AB_CDEF;
    assert_eq!(history::begin(epoch, 1, Round::new(0)), 8_874_051_391_050_643_150);
    assert_eq!(history::after(1, epoch, Round::new(9)), 10_185_778_304_968_672_382);
}

/// Section 8, A-1.
#[test]
fn a_join_and_its_ack_are_as_long_as_a_data_packet() {
    const PACKET: usize = 1472;
    for (tagged, authenticated) in [(false, false), (false, true), (true, true)] {
        let (tag_len, trailer_len) =
            (8 * usize::from(tagged), TRAILER_LEN_BYTES * usize::from(authenticated));
        let padding_len = JoinRepr::padding_to(PACKET - tag_len, tagged, authenticated);
        let join = emit(ControlBody::Join(JoinRepr { padding_len, ..JoinRepr::worker(10, 4, 1) }));
        assert_eq!(join.len() + trailer_len, PACKET, "tagged: {tagged}");
        let padding_len = (join.len() - ACK_LEN_BYTES) as u16;
        let ack = AckRepr { padding_len, ..AckRepr::bare(Action::Join, Status::Success) };
        assert_eq!(emit(ControlBody::Ack(ack)).len(), join.len());
    }
}

/// Checks the limits that the sections of the specification state.
#[test]
fn limits_match_the_specification() {
    let w_1 = (DEFAULT_PORT, limits::DEFAULT_CONTROL_TOS, limits::DEFAULT_DATA_TOS);
    assert_eq!(w_1, (7711, 0x0C, 0x1C));
    assert_eq!((limits::MAX_SEGMENT_FLOATS, limits::MAX_CONTRIBUTIONS), (2241, 65_534), "D-2, D-3");
    assert_eq!(limits::MAX_RANGE_SEGMENTS, 1024, "C-7");
    assert_eq!((limits::MAX_MEMBERS, limits::MAX_HEIGHT), (64, 8), "M-5, H-1");
    assert_eq!((limits::REPEATS_PER_RESULT, limits::MIN_REPEATS), (8, 256), "F-3");
    let keys = (limits::MIN_KEY_LEN_BYTES, limits::MAX_KEY_LEN_BYTES, limits::MAX_TAGGED_SEGMENT_FLOATS);
    assert_eq!(keys, (16, 64, 2239), "section 8, A-9");
    assert_eq!((limits::MAX_SKIPPED_VECTORS, limits::MAX_DIGESTS), (64, 8), "V-2, V-5, G-1");
    // One of the generations is the aggregate that is being filled.
    let kept = |gradient_len| limits::async_generations(gradient_len) - 1;
    assert_eq!((kept(1), kept(u32::MAX)), (63, 7), "V-6");
}

/// Section 14, N-1 and N-2.
#[test]
fn a_name_that_is_not_printable_text_is_refused() {
    let name = NameRepr { job: "ppo".parse().unwrap(), host: "gpu".parse().unwrap(), ..NameRepr::UNKNOWN };
    let valid = emit(ControlBody::Name(name));
    let (job, host) = (18, 21);
    assert_eq!((&valid[job..host], &valid[host..host + 3]), (&b"ppo"[..], &b"gpu"[..]));
    parse(&valid).unwrap();
    let with = |at: usize, text: &[u8]| {
        let mut bytes = valid.clone();
        bytes[at..at + text.len()].copy_from_slice(text);
        parse(&bytes).map(|_| ())
    };
    assert_eq!(with(job, "é1".as_bytes()), Ok(()));
    // Texts with an escape sequence, a line break, DEL, an incomplete character, a right-to-left override, a soft
    // hyphen and a zero byte.
    let hostile: [&[u8]; 7] =
        [b"\x1b[m", b"a\nb", b"\x7f", b"\xc3(", "\u{202e}".as_bytes(), "\u{ad}a".as_bytes(), b"a\0b"];
    for text in hostile {
        assert_eq!(with(job, text), Err(WireError::BadValue), "{text:?}");
        assert_eq!(with(host, text), Err(WireError::BadValue), "{text:?}");
    }
    // The reserved byte must be zero, and no length may exceed its limit or the end of the packet.
    assert_eq!(with(17, &[1]), Err(WireError::BadValue));
    let long = |at: usize, len: u8| {
        let mut bytes = emit(ControlBody::Name(NameRepr::UNKNOWN));
        bytes[at] = len;
        bytes.truncate(18);
        bytes.extend(vec![b'a'; len.into()]);
        parse(&bytes).map(|_| ())
    };
    for (at, limit) in [(14, 32), (15, 32), (16, 63)] {
        assert_eq!((long(at, limit), long(at, limit + 1)), (Ok(()), Err(WireError::BadValue)), "{at}");
    }
    let mut short = emit(ControlBody::Name(NameRepr::UNKNOWN));
    short[16] = 63;
    assert_eq!(parse(&short), Err(WireError::Truncated));
}

/// Section 14, N-6.
#[test]
fn a_malformed_list_of_absent_members_is_refused() {
    let mut list = AbsentList::EMPTY;
    assert!(list.push(&AbsentMember { rank: Some(2), host: "gpu07".parse().unwrap() }));
    let valid =
        emit(ControlBody::Absent(AbsentRepr { round: Round::new(7), count: 1, list: list.as_bytes() }));
    assert_eq!(valid.len(), 28);
    let with = |at: usize, byte: u8| {
        let mut bytes = valid.clone();
        bytes[at] = byte;
        parse(&bytes).map(|_| ())
    };
    assert_eq!(with(16, 2), Ok(()), "another member does not fit in the list");
    // The round, the number of members, the length of the list, the length of a host name, and its text.
    for (at, byte) in [(15, 1), (16, 0), (18, 7), (22, 6), (22, 2), (23, 7)] {
        assert!(matches!(with(at, byte), Err(WireError::BadValue | WireError::Overlong)), "{at}, {byte}");
    }
    assert_eq!(with(18, 9), Err(WireError::Truncated));
    assert_eq!(with(19, 1), Err(WireError::BadValue));
}

/// Section 14, N-1.
#[test]
fn the_rank_65535_is_unknown() {
    let of = |rank| {
        let bytes = emit(ControlBody::Name(NameRepr { rank, ..NameRepr::UNKNOWN }));
        let ControlBody::Name(name) = parse(&bytes).unwrap().body else { panic!("expected a Name") };
        (bytes[12..14].to_vec(), name.rank)
    };
    assert_eq!(of(None), (vec![0xff, 0xff], None));
    assert_eq!(of(Some(2)), (vec![2, 0], Some(2)));
    assert_eq!(of(Some(65_535)).1, None);
}
