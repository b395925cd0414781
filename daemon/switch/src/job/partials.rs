//! Partial sums of an asynchronous job of a switch that has a parent (requirement V-11).
//!
//! A job has two partial sums: members' complete vectors are added to one of them while the other is being sent to the
//! parent. A partial sum is sent as soon as the parent has received the previous one. No vector therefore waits for
//! other vectors and, if the link to the parent is the bottleneck, the switch sends fewer vectors than its members do.

use iswitch_protocol::Round;

use super::slot::add_contributions;

/// Number of partial sums of a job, each of which takes the memory of one vector.
pub(super) const PARTIAL_SUMS: usize = 2;

/// Partial sums of a job.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Partials {
    /// Vector number of the partial sum that is being sent to the parent or, if none is being sent, of the next one.
    number: Round,
    /// Index (0 or 1) of the buffer to which vectors are added.
    filling: usize,
    /// Number of vectors admitted to the buffer that is being filled.
    vectors: u16,
    /// Number of worker gradients in the vectors admitted to the buffer that is being filled.
    contributions: u16,
    /// Number of vectors that have been admitted to the buffer that is being filled but not yet added completely.
    unadded: u16,
    /// Number of worker gradients in the partial sum that is being sent to the parent, if any. That partial sum is in
    /// the other buffer.
    rising: Option<u16>,
}

impl Partials {
    /// Starts without vectors. The next partial sum has the number `first`.
    pub(super) fn restart(&mut self, first: Round) {
        *self = Self { number: first, ..Self::default() };
    }

    /// Returns whether `contributions` more gradients fit into the contribution count of the next partial sum.
    pub(super) fn has_room_for(&self, contributions: u16) -> bool {
        self.vectors == 0 || add_contributions(self.contributions, contributions).is_some()
    }

    /// Admits a vector to the next partial sum. Returns the index of the buffer of that partial sum, and whether the
    /// vector is its first.
    pub(super) fn admit(&mut self, contributions: u16) -> (usize, bool) {
        let is_first = self.vectors == 0;
        self.contributions = if is_first { contributions } else { self.contributions + contributions };
        self.vectors += 1;
        self.unadded += 1;
        (self.filling, is_first)
    }

    /// Records that a vector was added completely.
    pub(super) fn note_added(&mut self) {
        self.unadded = self.unadded.saturating_sub(1);
    }

    /// Begins to send the next partial sum, and returns its number. Returns `None` if the partial sum is empty or
    /// incomplete, or if the parent has not admitted the previous one yet.
    pub(super) fn raise(&mut self) -> Option<Round> {
        if self.rising.is_some() || self.vectors == 0 || self.unadded > 0 {
            return None;
        }
        self.rising = Some(self.contributions);
        self.filling = 1 - self.filling;
        (self.vectors, self.contributions) = (0, 0);
        Some(self.number)
    }

    /// Returns the buffer index of partial sum `number`, and the number of worker gradients in that sum. Returns `None`
    /// unless this partial sum is being sent to the parent.
    pub(super) fn rising(&self, number: Round) -> Option<(usize, u16)> {
        let contributions = self.rising.filter(|_| number == self.number)?;
        Some((1 - self.filling, contributions))
    }

    /// Records that the parent has admitted the partial sum that was being sent. Returns the index of its buffer, or
    /// `None` if no partial sum was being sent.
    pub(super) fn land(&mut self) -> Option<usize> {
        self.rising.take()?;
        self.number = self.number.next();
        Some(1 - self.filling)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_sum_rises_when_the_last_one_has_arrived() {
        let mut partials = Partials::default();
        partials.restart(Round::new(9));
        assert_eq!(partials.raise(), None, "there are no vectors");
        assert_eq!(partials.admit(1), (0, true));
        assert_eq!(partials.raise(), None, "the vector has yet to be added");
        partials.note_added();
        assert_eq!(partials.raise(), Some(Round::new(9)));
        assert_eq!(partials.admit(3), (1, true));
        assert_eq!(partials.admit(1), (1, false));
        partials.note_added();
        partials.note_added();
        assert_eq!(partials.raise(), None, "the first partial sum has not arrived");
        assert_eq!(partials.rising(Round::new(9)), Some((0, 1)));
        assert_eq!(partials.land(), Some(0));
        assert_eq!(partials.raise(), Some(Round::new(10)));
        assert_eq!((partials.rising(Round::new(9)), partials.rising(Round::new(10))), (None, Some((1, 4))));
    }

    #[test]
    fn the_contribution_count_does_not_overflow() {
        let mut partials = Partials::default();
        assert!(partials.has_room_for(u16::MAX));
        partials.admit(65_000);
        assert!(partials.has_room_for(534) && !partials.has_room_for(535));
    }
}
