//! Tests of one vector that is divided among several switches.

use std::net::SocketAddrV4;
use std::thread;
use std::time::Duration;

use iswitch::{AggregateError, GradientAggregator, JoinError, JoinOptions, ShardedWorker};
use iswitch_runtime::embedded::{EmbeddedOptions, EmbeddedSwitch};

use crate::meeting::{Meeting, repeat_stalled};
use crate::switches::own_address;

const SOON: Option<Duration> = Some(Duration::from_secs(30));

fn start(count: usize) -> (Vec<EmbeddedSwitch>, Vec<SocketAddrV4>) {
    let any = own_address();
    let switches: Vec<_> =
        (0..count).map(|_| EmbeddedSwitch::start(any, &EmbeddedOptions::default()).unwrap()).collect();
    let addresses = switches.iter().map(EmbeddedSwitch::address).collect();
    (switches, addresses)
}

/// Runs each worker in a separate thread.
fn together(
    workers: u16,
    options: &JoinOptions,
    switches: &[SocketAddrV4],
    work: impl Fn(u16, ShardedWorker) + Sync,
) {
    let work = &work;
    thread::scope(|scope| {
        for rank in 0..workers {
            scope.spawn(move || work(rank, ShardedWorker::join(options, switches).unwrap()));
        }
    });
}

#[test]
fn each_switch_aggregates_its_part_of_the_vector() {
    let (_running, switches) = start(3);
    // Three equal parts; unequal parts; fewer segments than switches.
    for len in [366 * 300, 366 * 7 + 5, 100] {
        let options = JoinOptions { workers_timeout: SOON, ..JoinOptions::new(switches[0], 3, len) };
        together(3, &options, &switches, |rank, mut worker| {
            assert_eq!(worker.gradient_len(), len as usize);
            for round in 0..5 {
                let value = |rank: u16, i: usize| f32::from(rank) + (i % 100 + round) as f32;
                let total = |i| (0..3).map(|rank| value(rank, i)).sum::<f32>();
                let mut vector: Vec<_> = (0..len as usize).map(|i| value(rank, i)).collect();
                let done = worker.all_reduce(&mut vector).unwrap();
                assert!(done.contributors == 3 && done.uniform);
                for (i, sum) in vector.iter().enumerate() {
                    assert_eq!(*sum, total(i), "[{i}] of {len}");
                }
                worker.all_reduce_mean(&mut vector).unwrap();
                assert_eq!(vector[0], total(0));
            }
            assert_eq!(worker.stats().rounds, 10);
            worker.leave().unwrap();
        });
    }
}

#[test]
fn a_stalled_sharded_round_resumes_where_it_stopped() {
    let (_running, switches) = start(2);
    let mut options = JoinOptions { workers_timeout: SOON, ..JoinOptions::new(switches[0], 2, 10_000) };
    options.round_timeout = Some(Duration::from_secs(1));
    let has_stalled = Meeting::new(2);
    together(2, &options, &switches, |rank, mut worker| {
        for round in 0u16..3 {
            let vector = vec![f32::from(round * 10 + rank); 10_000];
            if rank == 0 {
                let error = worker.reduce(&vector).unwrap_err();
                assert!(matches!(error, AggregateError::Stalled { .. }), "{error}");
                let error = worker.reduce(&vector[1..]).unwrap_err();
                assert!(matches!(error, AggregateError::WrongLength { .. }), "{error}");
            }
            has_stalled.wait();
            let sum = repeat_stalled(|| worker.reduce(&vector).map(|(_, sum)| sum.to_vec()));
            assert!(sum.iter().all(|x| *x == f32::from(round * 20 + 1)), "{}", sum[0]);
        }
    });
}

#[test]
fn joining_without_switches_is_an_error() {
    let options = JoinOptions::new("127.0.0.1:1".parse().unwrap(), 1, 10);
    assert!(matches!(ShardedWorker::join(&options, &[]), Err(JoinError::NoSwitch)));
}
