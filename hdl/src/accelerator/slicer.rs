//! Extraction of bursts of eight floats that start in the middle of a beat.

use rust_hdl::prelude::*;

use crate::axis::{Halves, HalvesToLanes, Lanes};

/// Extracts bursts from beats. The headers take 50 bytes and end 18 bytes into the second beat. The last 14 bytes of
/// one beat and the first 18 bytes of the next therefore always form a burst, and no barrel shifter is needed.
#[derive(LogicBlock, Default)]
pub struct Slicer {
    pub clock: Signal<In, Clock>,
    /// Input beat, stored if `take` is set.
    pub data: Signal<In, Halves>,
    pub take: Signal<In, Bit>,
    /// Masks for the burst that the beat of the next cycle completes; masked lanes are zero. `cut` masks the lanes from
    /// `tail` on, or none if `tail` is 0. `blank` masks all lanes.
    pub cut: Signal<In, Bit>,
    pub tail: Signal<In, Bits<3>>,
    pub blank: Signal<In, Bit>,
    /// Burst formed by the last stored beat and `data`, with a latency of one cycle.
    pub lanes: Signal<Out, Lanes>,
    held: DFF<Halves>,
    joined: Signal<Local, Halves>,
    floats: HalvesToLanes,
    out_lanes: DFF<Lanes>,
    zero: [DFF<Bit>; 8],
}

impl Logic for Slicer {
    #[hdl_gen]
    #[rustfmt::skip] // one line for each lane
    fn update(&mut self) {
        dff_setup!(self, clock, held, out_lanes);
        if self.take.val() {
            self.held.d.next = self.data.val();
        }
        self.joined.next.h0 = self.held.q.val().h9;
        self.joined.next.h1 = self.held.q.val().h10;
        self.joined.next.h2 = self.held.q.val().h11;
        self.joined.next.h3 = self.held.q.val().h12;
        self.joined.next.h4 = self.held.q.val().h13;
        self.joined.next.h5 = self.held.q.val().h14;
        self.joined.next.h6 = self.held.q.val().h15;
        self.joined.next.h7 = self.data.val().h0;
        self.joined.next.h8 = self.data.val().h1;
        self.joined.next.h9 = self.data.val().h2;
        self.joined.next.h10 = self.data.val().h3;
        self.joined.next.h11 = self.data.val().h4;
        self.joined.next.h12 = self.data.val().h5;
        self.joined.next.h13 = self.data.val().h6;
        self.joined.next.h14 = self.data.val().h7;
        self.joined.next.h15 = self.data.val().h8;
        self.floats.halves.next = self.joined.val();
        for i in 0..8 {
            self.zero[i].clock.next = self.clock.val();
            self.zero[i].d.next = self.blank.val();
            if self.cut.val() & self.tail.val().any() & (self.tail.val() <= i.to_bits()) {
                self.zero[i].d.next = true;
            }
        }
        self.out_lanes.d.next = self.floats.lanes.val();
        if self.zero[0].q.val() { self.out_lanes.d.next.l0 = 0.into(); }
        if self.zero[1].q.val() { self.out_lanes.d.next.l1 = 0.into(); }
        if self.zero[2].q.val() { self.out_lanes.d.next.l2 = 0.into(); }
        if self.zero[3].q.val() { self.out_lanes.d.next.l3 = 0.into(); }
        if self.zero[4].q.val() { self.out_lanes.d.next.l4 = 0.into(); }
        if self.zero[5].q.val() { self.out_lanes.d.next.l5 = 0.into(); }
        if self.zero[6].q.val() { self.out_lanes.d.next.l6 = 0.into(); }
        if self.zero[7].q.val() { self.out_lanes.d.next.l7 = 0.into(); }
        self.lanes.next = self.out_lanes.q.val();
    }
}
