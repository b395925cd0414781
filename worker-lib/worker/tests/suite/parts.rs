//! Tests of a vector whose parts are summed by the threads of one switch.

use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use iswitch::{AggregateError, GradientAggregator, JoinError, JoinOptions, ShardedWorker, Worker};
use iswitch_protocol::wire::Status;
use iswitch_runtime::embedded::{EmbeddedOptions, EmbeddedSwitch};
use iswitch_switch::Config;

use crate::meeting::{Meeting, repeat_stalled};
use crate::switches::own_address;

const SOON: Option<Duration> = Some(Duration::from_secs(30));
const SEGMENT: u32 = 366;

fn start(threads: usize) -> EmbeddedSwitch {
    let any = own_address();
    EmbeddedSwitch::start(any, &EmbeddedOptions { threads, ..EmbeddedOptions::default() }).unwrap()
}

fn restart(address: SocketAddrV4, threads: usize, config: Config) -> EmbeddedSwitch {
    let options = EmbeddedOptions { threads, config, ..EmbeddedOptions::default() };
    EmbeddedSwitch::start(address, &options).unwrap()
}

/// Returns the options of a worker. Successive calls set the number of threads that drive the parts to one, two and
/// three in turn.
fn options(switch: SocketAddrV4, workers: u16, len: u32) -> JoinOptions {
    static WORKERS: AtomicUsize = AtomicUsize::new(0);
    let threads = 1 + WORKERS.fetch_add(1, Ordering::Relaxed) % 3;
    JoinOptions {
        threads,
        workers_timeout: SOON,
        round_timeout: SOON,
        ..JoinOptions::new(switch, workers, len)
    }
}

/// Runs each worker in a separate thread.
fn together(workers: u16, work: impl Fn(u16) + Sync) {
    let work = &work;
    thread::scope(|scope| {
        for rank in 0..workers {
            scope.spawn(move || work(rank));
        }
    });
}

fn value(rank: u16, round: usize, i: usize) -> f32 {
    f32::from(rank) + (i % 100 + round) as f32
}

/// Sums rounds and checks every element.
fn check_rounds(worker: &mut Worker, rank: u16, workers: u16, rounds: usize) {
    let len = worker.gradient_len();
    for round in 0..rounds {
        let mut vector: Vec<_> = (0..len).map(|i| value(rank, round, i)).collect();
        let done = worker.all_reduce(&mut vector).unwrap();
        assert!(done.contributors == workers && done.uniform);
        for (i, sum) in vector.iter().enumerate() {
            let expected: f32 = (0..workers).map(|rank| value(rank, round, i)).sum();
            assert_eq!(*sum, expected, "[{i}] of {len}");
        }
    }
}

#[test]
fn a_plain_worker_uses_all_threads_of_its_switch() {
    for (threads, segments, parts) in [(2, 200, 2), (4, 1000, 4), (4, 130, 2), (4, 100, 1), (1, 1000, 1)] {
        let switch = start(threads);
        together(3, |rank| {
            let mut worker = Worker::join(options(switch.address(), 3, segments * SEGMENT - 5)).unwrap();
            assert_eq!(worker.parts(), parts, "{threads} threads, {segments} segments");
            check_rounds(&mut worker, rank, 3, 5);
            let mut vector = vec![1.0; worker.gradient_len()];
            worker.all_reduce_mean(&mut vector).unwrap();
            assert!(vector.iter().all(|x| *x == 1.0));
            assert_eq!(worker.stats().rounds, 6);
            worker.leave().unwrap();
        });
        let snapshot = switch.snapshot().unwrap();
        assert!(snapshot.jobs.is_empty());
        assert_eq!(snapshot.traffic.get("results"), u64::from(6 * segments));
    }
}

