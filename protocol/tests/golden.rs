//! Golden packets: `fixtures/wire/NAME.hex` holds the bytes on the wire, and `NAME.json` their meaning.
//!
//! The tests of the daemon, the worker, the RTL and the dissector also read these files. After an intended change to
//! the packet format, run `ISWITCH_BLESS=1 cargo test -p iswitch-protocol` to regenerate them.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

use iswitch_protocol::auth::Direction;
use iswitch_protocol::limits::{DATA_TAG_LEN_BYTES, DEFAULT_PORT, TRAILER_LEN_BYTES};
use iswitch_protocol::wire::control::{RangeRepr, SegmentSetRepr};
use iswitch_protocol::wire::frame::{HEADERS_LEN_BYTES, complete_udp_checksum};
use iswitch_protocol::wire::{
    AbsentList, AbsentMember, AbsentRepr, AckRepr, Action, Class, Classifier, ControlBody, ControlPacket,
    ControlRepr, DataPacket, DigestRepr, Exceeded, FrameAddresses, JoinRepr, Kind, Limit, Mode, NameRepr,
    ResumeRepr, Standing, Status, emit_seg,
};
use iswitch_protocol::{ElementType, ElementTypes, Key, Round, Seg, SegmentIndex, history};
use serde_json::{Value, json};

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures/wire")
}

/// Encodes bytes as hexadecimal digits, sixteen bytes per line.
fn to_hex(bytes: &[u8]) -> String {
    let line = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
    bytes.chunks(16).map(|chunk| line(chunk) + "\n").collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    text.split_whitespace()
        .map(|byte| {
            u8::from_str_radix(byte, 16).expect("a fixture should consist of pairs of hexadecimal digits")
        })
        .collect()
}

/// Compares a packet with its fixture files, or writes the files if `ISWITCH_BLESS` is set.
fn check(name: &str, bytes: &[u8], meaning: &Value) {
    let (hex, json) = (directory().join(format!("{name}.hex")), directory().join(format!("{name}.json")));
    if std::env::var_os("ISWITCH_BLESS").is_some() {
        std::fs::write(&hex, to_hex(bytes)).expect("fixtures/wire should be writable");
        let text = serde_json::to_string_pretty(meaning).expect("the meaning should be serializable") + "\n";
        return std::fs::write(&json, text).expect("fixtures/wire should be writable");
    }
    let read = |path| std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(from_hex(&read(hex)), bytes, "{name}: bytes");
    let expected: Value = serde_json::from_str(&read(json)).expect("the fixture should be JSON");
    assert_eq!(&expected, meaning, "{name}: meaning");
}

fn data_packet(index: u32, round: u32, contributions: u16, floats: &[f32]) -> Vec<u8> {
    let mut bytes = vec![0; 8 + 4 * floats.len()];
    let seg = Seg { index: SegmentIndex::new(index).unwrap(), round: Round::new(round), contributions };
    for (word, x) in emit_seg(&mut bytes, seg).chunks_mut(4).zip(floats) {
        word.copy_from_slice(&x.to_le_bytes());
    }
    bytes
}

fn data_meaning(bytes: &[u8]) -> Value {
    let packet = DataPacket::new_checked(bytes).unwrap();
    let Seg { index, round, contributions } = packet.seg();
    // The floats are written as bits, because JSON has no NaN, and not every parser preserves a signed zero.
    let bits: Vec<_> = packet.floats().map(|x| format!("{:08x}", x.to_bits())).collect();
    json!({
        "class": "data",
        "index": index.get(),
        "round": round.get(),
        "contributions": contributions,
        "float_bits": bits,
    })
}

/// Returns the meaning of a packet with 16-bit elements. The packet itself does not state the element type.
fn short_meaning(element: ElementType, bytes: &[u8]) -> Value {
    let packet = DataPacket::new_checked(bytes).unwrap();
    let mut meaning = data_meaning(bytes);
    let bits = packet.element_bytes().chunks(2).map(|half| format!("{:02x}{:02x}", half[1], half[0]));
    meaning.as_object_mut().expect("the meaning is an object").remove("float_bits");
    meaning["element"] = element.name().into();
    meaning["element_bits"] = bits.collect::<Vec<_>>().into();
    meaning
}

