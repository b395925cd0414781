//! Eight adders in parallel.

use rust_hdl::prelude::*;

use crate::adder::Fp32Adder;
use crate::axis::Lanes;

/// Computes `sum` = `a` + `b` lane by lane, with a latency of seven cycles.
#[derive(LogicBlock, Default)]
pub struct AdderArray {
    pub clock: Signal<In, Clock>,
    pub a: Signal<In, Lanes>,
    pub b: Signal<In, Lanes>,
    pub sum: Signal<Out, Lanes>,
    lane: [Fp32Adder; 8],
}

impl Logic for AdderArray {
    #[hdl_gen]
    fn update(&mut self) {
        for i in 0..8 {
            self.lane[i].clock.next = self.clock.val();
        }
        self.lane[0].a.next = self.a.val().l0;
        self.lane[1].a.next = self.a.val().l1;
        self.lane[2].a.next = self.a.val().l2;
        self.lane[3].a.next = self.a.val().l3;
        self.lane[4].a.next = self.a.val().l4;
        self.lane[5].a.next = self.a.val().l5;
        self.lane[6].a.next = self.a.val().l6;
        self.lane[7].a.next = self.a.val().l7;
        self.lane[0].b.next = self.b.val().l0;
        self.lane[1].b.next = self.b.val().l1;
        self.lane[2].b.next = self.b.val().l2;
        self.lane[3].b.next = self.b.val().l3;
        self.lane[4].b.next = self.b.val().l4;
        self.lane[5].b.next = self.b.val().l5;
        self.lane[6].b.next = self.b.val().l6;
        self.lane[7].b.next = self.b.val().l7;
        self.sum.next.l0 = self.lane[0].sum.val();
        self.sum.next.l1 = self.lane[1].sum.val();
        self.sum.next.l2 = self.lane[2].sum.val();
        self.sum.next.l3 = self.lane[3].sum.val();
        self.sum.next.l4 = self.lane[4].sum.val();
        self.sum.next.l5 = self.lane[5].sum.val();
        self.sum.next.l6 = self.lane[6].sum.val();
        self.sum.next.l7 = self.lane[7].sum.val();
    }
}
