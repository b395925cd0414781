//! The Seg counter, which decides for each frame whether it is summed, one frame at a time, in the order of arrival.

use rust_hdl::prelude::*;

use super::records::{Decision, Header, Job, Key, ResultInfo};
use super::seg_decoder::SegDecoder;
use super::seg_lookup::SegLookup;

/// States of the counter. A frame that is not data takes one cycle, a contribution six.
#[derive(Copy, Clone, PartialEq, Debug, LogicState)]
pub enum CounterState {
    Idle,
    Read,
    Compare,
    Weigh,
    Judge,
    Decide,
    Clear,
}

/// Converts headers to decisions and, for complete sums, to the information for the result's header.
#[derive(LogicBlock, Default)]
pub struct SegCounter {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub is_packed: Signal<In, Bit>,
    /// Discards all sums as soon as the current decision has been made.
    pub clear: Signal<In, Bit>,
    pub clearing: Signal<Out, Bit>,
    pub job: Signal<In, Job>,
    pub threshold: Signal<In, Bits<8>>,
    pub fix_threshold: Signal<In, Bit>,
    pub halted: Signal<In, Bit>,
    pub members: Signal<In, Bits<8>>,
    pub switches: Signal<In, Bits<8>>,
    pub header: Signal<In, Header>,
    pub header_valid: Signal<In, Bit>,
    pub header_pop: Signal<Out, Bit>,
    /// Segment that the host requests to finish; it is processed before the next frame.
    pub force_key: Signal<In, Key>,
    pub force_valid: Signal<In, Bit>,
    pub force_next: Signal<Out, Bit>,
    /// There is room for a decision and for a result.
    pub room: Signal<In, Bit>,
    pub decision: Signal<Out, Decision>,
    pub decision_push: Signal<Out, Bit>,
    pub result: Signal<Out, ResultInfo>,
    pub result_push: Signal<Out, Bit>,
    /// Counter to increment: a code of [`super::records::event`].
    pub event_code: Signal<Out, Bits<4>>,
    pub event_valid: Signal<Out, Bit>,
    /// A control packet of the job passes.
    pub control: Signal<Out, Bit>,
    state: DFF<CounterState>,
    /// The state, decoded before the clock edge because the signals have a high fan-out. One is stored as a
    /// complement, because synthesis would otherwise merge two of them.
    idle: DFF<Bit>,
    keeps_key: DFF<Bit>,
    decides: DFF<Bit>,
    clears: DFF<Bit>,
    takes_force: Signal<Local, Bit>,
    takes_header: Signal<Local, Bit>,
    passes: Signal<Local, Bit>,
    concludes: Signal<Local, Bit>,
    key: DFF<Key>,
    asked: DFF<Bit>,
    sweep: DFF<Bits<8>>,
    decoder: SegDecoder,
    lookup: SegLookup,
    bypass: Bypass,
}

impl Logic for SegCounter {
    #[hdl_gen]
    #[expect(clippy::match_same_arms, reason = "the last one is Verilog's default, for values that are no state")]
    #[rustfmt::skip] // wiring, and one line for each step
    fn update(&mut self) {
        dff_setup!(self, clock, state, idle, keeps_key, decides, clears, key, asked, sweep);
        clock!(self, clock, lookup);
        self.decoder.header.next = self.header.val();
        self.lookup.is_packed.next = self.is_packed.val();
        self.lookup.job.next = self.job.val();
        self.lookup.threshold.next = self.threshold.val();
        self.lookup.fix_threshold.next = self.fix_threshold.val();
        self.lookup.halted.next = self.halted.val();
        self.lookup.members.next = self.members.val();
        self.lookup.switches.next = self.switches.val();
        self.lookup.key.next = self.key.q.val();
        self.lookup.commit.next = self.decides.q.val();
        self.lookup.sweeping.next = self.clears.q.val();
        self.lookup.sweep.next = self.sweep.q.val();
        self.takes_force.next = self.idle.q.val() & !self.asked.q.val() & self.force_valid.val() & self.room.val();
        self.takes_header.next = self.idle.q.val()
            & !self.asked.q.val() & !self.force_valid.val() & self.header_valid.val() & self.room.val();
        self.force_next.next = self.takes_force.val();
        self.header_pop.next = self.takes_header.val();
        // Until a request is accepted, the key is replaced in every cycle.
        if !self.keeps_key.q.val() {
            self.key.d.next = self.decoder.key.val();
            if self.force_valid.val() { self.key.d.next = self.force_key.val(); }
        }
        self.passes.next = self.takes_header.val() & !self.header.val().data;
        self.control.next = self.passes.val() & self.header.val().control;
        // A request of the host that is not accepted has no effect.
        self.concludes.next = self.decides.q.val() & (self.lookup.accept.val() | !self.key.q.val().forced);
        self.bypass.ordinary.next = !self.header.val().data;
        self.decision.next = self.bypass.decision.val();
        self.event_code.next = 0.into();
        if self.header.val().control { self.event_code.next = 1.into(); }
        if self.decides.q.val() {
            self.decision.next = self.lookup.decision.val();
            self.event_code.next = self.lookup.event_code.val();
        }
        self.decision_push.next = self.passes.val() | self.concludes.val();
        self.event_valid.next = self.passes.val() | self.concludes.val();
        self.result.next = self.lookup.result.val();
        self.result_push.next = self.decides.q.val() & self.lookup.accept.val() & self.lookup.decision.val().last;
        self.clearing.next = self.asked.q.val();
        match self.state.q.val() {
            CounterState::Idle => {
                if self.asked.q.val() { self.state.d.next = CounterState::Clear; }
                else if self.takes_force.val() | (self.takes_header.val() & self.header.val().data) {
                    self.state.d.next = CounterState::Read;
                }
            }
            CounterState::Read => { self.state.d.next = CounterState::Compare; }
            CounterState::Compare => { self.state.d.next = CounterState::Weigh; }
            CounterState::Weigh => { self.state.d.next = CounterState::Judge; }
            CounterState::Judge => { self.state.d.next = CounterState::Decide; }
            CounterState::Decide => { self.state.d.next = CounterState::Idle; }
            CounterState::Clear => {
                self.sweep.d.next = self.sweep.q.val() + 1;
                if self.sweep.q.val().all() { self.state.d.next = CounterState::Idle; self.asked.d.next = false; }
            }
            _ => { self.state.d.next = CounterState::Idle; }
        }
        if self.clear.val() | self.reset.val() { self.asked.d.next = true; self.sweep.d.next = 0.into(); }
        if self.reset.val() { self.state.d.next = CounterState::Idle; }
        self.idle.d.next = self.state.d.val() == CounterState::Idle;
        self.keeps_key.d.next = self.state.d.val() != CounterState::Idle;
        self.decides.d.next = self.state.d.val() == CounterState::Decide;
        self.clears.d.next = self.state.d.val() == CounterState::Clear;
    }
}

/// Produces the decision for ordinary traffic, which is to forward the frame. The block only connects wires and
/// constants.
#[derive(LogicBlock, Default)]
pub struct Bypass {
    pub ordinary: Signal<In, Bit>,
    pub decision: Signal<Out, Decision>,
}

impl Logic for Bypass {
    #[hdl_gen]
    fn update(&mut self) {
        self.decision.next.bypass = self.ordinary.val();
        self.decision.next.drop = false;
        self.decision.next.forced = false;
        self.decision.next.first = false;
        self.decision.next.last = false;
        self.decision.next.address = 0.into();
        self.decision.next.more = 0.into();
        self.decision.next.tail = 0.into();
    }
}
