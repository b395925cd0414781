//! Asynchronous aggregation in the core: whole vectors, aggregates, cached results and digests.

use std::collections::BTreeMap;

use crate::common::{Harness, JOB, LEASE_MS, Sent, control, data, endpoint, join, range, result, weighted};
use iswitch_protocol::limits::{MAX_DIGESTS, async_generations};
use iswitch_protocol::wire::control::SegmentSetRepr;
use iswitch_protocol::wire::{
    Class, ControlBody, ControlPacket, ControlRepr, DigestRepr, JoinRepr, Kind, Mode, ResumeRepr, Status,
};
use iswitch_protocol::{Round, history};
use iswitch_switch::{Config, DropReason, Event};
use proptest::prelude::*;

/// Number of aggregates that the switch keeps in a job with a vector of five floats, including the one that is being
/// filled.
const GENERATIONS: u32 = async_generations(5) as u32;
/// Bitmap of the three segments of the vector.
const ALL: u8 = 0b111;
/// Epoch of the first job of the switch in the harness.
const EPOCH: u64 = 0x7b9c_fc1a_ce9e_b496;

fn asynchronous(workers: u16) -> JoinRepr {
    JoinRepr { mode: Mode::Asynchronous, instance: instance_of(1, EPOCH), ..join(workers) }
}

/// Returns the instance whose first vector has the number `first` in a job with this epoch.
fn instance_of(first: u32, epoch: u64) -> u32 {
    first.wrapping_sub(epoch as u32)
}

/// Returns a switch with a job whose members 1 to `workers` have joined. The first vector of each has number 1.
fn formed(workers: u8) -> Harness {
    let mut switch = Harness::new();
    for host in 1..=workers {
        switch.join(host, asynchronous(u16::from(workers)));
    }
    switch
}

/// Returns a packet with one segment of a vector whose elements are all `x`.
fn segment(index: u32, vector: u32, x: f32) -> Vec<u8> {
    let floats = if index == 2 { 1 } else { 2 };
    data(index, vector, &[x; 2][..floats])
}

fn send(switch: &mut Harness, host: u8, vector: u32, x: f32) -> Vec<Sent> {
    (0..3).flat_map(|index| switch.send(host, Class::Data, &segment(index, vector, x))).collect()
}

/// Returns the results of an aggregate, sent to each of `hosts`.
fn results(hosts: &[u8], aggregate: u32, contributions: u16, x: f32) -> Vec<Sent> {
    let floats = |index| if index == 2 { vec![x] } else { vec![x; 2] };
    let of = |to| (0..3).map(move |index| result(to, index, aggregate, contributions, &floats(index)));
    hosts.iter().flat_map(|to| of(*to)).collect()
}

fn set(round: u32, bitmap: &[u8]) -> SegmentSetRepr<'_> {
    SegmentSetRepr { range: range(round, 0, 3), bitmap }
}

fn confirm(switch: &mut Harness, host: u8, vector: u32) -> Sent {
    let mut sent = switch.control(host, 9, ControlBody::Confirm(set(vector, &[ALL])));
    assert_eq!(sent.len(), 1, "{sent:?}");
    sent.remove(0)
}

fn ack(to: u8, round: u32, expected: u32, missing: &[u32]) -> Sent {
    Sent::Ack { to, request: 9, status: Status::Success, round, expected, missing: missing.to_vec() }
}

fn refusal(to: u8, request: u32, status: Status, round: u32, expected: u32) -> Sent {
    Sent::Ack { to, request, status, round, expected, missing: Vec::new() }
}

fn digest(switch: &mut Harness, host: u8, round: u32, digest: u64) -> Vec<Sent> {
    let reported = DigestRepr { round: Round::new(round), digest };
    switch.control(host, 9, ControlBody::Digest(reported))
}

