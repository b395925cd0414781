//! Capture of the header fields in the first two beats of a frame.

use rust_hdl::prelude::*;

use super::records::RawSeg;
use crate::axis::{Flit, Halves, Tuser};

/// Raw header fields, as 16-bit half-words in stream order: the first byte is in the low bits.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct RawHeader {
    pub ethertype: Bits<16>,
    /// Low byte: version and header length; high byte: ToS.
    pub version_tos: Bits<16>,
    pub ip_len: Bits<16>,
    pub fragment: Bits<16>,
    /// Low byte: time to live; high byte: protocol.
    pub protocol: Bits<16>,
    pub address0: Bits<16>,
    pub address1: Bits<16>,
    pub frame_len: Bits<16>,
    pub to_address0: Bits<16>,
    pub to_address1: Bits<16>,
    pub from_port: Bits<16>,
    pub to_port: Bits<16>,
    pub udp_len: Bits<16>,
    /// Bytes 42 to 49 of the frame.
    pub seg: RawSeg,
    /// Bytes 54 and 55 of the frame.
    pub value: Bits<16>,
    /// Whether the frame has only one beat. If it does, only the fields of the first beat are valid.
    pub runt: Bit,
}

/// Captures the header fields of each frame while its beats enter the input queue.
#[derive(LogicBlock, Default)]
pub struct HeaderCapture {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// Beat on the input stream, transferred if `accept` is set.
    pub flit: Signal<In, Flit>,
    pub accept: Signal<In, Bit>,
    /// Header fields of a frame, valid only in the cycle in which `valid` is set.
    pub raw: Signal<Out, RawHeader>,
    pub valid: Signal<Out, Bit>,
    /// High for one cycle when the frame has reached the length in `tuser` or, if `short` is set, has ended before it.
    /// The pulse comes in the cycle of `valid` or later, but before `raw` changes to the next frame.
    pub whole: Signal<Out, Bit>,
    pub short: Signal<Out, Bit>,
    beat: DFF<Bits<2>>,
    held: DFF<RawHeader>,
    complete: DFF<Bit>,
    /// Number of beats that are missing until the frame reaches the length in `tuser`. `rest` is the index of the last
    /// valid byte in the last of these beats.
    left: DFF<Bits<11>>,
    rest: DFF<Bits<5>>,
    ends: DFF<Bit>,
    lacks: DFF<Bit>,
    before_last: Signal<Local, Bits<16>>,
    from_rest: Signal<Local, Bits<32>>,
    is_full: Signal<Local, Bit>,
    arrives: Signal<Local, Bit>,
    data: Signal<Local, Halves>,
    user: Signal<Local, Tuser>,
    seg: Signal<Local, RawSeg>,
}

impl Logic for HeaderCapture {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, beat, held, complete, left, rest, ends, lacks);
        self.data.next = self.flit.val().data;
        self.user.next = self.flit.val().user;
        self.seg.next.s0 = self.data.val().h5;
        self.seg.next.s1 = self.data.val().h6;
        self.seg.next.s2 = self.data.val().h7;
        self.seg.next.s3 = self.data.val().h8;
        self.complete.d.next = false;
        if self.accept.val() & (self.beat.q.val() == 0) {
            self.beat.d.next = 1.into();
            self.complete.d.next = self.flit.val().last;
        }
        // Until the beat is accepted, the captured fields are replaced in every cycle.
        if self.beat.q.val() == 0 {
            self.held.d.next.runt = self.flit.val().last;
            self.held.d.next.ethertype = self.data.val().h6;
            self.held.d.next.version_tos = self.data.val().h7;
            self.held.d.next.ip_len = self.data.val().h8;
            self.held.d.next.fragment = self.data.val().h10;
            self.held.d.next.protocol = self.data.val().h11;
            self.held.d.next.address0 = self.data.val().h13;
            self.held.d.next.address1 = self.data.val().h14;
            self.held.d.next.frame_len = self.user.val().len;
            self.held.d.next.to_address0 = self.data.val().h15;
        }
        if self.accept.val() & (self.beat.q.val() == 1) {
            self.beat.d.next = 2.into();
            self.complete.d.next = true;
        }
        if self.beat.q.val() == 1 {
            self.held.d.next.to_address1 = self.data.val().h0;
            self.held.d.next.from_port = self.data.val().h1;
            self.held.d.next.to_port = self.data.val().h2;
            self.held.d.next.udp_len = self.data.val().h3;
            self.held.d.next.seg = self.seg.val();
            self.held.d.next.value = self.data.val().h11;
        }
        self.before_last.next = self.user.val().len - 1;
        // The last beat is valid up to and including the byte at index `rest`.
        self.from_rest.next = self.flit.val().keep >> bit_cast::<32, 5>(self.rest.q.val());
        self.is_full.next = self.from_rest.val().get_bit(0) | !self.flit.val().last;
        self.arrives.next = self.flit.val().last | (self.left.q.val() == 1);
        self.ends.d.next = false;
        self.lacks.d.next = (self.left.q.val() > 1) | !self.is_full.val();
        if self.accept.val() & self.left.q.val().any() {
            self.left.d.next = self.left.q.val() - 1;
        }
        if self.beat.q.val() == 0 {
            self.left.d.next = self.before_last.val().get_bits::<11>(5);
            self.rest.d.next = self.before_last.val().get_bits::<5>(0);
            self.ends.d.next = self.accept.val() & self.flit.val().last;
        }
        if self.accept.val() & (self.beat.q.val() == 1) {
            self.ends.d.next = self.arrives.val() | !self.left.q.val().any();
        }
        if self.accept.val() & self.beat.q.val().get_bit(1) & self.left.q.val().any() {
            self.ends.d.next = self.arrives.val();
        }
        if self.accept.val() & self.flit.val().last {
            self.beat.d.next = 0.into();
        }
        if self.reset.val() {
            self.beat.d.next = 0.into();
            self.complete.d.next = false;
            self.ends.d.next = false;
        }
        self.whole.next = self.ends.q.val();
        self.short.next = self.lacks.q.val();
        self.raw.next = self.held.q.val();
        self.valid.next = self.complete.q.val();
    }
}
