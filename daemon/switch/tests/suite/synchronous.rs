//! Synchronous aggregation in the core: sums, rounds, recovery and membership.

use crate::common::{
    Harness, JOB, LEASE_MS, Sent, control, data, endpoint, join, join_from, range, result, weighted,
};
use iswitch_protocol::wire::control::SegmentSetRepr;
use iswitch_protocol::wire::{Class, ControlBody, JoinRepr, Kind, Mode, Status, WireError};
use iswitch_switch::{Config, Departure, DropReason, Endpoint, Event, NonFinite, PortId};
use proptest::prelude::*;

/// Status and expected value of a refusal, or `None` if there is no answer.
type Answer = Option<(Status, u32)>;

fn success(to: u8, request: u32, round: u32) -> Sent {
    Sent::Ack { to, request, status: Status::Success, round, expected: 0, missing: Vec::new() }
}

fn refusal(to: u8, request: u32, status: Status, round: u32, expected: u32) -> Sent {
    Sent::Ack { to, request, status, round, expected, missing: Vec::new() }
}

fn help(bitmap: &[u8], first: u32, count: u32, round: u32) -> ControlBody<'_> {
    ControlBody::Help(SegmentSetRepr { range: range(round, first, count), bitmap })
}

#[test]
fn the_last_contribution_completes_the_sum_for_all() {
    let mut switch = Harness::formed(3);
    assert_eq!(switch.data(1, 1, 0, &[1.0, 2.0]), []);
    assert_eq!(switch.data(2, 1, 0, &[10.0, 20.0]), []);
    let sum = [111.0, 222.0];
    let expected = [1, 2, 3].map(|to| result(to, 1, 0, 3, &sum));
    assert_eq!(switch.data(3, 1, 0, &[100.0, 200.0]), expected);
}

#[test]
fn a_super_frame_is_answered_with_a_super_frame() {
    let mut switch = Harness::formed(2);
    let vector = [data(0, 0, &[1.0, 2.0]), data(1, 0, &[3.0, 4.0]), data(2, 0, &[5.0])].concat();
    assert_eq!(switch.send_frame(1, Class::Data, &vector, 16), []);
    switch.switch.handle_datagrams(switch.now(), &endpoint(2), Class::Data, &vector, 16);
    let transmit = switch.switch.poll_transmit().unwrap();
    assert_eq!(
        (transmit.stride, transmit.payload.len()),
        (16, 44),
        "expected three results, the last one shorter"
    );
    assert_eq!(transmit.recipients().count(), 2);
    assert!(switch.switch.poll_transmit().is_none());
}

#[test]
fn duplicates_and_late_packets_never_change_a_sum() {
    let mut switch = Harness::formed(2);
    switch.data(1, 0, 0, &[1.0, 1.0]);
    assert_eq!(switch.data(1, 0, 0, &[1.0, 1.0]), [], "a duplicate in an open segment should be dropped");
    assert_eq!(switch.counters().drops(DropReason::Duplicate), 1);
    switch.data(2, 0, 0, &[2.0, 2.0]);
    let repeated = [result(1, 0, 0, 2, &[3.0, 3.0])];
    assert_eq!(
        switch.data(1, 0, 0, &[9.0, 9.0]),
        repeated,
        "only the late member should get the cached result"
    );
    assert_eq!(switch.counters().drops(DropReason::Late), 1);
    assert_eq!(switch.counters().results_repeated, 1);
}

#[test]
fn only_the_results_of_the_last_two_rounds_are_kept() {
    let mut switch = Harness::formed(2);
    switch.round(&[1, 2], 0);
    switch.round(&[1, 2], 1);
    assert_eq!(switch.data(1, 0, 0, &[0.0, 0.0]), [result(1, 0, 0, 2, &[3.0, 3.0])]);
    switch.round(&[1, 2], 2);
    // The sum of round 1 is still cached.
    assert_eq!(switch.data(1, 0, 0, &[0.0, 0.0]), [refusal(1, 0, Status::StaleRound, 1, 0)]);
    assert_eq!(switch.counters().drops(DropReason::StaleRound), 1);
    let refused = [refusal(1, 0, Status::StaleRound, 1, 0)];
    assert_eq!(switch.data(1, 0, 4, &[0.0, 0.0]), refused, "a future round should not open");
    assert_eq!(switch.counters().drops(DropReason::EarlyRound), 1);
}

#[test]
fn rounds_wrap_around() {
    let mut switch = Harness::formed(1);
    // Rounds up to 2^24 would take too long. The protocol crate tests the comparison of rounds at the wrap.
    for round in 0..1000 {
        switch.data(1, 0, round, &[7.0, 7.0]);
        switch.data(1, 1, round, &[7.0, 7.0]);
        assert_eq!(switch.data(1, 2, round, &[7.0]), [result(1, 2, round, 1, &[7.0])]);
    }
}

