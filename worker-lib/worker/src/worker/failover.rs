//! Failover between the switches of a job: determines when a worker moves from one switch to the next.
//!
//! All workers of a job have the same list of switches and use one switch at a time. A worker moves to the next
//! switch in two cases: the current one is silent, or it answers but the job does not become complete there, because
//! other workers cannot reach it. The workers gather at one switch because each of them stays longer at a switch
//! where further workers arrive, and because all of them stay longer at the first switch than at the others.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::thread;
use std::time::{Duration, Instant as WallClock};

use iswitch_protocol::Instant;
use iswitch_protocol::limits::MAX_PARTS;

use super::enrolment::JoinProgress;
use super::join::{JoinError, JoinOptions};
use super::link::is_transient;

/// Time for which a worker waits at the first switch for further workers, as a multiple of the time for which a switch
/// may be silent. At the other switches, a worker waits for half of this time, so that two groups of workers that move
/// at the same time do not miss each other forever.
const STAY_AT_FIRST: u32 = 4;
const STAY_AT_OTHERS: u32 = 2;
/// Time for which a switch may be silent while the worker waits there for further workers, as a multiple of the time
/// for which it may be silent otherwise. It is longer because a waiting worker repeats its Join only every half
/// second.
const SILENCE_WHILE_WAITING: u32 = 3;
/// Pause after an attempt to join at a switch to which there is no route.
const UNREACHABLE_PAUSE: Duration = Duration::from_millis(50);
/// The stay is doubled each time a worker has visited all switches in vain, but at most this many times.
const MAX_DOUBLINGS: u32 = 2;

/// Time limits of a visit to a switch.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Time for which the switch may be silent.
    pub silence: Duration,
    /// Time for which the worker waits for further workers to join, counted from the last one that joined.
    pub stay: Duration,
}

/// Position of a worker in the list of its switches.
#[derive(Clone, Debug)]
pub struct Itinerary {
    /// At least one switch.
    switches: Vec<SocketAddrV4>,
    silence: Duration,
    /// Position of the current switch in the list.
    current: usize,
    /// Number of moves since the worker was last a member of a complete job.
    moves: usize,
}

impl Itinerary {
    /// Creates an itinerary that starts at `first`. Each switch may be silent for at most `silence`.
    pub fn new(first: SocketAddrV4, others: &[SocketAddrV4], silence: Duration) -> Self {
        let switches = std::iter::once(first).chain(others.iter().copied()).collect();
        Self { switches, silence, current: 0, moves: 0 }
    }

    /// Returns the current switch.
    pub fn switch(&self) -> SocketAddrV4 {
        self.switches[self.current]
    }

    /// Returns the time limits of the visit to the current switch, or `None` if there is no other switch.
    pub fn patience(&self) -> Option<Patience> {
        let stays = if self.current == 0 { STAY_AT_FIRST } else { STAY_AT_OTHERS };
        let doublings = (self.moves / self.switches.len()).min(MAX_DOUBLINGS as usize) as u32;
        let patience = Patience { silence: self.silence, stay: self.silence * (stays << doublings) };
        (self.switches.len() > 1).then_some(patience)
    }

    /// Moves to the next switch and returns it.
    pub fn advance(&mut self) -> SocketAddrV4 {
        self.current = (self.current + 1) % self.switches.len();
        self.moves += 1;
        self.switch()
    }

    /// Moves to the next switch to which there is a route. Returns `None`, and stays at the current switch, if there is
    /// no route to any other one.
    pub(super) fn advance_along_route(&mut self, local: Ipv4Addr) -> Option<SocketAddrV4> {
        for _ in 1..self.switches.len() {
            let switch = self.advance();
            if has_route(local, switch) {
                return Some(switch);
            }
        }
        self.advance();
        None
    }

    /// Returns whether the worker has visited every switch since it was last a member of a complete job.
    fn has_tried_all(&self) -> bool {
        self.moves + 1 >= self.switches.len()
    }

    /// Records that the worker is a member of a complete job.
    pub fn arrived(&mut self) {
        self.moves = 0;
    }
}

