//! A queue in LUTs.

use rust_hdl::prelude::*;

use super::LutRam;

/// Shows its oldest word before it is taken. 2^N deep; while `room` is shown, at least MARGIN places are free. A sender
/// that pushes in the cycle in which it sees `room` needs one; one that pushes later needs another for each cycle.
#[derive(LogicBlock)]
pub struct Fifo<D: Synth, const N: usize, const MARGIN: usize> {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub data_in: Signal<In, D>,
    pub push: Signal<In, Bit>,
    pub data_out: Signal<Out, D>,
    pub valid: Signal<Out, Bit>,
    /// The complement, from a register of its own: for what drives much.
    pub empty: Signal<Out, Bit>,
    /// Takes the word; only while `valid`.
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
    /// Words with which there is no room.
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
        self.next_count.next = self.count.q.val();
        if self.push.val() & !self.pop.val() {
            self.next_count.next = self.count.q.val() + 1;
        }
        if !self.push.val() & self.pop.val() {
            self.next_count.next = self.count.q.val() - 1;
        }
        if self.push.val() {
            self.write_at.d.next = self.write_at.q.val() + 1;
        }
        if self.pop.val() {
            self.read_at.d.next = self.read_at.q.val() + 1;
        }
        self.count.d.next = self.next_count.val();
        // From registers only, so that push and pop may come late.
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
