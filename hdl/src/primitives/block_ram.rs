//! A memory in block RAM.

#![expect(
    clippy::used_underscore_binding,
    reason = "rust-hdl treats every field without a leading underscore as a part of the circuit"
)]

use rust_hdl::prelude::*;

/// Memory of up to 2^N words with one write port and one synchronous read port. A read of a word that is being
/// written returns the old value.
#[derive(LogicBlock)]
pub struct BlockRam<D: Synth, const N: usize> {
    pub clock: Signal<In, Clock>,
    pub write_address: Signal<In, Bits<N>>,
    pub write_data: Signal<In, D>,
    pub write_enable: Signal<In, Bit>,
    pub read_address: Signal<In, Bits<N>>,
    pub read_data: Signal<Out, D>,
    _words: Vec<D>,
}

impl<D: Synth, const N: usize> Default for BlockRam<D, N> {
    fn default() -> Self {
        Self::with_depth(1 << N)
    }
}

impl<D: Synth, const N: usize> BlockRam<D, N> {
    /// Creates a memory with the given number of words, at most 2^N.
    pub fn with_depth(words: usize) -> Self {
        assert!(words <= 1 << N);
        Self {
            clock: Signal::default(),
            write_address: Signal::default(),
            write_data: Signal::default(),
            write_enable: Signal::default(),
            read_address: Signal::default(),
            read_data: Signal::default(),
            _words: vec![D::default(); words],
        }
    }
}

impl<D: Synth, const N: usize> Logic for BlockRam<D, N> {
    fn update(&mut self) {
        if self.clock.pos_edge() {
            // An address beyond the depth never belongs to a valid burst.
            let read = self.read_address.val().index();
            self.read_data.next = self._words.get(read).copied().unwrap_or_default();
            if self.write_enable.val()
                && let Some(word) = self._words.get_mut(self.write_address.val().index())
            {
                *word = self.write_data.val();
            }
        }
    }

    fn connect(&mut self) {
        self.read_data.connect();
    }

    fn hdl(&self) -> Verilog {
        let (top_bit, last) = (D::BITS - 1, self._words.len() - 1);
        Verilog::Custom(format!(
            "(* ram_style = \"block\" *) reg [{top_bit}:0] words[{last}:0];\n\
             integer i;\n\
             initial begin\n   for (i = 0; i <= {last}; i = i + 1) words[i] = 0;\n   read_data = 0;\nend\n\
             always @(posedge clock) begin\n   read_data <= words[read_address];\n   \
             if (write_enable) words[write_address] <= write_data;\nend\n"
        ))
    }
}