fn range_meaning(range: RangeRepr) -> Value {
    json!({ "round": range.round.get(), "first": range.first, "count": range.count })
}

fn set_meaning(set: SegmentSetRepr<'_>) -> Value {
    let mut meaning = range_meaning(set.range);
    meaning["segments"] = set.indices().collect::<Vec<_>>().into();
    meaning
}

fn resume_meaning(resume: ResumeRepr) -> Value {
    json!({
        "round": resume.round.get(),
        "members": resume.members,
        "weight": resume.weight,
        "threshold": resume.threshold,
        "history": resume.history,
        "previous": resume.previous,
        "behind": resume.behind,
        "fresh": resume.fresh,
    })
}

fn absent_meaning(absent: &AbsentRepr<'_>) -> Value {
    let member = |member: AbsentMember| json!({ "rank": member.rank, "host": member.host.as_str() });
    json!({
        "round": absent.round.get(),
        "count": absent.count,
        "members": absent.members().map(member).collect::<Vec<_>>(),
    })
}

fn control_meaning(bytes: &[u8]) -> Value {
    let repr = ControlRepr::parse(&ControlPacket::new_checked(bytes).unwrap()).unwrap();
    let value = match repr.body {
        ControlBody::Join(join) => json!({
            "gradient_len": join.gradient_len,
            "segment_floats": join.segment_floats,
            "workers": join.workers,
            "contributions": join.elements.contributions().name(),
            "results": join.elements.results().name(),
            "mode": format!("{:?}", join.mode),
            "kind": format!("{:?}", join.kind),
            "weight": join.weight,
            "instance": join.instance,
            "rank": join.rank,
            "height": join.height,
            "query": join.query,
            "tagged": join.tagged,
            "roams": join.roams,
            "updates": join.updates,
            "groups": join.groups,
            "nonce": join.nonce,
            "resume": join.resume.map(resume_meaning),
            "padding_len": join.padding_len,
        }),
        ControlBody::Leave | ControlBody::Halt | ControlBody::Waiting => json!({}),
        ControlBody::Reset { boot } => json!({ "boot": boot }),
        ControlBody::SetH { threshold } => json!({ "threshold": threshold }),
        ControlBody::FBcast(range) => range_meaning(range),
        ControlBody::Help(set) | ControlBody::Confirm(set) => set_meaning(set),
        ControlBody::Digest(digest) => json!({ "round": digest.round.get(), "digest": digest.digest }),
        ControlBody::Group(group) => json!({ "address": group.to_string() }),
        ControlBody::Probe { nonce } | ControlBody::Heard { nonce } => json!({ "nonce": nonce }),
        ControlBody::Name(name) => json!({
            "job": name.job.as_str(),
            "owner": name.owner.as_str(),
            "host": name.host.as_str(),
            "rank": name.rank,
        }),
        ControlBody::Absent(absent) => absent_meaning(&absent),
        ControlBody::Ack(ack) => json!({
            "action": format!("{:?}", ack.action),
            "status": format!("{:?}", ack.status),
            "member": ack.member,
            "members": ack.members,
            "threshold": ack.threshold,
            "round": ack.round.get(),
            "window": ack.window,
            "standing": format!("{:?}", ack.standing),
            "formed": ack.formed,
            "orphaned": ack.orphaned,
            "pinned": ack.pinned,
            "boot": ack.boot,
            "lease_ms": ack.lease_ms,
            "expected": ack.expected,
            "history": ack.history,
            "peer": ack.peer.map(|peer| peer.to_string()),
            "weight": ack.weight,
            "missing": ack.missing.map(set_meaning),
            "padding_len": ack.padding_len,
        }),
    };
    let value = with_parts(value, &repr.body);
    json!({
        "class": "control",
        "action": format!("{:?}", repr.action()),
        "job": repr.job,
        "request": repr.request,
        "value": value,
    })
}

