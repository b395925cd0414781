//! Properties that hold for all messages, and tests of the fields that the parser validates.

use proptest::prelude::*;

use core::net::{Ipv4Addr, SocketAddrV4};

use super::*;
use crate::element::{ElementType, ElementTypes};
use crate::label::Label;
use crate::limits::{MAX_BITMAP_LEN_BYTES, MAX_CONTROL_LEN_BYTES, MAX_RANGE_SEGMENTS, MAX_SEGMENTS};

const BITS: [u8; MAX_RANGE_SEGMENTS as usize / 8] = [0b0110_1001; MAX_RANGE_SEGMENTS as usize / 8];

fn round() -> impl Strategy<Value = Round> {
    any::<u32>().prop_map(Round::new)
}

fn range() -> impl Strategy<Value = RangeRepr> {
    let first = 0..=MAX_SEGMENTS - MAX_RANGE_SEGMENTS;
    (round(), first, 0..=MAX_RANGE_SEGMENTS).prop_map(|(round, first, count)| RangeRepr {
        round,
        first,
        count,
    })
}

fn resume() -> impl Strategy<Value = ResumeRepr> {
    let counts = (any::<u16>(), any::<u16>(), any::<u16>());
    let histories = (1..=u64::MAX, any::<u64>(), any::<u64>());
    (round(), counts, histories, any::<bool>()).prop_map(
        |(round, (members, weight, threshold), (history, previous, behind), fresh)| ResumeRepr {
            round,
            members,
            weight,
            threshold,
            history,
            previous,
            behind,
            fresh,
        },
    )
}

fn join() -> impl Strategy<Value = JoinRepr> {
    let mode = prop_oneof![Just(Mode::Synchronous), Just(Mode::Asynchronous)];
    let kind = prop_oneof![Just(Kind::Worker), Just(Kind::Switch)];
    let elements =
        (proptest::sample::select(&ElementType::ALL), any::<bool>()).prop_map(|(element, is_wide)| {
            if is_wide { ElementTypes::with_wide_results(element) } else { ElementTypes::uniform(element) }
        });
    let declared = (any::<u32>(), any::<u16>(), any::<u16>(), elements, mode, kind);
    let own = (any::<u16>(), any::<u32>(), any::<u16>(), any::<u8>());
    let flag = any::<bool>;
    let flags = (flag(), flag(), flag(), flag(), flag(), flag(), any::<u64>());
    (declared, own, flags, proptest::option::of(resume()), 0u16..2000).prop_map(
        |(declared, own, flags, resume, padding_len)| {
            let (gradient_len, segment_floats, workers, elements, mode, kind) = declared;
            let (weight, instance, rank, height) = own;
            let (query, part, tagged, roams, updates, groups, nonce) = flags;
            // A worker has no members.
            let is_switch = kind == Kind::Switch;
            let (height, roams, updates) =
                (height * u8::from(is_switch), roams && (is_switch || workers > 0), updates && is_switch);
            let own_behind = |resume: ResumeRepr| if is_switch { resume.behind } else { 0 };
            let resume = resume.map(|resume| ResumeRepr { behind: own_behind(resume), ..resume });
            JoinRepr {
                gradient_len,
                segment_floats,
                workers,
                elements,
                mode,
                kind,
                weight,
                instance,
                rank,
                height,
                query,
                part,
                tagged,
                roams,
                updates,
                groups: groups && !is_switch,
                nonce,
                resume,
                padding_len,
            }
        },
    )
}

fn group_body() -> impl Strategy<Value = ControlBody<'static>> {
    prop_oneof![
        (0u32..1 << 28, 1..=u16::MAX).prop_map(|(low, port)| {
            ControlBody::Group(SocketAddrV4::new(Ipv4Addr::from_bits(0xe000_0000 | low), port))
        }),
        any::<u64>().prop_map(|nonce| ControlBody::Probe { nonce }),
        any::<u64>().prop_map(|nonce| ControlBody::Heard { nonce }),
    ]
}

fn label<const N: usize>() -> impl Strategy<Value = Label<N>> {
    prop_oneof![Just(Label::EMPTY), ".{0,70}".prop_map(|text| Label::lossy(&text))]
}

fn name() -> impl Strategy<Value = NameRepr> {
    let texts = (label(), label(), label());
    (texts, prop::option::of(0..u16::MAX)).prop_map(|((job, owner, host), rank)| NameRepr {
        job,
        owner,
        host,
        rank,
    })
}

