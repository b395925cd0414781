//! Notifications to systemd that the daemon is ready and that its packet loop is alive.

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

/// Returns the function that the packet loop calls to report to systemd that it is alive.
pub fn watchdog() -> impl FnMut() + Send {
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