#[test]
fn an_aggregate_sums_the_first_h_complete_vectors_of_any_members() {
    let mut switch = formed(2);
    assert_eq!(send(&mut switch, 1, 1, 1.0), []);
    assert_eq!(confirm(&mut switch, 1, 1), ack(1, 0, 1, &[]));
    assert_eq!(send(&mut switch, 1, 2, 10.0), results(&[1, 2], 0, 2, 11.0), "two vectors of one member");
    send(&mut switch, 2, 1, 5.0);
    assert_eq!(send(&mut switch, 1, 3, 100.0), results(&[1, 2], 1, 2, 105.0));
    assert_eq!(confirm(&mut switch, 2, 1), ack(2, 1, 1, &[]));
    assert_eq!(confirm(&mut switch, 1, 3), ack(1, 1, 1, &[]));
}

#[test]
fn an_incomplete_vector_blocks_no_member_and_enters_no_sum() {
    let mut switch = formed(2);
    switch.send(2, Class::Data, &segment(0, 1, 7.0));
    send(&mut switch, 1, 1, 1.0);
    assert_eq!(send(&mut switch, 1, 2, 2.0), results(&[1, 2], 0, 2, 3.0));
    assert_eq!(confirm(&mut switch, 2, 1), ack(2, 0, 0, &[1, 2]), "the vector should be in no aggregate yet");
    switch.send(2, Class::Data, &segment(2, 1, 7.0));
    switch.send(2, Class::Data, &segment(1, 1, 7.0));
    assert_eq!(send(&mut switch, 1, 3, 1.0), results(&[1, 2], 1, 2, 8.0), "the vector is completed");
}

#[test]
fn duplicate_segments_change_nothing() {
    let mut switch = formed(2);
    switch.send(1, Class::Data, &segment(0, 1, 1.0));
    assert_eq!(switch.send(1, Class::Data, &segment(0, 1, 9.0)), []);
    assert_eq!(switch.counters().drops(DropReason::Duplicate), 1);
    send(&mut switch, 1, 1, 1.0);
    assert_eq!(switch.send(1, Class::Data, &segment(2, 1, 9.0)), [], "admitted");
    assert_eq!(switch.counters().drops(DropReason::Late), 1);
    assert_eq!(send(&mut switch, 2, 1, 1.0), results(&[1, 2], 0, 2, 2.0));
    assert_eq!(send(&mut switch, 1, 1000, 1.0), [], "a vector number far ahead should be dropped");
    assert_eq!(switch.counters().drops(DropReason::EarlyRound), 3);
    assert_eq!(
        switch.control(1, 9, ControlBody::Confirm(set(1000, &[ALL]))),
        [refusal(1, 9, Status::StaleRound, 2, 0)]
    );
}

#[test]
fn a_member_may_abandon_a_vector_for_a_later_one() {
    let mut switch = formed(1);
    switch.send(1, Class::Data, &segment(0, 1, 7.0));
    switch.send(1, Class::Data, &segment(1, 1, 7.0));
    switch.send(1, Class::Data, &segment(2, 3, 1.0));
    assert_eq!(confirm(&mut switch, 1, 3), ack(1, 0, 0, &[0, 1]));
    assert_eq!(switch.send(1, Class::Data, &segment(2, 1, 7.0)), [], "the vector was given up");
    assert_eq!(send(&mut switch, 1, 3, 1.0), results(&[1], 0, 1, 1.0));
}

#[test]
fn a_restarted_worker_numbers_its_vectors_from_its_instance() {
    let mut switch = formed(2);
    switch.send(1, Class::Data, &segment(0, 1, 7.0));
    switch.join(1, JoinRepr { instance: instance_of(0x50_0000, EPOCH), ..asynchronous(2) });
    assert_eq!(switch.send(1, Class::Data, &segment(1, 1, 7.0)), [], "a packet from the previous process");
    assert_eq!(confirm(&mut switch, 1, 0x50_0000), ack(1, 0, 0, &[0, 1, 2]));
    send(&mut switch, 1, 0x50_0000, 1.0);
    assert_eq!(send(&mut switch, 2, 1, 1.0), results(&[1, 2], 0, 2, 2.0));
}

