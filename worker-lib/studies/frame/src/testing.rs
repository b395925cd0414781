//! Test support for the studies: checks of policy names, runs of a study's program, and training runs with a single
//! worker or with several workers and an embedded switch.

use std::fmt::{Debug, Display};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::str::FromStr;
use std::sync::atomic::Ordering;

use iswitch::{JoinOptions, Loopback, Worker};
use iswitch_learn::algorithms::trainer::World;
use iswitch_runtime::embedded::{EmbeddedOptions, EmbeddedSwitch};
use serde_json::Value as Json;

use crate::{Record, Saved, Study, StudyError, Training};

/// Checks that parsing the name of each policy returns that policy.
///
/// # Panics
/// Panics if a name cannot be parsed, or if parsing the name of one policy returns another policy.
pub fn check_names<P>(policies: impl IntoIterator<Item = P>)
where
    P: Copy + Debug + Display + PartialEq + FromStr<Err = StudyError>,
{
    for policy in policies {
        let parsed = policy.to_string().parse::<P>();
        assert_eq!(parsed.expect("the name is parsed"), policy);
    }
}

/// Runs a program and returns the results that it prints with `--json`: those of all policies of a comparison, without
/// their names, or the single object of an evaluation.
///
/// # Panics
/// Panics if the program fails or prints no JSON.
pub fn results(program: &str, args: &[&str]) -> Vec<Json> {
    let output = run(program, args);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {errors}");
    let mut printed: Json = serde_json::from_slice(&output.stdout).expect("the program prints JSON");
    let mut results = match printed.get_mut("results").map(Json::take) {
        Some(Json::Array(results)) => results,
        _ => vec![printed],
    };
    for result in &mut results {
        result.as_object_mut().expect("a result is an object").remove("policy");
    }
    results
}

/// Runs a program that must fail, and returns its last line on standard error.
///
/// # Panics
/// Panics if the program succeeds or reports no error.
pub fn failure(program: &str, args: &[&str]) -> String {
    let output = run(program, args);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{args:?}: {errors}");
    errors.lines().last().expect("the program reports an error").to_owned()
}

fn run(program: &str, args: &[&str]) -> Output {
    Command::new(program).args(args).output().expect("the program starts")
}

/// Returns the command of the external policy in this file of `worker-lib/studies/examples/pipe`. Returns `None` if
/// python3 is not installed, in which case the test must be skipped.
///
/// # Panics
/// Panics if python3 is not installed although no test may be skipped.
pub fn python_example(test: &str, file: &str) -> Option<String> {
    if Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success()) {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../examples/pipe").join(file);
        return Some(format!("exec python3 '{}'", path.display()));
    }
    let line = format!("SKIPPED {test}: python3 is not installed");
    assert!(std::env::var_os("ISWITCH_REQUIRE_ALL_TESTS").is_none(), "{line}");
    eprintln!("{line}");
    None
}

/// Creates a training run with a single worker.
///
/// # Errors
/// Fails if the hyper-parameters or the task are invalid.
pub fn try_alone<S: Study>(config: S::Config, task: S::Task) -> Result<Training<S>, StudyError> {
    let len = Training::<S>::vector_len(&config)?;
    Training::new(config, task, World::ALONE, Box::new(Loopback::alone(len)))
}

/// Creates a training run with a single worker.
///
/// # Panics
/// Panics if the hyper-parameters or the task are invalid.
pub fn alone<S: Study>(config: S::Config, task: S::Task) -> Training<S> {
    try_alone(config, task).expect("the training fits its task")
}

/// Runs all remaining iterations.
///
/// # Panics
/// Panics if an iteration fails or is stopped.
pub fn run_to_the_end<S: Study>(training: &mut Training<S>) {
    while !training.is_finished() {
        assert!(training.advance().expect("the iteration succeeds").is_some());
    }
}

/// Returns the records of a training run without their durations.
pub fn curve<S: Study>(training: &Training<S>) -> Vec<S::Iteration> {
    training.history().iter().cloned().map(Record::without_time).collect()
}

