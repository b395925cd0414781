//! The scoreboard, which stalls a burst while an earlier burst with the same address is in the accumulation loop, or
//! while the output has no room for the sum that the burst completes.

use rust_hdl::prelude::*;

/// Flags that accompany a burst.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct Flags {
    pub first: Bit,
    pub last: Bit,
}

/// Tracks the burst in the issue register and the up to nine bursts issued before it whose sums have been read from the
/// buffer but not written back yet.
///
/// The address of a burst is compared with those of all tracked bursts while the burst is loaded. The results of the
/// comparisons then shift along with the addresses, so that no comparator is in the path to the address input of the
/// buffer.
#[derive(LogicBlock, Default)]
pub struct Scoreboard {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// High while a next burst is available. The burst is loaded into the issue register if `load` is set.
    pub valid: Signal<In, Bit>,
    pub address: Signal<In, Bits<15>>,
    pub flags: Signal<In, Flags>,
    pub load: Signal<Out, Bit>,
    /// High while the output has room for all sums that can be in flight.
    pub credit: Signal<In, Bit>,
    /// Buffer address read in this cycle for the burst in the issue register.
    pub read_address: Signal<Out, Bits<15>>,
    /// Whether the value read from the buffer is treated as zero; valid one cycle after `read_address`.
    pub first: Signal<Out, Bit>,
    /// High in the cycle in which the oldest sum in the loop is available and is written to `write_address`.
    pub write: Signal<Out, Bit>,
    pub write_address: Signal<Out, Bits<15>>,
    pub last: Signal<Out, Bit>,
    /// High while the burst in the issue register stalls because an earlier burst with the same address is in the loop.
    pub hazard: Signal<Out, Bit>,
    waiting: DFF<Bit>,
    waiting_address: DFF<Bits<15>>,
    waiting_flags: DFF<Flags>,
    same: [DFF<Bit>; 9],
    flying: [DFF<Bit>; 9],
    addresses: [DFF<Bits<15>>; 9],
    kinds: [DFF<Flags>; 9],
    /// Logical OR of all bits of `same`.
    blocked: DFF<Bit>,
    go: Signal<Local, Bit>,
    taken: Signal<Local, Bit>,
}

impl Logic for Scoreboard {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, waiting, waiting_address, waiting_flags, blocked);
        for i in 0..9 {
            self.same[i].clock.next = self.clock.val();
            self.flying[i].clock.next = self.clock.val();
            self.addresses[i].clock.next = self.clock.val();
            self.kinds[i].clock.next = self.clock.val();
        }
        self.go.next = self.waiting.q.val()
            & !self.blocked.q.val()
            & (self.credit.val() | !self.waiting_flags.q.val().last);
        self.taken.next = self.go.val() | !self.waiting.q.val();
        self.load.next = self.taken.val() & self.valid.val();
        self.hazard.next = self.waiting.q.val() & self.blocked.q.val();
        self.same[0].d.next = false;
        for i in 1..9 {
            self.same[i].d.next = self.same[i - 1].q.val();
            self.flying[i].d.next = self.flying[i - 1].q.val();
            self.addresses[i].d.next = self.addresses[i - 1].q.val();
            self.kinds[i].d.next = self.kinds[i - 1].q.val();
        }
        if self.taken.val() {
            self.waiting.d.next = self.valid.val();
            self.waiting_address.d.next = self.address.val();
            self.waiting_flags.d.next = self.flags.val();
            self.same[0].d.next = self.go.val() & (self.address.val() == self.waiting_address.q.val());
            for i in 1..9 {
                self.same[i].d.next =
                    self.flying[i - 1].q.val() & (self.address.val() == self.addresses[i - 1].q.val());
            }
        }
        self.blocked.d.next = false;
        for i in 0..9 {
            if self.same[i].d.val() {
                self.blocked.d.next = true;
            }
        }
        self.flying[0].d.next = self.go.val();
        self.addresses[0].d.next = self.waiting_address.q.val();
        self.kinds[0].d.next = self.waiting_flags.q.val();
        if self.reset.val() {
            self.waiting.d.next = false;
            for i in 0..9 {
                self.flying[i].d.next = false;
            }
        }
        self.read_address.next = self.waiting_address.q.val();
        self.first.next = self.kinds[0].q.val().first;
        self.write.next = self.flying[8].q.val();
        self.write_address.next = self.addresses[8].q.val();
        self.last.next = self.kinds[8].q.val().last;
    }
}
