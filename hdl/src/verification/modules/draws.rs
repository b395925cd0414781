//! Random values for the inputs of any module, drawn so that they exercise its logic.
//!
//! For [`EPISODE_CYCLES`] cycles at a time, each bit is usually set, usually clear, or set in half of the cycles, so
//! that streams flow, stall and pause. During the same cycles, most words of the same width are drawn from a few
//! values that all ports share, so that addresses coincide and keys match.

use std::collections::BTreeMap;

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rust_hdl::prelude::*;

use crate::accelerator::classifier::Marks;
use crate::accelerator::header_capture::RawHeader;
use crate::accelerator::records::{
    Burst, ControlBeat, Decision, Entry, Filter, Header, HelpRequest, Job, Key, Late, RawSeg, ResultInfo,
    RoundsView, Template,
};
use crate::accelerator::scoreboard::Flags;
use crate::accelerator::slot_table::Relation;
use crate::accelerator::verdict::Weighed;
use crate::adder::Kind;
use crate::axis::{Flit, Halves, Lanes, Tuser};

/// Number of cycles after which the bit probabilities and the shared words are drawn anew.
const EPISODE_CYCLES: usize = 48;
/// Choices for the probability that a bit is set, in percent.
const PERCENTS: [u32; 4] = [5, 50, 50, 95];
/// Average number of cycles per thousand in which a module is reset or its state is cleared. The value is small because
/// clearing takes 256 cycles.
const RESET_PER_MILLE: u32 = 1;
const SHARED_VALUES: usize = 2;

/// Generator of the random values.
pub(super) struct Draws {
    random: ChaCha8Rng,
    cycle: usize,
    /// Number of `Bit` values drawn so far in this cycle.
    bit: usize,
    percents: Vec<u32>,
    shared: BTreeMap<usize, [u64; SHARED_VALUES]>,
    port: &'static str,
}

impl Draws {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            random: ChaCha8Rng::seed_from_u64(seed),
            cycle: 0,
            bit: 0,
            percents: Vec::new(),
            shared: BTreeMap::new(),
            port: "",
        }
    }

    pub(super) fn next_cycle(&mut self) {
        self.cycle += 1;
        self.bit = 0;
        if self.cycle.is_multiple_of(EPISODE_CYCLES) {
            self.percents.clear();
            self.shared.clear();
        }
    }

    /// Draws a value for the port with the given name.
    pub(super) fn port<T: Draw>(&mut self, name: &'static str) -> T {
        self.port = name;
        T::draw(self)
    }

    fn bit(&mut self) -> bool {
        if self.bit == self.percents.len() {
            self.percents.push(PERCENTS[self.random.random_range(0..PERCENTS.len())]);
        }
        let per_mille = match self.port {
            "reset" | "clear" | "sweeping" => RESET_PER_MILLE,
            "axis_resetn" => 1000 - RESET_PER_MILLE,
            _ => 10 * self.percents[self.bit],
        };
        self.bit += 1;
        self.random.random_range(0..1000) < per_mille
    }

    /// Draws a word of up to `bits` significant bits. The number of significant bits is random, because register
    /// addresses are small numbers in wide words.
    fn short_word(&mut self, bits: usize) -> u64 {
        let word: u64 = self.random.random();
        word >> self.random.random_range(64 - bits..64)
    }

    /// Draws a word of `bits` bits, 1 to 64.
    fn word(&mut self, bits: usize) -> u64 {
        let mask = u64::MAX >> (64 - bits);
        let word = match self.random.random_range(0..16) {
            0 => self.random.random(),
            1 => self.short_word(bits),
            2 => [0, u64::MAX, 1 << (bits - 1)][self.random.random_range(0..3)],
            // Registers may hold two fields.
            _ if bits > 16 => self.word(16) | self.word(bits - 16) << 16,
            _ => {
                let fresh = [self.short_word(bits), self.short_word(bits)];
                let shared = self.shared.entry(bits).or_insert(fresh);
                shared[self.random.random_range(0..SHARED_VALUES)]
            }
        };
        word & mask
    }
}

