//! Heartbeats of a worker that computes.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use iswitch_protocol::wire::ControlBody;

use super::attempt::heartbeat_interval;
use super::link::Link;

/// A thread that keeps the lease alive while the worker computes: it sends empty Helps that ask for no answer.
#[derive(Debug)]
pub(super) struct Heartbeat {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Heartbeat {
    pub(super) fn start(link: &Link, job: u32, lease: Duration) -> io::Result<Self> {
        let (requests, mut packet) = (link.requests(job), Vec::new());
        let (socket, tos) = (Arc::clone(&link.socket), link.control_tos());
        let interval = heartbeat_interval(lease);
        let (stop, stopped) = channel::<()>();
        let mut beat = move || {
            let (_, len) = requests.emit(0, ControlBody::HEARTBEAT, &mut packet);
            // If the switch is unreachable, the next call to all_reduce reports it.
            let _ = socket.send(tos, None, None, &packet, len);
        };
        // The first heartbeat is sent at once: the switch may free the place of a member from which it hears only a
        // single Join (M-12).
        beat();
        let thread = std::thread::Builder::new().name("iswitch-heartbeat".into()).spawn(move || {
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                beat();
            }
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
