//! The datapath between the input stream and the output stream. It does not include the registers.

use rust_hdl::prelude::*;

use super::accumulator::Accumulator;
use super::control_decoder::ControlDecoder;
use super::ingress::Ingress;
use super::merge::Merge;
use super::output_module::OutputModule;
use super::records::{Burst, Decision, Filter, Job, ResultInfo, Template};
use super::requests::Requests;
use super::seg_counter::SegCounter;
use super::separator::Separator;
use crate::axis::{Flit, Lanes};
use crate::primitives::Fifo;

/// The accelerator of figure 7 of the iSwitch paper, with a bypass for ordinary traffic.
#[derive(LogicBlock, Default)]
pub struct Datapath {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub is_large: Signal<In, Bit>,
    pub filter: Signal<In, Filter>,
    pub job: Signal<In, Job>,
    pub template: Signal<In, Template>,
    pub clear: Signal<In, Bit>,
    pub clearing: Signal<Out, Bit>,
    pub set_threshold: Signal<In, Bit>,
    pub set_halted: Signal<In, Bit>,
    pub set_member: Signal<In, Bit>,
    pub start_finish: Signal<In, Bit>,
    pub finish_round: Signal<In, Bits<24>>,
    pub finish_first: Signal<In, Bits<24>>,
    pub finishing: Signal<Out, Bit>,
    /// High while a result is queued, is being sent, or has been requested again.
    pub busy: Signal<Out, Bit>,
    /// Maximum average rate of the results, in quarters of a byte per clock cycle; 0 means no limit.
    pub pace: Signal<In, Bits<8>>,
    /// Maximum number of results that a member may request again before its budget grows.
    pub budget: Signal<In, Bits<16>>,
    /// Selects the slot whose number is in `data`. The host then reads its state: `table_value` is the value of the
    /// word `table_word`, two cycles later.
    pub select_slot: Signal<In, Bit>,
    pub table_word: Signal<In, Bits<3>>,
    pub table_value: Signal<Out, Bits<32>>,
    /// Bitmap of the members that have spent their budget.
    pub exhausted: Signal<Out, Bits<8>>,
    /// High in a cycle in which a request for a result is discarded.
    pub skips: Signal<Out, Bit>,
    /// Index of the register word that the host writes. `data` is the value.
    pub word: Signal<In, Bits<6>>,
    pub data: Signal<In, Bits<32>>,
    pub threshold: Signal<Out, Bits<8>>,
    pub halted: Signal<Out, Bit>,
    pub event_code: Signal<Out, Bits<5>>,
    pub event_valid: Signal<Out, Bit>,
    pub hazard: Signal<Out, Bit>,
    pub flit_in: Signal<In, Flit>,
    pub valid_in: Signal<In, Bit>,
    pub ready_in: Signal<Out, Bit>,
    pub flit_out: Signal<Out, Flit>,
    pub valid_out: Signal<Out, Bit>,
    pub ready_out: Signal<In, Bit>,
    ingress: Ingress,
    control: ControlDecoder,
    requests: Requests,
    counter: SegCounter,
    decisions: Fifo<Decision, 4, 4>,
    results: Fifo<ResultInfo, 4, 4>,
    /// Header template for each entry of `results`, as configured when the segment was completed. A repeated result
    /// goes only to the member that requests it.
    templates: Fifo<Template, 4, 4>,
    separator: Separator,
    bursts: Fifo<Burst, 5, 6>,
    /// Addresses of the bursts. They have a separate queue, because the scoreboard compares an address in the cycle in
    /// which it leaves the queue, and the read address of the wide `bursts` queue has a high fan-out.
    places: Fifo<Bits<15>, 5, 6>,
    pub accumulator: Accumulator,
    sums: Fifo<Lanes, 5, 14>,
    output_module: OutputModule,
    merge: Merge,
    leaving: Fifo<Flit, 5, 4>,
}

