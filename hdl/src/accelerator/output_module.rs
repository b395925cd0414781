//! The output module, which puts a header before each complete sum.

use rust_hdl::prelude::*;

use super::records::{ResultInfo, Template};
use super::result_header::ResultHeader;
use crate::axis::{Flit, Halves, Lanes, LanesToHalves};

/// Position of the output within a result.
#[derive(Copy, Clone, PartialEq, Debug, LogicState)]
pub enum OutputState {
    Idle,
    /// Waits four cycles for the lengths and the checksum of the header, and then until the pace allows the result.
    Prepare,
    Head,
    Body,
    Tail,
}

/// Converts complete sums to result frames.
///
/// Each result carries the header that was configured when its segment was completed.
///
/// Results are paced: on average, they do not leave faster than the rate `pace`, which the host sets to the rate of the
/// board's ports. A result begins only while the results before it are less than 2 KiB ahead of this rate, so that the
/// output queue of a port, which holds 4 KiB, has room for it.
///
/// Ordinary packets stall from the first beat of a result to its last. A result therefore begins only when the first
/// burst of its sum has arrived: by then, all packets ahead of the contribution that completes the result have passed.
/// If a result began earlier, a deadlock would follow: the result would wait for its sum, and the sum would wait behind
/// ordinary packets that the result blocks.
#[derive(LogicBlock, Default)]
pub struct OutputModule {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Maximum average rate of the results, in quarters of a byte per clock cycle; 0 means no limit.
    pub pace: Signal<In, Bits<8>>,
    pub template: Signal<In, Template>,
    pub info: Signal<In, ResultInfo>,
    pub info_valid: Signal<In, Bit>,
    /// Removes the current `info` and `template` from their queues.
    pub info_pop: Signal<Out, Bit>,
    pub sum: Signal<In, Lanes>,
    pub sum_valid: Signal<In, Bit>,
    /// Complement of `sum_valid`, driven by a separate register.
    pub no_sum: Signal<In, Bit>,
    pub sum_pop: Signal<Out, Bit>,
    pub flit: Signal<Out, Flit>,
    pub valid: Signal<Out, Bit>,
    pub ready: Signal<In, Bit>,
    /// Complement of `ready`, from another register.
    pub stalled: Signal<In, Bit>,
    /// High while a result is queued or being sent.
    pub busy: Signal<Out, Bit>,
    /// High while the output is idle, so that a result that is completed now could be sent immediately.
    pub free: Signal<Out, Bit>,
    state: DFF<OutputState>,
    /// Set unless the state is Idle. This bit has a register of its own, because it enables the wide registers below.
    acts: DFF<Bit>,
    /// Set in state Head. This bit has a register of its own, because it selects the first 18 bytes of the beat, and
    /// this fan-out would slow down the state register.
    heads: DFF<Bit>,
    /// Set in the states Head and Tail, in which the last 14 bytes of the beat do not come from a sum. In Tail, these
    /// bytes are not valid, but they must be stable while the beat is stalled.
    covers: DFF<Bit>,
    header: ResultHeader,
    held_info: DFF<ResultInfo>,
    held_template: DFF<Template>,
    /// Set in the cycle after the first beat of a result. In this cycle, the length of the result is added to `debt`,
    /// the amount by which the output is ahead of the pace, in quarters of a byte.
    begun: DFF<Bit>,
    debt: DFF<Bits<16>>,
    is_free: DFF<Bit>,
    owes: Signal<Local, Bit>,
    step: Signal<Local, Bits<16>>,
    frame_len: Signal<Local, Bits<16>>,
    cost: Signal<Local, Bits<16>>,
    waited: DFF<Bits<2>>,
    left: DFF<Bits<6>>,
    spills: DFF<Bit>,
    floats: Signal<Local, Bits<9>>,
    before_last: Signal<Local, Bits<9>>,
    view: LanesToHalves,
    carried: Carried,
    joined: JoinBeats,
    advances: Signal<Local, Bit>,
    /// Set while the current beat is the last one of its result.
    closes: DFF<Bit>,
}

