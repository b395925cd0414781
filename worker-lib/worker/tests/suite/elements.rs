//! Workers whose packets carry 16-bit elements, with a real switch on the loopback interface.

use std::net::SocketAddrV4;
use std::thread;
use std::time::Duration;

use iswitch::{
    AggregateError, AsyncWorker, ElementType, ElementTypes, GradientAggregator, JoinError, JoinOptions, Key,
    Worker,
};
use iswitch_element::rounded;
use iswitch_protocol::wire::Status;
use iswitch_runtime::embedded::{EmbeddedOptions, EmbeddedSwitch, random_secret};
use iswitch_switch::Keys;

use crate::switches::own_address;

const LEN: usize = 10_119;
const WORKERS: u16 = 3;
const JOB: u32 = 4;

const SHORT: [ElementTypes; 4] = [
    ElementTypes::uniform(ElementType::Bf16),
    ElementTypes::uniform(ElementType::F16),
    ElementTypes::with_wide_results(ElementType::Bf16),
    ElementTypes::with_wide_results(ElementType::F16),
];

fn switch() -> EmbeddedSwitch {
    EmbeddedSwitch::start(own_address(), &EmbeddedOptions::default()).unwrap()
}

fn options(address: SocketAddrV4, elements: ElementTypes) -> JoinOptions {
    JoinOptions {
        job: JOB,
        workers_timeout: Some(Duration::from_secs(30)),
        ..JoinOptions::new(address, WORKERS, LEN as u32).with_elements(elements)
    }
}

/// Returns a multiple of 1/8 below 16, which has at most seven significant bits.
fn contribution(rank: usize, round: usize, at: usize) -> f32 {
    ((rank * 29 + round * 7 + at * 3) % 128) as f32 / 8.0
}

/// Returns the expected value of an element of the sum. Before it is rounded to the type of the results, the sum is
/// exact in binary32 in any order of addition; in bfloat16, it is not.
fn sum(elements: ElementTypes, round: usize, at: usize) -> f32 {
    let exact = (0..usize::from(WORKERS)).map(|rank| contribution(rank, round, at)).sum();
    rounded(elements.results(), exact)
}

fn run_rounds(options: &JoinOptions) {
    let run = |rank: usize| {
        let options = options.clone();
        thread::spawn(move || {
            let mut worker = Worker::join(options.clone()).unwrap();
            let mut vector = vec![0.0; LEN];
            for round in 0..5 {
                (0..LEN).for_each(|at| vector[at] = contribution(rank, round, at));
                let done = worker.all_reduce(&mut vector).unwrap();
                assert_eq!((done.contributors, done.uniform), (WORKERS, true));
                for (at, x) in vector.iter().enumerate() {
                    assert!(
                        *x == sum(options.elements, round, at),
                        "{}, round {round} [{at}]: {x}",
                        options.elements
                    );
                }
            }
        })
    };
    let running: Vec<_> = (0..usize::from(WORKERS)).map(run).collect();
    running.into_iter().for_each(|worker| worker.join().unwrap());
}

#[test]
fn sums_are_rounded_once_with_and_without_offload() {
    let switch = switch();
    for (job, elements) in (0..).zip(SHORT) {
        for offload in [true, false] {
            run_rounds(&JoinOptions { job, offload, ..options(switch.address(), elements) });
        }
    }
}

#[test]
fn tagged_packets_carry_16_bit_elements() {
    let key = || Key::new(&[7; 32]).unwrap();
    let mut keys = Keys::new(random_secret().unwrap());
    keys.insert(Some(JOB), key());
    let address = own_address();
    let switch = EmbeddedSwitch::start_with_keys(address, &EmbeddedOptions::default(), keys).unwrap();
    for elements in SHORT {
        let tagged = options(switch.address(), elements).with_key(key(), true);
        let fits = if elements.results() == ElementType::F32 { 364 } else { 728 };
        assert_eq!(tagged.segment_floats, fits, "{elements}");
        run_rounds(&tagged);
        let other_order =
            JoinOptions::new(switch.address(), WORKERS, 1).with_key(key(), true).with_elements(elements);
        assert_eq!(other_order.segment_floats, fits, "{elements}");
    }
}

#[test]
fn asynchronous_sums_are_rounded_once() {
    let switch = switch();
    for (job, elements) in (0..).zip(SHORT) {
        let options = JoinOptions { job, workers: 1, ..options(switch.address(), elements) };
        let worker = AsyncWorker::join(options).unwrap();
        let vector: Vec<_> = (0..LEN).map(|at| contribution(0, 0, at)).collect();
        let mut sum = vec![0.0; LEN];
        for _ in 0..3 {
            worker.submit(&vector).unwrap();
            worker.recv_sum(&mut sum).unwrap();
            assert!(sum == vector, "{elements}");
        }
    }
}

#[test]
fn other_element_types_are_refused_by_name() {
    let switch = switch();
    let _first = Worker::join(JoinOptions { workers: 1, ..options(switch.address(), SHORT[0]) }).unwrap();
    let declared = |elements| {
        let options = JoinOptions { workers: 1, segment_floats: 732, ..options(switch.address(), elements) };
        Worker::join(options).unwrap_err()
    };
    let error = declared(ElementTypes::uniform(ElementType::F16));
    assert!(matches!(error, JoinError::Refused { status: Status::ElementTypeMismatch, .. }), "{error}");
    assert_eq!(error.to_string(), "the switch refused the Join: element types: f16, expected bf16");
    let error = declared(ElementTypes::with_wide_results(ElementType::Bf16));
    assert_eq!(error.to_string(), "the switch refused the Join: element types: bf16-f32, expected bf16");
}

#[test]
fn a_value_beyond_the_element_type_is_refused_before_anything_is_sent() {
    let switch = switch();
    let options =
        JoinOptions { workers: 1, ..options(switch.address(), ElementTypes::uniform(ElementType::F16)) };
    let mut worker = Worker::join(options).unwrap();
    let mut vector = vec![65_504.0; LEN];
    worker.all_reduce(&mut vector).unwrap();
    assert!(vector.iter().all(|x| *x == 65_504.0));
    vector[77] = -65_520.0;
    let error = worker.all_reduce(&mut vector).unwrap_err();
    assert!(matches!(error, AggregateError::NonFinite { index: 77, .. }), "{error}");
    assert_eq!(
        error.to_string(),
        "vector[77] is -65520, which the element type of the packets cannot represent"
    );
    assert_eq!(worker.counters().rounds, 1);
}
