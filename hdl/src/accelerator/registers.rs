//! The register file through which the host configures and observes the accelerator.

use rust_hdl::prelude::*;

use super::records::{Filter, Job, Template};
pub use super::register_map::offset;
use crate::primitives::LutRam;

/// The letters "iSW" and a zero byte, in little-endian order.
pub const ID: u64 = iswitch_card::registers::ID as u64;
/// Version of the register map.
pub const VERSION: u64 = iswitch_card::registers::VERSION as u64;

/// Configuration registers, with a copy in LUT RAM from which the host reads them back.
#[derive(LogicBlock, Default)]
pub struct Registers {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// High for one cycle per write. `write_word` and `write_data` must also be valid in the next cycle, in which the
    /// write takes effect.
    pub write: Signal<In, Bit>,
    pub write_word: Signal<In, Bits<10>>,
    pub write_data: Signal<In, Bits<32>>,
    pub read_word: Signal<In, Bits<10>>,
    pub read_data: Signal<Out, Bits<32>>,
    /// Read-only values for the host: the status word and the selected counter.
    pub status: Signal<In, Bits<32>>,
    pub counter: Signal<In, Bits<32>>,
    pub frame_in: Signal<In, Bit>,
    pub frame_out: Signal<In, Bit>,
    pub hazard: Signal<In, Bit>,
    pub skip: Signal<In, Bit>,
    /// Value of a word of the tables, two cycles after `read_word`.
    pub table_value: Signal<In, Bits<32>>,
    pub filter: Signal<Out, Filter>,
    pub job: Signal<Out, Job>,
    pub template: Signal<Out, Template>,
    pub finish_round: Signal<Out, Bits<24>>,
    pub finish_first: Signal<Out, Bits<24>>,
    /// Strobes, each high for one cycle when the host writes the corresponding register.
    pub sets_control: Signal<Out, Bit>,
    pub sets_threshold: Signal<Out, Bit>,
    pub starts_finish: Signal<Out, Bit>,
    pub clears_sums: Signal<Out, Bit>,
    pub clears_counters: Signal<Out, Bit>,
    pub sets_member: Signal<Out, Bit>,
    pub selects_slot: Signal<Out, Bit>,
    pub pace: Signal<Out, Bits<8>>,
    pub budget: Signal<Out, Bits<16>>,
    /// Set when an out-of-range value has been refused, until the counters are cleared.
    pub refused: Signal<Out, Bit>,
    /// High while the LUT RAM is being cleared. A write during this time would be lost.
    pub clearing: Signal<Out, Bit>,
    words: [DFF<Bits<32>>; 17],
    copy: LutRam<Bits<32>, 6>,
    sweeping: DFF<Bit>,
    at: DFF<Bits<6>>,
    /// Pipeline registers of a read. The first stage reads `copy` and decodes the source of the value; the second stage
    /// selects the source.
    chosen: [DFF<Bit>; 10],
    copied: DFF<Bits<32>>,
    frames_in: DFF<Bits<32>>,
    frames_out: DFF<Bits<32>>,
    hazards: DFF<Bits<32>>,
    skipped: DFF<Bits<32>>,
    /// `skip`, one cycle later: the increment of a counter does not fit into the cycle in which `skip` is computed.
    skips: DFF<Bit>,
    held_budget: DFF<Bits<16>>,
    word: Signal<Local, Bits<6>>,
    write_low: Signal<Local, Bits<16>>,
    low: Signal<Local, Bit>,
    range: WordRange,
    in_map: Signal<Local, Bit>,
    writes: DFF<Bit>,
    /// Whether the write is to FINISH_COUNT.
    finishes: DFF<Bit>,
    refuses: DFF<Bit>,
    was_refused: DFF<Bit>,
    view: ConfigView,
}

