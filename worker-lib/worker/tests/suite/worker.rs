//! Blocking workers over UDP with a real switch on the loopback interface.

use std::net::SocketAddrV4;
use std::thread;
use std::time::{Duration, Instant};

use iswitch::{AggregateError, GradientAggregator, JoinError, JoinOptions, Worker};
use iswitch_protocol::wire::Status;
use iswitch_runtime::embedded::{EmbeddedOptions, EmbeddedSwitch};
use iswitch_switch::{Config, NonFinite};

use crate::switches::own_address;

const LEN: u32 = 50_000;
/// Time after which a test gives up.
const SOON: Duration = Duration::from_secs(30);

fn switch() -> EmbeddedSwitch {
    EmbeddedSwitch::start(own_address(), &EmbeddedOptions::default()).unwrap()
}

fn options(address: SocketAddrV4, workers: u16) -> JoinOptions {
    JoinOptions { workers_timeout: Some(SOON), ..JoinOptions::new(address, workers, LEN) }
}

/// Joins `workers` members concurrently, each from a separate thread. `change` modifies the options of each.
fn join_all(address: SocketAddrV4, workers: u16, change: fn(&mut JoinOptions)) -> Vec<Worker> {
    let joining: Vec<_> = (0..workers)
        .map(|_| {
            let mut options = options(address, workers);
            change(&mut options);
            thread::spawn(move || Worker::join(options).unwrap())
        })
        .collect();
    joining.into_iter().map(|worker| worker.join().unwrap()).collect()
}

fn contribution(rank: usize, round: u32, element: usize) -> f32 {
    ((rank * 1000 + round as usize * 10 + element) % 5000) as f32
}

/// Runs `rounds` rounds on every worker and checks each element of each sum.
fn run_rounds(workers: Vec<Worker>, rounds: u32) -> Vec<Worker> {
    let count = workers.len();
    let running: Vec<_> = workers
        .into_iter()
        .enumerate()
        .map(|(rank, mut worker)| {
            thread::spawn(move || {
                let mut vector = vec![0.0; LEN as usize];
                for round in 0..rounds {
                    vector.iter_mut().enumerate().for_each(|(i, x)| *x = contribution(rank, round, i));
                    let done = worker.all_reduce(&mut vector).unwrap();
                    assert_eq!(usize::from(done.contributors), count);
                    for (i, sum) in vector.iter().enumerate() {
                        let expected: f32 = (0..count).map(|rank| contribution(rank, round, i)).sum();
                        assert!(*sum == expected, "round {round} [{i}]: {sum}, expected {expected}");
                    }
                }
                worker
            })
        })
        .collect();
    running.into_iter().map(|worker| worker.join().unwrap()).collect()
}

#[test]
fn sums_are_exact_with_and_without_offload() {
    let switch = switch();
    for offload in [|_: &mut JoinOptions| {}, |options: &mut JoinOptions| options.offload = false] {
        let workers = run_rounds(join_all(switch.address(), 4, offload), 20);
        for worker in workers {
            assert_eq!(worker.stats().rounds, 20);
            worker.leave().unwrap();
        }
    }
}

#[test]
fn tiny_receive_buffers_lose_no_data_permanently() {
    let switch = switch();
    run_rounds(join_all(switch.address(), 3, |options| options.recv_buffer_bytes = 4096), 5);
}

#[test]
fn jobs_run_concurrently() {
    let switch = switch();
    let address = switch.address();
    let other = thread::spawn(move || run_rounds(join_all(address, 2, |options| options.job = 9), 10));
    run_rounds(join_all(address, 2, |_| {}), 10);
    other.join().unwrap();
}

#[test]
fn the_mean_is_divided_by_the_number_of_contributions() {
    let switch = switch();
    let workers = join_all(switch.address(), 4, |_| {});
    let means: Vec<_> = workers
        .into_iter()
        .enumerate()
        .map(|(rank, mut worker)| {
            thread::spawn(move || {
                let mut vector = vec![rank as f32; LEN as usize];
                worker.all_reduce_mean(&mut vector).unwrap();
                vector
            })
        })
        .collect();
    for mean in means {
        assert!(mean.join().unwrap().iter().all(|x| x.to_bits() == 1.5f32.to_bits()));
    }
}

#[test]
fn a_departed_worker_is_not_awaited() {
    let switch = switch();
    let mut workers = run_rounds(join_all(switch.address(), 3, |_| {}), 2);
    workers.pop().unwrap().leave().unwrap();
    run_rounds(workers, 3);
}