#[test]
fn nothing_is_delivered_before_all_workers_have_joined() {
    let mut switch = Harness::new();
    switch.join(1, join(2));
    assert_eq!(switch.data(1, 2, 0, &[1.0]), []);
    let sent = switch.control(2, 1, ControlBody::Join(join(2)));
    let notice = success(1, 1, 0);
    assert_eq!(
        sent,
        [notice, success(2, 1, 0)],
        "the joiner should participate in the open round, and the first member be notified"
    );
    let expected = [1, 2].map(|to| result(to, 2, 0, 2, &[3.0]));
    assert_eq!(switch.data(2, 2, 0, &[2.0]), expected);
}

#[test]
fn a_late_joiner_starts_at_the_next_round() {
    let mut switch = Harness::new();
    switch.join(1, join(0));
    switch.data(1, 0, 0, &[1.0, 1.0]);
    assert_eq!(switch.join(2, join(0)), success(2, 1, 1));
    assert_eq!(switch.data(2, 1, 0, &[5.0, 5.0]), [refusal(2, 0, Status::StaleRound, 1, 0)]);
    assert_eq!(switch.counters().drops(DropReason::NotParticipant), 1);
    assert_eq!(switch.data(2, 1, 1, &[5.0, 5.0]), [], "round 1 should be too early while round 0 is open");
    assert_eq!(switch.counters().drops(DropReason::EarlyRound), 1);
    assert_eq!(switch.data(1, 1, 0, &[1.0, 1.0]).len(), 2, "round 0 should not wait for the joiner");
    assert_eq!(switch.data(2, 1, 1, &[5.0, 5.0]), []);
    assert_eq!(switch.data(1, 1, 1, &[1.0, 1.0])[0], result(1, 1, 1, 2, &[6.0, 6.0]));
}

#[test]
fn help_returns_results_and_lists_missing_segments() {
    let mut switch = Harness::formed(2);
    switch.round(&[1], 0);
    switch.data(2, 1, 0, &[2.0, 2.0]);
    let sent = switch.control(2, 9, help(&[0b111], 0, 3, 0));
    let missing = vec![0, 2];
    let ack = Sent::Ack { to: 2, request: 9, status: Status::Success, round: 0, expected: 0, missing };
    assert_eq!(sent, [ack, result(2, 1, 0, 2, &[3.0, 3.0])]);
    let sent = switch.control(2, 10, help(&[0b100], 0, 3, 0));
    let ack =
        Sent::Ack { to: 2, request: 10, status: Status::Success, round: 0, expected: 0, missing: vec![2] };
    assert_eq!(sent, [ack], "only requested segments should be answered");
    assert_eq!(switch.control(1, 11, help(&[0b111], 0, 3, 0)).len(), 2, "member 1 should wait for member 2");
}

#[test]
fn a_long_help_is_answered_in_super_frames() {
    let mut switch = Harness::with(Config::default());
    let big = JoinRepr { gradient_len: 366 * 1000, segment_floats: 366, ..join(1) };
    switch.join(1, big);
    for index in 0..1000 {
        switch.data(1, index, 0, &[1.0; 366]);
    }
    let packet = control(JOB, 3, help(&[0xff; 125], 0, 1000, 0));
    switch.switch.handle_datagrams(switch.now(), &endpoint(1), Class::Control, &packet, packet.len());
    let mut datagrams = 0;
    let mut is_left = true;
    while is_left {
        while let Some(transmit) = switch.switch.poll_transmit() {
            assert!(transmit.payload.len() <= 65_507);
            datagrams += transmit.payload.len().div_ceil(transmit.stride);
        }
        // The remaining work is done after packets that have arrived in the meantime.
        is_left = switch.switch.poll_timeout().is_some_and(|due| due <= switch.now());
        switch.switch.handle_timeout(switch.now());
    }
    assert_eq!(datagrams, 1 + 1000, "expected the Ack and every result");
}