#[test]
fn no_vector_is_accepted_before_all_workers_have_joined() {
    let mut switch = Harness::new();
    switch.join(1, asynchronous(2));
    assert_eq!(send(&mut switch, 1, 1, 1.0), []);
    assert_eq!(confirm(&mut switch, 1, 1), ack(1, 0, 0, &[0, 1, 2]));
    switch.join(2, asynchronous(2));
    send(&mut switch, 1, 1, 1.0);
    assert_eq!(send(&mut switch, 2, 1, 1.0), results(&[1, 2], 0, 2, 2.0));
}

#[test]
fn a_vector_with_a_non_finite_float_is_not_admitted() {
    let mut switch = formed(1);
    switch.send(1, Class::Data, &segment(0, 1, 1.0));
    let sent = switch.send(1, Class::Data, &segment(1, 1, f32::NAN));
    assert_eq!(sent, [refusal(1, 0, Status::NonFinite, 1, 1)]);
    switch.send(1, Class::Data, &segment(2, 1, 1.0));
    assert_eq!(confirm(&mut switch, 1, 1), ack(1, 0, 0, &[1]));
    let weight = switch.send(1, Class::Data, &weighted(1, 1, 2, &[1.0, 1.0]));
    assert_eq!(weight, [refusal(1, 0, Status::BadWeight, 0, 1)]);
}

#[test]
fn segments_of_one_vector_from_a_child_switch_must_have_equal_weights() {
    let mut switch = Harness::new();
    switch.join(1, JoinRepr { kind: Kind::Switch, weight: 3, ..asynchronous(3) });
    switch.send(1, Class::Data, &weighted(0, 1, 3, &[1.0, 1.0]));
    let sent = switch.send(1, Class::Data, &weighted(1, 1, 2, &[1.0, 1.0]));
    assert_eq!(sent, [refusal(1, 0, Status::BadWeight, 0, 1)]);
    switch.send(1, Class::Data, &weighted(1, 1, 3, &[1.0, 1.0]));
    assert_eq!(switch.send(1, Class::Data, &weighted(2, 1, 3, &[1.0])), results(&[1], 0, 3, 1.0));
}

#[test]
fn recent_results_are_kept_for_retransmission() {
    let mut switch = formed(1);
    let kept = GENERATIONS - 1;
    for aggregate in 0..=kept {
        assert_eq!(send(&mut switch, 1, 1 + aggregate, 1.0), results(&[1], aggregate, 1, 1.0));
    }
    let sent = switch.control(1, 9, ControlBody::Help(set(1, &[0b101])));
    assert_eq!(sent[0], ack(1, kept, 0, &[]));
    assert_eq!(sent[1..], [result(1, 0, 1, 1, &[1.0, 1.0]), result(1, 2, 1, 1, &[1.0])]);
    let sent = switch.control(1, 9, ControlBody::Help(set(0, &[ALL])));
    assert_eq!(
        sent,
        [refusal(1, 9, Status::StaleRound, 1, 0)],
        "the refusal should name the oldest cached aggregate"
    );
    let sent = switch.control(1, 9, ControlBody::Help(set(kept + 1, &[ALL])));
    assert_eq!(sent, [ack(1, kept, 0, &[])], "an unfinished aggregate should have no results");
}

#[test]
fn the_default_threshold_decreases_when_members_leave() {
    let mut switch = formed(3);
    send(&mut switch, 1, 1, 1.0);
    send(&mut switch, 2, 1, 2.0);
    let mut sent = switch.control(3, 2, ControlBody::Leave);
    assert_eq!(sent.remove(0), refusal(3, 2, Status::Success, 0, 0));
    assert_eq!(sent, results(&[1, 2], 0, 2, 3.0), "two vectors of two members should be enough");
    switch.control(1, 3, ControlBody::SetH { threshold: 3 });
    send(&mut switch, 1, 2, 1.0);
    send(&mut switch, 1, 3, 1.0);
    assert_eq!(
        switch.control(2, 4, ControlBody::Leave).len(),
        1,
        "the aggregate should still wait for three vectors"
    );
    assert_eq!(send(&mut switch, 1, 4, 1.0), results(&[1], 1, 3, 3.0));
}

