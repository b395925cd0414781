//! Asynchronous jobs in a tree: whole vectors are sent to the root in partial sums, and aggregates are sent back to the
//! workers.

use std::net::SocketAddrV4;

use iswitch_protocol::wire::control::SegmentSetRepr;
use iswitch_protocol::wire::{
    Action, Class, ControlBody, DigestRepr, JoinRepr, Mode, ResumeRepr, Standing, Status,
};
use iswitch_protocol::{Round, history};

use super::tree::{EPOCH, Got, JOB, LEASE_MS, ROOT, Tree, uplink, worker};
use crate::common::{control, data, join, range};

/// Number of segments of the vector.
const SEGMENTS: u64 = 3;
/// Upper bound of the retransmission timeouts of a rack, in milliseconds.
const TIMEOUT_MS: u64 = 300;

fn asynchronous(workers: u16) -> JoinRepr {
    JoinRepr { mode: Mode::Asynchronous, instance: 1u32.wrapping_sub(EPOCH as u32), ..join(workers) }
}

/// Returns a tree whose racks have the given numbers of workers. The vectors of each worker are numbered from 1.
fn formed(places: [u8; 2]) -> Tree {
    let mut tree = Tree::new();
    let workers = u16::from(places[0] + places[1]);
    for (rack, places) in [(1, places[0]), (2, places[1])] {
        (1..=places).for_each(|place| tree.send_join(rack, place, asynchronous(workers)));
    }
    tree.run();
    assert_eq!(tree.standings().len(), usize::from(workers));
    tree
}

fn send_segment(tree: &mut Tree, (rack, place): (usize, u8), vector: u32, index: u32, x: f32) {
    let floats = if index == 2 { 1 } else { 2 };
    tree.send(rack, place, Class::Data, &data(index, vector, &[x; 2][..floats]));
}

/// Sends a whole vector whose elements are all `x`.
fn send(tree: &mut Tree, from: (usize, u8), vector: u32, x: f32) {
    (0..3).for_each(|index| send_segment(tree, from, vector, index, x));
}

fn set(round: u32, bitmap: &[u8]) -> SegmentSetRepr<'_> {
    SegmentSetRepr { range: range(round, 0, 3), bitmap }
}

fn ask(tree: &mut Tree, (rack, place): (usize, u8), body: ControlBody<'_>) {
    tree.send(rack, place, Class::Control, &control(JOB, 9, body));
}

/// Sends a Confirm of a vector. Returns the fields `expected` and `round` of each Ack that answers it.
fn confirm(tree: &mut Tree, from: (usize, u8), vector: u32) -> Vec<(u32, u32)> {
    tree.take();
    ask(tree, from, ControlBody::Confirm(set(vector, &[0b111])));
    confirmed(tree, from)
}

fn confirmed(tree: &mut Tree, (rack, place): (usize, u8)) -> Vec<(u32, u32)> {
    let acks = tree.take().into_iter().filter(|(to, _)| *to == worker(rack, place));
    acks.filter_map(|(_, got)| match got {
        Got::Ack { action: Action::Confirm, status: Status::Success, expected, round, .. } => {
            Some((expected, round))
        }
        _ => None,
    })
    .collect()
}

/// Returns the aggregates that each worker has received completely: for each aggregate, its number, the number of
/// gradients in it and its sum.
fn aggregates(tree: &mut Tree) -> Vec<(SocketAddrV4, u32, u16, f32)> {
    let mut segments: Vec<_> = tree
        .take()
        .into_iter()
        .filter_map(|(to, got)| match got {
            Got::Result { index, round, contributions, first } => {
                Some((to, round, contributions, first, index))
            }
            _ => None,
        })
        .collect();
    segments.sort_by(|a, b| a.partial_cmp(b).unwrap());
    segments.dedup();
    let whole = segments.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).filter(|of_one| of_one.len() == 3);
    whole
        .map(|of_one| {
            assert!(of_one.iter().all(|it| (it.2, it.3) == (of_one[0].2, of_one[0].3)), "{of_one:?}");
            (of_one[0].0, of_one[0].1, of_one[0].2, of_one[0].3)
        })
        .collect()
}

