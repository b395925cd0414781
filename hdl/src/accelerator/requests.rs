//! Sources of the requests without a frame: segments that the host finishes, and results that members request.

use rust_hdl::prelude::*;

use super::budget::Budget;
use super::force_walker::ForceWalker;
use super::help_reader::HelpReader;
use super::records::{ControlBeat, Job, Key, Late};
use super::repeater::Repeater;
use super::request_gate::RequestGate;

/// Collects the requests and offers one at a time to the Seg counter.
#[derive(LogicBlock, Default)]
pub struct Requests {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// High while all sums are being discarded. During this time, requests for results are also discarded.
    pub clearing: Signal<In, Bit>,
    pub job: Signal<In, Job>,
    pub halted: Signal<In, Bit>,
    /// Starts finishing segments. `data` contains their number; if bit 31 of `data` is set, only those with enough
    /// contributions are finished.
    pub start_finish: Signal<In, Bit>,
    pub finish_round: Signal<In, Bits<24>>,
    pub finish_first: Signal<In, Bits<24>>,
    pub data: Signal<In, Bits<32>>,
    /// High while segments are being finished.
    pub finishing: Signal<Out, Bit>,
    pub late: Signal<In, Late>,
    pub late_push: Signal<In, Bit>,
    pub control: Signal<In, ControlBeat>,
    /// Maximum number of results that a member may request before its budget grows.
    pub budget: Signal<In, Bits<16>>,
    /// High in a cycle in which a result of the job, which goes to all members, is completed.
    pub earns: Signal<In, Bit>,
    /// Bitmap of the members that have spent their budget.
    pub exhausted: Signal<Out, Bits<8>>,
    /// High in a cycle in which a request for a result is discarded.
    pub skips: Signal<Out, Bit>,
    /// High while requests for results remain.
    pub busy: Signal<Out, Bit>,
    /// High while the output could send a new result immediately.
    pub free: Signal<In, Bit>,
    /// High while no frame waits for a decision.
    pub quiet: Signal<In, Bit>,
    /// Request, valid while `valid` is set and consumed by `advance`.
    pub key: Signal<Out, Key>,
    pub valid: Signal<Out, Bit>,
    /// Complement of `valid`.
    pub idle: Signal<Out, Bit>,
    pub advance: Signal<In, Bit>,
    walker: ForceWalker,
    help: HelpReader,
    repeater: Repeater,
    budgets: Budget,
    gate: RequestGate,
}

impl Logic for Requests {
    #[hdl_gen]
    #[rustfmt::skip] // compact wiring
    fn update(&mut self) {
        clock!(self, clock, walker, help, repeater, budgets, gate);
        self.walker.reset.next = self.reset.val(); self.help.reset.next = self.reset.val();
        self.gate.reset.next = self.reset.val(); self.repeater.reset.next = self.reset.val() | self.clearing.val();
        self.walker.start.next = self.start_finish.val(); self.walker.round.next = self.finish_round.val();
        self.walker.first.next = self.finish_first.val();
        self.walker.count.next = self.data.val().get_bits::<11>(0);
        self.walker.only_complete.next = self.data.val().get_bit(31);
        self.walker.advance.next = self.gate.finish_taken.val(); self.finishing.next = self.walker.walking.val();
        self.help.job.next = self.job.val(); self.help.halted.next = self.halted.val();
        self.help.control.next = self.control.val();
        self.repeater.late.next = self.late.val(); self.repeater.late_push.next = self.late_push.val();
        self.repeater.help.next = self.help.request.val(); self.repeater.help_push.next = self.help.push.val();
        self.repeater.taken.next = self.gate.repeat_taken.val();
        self.repeater.exhausted.next = self.budgets.exhausted.val();
        self.skips.next = self.repeater.skips.val(); self.busy.next = self.repeater.busy.val();
        self.budgets.clear.next = self.clearing.val(); self.budgets.limit.next = self.budget.val();
        self.budgets.spends.next = self.gate.repeat_taken.val();
        self.budgets.member.next = self.repeater.key.val().member; self.budgets.earns.next = self.earns.val();
        self.exhausted.next = self.budgets.exhausted.val();
        self.gate.free.next = self.free.val(); self.gate.withdraw.next = self.start_finish.val();
        self.gate.quiet.next = self.quiet.val();
        self.gate.finish_key.next = self.walker.key.val(); self.gate.finish_valid.next = self.walker.walking.val();
        self.gate.repeat_key.next = self.repeater.key.val(); self.gate.repeat_valid.next = self.repeater.valid.val();
        self.gate.advance.next = self.advance.val(); self.key.next = self.gate.key.val();
        self.valid.next = self.gate.valid.val(); self.idle.next = self.gate.idle.val();
    }
}
