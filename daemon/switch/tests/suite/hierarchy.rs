//! Hierarchy of switches: one root, two racks, two workers per rack.

mod asynchronous;
mod card;
mod tree;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use crate::common::{control, data, join, join_from, weighted};
use iswitch_protocol::limits::{MAX_HEIGHT, MAX_WORK_COST};
use iswitch_protocol::wire::{
    Action, Class, ControlBody, ControlPacket, ControlRepr, Exceeded, JoinRepr, Kind, Limit, NameRepr,
    ResumeRepr, Standing, Status,
};
use iswitch_protocol::{Round, history};
use iswitch_switch::{Config, Event, Instant, PortId, Switch, Uplinks};

use tree::{
    ALL, EPOCH, Got, JOB, LEASE_MS, Packet, RACKS, ROOT, Tree, config, resume, service, sum_of_all, uplink,
    worker,
};

#[test]
fn no_worker_starts_before_all_workers_of_all_racks_have_joined() {
    let mut tree = Tree::new();
    tree.join(1, 1, None);
    tree.join(1, 2, None);
    tree.join(2, 1, None);
    tree.sleep(50);
    assert_eq!(tree.standings(), []);
    tree.join(2, 2, None);
    let reported = tree.standings();
    assert_eq!(reported.len(), 4, "{reported:?}");
    assert!(reported.iter().all(|(_, standing, round)| (*standing, *round) == (Standing::Fresh, 0)));
}

#[test]
fn partial_sums_go_up_and_results_come_down() {
    let mut tree = Tree::formed();
    tree.take();
    // Only two rounds are possible, because a third round would wait for the other segments of the first round.
    for round in 0..2 {
        tree.contribute(1, 1, round);
        tree.contribute(1, 2, round);
        tree.contribute(2, 1, round);
        assert_eq!(tree.take(), [], "no member should get the partial sum of a rack as a result");
        tree.contribute(2, 2, round);
        assert_eq!(tree.result_for_all(), sum_of_all(round));
    }
}

#[test]
fn workers_recover_lost_partial_sums_and_results() {
    let mut tree = Tree::formed();
    tree.take();
    tree.cut = vec![*uplink(1).ip()];
    tree.contribute(1, 1, 0);
    tree.contribute(1, 2, 0);
    tree.cut.clear();
    tree.contribute(2, 1, 0);
    tree.contribute(2, 2, 0);
    assert_eq!(tree.take(), [], "the partial sum of rack 1 should be lost");
    tree.sleep(5);
    tree.cut = vec![*uplink(2).ip()];
    tree.help(1, 2, 0, 1);
    tree.cut.clear();
    let sum = (worker(1, 1), sum_of_all(0));
    assert!(tree.take().contains(&sum), "the switch should have resent the partial sum");
    tree.sleep(5);
    tree.help(2, 1, 0, 1);
    let got = tree.take();
    assert!(got.contains(&(worker(2, 2), sum_of_all(0))), "rack 2 should get the lost result: {got:?}");
}

#[test]
fn requests_of_several_members_cause_one_request_to_the_parent() {
    let mut tree = Tree::formed();
    tree.contribute(1, 1, 0);
    tree.contribute(1, 2, 0);
    tree.sleep(5);
    let asked = |tree: &Tree| tree.switches[ROOT].counters().control_received;
    let before = asked(&tree);
    tree.help(1, 1, 0, 1);
    tree.help(1, 2, 0, 3);
    assert_eq!(asked(&tree), before + 1);
    tree.sleep(5);
    tree.help(1, 2, 0, 3);
    assert_eq!(asked(&tree), before + 2, "the request should be repeated, because the answer may be lost");
}

#[test]
fn a_rack_keeps_its_membership_when_its_switch_restarts() {
    let mut tree = Tree::formed();
    let start = history::begin(EPOCH, JOB, Round::new(0));
    tree.contribute(1, 1, 0);
    tree.contribute(2, 1, 0);
    tree.contribute(2, 2, 0);
    tree.take();
    tree.restart(1, 201);
    tree.join(1, 1, resume(0, start, 0));
    assert_eq!(tree.standings(), [], "the job should wait for the other worker");
    tree.join(1, 2, resume(0, start, 0));
    let reported = tree.standings();
    assert_eq!(reported, [1, 2].map(|place| (worker(1, place), Standing::Resumed, 0)));
    tree.contribute(1, 2, 0);
    tree.contribute(1, 1, 0);
    assert_eq!(tree.result_for_all(), sum_of_all(0));
}

