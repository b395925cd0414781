//! The clock that the drivers hand to the core.

use iswitch_protocol::Instant;

/// Nanoseconds since it was made. It neither steps with the wall clock nor runs backwards.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock {
    start: std::time::Instant,
}

impl MonotonicClock {
    /// A clock that shows zero now.
    pub fn start() -> Self {
        Self { start: std::time::Instant::now() }
    }

    /// The time now. 64 bits of nanoseconds last for 584 years.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(self.start.elapsed().as_nanos() as u64)
    }
}