/// Adds the fields that concern parts, which are omitted for packets of whole vectors.
fn with_parts(mut value: Value, body: &ControlBody<'_>) -> Value {
    match body {
        ControlBody::Join(JoinRepr { part: true, .. }) => value["part"] = true.into(),
        ControlBody::Ack(ack) if ack.parts > 1 => value["other_parts"] = (ack.parts - 1).into(),
        _ => {}
    }
    value
}

fn control_packet(body: ControlBody<'_>) -> Vec<u8> {
    let repr = ControlRepr { job: 7, request: 0x0102_0304, body };
    let mut bytes = vec![0xff; repr.buffer_len()];
    repr.emit(&mut bytes);
    bytes
}

fn frame(class: Class, payload: &[u8]) -> Vec<u8> {
    let addresses = FrameAddresses {
        source_mac: [0x02, 0, 0, 0, 0, 1],
        destination_mac: [0x02, 0, 0, 0, 0, 0xfe],
        source: SocketAddrV4::new(Ipv4Addr::new(10, 9, 0, 1), 40_000),
        destination: SocketAddrV4::new(Ipv4Addr::new(10, 9, 0, 254), DEFAULT_PORT),
    };
    let mut frame = Classifier::default().emit_headers(class, &addresses, payload.len()).to_vec();
    frame.extend_from_slice(payload);
    complete_udp_checksum(&mut frame);
    frame
}

fn frame_meaning(frame: &[u8]) -> Value {
    let view = Classifier::default().classify(frame).unwrap().unwrap();
    view.verify_checksum().unwrap();
    let mac = |mac: [u8; 6]| mac.map(|byte| format!("{byte:02x}")).join(":");
    json!({
        "source_mac": mac(view.addresses.source_mac),
        "destination_mac": mac(view.addresses.destination_mac),
        "source": view.addresses.source.to_string(),
        "destination": view.addresses.destination.to_string(),
        "tos": Classifier::default().tos_of(view.class),
        "headers_len": HEADERS_LEN_BYTES,
        "payload": match view.class {
            Class::Control => control_meaning(view.payload),
            Class::Data => data_meaning(view.payload),
        },
    })
}

#[test]
fn data_packets() {
    let full: Vec<f32> = (0..366u16).map(|i| f32::from(i) - 183.0).collect();
    let special = [0.0, -0.0, f32::MIN_POSITIVE, f32::from_bits(1), f32::MAX, f32::INFINITY, f32::NAN];
    let mut paper_style = data_packet(5, 0, 1, &[1.0, -2.5]);
    // The sender sets only the index.
    paper_style[6..8].fill(0);
    let cases = [
        ("data_paper_style", paper_style),
        ("data_nothing", data_packet(5, 1_000_000, 0, &[0.0, 0.0])),
        ("data_worker_full", data_packet(27, 1_000_000, 1, &full)),
        ("data_result_last_segment", data_packet(0x00ff_ffff, 0x00ff_ffff, 4, &[0.5])),
        ("data_special_values", data_packet(0, 1, 0xfffe, &special)),
    ];
    for (name, bytes) in cases {
        check(name, &bytes, &data_meaning(&bytes));
    }
    // The largest value, the smallest, a zero with a sign, a third (rounded) and a NaN.
    let short = [
        ("data_bf16", ElementType::Bf16, [0x7F7F, 0x0001, 0x8000, 0x3EAB, 0x7FC0u16]),
        ("data_f16", ElementType::F16, [0x7BFF, 0x0001, 0x8000, 0x3555, 0x7E00]),
    ];
    for (name, element, bits) in short {
        let mut bytes = data_packet(3, 9, 2, &[]);
        bits.iter().for_each(|bits| bytes.extend(bits.to_le_bytes()));
        check(name, &bytes, &short_meaning(element, &bytes));
    }
}