impl Logic for Registers {
    #[hdl_gen]
    #[rustfmt::skip] // one line for each register
    fn update(&mut self) {
        dff_setup!(self, clock, writes, finishes, refuses, sweeping, was_refused, at, copied,
            frames_in, frames_out, hazards, skipped, skips, held_budget);
        clock!(self, clock, copy);
        self.word.next = self.write_word.val().get_bits::<6>(0);
        self.range.word.next = self.word.val(); self.range.data.next = self.write_data.val();
        self.in_map.next = self.write.val() & !self.write_word.val().get_bits::<4>(6).any();
        self.writes.d.next = self.in_map.val() & !self.range.outside.val();
        self.finishes.d.next = self.word.val() == 17;
        self.refuses.d.next = self.in_map.val() & self.range.outside.val();
        self.low.next = self.writes.q.val();
        if self.refuses.q.val() { self.was_refused.d.next = true; }
        if self.reset.val() | self.clears_counters.val() { self.was_refused.d.next = false; }
        self.refused.next = self.was_refused.q.val(); self.clearing.next = self.sweeping.q.val();
        for i in 8..25 {
            self.words[i - 8].clock.next = self.clock.val();
            self.words[i - 8].d.next = self.words[i - 8].q.val();
            if self.low.val() & (self.word.val() == i.to_bits()) { self.words[i - 8].d.next = self.write_data.val(); }
            if self.reset.val() { self.words[i - 8].d.next = 0.into(); }
        }
        self.clears_counters.next = self.low.val() & (self.word.val() == 2) & self.write_data.val().get_bit(0);
        self.clears_sums.next = self.low.val() & (self.word.val() == 2) & self.write_data.val().get_bit(4);
        self.sets_control.next = self.low.val() & (self.word.val() == 8);
        self.sets_threshold.next = self.low.val() & (self.word.val() == 9);
        self.starts_finish.next = self.low.val() & self.finishes.q.val();
        self.selects_slot.next = self.low.val() & (self.word.val() == 28);
        self.sets_member.next = self.low.val() & (self.word.val().get_bits::<2>(4) == 2);

        self.copy.write_address.next = self.word.val(); self.copy.write_data.next = self.write_data.val();
        self.copy.write_enable.next = self.low.val();
        if self.sweeping.q.val() {
            self.copy.write_address.next = self.at.q.val(); self.copy.write_data.next = 0.into();
            self.copy.write_enable.next = true; self.at.d.next = self.at.q.val() + 1;
            if self.at.q.val().all() { self.sweeping.d.next = false; }
        }
        self.copy.read_address.next = self.read_word.val().get_bits::<6>(0);
        self.copied.d.next = self.copy.read_data.val();
        for i in 0..10 { self.chosen[i].clock.next = self.clock.val(); }
        self.chosen[0].d.next = self.read_word.val() == 0; self.chosen[1].d.next = self.read_word.val() == 1;
        self.chosen[2].d.next = self.read_word.val() == 3; self.chosen[3].d.next = self.read_word.val() == 5;
        self.chosen[4].d.next = self.read_word.val() == 6; self.chosen[5].d.next = self.read_word.val() == 7;
        self.chosen[6].d.next = self.read_word.val() == 25; self.chosen[8].d.next = self.read_word.val() == 27;
        self.chosen[7].d.next = self.read_word.val().get_bit(6) & !self.read_word.val().get_bit(5);
        self.chosen[9].d.next = self.read_word.val().get_bits::<2>(5).all();
        self.read_data.next = self.copied.q.val();
        if self.chosen[0].q.val() { self.read_data.next = 0x0057_5369.into(); }
        if self.chosen[1].q.val() { self.read_data.next = 4.into(); }
        if self.chosen[2].q.val() { self.read_data.next = !self.copied.q.val(); }
        if self.chosen[3].q.val() { self.read_data.next = self.frames_in.q.val(); }
        if self.chosen[4].q.val() { self.read_data.next = self.frames_out.q.val(); }
        if self.chosen[5].q.val() { self.read_data.next = self.status.val(); }
        if self.chosen[6].q.val() { self.read_data.next = self.hazards.q.val(); }
        if self.chosen[7].q.val() { self.read_data.next = self.counter.val(); }
        if self.chosen[9].q.val() { self.read_data.next = self.table_value.val(); }
        if self.chosen[8].q.val() { self.read_data.next = self.skipped.q.val(); }

        if self.frame_in.val() { self.frames_in.d.next = self.frames_in.q.val() + 1; }
        if self.frame_out.val() { self.frames_out.d.next = self.frames_out.q.val() + 1; }
        self.write_low.next = self.write_data.val().get_bits::<16>(0);
        self.skips.d.next = self.skip.val();
        if self.skips.q.val() { self.skipped.d.next = self.skipped.q.val() + 1; }
        self.budget.next = self.held_budget.q.val();
        if self.low.val() & (self.word.val() == 26) { self.held_budget.d.next = self.write_low.val(); }
        if self.hazard.val() { self.hazards.d.next = self.hazards.q.val() + 1; }
        if self.reset.val() {
            self.sweeping.d.next = true; self.at.d.next = 0.into(); self.held_budget.d.next = 0.into();
        }
        if self.reset.val() | self.clears_counters.val() {
            self.frames_in.d.next = 0.into(); self.frames_out.d.next = 0.into(); self.hazards.d.next = 0.into();
            self.skipped.d.next = 0.into();
        }
        self.view.control.next = self.words[0].q.val(); self.view.base.next = self.words[2].q.val();
        self.view.last_index.next = self.words[3].q.val(); self.view.floats.next = self.words[4].q.val();
        self.view.job_id.next = self.words[5].q.val();
        self.view.filter_word.next = self.words[6].q.val();
        self.finish_round.next = self.words[7].q.val().get_bits::<24>(0);
        self.finish_first.next = self.words[8].q.val().get_bits::<24>(0);
        self.view.to_mac.next = self.words[10].q.val();
        self.view.macs.next = self.words[11].q.val();
        self.view.from_mac.next = self.words[12].q.val();
        self.view.from_address.next = self.words[13].q.val();
        self.view.to_address.next = self.words[14].q.val();
        self.view.ports.next = self.words[15].q.val();
        self.view.result.next = self.words[16].q.val();
        self.pace.next = self.words[0].q.val().get_bits::<8>(8);
        self.filter.next = self.view.filter.val(); self.job.next = self.view.job.val();
        self.template.next = self.view.template.val();
    }
}