#[test]
fn a_silent_member_is_expelled_and_the_others_continue() {
    let mut switch = Harness::formed(3);
    switch.round(&[1, 2], 0);
    switch.data(3, 0, 0, &[3.0, 3.0]);
    let mut sent = Vec::new();
    for _ in 0..5 {
        sent.extend(switch.sleep(u64::from(LEASE_MS) / 4));
        for host in [1, 2] {
            assert_eq!(switch.control(host, 0, help(&[], 0, 0, 0)), [], "a heartbeat should not be answered");
        }
    }
    let left = Event::Left { job: JOB, member: 2, address: endpoint(3).peer, why: Departure::Silent };
    assert!(switch.events().contains(&left));
    let expected: Vec<_> = [1, 2]
        .into_iter()
        .flat_map(|to| [result(to, 1, 0, 2, &[3.0, 3.0]), result(to, 2, 0, 2, &[3.0])])
        .collect();
    assert_eq!(sent, expected, "open segments should be closed with the contributions so far");
    switch.round(&[1, 2], 1);
    assert_eq!(switch.data(1, 0, 1, &[0.0, 0.0]), [result(1, 0, 1, 2, &[3.0, 3.0])]);
    assert_eq!(switch.data(3, 0, 1, &[3.0, 3.0]), [], "the answer would be longer than the packet");
    assert_eq!(switch.control(3, 0, ControlBody::HEARTBEAT), [refusal(3, 0, Status::UnknownMember, 0, 0)]);
}

#[test]
fn a_contribution_of_a_departed_member_does_not_replace_a_missing_one() {
    let mut switch = Harness::formed(3);
    switch.data(1, 2, 0, &[1.0]);
    switch.data(3, 2, 0, &[4.0]);
    assert_eq!(
        switch.control(3, 2, ControlBody::Leave),
        [success(3, 2, 0)],
        "two contributions with H = 2, but not from both members"
    );
    let expected = [1, 2].map(|to| result(to, 2, 0, 3, &[7.0]));
    assert_eq!(switch.data(2, 2, 0, &[2.0]), expected);
}

#[test]
fn a_suspended_switch_expels_no_member() {
    let mut switch = Harness::formed(2);
    switch.now_ms += 60_000;
    switch.switch.handle_timeout(switch.now());
    assert_eq!(switch.counters().expelled, 0);
    // A clock that steps back is ignored.
    switch.now_ms = 0;
    switch.switch.handle_timeout(switch.now());
    assert_eq!(switch.data(1, 2, 0, &[1.0]), []);
}

#[test]
fn a_job_ends_with_its_last_member_and_its_rounds_are_not_reused() {
    let mut switch = Harness::formed(1);
    switch.round(&[1], 0);
    switch.control(1, 2, ControlBody::Leave);
    assert_eq!(switch.switch.jobs().count(), 0);
    assert!(
        switch.switch.poll_timeout().is_none() || {
            switch.sleep(5000);
            switch.switch.poll_timeout().is_none()
        }
    );
    assert_eq!(
        switch.join(1, join(1)),
        success(1, 1, 2),
        "the new job should start after the rounds of the old one"
    );
    assert_eq!(switch.control(2, 2, ControlBody::Leave), [refusal(2, 2, Status::UnknownMember, 0, 0)]);
}

#[test]
fn a_repeated_join_changes_nothing_and_a_restarted_worker_starts_anew() {
    let mut switch = Harness::formed(2);
    switch.data(1, 0, 0, &[1.0, 1.0]);
    assert_eq!(switch.join(1, join(2)), success(1, 1, 0));
    let restarted = JoinRepr { instance: 2, ..join(2) };
    assert_eq!(switch.join(1, restarted), success(1, 1, 1));
    assert_eq!(switch.data(1, 0, 0, &[1.0, 1.0]), [refusal(1, 0, Status::StaleRound, 1, 0)]);
    let sent = switch.data(2, 0, 0, &[2.0, 2.0]);
    assert_eq!(sent[1], result(2, 0, 0, 2, &[3.0, 3.0]), "the earlier contribution should stay in the sum");
}

#[test]
fn a_deserted_round_does_not_block_members_that_joined_later() {
    let mut switch = Harness::with(Config { memory_bytes: 1 << 20, ..Config::default() });
    switch.join(1, join(0));
    switch.join(2, join(0));
    switch.data(1, 2, 0, &[1.0]);
    assert_eq!(switch.join(3, join(0)), success(3, 1, 1));
    switch.control(1, 2, ControlBody::Leave);
    switch.control(2, 2, ControlBody::Leave);
    assert_eq!(switch.data(3, 0, 1, &[3.0, 3.0]), [result(3, 0, 1, 1, &[3.0, 3.0])]);
    assert_eq!(switch.data(3, 0, 2, &[4.0, 4.0]), [result(3, 0, 2, 1, &[4.0, 4.0])]);
}