fn body() -> impl Strategy<Value = ControlBody<'static>> {
    prop_oneof![
        join().prop_map(ControlBody::Join),
        prop::sample::select(&[ControlBody::Leave, ControlBody::Halt, ControlBody::Waiting][..]),
        any::<u64>().prop_map(|boot| ControlBody::Reset { boot }),
        any::<u16>().prop_map(|threshold| ControlBody::SetH { threshold }),
        range().prop_map(ControlBody::FBcast),
        (range(), any::<bool>()).prop_map(|(range, confirm)| {
            let set = SegmentSetRepr { range, bitmap: &BITS[..range.count.div_ceil(8) as usize] };
            if confirm { ControlBody::Confirm(set) } else { ControlBody::Help(set) }
        }),
        (round(), any::<u64>()).prop_map(|(round, digest)| ControlBody::Digest(DigestRepr { round, digest })),
        group_body(),
        name().prop_map(ControlBody::Name),
    ]
}

fn absent_member() -> impl Strategy<Value = AbsentMember> {
    (label(), prop::option::of(0..u16::MAX)).prop_map(|(host, rank)| AbsentMember { rank, host })
}

fn parse(buffer: &[u8]) -> Result<ControlRepr<'_>, WireError> {
    ControlRepr::parse(&ControlPacket::new_checked(buffer)?)
}

proptest! {
    #[test]
    fn requests_round_trip(job: u32, request: u32, body in body()) {
        let repr = ControlRepr { job, request, body };
        let mut buffer = [0xa5; 4096];
        let len = repr.emit(&mut buffer);
        prop_assert_eq!(parse(&buffer[..len]), Ok(repr));
        // Every truncation is refused, and so is an extra byte that is not padding.
        for short in 0..repr.value_len().min(HEADER_LEN_BYTES + RANGE_LEN_BYTES) {
            prop_assert!(parse(&buffer[..short]).is_err());
        }
        buffer[len] = 1;
        prop_assert_eq!(parse(&buffer[..=len]), Err(WireError::Overlong));
    }

    #[test]
    fn acks_round_trip(
        round in round(), range in range(), bits in any::<[u8; 128]>(),
        status in 0..Status::ALL.len() as u8, boot: u64, expected: u32, help: bool, parts in 1u8..=16,
    ) {
        let status = if help { Status::Success } else { Status::from_code(status).unwrap() };
        let bitmap = &bits[..range.count.div_ceil(8) as usize];
        let ack = AckRepr {
            action: if help { Action::Help } else { Action::Join },
            status, member: 3, members: 4, threshold: 4, round, window: 64, boot, lease_ms: 10_000,
            expected,
            standing: Standing::Awaits, formed: help, orphaned: !help,
            pinned: help, parts, history: boot,
            peer: help.then_some(SocketAddrV4::new(Ipv4Addr::new(10, 9, 0, 1), 5000)), weight: 9,
            missing: help.then_some(SegmentSetRepr { range, bitmap }),
            padding_len: 0,
        };
        let repr = ControlRepr { job: 1, request: 2, body: ControlBody::Ack(ack) };
        let mut buffer = [0xa5; MAX_CONTROL_LEN_BYTES];
        let len = repr.emit(&mut buffer);
        prop_assert_eq!(parse(&buffer[..len]), Ok(repr));
    }

    #[test]
    fn arbitrary_bytes_cause_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse(&bytes);
    }
}

#[test]
fn a_join_without_resume_must_have_zero_resume_fields() {
    let join = JoinRepr { instance: 1, ..JoinRepr::worker(1, 1, 1) };
    let mut buffer = [0; 128];
    let len = ControlRepr { job: 1, request: 2, body: ControlBody::Join(join) }.emit(&mut buffer);
    assert!(parse(&buffer[..len]).is_ok());
    for at in join::field::RESUME {
        let mut bad = buffer;
        bad[at] = 1;
        assert_eq!(parse(&bad[..len]), Err(WireError::BadValue), "byte {at}");
    }
    // A Join without a history cannot resume.
    for flags in [join::RESUME, join::FRESH] {
        buffer[join::field::FLAGS] = flags;
        assert_eq!(parse(&buffer[..len]), Err(WireError::BadValue));
    }
}

#[test]
fn only_element_types_that_can_be_combined_are_accepted() {
    let mut buffer = [0; 128];
    let join = ControlBody::Join(JoinRepr::worker(1, 1, 1));
    let len = ControlRepr { job: 1, request: 2, body: join }.emit(&mut buffer);
    for (contributions, results) in (0..5).flat_map(|a| (0..5).map(move |b| (a, b))) {
        (buffer[join::field::CONTRIBUTIONS], buffer[join::field::RESULTS]) = (contributions, results);
        let is_valid = contributions < 3 && (results == 0 || results == contributions);
        assert_eq!(parse(&buffer[..len]).is_ok(), is_valid, "{contributions} with results of {results}");
    }
}

