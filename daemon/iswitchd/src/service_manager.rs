//! Notifications to systemd that the daemon is ready and that its packet loop is alive.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sd_notify::NotifyState;

use iswitch_runtime::runtime::MAINTENANCE_INTERVAL;

/// Minimum number of heartbeats within the watchdog timeout.
const BEATS_PER_TIMEOUT: u32 = 2;

/// Sends a notification to systemd, if the daemon runs under it.
pub fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "cannot notify the service manager");
    }
}

/// Returns one function for each of `count` packet loops. A loop calls its function to report that it is alive. The
/// function of the first loop notifies systemd that the daemon is alive, but only if all other loops have reported
/// since the last notification.
pub fn watchdogs(count: usize) -> Vec<Box<dyn FnMut() + Send>> {
    let others: Arc<[AtomicBool]> = (1..count).map(|_| AtomicBool::new(true)).collect();
    let mut notify = watchdog();
    let of_others = Arc::clone(&others);
    let first_of_all = move || {
        if of_others.iter().all(|beat| beat.load(Ordering::Relaxed)) {
            of_others.iter().for_each(|beat| beat.store(false, Ordering::Relaxed));
            notify();
        }
    };
    let other = |at: usize| -> Box<dyn FnMut() + Send> {
        let others = Arc::clone(&others);
        Box::new(move || others[at].store(true, Ordering::Relaxed))
    };
    let first: Box<dyn FnMut() + Send> = Box::new(first_of_all);
    std::iter::once(first).chain((0..count - 1).map(other)).collect()
}

/// Returns the function that reports to systemd that the daemon is alive.
fn watchdog() -> impl FnMut() + Send {
    let timeout = sd_notify::watchdog_enabled();
    if let Some(timeout) = timeout.filter(|timeout| too_short(*timeout)) {
        tracing::warn!(?timeout, "WatchdogSec is too short, expected at least 2 s");
    }
    move || {
        if timeout.is_some() {
            tell(&[NotifyState::Watchdog]);
        }
    }
}

fn too_short(timeout: Duration) -> bool {
    timeout < BEATS_PER_TIMEOUT * MAINTENANCE_INTERVAL
}