#[test]
fn a_restarted_rack_fetches_existing_results_from_the_root() {
    let mut tree = Tree::formed();
    let start = history::begin(EPOCH, JOB, Round::new(0));
    for (rack, place) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
        tree.contribute(rack, place, 0);
    }
    tree.restart(1, 201);
    for place in 1..=2 {
        tree.join(1, place, resume(0, start, 0));
    }
    tree.take();
    // The other worker has the result from the earlier run, so it does not contribute again.
    tree.contribute(1, 1, 0);
    tree.help(1, 1, 0, 1);
    let got = tree.take();
    assert!(got.contains(&(worker(1, 1), sum_of_all(0))), "{got:?}");
}

#[test]
fn each_worker_of_a_restarted_rack_resumes_at_its_own_round() {
    let mut tree = Tree::formed();
    let start = history::begin(EPOCH, JOB, Round::new(0));
    let after = history::after(start, EPOCH, Round::new(0));
    for round in 0..2 {
        for (rack, place) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
            tree.contribute(rack, place, round);
        }
    }
    tree.restart(1, 201);
    tree.take();
    // The first worker was disconnected for one round.
    tree.join(1, 1, resume(0, start, 0));
    tree.join(1, 2, resume(1, after, 0));
    let reported = tree.standings();
    assert_eq!(reported, [1, 2].map(|place| (worker(1, place), Standing::Resumed, u32::from(place) - 1)));
}

#[test]
fn after_a_root_restart_racks_rejoin_and_a_missing_sum_is_replayed() {
    let mut tree = Tree::formed();
    let start = history::begin(EPOCH, JOB, Round::new(0));
    let after = history::after(start, EPOCH, Round::new(0));
    tree.restart(ROOT, 300);
    tree.take();
    // The heartbeats from the racks reveal that the root no longer knows them.
    tree.live(400);
    let forgotten =
        |(_, got): &(SocketAddrV4, Got)| matches!(got, Got::Ack { status: Status::UnknownMember, .. });
    let reported = tree.take();
    let is_notified = |to: SocketAddrV4| reported.iter().any(|got| got.0 == to && forgotten(got));
    assert!(RACKS.into_iter().all(|rack| is_notified(worker(rack, 1)) && is_notified(worker(rack, 2))));
    // Rack 1 has the sum of round 0, but rack 2 lacks it.
    tree.join(1, 1, resume(1, after, start));
    tree.join(1, 2, resume(1, after, 0));
    tree.join(2, 1, resume(0, start, 0));
    tree.join(2, 2, resume(0, start, 0));
    let reported = tree.standings();
    let base = reported[1].2;
    assert!(base >= 1 + 3 + 300 % 256);
    let expected = [
        (worker(1, 1), Standing::Supplies, base - 1),
        (worker(1, 2), Standing::Resumed, base),
        (worker(2, 1), Standing::Awaits, base - 1),
        (worker(2, 2), Standing::Awaits, base - 1),
    ];
    assert_eq!(reported, expected);
    tree.send(1, 1, Class::Data, &weighted(0, base - 1, 4, &[ALL, ALL]));
    assert_eq!(tree.result_for_all(), sum_of_all(base - 1));
    for (rack, place) in [(2, 2), (1, 1), (2, 1), (1, 2)] {
        tree.contribute(rack, place, base);
    }
    assert_eq!(tree.result_for_all(), sum_of_all(base));
}

#[test]
fn a_sum_missing_at_one_worker_is_replayed_within_its_rack() {
    let mut tree = Tree::formed();
    let start = history::begin(EPOCH, JOB, Round::new(0));
    let after = history::after(start, EPOCH, Round::new(0));
    tree.restart(ROOT, 300);
    tree.live(400);
    tree.take();
    tree.join(1, 1, resume(1, after, start));
    tree.join(1, 2, resume(0, start, 0));
    tree.join(2, 1, resume(1, after, 0));
    tree.join(2, 2, resume(1, after, 0));
    let reported = tree.standings();
    let base = reported[2].2;
    assert_eq!(reported[0], (worker(1, 1), Standing::Supplies, base - 1));
    assert_eq!(reported[1], (worker(1, 2), Standing::Awaits, base - 1));
    let before = tree.switches[ROOT].counters().data_received;
    tree.send(1, 1, Class::Data, &weighted(0, base - 1, 4, &[ALL, ALL]));
    let got: Vec<_> = tree.take();
    assert_eq!(got, [1, 2].map(|place| (worker(1, place), sum_of_all(base - 1))));
    assert_eq!(tree.switches[ROOT].counters().data_received, before, "the root should not be involved");
}