/// Returns the same aggregate once for each of the workers.
fn for_all(
    workers: &[(usize, u8)],
    aggregate: u32,
    gradients: u16,
    sum: f32,
) -> Vec<(SocketAddrV4, u32, u16, f32)> {
    workers.iter().map(|(rack, place)| (worker(*rack, *place), aggregate, gradients, sum)).collect()
}

const FOUR: [(usize, u8); 4] = [(1, 1), (1, 2), (2, 1), (2, 2)];

fn vectors_at_root(tree: &Tree) -> u64 {
    tree.switches[ROOT].counters().contributions / SEGMENTS
}

#[test]
fn vectors_go_up_as_partial_sums_and_aggregates_come_down() {
    let mut tree = formed([2, 2]);
    for (at, from) in FOUR.into_iter().enumerate().take(3) {
        send(&mut tree, from, 1, 10.0 * (at + 1) as f32);
    }
    assert_eq!(aggregates(&mut tree), [], "H should be the number of workers");
    send(&mut tree, (1, 1), 2, 0.5);
    assert_eq!(aggregates(&mut tree), for_all(&FOUR, 0, 4, 60.5), "a fast worker contributes twice");
    send(&mut tree, (2, 2), 1, 3.0);
    assert_eq!(confirm(&mut tree, (2, 2), 1), [(1, 1)]);
    assert_eq!(confirm(&mut tree, (1, 1), 2), [(1, 0)]);
    assert_eq!(vectors_at_root(&tree), 5, "no vector should wait for another one");
}

#[test]
fn vectors_that_are_completed_in_the_meantime_go_up_together() {
    let mut tree = formed([3, 1]);
    tree.cut = vec![*uplink(1).ip()];
    send(&mut tree, (1, 1), 1, 1.0);
    send(&mut tree, (1, 2), 1, 2.0);
    send(&mut tree, (1, 3), 1, 4.0);
    assert_eq!(confirm(&mut tree, (1, 1), 1), [(0, 0)], "the parent has not admitted the vector");
    assert_eq!(confirm(&mut tree, (1, 2), 1), [(0, 0)]);
    tree.cut.clear();
    tree.sleep(TIMEOUT_MS);
    assert_eq!(vectors_at_root(&tree), 2, "the second partial sum should contain two vectors");
    assert_eq!(confirmed(&mut tree, (1, 2)), [(1, 0)], "the Confirm should be answered again");
    send(&mut tree, (2, 1), 1, 8.0);
    let all = [(1, 1), (1, 2), (1, 3), (2, 1)];
    assert_eq!(aggregates(&mut tree), for_all(&all, 0, 4, 15.0));
}

#[test]
fn an_aggregate_may_contain_more_gradients_than_h() {
    let mut tree = formed([3, 1]);
    send(&mut tree, (2, 1), 1, 8.0);
    send(&mut tree, (2, 1), 2, 8.0);
    tree.cut = vec![*uplink(1).ip()];
    for (place, x) in [(1, 1.0), (2, 2.0), (3, 4.0)] {
        send(&mut tree, (1, place), 1, x);
    }
    send(&mut tree, (1, 1), 2, 16.0);
    tree.cut.clear();
    tree.sleep(TIMEOUT_MS);
    let all = [(1, 1), (1, 2), (1, 3), (2, 1)];
    assert_eq!(aggregates(&mut tree), for_all(&all, 0, 6, 39.0), "a partial sum is admitted as a whole");
}

#[test]
fn an_incomplete_vector_never_leaves_its_rack() {
    let mut tree = formed([2, 2]);
    send_segment(&mut tree, (1, 1), 1, 0, 7.0);
    send_segment(&mut tree, (1, 1), 1, 1, 7.0);
    send(&mut tree, (1, 2), 1, 1.0);
    send(&mut tree, (1, 2), 2, 1.0);
    send(&mut tree, (2, 1), 1, 1.0);
    send(&mut tree, (2, 2), 1, 1.0);
    assert_eq!(aggregates(&mut tree), for_all(&FOUR, 0, 4, 4.0));
}

