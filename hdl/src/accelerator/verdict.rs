//! Verdict on a contribution. It applies the rules in section 5 of the specification, in the same order as the software
//! switch.

use rust_hdl::prelude::*;

use super::records::{Entry, Key};
use super::slot_table::Relation;

/// Decides in two pipeline stages: the first evaluates the properties of the contribution, the second applies the
/// rules.
#[derive(LogicBlock, Default)]
pub struct Verdict {
    pub clock: Signal<In, Clock>,
    pub key: Signal<In, Key>,
    pub entry: Signal<In, Entry>,
    pub relation: Signal<In, Relation>,
    pub halted: Signal<In, Bit>,
    pub out_of_range: Signal<In, Bit>,
    pub wrong_length: Signal<In, Bit>,
    /// `has_place`, `is_past`, `needed` and `participants` are outputs of [`super::round_table::RoundTable`].
    pub has_place: Signal<In, Bit>,
    pub is_past: Signal<In, Bit>,
    pub needed: Signal<In, Bits<8>>,
    pub participants: Signal<In, Bits<8>>,
    pub switches: Signal<In, Bits<8>>,
    /// High if the contribution is added or, for a request without a frame, if the segment is finished or the requested
    /// result is kept.
    pub accept: Signal<Out, Bit>,
    pub first: Signal<Out, Bit>,
    pub last: Signal<Out, Bit>,
    /// Code of the counter to increment, from [`super::records::event`].
    pub event_code: Signal<Out, Bits<5>>,
    /// High if a contribution is refused because its segment is finished, so that its sender may have lost the result.
    pub late: Signal<Out, Bit>,
    /// Bitmap of the contributors to the sum, including the sender of this contribution. `total` is the number of
    /// worker gradients in the sum, including this contribution.
    pub members: Signal<Out, Bits<8>>,
    pub total: Signal<Out, Bits<16>>,
    /// Bank of the sum, and the sum in the other bank after the decision.
    pub bank: Signal<Out, Bit>,
    pub has_previous: Signal<Out, Bit>,
    pub previous_total: Signal<Out, Bits<16>>,
    own: Signal<Local, Bits<8>>,
    count: CountOnes,
    ones: Signal<Local, Bits<4>>,
    needs: [Signal<Local, Bit>; 9],
    needs_most: [Signal<Local, Bit>; 9],
    old_total: Signal<Local, Bits<17>>,
    new_total: Signal<Local, Bits<17>>,
    empty: Signal<Local, Bit>,
    enough: Signal<Local, Bit>,
    weighed: DFF<Weighed>,
    held_members: DFF<Bits<8>>,
    held_total: DFF<Bits<16>>,
    held_bank: DFF<Bit>,
    held_has_previous: DFF<Bit>,
    held_previous_total: DFF<Bits<16>>,
    fails: DFF<Bit>,
    code: DFF<Bits<5>>,
    is_last: DFF<Bit>,
    is_late: DFF<Bit>,
    closes: Signal<Local, Bit>,
}

/// Properties of a contribution, as evaluated in the first stage.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct Weighed {
    pub may_begin: Bit,
    pub takes_part: Bit,
    pub repeated: Bit,
    pub bad_weight: Bit,
    pub over: Bit,
    pub late: Bit,
    pub open: Bit,
    pub refused: Bit,
}

