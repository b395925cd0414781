//! Event counters in LUT RAM. Each decision of the Seg counter increments one of them.

use rust_hdl::prelude::*;

use crate::primitives::LutRam;

/// 32 counters, each 32 bits wide, which wrap around.
#[derive(LogicBlock, Default)]
pub struct Counters {
    pub clock: Signal<In, Clock>,
    /// Clears the counters, one per cycle, in the 32 cycles after the reset.
    pub reset: Signal<In, Bit>,
    pub event_code: Signal<In, Bits<5>>,
    pub event_valid: Signal<In, Bit>,
    /// Index of the counter whose value the host reads.
    pub selected: Signal<In, Bits<5>>,
    pub value: Signal<Out, Bits<32>>,
    counted: LutRam<Bits<32>, 5>,
    shown: LutRam<Bits<32>, 5>,
    code: DFF<Bits<5>>,
    raise: DFF<Bit>,
    sweeping: DFF<Bit>,
    at: DFF<Bits<5>>,
    address: Signal<Local, Bits<5>>,
    word: Signal<Local, Bits<32>>,
    write: Signal<Local, Bit>,
}

impl Logic for Counters {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, code, raise, sweeping, at);
        clock!(self, clock, counted, shown);
        self.code.d.next = self.event_code.val();
        self.raise.d.next = self.event_valid.val();
        self.counted.read_address.next = self.code.q.val();
        self.shown.read_address.next = self.selected.val();
        self.value.next = self.shown.read_data.val();
        self.address.next = self.code.q.val();
        self.word.next = self.counted.read_data.val() + 1;
        self.write.next = self.raise.q.val();
        if self.sweeping.q.val() {
            self.address.next = self.at.q.val();
            self.word.next = 0.into();
            self.write.next = true;
            self.at.d.next = self.at.q.val() + 1;
            if self.at.q.val().all() {
                self.sweeping.d.next = false;
            }
        }
        if self.reset.val() {
            self.sweeping.d.next = true;
            self.at.d.next = 0.into();
        }
        self.counted.write_address.next = self.address.val();
        self.counted.write_data.next = self.word.val();
        self.counted.write_enable.next = self.write.val();
        self.shown.write_address.next = self.address.val();
        self.shown.write_data.next = self.word.val();
        self.shown.write_enable.next = self.write.val();
    }
}
