//! Tests of Wireshark's dissector, run by tshark: the fields that it shows for the golden packets equal those of the
//! fixtures.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::process::Command;

use iswitch_harness::requirements::programs;
use iswitch_harness::scratch;
use iswitch_protocol::auth::Direction;
use iswitch_protocol::limits::{DATA_TAG_LEN_BYTES, DEFAULT_PORT, TRAILER_LEN_BYTES};
use iswitch_protocol::wire::frame::complete_udp_checksum;
use iswitch_protocol::wire::{
    Action, Class, Classifier, ControlBody, ControlRepr, FrameAddresses, JoinRepr, Kind, Mode, Standing,
    Status, emit_seg,
};
use iswitch_protocol::{ElementType, ElementTypes, Key, Round, Seg, SegmentIndex};
use serde_json::Value;

const WORKER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 9, 0, 1), 40_000);
const SWITCH: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 9, 0, 254), DEFAULT_PORT);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Runs tshark with the dissector, and returns its output.
fn tshark(arguments: &[&str]) -> String {
    let script = root().join("packaging/wireshark/iswitch.lua");
    let output = Command::new("tshark")
        .args(arguments)
        .arg("-X")
        .arg(format!("lua_script:{}", script.display()))
        .output()
        .expect("tshark must start");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !errors.contains("Lua"), "tshark: {errors}");
    String::from_utf8(output.stdout).expect("tshark must print UTF-8")
}

/// Dissects frames whose timestamps are one second apart, and returns the fields of the protocol by name, frame by
/// frame.
fn dissect(frames: &[Vec<u8>], arguments: &[&str]) -> Vec<Fields> {
    let directory = scratch::directory();
    let path = directory.path().join("packets.pcap");
    std::fs::write(&path, pcap(frames)).expect("the directory is writable");
    let path = path.to_str().expect("the path must be UTF-8");
    let text = tshark(&[&["-r", path, "-T", "json", "--no-duplicate-keys"], arguments].concat());
    let packets: Vec<Value> = serde_json::from_str(&text).expect("tshark must print JSON");
    assert_eq!(packets.len(), frames.len());
    packets.iter().map(|packet| Fields::of(&packet["_source"]["layers"]["iswitch"])).collect()
}

/// Returns a capture file (in the format of libpcap) of Ethernet frames.
fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut put = |words: &[u32]| words.iter().for_each(|word| file.extend(word.to_le_bytes()));
    put(&[0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 1 << 18, 1]);
    for (second, frame) in (0..).zip(frames) {
        let len = frame.len() as u32;
        file.extend([second, 0, len, len].into_iter().flat_map(u32::to_le_bytes));
        file.extend(frame);
    }
    file
}

/// Field values by name; a field may have several.
#[derive(Debug, Default)]
struct Fields(BTreeMap<String, Vec<String>>);

impl Fields {
    fn of(layer: &Value) -> Self {
        let mut fields = Self::default();
        fields.collect("", layer);
        fields
    }

    fn collect(&mut self, name: &str, value: &Value) {
        match value {
            Value::Object(all) => all.iter().for_each(|(name, value)| self.collect(name, value)),
            Value::Array(all) => all.iter().for_each(|value| self.collect(name, value)),
            Value::String(text) => self.0.entry(name.to_owned()).or_default().push(text.clone()),
            _ => {}
        }
    }

    fn texts(&self, name: &str) -> &[String] {
        self.0.get(&format!("iswitch.{name}")).map_or(&[], Vec::as_slice)
    }

    fn text(&self, name: &str) -> &str {
        let texts = self.texts(name);
        assert_eq!(texts.len(), 1, "{name} in {self:?}");
        &texts[0]
    }

    fn numbers(&self, name: &str) -> Vec<u64> {
        let number = |text: &String| match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).expect("hexadecimal digits"),
            None => text.parse().expect("decimal digits"),
        };
        self.texts(name).iter().map(number).collect()
    }

    /// Returns the bytes of a field, which Wireshark prints as `00:ff`.
    fn bytes(&self, name: &str) -> Vec<u8> {
        let digits = self.text(name).split(':');
        digits.map(|digits| u8::from_str_radix(digits, 16).expect("hexadecimal digits")).collect()
    }

    fn has_malformed(&self) -> bool {
        self.0.keys().any(|name| name.contains("iswitch.malformed"))
    }
}