#[test]
fn a_lost_parent_is_reported_and_no_local_sum_is_delivered() {
    let mut tree = Tree::formed();
    tree.events(1);
    tree.cut = vec![*uplink(1).ip()];
    tree.contribute(1, 1, 0);
    tree.contribute(1, 2, 0);
    tree.take();
    tree.live(600);
    assert!(tree.events(1).contains(&Event::ParentLost { job: JOB, parent: service(ROOT) }));
    tree.help(1, 1, 0, 1);
    let got = tree.take();
    let reported = |(_, got): &(SocketAddrV4, Got)| matches!(got, Got::Ack { orphaned: true, .. });
    assert!(got.iter().any(reported), "{got:?}");
    assert!(!got.iter().any(|(_, got)| matches!(got, Got::Result { .. })));
    // The link recovers before the lease expires, so nothing is lost.
    tree.cut.clear();
    tree.contribute(2, 1, 0);
    tree.contribute(2, 2, 0);
    tree.take();
    tree.live(200);
    assert!(tree.events(1).contains(&Event::ParentFound { job: JOB, parent: service(ROOT) }));
    tree.help(1, 1, 0, 1);
    let got = tree.take();
    assert!(got.contains(&(worker(1, 2), sum_of_all(0))), "{got:?}");
}

#[test]
fn a_suspended_switch_does_not_report_its_parent_as_lost() {
    let mut tree = Tree::formed();
    tree.events(1);
    for asleep_ms in [u64::from(LEASE_MS) * 4 / 10, u64::from(LEASE_MS) * 2] {
        // The switch has sent no request, so the parent could not answer.
        tree.now_ms += asleep_ms;
        tree.sleep(500);
        let lost = |event: &Event| matches!(event, Event::ParentLost { .. });
        assert!(!tree.events(1).iter().any(lost), "{asleep_ms} ms");
    }
}

#[test]
fn a_parent_that_never_answers_is_reported_as_lost() {
    let mut tree = Tree::new();
    tree.cut = vec![*service(ROOT).ip()];
    tree.join(1, 1, None);
    let status = |tree: &Tree| tree.switches[1].jobs().next().unwrap();
    tree.live(200);
    assert!(!status(&tree).parent_lost, "the parent should have more time to answer");
    tree.live(2000);
    assert!(tree.events(1).contains(&Event::ParentLost { job: JOB, parent: service(ROOT) }));
    assert_eq!((status(&tree).parent_lost, status(&tree).parent), (true, Some(service(ROOT))));
    tree.cut.clear();
    tree.live(600);
    assert!(!status(&tree).parent_lost);
}

#[test]
fn a_rack_cut_off_beyond_its_lease_is_notified_of_missed_rounds() {
    let mut tree = Tree::formed();
    let start = history::begin(EPOCH, JOB, Round::new(0));
    tree.contribute(2, 1, 0);
    tree.contribute(2, 2, 0);
    tree.cut = vec![*uplink(1).ip()];
    tree.live(1500);
    let sum = Got::Result { index: 0, round: 0, contributions: 2, first: 43.0 };
    assert!(
        tree.take().contains(&(worker(2, 1), sum)),
        "the other rack should get a result with the actual count"
    );
    tree.cut.clear();
    tree.live(300);
    tree.join(1, 1, resume(0, start, 0));
    tree.join(1, 2, resume(0, start, 0));
    let reported = tree.standings();
    assert_eq!(reported, [1, 2].map(|place| (worker(1, place), Standing::Fresh, 1)));
}

