//! Stages 5 and 6: shift the leading one of the sum to the top bit, or as far as the exponent allows.

use rust_hdl::prelude::*;

use super::Kind;

/// Counts the leading zeros of the sum, then shifts it to the left. The shift is limited so that the exponent stays at
/// least 1; a sum that still has leading zeros is subnormal.
#[derive(LogicBlock, Default)]
pub struct Normalise {
    pub clock: Signal<In, Clock>,
    pub kind_in: Signal<In, Kind>,
    pub exponent_in: Signal<In, Bits<8>>,
    pub total: Signal<In, Bits<28>>,
    pub kind: Signal<Out, Kind>,
    pub exponent: Signal<Out, Bits<8>>,
    /// 24-bit significand, followed by the guard, round and sticky bits.
    pub fraction: Signal<Out, Bits<27>>,
    padded: Signal<Local, Bits<28>>,
    /// Groups of four bits of `padded`, lowest first. `within` is the number of zeros above the highest set bit of each
    /// group.
    group: [Signal<Local, Bits<4>>; 7],
    within: [Signal<Local, Bits<5>>; 7],
    groups_before: Signal<Local, Bits<5>>,
    zeros_within: Signal<Local, Bits<5>>,
    zeros: Signal<Local, Bits<5>>,
    wide_zeros: Signal<Local, Bits<8>>,
    most: Signal<Local, Bits<8>>,
    counted_kind: DFF<Kind>,
    counted_exponent: DFF<Bits<8>>,
    counted_total: DFF<Bits<28>>,
    shift: DFF<Bits<5>>,
    by_0: Signal<Local, Bits<27>>,
    by_1: Signal<Local, Bits<27>>,
    by_3: Signal<Local, Bits<27>>,
    by_7: Signal<Local, Bits<27>>,
    by_15: Signal<Local, Bits<27>>,
    by_31: Signal<Local, Bits<27>>,
    wide_shift: Signal<Local, Bits<8>>,
    lowest: Signal<Local, Bits<1>>,
    carried: Signal<Local, Bits<27>>,
    out_kind: DFF<Kind>,
    out_exponent: DFF<Bits<8>>,
    out_fraction: DFF<Bits<27>>,
}

impl Logic for Normalise {
    #[hdl_gen]
    #[rustfmt::skip] // one line for each step
    fn update(&mut self) {
        dff_setup!(self, clock, counted_kind, counted_exponent, counted_total, shift);
        dff_setup!(self, clock, out_kind, out_exponent, out_fraction);
        self.padded.next = self.total.val() << 1;
        self.groups_before.next = 28.into();
        self.zeros_within.next = 3.into();
        for i in 0..7 {
            self.group[i].next = self.padded.val().get_bits::<4>(4 * i);
            self.within[i].next = 3.into();
            if self.group[i].val().get_bit(1) { self.within[i].next = 2.into(); }
            if self.group[i].val().get_bit(2) { self.within[i].next = 1.into(); }
            if self.group[i].val().get_bit(3) { self.within[i].next = 0.into(); }
            if self.group[i].val().any() {
                self.groups_before.next = (4 * (6 - i)).to_bits();
                self.zeros_within.next = self.within[i].val();
            }
        }
        self.zeros.next = self.groups_before.val() | self.zeros_within.val();
        self.most.next = self.exponent_in.val() - 1;
        self.wide_zeros.next = bit_cast::<8, 5>(self.zeros.val());
        self.shift.d.next = self.zeros.val();
        if self.wide_zeros.val() > self.most.val() {
            self.shift.d.next = self.most.val().get_bits::<5>(0);
        }
        self.counted_kind.d.next = self.kind_in.val();
        self.counted_exponent.d.next = self.exponent_in.val();
        self.counted_total.d.next = self.total.val();

        self.by_0.next = self.counted_total.q.val().get_bits::<27>(0);
        self.by_1.next = self.by_0.val();
        if self.shift.q.val().get_bit(0) { self.by_1.next = self.by_0.val() << 1; }
        self.by_3.next = self.by_1.val();
        if self.shift.q.val().get_bit(1) { self.by_3.next = self.by_1.val() << 2; }
        self.by_7.next = self.by_3.val();
        if self.shift.q.val().get_bit(2) { self.by_7.next = self.by_3.val() << 4; }
        self.by_15.next = self.by_7.val();
        if self.shift.q.val().get_bit(3) { self.by_15.next = self.by_7.val() << 8; }
        self.by_31.next = self.by_15.val();
        if self.shift.q.val().get_bit(4) { self.by_31.next = self.by_15.val() << 16; }
        self.wide_shift.next = bit_cast::<8, 5>(self.shift.q.val());
        self.lowest.next = self.counted_total.q.val().get_bits::<1>(0);
        self.carried.next = self.counted_total.q.val().get_bits::<27>(1);
        self.out_fraction.d.next = self.by_31.val();
        self.out_exponent.d.next = self.counted_exponent.q.val() - self.wide_shift.val();
        if self.counted_total.q.val().get_bit(27) {
            self.out_fraction.d.next = self.carried.val() | bit_cast::<27, 1>(self.lowest.val());
            self.out_exponent.d.next = self.counted_exponent.q.val() + 1;
        }
        self.out_kind.d.next = self.counted_kind.q.val();
        // The difference x - x is +0.
        if self.counted_kind.q.val().subtract & !self.counted_total.q.val().any() {
            self.out_kind.d.next.sign = false;
        }
        self.kind.next = self.out_kind.q.val();
        self.exponent.next = self.out_exponent.q.val();
        self.fraction.next = self.out_fraction.q.val();
    }
}
