//! Orders to the card that result from control packets, and the missing contributions that the driver has read from the
//! tables of the card.

use iswitch_protocol::Round;
use iswitch_protocol::limits::{MAX_BITMAP_LEN_BYTES, MAX_PENDING_REQUESTS};
use iswitch_protocol::wire::control::{RangeRepr, SegmentSetRepr};

use crate::endpoint::Endpoint;
use crate::ring::Ring;

/// Orders that the driver has not carried out yet, and the segments for which the card lacks a contribution from the
/// sender of a Help.
#[derive(Debug)]
pub(crate) struct CardOrders {
    closing: Ring<RangeRepr>,
    missing: Option<Missing>,
}

#[derive(Debug)]
struct Missing {
    from: Endpoint,
    range: RangeRepr,
    bitmap: [u8; MAX_BITMAP_LEN_BYTES],
}

impl CardOrders {
    pub(crate) fn new() -> Self {
        Self { closing: Ring::with_capacity(MAX_PENDING_REQUESTS), missing: None }
    }

    /// Orders the card to finish the segments of a range that have contributions. Returns false if there is no room.
    pub(crate) fn close(&mut self, range: RangeRepr) -> bool {
        self.closing.push(range).is_ok()
    }

    /// Removes and returns the next range that the card has to finish, or returns `None` if there is none.
    pub(crate) fn next_closing(&mut self) -> Option<RangeRepr> {
        self.closing.pop()
    }

    /// Records for which segments of a range the card lacks a contribution from the sender of the next Help.
    pub(crate) fn note_missing(&mut self, from: &Endpoint, missing: SegmentSetRepr<'_>) {
        let mut bitmap = [0; MAX_BITMAP_LEN_BYTES];
        bitmap[..missing.bitmap.len()].copy_from_slice(missing.bitmap);
        self.missing = Some(Missing { from: *from, range: missing.range, bitmap });
    }

    /// Returns whether the card lacks the contribution that the sender of a Help makes to a segment. If the driver has
    /// not read the tables for this Help, returns true, because a contribution that is repeated needlessly changes no
    /// sum.
    pub(crate) fn is_missing(&self, from: &Endpoint, round: Round, index: u32) -> bool {
        let is_about = |known: &&Missing| known.from.key() == from.key() && known.range.round == round;
        let Some(known) = self.missing.as_ref().filter(is_about) else { return true };
        match index.checked_sub(known.range.first).filter(|at| *at < known.range.count) {
            Some(at) => known.bitmap[at as usize / 8] >> (at % 8) & 1 == 1,
            None => true,
        }
    }
}