#[test]
fn a_dead_worker_is_expelled_when_its_lease_expires() {
    let config = Config { lease_ms: 200, ..Config::default() };
    let options = EmbeddedOptions { config, ..EmbeddedOptions::default() };
    let switch = EmbeddedSwitch::start(own_address(), &options).unwrap();
    let mut workers = join_all(switch.address(), 2, |_| {});
    // The worker sends neither a Leave nor further heartbeats, as after a SIGKILL.
    workers.pop().unwrap().abandon();
    run_rounds(workers, 2);
    assert_eq!(switch.snapshot().unwrap().traffic.get("expelled"), 1);
}

#[test]
fn the_error_names_an_absent_switch() {
    let mut options = options("127.0.0.1:9".parse().unwrap(), 1);
    options.connect_timeout = Duration::from_millis(100);
    let error = Worker::join(options).unwrap_err();
    assert!(matches!(error, JoinError::NoAnswer { .. }));
    assert!(error.to_string().contains("127.0.0.1:9"), "{error}");
}

#[test]
fn a_differing_declaration_is_refused_with_a_specific_status() {
    let switch = switch();
    let _first = Worker::join(options(switch.address(), 1)).unwrap();
    let refusal = |change: fn(&mut JoinOptions)| {
        let mut options = options(switch.address(), 1);
        change(&mut options);
        let error = Worker::join(options).unwrap_err();
        let JoinError::Refused { status, .. } = &error else { panic!("{error}") };
        (*status, error.to_string())
    };
    let (status, text) = refusal(|options| options.gradient_len = 7);
    assert_eq!(status, Status::GradientLenMismatch);
    assert_eq!(text, "the switch refused the Join: gradient length is 7, expected 50000");
    let (status, text) = refusal(|options| options.segment_floats = 100);
    assert_eq!(status, Status::SegmentSizeMismatch);
    assert_eq!(text, "the switch refused the Join: segment size is 100, expected 366");
    assert_eq!(refusal(|options| options.workers = 3).0, Status::WorkersMismatch);
}

#[test]
fn missing_workers_are_counted() {
    let switch = switch();
    let mut options = options(switch.address(), 3);
    options.workers_timeout = Some(Duration::from_millis(100));
    let error = Worker::join(options).unwrap_err();
    assert!(matches!(error, JoinError::WorkersMissing { present: 1, workers: 3, .. }), "{error}");
}

#[test]
fn invalid_vectors_are_refused_before_anything_is_sent() {
    let switch = switch();
    let mut worker = Worker::join(options(switch.address(), 1)).unwrap();
    let first = worker.membership().start.get();
    let mut vector = vec![0.0; LEN as usize];
    assert!(matches!(worker.all_reduce(&mut vector[1..]), Err(AggregateError::WrongLength { .. })));
    vector[77] = f32::NAN;
    assert!(matches!(worker.all_reduce(&mut vector), Err(AggregateError::NonFinite { index: 77, .. })));
    vector[77] = 1.0;
    assert_eq!(worker.all_reduce(&mut vector).unwrap().number, first);
}

#[test]
fn a_stalled_round_can_be_repeated() {
    let switch = switch();
    let mut workers = join_all(switch.address(), 2, |options| {
        options.round_timeout = Some(Duration::from_millis(50));
    });
    let first = workers[0].membership().start.get();
    let mut vector = vec![0.0; LEN as usize];
    let error = workers[0].all_reduce(&mut vector).unwrap_err();
    assert!(matches!(error, AggregateError::Stalled { round, .. } if round == first), "{error}");
    // The contribution of the failed call is part of the open sum, so the repeated contribution is a harmless
    // duplicate.
    let mut workers = workers.into_iter();
    let (mut first, mut second) = (workers.next().unwrap(), workers.next().unwrap());
    let other = thread::spawn(move || {
        let mut vector = vec![2.0; LEN as usize];
        second.all_reduce(&mut vector).unwrap();
        vector
    });
    let mut vector = vec![0.0; LEN as usize];
    while first.all_reduce(&mut vector).is_err() {
        vector.fill(0.0);
    }
    assert_eq!(vector, other.join().unwrap());
}

