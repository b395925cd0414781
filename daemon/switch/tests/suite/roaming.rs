//! Jobs whose workers have several switches (requirement M-14): the switch waits for all of them, sums nothing before
//! all of them know that the job is complete, and ends the incarnation if one of them is lost.

use iswitch_protocol::Round;
use iswitch_protocol::wire::control::SegmentSetRepr;
use iswitch_protocol::wire::{Class, ControlBody, JoinRepr, Mode, ResumeRepr, Status};
use iswitch_switch::{Config, DropReason, Event, PortId, Uplinks};

use crate::common::*;

fn roaming(workers: u16) -> JoinRepr {
    JoinRepr { roams: true, ..join(workers) }
}

/// Returns the Join of a worker that resumes a job of `workers` workers with the history 1000 at round 7.
fn resuming(workers: u16) -> JoinRepr {
    let resume = ResumeRepr {
        round: Round::new(7),
        members: workers,
        weight: workers,
        threshold: 0,
        history: 1000,
        previous: 0,
        behind: 0,
        fresh: false,
    };
    JoinRepr { resume: Some(resume), ..roaming(workers) }
}

/// Makes hosts join the job, and answer when the switch asks whether they still use this switch.
fn join_all(harness: &mut Harness, joins: impl IntoIterator<Item = (u8, JoinRepr)> + Clone) {
    for (host, join) in joins.clone() {
        harness.join(host, join);
    }
    for (host, join) in joins {
        show(harness, host, join);
    }
}

/// Makes a host answer if the switch has asked whether it still uses this switch.
fn show(harness: &mut Harness, host: u8, join: JoinRepr) {
    let join = control(JOB, 1, ControlBody::Join(join));
    if let Some(answer) = harness.answer_challenge(host, &join) {
        harness.send(host, Class::Control, &answer);
    }
}

/// Returns a switch with a complete job at round 0 whose workers 1 to `workers` can move to another switch.
fn formed(workers: u8) -> Harness {
    let mut harness = Harness::new();
    join_all(&mut harness, (1..=workers).map(|host| (host, roaming(workers.into()))));
    assert!(is_formed(&harness));
    harness.events();
    harness
}

fn is_formed(harness: &Harness) -> bool {
    harness.switch.job_status(JOB).is_some_and(|job| job.formed)
}

/// Makes a worker ask for the first segment of a round.
fn help(harness: &mut Harness, host: u8, round: u32) -> Vec<Sent> {
    let wanted = SegmentSetRepr { range: range(round, 0, 1), bitmap: &[1] };
    harness.control(host, 9, ControlBody::Help(wanted))
}

fn must_rejoin(sent: &[Sent]) -> Vec<u8> {
    let is_dismissed = |sent: &Sent| match sent {
        Sent::Ack { to, request: 0, status: Status::UnknownMember, .. } => Some(*to),
        _ => None,
    };
    sent.iter().filter_map(is_dismissed).collect()
}

#[test]
fn a_resumed_job_waits_for_all_declared_workers_however_long() {
    let mut harness = Harness::new();
    for host in [1, 2] {
        harness.join(host, resuming(3));
    }
    for _ in 0..20 {
        harness.sleep(u64::from(LEASE_MS) / 2);
        (1..=2).for_each(|host| drop(harness.join(host, resuming(3))));
        assert!(!is_formed(&harness));
    }
    join_all(&mut harness, [1, 2, 3].map(|host| (host, resuming(3))));
    assert!(is_formed(&harness));
}

