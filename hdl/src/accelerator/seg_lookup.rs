//! Lookup of all inputs of the decision about a request.

use rust_hdl::prelude::*;

use super::address_generator::AddressGenerator;
use super::records::{Decision, Entry, Job, Key, RawSeg, ResultInfo};
use super::round_table::RoundTable;
use super::seg_decoder::SegLimits;
use super::slot_table::SlotTable;
use super::table_reader::TableReader;
use super::verdict::Verdict;

/// Looks up all inputs of a decision. A request is present on `reading` for three cycles and then on `deciding` for
/// three cycles; the last cycle on `reading` is the first on `deciding`. The decision is valid in the last of these
/// five cycles, in which `commit` writes it to the tables.
#[derive(LogicBlock, Default)]
pub struct SegLookup {
    pub clock: Signal<In, Clock>,
    pub is_large: Signal<In, Bit>,
    pub job: Signal<In, Job>,
    pub threshold: Signal<In, Bits<8>>,
    pub fix_threshold: Signal<In, Bit>,
    pub halted: Signal<In, Bit>,
    pub members: Signal<In, Bits<8>>,
    pub switches: Signal<In, Bits<8>>,
    pub reading: Signal<In, Key>,
    pub deciding: Signal<In, Key>,
    pub commit: Signal<In, Bit>,
    /// While high, empties the slot `sweep` in each cycle and discards all rounds.
    pub sweeping: Signal<In, Bit>,
    pub sweep: Signal<In, Bits<8>>,
    pub accept: Signal<Out, Bit>,
    pub event_code: Signal<Out, Bits<5>>,
    /// High if the request is a contribution to a finished segment.
    pub late: Signal<Out, Bit>,
    pub decision: Signal<Out, Decision>,
    pub result: Signal<Out, ResultInfo>,
    /// Selects the slot whose state the host reads. `table_value` is the value of `table_word`, two cycles later.
    pub select_slot: Signal<In, Bit>,
    pub slot: Signal<In, Bits<8>>,
    pub table_word: Signal<In, Bits<3>>,
    pub table_value: Signal<Out, Bits<32>>,
    limits: SegLimits,
    addresses: AddressGenerator,
    rounds: RoundTable,
    slots: SlotTable,
    verdict: Verdict,
    outcome: Outcome,
    tables: TableReader,
    /// Whether the request in `deciding` would open its round. The value is registered, because the outputs of the
    /// round table already refer to the next request.
    may_open: DFF<Bit>,
    /// Effect of a commit on the round table, delayed by one cycle but still in time for the next request.
    opening: DFF<Bit>,
    finishing: DFF<Bit>,
    parity: DFF<Bit>,
    index: Signal<Local, Bits<24>>,
    round: Signal<Local, Bits<24>>,
    /// High if the request changes the tables.
    changes: Signal<Local, Bit>,
}

impl Logic for SegLookup {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, may_open, opening, finishing, parity);
        clock!(self, clock, limits, addresses, rounds, slots, verdict, tables);
        self.limits.job.next = self.job.val();
        self.limits.index.next = self.reading.val().index;
        self.limits.udp_len.next = self.reading.val().udp_len;
        self.addresses.is_large.next = self.is_large.val();
        self.addresses.index.next = self.reading.val().index;
        self.rounds.clear.next = self.sweeping.val();
        self.rounds.job.next = self.job.val();
        self.rounds.threshold.next = self.threshold.val();
        self.rounds.fix_threshold.next = self.fix_threshold.val();
        self.rounds.members.next = self.members.val();
        self.rounds.round.next = self.reading.val().round;
        self.slots.is_large.next = self.is_large.val();
        self.slots.job.next = self.job.val();
        self.slots.slot.next = self.addresses.slot.val();
        self.slots.index.next = self.reading.val().index;
        self.slots.round.next = self.reading.val().round;
        self.verdict.key.next = self.deciding.val();
        self.verdict.entry.next = self.slots.entry.val();
        self.verdict.relation.next = self.slots.relation.val();
        self.verdict.halted.next = self.halted.val();
        self.verdict.out_of_range.next = self.limits.out_of_range.val();
        self.verdict.wrong_length.next = self.limits.wrong_length.val();
        self.verdict.has_place.next = self.rounds.has_place.val();
        self.verdict.is_past.next = self.rounds.is_past.val();
        self.verdict.needed.next = self.rounds.needed.val();
        self.verdict.participants.next = self.rounds.participants.val();
        self.verdict.switches.next = self.switches.val();
        self.outcome.key.next = self.deciding.val();
        self.outcome.accept.next = self.verdict.accept.val();
        self.outcome.first.next = self.verdict.first.val();
        self.outcome.last.next = self.verdict.last.val();
        self.outcome.members.next = self.verdict.members.val();
        self.outcome.total.next = self.verdict.total.val();
        self.outcome.wraps.next = self.slots.wraps.val();
        self.outcome.floats.next = self.limits.floats.val();
        self.outcome.address.next = self.addresses.address.val();
        self.outcome.bank.next = self.verdict.bank.val();
        self.outcome.has_previous.next = self.verdict.has_previous.val();
        self.outcome.previous_total.next = self.verdict.previous_total.val();
        self.index.next = self.deciding.val().index;
        self.round.next = self.deciding.val().round;
        self.changes.next = self.commit.val() & self.verdict.accept.val() & !self.deciding.val().repeats;
        self.slots.write.next = self.changes.val();
        self.slots.write_slot.next = bit_cast::<8, 7>(self.index.val().get_bits::<7>(0));
        if self.is_large.val() {
            self.slots.write_slot.next = self.index.val().get_bits::<8>(0);
        }
        self.slots.write_entry.next = self.outcome.entry.val();
        if self.sweeping.val() {
            self.slots.write.next = true;
            self.slots.write_slot.next = self.sweep.val();
            self.slots.write_entry.next = self.outcome.empty.val();
        }
        self.may_open.d.next = self.rounds.opens.val();
        self.opening.d.next = self.changes.val() & self.may_open.q.val();
        self.finishing.d.next = self.changes.val() & self.verdict.last.val();
        self.parity.d.next = self.round.val().get_bit(0);
        self.rounds.decided_parity.next = self.parity.q.val();
        self.rounds.open.next = self.opening.q.val();
        self.rounds.finish.next = self.finishing.q.val();
        self.tables.select.next = self.select_slot.val();
        self.tables.slot.next = self.slot.val();
        self.tables.word.next = self.table_word.val();
        self.tables.entry.next = self.slots.peeked.val();
        self.tables.rounds.next = self.rounds.view.val();
        self.slots.peeks.next = self.tables.peeks.val();
        self.table_value.next = self.tables.value.val();
        self.accept.next = self.verdict.accept.val();
        self.event_code.next = self.verdict.event_code.val();
        self.late.next = self.verdict.late.val();
        self.decision.next = self.outcome.decision.val();
        self.result.next = self.outcome.result.val();
    }
}

