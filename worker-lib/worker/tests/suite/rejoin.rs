//! Workers rejoin after a restart of their switch, and every sum is exact.

use std::net::SocketAddrV4;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use iswitch::{GradientAggregator, JoinOptions, Worker};
use iswitch_runtime::embedded::{EmbeddedOptions, EmbeddedSwitch};

use crate::meeting::Meeting;
use crate::switches::{own_address, restart_at};

const LEN: u32 = 20_000;
const WORKERS: u16 = 3;

fn start() -> EmbeddedSwitch {
    EmbeddedSwitch::start(own_address(), &EmbeddedOptions::default()).unwrap()
}

fn join(address: SocketAddrV4) -> Worker {
    let options = JoinOptions {
        workers_timeout: Some(Duration::from_secs(30)),
        round_timeout: Some(Duration::from_secs(60)),
        ..JoinOptions::new(address, WORKERS, LEN)
    };
    Worker::join(options).unwrap()
}

/// Runs one worker and checks that each of its sums contains each contribution of its round exactly once.
fn run(rank: u16, address: SocketAddrV4, rounds: u32, done: &AtomicU32) -> Worker {
    let mut worker = join(address);
    for round in 0..rounds {
        let mut vector: Vec<f32> =
            (0..LEN).map(|i| (8u32.pow(u32::from(rank)) * 512 + (round * 7 + i) % 16) as f32).collect();
        let finished = worker.all_reduce(&mut vector).unwrap();
        assert_eq!((finished.contributors, finished.uniform), (WORKERS, true));
        for (i, sum) in (0..LEN).zip(&vector) {
            let expected = (1 + 8 + 64) * 512 + u32::from(WORKERS) * ((round * 7 + i) % 16);
            assert_eq!(*sum, expected as f32, "worker {rank}, round {round} [{i}]");
        }
        done.fetch_add(1, Ordering::Relaxed);
    }
    worker
}

#[test]
fn switch_restarts_in_mid_round_change_no_sum() {
    let mut switch = start();
    let address = switch.address();
    let (rounds, restarts) = (300, 5);
    let done = Arc::new(AtomicU32::new(0));
    let workers: Vec<_> = (0..WORKERS)
        .map(|rank| {
            let done = Arc::clone(&done);
            thread::spawn(move || run(rank, address, rounds, &done))
        })
        .collect();
    for restart in 1..=restarts {
        // The workers are never idle, so the switch restarts in the middle of a round.
        let enough = u32::from(WORKERS) * rounds * restart / (restarts + 1);
        while done.load(Ordering::Relaxed) < enough {
            thread::sleep(Duration::from_millis(1));
        }
        drop(switch);
        switch = restart_at(address);
    }
    let workers: Vec<_> = workers.into_iter().map(|worker| worker.join().unwrap()).collect();
    assert!(workers.iter().all(|worker| worker.rejoins() >= u64::from(restarts)));
}

#[test]
fn a_restart_between_rounds_is_detected_in_the_next_round() {
    let switch = start();
    let address = switch.address();
    let (before, after) = (Arc::new(Meeting::new(4)), Arc::new(Meeting::new(4)));
    let workers: Vec<_> = (0..WORKERS)
        .map(|_| {
            let (before, after) = (Arc::clone(&before), Arc::clone(&after));
            thread::spawn(move || {
                let mut worker = join(address);
                let mut vector = vec![1.0; LEN as usize];
                let first = worker.all_reduce(&mut vector).unwrap();
                before.wait();
                after.wait();
                vector.fill(2.0);
                let second = worker.all_reduce(&mut vector).unwrap();
                assert!(vector.iter().all(|x| *x == 6.0));
                let numbers = (first.number, second.number, first.number + 1);
                assert!(
                    numbers.0 != numbers.1 && numbers.1 != numbers.2,
                    "a packet of the first run may name it"
                );
                worker.rejoins()
            })
        })
        .collect();
    before.wait();
    drop(switch);
    let _switch = restart_at(address);
    after.wait();
    for worker in workers {
        assert_eq!(worker.join().unwrap(), 1);
    }
}
