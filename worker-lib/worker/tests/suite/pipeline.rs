//! Tests of the pipeline with real threads and sockets and the embedded switch.

use std::ops::ControlFlow;
use std::time::Duration;

use iswitch::pipeline::{
    LearnerError, LocalGradient, LocalUpdate, PipelineConfig, PipelineError, PipelineReport, digest, run,
};
use iswitch::{AggregateError, AsyncWorker, JoinError, JoinOptions, Key};
use iswitch_protocol::Round;
use iswitch_runtime::embedded::{EmbeddedOptions, EmbeddedSwitch, random_secret};
use iswitch_switch::{Config, Keys};

use crate::switches::{own_address, restart_at};

const LEN: usize = 1000;
const RATE: f32 = 0.05;
const MOMENTUM: f32 = 0.5;

fn switch() -> EmbeddedSwitch {
    EmbeddedSwitch::start(own_address(), &EmbeddedOptions::default()).unwrap()
}

fn options(switch: &EmbeddedSwitch, workers: u16) -> JoinOptions {
    JoinOptions {
        workers_timeout: Some(Duration::from_secs(20)),
        ..JoinOptions::new(switch.address(), workers, LEN as u32)
    }
}

/// Gradient of half the squared distance to a target that only this worker knows.
struct Quadratic {
    target: f32,
    pause: Duration,
    calls_left: u64,
}

impl LocalGradient for Quadratic {
    fn gradient(&mut self, model: &[f32], gradient: &mut [f32]) -> Result<(), LearnerError> {
        std::thread::sleep(self.pause);
        self.calls_left = self.calls_left.checked_sub(1).ok_or("out of experience")?;
        gradient.iter_mut().zip(model).for_each(|(g, x)| *g = x - self.target);
        Ok(())
    }
}

/// Gradient descent with momentum. The momentum is not part of the model, but it is identical on all workers.
struct Descent {
    velocity: Vec<f32>,
    updates_left: u64,
    /// Offset added to each update; not zero on a faulty worker.
    flaw: f32,
}

