//! Workers that are reached in two ways, or in another way than before.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use iswitch_protocol::wire::Classifier;
use pnet_datalink::{Channel, Config};

use super::site::{Site, undisturbed};
use super::{Effort, Verdict};
use crate::netns::{Namespace, WORKER_INTERFACE};

const READ_TIMEOUT: Duration = Duration::from_millis(20);
/// Moves of a worker to another MAC address.
const MOVES: u8 = 3;

pub(super) fn second_cable(effort: &Effort) -> Verdict {
    let site = Site::new();
    let daemon = site.daemon(&[]);
    let is_over = AtomicBool::new(false);
    let (copied, rounds) = std::thread::scope(|scope| {
        let (frames, copies) = std::sync::mpsc::sync_channel(4096);
        let is_over = &is_over;
        let (worker, attacker) = (&site.star.workers[0], site.attacker());
        scope.spawn(move || worker.enter(|| copy_from(is_over, &frames)));
        let copier = scope.spawn(move || attacker.enter(move || copy_to(&copies)));
        let workers = site.workers(&daemon, effort.duration, "");
        let rounds = undisturbed(workers, effort);
        is_over.store(true, Ordering::Relaxed);
        (copier.join().expect("the copier does not panic"), rounds)
    });
    daemon.stop();
    let rounds = rounds?;
    if copied == 0 {
        Err("no frame was copied".to_owned())
    } else {
        Ok(format!("{copied} frames twice, {rounds} rounds"))
    }
}

/// Frames that the worker of this namespace sends to the switch.
fn copy_from(is_over: &AtomicBool, frames: &std::sync::mpsc::SyncSender<Vec<u8>>) {
    let interface = interface();
    let config = Config { read_timeout: Some(READ_TIMEOUT), read_buffer_size: 1 << 16, ..Config::default() };
    let Ok(Channel::Ethernet(_, mut receiver)) = pnet_datalink::channel(&interface, config) else {
        panic!("no packet socket");
    };
    while !is_over.load(Ordering::Relaxed) {
        let Ok(frame) = receiver.next() else { continue };
        if Classifier::default().classify(frame).is_some_and(|frame| frame.is_ok()) {
            // A copy that comes too late is none.
            let _ = frames.try_send(frame.to_vec());
        }
    }
}

fn copy_to(copies: &std::sync::mpsc::Receiver<Vec<u8>>) -> u64 {
    let Ok(Channel::Ethernet(mut sender, _)) = pnet_datalink::channel(&interface(), Config::default()) else {
        panic!("no packet socket");
    };
    let mut copied = 0;
    for frame in copies {
        copied += u64::from(sender.send_to(&frame, None).is_some_and(|sent| sent.is_ok()));
    }
    copied
}

fn interface() -> pnet_datalink::NetworkInterface {
    let interfaces = pnet_datalink::interfaces();
    interfaces.into_iter().find(|it| it.name == WORKER_INTERFACE).expect("a worker has it")
}

pub(super) fn other_mac(effort: &Effort) -> Verdict {
    let site = Site::new();
    let daemon = site.daemon(&[]);
    let workers = site.workers(&daemon, effort.duration * u32::from(MOVES + 1), "");
    daemon.wait_for_results();
    for number in 0..MOVES {
        move_to(&site.star.workers[0], crate::netns::SWITCH_ADDRESS, number);
        std::thread::sleep(effort.duration / 2);
        daemon.wait_for_results();
    }
    let rounds = undisturbed(workers, effort)?;
    daemon.stop();
    Ok(format!("{MOVES} moves in {rounds} rounds"))
}

fn move_to(worker: &Namespace, switch: Ipv4Addr, number: u8) {
    worker.ip(&format!("link set {WORKER_INTERFACE} address 02:00:00:00:01:{number:02x}\n"));
    // As a bond does after a fail-over: the bridge learns where the address is.
    worker.run(["ping", "-q", "-c", "1", "-w", "5", &switch.to_string()]);
}
