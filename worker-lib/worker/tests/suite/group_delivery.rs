//! Delivery of results through the group of a job, over the loopback interface. The sums must be exact, and all members
//! must receive them.

use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use iswitch::worker::asynchronous::AsyncWorker;
use iswitch::{GradientAggregator, JoinOptions, Key, Worker};
use iswitch_protocol::limits::DEFAULT_DATA_TOS;
use iswitch_protocol::wire::emit_seg;
use iswitch_protocol::{Round, Seg, SegmentIndex};
use iswitch_runtime::embedded::{EmbeddedOptions, EmbeddedSwitch, random_secret};
use iswitch_runtime::snapshot::Snapshot;
use iswitch_socket::{Options, UdpSocket};
use iswitch_switch::{Config, JobStatus, Keys};

use crate::switches::own_address;

const LEN: u32 = 40_000;
const WORKERS: u16 = 3;
/// Time limit for events that normally take milliseconds.
const TIMEOUT: Duration = Duration::from_secs(60);

fn switch(config: Config) -> EmbeddedSwitch {
    let options = EmbeddedOptions { config, ..EmbeddedOptions::default() };
    EmbeddedSwitch::start(own_address(), &options).unwrap()
}

fn options(address: SocketAddrV4, job: u32) -> JoinOptions {
    let (workers_timeout, round_timeout) = (Some(TIMEOUT), Some(TIMEOUT));
    JoinOptions { job, workers_timeout, round_timeout, ..JoinOptions::new(address, WORKERS, LEN) }
}

fn status(snapshot: &Snapshot, job: u32) -> &JobStatus {
    snapshot.jobs.iter().find(|status| status.job == job).expect("the job should exist")
}

/// Returns the number of members of a job that receive results through its group.
fn hearing(snapshot: &Snapshot, job: u32) -> usize {
    status(snapshot, job).members.iter().filter(|member| member.hears_group).count()
}

/// Runs rounds on the members of a job, each of which has separate options, as long as `goes_on` returns true for the
/// state of the switch. Checks each element of each sum. Returns the last state of the switch.
fn run(
    switch: &EmbeddedSwitch,
    members: Vec<JoinOptions>,
    goes_on: impl Fn(&Snapshot) -> bool,
) -> std::sync::Arc<Snapshot> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let is_over = &is_over;
        let workers: Vec<_> = members
            .into_iter()
            .enumerate()
            .map(|(rank, options)| scope.spawn(move || member(options, rank as u32, is_over)))
            .collect();
        let begin = Instant::now();
        let is_failed = || workers.iter().any(thread::ScopedJoinHandle::is_finished);
        let (last, is_late) = loop {
            let (snapshot, is_late) = (switch.snapshot().unwrap(), begin.elapsed() > TIMEOUT);
            if !goes_on(&snapshot) || is_late || is_failed() {
                break (snapshot, is_late);
            }
        };
        is_over.store(true, Ordering::SeqCst);
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        assert!(!is_late, "{last:?}");
        last
    })
}

/// Takes part in rounds until the first element of a sum is not zero, by which a member signals the end of the job.
fn member(options: JoinOptions, rank: u32, is_over: &AtomicBool) {
    let mut worker = Worker::join(options).unwrap();
    let mut vector = vec![0.0; LEN as usize];
    for round in 0..u32::MAX {
        let element = |rank: u32, at: usize| ((rank * 997 + round * 31 + at as u32) % 4093) as f32;
        for (at, x) in vector.iter_mut().enumerate() {
            *x = element(rank, at);
        }
        // All members see the same sum, so they all end with the same round.
        let ends = rank == 0 && is_over.load(Ordering::SeqCst);
        vector[0] = f32::from(u8::from(ends));
        let done = worker.all_reduce(&mut vector).unwrap();
        assert_eq!(done.contributors, WORKERS);
        for (at, sum) in vector.iter().enumerate().skip(1) {
            let expected: f32 = (0..u32::from(WORKERS)).map(|rank| element(rank, at)).sum();
            assert!(*sum == expected, "round {round} [{at}]: {sum}, expected {expected}");
        }
        if vector[0] != 0.0 {
            return worker.leave().unwrap();
        }
    }
}

/// Returns a condition that is true until `expected` members of a job receive packets of its group and at least 1000
/// packets have been sent to the group.
fn until_heard(job: u32, expected: usize) -> impl Fn(&Snapshot) -> bool {
    move |snapshot| {
        let has_job = snapshot.jobs.iter().any(|status| status.job == job);
        !has_job || hearing(snapshot, job) < expected || snapshot.traffic.get("group_sent") < 1000
    }
}

#[test]
fn workers_receive_sums_through_the_group() {
    let switch = switch(Config { group_delivery: true, ..Config::default() });
    let members = (0..WORKERS).map(|_| options(switch.address(), 1)).collect();
    let last = run(&switch, members, until_heard(1, WORKERS.into()));
    let group = status(&last, 1).group.expect("the job should have a group");
    assert!(group.ip().is_multicast());
}