#[test]
fn reset_and_halt_reach_all_racks() {
    let mut tree = Tree::formed();
    tree.contribute(1, 1, 0);
    tree.take();
    tree.send(1, 1, Class::Control, &control(JOB, 5, ControlBody::Halt));
    let notices = |tree: &mut Tree| tree.take().iter().filter(|(_, got)| *got == Got::Notice).count();
    assert_eq!(notices(&mut tree), 4);
    let reset = control(JOB, 6, ControlBody::Reset { boot: EPOCH });
    tree.send(1, 1, Class::Control, &reset);
    let mut dismissed = tree.take();
    dismissed.retain(|(_, got)| matches!(got, Got::Ack { status: Status::UnknownMember, .. }));
    assert_eq!(dismissed.len(), 4);
    let start = history::begin(EPOCH, JOB, Round::new(0));
    for (rack, place) in [(2, 2), (1, 1), (2, 1), (1, 2)] {
        tree.join(rack, place, resume(0, start, 0));
    }
    let reported = tree.standings();
    let base = reported[0].2;
    assert!(reported.iter().all(|(_, standing, round)| (*standing, *round) == (Standing::Resumed, base)));
    tree.send(1, 1, Class::Control, &reset);
    let got = tree.take();
    let granted = |got: &Got| matches!(got, Got::Ack { action: Action::Reset, status: Status::Success, .. });
    assert!(got.len() == 1 && granted(&got[0].1), "a repeated Reset should only be acknowledged: {got:?}");
    for (rack, place) in [(2, 2), (1, 1), (2, 1), (1, 2)] {
        tree.contribute(rack, place, base);
    }
    assert_eq!(tree.result_for_all(), sum_of_all(base));
}

#[test]
fn a_rack_detects_a_reset_whose_dismissal_was_lost() {
    let mut tree = Tree::formed();
    tree.send(1, 1, Class::Control, &control(JOB, 5, ControlBody::Halt));
    tree.cut = vec![*uplink(2).ip()];
    tree.send(1, 1, Class::Control, &control(JOB, 6, ControlBody::RESET));
    tree.cut.clear();
    tree.take();
    tree.live(300);
    let has_to_join_again = |(to, got): &(SocketAddrV4, Got)| {
        *to == worker(2, 1) && matches!(got, Got::Ack { status: Status::UnknownMember, .. })
    };
    assert!(tree.take().iter().any(has_to_join_again));
}

/// Returns a tree in which both workers of rack 1 have left during round 0, `sends` of them only after contributing to
/// the first segment. A third worker of the rack participates from round 1 on.
fn deserted(sends: u8) -> Tree {
    let mut tree = Tree::formed();
    for place in 1..=2 {
        tree.send(1, place, Class::Data, &data(1, 0, &[1.0, 1.0]));
    }
    (1..=sends).for_each(|place| tree.contribute(1, place, 0));
    tree.join(1, 3, None);
    for place in 1..=2 {
        tree.send(1, place, Class::Control, &control(JOB, 7, ControlBody::Leave));
    }
    tree.take();
    tree
}

#[test]
fn a_round_deserted_by_a_rack_completes_with_its_contributions() {
    for (sends, contributions, first) in [(0, 2, 43.0), (1, 3, 54.0)] {
        let mut tree = deserted(sends);
        tree.contribute(2, 1, 0);
        tree.contribute(2, 2, 0);
        let sum = Got::Result { index: 0, round: 0, contributions, first };
        assert!(tree.take().contains(&(worker(2, 1), sum)), "{sends} contributed before leaving");
        // The worker that has joined since continues with the next round.
        tree.contribute(2, 1, 1);
        tree.contribute(2, 2, 1);
        tree.contribute(1, 3, 1);
        let sum = Got::Result { index: 0, round: 1, contributions: 3, first: 56.0 };
        assert!(tree.take().contains(&(worker(1, 3), sum)));
    }
}

/// Returns the first segments of the ranges that a switch requests from its parent in one turn.
fn asked_for(switch: &mut Switch) -> Vec<u32> {
    let mut asked = Vec::new();
    while let Some(transmit) = switch.poll_transmit() {
        let packet = ControlPacket::new_checked(transmit.payload).ok();
        let repr = packet.and_then(|packet| ControlRepr::parse(&packet).map(|repr| repr.body).ok());
        if let (Class::Control, Some(ControlBody::Help(set))) = (transmit.class, repr) {
            asked.extend(set.indices().next());
        }
    }
    asked
}

