//! Requests of a member: their ids, and the job and key that all of them share.

use core::ops::Range;

use iswitch_protocol::wire::control::{RangeRepr, SegmentSetRepr};
use iswitch_protocol::wire::{Class, ControlBody, ControlRepr};
use iswitch_protocol::{Instant, Round};

use super::auth::Authenticator;
use super::bitmap::Bitmap;
use super::timer::RetryTimer;

/// Maximum number of ranges that one expired timer asks for; the others wait for the next expiry.
pub(super) const MAX_HELPS_AT_ONCE: usize = 8;

/// Question that a member asks about segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// Asks for results.
    Help,
    /// Asks whether contributions have arrived.
    Confirm,
}

/// Allocator of request ids, and the fields that all requests share.
#[derive(Debug)]
pub(super) struct Requests {
    job: u32,
    next: u32,
    /// Authenticator, if the job has a key.
    authenticator: Option<Authenticator>,
}

impl Requests {
    /// Creates the request state of a member of a job.
    pub(super) fn new(job: u32) -> Self {
        Self { job, next: 1, authenticator: None }
    }

    /// Authenticates all packets from now on.
    pub(super) fn set_key(&mut self, authenticator: Authenticator) {
        self.authenticator = Some(authenticator);
    }

    pub(super) fn authenticator(&self) -> Option<&Authenticator> {
        self.authenticator.as_ref()
    }

    /// Returns an id that no earlier request of this member had; never zero.
    pub(super) fn take_id(&mut self) -> u32 {
        let id = self.next;
        self.next = id.wrapping_add(1).max(1);
        id
    }

    /// Returns the id of the next request.
    pub(super) fn next_id(&self) -> u32 {
        self.next
    }

    /// Writes a control packet into `buffer`. A `request` of zero asks for no answer.
    pub(super) fn emit(&self, request: u32, body: ControlBody<'_>, buffer: &mut Vec<u8>) -> (Class, usize) {
        let repr = ControlRepr { job: self.job, request, body };
        buffer.resize(repr.buffer_len(), 0);
        repr.emit(buffer);
        if let Some(authenticator) = &self.authenticator {
            authenticator.sign(repr.action(), buffer);
        }
        (Class::Control, buffer.len())
    }

    /// Writes a Help or a Confirm for those segments of a range that are not in `present`. `timer` measures the round
    /// trip of the answer.
    pub(super) fn emit_question(
        &mut self,
        now: Instant,
        timer: &mut RetryTimer,
        (range, present): (RangeRepr, &Bitmap),
        question: Question,
        buffer: &mut Vec<u8>,
    ) -> (Class, usize) {
        let id = self.take_id();
        timer.note_question(now, id);
        let missing = present.zeros(range.first..range.first + range.count);
        let set = SegmentSetRepr::of(range, &missing);
        let body = match question {
            Question::Help => ControlBody::Help(set),
            Question::Confirm => ControlBody::Confirm(set),
        };
        self.emit(id, body, buffer)
    }
}

/// Returns a range of segments of a round in its wire representation.
pub(super) fn range_of(round: Round, segments: Range<u32>) -> RangeRepr {
    RangeRepr { round, first: segments.start, count: segments.end - segments.start }
}
