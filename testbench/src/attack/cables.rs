//! Attacks in which frames from a worker arrive over two cables, or from a different MAC address than before.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::testbed::{Testbed, undisturbed};
use super::wire::{beside, is_for_switch, watch};
use super::{Effort, Verdict};
use crate::storm::Storm;
use iswitch_harness::netns::{Namespace, SWITCH_ADDRESS, WORKER_INTERFACE};

/// Maximum number of copied frames that wait to be sent over the second cable.
const COPIES_MAX: usize = 4096;
/// Number of times that a worker changes to a new MAC address.
const MOVES: u8 = 3;

pub(super) fn second_cable(effort: &Effort) -> Verdict {
    let testbed = Testbed::new();
    let daemon = testbed.daemon(&[]);
    let (worker, attacker) = (&testbed.star.workers[0], testbed.attacker());
    let copy = |is_over: &AtomicBool| {
        let (frames, copies) = sync_channel(COPIES_MAX);
        std::thread::scope(|scope| {
            let copier = scope.spawn(move || attacker.enter(move || copy_to(&copies)));
            worker.enter(move || copy_from(is_over, &frames));
            copier.join().expect("the copier must not panic")
        })
    };
    let (rounds, copied) = beside(copy, || undisturbed(testbed.workers(&daemon, ""), effort));
    daemon.stop();
    let rounds = rounds?;
    if copied == 0 {
        Err("no frame was copied".to_owned())
    } else {
        Ok(format!("{copied} frames sent twice during {rounds} rounds"))
    }
}

/// Copies the frames that the worker of this namespace sends to the switch, and passes the copies to `frames`.
fn copy_from(is_over: &AtomicBool, frames: &SyncSender<Vec<u8>>) {
    watch(is_over, |frame| {
        if is_for_switch(frame) {
            // If the queue is full, the frame is not copied, because a late copy would not test anything.
            let _ = frames.try_send(frame.to_vec());
        }
    });
}

fn copy_to(copies: &Receiver<Vec<u8>>) -> u64 {
    let mut sender = Storm::open(1).expect("the attacker's interface must open");
    copies.iter().map(|frame| u64::from(sender.send_frame(&frame).is_ok())).sum()
}

pub(super) fn other_mac(effort: &Effort) -> Verdict {
    let testbed = Testbed::new();
    let daemon = testbed.daemon(&[]);
    let workers = testbed.workers(&daemon, "");
    for number in 0..MOVES {
        move_to(&testbed.star.workers[0], number);
        std::thread::sleep(effort.duration / 2);
        daemon.wait_for_results();
    }
    let rounds = undisturbed(workers, effort)?;
    daemon.stop();
    Ok(format!("{MOVES} moves in {rounds} rounds"))
}

fn move_to(worker: &Namespace, number: u8) {
    worker.ip(&format!("link set {WORKER_INTERFACE} address 02:00:00:00:01:{number:02x}\n"));
    // The ping lets the bridge learn the port of the new address. A bond sends a packet for the same reason after a
    // fail-over.
    worker.run(["ping", "-q", "-c", "1", "-w", "5", &SWITCH_ADDRESS.to_string()]);
}
