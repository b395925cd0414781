//! Results join the ordinary traffic: whole packets, in turn.

use rust_hdl::prelude::*;

use crate::axis::Flit;

/// Who has the output.
#[derive(Copy, Clone, PartialEq, Debug, LogicState)]
pub enum MergeState {
    /// An ordinary packet, or nobody.
    Ordinary,
    Result,
}

/// Two streams into one. The accelerator counts as one more receive queue.
#[derive(LogicBlock, Default)]
pub struct Merge {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub ordinary: Signal<In, Flit>,
    pub ordinary_valid: Signal<In, Bit>,
    pub ordinary_ready: Signal<Out, Bit>,
    pub result: Signal<In, Flit>,
    pub result_valid: Signal<In, Bit>,
    pub result_ready: Signal<Out, Bit>,
    pub flit: Signal<Out, Flit>,
    pub push: Signal<Out, Bit>,
    pub room: Signal<In, Bit>,
    state: DFF<MergeState>,
    /// Not in state Result: it chooses all bits of a beat. The complement, or synthesis would make one of both.
    picks_ordinary: DFF<Bit>,
    /// There was room in the cycle before: a beat is taken.
    had_room: DFF<Bit>,
    /// Whose; again for the streams, which hang much on it.
    takes_ordinary: DFF<Bit>,
    takes_result: DFF<Bit>,
    /// In the middle of a packet.
    midway: DFF<Bit>,
    offered: Signal<Local, Bit>,
    moves: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
}

impl Logic for Merge {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, picks_ordinary, had_room, takes_ordinary, takes_result, midway);
        self.ordinary_ready.next = self.takes_ordinary.q.val();
        self.result_ready.next = self.takes_result.q.val();
        self.flit.next = self.result.val();
        if self.picks_ordinary.q.val() {
            self.flit.next = self.ordinary.val();
        }
        self.offered.next = self.ordinary_valid.val();
        self.ends.next = self.ordinary.val().last;
        if self.state.q.val() == MergeState::Result {
            self.offered.next = self.result_valid.val();
            self.ends.next = self.result.val().last;
        }
        self.moves.next = self.had_room.q.val() & self.offered.val();
        self.push.next = self.moves.val();
        if self.moves.val() {
            self.midway.d.next = !self.ends.val();
        }
        // A result that waits is next, until it could have gone; after it an ordinary packet, if there is one.
        if (self.moves.val() & self.ends.val())
            | (self.had_room.q.val() & !self.moves.val() & !self.midway.q.val())
        {
            self.state.d.next = MergeState::Ordinary;
            self.picks_ordinary.d.next = true;
            if (self.state.q.val() == MergeState::Ordinary) & self.result_valid.val() {
                self.state.d.next = MergeState::Result;
                self.picks_ordinary.d.next = false;
            }
        }
        if self.reset.val() {
            self.state.d.next = MergeState::Ordinary;
            self.picks_ordinary.d.next = true;
            self.midway.d.next = false;
        }
        self.had_room.d.next = self.room.val() & !self.reset.val();
        self.takes_ordinary.d.next = self.had_room.d.val() & (self.state.d.val() == MergeState::Ordinary);
        self.takes_result.d.next = self.had_room.d.val() & (self.state.d.val() == MergeState::Result);
    }
}
