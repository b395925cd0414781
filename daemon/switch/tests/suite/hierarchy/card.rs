//! A rack whose rounds are summed by a card: the sums of the card are partial sums for the parent.

use crate::common::{control, data, range, weighted};
use iswitch_protocol::Round;
use iswitch_protocol::wire::{Class, ControlBody};
use iswitch_switch::{CardLimits, Config, Switch};

use super::tree::{ALL, Got, JOB, Packet, ROOT, Tree, config, resume, service, sum_of_all, uplink, worker};

const RACK: usize = 1;
/// The job has more workers than the card supports, but the rack has not.
const LIMITS: CardLimits = CardLimits { members: 3, segment_floats: 366, window: 127 };

fn with_card(boot: u64) -> Switch {
    Switch::new(Config { card: Some(LIMITS), ..config(RACK, boot) })
}

/// Returns a tree in which all four workers have joined, and whose job is on the card of rack 1.
fn on_card() -> Tree {
    let mut tree = Tree::new();
    tree.switches[RACK] = with_card(101);
    for (rack, place) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
        tree.join(rack, place, None);
    }
    tree.take();
    assert_eq!(tree.switches[RACK].move_to_card(), Some(Round::new(0)));
    let job = tree.switches[RACK].card_job().unwrap();
    assert!(job.is_on_card && job.has_parent && !job.waits_for_no_member, "{job:?}");
    tree
}

/// Passes a sum from the card of rack 1 to the switch.
fn card_sends(tree: &mut Tree, index: u32, round: u32, contributions: u16, sum: f32) {
    let floats: &[f32] = if index == 2 { &[sum] } else { &[sum, sum] };
    let bytes = weighted(index, round, contributions, floats);
    let now = tree.now();
    tree.switches[RACK].handle_card_sums(now, &bytes, bytes.len());
    tree.run();
}

/// Finishes all segments of a round, and discards what the workers receive.
fn finish(tree: &mut Tree, round: u32) {
    for index in 0..3 {
        card_sends(tree, index, round, 2, 23.0);
        for place in 1..=2 {
            let floats: &[f32] = if index == 2 { &[1.0] } else { &[1.0, 1.0] };
            tree.send(2, place, Class::Data, &data(index, round, floats));
        }
    }
    tree.take();
}

#[test]
fn sums_of_the_card_go_to_the_parent_and_its_results_to_the_members() {
    let mut tree = on_card();
    for round in 0..2 {
        card_sends(&mut tree, 0, round, 2, 23.0);
        card_sends(&mut tree, 0, round, 2, 99.0);
        tree.contribute(2, 1, round);
        assert_eq!(tree.take(), [], "no member should get the sum of the card as a result");
        tree.contribute(2, 2, round);
        assert_eq!(tree.result_for_all(), sum_of_all(round));
    }
    let counters = tree.switches[RACK].counters();
    assert_eq!((counters.partials, counters.results, counters.contributions), (2, 2, 4));
}

#[test]
fn a_lost_partial_sum_of_the_card_is_retransmitted() {
    let mut tree = on_card();
    tree.cut = vec![*uplink(RACK).ip()];
    card_sends(&mut tree, 0, 0, 2, 23.0);
    tree.cut.clear();
    tree.contribute(2, 1, 0);
    tree.contribute(2, 2, 0);
    assert_eq!(tree.take(), [], "the partial sum of rack 1 should be lost");
    tree.sleep(5);
    tree.help(RACK, 1, 0, 1);
    assert!(tree.take().contains(&(worker(RACK, 1), sum_of_all(0))));
}

