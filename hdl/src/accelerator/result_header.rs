//! Generation of the first 50 bytes of a result, which are its headers and its Seg.

use rust_hdl::prelude::*;

use super::classifier::SwapBytes;
use super::records::{ResultInfo, Template};
use crate::axis::Halves;

/// Computes the header and the length of a result. The outputs are valid once `info` has been stable for four cycles.
///
/// A result is a UDP packet over IPv4, with the DF flag set and a valid IPv4 header checksum. The UDP checksum is
/// omitted, as RFC 768 permits, because the header is sent before all sums are known.
#[derive(LogicBlock, Default)]
pub struct ResultHeader {
    pub clock: Signal<In, Clock>,
    pub template: Signal<In, Template>,
    pub info: Signal<In, ResultInfo>,
    /// Bytes 0 to 31 of the header. Bytes 32 to 49 are in `h7` to `h15` of `tail`, the position of the last 18 bytes of
    /// a burst.
    pub head: Signal<Out, Halves>,
    pub tail: Signal<Out, Halves>,
    /// Length of the frame, in bytes. `keep` marks the valid bytes of its last beat.
    pub frame_len: Signal<Out, Bits<16>>,
    pub keep: Signal<Out, Bits<32>>,
    ip_swap: SwapBytes,
    udp_swap: SwapBytes,
    float_bytes: Signal<Local, Bits<16>>,
    ip_len: DFF<Bits<16>>,
    udp_len: DFF<Bits<16>>,
    natural_len: DFF<Bits<16>>,
    padded_len: DFF<Bits<16>>,
    sum: Signal<Local, Bits<17>>,
    raw_sum: DFF<Bits<17>>,
    carry: Signal<Local, Bits<16>>,
    low_sum: Signal<Local, Bits<16>>,
    folded: DFF<Bits<16>>,
    rest: Signal<Local, Bits<5>>,
    ones: Signal<Local, Bits<32>>,
    outside: DFF<Bits<32>>,
    tos_high: Signal<Local, Bits<16>>,
    seg: Signal<Local, super::records::RawSeg>,
}

impl Logic for ResultHeader {
    #[hdl_gen]
    #[rustfmt::skip] // one line for each half
    fn update(&mut self) {
        dff_setup!(self, clock, ip_len, udp_len, natural_len, padded_len, raw_sum, folded, outside);
        self.float_bytes.next = bit_cast::<16, 9>(self.info.val().floats) << 2;
        self.ip_len.d.next = self.float_bytes.val() + 36;
        self.udp_len.d.next = self.float_bytes.val() + 16;
        self.natural_len.d.next = self.float_bytes.val() + 50;
        self.padded_len.d.next = self.natural_len.q.val();
        if self.natural_len.q.val() < 60 { self.padded_len.d.next = 60.into(); }
        self.ip_swap.half.next = self.ip_len.q.val();
        self.udp_swap.half.next = self.udp_len.q.val();
        // A one's-complement sum is independent of the byte order.
        self.sum.next = bit_cast::<17, 16>(self.template.val().checksum)
            + bit_cast::<17, 16>(self.ip_swap.swapped.val());
        self.raw_sum.d.next = self.sum.val();
        self.low_sum.next = self.raw_sum.q.val().get_bits::<16>(0);
        self.carry.next = bit_cast::<16, 1>(self.raw_sum.q.val().get_bits::<1>(16));
        self.folded.d.next = self.low_sum.val() + self.carry.val();
        self.rest.next = self.padded_len.q.val().get_bits::<5>(0);
        self.ones.next = 0xffff_ffff_u64.into();
        self.outside.d.next = 0.into();
        for i in 1..32 { if self.rest.val() == i { self.outside.d.next = self.ones.val() << i; } }
        self.keep.next = !self.outside.q.val();
        self.frame_len.next = self.padded_len.q.val();
        self.tos_high.next = bit_cast::<16, 8>(self.template.val().tos) << 8;
        self.head.next.h0 = self.template.val().to_mac0;
        self.head.next.h1 = self.template.val().to_mac1;
        self.head.next.h2 = self.template.val().to_mac2;
        self.head.next.h3 = self.template.val().from_mac0;
        self.head.next.h4 = self.template.val().from_mac1;
        self.head.next.h5 = self.template.val().from_mac2;
        self.head.next.h6 = 0x0008.into();
        self.head.next.h7 = self.tos_high.val() | 0x45;
        self.head.next.h8 = self.ip_swap.swapped.val();
        self.head.next.h9 = 0.into();
        self.head.next.h10 = 0x0040.into();
        self.head.next.h11 = 0x1140.into();
        self.head.next.h12 = !self.folded.q.val();
        self.head.next.h13 = self.template.val().from_ip0;
        self.head.next.h14 = self.template.val().from_ip1;
        self.head.next.h15 = self.template.val().to_ip0;
        self.seg.next = self.info.val().seg;
        self.tail.next.h0 = 0.into();
        self.tail.next.h1 = 0.into();
        self.tail.next.h2 = 0.into();
        self.tail.next.h3 = 0.into();
        self.tail.next.h4 = 0.into();
        self.tail.next.h5 = 0.into();
        self.tail.next.h6 = 0.into();
        self.tail.next.h7 = self.template.val().to_ip1;
        self.tail.next.h8 = self.template.val().from_port;
        self.tail.next.h9 = self.template.val().to_port;
        self.tail.next.h10 = self.udp_swap.swapped.val();
        self.tail.next.h11 = 0.into();
        self.tail.next.h12 = self.seg.val().s0;
        self.tail.next.h13 = self.seg.val().s1;
        self.tail.next.h14 = self.seg.val().s2;
        self.tail.next.h15 = self.seg.val().s3;
    }
}