#[test]
fn lost_results_are_fetched_from_the_parent() {
    let mut tree = formed([2, 2]);
    send(&mut tree, (1, 1), 1, 1.0);
    send(&mut tree, (1, 2), 1, 1.0);
    send(&mut tree, (2, 1), 1, 1.0);
    tree.cut = vec![*uplink(1).ip()];
    send(&mut tree, (2, 2), 1, 1.0);
    tree.cut.clear();
    assert_eq!(aggregates(&mut tree), for_all(&FOUR[2..], 0, 4, 4.0));
    ask(&mut tree, (1, 2), ControlBody::Help(set(0, &[0b111])));
    assert_eq!(aggregates(&mut tree), for_all(&FOUR[..2], 0, 4, 4.0), "both workers get the results");
    ask(&mut tree, (1, 1), ControlBody::Help(set(0, &[0b111])));
    assert_eq!(aggregates(&mut tree), for_all(&FOUR[..1], 0, 4, 4.0), "the rack keeps the results");
}

#[test]
fn aggregates_that_the_parent_no_longer_keeps_are_given_up() {
    let mut tree = formed([1, 1]);
    tree.cut = vec![*uplink(1).ip()];
    let kept = iswitch_protocol::limits::async_generations(5) as u32 - 1;
    for vector in 1..=2 * (kept + 4) {
        send(&mut tree, (2, 1), vector, 1.0);
    }
    tree.cut.clear();
    tree.take();
    ask(&mut tree, (1, 1), ControlBody::Help(set(0, &[0b111])));
    tree.take();
    ask(&mut tree, (1, 1), ControlBody::Help(set(0, &[0b111])));
    let refused = tree.take();
    let oldest = 4;
    assert!(
        matches!(refused[..], [(_, Got::Ack { status: Status::StaleRound, round, .. })] if round == oldest),
        "{refused:?}"
    );
    ask(&mut tree, (1, 1), ControlBody::Help(set(oldest, &[0b111])));
    let got = tree.take();
    let begin = history::begin(EPOCH, JOB, Round::new(0));
    let before = (0..oldest).fold(begin, |before, at| history::after(before, EPOCH, Round::new(at)));
    assert!(
        got.iter().any(|(_, got)| matches!(got, Got::Ack { history, .. } if *history == before)),
        "the rack should know the history before {oldest}: {got:?}"
    );
    assert_eq!(got.iter().filter(|(_, got)| matches!(got, Got::Result { .. })).count(), 3);
}

#[test]
fn set_h_and_fbcast_reach_the_topmost_switch() {
    let mut tree = formed([2, 2]);
    tree.take();
    ask(&mut tree, (1, 1), ControlBody::SetH { threshold: 3 });
    let got = tree.take();
    assert!(matches!(
        got[..],
        [(_, Got::Ack { action: Action::SetH, status: Status::Success, threshold: 3, .. })]
    ));
    assert_eq!(tree.switches[ROOT].job_status(JOB).unwrap().threshold, 3);
    for from in &FOUR[..3] {
        send(&mut tree, *from, 1, 1.0);
    }
    assert_eq!(aggregates(&mut tree), for_all(&FOUR, 0, 3, 3.0));
    send(&mut tree, (2, 1), 2, 5.0);
    ask(&mut tree, (1, 1), ControlBody::FBcast(range(0, 0, 3)));
    assert!(matches!(tree.take()[..], [(_, Got::Ack { status: Status::StaleRound, round: 1, .. })]));
    ask(&mut tree, (1, 1), ControlBody::FBcast(range(1, 0, 3)));
    assert_eq!(aggregates(&mut tree), for_all(&FOUR, 1, 1, 5.0));
    ask(&mut tree, (2, 2), ControlBody::SetH { threshold: 65 });
    assert!(matches!(tree.take()[..], [(_, Got::Ack { status: Status::BadThreshold, expected: 64, .. })]));
}

#[test]
fn h_falls_with_the_weight_of_a_rack() {
    let mut tree = formed([2, 2]);
    for from in &FOUR[..3] {
        send(&mut tree, *from, 1, 1.0);
    }
    tree.take();
    ask(&mut tree, (2, 2), ControlBody::Leave);
    let got = aggregates(&mut tree);
    assert_eq!(got, for_all(&FOUR[..3], 0, 3, 3.0), "three gradients should suffice for three workers");
}

