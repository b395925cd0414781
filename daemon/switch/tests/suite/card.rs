//! A switch whose rounds are summed by a card: the switch delivers the card's results as its own, and sums in the core
//! the jobs that the card cannot sum.

use crate::common::*;
use iswitch_protocol::wire::control::SegmentSetRepr;
use iswitch_protocol::wire::{Class, ControlBody, JoinRepr, Mode, Status};
use iswitch_protocol::{ElementType, ElementTypes, Round};
use iswitch_switch::{CardLimits, Config, DropReason};
use proptest::prelude::*;

const LIMITS: CardLimits = CardLimits { members: 2, segment_floats: 2, window: 3 };

fn harness() -> Harness {
    Harness::with(Config { memory_bytes: 1 << 20, card: Some(LIMITS), ..Config::default() })
}

/// Returns a switch whose job of two members is on the card.
fn on_card() -> Harness {
    let mut switch = harness();
    for host in 1..=2 {
        switch.join(host, join(2));
    }
    assert_eq!(switch.switch.move_to_card(), Some(Round::new(0)));
    assert!(switch.switch.card_job().unwrap().is_on_card);
    assert_eq!(switch.switch.move_to_card(), None, "the card has the job already");
    switch
}

impl Harness {
    fn card_result(&mut self, index: u32, round: u32, floats: &[f32]) -> Vec<Sent> {
        let bytes = weighted(index, round, 2, floats);
        let now = self.now();
        self.switch.handle_card_sums(now, &bytes, bytes.len());
        self.drain()
    }

    fn help(&mut self, host: u8, round: u32) -> Vec<Sent> {
        let wanted = SegmentSetRepr { range: range(round, 0, 3), bitmap: &[0b111] };
        self.control(host, 9, ControlBody::Help(wanted))
    }
}

#[test]
fn the_core_sums_jobs_that_exceed_a_limit_of_the_card() {
    let f16 = ElementTypes::uniform(ElementType::F16);
    let cases = [
        JoinRepr { mode: Mode::Asynchronous, ..join(2) },
        JoinRepr { elements: f16, ..join(2) },
        JoinRepr { segment_floats: 3, ..join(2) },
        join(3),
    ];
    for join in cases {
        let mut switch = harness();
        for host in 1..=3 {
            let sent = switch.join(host, join);
            let is_granted = matches!(sent, Sent::Ack { status: Status::Success, .. });
            assert_eq!(is_granted, u16::from(host) <= join.workers, "{sent:?}");
        }
        assert_eq!((switch.switch.card_job(), switch.switch.move_to_card()), (None, None), "{join:?}");
    }
    let mut switch = Harness::with(Config { memory_bytes: 1 << 20, ..Config::default() });
    for host in 1..=2 {
        switch.join(host, join(2));
    }
    assert_eq!(switch.switch.card_job(), None, "the switch has no card");
}

#[test]
fn a_job_on_the_card_has_no_more_members_than_the_card_supports() {
    for on_card in [true, false] {
        let mut switch = harness();
        for host in 1..=2 {
            switch.join(host, join(0));
        }
        assert!(!on_card || switch.switch.move_to_card().is_some());
        let sent = switch.join(3, join(0));
        if on_card {
            assert!(matches!(sent, Sent::Ack { status: Status::JobFull, expected: 2, .. }), "{sent:?}");
        } else {
            assert!(matches!(sent, Sent::Ack { status: Status::Success, .. }), "{sent:?}");
            assert_eq!(switch.switch.card_job(), None, "the core keeps the job");
        }
    }
}

#[test]
fn a_second_job_stays_in_the_core_and_the_next_one_gets_the_free_card() {
    let mut switch = on_card();
    let begin = |switch: &mut Harness, hosts: [u8; 2], job: u32| {
        for host in hosts {
            let sent = switch.send(host, Class::Control, &control(job, 1, ControlBody::Join(join(2))));
            assert!(matches!(sent[..], [Sent::Ack { status: Status::Success, .. }, ..]), "{sent:?}");
        }
    };
    begin(&mut switch, [3, 4], JOB + 1);
    assert_eq!(switch.switch.card_job().unwrap().id, JOB);
    switch.data(3, 1, 0, &[1.0, 2.0]);
    let expected = [3, 4].map(|to| result(to, 1, 0, 2, &[4.0, 6.0]));
    assert_eq!(switch.data(4, 1, 0, &[3.0, 4.0]), expected);
    assert_eq!(switch.card_result(1, 0, &[3.0, 4.0]).len(), 2, "the first job is still on the card");
    for host in 1..=2 {
        switch.control(host, 8, ControlBody::Leave);
    }
    assert_eq!(switch.switch.card_job(), None, "the second job stays in the core");
    begin(&mut switch, [5, 6], JOB + 2);
    assert_eq!(switch.switch.card_job().unwrap().id, JOB + 2);
}

