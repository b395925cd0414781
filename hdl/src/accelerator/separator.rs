//! The separator, which takes frames out of the input queue and routes each according to the decision of the Seg
//! counter.

use rust_hdl::prelude::*;

use super::records::{Burst, ControlBeat, Decision};
use super::slicer::Slicer;
use crate::axis::{Flit, Halves};

/// Forwards ordinary frames, discards refused frames, and converts the payload of contributions to bursts, one burst
/// per cycle.
#[derive(LogicBlock, Default)]
pub struct Separator {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub decision: Signal<In, Decision>,
    pub decision_valid: Signal<In, Bit>,
    pub decision_pop: Signal<Out, Bit>,
    /// Oldest beat in the queue.
    pub flit: Signal<In, Flit>,
    pub flit_valid: Signal<In, Bit>,
    /// Complement of `flit_valid`, from another register.
    pub flit_absent: Signal<In, Bit>,
    pub flit_pop: Signal<Out, Bit>,
    /// High if the oldest beat is to be forwarded. The beat is transferred if `bypass_ready` is also high.
    pub bypass_valid: Signal<Out, Bit>,
    pub bypass_ready: Signal<In, Bit>,
    /// If set, the beat also goes to the host.
    pub bypass_copied: Signal<Out, Bit>,
    /// Beat of a control packet, one cycle after it has been removed.
    pub control: Signal<Out, ControlBeat>,
    pub burst: Signal<Out, Burst>,
    pub burst_push: Signal<Out, Bit>,
    pub burst_room: Signal<In, Bit>,
    slicer: Slicer,
    /// Whether the separator is processing a frame or a segment without a frame. `current` is the decision about it.
    busy: DFF<Bit>,
    current: DFF<Decision>,
    /// Action that `current` requires. While `busy` is set, exactly one of `bypasses`, `drops`, `adds` and `forced` is
    /// set.
    bypasses: DFF<Bit>,
    drops: DFF<Bit>,
    adds: DFF<Bit>,
    forced: DFF<Bit>,
    /// Decision about the next frame, valid if `knows_upcoming` is set.
    upcoming: DFF<Decision>,
    knows_upcoming: DFF<Bit>,
    beat: DFF<Bits<2>>,
    /// Set while bursts of `segment` are being produced. `segment` holds the decision for the frame until its last
    /// burst has been produced, even if `current` already holds the decision for the next frame.
    active: DFF<Bit>,
    segment: DFF<Decision>,
    address: DFF<Bits<15>>,
    left: DFF<Bits<6>>,
    /// Set if the frame has ended and only its last burst remains. No more than one burst can remain, because a
    /// contribution is never shorter than its segment.
    flush: DFF<Bit>,
    /// Pipeline registers for the beat and the operation on it, because both the read from the queue and the decision
    /// to take a beat are on long paths.
    arrived: DFF<Halves>,
    taken: DFF<Bit>,
    passed: DFF<Bit>,
    passed_last: DFF<Bit>,
    passed_member: DFF<Bits<3>>,
    making: DFF<Bit>,
    making_address: DFF<Bits<15>>,
    making_segment: DFF<Decision>,
    made: DFF<Bit>,
    made_first: DFF<Bit>,
    made_last: DFF<Bit>,
    made_address: DFF<Bits<15>>,
    may_take: Signal<Local, Bit>,
    take: Signal<Local, Bit>,
    sums: Signal<Local, Bit>,
    forces: Signal<Local, Bit>,
    finished: Signal<Local, Bit>,
    advances: Signal<Local, Bit>,
    emit: Signal<Local, Bit>,
    /// Set if the next burst is the last one of its segment.
    ends: DFF<Bit>,
    begins: Signal<Local, Bit>,
}

