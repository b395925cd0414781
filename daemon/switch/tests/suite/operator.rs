//! Orders of the operator: jobs, members, limits and keys change while the switch runs.

use crate::common::{Harness, JOB, LEASE_MS, Sent, control, join, result};
use iswitch_protocol::wire::{ControlBody, JoinRepr, Status};
use iswitch_switch::{Departure, DropReason, Event, Limits, NonFinite, Order, OrderError};

impl Harness {
    /// Gives an order, checks that the switch carries it out, and returns the packets that the switch sends.
    fn order(&mut self, order: Order) -> Vec<Sent> {
        self.switch.obey(self.now(), order).expect("the order should be carried out");
        self.drain()
    }

    fn refusal_of(&mut self, order: Order) -> OrderError {
        let error = self.switch.obey(self.now(), order).expect_err("the order should be refused");
        assert_eq!(self.drain(), [], "a refused order should have no effect");
        error
    }
}

fn status(sent: &Sent) -> Option<Status> {
    match sent {
        Sent::Ack { status, .. } => Some(*status),
        _ => None,
    }
}

fn reason(sent: &Sent) -> Option<&'static str> {
    match sent {
        Sent::Ack { status, expected, .. } => Some(status.reason(*expected)),
        _ => None,
    }
}

#[test]
fn a_job_is_halted_and_resumed() {
    let mut switch = Harness::formed(2);
    switch.round(&[1, 2], 0);
    assert_eq!(switch.refusal_of(Order::Resume { job: JOB }), OrderError::NotHalted { job: JOB });
    let halted = [1, 2].map(|to| Sent::Halted { to });
    assert_eq!(switch.order(Order::Halt { job: JOB }), halted);
    assert_eq!(status(&switch.data(1, 0, 1, &[1.0, 1.0])[0]), Some(Status::Halted));
    let answers: Vec<_> = switch.order(Order::Resume { job: JOB }).iter().map(status).collect();
    assert_eq!(answers, [Some(Status::UnknownMember); 2], "the members should rejoin");
    for host in [1, 2] {
        assert_eq!(status(&switch.join(host, join(2))), Some(Status::Success));
    }
    let round = switch.switch.job_status(JOB).unwrap().round.map_or(0, |round| round + 1);
    switch.round(&[1, 2], round.max(1));
    assert!(!switch.switch.job_status(JOB).unwrap().halted);
}

#[test]
fn a_removed_job_is_refused_for_a_lease() {
    let mut switch = Harness::formed(2);
    let sent = switch.order(Order::Remove { job: JOB });
    assert_eq!(sent[..2], [1, 2].map(|to| Sent::Halted { to }));
    assert_eq!(switch.switch.jobs().count(), 0);
    assert_eq!(reason(&switch.join(1, join(2))), Some("the operator has removed the job"));
    let other = control(JOB + 1, 1, ControlBody::Join(join(2)));
    let answer = switch.send(1, iswitch_protocol::wire::Class::Control, &other);
    assert_eq!(
        answer.iter().filter_map(status).next_back(),
        Some(Status::Success),
        "Joins to other jobs should be granted"
    );
    switch.sleep(u64::from(LEASE_MS));
    assert_eq!(status(&switch.join(2, join(2))), Some(Status::Success));
}

#[test]
fn an_expelled_member_stays_away_and_the_others_continue() {
    let mut switch = Harness::formed(3);
    switch.data(1, 0, 0, &[1.0, 1.0]);
    switch.data(3, 0, 0, &[3.0, 3.0]);
    switch.events();
    let unknown = OrderError::UnknownMember { job: JOB, member: 7 };
    assert_eq!(switch.refusal_of(Order::Expel { job: JOB, member: 7 }), unknown);
    let sent = switch.order(Order::Expel { job: JOB, member: 1 });
    assert_eq!(reason(&sent[0]), Some("expelled by the operator"));
    assert_eq!(sent[1..], [1, 3].map(|to| result(to, 0, 0, 2, &[4.0, 4.0])));
    let expelled = |event: &Event| matches!(event, Event::Left { member: 1, why: Departure::Expelled, .. });
    assert!(switch.events().iter().any(expelled));
    assert_eq!(reason(&switch.join(2, join(0))), Some("expelled by the operator"));
    switch.sleep(u64::from(LEASE_MS) / 2);
    let refused = switch.join(2, join(0));
    assert_eq!(reason(&refused), Some("expelled by the operator"), "the ban should last for a lease");
}

#[test]
fn orders_name_unknown_jobs() {
    let mut switch = Harness::formed(1);
    let job = JOB + 1;
    for order in [
        Order::Halt { job },
        Order::Resume { job },
        Order::Reset { job },
        Order::Remove { job },
        Order::Expel { job, member: 0 },
    ] {
        assert_eq!(switch.refusal_of(order), OrderError::UnknownJob { job });
    }
    assert_eq!(
        OrderError::UnknownJob { job }.to_string(),
        "job is 6, expected the number of a job of this switch"
    );
}

#[test]
fn a_draining_switch_admits_members_of_its_jobs_only() {
    let mut switch = Harness::new();
    assert_eq!(status(&switch.join(1, join(2))), Some(Status::Success));
    assert_eq!(switch.order(Order::Drain), []);
    assert_eq!(status(&switch.join(2, join(2))), Some(Status::Success), "the job should be completed");
    switch.round(&[1, 2], 0);
    for host in [1, 2] {
        switch.control(host, 2, ControlBody::Leave);
    }
    assert_eq!(switch.switch.jobs().count(), 0);
    assert_eq!(status(&switch.join(1, join(2))), Some(Status::NoCapacity));
}

#[test]
fn limits_change_for_what_happens_next() {
    let mut switch = Harness::formed(1);
    let now = Limits::of(&iswitch_switch::Config::default());
    switch.order(Order::SetLimits(Limits { job_memory_bytes: 16, non_finite: NonFinite::Sum, ..now }));
    let infinite = [result(1, 0, 0, 1, &[f32::INFINITY, 1.0])];
    assert_eq!(switch.data(1, 0, 0, &[f32::INFINITY, 1.0]), infinite);
    let other = control(JOB + 1, 1, ControlBody::Join(JoinRepr { instance: 9, ..join(2) }));
    let answer = switch.send(2, iswitch_protocol::wire::Class::Control, &other);
    assert_eq!(answer.iter().filter_map(status).next_back(), Some(Status::NoCapacity));
    // One packet per second, and a burst of four.
    switch.order(Order::SetLimits(Limits { source_rate: 1, ..now }));
    let before = *switch.counters();
    (0..20).for_each(|_| drop(switch.data(9, 0, 0, &[1.0, 1.0])));
    let dropped = switch.counters().drops(DropReason::RateLimited) - before.drops(DropReason::RateLimited);
    assert!((16..=18).contains(&dropped), "{dropped} of 20 packets dropped");
}
