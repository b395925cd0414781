//! Requests of a member: their ids, and the job and key that are common to all of them.

use core::ops::Range;

use iswitch_protocol::wire::control::{RangeRepr, SegmentSetRepr};
use iswitch_protocol::wire::{Class, ControlBody, ControlRepr};
use iswitch_protocol::{Instant, Round};

use super::auth::Authenticator;
use super::bitmap::Bitmap;
use super::timer::RetryTimer;

/// Maximum number of ranges that are requested when a timer expires. Further ranges are requested at the next expiry.
pub(super) const MAX_HELPS_AT_ONCE: usize = 8;

/// Question that a member asks about segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// Asks for results.
    Help,
    /// Asks whether contributions have arrived.
    Confirm,
}

/// Allocates request ids, and holds the fields that are common to all requests.
#[derive(Debug)]
pub(super) struct Requests {
    job: u32,
    next: u32,
    /// Authenticator; `None` if the job has no key.
    authenticator: Option<Authenticator>,
}

impl Requests {
    /// Creates the request state of a member of a job.
    pub(super) fn new(job: u32) -> Self {
        Self { job, next: 1, authenticator: None }
    }

    /// Sets the authenticator. From then on, all packets are authenticated.
    pub(super) fn set_key(&mut self, authenticator: Authenticator) {
        self.authenticator = Some(authenticator);
    }

    pub(super) fn authenticator(&self) -> Option<&Authenticator> {
        self.authenticator.as_ref()
    }

    /// Allocates an id that differs from those of all earlier requests of this member and is not zero.
    pub(super) fn take_id(&mut self) -> u32 {
        let id = self.next;
        self.next = id.wrapping_add(1).max(1);
        id
    }

    /// Returns the id that the next request will have.
    pub(super) fn next_id(&self) -> u32 {
        self.next
    }

    /// Writes a control packet into `buffer`. If `request` is zero, the packet requests no answer.
    pub(super) fn emit(&self, request: u32, body: ControlBody<'_>, buffer: &mut Vec<u8>) -> (Class, usize) {
        let repr = ControlRepr { job: self.job, request, body };
        buffer.resize(repr.buffer_len(), 0);
        repr.emit(buffer);
        if let Some(authenticator) = &self.authenticator {
            authenticator.sign(repr.action(), buffer);
        }
        (Class::Control, buffer.len())
    }

    /// Writes a Help or a Confirm for those segments of a range that are not in `present`. `timer` records the time, to
    /// measure the round trip when the answer arrives.
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

/// Returns the wire representation of a range of a round's segments.
pub(super) fn range_of(round: Round, segments: Range<u32>) -> RangeRepr {
    RangeRepr { round, first: segments.start, count: segments.end - segments.start }
}
