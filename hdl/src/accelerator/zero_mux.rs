//! Multiplexer that replaces eight floats with zeros.

use rust_hdl::prelude::*;

use crate::axis::Lanes;

/// Replaces eight floats with zeros if `zero` is set. At the read port of the buffer, it makes the content of a slot
/// count as zero for the first contribution, so that a finished sum can stay in the buffer until its bank is reused.
#[derive(LogicBlock, Default)]
pub struct ZeroMux {
    pub lanes: Signal<In, Lanes>,
    pub zero: Signal<In, Bit>,
    pub out: Signal<Out, Lanes>,
}

impl Logic for ZeroMux {
    #[hdl_gen]
    fn update(&mut self) {
        self.out.next = self.lanes.val();
        if self.zero.val() {
            self.out.next.l0 = 0.into();
            self.out.next.l1 = 0.into();
            self.out.next.l2 = 0.into();
            self.out.next.l3 = 0.into();
            self.out.next.l4 = 0.into();
            self.out.next.l5 = 0.into();
            self.out.next.l6 = 0.into();
            self.out.next.l7 = 0.into();
        }
    }
}
