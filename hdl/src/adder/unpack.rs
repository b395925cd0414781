//! Stages 1 and 2: compare the operands and unpack them.

use rust_hdl::prelude::*;

use super::Kind;

/// Sorts the operands by magnitude and splits them into their fields.
#[derive(LogicBlock, Default)]
pub struct Unpack {
    pub clock: Signal<In, Clock>,
    pub a: Signal<In, Bits<32>>,
    pub b: Signal<In, Bits<32>>,
    pub kind: Signal<Out, Kind>,
    /// Biased exponent of the larger operand; 1 if the operand is zero or subnormal.
    pub exponent: Signal<Out, Bits<8>>,
    /// Number of bits by which the smaller significand must be shifted to the right.
    pub distance: Signal<Out, Bits<8>>,
    /// Significands of the larger and the smaller operand, each with its hidden bit.
    pub larger: Signal<Out, Bits<24>>,
    pub smaller: Signal<Out, Bits<24>>,
    magnitude_a: Signal<Local, Bits<31>>,
    magnitude_b: Signal<Local, Bits<31>>,
    at_least: Signal<Local, Bit>,
    exponent_a: Signal<Local, Bits<8>>,
    exponent_b: Signal<Local, Bits<8>>,
    fraction_a: Signal<Local, Bits<23>>,
    fraction_b: Signal<Local, Bits<23>>,
    a_special: Signal<Local, Bit>,
    b_special: Signal<Local, Bit>,
    unlike: Signal<Local, Bit>,
    /// Result of the comparison of the magnitudes. It is stored twice, once as its complement, because the fan-out of a
    /// single register would be too high.
    a_is_large: DFF<Bit>,
    a_is_small: DFF<Bit>,
    held_kind: DFF<Kind>,
    sign_a: DFF<Bit>,
    sign_b: DFF<Bit>,
    shift_a: DFF<Bits<8>>,
    shift_b: DFF<Bits<8>>,
    significand_a: DFF<Bits<24>>,
    significand_b: DFF<Bits<24>>,
    shift_x: Signal<Local, Bits<8>>,
    shift_y: Signal<Local, Bits<8>>,
    out_kind: DFF<Kind>,
    out_exponent: DFF<Bits<8>>,
    out_distance: DFF<Bits<8>>,
    out_large: DFF<Bits<24>>,
    out_small: DFF<Bits<24>>,
}

impl Logic for Unpack {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, a_is_large, a_is_small, held_kind, sign_a, sign_b, shift_a, shift_b);
        dff_setup!(self, clock, significand_a, significand_b);
        dff_setup!(self, clock, out_kind, out_exponent, out_distance, out_large, out_small);
        self.magnitude_a.next = self.a.val().get_bits::<31>(0);
        self.magnitude_b.next = self.b.val().get_bits::<31>(0);
        self.at_least.next = self.magnitude_a.val() >= self.magnitude_b.val();
        self.a_is_large.d.next = self.at_least.val();
        self.a_is_small.d.next = !self.at_least.val();
        self.exponent_a.next = self.a.val().get_bits::<8>(23);
        self.exponent_b.next = self.b.val().get_bits::<8>(23);
        self.fraction_a.next = self.a.val().get_bits::<23>(0);
        self.fraction_b.next = self.b.val().get_bits::<23>(0);
        self.shift_a.d.next = 1.into();
        self.shift_b.d.next = 1.into();
        self.significand_a.d.next = bit_cast::<24, 23>(self.fraction_a.val());
        self.significand_b.d.next = bit_cast::<24, 23>(self.fraction_b.val());
        if self.exponent_a.val().any() {
            self.shift_a.d.next = self.exponent_a.val();
            self.significand_a.d.next = bit_cast::<24, 23>(self.fraction_a.val()) | 0x80_0000;
        }
        if self.exponent_b.val().any() {
            self.shift_b.d.next = self.exponent_b.val();
            self.significand_b.d.next = bit_cast::<24, 23>(self.fraction_b.val()) | 0x80_0000;
        }
        self.sign_a.d.next = self.a.val().get_bit(31);
        self.sign_b.d.next = self.b.val().get_bit(31);
        self.unlike.next = self.a.val().get_bit(31) ^ self.b.val().get_bit(31);
        self.a_special.next = self.exponent_a.val().all();
        self.b_special.next = self.exponent_b.val().all();
        self.held_kind.d.next.sign = false;
        self.held_kind.d.next.subtract = self.unlike.val();
        // Infinities with different signs have equal magnitudes.
        self.held_kind.d.next.nan = (self.a_special.val() & self.fraction_a.val().any())
            | (self.b_special.val() & self.fraction_b.val().any())
            | (self.a_special.val() & self.b_special.val() & self.unlike.val());
        self.held_kind.d.next.infinite = self.a_special.val() | self.b_special.val();

        self.out_kind.d.next = self.held_kind.q.val();
        self.out_kind.d.next.sign = self.sign_b.q.val();
        self.shift_x.next = self.shift_b.q.val();
        self.out_large.d.next = self.significand_b.q.val();
        if self.a_is_large.q.val() {
            self.out_kind.d.next.sign = self.sign_a.q.val();
            self.shift_x.next = self.shift_a.q.val();
            self.out_large.d.next = self.significand_a.q.val();
        }
        self.shift_y.next = self.shift_b.q.val();
        self.out_small.d.next = self.significand_b.q.val();
        if self.a_is_small.q.val() {
            self.shift_y.next = self.shift_a.q.val();
            self.out_small.d.next = self.significand_a.q.val();
        }
        self.out_exponent.d.next = self.shift_x.val();
        self.out_distance.d.next = self.shift_x.val() - self.shift_y.val();

        self.kind.next = self.out_kind.q.val();
        self.exponent.next = self.out_exponent.q.val();
        self.distance.next = self.out_distance.q.val();
        self.larger.next = self.out_large.q.val();
        self.smaller.next = self.out_small.q.val();
    }
}
