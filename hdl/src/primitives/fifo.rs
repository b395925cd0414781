//! A FIFO in LUT RAM.

use rust_hdl::prelude::*;

use super::LutRam;

/// First-word fall-through FIFO of 2^N words: `data_out` shows the oldest word before `pop` removes it. While `room` is
/// set, at least MARGIN words are free. A sender that pushes in the cycle in which it sees `room` needs a margin of
/// one. Each cycle of delay between the two requires one more.
#[derive(LogicBlock)]
pub struct Fifo<D: Synth, const N: usize, const MARGIN: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub data_in: Signal<In, D>,
    pub push: Signal<In, Bit>,
    pub data_out: Signal<Out, D>,
    pub valid: Signal<Out, Bit>,
    /// Complement of `valid`, driven by a separate register for use where the fan-out is high.
    pub empty: Signal<Out, Bit>,
    /// Removes the oldest word; allowed only while `valid` is set.
    pub pop: Signal<In, Bit>,
    pub room: Signal<Out, Bit>,
    ram: LutRam<D, N>,
    write_at: DFF<Bits<N>>,
    read_at: DFF<Bits<N>>,
    count: DFF<Bits<8>>,
    filled: DFF<Bit>,
    is_empty: DFF<Bit>,
    has_room: DFF<Bit>,
    next_count: Signal<Local, Bits<8>>,
    /// Lowest number of queued words at which `room` is clear.
    limit: Constant<Bits<8>>,
}

impl<D: Synth, const N: usize, const MARGIN: usize> Default for Fifo<D, N, MARGIN> {
    fn default() -> Self {
        Self {
            clock: Signal::default(),
            reset: Signal::default(),
            data_in: Signal::default(),
            push: Signal::default(),
            data_out: Signal::default(),
            valid: Signal::default(),
            empty: Signal::default(),
            pop: Signal::default(),
            room: Signal::default(),
            ram: LutRam::default(),
            write_at: DFF::default(),
            read_at: DFF::default(),
            count: DFF::default(),
            filled: DFF::default(),
            is_empty: DFF::default(),
            has_room: DFF::default(),
            next_count: Signal::default(),
            limit: Constant::new((((1 << N) - MARGIN) as u64).into()),
        }
    }
}

impl<D: Synth, const N: usize, const MARGIN: usize> Logic for Fifo<D, N, MARGIN> {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, write_at, read_at, count, filled, is_empty, has_room);
        self.ram.clock.next = self.clock.val();
        self.ram.write_address.next = self.write_at.q.val();
        self.ram.write_data.next = self.data_in.val();
        self.ram.write_enable.next = self.push.val();
        self.ram.read_address.next = self.read_at.q.val();
        self.data_out.next = self.ram.read_data.val();
        self.valid.next = self.filled.q.val();
        self.empty.next = self.is_empty.q.val();
        self.room.next = self.has_room.q.val();
        // `push` may arrive late in the cycle, and therefore only enables the change.
        self.next_count.next = self.count.q.val() + 1;
        if self.pop.val() {
            self.next_count.next = self.count.q.val() - 1;
        }
        if self.push.val() {
            self.write_at.d.next = self.write_at.q.val() + 1;
        }
        if self.pop.val() {
            self.read_at.d.next = self.read_at.q.val() + 1;
        }
        if self.push.val() ^ self.pop.val() {
            self.count.d.next = self.next_count.val();
        }
        // These values come only from registers, so that push and pop may arrive late in the cycle.
        if self.pop.val() {
            self.filled.d.next = self.count.q.val() != 1;
            self.is_empty.d.next = self.count.q.val() == 1;
        }
        if self.push.val() {
            self.filled.d.next = true;
            self.is_empty.d.next = false;
        }
        self.has_room.d.next = self.count.q.val() < self.limit.val();
        if self.reset.val() {
            self.write_at.d.next = 0.into();
            self.read_at.d.next = 0.into();
            self.count.d.next = 0.into();
            self.filled.d.next = false;
            self.is_empty.d.next = true;
            self.has_room.d.next = false;
        }
    }
}
