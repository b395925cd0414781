//! A pipelined binary32 adder with a throughput of one sum per cycle and a latency of seven cycles.
//!
//! It rounds to nearest even, supports subnormals as inputs and outputs, supports infinities, and returns every NaN
//! as 0x7FC00000 (D-5). Stages: compare, swap, align, add, count leading zeros, normalise, round.

pub mod align;
mod model;
pub mod normalise;
pub mod round;
pub mod unpack;
pub mod vectors;

use align::AlignAdd;
pub use model::add;
use normalise::Normalise;
use round::Round;
use rust_hdl::prelude::*;
use unpack::Unpack;

/// Latency from operands to sum, in cycles.
pub const LATENCY_CYCLES: usize = 7;

/// Properties of a sum other than its magnitude.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct Kind {
    /// Sign of the operand with the larger magnitude.
    pub sign: Bit,
    /// Whether the operands have different signs, so that their magnitudes are subtracted.
    pub subtract: Bit,
    pub nan: Bit,
    pub infinite: Bit,
}

/// Computes `sum` = `a` + `b` with a latency of seven cycles.
#[derive(LogicBlock, Default)]
pub struct Fp32Adder {
    pub clock: Signal<In, Clock>,
    pub a: Signal<In, Bits<32>>,
    pub b: Signal<In, Bits<32>>,
    pub sum: Signal<Out, Bits<32>>,
    unpack: Unpack,
    align: AlignAdd,
    normalise: Normalise,
    round: Round,
}

impl Logic for Fp32Adder {
    #[hdl_gen]
    fn update(&mut self) {
        self.unpack.clock.next = self.clock.val();
        self.align.clock.next = self.clock.val();
        self.normalise.clock.next = self.clock.val();
        self.round.clock.next = self.clock.val();
        self.unpack.a.next = self.a.val();
        self.unpack.b.next = self.b.val();
        self.align.kind_in.next = self.unpack.kind.val();
        self.align.exponent_in.next = self.unpack.exponent.val();
        self.align.distance.next = self.unpack.distance.val();
        self.align.larger.next = self.unpack.larger.val();
        self.align.smaller.next = self.unpack.smaller.val();
        self.normalise.kind_in.next = self.align.kind.val();
        self.normalise.exponent_in.next = self.align.exponent.val();
        self.normalise.total.next = self.align.total.val();
        self.round.kind.next = self.normalise.kind.val();
        self.round.exponent.next = self.normalise.exponent.val();
        self.round.fraction.next = self.normalise.fraction.val();
        self.sum.next = self.round.sum.val();
    }
}