#[test]
fn a_deserted_long_round_is_scanned_over_many_turns() {
    const SEGMENTS: u32 = 20_000;
    let long = JoinRepr { instance: 1, ..JoinRepr::worker(SEGMENTS, 1, 4) };
    let mut tree = Tree::new();
    for (at, switch) in tree.switches.iter_mut().enumerate() {
        *switch = Switch::new(Config { memory_bytes: 64 << 20, ..config(at, 100 + at as u64) });
    }
    for rack in RACKS {
        (1..=2).for_each(|place| tree.send_join(rack, place, long));
    }
    (1..=2).for_each(|place| tree.send(1, place, Class::Data, &data(1, 0, &[1.0])));
    tree.send_join(1, 3, long);
    for place in 1..=2 {
        tree.send(1, place, Class::Control, &control(JOB, 7, ControlBody::Leave));
    }
    // Only the last segment has no result.
    let packets: Vec<_> = (0..SEGMENTS - 1).map(|index| data(index, 0, &[1.0])).collect();
    for frame in packets.chunks(1000) {
        for place in 1..=2 {
            let (from, to, payload) = (worker(2, place), service(2), frame.concat());
            tree.wire.push_back(Packet { from, to, class: Class::Data, payload, stride: frame[0].len() });
            tree.run();
        }
    }
    tree.sleep(50);
    let rack = &mut tree.switches[1];
    let due = rack.poll_timeout().expect("a heartbeat should be scheduled");
    assert!(due > Instant::from_nanos(tree.now_ms * 1_000_000), "the switch should have no work left");
    let mut turns = 0;
    let asked = loop {
        rack.handle_timeout(due);
        turns += 1;
        let asked = asked_for(rack);
        if !asked.is_empty() || rack.poll_timeout().is_none_or(|next| next > due) {
            break asked;
        }
    };
    assert_eq!(asked, [SEGMENTS - 1]);
    let at_once = 2 * MAX_WORK_COST;
    assert!(turns >= SEGMENTS / at_once, "unexpected number of turns: {turns}");
}

#[test]
fn lost_partial_sums_of_a_deserted_round_are_retransmitted() {
    let mut tree = Tree::formed();
    for place in 1..=2 {
        tree.send(1, place, Class::Data, &data(1, 0, &[1.0, 1.0]));
    }
    tree.join(1, 3, None);
    tree.cut = vec![*uplink(1).ip()];
    for place in 1..=2 {
        tree.send(1, place, Class::Control, &control(JOB, 7, ControlBody::Leave));
    }
    tree.cut.clear();
    tree.contribute(2, 1, 0);
    tree.contribute(2, 2, 0);
    tree.take();
    tree.live(300);
    let sum = Got::Result { index: 0, round: 0, contributions: 2, first: 43.0 };
    assert!(tree.take().contains(&(worker(2, 1), sum)));
}

#[test]
fn a_rack_with_a_changed_weight_must_rejoin_a_restarted_root() {
    let mut tree = Tree::formed();
    tree.restart(ROOT, 300);
    tree.take();
    tree.join(1, 3, None);
    let has_to_join_again = |(to, got): &(SocketAddrV4, Got)| {
        *to == worker(1, 1) && matches!(got, Got::Ack { status: Status::UnknownMember, .. })
    };
    assert!(tree.take().iter().any(has_to_join_again));
    assert_eq!(
        tree.switches[ROOT].jobs().count(),
        0,
        "the root should not create a job from leftover packets"
    );
}

#[test]
fn a_rack_resumes_without_a_worker_that_does_not_return() {
    let mut tree = Tree::formed();
    let start = history::begin(EPOCH, JOB, Round::new(0));
    tree.restart(1, 201);
    tree.join(1, 1, resume(0, start, 0));
    tree.take();
    tree.live(1500);
    let reported = tree.standings();
    assert_eq!(reported, [(worker(1, 1), Standing::Resumed, 0)]);
}

/// Returns whether rack 1 continues after a restart of the root if rack 2 does not rejoin.
fn half_goes_on(parents: &[SocketAddrV4]) -> bool {
    let mut tree = Tree::formed();
    let start = history::begin(EPOCH, JOB, Round::new(0));
    tree.restart(ROOT, 300);
    tree.switches[1] = Switch::new(Config { uplinks: Uplinks::new(parents, PortId(1), 4), ..config(1, 301) });
    tree.switches[2] = Switch::new(config(2, 302));
    for place in 1..=2 {
        tree.join(1, place, resume(0, start, 0));
    }
    tree.take();
    tree.live(1500);
    tree.standings().iter().any(|(to, standing, _)| (*to, *standing) == (worker(1, 1), Standing::Resumed))
}

