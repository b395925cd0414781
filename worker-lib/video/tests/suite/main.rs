//! Tests of `iswitch eval --video`, in a single program so that they are linked only once.

mod gymnasium;
mod videos;

use std::path::Path;
use std::process::{Command, Output};

use iswitch::Loopback;
use iswitch_learn::algorithms::a2c::A2cConfig;
use iswitch_learn::algorithms::checkpoint;
use iswitch_learn::algorithms::trainer::{Algorithm, Mode, World};
use iswitch_learn::env::{self, GymnasiumOptions};

/// Saves an untrained agent.
fn save_agent(id: &'static str, options: &GymnasiumOptions, directory: &Path) {
    let config = A2cConfig::preset(id);
    let spec = env::make_vector_with(id, 1, options).unwrap()[0].spec().clone();
    let shape = config.vector_shape(&spec, Mode::Synchronous).unwrap();
    let aggregator = Box::new(Loopback::alone(shape.len()));
    let options = options.clone();
    let make = move |count: usize| env::make_vector_with(id, count, &options);
    let mut trainer = config.trainer(World::ALONE, &make, aggregator).unwrap();
    checkpoint::save(trainer.as_mut(), directory).unwrap();
}

/// Returns a command that runs in `directory` and evaluates the agent in it.
fn evaluation(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iswitch-video"));
    command.current_dir(directory).arg(".");
    command
}

/// Evaluates the agent in a directory.
fn evaluate(directory: &Path, arguments: &[&str]) -> Output {
    evaluation(directory).args(arguments).output().unwrap()
}

/// Prints that a test is skipped, and fails if skipping tests is not permitted.
fn skip(reason: &str) {
    let line = format!("SKIPPED videos: {reason}");
    assert!(std::env::var_os("ISWITCH_REQUIRE_ALL_TESTS").is_none(), "{line}");
    eprintln!("{line}");
}
