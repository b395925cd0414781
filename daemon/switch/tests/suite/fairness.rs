//! Fairness between jobs of one switch: queued work of one job delays the other jobs by at most one turn each.

use crate::common::{Harness, JOB, LEASE_MS, Sent, control, data, range};
use iswitch_protocol::limits::{MAX_WORK_COST, WORK_COST_PER_DATAGRAM, WORK_FLOATS_PER_COST};
use iswitch_protocol::wire::control::SegmentSetRepr;
use iswitch_protocol::wire::{Class, ControlBody, JoinRepr, Mode, Status};
use iswitch_switch::{Config, Counters};

/// Job of a tenant that attacks the other tenants, and its two members.
const ATTACKER: u32 = 6;
const ATTACKERS: [u8; 2] = [101, 102];
/// Number of floats in a full segment.
const FLOATS: usize = 366;
/// Instance of the members that [`vector`] declares.
const INSTANCE: u32 = 1;
/// Number of turns that suffices for all work that these tests queue.
const MANY_TURNS: usize = 100_000;

fn harness() -> Harness {
    Harness::with(Config { memory_bytes: 64 << 20, ..Config::default() })
}

fn vector(mode: Mode, segments: u32, floats: u16, workers: u16) -> JoinRepr {
    let gradient_len = segments * u32::from(floats);
    JoinRepr { mode, instance: INSTANCE, ..JoinRepr::worker(gradient_len, floats, workers) }
}

fn join(switch: &mut Harness, job: u32, hosts: &[u8], join: JoinRepr) {
    for host in hosts {
        switch.send(*host, Class::Control, &control(job, 1, ControlBody::Join(join)));
    }
    let status = switch.switch.job_status(job).expect("the job should exist");
    assert_eq!(status.members.len(), hosts.len());
}

/// Delivers packets of the same length in one super-frame, and gives the switch one turn.
fn frame(switch: &mut Harness, host: u8, class: Class, packets: &[Vec<u8>]) -> Vec<Sent> {
    let bytes = packets.concat();
    let from = crate::common::endpoint(host);
    switch.switch.handle_datagrams(switch.now(), &from, class, &bytes, packets[0].len());
    switch.turn()
}

/// Sends all segments of a vector, whose elements are all 1, in super-frames.
fn send_vector(switch: &mut Harness, host: u8, round: u32, segments: u32, floats: usize) -> Vec<Sent> {
    let packets: Vec<_> = (0..segments).map(|index| data(index, round, &vec![1.0; floats])).collect();
    packets.chunks(40).flat_map(|packets| frame(switch, host, Class::Data, packets)).collect()
}

/// Creates the job of the attacker, with one segment that waits for the second member.
fn join_attackers(switch: &mut Harness) {
    join(switch, ATTACKER, &ATTACKERS, vector(Mode::Synchronous, 2000, 1, 2));
    frame(switch, ATTACKERS[0], Class::Data, &[data(0, 0, &[1.0])]);
}

fn fill_with_fbcasts(switch: &mut Harness) {
    join_attackers(switch);
    flood_with_fbcasts(switch);
}

/// Floods the switch with FBcasts. Their ranges are distinct, and none of the segments in them has a contribution, so
/// the switch has no segment to close.
fn flood_with_fbcasts(switch: &mut Harness) {
    let fbcast = |first| control(ATTACKER, 0, ControlBody::FBcast(range(0, first, 1024)));
    for first in (1..641).step_by(64) {
        let packets: Vec<_> = (first..first + 64).map(fbcast).collect();
        frame(switch, ATTACKERS[0], Class::Control, &packets);
    }
}

/// Returns whether the switch has work for its next turn.
fn is_busy(switch: &Harness) -> bool {
    switch.switch.poll_timeout().is_some_and(|due| due <= switch.now())
}

/// Gives the switch one more turn, like a driver without incoming packets, and returns what it sends.
fn next_turn(switch: &mut Harness) -> Vec<Sent> {
    switch.switch.handle_timeout(switch.now());
    switch.turn()
}