/// Checks that the value of a register write is in range. An out-of-range value changes no register.
#[derive(LogicBlock, Default)]
pub struct WordRange {
    pub word: Signal<In, Bits<6>>,
    pub data: Signal<In, Bits<32>>,
    pub outside: Signal<Out, Bit>,
    floats: Signal<Local, Bits<16>>,
    last_floats: Signal<Local, Bits<16>>,
    number: Signal<Local, Bits<31>>,
    above_64: Signal<Local, Bit>,
    above_1024: Signal<Local, Bit>,
}

impl Logic for WordRange {
    #[hdl_gen]
    fn update(&mut self) {
        // Bit 31 is a flag.
        self.number.next = self.data.val().get_bits::<31>(0);
        self.floats.next = self.data.val().get_bits::<16>(0);
        self.last_floats.next = self.data.val().get_bits::<16>(16);
        self.outside.next = false;
        // Values above 64 and 1,024: comparisons would take a carry chain.
        self.above_64.next = self.number.val().get_bits::<24>(7).any()
            | (self.number.val().get_bit(6) & self.number.val().get_bits::<6>(0).any());
        self.above_1024.next = self.number.val().get_bits::<20>(11).any()
            | (self.number.val().get_bit(10) & self.number.val().get_bits::<10>(0).any());
        if self.word.val() == 9 {
            self.outside.next = !self.number.val().any() | self.above_64.val();
        }
        // Rounds and segment indices have 24 bits.
        if (self.word.val() == 10)
            | (self.word.val() == 11)
            | (self.word.val() == 15)
            | (self.word.val() == 16)
        {
            self.outside.next = self.data.val().get_bits::<8>(24).any();
        }
        if self.word.val() == 12 {
            self.outside.next = !self.floats.val().any()
                | (self.floats.val() > 366)
                | !self.last_floats.val().any()
                | (self.last_floats.val() > self.floats.val());
        }
        if self.word.val() == 28 {
            self.outside.next = self.data.val().get_bits::<24>(8).any();
        }
        if self.word.val() == 26 {
            self.outside.next = self.data.val().get_bits::<16>(16).any();
        }
        if self.word.val() == 17 {
            self.outside.next = self.above_1024.val();
        }
    }
}

