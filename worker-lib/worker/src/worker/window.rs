//! The window: the number of segments that may be in flight.
//!
//! A window that is too small leaves the path idle. A window that is larger than the capacity of the path fills queues
//! and caches, and causes losses when the queues overflow. The window therefore follows the measured capacity of the
//! path: twice the product of the highest rate and the shortest round trip in the most recent rounds, as in BBR
//! (Cardwell et al., ACM Queue 14(5), 2016). Without losses, the window is never smaller than a path within a rack
//! needs. Losses halve the window, and results widen it again.
//!
//! The parts of a vector share the link to the switch. On a slow link they therefore share this minimum as well. With
//! large windows, each worker would queue the parts in a different order, and the segments that come first at one
//! worker would wait behind a queue of other parts at the others.

use core::time::Duration;
use std::collections::VecDeque;

use iswitch_protocol::Instant;
use iswitch_protocol::limits::MAX_SUPERFRAME_DATAGRAMS;

/// Minimum window, which is reached after many losses.
pub(crate) const MIN_WINDOW: u32 = 4;
/// Minimum window on a path without losses: eight super-frames. On paths within a machine or a rack, a window of this
/// size keeps the workers and the switch busy and fits in their caches.
const SHORT_PATH_WINDOW: u32 = 8 * MAX_SUPERFRAME_DATAGRAMS as u32;
/// Number of most recent rounds from which the highest rate and the shortest round trip are determined.
pub(super) const ROUNDS: usize = 8;
/// Maximum number of segments in a super-frame.
const FULL_FRAME: u32 = MAX_SUPERFRAME_DATAGRAMS as u32;
/// Number of segments in the first and the last super-frame on a slow path.
const MIN_FRAME: u32 = 4;
/// Transmission time of a full super-frame above which a path counts as slow. It is many times the processor time that
/// a super-frame takes.
const SLOW_FRAME: Duration = Duration::from_micros(300);
/// Ratio of the window to the measured capacity of the path. As long as the window limits the rate, the window doubles
/// with each round.
const GAIN: f64 = 2.0;

/// Measurements of one round.
#[derive(Clone, Copy, Debug)]
struct Seen {
    segments_per_s: f64,
    round_trip: Duration,
}

/// Results of the most recent round, except for those that arrived first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrivals {
    segments: u32,
    /// Time at which the first results of the round arrived.
    begin: Instant,
    /// Time at which the last results of the round arrived.
    end: Instant,
}

impl Arrivals {
    /// Returns the results of two parts together.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            segments: self.segments + other.segments,
            begin: self.begin.min(other.begin),
            end: self.end.max(other.end),
        }
    }

    /// Returns the rate at which the results arrived, in segments per second; zero if they all arrived at once.
    pub(super) fn segments_per_s(self) -> f64 {
        let seconds = self.end.since(self.begin).as_secs_f64();
        if seconds > 0.0 { f64::from(self.segments) / seconds } else { 0.0 }
    }
}

/// Controls the window of one member.
#[derive(Debug)]
pub(crate) struct Window {
    /// Limit set by the switch and the receive buffer.
    granted: u32,
    /// Number of parts of the whole vector, each of which has a window of its own on the same link.
    parts: u32,
    /// Limit derived from the capacity of the path.
    path: u32,
    /// Limit derived from losses.
    after_losses: u32,
    seen: VecDeque<Seen>,
    /// Send operations whose segments have no result yet: for each of them, the total number of segments sent up to and
    /// including it, and the time.
    marks: VecDeque<(u32, Instant)>,
    shortest: Option<Duration>,
    /// Time at which the first results of the round arrived, and their number.
    first: Option<(Instant, u32)>,
    /// Results of the most recent round; `None` before its end.
    arrivals: Option<Arrivals>,
}

impl Window {
    /// Creates the window of a member that may have at most `granted` segments in flight. `parts` is the number of
    /// parts of the whole vector, at least 1.
    pub(crate) fn new(granted: u32, parts: usize) -> Self {
        Self {
            granted,
            parts: parts.max(1) as u32,
            path: SHORT_PATH_WINDOW,
            after_losses: granted,
            seen: VecDeque::with_capacity(ROUNDS),
            marks: VecDeque::new(),
            shortest: None,
            first: None,
            arrivals: None,
        }
    }

    /// Returns the number of segments that may be in flight now.
    pub(crate) fn get(&self) -> u32 {
        self.granted.min(self.path).min(self.after_losses)
    }

