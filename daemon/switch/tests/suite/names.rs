//! Names of jobs and members (SPEC, section 14).

use iswitch_protocol::Round;
use iswitch_protocol::wire::{AbsentRepr, Class, ControlBody, JoinRepr, NameRepr, Status, WireError};
use iswitch_switch::{DropReason, JobStatus, Report};

use crate::common::*;

fn name(job: &str, host: &str, rank: u16) -> NameRepr {
    let (job, host) = (job.parse().unwrap(), host.parse().unwrap());
    NameRepr { job, owner: "alice".parse().unwrap(), host, rank: Some(rank) }
}

fn status(harness: &Harness) -> JobStatus {
    harness.switch.job_status(JOB).unwrap()
}

/// Returns the rank and the host name of each member.
fn members(harness: &Harness) -> Vec<(Option<u16>, Option<String>)> {
    status(harness).members.into_iter().map(|member| (member.rank, member.host)).collect()
}

fn lines(harness: &mut Harness) -> Vec<String> {
    std::iter::from_fn(|| harness.switch.poll_report()).map(|report: Report| report.to_string()).collect()
}

fn granted(to: u8, request: u32) -> Vec<Sent> {
    vec![Sent::Ack { to, request, status: Status::Success, round: 0, expected: 0, missing: vec![] }]
}

/// Section 14, N-4.
#[test]
fn names_appear_in_the_status_and_in_the_events_of_a_job_that_is_not_complete_yet() {
    let mut harness = Harness::new();
    harness.join(1, join(2));
    assert_eq!(harness.control(1, 7, ControlBody::Name(name("ppo-hopper", "gpu07", 2))), granted(1, 7));
    let shown = status(&harness);
    assert_eq!((shown.name.as_deref(), shown.owner.as_deref()), (Some("ppo-hopper"), Some("alice")));
    assert_eq!(members(&harness), [(Some(2), Some("gpu07".to_owned()))]);
    harness.control(1, 8, ControlBody::Leave);
    let expected = [
        "job 5 created: 5 floats, 2 workers",
        "member 0 of job 5 joined from 10.0.0.1:5000 at round 0",
        "member 0 (rank 2 on gpu07) of job 5 (ppo-hopper) at 10.0.0.1:5000 has stated its name",
        "member 0 (rank 2 on gpu07) of job 5 (ppo-hopper) at 10.0.0.1:5000 left",
        "job 5 (ppo-hopper) ended",
    ];
    assert_eq!(lines(&mut harness), expected);
    // The name ends with the job.
    harness.join(1, join(2));
    assert_eq!((status(&harness).name, members(&harness)), (None, vec![(None, None)]));
}

/// Section 14, N-4.
#[test]
fn a_job_keeps_the_first_name_and_a_member_may_change_only_its_own() {
    let mut harness = Harness::formed(2);
    harness.control(1, 7, ControlBody::Name(name("ppo", "a", 0)));
    harness.control(2, 7, ControlBody::Name(name("dqn", "b", 1)));
    assert_eq!(status(&harness).name.as_deref(), Some("ppo"));
    lines(&mut harness);
    // Repeated and changed names are granted, but not reported: a member cannot fill the log.
    for host in ["c", "c", "d"] {
        assert_eq!(harness.control(2, 8, ControlBody::Name(name("sac", host, 1))), granted(2, 8));
    }
    assert_eq!(lines(&mut harness), [""; 0]);
    assert_eq!(members(&harness), [(Some(0), Some("a".to_owned())), (Some(1), Some("d".to_owned()))]);
    harness.control(1, 9, ControlBody::Leave);
    assert_eq!(status(&harness).name.as_deref(), Some("ppo"), "the name remains without its author");
    harness.control(2, 9, ControlBody::Name(name("sac", "d", 1)));
    assert_eq!(status(&harness).name.as_deref(), Some("sac"));
}

#[test]
fn a_slow_member_is_reported_by_name() {
    let mut harness = Harness::formed(2);
    harness.control(1, 7, ControlBody::Name(name("ppo 1", "gpu 1", 0)));
    harness.control(2, 7, ControlBody::Name(NameRepr { rank: None, ..name("ppo 1", "gpu2", 0) }));
    lines(&mut harness);
    harness.round(&[1], 0);
    for _ in 0..4 {
        harness.sleep(400);
        [1, 2].into_iter().for_each(|host| drop(harness.control(host, 0, ControlBody::HEARTBEAT)));
    }
    let line = lines(&mut harness).remove(0);
    let begin = "round 0 of job 5 (\"ppo 1\") has been waiting for member 1 (on gpu2, 10.0.0.2:5000) for 1.";
    assert!(line.starts_with(begin), "{line}");
    let waiting = status(&harness).waiting.unwrap();
    assert_eq!((waiting.members[0].rank, waiting.members[0].host.as_deref()), (None, Some("gpu2")));
}