impl Logic for Verdict {
    #[hdl_gen]
    #[rustfmt::skip] // one line for each rule
    fn update(&mut self) {
        dff_setup!(self, clock, weighed, held_members, held_total, fails, code, is_last, is_late);
        dff_setup!(self, clock, held_bank, held_has_previous, held_previous_total);
        self.own.next = 0.into();
        for i in 0..8 {
            if (self.key.val().member == i) & !self.key.val().forced { self.own.next = (1_u64 << i).to_bits(); }
        }
        self.empty.next = !self.entry.val().open & !self.entry.val().done;
        self.weighed.d.next.may_begin = ((self.entry.val().done & self.relation.val().follows)
            | (self.empty.val() & self.relation.val().begins)) & self.has_place.val();
        self.weighed.d.next.takes_part = (self.participants.val() & self.own.val()).any();
        // The sum so far counts only if the packet is for the segment that is open in the slot.
        self.held_members.d.next = self.own.val(); self.old_total.next = 0.into();
        if self.entry.val().open {
            self.held_members.d.next = self.own.val() | self.entry.val().members;
            self.old_total.next = bit_cast::<17, 16>(self.entry.val().total);
        }
        // The requested sum is that of the slot's segment or, if the other bank holds it, of the segment before it.
        if self.key.val().repeats {
            self.old_total.next = bit_cast::<17, 16>(self.entry.val().previous_total);
            if self.relation.val().same { self.old_total.next = bit_cast::<17, 16>(self.entry.val().total); }
        }
        // The segments that use a slot alternate between its banks.
        self.held_bank.d.next = self.entry.val().bank ^ !self.relation.val().same;
        self.held_has_previous.d.next = self.entry.val().done; self.held_previous_total.d.next = self.entry.val().total;
        if self.entry.val().open {
            self.held_has_previous.d.next = self.entry.val().has_previous;
            self.held_previous_total.d.next = self.entry.val().previous_total;
        }
        self.new_total.next = self.old_total.val() + bit_cast::<17, 16>(self.key.val().weight);
        self.held_total.d.next = self.new_total.val().get_bits::<16>(0);
        self.weighed.d.next.repeated = self.entry.val().open & (self.entry.val().members & self.own.val()).any();
        // The total exceeds 0xfffe.
        self.weighed.d.next.bad_weight = self.new_total.val().get_bit(16)
            | self.new_total.val().get_bits::<16>(0).all();
        if !(self.switches.val() & self.own.val()).any() & (self.key.val().weight != 1) {
            self.weighed.d.next.bad_weight = true;
        }
        self.weighed.d.next.late = (self.entry.val().done & self.relation.val().same) | (!self.empty.val()
            & self.entry.val().has_previous & self.relation.val().precedes);
        self.weighed.d.next.over = (!self.empty.val() & self.relation.val().earlier) | (self.empty.val()
            & self.relation.val().before_base);
        // The switch refuses a Help for a past round, even if some results of the round are still kept.
        self.weighed.d.next.refused = self.is_past.val() & self.key.val().only_complete;
        self.weighed.d.next.open = self.entry.val().open & self.relation.val().same;

        self.count.bits.next = self.held_members.q.val() & self.participants.val();
        // The count is compared with each possible number, because a comparison with `needed` would add a carry chain.
        self.ones.next = self.count.count.val(); self.enough.next = false;
        self.needs[0].next = !self.needed.val().any(); self.needs_most[0].next = self.needs[0].val();
        for i in 1..9 {
            self.needs[i].next = self.needed.val() == i.to_bits();
            self.needs_most[i].next = self.needs_most[i - 1].val() | self.needs[i].val();
            if (self.ones.val() == i.to_bits()) & self.needs_most[i].val() { self.enough.next = true; }
        }
        self.fails.d.next = true; self.is_late.d.next = false; self.code.d.next = 14.into();
        if !self.key.val().known { self.code.d.next = 5.into(); }
        else if self.key.val().malformed { self.code.d.next = 6.into(); }
        else if self.halted.val() { self.code.d.next = 7.into(); }
        else if self.out_of_range.val() { self.code.d.next = 8.into(); }
        else if self.wrong_length.val() { self.code.d.next = 9.into(); }
        else if self.weighed.q.val().late { self.code.d.next = 12.into(); self.is_late.d.next = true; }
        else if self.weighed.q.val().over { self.code.d.next = 13.into(); }
        else if self.weighed.q.val().open | self.weighed.q.val().may_begin {
            self.code.d.next = 2.into(); self.fails.d.next = false;
            if !self.weighed.q.val().takes_part { self.code.d.next = 15.into(); self.fails.d.next = true; }
            else if self.weighed.q.val().repeated { self.code.d.next = 11.into(); self.fails.d.next = true; }
            else if self.weighed.q.val().bad_weight { self.code.d.next = 10.into(); self.fails.d.next = true; }
            else if self.enough.val() { self.code.d.next = 3.into(); }
        }
        self.is_last.d.next = self.enough.val();
        self.closes.next = self.weighed.q.val().open & !self.out_of_range.val() & (self.enough.val()
            | !self.key.val().only_complete);
        if self.key.val().forced {
            self.code.d.next = 4.into(); self.fails.d.next = !self.closes.val();
            self.is_last.d.next = true; self.is_late.d.next = false;
        }
        if self.key.val().repeats {
            self.code.d.next = 17.into(); self.fails.d.next = true;
            if self.weighed.q.val().late & !self.weighed.q.val().refused & !self.halted.val() {
                self.code.d.next = 16.into(); self.fails.d.next = false;
            }
        }
        self.event_code.next = self.code.q.val();
        self.accept.next = !self.fails.q.val(); self.last.next = self.is_last.q.val();
        self.first.next = !self.weighed.q.val().open & !self.key.val().repeats; self.late.next = self.is_late.q.val();
        self.members.next = self.held_members.q.val(); self.total.next = self.held_total.q.val();
        self.bank.next = self.held_bank.q.val(); self.has_previous.next = self.held_has_previous.q.val();
        self.previous_total.next = self.held_previous_total.q.val();
    }
}

