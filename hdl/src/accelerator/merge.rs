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
    /// In the middle of a packet.
    midway: DFF<Bit>,
    moves: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
}

impl Logic for Merge {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, midway);
        self.ordinary_ready.next = self.room.val();
        self.result_ready.next = false;
        self.moves.next = self.room.val() & self.ordinary_valid.val();
        self.flit.next = self.ordinary.val();
        self.ends.next = self.ordinary.val().last;
        if self.state.q.val() == MergeState::Result {
            self.ordinary_ready.next = false;
            self.result_ready.next = self.room.val();
            self.moves.next = self.room.val() & self.result_valid.val();
            self.flit.next = self.result.val();
            self.ends.next = self.result.val().last;
        }
        self.push.next = self.moves.val();
        if self.moves.val() {
            self.midway.d.next = !self.ends.val();
        }
        // A result that waits is next, until there is room; after it an ordinary packet, if there is one.
        if (self.moves.val() & self.ends.val()) | (self.room.val() & !self.moves.val() & !self.midway.q.val())
        {
            self.state.d.next = MergeState::Ordinary;
            if (self.state.q.val() == MergeState::Ordinary) & self.result_valid.val() {
                self.state.d.next = MergeState::Result;
            }
        }
        if self.reset.val() {
            self.state.d.next = MergeState::Ordinary;
            self.midway.d.next = false;
        }
    }
}
