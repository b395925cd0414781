//! What waits to be sent: control packets, a batch of results, a batch of answers to one member.

use core::net::SocketAddrV4;

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use iswitch_protocol::Seg;
use iswitch_protocol::auth::{Direction, NO_SESSION, TagKey};
use iswitch_protocol::limits::{
    DATA_TAG_LEN_BYTES, MAX_CONTROL_LEN_BYTES, MAX_PAYLOAD_LEN_BYTES, MAX_PENDING_CONTROL,
    MAX_SUPERFRAME_LEN_BYTES, SEG_LEN_BYTES, TRAILER_LEN_BYTES,
};
use iswitch_protocol::wire::{Class, ControlRepr, emit_seg};

use super::authentication::{Keys, Seal};
use super::job::Job;
use super::ring::Ring;

/// Number of a port of the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u8);

/// Where a datagram came from, and so where an answer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The port that it arrived on.
    pub port: PortId,
    /// Address of the member.
    pub peer: SocketAddrV4,
    /// Address that the member sent to: the source of the answer.
    pub local: SocketAddrV4,
    /// MAC address of the member, or of the router before it; zero on a UDP port.
    pub peer_mac: [u8; 6],
    /// MAC address that the member sent to; zero on a UDP port.
    pub local_mac: [u8; 6],
}

/// Datagrams to send: one, or a super-frame of datagrams of `stride` bytes of which the last may be shorter.
#[derive(Debug)]
pub struct Transmit<'a> {
    /// Control or data.
    pub class: Class,
    /// UDP payloads, one after the other.
    pub payload: &'a [u8],
    /// Bytes of each payload.
    pub stride: usize,
    recipients: Recipients<'a>,
}

#[derive(Debug)]
enum Recipients<'a> {
    One(&'a Endpoint),
    Members(&'a Job),
}

impl<'a> Transmit<'a> {
    /// The receivers: each gets the whole payload.
    pub fn recipients(&self) -> impl Iterator<Item = &'a Endpoint> {
        let (one, job) = match self.recipients {
            Recipients::One(endpoint) => (Some(endpoint), None),
            Recipients::Members(job) => (None, Some(job)),
        };
        one.into_iter().chain(job.into_iter().flat_map(Job::endpoints))
    }
}

/// Data packets of the same length, one after the other, as one offloaded send takes them.
#[derive(Debug)]
pub(crate) struct Batch {
    /// Of a full super-frame. What is in use is overwritten by each push, so nothing is cleared.
    room: Box<[u8]>,
    /// Bytes in use.
    len: usize,
    stride: usize,
    /// Bytes behind the floats of each packet, which [`Self::sign`] fills in.
    tag_len: usize,
    datagrams: u64,
    /// A shorter packet can only be the last.
    closed: bool,
}

impl Batch {
    pub(crate) fn new() -> Self {
        let room = vec![0; MAX_SUPERFRAME_LEN_BYTES].into_boxed_slice();
        Self { room, len: 0, stride: 0, tag_len: 0, datagrams: 0, closed: false }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.datagrams = 0;
        self.closed = false;
    }

    /// Whether a packet of `len` bytes without its tag still goes into this batch.
    pub(crate) fn has_room(&self, len: usize) -> bool {
        let len = len + self.tag_len;
        self.is_empty() || !self.closed && len <= self.stride && self.len + len <= MAX_SUPERFRAME_LEN_BYTES
    }

    /// Where the floats of the next packet go: who has filled them in appends it by [`Self::push`], and need not if it
    /// turns out that there is none.
    ///
    /// # Panics
    /// If there is no room, see [`Self::has_room`].
    pub(crate) fn next_floats(&mut self, float_bytes: usize) -> &mut [u8] {
        &mut self.room[self.len + SEG_LEN_BYTES..][..float_bytes]
    }

    /// Appends a packet with that Seg; the caller fills in all the floats that it returns, or has done so.
    ///
    /// # Panics
    /// If there is no room, see [`Self::has_room`].
    pub(crate) fn push(&mut self, seg: Seg, float_bytes: usize) -> &mut [u8] {
        let content_len = SEG_LEN_BYTES + float_bytes;
        assert!(self.has_room(content_len));
        let len = content_len + self.tag_len;
        if self.is_empty() {
            self.stride = len;
        }
        self.closed = len < self.stride;
        self.datagrams += 1;
        let start = self.len;
        self.len += len;
        emit_seg(&mut self.room[start..][..content_len], seg)
    }

    /// Fills in the tags of a job that has a key for them.
    pub(crate) fn sign(&mut self, key: Option<&TagKey>) {
        if let Some(key) = key {
            self.room[..self.len].chunks_mut(self.stride).for_each(|packet| key.sign(packet));
        }
    }

    fn transmit<'a>(&'a self, recipients: Recipients<'a>) -> Transmit<'a> {
        Transmit { class: Class::Data, payload: &self.room[..self.len], stride: self.stride, recipients }
    }

    fn aim(&mut self, is_tagged: bool) {
        debug_assert!(self.is_empty());
        self.tag_len = if is_tagged { DATA_TAG_LEN_BYTES } else { 0 };
    }
}

#[derive(Debug)]
struct PendingControl {
    to: Endpoint,
    bytes: [u8; MAX_CONTROL_LEN_BYTES],
    len: usize,
    padding_len: usize,
    trailer: Option<Trailer>,
}

/// What goes into a trailer but its tag.
#[derive(Clone, Copy, Debug)]
struct Trailer {
    job: u32,
    direction: Direction,
    context: u64,
    counter: u64,
}

