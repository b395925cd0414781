//! The scoreboard. It holds a burst back only while its address is in the adders or the output has no credit.

use rust_hdl::prelude::*;

/// Flags that accompany a burst.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct Flags {
    pub first: Bit,
    pub last: Bit,
}

/// Holds the burst in the issue register and the nine bursts issued before it, which are between the read from the
/// buffer and the write of the sum.
///
/// A burst is compared with all of them while it is loaded. The comparison bits move together with the addresses, so
/// that no comparator lies before the buffer's address register.
#[derive(LogicBlock, Default)]
pub struct Scoreboard {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Next burst; loaded if `load` is set.
    pub valid: Signal<In, Bit>,
    pub address: Signal<In, Bits<15>>,
    pub flags: Signal<In, Flags>,
    pub load: Signal<Out, Bit>,
    /// The output has room for all sums that may be in flight.
    pub credit: Signal<In, Bit>,
    /// Buffer address read in this cycle for the burst in the issue register.
    pub read_address: Signal<Out, Bits<15>>,
    /// Whether the value read counts as zero; valid one cycle later.
    pub first: Signal<Out, Bit>,
    /// The sum is available and is written.
    pub write: Signal<Out, Bit>,
    pub write_address: Signal<Out, Bits<15>>,
    pub last: Signal<Out, Bit>,
    /// The burst in the issue register waits, because its address is still in the adders.
    pub hazard: Signal<Out, Bit>,
    waiting: DFF<Bit>,
    waiting_address: DFF<Bits<15>>,
    waiting_flags: DFF<Flags>,
    same: [DFF<Bit>; 9],
    flying: [DFF<Bit>; 9],
    addresses: [DFF<Bits<15>>; 9],
    kinds: [DFF<Flags>; 9],
    /// At least one bit of `same` is set.
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
