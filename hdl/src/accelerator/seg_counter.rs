//! The Seg counter, which decides whether each frame is summed, one frame at a time and in the order of arrival.

use rust_hdl::prelude::*;

use super::records::{Decision, Header, Job, Key, Late, ResultInfo};
use super::seg_decoder::SegDecoder;
use super::seg_lookup::SegLookup;

/// State of the Seg counter. The counter processes two requests at once: while the slot of one request is read, the
/// previous request is decided.
#[derive(Copy, Clone, PartialEq, Debug, LogicState)]
pub enum CounterState {
    /// Takes the next request or forwards an ordinary frame; weighs the previous request, that is, evaluates its
    /// properties.
    Weigh,
    /// Reads the slot of the current request; judges the previous request, that is, applies the rules to it.
    Read,
    /// Compares the current request with its slot; issues the decision about the previous request.
    Compare,
    /// Entered if the decision about the previous request has changed the tables. The slot of the current request is
    /// then read again.
    Settle,
    Clear,
}

/// Issues a decision for each header and, when a segment is completed, the information for the header of its result.
///
/// A decision takes three cycles, or one cycle for an ordinary frame if no other decision is in progress. If a
/// contribution is accepted, the decision takes six cycles, because the next request reads the slots and rounds that
/// the contribution changes. Four ports of 10 Gb/s deliver at most one frame every 3.36 cycles (at 200 MHz), so frames
/// that are not accepted never delay other traffic.
#[derive(LogicBlock, Default)]
pub struct SegCounter {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub is_large: Signal<In, Bit>,
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
    /// Request to finish a segment or to retransmit its result. It is processed before the next frame.
    pub force_key: Signal<In, Key>,
    pub force_valid: Signal<In, Bit>,
    /// Complement of `force_valid`, from another register.
    pub force_idle: Signal<In, Bit>,
    pub force_next: Signal<Out, Bit>,
    /// High while the queues of decisions and of results both have room.
    pub room: Signal<In, Bit>,
    pub decision: Signal<Out, Decision>,
    pub decision_push: Signal<Out, Bit>,
    pub result: Signal<Out, ResultInfo>,
    pub result_push: Signal<Out, Bit>,
    /// Member that requests the result. If `repeats` is set, the result goes to this member only.
    pub asker: Signal<Out, Bits<3>>,
    pub repeats: Signal<Out, Bit>,
    /// Contribution to a finished segment, valid if `late_push` is set.
    pub late: Signal<Out, Late>,
    pub late_push: Signal<Out, Bit>,
    /// Code of the counter to increment, from [`super::records::event`].
    pub event_code: Signal<Out, Bits<5>>,
    pub event_valid: Signal<Out, Bit>,
    /// Selects the slot whose state the host reads. `table_value` is the value of `table_word`, two cycles later.
    pub select_slot: Signal<In, Bit>,
    pub slot: Signal<In, Bits<8>>,
    pub table_word: Signal<In, Bits<3>>,
    pub table_value: Signal<Out, Bits<32>>,
    /// High in the cycle in which a control packet of the job is forwarded.
    pub control: Signal<Out, Bit>,
    state: DFF<CounterState>,
    /// State, decoded into registers in advance because the signals have a high fan-out. While all sums are about to be
    /// discarded, no request is taken, and `takes` is clear.
    takes: DFF<Bit>,
    keeps_key: DFF<Bit>,
    compares: DFF<Bit>,
    clears: DFF<Bit>,
    /// `reading` is the request whose slot is read and compared. `deciding` is the previous request, which is weighed,
    /// judged and decided.
    reading: DFF<Key>,
    deciding: DFF<Key>,
    /// Whether `reading` and `deciding` are occupied, by a request or by an ordinary frame. An ordinary frame has no
    /// key and needs no slot, but passes through both stages to stay in order.
    has_reading: DFF<Bit>,
    has_deciding: DFF<Bit>,
    reads_ordinary: DFF<Bit>,
    decides_ordinary: DFF<Bit>,
    /// Set in the cycle in which the decision about `deciding` is issued.
    decides: DFF<Bit>,
    /// Set in that cycle if `deciding` is a request rather than an ordinary frame.
    commits: DFF<Bit>,
    may_take: Signal<Local, Bit>,
    takes_force: Signal<Local, Bit>,
    takes_header: Signal<Local, Bit>,
    /// High if an ordinary frame or a control packet is forwarded in this cycle, without passing through `reading` and
    /// `deciding`.
    passes: Signal<Local, Bit>,
    follows: Signal<Local, Bit>,
    proceeds: Signal<Local, Bit>,
    accepts: Signal<Local, Bit>,
    concludes: Signal<Local, Bit>,
    asked: DFF<Bit>,
    sweep: DFF<Bits<8>>,
    decoder: SegDecoder,
    lookup: SegLookup,
    bypass: Bypass,
}