fn join() -> JoinRepr {
    JoinRepr {
        gradient_len: 10_119,
        segment_floats: 366,
        workers: 4,
        elements: ElementTypes::F32,
        mode: Mode::Synchronous,
        kind: Kind::Worker,
        weight: 1,
        instance: 0xdead_beef,
        rank: 3,
        height: 0,
        query: false,
        part: false,
        tagged: false,
        roams: false,
        updates: false,
        groups: false,
        nonce: 0,
        resume: None,
        padding_len: 0,
    }
}

fn resume() -> ResumeRepr {
    ResumeRepr {
        round: Round::new(41),
        members: 4,
        weight: 4,
        threshold: 3,
        history: history_at(41),
        previous: history_at(40),
        behind: 0,
        fresh: false,
    }
}

const BF16: ElementTypes = ElementTypes::uniform(ElementType::Bf16);

/// Epoch of the job.
const EPOCH: u64 = 0x0123_4567_89ab_cdef;

/// Returns the history of a member of job 7 that has the sums of rounds 0 to `round` - 1.
fn history_at(round: u32) -> u64 {
    let begin = history::begin(EPOCH, 7, Round::new(0));
    (0..round).fold(begin, |before, summed| history::after(before, EPOCH, Round::new(summed)))
}

fn ack() -> AckRepr<'static> {
    AckRepr {
        action: Action::Join,
        status: Status::Success,
        member: 3,
        members: 4,
        threshold: 4,
        round: Round::new(0),
        window: 455,
        standing: Standing::Fresh,
        formed: true,
        orphaned: false,
        pinned: false,
        parts: 1,
        boot: EPOCH,
        lease_ms: 10_000,
        expected: 0,
        history: history_at(0),
        peer: Some(SocketAddrV4::new(Ipv4Addr::new(10, 9, 0, 1), 5000)),
        weight: 4,
        missing: None,
        padding_len: 0,
    }
}

#[test]
fn control_packets() {
    let range = RangeRepr { round: Round::new(9), first: 100, count: 12 };
    let segments = SegmentSetRepr { range, bitmap: &[0b1000_0001, 0b1010] };
    let empty = SegmentSetRepr { range: RangeRepr { round: Round::new(0), first: 0, count: 0 }, bitmap: &[] };
    let (join, ack) = (join(), ack());
    let lacks_one = ResumeRepr { previous: 0, behind: history_at(40), ..resume() };
    let resume = Some(resume());
    let cases = [
        ("join", ControlBody::Join(join)),
        ("join_padded", ControlBody::Join(JoinRepr { padding_len: 1404, ..join })),
        ("join_switch", ControlBody::Join(JoinRepr { kind: Kind::Switch, weight: 3, height: 1, ..join })),
        ("join_roams", ControlBody::Join(JoinRepr { kind: Kind::Switch, roams: true, ..join })),
        ("join_updates", ControlBody::Join(JoinRepr { kind: Kind::Switch, updates: true, ..join })),
        ("join_query", ControlBody::Join(JoinRepr { query: true, ..join })),
        ("join_part", ControlBody::Join(JoinRepr { part: true, ..join })),
        ("join_part_query", ControlBody::Join(JoinRepr { part: true, query: true, ..join })),
        ("join_resume", ControlBody::Join(JoinRepr { resume, ..join })),
        (
            "join_resume_switch",
            ControlBody::Join(JoinRepr {
                kind: Kind::Switch,
                weight: 3,
                height: 1,
                resume: Some(lacks_one),
                ..join
            }),
        ),
        ("join_bf16", ControlBody::Join(JoinRepr { segment_floats: 732, elements: BF16, ..join })),
        (
            "join_f16_with_f32_results",
            ControlBody::Join(JoinRepr {
                elements: ElementTypes::with_wide_results(ElementType::F16),
                resume,
                ..join
            }),
        ),
        ("join_nonce", ControlBody::Join(JoinRepr { tagged: true, nonce: NONCE, ..join })),
        ("leave", ControlBody::Leave),
        ("reset", ControlBody::Reset { boot: ack.boot }),
        ("reset_any", ControlBody::RESET),
        ("seth", ControlBody::SetH { threshold: 3 }),
        ("fbcast", ControlBody::FBcast(range)),
        ("help", ControlBody::Help(segments)),
        ("help_heartbeat", ControlBody::Help(empty)),
        ("halt", ControlBody::Halt),
        ("ack_join", ControlBody::Ack(ack)),
        ("ack_join_awaits", ControlBody::Ack(AckRepr { standing: Standing::Awaits, ..ack })),
        ("ack_join_part", ControlBody::Ack(AckRepr { parts: 16, ..ack })),
        ("ack_help", ControlBody::Ack(AckRepr { action: Action::Help, missing: Some(segments), ..ack })),
        (
            "ack_gradient_len_mismatch",
            ControlBody::Ack(AckRepr { status: Status::GradientLenMismatch, expected: 40_327, ..ack }),
        ),
        (
            "ack_no_capacity",
            ControlBody::Ack(AckRepr {
                history: Exceeded { limit: Limit::JobsPerSource, value: 32 }.to_wire(),
                ..AckRepr::bare(Action::Join, Status::NoCapacity)
            }),
        ),
        (
            "ack_element_type_mismatch",
            ControlBody::Ack(AckRepr { status: Status::ElementTypeMismatch, expected: BF16.code(), ..ack }),
        ),
    ];
    for (name, body) in cases {
        let bytes = control_packet(body);
        check(name, &bytes, &control_meaning(&bytes));
    }
}

