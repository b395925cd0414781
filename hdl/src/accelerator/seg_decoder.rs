//! Decoding of the Seg in a header, and lookup of the segment's length in the configuration of the job.

use rust_hdl::prelude::*;

use super::records::{Header, Job, Key, RawSeg};

/// Converts the header of a data packet to a request to the Seg counter by decoding its Seg (D-1). Apart from mapping
/// the contribution counts 0 and 65,535 to 1 and 0 (D-3), the block is pure wiring.
#[derive(LogicBlock, Default)]
pub struct SegDecoder {
    pub header: Signal<In, Header>,
    pub key: Signal<Out, Key>,
    raw: Signal<Local, RawSeg>,
    middle: Signal<Local, Bits<16>>,
    index_high: Signal<Local, Bits<24>>,
    round_high: Signal<Local, Bits<24>>,
    total: Signal<Local, Bits<16>>,
}

impl Logic for SegDecoder {
    #[hdl_gen]
    fn update(&mut self) {
        self.raw.next = self.header.val().seg;
        self.middle.next = self.raw.val().s1;
        self.index_high.next = bit_cast::<24, 8>(self.middle.val().get_bits::<8>(0)) << 16;
        self.key.next.index = bit_cast::<24, 16>(self.raw.val().s0) | self.index_high.val();
        self.round_high.next = bit_cast::<24, 16>(self.raw.val().s2) << 8;
        self.key.next.round = bit_cast::<24, 8>(self.middle.val().get_bits::<8>(8)) | self.round_high.val();
        self.total.next = self.raw.val().s3;
        self.key.next.weight = self.total.val();
        if !self.total.val().any() {
            self.key.next.weight = 1.into();
        }
        if self.total.val().all() {
            self.key.next.weight = 0.into();
        }
        self.key.next.udp_len = self.header.val().udp_len;
        self.key.next.member = self.header.val().member;
        self.key.next.known = self.header.val().known;
        self.key.next.malformed = self.header.val().malformed;
        self.key.next.forced = false;
        self.key.next.only_complete = false;
        self.key.next.repeats = false;
    }
}

/// Checks the segment index and the length of a packet against the vector (D-4). The outputs are valid two cycles after
/// `index`.
#[derive(LogicBlock, Default)]
pub struct SegLimits {
    pub clock: Signal<In, Clock>,
    pub job: Signal<In, Job>,
    pub index: Signal<In, Bits<24>>,
    pub udp_len: Signal<In, Bits<16>>,
    pub out_of_range: Signal<Out, Bit>,
    pub wrong_length: Signal<Out, Bit>,
    /// Number of floats in the segment.
    pub floats: Signal<Out, Bits<9>>,
    last_index: Signal<Local, Bits<24>>,
    beyond: DFF<Bit>,
    expected: DFF<Bits<9>>,
    beyond_later: DFF<Bit>,
    expected_later: DFF<Bits<9>>,
    wrong: DFF<Bit>,
    float_bytes: Signal<Local, Bits<16>>,
    expected_len: Signal<Local, Bits<16>>,
}

impl Logic for SegLimits {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, beyond, expected, beyond_later, expected_later, wrong);
        self.last_index.next = self.job.val().last_index;
        self.beyond.d.next = self.index.val() > self.last_index.val();
        self.expected.d.next = self.job.val().segment_floats;
        if self.index.val() == self.last_index.val() {
            self.expected.d.next = self.job.val().last_floats;
        }
        self.float_bytes.next = bit_cast::<16, 9>(self.expected.q.val()) << 2;
        self.expected_len.next = self.float_bytes.val() + 16;
        self.wrong.d.next = self.expected_len.val() != self.udp_len.val();
        self.beyond_later.d.next = self.beyond.q.val();
        self.expected_later.d.next = self.expected.q.val();
        self.out_of_range.next = self.beyond_later.q.val();
        self.wrong_length.next = self.wrong.q.val();
        self.floats.next = self.expected_later.q.val();
    }
}
