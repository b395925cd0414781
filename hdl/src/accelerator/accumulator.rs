//! The accumulation loop, which consists of the adders and of the block RAM that holds the sums.

use rust_hdl::prelude::*;

use super::adder_array::AdderArray;
use super::records::Burst;
use super::scoreboard::Scoreboard;
use super::zero_mux::ZeroMux;
use crate::axis::Lanes;
use crate::primitives::BlockRam;

/// Latency of the accumulation loop, in cycles: from the cycle that issues a burst to the cycle that writes its sum to
/// the buffer.
pub const LOOP_CYCLES: usize = 9;

/// Adds bursts of eight floats to the sums in the buffer, at one burst per cycle. A burst stalls while an earlier burst
/// with the same address is in the loop. A burst of a segment's last contribution also stalls while the output has no
/// room for the sum.
#[derive(LogicBlock, Default)]
pub struct Accumulator {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Burst at the head of the queue, valid while `burst_valid` is set. `burst_pop` removes it from the queue.
    pub burst: Signal<In, Burst>,
    pub burst_valid: Signal<In, Bit>,
    pub burst_pop: Signal<Out, Bit>,
    pub credit: Signal<In, Bit>,
    /// Eight floats of a complete sum, valid while `sum_push` is set.
    pub sum: Signal<Out, Lanes>,
    pub sum_push: Signal<Out, Bit>,
    pub hazard: Signal<Out, Bit>,
    pub buffer: BlockRam<Lanes, 15>,
    scoreboard: Scoreboard,
    adders: AdderArray,
    first_zero: ZeroMux,
    issued: DFF<Lanes>,
    waited: DFF<Lanes>,
    delayed: DFF<Lanes>,
    read: DFF<Lanes>,
}

impl Logic for Accumulator {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, issued, waited, delayed, read);
        clock!(self, clock, buffer, scoreboard, adders);
        self.scoreboard.reset.next = self.reset.val();
        self.scoreboard.valid.next = self.burst_valid.val();
        self.scoreboard.address.next = self.burst.val().address;
        self.scoreboard.flags.next.first = self.burst.val().first;
        self.scoreboard.flags.next.last = self.burst.val().last;
        self.scoreboard.credit.next = self.credit.val();
        self.burst_pop.next = self.scoreboard.load.val();
        self.hazard.next = self.scoreboard.hazard.val();
        // While no burst waits, the content is not used.
        if self.scoreboard.frees.val() {
            self.issued.d.next = self.burst.val().lanes;
        }
        self.buffer.read_address.next = self.scoreboard.read_address.val();
        self.waited.d.next = self.issued.q.val();
        self.delayed.d.next = self.waited.q.val();
        self.first_zero.lanes.next = self.buffer.read_data.val();
        self.first_zero.zero.next = self.scoreboard.first.val();
        self.read.d.next = self.first_zero.out.val();
        self.adders.a.next = self.read.q.val();
        self.adders.b.next = self.delayed.q.val();
        self.buffer.write_address.next = self.scoreboard.write_address.val();
        // A complete sum is also written back, so that it can be retransmitted.
        self.buffer.write_data.next = self.adders.sum.val();
        self.buffer.write_enable.next = self.scoreboard.write.val();
        self.sum.next = self.adders.sum.val();
        self.sum_push.next = self.scoreboard.write.val() & self.scoreboard.last.val();
    }
}
