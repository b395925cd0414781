//! Rate-limited warnings about operations that are retried.

use std::fmt::Display;
use std::time::{Duration, Instant};

/// Minimum interval between two warnings about the same problem.
const EVERY: Duration = Duration::from_secs(10);
/// Time after which a problem is reported. Problems that last for a shorter time are normal, because processes may
/// start and restart in any order.
const PATIENCE: Duration = Duration::from_secs(2);

/// Rate-limited warning about a persistent problem.
#[derive(Debug, Default)]
pub(super) struct ProblemReport {
    since: Option<Instant>,
    reported_at: Option<Instant>,
}

impl ProblemReport {
    pub(super) fn about(&mut self, what: &str, error: &dyn Display) {
        let lasts = self.since.get_or_insert_with(Instant::now).elapsed() >= PATIENCE;
        if lasts && self.reported_at.is_none_or(|at| at.elapsed() >= EVERY) {
            self.reported_at = Some(Instant::now());
            tracing::warn!("{what}: {error}");
        }
    }

    /// Records that the problem no longer exists. If it was reported, logs `what`.
    pub(super) fn over(&mut self, what: &str) {
        self.since = None;
        if self.reported_at.take().is_some() {
            tracing::info!("{what}");
        }
    }
}
