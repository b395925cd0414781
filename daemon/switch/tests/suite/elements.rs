//! Jobs with 16-bit elements: contributions are widened, summed in binary32, and rounded once, in the result.

use crate::common::*;
use iswitch_element::rounded;
use iswitch_protocol::wire::control::SegmentSetRepr;
use iswitch_protocol::wire::{
    Class, ControlBody, ControlPacket, ControlRepr, JoinRepr, Kind, Mode, Status, emit_seg,
};
use iswitch_protocol::{ElementType, ElementTypes, Round, Seg, SegmentIndex};
use iswitch_switch::{Config, DropReason, NonFinite, PortId, Uplinks};
use proptest::prelude::*;

/// Number of floats in each segment of the vector of [`join`].
const SEGMENTS: [usize; 3] = [2, 2, 1];

const ALL: [ElementTypes; 5] = [
    ElementTypes::F32,
    ElementTypes::uniform(ElementType::Bf16),
    ElementTypes::uniform(ElementType::F16),
    ElementTypes::with_wide_results(ElementType::Bf16),
    ElementTypes::with_wide_results(ElementType::F16),
];

fn typed(elements: ElementTypes, workers: u16) -> JoinRepr {
    JoinRepr { elements, ..join(workers) }
}

/// Returns a switch with a job whose members 1 to `workers` have joined.
fn formed(config: Config, elements: ElementTypes, workers: u8) -> Harness {
    let mut switch = Harness::with(Config { memory_bytes: 1 << 20, ..config });
    switch.results = elements.results();
    for host in 1..=workers {
        let sent = switch.join(host, typed(elements, u16::from(workers)));
        assert!(matches!(sent, Sent::Ack { status: Status::Success, .. }), "{sent:?}");
    }
    switch
}

/// Returns a data packet with elements of a type.
fn packet(element: ElementType, index: u32, round: u32, floats: &[f32]) -> Vec<u8> {
    let mut bytes = vec![0; 8 + floats.len() * element.len_bytes()];
    let index = SegmentIndex::new(index).unwrap();
    let elements = emit_seg(&mut bytes, Seg { index, round: Round::new(round), contributions: 1 });
    iswitch_element::round(element, floats, elements);
    bytes
}

/// Returns a packet as text, so that packets with NaN can be compared.
fn text(sent: &Sent) -> String {
    format!("{sent:?}")
}

fn bits(floats: &[f32]) -> Vec<u32> {
    floats.iter().map(|x| x.to_bits()).collect()
}

/// Strategy that generates floats of ordinary size, near the limits of binary16, and of any size.
fn float() -> impl Strategy<Value = f32> {
    let any = any::<u32>().prop_map(f32::from_bits).prop_filter("finite", |x| x.is_finite());
    prop_oneof![-10.0f32..10.0, -65_000.0f32..65_000.0, -1e-4f32..1e-4, any]
}

fn vector() -> impl Strategy<Value = [f32; 5]> {
    [float(), float(), float(), float(), float()]
}

/// Returns the expected bits of a round's result, from an independent sum of the rounded contributions.
fn expected(elements: ElementTypes, vectors: &[[f32; 5]]) -> Vec<u32> {
    let sum = |at: usize| vectors.iter().fold(0.0, |sum, x| sum + rounded(elements.contributions(), x[at]));
    let canonical = |x: f32| if x.is_nan() { 0x7FC0_0000 } else { x.to_bits() };
    (0..5).map(|at| canonical(rounded(elements.results(), sum(at)))).collect()
}

proptest! {
    #[test]
    fn sums_are_rounded_once(
        vectors in proptest::collection::vec(vector(), 1..7), ordered in any::<bool>(),
        elements in proptest::sample::select(&ALL[..]),
    ) {
        let config = Config { ordered, non_finite: NonFinite::Sum, ..Config::default() };
        let mut switch = formed(config, elements, vectors.len() as u8);
        for round in 0..3 {
            let (mut sums, mut at) = (Vec::new(), 0);
            for (index, floats) in (0..).zip(SEGMENTS) {
                let mut sent = Vec::new();
                for (host, vector) in (1..).zip(&vectors) {
                    let bytes = packet(elements.contributions(), index, round, &vector[at..at + floats]);
                    sent = switch.send(host, Class::Data, &bytes);
                }
                at += floats;
                prop_assert_eq!(sent.len(), vectors.len());
                let Sent::Result { floats, contributions, .. } = &sent[0] else { panic!("{sent:?}") };
                prop_assert_eq!(usize::from(*contributions), vectors.len());
                // Repeated results are rounded again, to the same bits.
                let set = SegmentSetRepr { range: range(round, index, 1), bitmap: &[1] };
                let again = switch.control(1, 9, ControlBody::Help(set));
                prop_assert!(again.iter().any(|again| text(again) == text(&sent[0])), "{:?}", again);
                sums.extend(bits(floats));
            }
            prop_assert_eq!(sums, expected(elements, &vectors));
        }
    }
}