#[test]
fn rounds_with_a_short_timeout_stall_until_the_switch_counts_as_lost() {
    let switch = switch();
    let round_timeout = Some(Duration::from_millis(20));
    let mut worker = Worker::join(JoinOptions { round_timeout, ..options(switch.address(), 1) }).unwrap();
    drop(switch);
    let begin = Instant::now();
    let lost = loop {
        match worker.all_reduce(&mut vec![1.0; LEN as usize]).unwrap_err() {
            AggregateError::Stalled { .. } => {
                assert!(begin.elapsed() < SOON, "the switch must count as lost");
            }
            error => break error,
        }
    };
    assert!(
        matches!(lost, AggregateError::SwitchLost { silent, .. } if silent > 10 * Duration::from_millis(20)),
        "{lost}"
    );
}

#[test]
fn halt_stops_all_workers_and_reset_lets_them_continue() {
    let switch = switch();
    let mut workers = join_all(switch.address(), 2, |_| {});
    workers[0].halt().unwrap();
    let mut vector = vec![0.0; LEN as usize];
    assert!(matches!(workers[1].all_reduce(&mut vector), Err(AggregateError::Halted)));
    workers[0].reset().unwrap();
    let workers: Vec<_> = workers
        .into_iter()
        .map(|mut worker| {
            thread::spawn(move || {
                let mut vector = vec![1.0; LEN as usize];
                // Packets sent before the Reset may still be refused because the job is halted.
                while let Err(error) = worker.all_reduce(&mut vector) {
                    assert!(matches!(error, AggregateError::Halted), "{error}");
                    vector.fill(1.0);
                }
                vector
            })
        })
        .collect();
    for worker in workers {
        assert_eq!(worker.join().unwrap()[0].to_bits(), 2.0f32.to_bits());
    }
}

#[test]
fn a_pinned_threshold_does_not_wait_for_all() {
    let switch = switch();
    let mut workers = join_all(switch.address(), 3, |_| {});
    workers[0].set_threshold(1).unwrap();
    let mut vector = vec![5.0; LEN as usize];
    let round = workers[0].all_reduce(&mut vector).unwrap();
    assert_eq!((round.contributors, vector[0].to_bits()), (1, 5.0f32.to_bits()));
}

#[test]
fn a_switch_that_dies_during_the_join_is_detected() {
    let switch = switch();
    let mut options = options(switch.address(), 2);
    options.switch_timeout = Duration::from_millis(300);
    let waiting = thread::spawn(move || Worker::join(options).unwrap_err());
    while switch.snapshot().unwrap().jobs.is_empty() {
        thread::sleep(Duration::from_millis(1));
    }
    drop(switch);
    let error = waiting.join().unwrap();
    assert!(matches!(error, JoinError::NoAnswer { .. }), "{error}");
}

#[test]
fn a_caller_may_abort_the_wait() {
    let switch = switch();
    let mut asked = 0;
    let mut give_up = || {
        asked += 1;
        asked < 3
    };
    let error = Worker::join_while(options(switch.address(), 2), &mut give_up).unwrap_err();
    assert!(matches!(error, JoinError::Interrupted), "{error}");

    let mut workers = join_all(switch.address(), 2, |_| {});
    let mut vector = vec![1.0; LEN as usize];
    let error = workers[0].reduce_while(&vector, &mut || false).unwrap_err();
    assert!(matches!(error, AggregateError::Interrupted), "{error}");
    // The next call repeats the round.
    let mut other = workers.pop().unwrap();
    let other = thread::spawn(move || other.all_reduce(&mut vec![2.0; LEN as usize]).unwrap());
    workers[0].all_reduce(&mut vector).unwrap();
    other.join().unwrap();
    assert!(vector.iter().all(|x| *x == 3.0));
}

#[test]
fn infinities_pass_if_the_switch_and_all_workers_allow_them() {
    let config = Config { non_finite: NonFinite::Sum, ..Config::default() };
    let switch =
        EmbeddedSwitch::start(own_address(), &EmbeddedOptions { config, ..Default::default() }).unwrap();
    let workers = join_all(switch.address(), 2, |options| options.sends_non_finite = true);
    let sums: Vec<_> = workers
        .into_iter()
        .enumerate()
        .map(|(rank, mut worker)| {
            thread::spawn(move || {
                let mut vector = vec![1.0; LEN as usize];
                vector[rank] = f32::INFINITY;
                worker.all_reduce(&mut vector).unwrap();
                vector
            })
        })
        .collect();
    for sum in sums {
        let sum = sum.join().unwrap();
        assert!(sum[..2].iter().all(|x| *x == f32::INFINITY) && sum[2..].iter().all(|x| *x == 2.0));
    }
}
