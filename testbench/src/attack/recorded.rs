//! Replay of recorded packets, which were valid when they were sent.

use std::sync::atomic::{AtomicBool, Ordering};

use super::testbed::{Host, Testbed, undisturbed};
use super::wire::{beside, is_answer, recorded};
use super::{Effort, Verdict};
use crate::storm::Storm;
use iswitch_harness::netns::{Namespace, Star, WORKER_INTERFACE};

/// Records the frames that one worker sends or, if `are_results` is set, receives while a job aggregates. Replays these
/// frames later in the same job, and then in the next job.
fn replay(effort: &Effort, are_results: bool) -> Verdict {
    let testbed = Testbed::new();
    let daemon = testbed.daemon_with_key();
    let victim = testbed.host(0);
    let options = format!("{} --tag-data", testbed.keyed());
    let (first, mut frames) = recorded(victim.namespace, || {
        let workers = testbed.workers(&daemon, &options);
        std::thread::sleep(effort.duration);
        workers
    });
    frames.retain(|frame| is_answer(frame) == are_results && is_of(frame, &victim, are_results));
    if frames.is_empty() {
        return Err("no frame was recorded".to_owned());
    }
    // Results are replayed from the switch's end of the cable to the worker.
    let from = if are_results {
        Cable { namespace: &testbed.star.switch, interface: Star::port(0) }
    } else {
        Cable { namespace: testbed.attacker(), interface: WORKER_INTERFACE.to_owned() }
    };
    let rounds = play(&from, &frames, || undisturbed(first, effort))?;
    let second = testbed.workers(&daemon, &options);
    let later = play(&from, &frames, || undisturbed(second, effort))?;
    daemon.stop();
    Ok(format!("{} packets replayed repeatedly during {} rounds", frames.len(), rounds + later))
}

/// Interface from which frames are sent.
struct Cable<'a> {
    namespace: &'a Namespace,
    interface: String,
}

fn is_of(frame: &[u8], host: &Host<'_>, is_receiver: bool) -> bool {
    frame.get(if is_receiver { 0..6 } else { 6..12 }) == Some(&host.mac[..])
}

/// Sends the frames repeatedly while `act` runs.
fn play<T>(from: &Cable<'_>, frames: &[Vec<u8>], act: impl FnOnce() -> T) -> T {
    let replay = |is_over: &AtomicBool| {
        from.namespace.enter(|| {
            let mut sender = Storm::open_on(&from.interface, 1).expect("the interface must open");
            for frame in frames.iter().cycle() {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                sender.send_frame(frame).expect("the frame must be sent");
            }
        });
    };
    beside(replay, act).0
}

pub(super) fn requests(effort: &Effort) -> Verdict {
    replay(effort, false)
}

pub(super) fn results(effort: &Effort) -> Verdict {
    replay(effort, true)
}
