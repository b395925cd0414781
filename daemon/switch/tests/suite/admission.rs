//! Joins and other requests that are refused because of the value of a field, or that arrive too late to have an
//! effect.

use crate::common::*;
use iswitch_protocol::Round;
use iswitch_protocol::limits::{MAX_HEIGHT, MAX_MEMBERS, TRAILER_LEN_BYTES};
use iswitch_protocol::wire::control::{ACK_LEN_BYTES, answer_challenge};
use iswitch_protocol::wire::{Class, ControlBody, JoinRepr, Kind, ResumeRepr, Status};
use iswitch_switch::DropReason;

/// Positions of fields in a Join and in a Reset (SPEC, section 3).
mod at {
    pub(super) const VERSION: usize = 1;
    pub(super) const HEADER_FLAGS: usize = 2;
    pub(super) const RESET_RESERVED: usize = 12;
    pub(super) const MODE: usize = 20;
    pub(super) const KIND: usize = 21;
    pub(super) const CONTRIBUTIONS: usize = 66;
    pub(super) const RESULTS: usize = 67;
}

const RESUME: ResumeRepr = ResumeRepr {
    round: Round::new(7),
    members: 2,
    weight: 2,
    threshold: 0,
    history: 1000,
    previous: 0,
    behind: 0,
    fresh: false,
};

fn refused(status: Status, expected: u32) -> Sent {
    Sent::Ack { to: 1, request: 1, status, round: 0, expected, missing: Vec::new() }
}

#[test]
fn joins_with_invalid_fields_are_refused_with_a_specific_status() {
    let resuming = |resume| JoinRepr { resume: Some(resume), ..join(2) };
    let (members, height) = (MAX_MEMBERS as u32, u32::from(MAX_HEIGHT));
    let switch_below = JoinRepr { kind: Kind::Switch, ..join(2) };
    let cases = [
        (JoinRepr { roams: true, ..join(0) }, Status::Malformed, 0),
        (JoinRepr { updates: true, ..join(2) }, Status::Malformed, 0),
        (JoinRepr { height: 1, ..join(2) }, Status::Malformed, 0),
        (resuming(ResumeRepr { behind: 999, ..RESUME }), Status::Malformed, 0),
        (resuming(ResumeRepr { history: 0, ..RESUME }), Status::Malformed, 0),
        (JoinRepr { weight: 0, ..join(2) }, Status::BadWeight, 1),
        (JoinRepr { weight: 2, ..join(2) }, Status::BadWeight, 1),
        (JoinRepr { weight: 0, ..switch_below }, Status::BadWeight, 1),
        (JoinRepr { height: MAX_HEIGHT, ..switch_below }, Status::TooManyLevels, height),
        (JoinRepr { updates: true, ..switch_below }, Status::UnknownMember, 0),
        (join(MAX_MEMBERS as u16 + 1), Status::JobFull, members),
        (resuming(ResumeRepr { threshold: MAX_MEMBERS as u16 + 1, ..RESUME }), Status::BadThreshold, members),
    ];
    for (join, status, expected) in cases {
        let mut switch = Harness::new();
        assert_eq!(switch.join(1, join), refused(status, expected), "{join:?}");
        assert_eq!(switch.switch.jobs().count(), 0, "{join:?}");
    }
    let most = resuming(ResumeRepr { threshold: MAX_MEMBERS as u16, ..RESUME });
    let sent = Harness::new().join(1, most);
    assert!(matches!(sent, Sent::Ack { status: Status::Success, .. }), "{sent:?}");
}

#[test]
fn unassigned_field_values_are_refused() {
    let cases = [
        (at::HEADER_FLAGS, 2, Status::Malformed),
        (at::HEADER_FLAGS + 1, 1, Status::Malformed),
        (at::MODE, 2, Status::Malformed),
        (at::KIND, 2, Status::Malformed),
        (at::CONTRIBUTIONS, 3, Status::Malformed),
        (at::RESULTS, 1, Status::Malformed),
        (at::VERSION, 2, Status::WrongVersion),
    ];
    for resume in [None, Some(RESUME)] {
        for (position, value, status) in cases {
            let mut switch = Harness::new();
            let mut packet = control(JOB, 1, ControlBody::Join(JoinRepr { resume, ..join(2) }));
            packet[position] |= value;
            let expected = u32::from(status == Status::WrongVersion);
            let what = format!("{value} at {position}");
            assert_eq!(switch.send(1, Class::Control, &packet), [refused(status, expected)], "{what}");
        }
    }
}

