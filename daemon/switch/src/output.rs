//! Pending output: control packets, a batch of results for all members of a job, a batch of repeated results for one
//! member, and a batch of partial sums for the parent.

use core::net::{Ipv4Addr, SocketAddrV4};

use alloc::vec::Vec;

use iswitch_protocol::auth::{Direction, NO_SESSION};
use iswitch_protocol::limits::{
    MAX_CONTROL_LEN_BYTES, MAX_PAYLOAD_LEN_BYTES, MAX_PENDING_CONTROL, TRAILER_LEN_BYTES,
};
use iswitch_protocol::wire::{Class, ControlRepr};

use crate::batch::Batch;
use crate::endpoint::{Endpoint, PortId};
use crate::ids::{JobIndex, MemberSet};
use crate::job::{Group, Job, Members, Outlet};
use crate::keys::{Keys, Seal};
use crate::ring::Ring;

/// Datagrams to send: a single one, or a super-frame of datagrams of `stride` bytes each, of which the last may be
/// shorter.
#[derive(Debug)]
pub struct Transmit<'a> {
    /// Traffic class: control or data.
    pub class: Class,
    /// Concatenated UDP payloads.
    pub payload: &'a [u8],
    /// Length of each payload except the last, in bytes.
    pub stride: usize,
    recipients: Recipients<'a>,
}

#[derive(Debug)]
enum Recipients<'a> {
    One(&'a Endpoint),
    /// The group of the job, if it has one, and the members that need a copy of their own.
    Members {
        group: Option<&'a Group>,
        members: &'a Members,
        by_unicast: MemberSet,
    },
}

impl<'a> Transmit<'a> {
    fn batch(batch: &'a Batch, recipients: Recipients<'a>) -> Self {
        Self { class: Class::Data, payload: batch.bytes(), stride: batch.stride(), recipients }
    }

    /// Returns the recipients, each of which gets the whole payload. A recipient with a multicast address is a group.
    pub fn recipients(&self) -> impl Iterator<Item = &'a Endpoint> {
        let (one, group, members) = match self.recipients {
            Recipients::One(endpoint) => (Some(endpoint), None, None),
            Recipients::Members { group, members, by_unicast } => (None, group, Some((members, by_unicast))),
        };
        let outlets = group.into_iter().flat_map(Group::used_outlets).map(Outlet::to);
        let members = members.into_iter().flat_map(|(members, by_unicast)| members.endpoints(by_unicast));
        one.into_iter().chain(outlets).chain(members)
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

/// The fields of a trailer except its tag.
#[derive(Clone, Copy, Debug)]
struct Trailer {
    job: u32,
    direction: Direction,
    context: u64,
    counter: u64,
}

/// A batch and its destination.
#[derive(Debug)]
pub(crate) struct AddressedBatch {
    pub(crate) batch: Batch,
    job: JobIndex,
    to: Endpoint,
}

impl AddressedBatch {
    fn new() -> Self {
        Self { batch: Batch::new(), job: JobIndex::new(0), to: NOWHERE }
    }

    /// Sets all members of a job as the recipients of the empty batch.
    pub(crate) fn aim_at_members(&mut self, job: JobIndex, is_tagged: bool) {
        self.job = job;
        self.batch.begin(is_tagged);
    }

    /// Sets `to` as the only recipient of the empty batch. The packets in the batch belong to `job`.
    pub(crate) fn aim(&mut self, job: JobIndex, to: Endpoint, is_tagged: bool) {
        (self.job, self.to) = (job, to);
        self.batch.begin(is_tagged);
    }

    /// Returns the job to which the packets belong.
    pub(crate) fn job(&self) -> JobIndex {
        self.job
    }
}

/// Destination of a batch whose recipient is not set yet.
const NOWHERE: Endpoint = Endpoint {
    port: PortId(0),
    peer: SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0),
    local: SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0),
    peer_mac: [0; 6],
    local_mac: [0; 6],
};

/// Output that is lent to the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lent {
    Nothing,
    Control,
    Results,
    Answers,
    Partials,
}

/// All pending output.
#[derive(Debug)]
pub(crate) struct Outbox {
    control: Ring<PendingControl>,
    /// Control packet that is being sent. Its destination is `sending_to`.
    sending: Vec<u8>,
    sending_to: Endpoint,
    /// Counter of the last trailer that the switch has sent in any member's session.
    counter: u64,
    /// Results for all members of a job.
    pub(crate) results: AddressedBatch,
    /// Results for one member.
    pub(crate) answers: AddressedBatch,
    /// Partial sums for the parent.
    pub(crate) partials: AddressedBatch,
    lent: Lent,
}

impl Outbox {
    pub(crate) fn new() -> Self {
        Self {
            control: Ring::with_capacity(MAX_PENDING_CONTROL),
            sending: Vec::with_capacity(MAX_PAYLOAD_LEN_BYTES),
            sending_to: NOWHERE,
            counter: 0,
            results: AddressedBatch::new(),
            answers: AddressedBatch::new(),
            partials: AddressedBatch::new(),
            lent: Lent::Nothing,
        }
    }

    /// Returns whether no data packets are pending.
    pub(crate) fn is_drained(&self) -> bool {
        self.results.batch.is_empty() && self.answers.batch.is_empty() && self.partials.batch.is_empty()
    }

    /// Returns whether any output is pending.
    pub(crate) fn has_output(&self) -> bool {
        !self.is_drained() || !self.control.is_empty()
    }

    /// Clears the output that the driver has sent.
    pub(crate) fn reclaim(&mut self) {
        match self.lent {
            Lent::Results => self.results.batch.clear(),
            Lent::Answers => self.answers.batch.clear(),
            Lent::Partials => self.partials.batch.clear(),
            Lent::Nothing | Lent::Control => {}
        }
        self.lent = Lent::Nothing;
    }

    /// Chooses the next output for the driver: control packets, then partial sums, results, and answers.
    pub(crate) fn lend(&mut self, keys: &Keys) -> Lent {
        self.lent = if self.next_control(keys) {
            Lent::Control
        } else if !self.partials.batch.is_empty() {
            Lent::Partials
        } else if !self.results.batch.is_empty() {
            Lent::Results
        } else if !self.answers.batch.is_empty() {
            Lent::Answers
        } else {
            Lent::Nothing
        };
        self.lent
    }

    /// Queues a control packet, padded with `padding_len` zero bytes. Returns false if the queue has no room.
    pub(crate) fn push_control(
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
            Seal::Group { job, epoch } => {
                self.counter += 1;
                let counter = self.counter;
                Some(Trailer { job, direction: Direction::ToMember, context: epoch, counter })
            }
            Seal::Upward { job, context, counter } => {
                Some(Trailer { job, direction: Direction::ToSwitch, context, counter })
            }
        };
        self.control.push(PendingControl { to, bytes, len, padding_len, trailer }).is_ok()
    }

    /// Takes the next control packet out of the queue, so that [`Self::control`] can lend it.
    fn next_control(&mut self, keys: &Keys) -> bool {
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
        let (group, members, by_unicast) = (job.group(), job.members(), job.unicast_members());
        Transmit::batch(&self.results.batch, Recipients::Members { group, members, by_unicast })
    }

    pub(crate) fn answers(&self) -> Transmit<'_> {
        Transmit::batch(&self.answers.batch, Recipients::One(&self.answers.to))
    }

    pub(crate) fn partials(&self) -> Transmit<'_> {
        Transmit::batch(&self.partials.batch, Recipients::One(&self.partials.to))
    }
}