fn envelope(class: Class, (source, destination): (SocketAddrV4, SocketAddrV4), payload: &[u8]) -> Vec<u8> {
    let addresses = FrameAddresses {
        source_mac: [0x02, 0, 0, 0, 0, 1],
        destination_mac: [0x02, 0, 0, 0, 0, 0xfe],
        source,
        destination,
    };
    let mut frame = Classifier::default().emit_headers(class, &addresses, payload.len()).to_vec();
    frame.extend_from_slice(payload);
    complete_udp_checksum(&mut frame);
    frame
}

/// Returns the name, the frame and the meaning of each golden packet. If a packet has no frame, this function builds
/// one, with a different member as its sender for each packet.
fn golden() -> Vec<(String, Vec<u8>, Value)> {
    let directory = root().join("fixtures/wire");
    let mut names: Vec<_> = std::fs::read_dir(&directory)
        .expect("fixtures/wire exists")
        .map(|entry| entry.expect("fixtures/wire is readable").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "hex"))
        .collect();
    names.sort();
    let read = |path: &Path| std::fs::read_to_string(path).expect("fixtures are readable");
    let packet = |(path, port): (PathBuf, u16)| {
        let digits = read(&path);
        let bytes: Vec<u8> = digits
            .split_whitespace()
            .map(|byte| u8::from_str_radix(byte, 16).expect("two hexadecimal digits"))
            .collect();
        let meaning: Value = serde_json::from_str(&read(&path.with_extension("json"))).expect("JSON");
        let name = path.file_stem().expect("a file must have a name").to_string_lossy().into_owned();
        let from = SocketAddrV4::new(*WORKER.ip(), port);
        match meaning["class"].as_str() {
            Some("control") => (name, envelope(Class::Control, (from, SWITCH), &bytes), meaning),
            Some(_) => (name, envelope(Class::Data, (from, SWITCH), &bytes), meaning),
            None => (name, bytes, meaning["payload"].clone()),
        }
    };
    names.into_iter().zip(41_000..).map(packet).collect()
}

/// Returns the code on the wire that corresponds to a name in a fixture.
fn code_of(key: &str, name: &str) -> u64 {
    let code = match key {
        "action" => find((0..=u8::MAX).filter_map(|code| Some((code, Action::from_code(code)?))), name),
        "status" => find(Status::ALL.map(|it| (it as u8, it)), name),
        "standing" => find((0..=u8::MAX).filter_map(|code| Some((code, Standing::from_code(code)?))), name),
        "mode" => find([Mode::Synchronous, Mode::Asynchronous].map(|it| (it as u8, it)), name),
        "kind" => find([Kind::Worker, Kind::Switch].map(|it| (it as u8, it)), name),
        "contributions" | "results" => element_type(name).map(|it| it as u8),
        _ => None,
    };
    u64::from(code.unwrap_or_else(|| panic!("{key}: {name}")))
}

fn find<T: Debug>(codes: impl IntoIterator<Item = (u8, T)>, name: &str) -> Option<u8> {
    codes.into_iter().find(|(_, value)| format!("{value:?}") == name).map(|(code, _)| code)
}

fn element_type(name: &str) -> Option<ElementType> {
    ElementType::ALL.into_iter().find(|element| element.name() == name)
}

