//! The Name of a member. The member sends it after each admission, until the switch answers (SPEC, section 14).

use core::time::Duration;

use iswitch_protocol::Instant;
use iswitch_protocol::limits::MAX_NAME_TRIES;
use iswitch_protocol::wire::{Action, ControlBody, ControlRepr, NameRepr, Status};

/// State of the Name of a member. A Name is best effort: a switch that does not know this action refuses the Name or
/// drops it, and the membership continues without a name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Naming {
    name: NameRepr,
    /// Epoch of the incarnation to which the Name is sent; `None` if the worker has not been admitted.
    epoch: Option<u64>,
    /// Id of the request; zero before the first attempt.
    request: u32,
    /// Number of remaining attempts.
    tries: u8,
    due: Instant,
    /// Time between two attempts.
    interval: Duration,
}

impl Naming {
    /// Creates the state of a member with these names. A member without any names sends no Name.
    pub(super) fn new(name: NameRepr) -> Self {
        let (due, interval) = (Instant::default(), Duration::ZERO);
        Self { name, epoch: None, request: 0, tries: 0, due, interval }
    }

    /// Records that the switch has admitted the member to the incarnation with this epoch. A repeated Ack of the same
    /// admission has no effect. The Name is repeated at the interval of heartbeats.
    pub(super) fn admitted(&mut self, now: Instant, epoch: u64, interval: Duration) {
        if self.name != NameRepr::UNKNOWN && self.epoch != Some(epoch) {
            self.epoch = Some(epoch);
            (self.request, self.tries, self.due, self.interval) = (0, MAX_NAME_TRIES, now, interval);
        }
    }

    /// Records that the membership has ended.
    pub(super) fn end(&mut self) {
        *self = Self::new(self.name);
    }

    /// Returns the time at which the next attempt is due, if there is one.
    pub(super) fn deadline(&self) -> Option<Instant> {
        (self.tries > 0).then_some(self.due)
    }

    /// Returns the request that is due, if any. `take_id` allocates the id of the request; all attempts have the same
    /// id.
    pub(super) fn take_due(
        &mut self,
        now: Instant,
        take_id: impl FnOnce() -> u32,
    ) -> Option<(u32, ControlBody<'static>)> {
        if self.tries == 0 || now < self.due {
            return None;
        }
        if self.request == 0 {
            self.request = take_id();
        }
        self.tries -= 1;
        self.due = now.plus(self.interval);
        Some((self.request, ControlBody::Name(self.name)))
    }

    /// Ends the attempts if the packet is the answer to the Name. Returns whether the packet needs no further
    /// processing. If the answer states that the switch does not know the member, the packet does need further
    /// processing, because the member must join again.
    pub(super) fn take_answer(&mut self, repr: &ControlRepr<'_>) -> bool {
        let ControlBody::Ack(ack) = &repr.body else { return false };
        let is_current = self.request != 0 && repr.request == self.request;
        match ack.action {
            // A late answer carries the epoch of an earlier membership, or the epoch of a rack from before the
            // topmost switch completed the job. It does not show that the switch has forgotten this member.
            Action::Name if !is_current => true,
            // A switch that does not know the action answers Malformed and names the action Ack. A Join may have the
            // same id as the Name.
            Action::Name | Action::Ack if is_current => {
                self.tries = 0;
                matches!(ack.status, Status::Success | Status::Malformed)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use iswitch_protocol::wire::AckRepr;

    use super::*;

    const INTERVAL: Duration = Duration::from_millis(100);

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn named() -> Naming {
        Naming::new(NameRepr { job: "ppo".parse().unwrap(), ..NameRepr::UNKNOWN })
    }

    fn ack(request: u32, action: Action, status: Status) -> ControlRepr<'static> {
        ControlRepr { job: 1, request, body: ControlBody::Ack(AckRepr::bare(action, status)) }
    }

    #[test]
    fn a_name_is_repeated_until_it_is_answered_and_sent_again_after_the_next_admission() {
        let mut naming = named();
        assert_eq!((naming.deadline(), naming.take_due(at(0), || 5)), (None, None));
        naming.admitted(at(1), 7, INTERVAL);
        let first = naming.take_due(at(1), || 5).unwrap();
        assert_eq!(first, (5, ControlBody::Name(named().name)));
        assert_eq!((naming.take_due(at(100), || 6), naming.deadline()), (None, Some(at(101))));
        assert_eq!(naming.take_due(at(101), || 6), Some(first), "an attempt has the same id");
        naming.admitted(at(101), 7, INTERVAL);
        assert!(naming.take_answer(&ack(4, Action::Name, Status::Success)), "a late answer");
        assert!(naming.deadline().is_some(), "a late answer does not end the attempts");
        assert!(
            !naming.take_answer(&ack(5, Action::Join, Status::Success)),
            "the answer to a Join with the same id"
        );
        assert!(naming.take_answer(&ack(5, Action::Name, Status::Success)));
        assert_eq!(naming.deadline(), None);
        naming.admitted(at(200), 7, INTERVAL);
        assert_eq!(naming.deadline(), None, "the same admission");
        naming.admitted(at(200), 8, INTERVAL);
        assert_eq!(naming.take_due(at(200), || 9).unwrap().0, 9);
        naming.end();
        naming.admitted(at(300), 8, INTERVAL);
        assert_eq!(naming.deadline(), Some(at(300)));
    }

    #[test]
    fn a_switch_without_names_gets_a_bounded_number_of_packets() {
        let mut naming = named();
        naming.admitted(at(0), 7, INTERVAL);
        let sent = (0..10_000).filter(|ms| naming.take_due(at(*ms), || 1).is_some()).count();
        assert_eq!(sent, usize::from(MAX_NAME_TRIES));
        naming.admitted(at(20_000), 8, INTERVAL);
        naming.take_due(at(20_000), || 2).unwrap();
        assert!(naming.take_answer(&ack(2, Action::Ack, Status::Malformed)), "refused as an unknown action");
        assert_eq!(naming.deadline(), None);
        let mut unnamed = Naming::new(NameRepr::UNKNOWN);
        unnamed.admitted(at(0), 7, INTERVAL);
        assert_eq!(unnamed.deadline(), None);
    }

    #[test]
    fn an_answer_that_the_member_is_not_known_is_left_to_the_protocol() {
        let mut naming = named();
        naming.admitted(at(0), 7, INTERVAL);
        naming.take_due(at(0), || 3).unwrap();
        assert!(!naming.take_answer(&ack(3, Action::Name, Status::UnknownMember)));
        assert_eq!(naming.deadline(), None);
    }
}
