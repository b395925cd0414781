//! The top module with the ports of a NetFPGA-SUME core.

#![allow(non_snake_case)] // the board's buses define the names

use rust_hdl::prelude::*;

use super::address_generator::SLOT_BURSTS;
use super::axi_lite::AxiLite;
use super::counters::Counters;
use super::datapath::Datapath;
use super::registers::Registers;
use crate::axis::{Halves, Tuser};
use crate::primitives::BlockRam;

/// Build of the accelerator, which determines the number and the size of the slots in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Build {
    /// 128 slots, each with two banks of 46 bursts.
    Slots128,
    /// 256 slots, each with two banks of 46 bursts.
    Slots256,
}

impl Build {
    /// Returns the number of segments that can be summed at the same time.
    pub const fn slots(self) -> u32 {
        match self {
            Self::Slots128 => 128,
            Self::Slots256 => 256,
        }
    }

    /// Returns the number of 256-bit words in the buffer, which has two banks.
    pub const fn bursts(self) -> usize {
        2 * self.slots() as usize * SLOT_BURSTS
    }

    /// Returns the name of the build's Verilog file.
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::Slots128 => "iswitch_accel.v",
            Self::Slots256 => "iswitch_accel_256.v",
        }
    }
}

/// The top module, which sits between `output_port_lookup` and `output_queues` of the NetFPGA reference switch. Both of
/// its streams use the signal names and widths of these modules.
///
/// As in the reference switch, the streams and the registers share one clock, and the reset is synchronous and active
/// low.
#[derive(LogicBlock)]
pub struct IswitchAccel {
    pub axis_aclk: Signal<In, Clock>,
    pub axis_resetn: Signal<In, Bit>,
    pub s_axis_tdata: Signal<In, Halves>,
    pub s_axis_tkeep: Signal<In, Bits<32>>,
    pub s_axis_tuser: Signal<In, Tuser>,
    pub s_axis_tvalid: Signal<In, Bit>,
    pub s_axis_tready: Signal<Out, Bit>,
    pub s_axis_tlast: Signal<In, Bit>,
    pub m_axis_tdata: Signal<Out, Halves>,
    pub m_axis_tkeep: Signal<Out, Bits<32>>,
    pub m_axis_tuser: Signal<Out, Tuser>,
    pub m_axis_tvalid: Signal<Out, Bit>,
    pub m_axis_tready: Signal<In, Bit>,
    pub m_axis_tlast: Signal<Out, Bit>,
    pub S_AXI_AWADDR: Signal<In, Bits<12>>,
    pub S_AXI_AWVALID: Signal<In, Bit>,
    pub S_AXI_AWREADY: Signal<Out, Bit>,
    pub S_AXI_WDATA: Signal<In, Bits<32>>,
    /// Ignored, because registers are written as whole words.
    pub S_AXI_WSTRB: Signal<In, Bits<4>>,
    pub S_AXI_WVALID: Signal<In, Bit>,
    pub S_AXI_WREADY: Signal<Out, Bit>,
    pub S_AXI_BRESP: Signal<Out, Bits<2>>,
    pub S_AXI_BVALID: Signal<Out, Bit>,
    pub S_AXI_BREADY: Signal<In, Bit>,
    pub S_AXI_ARADDR: Signal<In, Bits<12>>,
    pub S_AXI_ARVALID: Signal<In, Bit>,
    pub S_AXI_ARREADY: Signal<Out, Bit>,
    pub S_AXI_RDATA: Signal<Out, Bits<32>>,
    pub S_AXI_RRESP: Signal<Out, Bits<2>>,
    pub S_AXI_RVALID: Signal<Out, Bit>,
    pub S_AXI_RREADY: Signal<In, Bit>,
    datapath: Datapath,
    registers: Registers,
    counters: Counters,
    axi: AxiLite,
    reset: DFF<Bit>,
    is_large: Constant<Bit>,
    flags: Signal<Local, Bits<32>>,
    halted: Signal<Local, Bits<32>>,
    clearing: Signal<Local, Bits<32>>,
    finishing: Signal<Local, Bits<32>>,
    busy: Signal<Local, Bits<32>>,
    exhausted: Signal<Local, Bits<32>>,
    refused: Signal<Local, Bits<32>>,
}

