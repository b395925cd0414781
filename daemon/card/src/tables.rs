//! The tables of the card: rounds, and the contributors of each slot.

use iswitch_protocol::{Round, VectorLayout};

use crate::access::{Card, CardError};
use crate::registers::offset;

/// Maximum number of segments that one write of FINISH_COUNT finishes.
pub const MAX_FINISH_SEGMENTS: u32 = 1024;
/// Flag of FINISH_COUNT: finish only segments with enough contributions.
const IF_ENOUGH: u32 = 1 << 31;
/// Bit of STATUS that is set while segments are being finished.
const FINISHING: u32 = 1 << 10;

/// Access to the tables of a card that sums a job.
pub struct Tables<'a> {
    /// The card.
    pub card: &'a mut dyn Card,
    /// Number of slots of the card.
    pub slots: u32,
    /// Segmentation of the job's vectors.
    pub layout: VectorLayout,
    /// First round of the job on the card.
    pub base: Round,
}

/// A round that is or was open, as the card knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenRound {
    /// Number of segments that are not finished.
    pub unfinished: u32,
    /// Threshold H.
    pub threshold: u8,
    /// Rows of the members that take part.
    pub participants: u8,
}

impl Tables<'_> {
    /// Returns the next round to open.
    ///
    /// # Errors
    /// Fails if the card does.
    pub fn next_round(&mut self) -> Result<Round, CardError> {
        Ok(Round::new(self.card.read(offset::ROUND_NEXT)?))
    }

    /// Returns the state of the last round with the parity of `round` that has opened. Before the first such round, no
    /// segment is unfinished.
    ///
    /// # Errors
    /// Fails if the card does.
    pub fn round(&mut self, round: Round) -> Result<OpenRound, CardError> {
        let (unfinished, shift) =
            if round.parity() == 0 { (offset::ROUND_EVEN, 0) } else { (offset::ROUND_ODD, 16) };
        let unfinished = self.card.read(unfinished)?;
        let rules = self.card.read(offset::ROUND_RULES)? >> shift;
        Ok(OpenRound { unfinished, threshold: rules as u8, participants: (rules >> 8) as u8 })
    }

    /// Returns whether the card would accept the contribution of a member to a segment.
    ///
    /// # Errors
    /// Fails if the card does.
    pub fn is_missing(&mut self, row: usize, round: Round, index: u32) -> Result<bool, CardError> {
        let Self { slots, layout, base, .. } = *self;
        self.card.write(offset::SLOT, index % slots)?;
        let state = self.card.read(offset::SLOT_STATE)?;
        let current = (self.card.read(offset::SLOT_ROUND)?, self.card.read(offset::SLOT_SEGMENT)?);
        let (is_open, is_done) = (state & 1 != 0, state & 2 != 0);
        if current == (round.get(), index) && (is_open || is_done) {
            return Ok(is_open && state >> (8 + row) & 1 == 0);
        }
        // The segment may begin if the slot's segment is finished and is the one before, and if its round is open or
        // may be opened.
        let before = if index >= slots {
            (round.get(), index - slots)
        } else {
            let last = layout.segment_count() - 1;
            (round.previous().get(), index + (last - index) / slots * slots)
        };
        let follows =
            if is_open || is_done { is_done && current == before } else { round == base && index < slots };
        Ok(follows && (self.next_round()? != round || self.round(round)?.unfinished == 0))
    }

    /// Returns whether all of the participants of a round, given by their rows, have contributed to an open segment.
    ///
    /// # Errors
    /// Fails if the card does.
    pub fn is_complete(&mut self, round: Round, index: u32, participants: u8) -> Result<bool, CardError> {
        self.card.write(offset::SLOT, index % self.slots)?;
        let state = self.card.read(offset::SLOT_STATE)?;
        let current = (self.card.read(offset::SLOT_ROUND)?, self.card.read(offset::SLOT_SEGMENT)?);
        let contributors = (state >> 8) as u8;
        Ok(state & 1 != 0 && current == (round.get(), index) && participants & !contributors == 0)
    }

    /// Finishes segments of a round: all that have contributions or, with `if_enough`, those that have reached the
    /// threshold H. `leaving` receives the frames that leave the card in the meantime.
    ///
    /// # Errors
    /// Fails if the card does.
    pub fn finish(
        &mut self,
        round: Round,
        (first, count): (u32, u32),
        if_enough: bool,
        leaving: &mut Vec<crate::Frame>,
    ) -> Result<(), CardError> {
        let mut next = first;
        while next < first + count {
            let some = MAX_FINISH_SEGMENTS.min(first + count - next);
            self.card.write(offset::FINISH_ROUND, round.get())?;
            self.card.write(offset::FINISH_FIRST, next)?;
            self.card.write(offset::FINISH_COUNT, some | if if_enough { IF_ENOUGH } else { 0 })?;
            self.card.exchange(&[], leaving)?;
            while self.card.read(offset::STATUS)? & FINISHING != 0 {
                self.card.exchange(&[], leaving)?;
            }
            next += some;
        }
        Ok(())
    }
}