impl Logic for SegCounter {
    #[hdl_gen]
    #[rustfmt::skip] // wiring, and one line for each step
    fn update(&mut self) {
        dff_setup!(self, clock, state, takes, keeps_key, compares, clears, asked, sweep, decides, commits);
        dff_setup!(self, clock, reading, deciding, has_reading, has_deciding, reads_ordinary, decides_ordinary);
        clock!(self, clock, lookup);
        self.decoder.header.next = self.header.val(); self.lookup.is_large.next = self.is_large.val();
        self.lookup.job.next = self.job.val(); self.lookup.threshold.next = self.threshold.val();
        self.lookup.fix_threshold.next = self.fix_threshold.val(); self.lookup.halted.next = self.halted.val();
        self.lookup.members.next = self.members.val(); self.lookup.switches.next = self.switches.val();
        self.lookup.reading.next = self.reading.q.val(); self.lookup.deciding.next = self.deciding.q.val();
        self.lookup.commit.next = self.commits.q.val(); self.lookup.sweeping.next = self.clears.q.val();
        self.lookup.select_slot.next = self.select_slot.val(); self.lookup.slot.next = self.slot.val();
        self.lookup.table_word.next = self.table_word.val(); self.table_value.next =
            self.lookup.table_value.val(); self.lookup.sweep.next = self.sweep.q.val();
        self.may_take.next = self.takes.q.val() & self.room.val();
        self.takes_force.next = self.may_take.val() & self.force_valid.val();
        // A control packet may change H or halt the job, so nothing is decided while it passes.
        self.takes_header.next = self.may_take.val() & !self.force_valid.val() & self.header_valid.val()
            & (!self.header.val().control | !self.has_deciding.q.val());
        self.force_next.next = self.takes_force.val(); self.header_pop.next = self.takes_header.val();
        // Until a request is accepted, the key is replaced in every cycle.
        if !self.keeps_key.q.val() {
            self.reading.d.next = self.decoder.key.val();
            if !self.force_idle.val() { self.reading.d.next = self.force_key.val(); }
            self.reads_ordinary.d.next = !self.header.val().data & !self.force_valid.val();
        }
        if self.compares.q.val() {
            self.deciding.d.next = self.reading.q.val(); self.decides_ordinary.d.next = self.reads_ordinary.q.val();
        }
        // No decision is in progress, so this does not depend on whether the frame is a control packet.
        self.passes.next = self.may_take.val() & !self.force_valid.val() & self.header_valid.val()
            & !self.header.val().data & !self.has_deciding.q.val();
        self.follows.next = self.takes_force.val() | (self.takes_header.val() & !self.passes.val());
        // High in state Weigh if `reading` or `deciding` will be occupied.
        self.proceeds.next = self.has_deciding.q.val() | (self.may_take.val()
            & (self.force_valid.val() | (self.header_valid.val() & self.header.val().data)));
        self.control.next = self.passes.val() & self.header.val().control;
        self.accepts.next = self.commits.q.val() & self.lookup.accept.val();
        // A request without a frame that is not accepted has no effect.
        self.concludes.next = self.decides.q.val() & (self.lookup.accept.val() | !self.deciding.q.val().forced
            | self.decides_ordinary.q.val());
        self.bypass.copied.next = self.control.val(); self.bypass.member.next = self.header.val().member;
        self.bypass.trusted.next = self.control.val() & self.header.val().known & !self.header.val().malformed;
        self.decision.next = self.bypass.decision.val();
        self.event_code.next = 0.into(); if self.control.val() { self.event_code.next = 1.into(); }
        if self.commits.q.val() {
            self.decision.next = self.lookup.decision.val(); self.event_code.next = self.lookup.event_code.val();
        }
        self.decision_push.next = self.passes.val() | self.concludes.val();
        self.event_valid.next = self.decision_push.val() | (self.commits.q.val() & self.deciding.q.val().repeats);
        self.asker.next = self.deciding.q.val().member; self.repeats.next = self.deciding.q.val().repeats;
        self.late.next.index = self.deciding.q.val().index; self.late.next.round = self.deciding.q.val().round;
        self.late.next.member = self.deciding.q.val().member; self.result.next = self.lookup.result.val();
        self.late_push.next = self.commits.q.val() & self.lookup.late.val();
        self.result_push.next = self.accepts.val() & self.lookup.decision.val().last;
        self.clearing.next = self.asked.q.val();
        match self.state.q.val() {
            CounterState::Weigh => {
                if self.follows.val() { self.has_reading.d.next = true; }
                if self.proceeds.val() { self.state.d.next = CounterState::Read; }
                else if self.asked.q.val() { self.state.d.next = CounterState::Clear; }
            }
            CounterState::Read => { self.state.d.next = CounterState::Compare; }
            CounterState::Compare => {
                self.state.d.next = CounterState::Weigh;
                self.has_deciding.d.next = self.has_reading.q.val(); self.has_reading.d.next = false;
                if self.accepts.val() & self.has_reading.q.val() & !self.reads_ordinary.q.val() {
                    self.state.d.next = CounterState::Settle;
                    self.has_deciding.d.next = false; self.has_reading.d.next = true;
                }
            }
            CounterState::Settle => { self.state.d.next = CounterState::Read; }
            CounterState::Clear => {
                self.sweep.d.next = self.sweep.q.val() + 1;
                if self.sweep.q.val().all() { self.state.d.next = CounterState::Weigh; self.asked.d.next = false; }
            }
            _ => { self.state.d.next = CounterState::Weigh; }
        }
        if self.clear.val() | self.reset.val() { self.asked.d.next = true; self.sweep.d.next = 0.into(); }
        if self.reset.val() {
            self.state.d.next = CounterState::Weigh;
            self.has_reading.d.next = false; self.has_deciding.d.next = false;
        }
        self.takes.d.next = (self.state.d.val() == CounterState::Weigh) & !self.asked.d.val();
        self.keeps_key.d.next = self.state.d.val() != CounterState::Weigh;
        // Compare always follows Read, and no other state.
        self.compares.d.next = (self.state.q.val() == CounterState::Read) & !self.reset.val();
        self.decides.d.next = self.compares.d.val() & self.has_deciding.q.val();
        self.commits.d.next = self.decides.d.val() & !self.decides_ordinary.q.val();
        self.clears.d.next = self.state.d.val() == CounterState::Clear;
    }
}

/// Generates the decision to forward a frame. The block is pure wiring.
#[derive(LogicBlock, Default)]
pub struct Bypass {
    /// If set, the frame also goes to the host.
    pub copied: Signal<In, Bit>,
    pub trusted: Signal<In, Bit>,
    pub member: Signal<In, Bits<3>>,
    pub decision: Signal<Out, Decision>,
}

impl Logic for Bypass {
    #[hdl_gen]
    fn update(&mut self) {
        self.decision.next.bypass = true;
        self.decision.next.drop = false;
        self.decision.next.forced = false;
        self.decision.next.first = false;
        self.decision.next.last = false;
        self.decision.next.address = 0.into();
        self.decision.next.more = 0.into();
        self.decision.next.tail = 0.into();
        self.decision.next.copied = self.copied.val();
        self.decision.next.trusted = self.trusted.val();
        self.decision.next.member = self.member.val();
    }
}