/// Everything that waits to be sent.
#[derive(Debug)]
pub(crate) struct Outbox {
    control: Ring<PendingControl>,
    /// The control packet that is being sent, and whither.
    sending: Vec<u8>,
    sending_to: Endpoint,
    /// Counter of the last packet that was sent in any session.
    counter: u64,
    /// Results for all members of `results_job`.
    pub(crate) results: Batch,
    results_job: usize,
    /// Results for one member of `answers_job`.
    pub(crate) answers: Batch,
    answers_job: usize,
    answers_to: Endpoint,
    /// What members have summed, for the parent.
    pub(crate) partials: Batch,
    partials_job: usize,
    partials_to: Endpoint,
}

impl Outbox {
    pub(crate) fn new() -> Self {
        let unspecified = SocketAddrV4::new(core::net::Ipv4Addr::UNSPECIFIED, 0);
        let nobody = Endpoint {
            port: PortId::default(),
            peer: unspecified,
            local: unspecified,
            peer_mac: [0; 6],
            local_mac: [0; 6],
        };
        Self {
            control: Ring::with_capacity(MAX_PENDING_CONTROL),
            sending: Vec::with_capacity(MAX_PAYLOAD_LEN_BYTES),
            sending_to: nobody,
            counter: 0,
            results: Batch::new(),
            results_job: 0,
            answers: Batch::new(),
            answers_job: 0,
            answers_to: nobody,
            partials: Batch::new(),
            partials_job: 0,
            partials_to: nobody,
        }
    }

    /// Whether nothing made of data waits to be sent.
    pub(crate) fn is_drained(&self) -> bool {
        self.results.is_empty() && self.answers.is_empty() && self.partials.is_empty()
    }

    /// Whether anything waits to be sent.
    pub(crate) fn has_output(&self) -> bool {
        !self.is_drained() || !self.control.is_empty()
    }

    /// Results go to that job until they are sent.
    pub(crate) fn aim_results(&mut self, job_at: usize, is_tagged: bool) {
        self.results_job = job_at;
        self.results.aim(is_tagged);
    }

    /// Answers go to that member of a job until they are sent.
    pub(crate) fn aim_answers(&mut self, job_at: usize, to: Endpoint, is_tagged: bool) {
        self.answers_job = job_at;
        self.answers_to = to;
        self.answers.aim(is_tagged);
    }

    /// Partial sums of a job go to that parent until they are sent.
    pub(crate) fn aim_partials(&mut self, job_at: usize, to: Endpoint, is_tagged: bool) {
        self.partials_job = job_at;
        self.partials_to = to;
        self.partials.aim(is_tagged);
    }

    /// Queues a control packet, to be followed by `padding_len` zero bytes. False if there is no room.
    pub(super) fn push_control(
        &mut self,
        to: Endpoint,
        packet: &ControlRepr<'_>,
        padding_len: u16,
        seal: Seal,
    ) -> bool {
        let mut bytes = [0; MAX_CONTROL_LEN_BYTES];
        let len = packet.emit(&mut bytes);
        let padding_len = usize::from(padding_len).min(MAX_PAYLOAD_LEN_BYTES - TRAILER_LEN_BYTES - len);
        let trailer = match seal {
            Seal::Bare => None,
            Seal::Echo { job, counter } => {
                Some(Trailer { job, direction: Direction::ToMember, context: NO_SESSION, counter })
            }
            Seal::Session { job, session } => {
                self.counter += 1;
                let counter = self.counter;
                Some(Trailer { job, direction: Direction::ToMember, context: session, counter })
            }
            Seal::Upward { job, context, counter } => {
                Some(Trailer { job, direction: Direction::ToSwitch, context, counter })
            }
        };
        self.control.push(PendingControl { to, bytes, len, padding_len, trailer }).is_ok()
    }

    /// Takes the next control packet out of the queue, so that [`Self::control`] can lend it.
    pub(crate) fn next_control(&mut self, keys: &Keys) -> bool {
        let Some(next) = self.control.pop() else { return false };
        let padded_len = next.len + next.padding_len;
        self.sending.clear();
        self.sending.extend_from_slice(&next.bytes[..next.len]);
        self.sending.resize(padded_len, 0);
        if let Some(Trailer { job, direction, context, counter }) = next.trailer
            && let Some(key) = keys.of(job)
        {
            self.sending.resize(padded_len + TRAILER_LEN_BYTES, 0);
            key.sign(direction, context, counter, &mut self.sending);
        }
        self.sending_to = next.to;
        true
    }

    pub(crate) fn control(&self) -> Transmit<'_> {
        let recipients = Recipients::One(&self.sending_to);
        let payload = &self.sending;
        Transmit { class: Class::Control, payload, stride: payload.len(), recipients }
    }

    pub(crate) fn results<'a>(&'a self, job: &'a Job) -> Transmit<'a> {
        let recipients = Recipients::Members(job);
        self.results.transmit(recipients)
    }

    pub(crate) fn answers(&self) -> Transmit<'_> {
        let recipients = Recipients::One(&self.answers_to);
        self.answers.transmit(recipients)
    }

    pub(crate) fn partials(&self) -> Transmit<'_> {
        let recipients = Recipients::One(&self.partials_to);
        self.partials.transmit(recipients)
    }

    pub(crate) fn partials_len(&self) -> u64 {
        self.partials.datagrams
    }

    pub(crate) fn partials_job(&self) -> usize {
        self.partials_job
    }

    pub(crate) fn results_job(&self) -> usize {
        self.results_job
    }

    pub(crate) fn answers_job(&self) -> usize {
        self.answers_job
    }

    pub(crate) fn results_len(&self) -> u64 {
        self.results.datagrams
    }

    pub(crate) fn answers_len(&self) -> u64 {
        self.answers.datagrams
    }
}
