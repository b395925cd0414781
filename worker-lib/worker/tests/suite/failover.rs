//! Workers with a standby switch: they move to it when the first switch fails, and every sum is exact.

use std::net::SocketAddrV4;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use iswitch::{
    AggregateError, AnyLengthWorker, AsyncWorker, GradientAggregator, JoinError, JoinOptions, Worker,
};
use iswitch_runtime::embedded::{EmbeddedOptions, EmbeddedSwitch};

use crate::switches::{own_address, restart_at};

const LEN: u32 = 20_000;
const WORKERS: u16 = 3;
const ROUNDS: u32 = 300;

fn start() -> EmbeddedSwitch {
    EmbeddedSwitch::start(own_address(), &EmbeddedOptions::default()).unwrap()
}

fn options(switches: [SocketAddrV4; 2], workers: u16, len: u32) -> JoinOptions {
    JoinOptions {
        standbys: vec![switches[1]],
        failover_timeout: Duration::from_millis(600),
        workers_timeout: Some(Duration::from_secs(60)),
        round_timeout: Some(Duration::from_secs(60)),
        ..JoinOptions::new(switches[0], workers, len)
    }
}

/// Returns the floats that a worker contributes to a round.
fn contribution(rank: u16, round: u32, len: u32) -> Vec<f32> {
    (0..len).map(|i| (8u32.pow(u32::from(rank)) * 512 + (round * 7 + i) % 16) as f32).collect()
}

fn check(sum: &[f32], round: u32) {
    for (i, sum) in (0..).zip(sum) {
        let expected = (1 + 8 + 64) * 512 + u32::from(WORKERS) * ((round * 7 + i) % 16);
        assert_eq!(*sum, expected as f32, "round {round} [{i}]");
    }
}

/// Runs one worker and checks that each of its sums contains each contribution of its round exactly once.
fn run(rank: u16, options: JoinOptions, done: &AtomicU32) -> Worker {
    let len = options.gradient_len;
    let mut worker = Worker::join(options).unwrap();
    for round in 0..ROUNDS {
        let mut vector = contribution(rank, round, len);
        let finished = worker.all_reduce(&mut vector).unwrap();
        assert_eq!((finished.contributors, finished.uniform), (WORKERS, true));
        check(&vector, round);
        done.fetch_add(1, Ordering::Relaxed);
    }
    worker
}

/// Runs three workers. Calls `fail` with the index of each failure after an equal share of the rounds, and returns the
/// workers.
fn run_all(options: &JoinOptions, failures: u32, mut fail: impl FnMut(u32)) -> Vec<Worker> {
    let done = Arc::new(AtomicU32::new(0));
    let workers: Vec<_> = (0..WORKERS)
        .map(|rank| {
            let (options, done) = (options.clone(), Arc::clone(&done));
            thread::spawn(move || run(rank, options, &done))
        })
        .collect();
    for failure in 0..failures {
        let enough = u32::from(WORKERS) * ROUNDS * (failure + 1) / (failures + 1);
        while done.load(Ordering::Relaxed) < enough {
            thread::sleep(Duration::from_millis(1));
        }
        fail(failure);
    }
    workers.into_iter().map(|worker| worker.join().unwrap()).collect()
}

#[test]
fn the_workers_move_to_the_other_switch_and_back_without_losing_a_sum() {
    let mut switches = [Some(start()), Some(start())];
    let addresses = [0, 1].map(|at| switches[at].as_ref().unwrap().address());
    let workers = run_all(&options(addresses, WORKERS, LEN), 2, |failure| {
        let (failed, other) = (failure as usize % 2, 1 - failure as usize % 2);
        switches[other].get_or_insert_with(|| restart_at(addresses[other]));
        drop(switches[failed].take());
    });
    assert!(workers.iter().all(|worker| worker.switch() == addresses[0]));
    assert!(workers.iter().all(|worker| worker.rejoins() >= 2));
}

#[test]
fn all_parts_of_a_long_vector_move_together() {
    const PARTS: u32 = 3;
    let threaded = || {
        let options = EmbeddedOptions { threads: PARTS as usize, ..EmbeddedOptions::default() };
        EmbeddedSwitch::start(own_address(), &options).unwrap()
    };
    let (mut first, second) = (Some(threaded()), threaded());
    let addresses = [first.as_ref().unwrap().address(), second.address()];
    let long = PARTS * 64 * 366 + 100;
    let workers = run_all(&options(addresses, WORKERS, long), 1, |_| drop(first.take()));
    for worker in &workers {
        assert_eq!((worker.switch(), worker.parts()), (addresses[1], PARTS as usize));
        assert!(worker.rejoins() >= u64::from(PARTS));
    }
}