/// A type whose values can be drawn at random.
pub(super) trait Draw: Synth {
    /// Draws one random value.
    fn draw(draws: &mut Draws) -> Self;
}

impl Draw for Bit {
    fn draw(draws: &mut Draws) -> Self {
        draws.bit()
    }
}

impl<const N: usize> Draw for Bits<N> {
    fn draw(draws: &mut Draws) -> Self {
        if N <= 64 {
            return draws.word(N).into();
        }
        let mut bits = Self::default();
        for at in (0..N).step_by(32) {
            let word: Self = draws.word(32.min(N - at)).into();
            bits = bits | word << at as u64;
        }
        bits
    }
}

/// Three of four beats can be the second or the third beat of a Help, because random bytes almost never form a Help.
impl Draw for ControlBeat {
    fn draw(draws: &mut Draws) -> Self {
        let mut data = Halves::draw(draws);
        if draws.random.random_range(0..4) > 0 {
            // Second beat: action and version, no flags, round and index of 24 bits, and a short range.
            data.h5 = 0x0106_u64.into();
            data.h6 = 0_u64.into();
            data.h12 = draws.random.random_range(0..0x100_u64).into();
            data.h14 = draws.random.random_range(0..0x100_u64).into();
            data.h15 = draws.random.random_range(0..200_u64).into();
            // Third beat: the upper half of the length of the range.
            data.h0 = 0_u64.into();
        }
        Self { data, taken: Draw::draw(draws), last: Draw::draw(draws), member: Draw::draw(draws) }
    }
}

/// Implements `Draw` for records by drawing each field.
macro_rules! records {
    ($($record:ident { $($field:ident),* })*) => {
        $(impl Draw for $record {
            fn draw(draws: &mut Draws) -> Self {
                Self { $($field: Draw::draw(draws)),* }
            }
        })*
    };
}

records! {
    Halves { h0, h1, h2, h3, h4, h5, h6, h7, h8, h9, h10, h11, h12, h13, h14, h15 }
    Lanes { l0, l1, l2, l3, l4, l5, l6, l7 }
    Tuser { len, source, destination, rest }
    Flit { data, keep, user, last }
    Kind { sign, subtract, nan, infinite }
    RawSeg { s0, s1, s2, s3 }
    Header { data, control, malformed, known, member, seg, udp_len, value }
    Key { index, round, weight, udp_len, member, known, malformed, forced, only_complete, repeats }
    Entry { open, done, wraps, tag, round, members, total, bank, has_previous, previous_total }
    Late { index, round, member }
    RoundsView { next_round, unfinished0, unfinished1, needed0, needed1, participants0, participants1 }
    HelpRequest { index, round, last, member, wanted }
    Decision { bypass, drop, forced, first, last, address, more, tail, copied, trusted, member }
    Burst { lanes, address, first, last }
    ResultInfo { seg, floats }
    Job { base, last_index, segment_floats, last_floats, id }
    Filter { enable, forwards_strangers, data_tos, control_tos, port, address0, address1 }
    Flags { first, last }
    Relation { same, earlier, follows, begins, before_base, precedes }
    Marks { udp, data_tos, control_tos, port, address, fragment, lengths }
    Weighed { may_begin, takes_part, repeated, bad_weight, over, late, open, refused }
    RawHeader {
        ethertype, version_tos, ip_len, fragment, protocol, address0, address1, frame_len, to_address0,
        to_address1, from_port, to_port, udp_len, seg, value, runt
    }
    Template {
        to_mac0, to_mac1, to_mac2, from_mac0, from_mac1, from_mac2, from_ip0, from_ip1, to_ip0, to_ip1, from_port,
        to_port, tos, ports, checksum
    }
}
