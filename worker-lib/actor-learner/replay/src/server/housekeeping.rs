//! Automatic snapshots. They are written periodically, to shorten a long journal, and to recover from a failure of the
//! journal.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::shard::Shard;
use crate::limits::{JOURNAL_BYTES_MIN, SNAPSHOT_RETRY_MAX_MS, SNAPSHOT_RETRY_MS};

/// Interval at which the shard checks whether a snapshot is due.
const CHECK: Duration = Duration::from_secs(1);

/// Writes snapshots when they are due. This future never completes; drop it to stop.
pub(super) async fn write_snapshots(shard: Arc<Shard>) {
    let mut last = Instant::now();
    let mut retry = Retry { next: last, pause: Duration::from_millis(SNAPSHOT_RETRY_MS) };
    loop {
        tokio::time::sleep(CHECK).await;
        let is_due = shard.config.snapshot_every.is_some_and(|every| last.elapsed() >= every)
            || shard.is_journal_failed()
            || shard.is_journal_long(JOURNAL_BYTES_MIN);
        if !is_due || Instant::now() < retry.next {
            continue;
        }
        match shard.snapshot().await {
            Ok(snapshot) => {
                tracing::debug!(
                    "wrote a snapshot of {} items to {}",
                    snapshot.items,
                    snapshot.path.display()
                );
                last = Instant::now();
                retry = Retry { next: last, pause: Duration::from_millis(SNAPSHOT_RETRY_MS) };
            }
            Err(error) => {
                tracing::error!("cannot write a snapshot: {error}; next attempt in {:?}", retry.pause);
                retry = retry.later();
            }
        }
    }
}

/// Backoff state that determines when a snapshot may be attempted.
struct Retry {
    next: Instant,
    pause: Duration,
}

impl Retry {
    fn later(self) -> Self {
        let longest = Duration::from_millis(SNAPSHOT_RETRY_MAX_MS);
        Self { next: Instant::now() + self.pause, pause: (2 * self.pause).min(longest) }
    }
}