impl Logic for Datapath {
    #[hdl_gen]
    #[rustfmt::skip] // compact wiring
    fn update(&mut self) {
        clock!(self, clock, ingress, control, requests, counter, decisions, results, templates, separator);
        clock!(self, clock, bursts, places, accumulator, sums, output_module, merge, leaving);
        self.ingress.reset.next = self.reset.val(); self.control.reset.next = self.reset.val();
        self.decisions.reset.next = self.reset.val(); self.results.reset.next = self.reset.val();
        self.counter.reset.next = self.reset.val(); self.templates.reset.next = self.reset.val();
        self.separator.reset.next = self.reset.val(); self.bursts.reset.next = self.reset.val();
        self.accumulator.reset.next = self.reset.val(); self.sums.reset.next = self.reset.val();
        self.output_module.reset.next = self.reset.val(); self.merge.reset.next = self.reset.val();
        self.leaving.reset.next = self.reset.val(); self.ingress.filter.next = self.filter.val();
        self.ingress.flit.next = self.flit_in.val(); self.ingress.valid.next = self.valid_in.val();
        self.ready_in.next = self.ingress.ready.val(); self.ingress.set_member.next = self.set_member.val();
        self.ingress.word.next = self.word.val().get_bits::<4>(0); self.ingress.data.next = self.data.val();
        self.control.job.next = self.job.val(); self.control.header.next = self.ingress.header.val();
        self.control.set_threshold.next = self.set_threshold.val();
        self.control.threshold_in.next = self.data.val().get_bits::<8>(0);
        self.control.set_halted.next = self.set_halted.val(); self.control.halted_in.next = self.data.val().get_bit(1);
        self.threshold.next = self.control.threshold.val(); self.halted.next = self.control.halted.val();
        self.requests.reset.next = self.reset.val(); self.requests.clearing.next = self.counter.clearing.val();
        self.requests.job.next = self.job.val(); self.requests.halted.next = self.control.halted.val();
        self.requests.start_finish.next = self.start_finish.val();
        self.requests.finish_round.next = self.finish_round.val();
        self.requests.finish_first.next = self.finish_first.val(); self.requests.data.next = self.data.val();
        self.finishing.next = self.requests.finishing.val(); self.requests.late.next = self.counter.late.val();
        self.requests.late_push.next = self.counter.late_push.val();
        self.requests.control.next = self.separator.control.val();
        self.requests.budget.next = self.budget.val(); self.exhausted.next = self.requests.exhausted.val();
        self.requests.earns.next = self.counter.result_push.val() & !self.counter.repeats.val();
        self.skips.next = self.requests.skips.val(); self.requests.free.next = self.output_module.free.val();
        self.requests.advance.next = self.counter.force_next.val();
        self.requests.quiet.next = self.ingress.no_header.val();
        self.table_value.next = self.counter.table_value.val(); self.counter.table_word.next = self.table_word.val();
        self.counter.select_slot.next = self.select_slot.val();
        self.counter.slot.next = self.data.val().get_bits::<8>(0);
        self.counter.is_large.next = self.is_large.val(); self.counter.job.next = self.job.val();
        self.counter.clear.next = self.clear.val(); self.clearing.next = self.counter.clearing.val();
        self.counter.threshold.next = self.control.threshold.val();self.counter.halted.next = self.control.halted.val();
        self.counter.fix_threshold.next = self.control.fixes.val();
        self.control.fix_in.next = self.data.val().get_bit(31); self.counter.members.next = self.ingress.members.val();
        self.counter.switches.next = self.ingress.switches.val(); self.counter.header.next = self.ingress.header.val();
        self.counter.header_valid.next = self.ingress.header_valid.val();
        self.ingress.header_pop.next = self.counter.header_pop.val();
        self.control.strobe.next = self.counter.control.val(); self.counter.force_key.next = self.requests.key.val();
        self.counter.force_idle.next = self.requests.idle.val();
        self.counter.force_valid.next = self.requests.valid.val(); self.ingress.asker.next = self.counter.asker.val();
        self.counter.room.next = self.decisions.room.val() & self.results.room.val();
        self.event_code.next = self.counter.event_code.val(); self.event_valid.next = self.counter.event_valid.val();
        self.decisions.data_in.next = self.counter.decision.val();
        self.decisions.push.next = self.counter.decision_push.val();
        self.results.data_in.next = self.counter.result.val(); self.results.push.next = self.counter.result_push.val();
        self.separator.decision.next = self.decisions.data_out.val();
        self.separator.decision_valid.next = self.decisions.valid.val();
        self.decisions.pop.next = self.separator.decision_pop.val();
        self.separator.flit_valid.next = self.ingress.oldest_valid.val();
        self.separator.flit.next = self.ingress.oldest.val(); self.ingress.pop.next = self.separator.flit_pop.val();
        self.separator.bypass_ready.next = self.merge.ordinary_ready.val();
        self.separator.burst_room.next = self.bursts.room.val(); self.bursts.data_in.next = self.separator.burst.val();
        self.bursts.push.next = self.separator.burst_push.val(); self.places.reset.next = self.reset.val();
        self.places.data_in.next = self.separator.burst.val().address;
        self.places.push.next = self.separator.burst_push.val();
        self.places.pop.next = self.accumulator.burst_pop.val();
        self.accumulator.burst.next = self.bursts.data_out.val();
        self.accumulator.burst.next.address = self.places.data_out.val();
        self.accumulator.burst_valid.next = self.bursts.valid.val();
        self.bursts.pop.next = self.accumulator.burst_pop.val(); self.accumulator.credit.next = self.sums.room.val();
        self.hazard.next = self.accumulator.hazard.val(); self.sums.data_in.next = self.accumulator.sum.val();
        self.sums.push.next = self.accumulator.sum_push.val();
        self.output_module.template.next = self.templates.data_out.val();
        self.templates.data_in.next = self.template.val(); self.templates.push.next = self.counter.result_push.val();
        self.templates.data_in.next.ports = self.template.val().ports | self.ingress.ports.val();
        if self.counter.repeats.val() { self.templates.data_in.next.ports = self.ingress.asker_port.val(); }
        self.templates.pop.next = self.output_module.info_pop.val(); self.output_module.pace.next = self.pace.val();
        self.busy.next = self.output_module.busy.val() | self.requests.busy.val();
        self.output_module.info.next = self.results.data_out.val();
        self.output_module.info_valid.next = self.results.valid.val();
        self.results.pop.next = self.output_module.info_pop.val();
        self.output_module.sum.next = self.sums.data_out.val();
        self.output_module.sum_valid.next = self.sums.valid.val();
        self.output_module.no_sum.next = self.sums.empty.val(); self.sums.pop.next = self.output_module.sum_pop.val();
        self.output_module.ready.next = self.merge.result_ready.val(); self.output_module.stalled.next =
            self.merge.result_stalled.val(); self.separator.flit_absent.next = self.ingress.no_oldest.val();
        self.merge.ordinary.next = self.ingress.oldest.val();
        self.merge.ordinary_valid.next = self.separator.bypass_valid.val();
        self.merge.ordinary_copied.next = self.separator.bypass_copied.val();
        self.merge.host_ports.next = self.template.val().ports; self.merge.result.next = self.output_module.flit.val();
        self.merge.result_valid.next = self.output_module.valid.val(); self.merge.room.next = self.leaving.room.val();
        self.leaving.data_in.next = self.merge.flit.val(); self.leaving.push.next = self.merge.push.val();
        self.flit_out.next = self.leaving.data_out.val(); self.valid_out.next = self.leaving.valid.val();
        self.leaving.pop.next = self.leaving.valid.val() & self.ready_out.val();
    }
}
