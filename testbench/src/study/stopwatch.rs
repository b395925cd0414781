//! Stopwatch that subscribes to the phases of an iteration ([`iswitch_learn::algorithms::phases`]) and adds up the time
//! spent in each of them, in one thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use iswitch_learn::algorithms::phases::{Phase, TARGET};
use strum::VariantArray as _;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Time of each phase, in the order of [`Phase`], and time outside all phases, in seconds.
pub type Seconds = [f64; Phase::VARIANTS.len() + 1];

/// Stopwatch that the phases of the calling thread start and stop. Clones share the same times.
#[derive(Clone, Debug)]
pub struct Stopwatch(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// Open phases, the innermost one last. Time is charged to the innermost phase.
    open: Vec<usize>,
    since: Instant,
    times: [Duration; Phase::VARIANTS.len() + 1],
}

impl State {
    /// Charges the time since the last charge to the innermost open phase.
    fn charge(&mut self) {
        let now = Instant::now();
        let place = self.open.last().copied().unwrap_or(Phase::VARIANTS.len());
        self.times[place] += now - self.since;
        self.since = now;
    }
}

impl Default for Stopwatch {
    fn default() -> Self {
        let times = [Duration::ZERO; Phase::VARIANTS.len() + 1];
        Self(Arc::new(Mutex::new(State { open: Vec::new(), since: Instant::now(), times })))
    }
}

impl Stopwatch {
    /// Runs `work` in this thread, and adds up the times of its phases.
    pub fn hearing<T>(&self, work: impl FnOnce() -> T) -> T {
        tracing::subscriber::with_default(self.clone(), work)
    }

    /// Sets all times to zero.
    pub fn restart(&self) {
        let mut state = self.lock();
        state.times.fill(Duration::ZERO);
        state.since = Instant::now();
    }

    /// Returns the times since the last restart.
    pub fn seconds(&self) -> Seconds {
        let mut state = self.lock();
        state.charge();
        state.times.map(|time| time.as_secs_f64())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscriber for Stopwatch {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == TARGET
    }

    /// Returns an id that all spans of the same phase share.
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let name = span.metadata().name();
        let place =
            Phase::VARIANTS.iter().position(|phase| phase.name() == name).unwrap_or(Phase::VARIANTS.len());
        Id::from_u64(place as u64 + 1)
    }

    fn enter(&self, span: &Id) {
        let mut state = self.lock();
        state.charge();
        state.open.push(span.into_u64() as usize - 1);
    }

    fn exit(&self, _span: &Id) {
        let mut state = self.lock();
        state.charge();
        state.open.pop();
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, _event: &Event<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_attributed_to_the_innermost_phase() {
        let nap = || std::thread::sleep(Duration::from_millis(3));
        let stopwatch = Stopwatch::default();
        stopwatch.hearing(|| {
            nap();
            stopwatch.restart();
            let act = tracing::trace_span!(target: TARGET, "act").entered();
            nap();
            tracing::trace_span!(target: TARGET, "environment").in_scope(nap);
            tracing::trace_span!("environment").in_scope(nap);
            drop(act);
        });
        let seconds = stopwatch.seconds();
        // A sleep takes at least the requested time.
        assert!(seconds[0] >= 0.006 && seconds[1] >= 0.003, "{seconds:?}");
        assert!(seconds[2..7].iter().all(|seconds| *seconds == 0.0), "{seconds:?}");
    }

    #[test]
    fn every_phase_has_a_unique_name() {
        for phase in Phase::VARIANTS {
            assert_eq!(Phase::VARIANTS.iter().filter(|other| other.name() == phase.name()).count(), 1);
        }
    }
}