#[test]
fn set_h_takes_effect_at_the_next_round() {
    let mut switch = Harness::formed(3);
    switch.data(1, 2, 0, &[1.0]);
    assert_eq!(switch.control(1, 2, ControlBody::SetH { threshold: 2 }), [success(1, 2, 0)]);
    assert_eq!(switch.data(2, 2, 0, &[1.0]), []);
    assert_eq!(switch.data(3, 2, 0, &[1.0]).len(), 3);
    switch.data(1, 2, 1, &[1.0]);
    assert_eq!(switch.data(2, 2, 1, &[1.0])[0], result(1, 2, 1, 2, &[2.0]));
    assert_eq!(
        switch.data(3, 2, 1, &[1.0]),
        [result(3, 2, 1, 2, &[2.0])],
        "the third contribution should be late"
    );
    switch.control(1, 3, ControlBody::SetH { threshold: 0 });
    switch.data(1, 2, 2, &[1.0]);
    assert_eq!(switch.data(2, 2, 2, &[1.0]), [], "H should follow the number of members again");
    let sent = switch.control(1, 4, ControlBody::SetH { threshold: 65 });
    assert_eq!(sent, [refusal(1, 4, Status::BadThreshold, 0, 64)]);
}

#[test]
fn fbcast_closes_the_named_segments_with_their_current_sums() {
    let mut switch = Harness::formed(3);
    switch.round(&[1], 0);
    let sent = switch.control(2, 7, ControlBody::FBcast(range(0, 1, 1)));
    assert_eq!(sent[0], success(2, 7, 0));
    assert_eq!(sent[1..], [1, 2, 3].map(|to| result(to, 1, 0, 1, &[1.0, 1.0])));
    assert_eq!(switch.data(2, 1, 0, &[2.0, 2.0]), [result(2, 1, 0, 1, &[1.0, 1.0])]);
    let sent = switch.control(2, 8, ControlBody::FBcast(range(4, 0, 1)));
    assert_eq!(sent, [refusal(2, 8, Status::StaleRound, 0, 0)]);
    let sent = switch.control(2, 9, ControlBody::FBcast(range(0, 2, 2)));
    assert_eq!(sent, [refusal(2, 9, Status::OutOfRange, 0, 3)]);
}

#[test]
fn fbcast_of_a_round_without_contributions_closes_nothing() {
    let mut switch = Harness::formed(2);
    let fbcast = |round| ControlBody::FBcast(range(round, 0, 3));
    assert_eq!(switch.control(1, 5, fbcast(0)), [success(1, 5, 0)]);
    switch.round(&[1, 2], 0);
    assert_eq!(switch.control(1, 6, fbcast(1)), [success(1, 6, 0)]);
    assert_eq!(switch.control(1, 7, fbcast(2)), [refusal(1, 7, Status::StaleRound, 0, 0)]);
    switch.data(1, 0, 1, &[1.0, 1.0]);
    assert_eq!(switch.data(2, 0, 1, &[2.0, 2.0])[0], result(1, 0, 1, 2, &[3.0, 3.0]));
}

#[test]
fn a_reset_dismisses_all_members_once() {
    let mut switch = Harness::formed(2);
    switch.round(&[1, 2], 0);
    switch.data(1, 0, 1, &[1.0, 1.0]);
    let epoch = switch.switch.jobs().next().unwrap().boot;
    let reset = ControlBody::Reset { boot: epoch };
    let dismissed = |to| refusal(to, 0, Status::UnknownMember, 0, 0);
    assert_eq!(switch.control(2, 5, reset), [success(2, 5, 1), dismissed(1), dismissed(2)]);
    assert!(switch.events().contains(&Event::Reset { job: JOB }));
    switch.now_ms += 1000;
    // The request is not padded, so a former member gets no answer.
    assert_eq!(switch.control(2, 5, reset), []);
    // Round 1 was open, so a contribution to round 2 may be in flight.
    let granted = |to| success(to, 1, 3);
    assert_eq!([1, 2].map(|host| switch.join(host, join(2))), [1, 2].map(granted));
    assert_eq!(switch.control(2, 5, reset), [success(2, 5, 3)], "the Reset names an earlier epoch");
    assert_eq!(switch.data(1, 0, 2, &[1.0, 1.0]), [refusal(1, 0, Status::StaleRound, 3, 0)]);
    switch.data(1, 0, 3, &[1.0, 1.0]);
    assert_eq!(switch.data(2, 0, 3, &[1.0, 1.0])[0], result(1, 0, 3, 2, &[2.0, 2.0]));
}

#[test]
fn a_halted_job_accepts_nothing_until_it_is_reset() {
    let mut switch = Harness::formed(2);
    let sent = switch.control(1, 5, ControlBody::Halt);
    assert_eq!(sent, [Sent::Halted { to: 1 }, Sent::Halted { to: 2 }, success(1, 5, 0)]);
    assert_eq!(switch.data(2, 0, 0, &[1.0, 1.0]), [refusal(2, 0, Status::Halted, 0, 0)]);
    assert_eq!(switch.control(2, 6, help(&[1], 0, 1, 0)), [refusal(2, 6, Status::Halted, 0, 0)]);
    switch.control(1, 7, ControlBody::RESET);
    for host in [1, 2] {
        switch.join(host, join(2));
    }
    switch.data(1, 2, 1, &[1.0]);
    assert_eq!(switch.data(2, 2, 1, &[1.0]).len(), 2);
}

