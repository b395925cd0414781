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
    /// High while a next burst is available. The burst enters the issue register if `load` is set.
    pub valid: Signal<In, Bit>,
    pub address: Signal<In, Bits<15>>,
    pub flags: Signal<In, Flags>,
    pub load: Signal<Out, Bit>,
    /// High while the issue register is free or becomes free. Unlike `load`, it does not depend on `valid`.
    pub frees: Signal<Out, Bit>,
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
    /// Complement of `waiting`. `frees`, whose fan-out is high, is thus not merged with `taken`.
    idle: DFF<Bit>,
    waiting_address: DFF<Bits<15>>,
    waiting_flags: DFF<Flags>,
    same: [DFF<Bit>; 9],
    flying: [DFF<Bit>; 9],
    addresses: [DFF<Bits<15>>; 9],
    kinds: [DFF<Flags>; 9],
    /// Logical OR of all bits of `same`.
    blocked: DFF<Bit>,
    /// Whether the next burst has the address of the waiting burst (index 0) or of a burst in the loop.
    hits: [Signal<Local, Bit>; 9],
    any_hit: Signal<Local, Bit>,
    any_same: Signal<Local, Bit>,
    may_go: Signal<Local, Bit>,
    go: Signal<Local, Bit>,
    taken: Signal<Local, Bit>,
}

impl Logic for Scoreboard {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, waiting, idle, waiting_address, waiting_flags, blocked);
        for i in 0..9 {
            self.same[i].clock.next = self.clock.val();
            self.flying[i].clock.next = self.clock.val();
            self.addresses[i].clock.next = self.clock.val();
            self.kinds[i].clock.next = self.clock.val();
        }
        self.may_go.next = !self.blocked.q.val() & (self.credit.val() | !self.waiting_flags.q.val().last);
        self.go.next = self.waiting.q.val() & self.may_go.val();
        self.taken.next = self.may_go.val() | !self.waiting.q.val();
        self.frees.next = self.may_go.val() | self.idle.q.val();
        self.load.next = self.taken.val() & self.valid.val();
        self.hazard.next = self.waiting.q.val() & self.blocked.q.val();
        self.hits[0].next = self.address.val() == self.waiting_address.q.val();
        for i in 1..9 {
            self.hits[i].next =
                self.flying[i - 1].q.val() & (self.address.val() == self.addresses[i - 1].q.val());
        }
        self.same[0].d.next = false;
        for i in 1..9 {
            self.same[i].d.next = self.same[i - 1].q.val();
            self.flying[i].d.next = self.flying[i - 1].q.val();
            self.addresses[i].d.next = self.addresses[i - 1].q.val();
            self.kinds[i].d.next = self.kinds[i - 1].q.val();
        }
        if self.taken.val() {
            self.waiting.d.next = self.valid.val();
            self.idle.d.next = !self.valid.val();
            self.waiting_address.d.next = self.address.val();
            self.waiting_flags.d.next = self.flags.val();
            self.same[0].d.next = self.go.val() & self.hits[0].val();
            for i in 1..9 {
                self.same[i].d.next = self.hits[i].val();
            }
        }
        // The logical OR of the inputs of `same`, arranged such that the late signal `may_go` selects at the end.
        self.any_hit.next = false;
        self.any_same.next = false;
        for i in 1..9 {
            if self.hits[i].val() {
                self.any_hit.next = true;
            }
            if self.same[i - 1].q.val() {
                self.any_same.next = true;
            }
        }
        self.blocked.d.next = self.any_hit.val();
        if self.waiting.q.val() {
            self.blocked.d.next = self.any_same.val();
            if self.may_go.val() {
                self.blocked.d.next = self.any_hit.val() | self.hits[0].val();
            }
        }
        self.flying[0].d.next = self.go.val();
        self.addresses[0].d.next = self.waiting_address.q.val();
        self.kinds[0].d.next = self.waiting_flags.q.val();
        if self.reset.val() {
            self.waiting.d.next = false;
            self.idle.d.next = true;
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
