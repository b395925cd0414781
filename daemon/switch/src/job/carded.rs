//! A job whose rounds are summed by a card: the core stores the sums of the card as finished segments or, if the switch
//! has a parent, as partial sums.
//!
//! The core needs these sums for the tasks that it still performs itself: it tracks which rounds are open and finished,
//! answers Helps, compares digests, sends results to members that do not hear the group, and sends partial sums to the
//! parent.

use iswitch_protocol::limits::FLOAT_LEN_BYTES;
use iswitch_protocol::{Round, Seg, SegmentIndex};

use super::aggregation::Aggregation;
use super::rounds::Replay;
use super::slot::Slot;
use crate::accumulate::{self, NonFinite};
use crate::batch::SumBatches;

/// A synchronous job, with its slots and sums, that a card sums or is about to sum.
pub(crate) struct Carded<'a>(pub(crate) Aggregation<'a>);

impl Carded<'_> {
    /// Hands the job over to the card. Returns the first round that the card sums, or `None` if the core has to finish
    /// something first: the formation of the job, a replayed round, a round with results or, if the switch has a
    /// parent, any open round and the round at which the parent resumed the switch.
    pub(crate) fn take_over(&mut self) -> Option<Round> {
        let round = self.first_round()?;
        self.0.job.rounds.synchronous_mut()?.move_to_card();
        Some(round)
    }

    /// Takes the job back from the card.
    pub(crate) fn take_back(&mut self) {
        self.0.job.rounds.take_from_card();
    }

    fn first_round(&self) -> Option<Round> {
        let job = &*self.0.job;
        job.rounds.synchronous()?;
        if !job.formed || !job.members.is_confirmed() || job.waits_for_no_member() {
            return None;
        }
        let numbers = job.rounds.numbers();
        let Some(newest) = numbers.newest() else {
            // If the parent resumed this switch, some members may already have results of the first round. They would
            // not contribute to it again, so the card could not finish it.
            return job.taken_up.is_none().then(|| numbers.base());
        };
        let earlier = job.rounds.open_round(newest.previous());
        if earlier.is_some_and(|open| open.unfinished > 0) {
            return None;
        }
        match job.rounds.open_round(newest) {
            None => Some(newest.next()),
            Some(open) if open.unfinished == 0 => Some(newest.next()),
            // The parent may already have partial sums of the round.
            Some(_) if job.has_parent => None,
            // No member has a result of the round yet. The contributions that the core has received are lost; the
            // senders repeat them when an Ack names them as missing.
            Some(open) => {
                let is_whole = open.unfinished == job.layout.segment_count() && open.replay == Replay::Not;
                let takes_part = job.members.starting_by(newest) == job.members.present();
                (is_whole && takes_part).then_some(newest)
            }
        }
    }

    /// Opens the round before `next`, if it is the one after the newest round. `next` is the next round that the card
    /// will open.
    pub(crate) fn note_opened(&mut self, next: Round) {
        let newest = next.previous();
        if newest == self.0.job.rounds.numbers().next() {
            let open = self.0.job.prospective_round(newest, self.0.now);
            self.0.job.open(open);
        }
    }

    /// Stores a sum from the card: a result or, if the switch has a parent, a partial sum. `floats` are its
    /// little-endian floats. Returns false if the sum does not belong to one of the newest two rounds or to the next
    /// one, or if the core already has it.
    pub(crate) fn finish(&mut self, seg: Seg, floats: &[u8]) -> bool {
        let Seg { index, round, contributions } = seg;
        let (layout, numbers) = (&self.0.job.layout, self.0.job.rounds.numbers());
        let next = numbers.next();
        let is_kept = !round.is_before(numbers.base()) && round.is_before(next.next());
        if !is_kept || !layout.contains(index) || floats.len() != FLOAT_LEN_BYTES * layout.float_count(index)
        {
            return false;
        }
        let slot = self.0.slot(round, index);
        if slot.is_done(round) || slot.is_partial(round) || slot.is_past(round) {
            return false;
        }
        if round == next {
            let open = self.0.job.prospective_round(round, self.0.now);
            self.0.job.open(open);
        }
        let Some(open) = self.0.job.rounds.open_round(round).copied() else { return false };
        let (generation, state) = (self.0.job.memory.generation, self.0.complete(round));
        let contributors = open.participants;
        *self.0.slot_mut(round, index) = Slot { contributors, generation, round, contributions, state };
        if contributions >= contributors.len() {
            // Contributions do not pass through the core, so a sum over all participants counts as a sign that each of
            // them is alive.
            let now = self.0.now;
            for id in contributors.iter() {
                if let Some(member) = self.0.job.members.get_mut(id) {
                    member.last_heard = now;
                    member.note_progress(1, Some(round), now);
                }
            }
        }
        accumulate::overwrite(self.0.sum_mut(round, index), floats, NonFinite::Sum)
    }

    /// Puts a sum from the card into the batch for its recipients, if that batch has room. Returns whether the sum is a
    /// partial sum for the parent.
    pub(crate) fn push(&mut self, round: Round, index: SegmentIndex, batches: &mut SumBatches<'_>) -> bool {
        let goes_up = self.0.job.goes_up(round);
        let len = self.0.outgoing_len(round, index);
        if goes_up && batches.partials.has_room(len) {
            self.0.push_partial(round, index, batches.partials);
        } else if !goes_up && batches.results.has_room(len) {
            self.0.push_result(round, index, batches.results);
        }
        goes_up
    }
}
