//! Rounds of a worker over all parts of its vector. The parts are driven by the caller's thread and, if the machine has
//! spare cores, by further threads. Each thread waits for all of its parts at the same time.
//!
//! Each part is summed by a different switch, with separate round numbers and member ids. A call is over when every
//! part has its result. A part that has finished the round waits for the others; if the round is repeated after an
//! error, this part keeps its result. No part ever contributes to a vector before all parts have finished the previous
//! vector. The turn of a part is the number of sums in its history; the turns show whether all parts are at the same
//! vector (requirement T-7).

use core::cmp::Ordering;
use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Scope, ScopedJoinHandle, Thread};
use std::time::Duration;
use std::{io, mem};

use iswitch_protocol::Round;
use iswitch_protocol::limits::TURN_BITS;

use super::join::JoinOptions;
use super::lane::{Lane, Stop, Task};
use super::part::{self, Part};
use super::protocol::{Finished, WorkerCounters};
use super::window::{Arrivals, ROUNDS, is_slow};
use crate::aggregate::{Absent, AggregateError};

/// Interval at which `keep_waiting` is called while the caller's thread waits for the lanes of other threads.
const INTERVAL: Duration = Duration::from_millis(100);

/// All parts of a worker's vector, at least one, in the order of the vector.
#[derive(Debug)]
pub(super) struct Parts {
    all: Vec<Part>,
    /// Lanes, one for each thread that drives parts. There are at most as many lanes as parts.
    lanes: Vec<Lane>,
    /// Number of rounds that have been finished by all parts.
    rounds: u64,
    /// Rates at which the results of all parts arrived in the most recent rounds, in segments per second. Empty if
    /// there is only one lane.
    segments_per_s: VecDeque<f64>,
}

/// Whether the parts are at the same vector before a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Agreement {
    /// All parts are at the same vector: each of them is about to begin it or has just finished it.
    Together,
    /// Some parts are at a later vector than others.
    Apart,
}

