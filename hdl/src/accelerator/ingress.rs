//! The input stage, which consists of the queue of beats and, in parallel, the queue of headers.

use rust_hdl::prelude::*;

use super::classifier::Classifier;
use super::header_capture::HeaderCapture;
use super::member_table::MemberTable;
use super::records::{Filter, Header};
use crate::axis::Flit;
use crate::primitives::Fifo;

/// Queues the beats of frames and, separately but in the same order, their headers.
#[derive(LogicBlock, Default)]
pub struct Ingress {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub filter: Signal<In, Filter>,
    /// Writes `data` to the member table. Of `word`, which is the low part of the register index, bits 3 to 1 select
    /// the row and bit 0 selects one of its two words.
    pub set_member: Signal<In, Bit>,
    pub word: Signal<In, Bits<4>>,
    pub data: Signal<In, Bits<32>>,
    pub members: Signal<Out, Bits<8>>,
    /// Ports of the board that lead to the members, as bits of `tuser`.
    pub ports: Signal<Out, Bits<8>>,
    pub switches: Signal<Out, Bits<8>>,
    /// Port of the member in row `asker`, one cycle later.
    pub asker: Signal<In, Bits<3>>,
    pub asker_port: Signal<Out, Bits<8>>,
    pub flit: Signal<In, Flit>,
    pub valid: Signal<In, Bit>,
    pub ready: Signal<Out, Bit>,
    pub header: Signal<Out, Header>,
    pub header_valid: Signal<Out, Bit>,
    /// Complement of `header_valid`, from another register.
    pub no_header: Signal<Out, Bit>,
    pub header_pop: Signal<In, Bit>,
    pub oldest: Signal<Out, Flit>,
    pub oldest_valid: Signal<Out, Bit>,
    /// Complement of `oldest_valid`, from another register.
    pub no_oldest: Signal<Out, Bit>,
    pub pop: Signal<In, Bit>,
    /// Queue of beats. It must hold a whole contribution, because the header of a contribution becomes available only
    /// after its last beat.
    beats: Fifo<Flit, 6, 3>,
    /// Copy of the `last` flags in `beats`. It is a separate queue, because decisions depend on these flags and the
    /// read address of the wide queue has a high fan-out.
    lasts: Fifo<Bit, 6, 3>,
    headers: Fifo<Header, 4, 8>,
    capture: HeaderCapture,
    classifier: Classifier,
    member_table: MemberTable,
    /// Set if both queues have room for all beats that can arrive before they are checked again.
    open: DFF<Bit>,
    /// Complement of `open`. The capture thus computes `accept` itself, because the queues load that signal heavily.
    shut: DFF<Bit>,
    accept: Signal<Local, Bit>,
}

impl Logic for Ingress {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, open, shut);
        clock!(self, clock, beats, lasts, headers, capture, classifier, member_table);
        self.beats.reset.next = self.reset.val();
        self.lasts.reset.next = self.reset.val();
        self.headers.reset.next = self.reset.val();
        self.capture.reset.next = self.reset.val();
        self.classifier.reset.next = self.reset.val();
        self.member_table.reset.next = self.reset.val();
        self.open.d.next = self.beats.room.val() & self.headers.room.val() & !self.reset.val();
        self.shut.d.next = !(self.beats.room.val() & self.headers.room.val()) | self.reset.val();
        self.ready.next = self.open.q.val();
        self.accept.next = self.valid.val() & self.open.q.val();
        self.beats.data_in.next = self.flit.val();
        self.beats.push.next = self.accept.val();
        self.beats.pop.next = self.pop.val();
        self.lasts.data_in.next = self.flit.val().last;
        self.lasts.push.next = self.accept.val();
        self.lasts.pop.next = self.pop.val();
        self.oldest.next = self.beats.data_out.val();
        self.oldest.next.last = self.lasts.data_out.val();
        self.oldest_valid.next = self.beats.valid.val();
        self.no_oldest.next = self.beats.empty.val();
        self.capture.flit.next = self.flit.val();
        self.capture.accept.next = self.valid.val() & !self.shut.q.val();
        self.member_table.write.next = self.set_member.val();
        self.member_table.row.next = self.word.val().get_bits::<3>(1);
        self.member_table.writes_port.next = self.word.val().get_bit(0);
        self.member_table.data.next = self.data.val();
        self.member_table.address0.next = self.capture.raw.val().address0;
        self.member_table.address1.next = self.capture.raw.val().address1;
        self.member_table.port.next = self.capture.raw.val().from_port;
        self.members.next = self.member_table.members.val();
        self.ports.next = self.member_table.all_ports.val();
        self.switches.next = self.member_table.switches.val();
        self.member_table.asker.next = self.asker.val();
        self.asker_port.next = self.member_table.asker_port.val();
        self.classifier.filter.next = self.filter.val();
        self.classifier.raw.next = self.capture.raw.val();
        self.classifier.valid.next = self.capture.valid.val();
        self.classifier.whole.next = self.capture.whole.val();
        self.classifier.short.next = self.capture.short.val();
        self.classifier.known.next = self.member_table.known.val();
        self.classifier.member.next = self.member_table.member.val();
        self.headers.data_in.next = self.classifier.header.val();
        self.headers.push.next = self.classifier.push.val();
        self.headers.pop.next = self.header_pop.val();
        self.header.next = self.headers.data_out.val();
        self.header_valid.next = self.headers.valid.val();
        self.no_header.next = self.headers.empty.val();
    }
}
