//! Stage 7: round to nearest even and handle infinities and NaN.

use rust_hdl::prelude::*;

use super::Kind;

/// Rounds and packs the sum. A carry out of the fraction increments the exponent.
#[derive(LogicBlock, Default)]
pub struct Round {
    pub clock: Signal<In, Clock>,
    pub kind: Signal<In, Kind>,
    pub exponent: Signal<In, Bits<8>>,
    pub fraction: Signal<In, Bits<27>>,
    pub sum: Signal<Out, Bits<32>>,
    kept: Signal<Local, Bits<23>>,
    field: Signal<Local, Bits<31>>,
    truncated: Signal<Local, Bits<31>>,
    up: Signal<Local, Bit>,
    rounded: Signal<Local, Bits<31>>,
    largest: Signal<Local, Bit>,
    overflows: Signal<Local, Bit>,
    magnitude: Signal<Local, Bits<32>>,
    sign: Signal<Local, Bits<32>>,
    out_sum: DFF<Bits<32>>,
}

impl Logic for Round {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, out_sum);
        self.kept.next = self.fraction.val().get_bits::<23>(3);
        self.field.next = bit_cast::<31, 8>(self.exponent.val()) << 23;
        self.truncated.next = bit_cast::<31, 23>(self.kept.val());
        // Without the hidden bit the value is subnormal, and its exponent field is zero.
        if self.fraction.val().get_bit(26) {
            self.truncated.next = bit_cast::<31, 23>(self.kept.val()) | self.field.val();
        }
        self.up.next = self.fraction.val().get_bit(2)
            & (self.fraction.val().get_bit(3)
                | self.fraction.val().get_bit(1)
                | self.fraction.val().get_bit(0));
        self.rounded.next = self.truncated.val() + bit_cast::<31, 1>(self.up.val().into());
        // Overflow is determined in parallel with the carry, not after it.
        self.largest.next = (self.exponent.val() == 254) & self.kept.val().all();
        self.overflows.next = self.fraction.val().get_bit(26)
            & (self.exponent.val().all() | (self.largest.val() & self.up.val()));
        self.magnitude.next = bit_cast::<32, 31>(self.rounded.val());
        if self.overflows.val() | self.kind.val().infinite {
            self.magnitude.next = 0x7f80_0000.into();
        }
        self.sign.next = bit_cast::<32, 1>(self.kind.val().sign.into()) << 31;
        self.out_sum.d.next = self.magnitude.val() | self.sign.val();
        if self.kind.val().nan {
            self.out_sum.d.next = 0x7fc0_0000.into();
        }
        self.sum.next = self.out_sum.q.val();
    }
}