#[test]
fn the_core_continues_a_round_that_the_parent_finishes_without_the_card() {
    let mut tree = on_card();
    tree.contribute(2, 1, 0);
    tree.contribute(2, 2, 0);
    let payload = control(JOB, 77, ControlBody::FBcast(range(0, 0, 1)));
    let (from, to, class, stride) = (uplink(2), service(ROOT), Class::Control, payload.len());
    tree.wire.push_back(Packet { from, to, class, payload, stride });
    tree.run();
    tree.sleep(1);
    let got = Got::Result { index: 0, round: 0, contributions: 2, first: 43.0 };
    assert!(tree.take().contains(&(worker(RACK, 1), got)));
    assert!(!tree.switches[RACK].card_job().unwrap().is_on_card);
    assert_eq!(tree.switches[RACK].move_to_card(), None, "the round is not finished");
    for (rack, place) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
        tree.send(rack, place, Class::Data, &data(1, 0, &[1.0, 1.0]));
        tree.send(rack, place, Class::Data, &data(2, 0, &[1.0]));
    }
    assert_eq!(tree.switches[RACK].move_to_card(), Some(Round::new(1)));
    finish(&mut tree, 1);
    card_sends(&mut tree, 0, 2, 2, 23.0);
    tree.contribute(2, 1, 2);
    tree.contribute(2, 2, 2);
    assert_eq!(tree.result_for_all(), sum_of_all(2));
}

#[test]
fn a_round_on_the_card_completes_after_all_participants_have_left() {
    let mut tree = on_card();
    tree.switches[RACK].note_card_round(Round::new(1));
    for place in 1..=2 {
        tree.send(RACK, place, Class::Control, &control(JOB, 7, ControlBody::Leave));
    }
    // The job ends when its last member leaves.
    assert!(tree.switches[RACK].card_job().is_none());

    let mut tree = on_card();
    tree.switches[RACK].note_card_round(Round::new(1));
    tree.join(RACK, 3, None);
    for place in 1..=2 {
        tree.send(RACK, place, Class::Control, &control(JOB, 7, ControlBody::Leave));
    }
    assert!(tree.switches[RACK].card_job().unwrap().waits_for_no_member);
    // The card had one contribution to segment 0.
    card_sends(&mut tree, 0, 0, 1, 11.0);
    tree.take();
    let now = tree.now();
    tree.switches[RACK].take_from_card();
    tree.switches[RACK].handle_timeout(now);
    tree.run();
    for place in 1..=2 {
        tree.contribute(2, place, 0);
        tree.send(2, place, Class::Data, &data(1, 0, &[1.0, 1.0]));
        tree.send(2, place, Class::Data, &data(2, 0, &[1.0]));
    }
    tree.sleep(1);
    let got = tree.take();
    let sum =
        |index, contributions, first| (worker(2, 1), Got::Result { index, round: 0, contributions, first });
    for sum in [sum(0, 3, 54.0), sum(1, 2, 2.0), sum(2, 2, 2.0)] {
        assert!(got.contains(&sum), "{sum:?} in {got:?}");
    }
    assert_eq!(tree.switches[RACK].move_to_card(), Some(Round::new(1)), "worker 3 takes part in round 1");
}

#[test]
fn a_resumed_rack_sums_its_first_round_in_the_core() {
    let mut tree = on_card();
    finish(&mut tree, 0);
    let start = iswitch_protocol::history::begin(super::tree::EPOCH, JOB, Round::new(0));
    let after = iswitch_protocol::history::after(start, super::tree::EPOCH, Round::new(0));
    tree.switches[RACK] = with_card(201);
    for place in 1..=2 {
        tree.join(RACK, place, resume(1, after, start));
    }
    assert_eq!(tree.switches[RACK].move_to_card(), None, "a worker may already have results of round 1");
    for (rack, place) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
        tree.contribute(rack, place, 1);
        tree.send(rack, place, Class::Data, &data(1, 1, &[1.0, 1.0]));
        tree.send(rack, place, Class::Data, &data(2, 1, &[1.0]));
    }
    assert!(
        tree.take()
            .contains(&(worker(RACK, 2), Got::Result { index: 0, round: 1, contributions: 4, first: ALL }))
    );
    assert_eq!(tree.switches[RACK].move_to_card(), Some(Round::new(2)));
}