#[test]
fn half_a_job_resumes_unless_the_rest_may_use_another_parent() {
    assert!(half_goes_on(&[service(ROOT)]));
    assert!(!half_goes_on(&[service(ROOT), service(9)]));
}

#[test]
fn racks_of_newcomers_yield_to_a_returning_rack() {
    let mut tree = Tree::new();
    let undeclared = |resume| JoinRepr { workers: 0, resume, ..join(0) };
    tree.send_join(1, 1, undeclared(None));
    tree.contribute(1, 1, 0);
    tree.take();
    let old = ResumeRepr { members: 2, weight: 2, ..resume(50, 1000, 0) };
    tree.send_join(2, 1, undeclared(Some(old)));
    tree.send_join(2, 2, undeclared(Some(old)));
    let has_to_join_again = |(to, got): &(SocketAddrV4, Got)| {
        *to == worker(1, 1) && matches!(got, Got::Ack { status: Status::UnknownMember, .. })
    };
    assert!(tree.take().iter().any(has_to_join_again));
    assert!(tree.events(ROOT).contains(&Event::GaveWay { job: JOB }));
    let status = tree.switches[2].job_status(JOB).unwrap();
    assert!(status.formed);
    // If the parent knows the job, the rack does not compare the histories of its workers.
    let other = ResumeRepr { history: 77, ..old };
    tree.send_join(2, 3, undeclared(Some(other)));
    assert_eq!(tree.switches[2].job_status(JOB).unwrap().members.len(), 3);
    assert!(!tree.events(2).contains(&Event::GaveWay { job: JOB }));
}

#[test]
fn a_rack_of_newcomers_does_not_yield_on_its_own() {
    let mut tree = Tree::new();
    let undeclared = |resume| JoinRepr { workers: 0, resume, ..join(0) };
    tree.send_join(1, 1, undeclared(None));
    tree.take();
    tree.send_join(1, 2, undeclared(Some(resume(50, 1000, 0))));
    assert!([ROOT, 1].iter().all(|at| !tree.events(*at).contains(&Event::GaveWay { job: JOB })));
    let reported = tree.standings();
    assert!(
        reported.iter().any(|(to, standing, _)| (*to, *standing) == (worker(1, 2), Standing::Fresh)),
        "{reported:?}"
    );
}

#[test]
fn switches_in_a_cycle_are_refused() {
    let mut tree = Tree::new();
    let join = JoinRepr { kind: Kind::Switch, height: MAX_HEIGHT, ..join(4) };
    tree.send_join(1, 1, join);
    let got = tree.take();
    assert!(matches!(got[..], [(_, Got::Ack { status: Status::TooManyLevels, .. })]), "{got:?}");

    // Two switches that are each other's parent report increasing heights until one of them refuses.
    let uplinks = |peer| Uplinks::new(&[service(peer)], PortId(1), 4);
    for at in [1, 2] {
        let config = Config { uplinks: uplinks(3 - at), ..config(at, 400 + at as u64) };
        tree.switches[at] = Switch::new(config);
    }
    tree.join(1, 1, None);
    tree.sleep(500);
    let refused = |event: &Event| matches!(event, Event::ParentRefused { status: Status::TooManyLevels, .. });
    assert!(RACKS.into_iter().any(|rack| tree.events(rack).iter().any(refused)));
    let refusal = |rack: usize| tree.switches[rack].jobs().next().unwrap().parent_refusal;
    let refusals: Vec<_> = RACKS.into_iter().filter_map(refusal).collect();
    assert!(!refusals.is_empty());
    assert!(refusals.iter().all(|refusal| refusal == "levels of switches (expected 8)"), "{refusals:?}");
    tree.sleep(2500);
    assert_eq!(tree.standings(), [], "no worker should ever start");
}

