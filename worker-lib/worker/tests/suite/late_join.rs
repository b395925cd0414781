//! Workers that join a running job: they fetch the learner's state from another worker, and from then on all replicas
//! are bit-identical.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use iswitch::{GradientAggregator, JoinOptions, Worker};
use iswitch_runtime::embedded::{EmbeddedOptions, EmbeddedSwitch};
use iswitch_switch::Config;

use crate::switches::own_address;

const LEN: usize = 3000;

/// Log shared by all workers of a job. It specifies when to end, and contains the weights of each worker before each
/// round.
#[derive(Default)]
struct Log {
    last_round: AtomicU32,
    is_over: AtomicBool,
    weights: Mutex<BTreeMap<u32, Vec<Replica>>>,
}

/// A worker's rank, and the bits of its weights.
type Replica = (u16, Vec<u32>);

/// Learner whose weights depend on all previous sums.
struct Learner {
    rank: u16,
    weights: Vec<f32>,
}

impl Learner {
    fn state(&self) -> Vec<u8> {
        self.weights.iter().flat_map(|x| x.to_le_bytes()).collect()
    }

    fn restore(&mut self, state: &[u8]) {
        self.weights = state.as_chunks().0.iter().map(|word| f32::from_le_bytes(*word)).collect();
    }

    fn gradient(&self) -> Vec<f32> {
        let pull = 0.1 + f32::from(self.rank);
        self.weights.iter().enumerate().map(|(i, w)| w * 0.7 - pull * (i % 17) as f32).collect()
    }

    fn bits(&self) -> Vec<u32> {
        self.weights.iter().map(|x| x.to_bits()).collect()
    }
}

fn start(rank: u16, address: SocketAddrV4, workers: u16, log: &Arc<Log>) -> JoinHandle<()> {
    let log = Arc::clone(log);
    thread::spawn(move || {
        let options = JoinOptions {
            workers_timeout: Some(Duration::from_secs(30)),
            round_timeout: Some(Duration::from_secs(60)),
            ..JoinOptions::new(address, workers, LEN as u32)
        };
        let (mut worker, state) = Worker::join_with_state(options).unwrap();
        let mut learner = Learner { rank, weights: vec![1.0; LEN] };
        if let Some(state) = state {
            learner.restore(&state);
        }
        let mut next = worker.membership().start.get();
        loop {
            worker.publish_state(|| learner.state());
            log.weights.lock().unwrap().entry(next).or_default().push((rank, learner.bits()));
            let mut vector = learner.gradient();
            // A last element above 0 makes all workers end after this round.
            vector[LEN - 1] = f32::from(u8::from(log.is_over.load(Ordering::Relaxed)));
            let round = worker.all_reduce(&mut vector).unwrap();
            for (w, x) in learner.weights.iter_mut().zip(&vector) {
                *w -= 0.1 * x / f32::from(round.contributors);
            }
            log.last_round.fetch_max(round.number, Ordering::Relaxed);
            if vector[LEN - 1] > 0.0 {
                return worker.leave().unwrap();
            }
            next = round.number + 1;
        }
    })
}

fn wait_for(log: &Log, round: u32) {
    let begin = Instant::now();
    while log.last_round.load(Ordering::Relaxed) < round {
        assert!(begin.elapsed() < Duration::from_secs(120), "round {round} has not completed within 120 s");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Checks that all workers that took part in a round had the same weights before it.
fn check(log: &Log, newcomer: u16) {
    let weights = log.weights.lock().unwrap();
    for (round, replicas) in weights.iter() {
        assert!(
            replicas.iter().all(|(_, bits)| *bits == replicas[0].1),
            "replicas differ before round {round}"
        );
    }
    let rounds =
        weights.values().filter(|replicas| replicas.iter().any(|(rank, _)| *rank == newcomer)).count();
    assert!(rounds > 10, "the newcomer took part in {rounds} rounds");
}

/// Starts a switch whose first round is round 0.
fn switch(config: Config) -> EmbeddedSwitch {
    let options = EmbeddedOptions { config: Config { boot: 1, ..config }, ..EmbeddedOptions::default() };
    EmbeddedSwitch::start(own_address(), &options).unwrap()
}

#[test]
fn a_late_joiner_gets_the_weights_of_the_others() {
    let switch = switch(Config::default());
    let log = Arc::new(Log::default());
    // Workers may join and leave at any time.
    let mut workers: Vec<_> = vec![start(0, switch.address(), 0, &log)];
    wait_for(&log, 20);
    workers.push(start(1, switch.address(), 0, &log));
    workers.push(start(2, switch.address(), 0, &log));
    let joined = log.last_round.load(Ordering::Relaxed);
    wait_for(&log, joined + 200);
    log.is_over.store(true, Ordering::Relaxed);
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    check(&log, 1);
    check(&log, 2);
}

#[test]
fn a_replacement_of_a_dead_worker_gets_the_weights_of_the_others() {
    let switch = switch(Config { lease_ms: 1000, ..Config::default() });
    let address = switch.address();
    let log = Arc::new(Log::default());
    let workers = [0, 1].map(|rank| start(rank, address, 3, &log));
    let mut dying = Worker::join(JoinOptions::new(address, 3, LEN as u32)).unwrap();
    dying.all_reduce(&mut [0.0; LEN]).unwrap();
    dying.abandon();
    // The lease of the dead worker expires, and the other workers continue.
    wait_for(&log, 20);
    let replacement = start(2, address, 3, &log);
    let joined = log.last_round.load(Ordering::Relaxed);
    wait_for(&log, joined + 200);
    log.is_over.store(true, Ordering::Relaxed);
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    replacement.join().unwrap();
    check(&log, 2);
}
