//! A thread outside the packet path that ends when its handle is dropped.

use std::io;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

/// Handle of a thread that answers requests. When dropped, it stops the thread and waits for it to end.
#[derive(Debug)]
pub(crate) struct SideThread {
    /// Closing this stream wakes the thread up and makes it end.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl SideThread {
    /// Starts a thread that runs `serve`, which must return when its argument becomes readable.
    ///
    /// # Errors
    /// Fails if the thread cannot be started.
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
