//! Arbiter that merges the results into the ordinary traffic. It never interleaves packets, and alternates between the
//! two streams while both have packets.

use rust_hdl::prelude::*;

use crate::axis::{Flit, Tuser};

/// Stream that owns the output.
#[derive(Copy, Clone, PartialEq, Debug, LogicState)]
pub enum MergeState {
    /// The output carries an ordinary packet or is idle.
    Ordinary,
    Result,
}

/// Merges the ordinary stream and the stream of results into one, as if the accelerator were an additional input port
/// of the switch.
#[derive(LogicBlock, Default)]
pub struct Merge {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub ordinary: Signal<In, Flit>,
    pub ordinary_valid: Signal<In, Bit>,
    /// If set, the packet also goes to `host_ports`, which are destination bits of `tuser`.
    pub ordinary_copied: Signal<In, Bit>,
    pub host_ports: Signal<In, Bits<8>>,
    pub ordinary_ready: Signal<Out, Bit>,
    pub result: Signal<In, Flit>,
    pub result_valid: Signal<In, Bit>,
    pub result_ready: Signal<Out, Bit>,
    /// Complement of `result_ready`, from another register.
    pub result_stalled: Signal<Out, Bit>,
    pub flit: Signal<Out, Flit>,
    pub push: Signal<Out, Bit>,
    pub room: Signal<In, Bit>,
    state: DFF<MergeState>,
    /// Set unless the state is Result. This bit selects the stream for all bits of a beat, so it has a register of its
    /// own. Its polarity is inverted, because synthesis would otherwise merge the register with the state.
    picks_ordinary: DFF<Bit>,
    /// Set if the output queue had room in the previous cycle, so that a beat can be transferred in this cycle.
    had_room: DFF<Bit>,
    /// Complement of `had_room`. The next state is thus computed without the signal `moves`, which the output queue
    /// loads heavily.
    lacked_room: DFF<Bit>,
    /// Ready signal of the ordinary stream. This signal and `takes_result` come directly from registers, because both
    /// have a high fan-out.
    takes_ordinary: DFF<Bit>,
    takes_result: DFF<Bit>,
    stalls_result: DFF<Bit>,
    /// Set while a packet has been transferred only in part.
    midway: DFF<Bit>,
    offered: Signal<Local, Bit>,
    moves: Signal<Local, Bit>,
    proceeds: Signal<Local, Bit>,
    ends: Signal<Local, Bit>,
    copy: AddPorts,
}

impl Logic for Merge {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            state,
            picks_ordinary,
            had_room,
            lacked_room,
            takes_ordinary,
            takes_result,
            midway,
            stalls_result
        );
        self.copy.flit.next = self.ordinary.val();
        self.copy.adds.next = self.ordinary_copied.val();
        self.copy.ports.next = self.host_ports.val();
        self.ordinary_ready.next = self.takes_ordinary.q.val();
        self.result_ready.next = self.takes_result.q.val();
        self.result_stalled.next = self.stalls_result.q.val();
        self.flit.next = self.result.val();
        if self.picks_ordinary.q.val() {
            self.flit.next = self.copy.copied.val();
        }
        self.offered.next = self.ordinary_valid.val();
        self.ends.next = self.ordinary.val().last;
        if self.state.q.val() == MergeState::Result {
            self.offered.next = self.result_valid.val();
            self.ends.next = self.result.val().last;
        }
        self.moves.next = self.had_room.q.val() & self.offered.val();
        self.push.next = self.moves.val();
        self.proceeds.next = !self.lacked_room.q.val() & self.offered.val();
        if self.proceeds.val() {
            self.midway.d.next = !self.ends.val();
        }
        // After an ordinary packet, a waiting result is next. After a result, or if no result waits, ordinary traffic
        // is next.
        if (self.proceeds.val() & self.ends.val())
            | (!self.lacked_room.q.val() & !self.proceeds.val() & !self.midway.q.val())
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
        self.lacked_room.d.next = !self.room.val() | self.reset.val();
        self.takes_ordinary.d.next = self.had_room.d.val() & (self.state.d.val() == MergeState::Ordinary);
        self.takes_result.d.next = self.had_room.d.val() & (self.state.d.val() == MergeState::Result);
        self.stalls_result.d.next = !self.had_room.d.val() | (self.state.d.val() != MergeState::Result);
    }
}

/// Adds destination ports to the `tuser` of a beat. The block is combinational.
#[derive(LogicBlock, Default)]
pub struct AddPorts {
    pub flit: Signal<In, Flit>,
    pub adds: Signal<In, Bit>,
    pub ports: Signal<In, Bits<8>>,
    pub copied: Signal<Out, Flit>,
    user: Signal<Local, Tuser>,
    more: Signal<Local, Tuser>,
}

impl Logic for AddPorts {
    #[hdl_gen]
    fn update(&mut self) {
        self.user.next = self.flit.val().user;
        self.more.next = self.user.val();
        if self.adds.val() {
            self.more.next.destination = self.user.val().destination | self.ports.val();
        }
        self.copied.next = self.flit.val();
        self.copied.next.user = self.more.val();
    }
}
