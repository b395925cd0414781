//! Decoder for SetH, Halt and Reset, the control packets that the hardware executes, in order with the data packets
//! around them.
//!
//! Each of these packets is also forwarded to the host, which acknowledges it. After a Reset, the job stays halted
//! until the host has cleared the sums and set the new first round. The host alone handles all other control packets,
//! such as Join, Leave and Help.

use rust_hdl::prelude::*;

use super::records::{Header, Job};

/// Holds the threshold H for future rounds, and the flag that halts the job.
#[derive(LogicBlock, Default)]
pub struct ControlDecoder {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub job: Signal<In, Job>,
    /// Header of the control packet that the Seg counter forwards in this cycle, valid if `strobe` is set.
    pub header: Signal<In, Header>,
    pub strobe: Signal<In, Bit>,
    /// Register writes by the host: `set_threshold` loads `threshold_in`, and `set_halted` loads `halted_in`.
    pub set_threshold: Signal<In, Bit>,
    pub threshold_in: Signal<In, Bits<8>>,
    /// If set together with `set_threshold`, the new H also applies to the open rounds.
    pub fix_in: Signal<In, Bit>,
    pub fixes: Signal<Out, Bit>,
    pub set_halted: Signal<In, Bit>,
    pub halted_in: Signal<In, Bit>,
    pub threshold: Signal<Out, Bits<8>>,
    pub halted: Signal<Out, Bit>,
    held: DFF<Header>,
    pending: DFF<Bit>,
    threshold_now: DFF<Bits<8>>,
    halted_now: DFF<Bit>,
    fixes_now: DFF<Bit>,
    raw: Signal<Local, super::records::RawSeg>,
    start: Signal<Local, Bits<16>>,
    job_high: Signal<Local, Bits<32>>,
    job_id: Signal<Local, Bits<32>>,
    value: Signal<Local, Bits<16>>,
    trusted: Signal<Local, Bit>,
    in_range: Signal<Local, Bit>,
}

impl Logic for ControlDecoder {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, held, pending, threshold_now, halted_now, fixes_now);
        self.held.d.next = self.header.val();
        self.pending.d.next = self.strobe.val() & !self.reset.val();
        self.raw.next = self.held.q.val().seg;
        // Fields: action in the low byte, version in the high byte, then the flags, then the job.
        self.start.next = self.raw.val().s0;
        self.job_high.next = bit_cast::<32, 16>(self.raw.val().s3) << 16;
        self.job_id.next = bit_cast::<32, 16>(self.raw.val().s2) | self.job_high.val();
        self.value.next = self.held.q.val().value;
        self.trusted.next = self.pending.q.val()
            & self.held.q.val().known
            & !self.held.q.val().malformed
            & (self.raw.val().s1 == 0)
            & (self.job_id.val() == self.job.val().id);
        self.in_range.next = (self.value.val() <= 64) & self.value.val().any();
        if self.trusted.val()
            & (self.start.val() == 0x0104)
            & (self.held.q.val().udp_len == 22)
            & self.in_range.val()
        {
            self.threshold_now.d.next = self.value.val().get_bits::<8>(0);
        }
        if self.trusted.val()
            & (((self.start.val() == 0x0103) & (self.held.q.val().udp_len == 32))
                | ((self.start.val() == 0x0107) & (self.held.q.val().udp_len == 20)))
        {
            self.halted_now.d.next = true;
        }
        if self.set_threshold.val() {
            self.threshold_now.d.next = self.threshold_in.val();
        }
        if self.set_halted.val() {
            self.halted_now.d.next = self.halted_in.val();
        }
        if self.reset.val() {
            self.halted_now.d.next = true;
            self.threshold_now.d.next = 0.into();
        }
        // `fixes` follows one cycle after H is set.
        self.fixes_now.d.next = self.set_threshold.val() & self.fix_in.val();
        self.fixes.next = self.fixes_now.q.val();
        self.threshold.next = self.threshold_now.q.val();
        self.halted.next = self.halted_now.q.val();
    }
}