#[test]
fn a_stalled_round_of_parts_resumes_where_it_stopped() {
    let switch = start(2);
    let has_stalled = Meeting::new(2);
    together(2, |rank| {
        let round_timeout = Some(Duration::from_secs(1));
        let options = JoinOptions { round_timeout, ..options(switch.address(), 2, 200 * SEGMENT) };
        let mut worker = Worker::join(options).unwrap();
        for round in 0u16..3 {
            let vector = vec![f32::from(round * 10 + rank); worker.gradient_len()];
            if rank == 0 {
                let error = worker.reduce(&vector).unwrap_err();
                assert!(matches!(error, AggregateError::Stalled { .. }), "{error}");
            }
            has_stalled.wait();
            let sum = repeat_stalled(|| worker.reduce(&vector).map(|(_, sum)| sum.to_vec()));
            assert!(sum.iter().all(|x| *x == f32::from(round * 20 + 1)), "{}", sum[0]);
        }
    });
}

#[test]
fn a_caller_interrupts_all_threads_of_a_call() {
    let switch = start(4);
    let was_interrupted = Meeting::new(2);
    together(2, |rank| {
        let options = JoinOptions { threads: 4, ..options(switch.address(), 2, 300 * SEGMENT) };
        let mut worker = Worker::join(options).unwrap();
        let vector = vec![f32::from(rank); worker.gradient_len()];
        if rank == 0 {
            let mut asked = 0;
            let mut keep_waiting = || {
                asked += 1;
                asked < 3
            };
            let error = worker.reduce_while(&vector, &mut keep_waiting).unwrap_err();
            assert!(matches!(error, AggregateError::Interrupted), "{error}");
            assert_eq!(asked, 3, "keep_waiting should not be called after the interruption");
        }
        was_interrupted.wait();
        let (_, sum) = worker.reduce(&vector).unwrap();
        assert!(sum.iter().all(|x| *x == 1.0), "{}", sum[0]);
    });
}

