//! State of a thread that drives some of the parts of a vector, and the loop in which it drives them through a round.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use iswitch_protocol::Instant;
use iswitch_socket::{PollSet, Spin};

use super::failover::Patience;
use super::join::JoinOptions;
use super::outcome::round_error;
use super::part::Part;
use super::protocol::Failure;
use crate::aggregate::AggregateError;

/// Time that is longer than any wait within a round. If more time has passed since the last wait, the process must have
/// been suspended.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// If the switch has been silent for less than this time, a round that exceeds its timeout fails because it has
/// stalled, not because the switch is lost. A switch that waits for other workers answers the first Help of a round
/// within milliseconds, but on a busy machine it may have to wait for a core.
const SHORTEST_SILENCE: Duration = Duration::from_millis(250);

/// State that a thread keeps between rounds. It includes what the thread needs to wait for all of its parts at the same
/// time.
#[derive(Debug)]
pub(super) struct Lane {
    spin: Spin,
    poll: PollSet,
    /// Time at which this lane last waited in the round in progress.
    waited_at: Instant,
}

/// Description of the round that all lanes run.
#[derive(Clone, Copy)]
pub(super) struct Task<'a> {
    pub(super) options: &'a JoinOptions,
    /// The contribution for the whole vector, of which each part sends a range.
    pub(super) contribution: &'a [f32],
    pub(super) begin: Instant,
    /// Time limits of the visit to the switch, if the worker has several switches.
    pub(super) patience: Option<Patience>,
}

/// Reason why a lane ended the round before all of its parts had their results.
pub(super) enum Stop {
    /// A part failed with an error that ends the round; the other parts of the lane have ended it as well.
    Failed(AggregateError),
    /// The next call repeats the round, in all parts that have not finished it.
    Repeats(AggregateError),
    /// The worker moves to the next of its switches, where it repeats the round.
    Moves,
    /// The round exceeded its timeout; the value is the time since it began.
    Stalled(Duration),
    /// The caller or another lane has stopped waiting.
    Interrupted,
    Io(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Stop {
    /// Returns whether the other lanes must stop as well. If only some parts have failed, the other lanes finish the
    /// round.
    pub(super) fn stops_all(&self) -> bool {
        !matches!(self, Self::Failed(_))
    }

    /// Combines the reasons of two lanes into the reason for the end of the round.
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            // The failure is the cause, but the next call repeats the round in the parts of the other lane.
            (Self::Failed(error), other) if other.stops_all() => Self::Repeats(error),
            (Self::Interrupted | Self::Moves, Self::Failed(error)) => Self::Repeats(error),
            // A lane that stopped because of another lane has the less informative reason.
            (Self::Interrupted, other) => other,
            (first, _) => first,
        }
    }
}

impl Lane {
    pub(super) fn new(spin: Duration) -> Self {
        Self { spin: Spin::new(spin), poll: PollSet::new(), waited_at: Instant::default() }
    }

    /// Drives the lane's parts until each of them has finished the round or failed, as long as `keep_waiting` returns
    /// true.
    pub(super) fn drive(
        &mut self,
        parts: &mut [Part],
        task: Task<'_>,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<(), Stop> {
        let mut failure = None;
        let outcome = self.drive_to_end(parts, task, &mut failure, keep_waiting);
        match (failure, outcome) {
            (None, outcome) => outcome,
            (Some(failure), Ok(())) => Err(Stop::Failed(failure)),
            // The first failure is the cause.
            (Some(failure), Err(_)) => Err(Stop::Repeats(failure)),
        }
    }