/// Converts a verdict to a slot entry, a decision and the information for the result. The block is combinational.
#[derive(LogicBlock, Default)]
pub struct Outcome {
    pub key: Signal<In, Key>,
    pub accept: Signal<In, Bit>,
    pub first: Signal<In, Bit>,
    pub last: Signal<In, Bit>,
    pub members: Signal<In, Bits<8>>,
    pub total: Signal<In, Bits<16>>,
    pub wraps: Signal<In, Bit>,
    pub floats: Signal<In, Bits<9>>,
    pub address: Signal<In, Bits<14>>,
    pub bank: Signal<In, Bit>,
    pub has_previous: Signal<In, Bit>,
    pub previous_total: Signal<In, Bits<16>>,
    pub entry: Signal<Out, Entry>,
    pub empty: Signal<Out, Entry>,
    pub decision: Signal<Out, Decision>,
    pub result: Signal<Out, ResultInfo>,
    index: Signal<Local, Bits<24>>,
    round: Signal<Local, Bits<24>>,
    round_low: Signal<Local, Bits<16>>,
    places: Signal<Local, Bits<15>>,
    raw: Signal<Local, RawSeg>,
    before_last: Signal<Local, Bits<9>>,
}

impl Logic for Outcome {
    #[hdl_gen]
    fn update(&mut self) {
        self.places.next = bit_cast::<15, 14>(self.address.val()) << 1;
        self.index.next = self.key.val().index;
        self.round.next = self.key.val().round;
        self.entry.next.open = !self.last.val();
        self.entry.next.done = self.last.val();
        self.entry.next.wraps = self.wraps.val();
        self.entry.next.tag = self.index.val().get_bits::<17>(7);
        self.entry.next.round = self.round.val();
        self.entry.next.members = self.members.val();
        self.entry.next.total = self.total.val();
        self.entry.next.bank = self.bank.val();
        self.entry.next.has_previous = self.has_previous.val();
        self.entry.next.previous_total = self.previous_total.val();
        self.empty.next.open = false;
        self.empty.next.done = false;
        self.empty.next.wraps = false;
        self.empty.next.tag = 0.into();
        self.empty.next.round = 0.into();
        self.empty.next.members = 0.into();
        self.empty.next.total = 0.into();
        self.empty.next.bank = false;
        self.empty.next.has_previous = false;
        self.empty.next.previous_total = 0.into();
        self.before_last.next = self.floats.val() - 1;
        self.decision.next.bypass = false;
        self.decision.next.drop = !self.accept.val();
        self.decision.next.forced = self.key.val().forced;
        self.decision.next.first = self.first.val();
        self.decision.next.last = self.last.val();
        self.decision.next.address = self.places.val();
        if self.bank.val() {
            self.decision.next.address = self.places.val() + 1;
        }
        self.decision.next.more = self.before_last.val().get_bits::<6>(3);
        self.decision.next.tail = self.floats.val().get_bits::<3>(0);
        self.decision.next.copied = false;
        self.decision.next.trusted = false;
        self.decision.next.member = 0.into();
        self.raw.next.s0 = self.index.val().get_bits::<16>(0);
        self.round_low.next = bit_cast::<16, 8>(self.round.val().get_bits::<8>(0)) << 8;
        self.raw.next.s1 = bit_cast::<16, 8>(self.index.val().get_bits::<8>(16)) | self.round_low.val();
        self.raw.next.s2 = self.round.val().get_bits::<16>(8);
        self.raw.next.s3 = self.total.val();
        if !self.total.val().any() {
            self.raw.next.s3 = 0xffff.into();
        }
        self.result.next.seg = self.raw.val();
        self.result.next.floats = self.floats.val();
    }
}