impl Parts {
    pub(super) fn new(all: Vec<Part>, options: &JoinOptions) -> Self {
        let lanes = options.thread_count().clamp(1, all.len().max(1));
        let lanes = (0..lanes).map(|_| Lane::new(options.spin)).collect();
        Self { all, lanes, rounds: 0, segments_per_s: VecDeque::with_capacity(ROUNDS) }
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

    /// Returns the number of the next round of the first part, which is reported as the number for the whole vector.
    pub(super) fn round(&self) -> Round {
        self.first().session.round()
    }

    /// Returns whether the parts can take part in the next round, or continue the round in progress. If the round in
    /// progress cannot be continued, the parts that have finished it are prepared for the next one.
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

    /// Returns the latest turn of any part, or `None` if no turn is known.
    pub(super) fn latest_turn(&self) -> Option<u32> {
        let turns = self.all.iter().filter_map(|part| part.session.turn());
        turns.reduce(|one, other| if compare(one, other) == Ordering::Less { other } else { one })
    }

    /// Returns whether the worker was readmitted while it lacked some sums that the other workers have. Clears this
    /// information.
    pub(super) fn take_missed(&mut self) -> bool {
        self.all.iter_mut().filter_map(|part| part.session.take_missed()).count() > 0
    }

    /// Runs the round for all parts that have not finished it. Blocks as long as `keep_waiting` returns true. If the
    /// worker has to move to another switch first, returns `None`.
    pub(super) fn run_round(
        &mut self,
        task: Task<'_>,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Finished>, AggregateError> {
        match self.drive(task, keep_waiting) {
            Ok(()) => Ok(Some(self.take_finished())),
            Err(Stop::Moves) => {
                self.all.iter_mut().for_each(|part| part.session.abandon_round());
                Ok(None)
            }
            Err(stop) => Err(self.stop(stop)),
        }
    }

    /// Begins the round in all parts that have not finished it.
    pub(super) fn begin_round(&mut self) {
        let now = self.first().link.now();
        self.all.iter_mut().for_each(|part| part.begin_round(now));
    }

    /// Begins the round again after a move to another switch.
    pub(super) fn begin_round_again(&mut self) {
        let now = self.first().link.now();
        self.all.iter_mut().for_each(|part| part.begin_round_again(now));
    }

    /// Drives all parts through the round, each lane in a separate thread; the first lane runs in the calling thread.
    fn drive(&mut self, task: Task<'_>, keep_waiting: &mut dyn FnMut() -> bool) -> Result<(), Stop> {
        let one_suffices = self.lanes.len() == 1 || self.is_link_slow();
        let share = self.share();
        let Self { all, lanes, .. } = self;
        let Some((own, others)) = lanes.split_first_mut() else { return Ok(()) };
        if one_suffices {
            return own.drive(all, task, keep_waiting);
        }
        let (own_parts, other_parts) = all.split_at_mut(share);
        let crew =
            Crew { stop: AtomicBool::new(false), running: AtomicUsize::new(0), caller: thread::current() };
        thread::scope(|scope| {
            let work = others.iter_mut().zip(other_parts.chunks_mut(share));
            let threads: Vec<_> = work
                .map(|(lane, parts)| crew.spawn(scope, move |keep| lane.drive(parts, task, keep)))
                .collect();
            let own = own.drive(own_parts, task, &mut || !crew.is_stopped() && keep_waiting());
            let own = crew.note(own);
            let waiting = crew.wait_for_others(keep_waiting);
            let ended =
                threads.into_iter().map(|thread| thread?.join().unwrap_or_else(|panic| resume_unwind(panic)));
            let stops = [own, waiting].into_iter().chain(ended).filter_map(Result::err);
            stops.reduce(Stop::and).map_or(Ok(()), Err)
        })
    }

    /// Returns whether the link to the switch, which all parts share, limits the rate. A single lane then suffices.
    /// Several lanes would even be slower: each worker would queue the parts in a different order, and the segments
    /// that come first at one worker would wait behind other parts at the others.
    fn is_link_slow(&self) -> bool {
        is_slow(self.segments_per_s.iter().copied().fold(0.0, f64::max))
    }

    /// Records the rate of the round that all parts have just finished.
    fn note_rate(&mut self) {
        let arrivals = self.all.iter().filter_map(|part| part.session.arrivals());
        let Some(arrivals) = arrivals.reduce(Arrivals::and) else { return };
        if self.segments_per_s.len() == ROUNDS {
            self.segments_per_s.pop_front();
        }
        self.segments_per_s.push_back(arrivals.segments_per_s());
    }

    /// Ends the round after a lane has stopped; returns the error to report.
    fn stop(&mut self, stop: Stop) -> AggregateError {
        let missing = self.all.iter().map(|part| part.session.remaining()).sum();
        if stop.stops_all() && !matches!(stop, Stop::Io(_)) {
            self.all.iter_mut().for_each(|part| part.session.abandon_round());
        }
        match stop {
            Stop::Failed(error) | Stop::Repeats(error) => self.in_numbers_of_first(error),
            Stop::Stalled(waited) => {
                let parent_lost = self.all.iter().any(|part| part.session.is_orphaned());
                let round = self.round().get();
                // Without its parent, the switch cannot know which workers the round is waiting for.
                let absent = if parent_lost { None } else { self.ask_absent() }.unwrap_or_default();
                AggregateError::Stalled { round, waited, missing, parent_lost, absent }
            }
            // A move is not an error.
            Stop::Moves | Stop::Interrupted => AggregateError::Interrupted,
            Stop::Io(error) => error.into(),
        }
    }

    /// Asks the switch which members the round is waiting for, in the first part that has not finished it. Returns
    /// `None` if all parts have finished it, or if the switch does not answer.
    fn ask_absent(&mut self) -> Option<Absent> {
        self.all.iter_mut().find(|part| part.done().is_none())?.ask_absent()
    }

    /// Copies the most recent sum, or a prefix of it.
    pub(super) fn copy_sum(&self, to: &mut [f32]) {
        if self.lanes.len() == 1 {
            return copy(&self.all, to);
        }
        let mut rest = to;
        let pieces: Vec<_> = self
            .all
            .chunks(self.share())
            .map(|parts| {
                let len = parts.iter().map(|part| part.range().len()).sum::<usize>().min(rest.len());
                let own;
                (own, rest) = mem::take(&mut rest).split_at_mut(len);
                (parts, own)
            })
            .collect();
        let pieces = Mutex::new(pieces.into_iter());
        let next = || pieces.lock().unwrap_or_else(PoisonError::into_inner).next();
        let copy_pieces = || {
            while let Some((parts, own)) = next() {
                copy(parts, own);
            }
        };
        thread::scope(|scope| {
            for _ in 1..self.lanes.len() {
                // If no thread can be started, the copy merely takes longer.
                if thread::Builder::new().spawn_scoped(scope, copy_pieces).is_err() {
                    break;
                }
            }
            copy_pieces();
        });
    }

    /// Returns the number of parts that each lane drives; the last lane may drive fewer.
    fn share(&self) -> usize {
        self.all.len().div_ceil(self.lanes.len())
    }

    /// Replaces the round numbers in an error with those of the first part, which are the ones that the caller knows.
    /// All parts must have ended the round.
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

    /// Returns the result of the whole round, and prepares the parts for the next round.
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
        if self.lanes.len() > 1 {
            self.note_rate();
        }
        whole.expect("a worker has at least one part")
    }
}

