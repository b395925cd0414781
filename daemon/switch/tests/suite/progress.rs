//! Progress despite departing members and late packets: the job continues, and no sum contains a contribution that
//! belongs to another round or job. These tests are reduced versions of scenarios that the simulator found.

use crate::common::{Harness, JOB, Sent, control, endpoint, join, join_from, range, result};
use iswitch_protocol::wire::{ControlBody, JoinRepr, Status};
use iswitch_switch::{Config, Instant, Switch};

fn joined_at(sent: &Sent) -> u32 {
    match sent {
        Sent::Ack { status: Status::Success, round, .. } => *round,
        other => panic!("expected the Ack of a Join, got {other:?}"),
    }
}

/// Returns this result, sent to each of `hosts`.
fn results_to(hosts: &[u8], index: u32, round: u32, contributions: u16, floats: &[f32]) -> Vec<Sent> {
    hosts.iter().map(|to| result(*to, index, round, contributions, floats)).collect()
}

#[test]
fn a_round_deserted_by_all_its_members_is_dropped() {
    let mut switch = Harness::formed(2);
    switch.data(1, 0, 0, &[1.0, 1.0]);
    // Members 1 and 2 participate in round 0, their successors in round 1.
    let successor = JoinRepr { instance: 2, ..join(2) };
    assert_eq!(joined_at(&switch.join(1, successor)), 1);
    assert_eq!(joined_at(&switch.join(2, successor)), 1);
    switch.data(1, 2, 1, &[1.0]);
    assert_eq!(switch.data(2, 2, 1, &[2.0]), results_to(&[1, 2], 2, 1, 2, &[3.0]));
}

#[test]
fn a_half_finished_round_does_not_block_the_next_one() {
    let mut switch = Harness::formed(2);
    switch.data(1, 0, 0, &[1.0, 1.0]);
    switch.data(2, 0, 0, &[1.0, 1.0]);
    let successor = JoinRepr { instance: 2, ..join(2) };
    switch.join(1, successor);
    // Opens round 1 with the successor alone, while segments 1 and 2 of round 0 wait for member 2.
    switch.data(1, 0, 1, &[1.0, 1.0]);
    switch.control(2, 1, ControlBody::Join(successor));
    assert_eq!(switch.data(1, 2, 1, &[5.0]), results_to(&[1, 2], 2, 1, 1, &[5.0]));
}

#[test]
fn leaving_an_incomplete_job_discards_the_open_round() {
    let mut switch = Harness::new();
    switch.join(1, join(3));
    switch.join(2, join(3));
    switch.data(1, 2, 0, &[1.0]);
    switch.control(1, 2, ControlBody::Leave);
    // The new member gets the id of the member that has left, but none of its contributions.
    assert_eq!(joined_at(&switch.join(3, join(3))), 1);
    assert_eq!(joined_at(&switch.join(4, join(3))), 1);
    switch.data(2, 2, 1, &[2.0]);
    switch.data(3, 2, 1, &[4.0]);
    assert_eq!(switch.data(4, 2, 1, &[8.0]), results_to(&[3, 2, 4], 2, 1, 3, &[14.0]));
}

#[test]
fn fbcast_does_not_open_a_third_round() {
    let mut switch = Harness::formed(2);
    switch.data(1, 0, 0, &[1.0, 1.0]);
    switch.data(2, 0, 0, &[1.0, 1.0]);
    switch.data(1, 0, 1, &[1.0, 1.0]);
    switch.control(1, 7, ControlBody::FBcast(range(1, 0, 1)));
    assert_eq!(
        switch.data(1, 0, 2, &[1.0, 1.0]),
        [],
        "round 2 should be too early while round 0 is unfinished"
    );
    switch.round(&[1, 2], 0);
    switch.data(1, 0, 2, &[1.0, 1.0]);
    assert_eq!(switch.data(2, 0, 2, &[1.0, 1.0]), results_to(&[1, 2], 0, 2, 2, &[2.0, 2.0]));
}

#[test]
fn a_late_member_is_directed_to_the_earliest_round_that_awaits_it() {
    let mut switch = Harness::formed(2);
    switch.round(&[1, 2], 0);
    switch.round(&[1, 2], 1);
    switch.data(1, 0, 2, &[1.0, 1.0]);
    switch.data(2, 0, 2, &[1.0, 1.0]);
    // Opens round 3 while round 2 still waits for both members.
    switch.data(1, 0, 3, &[1.0, 1.0]);
    let stale = |round| Sent::Ack {
        to: 2,
        request: 0,
        status: Status::StaleRound,
        round,
        expected: 0,
        missing: Vec::new(),
    };
    assert_eq!(switch.data(2, 0, 1, &[1.0, 1.0]), [stale(2)]);
}

#[test]
fn the_first_round_of_a_switch_run_derives_from_its_boot_id() {
    let boot = 0x00ab_cdef << 40 | 7;
    let mut switch = Switch::new(Config { boot, memory_bytes: 1 << 20, ..Config::default() });
    let packet = control(JOB, 1, ControlBody::Join(join(1)));
    join_from(&mut switch, Instant::default(), &endpoint(1), &packet);
    assert_eq!(switch.jobs().next().map(|job| job.members[0].start_round), Some(0x00ab_cdef));
}
