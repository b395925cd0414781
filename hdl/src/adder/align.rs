//! Stages 3 and 4: align the smaller significand to the larger exponent, then add or subtract.

use rust_hdl::prelude::*;

use super::Kind;

/// Adds or subtracts significands that are extended by a guard, a round and a sticky bit. The sticky bit is set if any
/// of the bits shifted out is set.
#[derive(LogicBlock, Default)]
pub struct AlignAdd {
    pub clock: Signal<In, Clock>,
    pub kind_in: Signal<In, Kind>,
    pub exponent_in: Signal<In, Bits<8>>,
    pub distance: Signal<In, Bits<8>>,
    pub larger: Signal<In, Bits<24>>,
    pub smaller: Signal<In, Bits<24>>,
    pub kind: Signal<Out, Kind>,
    pub exponent: Signal<Out, Bits<8>>,
    /// Sum or difference of the significands; bit 27 is the carry-out.
    pub total: Signal<Out, Bits<28>>,
    by_0: Signal<Local, Bits<27>>,
    by_1: Signal<Local, Bits<27>>,
    by_3: Signal<Local, Bits<27>>,
    by_7: Signal<Local, Bits<27>>,
    by_15: Signal<Local, Bits<27>>,
    by_31: Signal<Local, Bits<27>>,
    lost_1: Signal<Local, Bit>,
    lost_3: Signal<Local, Bit>,
    lost_7: Signal<Local, Bit>,
    lost_15: Signal<Local, Bit>,
    lost_31: Signal<Local, Bit>,
    all_lost: Signal<Local, Bit>,
    aligned_kind: DFF<Kind>,
    aligned_exponent: DFF<Bits<8>>,
    aligned_large: DFF<Bits<24>>,
    aligned_small: DFF<Bits<27>>,
    /// Operands with an additional lowest bit, which generates the carry-in of the two's complement.
    augend: Signal<Local, Bits<29>>,
    addend: Signal<Local, Bits<29>>,
    complement: Signal<Local, Bits<29>>,
    sum: Signal<Local, Bits<29>>,
    shifted: Signal<Local, Bits<29>>,
    out_kind: DFF<Kind>,
    out_exponent: DFF<Bits<8>>,
    out_total: DFF<Bits<28>>,
}

impl Logic for AlignAdd {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, aligned_kind, aligned_exponent, aligned_large, aligned_small);
        dff_setup!(self, clock, out_kind, out_exponent, out_total);
        self.by_0.next = bit_cast::<27, 24>(self.smaller.val()) << 3;
        self.by_1.next = self.by_0.val();
        self.lost_1.next = false;
        if self.distance.val().get_bit(0) {
            self.by_1.next = self.by_0.val() >> 1;
            self.lost_1.next = self.by_0.val().get_bit(0);
        }
        self.by_3.next = self.by_1.val();
        self.lost_3.next = self.lost_1.val();
        if self.distance.val().get_bit(1) {
            self.by_3.next = self.by_1.val() >> 2;
            self.lost_3.next = self.lost_1.val() | self.by_1.val().get_bits::<2>(0).any();
        }
        self.by_7.next = self.by_3.val();
        self.lost_7.next = self.lost_3.val();
        if self.distance.val().get_bit(2) {
            self.by_7.next = self.by_3.val() >> 4;
            self.lost_7.next = self.lost_3.val() | self.by_3.val().get_bits::<4>(0).any();
        }
        self.by_15.next = self.by_7.val();
        self.lost_15.next = self.lost_7.val();
        if self.distance.val().get_bit(3) {
            self.by_15.next = self.by_7.val() >> 8;
            self.lost_15.next = self.lost_7.val() | self.by_7.val().get_bits::<8>(0).any();
        }
        self.by_31.next = self.by_15.val();
        self.lost_31.next = self.lost_15.val();
        if self.distance.val().get_bit(4) {
            self.by_31.next = self.by_15.val() >> 16;
            self.lost_31.next = self.lost_15.val() | self.by_15.val().get_bits::<16>(0).any();
        }
        self.aligned_small.d.next = self.by_31.val() | bit_cast::<27, 1>(self.lost_31.val().into());
        self.all_lost.next = self.distance.val().get_bits::<3>(5).any();
        if self.all_lost.val() {
            self.aligned_small.d.next = bit_cast::<27, 1>(self.smaller.val().any().into());
        }
        self.aligned_kind.d.next = self.kind_in.val();
        self.aligned_exponent.d.next = self.exponent_in.val();
        self.aligned_large.d.next = self.larger.val();

        self.shifted.next = bit_cast::<29, 24>(self.aligned_large.q.val()) << 4;
        self.augend.next = self.shifted.val() | 1;
        self.addend.next = bit_cast::<29, 27>(self.aligned_small.q.val()) << 1;
        self.complement.next = self.addend.val();
        if self.aligned_kind.q.val().subtract {
            self.complement.next = !self.addend.val();
        }
        self.sum.next = self.augend.val() + self.complement.val();
        self.out_total.d.next = self.sum.val().get_bits::<28>(1);
        self.out_kind.d.next = self.aligned_kind.q.val();
        self.out_exponent.d.next = self.aligned_exponent.q.val();
        self.kind.next = self.out_kind.q.val();
        self.exponent.next = self.out_exponent.q.val();
        self.total.next = self.out_total.q.val();
    }
}