impl LocalUpdate for Descent {
    fn update(
        &mut self,
        model: &mut [f32],
        sum: &[f32],
        contributions: u16,
    ) -> Result<ControlFlow<()>, LearnerError> {
        let scale = RATE / f32::from(contributions);
        for ((x, velocity), gradient) in model.iter_mut().zip(&mut self.velocity).zip(sum) {
            *velocity = MOMENTUM * *velocity - scale * gradient;
            *x += *velocity + self.flaw;
        }
        self.updates_left -= 1;
        Ok(if self.updates_left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

struct Learner {
    gradient: Quadratic,
    update: Descent,
}

fn learner(target: f32, updates: u64) -> Learner {
    Learner {
        gradient: Quadratic { target, pause: Duration::ZERO, calls_left: u64::MAX },
        update: Descent { velocity: vec![0.0; LEN], updates_left: updates, flaw: 0.0 },
    }
}

/// Trains all learners concurrently, each as a separate worker.
fn train(
    switch: &EmbeddedSwitch,
    learners: Vec<Learner>,
    config: PipelineConfig,
) -> Vec<Result<PipelineReport, PipelineError>> {
    let workers = learners.len() as u16;
    std::thread::scope(|scope| {
        let start = |Learner { gradient, update }| {
            scope.spawn(move || {
                let worker = AsyncWorker::join(options(switch, workers)).unwrap();
                run(worker, config, vec![0.0; LEN], gradient, update)
            })
        };
        let threads: Vec<_> = learners.into_iter().map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn workers_converge_to_the_same_model() {
    let switch = switch();
    let mut learners: Vec<_> = (0..4).map(|_| learner(3.0, 400)).collect();
    // One of them is slower than the others.
    learners[3].gradient.pause = Duration::from_millis(1);
    let config = PipelineConfig { digest_interval: 10, ..PipelineConfig::default() };
    let reports: Vec<_> = train(&switch, learners, config).into_iter().map(Result::unwrap).collect();
    for report in &reports {
        assert_eq!(report.staleness.updates(), 400);
        assert_eq!(digest(&report.model), digest(&reports[0].model), "replicas should be bit-identical");
        assert!(report.model.iter().all(|x| (x - 3.0).abs() < 1e-3), "{}", report.model[0]);
        assert!(report.staleness.at_commit().max().is_none_or(|max| max <= 3));
        assert!(report.updates_per_second() > 0.0);
    }
    // A worker may end before it has applied the aggregates that contain its last vectors.
    let included: u64 = reports.iter().map(|report| report.staleness.at_inclusion().total()).sum();
    assert!(included > 4 * 390, "{included} of about 1600 vectors are accounted for");
}

#[test]
fn training_works_with_a_key() {
    let key = Key::new(&[7; 32]).unwrap();
    let mut keys = Keys::new(random_secret().unwrap());
    keys.insert(None, key.clone());
    let switch = EmbeddedSwitch::start_with_keys(own_address(), &EmbeddedOptions::default(), keys).unwrap();
    for tag_data in [false, true] {
        let options = options(&switch, 1).with_key(key.clone(), tag_data);
        let worker = AsyncWorker::join(options).unwrap();
        let Learner { gradient, update } = learner(3.0, 200);
        let report = run(worker, PipelineConfig::default(), vec![0.0; LEN], gradient, update).unwrap();
        assert_eq!(report.staleness.updates(), 200);
    }
    let stranger = JoinOptions { connect_timeout: Duration::from_millis(300), ..options(&switch, 1) };
    let error = AsyncWorker::join(stranger).unwrap_err();
    assert!(error.to_string().contains("has a key"), "{error}");
}

#[test]
fn a_diverged_replica_is_detected() {
    let switch = switch();
    let mut learners = vec![learner(1.0, 2_000), learner(2.0, 2_000)];
    learners[1].update.flaw = 1e-3;
    let config = PipelineConfig { digest_interval: 10, ..PipelineConfig::default() };
    let outcomes = train(&switch, learners, config);
    let is_diverged = |outcome: &Result<_, _>| {
        matches!(outcome, Err(PipelineError::Aggregate(AggregateError::Diverged { .. })))
    };
    assert!(outcomes.iter().any(is_diverged), "{outcomes:?}");
}

#[test]
fn the_failure_of_a_learner_ends_its_pipeline_and_no_other() {
    let switch = switch();
    let mut learners = vec![learner(1.0, 300), learner(2.0, 300)];
    learners[1].gradient.calls_left = 5;
    let outcomes = train(&switch, learners, PipelineConfig::default());
    let report = outcomes[0].as_ref().unwrap();
    assert_eq!(report.staleness.updates(), 300, "H should fall to the one remaining worker");
    let error = outcomes[1].as_ref().unwrap_err();
    assert_eq!(error.to_string(), "out of experience");
}

#[test]
fn a_non_finite_gradient_is_reported_with_its_index() {
    struct Bad;
    impl LocalGradient for Bad {
        fn gradient(&mut self, _: &[f32], gradient: &mut [f32]) -> Result<(), LearnerError> {
            gradient[7] = f32::NAN;
            Ok(())
        }
    }
    let switch = switch();
    let worker = AsyncWorker::join(options(&switch, 1)).unwrap();
    let error =
        run(worker, PipelineConfig::default(), vec![0.0; LEN], Bad, learner(0.0, 1).update).unwrap_err();
    let expected = matches!(error, PipelineError::Aggregate(AggregateError::NonFinite { index: 7, .. }));
    assert!(expected, "{error}");
}

#[test]
fn a_worker_can_be_used_without_the_pipeline() {
    let switch = switch();
    let options = JoinOptions { job: 3, ..options(&switch, 1) };
    let worker = AsyncWorker::join(options.clone()).unwrap();
    let mut sum = vec![0.0; LEN];
    worker.set_threshold(2).unwrap();
    let mut first = None;
    let mut number =
        |sequence: u64, got: u32| Round::new(*first.get_or_insert(got)).plus(sequence as u32 / 2).get();
    for aggregate in 0..20 {
        assert_eq!(worker.submit(&[1.0; LEN]).unwrap(), 2 * aggregate);
        worker.submit(&[2.0; LEN]).unwrap();
        let (got, contributions) = worker.recv_sum(&mut sum).unwrap();
        assert_eq!((got, contributions), (number(2 * aggregate, got), 2));
        assert_eq!(sum, [3.0; LEN]);
    }
    worker.wait_ready().unwrap();
    let admissions: Vec<_> = std::iter::from_fn(|| worker.poll_admission()).collect();
    assert_eq!(admissions.len(), 40);
    for (admission, sequence) in admissions.iter().zip(0..) {
        assert_eq!((admission.sequence, admission.aggregate), (sequence, Some(number(sequence, 0))));
    }
    worker.halt().unwrap();
    assert!(matches!(worker.recv_sum(&mut sum), Err(AggregateError::Halted)));
    worker.reset().unwrap();
    let mut left = vec![5.0, 4.0];
    while let Some(value) = left.pop() {
        worker.submit(&[value; LEN]).unwrap();
        worker.wait_ready().unwrap();
        // After a Reset, the members rejoin, and a vector that is in flight at that time is lost.
        let admission = worker.poll_admission().unwrap();
        left.extend(admission.aggregate.is_none().then_some(value));
    }
    // A retransmitted Halt may have arrived before the Reset.
    let received = match worker.recv_sum(&mut sum) {
        Err(AggregateError::Halted) => worker.recv_sum(&mut sum),
        received => received,
    };
    assert_eq!(received.unwrap().1, 2);
    assert_eq!(sum, [9.0; LEN]);
    assert!(matches!(worker.submit(&[1.0]), Err(AggregateError::WrongLength { actual: 1, .. })));
    worker.close();
    assert!(matches!(worker.recv_sum(&mut sum), Err(AggregateError::Closed)));
    assert!(matches!(worker.submit(&[1.0; LEN]), Err(AggregateError::Closed)));
}

#[test]
fn join_refusals_report_the_exceeded_limit() {
    let small = Config { memory_bytes: 1 << 16, ..Config::default() };
    let options_of_switch = EmbeddedOptions { config: small, ..EmbeddedOptions::default() };
    let switch = EmbeddedSwitch::start(own_address(), &options_of_switch).unwrap();
    match AsyncWorker::join(options(&switch, 2)) {
        Err(error @ JoinError::Refused { .. }) => {
            let text = error.to_string();
            assert!(text.contains("the job needs 257 KiB, but the switch has 64 KiB left"), "{text}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_silent_switch_is_reported_as_lost() {
    let switch = switch();
    let options = JoinOptions { switch_timeout: Duration::from_millis(300), ..options(&switch, 1) };
    let worker = AsyncWorker::join(options).unwrap();
    drop(switch);
    let error = worker.recv_sum(&mut [0.0; LEN]).unwrap_err();
    assert!(matches!(error, AggregateError::SwitchLost { .. }), "{error}");
}

#[test]
fn the_models_survive_a_switch_restart() {
    let mut first = Some(switch());
    let address = first.as_ref().unwrap().address();
    let begin = |target: f32| {
        let options = options(first.as_ref().unwrap(), 2);
        std::thread::spawn(move || {
            let worker = AsyncWorker::join(options).unwrap();
            let mut learner = learner(target, 2_000);
            learner.gradient.pause = Duration::from_millis(1);
            let config = PipelineConfig { digest_interval: 10, ..PipelineConfig::default() };
            run(worker, config, vec![0.0; LEN], learner.gradient, learner.update)
        })
    };
    let threads = [begin(1.0), begin(2.0)];
    while first.as_ref().unwrap().snapshot().unwrap().traffic.get("results") < 300 {
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(first.take());
    let _second = restart_at(address);
    let outcomes = threads.map(|thread| thread.join().unwrap());
    // A worker with fewer sums than the other one needs its state, and fails with MissedRounds.
    let is_missed = |outcome: &Result<_, _>| {
        matches!(outcome, Err(PipelineError::Aggregate(AggregateError::MissedRounds { .. })))
    };
    let reports: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().ok()).collect();
    assert!(outcomes.iter().all(|outcome| outcome.is_ok() || is_missed(outcome)), "{outcomes:?}");
    assert!(!reports.is_empty());
    assert!(reports.iter().all(|report| report.staleness.updates() == 2_000 && report.counters.rejoins == 1));
    assert!(reports.iter().all(|report| digest(&report.model) == digest(&reports[0].model)));
}