#[test]
fn the_contribution_of_an_expelled_silent_member_stays_in_the_sum() {
    let mut switch = formed(2);
    send(&mut switch, 2, 1, 5.0);
    let mut sent = Vec::new();
    for _ in 0..6 {
        sent.extend(switch.sleep(u64::from(LEASE_MS) / 4));
        let empty = SegmentSetRepr { range: range(0, 0, 0), bitmap: &[] };
        switch.control(1, 0, ControlBody::Help(empty));
    }
    assert_eq!(sent, results(&[1], 0, 1, 5.0));
}

#[test]
fn fbcast_completes_all_segments_of_the_aggregate() {
    let mut switch = formed(3);
    let fbcast = |aggregate| ControlBody::FBcast(range(aggregate, 1, 1));
    assert_eq!(switch.control(1, 9, fbcast(0)), [ack(1, 0, 0, &[])], "the aggregate is empty");
    assert_eq!(
        switch.control(1, 9, fbcast(1)),
        [refusal(1, 9, Status::StaleRound, 0, 0)],
        "not being filled"
    );
    send(&mut switch, 2, 1, 4.0);
    let sent = switch.control(1, 9, fbcast(0));
    assert_eq!(sent[0], ack(1, 0, 0, &[]));
    assert_eq!(sent[1..], results(&[1, 2, 3], 0, 1, 4.0));
    assert_eq!(
        switch.control(1, 9, fbcast(0)),
        [refusal(1, 9, Status::StaleRound, 1, 0)],
        "aggregate 0 is finished"
    );
}

#[test]
fn a_lagging_member_gets_the_history_before_the_oldest_kept_result() {
    let mut switch = formed(1);
    let aggregates = GENERATIONS + 5;
    (1..=aggregates).for_each(|vector| drop(send(&mut switch, 1, vector, 1.0)));
    let oldest = aggregates + 1 - GENERATIONS;
    let help = control(JOB, 9, ControlBody::Help(set(0, &[ALL])));
    switch.switch.handle_datagrams(switch.now(), &endpoint(1), Class::Control, &help, help.len());
    let sent = switch.switch.poll_transmit().unwrap();
    let packet = ControlPacket::new_checked(sent.payload).unwrap();
    let Ok(ControlRepr { body: ControlBody::Ack(ack), .. }) = ControlRepr::parse(&packet) else {
        panic!("expected an Ack")
    };
    let begin = history::begin(EPOCH, JOB, Round::new(0));
    let expected = (0..oldest).fold(begin, |before, round| history::after(before, EPOCH, Round::new(round)));
    assert_eq!((ack.status, ack.round.get(), ack.history), (Status::StaleRound, oldest, expected));
}

#[test]
fn an_asynchronous_job_is_halted_and_reset_like_a_synchronous_one() {
    let mut switch = formed(2);
    switch.send(2, Class::Data, &segment(0, 1, 9.0));
    send(&mut switch, 1, 1, 9.0);
    switch.control(1, 2, ControlBody::Halt);
    let halted = refusal(2, 0, Status::Halted, 0, 0);
    assert_eq!(switch.send(2, Class::Data, &segment(1, 1, 9.0)), [halted]);
    assert_eq!(confirm(&mut switch, 2, 1), refusal(2, 9, Status::Halted, 0, 0));
    switch.control(1, 3, ControlBody::RESET);
    for host in [1, 2] {
        switch.join(host, asynchronous(2));
    }
    let first = switch.first_vector(JOB, asynchronous(2).instance);
    assert_eq!(confirm(&mut switch, 2, first), ack(2, 2, 0, &[0, 1, 2]), "the staged segments are discarded");
    send(&mut switch, 2, first, 1.0);
    assert_eq!(
        send(&mut switch, 1, first, 1.0),
        results(&[1, 2], 2, 2, 2.0),
        "the unfinished aggregate is discarded"
    );
}

