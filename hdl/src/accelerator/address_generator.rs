//! Location of a segment's sum in the buffer.

use rust_hdl::prelude::*;

/// Number of bursts per slot in one bank: a segment of 366 floats takes 46.
pub const SLOT_BURSTS: usize = 46;

/// Computes two values from the index of a segment: the slot of the segment, combinationally, and the address of the
/// slot's first burst within a bank, with a latency of two cycles. The buffer has 128 slots or, if `is_large` is set,
/// 256, each of [`SLOT_BURSTS`] bursts per bank.
#[derive(LogicBlock, Default)]
pub struct AddressGenerator {
    pub clock: Signal<In, Clock>,
    pub is_large: Signal<In, Bit>,
    pub index: Signal<In, Bits<24>>,
    /// Lower seven bits of the index or, if `is_large` is set, lower eight bits.
    pub slot: Signal<Out, Bits<8>>,
    pub address: Signal<Out, Bits<14>>,
    chosen: Signal<Local, Bits<8>>,
    once: Signal<Local, Bits<14>>,
    twice: Signal<Local, Bits<14>>,
    triple: DFF<Bits<14>>,
    held_slot: DFF<Bits<8>>,
    by_48: Signal<Local, Bits<14>>,
    by_2: Signal<Local, Bits<14>>,
    out_address: DFF<Bits<14>>,
}

impl Logic for AddressGenerator {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, triple, held_slot, out_address);
        self.chosen.next = bit_cast::<8, 7>(self.index.val().get_bits::<7>(0));
        if self.is_large.val() {
            self.chosen.next = self.index.val().get_bits::<8>(0);
        }
        self.slot.next = self.chosen.val();
        self.once.next = bit_cast::<14, 8>(self.chosen.val());
        self.twice.next = bit_cast::<14, 8>(self.chosen.val()) << 1;
        self.triple.d.next = self.once.val() + self.twice.val();
        self.held_slot.d.next = self.chosen.val();
        // The factor is 46 = 48 - 2.
        self.by_48.next = self.triple.q.val() << 4;
        self.by_2.next = bit_cast::<14, 8>(self.held_slot.q.val()) << 1;
        self.out_address.d.next = self.by_48.val() - self.by_2.val();
        self.address.next = self.out_address.q.val();
    }
}
