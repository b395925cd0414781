//! Comparison of the rust-hdl simulation of each module with its generated Verilog. For the same random inputs, the
//! outputs must be equal in each cycle. The comparison reveals constructs that rust-hdl simulates differently from the
//! Verilog that it generates for them.

mod bench;
mod draws;
mod trace;

use rust_hdl::prelude::*;

use crate::accelerator::accumulator::Accumulator;
use crate::accelerator::adder_array::AdderArray;
use crate::accelerator::address_generator::AddressGenerator;
use crate::accelerator::axi_lite::AxiLite;
use crate::accelerator::budget::Budget;
use crate::accelerator::classifier::{Classifier, SwapBytes};
use crate::accelerator::control_decoder::ControlDecoder;
use crate::accelerator::counters::Counters;
use crate::accelerator::datapath::Datapath;
use crate::accelerator::force_walker::ForceWalker;
use crate::accelerator::header_capture::HeaderCapture;
use crate::accelerator::help_reader::HelpReader;
use crate::accelerator::ingress::Ingress;
use crate::accelerator::member_table::MemberTable;
use crate::accelerator::merge::{AddPorts, Merge};
use crate::accelerator::output_module::{Carried, JoinBeats, OutputModule};
use crate::accelerator::records::Entry;
use crate::accelerator::registers::{ConfigView, Registers, WordRange};
use crate::accelerator::repeater::Repeater;
use crate::accelerator::request_gate::RequestGate;
use crate::accelerator::requests::Requests;
use crate::accelerator::result_header::ResultHeader;
use crate::accelerator::round_table::RoundTable;
use crate::accelerator::scoreboard::Scoreboard;
use crate::accelerator::seg_counter::{Bypass, SegCounter};
use crate::accelerator::seg_decoder::{SegDecoder, SegLimits};
use crate::accelerator::seg_lookup::{Outcome, SegLookup};
use crate::accelerator::separator::Separator;
use crate::accelerator::slicer::Slicer;
use crate::accelerator::slot_table::SlotTable;
use crate::accelerator::table_reader::TableReader;
use crate::accelerator::verdict::{CountOnes, Verdict};
use crate::accelerator::zero_mux::ZeroMux;
use crate::accelerator::{Build, IswitchAccel};
use crate::adder::Fp32Adder;
use crate::adder::align::AlignAdd;
use crate::adder::normalise::Normalise;
use crate::adder::round::Round;
use crate::adder::unpack::Unpack;
use crate::axis::{Flit, HalvesToLanes, LanesToHalves};
use crate::primitives::{BlockRam, Fifo, LutRam};

pub use bench::{ModulesError, compare};
pub use trace::{Trace, signatures};

/// A module to compare.
#[derive(Clone, Copy, Debug)]
pub struct Module {
    /// Name of the module in Verilog.
    pub name: &'static str,
    record: fn(usize, u64) -> Trace,
}

impl Module {
    /// Simulates the module for the given number of cycles with random inputs.
    ///
    /// # Panics
    /// Panics if [`MODULES`] omits an input of the module, or if the module contains a combinational loop.
    pub fn trace(&self, cycles: usize, seed: u64) -> Trace {
        (self.record)(cycles, seed)
    }
}

/// Builds the list of modules. Each entry has the form `name = constructor, [clock] { inputs }`; the brackets are empty
/// if the module has no clock.
macro_rules! modules {
    ($($name:literal = $block:expr, [$($clock:ident)?] { $($port:ident),* })*) => {
        &[$(Module {
            name: $name,
            record: |cycles, seed| {
                let trace = trace::record(
                    ($name, None$(.or(Some(stringify!($clock))))?),
                    $block,
                    (cycles, seed),
                    |block, draws| { $(block.$port.next = draws.port(stringify!($port));)* },
                    |block, level| {
                        let _ = (&block, level);
                        $(block.$clock.next = Clock { clk: level };)?
                    },
                );
                trace.assert_driven(&[$(stringify!($port)),*]);
                trace
            },
        }),*]
    };
}

impl Trace {
    fn assert_driven(&self, driven: &[&str]) {
        let inputs = self.ports.iter().filter(|port| port.is_input);
        for port in inputs {
            assert!(
                driven.contains(&port.name.as_str()),
                "signal {} of {} has no driver",
                port.name,
                self.name
            );
        }
    }
}