impl Logic for OutputModule {
    #[hdl_gen]
    #[rustfmt::skip] // one line for each step
    fn update(&mut self) {
        dff_setup!(self, clock, held_template, begun, debt, is_free, acts);
        dff_setup!(self, clock, state, heads, covers, held_info, waited, left, spills, closes);
        clock!(self, clock, header, carried);
        self.header.template.next = self.held_template.q.val(); self.header.info.next = self.held_info.q.val();
        self.view.lanes.next = self.sum.val(); self.joined.earlier.next = self.carried.held.val();
        self.joined.later.next = self.view.halves.val(); self.floats.next = self.info.val().floats;
        self.before_last.next = self.floats.val() - 1; self.info_pop.next = false; self.sum_pop.next = false;
        self.advances.next = self.ready.val() & self.sum_valid.val();
        // On the wire, a frame takes 24 more bytes: preamble, checksum and gap.
        self.frame_len.next = self.header.frame_len.val() + 24;
        self.cost.next = self.frame_len.val() << 2;
        self.step.next = bit_cast::<16, 8>(self.pace.val());
        self.owes.next = self.debt.q.val().get_bits::<3>(13).any();
        self.begun.d.next = self.heads.q.val() & self.advances.val() & !self.reset.val();
        if self.begun.q.val() { self.debt.d.next = self.debt.q.val() + self.cost.val(); }
        else { self.debt.d.next = self.debt.q.val() - self.step.val(); }
        if (!self.begun.q.val() & (self.debt.q.val() < self.step.val())) | !self.pace.val().any() | self.reset.val() {
            self.debt.d.next = 0.into();
        }
        self.is_free.d.next = (self.state.q.val() == OutputState::Idle) & !self.info_valid.val()
            & !self.owes.val() & !self.begun.q.val();
        self.free.next = self.is_free.q.val();
        self.busy.next = self.info_valid.val() | (self.state.q.val() != OutputState::Idle);
        match self.state.q.val() {
            OutputState::Idle => {
                self.waited.d.next = 0.into();
                if self.info_valid.val() {
                    self.info_pop.next = true;
                    self.left.d.next = self.before_last.val().get_bits::<6>(3);
                    // The beat count depends on the last burst: 4 to 8 floats do not fit into the preceding beat.
                    self.spills.d.next = self.before_last.val().get_bit(2)
                        | (self.before_last.val().get_bit(1) & self.before_last.val().get_bit(0));
                    self.state.d.next = OutputState::Prepare;
                }
            }
            OutputState::Prepare => {
                if !self.waited.q.val().all() { self.waited.d.next = self.waited.q.val() + 1; }
                else if !self.owes.val() {
                    self.state.d.next = OutputState::Head; self.heads.d.next = true; self.covers.d.next = true;
                }
            }
            OutputState::Head => {
                if self.advances.val() {
                    self.state.d.next = OutputState::Body; self.heads.d.next = false; self.covers.d.next = false;
                    self.closes.d.next = !self.left.q.val().any() & !self.spills.q.val();
                }
            }
            OutputState::Body => {
                if self.advances.val() {
                    self.sum_pop.next = true; self.left.d.next = self.left.q.val() - 1;
                    self.closes.d.next = (self.left.q.val() == 1) & !self.spills.q.val();
                    if !self.left.q.val().any() {
                        self.state.d.next = OutputState::Tail; self.closes.d.next = true; self.covers.d.next = true;
                        if self.closes.q.val() {
                            self.state.d.next = OutputState::Idle;
                            self.closes.d.next = false; self.covers.d.next = false;
                        }
                    }
                }
            }
            OutputState::Tail => {
                if self.ready.val() {
                    self.state.d.next = OutputState::Idle; self.closes.d.next = false; self.covers.d.next = false;
                }
            }
            _ => { self.state.d.next = OutputState::Idle; }
        }
        // Until the information is valid, it is replaced in every cycle.
        if !self.acts.q.val() {
            self.held_info.d.next = self.info.val(); self.held_template.d.next = self.template.val();
        }
        self.joined.head.next = self.header.head.val(); self.joined.heads.next = self.heads.q.val();
        self.joined.covers.next = self.covers.q.val(); self.flit.next.data = self.joined.beat.val();
        self.flit.next.last = self.closes.q.val(); self.flit.next.keep = 0xffff_ffff_u64.into();
        if self.closes.q.val() { self.flit.next.keep = self.header.keep.val(); }
        self.flit.next.user = self.joined.user.val();
        self.carried.ready.next = self.ready.val(); self.carried.stalled.next = self.stalled.val();
        self.carried.sum_valid.next = self.sum_valid.val(); self.carried.no_sum.next = self.no_sum.val();
        self.carried.heads.next = self.heads.q.val(); self.carried.sum.next = self.view.halves.val();
        self.carried.tail.next = self.header.tail.val();
        self.joined.len.next = self.header.frame_len.val(); self.joined.ports.next = self.held_template.q.val().ports;
        if self.reset.val() {
            self.state.d.next = OutputState::Idle; self.heads.d.next = false; self.covers.d.next = false;
            self.closes.d.next = false;
        }
        self.acts.d.next = self.state.d.val() != OutputState::Idle;
        self.valid.next = (self.state.q.val() == OutputState::Tail) | (self.sum_valid.val()
            & ((self.state.q.val() == OutputState::Head) | (self.state.q.val() == OutputState::Body)));
    }
}