/// Compares the values of a fixture with the fields under a prefix.
fn check_value(fields: &Fields, prefix: &str, meaning: &Value) {
    for (key, value) in meaning.as_object().expect("a value is an object") {
        let name = match key.as_str() {
            "padding_len" => key.clone(),
            "segments" => "range.segment".to_owned(),
            _ => format!("{prefix}{key}"),
        };
        match value {
            Value::Null if key == "resume" => assert_eq!(fields.texts("join.resume.round").len(), 0),
            Value::Null if key == "rank" => assert_eq!(fields.numbers("name.rank"), [65_535]),
            Value::Null if key == "peer" => assert_eq!(fields.texts("ack.peer.address").len(), 0),
            Value::Null => assert_eq!((key.as_str(), fields.texts("range.round").len()), ("missing", 0)),
            Value::Object(_) if key == "missing" => check_value(fields, "range.", value),
            Value::Object(_) => check_value(fields, &format!("{name}."), value),
            Value::Array(members) if key == "members" => check_members(fields, members),
            Value::Array(all) => {
                let all: Vec<_> = all.iter().map(|number| number.as_u64().expect("an index")).collect();
                assert_eq!(fields.numbers(&name), all, "{name}");
            }
            Value::String(peer) if key == "peer" => {
                let (address, port) = (fields.text("ack.peer.address"), fields.text("ack.peer.port"));
                assert_eq!(&format!("{address}:{port}"), peer);
            }
            Value::String(group) if key == "address" => {
                let (address, port) = (fields.text("group.address"), fields.text("group.port"));
                assert_eq!(&format!("{address}:{port}"), group);
            }
            Value::String(text) if prefix == "name." => {
                let shown: Vec<_> = (!text.is_empty()).then_some(text.clone()).into_iter().collect();
                assert_eq!(fields.texts(&name), shown, "{name}");
            }
            Value::String(text) => assert_eq!(fields.numbers(&name), [code_of(key, text)], "{name}"),
            Value::Bool(is_set) => assert_eq!(fields.numbers(&name), [u64::from(*is_set)], "{name}"),
            Value::Number(number) => {
                let number = number.as_u64().expect("fixtures have no fractions");
                assert_eq!(fields.numbers(&name), [number], "{name}");
            }
        }
    }
}

/// Compares the members of an Absent with the fields. An empty host name is not shown.
fn check_members(fields: &Fields, members: &[Value]) {
    let rank = |member: &Value| member["rank"].as_u64().unwrap_or(65_535);
    assert_eq!(fields.numbers("absent.rank"), members.iter().map(rank).collect::<Vec<_>>());
    let hosts = members.iter().filter_map(|member| member["host"].as_str()).filter(|host| !host.is_empty());
    assert_eq!(fields.texts("absent.host"), hosts.collect::<Vec<_>>());
}

fn check_control(fields: &Fields, meaning: &Value) {
    let action = meaning["action"].as_str().expect("a control packet has an action");
    assert_eq!(fields.numbers("action"), [code_of("action", action)]);
    for name in ["job", "request"] {
        assert_eq!(fields.numbers(name), [meaning[name].as_u64().expect("a number")], "{name}");
    }
    let prefix = match action {
        "Help" | "Confirm" | "FBcast" => "range.".to_owned(),
        _ => format!("{}.", action.to_lowercase()),
    };
    let mut value = meaning["value"].clone();
    if value["missing"].is_object() {
        // A bitmap ends the packet, so there is no padding after it.
        value.as_object_mut().expect("the value must be an object").remove("padding_len");
    }
    check_value(fields, &prefix, &value);
    let counter = meaning["trailer"]["counter"].as_u64();
    assert_eq!(fields.numbers("auth.counter"), counter.into_iter().collect::<Vec<_>>());
}

fn check_data(fields: &Fields, meaning: &Value) {
    for name in ["index", "round", "contributions"] {
        let expected = meaning[name].as_u64().expect("a number");
        assert_eq!(fields.numbers(&format!("seg.{name}")), [expected], "{name}");
    }
    let (element, bits) = match meaning["element"].as_str() {
        Some(name) => (element_type(name).expect("an element type"), &meaning["element_bits"]),
        None => (ElementType::F32, &meaning["float_bits"]),
    };
    let bits: Vec<_> = bits
        .as_array()
        .expect("a list")
        .iter()
        .map(|bits| u32::from_str_radix(bits.as_str().expect("digits"), 16).expect("digits"))
        .collect();
    assert_eq!(fields.numbers("data.element"), [element as u64]);
    let bytes = fields.bytes("data.floats");
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0_u32, |word, byte| word << 8 | u32::from(*byte));
    let words: Vec<_> = bytes.chunks(element.len_bytes()).map(word).collect();
    assert_eq!(words, bits);
    for (text, bits) in fields.texts("data.float").iter().zip(&bits) {
        let (shown, actual) = (text.parse::<f32>().expect("a number"), widened(element, *bits));
        let is_same = (shown.is_nan() && actual.is_nan()) || (shown - actual).abs() <= 1e-5 * actual.abs();
        assert!(is_same || shown.total_cmp(&actual).is_eq(), "{text} for {actual}");
    }
    assert_eq!(fields.texts("data.float").len(), bits.len());
    assert_eq!(fields.texts("data.tag").len(), usize::from(meaning["tag"].is_object()));
}