#[test]
fn a_reset_of_an_incomplete_job_ends_a_halt_and_keeps_its_members() {
    let mut switch = Harness::new();
    switch.join(1, join(2));
    switch.control(1, 5, ControlBody::Halt);
    assert_eq!(switch.control(1, 6, ControlBody::RESET), [success(1, 6, 0)]);
    switch.join(2, join(2));
    switch.data(1, 2, 0, &[1.0]);
    assert_eq!(switch.data(2, 2, 0, &[1.0]).len(), 2);
}

#[test]
fn a_member_with_a_wrong_round_is_given_the_round_of_the_job() {
    let mut switch = Harness::formed(2);
    switch.round(&[1, 2], 0);
    switch.data(1, 0, 1, &[1.0, 1.0]);
    // A member with the result of round 1 may already contribute to round 2.
    assert_eq!(switch.data(2, 0, 2, &[1.0, 1.0]), []);
    for round in [3, 500, 1 << 22] {
        // The switch still keeps the result of round 0 for the member.
        let reported = refusal(2, 0, Status::StaleRound, 0, 0);
        assert_eq!(switch.data(2, 0, round, &[1.0, 1.0]), [reported], "round {round}");
    }
    assert_eq!(switch.counters().drops(DropReason::EarlyRound), 4);
}

#[test]
fn jobs_are_isolated_from_each_other() {
    let mut switch = Harness::formed(1);
    let other = control(JOB + 1, 1, ControlBody::Join(JoinRepr { gradient_len: 2, ..join(1) }));
    assert_eq!(switch.send(2, Class::Control, &other), [success(2, 1, 0)]);
    assert_eq!(switch.data(1, 0, 0, &[1.0, 1.0]), [result(1, 0, 0, 1, &[1.0, 1.0])]);
    assert_eq!(switch.data(2, 0, 0, &[2.0, 2.0]), [result(2, 0, 0, 1, &[2.0, 2.0])]);
    assert_eq!(switch.switch.jobs().count(), 2);
}

#[test]
fn a_driver_that_does_not_drain_output_corrupts_no_result() {
    let mut switch = Harness::formed(1);
    let other = control(JOB + 1, 1, ControlBody::Join(JoinRepr { gradient_len: 2, ..join(1) }));
    switch.send(2, Class::Control, &other);
    for host in [1, 2] {
        let packet = data(0, 0, &[f32::from(host), 1.0]);
        switch.switch.handle_datagrams(switch.now(), &endpoint(host), Class::Data, &packet, packet.len());
    }
    assert_eq!(switch.drain(), [result(1, 0, 0, 1, &[1.0, 1.0])]);
    assert_eq!(switch.counters().drops(DropReason::Busy), 1);
    assert_eq!(
        switch.data(2, 0, 0, &[2.0, 1.0]),
        [result(2, 0, 0, 1, &[2.0, 1.0])],
        "the dropped contribution should be repeated"
    );
}

#[test]
fn job_memory_is_bounded_and_released() {
    let mut switch = Harness::with(Config { memory_bytes: 1 << 16, ..Config::default() });
    let join = |gradient_len| JoinRepr { gradient_len, segment_floats: 366, ..join(1) };
    let room_kib = 64;
    let sent = switch.join(1, join(100_000));
    assert_eq!(sent, refusal(1, 1, Status::NoCapacity, 0, room_kib));
    assert_eq!(switch.join(1, join(5_000)), success(1, 1, 0), "two rounds of 20 KB should fit in 64 KiB");
    switch.control(1, 0, help(&[], 0, 0, 0));
    let second = control(JOB + 1, 1, ControlBody::Join(join(5_000)));
    assert!(matches!(
        switch.send(2, Class::Control, &second)[..],
        [Sent::Ack { status: Status::NoCapacity, .. }]
    ));
    switch.control(1, 2, ControlBody::Leave);
    assert_eq!(switch.send(2, Class::Control, &second), [success(2, 1, 1)]);
}

