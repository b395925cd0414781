//! Rounds of a worker over all parts of its vector, driven by one thread that waits for all of them together.
//!
//! Each part is summed by a switch of its own, with its own rounds and members. A call is over when every part has its
//! result. A part that has finished waits for the others; after an error that repeats the round, it keeps its result.
//! No part ever contributes to a vector before all parts have finished the vector before it: their turns, the numbers
//! of sums in their histories, show whether they are at the same vector (requirement T-7).

use core::cmp::Ordering;
use std::os::fd::AsFd;
use std::time::Duration;

use iswitch_protocol::limits::TURN_BITS;
use iswitch_protocol::{Instant, Round};
use iswitch_socket::{PollSet, Spin};

use super::join::JoinOptions;
use super::outcome::round_error;
use super::part::{self, Part};
use super::protocol::{Failure, Finished, WorkerCounters};
use crate::aggregate::AggregateError;

/// Time that exceeds every wait within a round: if more time has passed since the last wait, the process was suspended.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// All parts of a worker's vector, at least one, in the order of the vector.
#[derive(Debug)]
pub(super) struct Parts {
    all: Vec<Part>,
    spin: Spin,
    poll: PollSet,
    /// Time at which the round in progress last waited.
    looked: Instant,
    /// Number of rounds that all parts have finished.
    rounds: u64,
}

/// Agreement of the parts before a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Agreement {
    /// All parts are at the same vector, or have just finished it.
    Together,
    /// Some parts are at a later vector than others.
    Apart,
}

impl Parts {
    pub(super) fn new(all: Vec<Part>, spin: Duration) -> Self {
        Self { all, spin: Spin::new(spin), poll: PollSet::new(), looked: Instant::default(), rounds: 0 }
    }

    pub(super) fn first(&self) -> &Part {
        &self.all[0]
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Part> {
        self.all.iter()
    }

    pub(super) fn iter_mut(&mut self) -> std::slice::IterMut<'_, Part> {
        self.all.iter_mut()
    }

    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    /// Returns the counters of all parts together. A round counts once all its parts are finished.
    pub(super) fn counters(&self) -> WorkerCounters {
        let all = self.all.iter().map(Part::counters);
        WorkerCounters { rounds: self.rounds, ..all.fold(WorkerCounters::default(), part::add) }
    }

    /// Returns the number of the next round of the first part, which stands for the whole vector.
    pub(super) fn round(&self) -> Round {
        self.first().session.round()
    }

    /// Returns whether the parts can take part in the next round, or continue the round in progress. Parts that have
    /// finished a round that cannot be continued are ready for the next one.
    pub(super) fn agree(&mut self) -> Agreement {
        if self.all.len() == 1 {
            return Agreement::Together;
        }
        // A part that has finished the round in progress is one turn ahead.
        let own = |part: &Part| Some(earlier(part.session.turn()?, part.done().is_some().into()));
        if are_equal(self.all.iter().map(own)) {
            return Agreement::Together;
        }
        self.all.iter_mut().for_each(Part::give_up_round);
        let are_ready = are_equal(self.all.iter().map(|part| part.session.turn()));
        if are_ready { Agreement::Together } else { Agreement::Apart }
    }

    /// Returns the latest turn of all parts, if any is known.
    pub(super) fn latest_turn(&self) -> Option<u32> {
        let turns = self.all.iter().filter_map(|part| part.session.turn());
        turns.reduce(|one, other| if compare(one, other) == Ordering::Less { other } else { one })
    }

    /// Forgets that the switch has readmitted the worker without the sums that the others have; returns whether it has.
    pub(super) fn take_missed(&mut self) -> bool {
        self.all.iter_mut().filter_map(|part| part.session.take_missed()).count() > 0
    }

