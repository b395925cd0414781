//! The slot table, which holds the segment, the round, the contributor bitmap and the contribution count of each slot.

use rust_hdl::prelude::*;

use super::records::{Entry, Job};
use crate::primitives::BlockRam;

/// Relation of a packet's segment and round to those stored in its slot.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct Relation {
    pub same: Bit,
    /// Whether the slot has already moved past the packet's segment and round.
    pub earlier: Bit,
    /// Whether the packet's segment is the next one to use the slot, in the same round or in the next. Meaningful only
    /// if the slot is done.
    pub follows: Bit,
    /// Whether the packet's segment is the first one to use the slot in the first round of the job. Meaningful only if
    /// the slot is empty.
    pub begins: Bit,
    /// Whether the packet's round precedes the first round of the job.
    pub before_base: Bit,
    /// Whether the slot's segment is the first one after the packet's segment to use the slot.
    pub precedes: Bit,
}

/// The slot table in block RAM. `entry` and `relation` are valid two cycles after `slot`, `index` and `round`.
#[derive(LogicBlock, Default)]
pub struct SlotTable {
    pub clock: Signal<In, Clock>,
    pub is_large: Signal<In, Bit>,
    pub job: Signal<In, Job>,
    pub slot: Signal<In, Bits<8>>,
    pub index: Signal<In, Bits<24>>,
    pub round: Signal<In, Bits<24>>,
    pub entry: Signal<Out, Entry>,
    pub relation: Signal<Out, Relation>,
    /// Whether the packet's segment is the last one of the vector that uses the slot; valid two cycles after `index`.
    pub wraps: Signal<Out, Bit>,
    pub write: Signal<In, Bit>,
    pub write_slot: Signal<In, Bits<8>>,
    pub write_entry: Signal<In, Entry>,
    /// Slot that the host reads, and its state one cycle later.
    pub peeks: Signal<In, Bits<8>>,
    pub peeked: Signal<Out, Entry>,
    words: BlockRam<Entry, 8>,
    /// Copy of the memory with a read port for the host.
    copy: BlockRam<Entry, 8>,
    found: Signal<Local, Entry>,
    tag: Signal<Local, Bits<17>>,
    old_tag: Signal<Local, Bits<17>>,
    step: Signal<Local, Bits<17>>,
    /// The tag that precedes the packet's tag (`tag` - `step`), valid in the same cycle as `found`.
    tag_before: DFF<Bits<17>>,
    /// The round that precedes the packet's round (`round` - 1), valid in the same cycle as `found`.
    round_before: DFF<Bits<24>>,
    /// Successors of the packet's tag and round.
    tag_after: DFF<Bits<18>>,
    round_after: DFF<Bits<24>>,
    old_is_first: Signal<Local, Bit>,
    old_round: Signal<Local, Bits<24>>,
    distance: Signal<Local, Bits<24>>,
    since_base: Signal<Local, Bits<24>>,
    first_tag: Signal<Local, Bit>,
    same_round: Signal<Local, Bit>,
    same_tag: Signal<Local, Bit>,
    next_in_round: Signal<Local, Bit>,
    next_round: Signal<Local, Bit>,
    successor: Signal<Local, Bits<25>>,
    slots: Signal<Local, Bits<25>>,
    last_index: Signal<Local, Bits<25>>,
    at_base: DFF<Bit>,
    below_base: DFF<Bit>,
    held_entry: DFF<Entry>,
    held: DFF<Relation>,
    early_wraps: DFF<Bit>,
    held_wraps: DFF<Bit>,
}

impl Logic for SlotTable {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, tag_before, round_before, at_base, below_base, held_entry, held);
        dff_setup!(self, clock, early_wraps, held_wraps, tag_after, round_after);
        clock!(self, clock, words, copy);
        self.words.read_address.next = self.slot.val();
        self.words.write_address.next = self.write_slot.val();
        self.words.write_data.next = self.write_entry.val();
        self.words.write_enable.next = self.write.val();
        self.copy.read_address.next = self.peeks.val();
        self.copy.write_address.next = self.write_slot.val();
        self.copy.write_data.next = self.write_entry.val();
        self.copy.write_enable.next = self.write.val();
        self.peeked.next = self.copy.read_data.val();
        self.found.next = self.words.read_data.val();
        self.tag.next = self.index.val().get_bits::<17>(7);
        self.old_tag.next = self.found.val().tag;
        self.old_round.next = self.found.val().round;
        self.step.next = 1.into();
        self.slots.next = 128.into();
        self.first_tag.next = !self.index.val().get_bits::<17>(7).any();
        self.old_is_first.next = !self.old_tag.val().any();
        if self.is_large.val() {
            // With 256 slots, the lowest bit of the tag is part of the slot number.
            self.step.next = 2.into();
            self.slots.next = 256.into();
            self.first_tag.next = !self.index.val().get_bits::<16>(8).any();
            self.old_is_first.next = !self.old_tag.val().get_bits::<16>(1).any();
        }
        self.tag_before.d.next = self.tag.val() - self.step.val();
        self.round_before.d.next = self.round.val() - 1;
        self.tag_after.d.next = bit_cast::<18, 17>(self.tag.val()) + bit_cast::<18, 17>(self.step.val());
        self.round_after.d.next = self.round.val() + 1;
        self.distance.next = self.round.val() - self.old_round.val();
        self.since_base.next = self.round.val() - self.job.val().base;
        self.same_round.next = self.round.val() == self.old_round.val();
        self.same_tag.next = self.tag.val() == self.old_tag.val();
        self.next_in_round.next = self.same_round.val() & (self.tag_before.q.val() == self.old_tag.val());
        self.next_round.next = (self.round_before.q.val() == self.old_round.val())
            & self.first_tag.val()
            & self.found.val().wraps;
        self.held.d.next.precedes = (self.same_round.val()
            & (self.tag_after.q.val() == bit_cast::<18, 17>(self.old_tag.val())))
            | ((self.round_after.q.val() == self.old_round.val())
                & self.old_is_first.val()
                & self.early_wraps.q.val());
        self.held.d.next.same = self.same_round.val() & self.same_tag.val();
        self.held.d.next.earlier =
            self.distance.val().get_bit(23) | (self.same_round.val() & (self.tag.val() < self.old_tag.val()));
        self.held.d.next.follows = self.next_in_round.val() | self.next_round.val();
        self.at_base.d.next = !self.since_base.val().any() & self.first_tag.val();
        self.below_base.d.next = self.since_base.val().get_bit(23);
        self.held.d.next.begins = self.at_base.q.val();
        self.held.d.next.before_base = self.below_base.q.val();
        self.held_entry.d.next = self.found.val();
        self.successor.next = bit_cast::<25, 24>(self.index.val()) + self.slots.val();
        self.last_index.next = bit_cast::<25, 24>(self.job.val().last_index);
        self.early_wraps.d.next = self.successor.val() > self.last_index.val();
        self.held_wraps.d.next = self.early_wraps.q.val();
        self.entry.next = self.held_entry.q.val();
        self.relation.next = self.held.q.val();
        self.wraps.next = self.held_wraps.q.val();
    }
}