/// All modules of the accelerator, including those that consist only of wires.
pub const MODULES: &[Module] = modules! {
    "fp32_adder" = Fp32Adder::default(), [clock] { a, b }
    "unpack" = Unpack::default(), [clock] { a, b }
    "align" = AlignAdd::default(), [clock] { kind_in, exponent_in, distance, larger, smaller }
    "normalise" = Normalise::default(), [clock] { kind_in, exponent_in, total }
    "round" = Round::default(), [clock] { kind, exponent, fraction }
    "block_ram" = BlockRam::<Entry, 8>::default(), [clock] {
        write_address, write_data, write_enable, read_address
    }
    "lut_ram" = LutRam::<Bits<32>, 4>::default(), [clock] {
        write_address, write_data, write_enable, read_address
    }
    "fifo" = Fifo::<Flit, 5, 6>::default(), [clock] { reset, data_in, push, pop }
    "halves_to_lanes" = HalvesToLanes::default(), [] { halves }
    "lanes_to_halves" = LanesToHalves::default(), [] { lanes }
    "accumulator" = Accumulator::default(), [clock] { reset, burst, burst_valid, credit }
    "adder_array" = AdderArray::default(), [clock] { a, b }
    "budget" = Budget::default(), [clock] { clear, limit, spends, member, earns }
    "help_reader" = HelpReader::default(), [clock] { reset, job, halted, control }
    "repeater" = Repeater::default(), [clock] { reset, late, late_push, help, help_push, exhausted, taken }
    "requests" = Requests::default(), [clock] {
        reset, clearing, job, halted, start_finish, finish_round, finish_first, data, late, late_push, control,
        budget, earns, free, quiet, advance
    }
    "request_gate" = RequestGate::default(), [clock] {
        reset, free, quiet, withdraw, finish_key, finish_valid, repeat_key, repeat_valid, advance
    }
    "address_generator" = AddressGenerator::default(), [clock] { is_large, index }
    "axi_lite" = AxiLite::default(), [clock] {
        reset, hold, AWADDR, AWVALID, WDATA, WVALID, BREADY, ARADDR, ARVALID, RREADY, read_data
    }
    "classifier" = Classifier::default(), [clock] { reset, filter, raw, valid, whole, short, known, member }
    "swap_bytes" = SwapBytes::default(), [] { half }
    "control_decoder" = ControlDecoder::default(), [clock] {
        reset, job, header, strobe, set_threshold, threshold_in, fix_in, set_halted, halted_in
    }
    "counters" = Counters::default(), [clock] { reset, event_code, event_valid, selected }
    "force_walker" = ForceWalker::default(), [clock] {
        reset, start, round, first, count, only_complete, advance
    }
    "header_capture" = HeaderCapture::default(), [clock] { reset, flit, accept }
    "ingress" = Ingress::default(), [clock] {
        reset, filter, set_member, word, data, asker, flit, valid, header_pop, pop
    }
    "member_table" = MemberTable::default(), [clock] {
        reset, write, row, writes_port, data, asker, address0, address1, port
    }
    "merge" = Merge::default(), [clock] {
        reset, ordinary, ordinary_valid, ordinary_copied, host_ports, result, result_valid, room
    }
    "add_ports" = AddPorts::default(), [] { flit, adds, ports }
    "output_module" = OutputModule::default(), [clock] {
        reset, pace, template, info, info_valid, sum, sum_valid, no_sum, ready, stalled
    }
    "carried" = Carried::default(), [clock] { ready, stalled, sum_valid, no_sum, heads, sum, tail }
    "join_beats" = JoinBeats::default(), [] { earlier, later, head, heads, covers, len, ports }
    "registers" = Registers::default(), [clock] {
        reset, write, write_word, write_data, read_word, status, counter, frame_in, frame_out, hazard, skip,
        table_value
    }
    "word_range" = WordRange::default(), [] { word, data }
    "config_view" = ConfigView::default(), [] {
        control, base, last_index, floats, job_id, filter_word, to_mac, macs, from_mac, from_address, to_address,
        ports, result
    }
    "result_header" = ResultHeader::default(), [clock] { template, info }
    "round_table" = RoundTable::default(), [clock] {
        clear, job, threshold, members, fix_threshold, round, decided_parity, open, finish
    }
    "scoreboard" = Scoreboard::default(), [clock] { reset, valid, address, flags, credit }
    "seg_counter" = SegCounter::default(), [clock] {
        reset, is_large, clear, job, threshold, fix_threshold, halted, members, switches, header, header_valid,
        force_key, force_valid, force_idle, room, select_slot, slot, table_word
    }
    "bypass" = Bypass::default(), [] { copied, trusted, member }
    "seg_decoder" = SegDecoder::default(), [] { header }
    "seg_limits" = SegLimits::default(), [clock] { job, index, udp_len }
    "seg_lookup" = SegLookup::default(), [clock] {
        is_large, job, threshold, fix_threshold, halted, members, switches, reading, deciding, commit,
        sweeping, sweep, select_slot, slot, table_word
    }
    "outcome" = Outcome::default(), [] {
        key, accept, first, last, members, total, wraps, floats, address, bank, has_previous, previous_total
    }
    "separator" = Separator::default(), [clock] {
        reset, decision, decision_valid, flit, flit_valid, flit_absent, bypass_ready, burst_room
    }
    "table_reader" = TableReader::default(), [clock] { select, slot, entry, rounds, word }
    "slicer" = Slicer::default(), [clock] { data, take, cut, tail, blank }
    "slot_table" = SlotTable::default(), [clock] {
        is_large, job, slot, index, round, write, write_slot, write_entry, peeks
    }
    "verdict" = Verdict::default(), [clock] {
        key, entry, relation, halted, out_of_range, wrong_length, has_place, is_past, needed, participants, switches
    }
    "count_ones" = CountOnes::default(), [] { bits }
    "zero_mux" = ZeroMux::default(), [] { lanes, zero }
    "datapath" = Datapath::default(), [clock] {
        reset, is_large, filter, job, template, pace, budget, select_slot, table_word, clear, set_threshold, set_halted,
        set_member, start_finish, finish_round, finish_first, word, data, flit_in, valid_in, ready_out
    }
    "iswitch_accel" = IswitchAccel::new(Build::Slots128), [axis_aclk] {
        axis_resetn, s_axis_tdata, s_axis_tkeep, s_axis_tuser, s_axis_tvalid, s_axis_tlast, m_axis_tready,
        S_AXI_AWADDR, S_AXI_AWVALID, S_AXI_WDATA, S_AXI_WSTRB, S_AXI_WVALID, S_AXI_BREADY, S_AXI_ARADDR,
        S_AXI_ARVALID, S_AXI_RREADY
    }
};
