//! Reader through which the host accesses the slot and round tables.

use rust_hdl::prelude::*;

use super::records::{Entry, RoundsView};

/// Copies the state of a slot when the host selects it, and keeps the copy. Outputs one word of the copy or of the
/// current state of the rounds.
#[derive(LogicBlock, Default)]
pub struct TableReader {
    pub clock: Signal<In, Clock>,
    /// Selects a slot. The copy of its state is valid three cycles later.
    pub select: Signal<In, Bit>,
    pub slot: Signal<In, Bits<8>>,
    /// Slot that is read. `entry` is its state, one cycle later.
    pub peeks: Signal<Out, Bits<8>>,
    pub entry: Signal<In, Entry>,
    pub rounds: Signal<In, RoundsView>,
    /// Word to output. `value` is its value, two cycles later.
    pub word: Signal<In, Bits<3>>,
    pub value: Signal<Out, Bits<32>>,
    chosen: DFF<Bits<8>>,
    selected: DFF<Bit>,
    reads: DFF<Bit>,
    held: DFF<Entry>,
    held_slot: DFF<Bits<8>>,
    /// `word`, decoded. The bits come directly from registers, because each selects a whole word.
    picks: [DFF<Bit>; 8],
    shown: DFF<Bits<32>>,
    words: [Signal<Local, Bits<32>>; 8],
    picked: [Signal<Local, Bits<32>>; 8],
    state: Signal<Local, Bits<32>>,
    segment: Signal<Local, Bits<32>>,
    rules: Signal<Local, Bits<32>>,
    flags: [Signal<Local, Bits<32>>; 4],
}

impl Logic for TableReader {
    #[hdl_gen]
    #[rustfmt::skip] // one line for each word
    fn update(&mut self) {
        dff_setup!(self, clock, chosen, selected, reads, held, held_slot, shown);
        self.selected.d.next = self.select.val(); self.reads.d.next = self.selected.q.val();
        if self.select.val() { self.chosen.d.next = self.slot.val(); }
        self.peeks.next = self.chosen.q.val();
        if self.reads.q.val() { self.held.d.next = self.entry.val(); self.held_slot.d.next = self.chosen.q.val(); }
        for i in 0..4 { self.flags[i].next = 0.into(); }
        if self.held.q.val().open { self.flags[0].next = 1.into(); }
        if self.held.q.val().done { self.flags[1].next = 2.into(); }
        if self.held.q.val().has_previous { self.flags[2].next = 4.into(); }
        if self.held.q.val().bank { self.flags[3].next = 8.into(); }
        self.state.next = self.flags[0].val() | self.flags[1].val() | self.flags[2].val() | self.flags[3].val()
            | (bit_cast::<32, 8>(self.held.q.val().members) << 8)
            | (bit_cast::<32, 16>(self.held.q.val().total) << 16);
        self.segment.next = (bit_cast::<32, 17>(self.held.q.val().tag) << 7)
            | bit_cast::<32, 7>(self.held_slot.q.val().get_bits::<7>(0));
        self.rules.next = bit_cast::<32, 8>(self.rounds.val().needed0)
            | (bit_cast::<32, 8>(self.rounds.val().participants0) << 8)
            | (bit_cast::<32, 8>(self.rounds.val().needed1) << 16)
            | (bit_cast::<32, 8>(self.rounds.val().participants1) << 24);
        self.words[0].next = self.state.val();
        self.words[1].next = bit_cast::<32, 24>(self.held.q.val().round);
        self.words[2].next = self.segment.val();
        self.words[3].next = bit_cast::<32, 16>(self.held.q.val().previous_total);
        self.words[4].next = bit_cast::<32, 24>(self.rounds.val().next_round);
        self.words[5].next = bit_cast::<32, 25>(self.rounds.val().unfinished0);
        self.words[6].next = bit_cast::<32, 25>(self.rounds.val().unfinished1);
        self.words[7].next = self.rules.val();
        for i in 0..8 {
            self.picks[i].clock.next = self.clock.val(); self.picks[i].d.next = self.word.val() == i.to_bits();
            self.picked[i].next = 0.into();
            if self.picks[i].q.val() { self.picked[i].next = self.words[i].val(); }
        }
        self.shown.d.next = self.picked[0].val() | self.picked[1].val() | self.picked[2].val() | self.picked[3].val()
            | self.picked[4].val() | self.picked[5].val() | self.picked[6].val() | self.picked[7].val();
        self.value.next = self.shown.q.val();
    }
}