/// Splits the configuration registers into the fields of records. The block is pure wiring.
#[derive(LogicBlock, Default)]
pub struct ConfigView {
    pub control: Signal<In, Bits<32>>,
    pub base: Signal<In, Bits<32>>,
    pub last_index: Signal<In, Bits<32>>,
    pub floats: Signal<In, Bits<32>>,
    pub job_id: Signal<In, Bits<32>>,
    pub filter_word: Signal<In, Bits<32>>,
    pub to_mac: Signal<In, Bits<32>>,
    pub macs: Signal<In, Bits<32>>,
    pub from_mac: Signal<In, Bits<32>>,
    pub from_address: Signal<In, Bits<32>>,
    pub to_address: Signal<In, Bits<32>>,
    pub ports: Signal<In, Bits<32>>,
    pub result: Signal<In, Bits<32>>,
    pub filter: Signal<Out, Filter>,
    pub job: Signal<Out, Job>,
    pub template: Signal<Out, Template>,
}

impl Logic for ConfigView {
    #[hdl_gen]
    fn update(&mut self) {
        self.filter.next.enable = self.control.val().get_bit(0);
        self.filter.next.forwards_strangers = self.control.val().get_bit(2);
        self.filter.next.data_tos = self.filter_word.val().get_bits::<8>(0);
        self.filter.next.control_tos = self.filter_word.val().get_bits::<8>(8);
        self.filter.next.port = self.filter_word.val().get_bits::<16>(16);
        self.filter.next.address0 = self.from_address.val().get_bits::<16>(0);
        self.filter.next.address1 = self.from_address.val().get_bits::<16>(16);
        self.job.next.base = self.base.val().get_bits::<24>(0);
        self.job.next.last_index = self.last_index.val().get_bits::<24>(0);
        self.job.next.segment_floats = self.floats.val().get_bits::<9>(0);
        self.job.next.last_floats = self.floats.val().get_bits::<9>(16);
        self.job.next.id = self.job_id.val();
        self.template.next.to_mac0 = self.to_mac.val().get_bits::<16>(0);
        self.template.next.to_mac1 = self.to_mac.val().get_bits::<16>(16);
        self.template.next.to_mac2 = self.macs.val().get_bits::<16>(0);
        self.template.next.from_mac0 = self.macs.val().get_bits::<16>(16);
        self.template.next.from_mac1 = self.from_mac.val().get_bits::<16>(0);
        self.template.next.from_mac2 = self.from_mac.val().get_bits::<16>(16);
        self.template.next.from_ip0 = self.from_address.val().get_bits::<16>(0);
        self.template.next.from_ip1 = self.from_address.val().get_bits::<16>(16);
        self.template.next.to_ip0 = self.to_address.val().get_bits::<16>(0);
        self.template.next.to_ip1 = self.to_address.val().get_bits::<16>(16);
        self.template.next.from_port = self.ports.val().get_bits::<16>(0);
        self.template.next.to_port = self.ports.val().get_bits::<16>(16);
        self.template.next.tos = self.result.val().get_bits::<8>(0);
        self.template.next.ports = self.result.val().get_bits::<8>(8);
        self.template.next.checksum = self.result.val().get_bits::<16>(16);
    }
}