const NONCE: u64 = 0x0a0b_0c0d_0e0f_1011;
/// First value of a member's packet counter: the wall-clock time, in nanoseconds since the Unix epoch.
const CLOCK_NANOS: u64 = 1_700_000_000_000_000_000;

/// Key of the job. It signs trailers; tags of data packets use keys derived from it.
const KEY: &str = "000102030405060708090a0b0c0d0e0f";

#[test]
fn authenticated_packets() {
    let key = Key::from_hex(KEY.as_bytes()).unwrap();
    let challenge = AckRepr { status: Status::Challenge, history: NONCE, ..ack() };
    let cases = [
        ("authenticated_leave", ControlBody::Leave, Direction::ToSwitch, NONCE, CLOCK_NANOS),
        (
            "authenticated_challenge",
            ControlBody::Ack(challenge),
            Direction::ToMember,
            0,
            1_700_000_000_000_000_007,
        ),
        ("authenticated_halt_notice", ControlBody::Halt, Direction::ToMember, NONCE, 12),
    ];
    for (name, body, direction, context, counter) in cases {
        let mut bytes = control_packet(body);
        bytes.resize(bytes.len() + TRAILER_LEN_BYTES, 0);
        key.sign(direction, context, counter, &mut bytes);
        let mut meaning = control_meaning(&bytes);
        let direction = format!("{direction:?}");
        meaning["trailer"] =
            json!({ "key": KEY, "direction": direction, "context": context, "counter": counter });
        check(name, &bytes, &meaning);
    }
    let cases = [
        ("tagged_contribution", key.contribution_key(NONCE), json!({ "key": KEY, "session": NONCE })),
        ("tagged_result", key.result_key(ack().boot, 7), json!({ "key": KEY, "boot": ack().boot, "job": 7 })),
    ];
    for (name, key, tag) in cases {
        let mut bytes = data_packet(27, 1_000_000, 1, &[1.0, -2.5]);
        bytes.extend([0; DATA_TAG_LEN_BYTES]);
        key.sign(&mut bytes);
        let mut meaning = data_meaning(key.verify(&bytes).unwrap());
        meaning["tag"] = tag;
        check(name, &bytes, &meaning);
    }
}

