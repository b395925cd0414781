//! Members that a round waits for: they are shown to operators, and reported if the round waits too long.
//!
//! Only the opening time of a round is recorded on the data path; everything else is computed on demand.

use core::time::Duration;

use iswitch_protocol::Instant;
use iswitch_protocol::limits::MAX_MEMBERS;

use crate::ids::{MemberId, MemberSet};
use crate::job::{Generation, Job, OpenRound, Replay, Slot};

/// A job's oldest round that is waiting for members, and these members.
pub(crate) struct Waiting<'a> {
    pub(crate) open: OpenRound,
    /// One slot for each segment.
    slots: &'a [Slot],
    generation: Generation,
    /// Members whose contribution to at least one segment is missing although other members have contributed to the
    /// segment.
    missing: MemberSet,
}

impl<'a> Waiting<'a> {
    /// Returns the oldest round that waits for members, or `None` if the job is not complete, is halted, or waits for
    /// no member.
    pub(crate) fn of(job: &Job, slots: &'a [Slot]) -> Option<Self> {
        if !job.is_formed() || job.is_halted() {
            return None;
        }
        let segments = job.layout().segment_count() as usize;
        // In a replayed round, one of the members that hold the sum suffices.
        let rounds = job.rounds().open_rounds().filter(|open| open.replay == Replay::Not);
        let mut waiting = rounds.map(|open| {
            let slots = &slots[open.round.parity() * segments..][..segments];
            let generation = job.memory().generation;
            let missing = |members: MemberSet, slot: &Slot| members.union(slot.missing(open, generation));
            let missing = slots.iter().fold(MemberSet::EMPTY, missing);
            Self { open: *open, slots, generation, missing }
        });
        waiting.find(|waiting| !waiting.missing.is_empty())
    }

    /// Returns the same as [`Self::of`], but only if the round has waited for longer than `limit` and at least one
    /// participant has contributed everything that the round can accept.
    pub(crate) fn overdue(job: &Job, slots: &'a [Slot], now: Instant, limit: Duration) -> Option<Self> {
        // Check this first: a healthy job has no such round, and its slots then need not be examined.
        if !job.rounds().open_rounds().any(|open| now.since(open.opened) > limit) {
            return None;
        }
        Self::of(job, slots).filter(|waiting| {
            let open = &waiting.open;
            now.since(open.opened) > limit && !open.participants.difference(waiting.missing).is_empty()
        })
    }

    /// Returns the members whose contribution to at least one segment is missing.
    pub(crate) fn missing(&self) -> MemberSet {
        self.missing
    }

    pub(crate) fn is_for(&self, member: MemberId) -> bool {
        self.missing.contains(member)
    }

    /// Returns the time since the first contribution to the round, in milliseconds.
    pub(crate) fn waited_ms(&self, now: Instant) -> u64 {
        now.since(self.open.opened).as_millis() as u64
    }

    /// Returns, for each member, the number of segments to which other members have contributed but that member has
    /// not.
    pub(crate) fn missing_segments(&self) -> [u32; MAX_MEMBERS] {
        let missing = |slot: &Slot| slot.missing(&self.open, self.generation);
        let mut segments = [0; MAX_MEMBERS];
        // Count runs of segments, because adjacent segments mostly wait for the same members.
        for alike in self.slots.chunk_by(|one, next| missing(one) == missing(next)) {
            let members = missing(&alike[0]);
            for (member, count) in segments.iter_mut().enumerate() {
                *count += u32::from(members.contains(MemberId::new(member))) * alike.len() as u32;
            }
        }
        segments
    }

    /// Returns the number of segments in the vector.
    pub(crate) fn segments(&self) -> u32 {
        self.slots.len() as u32
    }
}
