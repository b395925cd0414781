//! Members that a round waits for: the status names them, and an event reports each such wait once.

use crate::common::{Harness, JOB, endpoint, join};
use iswitch_protocol::Round;
use iswitch_protocol::wire::ControlBody;
use iswitch_switch::{AwaitedStatus, Config, Event, WaitingStatus};

/// Time after which a member is reported as slow, in milliseconds. It is shorter than the lease, so that no member is
/// expelled.
const SLOW_MS: u32 = 400;

fn formed(workers: u8) -> Harness {
    let mut switch = Harness::with(Config { memory_bytes: 1 << 20, slow_ms: SLOW_MS, ..Config::default() });
    for host in 1..=workers {
        switch.join(host, join(u16::from(workers)));
    }
    switch.events();
    switch
}

fn waiting(switch: &Harness) -> Option<WaitingStatus> {
    switch.switch.jobs().next().unwrap().waiting
}

fn awaited(host: u8, missing_segments: u32) -> AwaitedStatus {
    let (member, address) = (u16::from(host) - 1, endpoint(host).peer);
    AwaitedStatus { member, rank: None, host: None, address, missing_segments }
}

/// Advances the time while the hosts send heartbeats.
fn sleep(switch: &mut Harness, hosts: &[u8], ms: u64) {
    for _ in 0..ms / 100 {
        switch.sleep(100);
        for host in hosts {
            let range = crate::common::range(0, 0, 0);
            let heartbeat = iswitch_protocol::wire::control::SegmentSetRepr { range, bitmap: &[] };
            switch.control(*host, 0, ControlBody::Help(heartbeat));
        }
    }
}

#[test]
fn the_status_lists_awaited_members_missing_segments_and_waiting_time() {
    let mut switch = formed(3);
    assert_eq!(waiting(&switch), None, "no member should be awaited before the first contribution");
    switch.round(&[1], 0);
    switch.data(3, 0, 0, &[3.0, 3.0]);
    switch.now_ms += 150;
    switch.data(2, 1, 0, &[2.0, 2.0]);
    let members = vec![awaited(2, 2), awaited(3, 2)];
    assert_eq!(waiting(&switch), Some(WaitingStatus { round: 0, waited_ms: 150, segments: 3, members }));
    switch.round(&[3], 0);
    let members = vec![awaited(2, 2)];
    assert_eq!(waiting(&switch), Some(WaitingStatus { round: 0, waited_ms: 150, segments: 3, members }));
    switch.round(&[2], 0);
    assert_eq!(waiting(&switch), None, "the round is finished");
}

#[test]
fn the_waiting_status_reports_the_older_of_two_open_rounds() {
    let mut switch = formed(2);
    switch.round(&[1], 0);
    switch.data(2, 0, 0, &[2.0, 2.0]);
    switch.data(2, 0, 1, &[2.0, 2.0]);
    let status = waiting(&switch).unwrap();
    assert_eq!((status.round, status.members), (0, vec![awaited(2, 2)]));
    switch.round(&[2], 0);
    let status = waiting(&switch).unwrap();
    assert_eq!((status.round, status.members), (1, vec![awaited(1, 1)]));
}

#[test]
fn a_slow_member_is_reported_once_and_again_when_it_has_recovered() {
    let mut switch = formed(3);
    let all = [1, 2, 3];
    let address = endpoint(2).peer;
    for first in [0, 4] {
        switch.round(&[3, 1], first);
        switch.data(2, 0, first, &[2.0, 2.0]);
        sleep(&mut switch, &all, u64::from(SLOW_MS));
        assert_eq!(switch.events(), [], "the member should not be reported before the limit");
        sleep(&mut switch, &all, 100);
        let slow = Event::Slow {
            job: JOB,
            member: 1,
            address,
            round: Round::new(first),
            waited_ms: u64::from(SLOW_MS) + 100,
            missing_segments: 2,
            segments: 3,
        };
        assert_eq!(switch.events(), [slow]);
        sleep(&mut switch, &all, 2000);
        assert_eq!(switch.events(), [], "an incident should be reported once");
        // The next round also waits for the member: this is still the same incident.
        switch.round(&[2], first);
        switch.round(&[1, 3], first + 1);
        sleep(&mut switch, &all, 1000);
        assert_eq!(switch.events(), []);
        switch.round(&[2], first + 1);
        switch.round(&all, first + 2);
        switch.round(&all, first + 3);
        sleep(&mut switch, &all, 100);
        assert_eq!(switch.events(), [Event::Recovered { job: JOB, member: 1, address }]);
    }
}

#[test]
fn no_member_is_slow_if_all_wait_for_each_other() {
    let mut switch = formed(2);
    switch.data(1, 0, 0, &[1.0, 1.0]);
    switch.data(2, 1, 0, &[2.0, 2.0]);
    sleep(&mut switch, &[1, 2], 1000);
    assert_eq!(switch.events(), []);
    assert_eq!(waiting(&switch).unwrap().members, [awaited(1, 1), awaited(2, 1)]);
}

#[test]
fn suspension_of_the_switch_does_not_count_as_waiting_time() {
    let mut switch = formed(2);
    switch.round(&[1], 0);
    switch.now_ms += 5000;
    switch.switch.handle_timeout(switch.now());
    assert_eq!(switch.events(), []);
    assert_eq!(waiting(&switch).unwrap().waited_ms, 0);
}

#[test]
fn a_halted_or_incomplete_job_waits_for_no_member() {
    let mut switch = formed(2);
    switch.round(&[1], 0);
    switch.control(1, 2, ControlBody::Halt);
    switch.events();
    sleep(&mut switch, &[1, 2], 1000);
    assert_eq!((switch.events(), waiting(&switch)), (vec![], None));
    let mut switch = formed(0);
    switch.join(1, join(3));
    switch.join(2, join(3));
    switch.round(&[1], 0);
    switch.events();
    sleep(&mut switch, &[1, 2], 1000);
    assert_eq!((switch.events(), waiting(&switch)), (vec![], None));
}

#[test]
fn a_departed_member_is_not_awaited() {
    let mut switch = formed(3);
    switch.round(&[1, 2], 0);
    switch.control(3, 2, ControlBody::Leave);
    assert_eq!(waiting(&switch), None);
    switch.round(&[1], 1);
    assert_eq!(waiting(&switch).unwrap().members, [awaited(2, 3)]);
}

#[test]
fn slow_member_events_have_readable_texts() {
    let address = "10.9.0.3:5000".parse().unwrap();
    let slow = Event::Slow {
        job: 5,
        member: 2,
        address,
        round: Round::new(12),
        waited_ms: 1234,
        missing_segments: 17,
        segments: 28,
    };
    let text = "round 12 of job 5 has been waiting for member 2 (10.9.0.3:5000) for 1.2 s: 17 of 28 segments missing";
    assert_eq!(slow.to_string(), text);
    let recovered = Event::Recovered { job: 5, member: 2, address };
    assert_eq!(recovered.to_string(), "rounds of job 5 no longer wait for member 2 (10.9.0.3:5000)");
}
