//! Signals that request that a process stop, and their effect on its exit status.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// Time after the first signal within which further signals count as part of the same request, because `timeout` or a
/// shell script may send several.
const SECOND_SIGNAL_AFTER: Duration = Duration::from_secs(1);

/// First signal that [`stop_on_signal`] received; 0 if none.
static RECEIVED: AtomicI32 = AtomicI32::new(0);
/// Whether a stop requested by a signal counts as success. If it does, the exit status does not depend on the signal.
static ENDS_WELL: AtomicBool = AtomicBool::new(false);

/// Handles SIGINT and SIGTERM in a thread. The first signal sets the `stop` flag. A further signal, if it arrives more
/// than `SECOND_SIGNAL_AFTER` later, terminates the process immediately.
///
/// # Errors
/// Fails if the process cannot handle signals.
pub fn stop_on_signal(stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot install the signal handlers")?;
    let stop = Arc::clone(stop);
    let wait = move || {
        let mut first: Option<Instant> = None;
        for signal in signals.forever() {
            let _ = RECEIVED.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst);
            stop.store(true, Ordering::SeqCst);
            if first.get_or_insert_with(Instant::now).elapsed() > SECOND_SIGNAL_AFTER {
                die_by(signal);
            }
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(wait)?;
    Ok(())
}

/// Declares that a signal is the normal way to stop this process, so that a stop by a signal counts as success.
/// Services call this function, as do child processes that are stopped by their parent.
pub fn end_well_on_signal() {
    ENDS_WELL.store(true, Ordering::Relaxed);
}

/// If a signal has requested that the process stop, terminates the process with this signal. The shell that started the
/// process then also aborts a running script or loop, and reports the exit status 130 (SIGINT) or 143 (SIGTERM).
pub(crate) fn end_as_signalled() {
    let signal = RECEIVED.load(Ordering::SeqCst);
    if signal != 0 && !ENDS_WELL.load(Ordering::Relaxed) {
        die_by(signal);
    }
}

/// Terminates the process with a signal, as if the process did not handle the signal.
fn die_by(signal: i32) -> ! {
    // Returns only if the default action of the signal does not end the process.
    let _ = emulate_default_handler(signal);
    std::process::exit(128 + signal);
}
