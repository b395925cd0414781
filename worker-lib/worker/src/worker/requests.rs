//! A member's requests: their ids, and the job and key that all of them share.

use core::ops::Range;

use iswitch_protocol::wire::control::{RangeRepr, SegmentSetRepr};
use iswitch_protocol::wire::{Class, ControlBody, ControlRepr};
use iswitch_protocol::{Instant, Round};

use super::auth::Authenticator;
use super::bitmap::Bitmap;
use super::timer::RetryTimer;

/// Ranges that one expired timer asks for; the rest waits for the next.
pub(super) const MAX_HELPS_AT_ONCE: usize = 8;

/// What a member asks about segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// Where the results are.
    Help,
    /// Whether the contributions have arrived.
    Confirm,
}

/// Ids of requests, and what is the same in all of them.
#[derive(Debug)]
pub(super) struct Requests {
    job: u32,
    next: u32,
    /// If the job has a key.
    authenticator: Option<Authenticator>,
}

impl Requests {
    /// Those of a member of a job.
    pub(super) fn new(job: u32) -> Self {
        Self { job, next: 1, authenticator: None }
    }

    /// Signs all packets from now on.
    pub(super) fn set_key(&mut self, authenticator: Authenticator) {
        self.authenticator = Some(authenticator);
    }

    pub(super) fn authenticator(&self) -> Option<&Authenticator> {
        self.authenticator.as_ref()
    }

    /// An id that no request of this member has had; never zero.
    pub(super) fn take_id(&mut self) -> u32 {
        let id = self.next;
        self.next = id.wrapping_add(1).max(1);
        id
    }

    /// The id that the next request will have.
    pub(super) fn next_id(&self) -> u32 {
        self.next
    }

    /// Writes a control packet into `buffer`. A request of zero wants no answer.
    pub(super) fn emit(&self, request: u32, body: ControlBody<'_>, buffer: &mut Vec<u8>) -> (Class, usize) {
        let repr = ControlRepr { job: self.job, request, body };
        buffer.resize(repr.buffer_len(), 0);
        repr.emit(buffer);
        if let Some(authenticator) = &self.authenticator {
            authenticator.sign(repr.action(), buffer);
        }
        (Class::Control, buffer.len())
    }

    /// Writes a Help or a Confirm for the segments of a range that are not in `present`. `timer` measures how long the
    /// answer takes.
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

/// A range of segments of a round, as packets have it.
pub(super) fn range_of(round: Round, segments: Range<u32>) -> RangeRepr {
    RangeRepr { round, first: segments.start, count: segments.end - segments.start }
}