#[test]
fn parse_errors_identify_the_invalid_field() {
    let mut buffer = [0; 128];
    ControlRepr { job: 1, request: 2, body: ControlBody::Leave }.emit(&mut buffer);
    // The packet has no padding, which is optional for a sender.
    let len = HEADER_LEN_BYTES;
    let corrupted = |at: usize, value: u8| {
        let mut bad = buffer;
        bad[at] = value;
        parse(&bad[..len]).map(|_| ()).unwrap_err()
    };
    assert_eq!(corrupted(field::VERSION, 9), WireError::WrongVersion);
    assert_eq!(corrupted(field::ACTION, 0), WireError::UnknownAction);
    assert_eq!(corrupted(field::FLAGS.start, 1), WireError::Truncated, "there is no trailer");
    assert_eq!(corrupted(field::FLAGS.start, 2), WireError::BadValue);
    assert_eq!(corrupted(field::FLAGS.end - 1, 1), WireError::BadValue);
}

/// The indices of a range in an Ack are computed before the range is checked against a vector, so the parser must
/// refuse ranges that lie beyond every vector.
#[test]
fn a_range_beyond_every_vector_is_refused() {
    let bits = [0xff; MAX_BITMAP_LEN_BYTES];
    let parsed = |first: u32, count: u32| {
        let range = RangeRepr { round: Round::new(0), first, count };
        let body = ControlBody::Help(SegmentSetRepr::of(range, &bits));
        let mut buffer = [0; MAX_CONTROL_LEN_BYTES];
        let len = ControlRepr { job: 1, request: 2, body }.emit(&mut buffer);
        parse(&buffer[..len]).map(|_| ())
    };
    assert_eq!(parsed(MAX_SEGMENTS - 2, 2), Ok(()));
    assert_eq!(parsed(MAX_SEGMENTS - 2, 3), Err(WireError::BadValue));
    assert_eq!(parsed(u32::MAX, 8), Err(WireError::BadValue), "the sum does not fit 32 bits");
    assert_eq!(parsed(MAX_SEGMENTS + 1, 0), Err(WireError::BadValue));
}

#[test]
fn a_peer_address_without_a_port_is_refused() {
    let mut buffer = [0; ACK_LEN_BYTES];
    (buffer[field::ACTION], buffer[field::VERSION]) = (Action::Ack as u8, PROTOCOL_VERSION);
    buffer[ack::field::ACTION] = Action::Join as u8;
    assert!(parse(&buffer).is_ok());
    buffer[ack::field::PEER_ADDRESS.start] = 10;
    assert_eq!(parse(&buffer), Err(WireError::BadValue));
}

#[test]
fn missing_segments_are_listed_in_order() {
    let range = RangeRepr { round: Round::new(0), first: 100, count: 10 };
    let missing = SegmentSetRepr { range, bitmap: &[0b1000_0001, 0b10] };
    assert!(missing.indices().eq([100, 107, 109]));
}

#[test]
fn a_group_has_a_multicast_address_and_a_port() {
    let mut buffer = [0; GROUP_LEN_BYTES];
    let group = SocketAddrV4::new(Ipv4Addr::new(239, 192, 0, 1), 61_000);
    ControlRepr { job: 1, request: 0, body: ControlBody::Group(group) }.emit(&mut buffer);
    assert!(parse(&buffer).is_ok());
    let corrupted = |at: usize, bytes: &[u8]| {
        let mut bad = buffer;
        bad[at..at + bytes.len()].copy_from_slice(bytes);
        parse(&bad).map(|_| ())
    };
    assert_eq!(corrupted(group::field::ADDRESS.start, &[10]), Err(WireError::BadValue));
    assert_eq!(corrupted(group::field::PORT.start, &[0, 0]), Err(WireError::BadValue));
    assert_eq!(corrupted(group::field::RESERVED.start, &[1]), Err(WireError::BadValue));
}

proptest! {
    #[test]
    fn lists_of_absent_members_round_trip(
        job: u32, request: u32, round in round(), others in 0u16..9,
        members in prop::collection::vec(absent_member(), 0..20),
    ) {
        let mut list = AbsentList::EMPTY;
        let fitting = members.iter().take_while(|member| list.push(member)).count();
        let count = fitting as u16 + others;
        let body = ControlBody::Absent(AbsentRepr { round, count, list: list.as_bytes() });
        let repr = ControlRepr { job, request, body };
        let mut buffer = [0xff; 300];
        let len = repr.emit(&mut buffer);
        prop_assert!(len <= MAX_CONTROL_LEN_BYTES);
        let parsed = parse(&buffer[..len])?;
        prop_assert_eq!(parsed, repr);
        let ControlBody::Absent(absent) = parsed.body else { panic!("expected an Absent") };
        prop_assert!(absent.members().eq(members.into_iter().take(fitting)));
    }
}