/// Returns the Join of a worker that has the sums of the first `sums` aggregates.
fn resuming(sums: u32, instance: u32) -> JoinRepr {
    let begin = history::begin(EPOCH, JOB, Round::new(0));
    let history = (0..sums).fold(begin, |before, at| history::after(before, EPOCH, Round::new(at)));
    let resume = ResumeRepr {
        round: Round::new(sums),
        members: 2,
        weight: 4,
        threshold: 0,
        history,
        previous: 0,
        behind: 0,
        fresh: false,
    };
    JoinRepr { instance, resume: Some(resume), ..asynchronous(4) }
}

#[test]
fn each_worker_of_a_restarted_rack_resumes_at_its_own_aggregate() {
    let mut tree = formed([2, 2]);
    for vector in 1..=2 {
        FOUR.iter().for_each(|from| send(&mut tree, *from, vector, 1.0));
    }
    tree.take();
    tree.restart(1, 201);
    // The first worker has both sums; the second worker lacks the last sum.
    tree.send_join(1, 1, resuming(2, 77));
    tree.send_join(1, 2, resuming(1, 78));
    let resumed = [(worker(1, 1), Standing::Resumed, 2), (worker(1, 2), Standing::Resumed, 1)];
    assert_eq!(tree.standings(), resumed);
    ask(&mut tree, (1, 2), ControlBody::Help(set(1, &[0b111])));
    let got = aggregates(&mut tree);
    assert!(got.contains(&(worker(1, 2), 1, 4, 4.0)), "the root still has the sum: {got:?}");
    // The vectors are numbered from the new instances on.
    let first = |instance| Round::first_vector(instance, EPOCH).get();
    send(&mut tree, (1, 1), first(77), 1.0);
    send(&mut tree, (1, 2), first(78), 1.0);
    send(&mut tree, (2, 1), 3, 1.0);
    send(&mut tree, (2, 2), 3, 1.0);
    assert_eq!(aggregates(&mut tree), for_all(&FOUR, 2, 4, 4.0));
}

#[test]
fn a_worker_that_is_behind_its_restarted_rack_resumes() {
    let mut tree = formed([2, 2]);
    for vector in 1..=3 {
        FOUR.iter().for_each(|from| send(&mut tree, *from, vector, 1.0));
    }
    tree.restart(1, 201);
    tree.take();
    // A newcomer is the first to join, so the rack begins at the aggregate that is being filled.
    tree.send_join(1, 1, JoinRepr { instance: 77, ..asynchronous(4) });
    assert_eq!(tree.standings(), [(worker(1, 1), Standing::Fresh, 3)]);
    tree.send_join(1, 2, resuming(1, 78));
    assert_eq!(tree.standings(), [(worker(1, 2), Standing::Resumed, 1)]);
    for aggregate in 1..=2 {
        ask(&mut tree, (1, 2), ControlBody::Help(set(aggregate, &[0b111])));
        let got = aggregates(&mut tree);
        assert!(got.contains(&(worker(1, 2), aggregate, 4, 4.0)), "the root still has the sum: {got:?}");
    }
}

#[test]
fn a_worker_that_is_ahead_of_its_restarted_rack_resumes() {
    let mut tree = formed([2, 2]);
    for vector in 1..=3 {
        FOUR.iter().for_each(|from| send(&mut tree, *from, vector, 1.0));
    }
    tree.restart(1, 201);
    tree.take();
    // The first worker knew of no other worker in its rack, so the rack does not wait.
    let alone = resuming(1, 77);
    let resume = alone.resume.map(|resume| ResumeRepr { members: 1, ..resume });
    tree.send_join(1, 1, JoinRepr { resume, ..alone });
    assert_eq!(tree.standings(), [(worker(1, 1), Standing::Resumed, 1)]);
    tree.send_join(1, 2, resuming(3, 78));
    assert_eq!(tree.standings(), [(worker(1, 2), Standing::Resumed, 3)]);
}