#[test]
fn a_worker_joins_at_the_standby_if_the_first_switch_does_not_answer() {
    let (gone, standby) = (start().address(), start());
    let mut worker = Worker::join(options([gone, standby.address()], 1, 10)).unwrap();
    assert_eq!(worker.switch(), standby.address());
    let mut vector = [1.0; 10];
    worker.all_reduce(&mut vector).unwrap();
    let another = JoinOptions { job: 1, ..options([gone, standby.address()], 1, 0) };
    let mut any = AnyLengthWorker::join(another, &mut || true).unwrap();
    any.all_reduce_while(&mut [1.0; 1000], &mut || true).unwrap();
}

#[test]
fn the_error_of_a_worker_whose_switches_are_all_silent_names_one_of_them() {
    let gone = [start().address(), start().address()];
    let impatient = JoinOptions { connect_timeout: Duration::from_millis(700), ..options(gone, 1, 10) };
    let error = Worker::join(impatient.clone()).unwrap_err();
    assert!(matches!(error, JoinError::NoAnswer { switch, .. } if gone.contains(&switch)), "{error}");
    let switches = [start(), start()];
    let addresses = [switches[0].address(), switches[1].address()];
    let impatient = JoinOptions { switch_timeout: Duration::from_millis(1500), ..options(addresses, 1, 10) };
    let mut worker = Worker::join(impatient).unwrap();
    drop(switches);
    let error = worker.all_reduce(&mut [1.0; 10]).unwrap_err();
    assert!(matches!(error, AggregateError::SwitchLost { .. }), "{error}");
    // The worker continues as soon as any of the switches is available again.
    let _second = restart_at(addresses[1]);
    worker.all_reduce(&mut [1.0; 10]).unwrap();
}

#[test]
fn invalid_lists_of_switches_are_refused_by_name() {
    let switch = start();
    let none_declared = options([switch.address(); 2], 0, 10);
    let error = Worker::join(none_declared).unwrap_err().to_string();
    assert!(error.starts_with("workers is 0, but the worker has several switches"), "{error}");
    let many = JoinOptions { standbys: vec![switch.address(); 16], ..options([switch.address(); 2], 1, 10) };
    let error = Worker::join(many).unwrap_err().to_string();
    assert!(error.starts_with("the number of switches is 17, expected at most 16"), "{error}");
}

/// Receives up to 400 sums, and returns their numbers and first elements. Ends early if the worker lacks a sum that the
/// other one has.
fn receive(worker: &AsyncWorker) -> Result<Vec<(u32, f32)>, String> {
    let (mut sum, mut sums) = (vec![0.0; 1000], Vec::new());
    while sums.len() < 400 {
        let contributions = match worker.recv_sum(&mut sum) {
            Ok((aggregate, contributions)) => {
                sums.push((aggregate, sum[0]));
                f32::from(contributions)
            }
            Err(AggregateError::MissedRounds { .. }) => break,
            Err(error) => return Err(error.to_string()),
        };
        if sum.iter().any(|x| *x != sum[0]) || !(contributions..=2.0 * contributions).contains(&sum[0]) {
            return Err(format!("{contributions} contributions: {sum:?}"));
        }
    }
    Ok(sums)
}

#[test]
fn an_asynchronous_worker_moves_to_the_standby() {
    let (mut first, second) = (Some(start()), start());
    let addresses = [first.as_ref().unwrap().address(), second.address()];
    let begin = |rank: u16| {
        let options = options(addresses, 2, 1000);
        thread::spawn(move || {
            let worker = AsyncWorker::join(options).unwrap();
            // A vector in flight is lost with the switch; the standby sums the following ones.
            let vector = vec![f32::from(rank + 1); 1000];
            let sums = thread::scope(|scope| {
                scope.spawn(|| while worker.submit(&vector).is_ok() {});
                let sums = receive(&worker);
                worker.close();
                sums
            });
            (sums.unwrap(), worker.counters().rejoins)
        })
    };
    let threads = [begin(0), begin(1)];
    while first.as_ref().unwrap().snapshot().unwrap().traffic.get("results") < 300 {
        thread::sleep(Duration::from_millis(5));
    }
    drop(first.take());
    let [(one, rejoins), (other, _)] = threads.map(|thread| thread.join().unwrap());
    assert!(rejoins >= 1);
    // Sums with the same number are the same, whichever switch computed them.
    for sum in &one {
        assert!(other.iter().all(|it| it.0 != sum.0 || it.1 == sum.1), "{sum:?}");
    }
    assert!(one.len().max(other.len()) == 400, "{} and {} sums", one.len(), other.len());
}
