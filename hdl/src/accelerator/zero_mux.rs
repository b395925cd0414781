//! Multiplexer that replaces eight floats with zeros.

use rust_hdl::prelude::*;

use crate::axis::Lanes;

/// Replaces eight floats with zeros if `zero` is set. At the write port of the buffer, it overwrites a finished sum
/// with zeros. At the read port, it replaces the content of the slot with zeros for the first contribution.
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
