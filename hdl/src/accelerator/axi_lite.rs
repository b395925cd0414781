//! The AXI4-Lite interface to the registers.

#![allow(non_snake_case)] // the bus defines the names

use rust_hdl::prelude::*;

/// Handles at most one write and one read at a time, and always responds with OKAY. Every access covers a whole 32-bit
/// word; the write strobes are ignored.
#[derive(LogicBlock, Default)]
pub struct AxiLite {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// While set, no request is accepted.
    pub hold: Signal<In, Bit>,
    pub AWADDR: Signal<In, Bits<12>>,
    pub AWVALID: Signal<In, Bit>,
    pub AWREADY: Signal<Out, Bit>,
    pub WDATA: Signal<In, Bits<32>>,
    pub WVALID: Signal<In, Bit>,
    pub WREADY: Signal<Out, Bit>,
    pub BVALID: Signal<Out, Bit>,
    pub BREADY: Signal<In, Bit>,
    pub ARADDR: Signal<In, Bits<12>>,
    pub ARVALID: Signal<In, Bit>,
    pub ARREADY: Signal<Out, Bit>,
    pub RDATA: Signal<Out, Bits<32>>,
    pub RVALID: Signal<Out, Bit>,
    pub RREADY: Signal<In, Bit>,
    /// High for one cycle per write. `write_word` and `write_data` are valid in this cycle and in the next.
    pub write: Signal<Out, Bit>,
    pub write_word: Signal<Out, Bits<10>>,
    pub write_data: Signal<Out, Bits<32>>,
    /// Index of the word being read. `read_data` must hold the value of the word two cycles after the index changes.
    pub read_word: Signal<Out, Bits<10>>,
    pub read_data: Signal<In, Bits<32>>,
    writes: DFF<Bit>,
    word: DFF<Bits<10>>,
    data: DFF<Bits<32>>,
    answers: DFF<Bit>,
    asked: DFF<Bits<10>>,
    /// Cycle of the read in progress, counted from 1; 0 if no read is in progress.
    reading: DFF<Bits<2>>,
    shown: DFF<Bits<32>>,
    shows: DFF<Bit>,
    accepts: Signal<Local, Bit>,
}

impl Logic for AxiLite {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, writes, word, data, answers, asked, reading, shown, shows);
        self.accepts.next = self.AWVALID.val()
            & self.WVALID.val()
            & !self.answers.q.val()
            & !self.reset.val()
            & !self.hold.val();
        self.AWREADY.next = self.accepts.val();
        self.WREADY.next = self.accepts.val();
        self.writes.d.next = self.accepts.val();
        if self.answers.q.val() & self.BREADY.val() {
            self.answers.d.next = false;
        }
        if self.accepts.val() {
            self.word.d.next = self.AWADDR.val().get_bits::<10>(2);
            self.data.d.next = self.WDATA.val();
            self.answers.d.next = true;
        }
        self.BVALID.next = self.answers.q.val();
        self.write.next = self.writes.q.val();
        self.write_word.next = self.word.q.val();
        self.write_data.next = self.data.q.val();

        self.ARREADY.next =
            !self.reading.q.val().any() & !self.shows.q.val() & !self.reset.val() & !self.hold.val();
        if self.ARREADY.val() & self.ARVALID.val() {
            self.asked.d.next = self.ARADDR.val().get_bits::<10>(2);
            self.reading.d.next = 1.into();
        }
        if self.reading.q.val().any() {
            self.reading.d.next = self.reading.q.val() + 1;
        }
        if self.reading.q.val().all() {
            self.shown.d.next = self.read_data.val();
            self.shows.d.next = true;
        }
        if self.shows.q.val() & self.RREADY.val() {
            self.shows.d.next = false;
        }
        if self.reset.val() {
            self.writes.d.next = false;
            self.answers.d.next = false;
            self.reading.d.next = 0.into();
            self.shows.d.next = false;
        }
        self.read_word.next = self.asked.q.val();
        self.RDATA.next = self.shown.q.val();
        self.RVALID.next = self.shows.q.val();
    }
}
