//! Iteration over the segments that are to be finished at the request of the host, after an FBcast or the departure of
//! a member.

use rust_hdl::prelude::*;

use super::records::Key;

/// Iterates over a range of segments of one round.
#[derive(LogicBlock, Default)]
pub struct ForceWalker {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Starts the iteration over `count` segments of `round`, beginning at index `first`. If `only_complete` is set,
    /// segments that do not have enough contributions are skipped.
    pub start: Signal<In, Bit>,
    pub round: Signal<In, Bits<24>>,
    pub first: Signal<In, Bits<24>>,
    pub count: Signal<In, Bits<11>>,
    pub only_complete: Signal<In, Bit>,
    /// High while segments of the range remain. `key` is then the request to finish the next of them, which `advance`
    /// consumes.
    pub walking: Signal<Out, Bit>,
    pub key: Signal<Out, Key>,
    pub advance: Signal<In, Bit>,
    held_round: DFF<Bits<24>>,
    index: DFF<Bits<24>>,
    left: DFF<Bits<11>>,
    held_only: DFF<Bit>,
    busy: DFF<Bit>,
}

impl Logic for ForceWalker {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, held_round, index, left, held_only, busy);
        self.walking.next = self.busy.q.val();
        if self.advance.val() {
            self.index.d.next = self.index.q.val() + 1;
            self.left.d.next = self.left.q.val() - 1;
            self.busy.d.next = self.left.q.val() != 1;
        }
        if self.start.val() {
            self.held_round.d.next = self.round.val();
            self.index.d.next = self.first.val();
            self.left.d.next = self.count.val();
            self.busy.d.next = self.count.val().any();
            self.held_only.d.next = self.only_complete.val();
        }
        if self.reset.val() {
            self.left.d.next = 0.into();
            self.busy.d.next = false;
        }
        self.key.next.index = self.index.q.val();
        self.key.next.round = self.held_round.q.val();
        self.key.next.weight = 0.into();
        self.key.next.udp_len = 0.into();
        self.key.next.member = 0.into();
        self.key.next.known = true;
        self.key.next.malformed = false;
        self.key.next.forced = true;
        self.key.next.only_complete = self.held_only.q.val();
        self.key.next.repeats = false;
    }
}