/// Gives the switch turns until it has no work left, and returns the packets that it sends in each turn.
fn turns(switch: &mut Harness) -> Vec<Vec<Sent>> {
    let mut sent = Vec::new();
    while is_busy(switch) {
        sent.push(next_turn(switch));
        assert!(sent.len() < MANY_TURNS, "the work should have ended");
    }
    sent
}

fn results(sent: &[Sent]) -> impl Iterator<Item = &Sent> {
    sent.iter().filter(|sent| matches!(sent, Sent::Result { .. }))
}

/// Returns the maximum number of packets, counted over all members, that queued work may send in a turn. The last step
/// may exceed the limit, because it begins before the limit is reached.
fn most_in_a_turn(members: usize) -> usize {
    2 * (MAX_WORK_COST / WORK_COST_PER_DATAGRAM) as usize + members
}

fn indices(sent: &[Sent], member: u8) -> Vec<u32> {
    let index = |sent: &Sent| match sent {
        Sent::Result { to, index, .. } if *to == member => Some(*index),
        _ => None,
    };
    sent.iter().filter_map(index).collect()
}

/// Returns whether a packet is the result of two vectors, in which all floats are equal to `x`.
fn is_sum_of_two(sent: &Sent, x: f32) -> bool {
    matches!(sent, Sent::Result { contributions: 2, floats, .. } if floats.iter().all(|sum| *sum == x))
}

fn drops_since(switch: &Harness, before: &Counters) -> u64 {
    switch.counters().dropped() - before.dropped()
}

#[test]
fn a_flood_of_fbcasts_does_not_prevent_rounds_from_completing() {
    const JOBS: u8 = 20;
    let mut switch = harness();
    let own = |job: u8| [2 * job + 1, 2 * job + 2];
    for job in 0..JOBS {
        join(&mut switch, 100 + u32::from(job), &own(job), crate::common::join(2));
        switch.round(&own(job)[..1], 0);
    }
    join_attackers(&mut switch);
    let mut sent = Vec::new();
    for _ in 0..5 {
        // The second member of each job is silent, and the switch expels all these members in the same turn.
        switch.now_ms += u64::from(LEASE_MS) / 4;
        for job in 0..JOBS {
            let heartbeat = control(100 + u32::from(job), 0, ControlBody::HEARTBEAT);
            frame(&mut switch, own(job)[0], Class::Control, &[heartbeat]);
        }
        for host in ATTACKERS {
            frame(&mut switch, host, Class::Control, &[control(ATTACKER, 0, ControlBody::HEARTBEAT)]);
        }
        flood_with_fbcasts(&mut switch);
        sent.extend(next_turn(&mut switch));
        sent.extend(turns(&mut switch).into_iter().flatten());
    }
    assert_eq!(switch.counters().expelled, u64::from(JOBS));
    for job in 0..JOBS {
        assert_eq!(indices(&sent, own(job)[0]), [0, 1, 2], "job {job} should finish its round");
    }
}

#[test]
fn a_flood_of_fbcasts_does_not_block_vectors_of_another_job() {
    let mut switch = harness();
    join(&mut switch, JOB, &[1], JoinRepr { mode: Mode::Asynchronous, ..crate::common::join(1) });
    fill_with_fbcasts(&mut switch);
    let before = *switch.counters();
    let mut sent = Vec::new();
    let first = switch.first_vector(JOB, crate::common::join(1).instance);
    for packet in [data(0, first, &[1.0, 1.0]), data(1, first, &[1.0, 1.0]), data(2, first, &[1.0])] {
        sent.extend(frame(&mut switch, 1, Class::Data, &[packet]));
    }
    sent.extend(next_turn(&mut switch));
    assert_eq!(drops_since(&switch, &before), 0);
    assert_eq!(indices(&sent, 1), [0, 1, 2], "the job should have its turn within two turns of the switch");
}