    /// Runs the round of all parts that have not finished it. Blocks as long as `keep_waiting` returns true.
    pub(super) fn run_round(
        &mut self,
        options: &JoinOptions,
        contribution: &[f32],
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Finished, AggregateError> {
        let begin = self.first().link.now();
        self.looked = begin;
        self.all.iter_mut().for_each(|part| part.begin_round(begin));
        let mut failure = None;
        let outcome = self.drive(options, contribution, begin, &mut failure, keep_waiting);
        match (failure, outcome) {
            (Some(failure), _) => Err(self.in_numbers_of_first(failure)),
            (None, Ok(())) => Ok(self.take_finished()),
            (None, Err(error)) => Err(error),
        }
    }

    /// Converts the round numbers of an error to those of the first part, which the caller knows. By now, all parts
    /// have ended the round.
    fn in_numbers_of_first(&self, error: AggregateError) -> AggregateError {
        let next = self.round();
        match error {
            AggregateError::MissedRounds { .. } => AggregateError::MissedRounds { next: next.get() },
            AggregateError::StaleRound { round, current } => {
                let ahead = Round::new(current).distance_from(Round::new(round));
                let round = Round::new(next.get().wrapping_sub(ahead)).get();
                AggregateError::StaleRound { round, current: next.get() }
            }
            error => error,
        }
    }

    /// Drives all parts until each has finished the round or failed. `failure` holds the first failure.
    fn drive(
        &mut self,
        options: &JoinOptions,
        contribution: &[f32],
        begin: Instant,
        failure: &mut Option<AggregateError>,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<(), AggregateError> {
        let mut idle_since = begin;
        let mut failed = 0u32;
        loop {
            let now = self.first().link.now();
            self.flush(now, contribution)?;
            for (at, part) in self.all.iter_mut().enumerate() {
                let Err(cause) = part.note_outcome() else { continue };
                failed |= 1 << at;
                let is_over = ends_round(cause);
                failure.get_or_insert_with(|| round_error(part.session.round(), cause));
                if !is_over {
                    // The next call repeats the round in this part, and so in all parts that have not finished it.
                    self.abandon();
                    return Ok(());
                }
            }
            if self.is_over(failed) {
                return Ok(());
            }
            if self.receive(now)? {
                self.spin.note(self.last_heard().since(idle_since));
                idle_since = self.first().link.now();
            } else if self.spin.goes_on(self.first().link.now().since(idle_since)) {
                // The workers whose contributions are awaited may need this core.
                std::thread::yield_now();
            } else {
                self.wait(options, begin, failed)?;
                if !keep_waiting() {
                    self.abandon();
                    return Err(AggregateError::Interrupted);
                }
            }
        }
    }

    /// Sends what all parts have to send, frame by frame in turn, so that all switches have work from the beginning.
    fn flush(&mut self, now: Instant, contribution: &[f32]) -> Result<(), AggregateError> {
        self.all.iter_mut().for_each(Part::follow_group);
        loop {
            let mut any = false;
            for part in &mut self.all {
                any |= part.send(now, contribution)?;
            }
            if !any {
                return Ok(());
            }
        }
    }

    fn is_over(&self, failed: u32) -> bool {
        self.pending(failed).next().is_none()
    }

    /// Returns the parts that have neither finished the round nor failed; `failed` has one bit for each part.
    fn pending(&self, failed: u32) -> impl Iterator<Item = &Part> {
        let is_pending = move |(at, part): &(usize, &Part)| part.done().is_none() && failed >> at & 1 == 0;
        self.all.iter().enumerate().filter(is_pending).map(|(_, part)| part)
    }

    fn last_heard(&self) -> Instant {
        self.all.iter().fold(Instant::default(), |latest, part| latest.max(part.link.last_heard))
    }

    fn abandon(&mut self) {
        self.all.iter_mut().for_each(|part| part.session.abandon_round());
    }

    /// Handles what has arrived, and the timers of parts for which nothing has; returns whether anything has.
    fn receive(&mut self, now: Instant) -> Result<bool, AggregateError> {
        let mut any = false;
        for part in &mut self.all {
            if part.receive()? {
                any = true;
            } else if part.session.poll_timeout().is_some_and(|deadline| deadline <= now) {
                part.session.handle_timeout(now);
            }
        }
        Ok(any)
    }

    /// Sleeps until a datagram arrives or the earliest deadline of a part, within the caller's timeouts.
    fn wait(&mut self, options: &JoinOptions, begin: Instant, failed: u32) -> Result<(), AggregateError> {
        let now = self.first().link.now();
        let paused = now.since(self.looked.max(self.last_heard())).saturating_sub(LONGEST_WAIT);
        // A process that was suspended could not have heard the switch.
        self.all.iter_mut().for_each(|part| part.excuse_silence(paused));
        let is_silent = |part: &&Part| now.since(part.link.last_heard) > options.switch_timeout;
        let silence = self.pending(failed).find(is_silent).map(Part::silence);
        if let Some(error) = silence {
            self.abandon();
            return Err(error);
        }
        let waited = now.since(begin);
        if options.round_timeout.is_some_and(|timeout| waited > timeout) {
            // A switch that waits for other workers answers the Helps, which are at most a quarter of a second apart.
            let is_silent = |part: &&Part| now.since(part.link.last_heard) >= LONGEST_WAIT.min(waited);
            let silence = self.pending(failed).find(is_silent).map(Part::silence);
            let missing = self.all.iter().map(|part| part.session.remaining()).sum();
            let parent_lost = self.all.iter().any(|part| part.session.is_orphaned());
            let round = self.round().get();
            self.abandon();
            return Err(silence.unwrap_or(AggregateError::Stalled { round, waited, missing, parent_lost }));
        }
        let deadline = self.all.iter().filter_map(|part| part.session.poll_timeout()).min().unwrap_or(now);
        self.poll.clear();
        for part in &self.all {
            self.poll.push(part.link.socket.as_fd());
            if let Some(group) = part.link.group_socket() {
                self.poll.push(group.as_fd());
            }
        }
        self.poll.wait(Some(deadline.since(now)))?;
        self.looked = self.first().link.now();
        Ok(())
    }

    /// Returns the result of the whole round, and readies the parts for the next round.
    fn take_finished(&mut self) -> Finished {
        let all = self.all.iter_mut().filter_map(|part| {
            let done = part.done();
            part.give_up_round();
            done
        });
        let whole = all.reduce(|one, other| Finished {
            round: one.round,
            fewest: one.fewest.min(other.fewest),
            most: one.most.max(other.most),
        });
        self.rounds += 1;
        whole.expect("a worker has at least one part")
    }
}

/// Returns whether all turns are known and equal.
fn are_equal(mut turns: impl Iterator<Item = Option<u32>>) -> bool {
    let first = turns.next().flatten();
    first.is_some() && turns.all(|turn| turn == first)
}

/// Returns whether a failure ends the round for the worker, so that the part continues with a later vector. The other
/// parts then end the round as well, so that all continue together.
fn ends_round(failure: Failure) -> bool {
    matches!(failure, Failure::Missed(_) | Failure::StaleRound(_))
}

/// Returns the turn `by` turns earlier.
fn earlier(turn: u32, by: u32) -> u32 {
    turn.wrapping_sub(by) & ((1 << TURN_BITS) - 1)
}

/// Compares turns, whose numbers wrap.
pub(super) fn compare(one: u32, other: u32) -> Ordering {
    let ahead = earlier(one, other);
    match ahead {
        0 => Ordering::Equal,
        _ if ahead < 1 << (TURN_BITS - 1) => Ordering::Greater,
        _ => Ordering::Less,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_compare_across_the_wrap() {
        let last = (1 << TURN_BITS) - 1;
        assert_eq!(compare(5, 5), Ordering::Equal);
        assert_eq!(compare(6, 5), Ordering::Greater);
        assert_eq!(compare(0, last), Ordering::Greater);
        assert_eq!(compare(last, 0), Ordering::Less);
        assert_eq!(earlier(0, 1), last);
    }
}
