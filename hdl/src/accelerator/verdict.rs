//! What becomes of a contribution: the rules of section 5 of the specification, in the order of the software switch.

use rust_hdl::prelude::*;

use super::records::{Entry, Key};
use super::slot_table::Relation;

/// Wires and comparisons, no state.
#[derive(LogicBlock, Default)]
pub struct Verdict {
    pub key: Signal<In, Key>,
    pub entry: Signal<In, Entry>,
    pub relation: Signal<In, Relation>,
    pub halted: Signal<In, Bit>,
    pub out_of_range: Signal<In, Bit>,
    pub wrong_length: Signal<In, Bit>,
    /// Of the round table: [`super::round_table::RoundTable`].
    pub has_place: Signal<In, Bit>,
    pub needed: Signal<In, Bits<8>>,
    pub participants: Signal<In, Bits<8>>,
    pub switches: Signal<In, Bits<8>>,
    /// The contribution is added, or the segment finished because the host wants it.
    pub accept: Signal<Out, Bit>,
    pub first: Signal<Out, Bit>,
    pub last: Signal<Out, Bit>,
    /// The counter that is raised: a code of [`super::records::event`].
    pub event_code: Signal<Out, Bits<4>>,
    /// Contributors and worker gradients, this contribution included.
    pub members: Signal<Out, Bits<8>>,
    pub total: Signal<Out, Bits<16>>,
    own: Signal<Local, Bits<8>>,
    count: CountOnes,
    wide_count: Signal<Local, Bits<8>>,
    old_total: Signal<Local, Bits<17>>,
    new_total: Signal<Local, Bits<17>>,
    bad_weight: Signal<Local, Bit>,
    empty: Signal<Local, Bit>,
    enough: Signal<Local, Bit>,
    may_begin: Signal<Local, Bit>,
    takes_part: Signal<Local, Bit>,
    fails: Signal<Local, Bit>,
    code: Signal<Local, Bits<4>>,
    closes: Signal<Local, Bit>,
}

impl Logic for Verdict {
    #[hdl_gen]
    #[rustfmt::skip] // a line each rule
    fn update(&mut self) {
        self.own.next = 0.into();
        for i in 0..8 {
            if (self.key.val().member == i) & !self.key.val().forced {
                self.own.next = (1_u64 << i).to_bits();
            }
        }
        self.empty.next = !self.entry.val().open & !self.entry.val().done;
        self.may_begin.next = ((self.entry.val().done & self.relation.val().follows)
            | (self.empty.val() & self.relation.val().begins))
            & self.has_place.val();
        self.takes_part.next = (self.participants.val() & self.own.val()).any();
        // A sum so far counts only if the packet is for the segment that the slot has open.
        self.members.next = self.own.val();
        self.old_total.next = 0.into();
        if self.entry.val().open {
            self.members.next = self.own.val() | self.entry.val().members;
            self.old_total.next = bit_cast::<17, 16>(self.entry.val().total);
        }
        self.new_total.next = self.old_total.val() + bit_cast::<17, 16>(self.key.val().weight);
        self.total.next = self.new_total.val().get_bits::<16>(0);
        self.count.bits.next = self.members.val() & self.participants.val();
        self.wide_count.next = bit_cast::<8, 4>(self.count.count.val());
        self.enough.next = (self.wide_count.val() >= self.needed.val()) & self.wide_count.val().any();
        self.bad_weight.next = (!(self.switches.val() & self.own.val()).any() & (self.key.val().weight != 1))
            | (self.new_total.val() > 0xfffe);
        self.fails.next = true;
        self.code.next = 14.into();
        if !self.key.val().known { self.code.next = 5.into(); }
        else if self.key.val().malformed { self.code.next = 6.into(); }
        else if self.halted.val() { self.code.next = 7.into(); }
        else if self.out_of_range.val() { self.code.next = 8.into(); }
        else if self.wrong_length.val() { self.code.next = 9.into(); }
        else if self.entry.val().done & self.relation.val().same { self.code.next = 12.into(); }
        else if (!self.empty.val() & self.relation.val().earlier)
            | (self.empty.val() & self.relation.val().before_base)
        { self.code.next = 13.into(); }
        else if (self.entry.val().open & self.relation.val().same) | self.may_begin.val() {
            self.code.next = 2.into();
            self.fails.next = false;
            if !self.takes_part.val() {
                self.code.next = 15.into(); self.fails.next = true;
            } else if self.entry.val().open & (self.entry.val().members & self.own.val()).any() {
                self.code.next = 11.into();
                self.fails.next = true;
            } else if self.bad_weight.val() {
                self.code.next = 10.into();
                self.fails.next = true;
            } else if self.enough.val() {
                self.code.next = 3.into();
            }
        }
        self.closes.next = self.entry.val().open
            & self.relation.val().same
            & !self.out_of_range.val()
            & (self.enough.val() | !self.key.val().only_complete);
        self.event_code.next = self.code.val();
        self.accept.next = !self.fails.val();
        self.last.next = self.enough.val();
        self.first.next = !self.entry.val().open;
        if self.key.val().forced {
            self.event_code.next = 4.into();
            self.accept.next = self.closes.val();
            self.last.next = true;
        }
    }
}

/// How many of eight bits are set.
#[derive(LogicBlock, Default)]
pub struct CountOnes {
    pub bits: Signal<In, Bits<8>>,
    pub count: Signal<Out, Bits<4>>,
    pair: [Signal<Local, Bits<4>>; 4],
    low: Signal<Local, Bits<4>>,
    high: Signal<Local, Bits<4>>,
}

impl Logic for CountOnes {
    #[hdl_gen]
    fn update(&mut self) {
        for i in 0..4 {
            self.pair[i].next = 0.into();
            if self.bits.val().get_bit(2 * i) | self.bits.val().get_bit(2 * i + 1) {
                self.pair[i].next = 1.into();
            }
            if self.bits.val().get_bit(2 * i) & self.bits.val().get_bit(2 * i + 1) {
                self.pair[i].next = 2.into();
            }
        }
        self.low.next = self.pair[0].val() + self.pair[1].val();
        self.high.next = self.pair[2].val() + self.pair[3].val();
        self.count.next = self.low.val() + self.high.val();
    }
}
