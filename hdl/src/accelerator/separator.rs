//! The separator: takes frames out of the queue and sends each where the decision says.

use rust_hdl::prelude::*;

use super::records::{Burst, Decision};
use super::slicer::Slicer;
use crate::axis::Flit;

/// Ordinary frames go past, headers are dropped, payloads become bursts: one a cycle.
#[derive(LogicBlock, Default)]
pub struct Separator {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub decision: Signal<In, Decision>,
    pub decision_valid: Signal<In, Bit>,
    pub decision_pop: Signal<Out, Bit>,
    /// The oldest beat of the queue.
    pub flit: Signal<In, Flit>,
    pub flit_valid: Signal<In, Bit>,
    pub flit_pop: Signal<Out, Bit>,
    /// That beat is ordinary traffic; it is taken when the merge is ready.
    pub bypass_valid: Signal<Out, Bit>,
    pub bypass_ready: Signal<In, Bit>,
    pub burst: Signal<Out, Burst>,
    pub burst_push: Signal<Out, Bit>,
    pub burst_room: Signal<In, Bit>,
    slicer: Slicer,
    /// The frame at the head, and which of its beats.
    busy: DFF<Bit>,
    current: DFF<Decision>,
    beat: DFF<Bits<2>>,
    /// The segment that bursts are made for: that of the frame before while its last one is made.
    active: DFF<Bit>,
    segment: DFF<Decision>,
    address: DFF<Bits<14>>,
    left: DFF<Bits<6>>,
    flush: DFF<Bit>,
    made: DFF<Bit>,
    made_first: DFF<Bit>,
    made_last: DFF<Bit>,
    made_address: DFF<Bits<14>>,
    held_up: Signal<Local, Bit>,
    take: Signal<Local, Bit>,
    sums: Signal<Local, Bit>,
    forces: Signal<Local, Bit>,
    finished: Signal<Local, Bit>,
    emit: Signal<Local, Bit>,
    /// The next burst is the segment's last.
    ends: DFF<Bit>,
    begins: Signal<Local, Bit>,
}

impl Logic for Separator {
    #[hdl_gen]
    #[rustfmt::skip] // one line for each step
    fn update(&mut self) {
        dff_setup!(self, clock, busy, current, beat, active, segment, address, left, flush, ends);
        dff_setup!(self, clock, made, made_first, made_last, made_address);
        clock!(self, clock, slicer);
        // A frame that ended too early is filled up; until then the next one waits.
        self.held_up.next = self.flush.q.val() & !self.ends.q.val();
        self.bypass_valid.next = self.busy.q.val() & self.current.q.val().bypass & self.flit_valid.val();
        self.sums.next = self.busy.q.val()
            & !self.current.q.val().bypass & !self.current.q.val().drop & !self.current.q.val().forced
            & self.flit_valid.val() & self.burst_room.val() & !self.held_up.val();
        self.forces.next = self.busy.q.val() & self.current.q.val().forced
            & self.burst_room.val() & !self.flush.q.val();
        self.take.next = self.sums.val() | (self.bypass_valid.val() & self.bypass_ready.val())
            | (self.busy.q.val() & self.current.q.val().drop & self.flit_valid.val());
        self.flit_pop.next = self.take.val();
        self.emit.next = self.active.q.val()
            & ((self.flush.q.val() & self.burst_room.val()) | (self.sums.val() & self.beat.q.val().get_bit(1))
                | self.forces.val());
        self.finished.next = (self.take.val() & self.flit.val().last)
            | (self.forces.val() & self.active.q.val() & self.ends.q.val());
        self.decision_pop.next = self.decision_valid.val() & (!self.busy.q.val() | self.finished.val());
        if self.take.val() & !self.beat.q.val().get_bit(1) { self.beat.d.next = self.beat.q.val() + 1; }
        if self.finished.val() { self.busy.d.next = false; self.beat.d.next = 0.into(); }
        if self.decision_pop.val() { self.busy.d.next = true; self.current.d.next = self.decision.val(); }

        if self.emit.val() {
            self.left.d.next = self.left.q.val() - 1;
            self.address.d.next = self.address.q.val() + 1;
            self.ends.d.next = self.left.q.val() == 1;
            if self.ends.q.val() { self.active.d.next = false; self.flush.d.next = false; }
        }
        self.begins.next = (self.sums.val() & self.beat.q.val().get_bit(0))
            | (self.forces.val() & !self.active.q.val());
        if self.begins.val() {
            self.active.d.next = true;
            self.segment.d.next = self.current.q.val();
            self.address.d.next = self.current.q.val().address;
            self.left.d.next = self.current.q.val().more;
            self.ends.d.next = self.current.q.val().more == 0;
        }
        if self.sums.val() & self.flit.val().last {
            self.flush.d.next = self.begins.val() | (self.active.q.val() & !self.ends.q.val());
        }
        if self.reset.val() {
            self.busy.d.next = false;
            self.active.d.next = false;
            self.flush.d.next = false;
            self.beat.d.next = 0.into();
        }

        self.slicer.data.next = self.flit.val().data;
        self.slicer.take.next = self.sums.val();
        self.slicer.cut.next = self.ends.q.val();
        self.slicer.tail.next = self.segment.q.val().tail;
        self.slicer.blank.next = self.segment.q.val().forced;
        self.made.d.next = self.emit.val() & !self.reset.val();
        self.made_first.d.next = self.segment.q.val().first;
        self.made_last.d.next = self.segment.q.val().last;
        self.made_address.d.next = self.address.q.val();
        self.burst_push.next = self.made.q.val();
        self.burst.next.lanes = self.slicer.lanes.val();
        self.burst.next.address = self.made_address.q.val();
        self.burst.next.first = self.made_first.q.val();
        self.burst.next.last = self.made_last.q.val();
    }
}