impl IswitchAccel {
    /// Creates the accelerator of the given build and connects its signals, for simulation or Verilog generation.
    pub fn new(build: Build) -> Self {
        let mut top = Self::unconnected(build);
        top.datapath.accumulator.buffer = BlockRam::with_depth(build.bursts());
        top.connect_all();
        top
    }

    fn unconnected(build: Build) -> Self {
        Self {
            axis_aclk: Signal::default(),
            axis_resetn: Signal::default(),
            s_axis_tdata: Signal::default(),
            s_axis_tkeep: Signal::default(),
            s_axis_tuser: Signal::default(),
            s_axis_tvalid: Signal::default(),
            s_axis_tready: Signal::default(),
            s_axis_tlast: Signal::default(),
            m_axis_tdata: Signal::default(),
            m_axis_tkeep: Signal::default(),
            m_axis_tuser: Signal::default(),
            m_axis_tvalid: Signal::default(),
            m_axis_tready: Signal::default(),
            m_axis_tlast: Signal::default(),
            S_AXI_AWADDR: Signal::default(),
            S_AXI_AWVALID: Signal::default(),
            S_AXI_AWREADY: Signal::default(),
            S_AXI_WDATA: Signal::default(),
            S_AXI_WSTRB: Signal::default(),
            S_AXI_WVALID: Signal::default(),
            S_AXI_WREADY: Signal::default(),
            S_AXI_BRESP: Signal::default(),
            S_AXI_BVALID: Signal::default(),
            S_AXI_BREADY: Signal::default(),
            S_AXI_ARADDR: Signal::default(),
            S_AXI_ARVALID: Signal::default(),
            S_AXI_ARREADY: Signal::default(),
            S_AXI_RDATA: Signal::default(),
            S_AXI_RRESP: Signal::default(),
            S_AXI_RVALID: Signal::default(),
            S_AXI_RREADY: Signal::default(),
            datapath: Datapath::default(),
            registers: Registers::default(),
            counters: Counters::default(),
            axi: AxiLite::default(),
            reset: DFF::default(),
            is_large: Constant::new(build == Build::Slots256),
            flags: Signal::default(),
            halted: Signal::default(),
            clearing: Signal::default(),
            finishing: Signal::default(),
            busy: Signal::default(),
            exhausted: Signal::default(),
            refused: Signal::default(),
        }
    }
}