#[test]
fn asynchronous_packets() {
    let range = RangeRepr { round: Round::new(9), first: 100, count: 12 };
    let segments = SegmentSetRepr { range, bitmap: &[0b1000_0001, 0b1010] };
    let none = SegmentSetRepr { range, bitmap: &[0, 0] };
    let confirmed = AckRepr { action: Action::Confirm, missing: Some(segments), ..ack() };
    let admitted = AckRepr { round: Round::new(17), expected: 1, missing: Some(none), ..confirmed };
    let cases = [
        ("join_asynchronous", ControlBody::Join(JoinRepr { mode: Mode::Asynchronous, ..join() })),
        ("confirm", ControlBody::Confirm(segments)),
        ("ack_confirm", ControlBody::Ack(confirmed)),
        ("ack_confirm_admitted", ControlBody::Ack(admitted)),
        ("digest", ControlBody::Digest(DigestRepr { round: Round::new(9), digest: 0x0011_2233_4455_6677 })),
    ];
    for (name, body) in cases {
        let bytes = control_packet(body);
        check(name, &bytes, &control_meaning(&bytes));
    }
}

#[test]
fn group_packets() {
    let group = SocketAddrV4::new(Ipv4Addr::new(239, 193, 7, 11), 61_234);
    let nonce = 0x0123_4567_89ab_cdef;
    let cases = [
        ("join_groups", ControlBody::Join(JoinRepr { groups: true, ..join() })),
        ("group", ControlBody::Group(group)),
        ("probe", ControlBody::Probe { nonce }),
        ("heard", ControlBody::Heard { nonce }),
        ("heard_asks", ControlBody::Heard { nonce: 0 }),
    ];
    for (name, body) in cases {
        let bytes = control_packet(body);
        check(name, &bytes, &control_meaning(&bytes));
    }
}

#[test]
fn names() {
    let name = NameRepr {
        job: "ppo-hopper".parse().unwrap(),
        owner: "alice".parse().unwrap(),
        host: "gpu07.example.org".parse().unwrap(),
        rank: Some(2),
    };
    let unicode = NameRepr { job: "实验 7".parse().unwrap(), rank: Some(0), ..NameRepr::UNKNOWN };
    let of_switch = NameRepr { host: "rack3".parse().unwrap(), ..NameRepr::UNKNOWN };
    for (file, name) in [("name", name), ("name_unicode", unicode), ("name_switch", of_switch)] {
        let bytes = control_packet(ControlBody::Name(name));
        check(file, &bytes, &control_meaning(&bytes));
    }
}

#[test]
fn absent_members() {
    let member = |rank, host: &str| AbsentMember { rank, host: host.parse().unwrap() };
    let mut list = AbsentList::EMPTY;
    assert!(
        [member(Some(2), "gpu07"), member(None, "rack3"), member(Some(5), "")].iter().all(|of| list.push(of))
    );
    let round = Round::new(7);
    let cases = [
        ("waiting", ControlBody::Waiting),
        ("absent", ControlBody::Absent(AbsentRepr { round, count: 4, list: list.as_bytes() })),
        ("absent_none", ControlBody::Absent(AbsentRepr { round: Round::new(0), count: 0, list: &[] })),
    ];
    for (name, body) in cases {
        let bytes = control_packet(body);
        check(name, &bytes, &control_meaning(&bytes));
    }
}

#[test]
fn frames() {
    let data = frame(Class::Data, &data_packet(1, 2, 1, &[1.0, 2.0, 3.0]));
    check("frame_data", &data, &frame_meaning(&data));
    let control = frame(Class::Control, &control_packet(ControlBody::Leave));
    check("frame_control", &control, &frame_meaning(&control));
}

#[test]
fn every_fixture_is_tested() {
    let source = include_str!("golden.rs");
    for entry in std::fs::read_dir(directory()).expect("fixtures/wire should exist") {
        let path = entry.expect("fixtures/wire should be readable").path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a fixture name should be UTF-8");
        assert!(source.contains(&format!("\"{name}\"")), "no test uses {}", path.display());
    }
}
