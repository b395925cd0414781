//! Recording of the frames on a cable.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use iswitch_protocol::wire::Classifier;
use pnet_datalink::{Channel, Config, DataLinkReceiver};

use iswitch_harness::netns::{Namespace, WORKER_INTERFACE};

/// Time within which a recorder notices a request to stop.
const READ_TIMEOUT: Duration = Duration::from_millis(20);
/// Maximum number of frames that are recorded, so that a fast job does not exhaust the memory.
const MAX_FRAMES: usize = 200_000;

/// Guard that sets a flag when it is dropped, so that threads that wait for the flag end even after a panic.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `background` in another thread while `act` runs. When `act` ends, normally or by a panic, the flag that is
/// passed to `background` is set. Returns the results of both functions.
pub(super) fn beside<T, U: Send>(
    background: impl FnOnce(&AtomicBool) -> U + Send,
    act: impl FnOnce() -> T,
) -> (T, U) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| background(&is_over));
        let outcome = {
            let _end = SetOnDrop(&is_over);
            act()
        };
        (outcome, thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

/// Records the iSwitch frames that pass through the interface of a worker in either direction while `act` runs.
pub(super) fn recorded<T>(namespace: &Namespace, act: impl FnOnce() -> T) -> (T, Vec<Vec<u8>>) {
    let (begins, begun) = channel();
    beside(
        move |is_over| namespace.enter(|| record(is_over, &begins)),
        || {
            begun.recv().expect("the recorder must begin");
            act()
        },
    )
}

fn record(is_over: &AtomicBool, begins: &Sender<()>) -> Vec<Vec<u8>> {
    let receiver = receiver();
    begins.send(()).expect("the receiver must be waiting");
    let mut frames = Vec::new();
    for_each(receiver, is_over, |frame| {
        if (is_for_switch(frame) || is_answer(frame)) && frames.len() < MAX_FRAMES {
            frames.push(frame.to_vec());
        }
    });
    frames
}

/// Calls `see` with each frame that passes through the interface of the current namespace, until `is_over` is set.
pub(super) fn watch(is_over: &AtomicBool, see: impl FnMut(&[u8])) {
    for_each(receiver(), is_over, see);
}

fn for_each(mut receiver: Box<dyn DataLinkReceiver>, is_over: &AtomicBool, mut see: impl FnMut(&[u8])) {
    while !is_over.load(Ordering::Relaxed) {
        // An error means that no frame arrived within the timeout.
        if let Ok(frame) = receiver.next() {
            see(frame);
        }
    }
}

fn receiver() -> Box<dyn DataLinkReceiver> {
    let interfaces = pnet_datalink::interfaces();
    let own = interfaces
        .into_iter()
        .find(|it| it.name == WORKER_INTERFACE)
        .expect("a worker must have this interface");
    let config = Config { read_timeout: Some(READ_TIMEOUT), read_buffer_size: 1 << 16, ..Config::default() };
    match pnet_datalink::channel(&own, config) {
        Ok(Channel::Ethernet(_, receiver)) => receiver,
        other => panic!("no packet socket: {:?}", other.err()),
    }
}

/// Returns whether a frame is a packet for a switch.
pub(super) fn is_for_switch(frame: &[u8]) -> bool {
    Classifier::default().classify(frame).is_some_and(|frame| frame.is_ok())
}

/// Returns whether a frame comes from a switch, that is, whether it is a UDP packet whose source port is the port of
/// the switch.
pub(super) fn is_answer(frame: &[u8]) -> bool {
    let port = Classifier::default().udp_port.to_be_bytes();
    let (protocol, source_port) = (frame.get(23), frame.get(34..36));
    protocol == Some(&17) && source_port == Some(&port[..])
}