/// Visit of a worker to a switch.
#[derive(Clone, Copy, Debug)]
pub struct Visit {
    /// Start of the visit, or the last time at which a further worker joined the job at this switch.
    since: Instant,
    /// Highest number of members that the switch has reported.
    present: u16,
    /// Number of readmissions of the worker before the visit; `None` if the worker has only just joined.
    rejoins_before: Option<u64>,
}

impl Visit {
    /// Begins the visit of a worker that has just joined.
    pub fn of_newcomer(now: Instant) -> Self {
        Self { since: now, present: 0, rejoins_before: None }
    }

    /// Begins the visit of a worker that has moved here, after `rejoins` readmissions.
    pub fn begin(now: Instant, rejoins: u64) -> Self {
        Self { since: now, present: 0, rejoins_before: Some(rejoins) }
    }

    /// Restarts the time limits of the visit at `now`.
    pub fn extend(&mut self, now: Instant) {
        (self.since, self.present) = (now, 0);
    }

    /// Returns whether the worker sends a Leave if it moves on now, after `rejoins` readmissions. If the job has not
    /// been complete at the switch during this visit, the worker leaves, so that the job cannot become complete there
    /// while the worker is away. If the job has been complete, the worker must not leave, because the others would
    /// then continue without it.
    pub fn ends_with_leave(&self, progress: JoinProgress, rejoins: u64) -> bool {
        matches!(progress, JoinProgress::Waiting(_)) && self.rejoins_before == Some(rejoins)
    }

    /// Returns whether the worker moves to the next switch. `last_heard` is the time of the last packet from the
    /// switch.
    pub fn is_over(
        &mut self,
        now: Instant,
        progress: JoinProgress,
        last_heard: Instant,
        patience: Patience,
    ) -> bool {
        let limit = match progress {
            JoinProgress::Unanswered => patience.silence,
            JoinProgress::Waiting(present) => {
                if present > self.present {
                    (self.since, self.present) = (now, present);
                }
                if now.since(last_heard.max(self.since)) > patience.silence * SILENCE_WHILE_WAITING {
                    return true;
                }
                patience.stay
            }
            JoinProgress::Joined => {
                self.extend(last_heard.max(self.since));
                patience.silence
            }
            // The refusal is reported to the caller.
            JoinProgress::Refused(..) => return false,
        };
        now.since(self.since) > limit
    }
}

/// Returns whether the kernel has a route to a switch.
fn has_route(local: Ipv4Addr, switch: SocketAddrV4) -> bool {
    UdpSocket::bind((local, 0)).and_then(|socket| socket.connect(switch)).is_ok()
}

/// Checks the options that concern switches.
pub(super) fn check(options: &JoinOptions) -> Result<(), JoinError> {
    let count = 1 + options.standbys.len();
    if count > MAX_PARTS {
        return Err(JoinError::TooManySwitches { count });
    }
    if count > 1 && options.workers == 0 {
        return Err(JoinError::StandbysWithoutWorkers);
    }
    Ok(())
}