#[test]
fn joins_with_differing_parameters_get_a_specific_status() {
    let mut switch = Harness::formed(2);
    let cases = [
        (JoinRepr { gradient_len: 6, ..join(2) }, Status::GradientLenMismatch, 5),
        (JoinRepr { segment_floats: 3, ..join(2) }, Status::SegmentSizeMismatch, 2),
        (JoinRepr { mode: Mode::Asynchronous, ..join(2) }, Status::ModeMismatch, 0),
        (join(3), Status::WorkersMismatch, 2),
    ];
    for (join, status, expected) in cases {
        for host in [2, 9] {
            assert_eq!(switch.join(host, join), refusal(host, 1, status, 0, expected));
        }
    }
    assert_eq!(switch.counters().drops(DropReason::JoinRefused), 8);
    let event = Event::JoinRefused {
        job: JOB,
        address: endpoint(9).peer,
        status: Status::GradientLenMismatch,
        expected: 5,
        exceeded: None,
    };
    assert!(switch.events().contains(&event));
    let layout = JoinRepr { gradient_len: 0, ..join(2) };
    let packet = control(JOB + 1, 1, ControlBody::Join(layout));
    assert_eq!(switch.send(9, Class::Control, &packet), [refusal(9, 1, Status::BadLayout, 0, 0)]);
    let foreign = control(JOB + 1, 1, ControlBody::Join(join(2)));
    assert_eq!(switch.send(1, Class::Control, &foreign), [refusal(1, 1, Status::ForeignJob, 0, JOB)]);
    // None of these packets has changed a sum.
    switch.data(1, 2, 0, &[1.0]);
    assert_eq!(switch.data(2, 2, 0, &[2.0])[0], result(1, 2, 0, 2, &[3.0]));
}

#[test]
fn a_job_has_room_for_64_members() {
    let mut switch = Harness::new();
    for host in 1..=64 {
        assert!(matches!(switch.join(host, join(0)), Sent::Ack { status: Status::Success, .. }));
    }
    assert_eq!(switch.join(65, join(0)), refusal(65, 1, Status::JobFull, 0, 64));
}

#[test]
fn a_job_admits_no_more_workers_than_declared() {
    let mut switch = Harness::formed(2);
    assert_eq!(switch.join(3, join(2)), refusal(3, 1, Status::JobFull, 0, 2));
    switch.control(2, 2, ControlBody::Leave);
    assert_eq!(
        switch.join(3, join(2)),
        success(3, 1, 0),
        "a worker should be able to replace one that has left"
    );
}

#[test]
fn a_padded_join_gets_an_ack_of_the_same_length() {
    let mut switch = Harness::new();
    let packet = control(
        JOB,
        1,
        ControlBody::Join(JoinRepr { padding_len: JoinRepr::padding_to(1472, false, false), ..join(1) }),
    );
    switch.switch.handle_datagrams(switch.now(), &endpoint(1), Class::Control, &packet, packet.len());
    assert_eq!(switch.switch.poll_transmit().unwrap().payload.len(), 1472);
}

#[test]
fn each_data_error_has_its_own_counter_and_answer() {
    let mut switch = Harness::formed(2);
    switch.data(1, 0, 0, &[1.0, 1.0]);
    let finite = |floats: &[f32]| data(0, 0, floats);
    let cases: Vec<(Vec<u8>, DropReason, Answer)> = vec![
        (vec![0; 7], DropReason::Wire(WireError::Truncated), Some((Status::Malformed, 0))),
        (vec![0; 8], DropReason::Wire(WireError::Truncated), Some((Status::Malformed, 0))),
        (vec![0; 15], DropReason::Wire(WireError::MisalignedPayload), Some((Status::Malformed, 0))),
        (vec![0; 9000], DropReason::Wire(WireError::Overlong), Some((Status::Malformed, 0))),
        (data(3, 0, &[1.0, 1.0]), DropReason::SegOutOfRange, Some((Status::SegOutOfRange, 3))),
        (data(2, 0, &[1.0, 1.0]), DropReason::LengthMismatch, Some((Status::LengthMismatch, 12))),
        (finite(&[1.0]), DropReason::LengthMismatch, Some((Status::LengthMismatch, 16))),
        (weighted(0, 0, 2, &[1.0, 1.0]), DropReason::BadWeight, Some((Status::BadWeight, 1))),
        (finite(&[1.0, f32::NAN]), DropReason::NonFinite, Some((Status::NonFinite, 0))),
        (data(1, 0, &[f32::NEG_INFINITY, 1.0]), DropReason::NonFinite, Some((Status::NonFinite, 1))),
    ];
    for (bytes, reason, answer) in cases {
        let before = *switch.counters();
        let sent = switch.send(2, Class::Data, &bytes);
        assert_eq!(switch.only_drop_since(&before), Some(reason), "{bytes:?}");
        let answer = answer.map(|(status, expected)| refusal(2, 0, status, 0, expected));
        assert_eq!(sent, answer.into_iter().collect::<Vec<_>>(), "{reason:?}");
    }
    let before = *switch.counters();
    assert_eq!(switch.data(7, 0, 0, &[1.0; 13]), [refusal(7, 0, Status::UnknownMember, 0, 0)]);
    assert_eq!(switch.only_drop_since(&before), Some(DropReason::UnknownMember));
    assert_eq!(switch.send(2, Class::Data, &[]), []);
    assert_eq!(
        switch.data(2, 0, 0, &[1.0, 2.0])[0],
        result(1, 0, 0, 2, &[2.0, 3.0]),
        "no sum should have changed"
    );
}