/// The sum is 258, because it is rounded only once. If it were rounded after each addition, it would stay at 256.
#[test]
fn a_sum_of_many_small_contributions_does_not_stall() {
    let bf16 = ElementTypes::uniform(ElementType::Bf16);
    let mut switch = formed(Config::default(), bf16, 5);
    for host in 1..=4 {
        let x = if host == 1 { 256.0 } else { 0.5 };
        assert_eq!(switch.send(host, Class::Data, &packet(ElementType::Bf16, 2, 0, &[x])), []);
    }
    let sent = switch.send(5, Class::Data, &packet(ElementType::Bf16, 2, 0, &[0.5]));
    assert_eq!(sent[0], result(1, 2, 0, 5, &[258.0]));
}

#[test]
fn a_join_with_other_element_types_is_refused_by_name() {
    for (own, other) in ALL.into_iter().flat_map(|own| ALL.map(|other| (own, other))).filter(|(a, b)| a != b)
    {
        let mut switch = formed(Config::default(), own, 1);
        let refused = switch.join(2, typed(other, 1));
        let Sent::Ack { status, expected, .. } = refused else { panic!("{refused:?}") };
        assert_eq!((status, expected), (Status::ElementTypeMismatch, own.code()), "{own} and {other}");
    }
}

#[test]
fn a_packet_of_another_type_is_refused_with_the_expected_length() {
    for elements in
        [ElementTypes::uniform(ElementType::F16), ElementTypes::with_wide_results(ElementType::Bf16)]
    {
        let mut switch = formed(Config::default(), elements, 2);
        let before = *switch.counters();
        let sent = switch.send(1, Class::Data, &packet(ElementType::F32, 0, 0, &[1.0, 2.0]));
        assert!(
            matches!(sent[..], [Sent::Ack { status: Status::LengthMismatch, expected: 12, .. }]),
            "{sent:?}"
        );
        assert_eq!(switch.only_drop_since(&before), Some(DropReason::LengthMismatch));
    }
    let mut switch = formed(Config::default(), ElementTypes::F32, 2);
    for halves in [3, 5] {
        let sent = switch.send(1, Class::Data, &packet(ElementType::F16, 0, 0, &vec![1.0; halves]));
        assert!(
            matches!(sent[..], [Sent::Ack { status: Status::LengthMismatch, expected: 16, .. }]),
            "{sent:?}"
        );
    }
}

#[test]
fn infinities_are_refused_but_an_overflowing_sum_reaches_all_members() {
    let f16 = ElementTypes::uniform(ElementType::F16);
    let mut switch = formed(Config::default(), f16, 2);
    for bad in [f32::NAN, f32::NEG_INFINITY, 65_520.0] {
        let sent = switch.send(1, Class::Data, &packet(ElementType::F16, 0, 0, &[1.0, bad]));
        assert!(matches!(sent[..], [Sent::Ack { status: Status::NonFinite, .. }]), "{sent:?}");
    }
    switch.send(1, Class::Data, &packet(ElementType::F16, 0, 0, &[1.0, 60_000.0]));
    let sent = switch.send(2, Class::Data, &packet(ElementType::F16, 0, 0, &[1.0, 60_000.0]));
    assert_eq!(sent, [1, 2].map(|to| result(to, 0, 0, 2, &[2.0, f32::INFINITY])));
}

#[test]
fn a_late_sum_of_an_earlier_incarnation_is_stale_whatever_its_length() {
    let types = ElementTypes::with_wide_results(ElementType::Bf16);
    let mut switch = formed(Config::default(), types, 2);
    let sum = packet(types.results(), 0, (1 << 24) - 5, &[1.0, 2.0]);
    let sent = switch.send(1, Class::Data, &sum);
    assert!(matches!(sent[..], [Sent::Ack { status: Status::StaleRound, .. }]), "{sent:?}");
    // In the current round, a packet of this length is refused.
    let sent = switch.send(1, Class::Data, &packet(types.results(), 0, 0, &[1.0, 2.0]));
    assert!(matches!(sent[..], [Sent::Ack { status: Status::LengthMismatch, .. }]), "{sent:?}");
}