#[test]
fn a_job_is_not_completed_with_a_worker_that_has_moved_away() {
    let mut harness = Harness::new();
    // Worker 1 joins, moves away, and gains sums at another switch; its Leave is lost.
    harness.join(1, resuming(2));
    let later = JoinRepr {
        resume: resuming(2).resume.map(|resume| ResumeRepr { history: 2000, ..resume }),
        ..resuming(2)
    };
    harness.join(2, later);
    for _ in 0..3 {
        show(&mut harness, 2, later);
        assert!(!is_formed(&harness), "worker 1 has not answered");
        // A repeated Join does not count as an answer.
        let repeated = control(JOB, 1, ControlBody::Join(JoinRepr { nonce: 7, ..resuming(2) }));
        let asked = harness.deliver(1, Class::Control, &repeated, repeated.len());
        assert!(matches!(asked[..], [Sent::Ack { to: 1, status: Status::Challenge, .. }]), "{asked:?}");
        harness.sleep(u64::from(LEASE_MS) / 4);
    }
    // The worker comes back with the sums that it has now.
    let back = JoinRepr { instance: 2, ..later };
    join_all(&mut harness, [(1, back), (2, later)]);
    assert!(is_formed(&harness));
    assert!(harness.switch.job_status(JOB).unwrap().members.len() == 2);
}

#[test]
fn an_answer_from_before_the_last_worker_joined_does_not_count() {
    let mut harness = Harness::new();
    harness.join(1, resuming(2));
    harness.join(2, resuming(2));
    let early = harness.answer_challenge(1, &control(JOB, 1, ControlBody::Join(resuming(2)))).unwrap();
    // Worker 2 is replaced, so the switch asks again.
    harness.join(2, JoinRepr { instance: 2, ..resuming(2) });
    harness.deliver(1, Class::Control, &early, early.len());
    show(&mut harness, 2, JoinRepr { instance: 2, ..resuming(2) });
    assert!(!is_formed(&harness), "worker 1 has answered only the first question");
    show(&mut harness, 1, resuming(2));
    assert!(is_formed(&harness));
}

#[test]
fn nothing_is_summed_before_every_worker_has_confirmed() {
    let mut harness = formed(2);
    let epoch = harness.switch.job_status(JOB).unwrap().round;
    let before = *harness.counters();
    assert_eq!(harness.data(1, 2, 0, &[1.0]), []);
    assert_eq!(harness.counters().drops(DropReason::EarlyRound), before.drops(DropReason::EarlyRound) + 1);
    // A forced broadcast has nothing to send, and a heartbeat confirms nothing.
    let forced = harness.control(1, 5, ControlBody::FBcast(range(0, 2, 1)));
    assert!(matches!(forced[..], [Sent::Ack { status: Status::Success, .. }]), "{forced:?}");
    harness.control(2, 0, ControlBody::HEARTBEAT);
    assert_eq!(harness.data(1, 2, 0, &[1.0]), []);
    assert_eq!(harness.switch.job_status(JOB).unwrap().round, epoch);
    // A Help of the round shows that the second worker knows that the job is complete.
    help(&mut harness, 2, 0);
    assert_eq!(harness.data(1, 2, 0, &[1.0]), []);
    assert_eq!(harness.data(2, 2, 0, &[2.0]), [result(1, 2, 0, 2, &[3.0]), result(2, 2, 0, 2, &[3.0])]);
}

#[test]
fn packets_of_an_earlier_membership_confirm_nothing() {
    let mut harness = Harness::new();
    join_all(&mut harness, [1, 2].map(|host| (host, resuming(2))));
    let base = harness.switch.job_status(JOB).unwrap();
    assert!(base.formed && base.round.is_none());
    let stale = help(&mut harness, 1, 6);
    assert!(matches!(stale[..], [Sent::Ack { status: Status::StaleRound, .. }]), "{stale:?}");
    harness.data(1, 2, 6, &[1.0]);
    let first = match &stale[..] {
        [Sent::Ack { round, .. }] => *round,
        _ => unreachable!(),
    };
    help(&mut harness, 2, first);
    assert_eq!(harness.data(2, 2, first, &[1.0]), [], "worker 1 has not confirmed");
    help(&mut harness, 1, first);
    assert_eq!(harness.data(2, 2, first, &[1.0]), []);
    assert_eq!(harness.data(1, 2, first, &[1.0]).len(), 2);
}

