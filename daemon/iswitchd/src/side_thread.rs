//! A thread beside the packet path, which ends when nobody needs it any more.

use std::io;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

/// A thread that waits for others to ask something. Dropping this ends it.
#[derive(Debug)]
pub(crate) struct SideThread {
    /// Closing it wakes the thread up to end.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl SideThread {
    /// Runs `serve`, which must end when its argument becomes readable.
    ///
    /// # Errors
    /// If there can be no further thread.
    pub(crate) fn spawn(name: &str, serve: impl FnOnce(&UnixStream) + Send + 'static) -> io::Result<Self> {
        let (stop, stopped) = UnixStream::pair()?;
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || serve(&stopped))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for SideThread {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