/// Returns the value of an element, given its bits, as an f32.
fn widened(element: ElementType, bits: u32) -> f32 {
    match element {
        ElementType::F32 => f32::from_bits(bits),
        ElementType::Bf16 => f32::from_bits(bits << 16),
        ElementType::F16 => {
            let (exponent, fraction) = ((bits >> 10 & 0x1f) as i32, (bits & 0x3ff) as f32);
            let magnitude = match exponent {
                0 => fraction * 2_f32.powi(-24),
                31 if fraction == 0.0 => f32::INFINITY,
                31 => f32::NAN,
                _ => (1024.0 + fraction) * 2_f32.powi(exponent - 25),
            };
            if bits >> 15 == 0 { magnitude } else { -magnitude }
        }
    }
}

/// Returns the preferences that a golden packet needs, because a single data packet does not state its format.
fn preferences(name: &str, meaning: &Value) -> [&'static str; 2] {
    let tagged = if name.starts_with("tagged_") { "iswitch.tagged:Yes" } else { "iswitch.tagged:No" };
    let elements = match meaning["element"].as_str().and_then(element_type) {
        None | Some(ElementType::F32) => "iswitch.elements:F32",
        Some(ElementType::Bf16) => "iswitch.elements:Bf16",
        Some(ElementType::F16) => "iswitch.elements:F16",
    };
    [tagged, elements]
}

#[test]
fn golden_packets_are_dissected_as_in_the_fixtures() {
    if !programs("golden_packets_are_dissected_as_in_the_fixtures", &["tshark"]) {
        return;
    }
    let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for packet in golden() {
        groups.entry(preferences(&packet.0, &packet.2)).or_default().push(packet);
    }
    // The four groups are untagged packets with f32, bf16 and f16 elements, and tagged packets with f32 elements.
    assert!(groups.len() == 4 && groups.values().map(Vec::len).sum::<usize>() >= 40);
    for ([tagged, elements], packets) in groups {
        let frames: Vec<_> = packets.iter().map(|(_, frame, _)| frame.clone()).collect();
        let all = dissect(&frames, &["-o", tagged, "-o", elements]);
        for ((name, _, meaning), fields) in packets.iter().zip(all) {
            println!("{name}: {fields:?}");
            assert!(!fields.has_malformed());
            if meaning["class"] == "control" {
                check_control(&fields, meaning);
            } else {
                check_data(&fields, meaning);
            }
        }
    }
}

/// `tshark -G values` lists the names of a field's codes.
#[test]
fn code_names_match_the_protocol() {
    if !programs("code_names_match_the_protocol", &["tshark"]) {
        return;
    }
    let table = tshark(&["-G", "values"]);
    let names = |field: &str| -> BTreeMap<u8, String> {
        let entries = table.lines().map(|line| line.split('\t').collect::<Vec<_>>());
        let code = |text: &str| match text.strip_prefix("0x") {
            Some(digits) => u8::from_str_radix(digits, 16).expect("a code"),
            None => text.parse().expect("a code"),
        };
        entries
            .filter(|entry| entry.len() == 4 && entry[0] == "V" && entry[1] == format!("iswitch.{field}"))
            .map(|entry| (code(entry[2]), entry[3].to_owned()))
            .collect()
    };
    let actions: BTreeMap<_, _> =
        (0..=u8::MAX).filter_map(|code| Some((code, format!("{:?}", Action::from_code(code)?)))).collect();
    assert_eq!(names("action"), actions);
    assert_eq!(names("ack.action"), actions);
    let statuses = Status::ALL.map(|status| (status as u8, status.name().to_owned()));
    assert_eq!(names("ack.status"), statuses.into());
    let standings =
        (0..=u8::MAX).filter_map(|code| Some((code, format!("{:?}", Standing::from_code(code)?))));
    assert_eq!(names("ack.standing"), standings.collect());
    let modes = [Mode::Synchronous, Mode::Asynchronous].map(|mode| (mode as u8, format!("{mode:?}")));
    assert_eq!(names("join.mode"), modes.into());
    let kinds = [Kind::Worker, Kind::Switch].map(|kind| (kind as u8, format!("{kind:?}")));
    assert_eq!(names("join.kind"), kinds.into());
    let elements = BTreeMap::from(ElementType::ALL.map(|element| (element as u8, element.name().to_owned())));
    for field in ["join.contributions", "join.results", "data.element"] {
        assert_eq!(names(field), elements, "{field}");
    }
}