#[test]
fn a_rack_passes_on_the_limit_for_which_its_parent_refuses_it() {
    let mut tree = Tree::new();
    tree.switches[ROOT] = Switch::new(Config { memory_bytes: 64 << 10, ..config(ROOT, 400) });
    let long = JoinRepr { instance: 1, ..JoinRepr::worker(20_000, 366, 4) };
    tree.send_join(1, 1, long);
    tree.send_join(1, 2, long);
    tree.sleep(500);
    let limit = Some(Exceeded { limit: Limit::Memory, value: 64 << 10 });
    let events = tree.events(1);
    let refused = events.iter().find(|event| matches!(event, Event::ParentRefused { .. }));
    assert_eq!(refused.and_then(Event::exceeded), limit, "{events:?}");
    let text = refused.unwrap().to_string();
    let reason = tree.switches[1].jobs().next().unwrap().parent_refusal.unwrap();
    assert!(reason.contains("has 64 KiB of memory for sums (iswitchd --memory-mib)"), "{reason}");
    assert!(text.ends_with(&reason), "{text}");
}

/// A switch with three parent candidates and one member, which joins one job after another.
struct Orphan {
    switch: Switch,
    now: Instant,
}

impl Orphan {
    fn new() -> Self {
        let parents = [9, 3, 7].map(|last| SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, last), 7711));
        let uplinks = Uplinks::new(&parents, PortId(1), 1);
        Self { switch: Switch::new(Config { uplinks, ..config(1, 1) }), now: Instant::from_nanos(1) }
    }

    fn send(&mut self, body: ControlBody<'_>) {
        let packet = control(JOB, 1, body);
        join_from(&mut self.switch, self.now, &crate::common::endpoint(1), &packet);
    }

    /// Returns the last octets of the addresses of the parents that the switch tries within `ms` milliseconds.
    fn tried_in(&mut self, ms: u64) -> Vec<u8> {
        let mut tried = Vec::new();
        for _ in 0..ms / 100 {
            while let Some(transmit) = self.switch.poll_transmit() {
                let to = *transmit.recipients().next().unwrap();
                if to.port == PortId(1) && tried.last() != Some(&to.peer.ip().octets()[3]) {
                    tried.push(to.peer.ip().octets()[3]);
                }
            }
            self.now = self.now.plus(Duration::from_millis(100));
            self.send(ControlBody::HEARTBEAT);
            self.switch.handle_timeout(self.now);
        }
        tried
    }
}

#[test]
fn parents_are_tried_in_address_order() {
    let mut orphan = Orphan::new();
    orphan.send(ControlBody::Join(join(4)));
    assert_eq!(orphan.tried_in(6000)[..4], [3, 7, 9, 3]);
}

#[test]
fn a_new_job_tries_the_first_parent_first() {
    let mut orphan = Orphan::new();
    orphan.send(ControlBody::Join(join(4)));
    assert_eq!(orphan.tried_in(2000), [3, 7]);
    orphan.send(ControlBody::Leave);
    orphan.send(ControlBody::Join(join(4)));
    assert_eq!(orphan.tried_in(500).last(), Some(&3), "a new job should begin at the first parent");
}

/// Section 14, N-5.
#[test]
fn a_rack_states_its_host_and_the_name_of_the_job_to_the_root() {
    let mut tree = Tree::new();
    for rack in RACKS {
        let named = config(rack, 100 + rack as u64);
        let host = format!("rack{rack}").parse().unwrap();
        let uplinks = named.uplinks.map(|uplinks| uplinks.with_host(host));
        tree.switches[rack] = Switch::new(Config { uplinks, ..named });
    }
    for rack in RACKS {
        (1..=2).for_each(|place| tree.join(rack, place, None));
    }
    tree.run();
    let shown = |tree: &Tree| {
        let status = tree.switches[ROOT].job_status(JOB).unwrap();
        let hosts = status.members.into_iter().map(|member| (member.rank, member.host)).collect::<Vec<_>>();
        (status.name, hosts)
    };
    tree.sleep(2 * u64::from(LEASE_MS) / 8);
    let hosts: Vec<_> = RACKS.iter().map(|rack| (None, Some(format!("rack{rack}")))).collect();
    assert_eq!(shown(&tree), (None, hosts.clone()));
    let stated = NameRepr { job: "ppo".parse().unwrap(), rank: Some(3), ..NameRepr::UNKNOWN };
    tree.send(2, 1, Class::Control, &control(JOB, 9, ControlBody::Name(stated)));
    tree.sleep(2 * u64::from(LEASE_MS) / 8);
    assert_eq!(shown(&tree), (Some("ppo".to_owned()), hosts));
}
