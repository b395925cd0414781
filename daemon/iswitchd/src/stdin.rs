//! Shutdown of a private switch when its standard input ends.

use std::io;
use std::thread;
use std::time::Duration;

use iswitch_runtime::runtime::Handle;

/// Time between two checks for remaining jobs.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Starts the thread that stops the daemon once standard input has ended and no job is left. Workers that are still
/// running can thus finish their rounds. The job of dead workers ends when their leases expire.
pub(crate) fn stop_on_eof(handle: Handle) -> io::Result<()> {
    let wait = move || {
        // A read error counts as the end of standard input.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        tracing::info!("standard input has ended; the switch stops when no job is left");
        while handle.may_have_jobs() {
            // Unlike `sleep`, this needs no system call besides those that the sandbox allows.
            thread::park_timeout(CHECK_INTERVAL);
        }
        handle.stop();
    };
    thread::Builder::new().name("stdin".to_owned()).spawn(wait)?;
    Ok(())
}