#[test]
fn each_control_error_has_its_own_counter_and_answer() {
    let mut switch = Harness::formed(1);
    let leave = control(JOB, 4, ControlBody::Leave);
    let with = |at: usize, value: u8| {
        let mut bytes = leave.clone();
        bytes[at] = value;
        bytes
    };
    let long = [&leave[..], &[1]].concat();
    let malformed = Some((Status::Malformed, 0));
    let cases: Vec<(Vec<u8>, WireError, Answer)> = vec![
        (vec![], WireError::Truncated, None),
        (vec![2], WireError::Truncated, None),
        (with(1, 2), WireError::WrongVersion, Some((Status::WrongVersion, 1))),
        (with(0, 99), WireError::UnknownAction, malformed),
        (with(2, 1)[..12].to_vec(), WireError::Truncated, None),
        (with(2, 2), WireError::BadValue, malformed),
        (long, WireError::Overlong, malformed),
        (with(0, 1), WireError::Truncated, malformed),
    ];
    for (bytes, error, answer) in cases {
        let before = *switch.counters();
        let sent = switch.send(1, Class::Control, &bytes);
        assert_eq!(switch.only_drop_since(&before), Some(DropReason::Wire(error)), "{bytes:?}");
        let answer = answer.map(|(status, expected)| refusal(1, 4, status, 0, expected));
        assert_eq!(sent, answer.into_iter().collect::<Vec<_>>(), "{error:?}");
    }
    let foreign = control(JOB + 1, 4, ControlBody::Leave);
    assert_eq!(switch.send(1, Class::Control, &foreign), [refusal(1, 4, Status::ForeignJob, 0, JOB)]);
    assert_eq!(switch.switch.jobs().count(), 1, "the member should still be in the job");
}

fn at_port(port: u8, host: u8) -> Endpoint {
    Endpoint { port: PortId(port), ..endpoint(host) }
}

#[test]
fn a_member_cannot_be_impersonated_from_another_port() {
    let mut switch = Harness::formed(1);
    let packet = data(0, 0, &[1.0, 1.0]);
    switch.switch.handle_datagrams(switch.now(), &at_port(1, 1), Class::Data, &packet, packet.len());
    assert_eq!(switch.counters().drops(DropReason::OtherPort), 1);
    assert_eq!(switch.drain(), []);
}

#[test]
fn a_worker_with_two_cables_is_one_member() {
    let mut switch = Harness::new();
    // Every packet arrives on both ports.
    let both = |switch: &mut Harness, host: u8, class: Class, bytes: &[u8]| {
        let now = switch.now();
        let mut sent = Vec::new();
        for port in [0, 1] {
            if class == Class::Control {
                join_from(&mut switch.switch, now, &at_port(port, host), bytes);
            } else {
                switch.switch.handle_datagrams(now, &at_port(port, host), class, bytes, bytes.len());
                sent.extend(switch.drain());
            }
        }
        sent
    };
    for host in [1, 2] {
        both(&mut switch, host, Class::Control, &control(JOB, 1, ControlBody::Join(join(0))));
    }
    assert_eq!(switch.switch.jobs().next().unwrap().members.len(), 2);
    both(&mut switch, 1, Class::Data, &data(0, 0, &[1.0, 1.0]));
    let sent = both(&mut switch, 2, Class::Data, &data(0, 0, &[2.0, 2.0]));
    assert_eq!(
        sent,
        [1, 2].map(|to| result(to, 0, 0, 2, &[3.0, 3.0])),
        "each contribution should be in the sum once"
    );
}

#[test]
fn a_worker_that_moves_to_another_port_remains_one_member() {
    let mut switch = Harness::formed(2);
    // The first cable of member 1 is cut; member 2 sends heartbeats.
    for _ in 0..6 {
        switch.sleep(u64::from(LEASE_MS) / 10);
        switch.control(2, 0, ControlBody::HEARTBEAT);
    }
    let now = switch.now();
    let heartbeat = control(JOB, 0, ControlBody::HEARTBEAT);
    switch.switch.handle_datagrams(now, &at_port(1, 1), Class::Control, &heartbeat, heartbeat.len());
    assert_eq!(
        switch.drain(),
        [refusal(1, 0, Status::UnknownMember, 0, 0)],
        "the member should have to rejoin"
    );
    join_from(&mut switch.switch, now, &at_port(1, 1), &control(JOB, 2, ControlBody::Join(join(2))));
    let members = switch.switch.jobs().next().unwrap().members;
    assert_eq!(members.len(), 2, "{members:?}");
    assert!(switch.events().contains(&Event::Left {
        job: JOB,
        member: 0,
        address: endpoint(1).peer,
        why: Departure::Restarted
    }));
}