impl Logic for IswitchAccel {
    #[hdl_gen]
    #[rustfmt::skip] // compact wiring
    fn update(&mut self) {
        self.reset.clock.next = self.axis_aclk.val(); self.reset.d.next = !self.axis_resetn.val();
        clock!(self, axis_aclk, datapath, registers, counters, axi);
        self.datapath.reset.next = self.reset.q.val(); self.registers.reset.next = self.reset.q.val();
        self.axi.reset.next = self.reset.q.val(); self.axi.hold.next = self.registers.clearing.val();
        self.counters.reset.next = self.reset.q.val() | self.registers.clears_counters.val();
        self.datapath.is_large.next = self.is_large.val();
        self.datapath.flit_in.next.data = self.s_axis_tdata.val();
        self.datapath.flit_in.next.keep = self.s_axis_tkeep.val();
        self.datapath.flit_in.next.user = self.s_axis_tuser.val();
        self.datapath.flit_in.next.last = self.s_axis_tlast.val();
        self.datapath.valid_in.next = self.s_axis_tvalid.val();
        // The cycle after a reset still shows the state before it.
        self.s_axis_tready.next = self.datapath.ready_in.val() & !self.reset.q.val();
        self.m_axis_tdata.next = self.datapath.flit_out.val().data;
        self.m_axis_tkeep.next = self.datapath.flit_out.val().keep;
        self.m_axis_tuser.next = self.datapath.flit_out.val().user;
        self.m_axis_tlast.next = self.datapath.flit_out.val().last;
        self.m_axis_tvalid.next = self.datapath.valid_out.val() & !self.reset.q.val();
        self.datapath.ready_out.next = self.m_axis_tready.val();
        self.axi.AWADDR.next = self.S_AXI_AWADDR.val(); self.axi.AWVALID.next = self.S_AXI_AWVALID.val();
        self.S_AXI_AWREADY.next = self.axi.AWREADY.val();
        self.axi.WDATA.next = self.S_AXI_WDATA.val(); self.axi.WVALID.next = self.S_AXI_WVALID.val();
        self.S_AXI_WREADY.next = self.axi.WREADY.val();
        self.S_AXI_BRESP.next = 0.into(); self.S_AXI_BVALID.next = self.axi.BVALID.val() & !self.reset.q.val();
        self.axi.BREADY.next = self.S_AXI_BREADY.val();
        self.axi.ARADDR.next = self.S_AXI_ARADDR.val(); self.axi.ARVALID.next = self.S_AXI_ARVALID.val();
        self.S_AXI_ARREADY.next = self.axi.ARREADY.val();
        self.S_AXI_RDATA.next = self.axi.RDATA.val(); self.S_AXI_RRESP.next = 0.into();
        self.S_AXI_RVALID.next = self.axi.RVALID.val() & !self.reset.q.val();
        self.axi.RREADY.next = self.S_AXI_RREADY.val();
        self.registers.write.next = self.axi.write.val();
        self.registers.write_word.next = self.axi.write_word.val();
        self.registers.write_data.next = self.axi.write_data.val();
        self.registers.read_word.next = self.axi.read_word.val();
        self.axi.read_data.next = self.registers.read_data.val();
        self.flags.next = bit_cast::<32, 8>(self.datapath.threshold.val());
        self.halted.next = 0.into(); self.clearing.next = 0.into(); self.finishing.next = 0.into();
        self.busy.next = 0.into(); self.refused.next = 0.into();
        self.exhausted.next = bit_cast::<32, 8>(self.datapath.exhausted.val()) << 24;
        if self.datapath.halted.val() { self.halted.next = 0x100.into(); }
        if self.datapath.clearing.val() { self.clearing.next = 0x200.into(); }
        if self.datapath.finishing.val() { self.finishing.next = 0x400.into(); }
        if self.datapath.busy.val() { self.busy.next = 0x800.into(); }
        if self.registers.refused.val() { self.refused.next = 0x1000.into(); }
        self.registers.status.next = self.flags.val() | self.halted.val() | self.clearing.val() | self.finishing.val()
            | self.busy.val() | self.refused.val() | self.exhausted.val();
        self.registers.counter.next = self.counters.value.val();
        self.counters.selected.next = self.axi.read_word.val().get_bits::<5>(0);
        self.counters.event_code.next = self.datapath.event_code.val();
        self.counters.event_valid.next = self.datapath.event_valid.val();
        self.registers.frame_in.next = self.s_axis_tvalid.val()
            & self.datapath.ready_in.val() & self.s_axis_tlast.val();
        self.registers.frame_out.next = self.datapath.valid_out.val()
            & self.m_axis_tready.val() & self.datapath.flit_out.val().last;
        self.registers.hazard.next = self.datapath.hazard.val(); self.registers.skip.next = self.datapath.skips.val();
        self.datapath.select_slot.next = self.registers.selects_slot.val();
        self.datapath.table_word.next = self.axi.read_word.val().get_bits::<3>(0);
        self.registers.table_value.next = self.datapath.table_value.val();
        self.datapath.budget.next = self.registers.budget.val();
        self.datapath.filter.next = self.registers.filter.val(); self.datapath.pace.next = self.registers.pace.val();
        self.datapath.job.next = self.registers.job.val();
        self.datapath.template.next = self.registers.template.val();
        self.datapath.clear.next = self.registers.clears_sums.val();
        self.datapath.set_threshold.next = self.registers.sets_threshold.val();
        self.datapath.set_halted.next = self.registers.sets_control.val();
        self.datapath.set_member.next = self.registers.sets_member.val();
        self.datapath.start_finish.next = self.registers.starts_finish.val();
        self.datapath.finish_round.next = self.registers.finish_round.val();
        self.datapath.finish_first.next = self.registers.finish_first.val();
        self.datapath.word.next = self.axi.write_word.val().get_bits::<6>(0);
        self.datapath.data.next = self.axi.write_data.val();
    }
}