    /// Works like [`Self::drive`]. `failure` holds the first failure that ends the round.
    fn drive_to_end(
        &mut self,
        parts: &mut [Part],
        task: Task<'_>,
        failure: &mut Option<AggregateError>,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<(), Stop> {
        self.waited_at = task.begin;
        let mut idle_since = task.begin;
        let mut failed = 0u32;
        loop {
            let now = now(parts);
            flush(parts, now, task.contribution)?;
            for (at, part) in parts.iter_mut().enumerate() {
                let Err(cause) = part.note_outcome() else { continue };
                failed |= 1 << at;
                let error = failure.take().unwrap_or_else(|| round_error(part.session.round(), cause));
                if !ends_round(cause) {
                    return Err(Stop::Repeats(error));
                }
                *failure = Some(error);
            }
            if pending(parts, failed).next().is_none() {
                return Ok(());
            }
            if receive(parts, now)? {
                self.spin.note(last_heard(parts).since(idle_since));
                idle_since = self::now(parts);
            } else if self.spin.goes_on(self::now(parts).since(idle_since)) {
                // The workers whose contributions are awaited may need this core.
                std::thread::yield_now();
            } else {
                self.wait(parts, task, failed)?;
                if !keep_waiting() {
                    return Err(Stop::Interrupted);
                }
            }
        }
    }

    /// Sleeps until a datagram arrives or the earliest deadline of a part has passed, but no longer than the caller's
    /// timeouts allow.
    fn wait(&mut self, parts: &mut [Part], task: Task<'_>, failed: u32) -> Result<(), Stop> {
        let now = now(parts);
        let paused = now.since(self.waited_at.max(last_heard(parts))).saturating_sub(LONGEST_WAIT);
        // A process that was suspended could not have heard the switch.
        parts.iter_mut().for_each(|part| part.excuse_silence(paused));
        let is_silent = |part: &&Part| now.since(part.link.last_heard) > task.options.switch_timeout;
        if let Some(part) = pending(parts, failed).find(is_silent) {
            return Err(Stop::Repeats(part.silence()));
        }
        if let Some(patience) = task.patience
            && parts.iter_mut().enumerate().any(|(at, part)| {
                part.done().is_none() && failed >> at & 1 == 0 && part.is_in_vain(now, patience)
            })
        {
            return Err(Stop::Moves);
        }
        let waited = now.since(task.begin);
        if task.options.round_timeout.is_some_and(|timeout| waited > timeout) {
            // A switch that waits for other workers answers the Helps, which are at most a quarter of a second apart.
            // Packets that arrived between two rounds are read, and count as heard, shortly after the round begins.
            let silence = (waited * 9 / 10).clamp(SHORTEST_SILENCE, LONGEST_WAIT);
            let is_silent = |part: &&Part| now.since(part.link.last_heard) >= silence;
            if let Some(part) = pending(parts, failed).find(is_silent) {
                return Err(Stop::Repeats(part.silence()));
            }
            parts.iter_mut().for_each(|part| part.stall(now));
            return Err(Stop::Stalled(waited));
        }
        let deadline = parts.iter().filter_map(|part| part.session.poll_timeout()).min().unwrap_or(now);
        self.poll.clear();
        for part in parts.iter() {
            self.poll.push(part.link.socket.as_fd());
            if let Some(group) = part.link.group_socket() {
                self.poll.push(group.as_fd());
            }
        }
        self.poll.wait(Some(deadline.since(now)))?;
        self.waited_at = self::now(parts);
        Ok(())
    }
}

/// Returns the time, which is read only once for all parts.
fn now(parts: &[Part]) -> Instant {
    parts[0].link.now()
}

/// Sends the pending packets of all parts, taking one frame from each part in turn, so that all switches have work from
/// the beginning.
fn flush(parts: &mut [Part], now: Instant, contribution: &[f32]) -> io::Result<()> {
    parts.iter_mut().for_each(Part::follow_group);
    loop {
        let mut any = false;
        for part in &mut *parts {
            any |= part.send(now, contribution)?;
        }
        if !any {
            return Ok(());
        }
    }
}

/// Returns the parts that have neither finished the round nor failed; `failed` has one bit for each part.
fn pending(parts: &[Part], failed: u32) -> impl Iterator<Item = &Part> {
    let is_pending = move |(at, part): &(usize, &Part)| part.done().is_none() && failed >> at & 1 == 0;
    parts.iter().enumerate().filter(is_pending).map(|(_, part)| part)
}

fn last_heard(parts: &[Part]) -> Instant {
    parts.iter().fold(Instant::default(), |latest, part| latest.max(part.link.last_heard))
}

/// Handles the packets that have arrived, and the timers of those parts for which no packet has arrived. Returns
/// whether any packet has arrived.
fn receive(parts: &mut [Part], now: Instant) -> io::Result<bool> {
    let mut any = false;
    for part in parts {
        if part.receive()? {
            any = true;
        } else if part.session.poll_timeout().is_some_and(|deadline| deadline <= now) {
            part.session.handle_timeout(now);
        }
    }
    Ok(any)
}

/// Returns whether, after this failure of a part, the part continues with a later vector. The other parts must then end
/// the round as well, so that all parts continue with the same vector.
fn ends_round(failure: Failure) -> bool {
    matches!(failure, Failure::Missed(_) | Failure::StaleRound(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_beside_a_lane_that_has_not_finished_repeats_the_round() {
        let failed = || Stop::Failed(AggregateError::MissedRounds { next: 7 });
        let stalled = || Stop::Stalled(Duration::from_secs(1));
        let repeats = |stop: Stop| matches!(stop, Stop::Repeats(AggregateError::MissedRounds { next: 7 }));
        assert!(repeats(failed().and(stalled())));
        assert!(repeats(failed().and(Stop::Interrupted)));
        assert!(repeats(Stop::Interrupted.and(failed())));
        assert!(stalled().and(failed()).stops_all());
        assert!(!failed().and(failed()).stops_all());
        assert!(matches!(Stop::Interrupted.and(stalled()), Stop::Stalled(_)));
    }
}