/// Joins at one of the switches: calls `join` with the options for one switch after another until it succeeds. Also
/// returns the position in the list of switches.
pub(super) fn join_at_any<T>(
    options: &JoinOptions,
    mut join: impl FnMut(JoinOptions, Option<Duration>) -> Result<T, JoinError>,
) -> Result<(T, Itinerary), JoinError> {
    check(options)?;
    let mut itinerary = Itinerary::new(options.switch, &options.standbys, options.failover_timeout);
    let begin = WallClock::now();
    let mut answered_at = begin;
    loop {
        let Some(Patience { silence, stay }) = itinerary.patience() else {
            return Ok((join(options.clone(), None)?, itinerary));
        };
        let (switch, connect_timeout) = (itinerary.switch(), options.connect_timeout.min(silence));
        let workers_timeout = options.workers_timeout.map(|limit| limit.saturating_sub(begin.elapsed()));
        let attempt = JoinOptions { switch, connect_timeout, workers_timeout, ..options.clone() };
        let error = match join(attempt, Some(stay)) {
            Ok(joined) => {
                itinerary.arrived();
                return Ok((joined, itinerary));
            }
            Err(error) => error,
        };
        match error {
            JoinError::NoAnswer { detail, .. } => {
                let silent = answered_at.elapsed();
                if silent > options.connect_timeout && itinerary.has_tried_all() {
                    return Err(JoinError::NoAnswer { switch, waited: silent, detail });
                }
            }
            JoinError::Io(error) if is_transient(&error) => {
                if answered_at.elapsed() > options.connect_timeout && itinerary.has_tried_all() {
                    return Err(error.into());
                }
                thread::sleep(UNREACHABLE_PAUSE);
            }
            JoinError::WorkersMissing { present, workers, .. } => {
                answered_at = WallClock::now();
                let waited = begin.elapsed();
                if options.workers_timeout.is_some_and(|limit| waited > limit) {
                    return Err(JoinError::WorkersMissing { present, workers, waited });
                }
            }
            error => return Err(error),
        }
        let next = itinerary.advance();
        tracing::info!(%switch, %next, "trying to join at the next switch");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SILENCE: Duration = Duration::from_millis(100);

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn itinerary(count: u16) -> Itinerary {
        let switch = |port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        let others: Vec<_> = (1..count).map(switch).collect();
        Itinerary::new(switch(0), &others, SILENCE)
    }

    #[test]
    fn a_single_switch_is_never_left() {
        assert!(itinerary(1).patience().is_none());
    }

    #[test]
    fn a_silent_switch_is_left_and_an_answering_one_only_if_workers_stay_away() {
        let patience = itinerary(2).patience().unwrap();
        let over =
            |visit: &mut Visit, now, progress, heard| visit.is_over(at(now), progress, at(heard), patience);
        let mut visit = Visit::of_newcomer(at(0));
        assert!(!over(&mut visit, 100, JoinProgress::Unanswered, 0));
        assert!(over(&mut visit, 101, JoinProgress::Unanswered, 0));
        assert!(!over(&mut visit, 300, JoinProgress::Waiting(1), 300));
        assert!(!over(&mut visit, 650, JoinProgress::Waiting(1), 650));
        // A further worker extends the stay.
        assert!(!over(&mut visit, 690, JoinProgress::Waiting(2), 690));
        assert!(!over(&mut visit, 1090, JoinProgress::Waiting(2), 1090));
        assert!(over(&mut visit, 1091, JoinProgress::Waiting(2), 1091));
        assert!(over(&mut visit, 1085, JoinProgress::Waiting(2), 700), "the switch has become silent");
        let mut member = Visit::of_newcomer(at(0));
        assert!(!over(&mut member, 5_100, JoinProgress::Joined, 5_000));
        assert!(over(&mut member, 5_101, JoinProgress::Joined, 5_000));
    }

    #[test]
    fn a_switch_without_a_route_is_passed_over() {
        // No interface has an address of this network, which is reserved for documentation.
        let local = Ipv4Addr::LOCALHOST;
        let unreachable = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 7711);
        let reachable = |port| SocketAddrV4::new(local, port);
        let mut itinerary = Itinerary::new(reachable(1), &[unreachable, reachable(2)], SILENCE);
        assert_eq!(itinerary.advance_along_route(local), Some(reachable(2)));
        let mut itinerary = Itinerary::new(reachable(1), &[unreachable], SILENCE);
        assert_eq!(itinerary.advance_along_route(local), None);
        assert_eq!(itinerary.switch(), reachable(1));
    }

    #[test]
    fn two_groups_of_workers_that_move_at_the_same_time_meet() {
        // One group begins at the first switch, the other one at the second, and each leaves when its stay is over.
        for offset in (0..1_000).step_by(10) {
            let mut groups = [(itinerary(2), 400), (itinerary(2), 1 + offset)];
            groups[1].0.advance();
            let (mut together, mut met) = (0, false);
            for now in 0..30_000 {
                for (itinerary, until) in &mut groups {
                    if *until == now {
                        itinerary.advance();
                        *until = now + itinerary.patience().unwrap().stay.as_millis() as u64;
                    }
                }
                together = if groups[0].0.switch() == groups[1].0.switch() { together + 1 } else { 0 };
                met |= together >= 100;
            }
            assert!(met, "offset {offset}");
        }
    }
}