/// Counts the set bits in a word of eight bits.
#[derive(LogicBlock, Default)]
pub struct CountOnes {
    pub bits: Signal<In, Bits<8>>,
    pub count: Signal<Out, Bits<4>>,
    one: [Signal<Local, Bit>; 3],
    two: [Signal<Local, Bit>; 5],
    four: [Signal<Local, Bit>; 2],
    number: [Signal<Local, Bits<4>>; 4],
}

impl Logic for CountOnes {
    #[hdl_gen]
    fn update(&mut self) {
        // Full and half adders combine three bits of one weight into one bit of that weight and one of the next.
        for i in 0..2 {
            self.one[i].next = self.bits.val().get_bit(3 * i)
                ^ self.bits.val().get_bit(3 * i + 1)
                ^ self.bits.val().get_bit(3 * i + 2);
            self.two[i].next = (self.bits.val().get_bit(3 * i) & self.bits.val().get_bit(3 * i + 1))
                | (self.bits.val().get_bit(3 * i) & self.bits.val().get_bit(3 * i + 2))
                | (self.bits.val().get_bit(3 * i + 1) & self.bits.val().get_bit(3 * i + 2));
        }
        self.one[2].next = self.bits.val().get_bit(6) ^ self.bits.val().get_bit(7);
        self.two[2].next = self.bits.val().get_bit(6) & self.bits.val().get_bit(7);
        self.two[3].next = (self.one[0].val() & self.one[1].val())
            | (self.one[0].val() & self.one[2].val())
            | (self.one[1].val() & self.one[2].val());
        self.two[4].next = self.two[0].val() ^ self.two[1].val() ^ self.two[2].val();
        self.four[0].next = (self.two[0].val() & self.two[1].val())
            | (self.two[0].val() & self.two[2].val())
            | (self.two[1].val() & self.two[2].val());
        self.four[1].next = self.two[3].val() & self.two[4].val();
        for i in 0..4 {
            self.number[i].next = 0.into();
        }
        if self.one[0].val() ^ self.one[1].val() ^ self.one[2].val() {
            self.number[0].next = 1.into();
        }
        if self.two[3].val() ^ self.two[4].val() {
            self.number[1].next = 2.into();
        }
        if self.four[0].val() ^ self.four[1].val() {
            self.number[2].next = 4.into();
        }
        if self.four[0].val() & self.four[1].val() {
            self.number[3].next = 8.into();
        }
        self.count.next =
            self.number[0].val() | self.number[1].val() | self.number[2].val() | self.number[3].val();
    }
}
