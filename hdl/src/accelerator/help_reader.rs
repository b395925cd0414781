//! Reader of Help packets, which are forwarded to the host and also answered in hardware (requirement R-4).

use rust_hdl::prelude::*;

use super::classifier::SwapBytes;
use super::records::{ControlBeat, HelpRequest, Job};
use crate::axis::Halves;

/// Reads the beats of the control packets that are forwarded, and extracts the request of each Help.
///
/// A request names at most 128 segments; their part of the bitmap is in the third beat.
#[derive(LogicBlock, Default)]
pub struct HelpReader {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub job: Signal<In, Job>,
    pub halted: Signal<In, Bit>,
    pub control: Signal<In, ControlBeat>,
    /// Request of a Help, valid if `push` is set.
    pub request: Signal<Out, HelpRequest>,
    pub push: Signal<Out, Bit>,
    /// Index of the beat in its frame; 3 for all beats after the third.
    at: DFF<Bits<2>>,
    is_help: DFF<Bit>,
    round: DFF<Bits<24>>,
    first: DFF<Bits<24>>,
    count: DFF<Bits<16>>,
    udp_len: DFF<Bits<16>>,
    wanted: DFF<Bits<128>>,
    asker: DFF<Bits<3>>,
    /// Set in the two cycles after the beat that completes a Help. In the second cycle, `is_allowed` shows whether the
    /// Help is well-formed.
    complete: DFF<Bit>,
    was_complete: DFF<Bit>,
    is_allowed: DFF<Bit>,
    /// Length of the bitmap in bytes, negative if the packet is too short.
    room: DFF<Bits<17>>,
    /// Index of the last segment of the range.
    range_end: DFF<Bits<25>>,
    beat: Signal<Local, Halves>,
    swapped: SwapBytes,
    half: [Signal<Local, Bits<128>>; 8],
    job_id: Signal<Local, Bits<32>>,
    packet_id: Signal<Local, Bits<32>>,
    high: Signal<Local, Bits<24>>,
    other_high: Signal<Local, Bits<24>>,
    middle: Signal<Local, Bits<16>>,
    other_middle: Signal<Local, Bits<16>>,
    before_last: Signal<Local, Bits<16>>,
    bits: Signal<Local, Bits<20>>,
    allowed: Signal<Local, Bit>,
}

impl Logic for HelpReader {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, at, is_help, round, first, count, udp_len, wanted, asker);
        dff_setup!(self, clock, complete, was_complete, is_allowed, room, range_end);
        self.beat.next = self.control.val().data;
        self.job_id.next = self.job.val().id;
        self.packet_id.next =
            bit_cast::<32, 16>(self.beat.val().h7) | (bit_cast::<32, 16>(self.beat.val().h8) << 16);
        self.middle.next = self.beat.val().h12;
        self.other_middle.next = self.beat.val().h14;
        self.high.next = bit_cast::<24, 8>(self.middle.val().get_bits::<8>(0)) << 16;
        self.other_high.next = bit_cast::<24, 8>(self.other_middle.val().get_bits::<8>(0)) << 16;
        self.swapped.half.next = self.beat.val().h3;
        // The fields of the second beat are kept until the next frame.
        if self.at.q.val() == 1 {
            // Action and version, no flags, the number of the job; rounds and indices have 24 bits.
            self.is_help.d.next = (self.beat.val().h5 == 0x0106)
                & (self.beat.val().h6 == 0)
                & (self.packet_id.val() == self.job_id.val())
                & !self.middle.val().get_bits::<8>(8).any()
                & !self.other_middle.val().get_bits::<8>(8).any();
            self.round.d.next = bit_cast::<24, 16>(self.beat.val().h11) | self.high.val();
            self.first.d.next = bit_cast::<24, 16>(self.beat.val().h13) | self.other_high.val();
            self.count.d.next = self.beat.val().h15;
            self.udp_len.d.next = self.swapped.swapped.val();
            self.asker.d.next = self.control.val().member;
        }
        self.half[0].next = bit_cast::<128, 16>(self.beat.val().h1);
        self.half[1].next = bit_cast::<128, 16>(self.beat.val().h2) << 16;
        self.half[2].next = bit_cast::<128, 16>(self.beat.val().h3) << 32;
        self.half[3].next = bit_cast::<128, 16>(self.beat.val().h4) << 48;
        self.half[4].next = bit_cast::<128, 16>(self.beat.val().h5) << 64;
        self.half[5].next = bit_cast::<128, 16>(self.beat.val().h6) << 80;
        self.half[6].next = bit_cast::<128, 16>(self.beat.val().h7) << 96;
        self.half[7].next = bit_cast::<128, 16>(self.beat.val().h8) << 112;
        if self.at.q.val() == 2 {
            self.wanted.d.next = self.half[0].val()
                | self.half[1].val()
                | self.half[2].val()
                | self.half[3].val()
                | self.half[4].val()
                | self.half[5].val()
                | self.half[6].val()
                | self.half[7].val();
        }
        self.complete.d.next = self.control.val().taken
            & (self.at.q.val() == 2)
            & (self.beat.val().h0 == 0)
            & self.is_help.q.val()
            & self.count.q.val().any()
            & !self.reset.val();
        if self.control.val().taken {
            if !self.at.q.val().all() {
                self.at.d.next = self.at.q.val() + 1;
            }
            if self.control.val().last {
                self.at.d.next = 0.into();
            }
        }
        if self.reset.val() {
            self.at.d.next = 0.into();
        }
        // The UDP header, the header of the packet and the range take 32 bytes.
        self.room.d.next = bit_cast::<17, 16>(self.udp_len.q.val()) - 32;
        self.before_last.next = self.count.q.val() - 1;
        self.range_end.d.next =
            bit_cast::<25, 24>(self.first.q.val()) + bit_cast::<25, 16>(self.before_last.val());
        self.bits.next = bit_cast::<20, 17>(self.room.q.val()) << 3;
        self.allowed.next = !self.halted.val()
            & !self.room.q.val().get_bit(16)
            & (self.bits.val() >= bit_cast::<20, 16>(self.count.q.val()))
            & (self.count.q.val() <= 1024)
            & (self.range_end.q.val() <= bit_cast::<25, 24>(self.job.val().last_index));
        self.is_allowed.d.next = self.allowed.val();
        self.was_complete.d.next = self.complete.q.val() & !self.reset.val();
        self.push.next = self.was_complete.q.val() & self.is_allowed.q.val();
        self.request.next.index = self.first.q.val();
        self.request.next.round = self.round.q.val();
        self.request.next.last = self.before_last.val().get_bits::<7>(0);
        if self.before_last.val().get_bits::<9>(7).any() {
            self.request.next.last = 127.into();
        }
        self.request.next.member = self.asker.q.val();
        self.request.next.wanted = self.wanted.q.val();
    }
}