/// Section 14, N-2 and N-4.
#[test]
fn hostile_names_and_names_of_non_members_are_refused_and_counted() {
    let mut harness = Harness::formed(1);
    let before = *harness.counters();
    let mut packet = control(JOB, 7, ControlBody::Name(name("ppo-hopper", "gpu07", 2)));
    packet[20] = b'\x1b';
    let sent = harness.send(1, Class::Control, &packet);
    assert!(matches!(sent[..], [Sent::Ack { status: Status::Malformed, request: 7, .. }]), "{sent:?}");
    assert_eq!(harness.only_drop_since(&before), Some(DropReason::Wire(WireError::BadValue)));
    let before = *harness.counters();
    let sent = harness.control(9, 7, ControlBody::Name(name("ppo-hopper", "gpu07", 2)));
    assert!(matches!(sent[..], [Sent::Ack { status: Status::UnknownMember, .. }]), "{sent:?}");
    assert_eq!(harness.only_drop_since(&before), Some(DropReason::UnknownMember));
    assert_eq!((status(&harness).name, members(&harness)), (None, vec![(None, None)]));
}

#[test]
fn names_do_not_change_sums() {
    let rounds = |is_named: bool| {
        let mut harness = Harness::formed(2);
        let mut sent = Vec::new();
        for round in 0..3 {
            for host in [1, 2] {
                if is_named {
                    harness.control(host, 50 + round, ControlBody::Name(name("ppo", "a", round as u16)));
                }
                let x = f32::from(host) + round as f32;
                sent.extend(harness.data(host, 0, round, &[x, x]));
                sent.extend(harness.data(host, 1, round, &[x, x]));
                sent.extend(harness.data(host, 2, round, &[x]));
            }
        }
        sent
    };
    assert_eq!(rounds(true), rounds(false));
}

#[test]
fn a_new_member_does_not_inherit_the_name_of_its_predecessor() {
    let mut harness = Harness::formed(2);
    harness.control(2, 7, ControlBody::Name(name("ppo", "gpu07", 1)));
    harness.join(2, JoinRepr { instance: 9, ..join(2) });
    assert_eq!(members(&harness), [(None, None), (None, None)]);
    assert_eq!(status(&harness).name.as_deref(), Some("ppo"));
}

/// Asks for the members that the oldest round waits for. Returns the round, the number of these members, and the
/// members that the answer names.
fn absent(harness: &mut Harness, host: u8) -> (u32, u16, Vec<(Option<u16>, String)>) {
    let mut sent = harness.control(host, 9, ControlBody::Waiting);
    match (sent.pop(), sent.is_empty()) {
        (Some(Sent::Absent { to, request: 9, round, count, members }), true) if to == host => {
            (round, count, members)
        }
        other => panic!("expected one Absent, got {other:?} after {sent:?}"),
    }
}

/// Section 14, N-6.
#[test]
fn the_members_for_which_a_round_waits_are_named() {
    let mut harness = Harness::formed(3);
    assert_eq!(absent(&mut harness, 1), (0, 0, vec![]), "no round is open");
    harness.control(2, 7, ControlBody::Name(name("ppo", "gpu07", 1)));
    harness.data(1, 0, 0, &[1.0, 2.0]);
    let unnamed = (None, String::new());
    let second = (Some(1), "gpu07".to_owned());
    assert_eq!(absent(&mut harness, 1), (0, 2, vec![second.clone(), unnamed]));
    harness.data(3, 0, 0, &[1.0, 2.0]);
    assert_eq!(absent(&mut harness, 1), (0, 1, vec![second]));
    harness.data(2, 0, 0, &[1.0, 2.0]);
    assert_eq!(absent(&mut harness, 1), (0, 0, vec![]), "no other segment has a contribution");
}

/// Section 14, N-6.
#[test]
fn a_list_of_many_absent_members_is_cut_at_the_length_of_a_control_packet() {
    let mut harness = Harness::formed(40);
    let host = "h".repeat(60);
    for member in 2..=40 {
        harness.control(member, 7, ControlBody::Name(name("ppo", &host, member.into())));
    }
    harness.data(1, 0, 0, &[1.0, 2.0]);
    let (_, count, members) = absent(&mut harness, 1);
    assert_eq!((count, members.len()), (39, 2));
    // Only a switch sends an Absent, and only members may ask.
    let none = AbsentRepr { round: Round::new(0), count: 0, list: &[] };
    let [Sent::Ack { status, .. }] = harness.control(1, 10, ControlBody::Absent(none))[..] else {
        panic!("no Ack")
    };
    assert_eq!(status, Status::Malformed);
    let [Sent::Ack { status, .. }] = harness.control(99, 10, ControlBody::Waiting)[..] else {
        panic!("no Ack")
    };
    assert_eq!(status, Status::UnknownMember);
}