#[test]
fn an_incomplete_job_is_not_handed_over() {
    let mut switch = harness();
    switch.join(1, join(2));
    assert_eq!(switch.switch.move_to_card(), None);
    switch.join(2, join(2));
    // The first contribution opens the round in the core. The card could still take over that round, because no member
    // has a result of it. Once the round has results, the card cannot take it over.
    switch.data(1, 0, 0, &[1.0, 1.0]);
    switch.data(2, 0, 0, &[1.0, 1.0]);
    assert_eq!(switch.switch.move_to_card(), None);
    for host in 1..=2 {
        switch.data(host, 1, 0, &[1.0, 1.0]);
        switch.data(host, 2, 0, &[1.0]);
    }
    switch.data(1, 0, 1, &[1.0, 1.0]);
    assert_eq!(switch.switch.move_to_card(), Some(Round::new(1)));
}

#[test]
fn results_of_the_card_are_delivered_and_kept() {
    let mut switch = on_card();
    let expected = [1, 2].map(|to| result(to, 1, 0, 2, &[3.0, 4.0]));
    assert_eq!(switch.card_result(1, 0, &[3.0, 4.0]), expected);
    assert_eq!(switch.card_result(1, 0, &[3.0, 4.0]), [], "the core has the result already");
    // The card lacks the contribution to segment 2 only.
    let missing = SegmentSetRepr { range: range(0, 0, 3), bitmap: &[0b110] };
    switch.switch.note_card_missing(&endpoint(1), missing);
    let sent = switch.help(1, 0);
    let missing = sent.iter().find_map(|sent| match sent {
        Sent::Ack { missing, .. } => Some(missing.clone()),
        _ => None,
    });
    assert_eq!(missing, Some(vec![2]), "{sent:?}");
    assert!(sent.contains(&result(1, 1, 0, 2, &[3.0, 4.0])), "{sent:?}");
    let before = switch.counters().drops(DropReason::EarlyRound);
    assert_eq!(switch.data(1, 0, 0, &[9.0, 9.0]), [], "the core adds nothing to a job on the card");
    assert_eq!(switch.counters().drops(DropReason::EarlyRound), before + 1);
}

#[test]
fn a_newcomer_starts_at_a_round_that_the_card_has_not_opened() {
    let mut switch = Harness::with(Config {
        memory_bytes: 1 << 20,
        card: Some(CardLimits { members: 3, ..LIMITS }),
        ..Config::default()
    });
    for host in 1..=2 {
        switch.join(host, join(0));
    }
    assert_eq!(switch.switch.move_to_card(), Some(Round::new(0)));
    switch.switch.note_card_round(Round::new(1));
    let sent = switch.join(3, join(0));
    assert!(matches!(sent, Sent::Ack { status: Status::Success, round: 1, .. }), "{sent:?}");
    let job = switch.switch.card_job().unwrap();
    assert_eq!((job.newest, job.threshold, job.next), (Some((Round::new(0), 2)), 3, Round::new(1)));
}

#[test]
fn fbcast_orders_the_card_to_finish_segments() {
    let mut switch = on_card();
    switch.switch.note_card_round(Round::new(1));
    switch.control(1, 2, ControlBody::FBcast(range(0, 1, 2)));
    assert_eq!(switch.switch.poll_card_closing(), Some(range(0, 1, 2)));
    assert_eq!(switch.switch.poll_card_closing(), None);
}

#[test]
fn a_departure_lowers_the_threshold_of_the_open_round() {
    let mut switch = on_card();
    switch.switch.note_card_round(Round::new(1));
    switch.control(2, 2, ControlBody::Leave);
    let job = switch.switch.card_job().unwrap();
    assert_eq!((job.newest, job.threshold), (Some((Round::new(0), 1)), 1));
    assert_eq!(job.members.iter().flatten().count(), 1);
}

proptest! {
    /// Results in any order, with repetitions, finish each segment of each round exactly once.
    #[test]
    fn each_result_is_delivered_once(order in proptest::collection::vec(0..3_u32, 0..40)) {
        let mut switch = on_card();
        let (mut round, mut done) = (0, [false; 3]);
        for index in order {
            let floats: &[f32] = if index == 2 { &[1.0] } else { &[1.0, 2.0] };
            let sent = switch.card_result(index, round, floats);
            let expected = if done[index as usize] { 0 } else { 2 };
            prop_assert_eq!(sent.len(), expected);
            done[index as usize] = true;
            if done == [true; 3] {
                (round, done) = (round + 1, [false; 3]);
            }
        }
    }
}