#[test]
fn the_history_that_has_advanced_furthest_prevails_at_a_restarted_root() {
    let mut tree = formed([2, 2]);
    for vector in 1..=2 {
        FOUR.iter().for_each(|from| send(&mut tree, *from, vector, 1.0));
    }
    tree.restart(ROOT, 300);
    tree.take();
    tree.sleep(u64::from(LEASE_MS) / 2);
    // A Fresh member names a later aggregate, but has no sums.
    let fresh = |sums, instance| {
        let join = resuming(sums, instance);
        JoinRepr { resume: join.resume.map(|resume| ResumeRepr { fresh: true, ..resume }), ..join }
    };
    tree.send_join(1, 1, resuming(1, 71));
    tree.send_join(1, 2, fresh(40, 72));
    tree.send_join(2, 1, resuming(2, 73));
    tree.send_join(2, 2, resuming(2, 74));
    tree.sleep(600);
    let standings = tree.standings();
    let of = |rack, place| {
        let own = |(to, ..): &&(SocketAddrV4, Standing, u32)| *to == worker(rack, place);
        standings.iter().find(own).map(|(_, standing, round)| (*standing, *round)).unwrap()
    };
    let (standing, first) = of(2, 1);
    assert_eq!((standing, of(2, 2)), (Standing::Resumed, (Standing::Resumed, first)));
    assert_eq!((of(1, 1).0, of(1, 2).0), (Standing::Fresh, Standing::Fresh), "{standings:?}");
    assert!(first >= 43, "the first aggregate {first} must follow all aggregates that members name");
}

#[test]
fn a_partial_sum_that_overflows_is_admitted() {
    let mut tree = formed([3, 1]);
    tree.cut = vec![*uplink(1).ip()];
    send(&mut tree, (1, 1), 1, 1.0);
    send(&mut tree, (1, 2), 1, f32::MAX);
    send(&mut tree, (1, 3), 1, f32::MAX);
    tree.cut.clear();
    tree.sleep(TIMEOUT_MS);
    send(&mut tree, (2, 1), 1, 1.0);
    let all = [(1, 1), (1, 2), (1, 3), (2, 1)];
    assert_eq!(aggregates(&mut tree), for_all(&all, 0, 4, f32::INFINITY));
}

#[test]
fn a_rack_whose_partial_sum_is_unknown_forgets_its_members() {
    let mut tree = formed([2, 2]);
    tree.cut = vec![*uplink(1).ip()];
    send(&mut tree, (1, 1), 1, 1.0);
    tree.cut.clear();
    // If the root has admitted this switch again, it expects vectors with different numbers.
    let epoch = tree.switches[ROOT].epoch_of(JOB);
    tree.restart(ROOT, 100);
    assert!(tree.switches[ROOT].epoch_of(JOB).is_none() && epoch == Some(EPOCH));
    tree.take();
    tree.sleep(TIMEOUT_MS);
    let got = tree.take();
    let is_dismissed = |place| {
        let forgotten = |(to, got): &(SocketAddrV4, Got)| {
            *to == worker(1, place) && matches!(got, Got::Ack { status: Status::UnknownMember, .. })
        };
        got.iter().any(forgotten)
    };
    assert!(is_dismissed(1) && is_dismissed(2), "{got:?}");
}

#[test]
fn digests_are_compared_in_each_rack() {
    let mut tree = formed([2, 2]);
    FOUR.iter().for_each(|from| send(&mut tree, *from, 1, 1.0));
    tree.take();
    let digest = |round, digest| ControlBody::Digest(DigestRepr { round: Round::new(round), digest });
    for (place, value, status) in [(1, 5, Status::Success), (2, 6, Status::Diverged)] {
        ask(&mut tree, (1, place), digest(0, value));
        let got = tree.take();
        assert!(matches!(got[..], [(_, Got::Ack { status: answer, .. })] if answer == status), "{got:?}");
    }
    ask(&mut tree, (1, 1), digest(1, 5));
    assert!(matches!(tree.take()[..], [(_, Got::Ack { status: Status::StaleRound, .. })]));
}
