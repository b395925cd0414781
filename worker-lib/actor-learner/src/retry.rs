//! What is tried again and again, said once.

use std::fmt::Display;
use std::time::{Duration, Instant};

/// How often the same trouble is told.
const EVERY: Duration = Duration::from_secs(10);
/// Trouble that is over sooner is none: processes start in any order, and again.
const PATIENCE: Duration = Duration::from_secs(2);

/// Tells of trouble that lasts, but not each time.
#[derive(Debug, Default)]
pub(super) struct Complaint {
    since: Option<Instant>,
    told_at: Option<Instant>,
}

impl Complaint {
    pub(super) fn about(&mut self, what: &str, error: &dyn Display) {
        let lasts = self.since.get_or_insert_with(Instant::now).elapsed() >= PATIENCE;
        if lasts && self.told_at.is_none_or(|at| at.elapsed() >= EVERY) {
            self.told_at = Some(Instant::now());
            tracing::warn!("{what}: {error}");
        }
    }

    /// It is over.
    pub(super) fn over(&mut self, what: &str) {
        self.since = None;
        if self.told_at.take().is_some() {
            tracing::info!("{what}");
        }
    }
}