impl Logic for Separator {
    #[hdl_gen]
    #[rustfmt::skip] // one line for each step
    fn update(&mut self) {
        dff_setup!(self, clock, busy, current, beat, active, segment, address, left, flush, ends);
        dff_setup!(self, clock, upcoming, knows_upcoming, arrived, taken, making, making_address, making_segment);
        dff_setup!(self, clock, made, made_first, made_last, made_address, bypasses, drops, adds, forced);
        dff_setup!(self, clock, passed, passed_last, passed_member);
        clock!(self, clock, slicer);
        self.bypass_valid.next = self.bypasses.q.val() & self.flit_valid.val();
        self.bypass_copied.next = self.current.q.val().copied;
        self.sums.next = self.adds.q.val() & self.flit_valid.val() & self.burst_room.val();
        self.forces.next = self.forced.q.val() & self.burst_room.val() & !self.flush.q.val();
        self.may_take.next = (self.adds.q.val() & self.burst_room.val())
            | (self.bypasses.q.val() & self.bypass_ready.val()) | self.drops.q.val();
        self.take.next = self.may_take.val() & self.flit_valid.val();
        self.flit_pop.next = self.take.val();
        self.passed.d.next = self.bypass_valid.val() & self.bypass_ready.val() & self.current.q.val().trusted
            & !self.reset.val();
        self.passed_last.d.next = self.flit.val().last; self.passed_member.d.next = self.current.q.val().member;
        self.control.next.data = self.arrived.q.val(); self.control.next.taken = self.passed.q.val();
        self.control.next.last = self.passed_last.q.val(); self.control.next.member = self.passed_member.q.val();
        self.emit.next = self.active.q.val()
            & ((self.flush.q.val() & self.burst_room.val()) | (self.sums.val() & self.beat.q.val().get_bit(1))
                | self.forces.val());
        self.finished.next = (self.may_take.val() & !self.flit_absent.val() & self.flit.val().last)
            | (self.forces.val() & self.active.q.val() & self.ends.q.val());
        // Every frame has at least two beats, so the next decision arrives in time.
        self.decision_pop.next = self.decision_valid.val() & !self.knows_upcoming.q.val();
        self.advances.next = !self.busy.q.val() | self.finished.val();
        if self.take.val() & !self.beat.q.val().get_bit(1) { self.beat.d.next = self.beat.q.val() + 1; }
        if self.finished.val() { self.beat.d.next = 0.into(); }
        if self.advances.val() {
            self.busy.d.next = self.knows_upcoming.q.val(); self.current.d.next = self.upcoming.q.val();
            self.bypasses.d.next = self.knows_upcoming.q.val() & self.upcoming.q.val().bypass;
            self.drops.d.next = self.knows_upcoming.q.val() & self.upcoming.q.val().drop;
            self.forced.d.next = self.knows_upcoming.q.val() & self.upcoming.q.val().forced;
            self.adds.d.next = self.knows_upcoming.q.val() & !self.upcoming.q.val().bypass
                & !self.upcoming.q.val().drop & !self.upcoming.q.val().forced;
            self.knows_upcoming.d.next = false;
        }
        if self.decision_pop.val() { self.knows_upcoming.d.next = true; self.upcoming.d.next = self.decision.val(); }

        if self.emit.val() {
            self.left.d.next = self.left.q.val() - 1; self.address.d.next = self.address.q.val() + 2;
            self.ends.d.next = self.left.q.val() == 1;
            if self.ends.q.val() { self.active.d.next = false; self.flush.d.next = false; }
        }
        self.begins.next = (self.sums.val() & self.beat.q.val().get_bit(0))
            | (self.forces.val() & !self.active.q.val());
        if self.begins.val() {
            self.active.d.next = true; self.segment.d.next = self.current.q.val();
            self.address.d.next = self.current.q.val().address;
            self.left.d.next = self.current.q.val().more; self.ends.d.next = self.current.q.val().more == 0;
        }
        if self.sums.val() & self.flit.val().last {
            self.flush.d.next = self.begins.val() | (self.active.q.val() & !self.ends.q.val());
        }
        if self.reset.val() {
            self.busy.d.next = false; self.bypasses.d.next = false; self.drops.d.next = false;
            self.adds.d.next = false; self.forced.d.next = false;
            self.knows_upcoming.d.next = false;
            self.active.d.next = false; self.flush.d.next = false;
            self.beat.d.next = 0.into();
        }

        self.arrived.d.next = self.flit.val().data; self.taken.d.next = self.sums.val();
        self.making.d.next = self.emit.val() & !self.reset.val();
        self.making_segment.d.next = self.segment.q.val(); self.making_address.d.next = self.address.q.val();
        self.slicer.data.next = self.arrived.q.val(); self.slicer.take.next = self.taken.q.val();
        self.slicer.cut.next = self.ends.q.val(); self.slicer.tail.next = self.segment.q.val().tail;
        self.slicer.blank.next = self.segment.q.val().forced;
        self.made.d.next = self.making.q.val() & !self.reset.val();
        self.made_first.d.next = self.making_segment.q.val().first;
        self.made_last.d.next = self.making_segment.q.val().last;
        self.made_address.d.next = self.making_address.q.val(); self.burst_push.next = self.made.q.val();
        self.burst.next.lanes = self.slicer.lanes.val(); self.burst.next.address = self.made_address.q.val();
        self.burst.next.first = self.made_first.q.val(); self.burst.next.last = self.made_last.q.val();
    }
}
