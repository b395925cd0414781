//! Tests of workers that sum vectors of many lengths.

use std::net::SocketAddrV4;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use iswitch::worker::{AnyLengthError, MAX_LENGTHS, MAX_PIECE_FLOATS, Summed, Values};
use iswitch::{AggregateError, AnyLengthWorker, ElementType, ElementTypes, JoinOptions};
use iswitch_runtime::embedded::{EmbeddedOptions, EmbeddedSwitch};

use crate::meeting::Meeting;
use crate::switches::{own_address, restart_at};

fn switch() -> EmbeddedSwitch {
    EmbeddedSwitch::start(own_address(), &EmbeddedOptions::default()).unwrap()
}

/// Joins several workers and runs the same function on each of them.
fn on_each<T: Send + 'static>(
    address: SocketAddrV4,
    workers: u16,
    run: impl Fn(usize, AnyLengthWorker) -> T + Clone + Send + 'static,
) -> Vec<T> {
    let spawn = |rank: usize| -> JoinHandle<T> {
        let run = run.clone();
        let options = JoinOptions {
            workers_timeout: Some(Duration::from_secs(60)),
            ..JoinOptions::new(address, workers, 0)
        };
        thread::spawn(move || run(rank, AnyLengthWorker::join(options, &mut || true).unwrap()))
    };
    let threads: Vec<_> = (0..usize::from(workers)).map(spawn).collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

fn vector(rank: usize, floats: usize) -> Vec<f32> {
    (0..floats).map(|i| (i % 1000 + rank) as f32).collect()
}

fn sum(workers: usize, floats: usize) -> Vec<f32> {
    (0..floats).map(|i| (0..workers).map(|rank| (i % 1000 + rank) as f32).sum()).collect()
}

#[test]
fn lengths_may_change_from_call_to_call() {
    let switch = switch();
    let lengths = [1, 366, 367, 0, 10_119, 1, MAX_PIECE_FLOATS + 1, 10_119, 2 * MAX_PIECE_FLOATS];
    on_each(switch.address(), 3, move |rank, mut worker| {
        for floats in lengths {
            let mut own = vector(rank, floats);
            let summed = worker.all_reduce_while(&mut own, &mut || true).unwrap();
            assert_eq!(summed, Summed { contributors: 3, uniform: true });
            assert!(own == sum(3, floats), "{floats} floats");
        }
        assert_eq!(worker.stats().rounds, 10, "expected one round for each piece");
    });
}

#[test]
fn a_mean_is_divided_by_the_number_of_gradients() {
    let switch = switch();
    on_each(switch.address(), 2, |rank, mut worker| {
        let mut own = vector(rank, 1000);
        worker.all_reduce_mean_while(&mut own, &mut || true).unwrap();
        assert!(own.iter().zip(sum(2, 1000)).all(|(mean, sum)| *mean == sum / 2.0));
    });
}

#[test]
fn excess_vector_lengths_evict_each_other() {
    let switch = switch();
    let address = switch.address();
    on_each(address, 2, |rank, mut worker| {
        for floats in (1..=MAX_LENGTHS + 3).map(|count| 1000 * count).chain([1000, 1, 2000]) {
            let mut own = vector(rank, floats);
            worker.all_reduce_while(&mut own, &mut || true).unwrap();
            assert!(own == sum(2, floats), "{floats} floats");
        }
        assert_eq!(worker.stats().rounds, MAX_LENGTHS as u64 + 6);
    });
    assert!(switch.snapshot().unwrap().jobs.len() <= MAX_LENGTHS);
}

#[test]
fn workers_of_any_length_rejoin_a_restarted_switch() {
    let mut before = Some(switch());
    let address = before.as_ref().unwrap().address();
    // The barrier is passed when the workers have finished round 10, and again when the switch has restarted.
    let barrier = Arc::new(Meeting::new(3));
    let meeting = Arc::clone(&barrier);
    let workers = thread::spawn(move || {
        on_each(address, 2, move |rank, mut worker| {
            for round in 0..20 {
                let floats = [5000, 77, 1500][round % 3];
                let mut own = vector(rank, floats);
                worker.all_reduce_while(&mut own, &mut || true).unwrap();
                assert!(own == sum(2, floats), "round {round}");
                if round == 10 {
                    meeting.wait();
                    meeting.wait();
                }
            }
            worker.rejoins()
        })
    });
    barrier.wait();
    drop(before.take());
    let _after = restart_at(address);
    barrier.wait();
    let rejoins = workers.join().unwrap();
    assert!(rejoins.iter().all(|rejoins| *rejoins > 0), "{rejoins:?}");
}

#[test]
fn an_interrupted_vector_is_completed_by_the_next_call() {
    let switch = switch();
    let floats = MAX_PIECE_FLOATS + 5000;
    on_each(switch.address(), 2, move |rank, mut worker| {
        let mut own = vector(rank, floats);
        // Both workers have joined the jobs of both lengths, so the interrupted call is waiting in a round.
        worker.all_reduce_while(&mut own, &mut || true).unwrap();
        own = vector(rank, floats);
        if rank == 0 {
            thread::sleep(Duration::from_millis(50));
        } else {
            let error = worker.all_reduce_while(&mut own, &mut || false).unwrap_err();
            assert!(matches!(error, AnyLengthError::Aggregate(AggregateError::Interrupted)), "{error}");
            let error = worker.all_reduce_while(&mut [1.0], &mut || true).unwrap_err();
            assert!(matches!(error, AnyLengthError::Unfinished { expected, .. } if expected == floats));
        }
        worker.all_reduce_while(&mut own, &mut || true).unwrap();
        assert!(own == sum(2, floats));
    });
}

#[test]
fn no_part_of_a_vector_with_nan_is_sent() {
    let switch = switch();
    on_each(switch.address(), 1, |_, mut worker| {
        let mut own = vec![0.0; 2 * MAX_PIECE_FLOATS];
        own[MAX_PIECE_FLOATS + 7] = f32::NAN;
        let error = worker.all_reduce_while(&mut own, &mut || true).unwrap_err();
        let at = MAX_PIECE_FLOATS + 7;
        assert_eq!(
            error.to_string(),
            format!("vector[{at}] is NaN, which would make the sum non-finite on every replica")
        );
        assert_eq!(worker.stats().rounds, 0);
        worker.all_reduce_while(&mut [1.0], &mut || true).unwrap();
    });
}

/// Returns a vector of small integers as bit patterns of bf16 or f16; both types represent the sums of these integers
/// exactly.
fn halves(element: ElementType, rank: usize, floats: usize) -> Vec<u16> {
    let bits = |i: usize| {
        let mut bytes = [0; 2];
        iswitch_element::round(element, &[(i % 50 + rank) as f32], &mut bytes);
        u16::from_le_bytes(bytes)
    };
    (0..floats).map(bits).collect()
}

fn floats(element: ElementType, halves: &[u16]) -> Vec<f32> {
    let bytes: Vec<_> = halves.iter().flat_map(|half| half.to_le_bytes()).collect();
    let mut floats = vec![0.0; halves.len()];
    iswitch_element::widen(element, &bytes, &mut floats);
    floats
}

fn values(element: ElementType, halves: &mut [u16]) -> Values<'_> {
    if element == ElementType::Bf16 { Values::Bf16(halves) } else { Values::F16(halves) }
}