#[test]
fn an_fbcast_that_overflows_the_work_queue_is_not_acknowledged() {
    let mut switch = harness();
    fill_with_fbcasts(&mut switch);
    let fbcast = control(ATTACKER, 9, ControlBody::FBcast(range(0, 0, 7)));
    let others = (641..700).map(|first| control(ATTACKER, 0, ControlBody::FBcast(range(0, first, 1024))));
    let packets: Vec<_> = others.chain([fbcast.clone()]).collect();
    assert_eq!(
        frame(&mut switch, ATTACKERS[0], Class::Control, &packets),
        [],
        "there is no room for the request"
    );
    turns(&mut switch);
    let sent = frame(&mut switch, ATTACKERS[0], Class::Control, &[fbcast]);
    assert!(matches!(sent[0], Sent::Ack { status: Status::Success, .. }), "the repetition should be granted");
    assert_eq!(results(&sent).count(), 2, "the segment should be closed for both members");
}

#[test]
fn an_fbcast_of_a_long_vector_is_processed_over_many_turns() {
    let mut switch = harness();
    join(&mut switch, JOB, &[1, 2], crate::common::join(2));
    switch.round(&[1, 2], 0);
    join(&mut switch, ATTACKER, &ATTACKERS, vector(Mode::Synchronous, 1024, FLOATS as u16, 2));
    send_vector(&mut switch, ATTACKERS[0], 0, 1024, FLOATS);
    let fbcast = control(ATTACKER, 2, ControlBody::FBcast(range(0, 0, 1024)));
    let first = frame(&mut switch, ATTACKERS[0], Class::Control, &[fbcast]);
    assert!(results(&first).count() <= most_in_a_turn(2));
    let help = SegmentSetRepr { range: range(0, 0, 3), bitmap: &[0b111] };
    let help = control(JOB, 3, ControlBody::Help(help));
    let second = frame(&mut switch, 1, Class::Control, &[help]);
    let third = next_turn(&mut switch);
    let answers: Vec<_> = [&second, &third].into_iter().flat_map(|sent| indices(sent, 1)).collect();
    assert_eq!(answers, [0, 1, 2], "the other job should have its turn before the first one continues");
    let rest = turns(&mut switch);
    assert!(rest.iter().all(|sent| results(sent).count() <= most_in_a_turn(2)));
    let all: Vec<u32> = [&first[..], &second, &third]
        .into_iter()
        .chain(rest.iter().map(Vec::as_slice))
        .flat_map(|sent| indices(sent, ATTACKERS[1]))
        .collect();
    assert!(all.iter().copied().eq(0..1024), "every segment should be sent once, in order");
}

#[test]
fn a_long_vector_is_summed_over_many_turns() {
    const SEGMENTS: u32 = 1000;
    let mut switch = harness();
    join(&mut switch, ATTACKER, &ATTACKERS, vector(Mode::Asynchronous, SEGMENTS, FLOATS as u16, 2));
    let first = switch.first_vector(ATTACKER, INSTANCE);
    assert_eq!(send_vector(&mut switch, ATTACKERS[0], first, SEGMENTS, FLOATS), []);
    let floats_a_turn = MAX_WORK_COST as usize * WORK_FLOATS_PER_COST;
    let least = (SEGMENTS as usize * FLOATS).div_ceil(floats_a_turn) - 1;
    let turns_to_add = turns(&mut switch).len();
    assert!(turns_to_add >= least, "expected at least {least} turns, got {turns_to_add}");

    let mut sent = send_vector(&mut switch, ATTACKERS[1], first, SEGMENTS, FLOATS);
    assert!(results(&sent).count() <= most_in_a_turn(2));
    for turn in turns(&mut switch) {
        assert!(results(&turn).count() <= most_in_a_turn(2));
        sent.extend(turn);
    }
    assert!(
        indices(&sent, ATTACKERS[0]).into_iter().eq(0..SEGMENTS),
        "every segment should be sent once, in order"
    );
    assert!(sent.iter().all(|sent| is_sum_of_two(sent, 2.0)));
}

