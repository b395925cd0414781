//! Stages 1 and 2: which operand is larger, and the parts of both.

use rust_hdl::prelude::*;

use super::Kind;

/// Sorts the operands by magnitude and takes them apart.
#[derive(LogicBlock, Default)]
pub struct Unpack {
    pub clock: Signal<In, Clock>,
    pub a: Signal<In, Bits<32>>,
    pub b: Signal<In, Bits<32>>,
    pub kind: Signal<Out, Kind>,
    /// Exponent of the larger operand; that of a subnormal is 1.
    pub exponent: Signal<Out, Bits<8>>,
    /// How far the smaller one has to be shifted.
    pub distance: Signal<Out, Bits<8>>,
    /// Significands with their hidden bits.
    pub larger: Signal<Out, Bits<24>>,
    pub smaller: Signal<Out, Bits<24>>,
    magnitude_a: Signal<Local, Bits<31>>,
    magnitude_b: Signal<Local, Bits<31>>,
    held_a: DFF<Bits<32>>,
    held_b: DFF<Bits<32>>,
    a_is_large: DFF<Bit>,
    x: Signal<Local, Bits<32>>,
    y: Signal<Local, Bits<32>>,
    exponent_x: Signal<Local, Bits<8>>,
    exponent_y: Signal<Local, Bits<8>>,
    fraction_x: Signal<Local, Bits<23>>,
    fraction_y: Signal<Local, Bits<23>>,
    shift_x: Signal<Local, Bits<8>>,
    shift_y: Signal<Local, Bits<8>>,
    unlike: Signal<Local, Bit>,
    x_special: Signal<Local, Bit>,
    y_special: Signal<Local, Bit>,
    out_kind: DFF<Kind>,
    out_exponent: DFF<Bits<8>>,
    out_distance: DFF<Bits<8>>,
    out_large: DFF<Bits<24>>,
    out_small: DFF<Bits<24>>,
}

impl Logic for Unpack {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, held_a, held_b, a_is_large, out_kind, out_exponent, out_distance);
        dff_setup!(self, clock, out_large, out_small);
        self.magnitude_a.next = self.a.val().get_bits::<31>(0);
        self.magnitude_b.next = self.b.val().get_bits::<31>(0);
        self.a_is_large.d.next = self.magnitude_a.val() >= self.magnitude_b.val();
        self.held_a.d.next = self.a.val();
        self.held_b.d.next = self.b.val();

        self.x.next = self.held_b.q.val();
        self.y.next = self.held_a.q.val();
        if self.a_is_large.q.val() {
            self.x.next = self.held_a.q.val();
            self.y.next = self.held_b.q.val();
        }
        self.exponent_x.next = self.x.val().get_bits::<8>(23);
        self.exponent_y.next = self.y.val().get_bits::<8>(23);
        self.fraction_x.next = self.x.val().get_bits::<23>(0);
        self.fraction_y.next = self.y.val().get_bits::<23>(0);
        self.unlike.next = self.x.val().get_bit(31) ^ self.y.val().get_bit(31);
        self.x_special.next = self.exponent_x.val().all();
        self.y_special.next = self.exponent_y.val().all();
        self.out_large.d.next = bit_cast::<24, 23>(self.fraction_x.val());
        self.out_small.d.next = bit_cast::<24, 23>(self.fraction_y.val());
        self.shift_x.next = 1.into();
        self.shift_y.next = 1.into();
        if self.exponent_x.val().any() {
            self.shift_x.next = self.exponent_x.val();
            self.out_large.d.next = bit_cast::<24, 23>(self.fraction_x.val()) | 0x80_0000;
        }
        if self.exponent_y.val().any() {
            self.shift_y.next = self.exponent_y.val();
            self.out_small.d.next = bit_cast::<24, 23>(self.fraction_y.val()) | 0x80_0000;
        }
        self.out_exponent.d.next = self.shift_x.val();
        self.out_distance.d.next = self.shift_x.val() - self.shift_y.val();
        self.out_kind.d.next.sign = self.x.val().get_bit(31);
        self.out_kind.d.next.subtract = self.unlike.val();
        // Infinities of unlike signs are equal in magnitude.
        self.out_kind.d.next.nan = (self.x_special.val() & self.fraction_x.val().any())
            | (self.y_special.val() & self.fraction_y.val().any())
            | (self.x_special.val() & self.y_special.val() & self.unlike.val());
        self.out_kind.d.next.infinite = self.x_special.val();

        self.kind.next = self.out_kind.q.val();
        self.exponent.next = self.out_exponent.q.val();
        self.distance.next = self.out_distance.q.val();
        self.larger.next = self.out_large.q.val();
        self.smaller.next = self.out_small.q.val();
    }
}