fn control(body: ControlBody<'_>) -> Vec<u8> {
    let repr = ControlRepr { job: 7, request: 99, body };
    let mut bytes = vec![0; repr.buffer_len()];
    repr.emit(&mut bytes);
    bytes
}

/// Returns a data packet with one segment of one or two floats, followed by its tag.
fn tagged_segment(key: &Key, index: u32, floats: usize) -> Vec<u8> {
    let mut bytes = vec![0; 8 + 4 * floats + DATA_TAG_LEN_BYTES];
    let seg = Seg { index: SegmentIndex::new(index).expect("small"), round: Round::new(3), contributions: 2 };
    emit_seg(&mut bytes, seg);
    key.contribution_key(1).sign(&mut bytes);
    bytes
}

#[test]
fn the_dissector_follows_a_conversation() {
    if !programs("the_dissector_follows_a_conversation", &["tshark"]) {
        return;
    }
    let key = Key::new(&[7; 16]).expect("long enough");
    let join = JoinRepr { tagged: true, ..JoinRepr::worker(5, 2, 1) };
    let to_switch = (WORKER, SWITCH);
    let to_member = (SWITCH, WORKER);
    let mut refusal = control(ControlBody::Join(join));
    // An Ack that refuses the Join above; only its action and status matter, and its other fields are zero.
    refusal.resize(60, 0);
    refusal[0] = Action::Ack as u8;
    refusal[12..60].fill(0);
    (refusal[12], refusal[13]) = (Action::Join as u8, Status::JobFull as u8);
    // Several packets in one super-frame, as the kernel shows them before segmentation: three packets here.
    let joined =
        [tagged_segment(&key, 0, 2), tagged_segment(&key, 1, 2), tagged_segment(&key, 2, 1)].concat();
    let mut signed = control(ControlBody::Leave);
    signed.resize(signed.len() + TRAILER_LEN_BYTES, 0);
    key.sign(Direction::ToSwitch, 1, 5, &mut signed);
    let frames = [
        envelope(Class::Control, to_switch, &control(ControlBody::Join(join))),
        envelope(Class::Control, to_member, &refusal),
        envelope(Class::Data, to_member, &joined),
        envelope(Class::Control, to_switch, &signed),
    ];
    // tshark knows later packets only in a second pass (-2), and dissects in the first pass only if there is a filter
    // (-R).
    let [asked, answered, data, left] = &dissect(&frames, &["-2", "-R", "iswitch"])[..] else {
        panic!("four frames")
    };
    assert_eq!((asked.text("response_in"), answered.text("response_to")), ("2", "1"));
    assert_eq!(answered.text("response_time"), "1.000000000");
    assert!(answered.0.keys().any(|name| name.contains("iswitch.refused")));
    assert_eq!(data.numbers("seg.index"), [0, 1, 2]);
    assert_eq!(data.texts("data.float").len(), 5);
    assert_eq!(data.texts("data.tag").len(), 3);
    assert_eq!((left.numbers("auth.counter"), left.texts("auth.tag").len()), (vec![5], 1));
}

/// Returns a packet with the first segment of round 3, whose two elements are 1 and 2.
fn one_and_two(element: ElementType, contributions: u16) -> Vec<u8> {
    let mut bytes = vec![0; 8 + 2 * element.len_bytes()];
    let seg = Seg { index: SegmentIndex::new(0).expect("small"), round: Round::new(3), contributions };
    let elements = emit_seg(&mut bytes, seg);
    match element {
        ElementType::F32 => elements.copy_from_slice(&[0, 0, 0x80, 0x3f, 0, 0, 0, 0x40]),
        ElementType::Bf16 => elements.copy_from_slice(&[0x80, 0x3f, 0, 0x40]),
        ElementType::F16 => elements.copy_from_slice(&[0, 0x3c, 0, 0x40]),
    }
    bytes
}