#[test]
fn sixteen_bit_vectors_travel_as_such_beside_others() {
    let switch = switch();
    let address = switch.address();
    let wide = [None, Some(ElementTypes::F32), Some("bf16-f32".parse().unwrap())];
    for elements in wide {
        on_each(address, 3, move |rank, worker| {
            let mut worker = worker.with_elements(elements);
            for (element, len) in
                [(ElementType::Bf16, 1), (ElementType::F16, 733), (ElementType::Bf16, MAX_PIECE_FLOATS + 5)]
            {
                for is_mean in [false, true] {
                    let mut own = halves(element, rank, len);
                    let summed = worker.reduce_values_while(values(element, &mut own), is_mean, &mut || true);
                    assert_eq!(summed.unwrap(), Summed { contributors: 3, uniform: true });
                    // The mean of three consecutive numbers is the second one.
                    let times = if is_mean { 1 } else { 3 };
                    let expected = |i: usize| (times * (i % 50 + 1)) as f32;
                    let own = floats(element, &own);
                    assert!(
                        own.iter().enumerate().all(|(i, x)| *x == expected(i)),
                        "{element}, {len} elements"
                    );
                }
            }
            let mut own = vector(rank, 733);
            worker.all_reduce_while(&mut own, &mut || true).unwrap();
            let is_rounded = elements.is_some_and(|elements| elements != ElementTypes::F32);
            assert!(is_rounded || own == sum(3, 733), "32-bit vectors are not rounded");
        });
    }
}

#[test]
fn means_of_binary16_do_not_overflow() {
    let switch = switch();
    on_each(switch.address(), 2, |_, mut worker| {
        let large = halves(ElementType::F16, 60_000, 1);
        let mut own = large.clone();
        worker.reduce_values_while(Values::F16(&mut own), true, &mut || true).unwrap();
        assert_eq!(own, large);
        worker.reduce_values_while(Values::F16(&mut own), false, &mut || true).unwrap();
        assert_eq!(floats(ElementType::F16, &own), [f32::INFINITY]);
    });
}

#[test]
fn non_finite_values_of_sixteen_bits_are_named() {
    let switch = switch();
    on_each(switch.address(), 1, |_, mut worker| {
        let mut own = halves(ElementType::Bf16, 0, 3000);
        own[2050] = 0x7F80;
        let error = worker.reduce_values_while(Values::Bf16(&mut own), false, &mut || true).unwrap_err();
        assert_eq!(
            error.to_string(),
            "vector[2050] is inf, which would make the sum non-finite on every replica"
        );
    });
}
