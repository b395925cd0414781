//! Results join the ordinary traffic: whole packets, in turn.

use rust_hdl::prelude::*;

use crate::axis::Flit;

/// Who has the output.
#[derive(Copy, Clone, PartialEq, Debug, LogicState)]
pub enum MergeState {
    Free,
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
    /// The last packet was ordinary.
    results_turn: DFF<Bit>,
    takes_result: Signal<Local, Bit>,
    takes_ordinary: Signal<Local, Bit>,
    moves: Signal<Local, Bit>,
}

impl Logic for Merge {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, state, results_turn);
        self.takes_result.next = self.result_valid.val() & (self.results_turn.q.val() | !self.ordinary_valid.val());
        self.takes_ordinary.next = self.ordinary_valid.val() & !self.takes_result.val();
        if self.state.q.val() == MergeState::Ordinary {
            self.takes_result.next = false;
            self.takes_ordinary.next = self.ordinary_valid.val();
        }
        if self.state.q.val() == MergeState::Result {
            self.takes_result.next = self.result_valid.val();
            self.takes_ordinary.next = false;
        }
        self.result_ready.next = self.takes_result.val() & self.room.val();
        self.ordinary_ready.next = self.takes_ordinary.val() & self.room.val();
        self.moves.next = self.result_ready.val() | self.ordinary_ready.val();
        self.flit.next = self.ordinary.val();
        if self.takes_result.val() {
            self.flit.next = self.result.val();
        }
        self.push.next = self.moves.val();
        if self.moves.val() {
            self.state.d.next = MergeState::Ordinary;
            if self.takes_result.val() {
                self.state.d.next = MergeState::Result;
            }
            if self.flit.val().last {
                self.state.d.next = MergeState::Free;
                self.results_turn.d.next = !self.takes_result.val();
            }
        }
        if self.reset.val() {
            self.state.d.next = MergeState::Free;
        }
    }
}