#[test]
fn the_dissector_learns_element_types_from_the_join() {
    if !programs("the_dissector_learns_element_types_from_the_join", &["tshark"]) {
        return;
    }
    let child = SocketAddrV4::new(*WORKER.ip(), WORKER.port() + 1);
    let mixed = ElementTypes::with_wide_results(ElementType::F16);
    let worker = JoinRepr { elements: mixed, ..JoinRepr::worker(2, 2, 3) };
    let bf16 = ElementTypes::uniform(ElementType::Bf16);
    let switch = JoinRepr { elements: bf16, kind: Kind::Switch, height: 1, ..JoinRepr::worker(2, 2, 3) };
    let joins = [(WORKER, worker), (child, switch)]
        .map(|(member, join)| envelope(Class::Control, (member, SWITCH), &control(ControlBody::Join(join))));
    let cases = [
        ((WORKER, SWITCH), ElementType::F16, 1),
        ((SWITCH, WORKER), ElementType::F32, 3),
        // A sum that the worker supplies again.
        ((WORKER, SWITCH), ElementType::F32, 3),
        // A partial sum, and the result.
        ((child, SWITCH), ElementType::F32, 2),
        ((SWITCH, child), ElementType::Bf16, 3),
    ];
    let data = cases.map(|(ends, element, contributions)| {
        envelope(Class::Data, ends, &one_and_two(element, contributions))
    });
    // The Join of this member was not captured.
    let stranger = SocketAddrV4::new(*WORKER.ip(), WORKER.port() + 2);
    let undeclared = envelope(Class::Data, (stranger, SWITCH), &[0; 8 + 6]);
    let all = dissect(&[&joins[..], &data, &[undeclared]].concat(), &[]);
    for (fields, (_, element, contributions)) in all[2..].iter().zip(cases) {
        assert!(!fields.has_malformed(), "{fields:?}");
        assert_eq!(fields.numbers("data.element"), [element as u64], "{contributions} contributions");
        let numbers = fields.texts("data.float").iter().map(|text| text.parse::<f32>().expect("a number"));
        assert_eq!(numbers.collect::<Vec<_>>(), [1.0, 2.0], "{fields:?}");
    }
    let undeclared = all.last().expect("the last frame");
    assert!(!undeclared.has_malformed() && undeclared.texts("data.float").is_empty(), "{undeclared:?}");
    assert_eq!(undeclared.bytes("data.floats"), [0; 6]);
    assert!(undeclared.0.keys().any(|name| name.contains("iswitch.untyped")));
}

#[test]
fn foreign_and_damaged_packets_are_distinguished() {
    if !programs("foreign_and_damaged_packets_are_distinguished", &["tshark"]) {
        return;
    }
    let leave = control(ControlBody::Leave);
    let mut foreign = envelope(Class::Control, (WORKER, SWITCH), &leave);
    // This ToS is not that of the protocol; tshark does not verify the header's checksum by default.
    foreign[15] = 0;
    let damaged: Vec<Vec<u8>> = vec![
        leave[..11].to_vec(),
        [&leave[..], &[1]].concat(),
        control(ControlBody::Join(JoinRepr::worker(5, 2, 1)))[..75].to_vec(),
        [&[99], &leave[1..]].concat(),
        [&leave[..1], &[9], &leave[2..]].concat(),
        [&leave[..2], &[1, 0], &leave[4..12]].concat(),
    ];
    let mut frames = vec![foreign];
    frames.extend(damaged.iter().map(|payload| envelope(Class::Control, (WORKER, SWITCH), payload)));
    frames.push(envelope(Class::Data, (WORKER, SWITCH), &[0; 13]));
    let [foreign, damaged @ ..] = &dissect(&frames, &[])[..] else { panic!("frames") };
    assert!(foreign.0.is_empty(), "{foreign:?}");
    for fields in damaged {
        assert!(fields.has_malformed(), "{fields:?}");
    }
}