/// Copies the most recent sums of consecutive parts to `to`, as far as they fit.
fn copy(parts: &[Part], to: &mut [f32]) {
    parts.iter().fold(to, |to, part| part.copy_sum(to));
}

/// Returns whether all turns are known and equal.
fn are_equal(mut turns: impl Iterator<Item = Option<u32>>) -> bool {
    let first = turns.next().flatten();
    first.is_some() && turns.all(|turn| turn == first)
}

/// State shared by the threads that drive the lanes of one round.
struct Crew {
    stop: AtomicBool,
    /// Number of threads, other than the caller's, that are still running.
    running: AtomicUsize,
    caller: Thread,
}

/// Guard for a running thread of the crew. When it is dropped, the thread no longer counts as running.
struct Hand<'a>(&'a Crew);

impl Drop for Hand<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Relaxed);
        self.0.caller.unpark();
    }
}

impl Crew {
    /// Starts a thread that drives a lane until it ends or another lane stops.
    fn spawn<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        drive: impl FnOnce(&mut dyn FnMut() -> bool) -> Result<(), Stop> + Send + 'scope,
    ) -> io::Result<ScopedJoinHandle<'scope, Result<(), Stop>>> {
        self.running.fetch_add(1, Relaxed);
        let hand = Hand(self);
        let run = move || {
            // This moves the guard itself into the closure, which would otherwise capture only the guard's field.
            let hand = hand;
            hand.0.note(drive(&mut || !hand.0.is_stopped()))
        };
        let thread = thread::Builder::new().name("iswitch-lane".into()).spawn_scoped(scope, run);
        if thread.is_err() {
            self.stop.store(true, Relaxed);
        }
        thread
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Processes the outcome of a lane, and stops the other lanes if the outcome requires it.
    fn note(&self, outcome: Result<(), Stop>) -> Result<(), Stop> {
        if outcome.as_ref().is_err_and(Stop::stops_all) {
            self.stop.store(true, Relaxed);
        }
        outcome
    }

    /// Waits until all other threads have ended. Calls `keep_waiting` periodically in the meantime.
    fn wait_for_others(&self, keep_waiting: &mut dyn FnMut() -> bool) -> Result<(), Stop> {
        let mut outcome = Ok(());
        while self.running.load(Relaxed) > 0 {
            thread::park_timeout(INTERVAL);
            if !self.is_stopped() && !keep_waiting() {
                outcome = self.note(Err(Stop::Interrupted));
            }
        }
        outcome
    }
}

/// Returns the turn that is `by` turns before `turn`.
fn earlier(turn: u32, by: u32) -> u32 {
    turn.wrapping_sub(by) & ((1 << TURN_BITS) - 1)
}

/// Compares two turns. Turn numbers wrap around.
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