#[test]
fn a_reset_with_a_reserved_field_is_refused_and_changes_nothing() {
    let mut switch = Harness::formed(2);
    let epoch = switch.switch.epoch_of(JOB);
    for position in 0..4 {
        let mut packet = control(JOB, 1, ControlBody::RESET);
        packet[at::RESET_RESERVED + position] = 1;
        // A malformed packet is refused without checking its sender, so the refusal must not be longer than the packet.
        // An Ack is longer than a Reset.
        assert_eq!(switch.send(1, Class::Control, &packet), []);
        packet.resize(ACK_LEN_BYTES, 0);
        assert_eq!(switch.send(1, Class::Control, &packet), [refused(Status::Malformed, 0)]);
        assert_eq!(switch.switch.epoch_of(JOB), epoch);
    }
    assert_eq!(switch.switch.jobs().next().unwrap().members.len(), 2);
}

/// Sends a packet from host 1 and returns the answer.
fn answer(switch: &mut Harness, packet: &[u8]) -> Vec<u8> {
    switch.switch.handle_datagrams(switch.now(), &endpoint(1), Class::Control, packet, packet.len());
    let answer = switch.switch.poll_transmit().expect("the switch should answer").payload.to_vec();
    assert!(switch.switch.poll_transmit().is_none(), "the switch should send only one answer");
    answer
}

#[test]
fn the_answer_to_a_valid_join_has_the_length_of_the_join() {
    let padded = |join| control(JOB, 1, ControlBody::Join(JoinRepr { padding_len: 1000, ..join }));
    let mut switch = Harness::new();
    switch.join(2, join(2));
    for join in [
        JoinRepr { query: true, ..join(2) },
        JoinRepr { query: true, ..join(3) },
        JoinRepr { kind: Kind::Switch, updates: true, ..join(2) },
        join(3),
    ] {
        let mut packet = padded(join);
        let first = answer(&mut switch, &packet);
        assert_eq!(first.len(), packet.len(), "{join:?}");
        if answer_challenge(&mut packet, &first) {
            assert_eq!(answer(&mut switch, &packet).len(), packet.len(), "{join:?}");
        }
    }
    // A refused query is an answer, not a fault.
    assert_eq!(switch.counters().drops(DropReason::JoinRefused), 2);
    // These answers are not padded: there is no path to prove, and they must also arrive over a path that drops long
    // packets.
    let changes: [fn(&mut Vec<u8>); 3] = [
        |malformed| malformed[at::MODE] = 2,
        |other_version| other_version[at::VERSION] = 2,
        |not_authentic| {
            not_authentic[at::HEADER_FLAGS] = 1;
            not_authentic.resize(not_authentic.len() + TRAILER_LEN_BYTES, 0);
        },
    ];
    for change in changes {
        let mut packet = padded(join(2));
        change(&mut packet);
        assert_eq!(answer(&mut switch, &packet).len(), ACK_LEN_BYTES);
    }
}

#[test]
fn a_delayed_join_of_a_departed_member_changes_nothing() {
    let mut switch = Harness::new();
    let first = control(JOB, 1, ControlBody::Join(join(2)));
    let mut proven = first.clone();
    switch.switch.handle_datagrams(switch.now(), &endpoint(1), Class::Control, &first, first.len());
    let challenge =
        switch.switch.poll_transmit().expect("the switch should send a challenge").payload.to_vec();
    assert!(answer_challenge(&mut proven, &challenge));
    let deliver = |switch: &mut Harness, packet: &[u8]| {
        switch.switch.handle_datagrams(switch.now(), &endpoint(1), Class::Control, packet, packet.len());
        switch.drain()
    };
    let is_success = |sent: &[Sent]| matches!(sent, [Sent::Ack { status: Status::Success, .. }]);
    assert!(is_success(&deliver(&mut switch, &proven)));
    assert!(is_success(&deliver(&mut switch, &proven)), "a repeated Join from a member should be granted");
    switch.control(1, 2, ControlBody::Leave);
    assert_eq!(switch.switch.jobs().count(), 0);
    for late in [&first, &proven, &first, &proven] {
        let sent = deliver(&mut switch, late);
        assert!(matches!(sent[..], [Sent::Ack { status: Status::Challenge, .. }]), "{sent:?}");
        assert_eq!(switch.switch.jobs().count(), 0, "a late Join should not create the job again");
    }
    // The next job with this number may be a different one, and its rounds do not wait for the member that has left.
    let other = JoinRepr { instance: 2, ..JoinRepr::worker(7, 7, 1) };
    assert!(is_success(&[switch.join(2, other)]));
    for late in [&first, &proven] {
        let sent = deliver(&mut switch, late);
        assert!(matches!(sent[..], [Sent::Ack { status: Status::Challenge, .. }]), "{sent:?}");
    }
    assert_eq!(switch.switch.jobs().next().unwrap().members.len(), 1);
}
