//! Classification of frames as data packets of the job, control packets of the job, or ordinary traffic (W-1).

use rust_hdl::prelude::*;

use super::header_capture::RawHeader;
use super::records::{Filter, Header};

/// Results of the checks on the header fields of a frame.
#[derive(Default, Copy, Clone, PartialEq, Debug, LogicStruct)]
pub struct Marks {
    /// Whether the frame has at least two beats and carries UDP over IPv4 without options.
    pub udp: Bit,
    pub data_tos: Bit,
    pub control_tos: Bit,
    pub port: Bit,
    /// Whether the destination IPv4 address is that of the switch.
    pub address: Bit,
    pub fragment: Bit,
    /// Whether the UDP, IPv4 and frame lengths are consistent, and the frame is short enough for the queue of beats.
    pub lengths: Bit,
}

/// Converts raw header fields into a [`Header`], with a latency of one cycle unless the header is held back.
///
/// The header of a data or control packet is held back until all bytes of the frame have arrived. A frame that is
/// shorter than `tuser` specifies is therefore recognised before it is summed.
#[derive(LogicBlock, Default)]
pub struct Classifier {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub filter: Signal<In, Filter>,
    pub raw: Signal<In, RawHeader>,
    pub valid: Signal<In, Bit>,
    /// High for one cycle when the frame described by `raw` has arrived; see
    /// [`super::header_capture::HeaderCapture::whole`].
    pub whole: Signal<In, Bit>,
    pub short: Signal<In, Bit>,
    /// Result of the lookup in the member table, valid one cycle after `raw`.
    pub known: Signal<In, Bit>,
    pub member: Signal<In, Bits<3>>,
    pub header: Signal<Out, Header>,
    pub push: Signal<Out, Bit>,
    held: DFF<RawHeader>,
    marks: DFF<Marks>,
    checked: DFF<Bit>,
    /// `whole`, delayed by one cycle. If `was_short` is also set, the frame is shorter than `tuser` specifies.
    arrived: DFF<Bit>,
    was_short: DFF<Bit>,
    /// Set while the header of the current frame is held back.
    waiting: DFF<Bit>,
    waits: Signal<Local, Bit>,
    ip_len: Signal<Local, Bits<16>>,
    udp_len: Signal<Local, Bits<16>>,
    version_tos: Signal<Local, Bits<16>>,
    fragment: Signal<Local, Bits<16>>,
    protocol: Signal<Local, Bits<16>>,
    tos: Signal<Local, Bits<6>>,
    data_byte: Signal<Local, Bits<8>>,
    control_byte: Signal<Local, Bits<8>>,
    with_ip: Signal<Local, Bits<17>>,
    with_ethernet: Signal<Local, Bits<17>>,
    wide_ip_len: Signal<Local, Bits<17>>,
    frame_len: Signal<Local, Bits<17>>,
    swapped: SwapBytes,
    udp_swapped: SwapBytes,
    held_swapped: SwapBytes,
    ours: Signal<Local, Bit>,
    is_data: Signal<Local, Bit>,
    is_control: Signal<Local, Bit>,
}

impl Logic for Classifier {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, held, marks, checked, arrived, was_short, waiting);
        self.held.d.next = self.raw.val();
        self.checked.d.next = self.valid.val() & !self.reset.val();
        self.swapped.half.next = self.raw.val().ip_len;
        self.udp_swapped.half.next = self.raw.val().udp_len;
        self.ip_len.next = self.swapped.swapped.val();
        self.udp_len.next = self.udp_swapped.swapped.val();
        self.version_tos.next = self.raw.val().version_tos;
        self.protocol.next = self.raw.val().protocol;
        self.fragment.next = self.raw.val().fragment;
        self.tos.next = self.version_tos.val().get_bits::<6>(10);
        self.data_byte.next = self.filter.val().data_tos;
        self.control_byte.next = self.filter.val().control_tos;
        self.wide_ip_len.next = bit_cast::<17, 16>(self.ip_len.val());
        self.frame_len.next = bit_cast::<17, 16>(self.raw.val().frame_len);
        self.with_ip.next = bit_cast::<17, 16>(self.udp_len.val()) + 20;
        self.with_ethernet.next = self.wide_ip_len.val() + 14;
        self.marks.d.next.udp = !self.raw.val().runt
            & (self.raw.val().ethertype == 0x0008)
            & (self.version_tos.val().get_bits::<8>(0) == 0x45)
            & (self.protocol.val().get_bits::<8>(8) == 17);
        self.marks.d.next.data_tos = self.tos.val() == self.data_byte.val().get_bits::<6>(2);
        self.marks.d.next.control_tos = self.tos.val() == self.control_byte.val().get_bits::<6>(2);
        self.marks.d.next.port = self.raw.val().to_port == self.filter.val().port;
        self.marks.d.next.address = (self.raw.val().to_address0 == self.filter.val().address0)
            & (self.raw.val().to_address1 == self.filter.val().address1);
        // A fragment has the more-fragments bit or an offset; the don't-fragment bit is not tested.
        self.marks.d.next.fragment =
            self.fragment.val().get_bits::<6>(0).any() | self.fragment.val().get_bits::<8>(8).any();
        self.marks.d.next.lengths = (self.with_ip.val() == self.wide_ip_len.val())
            & (self.frame_len.val() >= self.with_ethernet.val())
            & (self.frame_len.val() <= 1536);

        self.ours.next = self.filter.val().enable & self.marks.q.val().udp & self.marks.q.val().address;
        self.is_data.next = self.ours.val()
            & self.marks.q.val().data_tos
            & (self.marks.q.val().port | self.marks.q.val().fragment);
        self.is_control.next = self.ours.val()
            & self.marks.q.val().control_tos
            & self.marks.q.val().port
            & !self.marks.q.val().fragment;
        self.header.next.data =
            self.is_data.val() & (self.known.val() | !self.filter.val().forwards_strangers);
        self.header.next.control = self.is_control.val();
        self.header.next.malformed =
            self.marks.q.val().fragment | !self.marks.q.val().lengths | self.was_short.q.val();
        self.header.next.known = self.known.val();
        self.header.next.member = self.member.val();
        self.header.next.seg = self.held.q.val().seg;
        self.held_swapped.half.next = self.held.q.val().udp_len;
        self.header.next.udp_len = self.held_swapped.swapped.val();
        self.header.next.value = self.held.q.val().value;
        self.arrived.d.next = self.whole.val();
        self.was_short.d.next = self.short.val();
        self.waits.next =
            (self.is_data.val() | self.is_control.val()) & self.marks.q.val().lengths & !self.arrived.q.val();
        self.push.next =
            (self.checked.q.val() & !self.waits.val()) | (self.waiting.q.val() & self.arrived.q.val());
        self.waiting.d.next =
            (self.checked.q.val() & self.waits.val()) | (self.waiting.q.val() & !self.arrived.q.val());
        if self.reset.val() {
            self.waiting.d.next = false;
        }
    }
}

/// Swaps the bytes of a 16-bit half-word, which converts it to or from network byte order. The block is pure wiring.
#[derive(LogicBlock, Default)]
pub struct SwapBytes {
    pub half: Signal<In, Bits<16>>,
    pub swapped: Signal<Out, Bits<16>>,
    low: Signal<Local, Bits<16>>,
    high: Signal<Local, Bits<16>>,
}

impl Logic for SwapBytes {
    #[hdl_gen]
    fn update(&mut self) {
        self.low.next = self.half.val() >> 8;
        self.high.next = self.half.val() << 8;
        self.swapped.next = self.low.val() | self.high.val();
    }
}