    /// Sets the limit that a switch grants when it readmits the member.
    pub(crate) fn grant(&mut self, granted: u32) {
        self.granted = granted;
        self.after_losses = self.after_losses.min(granted);
    }

    /// Begins the measurements of a round.
    pub(crate) fn begin_round(&mut self) {
        self.marks.clear();
        (self.shortest, self.first, self.arrivals) = (None, None, None);
    }

    /// Records that `segments` segments of the round have been sent so far.
    pub(crate) fn note_sent(&mut self, now: Instant, segments: u32) {
        self.marks.push_back((segments, now));
    }

    /// Records that `results` segments of the round have a result so far.
    pub(crate) fn note_results(&mut self, now: Instant, results: u32) {
        while let Some((_, sent)) = self.marks.front().copied().filter(|(segments, _)| *segments <= results) {
            self.marks.pop_front();
            let round_trip = now.since(sent);
            self.shortest = Some(self.shortest.map_or(round_trip, |shortest| shortest.min(round_trip)));
        }
        self.first.get_or_insert((now, results));
        self.after_losses = (self.after_losses + self.after_losses.div_ceil(8)).min(self.granted);
    }

    /// Ends the measurements of a round of `segments` segments, all of which now have a result.
    pub(crate) fn end_round(&mut self, now: Instant, segments: u32) {
        let Some((begin, results)) = self.first else { return };
        let arrivals = Arrivals { segments: segments - results, begin, end: now };
        self.arrivals = Some(arrivals);
        let segments_per_s = arrivals.segments_per_s();
        let Some(round_trip) = self.shortest else { return };
        if segments_per_s <= 0.0 {
            return;
        }
        if self.seen.len() == ROUNDS {
            self.seen.pop_front();
        }
        self.seen.push_back(Seen { segments_per_s, round_trip });
        let least = if self.is_slow() { SHORT_PATH_WINDOW / self.parts } else { SHORT_PATH_WINDOW };
        let round_trip = self.seen.iter().map(|seen| seen.round_trip).min().unwrap_or_default();
        let held = GAIN * self.segments_per_s() * round_trip.as_secs_f64();
        let path = (held as u32).max(least).max(FULL_FRAME);
        // A vector that fits in the window gives no evidence that the path can hold more.
        self.path = if segments > self.get() { path } else { path.min(self.path) };
    }

    /// Returns the results of the most recent round; `None` before its end.
    pub(crate) fn arrivals(&self) -> Option<Arrivals> {
        self.arrivals
    }

    /// Returns the highest rate in the most recent rounds, in segments per second; zero if none has been measured.
    fn segments_per_s(&self) -> f64 {
        self.seen.iter().map(|seen| seen.segments_per_s).fold(0.0, f64::max)
    }

    /// Returns whether the transmission of a full super-frame takes long enough to count as slow. The other parts take
    /// their shares of the rate of the link.
    fn is_slow(&self) -> bool {
        is_slow(self.segments_per_s() * f64::from(self.parts))
    }

    /// Returns the number of segments to send in one super-frame after `sent` segments have been sent, when `left`
    /// segments remain.
    ///
    /// A super-frame saves processor time, but the receiver does not forward any of its segments until the whole
    /// super-frame has arrived. If the link is the bottleneck, a round therefore begins and ends with smaller
    /// super-frames, so that the links to and from the switch are busy at the same time for longer.
    pub(crate) fn frame_segments(&self, sent: u32, left: u32) -> u32 {
        if self.is_slow() { sent.min(left / 2).clamp(MIN_FRAME, FULL_FRAME) } else { FULL_FRAME }
    }

    /// Halves the window after a loss.
    pub(crate) fn narrow(&mut self) {
        self.after_losses = (self.get() / 2).max(MIN_WINDOW).min(self.granted);
    }
}