#[test]
fn segments_fill_the_packet_and_no_more() {
    let cases = [
        (ElementTypes::F32, 2241),
        (ElementTypes::uniform(ElementType::Bf16), 4482),
        (ElementTypes::with_wide_results(ElementType::Bf16), 2241),
    ];
    for (elements, most) in cases {
        let outcome = |segment_floats: u16| {
            let mut switch = Harness::new();
            let join = JoinRepr { segment_floats, gradient_len: 5000, ..typed(elements, 1) };
            match switch.join(1, join) {
                Sent::Ack { status, .. } => status,
                sent => panic!("{sent:?}"),
            }
        };
        assert_eq!([outcome(most), outcome(most + 1)], [Status::Success, Status::BadLayout]);
    }
}

#[test]
fn aggregates_of_whole_vectors_are_rounded_once() {
    for elements in ALL {
        let mut switch = Harness::new();
        switch.results = elements.results();
        for host in 1..=2 {
            switch.join(host, JoinRepr { mode: Mode::Asynchronous, ..typed(elements, 2) });
        }
        let (first, x) = (switch.first_vector(JOB, 1), 1.0 / 3.0);
        let mut sent = Vec::new();
        for (host, (index, floats)) in
            [1, 2].into_iter().flat_map(|host| (0..).zip(SEGMENTS).map(move |s| (host, s)))
        {
            let bytes = packet(elements.contributions(), index, first, &[x; 2][..floats]);
            sent.extend(switch.send(host, Class::Data, &bytes));
        }
        let sum = rounded(elements.results(), 2.0 * rounded(elements.contributions(), x));
        let of = |to, index: usize| result(to, index as u32, 0, 2, &[sum; 2][..SEGMENTS[index]]);
        for expected in [1, 2].into_iter().flat_map(|to| (0..3).map(move |index| of(to, index))) {
            assert!(sent.contains(&expected), "{elements}: {sent:?}");
        }
    }
}

#[test]
fn a_child_switch_contributes_binary32() {
    let elements = ElementTypes::uniform(ElementType::Bf16);
    let mut switch = Harness::new();
    switch.results = ElementType::Bf16;
    switch.join(1, JoinRepr { kind: Kind::Switch, weight: 2, height: 1, ..typed(elements, 3) });
    switch.join(2, typed(elements, 3));
    // bfloat16 cannot represent 257. The number is rounded only after the contribution of the worker has been added.
    assert_eq!(switch.send(1, Class::Data, &weighted(2, 0, 2, &[257.0])), []);
    let sent = switch.send(2, Class::Data, &packet(ElementType::Bf16, 2, 0, &[2.0]));
    assert_eq!(sent[0], result(1, 2, 0, 3, &[260.0]));
}

#[test]
fn segments_that_do_not_fit_as_partial_sums_are_refused_below_a_parent() {
    let parent = Uplinks::new(&["10.0.0.254:7711".parse().unwrap()], PortId(1), 1);
    let config = Config { uplinks: parent, memory_bytes: 1 << 20, ..Config::default() };
    let refusal = |elements: ElementTypes, segment_floats: u16| {
        let join = JoinRepr { segment_floats, gradient_len: 5000, ..typed(elements, 2) };
        let mut switch = Harness::with(config);
        let (now, join) = (switch.now(), control(JOB, 1, ControlBody::Join(join)));
        // Ignore the packets that the switch sends to its parent.
        let answers = join_from(&mut switch.switch, now, &endpoint(1), &join);
        let packet = ControlPacket::new_checked(&answers[0]).unwrap();
        match ControlRepr::parse(&packet).unwrap().body {
            ControlBody::Ack(ack) => (ack.status, ack.expected),
            body => panic!("{body:?}"),
        }
    };
    for elements in ALL.into_iter().filter(|elements| *elements != ElementTypes::F32) {
        assert_eq!(refusal(elements, 367), (Status::SegmentSizeMismatch, 366), "{elements}");
        assert_eq!(refusal(elements, 366).0, Status::Success, "{elements}");
    }
    assert_eq!(refusal(ElementTypes::F32, 2241).0, Status::Success, "members know the MTU of the path");
}
