//! Which members a round waits for: told when an operator asks, and reported when it takes long.
//!
//! Nothing of this is on the packet path but the time at which a round opens.

use core::net::SocketAddrV4;
use core::time::Duration;

use iswitch_protocol::Instant;
use iswitch_protocol::limits::MAX_MEMBERS;

use super::Switch;
use super::aggregator::Slot;
use super::event::Event;
use super::job::{Job, OpenRound, Replay};

/// The oldest round of a job in which a segment waits for a member.
pub(super) struct Waiting<'a> {
    pub(super) open: OpenRound,
    /// When its first contribution came.
    pub(super) since: Instant,
    /// One for each segment.
    slots: &'a [Slot],
    generation: u64,
    /// Bit i: a segment that has contributions misses that of member i.
    missing: u64,
}

impl<'a> Waiting<'a> {
    /// That of a job; none if it is not complete, halted, or waits for nobody.
    pub(super) fn of(job: &Job, slots: &'a [Slot]) -> Option<Self> {
        if !job.formed || job.halted {
            return None;
        }
        let segments = job.layout.segment_count() as usize;
        // In a replayed round one of those who hold the sum is enough.
        let rounds = job.open_rounds().filter(|open| open.replay == Replay::Not);
        let mut waiting = rounds.map(|open| {
            let slots = &slots[open.round.parity() * segments..][..segments];
            let generation = job.generation;
            let missing = slots.iter().fold(0, |members, slot| members | slot.missing(open, generation));
            Self { open: *open, since: job.opened(open.round), slots, generation, missing }
        });
        waiting.find(|waiting| waiting.missing != 0)
    }

    /// The same if it has taken longer than `limit` and other members have given all that the round can take.
    fn overdue(job: &Job, slots: &'a [Slot], now: Instant, limit: Duration) -> Option<Self> {
        // Asked first: a job that is well has no such round, and its slots need not be looked at.
        if !job.open_rounds().any(|open| now.since(job.opened(open.round)) > limit) {
            return None;
        }
        Self::of(job, slots).filter(|waiting| {
            now.since(waiting.since) > limit && waiting.open.participants & !waiting.missing != 0
        })
    }

    pub(super) fn is_for(&self, member: usize) -> bool {
        self.missing >> member & 1 == 1
    }

    /// For each member, the segments to which others have contributed and that member has not.
    pub(super) fn missing_segments(&self) -> [u32; MAX_MEMBERS] {
        let missing = |slot: &Slot| slot.missing(&self.open, self.generation);
        let mut segments = [0; MAX_MEMBERS];
        // Segments beside each other mostly wait for the same members.
        for alike in self.slots.chunk_by(|one, next| missing(one) == missing(next)) {
            let members = missing(&alike[0]);
            for (member, count) in segments.iter_mut().enumerate() {
                *count += (members >> member & 1) as u32 * alike.len() as u32;
            }
        }
        segments
    }

    /// Segments of the vector.
    pub(super) fn segments(&self) -> u32 {
        self.slots.len() as u32
    }
}

impl Switch {
    /// How long a round may wait for a member before that is reported.
    pub(super) fn patience(&self) -> Duration {
        Duration::from_millis(u64::from(self.config.slow_ms))
    }

    /// Reports the members that a round has waited for too long, and those that rounds no longer wait for.
    pub(super) fn watch_rounds(&mut self) {
        let (now, patience) = (self.now, self.patience());
        let Self { events, flight, .. } = self;
        let mut report = |event| {
            events.push(event);
            flight.record_event(now, event);
        };
        for job in self.jobs.iter_mut().flatten() {
            let slots = self.slots.region(&job.slots);
            let overdue = Waiting::overdue(job, slots, now, patience);
            // Looked up once for all members: this goes through the whole vector.
            let mut missing = None;
            let (id, newest) = (job.id, job.newest());
            for (member, state) in job.members_mut() {
                let address = state.endpoint.peer;
                match (state.held_up, overdue.as_ref().filter(|waiting| waiting.is_for(member))) {
                    (held_up, Some(waiting)) => {
                        state.held_up = Some(waiting.open.round);
                        if held_up.is_none() {
                            let missing = missing.get_or_insert_with(|| waiting.missing_segments())[member];
                            report(slow_member(waiting, id, (member, address), missing, now));
                        }
                    }
                    // A round that came after has been finished in time.
                    (Some(round), None) if newest.is_some_and(|newest| round.next().is_before(newest)) => {
                        state.held_up = None;
                        report(Event::Recovered { job: id, member: member as u16, address });
                    }
                    _ => {}
                }
            }
        }
    }
}

fn slow_member(
    waiting: &Waiting<'_>,
    job: u32,
    (member, address): (usize, SocketAddrV4),
    missing_segments: u32,
    now: Instant,
) -> Event {
    Event::Slow {
        job,
        member: member as u16,
        address,
        round: waiting.open.round,
        waited_ms: now.since(waiting.since).as_millis() as u64,
        missing_segments,
        segments: waiting.segments(),
    }
}