#[test]
fn results_of_a_long_vector_are_sent_as_super_frames() {
    let mut switch = Harness::with(Config { memory_bytes: 32 << 20, ..Config::default() });
    let big = JoinRepr { gradient_len: 366 * 1000, segment_floats: 366, ..asynchronous(1) };
    switch.join(1, big);
    let mut sent = Vec::new();
    for index in 0..1000 {
        sent.extend(switch.data(1, index, 1, &[1.0; 366]));
    }
    assert_eq!(sent.len(), 1000);
    assert_eq!(switch.counters().results, 1000);
    assert!(matches!(&sent[999], Sent::Result { index: 999, round: 0, contributions: 1, .. }));
}

#[test]
fn a_driver_that_does_not_drain_output_corrupts_no_result() {
    let mut switch = Harness::with(Config { memory_bytes: 4 << 20, ..Config::default() });
    let big = JoinRepr { gradient_len: 366 * 100, segment_floats: 366, ..asynchronous(1) };
    switch.join(1, big);
    (0..99).for_each(|index| drop(switch.data(1, index, 1, &[1.0; 366])));
    let last = data(99, 1, &[1.0; 366]);
    switch.switch.handle_datagrams(switch.now(), &endpoint(1), Class::Data, &last, last.len());
    // The first super-frame has been sent, but the end of the vector is not yet added.
    assert!(switch.switch.poll_transmit().is_some());
    let next = data(0, 2, &[9.0; 366]);
    switch.switch.handle_datagrams(switch.now(), &endpoint(1), Class::Data, &next, next.len());
    assert_eq!(switch.counters().drops(DropReason::Busy), 1);
    assert_eq!(switch.drain().len(), 100 - 44);
    assert_eq!(switch.data(1, 0, 2, &[9.0; 366]), [], "the segment should now be accepted");
    assert_eq!(switch.counters().dropped(), 1);
}

#[test]
fn the_memory_of_a_job_covers_all_its_aggregates_and_vectors() {
    let floats = (async_generations(5_000) + 2) * 5_000;
    let join = JoinRepr { gradient_len: 5_000, segment_floats: 366, ..asynchronous(2) };
    let mut enough = Harness::with(Config { memory_bytes: floats * 4, ..Config::default() });
    assert!(matches!(enough.join(1, join), Sent::Ack { status: Status::Success, .. }));
    let mut less = Harness::with(Config { memory_bytes: floats * 4 - 4, ..Config::default() });
    assert!(matches!(less.join(1, join), Sent::Ack { status: Status::NoCapacity, .. }));
}

#[test]
fn requests_of_the_other_mode_are_refused() {
    let mut switch = Harness::formed(2);
    let sent = switch.join(1, asynchronous(2));
    assert_eq!(sent, refusal(1, 1, Status::ModeMismatch, 0, 0));
    assert_eq!(confirm(&mut switch, 1, 1), refusal(1, 9, Status::ModeMismatch, 0, 0));
    let mut switch = formed(1);
    assert_eq!(switch.join(1, join(1)), refusal(1, 1, Status::ModeMismatch, 0, 1));
}

/// Returns the history of a member that has the results of the first `aggregates` aggregates.
fn history_after(aggregates: u32) -> u64 {
    let begin = history::begin(EPOCH, JOB, Round::new(0));
    (0..aggregates).fold(begin, |before, round| history::after(before, EPOCH, Round::new(round)))
}

fn resumes(workers: u16, round: u32, history: u64) -> JoinRepr {
    let resume = ResumeRepr {
        round: Round::new(round),
        members: workers,
        weight: workers,
        threshold: 0,
        history,
        previous: 0,
        behind: 0,
        fresh: false,
    };
    JoinRepr { instance: 2, resume: Some(resume), ..asynchronous(workers) }
}