#[test]
fn a_member_may_send_its_next_vector_while_the_previous_one_is_summed() {
    const SEGMENTS: u32 = 1000;
    let mut switch = harness();
    join(&mut switch, ATTACKER, &ATTACKERS, vector(Mode::Asynchronous, SEGMENTS, FLOATS as u16, 2));
    let first = switch.first_vector(ATTACKER, INSTANCE);
    send_vector(&mut switch, ATTACKERS[0], first, SEGMENTS, FLOATS);
    assert!(is_busy(&switch));
    let before = *switch.counters();
    let next = |index| data(index, first + 1, &[5.0; FLOATS]);
    frame(&mut switch, ATTACKERS[0], Class::Data, &[next(SEGMENTS - 1)]);
    assert_eq!(drops_since(&switch, &before), 1, "the last vector still needs its segment");
    // For each frame that arrives, the switch adds at least as many segments as the frame contains.
    let frames: Vec<_> = (0..SEGMENTS).map(next).collect();
    let mut sent: Vec<_> = frames
        .chunks(40)
        .flat_map(|frame_of| frame(&mut switch, ATTACKERS[0], Class::Data, frame_of))
        .collect();
    sent.extend(turns(&mut switch).into_iter().flatten());
    assert_eq!(drops_since(&switch, &before), 1);
    assert!(indices(&sent, ATTACKERS[1]).into_iter().eq(0..SEGMENTS));
    assert!(sent.iter().all(|sent| is_sum_of_two(sent, 6.0)));
}

#[test]
fn a_help_for_an_unfinished_aggregate_is_not_answered_with_an_incomplete_sum() {
    const SEGMENTS: u32 = 1000;
    let mut switch = harness();
    join(&mut switch, ATTACKER, &ATTACKERS, vector(Mode::Asynchronous, SEGMENTS, FLOATS as u16, 2));
    let first = switch.first_vector(ATTACKER, INSTANCE);
    send_vector(&mut switch, ATTACKERS[1], first, SEGMENTS - 1, FLOATS);
    send_vector(&mut switch, ATTACKERS[0], first, SEGMENTS, FLOATS);
    assert!(is_busy(&switch), "the first vector should still be queued");
    let wanted = SegmentSetRepr { range: range(0, 0, 1), bitmap: &[1] };
    let help = control(ATTACKER, 9, ControlBody::Help(wanted));
    let mut sent = frame(&mut switch, ATTACKERS[1], Class::Control, &[help]);
    // The second vector finishes the aggregate while the request is in the queue.
    let last = data(SEGMENTS - 1, first, &[1.0; FLOATS]);
    sent.extend(frame(&mut switch, ATTACKERS[1], Class::Data, &[last]));
    sent.extend(turns(&mut switch).into_iter().flatten());
    assert!(indices(&sent, ATTACKERS[1]).into_iter().eq(0..SEGMENTS), "every segment should be sent once");
    assert!(results(&sent).all(|sent| is_sum_of_two(sent, 2.0)));
}

#[test]
fn joining_and_leaving_members_do_not_delay_a_long_round() {
    const SEGMENTS: u32 = 100_000;
    let mut switch = harness();
    let long = vector(Mode::Synchronous, SEGMENTS, 1, 0);
    join(&mut switch, JOB, &[1, 2], long);
    let last = data(SEGMENTS - 1, 0, &[1.0]);
    assert_eq!(frame(&mut switch, 1, Class::Data, &[last]), []);
    frame(&mut switch, 2, Class::Control, &[control(JOB, 2, ControlBody::Leave)]);
    // Each Join and Leave makes the switch scan the round again.
    let mut ended_after = None;
    for turn in 0..200 {
        let join = control(JOB, 1, ControlBody::Join(long));
        let mut sent = switch.send_in_turns(3, &join);
        sent.extend(frame(&mut switch, 3, Class::Control, &[control(JOB, 2, ControlBody::Leave)]));
        if !indices(&sent, 1).is_empty() {
            ended_after = Some(turn);
            break;
        }
    }
    assert!(ended_after.is_some(), "the last segment should be reached");
}

#[test]
fn pending_work_is_discarded_when_its_job_ends() {
    let mut switch = harness();
    fill_with_fbcasts(&mut switch);
    assert!(is_busy(&switch));
    for host in ATTACKERS {
        frame(&mut switch, host, Class::Control, &[control(ATTACKER, 2, ControlBody::Leave)]);
    }
    assert!(!is_busy(&switch));
}
