//! Waiting for several descriptors at once.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::time::Duration;

/// Set of file descriptors to wait for. It is refilled before each wait, and allocates only when it grows.
#[derive(Debug, Default)]
pub struct PollSet {
    fds: Vec<libc::pollfd>,
}

impl PollSet {
    /// Returns an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Empties the set.
    pub fn clear(&mut self) {
        self.fds.clear();
    }

    /// Adds a descriptor that counts as ready once it is readable, and returns its index. The descriptor must stay open
    /// until the next wait has returned.
    pub fn push(&mut self, fd: BorrowedFd<'_>) -> usize {
        self.push_for(fd, true, false)
    }

    /// Adds an entry that is never ready, and returns its index.
    pub fn push_nothing(&mut self) -> usize {
        // poll(2) ignores negative descriptors.
        self.fds.push(libc::pollfd { fd: -1, events: 0, revents: 0 });
        self.fds.len() - 1
    }

    /// Adds a descriptor that counts as ready once it is readable (if `to_read`) or writable (if `to_write`), and
    /// returns its index. The descriptor must stay open until the next wait has returned.
    pub fn push_for(&mut self, fd: BorrowedFd<'_>, to_read: bool, to_write: bool) -> usize {
        let events = if to_read { libc::POLLIN } else { 0 } | if to_write { libc::POLLOUT } else { 0 };
        self.fds.push(libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 });
        self.fds.len() - 1
    }

    /// Waits until a descriptor is ready or has failed. Returns `false` if `timeout` expires or a signal arrives first.
    ///
    /// The resolution of the timeout is that of the kernel's timers (about 50 us) rather than one millisecond. With
    /// `None`, the wait has no timeout.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        wait(&mut self.fds, timeout)
    }

    /// Returns whether the last wait found that the descriptor with this index was ready, had failed or had been closed
    /// by the peer.
    pub fn is_ready(&self, index: usize) -> bool {
        self.fds.get(index).is_some_and(|fd| fd.revents != 0)
    }
}

/// Waits like [`PollSet::wait`] until `fd` or, if given, `other` is readable.
pub(crate) fn wait_readable(
    fd: BorrowedFd<'_>,
    other: Option<BorrowedFd<'_>>,
    timeout: Option<Duration>,
) -> io::Result<bool> {
    let readable = |fd: BorrowedFd<'_>| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    match other {
        None => wait(&mut [readable(fd)], timeout),
        Some(other) => wait(&mut [readable(fd), readable(other)], timeout),
    }
}

fn wait(fds: &mut [libc::pollfd], timeout: Option<Duration>) -> io::Result<bool> {
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: `fds` is a live slice of the length that is passed, `timeout` is null or points to a live timespec, and
    // the signal mask is null.
    match unsafe { libc::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout, ptr::null()) } {
        -1 => {
            let error = io::Error::last_os_error();
            // When the call fails, the kernel leaves `revents` unchanged, so it still holds the results of the
            // previous wait.
            for fd in fds.iter_mut() {
                fd.revents = 0;
            }
            if error.kind() == io::ErrorKind::Interrupted { Ok(false) } else { Err(error) }
        }
        ready => Ok(ready > 0),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn only_ready_descriptors_are_reported() {
        let (quiet, _quiet_peer) = UnixStream::pair().unwrap();
        let (loud, mut loud_peer) = UnixStream::pair().unwrap();
        let mut set = PollSet::new();
        let (quiet, nothing, loud) = (set.push(quiet.as_fd()), set.push_nothing(), set.push(loud.as_fd()));
        assert!(!set.wait(Some(Duration::ZERO)).unwrap());
        loud_peer.write_all(b"!").unwrap();
        assert!(set.wait(None).unwrap());
        assert!(set.is_ready(loud) && ![quiet, nothing, 3].into_iter().any(|index| set.is_ready(index)));
    }

    #[test]
    fn a_full_socket_becomes_writable_after_a_read() {
        let (writer, mut reader) = UnixStream::pair().unwrap();
        writer.set_nonblocking(true).unwrap();
        while (&writer).write(&[0; 4096]).is_ok() {}
        let wait = || {
            let mut set = PollSet::new();
            set.push_for(writer.as_fd(), false, true);
            set.wait(Some(Duration::ZERO)).unwrap()
        };
        assert!(!wait());
        // The kernel reports a socket as writable only once much more than one byte is free.
        reader.set_nonblocking(true).unwrap();
        while reader.read(&mut [0; 4096]).is_ok() {}
        assert!(wait());
    }
}
