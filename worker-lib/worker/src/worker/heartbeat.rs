//! Heartbeats that a worker sends while it computes.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use iswitch_protocol::wire::ControlBody;
use iswitch_socket::UdpSocket;

use super::attempt::heartbeat_interval;
use super::link::Link;
use super::requests::Requests;

/// A thread that keeps the leases alive while the worker computes: it sends empty Helps that request no answer.
#[derive(Debug)]
pub(super) struct Heartbeat {
    beats: Option<Sender<Beat>>,
    thread: Option<JoinHandle<()>>,
}

/// Heartbeats for the membership at one switch.
struct Beat {
    requests: Requests,
    /// The socket of the membership. When the worker moves to another switch, it closes this socket.
    socket: Weak<UdpSocket>,
    tos: u8,
    interval: Duration,
}

impl Heartbeat {
    /// Starts the thread, initially without memberships.
    pub(super) fn start() -> io::Result<Self> {
        let (beats, added) = channel();
        let beat = move || run(&added);
        let thread = std::thread::Builder::new().name("iswitch-heartbeat".into()).spawn(beat)?;
        Ok(Self { beats: Some(beats), thread: Some(thread) })
    }

    /// Adds a membership to keep alive. The first heartbeat is sent immediately, because the switch may free the slot
    /// of a member from which it has received nothing but a single Join (requirement M-12).
    pub(super) fn add(&self, link: &Link, job: u32, lease: Duration) {
        let beat = Beat {
            requests: link.requests(job),
            socket: Arc::downgrade(&link.socket),
            tos: link.control_tos(),
            interval: heartbeat_interval(lease),
        };
        beat.send(&mut Vec::new());
        if let Some(beats) = &self.beats {
            // The thread ends only when this value is dropped.
            let _ = beats.send(beat);
        }
    }
}

impl Beat {
    /// Sends a heartbeat. Returns false if the socket has been closed.
    fn send(&self, packet: &mut Vec<u8>) -> bool {
        let Some(socket) = self.socket.upgrade() else { return false };
        let (_, len) = self.requests.emit(0, ControlBody::HEARTBEAT, packet);
        // If the switch is unreachable, the next call to all_reduce reports it.
        let _ = socket.send(self.tos, None, None, packet, len);
        true
    }
}

fn run(added: &Receiver<Beat>) {
    let (mut beats, mut packet) = (Vec::new(), Vec::new());
    let Ok(first) = added.recv() else { return };
    let mut interval = first.interval;
    beats.push(first);
    loop {
        match added.recv_timeout(interval) {
            Ok(beat) => {
                interval = interval.min(beat.interval);
                beats.push(beat);
            }
            Err(RecvTimeoutError::Timeout) => beats.retain(|beat| beat.send(&mut packet)),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        drop(self.beats.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
