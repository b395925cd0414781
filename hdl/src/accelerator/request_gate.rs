//! Gate for the requests without a frame: segments that the host finishes, and results that are retransmitted.

use rust_hdl::prelude::*;

use super::records::Key;

/// Offers one request at a time to the Seg counter. Requests of the host take precedence.
///
/// While the output is not free, no request is offered, because its sum would have to wait for the output and would
/// stall the frames behind it. A request for a result is offered only while no frame waits for a decision, because
/// short frames leave little time between their decisions, even if they are not accepted.
#[derive(LogicBlock, Default)]
pub struct RequestGate {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// High while the output could send a new result immediately.
    pub free: Signal<In, Bit>,
    /// High while no frame waits for a decision.
    pub quiet: Signal<In, Bit>,
    /// High in the cycle before the request from the host changes. The current request is then no longer offered.
    pub withdraw: Signal<In, Bit>,
    pub finish_key: Signal<In, Key>,
    pub finish_valid: Signal<In, Bit>,
    pub finish_taken: Signal<Out, Bit>,
    pub repeat_key: Signal<In, Key>,
    pub repeat_valid: Signal<In, Bit>,
    pub repeat_taken: Signal<Out, Bit>,
    /// Request, valid while `valid` is set and consumed by `advance`.
    pub key: Signal<Out, Key>,
    pub valid: Signal<Out, Bit>,
    /// Complement of `valid`, from a register of its own because it has a high fan-out.
    pub idle: Signal<Out, Bit>,
    pub advance: Signal<In, Bit>,
    offers: DFF<Bit>,
    rests: DFF<Bit>,
    /// Whether the offered request is `repeat_key`.
    repeats: DFF<Bit>,
    /// Remaining cycles in which no request is offered, until `free` reflects the last request that was taken.
    pause: DFF<Bits<4>>,
    /// Whether the offered request is still valid or, if none is offered, whether any request is valid.
    waits: Signal<Local, Bit>,
    repeat_waits: Signal<Local, Bit>,
}

impl Logic for RequestGate {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, offers, rests, repeats, pause);
        self.key.next = self.finish_key.val();
        if self.repeats.q.val() {
            self.key.next = self.repeat_key.val();
        }
        self.valid.next = self.offers.q.val();
        self.idle.next = self.rests.q.val();
        self.finish_taken.next = self.advance.val() & !self.repeats.q.val();
        self.repeat_taken.next = self.advance.val() & self.repeats.q.val();
        self.repeat_waits.next = self.repeat_valid.val() & self.quiet.val();
        self.waits.next = self.finish_valid.val() | self.repeat_waits.val();
        if self.offers.q.val() {
            self.waits.next = self.finish_valid.val();
            if self.repeats.q.val() {
                self.waits.next = self.repeat_waits.val();
            }
        } else {
            self.repeats.d.next = !self.finish_valid.val();
        }
        self.offers.d.next = self.waits.val() & self.free.val() & !self.pause.q.val().any();
        if self.pause.q.val().any() {
            self.pause.d.next = self.pause.q.val() - 1;
        }
        if self.advance.val() {
            self.offers.d.next = false;
            self.pause.d.next = 15.into();
        }
        if self.withdraw.val() {
            self.offers.d.next = false;
        }
        if self.reset.val() {
            self.offers.d.next = false;
            self.pause.d.next = 0.into();
        }
        self.rests.d.next = !self.offers.d.val();
    }
}
