//! Table of the two rounds that can be active at once, indexed by the parity of the round number. It holds the values
//! that are fixed when a round opens.

use rust_hdl::prelude::*;

use super::records::{Job, RoundsView};

/// Table of two rounds. The outputs refer to the value of `round` in the previous cycle.
#[derive(LogicBlock, Default)]
pub struct RoundTable {
    pub clock: Signal<In, Clock>,
    /// Discards all rounds. The next round to open is then the first round of the job.
    pub clear: Signal<In, Bit>,
    pub job: Signal<In, Job>,
    /// H and members for a round that opens in this cycle. A member that leaves the job also leaves the open rounds.
    pub threshold: Signal<In, Bits<8>>,
    pub members: Signal<In, Bits<8>>,
    /// If set, the current H also applies to the open rounds, at the request of the host.
    pub fix_threshold: Signal<In, Bit>,
    pub round: Signal<In, Bits<24>>,
    /// Whether a first contribution to `round` would open the round.
    pub opens: Signal<Out, Bit>,
    /// Whether the round is open, or can open because all segments of the round before the previous one are finished.
    pub has_place: Signal<Out, Bit>,
    /// Whether the round precedes the last two rounds that have opened. Its results are no longer available.
    pub is_past: Signal<Out, Bit>,
    pub needed: Signal<Out, Bits<8>>,
    pub participants: Signal<Out, Bits<8>>,
    /// Parity of the round that `open` opens, or in which `finish` finishes a segment.
    pub decided_parity: Signal<In, Bit>,
    pub open: Signal<In, Bit>,
    pub finish: Signal<In, Bit>,
    pub view: Signal<Out, RoundsView>,
    next_round: DFF<Bits<24>>,
    unfinished: [DFF<Bits<25>>; 2],
    needs: [DFF<Bits<8>>; 2],
    takes_part: [DFF<Bits<8>>; 2],
    is_next: DFF<Bit>,
    is_free: DFF<Bit>,
    past: DFF<Bit>,
    out_needed: DFF<Bits<8>>,
    out_participants: DFF<Bits<8>>,
    segments: Signal<Local, Bits<25>>,
    /// Number of rounds from `round` to the next round to open, modulo 2^24.
    behind: Signal<Local, Bits<24>>,
    parity: Signal<Local, Bit>,
    there: [Signal<Local, Bit>; 2],
    decided: [Signal<Local, Bit>; 2],
    left: [Signal<Local, Bits<25>>; 2],
}

impl Logic for RoundTable {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, next_round, is_next, is_free, past, out_needed, out_participants);
        self.segments.next = bit_cast::<25, 24>(self.job.val().last_index) + 1;
        self.parity.next = self.round.val().get_bit(0);
        self.there[0].next = !self.parity.val();
        self.there[1].next = self.parity.val();
        self.decided[0].next = !self.decided_parity.val();
        self.decided[1].next = self.decided_parity.val();
        self.is_next.d.next = self.round.val() == self.next_round.q.val();
        self.behind.next = self.next_round.q.val() - self.round.val();
        self.past.d.next = !self.behind.val().get_bit(23)
            & (self.behind.val().get_bits::<22>(2).any() | self.behind.val().get_bits::<2>(0).all());
        self.is_free.d.next = false;
        self.out_needed.d.next = self.threshold.val();
        self.out_participants.d.next = self.members.val();
        for i in 0..2 {
            self.unfinished[i].clock.next = self.clock.val();
            self.needs[i].clock.next = self.clock.val();
            self.takes_part[i].clock.next = self.clock.val();
            self.needs[i].d.next = self.needs[i].q.val();
            self.takes_part[i].d.next = self.takes_part[i].q.val() & self.members.val();
            self.left[i].next = self.unfinished[i].q.val();
            if self.fix_threshold.val() {
                self.needs[i].d.next = self.threshold.val();
            }
            if self.decided[i].val() & self.open.val() {
                self.left[i].next = self.segments.val();
                self.needs[i].d.next = self.threshold.val();
                self.takes_part[i].d.next = self.members.val();
            }
            self.unfinished[i].d.next = self.left[i].val();
            if self.decided[i].val() & self.finish.val() {
                self.unfinished[i].d.next = self.left[i].val() - 1;
            }
            if self.there[i].val() & !self.unfinished[i].q.val().any() {
                self.is_free.d.next = true;
            }
            if self.there[i].val() & (self.round.val() != self.next_round.q.val()) {
                self.out_needed.d.next = self.needs[i].q.val();
                self.out_participants.d.next = self.takes_part[i].q.val();
            }
            if self.clear.val() {
                self.unfinished[i].d.next = 0.into();
            }
        }
        if self.open.val() {
            self.next_round.d.next = self.next_round.q.val() + 1;
        }
        if self.clear.val() {
            self.next_round.d.next = self.job.val().base;
        }
        self.view.next.next_round = self.next_round.q.val();
        self.view.next.unfinished0 = self.unfinished[0].q.val();
        self.view.next.unfinished1 = self.unfinished[1].q.val();
        self.view.next.needed0 = self.needs[0].q.val();
        self.view.next.needed1 = self.needs[1].q.val();
        self.view.next.participants0 = self.takes_part[0].q.val();
        self.view.next.participants1 = self.takes_part[1].q.val();
        self.opens.next = self.is_next.q.val();
        self.is_past.next = self.past.q.val();
        self.has_place.next = self.is_free.q.val() | !self.is_next.q.val();
        self.needed.next = self.out_needed.q.val();
        self.participants.next = self.out_participants.q.val();
    }
}