/// Makes a host join, and returns the status and the round of the Ack.
fn standing(switch: &mut Harness, host: u8, join: JoinRepr) -> (Status, u32) {
    match switch.join(host, join) {
        Sent::Ack { status, round, .. } => (status, round),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_expelled_member_resumes_if_the_results_it_missed_are_kept() {
    let mut switch = Harness::new();
    switch.join(1, asynchronous(0));
    switch.join(2, asynchronous(0));
    switch.control(1, 3, ControlBody::SetH { threshold: 1 });
    (0..3).for_each(|vector| drop(send(&mut switch, 1, 1 + vector, 1.0)));
    switch.control(2, 4, ControlBody::Leave);
    (3..6).for_each(|vector| drop(send(&mut switch, 1, 1 + vector, 1.0)));
    assert_eq!(standing(&mut switch, 2, resumes(0, 3, history_after(3))), (Status::Success, 3));
    let sent = switch.control(2, 9, ControlBody::Help(set(3, &[ALL])));
    assert_eq!(sent[1..], results(&[2], 3, 1, 1.0));
    // For one lease after the job was created, the switch would treat the next member as a member of the earlier run.
    for _ in 0..8 {
        switch.sleep(u64::from(LEASE_MS) / 4);
        switch.control(1, 0, ControlBody::HEARTBEAT);
    }
    assert_eq!(standing(&mut switch, 3, resumes(0, 3, 77)), (Status::Success, 6), "fresh, from another job");
}

#[test]
fn after_a_restart_the_switch_resumes_from_the_most_advanced_member() {
    let mut switch = Harness::new();
    switch.join(1, resumes(3, 20, 0x20));
    switch.join(2, resumes(3, 22, 0x22));
    let sent = switch.control(3, 1, ControlBody::Join(resumes(3, 22, 0x22)));
    let rounds: Vec<_> = sent
        .iter()
        .map(|sent| match sent {
            Sent::Ack { round, .. } => *round,
            other => panic!("{other:?}"),
        })
        .collect();
    let base = rounds[0];
    assert!(base >= 24, "no packet of the earlier run should name this round");
    assert_eq!(rounds, [base; 3]);
    let resumed = Event::JobResumed { job: JOB, members: 3, round: Round::new(base) };
    assert!(switch.events().contains(&resumed));
    let first = switch.first_vector(JOB, resumes(3, 20, 0x20).instance);
    for host in 1..=3 {
        let done = send(&mut switch, host, first, 1.0);
        assert_eq!(done, if host < 3 { vec![] } else { results(&[1, 2, 3], base, 3, 3.0) });
    }
}

#[test]
fn differing_digests_are_reported_once() {
    for (mut switch, vector) in [(formed(3), 1), (Harness::formed(3), 0)] {
        (1..=3).for_each(|host| drop(send(&mut switch, host, vector, 1.0)));
        assert_eq!(digest(&mut switch, 1, 0, 0xaa).len(), 1);
        assert!(matches!(digest(&mut switch, 2, 0, 0xaa)[..], [Sent::Ack { status: Status::Success, .. }]));
        switch.events();
        let diverged = [refusal(3, 9, Status::Diverged, 0, 0)];
        assert_eq!(digest(&mut switch, 3, 0, 0xbb), diverged);
        assert_eq!(digest(&mut switch, 3, 0, 0xbb), diverged, "a repeated request should be refused again");
        let event = Event::Diverged { job: JOB, round: Round::new(0), member: 2, other: 0 };
        assert_eq!(switch.events(), [event], "the divergence should be reported once");
        assert_eq!(switch.switch.jobs().next().unwrap().diverged, 1);
        let early = digest(&mut switch, 1, 5, 0xaa);
        assert!(
            matches!(early[..], [Sent::Ack { status: Status::StaleRound, .. }]),
            "the round is in the future"
        );
    }
}

#[test]
fn only_the_digests_of_recent_rounds_are_kept() {
    let mut switch = Harness::new();
    switch.join(1, asynchronous(0));
    switch.join(2, asynchronous(0));
    switch.control(1, 3, ControlBody::SetH { threshold: 1 });
    for round in 0..=MAX_DIGESTS as u32 {
        send(&mut switch, 1, 1 + round, 1.0);
        digest(&mut switch, 1, round, u64::from(round));
    }
    let is_refused = |switch: &mut Harness, round| {
        matches!(digest(switch, 2, round, 0xbad)[..], [Sent::Ack { status: Status::Diverged, .. }])
    };
    assert!(!is_refused(&mut switch, 0), "forgotten");
    assert!((1..=MAX_DIGESTS as u32).all(|round| is_refused(&mut switch, round)));
}

/// Vector that a member of the model is sending.
#[derive(Clone, Copy)]
struct Sender {
    vector: u32,
    staged: u8,
    taken_by: Option<u32>,
}

/// Model of the expected aggregates.
#[derive(Default)]
struct Model {
    senders: BTreeMap<u8, Sender>,
    pinned: Option<usize>,
    /// Values of the vectors in the aggregate that is being filled. The aggregate is finished when it contains
    /// `threshold` vectors.
    filling: Vec<f32>,
    threshold: usize,
    finished: Vec<(f32, u16)>,
}

/// Returns the integer in all elements of a vector of a member. Sums of these integers are exact, and show which
/// vectors they contain.
fn value(host: u8, vector: u32) -> f32 {
    (u32::from(host) * 1009 + vector * 13) as f32
}

impl Model {
    fn h(&self) -> usize {
        self.pinned.unwrap_or(self.senders.len())
    }

    fn stage(&mut self, host: u8, vector: u32, index: u32) {
        let h = self.h();
        let Some(sender) = self.senders.get_mut(&host) else { return };
        if vector < sender.vector {
            return;
        }
        if vector > sender.vector {
            *sender = Sender { vector, staged: 0, taken_by: None };
        }
        sender.staged |= 1 << index;
        if sender.staged != ALL {
            return;
        }
        *sender = Sender { vector: vector + 1, staged: 0, taken_by: Some(self.finished.len() as u32) };
        if self.filling.is_empty() {
            self.threshold = h;
        }
        self.filling.push(value(host, vector));
        if self.filling.len() >= self.threshold {
            self.finish();
        }
    }

    fn finish(&mut self) {
        self.finished.push((self.filling.iter().sum(), self.filling.len() as u16));
        self.filling.clear();
    }

    fn leave(&mut self, host: u8) {
        if self.senders.remove(&host).is_none() {
            return;
        }
        if self.pinned.is_none() {
            self.threshold = self.threshold.min(self.senders.len());
        }
        if !self.filling.is_empty() && self.filling.len() >= self.threshold && !self.senders.is_empty() {
            self.finish();
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A segment arrives that belongs to the vector that the member is sending, or to a vector that is `shift` numbers
    /// later.
    Segment {
        host: u8,
        shift: i8,
        index: u32,
    },
    Confirm(u8),
    Join(u8),
    Leave(u8),
    SetH(u16),
    Help {
        host: u8,
        back: u32,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let shift = prop_oneof![20 => Just(0i8), 3 => -2i8..=-1, 1 => 1i8..=2];
    let segment =
        (1u8..=4, shift, 0u32..3).prop_map(|(host, shift, index)| Step::Segment { host, shift, index });
    prop_oneof![
        40 => segment,
        5 => (1u8..=4).prop_map(Step::Confirm),
        2 => (1u8..=4).prop_map(Step::Join),
        1 => (2u8..=4).prop_map(Step::Leave),
        1 => (0u16..=3).prop_map(Step::SetH),
        3 => (1u8..=4, 0..GENERATIONS + 2).prop_map(|(host, back)| Step::Help { host, back }),
    ]
}

/// Comparison of the switch with the model.
struct Comparison {
    switch: Harness,
    model: Model,
    /// Number of finished aggregates whose results have been sent.
    published: usize,
}

impl Comparison {
    fn new() -> Self {
        let mut comparison = Self { switch: Harness::new(), model: Model::default(), published: 0 };
        (1..=2).for_each(|host| comparison.step(Step::Join(host)));
        comparison
    }

    fn step(&mut self, step: Step) {
        let sent = match step {
            Step::Segment { host, shift, index } => {
                let expected = self.model.senders.get(&host).map_or(1, |sender| sender.vector);
                let vector = expected.saturating_add_signed(i32::from(shift)).max(1);
                self.model.stage(host, vector, index);
                self.switch.send(host, Class::Data, &segment(index, vector, value(host, vector)))
            }
            Step::Confirm(host) => return self.confirm(host),
            Step::Join(host) => {
                // The first member never leaves, so that the job does not end.
                if let std::collections::btree_map::Entry::Vacant(place) = self.model.senders.entry(host) {
                    place.insert(Sender { vector: 1, staged: 0, taken_by: None });
                }
                self.switch.control(host, 1, ControlBody::Join(asynchronous(0)))
            }
            Step::Leave(host) => {
                self.model.leave(host);
                self.switch.control(host, 2, ControlBody::Leave)
            }
            Step::SetH(threshold) => {
                self.model.pinned = (threshold > 0).then_some(usize::from(threshold));
                self.switch.control(1, 3, ControlBody::SetH { threshold })
            }
            Step::Help { host, back } => return self.help(host, back),
        };
        self.check_published(&sent);
    }

    /// Checks that each member immediately receives the result of each finished aggregate, and that the aggregate is
    /// the sum of exactly its vectors.
    fn check_published(&mut self, sent: &[Sent]) {
        let results: Vec<_> = sent.iter().filter(|sent| matches!(sent, Sent::Result { .. })).collect();
        let members: Vec<_> = self.model.senders.keys().copied().collect();
        let mut expected = Vec::new();
        for (aggregate, (sum, count)) in self.model.finished.iter().enumerate().skip(self.published) {
            expected.extend(self::results(&members, aggregate as u32, *count, *sum));
        }
        self.published = self.model.finished.len();
        let key = |sent: &Sent| format!("{sent:?}");
        let (mut results, mut wanted): (Vec<_>, Vec<_>) =
            (results.into_iter().map(key).collect(), expected.iter().map(key).collect());
        results.sort();
        wanted.sort();
        assert_eq!(results, wanted);
    }

    fn confirm(&mut self, host: u8) {
        let Some(Sender { vector, staged, taken_by }) = self.model.senders.get(&host).copied() else {
            return;
        };
        let missing: Vec<_> = (0..3).filter(|index| staged >> index & 1 == 0).collect();
        match confirm(&mut self.switch, host, vector) {
            Sent::Ack { status, expected, missing: reported, .. } => {
                assert_eq!((status, expected, reported), (Status::Success, 0, missing));
            }
            other => panic!("{other:?}"),
        }
        if let Some(aggregate) = taken_by {
            assert_eq!(confirm(&mut self.switch, host, vector - 1), ack(host, aggregate, 1, &[]));
        }
    }

    fn help(&mut self, host: u8, back: u32) {
        if !self.model.senders.contains_key(&host) {
            return;
        }
        let finished = self.model.finished.len() as u32;
        let Some(aggregate) = finished.checked_sub(back) else { return };
        let sent = self.switch.control(host, 9, ControlBody::Help(set(aggregate, &[ALL])));
        match self.model.finished.get(aggregate as usize) {
            Some((sum, count)) if back < GENERATIONS => {
                assert_eq!(sent[1..], results(&[host], aggregate, *count, *sum));
            }
            Some(_) => {
                let oldest = finished + 1 - GENERATIONS;
                assert_eq!(sent, [refusal(host, 9, Status::StaleRound, oldest, 0)]);
            }
            None => assert_eq!(sent.len(), 1),
        }
    }
}

proptest! {
    #[test]
    fn aggregates_are_exact_for_any_packet_sequence(steps in proptest::collection::vec(step(), 0..600)) {
        let mut comparison = Comparison::new();
        for step in steps {
            comparison.step(step);
        }
    }
}
