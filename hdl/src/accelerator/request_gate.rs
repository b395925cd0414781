//! Gate for the requests without a frame: segments that the host finishes, and results that are sent again.

use rust_hdl::prelude::*;

use super::records::Key;

/// Offers one request at a time to the Seg counter, and only while the output is free. The sum of any other request
/// would have to wait, and would delay the frames behind it. Requests of the host take precedence.
#[derive(LogicBlock, Default)]
pub struct RequestGate {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    /// A result that is completed now can be sent immediately.
    pub free: Signal<In, Bit>,
    /// The request of the host changes in the next cycle, so that the current one must not be taken any more.
    pub withdraw: Signal<In, Bit>,
    pub finish_key: Signal<In, Key>,
    pub finish_valid: Signal<In, Bit>,
    pub finish_taken: Signal<Out, Bit>,
    pub repeat_key: Signal<In, Key>,
    pub repeat_valid: Signal<In, Bit>,
    pub repeat_taken: Signal<Out, Bit>,
    /// Request, present if `valid` is set and consumed by `advance`.
    pub key: Signal<Out, Key>,
    pub valid: Signal<Out, Bit>,
    pub advance: Signal<In, Bit>,
    offers: DFF<Bit>,
    /// The offered request is `repeat_key`.
    repeats: DFF<Bit>,
    /// Number of cycles until `free` reflects the last request that was taken.
    pause: DFF<Bits<4>>,
    /// The request that is offered, or any request if none is offered, is valid.
    waits: Signal<Local, Bit>,
}

impl Logic for RequestGate {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, offers, repeats, pause);
        self.key.next = self.finish_key.val();
        if self.repeats.q.val() {
            self.key.next = self.repeat_key.val();
        }
        self.valid.next = self.offers.q.val();
        self.finish_taken.next = self.advance.val() & !self.repeats.q.val();
        self.repeat_taken.next = self.advance.val() & self.repeats.q.val();
        self.waits.next = self.finish_valid.val() | self.repeat_valid.val();
        if self.offers.q.val() {
            self.waits.next = self.finish_valid.val();
            if self.repeats.q.val() {
                self.waits.next = self.repeat_valid.val();
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
    }
}