#[test]
fn a_worker_that_declines_the_group_receives_sums_by_unicast() {
    let switch = switch(Config { group_delivery: true, ..Config::default() });
    let members = (0..WORKERS)
        .map(|rank| JoinOptions { group_delivery: rank != 1, ..options(switch.address(), 1) })
        .collect();
    let last = run(&switch, members, until_heard(1, 2));
    assert_eq!(hearing(&last, 1), 2);
}

#[test]
fn keyed_jobs_authenticate_probes_and_tag_sums() {
    for tag_data in [false, true] {
        let mut keys = Keys::new(random_secret().unwrap());
        let key = Key::new(&[7; 32]).unwrap();
        keys.insert(None, key.clone());
        let config = Config { group_delivery: true, ..Config::default() };
        let embedded = EmbeddedOptions { config, ..EmbeddedOptions::default() };
        let switch = EmbeddedSwitch::start_with_keys(own_address(), &embedded, keys).unwrap();
        let members =
            (0..WORKERS).map(|_| options(switch.address(), 1).with_key(key.clone(), tag_data)).collect();
        run(&switch, members, until_heard(1, WORKERS.into()));
    }
}

#[test]
fn a_switch_without_group_delivery_offers_no_group() {
    let switch = switch(Config::default());
    let members = (0..WORKERS).map(|_| options(switch.address(), 1)).collect();
    let last = run(&switch, members, |snapshot| snapshot.traffic.get("results") < 2000);
    assert_eq!((status(&last, 1).group, hearing(&last, 1), last.traffic.get("group_sent")), (None, 0, 0));
}

#[test]
fn packets_of_a_foreign_sender_to_the_group_are_ignored() {
    let switch = switch(Config { group_delivery: true, ..Config::default() });
    let members = (0..WORKERS).map(|_| options(switch.address(), 1)).collect();
    let socket = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &Options::default()).unwrap();
    let is_heard = until_heard(1, WORKERS.into());
    let forged = AtomicU64::new(0);
    run(&switch, members, |snapshot| {
        if is_heard(snapshot) {
            return true;
        }
        // Results of the rounds in progress, with one float that no sum contains.
        let (group, round) = (status(snapshot, 1).group.unwrap(), status(snapshot, 1).round.unwrap());
        for round in round..round + 40 {
            let mut result = vec![0x7f; 8 + 4 * 366];
            let seg =
                Seg { index: SegmentIndex::default(), round: Round::new(round), contributions: WORKERS };
            emit_seg(&mut result, seg);
            socket.send(DEFAULT_DATA_TOS, Some(group), None, &result, result.len()).unwrap();
        }
        forged.fetch_add(1, Ordering::SeqCst) < 20
    });
}

#[test]
fn two_jobs_have_two_groups() {
    let switch = switch(Config { group_delivery: true, ..Config::default() });
    let groups = thread::scope(|scope| {
        let jobs = [1, 2].map(|job| {
            let switch = &switch;
            scope.spawn(move || {
                let members = (0..WORKERS).map(|_| options(switch.address(), job)).collect();
                let last = run(switch, members, until_heard(job, WORKERS.into()));
                status(&last, job).group.unwrap()
            })
        });
        jobs.map(|job| job.join().unwrap())
    });
    assert_ne!(groups[0].ip(), groups[1].ip());
}

#[test]
fn asynchronous_sums_arrive_through_the_group() {
    let switch = switch(Config { group_delivery: true, ..Config::default() });
    let joining: Vec<_> = (0..WORKERS)
        .map(|_| {
            let options = options(switch.address(), 1);
            thread::spawn(move || AsyncWorker::join(options).unwrap())
        })
        .collect();
    let workers: Vec<_> = joining.into_iter().map(|worker| worker.join().unwrap()).collect();
    thread::scope(|scope| {
        for worker in &workers {
            scope.spawn(|| {
                let vector = vec![1.0; LEN as usize];
                while worker.submit(&vector).is_ok() {}
            });
            scope.spawn(|| {
                let mut sum = vec![0.0; LEN as usize];
                while let Ok((_, contributions)) = worker.recv_sum(&mut sum) {
                    assert!(sum.iter().all(|x| *x == f32::from(contributions)));
                }
            });
        }
        // On a busy machine, members of an asynchronous job may fall back to unicast and return to the group at any
        // time, so the test does not wait until all of them receive packets of the group at the same time.
        let (begin, is_unheard) = (Instant::now(), until_heard(1, 0));
        let mut last = switch.snapshot().unwrap();
        while begin.elapsed() < TIMEOUT && is_unheard(&last) {
            last = switch.snapshot().unwrap();
        }
        workers.iter().for_each(AsyncWorker::close);
        assert!(!is_unheard(&last), "{last:?}");
    });
}
