//! Clock whose time the drivers pass to the core.

use iswitch_protocol::Instant;

/// Clock that counts nanoseconds since its creation. It does not follow steps of the wall clock and never runs
/// backwards.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock {
    start: std::time::Instant,
}

impl MonotonicClock {
    /// Returns a clock that starts at zero now.
    pub fn start() -> Self {
        Self { start: std::time::Instant::now() }
    }

    /// Returns the current time. A 64-bit number of nanoseconds overflows after 584 years.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(self.start.elapsed().as_nanos() as u64)
    }
}
