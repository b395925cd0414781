//! A memory in LUT RAM.

#![expect(
    clippy::used_underscore_binding,
    reason = "rust-hdl treats every field without a leading underscore as a part of the circuit"
)]

use rust_hdl::prelude::*;

/// Memory of 2^N words with synchronous writes and asynchronous reads.
#[derive(LogicBlock)]
pub struct LutRam<D: Synth, const N: usize> {
    pub clock: Signal<In, Clock>,
    pub write_address: Signal<In, Bits<N>>,
    pub write_data: Signal<In, D>,
    pub write_enable: Signal<In, Bit>,
    pub read_address: Signal<In, Bits<N>>,
    pub read_data: Signal<Out, D>,
    _words: Vec<D>,
}

impl<D: Synth, const N: usize> Default for LutRam<D, N> {
    fn default() -> Self {
        Self {
            clock: Signal::default(),
            write_address: Signal::default(),
            write_data: Signal::default(),
            write_enable: Signal::default(),
            read_address: Signal::default(),
            read_data: Signal::default(),
            _words: vec![D::default(); 1 << N],
        }
    }
}

impl<D: Synth, const N: usize> Logic for LutRam<D, N> {
    fn update(&mut self) {
        if self.clock.pos_edge() && self.write_enable.val() {
            self._words[self.write_address.val().index()] = self.write_data.val();
        }
        self.read_data.next = self._words[self.read_address.val().index()];
    }

    fn connect(&mut self) {
        self.read_data.connect();
    }

    fn hdl(&self) -> Verilog {
        let (top_bit, last) = (D::BITS - 1, (1_usize << N) - 1);
        Verilog::Custom(format!(
            "(* ram_style = \"distributed\" *) reg [{top_bit}:0] words[{last}:0];\n\
             integer i;\n\
             initial for (i = 0; i <= {last}; i = i + 1) words[i] = 0;\n\
             always @(posedge clock) if (write_enable) words[write_address] <= write_data;\n\
             always @(*) read_data = words[read_address];\n"
        ))
    }
}