#[test]
fn restarts_of_a_switch_with_threads_change_no_sum() {
    for threads in [2, 4] {
        let mut switch = start(threads);
        let (address, rounds, restarts) = (switch.address(), 120, 4);
        let done = AtomicU32::new(0);
        thread::scope(|scope| {
            for rank in 0..3 {
                let done = &done;
                scope.spawn(move || {
                    let mut worker = Worker::join(options(address, 3, 300 * SEGMENT)).unwrap();
                    assert_eq!(worker.parts(), threads);
                    for _ in 0..rounds {
                        check_rounds(&mut worker, rank, 3, 1);
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                    assert!(worker.rejoins() >= u64::from(restarts));
                });
            }
            for restart_number in 1..=restarts {
                let enough = 3 * rounds * restart_number / (restarts + 1);
                while done.load(Ordering::Relaxed) < enough {
                    thread::sleep(Duration::from_millis(1));
                }
                let config = Config { lease_ms: 10_000, ..Config::default() };
                drop(std::mem::replace(&mut switch, start(1)));
                switch = restart(address, threads, config);
            }
        });
    }
}

#[test]
fn a_job_of_whole_vectors_admits_a_worker_that_knows_parts_and_the_reverse_is_refused() {
    let switch = start(2);
    let options = options(switch.address(), 2, 200 * SEGMENT);
    // With a single switch in its list, a sharded worker joins like a client that does not support parts.
    let whole = |options: &JoinOptions| ShardedWorker::join(options, &[options.switch]);
    thread::scope(|scope| {
        let first = scope.spawn(|| whole(&options).unwrap());
        while switch.snapshot().unwrap().jobs.is_empty() {
            thread::yield_now();
        }
        let mut second = Worker::join(options.clone()).unwrap();
        assert_eq!(second.parts(), 1);
        let mut first = first.join().unwrap();
        let length = second.gradient_len();
        let sum = scope.spawn(move || first.all_reduce(&mut vec![1.0; length]).map(|round| round.uniform));
        let mut vector = vec![2.0; length];
        second.all_reduce(&mut vector).unwrap();
        assert!(vector.iter().all(|x| *x == 3.0) && sum.join().unwrap().unwrap());
    });
    let options = JoinOptions { job: 1, workers: 1, ..options };
    let _in_parts = Worker::join(options.clone()).unwrap();
    let error = whole(&options).unwrap_err();
    let expected = JoinError::Refused {
        status: Status::GradientLenMismatch,
        expected: 100 * SEGMENT,
        reason: "gradient length is 73200, expected 36600".to_owned(),
    };
    assert_eq!(error.to_string(), expected.to_string());
}

/// Contributes to every round until the job ends after `is_over` is set, and checks that the sums of all parts belong
/// to the same round.
fn contribute(worker: &mut Worker, is_over: &AtomicBool, rounds: &AtomicU32) {
    // The last float tells all workers whether one of them has finished.
    let len = worker.gradient_len();
    for round in 0u16.. {
        let mut vector = vec![f32::from(round % 1000); len];
        vector[len - 1] = f32::from(u8::from(is_over.load(Ordering::Relaxed)));
        let done = worker.all_reduce(&mut vector).unwrap();
        assert!(done.uniform, "{done:?}");
        assert!(vector[..len - 1].iter().all(|x| *x == vector[0]), "round {round}");
        rounds.fetch_add(1, Ordering::Relaxed);
        if vector[len - 1] > 0.0 {
            return;
        }
    }
}

#[test]
fn a_late_joiner_starts_at_the_same_round_in_all_parts() {
    let switch = start(4);
    let options = options(switch.address(), 0, 300 * SEGMENT);
    let (is_over, rounds) = (AtomicBool::new(false), AtomicU32::new(0));
    let first = Meeting::new(2);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut worker = Worker::join(options.clone()).unwrap();
                first.wait();
                contribute(&mut worker, &is_over, &rounds);
            });
        }
        while rounds.load(Ordering::Relaxed) < 10 {
            thread::sleep(Duration::from_millis(1));
        }
        for _ in 0..20 {
            let mut worker = Worker::join(options.clone()).unwrap();
            assert_eq!(worker.parts(), 4);
            for _ in 0..3 {
                let mut vector = vec![5000.0; worker.gradient_len()];
                let last = vector.len() - 1;
                vector[last] = 0.0;
                let done = worker.all_reduce(&mut vector).unwrap();
                assert!(done.uniform && done.contributors == 3, "{done:?}");
                assert!(vector[..last].iter().all(|x| *x == vector[0]), "{done:?}");
            }
            worker.leave().unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn the_restart_of_one_of_several_switches_changes_no_sum() {
    let (first, mut second) = (start(1), start(1));
    let switches = [first.address(), second.address()];
    let options = options(switches[0], 3, 300 * SEGMENT);
    let (done, rounds) = (AtomicU32::new(0), 150);
    thread::scope(|scope| {
        for rank in 0..3u16 {
            let (options, switches, done) = (&options, &switches, &done);
            scope.spawn(move || {
                let mut worker = ShardedWorker::join(options, switches).unwrap();
                for round in 0..rounds {
                    let mut vector = vec![value(rank, 0, round as usize); worker.gradient_len()];
                    let finished = worker.all_reduce(&mut vector).unwrap();
                    assert!(finished.uniform && finished.contributors == 3);
                    let expected: f32 = (0..3).map(|rank| value(rank, 0, round as usize)).sum();
                    assert!(vector.iter().all(|x| *x == expected), "{round}");
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for restarts in 1..=4 {
            while done.load(Ordering::Relaxed) < 3 * rounds * restarts / 5 {
                thread::sleep(Duration::from_millis(1));
            }
            drop(std::mem::replace(&mut second, start(1)));
            second = restart(switches[1], 1, Config::default());
        }
    });
    drop((first, second));
}

#[test]
fn a_worker_that_missed_a_sum_of_one_part_continues_with_all_parts_together() {
    let config = Config { lease_ms: 300, ..Config::default() };
    let (first, mut second) = (start(1), restart(own_address(), 1, config));
    let switches = [first.address(), second.address()];
    let options = options(switches[0], 3, 200 * SEGMENT);
    let (begin, restarted, idle) = (Meeting::new(4), Meeting::new(4), Meeting::new(2));
    thread::scope(|scope| {
        for rank in 0..3u16 {
            let (options, switches) = (&options, &switches);
            let (begin, restarted, idle) = (&begin, &restarted, &idle);
            scope.spawn(move || {
                let mut worker = ShardedWorker::join(options, switches).unwrap();
                let len = worker.gradient_len();
                let mut sum = |round: f32| {
                    let mut vector = vec![round; len];
                    worker.all_reduce(&mut vector).map(|done| (done, vector))
                };
                sum(1.0).unwrap();
                begin.wait();
                restarted.wait();
                if rank == 0 {
                    // The others finish the round in the second part without this worker.
                    idle.wait();
                    let error = sum(2.0).unwrap_err();
                    assert!(matches!(error, AggregateError::MissedRounds { .. }), "{error}");
                } else {
                    let (done, vector) = sum(2.0).unwrap();
                    assert!(!done.uniform && done.contributors == 2);
                    assert_eq!((vector[0], vector[len - 1]), (6.0, 4.0));
                }
                // The other workers may have begun the next round in the second part by the time the switch readmits
                // this worker, which then lacks that sum as well.
                let (done, vector) = loop {
                    match sum(3.0) {
                        Ok((done, _)) if done.contributors == 2 => assert!(rank != 0 && done.uniform),
                        Ok(finished) => break finished,
                        Err(AggregateError::MissedRounds { .. }) => assert_eq!(rank, 0),
                        Err(error) => panic!("{error}"),
                    }
                };
                assert!(done.uniform && done.contributors == 3);
                assert!(vector.iter().all(|x| *x == 9.0), "{rank}");
            });
        }
        begin.wait();
        drop(std::mem::replace(&mut second, start(1)));
        second = restart(switches[1], 1, config);
        restarted.wait();
        // The job of the second part continues without the idle worker once the idle worker's lease has expired.
        let is_resumed = || {
            let snapshot = second.snapshot().unwrap();
            snapshot
                .jobs
                .first()
                .is_some_and(|job| job.formed && job.waiting.is_none() && job.members.len() == 2)
        };
        while !is_resumed() {
            thread::sleep(Duration::from_millis(5));
        }
        thread::sleep(Duration::from_millis(50));
        idle.wait();
    });
    drop((first, second));
}

#[test]
fn requests_reach_all_parts() {
    let switch = start(2);
    let segments = 200;
    let options = options(switch.address(), 2, segments * SEGMENT);
    let [halted, reset, closed] = [(); 3].map(|()| Meeting::new(2));
    let (options, halted, reset, closed) = (&options, &halted, &reset, &closed);
    together(2, |rank| {
        let mut worker = Worker::join(options.clone()).unwrap();
        check_rounds(&mut worker, rank, 2, 1);
        halted.wait();
        if rank == 0 {
            worker.halt().unwrap();
            let error = worker.reduce(&vec![1.0; worker.gradient_len()]).unwrap_err();
            assert!(matches!(error, AggregateError::Halted), "{error}");
            worker.reset().unwrap();
        }
        reset.wait();
        while let Err(error) = worker.reduce(&vec![1.0; worker.gradient_len()]) {
            assert!(matches!(error, AggregateError::Halted), "{error}");
        }
        check_rounds(&mut worker, rank, 2, 1);
        // The round closes with the contribution of one worker, in both parts.
        let round = worker.all_reduce(&mut vec![1.0; worker.gradient_len()]).unwrap().number + 1;
        if rank == 0 {
            let timeout = worker.reduce_while(&vec![5.0; worker.gradient_len()], &mut || false).unwrap_err();
            assert!(matches!(timeout, AggregateError::Interrupted), "{timeout}");
            worker.force_broadcast(round, 0, segments).unwrap();
            let mut vector = vec![5.0; worker.gradient_len()];
            let done = worker.all_reduce(&mut vector).unwrap();
            assert!(done.uniform && done.contributors == 1, "{done:?}");
            assert!(vector.iter().all(|x| *x == 5.0));
        }
        closed.wait();
        if rank == 1 {
            // The round is over, but the switch still keeps its result.
            let mut vector = vec![7.0; worker.gradient_len()];
            worker.all_reduce(&mut vector).unwrap();
            assert!(vector.iter().all(|x| *x == 5.0));
            worker.set_threshold(1).unwrap();
        }
        halted.wait();
        let done = worker.all_reduce(&mut vec![1.0; worker.gradient_len()]).unwrap();
        assert_eq!(done.contributors, 1);
    });
    let snapshot = switch.snapshot().unwrap();
    assert!(snapshot.jobs.is_empty());
}
