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

/// State that the card keeps for a round that is or was open.
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

    /// Returns the state of the latest round that has opened among those with the parity of `round`. If no such round
    /// has opened yet, the returned state has no unfinished segments.
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

    /// Returns those of the given segments for which the card would accept a contribution from the member in row `row`.
    ///
    /// # Errors
    /// Fails if the card does.
    pub fn missing(&mut self, row: usize, round: Round, segments: &[u32]) -> Result<Vec<u32>, CardError> {
        let may_open = self.next_round()? != round || self.round(round)?.unfinished == 0;
        let selections: Vec<_> = segments.iter().map(|index| (offset::SLOT, index % self.slots)).collect();
        let states = [offset::SLOT_STATE, offset::SLOT_ROUND, offset::SLOT_SEGMENT];
        let mut values = Vec::with_capacity(states.len() * segments.len());
        self.card.read_after_each(&selections, &states, &mut values)?;
        let slots = values.chunks(states.len());
        let all = segments.iter().zip(slots);
        let is_missing = |index: u32, slot: &[u32]| self.is_missing((row, round, index), slot, may_open);
        Ok(all.filter(|(index, slot)| is_missing(**index, slot)).map(|(index, _)| *index).collect())
    }

    /// Returns whether a slot accepts a contribution. `slot` contains its state, its round and its segment; `may_open`
    /// indicates whether the round of the contribution is open or may be opened.
    fn is_missing(&self, (row, round, index): (usize, Round, u32), slot: &[u32], may_open: bool) -> bool {
        let (state, current) = (slot[0], (slot[1], slot[2]));
        let (is_open, is_done) = (state & 1 != 0, state & 2 != 0);
        if current == (round.get(), index) && (is_open || is_done) {
            return is_open && state >> (8 + row) & 1 == 0;
        }
        // The segment may begin if the slot contains its predecessor (the previous segment to use this slot), and if
        // that segment is finished.
        let before = if index >= self.slots {
            (round.get(), index - self.slots)
        } else {
            let last = self.layout.segment_count() - 1;
            (round.previous().get(), index + (last - index) / self.slots * self.slots)
        };
        let begins = round == self.base && index < self.slots;
        may_open && if is_open || is_done { is_done && current == before } else { begins }
    }

    /// Returns whether all participants of a round have contributed to an open segment. `participants` contains their
    /// rows.
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