/// Trains with `workers` workers, whose gradients are summed by an embedded switch. Returns the training run of each
/// worker.
///
/// # Panics
/// Panics if a training run fails, or if the final states of the workers differ.
pub fn over_a_switch<S>(workers: usize, config: &S::Config, task: &S::Task) -> Vec<Training<S>>
where
    S: Study<Config: Sync, Task: Clone + Sync, Iteration: Send> + Send,
    S::Config: Send,
{
    let any_port = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    let switch = EmbeddedSwitch::start(any_port, &EmbeddedOptions::default()).expect("the switch starts");
    let address = switch.address();
    let len = Training::<S>::vector_len(config).expect("the hyper-parameters are in range");
    let train = |rank: usize| {
        let options = JoinOptions::new(address, workers as u16, len as u32);
        let worker = Worker::join(JoinOptions { rank: rank as u16, ..options }).expect("the worker joins");
        let world = World { rank, size: workers };
        let training = Training::new(config.clone(), task.clone(), world, Box::new(worker));
        let mut training = training.expect("the training fits its task");
        run_to_the_end(&mut training);
        assert!(training.replicas_identical().expect("the workers compare their states"));
        training
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|rank| scope.spawn(move || train(rank))).collect();
        threads.into_iter().map(|thread| thread.join().expect("the worker does not panic")).collect()
    })
}

/// Checks that training with several workers produces exactly the same parameters, bit for bit, as training with one
/// worker, and that the parameters change during training.
///
/// # Panics
/// Panics if the parameters differ between the workers and the single worker, or if they do not change during training.
pub fn check_workers<S>(workers: usize, config: &S::Config, task: &S::Task)
where
    S: Study<Config: Sync, Task: Clone + Sync, Iteration: Send> + Send,
    S::Config: Send,
{
    let mut one = alone::<S>(config.clone(), task.clone());
    let begun = one.digest();
    run_to_the_end(&mut one);
    for other in over_a_switch::<S>(workers, config, task) {
        assert_eq!(curve(&other), curve(&one));
        assert_eq!(other.digest(), one.digest());
        assert_ne!(other.digest(), begun);
    }
}

/// Checks that a training run that is saved in `directory` after `first` iterations and then resumed reaches the same
/// final state as an uninterrupted run. Saves this final state in `directory` too, and returns the resumed run.
///
/// # Panics
/// Panics if the final states of the resumed and the uninterrupted run differ.
pub fn check_resumption<S>(config: &S::Config, task: &S::Task, first: usize, directory: &Path) -> Training<S>
where
    S: Study<Task: Clone>,
    S::Iteration: Debug,
{
    let mut whole = alone::<S>(config.clone(), task.clone());
    run_to_the_end(&mut whole);
    let mut begun = alone::<S>(config.clone(), task.clone());
    (0..first).for_each(|_| assert!(begun.advance().expect("the iteration succeeds").is_some()));
    begun.save(directory).expect("the checkpoint is written");
    let saved = Saved::<S>::read(directory).expect("the checkpoint is read");
    let mut resumed = alone::<S>(saved.config().clone(), task.clone());
    saved.restore(&mut resumed).expect("the checkpoint is restored");
    run_to_the_end(&mut resumed);
    assert_eq!(curve(&resumed), curve(&whole));
    assert_eq!(resumed.digest(), whole.digest());
    assert_eq!(resumed.best_parameters(), whole.best_parameters());
    resumed.save(directory).expect("the checkpoint is written");
    resumed
}

/// Checks that an iteration that is stopped early has no effect: a training run that continues after the stop reaches
/// the same final state as a run that was not stopped.
///
/// # Panics
/// Panics if the final states of the two runs differ.
pub fn check_stop<S>(config: &S::Config, task: &S::Task)
where
    S: Study<Task: Clone>,
{
    let mut whole = alone::<S>(config.clone(), task.clone());
    run_to_the_end(&mut whole);
    let mut stopped = alone::<S>(config.clone(), task.clone());
    assert!(stopped.advance().expect("the iteration succeeds").is_some());
    let before = stopped.digest();
    stopped.stop_handle().store(true, Ordering::Relaxed);
    assert!(stopped.advance().expect("the iteration ends early").is_none());
    assert_eq!(stopped.digest(), before);
    stopped.stop_handle().store(false, Ordering::Relaxed);
    run_to_the_end(&mut stopped);
    assert_eq!(curve(&stopped), curve(&whole));
    assert_eq!(stopped.digest(), whole.digest());
}