/// Keeps the bytes of a beat that precede the next burst: those of the previous burst or, in the beat after the first
/// one, those of the header.
#[derive(LogicBlock, Default)]
pub struct Carried {
    pub clock: Signal<In, Clock>,
    /// `stalled` is the complement of `ready`, and `no_sum` that of `sum_valid`, from other registers.
    pub ready: Signal<In, Bit>,
    pub stalled: Signal<In, Bit>,
    pub sum_valid: Signal<In, Bit>,
    pub no_sum: Signal<In, Bit>,
    /// High while the first beat of a result is sent.
    pub heads: Signal<In, Bit>,
    pub sum: Signal<In, Halves>,
    pub tail: Signal<In, Halves>,
    pub held: Signal<Out, Halves>,
    bytes: DFF<Halves>,
    loads: Signal<Local, Bit>,
}

impl Logic for Carried {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, bytes);
        // Outside Head and Body, the value is not used.
        if !self.stalled.val() & !self.no_sum.val() {
            self.bytes.d.next = self.sum.val();
            if self.heads.val() {
                self.bytes.d.next = self.tail.val();
            }
        }
        // The two halves that contain constants of the header. Synthesis implements these constants as a reset of the
        // registers, and the reset must not depend on the signals with the high fan-out.
        self.loads.next = self.ready.val() & self.sum_valid.val();
        self.bytes.d.next.h10 = self.bytes.q.val().h10;
        self.bytes.d.next.h11 = self.bytes.q.val().h11;
        if self.loads.val() {
            self.bytes.d.next.h10 = self.sum.val().h10;
            self.bytes.d.next.h11 = self.sum.val().h11;
            if self.heads.val() {
                self.bytes.d.next.h10 = self.tail.val().h10;
                self.bytes.d.next.h11 = self.tail.val().h11;
            }
        }
        self.held.next = self.bytes.q.val();
    }
}

/// Forms a beat from the last 18 bytes of the previous burst, or of the header, and the first 14 bytes of the next
/// burst, and generates the `tuser` of the result. The block is combinational.
#[derive(LogicBlock, Default)]
pub struct JoinBeats {
    pub earlier: Signal<In, Halves>,
    pub later: Signal<In, Halves>,
    /// First beat of the header. Its first 18 bytes are used if `heads` is set, its last 14 if `covers` is set.
    pub head: Signal<In, Halves>,
    pub heads: Signal<In, Bit>,
    pub covers: Signal<In, Bit>,
    pub beat: Signal<Out, Halves>,
    pub len: Signal<In, Bits<16>>,
    pub ports: Signal<In, Bits<8>>,
    pub user: Signal<Out, crate::axis::Tuser>,
}

impl Logic for JoinBeats {
    #[hdl_gen]
    fn update(&mut self) {
        self.beat.next.h0 = self.earlier.val().h7;
        self.beat.next.h1 = self.earlier.val().h8;
        self.beat.next.h2 = self.earlier.val().h9;
        self.beat.next.h3 = self.earlier.val().h10;
        self.beat.next.h4 = self.earlier.val().h11;
        self.beat.next.h5 = self.earlier.val().h12;
        self.beat.next.h6 = self.earlier.val().h13;
        self.beat.next.h7 = self.earlier.val().h14;
        self.beat.next.h8 = self.earlier.val().h15;
        self.beat.next.h9 = self.later.val().h0;
        self.beat.next.h10 = self.later.val().h1;
        self.beat.next.h11 = self.later.val().h2;
        self.beat.next.h12 = self.later.val().h3;
        self.beat.next.h13 = self.later.val().h4;
        self.beat.next.h14 = self.later.val().h5;
        self.beat.next.h15 = self.later.val().h6;
        if self.heads.val() {
            self.beat.next.h0 = self.head.val().h0;
            self.beat.next.h1 = self.head.val().h1;
            self.beat.next.h2 = self.head.val().h2;
            self.beat.next.h3 = self.head.val().h3;
            self.beat.next.h4 = self.head.val().h4;
            self.beat.next.h5 = self.head.val().h5;
            self.beat.next.h6 = self.head.val().h6;
            self.beat.next.h7 = self.head.val().h7;
            self.beat.next.h8 = self.head.val().h8;
        }
        if self.covers.val() {
            self.beat.next.h9 = self.head.val().h9;
            self.beat.next.h10 = self.head.val().h10;
            self.beat.next.h11 = self.head.val().h11;
            self.beat.next.h12 = self.head.val().h12;
            self.beat.next.h13 = self.head.val().h13;
            self.beat.next.h14 = self.head.val().h14;
            self.beat.next.h15 = self.head.val().h15;
        }
        self.user.next.len = self.len.val();
        self.user.next.source = 0.into();
        self.user.next.destination = self.ports.val();
        self.user.next.rest = 0.into();
    }
}
