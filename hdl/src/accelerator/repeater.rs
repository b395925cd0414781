//! Requests for results that are retransmitted.

use rust_hdl::prelude::*;

use super::records::{HelpRequest, Key, Late};
use crate::primitives::Fifo;

/// Queues late contributions and Helps, and requests the result of each segment that they name.
///
/// If a queue has no room, the late contribution or the Help is discarded. A request is also discarded if the member
/// has spent its budget. Late contributions take precedence over Helps.
#[derive(LogicBlock, Default)]
pub struct Repeater {
    pub clock: Signal<In, Clock>,
    /// Discards all requests.
    pub reset: Signal<In, Bit>,
    pub late: Signal<In, Late>,
    pub late_push: Signal<In, Bit>,
    pub help: Signal<In, HelpRequest>,
    pub help_push: Signal<In, Bit>,
    /// Bitmap of the members that have spent their budget.
    pub exhausted: Signal<In, Bits<8>>,
    /// Next request, valid while `valid` is set and consumed by `taken`.
    pub key: Signal<Out, Key>,
    pub valid: Signal<Out, Bit>,
    pub taken: Signal<In, Bit>,
    /// High in a cycle in which a request is discarded.
    pub skips: Signal<Out, Bit>,
    /// High while requests remain.
    pub busy: Signal<Out, Bit>,
    lates: Fifo<Late, 4, 1>,
    helps: Fifo<HelpRequest, 3, 1>,
    /// Request, present if `waits` is set, and whether a Help names it. In the next cycle, `over` shows whether its
    /// member has spent its budget, and `checked` is set.
    request: DFF<Late>,
    waits: DFF<Bit>,
    of_help: DFF<Bit>,
    checked: DFF<Bit>,
    over: DFF<Bit>,
    /// Whether the oldest Help is being processed. `index` is the current segment, at position `at` of the range.
    walking: DFF<Bit>,
    index: DFF<Bits<24>>,
    at: DFF<Bits<7>>,
    /// Quarter of the Help's bitmap that contains the segment; valid if `looks` is set.
    part: DFF<Bits<32>>,
    looks: DFF<Bit>,
    /// Whether the Help requests this segment, and whether the segment is the last one of the range; valid if `looked`
    /// is set.
    is_wanted: DFF<Bit>,
    ends: DFF<Bit>,
    looked: DFF<Bit>,
    wanted: Signal<Local, Bits<128>>,
    shifted: Signal<Local, Bits<32>>,
    loads_help: Signal<Local, Bit>,
    steps: Signal<Local, Bit>,
    concludes: Signal<Local, Bit>,
    asker: Signal<Local, Bits<3>>,
    is_over: Signal<Local, Bit>,
    overflows: Signal<Local, Bit>,
    discards: Signal<Local, Bit>,
}

impl Logic for Repeater {
    #[hdl_gen]
    #[rustfmt::skip] // one line for each step
    fn update(&mut self) {
        dff_setup!(self, clock, request, waits, of_help, checked, over, walking, index, at, part, looks,
            is_wanted, ends, looked);
        clock!(self, clock, lates, helps);
        self.lates.reset.next = self.reset.val(); self.helps.reset.next = self.reset.val();
        self.lates.data_in.next = self.late.val(); self.helps.data_in.next = self.help.val();
        self.lates.push.next = self.late_push.val() & self.lates.room.val();
        self.helps.push.next = self.help_push.val() & self.helps.room.val();
        self.overflows.next = (self.late_push.val() & !self.lates.room.val())
            | (self.help_push.val() & !self.helps.room.val());
        self.busy.next = self.lates.valid.val() | self.helps.valid.val() | self.waits.q.val();

        self.asker.next = self.request.q.val().member; self.is_over.next = false;
        for i in 0..8 {
            if (self.asker.val() == i.to_bits()) & self.exhausted.val().get_bit(i) { self.is_over.next = true; }
        }
        self.over.d.next = self.is_over.val();
        self.valid.next = self.checked.q.val() & !self.over.q.val();
        self.discards.next = self.checked.q.val() & self.over.q.val();
        self.skips.next = self.overflows.val() | self.discards.val();
        self.concludes.next = self.taken.val() | self.discards.val();
        self.checked.d.next = self.waits.q.val() & !self.concludes.val();
        if self.concludes.val() { self.waits.d.next = false; }
        self.loads_help.next = !self.waits.q.val() & !self.lates.valid.val() & self.looked.q.val()
            & self.is_wanted.q.val();
        self.lates.pop.next = !self.waits.q.val() & self.lates.valid.val();
        if self.lates.pop.val() | self.loads_help.val() { self.waits.d.next = true; }
        if !self.waits.q.val() {
            self.request.d.next = self.lates.data_out.val(); self.of_help.d.next = !self.lates.valid.val();
            if !self.lates.valid.val() {
                self.request.d.next.index = self.index.q.val();
                self.request.d.next.round = self.helps.data_out.val().round;
                self.request.d.next.member = self.helps.data_out.val().member;
            }
        }

        self.wanted.next = self.helps.data_out.val().wanted; self.part.d.next = self.wanted.val().get_bits::<32>(0);
        if self.at.q.val().get_bits::<2>(5) == 1 { self.part.d.next = self.wanted.val().get_bits::<32>(32); }
        if self.at.q.val().get_bits::<2>(5) == 2 { self.part.d.next = self.wanted.val().get_bits::<32>(64); }
        if self.at.q.val().get_bits::<2>(5) == 3 { self.part.d.next = self.wanted.val().get_bits::<32>(96); }
        self.shifted.next = self.part.q.val() >> bit_cast::<32, 5>(self.at.q.val().get_bits::<5>(0));
        self.is_wanted.d.next = self.shifted.val().get_bit(0);
        self.ends.d.next = self.at.q.val() == self.helps.data_out.val().last;
        self.steps.next = self.looked.q.val() & (!self.is_wanted.q.val() | self.loads_help.val());
        self.looks.d.next = self.walking.q.val() & !self.steps.val();
        self.looked.d.next = self.looks.d.val() & self.looks.q.val();
        self.helps.pop.next = self.steps.val() & self.ends.q.val();
        if self.steps.val() { self.index.d.next = self.index.q.val() + 1; self.at.d.next = self.at.q.val() + 1; }
        if self.helps.pop.val() { self.walking.d.next = false; }
        if !self.walking.q.val() {
            self.walking.d.next = self.helps.valid.val();
            self.index.d.next = self.helps.data_out.val().index; self.at.d.next = 0.into();
        }
        if self.reset.val() {
            self.waits.d.next = false; self.checked.d.next = false;
            self.walking.d.next = false; self.looks.d.next = false; self.looked.d.next = false;
        }
        self.key.next.index = self.request.q.val().index; self.key.next.round = self.request.q.val().round;
        self.key.next.weight = 0.into(); self.key.next.udp_len = 0.into(); self.key.next.member = self.asker.val();
        self.key.next.known = true; self.key.next.malformed = false; self.key.next.forced = true;
        self.key.next.only_complete = self.of_help.q.val(); self.key.next.repeats = true;
    }
}