/// Returns whether a link on which this many segments per second were measured counts as slow; `segments_per_s` is zero
/// if nothing has been measured.
pub(super) fn is_slow(segments_per_s: f64) -> bool {
    segments_per_s > 0.0 && f64::from(FULL_FRAME) / segments_per_s > SLOW_FRAME.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENTS: u32 = 4610;

    /// Simulates a round over a path with a given rate and round trip, in sends of 44 segments.
    fn run_round(window: &mut Window, now: &mut Instant, segments_per_s: f64, round_trip: Duration) {
        window.begin_round();
        let (mut sent, mut results, mut free) = (0, 0, *now);
        let mut flying: VecDeque<(u32, Instant)> = VecDeque::new();
        while results < SEGMENTS {
            while sent < SEGMENTS && sent - results < window.get() {
                let count = (SEGMENTS - sent).min(44).min(window.get() - (sent - results));
                sent += count;
                window.note_sent(*now, sent);
                let begin = if free < *now { *now } else { free };
                free = begin.plus(Duration::from_secs_f64(f64::from(count) / segments_per_s));
                flying.push_back((sent, free.plus(round_trip)));
            }
            (results, *now) = flying.pop_front().unwrap();
            window.note_results(*now, results);
        }
        window.end_round(*now, SEGMENTS);
    }

    fn window_after(segments_per_s: f64, round_trip: Duration, granted: u32) -> u32 {
        let (mut window, mut now) = (Window::new(granted, 1), Instant::default());
        for _ in 0..20 {
            run_round(&mut window, &mut now, segments_per_s, round_trip);
        }
        window.get()
    }

    #[test]
    fn the_window_grows_to_the_capacity_of_a_long_path() {
        // 10 Gbit/s carry 850,000 segments per second, which is 1,700 in 2 ms.
        let window = window_after(850_000.0, Duration::from_millis(2), 60_000);
        assert!((1700..=4000).contains(&window), "{window}");
        assert_eq!(
            window_after(850_000.0, Duration::from_millis(2), 1000),
            1000,
            "the window never exceeds the one that the switch granted"
        );
    }

    #[test]
    fn the_window_stays_small_on_a_short_path() {
        assert_eq!(window_after(85_000.0, Duration::from_millis(1), 60_000), SHORT_PATH_WINDOW);
    }

    #[test]
    fn parts_share_the_minimum_window_of_a_slow_link() {
        // Each of the four parts gets a quarter of 1 Gbit/s, or of 10 Gbit/s.
        let part_after = |segments_per_s| {
            let (mut window, mut now) = (Window::new(60_000, 4), Instant::default());
            // In the first rounds, the queue of the other parts makes the round trip long.
            for round_trip in
                [Duration::from_millis(100); 3].into_iter().chain([Duration::from_micros(200); 20])
            {
                run_round(&mut window, &mut now, segments_per_s, round_trip);
            }
            window.get()
        };
        assert_eq!(part_after(85_000.0 / 4.0), SHORT_PATH_WINDOW / 4);
        assert_eq!(part_after(850_000.0 / 4.0), SHORT_PATH_WINDOW);
    }

    #[test]
    fn the_results_of_all_parts_show_the_rate_of_the_link() {
        let at = |ms| Instant::default().plus(Duration::from_millis(ms));
        let one = Arrivals { segments: 300, begin: at(10), end: at(20) };
        let other = Arrivals { segments: 100, begin: at(5), end: at(15) };
        let rate = one.and(other).segments_per_s();
        assert!((rate * 0.015 - 400.0).abs() < 1e-6, "{rate}");
        assert!(is_slow(85_000.0) && !is_slow(850_000.0) && !is_slow(0.0));
        assert!(Arrivals { segments: 7, begin: at(1), end: at(1) }.segments_per_s() == 0.0);
    }

    #[test]
    fn rounds_on_a_slow_path_start_and_end_with_small_frames() {
        let frames = |segments_per_s| {
            let (mut window, mut now) = (Window::new(60_000, 1), Instant::default());
            run_round(&mut window, &mut now, segments_per_s, Duration::from_micros(50));
            let (mut sent, mut frames) = (0, Vec::new());
            while sent < 400 {
                frames.push(window.frame_segments(sent, 400 - sent).min(400 - sent));
                sent += frames.last().unwrap();
            }
            frames
        };
        // 1 Gbit/s and 10 Gbit/s.
        assert_eq!(frames(85_000.0), [4, 4, 8, 16, 32, 64, 64, 64, 64, 40, 20, 10, 5, 4, 1]);
        assert_eq!(frames(850_000.0), [64, 64, 64, 64, 64, 64, 16]);
    }

    #[test]
    fn losses_halve_the_window_and_results_restore_it() {
        let mut window = Window::new(60_000, 1);
        window.narrow();
        assert_eq!(window.get(), SHORT_PATH_WINDOW / 2);
        (0..20).for_each(|_| window.narrow());
        assert_eq!(window.get(), MIN_WINDOW);
        (0..100).for_each(|_| window.note_results(Instant::default(), 1));
        assert_eq!(window.get(), SHORT_PATH_WINDOW);
        window.grant(2);
        assert_eq!(window.get(), 2);
    }
}