#[test]
fn results_follow_a_member_whose_mac_address_changes() {
    let mut switch = Harness::formed(2);
    let moved = Endpoint { peer_mac: [2, 0, 0, 0, 0, 9], ..endpoint(1) };
    let packet = data(0, 0, &[1.0, 1.0]);
    switch.switch.handle_datagrams(switch.now(), &moved, Class::Data, &packet, packet.len());
    let packet = data(0, 0, &[2.0, 2.0]);
    switch.switch.handle_datagrams(switch.now(), &endpoint(2), Class::Data, &packet, packet.len());
    let sent = switch.switch.poll_transmit().expect("the switch should send a result");
    let macs: Vec<_> = sent.recipients().map(|to| to.peer_mac).collect();
    assert_eq!(macs, [moved.peer_mac, endpoint(2).peer_mac]);
}

#[test]
fn an_overflowing_sum_is_infinite_for_all_members() {
    let mut switch = Harness::formed(2);
    switch.data(1, 0, 0, &[f32::MAX, 1.0]);
    let sum = [f32::INFINITY, 2.0];
    assert_eq!(switch.data(2, 0, 0, &[f32::MAX, 1.0]), [1, 2].map(|to| result(to, 0, 0, 2, &sum)));
    // A parent accepts an infinite partial sum of a child switch like any other contribution.
    let mut parent = Harness::new();
    for host in [1, 2] {
        parent.join(host, JoinRepr { kind: Kind::Switch, weight: 2, height: 1, ..join(4) });
    }
    parent.send(1, Class::Data, &weighted(0, 0, 2, &sum));
    let sent = parent.send(2, Class::Data, &weighted(0, 0, 2, &[1.0, 1.0]));
    assert_eq!(sent, [1, 2].map(|to| result(to, 0, 0, 4, &[f32::INFINITY, 3.0])));
}

#[test]
fn non_finite_values_are_summed_on_request() {
    let config = Config { non_finite: NonFinite::Sum, memory_bytes: 1 << 20, ..Config::default() };
    let mut switch = Harness::with(config);
    switch.join(1, join(1));
    let sent = switch.data(1, 2, 0, &[f32::from_bits(0xFFFF_FFFF)]);
    let [Sent::Result { floats, .. }] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(floats[0].to_bits(), 0x7FC0_0000);
}

#[test]
fn a_partial_sum_may_contain_many_gradients() {
    let mut switch = Harness::new();
    switch.join(1, JoinRepr { kind: Kind::Switch, ..join(2) });
    switch.join(2, join(2));
    switch.send(1, Class::Data, &weighted(2, 0, 40_000, &[10.0]));
    assert_eq!(switch.data(2, 2, 0, &[1.0])[0], result(1, 2, 0, 40_001, &[11.0]));
}

proptest! {
    /// The result is the sum of the two contributions, regardless of the other bytes that members and non-members send.
    #[test]
    fn arbitrary_bytes_cause_no_panic_and_change_no_sum(
        noise in proptest::collection::vec(
            (1u8..5, any::<bool>(), proptest::collection::vec(any::<u8>(), 0..60), 1usize..40), 0..40,
        ),
    ) {
        let mut switch = Harness::formed(2);
        for (at, (host, is_control, mut bytes, stride)) in noise.into_iter().enumerate() {
            if at == 20 {
                switch.data(1, 2, 0, &[1.0]);
            }
            // Noise must not be a valid Leave or contribution, so it gets a wrong version or index.
            let class = if is_control { Class::Control } else { Class::Data };
            if is_control && bytes.len() > 1 {
                bytes[1] = 7;
            }
            for datagram in bytes.chunks_mut(stride).filter(|_| !is_control) {
                if let Some(byte) = datagram.get_mut(2) { *byte = 0xff; }
            }
            if is_control {
                switch.send(host, class, &bytes);
            } else {
                switch.send_frame(host, class, &bytes, stride);
            }
        }
        switch.data(1, 2, 0, &[1.0]);
        let sent = switch.data(2, 2, 0, &[2.0]);
        prop_assert_eq!(&sent[0], &result(1, 2, 0, 2, &[3.0]));
    }
}
