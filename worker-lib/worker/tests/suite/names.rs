//! Names that workers send to the switch (SPEC, section 14), over the loopback interface.

use std::thread;
use std::time::{Duration, Instant};

use iswitch::worker::asynchronous::AsyncWorker;
use iswitch::{AggregateError, GradientAggregator, JoinOptions, Key, NameRepr, Worker};
use iswitch_runtime::embedded::{EmbeddedOptions, EmbeddedSwitch, random_secret};
use iswitch_switch::{JobStatus, Keys};

use crate::switches::own_address;

const LEN: u32 = 1000;
/// Time limit for events that normally take milliseconds.
const TIMEOUT: Duration = Duration::from_secs(60);

fn key() -> Key {
    Key::new(b"the key of this job").unwrap()
}

/// Starts a switch on which job 2 has a key.
fn switch() -> EmbeddedSwitch {
    let options = EmbeddedOptions::default();
    let mut keys = Keys::new(random_secret().unwrap());
    assert!(keys.insert(Some(2), key()));
    EmbeddedSwitch::start_with_keys(own_address(), &options, keys).unwrap()
}

fn options(switch: &EmbeddedSwitch, job: u32, rank: u16) -> JoinOptions {
    let mut options = JoinOptions::new(switch.address(), 2, LEN);
    (options.job, options.workers_timeout, options.round_timeout) = (job, Some(TIMEOUT), Some(TIMEOUT));
    options.name.job = "ppo-hopper".parse().unwrap();
    options.name.owner = "alice".parse().unwrap();
    options.name.rank = Some(rank);
    if job == 2 { options.with_key(key(), true) } else { options }
}

/// Returns the status of a job once it satisfies a condition.
fn wait_for(switch: &EmbeddedSwitch, job: u32, is_met: impl Fn(&JobStatus) -> bool) -> JobStatus {
    let begin = Instant::now();
    loop {
        let snapshot = switch.snapshot().unwrap();
        let status = snapshot.jobs.iter().find(|status| status.job == job);
        if let Some(status) = status.filter(|status| is_met(status)) {
            return status.clone();
        }
        assert!(begin.elapsed() < TIMEOUT, "{snapshot:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn ranks(status: &JobStatus) -> Vec<Option<u16>> {
    let mut ranks: Vec<_> = status.members.iter().map(|member| member.rank).collect();
    ranks.sort_unstable();
    ranks
}

#[test]
fn names_are_known_while_the_job_waits_for_workers_with_and_without_a_key() {
    let switch = switch();
    for job in [1, 2] {
        let first = options(&switch, job, 7);
        let host = first.name.host;
        assert!(!host.is_empty(), "the default is the host name of this machine");
        let first = thread::spawn(move || Worker::join(first).unwrap());
        let waiting = wait_for(&switch, job, |status| status.name.is_some());
        assert_eq!((waiting.name.as_deref(), waiting.owner.as_deref()), (Some("ppo-hopper"), Some("alice")));
        assert!(!waiting.formed);
        assert_eq!(
            (waiting.members[0].rank, waiting.members[0].host.as_deref()),
            (Some(7), Some(host.as_str()))
        );

        // This worker sends no name. The switch then shows the rank that determines the order of addition.
        let mut second = options(&switch, job, 0);
        (second.name, second.rank) = (NameRepr::UNKNOWN, 3);
        let second = Worker::join(second).unwrap();
        let workers = [first.join().unwrap(), second].map(|mut worker| {
            thread::spawn(move || {
                let mut vector = vec![1.0; LEN as usize];
                worker.all_reduce(&mut vector).unwrap();
                assert!(vector.iter().all(|x| x.to_bits() == 2f32.to_bits()));
                worker
            })
        });
        let workers = workers.map(|worker| worker.join().unwrap());
        let complete = wait_for(&switch, job, |status| ranks(status) == [Some(3), Some(7)]);
        assert!(complete.formed);
        drop(workers);
    }
    assert_eq!(switch.snapshot().unwrap().drops.total(), 0);
}

#[test]
fn workers_of_an_asynchronous_job_state_their_names() {
    let switch = switch();
    let join = |rank| {
        let options = options(&switch, 1, rank);
        thread::spawn(move || AsyncWorker::join(options).unwrap())
    };
    let workers = [join(0), join(1)].map(|worker| worker.join().unwrap());
    let status = wait_for(&switch, 1, |status| ranks(status) == [Some(0), Some(1)]);
    assert_eq!(status.name.as_deref(), Some("ppo-hopper"));
    drop(workers);
}

/// The error of a stalled round names the worker that has not contributed.
#[test]
fn a_stalled_round_names_the_absent_workers() {
    let switch = switch();
    for job in [1, 2] {
        let join = |rank| {
            let mut options = options(&switch, job, rank);
            options.round_timeout = Some(Duration::from_millis(200));
            options.name.host = format!("gpu0{rank}").parse().unwrap();
            thread::spawn(move || Worker::join(options).unwrap())
        };
        let [mut first, idle] = [join(0), join(1)].map(|worker| worker.join().unwrap());
        wait_for(&switch, job, |status| ranks(status) == [Some(0), Some(1)]);
        let error = first.all_reduce(&mut vec![1.0; LEN as usize]).unwrap_err();
        let AggregateError::Stalled { absent, .. } = &error else { panic!("{error}") };
        assert_eq!((absent.count, absent.members.len()), (1, 1));
        assert!(error.to_string().ends_with("segments are waiting for rank 1 on host gpu01"), "{error}");
        drop(idle);
    }
}