#[test]
fn an_asynchronous_job_is_confirmed_by_confirms_and_answers_none_before() {
    let mut harness = Harness::new();
    let asynchronous = JoinRepr { mode: Mode::Asynchronous, ..roaming(2) };
    join_all(&mut harness, [1, 2].map(|host| (host, JoinRepr { instance: host.into(), ..asynchronous })));
    let vectors = [1, 2].map(|instance| harness.first_vector(JOB, instance));
    let confirm = |harness: &mut Harness, host: u8| {
        let asked = SegmentSetRepr { range: range(vectors[usize::from(host) - 1], 2, 1), bitmap: &[1] };
        harness.control(host, 7, ControlBody::Confirm(asked))
    };
    harness.data(1, 2, vectors[0], &[1.0]);
    assert_eq!(confirm(&mut harness, 1), []);
    assert!(matches!(confirm(&mut harness, 2)[..], [Sent::Ack { status: Status::Success, .. }]));
    let answer = confirm(&mut harness, 1);
    assert!(matches!(&answer[..], [Sent::Ack { missing, .. }] if missing == &[2]), "{answer:?}");
}

#[test]
fn a_lost_worker_ends_the_incarnation() {
    let mut harness = formed(3);
    (1..=3).for_each(|host| drop(help(&mut harness, host, 0)));
    let mut dismissed = Vec::new();
    for _ in 0..6 {
        dismissed.extend(must_rejoin(&harness.sleep(u64::from(LEASE_MS) / 4)));
        (1..=2).for_each(|host| drop(harness.control(host, 0, ControlBody::HEARTBEAT)));
    }
    assert_eq!(dismissed, [1, 2], "the lease of worker 3 has expired");
    assert!(harness.events().contains(&Event::JobInterrupted { job: JOB }));
    assert_eq!(harness.switch.jobs().count(), 0);
}

#[test]
fn a_replaced_process_and_a_new_member_end_the_incarnation() {
    let mut harness = formed(3);
    (1..=3).for_each(|host| drop(help(&mut harness, host, 0)));
    let epoch = harness.switch.epoch_of(JOB);
    let again = control(JOB, 1, ControlBody::Join(JoinRepr { instance: 2, ..resuming(3) }));
    assert_eq!(must_rejoin(&harness.send(3, Class::Control, &again)), [1, 2]);
    assert!(!is_formed(&harness) && harness.switch.epoch_of(JOB) != epoch);
    // The worker that has left may be replaced, but only in the next incarnation.
    let mut harness = formed(3);
    (1..=3).for_each(|host| drop(help(&mut harness, host, 0)));
    harness.control(3, 4, ControlBody::Leave);
    assert!(is_formed(&harness), "the others continue without a worker that has left");
    assert_eq!(harness.data(1, 2, 0, &[1.0]), []);
    assert_eq!(harness.data(2, 2, 0, &[2.0]).len(), 2);
    let newcomer = control(JOB, 1, ControlBody::Join(roaming(3)));
    assert_eq!(must_rejoin(&harness.send(4, Class::Control, &newcomer)), [1, 2]);
    assert_eq!(harness.switch.job_status(JOB).map(|job| (job.formed, job.members.len())), Some((false, 1)));
}

#[test]
fn a_worker_that_moves_away_before_it_has_confirmed_ends_the_incarnation() {
    let mut harness = formed(3);
    (1..=2).for_each(|host| drop(help(&mut harness, host, 0)));
    assert_eq!(must_rejoin(&harness.control(3, 0, ControlBody::Leave)), [1, 2]);
    assert_eq!(harness.switch.jobs().count(), 0);
}

#[test]
fn a_switch_with_a_parent_refuses_workers_with_several_switches() {
    let uplinks = Uplinks::new(&["10.0.9.9:7711".parse().unwrap()], PortId(1), 1);
    let mut harness = Harness::with(Config { memory_bytes: 1 << 20, uplinks, ..Config::default() });
    let refused = harness.join(1, roaming(2));
    assert!(matches!(refused, Sent::Ack { status: Status::TooManyLevels, .. }), "{refused:?}");
    let refused = Harness::new().join(1, roaming(0));
    assert!(matches!(refused, Sent::Ack { status: Status::Malformed, .. }), "{refused:?}");
}
